"""What a transaction expects of a history, of git's and of the one in memory alike."""

from __future__ import annotations

import pytest
from git_vaults import SAY, Vault
from memory_history import MemoryHistory

from quaid.model import Edit


class Written:
    """Edits that are written to disk before they are committed, as a transaction does it."""

    def __init__(self, root, history):
        self.root = root
        self.history = history

    def commit(self, *edits):
        for edit in edits:
            path = self.root / edit.rel_path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True) if edit.after is None else path.write_bytes(edit.after)
        return self.history.commit(edits, SAY)


@pytest.fixture(params=["git", "memory"])
def written(request, empty):
    return Written(empty.root, Vault(empty.root).history if request.param == "git" else MemoryHistory(empty.root))


def test_a_commit_has_the_edits_and_the_one_before_has_what_was(written):
    first = written.commit(Edit("a.md", None, b"one\n"), Edit("facts/b.md", None, b"b\n"))
    second = written.commit(Edit("a.md", b"one\n", b"two\n"), Edit("facts/b.md", b"b\n", None))
    assert first.id != second.id
    assert (first.left, second.left) == ((), ())
    read = written.history.read_at
    assert (read("HEAD", "a.md"), read("HEAD", "facts/b.md")) == (b"two\n", None)
    assert (read(first.id, "a.md"), read(first.id, "facts/b.md")) == (b"one\n", b"b\n")
    assert read("HEAD", "nothing.md") is None


def test_what_is_committed_already_makes_no_other_commit(written):
    written.commit(Edit("a.md", None, b"one\n"))
    assert written.commit(Edit("a.md", b"one\n", b"one\n")).id is None


def test_what_its_owner_has_not_committed_is_left(written):
    written.commit(Edit("a.md", None, b"one\n"))
    done = written.commit(Edit("a.md", b"the owner's\n", b"Quaid's\n"), Edit("b.md", None, b"b\n"))
    assert done.left == ("a.md",)
    assert written.history.read_at("HEAD", "a.md") == b"one\n"
    assert written.history.read_at("HEAD", "b.md") == b"b\n"


def test_a_commit_is_known_and_one_that_nobody_made_is_not(written):
    made = written.commit(Edit("a.md", None, b"one\n")).id
    assert written.history.has_commit(made)
    assert written.history.has_adopted(made)
    assert not written.history.has_commit("f" * 40)
    assert not written.history.has_adopted("f" * 40)


def test_a_branch_is_brought_to_a_commit_ahead_of_it(written):
    written.commit(Edit("a.md", None, b"one\n"))
    made = written.commit(Edit("a.md", b"one\n", b"two\n")).id
    assert written.history.adopt([Edit("a.md", b"one\n", b"two\n")], made).id == made
    assert written.history.has_adopted(made)


def test_what_was_not_begun_needs_no_recovery(written):
    written.history.wait_until_ready()
    written.history.recover()
    assert written.history.owner() is None or len(written.history.owner()) == 2
    assert written.history.git_dir.is_dir()
