"""The owner's name in the settings, and the note of the owner."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from matrices import for_each
from vaults import Vault, refused

from quaid import Memory
from quaid.capture.entities import EntityNames
from quaid.capture.owner_note import plan_owner
from quaid.config import load_settings
from quaid.errors import BadInputError
from quaid.model import Edge
from quaid.vault import frontmatter
from quaid.vault.layout import Layout

pytestmark = pytest.mark.usefixtures("calm")
NOW = datetime(2026, 11, 22, tzinfo=UTC)


def create(folder: Path, name: str, *also: str) -> Vault:
    memory, _ = Memory.create(folder, (name, *also))
    memory.close()
    return Vault(folder)


def fields(vault: Vault, path: str) -> dict:
    return dict(frontmatter.parse((vault.root / path).read_text(encoding="utf-8")).fields)


def test_a_new_vault_knows_its_owner(tmp_path: Path) -> None:
    vault = create(tmp_path / "v", "  Maya   Chen ", "mchen")
    assert load_settings(vault.root).owner_name == "Maya Chen"
    note = fields(vault, "entities/Maya Chen.md")
    assert (note["type"], note["aliases"]) == ("person", ["Maya", "mchen"])
    assert vault.status() == ""


def test_a_note_of_ones_own_with_that_name_is_enough_and_stays_as_it_is(tmp_path: Path) -> None:
    own = tmp_path / "v" / "People" / "maya chen.md"
    own.parent.mkdir(parents=True)
    own.write_text("I was born in Oslo.\n", encoding="utf-8")
    vault = create(tmp_path / "v", "Maya Chen")
    assert load_settings(vault.root).owner_name == "Maya Chen"
    assert not (vault.root / "entities").exists()
    assert own.read_text(encoding="utf-8") == "I was born in Oslo.\n"


@pytest.mark.parametrize("label", ["User", "me", "Human", " the  user "])
def test_a_word_for_whoever_it_is_is_no_name(tmp_path: Path, label: str) -> None:
    refused(lambda: Memory.create(tmp_path / "v", [label]), BadInputError)
    assert not (tmp_path / "v").exists()


@pytest.mark.parametrize(("name", "also", "aliases"), [
    ("Maya", ("maya",), None),
    ("Maya Chen", ("root",), ["Maya"]),
    ("Maya Chen", ("user", "x", "mc"), ["Maya", "mc"]),
    ("李小龙", (), None),
    ("Ana/Maria: X", (), ["Ana/Maria: X", "Ana/Maria:"]),
])  # fmt: skip
def test_the_aliases_of_an_owner(name: str, also: tuple[str, ...], aliases: list[str] | None) -> None:
    edit = plan_owner(name, also, NOW, Layout())
    assert frontmatter.parse((edit.after or b"").decode()).fields.get("aliases") == aliases


def test_naming_the_owner_later_makes_the_note_that_is_not_there(vault: Vault) -> None:
    with vault.memory() as memory:
        assert memory.configure("owner_name", "Maya Chen").created == ("Maya Chen",)
        memory.configure("owner_name", "maya chen")
    assert fields(vault, "entities/Maya Chen.md")["aliases"] == ["Maya"]
    assert vault.git("log", "--format=%s", "--", "entities/Maya Chen.md") == 'config: owner_name = "Maya Chen"'
    assert [path.name for path in (vault.root / "entities").iterdir()] == ["Maya Chen.md"]


def test_an_owner_who_is_called_otherwise_now_stays_the_same_person(tmp_path: Path) -> None:
    vault = create(tmp_path / "v", "Maya Chen")
    with vault.memory() as memory:
        assert memory.configure("owner_name", "Maya Ortiz").created == ()
    assert fields(vault, "entities/Maya Chen.md")["aliases"] == ["Maya", "Maya Ortiz"]
    assert not (vault.root / "entities" / "Maya Ortiz.md").exists()


def test_no_name_leaves_a_new_vault_and_the_note_as_they_are(tmp_path: Path) -> None:
    vault = create(tmp_path / "nobody", "")
    assert load_settings(vault.root).owner_name == ""
    assert not (vault.root / "entities").exists()
    vault = create(tmp_path / "v", "Maya Chen")
    with vault.memory() as memory:
        memory.configure("owner_name", "")
    assert load_settings(vault.root).owner_name == ""
    assert (vault.root / "entities" / "Maya Chen.md").exists()


@for_each("word", ["User", "the user", "I", "me", "Human", "Maya", "Maya Chen", "mchen"])
def test_edges_of_the_owner_go_to_the_owners_note(word: str) -> None:
    pairs = [("Maya Chen", "Maya Chen"), ("Maya", "Maya Chen"), ("mchen", "Maya Chen")]
    names = EntityNames(pairs, lambda _: None, NOW, owner="Maya Chen")
    assert names.place(Edge(word, "works_at", "Acme")).subject == "Maya Chen"


def test_an_owner_in_small_letters_gets_a_note_too() -> None:
    names = EntityNames([], lambda _: None, NOW, owner="mchen")
    assert names.place(Edge("User", "works_at", "Acme")).subject == "mchen"
    assert names.created["mchen"] == "person"


def test_user_is_the_one_who_asks_in_a_vault_of_two(vault: Vault) -> None:
    vault.write("quaid.toml", 'owner = "maya"\nowner_name = "Maya Chen"\n')
    for owner, name in (("maya", "Maya Chen"), ("jon", "jon")):
        with vault.memory(owner=owner) as memory:
            names = memory.writer.finder.entity_names(memory.index(), NOW)
            assert names.owner == name


@pytest.mark.parametrize("word", ["User", "me", "I"])
def test_a_link_of_the_owner_goes_to_the_owners_note(tmp_path: Path, word: str) -> None:
    vault = create(tmp_path / "v", "Maya Chen")
    with vault.memory() as memory:
        assert memory.link(word, "works_at", "Acme").path == "entities/Maya Chen.md"
        assert memory.link("Biscuit", "pet_of", word).text == "Maya Chen has_pet Biscuit"
    assert sorted(path.stem for path in (vault.root / "entities").iterdir()) == ["Acme", "Biscuit", "Maya Chen"]
