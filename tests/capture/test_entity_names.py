"""Whom and what names in edges mean: the notes there are, those to make, and which names are one."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import examples, for_each

from quaid.capture.entities import EntityNames, is_name, plan_entity
from quaid.model import Edge, name_key, note_name
from quaid.vault import frontmatter, layout
from quaid.vault.notes import StoredNote

NOW = datetime(2026, 11, 20, 14, 2, tzinfo=UTC)


class Notes:
    """Entity notes as the memory has them: name -> (type, aliases)."""

    def __init__(self, **notes):
        self.by_name = {}
        for name, (kind, *aliases) in notes.items():
            self.add(name.replace("_", " "), kind, *aliases)

    def add(self, name, kind, *aliases):
        edit = plan_entity(name, kind, NOW)
        text = edit.after.decode()
        listed = [*_aliases(text), *aliases]
        data = frontmatter.set_fields(text, {"aliases": listed}).encode() if listed else edit.after
        note = note_name(edit.rel_path)
        self.by_name[note] = (StoredNote(edit.rel_path, data), [note, *listed])

    def find(self, name):
        found = (note for note, names in self.by_name.values() if name_key(name) in map(name_key, names))
        return next(found, None)

    def names(self, *speakers, owner=""):
        """As a session with these speakers meets them."""
        pairs = [(written, note) for note, (_, names) in self.by_name.items() for written in names]
        return EntityNames(pairs, self.find, NOW, speakers=speakers, owner=owner)


def _aliases(text):
    listed = frontmatter.parse(text).fields.get("aliases")
    return [listed] if isinstance(listed, str) else list(listed or ())


def place(names, subject, relation, object_):
    edge = names.place(Edge(subject, relation, object_))
    return edge.subject, edge.object


def written(names):
    """What the edits make: path -> (type, aliases)."""
    found = {}
    for edit in names.edits:
        fields = frontmatter.parse(edit.after.decode()).fields
        assert edit.rel_path not in found
        found[edit.rel_path] = (fields["type"], _aliases(edit.after.decode()))
    return found


# Notes that are made


def test_a_note_there_is_is_not_made_again_and_not_touched():
    names = Notes(Maya_Chen=("person", "May"), Oat_milk=("concept",)).names()
    assert place(names, "maya  CHEN", "prefers", "oat milk") == ("Maya Chen", "Oat milk")
    assert place(names, "May", "prefers", "the Oat Milk") == ("Maya Chen", "Oat milk")
    assert names.edits == ()


def test_what_is_no_name_stays_a_phrase():
    names = Notes().names("Maya")
    assert place(names, "Maya", "felt", "joy about the trip") == ("Maya", "joy about the trip")
    assert place(names, "Maya", "visited", "Tom's house") == ("Maya", "Tom's house")
    assert list(written(names)) == ["entities/Maya.md"]


@for_each("text", ["Maya", "Maya Chen", "LGBTQ support group", "Bank of America", "Ludwig van Beethoven", "iPhone",
                                  "Café Zoë", "GPT-5", "Lord of the Rings", "Äpfel", "N26", "Four Seasons", "Anna An Na", "王小明", "北京大学",
                                  "東京タワー", "김민수", "สมชาย ใจดี", "محمد علي", "राम शर्मा", "Мария Иванова", "Nguyễn Văn A"])  # fmt: skip
def test_names(text):
    assert is_name(text)


@for_each(
    "text",
    ["", " ", "joy", "her mother", "Maya's trip", "the sea", "The Beatles", "a Dog", "my Mom", "User", "2023", "7 May 2023", "-x", "../../etc/passwd",
     "[[Maya]]", "Maya went to the lake with Tom and his dog", "X" * 61, "running in Berlin every day", "小明的妈妈", "我",
     "去年夏天和朋友一起去罗马旅行", "мария", "🥜"],
)  # fmt: skip
def test_no_names(text):
    assert not is_name(text)


MAYA, MAYA_CHEN, BOTH = (
    {"Maya": ("person",)},
    {"Maya_Chen": ("person",)},
    {"Maya_Chen": ("person",), "Maya_Lopez": ("person",)},
)
CALLED_MEL, THE_THE = {"Melanie_Jones": ("person", "Melanie")}, {"The_The": ("organization",), "A": ("concept",)}


@for_each(("notes", "asked", "meant", "made"), [
    ({}, "The Beatles, the Beatles, Beatles", "Beatles, Beatles, Beatles", {"Beatles": []}),
    (THE_THE, "The The, A", "The The, A", {}),
    (MAYA_CHEN, "Maya", "Maya Chen", {"Maya Chen": ["Maya"]}),
    (MAYA, "Maya Chen", "Maya", {"Maya": ["Maya Chen"]}),
    (BOTH, "Maya, Maya Smith", "Maya, Maya Smith", {"Maya": [], "Maya Smith": []}),
    ({}, "Maya Chen, Maya Lopez", "Maya Chen, Maya Lopez", {"Maya Chen": [], "Maya Lopez": []}),
    (MAYA, "Maya Chen, Maya Lopez, Maya", "Maya, Maya Lopez, Maya", {"Maya": ["Maya Chen"], "Maya Lopez": []}),
    ({}, "Maya Chen, Maya", "Maya Chen, Maya Chen", {"Maya Chen": ["Maya"]}),
    ({}, "Melanie, Mel, MEL", "Melanie, Melanie, Melanie", {"Melanie": ["Mel"]}),
    ({"Mel": ("pet",)}, "Mel", "Mel", {"Melanie": []}),
    (CALLED_MEL, "Mel", "Melanie Jones", {"Melanie Jones": ["Melanie", "Mel"]}),
    ({}, "Carol", "Carol", {"Carol": []}),
    ({}, "Assistant, Assistant Manager", "Assistant, Assistant Manager", {"Assistant Manager": []}),
])  # fmt: skip
def test_a_name_means_the_one_who_is_called_so_and_else_a_new_one(notes, asked, meant, made):
    names = Notes(**notes).names("Caroline", "User")
    names.learn([Edge("Melanie", "nicknamed", "Mel")] if "Mel" in asked else [])
    assert [names.resolve(name, "person") for name in asked.split(", ")] == meant.split(", ")
    assert {note_name(path): aliases for path, (_, aliases) in written(names).items()} == made


@pytest.mark.parametrize("kind", ["organization", "place", "thing", "concept"])
def test_what_is_no_person_has_no_first_name(kind):
    names = Notes(Melanie=("person",), Paris=("place",)).names("Melanie")
    assert names.resolve("Melanie Pottery Studio", kind) == "Melanie Pottery Studio"
    assert names.resolve("Paris Hilton", "person") == "Paris Hilton"
    assert "entities/Melanie.md" not in written(names)


def test_a_place_is_no_person_of_the_same_first_name():
    names = Notes(Paris_Hilton=("person",)).names()
    assert names.resolve("Paris", "place") == "Paris"
    assert written(names) == {"entities/Paris.md": ("place", [])}


def test_who_speaks_is_a_person_whatever_the_relation():
    names = Notes().names("Maya")
    place(names, "Maya", "sang_about", "Dolphins")
    assert written(names)["entities/Maya.md"] == ("person", [])


def test_a_name_is_what_the_relation_that_tells_more_says():
    names = Notes().names()
    place(names, "Jolene Park", "sang_about", "Dolphin Bay")
    place(names, "Jolene Park", "lives_in", "Dolphin Bay")
    assert written(names) == {"entities/Dolphin Bay.md": ("place", []), "entities/Jolene Park.md": ("person", [])}


def test_user_means_the_owner():
    names = Notes(Maya_Chen=("person",)).names(owner="Maya Chen")
    for word in ("User", "user", "the user", "I", "me"):
        assert names.resolve(word, "person") == "Maya Chen"
    assert names.edits == ()


def test_an_owner_without_a_note_gets_one():
    names = Notes().names("User", owner="Maya Chen")
    assert place(names, "User", "works_at", "Acme")[0] == "Maya Chen"
    assert names.resolve("Maya", "person") == "Maya Chen"
    assert written(names)["entities/Maya Chen.md"] == ("person", ["Maya"])


def test_nobody_is_called_user():
    names = Notes().names("User")
    assert place(names, "User", "works_at", "Acme") == ("User", "Acme")
    assert list(written(names)) == ["entities/Acme.md"]


# Files


def test_names_that_differ_in_case_or_form_share_a_note():
    names = Notes().names()
    for name in ("Café Zoë", "CAFÉ ZOË", "Cafe\u0301 Zoe\u0308", "café zoë"):
        assert names.resolve(name, "place") in {"Café Zoë", "Cafe\u0301 Zoe\u0308"}
    assert len(written(names)) == 1


@for_each(("one", "other"), [("AC/DC", "AC\uff0fDC"), ("Con", "CON"), ("X" * 60, "X" * 60), ("Acme Inc.", "Acme Inc")])
def test_names_that_would_share_a_file_share_a_note_new_or_not(one, other):
    names = Notes().names()
    (note,) = {names.resolve(name, "organization") for name in (one, other)}
    assert list(written(names)) == [layout.entity_path(note)]
    notes = Notes()
    notes.add(other, "organization")
    names = notes.names()
    assert name_key(layout.entity_path(names.resolve(one, "organization"))) == name_key(layout.entity_path(one))
    assert all(edit.before is not None for edit in names.edits)


def test_a_file_whose_owner_has_broken_it_stays_as_it_is():
    notes = Notes(Maya=("person",))
    note, listed = notes.by_name["Maya"]
    for data in (b"---\ntype: [person\n---\n", b"\xff\xfe\x00", b"---\ntype: person\naliases: [a\n---\n"):
        notes.by_name["Maya"] = (StoredNote(note.rel_path, data), listed)
        names = notes.names("Maya")
        assert names.resolve("Maya", "person") == "Maya"
        names.resolve("May", "person")
        assert all(edit.rel_path != note.rel_path for edit in names.edits)


def test_aliases_join_those_there_are_and_the_rest_of_the_note_stays():
    notes = Notes(Maya=("person",))
    data = b"---\n# mine\ntype: person\naliases: Mimi\nid: 01x\n---\nHer note.\r\n"
    notes.by_name["Maya"] = (StoredNote("entities/Maya.md", data), ["Maya", "Mimi"])
    names = notes.names()
    assert names.resolve("Maya Chen", "person") == "Maya"
    (edit,) = names.edits
    assert edit.before == data
    assert _aliases(edit.after.decode()) == ["Mimi", "Maya Chen"]
    assert b"# mine\n" in edit.after
    assert edit.after.endswith(b"Her note.\r\n")


words = st.text("aAbB .'/:[]-éÉ李1", min_size=1, max_size=14) | st.sampled_from(
    ["Maya", "Maya Chen", "Mel", "the Maya", "CON", "con", "User", "I"]
)


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
@given(
    st.lists(st.tuples(words, st.sampled_from(["knows", "works_at", "lives_in", "sang"]), words), max_size=8),
    st.lists(words, max_size=3),
)
def test_whatever_the_names_every_file_is_written_once_and_asking_again_changes_nothing(edges, speakers):
    names = Notes(Maya=("person",), Acme=("organization",)).names(*speakers)
    for edge in edges:
        place(names, *edge)
    paths = [edit.rel_path for edit in names.edits]
    first = [place(names, *edge) for edge in edges]
    assert len({path.casefold() for path in paths}) == len(paths)
    assert all(path.startswith("entities/") and path.count("/") == 1 for path in paths)
    assert [place(names, *edge) for edge in edges] == first
    assert [edit.rel_path for edit in names.edits] == paths
