"""The owner's hooks and signature are run, heard and followed."""

from __future__ import annotations

import pytest
from git_vaults import NOTE, ours, theirs

from quaid.errors import GitError
from quaid.history import committing


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


def test_without_hooks_a_commit_is_what_git_commit_makes(vault):
    assert vault.commit("facts/b.md", NOTE).id
    plain = vault.git("log", "-1", "--format=%an|%ae|%cn|%ce|%B")
    assert vault.git("reflog", "-1", "--format=%gs").startswith("commit: ")
    vault.hook("post-commit", "true")
    assert vault.commit("facts/c.md", NOTE).id
    assert vault.git("log", "-1", "--format=%an|%ae|%cn|%ce|%B") == plain
    assert vault.status() == ""
    vault.assert_sound()


@pytest.mark.parametrize("key", ["core.hooksPath", "commit.gpgsign"])
def test_hooks_elsewhere_and_signing_are_left_to_git_commit(vault, monkeypatch, key):
    vault.git("config", key, "hooks" if key == "core.hooksPath" else "false")

    def refuse(*_):
        raise AssertionError("committed without git commit")

    monkeypatch.setattr(committing.Git, "commit_tree", refuse)
    assert vault.commit("facts/b.md", NOTE).id
