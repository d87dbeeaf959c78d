"""State, log and files of any commit are read, and nothing is written or locked."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from git_vaults import NOTE, hold_lock, ours, shim_git, theirs

from quaid.errors import GitError
from quaid.history.note_history import matches_id
from quaid.history.repository import RepositoryState
from quaid.model import Message


def test_state_reads_loose_and_packed_refs_and_the_unborn_branch(empty):
    assert empty.history.state() == RepositoryState("main", None, None, False, False)
    empty.save("a.md", NOTE)
    empty.run("checkout", "-q", "-b", "feature/x")
    empty.run("pack-refs", "--all")
    state = empty.history.state()
    assert (state.branch, state.head) == ("feature/x", empty.head())
    hold_lock(empty)
    assert empty.history.state().locked


def test_refs_that_are_not_files_are_asked_of_git(vault, monkeypatch, tmp_path):
    head = vault.head()
    (vault.root / ".git/HEAD").write_text("ref: refs/heads/.invalid\n")
    answers = f'case "$*" in *rev-parse*) echo {head}; exit;; *symbolic-ref*) echo main; exit;; esac'
    shim_git(monkeypatch, tmp_path, answers)
    state = vault.history.state()
    assert (state.branch, state.head, state.detached) == ("main", head, False)


def test_log_is_newest_first_with_times_in_utc(vault):
    commits = [vault.commit(f"facts/{i}.md", NOTE).id for i in range(3)]
    found = vault.history.log(limit=2)
    assert [commit.id for commit in found] == commits[:0:-1]
    assert found[0].when.endswith("Z")
    assert (found[0].author, found[0].email) == ("Quaid", "quaid@localhost")
    assert (found[0].subject, found[0].body) == ("remember: a fact", "because")
    assert found[0].trailers == {"Quaid-Task": ("remember",), "Quaid-Fact": ("01a",)}
    assert found[0].files == ("facts/2.md",)


def test_log_of_an_unborn_branch_is_empty(empty):
    assert empty.history.log() == []
    assert empty.history.list_tree("HEAD") == {}
    assert empty.history.read_at("HEAD", "a.md") is None
    assert empty.history.tracked_missing(["a.md"]) == {"a.md"}
    assert empty.history.find_removed("01a") is None
    assert empty.history.uncommitted() == []


def test_log_narrows_by_path_author_and_date(vault):
    vault.commit("facts/b.md", NOTE)
    log = vault.history.log
    assert [commit.files for commit in log(paths=["facts"])] == [("facts/b.md",), ("facts/a.md",)]
    assert [commit.author for commit in log(author="Quaid")] == ["Quaid"]
    assert [commit.author for commit in log(author="maya@example.org")] == ["Maya", "Maya"]
    assert log(author="m.ya") == []
    assert log(since="2098-01-01") == []
    assert len(log(since="2001-01-01")) == 3


def test_the_life_of_a_note_goes_on_past_a_rename(vault):
    vault.run("mv", "facts/a.md", "facts/b.md")
    vault.run("commit", "-qm", "moved")
    assert len(vault.history.log(paths=["facts/b.md"])) == 1
    assert [found.commit.subject for found in vault.history.note_history("facts/b.md")] == ["moved", "save facts/a.md"]


def test_log_by_trailer_is_not_fooled_by_the_body(vault):
    for i, value in enumerate(["01a", "01a.b", "01axb"]):
        vault.commit(f"facts/{i}.md", NOTE, Message("s", "", (("Quaid-Fact", value), ("Quaid-Fact", "all"))))
    for i in range(3):
        vault.commit(f"facts/x{i}.md", NOTE, Message("liar", "Quaid-Fact: 01a.b\n\nmore", (("Quaid-Task", "x"),)))
    found = vault.history.log(grep_trailer=("Quaid-Fact", "01a.b"), limit=2)
    assert [commit.files for commit in found] == [("facts/1.md",)]
    assert len(vault.history.log(grep_trailer=("Quaid-Fact", "all"), limit=2)) == 2


def test_log_shows_a_merge_once_with_what_it_brought(vault):
    vault.run("checkout", "-q", "-b", "side")
    vault.save("side.md", NOTE)
    vault.run("checkout", "-q", "main")
    vault.save("main.md", NOTE)
    vault.run("merge", "-q", "--no-ff", "-m", "night", "side")
    found = vault.history.log()
    assert [commit.subject for commit in found].count("night") == 1
    assert found[0].files == ("side.md",)
    assert "side.md" in vault.history.diff(found[0].id)
    assert "main.md" not in vault.history.diff(found[0].id)


def test_a_commit_without_files_or_body_is_logged(vault):
    vault.run("commit", "-q", "--allow-empty", "-m", "empty")
    vault.run("commit", "-q", "--allow-empty", "-m", "trailer only\n\nQuaid-Run: 1")
    found = vault.history.log(limit=3)
    assert [(commit.subject, commit.body, commit.files) for commit in found] == [
        ("trailer only", "", ()), ("empty", "", ()), ("save other.md", "", ("other.md",)),
    ]  # fmt: skip


def test_read_at_gives_the_bytes_of_then(vault):
    first = vault.head()
    vault.commit("facts/a.md", ours())
    assert vault.history.read_at(first, "facts/a.md") == NOTE
    assert vault.history.read_at("HEAD", "facts/a.md") == ours()
    assert vault.history.read_at("HEAD", "facts/none.md") is None
    assert vault.history.read_at("HEAD", "facts") is None
    for revision in ("nowhere", "--help", "HEAD~99"):
        with pytest.raises(GitError, match="no such revision"):
            vault.history.read_at(revision, "facts/a.md")


def test_list_tree_gives_blob_ids(vault):
    blob = vault.git("rev-parse", "HEAD:facts/a.md").strip()
    assert vault.history.list_tree("HEAD") == {"facts/a.md": blob, "other.md": blob}
    assert set(vault.history.list_tree("HEAD~1")) == {"facts/a.md"}


def test_a_removed_fact_is_found_with_its_bytes(vault):
    vault.save("facts/b.md", NOTE.replace(b"01a", b"01b"))
    edits = [vault.edit("facts/a.md", None), vault.edit("facts/b.md", None)]
    trailers = tuple(("Quaid-Fact", name) for name in ("01a", "01b", "01c"))
    done = vault.history.commit(edits, Message("forget: two", "", trailers))
    assert vault.history.find_removed("01a") == (done.id, "facts/a.md", NOTE)
    assert vault.history.find_removed("01b") == (done.id, "facts/b.md", NOTE.replace(b"01a", b"01b"))
    assert vault.history.find_removed("01c") is None
    vault.commit("facts/a.md", ours())
    again = vault.commit("facts/a.md", None)
    assert vault.history.find_removed("01a") == (again.id, "facts/a.md", ours())


def test_missing_notes_that_head_has_are_told_from_others(vault):
    vault.write("facts/a.md", None)
    assert vault.history.tracked_missing(["facts/a.md", "facts/never.md"]) == {"facts/a.md"}


def test_uncommitted_names_notes_only(vault):
    vault.write("facts/a.md", ours())
    vault.write("other.md", theirs())
    vault.run("add", "other.md")
    vault.write("new/zoë b.md", NOTE)
    vault.write("new/picture.png", b"x")
    assert vault.history.uncommitted() == ["facts/a.md", "new/zoë b.md", "other.md"]


def test_reading_writes_nothing_and_takes_no_lock(vault):
    path = vault.root / "facts/a.md"
    os.utime(path, (1, 1))
    index = vault.index()
    lock = hold_lock(vault)
    vault.history.uncommitted()
    vault.history.log()
    vault.history.list_tree("HEAD")
    vault.history.diff("HEAD")
    vault.history.state()
    lock.unlink()
    assert vault.index() == index


def test_finding_a_repository_and_its_state_imports_no_git(vault):
    script = (
        "import pathlib, sys; from quaid.history.vault_history import History; from quaid.settings import GitSettings\n"
        "root = pathlib.Path(sys.argv[1]); History(root, GitSettings()).state()\n"
        "History(root, GitSettings()).wait_until_ready(); sys.exit('git' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script, str(vault.root)], check=True)


def test_four_characters_from_either_end_name_an_id():
    names = ("01k9aafact", "01k9", "fact", "01k", "act", "9aaf")
    assert [matches_id(name, "01k9aafact") for name in names] == [True, True, True, False, False, False]
