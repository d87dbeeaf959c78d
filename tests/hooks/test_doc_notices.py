"""An agent is told of the documents that describe what it has changed, while it can still act."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta

import pytest
from hook_sessions import state
from source_repos import SourceRepo

from quaid.docs.registry import Project
from quaid.hooks import entry
from quaid.hooks.queue_worker import write_notices
from quaid.local import doc_notices, queue, sessions

SOURCE = "LIMIT = 10\n\n\nclass Schema:\n    def load(self, path):\n        return path\n\n    def save(self):\n        pass\n"
LINE = "code:docs/schemas.md describes `Schema.load`, which you changed."


@pytest.fixture
def repo(tmp_path):
    found = SourceRepo(tmp_path / "code")
    found.write("src/schema.py", SOURCE)
    page = found.write("docs/schemas.md", "# Schemas\n\nCall `Schema.load(path)`. A page has words.\n")
    other = found.write("docs/other.md", "# Other\n\nA page about loading and saving.\n")
    found.commit("begin")
    for path in (page, other):
        os.utime(path, (time.time() - 3_600,) * 2)
    return found


@pytest.fixture
def home(vault, repo):
    with vault.memory() as memory:
        memory.documentation.create(Project("code", source_roots=(str(repo.path),)))
    return vault


def change(home, repo, session="s1"):
    path = repo.write("src/schema.py", SOURCE.replace("load(self, path)", "load(self, path, strict=False)"))
    queue.note_edited(state(home), str(path), session)
    write_notices(home.root, session)


def prompt(home, session="s1", text="ok"):
    """Return the text that a prompt injects, and record it as delivered."""
    found = entry.answer("user-prompt-submit", home.root, {"prompt": text, "session_id": session})
    sessions.record(state(home), session, found.given)
    return found.text


def begin(home, repo, session="s2"):
    event = {"session_id": session, "source": "startup", "cwd": str(repo.path)}
    return entry.answer("session-start", home.root, event).text


def test_the_next_prompt_names_the_symbol_once(home, repo):
    assert LINE not in prompt(home)
    change(home, repo)
    assert LINE in prompt(home)
    assert LINE not in prompt(home)
    assert "code:docs" not in prompt(home, "another session")


def test_the_next_session_begins_with_it(home, repo):
    change(home, repo)
    assert "code:docs/schemas.md describes `Schema.load`, which an earlier session changed." in begin(home, repo)
    elsewhere = entry.answer("session-start", home.root, {"session_id": "s3", "source": "startup", "cwd": "/tmp"})
    assert "Schema.load" not in elsewhere.text


def test_a_commit_of_the_session_changes_nothing(home, repo):
    path = repo.write("src/schema.py", SOURCE.replace("load(self, path)", "load(self, path, strict=False)"))
    queue.note_edited(state(home), str(path), "s1")
    repo.commit("strict", datetime.now(UTC) + timedelta(minutes=1))
    write_notices(home.root, "s1")
    assert LINE in prompt(home)


@pytest.mark.parametrize("is_noted", [True, False])
def test_a_page_that_was_edited_too_is_not_named(home, repo, is_noted):
    change(home, repo)
    page = repo.write("docs/schemas.md", "# Schemas\n\nCall `Schema.load(path, strict)`.\n")
    if is_noted:
        queue.note_edited(state(home), str(page), "s1")
    assert prompt(home) == ""  # though the process did not run again
    assert "Schema.load" not in begin(home, repo)
    write_notices(home.root, "s1")
    assert doc_notices.read(state(home)) == []


def test_what_no_page_names_and_other_files_are_not_named(home, repo):
    edited = repo.write("src/schema.py", SOURCE.replace("pass", "return 1").replace("LIMIT = 10", "LIMIT = 20"))
    queue.note_edited(state(home), str(edited), "s1")
    queue.note_edited(state(home), "/etc/passwd", "s1")
    write_notices(home.root, "s1")
    assert prompt(home) == ""


def test_nothing_is_named_where_it_is_switched_off(home, repo):
    with home.memory() as memory:
        memory.configure("docs.check", "false")
    change(home, repo)
    assert prompt(home) == ""


def test_the_end_of_a_turn_starts_the_search_only_after_an_edit(home, repo, monkeypatch):
    started = []
    monkeypatch.setattr(
        entry.state_files, "start_detached", lambda module, arguments, _log: started.append((module, arguments))
    )
    entry.answer("stop", home.root, {"session_id": "s1"})
    assert started == []
    edit = {"tool_name": "Edit", "tool_input": {"file_path": str(repo.path / "src/schema.py")}, "session_id": "s1"}
    entry.answer("post-tool-use", home.root, edit)
    entry.answer("stop", home.root, {"session_id": "s1"})
    assert started == [("quaid.hooks.queue_worker", [str(home.root), "s1"])]
