"""A commit says what Quaid did, under the name of who did it."""

from __future__ import annotations

import subprocess

import pytest
from git_vaults import NOTE, SAY

from quaid.history.messages import render
from quaid.model import Message


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
