"""No secret gets in or out by any door: one is pushed through each, and every byte that is left is searched for it."""

from __future__ import annotations

import io
import json
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from mcp_host import talk as talk_to_server
from replay import Replay, facts_of, write_talk
from secret_samples import KEYS
from vaults import Vault

from quaid.cli.main import main
from quaid.embed import services
from quaid.hooks import entry
from quaid.local import hook_log, quarantine, queue
from quaid.local.notifications import deliver
from quaid.local.session_notes import SessionNotes
from quaid.model import Edit, Message
from quaid.place import LOCAL_FILE, state_folder
from quaid.redaction import admit
from quaid.report.bug_report import write_report
from quaid.settings import EmbeddingSettings, NotificationSettings

NOW = datetime(2026, 11, 20, tzinfo=UTC)
SECRET = KEYS["github-pat"]
NOTES = {"USER.md": f"# User\n\nMaya's key is {SECRET}.\n"}
ANSWER = facts_of(f"Maya's key is {SECRET}.", "Maya adopted a quokka.") | {
    "snippets": {"USER.md": [f"keeps {SECRET} at hand"]},
    "journal": {"SOUL.md": f"Maya told me {SECRET}."},
}


class Ground:
    """A vault, a model service, and the ways in."""

    def __init__(self, vault: Vault, folder: Path, service: Replay, monkeypatch: pytest.MonkeyPatch) -> None:
        self.vault, self.folder, self.service, self.monkeypatch = vault, folder, service, monkeypatch
        self.state = state_folder(vault.root)

    def quaid(self, *arguments: str) -> int:
        return main([*arguments, "--vault", str(self.vault.root)])

    def hook(self, event: str, **given: object) -> None:
        data = json.dumps({"session_id": "s1", "cwd": str(self.vault.root), **given}).encode()
        self.monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
        self.monkeypatch.setattr("quaid.hooks.entry.start_worker", lambda _: None)
        assert entry.main([event, "--vault", str(self.vault.root)]) == 0

    def write(self, name: str, text: str) -> str:
        path = self.folder / "given" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return str(path)

    def talk(self, *said: str, session: str = "s1", name: str = "talk.jsonl") -> str:
        (self.folder / "given").mkdir(exist_ok=True)
        return str(write_talk(self.folder / "given" / name, *said, session=session))

    def project(self, **files: str) -> str:
        folder = self.folder / "given" / "boat"
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / f"{name}.md").write_text(text)
        return str(folder)

    def serve(self, tool: str, **arguments: object) -> str:
        """What the MCP server answers a call."""
        said = []

        async def body(client) -> None:
            result = await client.call_tool(tool, arguments)
            said.append(result.model_dump_json())

        talk_to_server(self.vault.root, body)
        return said[0]

    def leaks(self, secret: str = SECRET) -> list[str]:
        """Where the secret stands: the vault with all of git's objects, the state folder, and what went over the wire."""
        found = [
            str(path)
            for root in {self.vault.root, self.state}
            for path in root.rglob("*")
            if secret in path.name or (path.is_file() and secret.encode() in path.read_bytes())
        ]
        listed = ["git", "cat-file", "--batch-all-objects", "--batch", "--buffer"]
        objects = subprocess.run(listed, cwd=self.vault.root, capture_output=True, check=True).stdout
        found += ["git's objects"] * (secret.encode() in objects)
        return found + [path for path, body, _ in self.service.requests if secret in json.dumps(body)]


@pytest.fixture
def ground(vault, tmp_path, monkeypatch) -> Iterator[Ground]:
    service = Replay({"s1": ANSWER, "": facts_of("Maya adopted a quokka.")})
    monkeypatch.setattr("quaid.http.FIRST_WAIT_S", 0.02)
    for name, value in {**service.environ(), "QUAID_CACHE_DIR": str(tmp_path / "cache")}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("QUAID_RECALL_GAPS", "text")
    monkeypatch.setenv("QUAID_NOTIFICATIONS_CHANNELS", "file")
    monkeypatch.setenv("QUAID_NOTIFICATIONS_LEVEL", "debug")
    yield Ground(vault, tmp_path, service, monkeypatch)
    service.close()


DOORS: dict[str, Callable[[Ground], object]] = {
    # What is told to be kept
    "remember": lambda on: on.quaid("remember", f"Maya's key is {SECRET}"),
    "who said it": lambda on: on.quaid("remember", "Maya has a key", "--speaker", SECRET),
    "the session it was said in": lambda on: on.quaid("remember", "Maya has a key", "--session", SECRET),
    "the project it is of": lambda on: on.quaid("remember", "Maya has a key", "--project", SECRET),
    "link": lambda on: on.quaid("link", f"Maya {SECRET}", "owns", "a key"),
    "a relation": lambda on: on.quaid("link", "Maya", f"has {SECRET}", "a key"),
    "note": lambda on: on.quaid("note", f"the key is {SECRET}"),
    "the session of a note": lambda on: on.quaid("note", "call back", "--session", SECRET),
    "a note to self": lambda on: SessionNotes(on.state / LOCAL_FILE).add(SECRET, SECRET, NOW),
    "config": lambda on: on.quaid("config", "set", "owner_name", SECRET),
    # Conversations
    "a conversation": lambda on: on.quaid("extract", on.talk(f"my key is {SECRET}", "noted")),
    "the name of a session": lambda on: on.quaid("extract", on.talk("hello", "hi"), "--session", SECRET),
    "the session in a file": lambda on: on.quaid("extract", on.talk("hello", "hi", session=SECRET)),
    "the name of a transcript": lambda on: on.quaid("extract", on.talk("hello", "hi", name=f"{SECRET}.jsonl")),
    "a transcript that is none": lambda on: on.quaid("extract", on.write(f"{SECRET}.jsonl", "{}")),
    "a speaker": lambda on: on.quaid("extract", on.write("t.txt", f"{SECRET}: hello\nTom: hi\n")),
    "what a model answers": lambda on: on.quaid("extract", on.talk("We adopted a quokka.", "Lovely.")),
    "an answer of no use": lambda on: (
        on.service.script.extend([SECRET, f"{{{SECRET}"]),
        on.quaid("extract", on.talk("We adopted a quokka.", "Lovely.")),
    ),
    "a service that refuses": lambda on: (
        on.service.script.extend([(400, {"error": {"message": f"no {SECRET}"}}, {})] * 3),
        on.quaid("extract", on.talk("We adopted a quokka.", "Lovely.")),
    ),
    # Files
    "a file": lambda on: on.quaid("analyze", on.write("manual.md", f"# Manual\n\nThe key is {SECRET}.\n")),
    "the name of a file": lambda on: on.quaid("analyze", on.write(f"{SECRET}.md", "# Manual\n\nTurn it on.\n")),
    "the question of a file": lambda on: on.quaid(
        "analyze", on.write("manual.md", "# Manual\n\nTurn it on.\n"), "--question", f"what is {SECRET}?"
    ),
    "a memory of another program": lambda on: on.quaid("import", on.write("MEMORY.md", f"- The key is {SECRET}\n")),
    "the name of one": lambda on: on.quaid("import", on.write(f"{SECRET}.md", "- Maya likes tea\n")),
    # Questions
    "recall": lambda on: on.quaid("recall", f"what is {SECRET}?"),
    "recall in JSON": lambda on: on.quaid("recall", f"what is {SECRET}?", "--json"),
    "recall in a session": lambda on: on.quaid("recall", "what is it?", "--session", SECRET),
    "search": lambda on: on.quaid("search", SECRET),
    "a note that is not there": lambda on: on.quaid("get", SECRET),
    "what cannot be forgotten": lambda on: on.quaid("forget", SECRET),
    "why": lambda on: on.quaid("why", SECRET),
    "a command that is none": lambda on: on.quaid(SECRET),
    "an option that is none": lambda on: on.quaid("recall", "x", "--depth", SECRET),
    "a vault that is none": lambda on: main(["status", "--vault", f"/nowhere/{SECRET}"]),
    "eval": lambda on: on.quaid("eval", on.write("q.md", f"- where is {SECRET}? → [[USER]]\n")),
    # Projects and documents
    "a project": lambda on: on.quaid("project", "create", SECRET),
    "the label of a project": lambda on: on.quaid("project", "create", "boat", "--label", f"Boat {SECRET}"),
    "what a README says": lambda on: on.quaid(
        "project", "create", "boat", "--root", on.project(README=f"# Boat\n\nThe key is {SECRET}.\n")
    ),
    "a document": lambda on: (
        on.quaid("project", "create", "boat", "--root", on.project(TOOLS=f"# Tools\n\nThe key is {SECRET}.\n")),
        on.quaid("docs", "search", "tools key"),
        on.quaid("docs", "list"),
        on.quaid("docs", "read", "TOOLS.md"),
    ),
    "a question to documents": lambda on: on.quaid("docs", "search", SECRET),
    # Hooks
    "a prompt": lambda on: on.hook("user-prompt-submit", prompt=f"What did I say about the key {SECRET}?"),
    "the session of a hook": lambda on: on.hook("user-prompt-submit", prompt="Where is the kiln?", session_id=SECRET),
    "an event that is none": lambda on: on.hook(SECRET),
    "spooled messages": lambda on: on.hook(
        "pre-compact", messages=[{"role": "user", "content": f"my key is {SECRET}"}]
    ),
    "what a queue item died of": lambda on: queue.put(
        on.state, queue.QueuedItem("s1", "/x", "now", "session", 1.0, problem=f"no {SECRET}")
    ),
    "an edited file": lambda on: on.hook("post-tool-use", tool_name="Edit", tool_input={"file_path": f"/x/{SECRET}"}),
    "the log of hooks": lambda on: hook_log.write(on.state, "stop", 1.0, f"failed with {SECRET}"),
    # What is kept and told of trouble
    "a bug": lambda on: write_report(ValueError(SECRET), ["recall", SECRET], on.vault.root),
    "quarantine": lambda on: quarantine.put(
        on.state, "2026-11-20T14:00:00", SECRET, SECRET, raw=SECRET, left_out=((SECRET, "x"),)
    ),
    "news": lambda on: deliver(
        on.vault.root, NotificationSettings(channels="file", level="debug"), "janitor", f"merged {SECRET}"
    ),
    "a commit": lambda on: commit(on, Message(f"x: {SECRET}", f"why {SECRET}", (("Quaid-Session", SECRET),))),
    "a setting that is none": lambda on: on.quaid("config", "set", SECRET, "1"),
    # The MCP server
    "memory_store": lambda on: on.serve("memory_store", text=f"Maya's key is {SECRET}"),
    "memory_note": lambda on: on.serve("memory_note", text=f"the key is {SECRET}"),
    "memory_recall": lambda on: on.serve("memory_recall", query=f"what is {SECRET}?"),
    "memory_get": lambda on: on.serve("memory_get", ref=SECRET),
    "memory_extract": lambda on: on.serve("memory_extract", transcript=f"Maya: my key is {SECRET}\nTom: hi\n"),
    "a tool that is none": lambda on: on.serve(SECRET),
    "an argument that is none": lambda on: on.serve("memory_recall", query="x", **{SECRET: 1}),
    "project_create": lambda on: on.serve("project_create", name=SECRET),
}


def commit(on: Ground, message: Message) -> None:
    path = on.vault.write("x.md", "x\n")
    with on.vault.memory() as memory:
        memory.git.commit([Edit("x.md", None, path.read_bytes())], message)


@pytest.mark.parametrize("door", DOORS)
def test_no_secret_gets_in(ground, capfd, door):
    said = DOORS[door](ground)
    out, err = capfd.readouterr()
    assert [*ground.leaks(), *(name for name, text in (("stdout", out), ("stderr", err)) if SECRET in text)] == []
    assert SECRET not in str(said)


def test_a_password_that_is_told_in_the_next_turn_is_kept_nowhere(ground, capfd):
    ground.quaid("extract", ground.talk("Can you log in?", "What is the password?", "swordfish-77", "Thanks."))
    ground.hook("pre-compact", messages=[
        {"role": "assistant", "content": "What is the password?"}, {"role": "user", "content": "swordfish-77"},
    ])  # fmt: skip
    assert ground.leaks("swordfish-77") == []


def test_the_owners_own_note_stays_as_it_is_and_does_not_leave(ground, capfd):
    """Notes are the record. What is made of them for a model, a log or an answer passes the gate."""
    vault = ground.vault
    vault.write("USER.md", NOTES["USER.md"])
    vault.write_fact("key", f"Maya's spare key is {SECRET}.")
    vault.save()
    before = vault.notes()
    capfd.readouterr()
    ground.quaid("recall", "spare key of Maya")
    ground.quaid("context")
    ground.hook("session-start", source="startup")
    ground.hook("user-prompt-submit", prompt="What is the spare key of Maya?")
    ground.quaid("recall", "which key does Maya have", "--depth", "deep")
    told = "".join(capfd.readouterr())
    for answer in (
        ground.serve("memory_recall", query="spare key of Maya"),
        ground.serve("memory_get", ref="01key"),
        ground.serve("memory_history", ref="01key"),
        ground.serve("memory_search", query="spare key"),
    ):
        told += answer
    assert "spare key is [redacted: github-pat]" in told
    assert SECRET not in told
    assert [path for path, body, _ in ground.service.requests if SECRET in json.dumps(body)] == []
    assert vault.notes() == before


def test_a_remote_embedding_service_is_sent_no_secret(monkeypatch):
    sent = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request.content.decode())
        texts = json.loads(request.content)["input"]
        told = {"data": [{"index": n, "embedding": [1.0]} for n, _ in enumerate(texts)]}
        return httpx.Response(200, stream=httpx.ByteStream(json.dumps(told).encode()))

    client = httpx.Client
    monkeypatch.setattr("httpx.Client", lambda **_: client(transport=httpx.MockTransport(answer)))
    settings = EmbeddingSettings(provider="openai", url="http://embed.example.org/v1", model="m", dimensions=1)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    services.OpenAIEmbedder(settings).embed([f"the key is {SECRET}", "tea"])
    assert len(sent) == 1
    assert SECRET not in sent[0]
    assert "tea" in sent[0]


def test_numbers_that_an_owner_wants_to_keep_are_kept_at_every_door(ground, capfd, monkeypatch):
    """Doors that open no vault ask for the setting as well: a hook that spools messages, and git's own."""
    from quaid.cli import pre_commit
    from quaid.redaction import name_hints

    number = "DE89 3704 0044 0532 0130 00"
    ground.vault.write("USER.md", f"My IBAN is {number}.\n")
    ground.vault.git("add", "-A")
    monkeypatch.chdir(ground.vault.root)
    for setting, is_kept in (("true", False), ("false", True)):
        monkeypatch.setattr(name_hints, "_wanted", set())
        monkeypatch.setenv("QUAID_CAPTURE_REDACT_NUMBERS", setting)
        ground.hook("pre-compact", messages=[{"role": "user", "content": f"my IBAN is {number}"}])
        spooled = [path.read_text() for path in (ground.state / queue.FOLDER).rglob("*") if path.is_file()]
        assert any(number in text for text in spooled) is is_kept
        monkeypatch.setattr(name_hints, "_wanted", set())
        assert pre_commit.main([]) == (0 if is_kept else pre_commit.REFUSED)


def test_what_names_a_thing_is_no_secret():
    """Ids, hashes and paths pass every door as they are."""
    for name in (
        "01jcq8z5rb9w3x7v2m4k6n8ptd", "20-1402-2f1c9a#t3", "550e8400-e29b-41d4-a716-446655440000",
        "4b825dc642cb6eb9a060e54bf8d69288fbee4904", "projects/boat/PROJECT.md", "janitor-decay@1f2e3d4c5b6a",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "/home/maya/src/boat/TOOLS.md",
    ):  # fmt: skip
        assert admit(name).text == name


def test_what_was_kept_in_clear_goes_at_night(ground):
    from quaid.janitor.cleanup import clean
    from quaid.local import recall_log
    from quaid.local.database import open_local
    from quaid.local.model_usage import ModelRecords

    path = ground.state / LOCAL_FILE
    ModelRecords(path).put("k", json.dumps({"value": SECRET}), "2026-11-20", "2026-01-01")
    connection = open_local(path, recall_log.SCHEMA)
    columns = "at, query, door, depth, hits, took_ms, stages, degraded"
    for _ in range(50):
        row = ("2026-11-20", f"what is {SECRET}?", "cli", "auto", "[]", 1.0, "{}", "[]")
        connection.execute(f"INSERT INTO recall_log ({columns}) VALUES (?,?,?,?,?,?,?,?)", row)
    connection.close()
    assert ground.leaks() != []
    assert "Removed secrets from local.db: 51." in clean(ground.state, NOW)
    assert ground.leaks() == []
    assert clean(ground.state, NOW) == []
