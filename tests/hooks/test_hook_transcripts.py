"""A hook and its queue take in what an agent's program wrote where it writes, and can be made to read or delete nothing else."""

from __future__ import annotations

import json
import os
import socket
import tempfile
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hook_sessions import talk
from vaults import Vault, copy_vault

from quaid.errors import BadInputError
from quaid.hooks import transcripts
from quaid.hooks.entry import answer
from quaid.hooks.queue_worker import run_worker
from quaid.local import queue
from quaid.local.queue import QueuedItem
from quaid.place import state_folder

SECRET = "DATABASE_PASSWORD=correct-horse-battery\nuser: hello there\nassistant: hello to you\n"


@pytest.fixture
def vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Vault:
    monkeypatch.setenv("QUAID_EMBEDDING_PROVIDER", "none")
    monkeypatch.setenv("QUAID_MODELS_PROVIDER", "none")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "OPENCLAW_STATE_DIR"):
        monkeypatch.delenv(name, raising=False)
    return copy_vault(tmp_path / "vault")


@pytest.fixture
def own(vault: Vault, tmp_path: Path) -> Path:
    """The folder of a project in which Claude Code keeps its sessions."""
    folder = tmp_path / "home/.claude/projects/-x"
    folder.mkdir(parents=True)
    return folder


def end(vault: Vault, path: object, **more: Any) -> None:
    answer("session-end", vault.root, {"session_id": "s1", "transcript_path": str(path), **more})


def put(vault: Vault, **fields: Any) -> Path:
    """An item that somebody wrote into the queue, under the name that Quaid would give it."""
    item = {**asdict(QueuedItem("s1", "", "now", "session", 1.0)), **fields}
    name = "x.json"
    with tempfile.TemporaryDirectory() as other, suppress(AttributeError, TypeError, OSError):
        queue.put(Path(other), QueuedItem(**item))
        name = next(Path(other, queue.FOLDER).iterdir()).name
    return vault.write_state(f"queue/{name}", json.dumps(item))


def episodes(vault: Vault) -> list[str]:
    return [path.read_text() for path in vault.root.glob("episodes/**/*.md")]


def lie(folder: Path, tmp_path: Path) -> dict[str, Path]:
    """What a hook may be told is a transcript, and is not."""
    outside = tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    for place in (outside / ".env", outside / "talk.jsonl", outside / "deep/talk.jsonl", folder / "notes.txt"):
        place.write_text(SECRET)
    real = Path(talk(outside / "real.jsonl"))
    (folder / "link.jsonl").symlink_to(outside / "talk.jsonl")
    (folder / "real.jsonl").symlink_to(real)
    (folder / "folder").symlink_to(outside / "deep")
    (folder / "directory.jsonl").mkdir()
    os.mkfifo(folder / "pipe.jsonl")
    return {
        "outside": outside / ".env", "a transcript outside": real, "a password file": Path("/etc/passwd"),
        "a device": Path("/dev/zero"), "link": folder / "link.jsonl", "a link to a transcript": folder / "real.jsonl",
        "below a link": folder / "folder/talk.jsonl", "up": folder / "../../../../outside/talk.jsonl",
        "another suffix": folder / "notes.txt", "folder": folder / "directory.jsonl", "pipe": folder / "pipe.jsonl",
        "relative": Path("talk.jsonl"), "the folder itself": folder.parent,
    }  # fmt: skip


def test_a_hook_queues_no_other_file(vault: Vault, own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "talk.jsonl").write_text(SECRET)
    for name, path in lie(own, tmp_path).items():
        with pytest.raises((BadInputError, OSError)):
            end(vault, path)
        assert queue.waiting(state_folder(vault.root)) == [], name


def test_the_worker_reads_no_other_file_whatever_the_queue_says(vault: Vault, own: Path, tmp_path: Path) -> None:
    for name, path in lie(own, tmp_path).items():
        for fields in ({}, {"when": "idle"}, {"spooled": True}):
            put(vault, transcript=str(path), **fields)
            before = path.lstat() if path.is_absolute() else None
            assert run_worker(vault.root, idle_s=0.0) == 0, name
            assert before is None or path.lstat().st_ino == before.st_ino
    assert episodes(vault) == []


@pytest.mark.parametrize("content", [
    SECRET, "", "user: hello\nassistant: hi\n", '{"role": "user", "content": "hello there"}\n', '{"a": 1}\n', "[core]\n\tbare = false\n",
    '{"title": "x", "mapping": {}, "create_time": 1}', "PK\x03\x04zip", "root:$6$abc:19000:0:99999:7:::\n",
])  # fmt: skip
def test_what_no_agent_writes_is_no_conversation(vault: Vault, own: Path, content: str) -> None:
    (own / "s1.jsonl").write_text(content)
    end(vault, own / "s1.jsonl")
    assert run_worker(vault.root) == 0
    assert episodes(vault) == []
    (failed,) = queue.failed(state_folder(vault.root))
    assert "quaid extract" in failed.problem


def test_a_file_that_is_exchanged_for_a_link_is_not_followed(vault: Vault, own: Path, tmp_path: Path) -> None:
    outside = Path(talk(tmp_path / "elsewhere.jsonl"))
    session = own / "s1.jsonl"
    session.write_bytes(outside.read_bytes())
    end(vault, session)
    session.unlink()
    session.symlink_to(outside)
    assert run_worker(vault.root) == 0
    assert episodes(vault) == []


def test_each_programs_own_sessions_are_taken_in(vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = Path(talk(tmp_path / "talk.jsonl")).read_bytes()
    home = tmp_path / "home"
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    places = [
        home / ".claude/projects/-x/a.jsonl", home / ".claude/projects/-x/a/subagents/agent-1.jsonl",
        tmp_path / "codex/sessions/2026/11/20/rollout-1.jsonl", home / ".gemini/tmp/1f/chats/session-1.jsonl",
        home / ".openclaw/agents/main/sessions/s.jsonl",
    ]  # fmt: skip
    for place in places:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
        with transcripts.open_transcript(str(place)) as opened:
            assert opened.read() == data
    linked = tmp_path / "dotfiles"
    (home / ".claude").rename(linked)
    (home / ".claude").symlink_to(linked)
    end(vault, places[0])
    assert run_worker(vault.root) == 1
    assert "quokka" in episodes(vault)[0]


def test_messages_of_a_program_without_transcripts_are_taken_in(vault: Vault) -> None:
    said = [
        {"role": "user", "content": "We adopted a quokka called Biscuit."},
        {"role": "assistant", "content": "Lovely!"},
    ]
    answer("session-end", vault.root, {"session_id": "s1", "messages": said})
    assert run_worker(vault.root) == 1
    assert "quokka" in episodes(vault)[0]
    assert not list((state_folder(vault.root) / "queue").glob("*.jsonl"))


@pytest.mark.parametrize("fields", [
    {"when": "../../../precious"}, {"when": "now/../../precious"}, {"transcript": 7}, {"at": "x"}, {"attempts": True}, {"spooled": 1},
    {"transcript": "../../../precious.md", "spooled": True}, {"transcript": "edited.jsonl", "spooled": True},
    {"transcript": "/etc/passwd", "spooled": True}, {"transcript": "", "spooled": True}, {"session": None}, {"reason": ["x"]},
])  # fmt: skip
def test_an_item_of_the_queue_deletes_and_reads_nothing_else(vault: Vault, fields: dict[str, Any]) -> None:
    precious = [
        vault.write("precious.md", "x"),
        vault.write("precious.json", "{}"),
        vault.write_state("precious.md", "x"),
    ]
    precious.append(vault.write_state("queue/edited.jsonl", '{"path": "/a"}\n'))
    put(vault, **fields)
    queue_folder = state_folder(vault.root)
    for item in queue.waiting(queue_folder):
        queue.fail(queue_folder, item, "problem")
        queue.done(queue_folder, item)
    assert all(path.exists() for path in precious)


def test_a_socket_in_the_folder_of_sessions_holds_nobody_up(
    vault: Vault, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(own)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("s.jsonl")
        with pytest.raises((BadInputError, OSError)):
            end(vault, own / "s.jsonl")


def test_a_session_in_which_nothing_was_said_is_no_trouble(vault: Vault, own: Path) -> None:
    end(vault, own / "none.jsonl")
    assert queue.waiting(state_folder(vault.root)) == []


def test_an_item_under_another_name_does_not_keep_the_worker_busy(vault: Vault) -> None:
    item = QueuedItem("s1", "/nowhere.jsonl", "now", "session", 1.0)
    vault.write_state("queue/other.now.json", json.dumps(asdict(item)))
    assert run_worker(vault.root) == 0
    assert queue.waiting(state_folder(vault.root)) == []
