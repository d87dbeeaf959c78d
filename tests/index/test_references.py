"""What a person types for a note, and which note that means."""

import pytest
from recall_index import make_index

from quaid.errors import AmbiguousReferenceError, NoteNotFoundError
from quaid.index import references

NOTES = {
    "facts/tea.md": "---\nid: 01aaaaaaaa\n---\n[[Maya Chen|Maya]] takes green tea.\n",
    "facts/tea-before.md": "---\nid: 01bbbbbbbb\nsuperseded_by: '[[tea]]'\n---\nMaya takes green tea\n",
    "facts/boat.md": "---\nid: 01cccccccc\n---\nTom sails.\n",
    "facts/boat-of-ann.md": "---\nid: 01dddddddd\nowner: ann\nprivacy: shared\n---\nTom sails.\n",
    "own/Zettel.md": "---\ntitle: Ärger & Freude\naliases: [Zorn]\n---\n# Zettel\n\n## Heute\n\ntext\n",
    "own/C# notes.md": "# Generics\n\ntext\n", "own/todo.md": "- call\n", "work/Todo.md": "- ship\n",
    "own/202401051231.md": "# Maxwell's demon > a\n\n## Part\n\ntext\n", "own/202401051232.md": "京都の旅\n===\n\ntext\n",
    "episodes/2026/11/20-1402-2f1c9a.md": "---\nsession: s1\n---\n**Maya**: hello ^t1\n",
}  # fmt: skip


@pytest.fixture(scope="module")
def index():
    return make_index(NOTES)


@pytest.mark.parametrize(("reference", "path", "part"), [
    ("Maya takes green tea", "facts/tea.md", None), ("  maya takes  GREEN tea. ", "facts/tea.md", None),
    ("[[Maya Chen|Maya]] takes green tea.", "facts/tea.md", None), ("Ärger & Freude", "own/Zettel.md", None),
    ("ärger & FREUDE", "own/Zettel.md", None), ("[[zorn]]", "own/Zettel.md", None),
    ("[[Zettel#Heute]]", "own/Zettel.md", "Heute"), ("[[own/Zettel#Zettel#Heute|today]]", "own/Zettel.md", "Heute"),
    ("[[Zettel#^a1b2]]", "own/Zettel.md", "^a1b2"), ("Zettel#today", "own/Zettel.md", "today"),
    ("C# notes", "own/C# notes.md", None), ("[[C# notes#Generics]]", "own/C# notes.md", "Generics"),
    ("[see](own/C%23%20notes.md)", "own/C# notes.md", None), ("maxwell's demon > A", "own/202401051231.md", None),
    ("京都の旅", "own/202401051232.md", None), ("[[京都の旅#Teil]]", "own/202401051232.md", "Teil"),
    ("01aa", "facts/tea.md", None), ("todo", "own/todo.md", None), ("Todo", "work/Todo.md", None),
    ("work/todo", "work/Todo.md", None), ("20-1402-2f1c9a#t1", "episodes/2026/11/20-1402-2f1c9a.md", 1),
    ("[[20-1402-2f1c9a#^t1|what she said]]", "episodes/2026/11/20-1402-2f1c9a.md", 1),
    ("2026/11/20-1402-2f1c9a#t1", "episodes/2026/11/20-1402-2f1c9a.md", 1),
])  # fmt: skip
def test_one_note_is_meant(index, reference, path, part):
    meant = references.resolve_one(index, reference)
    assert (meant.document.path, meant.turn or meant.heading or None) == (path, part)


@pytest.mark.parametrize(
    "reference", ["[[]]", "#", "#Heute", "[[#Heute]]", "green tea", "Maya takes", "settel", "/", "."]
)
def test_what_only_resembles_a_note_is_not_meant(index, reference):
    with pytest.raises(NoteNotFoundError):
        references.resolve_one(index, reference)


def test_where_several_fit_each_is_listed_with_a_reference_that_means_it_alone(index):
    with pytest.raises(AmbiguousReferenceError) as raised:
        references.resolve_one(index, "Tom sails")
    assert raised.value.candidates == (("01dddddddd", "fact: Tom sails."), ("01cccccccc", "fact: Tom sails."))
    assert "  1  01dddddddd  fact: Tom sails." in str(raised.value)
    for reference, _ in raised.value.candidates:
        assert references.resolve_one(index, reference).document.id == reference


def test_of_two_files_with_one_id_the_paths_are_listed():
    index = make_index({"facts/a.md": "---\nid: 01same\n---\nOne.\n", "facts/b.md": "---\nid: 01same\n---\nTwo.\n"})
    with pytest.raises(AmbiguousReferenceError) as raised:
        references.resolve_one(index, "01same")
    assert [reference for reference, _ in raised.value.candidates] == ["facts/a.md", "facts/b.md"]
