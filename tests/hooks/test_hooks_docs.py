"""What agents edit, followed to the documents that describe it."""

import json
import os
import signal
import subprocess
import sys

import pytest
from hook_sessions import state
from source_repos import SourceRepo
from vaults import wait_for

from quaid.docs.registry import Project
from quaid.hooks.queue_worker import run_worker
from quaid.local import queue


@pytest.fixture
def repo(tmp_path):
    found = SourceRepo(tmp_path / "code")
    found.write("src/reach.py", "REACH_LIMIT = 10\n")
    found.write("docs/reach.md", "# Reach\n\n`src/reach.py` has a `REACH_LIMIT` of ten quokkas.\n")
    found.commit("begin")
    return found


@pytest.fixture
def home(vault, repo, monkeypatch):
    monkeypatch.setenv("QUAID_NOTIFICATIONS_CHANNELS", "file")
    with vault.memory() as memory:
        memory.documentation.create(Project("code", source_roots=(str(repo.path),)))
    return vault


def news(home):
    path = state(home) / "log" / "news.log"
    return path.read_text() if path.exists() else ""


def edit(home, path):
    queue.note_edited(state(home), str(path), "s1")


def test_what_describes_an_edited_file_is_named(home, repo):
    edit(home, repo.write("src/reach.py", "REACH_LIMIT = 20\n"))
    edit(home, "/etc/passwd")
    run_worker(home.root)
    assert "Documents about what agents changed:\n  - code:docs/reach.md describes `REACH_LIMIT`" in news(home)
    assert not queue.has_edited(state(home))


def test_an_edited_document_can_be_found_at_once(home, repo):
    edit(home, repo.write("docs/reach.md", "# Reach\n\nAll wombats are counted by `src/reach.py`.\n"))
    run_worker(home.root)
    assert news(home) == ""
    with home.memory() as memory:
        found, _ = memory.documentation.search("wombats")
    assert [hit.doc for hit in found.hits] == ["code:docs/reach.md"]


def test_nothing_is_said_where_it_is_switched_off(home, repo):
    for key, value in (("systems.projects", "false"), ("docs.check", "false")):
        with home.memory() as memory:
            memory.configure(key, value)
        edit(home, repo.write("src/reach.py", "REACH_LIMIT = 30\n"))
        run_worker(home.root)
        assert (news(home), queue.has_edited(state(home))) == ("", False)
        with home.memory() as memory:
            memory.configure(key, "true")


def test_a_worker_that_is_killed_leaves_the_edits_to_the_next(home, repo):
    edit(home, repo.write("src/reach.py", "REACH_LIMIT = 20\n"))
    code = (
        "import sys, os; from pathlib import Path; import quaid.docs.documentation as f; "
        "f.Documentation.follow = lambda *_: os.kill(os.getpid(), 9); "
        "from quaid.hooks.queue_worker import run_worker; run_worker(Path(sys.argv[1]))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(home.root)], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL
    edit(home, repo.path / "src/other.py")
    run_worker(home.root)
    assert "code:docs/reach.md describes `REACH_LIMIT`" in news(home)


def test_the_hooks_lead_there(home, repo):
    environ = {**os.environ, "QUAID_HOME": str(home.root), "CLAUDE_PROJECT_DIR": ""}

    def hook(name, **event):
        command = [sys.executable, "-m", "quaid", "hook", name]
        given = json.dumps({"session_id": "s1", "cwd": str(repo.path), **event})
        return subprocess.run(command, input=given, text=True, capture_output=True, check=True, env=environ)

    path = repo.write("src/reach.py", "REACH_LIMIT = 20\n")
    hook("post-tool-use", tool_name="Edit", tool_input={"file_path": str(path)})
    assert queue.has_edited(state(home))
    hook("session-end", reason="other")  # starts the worker, though there is no transcript
    wait_for(lambda: "code:docs/reach.md" in news(home), "news of the edit")
