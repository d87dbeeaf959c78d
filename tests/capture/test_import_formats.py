"""Each format that can be imported: how it is recognised, and what is found in it."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matrices import for_each

from quaid.capture.importers.formats import FORMATS, select_format
from quaid.capture.importers.import_content import ImportContent, ImportSource
from quaid.errors import BadInputError
from quaid.model import Edge


def admit(text):
    secrets = ("key",) if "s3cr3t" in text else ()
    return text.replace("s3cr3t", "[redacted: key]"), secrets


def folder(files, name="workspace", **more):
    return ImportSource(name, {path: text.encode() for path, text in files.items()}, **more)


def single(name, text):
    return ImportSource(name, {name: text.encode() if isinstance(text, str) else text}, is_folder=False)


def read(source, name=None, **more):
    found = ImportContent(admit, **more)
    select_format(source, name).read(source, found)
    return found


def texts(found):
    return [fact.text for fact in found.facts]


COFFEE = """---
title: Coffee Brewing Methods
type: note
tags: [coffee, brewing]
permalink: notes/coffee-brewing-methods
created: 2025-02-03T10:00:00+01:00
---

# Coffee Brewing Methods

Kept since the first espresso machine, see [[notes/water]].

## Observations

- [method] Pour over gives more clarity than French press
- [technique] Water at 96 degrees extracts best #brewing #water
- [preference] Maya likes Ethiopian beans (from the tasting in May)
- Grind size decides on the brewing time #grinding
- [ ] buy filters
- [x] clean the grinder
- [/] descale the machine
- [00:11] so this is the intro
- [the shop](https://example.org)

## Relations

- requires [[Proper Grinding]]
- relates_to [[notes/water]] (mostly)
- "is described by" [[Maya Chen]]
- a sentence with [[Proper Grinding]] in it

```
- [method] Not this one
```
"""
WATER = "---\ntitle: Water\npermalink: notes/water\n---\n- [fact] Leipzig has soft water\n"
MAYA = "---\ntitle: Maya Chen\ntype: Person\npermalink: people/maya-chen\naliases: [Maya]\n---\n- mother_of [[Tom]]\n"
BASIC_MEMORY = {"notes/coffee.md": COFFEE, "notes/water.md": WATER, "people/maya-chen.md": MAYA}

DAILY = """# 2026-03-01

## Decisions
- Decided on Tailwind over plain CSS

## TODO
- [ ] Call the landlord about the lease
- [x] Fire the second kiln

## Log
- 14:30 - Met Alice at the kiln supplier
- Maya hates the new glaze

## Lessons
- The mail server takes 100 messages a second
"""
SESSION = """# Session: 2026-01-16 14:30:00 UTC

- **Session Key**: agent:main:main
- **Source**: telegram

## Conversation Summary

user: I would like to have a vendor pitch
assistant: Of course, here is a vendor pitch
"""
WORKSPACE = {
    "AGENTS.md": "You must do this and that.",
    "MEMORY.md": "# Memory\n\n## People\n- **Alice** — runs the shop\n- Goal: be kind\n\n## Pets\n### Biscuit\n- eats twice a day\n"
    "\n- [More](topics/lease.md) — the lease\n",
    "README.md": "This folder is my workspace.",
    "USER.md": "# USER.md\n\n- **Name:** Maya Chen\n- **Pronouns:** _(optional)_\n",
    "memory/2026-01-16-pitch.md": SESSION,
    "memory/2026-03-01.md": DAILY,
    "memory/villa.md": "# Villa Atmata\n\n## Rooms\n- Blue room: two beds\n",
    "topics/lease.md": "---\nname: lease\n---\nThe lease ends in May.\n",
}
MEM0 = {
    "results": [
        {
            "id": "892db2ae",
            "memory": "Maya prefers morning meetings",
            "user_id": "maya",
            "hash": "c1",
            "metadata": {"category": "work"},
            "categories": ["user_preferences", "meetings"],
            "created_at": "2024-07-26T08:29:36.020930-07:00",
            "updated_at": "2024-08-01T08:29:36-07:00",
        },
        {"id": "a2", "memory": "Works at TechCorp as an engineer", "categories": None, "expiration_date": "2027-01-01"},
        {"id": "a3", "memory": "  "},
    ],
    "relations": [
        {"source": "maya_chen", "relationship": "works_at", "target": "techcorp"},
        {"source": "maya_chen", "relationship": "likes", "destination": "tea"},
        {"source": "maya_chen"},
    ],
}


@for_each(("source", "name"), [
    (folder(WORKSPACE), "markdown"),
    (folder({"2026-03-01.md": DAILY, "2026-03-02.md": DAILY}, "memory"), "markdown"),
    (folder({"MEMORY.md": "Maya likes tea."}), "markdown"),
    (single("MEMORY.md", "Maya likes tea."), "markdown"),
    (folder(BASIC_MEMORY), "basic-memory"),
    (single("coffee.md", COFFEE), "basic-memory"),
    (single("mem0.json", json.dumps(MEM0)), "mem0"),
    (single("mem0.json", json.dumps(MEM0, indent=2)), "mem0"),
    (single("list.json", json.dumps(MEM0["results"])), "mem0"),
    (single("other.json", json.dumps({"memories": MEM0["results"]})), "mem0"),
    (single("rows.jsonl", "\n".join(map(json.dumps, MEM0["results"]))), "mem0"),
    (single("export.jsonl", '{"v": 1, "path": "facts/a.md", "content": "A fact."}\n'), "quaid"),
    (folder({"Ideas/Garden.md": "Tomatoes want sun.", "Home.md": "[[Garden]]"}), "notes"),
    (folder({"2026-03-01.md": DAILY}, has_obsidian=True), "notes"),
    (folder({"a.md": "---\npermalink: a\n---\nPublished with Obsidian."}), "notes"),
])  # fmt: skip
def test_a_source_is_recognised_by_its_content(source, name):
    form = select_format(source)
    assert name == form.name


@pytest.mark.parametrize("source", [
    single("x.json", '{"a": 1}'), single("x.bin", b"\0\1\2"), single("x.json", '[{"memory":'),
    folder({"a.txt": "hi"}),
])  # fmt: skip
def test_what_is_of_no_known_format_is_refused_with_the_choices(source):
    with pytest.raises(BadInputError, match="--from: one of quaid, mem0, basic-memory, markdown, notes"):
        select_format(source)


@pytest.mark.parametrize(("name", "source"), [
    ("mem0", single("a.json", "{}")),
    ("mem0", folder(WORKSPACE)),
    ("quaid", folder(WORKSPACE)),
    ("notes", single("a.json", "{}")),
    ("basic-memory", single("a.json", "{}")),
    ("markdown", single("a.bin", b"\0\0")),
])  # fmt: skip
def test_a_source_of_another_format_than_was_said_is_refused(name, source):
    with pytest.raises(BadInputError):
        read(source, name)


# -- markdown memories -----------------------------------------------------------------------------------------------


def test_the_memory_files_of_a_workspace_are_read_and_nothing_else():
    found = read(folder(WORKSPACE))
    places = {fact.imported_from for fact in found.facts}
    assert places == {"MEMORY.md", "USER.md", "memory/2026-03-01.md", "memory/villa.md", "topics/lease.md"}
    assert found.left_out["other notes in the folder"] == 2
    assert (found.left_out["lines about the session"], found.left_out["lines of a conversation"]) == (2, 2)
    assert "Villa Atmata, Rooms: Blue room: two beds" in texts(found)


def test_all_notes_are_read_where_that_is_asked_for():
    found = read(folder({"AGENTS.md": "Obey me now.", "a/b.md": "Maya likes tea."}), "markdown")
    assert texts(found) == ["Maya likes tea."]


def test_a_daily_note_has_decisions_events_preferences_and_lessons_from_its_day():
    found = read(folder({"memory/2026-03-01.md": DAILY}))
    assert [(fact.type, fact.text) for fact in found.facts] == [
        ("decision", "Decisions: Decided on Tailwind over plain CSS"),
        ("event", "To do: Call the landlord about the lease"),
        ("event", "Done: Fire the second kiln"),
        ("event", "Met Alice at the kiln supplier"),
        ("preference", "Maya hates the new glaze"),
        ("fact", "The mail server takes 100 messages a second"),
    ]
    assert {fact.valid_from for fact in found.facts} == {"2026-03-01"}
    assert {fact.created for fact in found.facts} == {datetime(2026, 3, 1, tzinfo=UTC)}


def test_who_stands_under_people_and_pets_gets_a_note():
    found = read(folder(WORKSPACE))
    named = {(entity.name, entity.type) for entity in found.entities.values()}
    assert named == {("Alice", "person"), ("Maya Chen", "person"), ("Biscuit", "pet")}


def test_memories_that_were_put_there_by_quaid_or_are_private_are_not_learned():
    note = "Maya likes tea.\n\n<quaid-memory>\nTom likes coffee.\n</quaid-memory>\n\n<private>Ben is ill.</private>\n"
    assert texts(read(single("MEMORY.md", note))) == ["Maya likes tea."]


# -- basic-memory ----------------------------------------------------------------------------------------------------


def test_observations_become_facts_that_say_what_they_are_about():
    found = read(folder(BASIC_MEMORY))
    assert [(fact.type, fact.text, fact.keywords) for fact in found.facts] == [
        ("fact", "Coffee Brewing Methods: Pour over gives more clarity than French press", ("method",)),
        ("fact", "Coffee Brewing Methods: Water at 96 degrees extracts best", ("technique", "brewing", "water")),
        ("preference", "Coffee Brewing Methods: Maya likes Ethiopian beans (from the tasting in May)", ()),
        ("fact", "Coffee Brewing Methods: Grind size decides on the brewing time", ("grinding",)),
        ("fact", "Leipzig has soft water", ()),
    ]
    assert found.facts[0].created == datetime(2025, 2, 3, 9, tzinfo=UTC)
    assert found.facts[0].imported_from == "notes/coffee-brewing-methods"


def test_relations_become_edges_between_titles():
    found = read(folder(BASIC_MEMORY))
    assert found.edges == [
        Edge("Coffee Brewing Methods", "requires", "Proper Grinding"),
        Edge("Coffee Brewing Methods", "relates_to", "Water"),
        Edge("Coffee Brewing Methods", "is described by", "Maya Chen"),
        Edge("Maya Chen", "mother_of", "Tom"),
    ]
    assert found.left_out["remarks on relations"] == 1


def test_what_else_a_note_says_is_kept_in_the_note_of_its_subject():
    found = read(folder(BASIC_MEMORY))
    coffee, water, maya = found.entities.values()
    assert coffee.prose.startswith("Kept since the first espresso machine")
    assert "buy filters" in coffee.prose
    assert "a sentence with [[Proper Grinding]]" in coffee.prose
    assert "Not this one" in coffee.prose
    assert "# Coffee" not in coffee.prose
    assert (water.prose, water.aliases) == ("", ("notes/water",))
    assert (maya.type, maya.aliases) == ("person", ("Maya",))


def test_two_notes_of_one_title_stay_two():
    note = (
        "---\ntitle: Overview\npermalink: {0}/overview\n---\n## Observations\n- [fact] This is part {0} of the house\n"
    )
    found = read(folder({"a.md": note.format("a"), "b.md": note.format("b")}))
    assert list(found.entities) == ["Overview", "Overview (b/overview)"]


# -- mem0 ------------------------------------------------------------------------------------------------------------


def test_each_memory_of_mem0_is_a_fact():
    found = read(single("mem0.json", json.dumps(MEM0)))
    first, second = found.facts
    assert (first.text, first.type, first.imported_from) == ("Maya prefers morning meetings", "preference", "892db2ae")
    assert first.created == datetime(2024, 7, 26, 15, 29, 36, 20930, tzinfo=UTC)
    assert first.keywords == ("user preferences", "work")
    assert first.owner == "default"
    assert second.valid_until == "2027-01-01"
    assert found.left_out == {"entries without a text": 1, "relations without two ends": 1}
    assert found.edges == [Edge("maya chen", "works_at", "techcorp"), Edge("maya chen", "likes", "tea")]


def test_the_owner_of_a_memory_is_kept_when_that_is_asked_for():
    found = read(single("mem0.json", json.dumps(MEM0)), keeps_owners=True)
    assert [fact.owner for fact in found.facts] == ["maya", "default"]


def test_a_broken_line_of_mem0_is_counted_and_the_others_are_read():
    found = read(single("rows.jsonl", '{"memory": "Maya likes tea"}\n{"memory": "Tom\n{"memory": "Ben likes soup"}\n'))
    assert texts(found) == ["Maya likes tea", "Ben likes soup"]
    assert found.left_out["lines that are not JSON"] == 1


# -- notes and secrets -----------------------------------------------------------------------------------------------


def test_notes_are_kept_byte_for_byte():
    odd = b"\xef\xbb\xbf---\r\nid: 1\r\n---\r\nTomatoes [[Sun]]\r\n\xff\xfe no newline"
    found = read(ImportSource("Garden", {"Ideas/Odd.md": odd, "pic.png": b"", "~$tmp.md": b"x"}), into="notes/Garden")
    assert found.files == [("notes/Garden/Ideas/Odd.md", odd)]
    assert found.left_out == {"files that are not markdown": 1, "temporary files of an editor": 1}


@pytest.mark.parametrize(("source", "place"), [
    (folder({"a.md": "The key is s3cr3t, really"}), "a.md"),
    (single("a.md", "The key is s3cr3t, really"), "a.md"),
    (single("a.json", '[{"id": "m1", "memory": "The key is s3cr3t, really"}]'), "m1"),
    (folder({"a.md": "---\npermalink: a\n---\n- [fact] The key is s3cr3t, really\n"}), "a.md"),
    (single("a.jsonl", '{"v": 1, "path": "a.md", "content": "The key is s3cr3t, really"}'), "a.md"),
])  # fmt: skip
def test_no_format_brings_a_secret_past_the_gate(source, place):
    found = read(source)
    written = [*texts(found), *(data.decode() for _, data in found.files)]
    assert written
    assert not [text for text in written if "s3cr3t" in text]
    assert found.redacted == {place: ("key",)}


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
@given(data=st.binary(max_size=120) | st.text(alphabet='{}[]":,v1pathcontentmemory- #\n', max_size=120).map(str.encode))
def test_no_format_fails_on_broken_input(form, data):
    for source in (single("a.md", data), ImportSource("a", {"a.md": data})):
        form.recognises(source)
        with suppress(BadInputError):
            form.read(source, ImportContent(admit))
