"""The commands that messages give, run in a vault with unsaved work: nothing of it is lost."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from vaults import Vault, refused

from quaid.errors import MassRemovalError
from quaid.report.status import status_of

pytestmark = pytest.mark.usefixtures("calm")


def command_of(message: str) -> str:
    return message[message.index(": git ") + 2 :]


def follow(vault: Vault, message: str) -> None:
    """Run the command that a message ends with, as its reader would in a shell."""
    command = re.sub(r"git commit(?! -m)", "git commit -m x", command_of(message))
    as_owner = {"GIT_AUTHOR_NAME": "Maya", "GIT_AUTHOR_EMAIL": "m@example.org"}
    names = as_owner | {key.replace("AUTHOR", "COMMITTER"): value for key, value in as_owner.items()}
    done = subprocess.run(
        ["sh", "-c", command], cwd=vault.root, capture_output=True, text=True, check=False,
        env={"PATH": "/usr/bin:/bin", **names},
    )  # fmt: skip
    assert done.returncode == 0, (command, done.stderr)


def unsaved_work(vault: Vault) -> None:
    """Edits that are not committed, staged work with more edits on top of it, and a note that git does not know."""
    vault.write("Edited.md", "edited, not staged\n")
    vault.write("Staged.md", "staged\n")
    vault.git("add", "Staged.md")
    vault.write("Staged.md", "staged, then edited\n")
    vault.write("facts/notes1.md", "edited fact\n")
    vault.write("New.md", "untracked\n")


def assert_work_is_there(vault: Vault) -> None:
    names = ("Edited.md", "Staged.md", "facts/notes1.md", "New.md")
    texts = [(vault.root / name).read_text() for name in names]
    assert texts == ["edited, not staged\n", "staged, then edited\n", "edited fact\n", "untracked\n"]
    assert vault.git("show", ":Staged.md") == "staged"


@pytest.fixture
def busy(vault: Vault) -> Vault:
    for name in ("Edited.md", "Staged.md"):
        vault.write(name, "as committed\n")
    for number in range(40):
        vault.write_fact(f"n{number:02}", f"Maya made pot number {number}.")
    # As a pattern for git the one would mean the other as well.
    vault.write_fact("notes[1]", "Maya glazes.")
    vault.write_fact("notes1", "Maya fires.")
    vault.save()
    vault.sync()
    unsaved_work(vault)
    return vault


def test_bringing_deleted_notes_back_touches_nothing_else(busy: Vault) -> None:
    gone = [path for path in (busy.root / "facts").glob("n*.md") if path.name != "notes1.md"]
    before = {path: path.read_bytes() for path in gone}
    for path in gone:
        path.unlink()
    with busy.memory() as memory:
        message = str(refused(memory.sync, MassRemovalError))
    follow(busy, message)
    assert {path: path.read_bytes() for path in gone} == before
    assert_work_is_there(busy)
    with busy.memory() as memory:
        assert memory.sync().removed == ()


def test_what_stands_in_the_place_of_a_deleted_note_stays(busy: Vault) -> None:
    gone = sorted((busy.root / "facts").glob("n[0-9]*.md"))
    for path in gone:
        path.unlink()
    gone[0].mkdir()
    kept = Path(gone[0], "draft.txt")
    kept.write_text("not committed\n")
    with busy.memory() as memory:
        message = str(refused(memory.sync, MassRemovalError))
    subprocess.run(["sh", "-c", command_of(message)], cwd=busy.root, capture_output=True, check=False)
    assert kept.read_text() == "not committed\n"
    assert all(path.is_file() for path in gone[1:])
    assert_work_is_there(busy)


def test_what_is_not_committed_of_a_note_is_committed_before_it_is_forgotten(busy: Vault) -> None:
    """In the owner's name, and without the owner's other work; so it comes back as it was."""
    edited = (busy.root / "facts/n00.md").read_text() + "\nOf blue clay.\n"
    busy.git("config", "user.name", "Maya Chen")
    busy.git("config", "user.email", "maya@example.org")
    for change in ("edited", "new"):
        name = "n00" if change == "edited" else "n99"
        busy.write(f"facts/{name}.md", edited.replace("n00", name))
        with busy.memory() as memory:
            memory.forget(f"01{name}")
            assert busy.git("log", "-1", "--format=%an", "HEAD~1") == "Maya Chen"
            assert busy.git("show", "--format=", "--name-only", "HEAD~1") == f"facts/{name}.md"
            assert_work_is_there(busy)
            memory.restore(f"01{name}")
            assert (busy.root / f"facts/{name}.md").read_text() == edited.replace("n00", name)
    assert_work_is_there(busy)


def test_leaving_a_detached_head_keeps_its_commits_and_the_work(busy: Vault) -> None:
    busy.git("switch", "-q", "--detach")
    with busy.memory() as memory:
        commit = memory.remember("Maya bought a kiln yesterday").commit
        (step,) = [item.next_step for item in status_of(memory).attention if "detached" in item.what]
    follow(busy, step.replace("NAME", "kept"))
    assert busy.git("branch", "--contains", str(commit)) == "* kept"
    assert_work_is_there(busy)
