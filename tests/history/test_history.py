from __future__ import annotations

import errno
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from quaid.errors import DiskFullError, GitError, GitMissingError, LockedError, VaultReadOnlyError
from quaid.history import index_lock, private_git_dir, repository, staging
from quaid.history import vault_history as history_module
from quaid.history.index_lock import IndexLock
from quaid.history.messages import render
from quaid.history.vault_history import History
from quaid.model import Committed, Edit, Message
from quaid.settings import GitSettings
from quaid.vault import intent_log

USER = ("-c", "user.name=Maya", "-c", "user.email=maya@example.org")
NOTE = b"---\nid: 01a\ntype: fact\n---\none\ntwo\nthree\nfour\nfive\nsix\nseven\n"
SAY = Message("remember: a fact", "because", (("Quaid-Task", "remember"), ("Quaid-Fact", "01a")))
HOUR_S = 3600


class Vault:
    """A folder in a real repository, and what Quaid and its owner do there."""

    def __init__(self, root: Path, wait_s: float = 0.15) -> None:
        self.root = root
        self.history = History(root, GitSettings(wait_s=wait_s))

    def run(self, *args: str, check: bool = True, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
        done = subprocess.run(["git", *USER, *args], cwd=self.root, capture_output=True, check=False, input=stdin)
        assert not check or done.returncode == 0, done.stderr.decode()
        return done

    def git(self, *args: str) -> str:
        return self.run("-c", "core.quotePath=false", *args).stdout.decode("utf-8", "surrogateescape")

    def write(self, rel_path: str, data: bytes | None) -> None:
        path = self.root / rel_path
        if data is None:
            path.unlink()
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def read(self, rel_path: str) -> bytes | None:
        path = self.root / rel_path
        return path.read_bytes() if path.is_file() else None

    def save(self, rel_path: str, data: bytes | None) -> None:
        """The owner writes a file and commits it."""
        self.write(rel_path, data)
        self.run("add", "-A", "--", rel_path)
        self.run("commit", "-q", "-m", f"save {rel_path}", "--", rel_path)

    def edit(self, rel_path: str, after: bytes | None) -> Edit:
        """Quaid writes a file and has yet to commit it."""
        before = self.read(rel_path)
        self.write(rel_path, after)
        return Edit(rel_path, before, after)

    def commit(self, rel_path: str, after: bytes | None, message: Message = SAY) -> Committed:
        return self.history.commit([self.edit(rel_path, after)], message)

    def status(self) -> str:
        return self.git("status", "--porcelain", "-uall")

    def head(self) -> str:
        return self.git("rev-parse", "HEAD").strip()

    def show(self, revision_path: str) -> bytes:
        return self.run("cat-file", "blob", revision_path).stdout

    def files(self, revision: str = "HEAD") -> list[str]:
        return [name for name in self.git("show", "--format=", "--name-only", "-z", revision).split("\0") if name]

    def index(self) -> bytes | None:
        path = self.root / self.git("rev-parse", "--git-path", "index").strip()
        return path.read_bytes() if path.exists() else None

    def strays(self) -> list[str]:
        git_dir = Path(self.root, self.git("rev-parse", "--git-dir").strip())
        return [path.name for path in git_dir.glob("quaid-*")]

    def hook(self, name: str, script: str) -> None:
        path = self.root / self.git("rev-parse", "--git-path", f"hooks/{name}").strip()
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\n" + script)
        path.chmod(0o755)

    def assert_sound(self) -> None:
        self.run("fsck", "--strict", "--no-dangling")
        assert self.strays() == []


@pytest.fixture(autouse=True)
def no_identity(monkeypatch, tmp_path):
    """A machine on which git has never been told who its user is."""
    for name in list(os.environ):
        if name.startswith("GIT_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_EDITOR", "false")


@pytest.fixture
def empty(tmp_path):
    """A repository without a commit."""
    root = tmp_path / "vault"
    root.mkdir()
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=root, check=True)
    return Vault(root)


@pytest.fixture(scope="session")
def template(tmp_path_factory):
    """A repository with two notes, made once and copied for each test."""
    root = tmp_path_factory.mktemp("template") / "vault"
    subprocess.run(["git", "init", "-q", "-b", "main", str(root)], check=True)
    made = Vault(root)
    made.save("facts/a.md", NOTE)
    made.save("other.md", NOTE)
    return root


@pytest.fixture
def vault(template, tmp_path):
    return Vault(shutil.copytree(template, tmp_path / "vault"))


def ours(data: bytes = NOTE) -> bytes:
    return data.replace(b"two", b"TWO (Quaid)")


def theirs(data: bytes = NOTE) -> bytes:
    return data.replace(b"six", b"SIX (Maya)")


# --- what a commit holds


def test_a_new_note_is_one_commit_and_leaves_nothing_behind(vault):
    base = vault.head()
    done = vault.commit("facts/2026/11/b.md", b"new\n")
    assert done == Committed(vault.head(), ())
    assert vault.git("rev-parse", "HEAD^").strip() == base
    assert vault.files() == ["facts/2026/11/b.md"]
    assert vault.status() == ""
    vault.assert_sound()


def test_an_edit_a_removal_and_a_rename_are_committed_as_such(vault):
    edits = [vault.edit("facts/a.md", None), vault.edit("facts/b.md", NOTE), vault.edit("other.md", ours())]
    assert vault.history.commit(edits, SAY).left == ()
    assert vault.git("show", "--format=", "--name-status", "-M").split() == [
        "R100", "facts/a.md", "facts/b.md", "M", "other.md",
    ]  # fmt: skip
    assert vault.status() == ""
    vault.assert_sound()


def test_git_remembers_the_files_it_read_and_need_not_read_them_again(vault):
    vault.status()
    vault.history.commit([vault.edit("facts/b.md", b"new\n"), vault.edit("facts/a.md", ours())], SAY)
    assert vault.git("diff-files") == ""


def test_hundreds_of_notes_fit_in_one_commit(vault):
    edits = [vault.edit(f"facts/n{i}.md", b"%d\n" % i) for i in range(300)]
    assert vault.history.commit(edits, SAY).left == ()
    assert len(vault.files()) == 300
    assert vault.status() == ""


def test_the_first_commit_of_a_repository(empty):
    done = empty.commit("facts/a.md", NOTE)
    assert done.id == empty.head()
    assert empty.git("log", "--format=%s %P").strip() == "remember: a fact"
    assert empty.status() == ""
    empty.assert_sound()


def test_the_first_commit_leaves_out_what_the_user_has_staged(empty):
    empty.write("mine.md", b"mine\n")
    empty.run("add", "mine.md")
    empty.commit("facts/a.md", NOTE)
    assert empty.files() == ["facts/a.md"]
    assert empty.status() == "A  mine.md\n"


def test_a_change_that_head_has_already_makes_no_commit(vault):
    before, index = vault.head(), vault.index()
    assert vault.history.commit([Edit("facts/a.md", ours(), NOTE)], SAY) == Committed(None, ())
    assert vault.history.commit([], SAY) == Committed(None, ())
    assert (vault.head(), vault.index()) == (before, index)
    vault.assert_sound()


def test_the_users_other_work_stays_as_it_is(vault):
    vault.write("staged.md", b"staged\n")
    vault.run("add", "staged.md")
    vault.write("other.md", ours())
    vault.run("add", "other.md")
    vault.write("other.md", theirs(ours()))
    vault.write("untracked.md", b"untracked\n")
    vault.write("intended.md", b"intended\n")
    vault.run("add", "-N", "intended.md")
    before = [vault.status(), vault.git("diff"), vault.git("diff", "--cached")]
    vault.commit("facts/a.md", ours())
    assert vault.files() == ["facts/a.md"]
    assert [vault.status(), vault.git("diff"), vault.git("diff", "--cached")] == before
    vault.assert_sound()


NAMES = (
    "with space.md", "\"quotes' and\\slash.md", "Zoë Müller.md", "🙂.md", "-leading.md", "--help", "two\nlines.md",
    "tab\t.md", "*.md", "[a].md", ":(top)x.md", "a;b$(c).md", "#x.md", "!x.md", " ", "\n",
)  # fmt: skip


def test_any_file_name_can_be_made_edited_logged_and_removed(vault):
    paths = sorted(f"facts/{name}" for name in NAMES)
    vault.write("facts/staged.md", b"x")
    vault.run("add", "facts/staged.md")
    for after in (NOTE, ours(), None):
        done = vault.history.commit([vault.edit(path, after) for path in paths], SAY)
        assert done.left == ()
        assert sorted(vault.files()) == paths
        assert sorted(vault.history.log(limit=1)[0].files) == paths
        assert [vault.history.read_at("HEAD", path) for path in paths] == [after] * len(paths)
    assert vault.status() == "A  facts/staged.md\n"
    assert [len(vault.history.log(paths=[path])) for path in paths] == [3] * len(paths)


def test_a_leading_dash_at_the_top_is_a_file_not_an_option(vault):
    assert vault.commit("-x.md", NOTE).id
    vault.write("-x.md", theirs())
    assert vault.commit("-x.md", ours(theirs())).left == ()
    assert vault.show("HEAD:-x.md") == ours()


# --- the user's own changes in the same note


def test_an_unstaged_change_in_the_same_note_stays_unstaged(vault):
    vault.write("facts/a.md", theirs())
    assert vault.commit("facts/a.md", ours(theirs())).left == ()
    assert vault.show("HEAD:facts/a.md") == ours()
    assert vault.show(":facts/a.md") == ours()
    assert vault.read("facts/a.md") == ours(theirs())
    assert vault.status() == " M facts/a.md\n"
    vault.assert_sound()


def test_a_staged_change_in_the_same_note_stays_staged(vault):
    vault.write("facts/a.md", theirs())
    vault.run("add", "facts/a.md")
    assert vault.commit("facts/a.md", ours(theirs())).left == ()
    assert vault.show("HEAD:facts/a.md") == ours()
    assert vault.show(":facts/a.md") == ours(theirs())
    assert vault.status() == "M  facts/a.md\n"


def test_staged_and_unstaged_changes_in_the_same_note_stay_apart(vault):
    half = NOTE.replace(b"seven", b"SEVEN (staged)")
    vault.write("facts/a.md", half)
    vault.run("add", "facts/a.md")
    whole = half.replace(b"id: 01a", b"id: 01b")
    vault.write("facts/a.md", whole)
    assert vault.commit("facts/a.md", whole.replace(b"four", b"FOUR (Quaid)")).left == ()
    assert vault.show("HEAD:facts/a.md") == NOTE.replace(b"four", b"FOUR (Quaid)")
    assert vault.show(":facts/a.md") == half.replace(b"four", b"FOUR (Quaid)")
    assert vault.status() == "MM facts/a.md\n"


def test_a_change_staged_and_then_undone_on_disk_stays_staged(vault):
    vault.write("facts/a.md", theirs())
    vault.run("add", "facts/a.md")
    vault.write("facts/a.md", NOTE)
    assert vault.commit("facts/a.md", ours()).left == ()
    assert vault.show("HEAD:facts/a.md") == ours()
    assert vault.show(":facts/a.md") == ours(theirs())


def test_changes_of_the_same_line_cannot_be_told_apart_and_are_left(vault):
    vault.write("facts/a.md", NOTE.replace(b"two", b"2 (Maya)"))
    before, index = vault.head(), vault.index()
    done = vault.commit("facts/a.md", NOTE.replace(b"two", b"TWO (Quaid)"))
    assert done == Committed(None, ("facts/a.md",))
    assert (vault.head(), vault.index()) == (before, index)
    vault.assert_sound()


def test_a_staged_change_of_the_same_line_is_left(vault):
    vault.write("facts/a.md", NOTE.replace(b"two", b"2 (Maya)"))
    vault.run("add", "facts/a.md")
    vault.write("facts/a.md", NOTE)
    index = vault.index()
    assert vault.commit("facts/a.md", ours()) == Committed(None, ("facts/a.md",))
    assert vault.index() == index


def test_what_can_be_committed_is_while_the_rest_is_left(vault):
    vault.write("untracked.md", NOTE)
    edits = [vault.edit("untracked.md", ours()), vault.edit("facts/a.md", ours())]
    done = vault.history.commit(edits, SAY)
    assert done.left == ("untracked.md",)
    assert vault.files() == ["facts/a.md"]
    assert vault.status() == "?? untracked.md\n"


def test_notes_git_does_not_have_are_left(vault):
    vault.write("untracked.md", NOTE)
    vault.write("gone.md", NOTE)
    vault.write("added.md", NOTE)
    vault.write("intended.md", b"")
    vault.run("add", "added.md")
    vault.run("add", "-N", "intended.md")
    changed = ("untracked", "added", "intended")
    edits = [vault.edit("gone.md", None), *(vault.edit(f"{name}.md", ours()) for name in changed)]
    before = vault.git("diff", "--cached")
    assert vault.history.commit(edits, SAY) == Committed(None, tuple(edit.rel_path for edit in edits))
    assert vault.git("diff", "--cached") == before


def test_a_note_the_user_is_deleting_is_left(vault):
    vault.run("rm", "-q", "--cached", "facts/a.md")
    vault.write("other.md", None)
    edits = [vault.edit("facts/a.md", ours()), vault.edit("other.md", ours())]
    assert vault.history.commit(edits, SAY) == Committed(None, ("facts/a.md", "other.md"))
    assert vault.status() == "D  facts/a.md\n M other.md\n?? facts/a.md\n"


def test_removing_a_note_with_changes_of_the_user_is_left(vault):
    vault.write("facts/a.md", theirs())
    vault.write("other.md", theirs())
    vault.run("add", "other.md")
    vault.write("other.md", NOTE)
    edits = [vault.edit("facts/a.md", None), vault.edit("other.md", None)]
    assert vault.history.commit(edits, SAY) == Committed(None, ("facts/a.md", "other.md"))


def test_ignored_notes_are_left_unless_they_are_tracked(vault):
    vault.save(".gitignore", b"facts/\n")
    edits = [vault.edit("facts/new.md", NOTE), vault.edit("facts/a.md", ours())]
    assert vault.history.commit(edits, SAY).left == ("facts/new.md",)
    assert vault.files() == ["facts/a.md"]


def test_a_note_with_unresolved_conflicts_is_left(vault):
    vault.write("facts/a.md", theirs())
    vault.run("stash", "-q")
    vault.save("facts/a.md", NOTE.replace(b"six", b"6"))
    vault.run("stash", "apply", "-q", check=False)
    assert "UU facts/a.md" in vault.status()
    edits = [vault.edit("facts/a.md", ours(vault.read("facts/a.md"))), vault.edit("facts/b.md", NOTE)]
    assert vault.history.commit(edits, SAY).left == ("facts/a.md",)
    assert vault.files() == ["facts/b.md"]
    assert vault.status() == "UU facts/a.md\n"


def test_somebody_saving_over_the_note_meanwhile_is_not_committed(vault, monkeypatch):
    fill = staging.Stage.put_from_disk

    def save_first(self, paths, index=None):
        vault.write("facts/a.md", theirs(ours()))
        fill(self, paths, index)

    monkeypatch.setattr(staging.Stage, "put_from_disk", save_first)
    assert vault.commit("facts/a.md", ours()).left == ()
    assert vault.show("HEAD:facts/a.md") == ours()
    assert vault.show(":facts/a.md") == ours()
    assert vault.status() == " M facts/a.md\n"


# --- line ends, filters, modes, links


def test_line_ends_follow_the_users_settings(vault):
    vault.run("config", "core.autocrlf", "true")
    crlf = NOTE.replace(b"\n", b"\r\n")
    assert vault.commit("facts/new.md", crlf).id
    assert vault.show("HEAD:facts/new.md") == NOTE
    assert vault.commit("facts/new.md", ours(crlf)).left == ()
    assert vault.git("show", "--format=", "--numstat").split()[:2] == ["1", "1"]
    vault.write("facts/new.md", theirs(ours(crlf)))
    assert vault.commit("facts/new.md", theirs(ours(crlf)).replace(b"four", b"FOUR")).left == ()
    assert vault.show("HEAD:facts/new.md") == ours().replace(b"four", b"FOUR")
    assert vault.status() == " M facts/new.md\n"
    assert vault.history.read_at("HEAD", "facts/new.md") == ours(crlf).replace(b"four", b"FOUR")


def test_a_note_committed_with_crlf_keeps_it_under_text_auto(vault):
    crlf = NOTE.replace(b"\n", b"\r\n")
    vault.save("facts/crlf.md", crlf)
    vault.save(".gitattributes", b"* text=auto\n")
    assert vault.commit("facts/crlf.md", ours(crlf)).left == ()
    assert vault.show("HEAD:facts/crlf.md") == ours(crlf)
    vault.write("facts/crlf.md", theirs(ours(crlf)))
    vault.run("add", "facts/crlf.md")
    vault.write("facts/crlf.md", ours(crlf))
    assert vault.commit("facts/crlf.md", ours(crlf).replace(b"four", b"FOUR")).left == ()
    assert vault.show("HEAD:facts/crlf.md") == ours(crlf).replace(b"four", b"FOUR")


def test_clean_filters_are_applied(vault):
    vault.run("config", "filter.upper.clean", "tr a-z A-Z")
    vault.run("config", "filter.upper.smudge", "tr A-Z a-z")
    vault.save(".gitattributes", b"secret/* filter=upper\n")
    assert vault.commit("secret/a.md", b"one\ntwo\nthree\nfour\nfive\n").id
    assert vault.commit("secret/a.md", b"one\n2\nthree\nfour\nfive\n").left == ()
    assert vault.show("HEAD:secret/a.md") == b"ONE\n2\nTHREE\nFOUR\nFIVE\n"
    assert vault.history.read_at("HEAD", "secret/a.md") == b"one\n2\nthree\nfour\nfive\n"
    vault.write("secret/a.md", b"one\n2\nthree\nfour\n5\n")
    assert vault.commit("secret/a.md", b"1\n2\nthree\nfour\n5\n").left == ()
    assert vault.show("HEAD:secret/a.md") == b"1\n2\nTHREE\nFOUR\nFIVE\n"
    vault.write("secret/a.md", b"1\n2\nthree\nfour\nfive\n")
    assert vault.status() == ""
    assert vault.commit("secret/a.md", None).left == ()


def test_the_executable_bit_is_the_users(vault):
    path = vault.root / "facts/a.md"
    path.chmod(0o755)
    vault.save("facts/a.md", theirs())
    path.chmod(0o644)
    vault.write("other.md", NOTE)
    (vault.root / "other.md").chmod(0o755)
    vault.history.commit([vault.edit("facts/a.md", ours()), vault.edit("other.md", ours())], SAY)
    tree = vault.git("ls-tree", "-r", "HEAD")
    assert tree.startswith("100755")
    assert "100644" in tree.splitlines()[1]
    assert vault.git("diff", "--summary") == (
        " mode change 100755 => 100644 facts/a.md\n mode change 100644 => 100755 other.md\n"
    )


def test_nothing_is_committed_through_a_symbolic_link(vault, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (vault.root / "linked").symlink_to(outside)
    (outside / "target.md").write_bytes(NOTE)
    (vault.root / "link.md").symlink_to(outside / "target.md")
    vault.run("add", "link.md", "linked")
    vault.run("commit", "-qm", "links")
    edits = [vault.edit("linked/a.md", NOTE), vault.edit("link.md", ours()), vault.edit("facts/b.md", NOTE)]
    assert vault.history.commit(edits, SAY).left == ("linked/a.md", "link.md")
    assert vault.files() == ["facts/b.md"]
    assert vault.status() == ""


def test_a_sparse_checkout_stays_sparse(vault):
    vault.save("far/away.md", NOTE)
    vault.save("far/note.md", NOTE)
    vault.run("sparse-checkout", "set", "--no-cone", "/facts/", "/new/")
    assert not (vault.root / "far/away.md").exists()
    assert vault.commit("facts/a.md", ours()).left == ()
    assert vault.commit("elsewhere/b.md", NOTE).left == ()
    assert vault.files() == ["elsewhere/b.md"]
    assert vault.status() == ""
    assert vault.git("ls-files", "-t", "far").split() == ["S", "far/away.md", "S", "far/note.md"]
    vault.write("far/note.md", NOTE)
    assert vault.commit("far/note.md", ours()).left == ()
    assert vault.show("HEAD:far/note.md") == ours()
    assert vault.status() == ""


def test_a_note_assumed_unchanged_is_committed_all_the_same(vault):
    vault.run("update-index", "--assume-unchanged", "facts/a.md")
    assert vault.commit("facts/a.md", ours()).left == ()
    assert vault.show("HEAD:facts/a.md") == ours()
    assert vault.status() == ""


def test_a_split_index_and_one_of_version_4_are_understood(vault):
    vault.run("config", "core.splitIndex", "true")
    vault.run("update-index", "--split-index")
    assert vault.commit("facts/b.md", NOTE).left == ()
    vault.run("update-index", "--no-split-index", "--index-version", "4")
    assert vault.commit("facts/c.md", NOTE).left == ()
    assert vault.status() == ""
    vault.assert_sound()


def test_a_repository_of_sha256_works_like_any_other(tmp_path):
    root = tmp_path / "vault"
    subprocess.run(["git", "init", "-q", "-b", "main", "--object-format=sha256", str(root)], check=True)
    vault = Vault(root)
    assert len(vault.commit("a.md", NOTE).id) == 64
    vault.write("a.md", theirs())
    assert vault.commit("a.md", ours(theirs())).left == ()
    vault.run("checkout", "-q", ".")
    assert vault.commit("a.md", None).left == ()
    assert vault.status() == ""


# --- where the vault is


def test_a_vault_in_a_subfolder_speaks_of_its_own_paths(vault):
    vault.save("inner/a.md", NOTE)
    inner = Vault(vault.root / "inner")
    vault.write("other.md", theirs())
    inner.write("untracked.md", NOTE)
    edits = [inner.edit("a.md", ours()), inner.edit("new/b.md", NOTE), inner.edit("untracked.md", ours())]
    done = inner.history.commit(edits, SAY)
    assert done.left == ("untracked.md",)
    assert vault.files() == ["inner/a.md", "inner/new/b.md"]
    assert inner.history.log()[0].files == ("a.md", "new/b.md")
    assert [commit.subject for commit in inner.history.log()] == ["remember: a fact", "save inner/a.md"]
    assert set(inner.history.list_tree("HEAD")) == {"a.md", "new/b.md"}
    assert inner.history.read_at("HEAD", "a.md") == ours()
    assert inner.history.uncommitted() == ["untracked.md"]
    assert "a/a.md" in inner.history.diff(done.id)
    assert History.find_repository(inner.root) == vault.root.resolve()


def test_a_folder_named_like_a_pattern_is_just_a_folder(vault):
    inner = Vault(vault.root / "[n]*")
    inner.write("a.md", NOTE)
    vault.write("n.md", NOTE)
    assert inner.history.uncommitted() == ["a.md"]
    assert inner.history.commit([Edit("a.md", None, NOTE)], SAY).id
    assert list(inner.history.list_tree("HEAD")) == ["a.md"]
    assert len(inner.history.log()) == 1


def test_a_vault_reached_through_a_link_is_the_vault(vault, tmp_path):
    (tmp_path / "link").symlink_to(vault.root)
    linked = Vault(tmp_path / "link")
    assert linked.commit("facts/b.md", NOTE).id == vault.head()


def test_a_linked_worktree_commits_to_its_own_branch(vault, tmp_path):
    vault.run("worktree", "add", "-q", "-b", "night", str(tmp_path / "night"))
    night = Vault(tmp_path / "night")
    main = vault.head()
    done = night.commit("facts/b.md", NOTE)
    assert vault.git("rev-parse", "night").strip() == done.id
    assert vault.head() == main
    assert night.history.state().branch == "night"
    assert night.status() == vault.status() == ""
    night.assert_sound()


def test_a_vault_may_be_a_submodule_or_hold_one(vault, tmp_path):
    outer = tmp_path / "outer"
    subprocess.run(["git", "init", "-q", "-b", "main", str(outer)], check=True)
    parent = Vault(outer)
    parent.run("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(vault.root), "sub")
    parent.run("commit", "-qm", "sub")
    inside = Vault(outer / "sub")
    assert inside.commit("facts/b.md", NOTE).id == inside.head()
    assert inside.status() == ""
    assert parent.commit("notes/x.md", NOTE).id
    assert parent.status() == " M sub\n"
    before = parent.head()
    with pytest.raises(GitError, match="another repository"):
        parent.history.commit([parent.edit("sub/facts/c.md", NOTE)], SAY)
    assert parent.head() == before


def test_a_detached_head_is_committed_to(vault):
    vault.run("checkout", "-q", "--detach")
    done = vault.commit("facts/b.md", NOTE)
    state = vault.history.state()
    assert (state.detached, state.branch, state.head) == (True, None, done.id)
    assert vault.git("rev-parse", "main").strip() != done.id
    assert vault.status() == ""


def test_a_repository_is_made_only_where_none_is(tmp_path):
    root = tmp_path / "new"
    (root / "deep").mkdir(parents=True)
    assert History.find_repository(root) is None
    with pytest.raises(GitError, match="is in none"):
        History(root, GitSettings()).state()
    History(root, GitSettings()).create_repository()
    assert History(root, GitSettings()).state().branch == "main"
    History(root / "deep", GitSettings()).create_repository()
    assert not (root / "deep" / ".git").exists()
    assert History.find_repository(root / "deep") == root.resolve()


def test_git_variables_of_a_surrounding_hook_are_ignored(vault, tmp_path, monkeypatch):
    other = tmp_path / "other"
    subprocess.run(["git", "init", "-q", str(other)], check=True)
    for name, value in {
        "GIT_DIR": str(other / ".git"), "GIT_WORK_TREE": str(other), "GIT_INDEX_FILE": str(other / "index"),
        "GIT_AUTHOR_NAME": "Nobody", "GIT_AUTHOR_DATE": "2001-01-01T00:00:00Z", "GIT_PREFIX": "facts/",
        "GIT_OBJECT_DIRECTORY": str(other / "objects"), "GIT_LITERAL_PATHSPECS": "1", "GIT_CONFIG_PARAMETERS": "'a.b=c'",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    done = vault.commit("facts/b.md", NOTE)
    commit = vault.history.log(limit=1)[0]
    for name in list(os.environ):
        if name.startswith("GIT_") and name != "GIT_CONFIG_NOSYSTEM":
            monkeypatch.delenv(name)
    assert done.id == commit.id == vault.head()
    assert commit.author == "Quaid"
    assert not commit.when.startswith("2001")
    assert list(other.iterdir()) == [other / ".git"]


# --- what a commit says


def test_the_message_survives_byte_for_byte(vault):
    for key, value in {
        "commit.template": "/nowhere", "core.commentChar": "auto", "core.editor": "false", "commit.verbose": "true",
        "commit.cleanup": "strip", "i18n.commitEncoding": "ISO-8859-1", "commit.status": "true",
        "log.showSignature": "true", "core.abbrev": "5", "color.ui": "always",
    }.items():  # fmt: skip
        vault.run("config", key, value)
    body = (
        "# a heading\n\nReviewed-by: nobody\n; @ ! $ % ^ & | :\n---\n"
        "# ------------------------ >8 ------------------------\n  indented\n\n\nKey: value"
    )
    message = Message("#1 Zoë: 🙂", body, (("Quaid-Task", "a\nb"), ("Quaid-Fact", "1"), ("Quaid-Fact", "2")))
    vault.commit("facts/b.md", NOTE, message)
    raw = vault.run("cat-file", "commit", "HEAD").stdout.partition(b"\n\n")[2].decode()
    assert raw == f"#1 Zoë: 🙂\n\n{body}\n\nQuaid-Task: a b\nQuaid-Fact: 1\nQuaid-Fact: 2\n"
    commit = vault.history.log(limit=1)[0]
    assert (commit.subject, commit.body) == ("#1 Zoë: 🙂", body)
    assert commit.trailers == {"Quaid-Task": ("a b",), "Quaid-Fact": ("1", "2")}


def test_a_long_subject_is_cut_to_72_characters():
    assert render(Message("one\ntwo")) == "one two\n"
    assert render(Message("ä" * 72)) == "ä" * 72 + "\n"
    assert render(Message("ä" * 73)) == "ä" * 71 + "…\n"


def test_git_needs_no_identity_and_is_given_none(vault):
    config = ["git", "config", "user.name"]
    assert subprocess.run(config, cwd=vault.root, check=False).returncode == 1
    config = (vault.root / ".git/config").read_bytes()
    vault.commit("facts/b.md", NOTE)
    assert vault.git("log", "-1", "--format=%an <%ae> %cn <%ce>").strip() == (
        "Quaid <quaid@localhost> Quaid <quaid@localhost>"
    )
    vault.history.commit([vault.edit("facts/c.md", NOTE)], SAY, author=("Zoë M", "zoe@example.org"))
    assert vault.git("log", "-1", "--format=%an <%ae>").strip() == "Zoë M <zoe@example.org>"
    assert (vault.root / ".git/config").read_bytes() == config
    assert not (vault.root.parent / "home").exists()


@pytest.mark.parametrize("is_detached", [True, False])
def test_the_reflog_names_the_commit_once(vault, is_detached):
    if is_detached:
        vault.run("checkout", "-q", "--detach")
    before = vault.git("reflog", "--format=%gs")
    vault.commit("facts/b.md", NOTE)
    assert vault.git("reflog", "--format=%gs") == "commit: remember: a fact\n" + before
    if not is_detached:
        assert vault.git("reflog", "main", "-1", "--format=%gs").strip() == "commit: remember: a fact"


def test_a_message_the_user_is_writing_is_not_touched(vault):
    vault.commit("facts/b.md", NOTE)
    draft = vault.root / ".git/COMMIT_EDITMSG"
    draft.write_text("a draft")
    vault.commit("facts/c.md", NOTE)
    assert draft.read_text() == "a draft"


# --- hooks and signing


@pytest.mark.parametrize("name", ["pre-commit", "commit-msg", "prepare-commit-msg"])
def test_a_hook_that_refuses_stops_the_commit_with_its_words(vault, name):
    vault.write("other.md", theirs())
    vault.run("add", "other.md")
    vault.hook(name, "echo the gate is shut >&2; exit 1")
    before, index = vault.head(), vault.index()
    with pytest.raises(GitError, match="the gate is shut"):
        vault.commit("facts/b.md", NOTE)
    assert (vault.head(), vault.index()) == (before, index)
    vault.assert_sound()


def test_signing_that_fails_stops_the_commit_with_its_words(vault, tmp_path):
    gpg = tmp_path / "gpg"
    gpg.write_text("#!/bin/sh\necho no secret key >&2\nexit 2\n")
    gpg.chmod(0o755)
    vault.run("config", "gpg.program", str(gpg))
    vault.run("config", "commit.gpgsign", "true")
    before, index = vault.head(), vault.index()
    with pytest.raises(GitError, match=r"no secret key|failed to sign"):
        vault.commit("facts/b.md", NOTE)
    assert (vault.head(), vault.index()) == (before, index)
    vault.assert_sound()


def test_who_has_git_sign_is_the_committer(vault, tmp_path):
    gpg = tmp_path / "gpg"
    gpg.write_text("#!/bin/sh\ncat >/dev/null\necho '[GNUPG:] SIG_CREATED ' >&2\necho signed by \"$3\" >&1\n")
    gpg.chmod(0o755)
    for key, value in {
        "gpg.program": str(gpg), "commit.gpgsign": "true", "user.name": "Maya", "user.email": "maya@example.org",
    }.items():  # fmt: skip
        vault.run("config", key, value)
    vault.commit("facts/b.md", NOTE)
    raw = vault.git("cat-file", "commit", "HEAD")
    assert "gpgsig signed by" in raw
    assert "author Quaid <quaid@localhost>" in raw
    assert "committer Maya <maya@example.org>" in raw


def test_a_hook_may_change_the_message(vault):
    vault.hook("commit-msg", 'echo "Change-Id: I1" >> "$1"')
    vault.commit("facts/b.md", NOTE)
    assert vault.history.log(limit=1)[0].trailers["Change-Id"] == ("I1",)


def test_a_hook_may_run_git(vault):
    vault.hook(
        "pre-commit", "git status >/dev/null && git diff --cached --name-only > seen && git rev-parse HEAD >/dev/null"
    )
    vault.hook("post-commit", "git log -1 >/dev/null")
    vault.commit("facts/b.md", NOTE)
    assert (vault.root / "seen").read_text() == "facts/b.md\n"
    assert vault.status() == "?? seen\n"


def test_what_a_hook_rewrites_or_adds_is_in_the_users_index_too(vault):
    vault.hook(
        "pre-commit",
        "sed -i.bak s/one/ONE/ facts/a.md && rm facts/a.md.bak && echo x > extra.md && git add facts/a.md extra.md",
    )
    vault.commit("facts/a.md", ours())
    assert vault.show("HEAD:facts/a.md") == ours().replace(b"one", b"ONE")
    assert sorted(vault.files()) == ["extra.md", "facts/a.md"]
    assert vault.status() == ""


def test_a_hook_sees_the_users_language_and_no_leftover_variables(vault, monkeypatch):
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("GIT_LITERAL_PATHSPECS", "1")
    vault.hook("pre-commit", 'echo "$LC_ALL/$GIT_LITERAL_PATHSPECS/$GIT_OPTIONAL_LOCKS" > seen')
    vault.commit("facts/b.md", NOTE)
    assert (vault.root / "seen").read_text() == "C.UTF-8//\n"


# --- others at work


def hold_lock(vault: Vault, release_after_s: float | None = None) -> Path:
    lock = vault.root / ".git/index.lock"
    lock.write_bytes(b"")
    if release_after_s is not None:
        threading.Timer(release_after_s, lock.unlink).start()
    return lock


def test_a_lock_that_is_released_in_time_is_waited_for(vault):
    patient = Vault(vault.root, wait_s=5)
    hold_lock(vault, release_after_s=0.2)
    assert patient.commit("facts/b.md", NOTE).id


def test_a_lock_that_is_not_released_is_named_and_never_removed(vault):
    lock = hold_lock(vault)
    before = vault.head()
    with pytest.raises(LockedError, match=r"index\.lock"):
        vault.commit("facts/b.md", NOTE)
    assert lock.exists()
    assert vault.head() == before


def test_a_lock_taken_while_git_commits_takes_the_commit_back(vault):
    vault.hook("post-commit", "rm .git/index.lock; touch .git/index.lock")
    before, index = vault.head(), vault.index()
    with pytest.raises(LockedError, match=r"index\.lock"):
        vault.commit("facts/b.md", NOTE)
    assert vault.head() == before
    (vault.root / ".git/index.lock").unlink()
    assert vault.index() == index
    assert vault.status() == "?? facts/b.md\n"
    vault.assert_sound()


def test_the_very_first_commit_can_be_taken_back(empty):
    empty.hook("post-commit", "rm .git/index.lock; touch .git/index.lock")
    with pytest.raises(LockedError):
        empty.commit("facts/b.md", NOTE)
    assert empty.history.state().head is None


def test_a_lock_taken_while_git_commits_and_released_is_waited_for(vault):
    patient = Vault(vault.root, wait_s=5)
    vault.hook(
        "post-commit", "rm .git/index.lock; touch .git/index.lock; (sleep 0.3; rm .git/index.lock) >/dev/null 2>&1 &"
    )
    assert patient.commit("facts/b.md", NOTE).id
    assert vault.status() == ""


@pytest.mark.parametrize("command", [["commit", "-q", "-m", "owner"], ["commit", "-qam", "owner"], ["add", "-A"]])
def test_nobody_commits_between_our_commit_and_the_index_that_follows_it(vault, monkeypatch, command):
    update_users_index, said = staging.update_users_index, []

    def catch_up_while_the_user_commits(*args):
        said.append(vault.run(*command, check=False).stderr.decode())
        update_users_index(*args)

    vault.write("mine.md", b"mine\n")
    vault.run("add", "mine.md")
    monkeypatch.setattr(staging, "update_users_index", catch_up_while_the_user_commits)
    vault.commit("facts/b.md", NOTE)
    assert "index.lock': File exists" in said[0]
    vault.run("commit", "-q", "-m", "owner")
    assert vault.show("HEAD:facts/b.md") == NOTE
    assert vault.status() == ""
    vault.assert_sound()


def test_a_commit_of_the_user_in_the_middle_of_ours_is_built_upon(vault, monkeypatch):
    fill = staging.Stage.fill
    moves = iter([True])

    def fill_while_the_user_commits(self, steps):
        fill(self, steps)
        if next(moves, False):
            vault.save("other.md", theirs())

    monkeypatch.setattr(staging.Stage, "fill", fill_while_the_user_commits)
    done = vault.commit("facts/a.md", ours())
    assert [commit.subject for commit in vault.history.log(limit=2)] == ["remember: a fact", "save other.md"]
    assert vault.files(done.id) == ["facts/a.md"]
    assert vault.show("HEAD:other.md") == theirs()
    assert vault.status() == ""
    vault.assert_sound()


def test_a_commit_made_while_our_hook_runs_is_built_upon(vault):
    vault.hook(
        "pre-commit",
        "test -e .git/once && exit 0; touch .git/once; unset GIT_INDEX_FILE GIT_DIR; echo x >> other.md; "
        "git -c user.name=M -c user.email=m commit -q --no-verify -m theirs other.md",
    )
    assert vault.commit("facts/a.md", ours()).id
    assert [commit.subject for commit in vault.history.log(limit=2)] == ["remember: a fact", "theirs"]
    assert vault.files() == ["facts/a.md"]
    assert vault.status() == ""


def test_a_branch_switched_to_in_the_middle_of_a_commit_gets_it(vault, monkeypatch):
    fill = staging.Stage.fill
    moves = iter([["-b", "side"], ["--detach"]])

    def fill_while_the_user_switches(self, steps):
        fill(self, steps)
        command = next(moves, None)
        if command:
            vault.run("checkout", "-q", *command)

    monkeypatch.setattr(staging.Stage, "fill", fill_while_the_user_switches)
    main = vault.head()
    done = vault.commit("facts/a.md", ours())
    assert vault.head() == done.id
    assert vault.git("rev-parse", "main", "side").split() == [main, main]
    assert vault.status() == ""


def test_a_detached_head_moved_at_the_last_moment_is_built_upon(vault):
    vault.run("checkout", "-q", "--detach")
    vault.hook(
        "post-commit",
        "test -e .git/once && exit 0; touch .git/once; unset GIT_INDEX_FILE GIT_DIR; "
        "git update-ref HEAD $(git -c user.name=M -c user.email=m commit-tree -p HEAD -m theirs HEAD^{tree})",
    )
    vault.commit("facts/a.md", ours())
    assert [commit.subject for commit in vault.history.log(limit=2)] == ["remember: a fact", "theirs"]
    assert vault.status() == ""


def test_an_owner_who_commits_without_a_rest_is_locked_out_for_a_moment(vault, monkeypatch):
    fill, refused = staging.Stage.fill, []

    def fill_while_the_user_commits(self, steps):
        fill(self, steps)
        refused.append(vault.run("commit", "-q", "--allow-empty", "-m", "again", check=False).returncode != 0)

    monkeypatch.setattr(staging.Stage, "fill", fill_while_the_user_commits)
    assert vault.commit("facts/a.md", ours()).id
    assert refused == [False, False, False, True]
    assert [commit.subject for commit in vault.history.log(limit=2)] == ["remember: a fact", "again"]
    assert vault.status() == ""
    vault.assert_sound()


def test_a_head_that_never_rests_is_given_way_to(vault, monkeypatch):
    fill = staging.Stage.fill

    def fill_while_somebody_moves_it(self, steps):
        fill(self, steps)
        vault.run("update-ref", "HEAD", vault.git("commit-tree", "-p", "HEAD", "-m", "again", "HEAD^{tree}").strip())

    monkeypatch.setattr(staging.Stage, "fill", fill_while_somebody_moves_it)
    with pytest.raises(LockedError, match="keep arriving"):
        vault.commit("facts/a.md", ours())
    assert vault.history.log(limit=1)[0].subject == "again"
    assert vault.status() == " M facts/a.md\n"


def test_a_merge_begun_in_the_middle_of_a_commit_is_not_concluded_by_it(vault, monkeypatch):
    vault.run("checkout", "-q", "-b", "side")
    vault.save("other.md", theirs())
    vault.run("checkout", "-q", "main")
    fill = staging.Stage.fill

    def fill_while_the_user_merges(self, steps):
        fill(self, steps)
        vault.run("merge", "-q", "--no-ff", "--no-commit", "side")

    monkeypatch.setattr(staging.Stage, "fill", fill_while_the_user_merges)
    before = vault.head()
    with pytest.raises(LockedError, match="merge is in progress"):
        vault.commit("facts/a.md", ours())
    assert vault.head() == before
    assert (vault.root / ".git/MERGE_HEAD").exists()
    assert vault.status() == " M facts/a.md\nM  other.md\n"


def commit_unless_locked(vault: Vault, edit: Edit) -> Committed | None:
    try:
        return vault.history.commit([edit], SAY)
    except LockedError:
        return None


def test_commits_of_the_user_at_the_same_time_are_all_kept(vault):
    patient = Vault(vault.root, wait_s=20)
    rounds = 12

    def commit_as_user() -> None:
        for i in range(rounds):
            vault.write(f"mine-{i}.md", b"mine\n")
            for command in (("add", f"mine-{i}.md"), ("commit", "-q", "-m", f"mine {i}", "--", f"mine-{i}.md")):
                while vault.run(*command, check=False).returncode:
                    time.sleep(0.01)
            time.sleep(0.02)

    user = threading.Thread(target=commit_as_user)
    user.start()
    for i in range(rounds):
        edit = patient.edit(f"facts/q-{i}.md", NOTE)
        while commit_unless_locked(patient, edit) is None:
            pass
    user.join()
    assert vault.status() == ""
    seen = {name for commit in patient.history.log(limit=100) for name in commit.files}
    assert {f"facts/q-{i}.md" for i in range(rounds)} | {f"mine-{i}.md" for i in range(rounds)} <= seen
    made = [commit for commit in patient.history.log(limit=100) if not commit.subject.startswith("save")]
    assert all(len(commit.files) == 1 for commit in made)
    assert all(commit.files[0].startswith("facts/q-") == (commit.author == "Quaid") for commit in made)
    assert all(commit.subject.startswith("remember") == (commit.author == "Quaid") for commit in made)
    assert vault.git("log", "--diff-filter=D", "--oneline") == ""
    vault.assert_sound()


def conflict(vault: Vault) -> None:
    vault.run("checkout", "-q", "-b", "side")
    vault.save("other.md", NOTE.replace(b"two", b"side"))
    vault.run("checkout", "-q", "main")
    vault.save("other.md", NOTE.replace(b"two", b"main"))


@pytest.mark.parametrize(
    ("operation", "command", "next_step"),
    [
        ("merge", ["merge", "side"], "git merge --abort"),
        ("rebase", ["rebase", "side"], "git rebase --continue"),
        ("rebase", ["rebase", "--apply", "side"], "git rebase --abort"),
        ("cherry-pick", ["cherry-pick", "side"], "git cherry-pick --abort"),
        ("revert", ["revert", "--no-edit", "HEAD~1"], "git revert --abort"),
        ("am", ["am"], "git am --abort"),
        ("bisect", ["bisect", "start"], "git bisect reset"),
    ],
)
def test_an_operation_in_progress_is_waited_for_then_named(vault, operation, command, next_step):
    conflict(vault)
    if operation == "revert":
        vault.save("other.md", NOTE.replace(b"two", b"later"))
    patch = vault.run("format-patch", "--stdout", "-1", "side").stdout if operation == "am" else None
    vault.run(*command, check=False, stdin=patch)
    assert vault.history.state().operation == operation
    said: list[str] = []
    with pytest.raises(LockedError, match=next_step):
        vault.history.wait_until_ready(said.append)
    assert len(said) == 1
    assert operation in said[0]
    before = vault.head()
    with pytest.raises(LockedError):
        vault.history.commit([Edit("facts/b.md", None, NOTE)], SAY)
    assert vault.head() == before


def test_waiting_ends_when_the_operation_does(vault):
    patient = History(vault.root, GitSettings(wait_s=5))
    mark = vault.root / ".git/MERGE_HEAD"
    mark.write_text(vault.head())
    threading.Timer(0.2, mark.unlink).start()
    started = time.monotonic()
    patient.wait_until_ready()
    assert 0.1 < time.monotonic() - started < 2
    patient.wait_until_ready(pytest.fail)


def test_a_series_of_picks_between_two_steps_is_in_progress(vault):
    todo = vault.root / ".git/sequencer/todo"
    todo.parent.mkdir()
    todo.write_text("pick 123 x\n")
    assert vault.history.state().operation == "cherry-pick"
    todo.write_text("revert 123 x\n")
    assert vault.history.state().operation == "revert"


# --- failures and kills


def test_a_missing_git_is_said_so(vault, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GitMissingError):
        vault.history.log()
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "env").symlink_to(shutil.which("env", path="/usr/bin:/bin"))
    with pytest.raises(GitMissingError):
        vault.history.log()


def test_a_missing_git_is_said_so_by_the_first_call_of_a_process(vault):
    script = (
        "import os, pathlib, sys; os.environ['PATH'] = '/nowhere'\n"
        "from quaid.history.vault_history import History; from quaid.settings import GitSettings\n"
        "from quaid.errors import GitMissingError\n"
        "try: History(pathlib.Path(sys.argv[1]), GitSettings()).log()\n"
        "except GitMissingError: print('missing')"
    )
    done = subprocess.run([sys.executable, "-c", script, str(vault.root)], capture_output=True, check=True, text=True)
    assert done.stdout == "missing\n"


def shim_git(monkeypatch, tmp_path: Path, script: str) -> None:
    """Put a `git` first on the PATH that runs `script` and then, unless it left, the real one as "$real"."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "git").write_text(f'#!/bin/sh\nreal="{shutil.which("git")}"\n{script}\nexec "$real" "$@"\n')
    (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


@pytest.mark.parametrize(
    "words",
    [
        "fatal: unable to write new index file: No space left on device",
        "fatal: sha1 file '.git/index.lock' write error. Out of diskspace",
    ],
)
@pytest.mark.parametrize("command", ["update-index", "commit", "diff-index"])
def test_a_full_disk_is_said_so_and_changes_nothing(vault, monkeypatch, tmp_path, command, words):
    edit = vault.edit("facts/b.md", NOTE)
    before, index = vault.head(), vault.index()
    shim_git(monkeypatch, tmp_path, f'for a in "$@"; do [ "$a" = {command} ] && echo "{words}" >&2 && exit 128; done')
    with pytest.raises(DiskFullError):
        vault.history.commit([edit], SAY)
    assert (vault.head(), vault.index()) == (before, index)
    assert vault.strays() == []


@pytest.mark.parametrize(("number", "error"), [(28, DiskFullError), (30, VaultReadOnlyError), (5, OSError)])
def test_a_private_folder_that_cannot_be_written_is_said_so(vault, monkeypatch, number, error):
    def fail(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(private_git_dir.shutil, "copyfile", fail)
    with pytest.raises(error):
        vault.commit("facts/b.md", NOTE)
    assert vault.strays() == []


def test_a_broken_repository_is_said_so_in_gits_words(vault):
    (vault.root / ".git/index").write_bytes(b"broken")
    with pytest.raises(GitError, match="index file"):
        vault.commit("facts/b.md", NOTE)
    (vault.root / ".git/HEAD").unlink()
    with pytest.raises(GitError):
        vault.history.state()


KILLED = """
import os, pathlib, sys
from quaid.settings import GitSettings
from quaid.model import Edit
from quaid.history import {module} as module
from quaid.history.vault_history import History
from quaid.model import Message
def die(*_): os._exit(9)
{target} = die
History(pathlib.Path(sys.argv[1]), GitSettings()).commit([Edit("facts/a.md", {before!r}, {after!r})], Message("killed"))
"""


def kill(vault: Vault, module: str, target: str, before: bytes | None = NOTE) -> None:
    vault.write("facts/a.md", ours())
    script = KILLED.format(module=module, target=target, before=before, after=ours())
    done = subprocess.run([sys.executable, "-c", script, str(vault.root)], check=False, cwd=Path.cwd())
    assert done.returncode == 9


def test_killed_before_the_commit_only_a_private_folder_is_left(vault):
    before, index = vault.head(), vault.index()
    kill(vault, "vault_history", "module.History._create_commit")
    assert (vault.head(), vault.index()) == (before, index)
    (stray,) = (vault.root / ".git").glob("quaid-commit-*")
    vault.history.recover()
    assert not stray.exists()
    assert vault.history.commit([Edit("facts/a.md", NOTE, ours())], SAY).id
    vault.assert_sound()


@pytest.mark.parametrize("branch", [["-q", "main"], ["-q", "--detach"]])
def test_killed_after_the_commit_the_index_is_caught_up_by_the_next_call(vault, branch):
    vault.run("checkout", *branch)
    vault.write("other.md", theirs())
    vault.run("add", "other.md")
    kill(vault, "staging", "module.update_users_index")
    assert vault.history.log(limit=1)[0].subject == "killed"
    assert vault.status() == "MM facts/a.md\nM  other.md\n"
    assert b"index.lock" in vault.run("commit", "-m", "would undo it", check=False).stderr
    vault.history.recover()
    assert vault.status() == "M  other.md\n"
    vault.assert_sound()


def age(vault: Vault) -> None:
    """What a kill left was left hours ago."""
    old = time.time() - 2 * HOUR_S
    for path in [*(vault.root / ".git").glob("quaid-*/*"), *(vault.root / ".git").glob("quaid-*")]:
        os.utime(path, (old, old))


@pytest.mark.parametrize("is_lock_removed", [False, True])
def test_a_commit_that_was_killed_hours_ago_is_finished_as_well(vault, is_lock_removed):
    """Thrown away unfinished, the owner's next commit would undo it."""
    kill(vault, "staging", "module.update_users_index")
    age(vault)
    if is_lock_removed:  # as git told the owner to
        (vault.root / ".git/index.lock").unlink()
    vault.history.wait_until_ready()
    vault.history.recover()
    vault.write("mine.md", b"mine\n")
    vault.run("add", "mine.md")
    vault.run("commit", "-q", "-m", "owner")
    assert vault.show("HEAD:facts/a.md") == ours()
    vault.assert_sound()


def test_a_lock_of_our_own_that_a_kill_left_is_known_and_not_waited_for(vault):
    patient = Vault(vault.root, wait_s=60)
    kill(vault, "staging", "module.update_users_index")
    assert vault.history.is_lock_abandoned
    began = time.monotonic()
    assert patient.commit("facts/b.md", NOTE).id
    assert time.monotonic() - began < 30
    assert vault.status() == ""
    vault.assert_sound()


def test_a_lock_whose_folder_is_gone_is_removed(vault):
    (vault.root / ".git/index.lock").write_text(f"quaid-commit-1-{vault.head()}-ab\n")
    assert vault.commit("facts/b.md", NOTE).id
    assert vault.status() == ""


@pytest.mark.parametrize("content", [b"", b"DIRC\0\0\0\2", b"quaid-commit-/../..", b"../quaid-commit-1-2-3"])
def test_a_lock_of_anybody_else_is_never_removed(vault, content):
    (vault.root / ".git/index.lock").write_bytes(content)
    with pytest.raises(LockedError):
        vault.commit("facts/b.md", NOTE)
    assert (vault.root / ".git/index.lock").read_bytes() == content


def test_a_commit_whose_git_outlived_its_maker_is_waited_for_and_finished(vault):
    """The process is killed in the commit-msg hook, behind the guard; its git goes on."""
    vault.hook("commit-msg", "touch .git/reached; sleep 0.5")
    vault.write("facts/a.md", ours())
    script = KILLED.format(module="staging", target="module.unused", before=NOTE, after=ours())
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(vault.root)], cwd=Path.cwd(), stderr=subprocess.DEVNULL
    )
    while not (vault.root / ".git/reached").exists():
        time.sleep(0.01)
    process.kill()
    process.wait()
    assert not vault.history.is_lock_abandoned
    assert Vault(vault.root, wait_s=20).commit("facts/b.md", NOTE).id
    assert [commit.subject for commit in vault.history.log(limit=2)] == ["remember: a fact", "killed"]
    assert vault.status() == ""
    vault.assert_sound()


def test_the_lock_of_a_branch_that_a_killed_git_left_is_removed(vault, monkeypatch):
    monkeypatch.setattr(private_git_dir, "REF_LOCK_S", 0.1)
    kill(vault, "vault_history", "module.History._create_commit")
    (vault.root / ".git/refs/heads/main.lock").touch()
    assert vault.history.commit([Edit("facts/a.md", NOTE, ours())], SAY).id
    vault.assert_sound()


@pytest.mark.parametrize("has_links", [True, False])
def test_only_one_has_the_lock_of_the_index_with_hard_links_or_without(vault, tmp_path, monkeypatch, has_links):
    def refuse(*_args, **_options):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    found = repository.find_repository(vault.root)
    locks = [IndexLock(found, found.git_dir / f"quaid-commit-{number}") for number in (1, 2)]
    for lock in locks:
        lock.folder.mkdir()
        lock.claim()
        (lock.folder / "alive").touch()

    def take_by_shell(lock: IndexLock) -> bool:
        command = lock.take_command() if has_links else lock.take_command().replace("ln ", "false ")
        return subprocess.run(["sh", "-c", command], check=False).returncode == 0

    if not has_links:
        monkeypatch.setattr(os, "link", refuse)
    for take in (IndexLock.take, take_by_shell):
        with index_lock.alive(locks[0].folder):
            assert [take(lock) for lock in (*locks, locks[0])] == [True, False, True]
            locks[1].release()
            assert locks[0].is_held()
            locks[0].release()
        assert not found.index_lock.exists()


@pytest.mark.parametrize("head", ["ref: ../../outside/held", "ref: refs/../../../outside/held", "ref: /{outside}/held"])
def test_a_hostile_private_folder_unlocks_nothing_outside(vault, tmp_path, monkeypatch, head):
    monkeypatch.setattr(private_git_dir, "REF_LOCK_S", 0.0)
    outside = tmp_path / "outside"
    outside.mkdir()
    stray = vault.root / ".git" / f"quaid-commit-1-{vault.head()}-ab"
    stray.mkdir()
    (stray / "alive").touch()
    (stray / "HEAD").write_text(head.format(outside=outside))
    (outside / "held.lock").touch()
    (vault.root / ".git/quaid-commit-2-3-4").symlink_to(outside)
    vault.history.recover()
    assert (outside / "held.lock").exists()
    assert vault.strays() == ["quaid-commit-2-3-4"]


def test_a_folder_that_cannot_be_finished_is_set_aside_and_named(vault):
    kill(vault, "staging", "module.update_users_index")
    (stray,) = (vault.root / ".git").glob("quaid-commit-*")
    (stray / "index").write_bytes(b"no index")
    assert vault.commit("facts/b.md", NOTE).id
    (unfinished,) = intent_log.list_unfinished(vault.root)
    assert "killed process" in unfinished.reason
    assert (unfinished.folder / stray.name / "index").exists()
    assert not vault.history.is_lock_abandoned


def test_the_first_commit_is_caught_up_with_too(empty):
    empty.write("facts/a.md", NOTE)
    kill(empty, "staging", "module.update_users_index", before=None)
    assert empty.status() == "D  facts/a.md\n?? facts/a.md\n"
    empty.history.recover()
    assert empty.status() == ""


def test_a_stray_folder_of_a_commit_that_was_not_made_changes_nothing(vault):
    vault.write("facts/a.md", ours())
    vault.run("add", "facts/a.md")
    strays = [vault.root / ".git" / f"quaid-commit-999999999-{vault.head()}-{name}" for name in ("ab", "cd")]
    for stray in strays:
        stray.mkdir()
        (stray / "alive").touch()
    shutil.copy(vault.root / ".git/index", strays[0])
    vault.save("other.md", theirs())
    vault.history.recover()
    assert vault.strays() == []
    assert vault.status() == "M  facts/a.md\n"


def test_strays_go_after_an_hour_and_others_files_never(vault):
    git_dir = vault.root / ".git"
    old = time.time() - 2 * HOUR_S
    for name in ("quaid-commit-1", f"quaid-commit-999999999-{vault.head()}-ab", "mine"):
        (git_dir / name).mkdir()
        os.utime(git_dir / name, (old, old))
    (git_dir / "quaid-commit-2").mkdir()
    vault.commit("facts/b.md", NOTE)
    assert vault.strays() == ["quaid-commit-2"]
    assert (git_dir / "mine").exists()


# --- reading


def test_state_reads_loose_and_packed_refs_and_the_unborn_branch(empty):
    assert empty.history.state() == history_module.RepositoryState("main", None, None, False, False)
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
        "root = pathlib.Path(sys.argv[1]); History.find_repository(root); History(root, GitSettings()).state()\n"
        "History(root, GitSettings()).wait_until_ready(); sys.exit('git' in sys.modules or 'tenacity' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script, str(vault.root)], check=True)


# --- whatever state the user is in


def change_line(rng: random.Random, data: bytes, lines: range, word: bytes) -> bytes:
    parts = data.split(b"\n")
    number = rng.choice(lines)
    parts[number] = word + b" %d" % rng.randrange(1000)
    return b"\n".join(parts)


@pytest.mark.parametrize("seed", range(12))
def test_a_commit_of_ours_leaves_any_state_of_the_user_intact(empty, seed):
    """Line 10 and 20 of each note are Quaid's, lines 0-8 are staged by the user, 12-18 and 22-28 are not."""
    rng = random.Random(seed)
    vault = empty
    note = b"".join(b"line %d\n" % i for i in range(30))
    names = [f"n{i} ü.md" for i in range(6)]
    for name in names:
        vault.write(name, note)
    vault.run("add", "-A")
    vault.run("commit", "-qm", "start")
    for name in rng.sample(names, 4):
        if rng.random() < 0.6:
            vault.write(name, change_line(rng, vault.read(name), range(9), b"staged"))
            vault.run("add", name)
        if rng.random() < 0.6:
            vault.write(name, change_line(rng, vault.read(name), range(12, 19), b"unstaged"))
    vault.write("untracked.md", b"untracked\n")
    if rng.random() < 0.5:
        vault.write("added.md", b"added\n")
        vault.run("add", "added.md")
    if rng.random() < 0.5:
        vault.run("rm", "-qf", names[5])
    chosen = [name for name in rng.sample(names, rng.randint(1, 3)) if vault.read(name) is not None]
    rest = [name for name in names if name not in chosen]
    index = {name: vault.run("cat-file", "blob", f":{name}", check=False).stdout for name in names}
    disk = {name: vault.read(name) for name in names}
    before = [vault.git(*command, "--", "added.md", *rest) for command in (("diff",), ("diff", "--cached"))]

    ours_of = lambda data: data.replace(b"line 10\n", b"quaid 10\n").replace(b"line 20\n", b"quaid 20\n")  # noqa: E731
    edits = [vault.edit(name, ours_of(disk[name])) for name in chosen] + [vault.edit("new.md", b"new\n")]
    done = vault.history.commit(edits, SAY)

    assert done.left == ()
    assert sorted(vault.files()) == sorted([*chosen, "new.md"])
    assert before == [vault.git(*command, "--", "added.md", *rest) for command in (("diff",), ("diff", "--cached"))]
    for name in chosen:
        assert vault.show(f"HEAD:{name}") == ours_of(note)
        assert vault.show(f":{name}") == ours_of(index[name])
        assert vault.read(name) == ours_of(disk[name])
    assert vault.read("untracked.md") == b"untracked\n"
    vault.assert_sound()
