"""Notes that say next to nothing any more are lost like those that are gone: many of them at once stop a pull and the
index. What is edited, shortened or moved is not.
"""

from __future__ import annotations

import pytest
from machines import make_machines
from matrices import for_each
from vaults import FACT, Vault, assert_verified, paths, refused

from quaid.errors import MassRemovalError
from quaid.remotes.incoming import IncomingRefusedError
from quaid.sync.derived_index import SyncOptions
from quaid.sync.diff import is_emptied, looks_like_accident

pytestmark = pytest.mark.usefixtures("calm")
COUNT = 30
HEAD = "---\ntitle: A title of the note\nkeywords: [one, two, three, four, five, six]\n---\n"
TEXT = "# N{0}\n\nbase text lynxword {0}\n\nIt goes on about the weather.\n"


def fill(vault: Vault, count: int = COUNT, head: str = "") -> None:
    for number in range(count):
        vault.write(f"n/n{number}.md", head + TEXT.format(number))
    vault.save()
    vault.sync()


def change(vault: Vault, how) -> None:
    for path in sorted((vault.root / "n").iterdir()):
        how(path)


def becomes(text: str):
    return lambda path: path.write_text(text)


def to_text_file(path) -> None:
    path.rename(path.with_suffix(".txt"))


def to_hidden_folder(path) -> None:
    (path.parent.parent / "node_modules").mkdir(exist_ok=True)
    path.rename(path.parent.parent / "node_modules" / path.name)


def to_folder(path) -> None:
    path.unlink()
    path.mkdir()
    (path / "picture.png").write_text("x")


def to_first_line(path) -> None:
    path.write_text(path.read_text().splitlines()[0])


def moved_and_emptied(path) -> None:
    (path.parent.parent / "m").mkdir(exist_ok=True)
    path.rename(path.parent.parent / "m" / path.name).write_text("")


EMPTYING = {
    "nothing": becomes(""), "spaces": becomes(" \n\t" * 80), "not seen": becomes("\u200b\ufeff" * 200), "rules": becomes("---\n" * 90),
    "a few bytes": becomes("x\n"), "first line": to_first_line,
}  # fmt: skip
SHORT = {"spaces": becomes(" \n"), "not seen": becomes("\u200b\ufeff"), "rules": becomes("---\n---\n")}
"""What an accident leaves is no longer than what was there."""
REMOVING = {"txt": to_text_file, "passed over": to_hidden_folder, "folder": to_folder, "move": moved_and_emptied}
REAL = {
    "an edit": lambda path: path.write_text(path.read_text().replace("weather", "garden")),
    "another text": lambda path: path.write_text(f"Something else entirely, about {path.stem} and its neighbour.\n"),
    "half of it": lambda path: path.write_text("\n".join(path.read_text().splitlines()[:3])),
    "no head": lambda path: path.write_text(path.read_text().removeprefix(HEAD)),
    "a head": lambda path: path.write_text(HEAD + path.read_text().removeprefix(HEAD)),
    "a move": lambda path: path.rename(path.parent.parent / path.name),
    "a move and an edit": lambda path: path.rename(path.parent.parent / path.name).write_text("About the garden and the mill.\n"),
}  # fmt: skip


@pytest.fixture
def pair(tmp_path):
    return make_machines(tmp_path)


def bring(one: Vault, other: Vault, how, head: str = "") -> None:
    """`one` has many notes, which `other` has too, and does `how` to each."""
    fill(one, head=head)
    with one.memory() as memory:
        memory.remotes.push()
    with other.memory() as memory:
        memory.remotes.trust("origin", own=True)
        memory.remotes.pull()
    change(one, how)
    one.save()
    with one.memory() as memory:
        memory.remotes.push()


@pytest.mark.matrix
@pytest.mark.parametrize("name", [*EMPTYING, *REMOVING])
def test_a_pull_that_empties_many_notes_has_to_be_meant(pair, name):
    one, other = pair
    bring(one, other, (EMPTYING | REMOVING)[name])
    notes = other.notes()
    with other.memory() as memory:
        with pytest.raises(IncomingRefusedError, match=rf"removes or empties {COUNT} of \d+ notes.*--accept-removals"):
            memory.remotes.pull()
        assert other.notes() == notes
        assert memory.remotes.pull(accept_removals=True).commit == one.head()
        assert not [sentence for sentence in memory.recall("lynxword").degraded if "removals" in sentence]
        assert_verified(memory)


@pytest.mark.matrix
@pytest.mark.parametrize("head", ["", HEAD])
@pytest.mark.parametrize("name", REAL)
def test_a_pull_that_edits_or_moves_many_notes_goes_on(pair, name, head):
    one, other = pair
    bring(one, other, REAL[name], head)
    with other.memory() as memory:
        assert memory.remotes.pull().commit
        assert_verified(memory)


@pytest.mark.matrix
@pytest.mark.parametrize("name", [*EMPTYING, "txt", "passed over", "folder"])
def test_many_notes_that_are_emptied_stay_in_the_index(vault, name):
    fill(vault)
    change(vault, (EMPTYING | REMOVING | SHORT)[name])
    vault.write("boat.md", "The mast is oak.\n")
    with vault.memory() as memory:
        for _ in range(2):
            assert str(refused(memory.sync, MassRemovalError)).startswith(f"{COUNT} of ")
        assert "n/n7.md" in paths(memory, "lynxword 7")
        assert "boat.md" in paths(memory, "mast oak")
        report = memory.sync(SyncOptions(accept_removals=True))
        assert len(report.removed) + len(report.modified) == COUNT
        assert_verified(memory)


def test_a_fact_of_which_only_the_head_is_left_stays_in_the_index(vault):
    for number in range(COUNT):
        vault.write(f"facts/f{number}.md", FACT.format(id=f"01f{number:03}", text=f"Maya has read book {number}."))
    vault.save()
    with vault.memory() as memory:
        memory.sync()
        for number in range(COUNT):
            vault.write(f"facts/f{number}.md", FACT.format(id=f"01f{number:03}", text=""))
        refused(memory.sync, MassRemovalError)


def test_what_git_has_emptied_too_is_indexed(vault):
    fill(vault)
    change(vault, becomes(""))
    vault.save()
    with vault.memory() as memory:
        assert len(memory.sync().modified) == COUNT
        assert_verified(memory)


def test_a_few_emptied_notes_are_indexed_as_they_are(vault):
    fill(vault)
    for number in range(10):
        vault.write(f"n/n{number}.md", "")
    with vault.memory() as memory:
        assert len(memory.sync().modified) == 10
        assert_verified(memory)


def test_emptied_and_removed_notes_count_together(vault):
    fill(vault)
    for number in range(6):
        vault.write(f"n/n{number}.md", "")
        (vault.root / f"n/n{number + 10}.md").unlink()
    with vault.memory() as memory:
        assert str(refused(memory.sync, MassRemovalError)).startswith("12 of ")


@pytest.mark.matrix
@pytest.mark.parametrize("name", REAL)
def test_what_is_edited_is_indexed(vault, name):
    fill(vault, head=HEAD)
    change(vault, REAL[name])
    with vault.memory() as memory:
        memory.sync()
        assert_verified(memory)


@for_each(
    ("gone", "known", "is_accident"),
    [(11, 50, True), (10, 10, False), (10, 50, False), (11, 55, False), (11, 54, True), (11, 1000, False), (200, 1000, False), (201, 1000, True), (0, 0, False)],
)  # fmt: skip
def test_an_accident_is_more_than_a_count_and_more_than_a_share(gone, known, is_accident):
    assert looks_like_accident(range(gone), known) is is_accident


@for_each(("was", "now", "is_it"), [
    ("abcd", "", True), ("abcd", "a", False), ("abcde", "a", True), ("", "", False), ("\n", "", False),
    ("abcdefgh", "a_ b!", False), ("abcdefghi", "a_ b!", True), ("水" * 9, "水水", True), ("水" * 8, "水水", False),
])  # fmt: skip
def test_a_quarter_of_the_letters_is_enough(was, now, is_it):
    assert is_emptied(was, now) is is_it
