"""A note is found by its path and name in any case, with or without its ending, however its letters are composed."""

from __future__ import annotations

from unicodedata import normalize

import pytest
from vaults import Vault, assert_verified

from quaid.errors import AmbiguousReferenceError
from quaid.index import documents

NOTES = {
    "Études/Élan.md": "elk", normalize("NFD", "Notes/Café Müller.md"): "espresso", "Straße/Große Übung.md": "exercise",
    "SHOUT.MD": "loud", "long.markdown": "ending", "#ideas.md": "hash", "~draft.md": "tilde", "dot..md": "dots",
    "x.md.md": "twice", "line\nbreak.md": "break", "x" * 252 + ".md": "lengthy", "Case.md": "upper", "case.md": "lower",
    "a/b/Deep Note.md": "deep",
}  # fmt: skip


@pytest.fixture
def named(vault: Vault) -> Vault:
    for path, word in NOTES.items():
        vault.write(path, f"# A heading\nHere is the {word}word.\n")
    return vault


def test_each_note_is_read_whatever_its_name(named: Vault) -> None:
    with named.memory() as memory:
        for path, word in NOTES.items():
            assert [hit.path for hit in memory.search(f"{word}word").hits] == [path]
        assert_verified(memory)
        assert documents.list_problems(memory.index()) == []


@pytest.mark.parametrize("path", NOTES)
def test_a_path_is_found_in_any_case_and_form(named: Vault, path: str) -> None:
    with named.memory() as memory:
        for form in ("NFC", "NFD"):
            given = normalize(form, path)
            assert memory.get(given).document.path == path
            if path.lower() != "case.md":
                ending = given.rpartition(".")[2]
                stem = given[: -len(ending) - 1]
                for reference in (
                    stem,
                    given.upper(),
                    stem.upper(),
                    stem.casefold(),
                    f"./{given}",
                    stem.replace("/", "\\"),
                ):
                    assert memory.get(reference).document.path == path, reference


def test_of_two_names_that_differ_in_case_the_exact_one_is_meant(named: Vault) -> None:
    with named.memory() as memory:
        for path in ("Case.md", "case.md"):
            assert memory.get(path).document.path == memory.get(path[:-3]).document.path == path
        with pytest.raises(AmbiguousReferenceError):
            memory.get("CASE")


def test_the_end_of_a_path_is_enough(named: Vault) -> None:
    with named.memory() as memory:
        for reference in ("b/deep note", "B/Deep Note.md", "[[b/Deep Note]]"):
            assert memory.get(reference).document.path == "a/b/Deep Note.md"
