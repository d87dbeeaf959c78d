"""Statements become facts, confirm the ones that say the same, and link what they name."""

from __future__ import annotations

import re
from contextlib import nullcontext
from datetime import UTC, datetime

import pytest
from hand_written import parse_note
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import examples, for_each

from quaid.capture.entities import plan_entity
from quaid.capture.facts import (
    NewFact,
    check_period,
    clean_statement,
    plan_confirmation,
    plan_fact,
    plan_link,
    render_statement,
)
from quaid.errors import BadInputError, FactTooShortError
from quaid.model import Edge, name_key
from quaid.vault import frontmatter, markdown
from quaid.vault.frontmatter import FrontmatterBrokenError
from quaid.vault.layout import DEFAULT
from quaid.vault.notes import StoredNote, text_hash

NOW = datetime(2026, 11, 20, 14, 2, tzinfo=UTC)


# --- statements


@pytest.mark.parametrize(("since", "until", "fits"), [
    ("2026-05-01", "2026-01-01", False),
    ("2026-05", "2026-04-30", False),
    ("2026-05-01T10:00:00Z", "2026-05-01", True),
    ("2026-05-01", "2026-05", True),
    ("2026-05-01", None, True),
    (None, "2026-05-01", True),
])  # fmt: skip
def test_a_fact_is_not_over_before_it_begins(since, until, fits):
    details = NewFact("", valid_from=since, valid_until=until)
    with nullcontext() if fits else pytest.raises(BadInputError, match="over on"):
        check_period(details)


@pytest.mark.parametrize(("text", "statement"), [
    ("  Maya likes\n\ttea ", "Maya likes tea"), ("Maya's well-being matters", "Maya's well-being matters"), ("a b c", "a b c"),
])  # fmt: skip
def test_a_statement_is_one_line(text, statement):
    assert clean_statement(text) == statement


@pytest.mark.parametrize("text", ["", "  ", "hi", "oat milk", "- — …", "Maya's well-being", "a, b"])
def test_fewer_than_three_words_are_no_fact(text):
    with pytest.raises(FactTooShortError):
        clean_statement(text)


@given(
    st.text(max_size=60),
    st.lists(st.tuples(st.text(min_size=1, max_size=8), st.text("AB c", min_size=1, max_size=4)), max_size=4),
)
def test_any_statement_of_three_words_becomes_a_fact_that_reads_back(text, names):
    try:
        statement = clean_statement(text)
    except FactTooShortError:
        return
    fact_id, edit = plan_fact(NewFact(statement, keywords=("a", "b, c")), NOW, names)
    note = parse_note(edit.rel_path, edit.after)
    assert (edit.before, note.id, note.kind, note.status) == (None, fact_id, "fact", "active")
    assert edit.rel_path.startswith("facts/2026/11/")
    assert edit.rel_path.endswith(f"-{fact_id[-5:]}.md")


def test_a_plain_fact_holds_only_what_is_known():
    _, edit = plan_fact(NewFact("Maya likes tea"), NOW)
    assert list(frontmatter.parse(edit.after.decode()).fields) == [
        "id", "type", "status", "owner", "confidence", "durability", "source", "created",
    ]  # fmt: skip


def test_every_detail_reads_back():
    details = NewFact(
        "Maya likes tea",
        type="preference", status="pending", owner="maya", confidence=0.7, durability="immutable", privacy="shared", speaker="Maya",
        source="import", session="s1", project="house", technical=True, pinned=True, valid_from="2026-01-01", valid_until="2026-12-31",
        keywords=("tea", "hot"), turns=("[[20-1402-2f1c9a#^t1]]", "[[20-1402-2f1c9a#^t3]]"), edges=(Edge("Maya", "prefers", "Tea"),),
    )  # fmt: skip
    _, edit = plan_fact(details, NOW)
    note = parse_note(edit.rel_path, edit.after)
    for name in ("type", "status", "owner", "confidence", "durability", "privacy", "speaker", "source", "session", "project",
                 "technical", "pinned", "valid_from", "valid_until", "keywords", "edges"):  # fmt: skip
        assert getattr(note, name) == getattr(details, name), name
    assert [(citation.episode, citation.turn) for citation in note.citations] == [
        ("20-1402-2f1c9a", 1),
        ("20-1402-2f1c9a", 3),
    ]
    assert note.problems == ()


def test_what_an_assistant_inferred_is_believed_a_little_less():
    _, edit = plan_fact(NewFact("Maya likes tea", source="assistant", confidence=0.8), NOW)
    assert parse_note(edit.rel_path, edit.after).confidence == 0.72


# --- links in statements

NAMES = [
    ("Maya Chen", "Maya Chen"), ("Maya", "Maya Chen"), ("Oslo", "Oslo"), ("C++", "C++"), ("the house", "Villa Rosa"),
    ("Jo", "Jo"),
]  # fmt: skip


@for_each(("statement", "linked"), [
    ("Maya Chen lives in Oslo", "[[Maya Chen]] lives in [[Oslo]]"),
    ("Maya lives in Oslo", "[[Maya Chen|Maya]] lives in [[Oslo]]"),
    ("Maya Chen and Maya and Maya Chen", "[[Maya Chen]] and Maya and Maya Chen"),
    ("Oslo is in Oslo", "[[Oslo]] is in Oslo"),
    ("[[Maya Chen]] says Maya likes Oslo", r"\[\[[[Maya Chen]]]] says Maya likes [[Oslo]]"),
    ("![[Oslo]] ![Oslo] !Oslo", r"!\[\[[[Oslo]]]] ![Oslo] !Oslo"),
    ("[Oslo](http://x/Oslo) is far", r"[Oslo\](http://x/Oslo) is far"),
    (r"3. Mai in \Oslo, **Oslo**", r"3\. Mai in \Oslo, \*\*[[Oslo]]\*\*"),
    ("see http://x.org/Oslo/a and Oslo", "see http://x.org/Oslo/a and [[Oslo]]"),
    ("run `cd Oslo` in Oslo", r"run \`cd Oslo\` in [[Oslo]]"),
    ("Maya's cat and Oslo's fjord", "[[Maya Chen|Maya]]'s cat and [[Oslo]]'s fjord"),
    ("Mayans of Oslovia", "Mayans of Oslovia"),
    ("Jo-Anne met Jo", "Jo-Anne met [[Jo]]"),
    ("mail maya@Oslo.no, Oslo.no", "mail maya@Oslo.no, Oslo.no"),
    ("oslo in lower case", "oslo in lower case"),
    ("knows C++, not C", "knows [[C++]], not C"),
    ('(Oslo) "Oslo"', '([[Oslo]]) "Oslo"'),
    ("sold the house.", "sold [[Villa Rosa|the house]]."),
])  # fmt: skip
def test_a_known_name_becomes_a_link_once(statement, linked):
    assert render_statement(statement, NAMES) == linked


@pytest.mark.slow
@settings(max_examples=examples(300))
@given(
    st.lists(
        st.sampled_from(
            [
                "Maya", "Maya Chen", "Oslo", "[[Oslo]]", "[[x|Oslo]]", "[", "]", "|", "Jo", "-", "'s", " ", ".", "`",
                "http://", "\\", "!", "**", "](x)", "%%", "3. ",
            ]
        ),
        max_size=12,
    ).map(lambda parts: " ".join("".join(parts).split())),
    st.lists(
        st.tuples(
            st.sampled_from(["Maya", "Maya Chen", "Oslo", "Jo", "a|b", "x]]"]),
            st.sampled_from(["Maya Chen", "Oslo", "Jo", "x|y"]),
        ),
        max_size=5,
    ),
)  # fmt: skip
def test_a_statement_reads_back_as_it_was_stated_and_links_no_note_twice(statement, names):
    linked = render_statement(statement, names)
    assert markdown.plain(linked) == statement
    added = [found[1] for found in re.finditer(r"(?<!\\)\[\[([^\[\]|]+)(?:\|[^\[\]]*)?\]\]", linked)]
    assert len(added) == len({name_key(target) for target in added})


# --- confirmation


def test_a_confirmation_changes_two_keys_and_nothing_else():
    data = b"---\r\nid: 01a # mine\r\nconfidence: 0.8 # sure\r\nmood: 007\r\n---\r\nMaya likes tea\r\n"
    edit = plan_confirmation("facts/a.md", data)
    assert edit.before == data
    assert edit.after == data.replace(b"0.8 #", b"0.82 #").replace(b"007\r\n", b"007\r\nconfirmations: 1\r\n")
    again = plan_confirmation("facts/a.md", edit.after)
    assert parse_note("facts/a.md", again.after).confirmations == 2
    assert parse_note("facts/a.md", again.after).confidence == 0.838


def test_confidence_rises_towards_certainty_and_never_over_it():
    data = b"---\nconfidence: 0.99\n---\nx\n"
    for _ in range(60):
        data = plan_confirmation("facts/a.md", data).after
    assert 0.99 < parse_note("facts/a.md", data).confidence <= 1.0


@pytest.mark.parametrize("head", [
    "",
    "---\nconfidence: high\nconfirmations: many\n---\n",
    "---\nconfidence: nan\nconfirmations: inf\n---\n",
    "---\nconfidence:\n---\n",
])  # fmt: skip
def test_a_fact_without_usable_numbers_is_confirmed_from_the_default(head):
    note = parse_note("facts/a.md", plan_confirmation("facts/a.md", f"{head}Maya likes tea\n".encode()).after)
    assert (note.confidence, note.confirmations, note.text) == (0.82, 1, "Maya likes tea")


def test_a_broken_fact_is_not_confirmed_by_guesses():
    with pytest.raises(FrontmatterBrokenError):
        plan_confirmation("facts/a.md", b"---\nconfidence: [\n---\nx\n")


# --- markup


@for_each("statement", [
    "Maya likes **oat** milk", "[[Maya Chen|Maya]] likes Oslo", "Maya runs `make test` daily", "- Maya likes tea", "# of cats: three",
    "Maya likes a [song](http://x.org)", "Maya Chen lives in Oslo.", "5 * 3 is 15",
])  # fmt: skip
def test_a_statement_with_markup_is_its_own_exact_duplicate(statement):
    _, edit = plan_fact(NewFact(clean_statement(statement)), NOW, NAMES)
    assert parse_note(edit.rel_path, edit.after).text_hash == text_hash(statement)


# --- edges


class Graph:
    """Entity notes by name, as the writer finds them."""

    def __init__(self, **notes):
        self.notes = {name: data.encode() for name, data in notes.items()}

    def find(self, name):
        for known, data in self.notes.items():
            if name_key(known) == name_key(name):
                return StoredNote(f"entities/{known}.md", data)
        return None

    def apply(self, edits):
        for edit in edits:
            name = edit.rel_path.removeprefix("entities/").removesuffix(".md")
            assert self.notes.get(name) == edit.before
            self.notes[name] = edit.after

    def edges(self, name):
        return parse_note(f"entities/{name}.md", self.notes[name]).edges


def link(edge, find):
    return plan_link(edge, find, NOW, "default", DEFAULT)


def test_linking_makes_the_notes_it_needs_typed_by_the_relation():
    graph = Graph()
    edge, edits, created = link(Edge("Acme", "employs", "Maya Chen"), graph.find)
    graph.apply(edits)
    assert edge == Edge("Maya Chen", "works_at", "Acme")
    assert created == ("Maya Chen", "Acme")
    assert parse_note("entities/Maya Chen.md", graph.notes["Maya Chen"]).type == "person"
    assert parse_note("entities/Acme.md", graph.notes["Acme"]).type == "organization"
    assert graph.edges("Maya Chen") == (Edge("Maya Chen", "works_at", "Acme"),)
    assert link(Edge("maya chen", "works for", "ACME"), graph.find)[1] == ()


@pytest.mark.parametrize(("text", "expected"), [
    ("---\ntype: person\n---\n", "---\ntype: person\n---\n- knows [[Tom]]\n"),
    ("---\ntype: person\n---\nProse.\n", "---\ntype: person\n---\nProse.\n\n- knows [[Tom]]\n"),
    ("---\ntype: person\n---\nProse.\n\n- likes [[Tea]]\n", "---\ntype: person\n---\nProse.\n\n- likes [[Tea]]\n- knows [[Tom]]\n"),
    ("---\r\ntype: person\r\n---\r\nProse.\r\n", "---\r\ntype: person\r\n---\r\nProse.\r\n\r\n- knows [[Tom]]\r\n"),
    ("Prose", "Prose\n\n- knows [[Tom]]"),
    ("", "- knows [[Tom]]\n"),
])  # fmt: skip
def test_an_edge_is_added_at_the_end_and_the_rest_stays(text, expected):
    graph = Graph(Maya=text, Tom="")
    _, edits, _ = link(Edge("Maya", "knows", "Tom"), graph.find)
    (edit,) = edits
    assert edit.after.decode().rstrip("\r\n") == expected.rstrip("\r\n")
    graph.apply(edits)
    assert Edge("Maya", "knows", "Tom") in graph.edges("Maya")


def test_a_name_no_file_may_have_is_kept_as_an_alias():
    edit = plan_entity("AC/DC", "organization", NOW)
    note = parse_note(edit.rel_path, edit.after)
    assert "/" not in edit.rel_path.removeprefix("entities/")
    assert "AC/DC" in note.names
    _, edits, _ = link(Edge("Maya", "likes", "AC/DC"), Graph(Maya="").find)
    (edge,) = parse_note("entities/Maya.md", edits[0].after).edges
    assert name_key(edge.object) in {name_key(name) for name in note.names}


@pytest.mark.parametrize(
    "edge",
    [Edge("", "knows", "Tom"), Edge("Maya", "", "Tom"), Edge("Maya", "knows", "maya"), Edge("[[]]", "knows", "Tom")],
)
def test_an_edge_that_is_empty_label_is_refused(edge):
    with pytest.raises(BadInputError):
        link(edge, Graph().find)


names = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=10).filter(
    lambda name: name.strip()
)


@settings(max_examples=examples(200))
@given(names, st.sampled_from(["knows", "works_at", "likes", "parent_of", "child_of"]), names)
def test_linking_the_same_twice_changes_nothing(subject, relation, target):
    graph = Graph()
    try:
        graph.apply(link(Edge(subject, relation, target), graph.find)[1])
    except BadInputError:
        return
    aliases = {
        name_key(name): note
        for note in list(graph.notes)
        for name in parse_note(f"entities/{note}.md", graph.notes[note]).names
    }

    def find(name):
        return graph.find(aliases.get(name_key(name), name))

    assert link(Edge(subject, relation, target), find)[1] == ()
