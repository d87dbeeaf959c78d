"""A vault may lie in a subfolder, a worktree, a submodule, on a detached HEAD."""

from __future__ import annotations

import os
import subprocess

import pytest
from git_vaults import NOTE, SAY, Vault, ours, theirs

from quaid.errors import GitError
from quaid.history.creation import create_repository
from quaid.history.repository import find_repository
from quaid.history.vault_history import History
from quaid.model import Edit
from quaid.settings import GitSettings


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
    assert find_repository(inner.root).top == vault.root.resolve()


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
    assert find_repository(root) is None
    with pytest.raises(GitError, match="is in none"):
        History(root, GitSettings()).state()
    create_repository(root)
    assert History(root, GitSettings()).state().branch == "main"
    create_repository(root / "deep")
    assert not (root / "deep" / ".git").exists()
    assert find_repository(root / "deep").top == root.resolve()


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
