"""A copied note: what a sync tool made is reported, and an id that is used twice is resolved by path."""

from __future__ import annotations

import json

import pytest
from command_line import quaid
from vaults import FACT, Vault, assert_verified, paths

from quaid.errors import AmbiguousReferenceError
from quaid.index import documents

ORIGINAL, COPY = "facts/tea.md", "facts/tea 2.md"


@pytest.fixture
def copied(vault: Vault) -> Vault:
    """A vault with a fact that its owner copied, and the copy changed."""
    vault.write(ORIGINAL, FACT.format(id="01tea", text="Maya likes green tea."))
    vault.write(COPY, FACT.format(id="01tea", text="Maya likes black tea."))
    vault.save()
    return vault


def test_both_are_shown_and_the_id_asks_which_is_meant(copied: Vault) -> None:
    with copied.memory() as memory:
        assert paths(memory, "tea") == {ORIGINAL, COPY}
        for call in (memory.get, memory.why, memory.forget):
            with pytest.raises(AmbiguousReferenceError, match=r"tea 2\.md"):
                call("01tea")
        assert dict(documents.list_problems(memory.index()))[ORIGINAL].startswith("has the same id as")


@pytest.mark.parametrize(("path", "said", "other"), [(COPY, "black", "green"), (ORIGINAL, "green", "black")])
def test_each_is_read_forgotten_and_restored_by_its_path(copied: Vault, path: str, said: str, other: str) -> None:
    before = (copied.root / path).read_bytes()
    with copied.memory() as memory:
        assert said in memory.get(path).text
        assert said in memory.why(path).note.text
        assert memory.forget(path).path == path
        assert [hit.text for hit in memory.search("tea").hits] == [f"Maya likes {other} tea."]
        assert other in memory.get("01tea").text
        assert memory.restore(path).path == path
        assert (copied.root / path).read_bytes() == before
        assert_verified(memory)


@pytest.mark.parametrize("text", ["Maya likes green tea", "Maya likes black tea"])
def test_what_a_copy_says_is_confirmed_once(copied: Vault, text: str) -> None:
    code, out, err = quaid("remember", text, "--json", "--vault", str(copied.root))
    assert code == 0, err
    assert json.loads(out)["path"] == (COPY if "black" in text else ORIGINAL)


def test_a_copy_of_an_own_note_is_searched_and_reported(vault: Vault) -> None:
    for name in ("Chapter.md", "Chapter 2.md", "Garden.md", "Garden-LAPTOP.md", "Garden2.md", "Boat (1).md"):
        vault.write(name, f"Here are {name if name.startswith('Chapter') else 'roses'}.\n")
    with vault.memory() as memory:
        assert documents.list_problems(memory.index()) == [
            ("Garden-LAPTOP.md", "has the same text as Garden.md; remove one of them")
        ]
        assert memory.get("Garden-LAPTOP").document.path == "Garden-LAPTOP.md"
