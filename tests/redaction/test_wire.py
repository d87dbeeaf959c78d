"""What leaves the process for a service is without secrets, whoever sends it and wherever the service is."""

from __future__ import annotations

import inspect
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from loopback import LoopbackServer
from matrices import for_each
from secret_samples import BASE64, KEYS, some
from vaults import Vault, assert_verified, dump, rebuilt_dump

from quaid.embed import open_embedder
from quaid.http import Wire
from quaid.llm.claude_code import ClaudeCodeProvider
from quaid.llm.exchange import Request
from quaid.llm.prompts import load_prompt
from quaid.llm.providers import RemoteProvider
from quaid.local.notifications import deliver
from quaid.place import data_folder
from quaid.redaction import admit_payload
from quaid.settings import EmbeddingSettings, ModelSettings, NotificationSettings

SECRET = KEYS["github-pat"]
BODY = [some(64, BASE64) for _ in range(90)]
NOTE = "\n".join([
    "# Boat", "", f"The key of the pump is {SECRET}.", "", "## Wi-Fi password", "", "velvet9!tractor", "",
    "## Card", "", "5425 2334 3010 9903", "", "## Key", "", "-----BEGIN RSA PRIVATE KEY-----", *BODY, "-----END RSA PRIVATE KEY-----", "",
    "## Tea", "", "Maya likes tea.", "",
])  # fmt: skip
"""An owner's own note: it stays as it is, and is longer than a chunk."""
HIDDEN = [SECRET, "velvet9!tractor", "5425 2334 3010 9903", *BODY]


class Listener:
    """A service that keeps the bytes of each request and answers as embedding services, models and webhooks do."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        listener = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                listener.sent.append(f"{self.path} {self.headers}".encode() + body)
                inputs = json.loads(body).get("input", [])
                rows = [[1.0 + len(text), 1.0, 0.5] for text in inputs]
                data = {"data": [{"index": n, "embedding": row} for n, row in enumerate(rows)], "embeddings": rows}
                answer = json.dumps(data).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                """Silence."""

        self._server = LoopbackServer(Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def holds(self, secret: str) -> bool:
        """Return whether `secret` was sent, as it is or as JSON escapes it."""
        forms = {secret, json.dumps(secret)[1:-1]}
        return any(form.encode() in sent for sent in self.sent for form in forms)

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def listener() -> Iterator[Listener]:
    made = Listener()
    yield made
    made.stop()


@pytest.mark.parametrize("provider", ["openai", "ollama"])
def test_a_secret_in_the_owners_note_is_not_embedded_by_a_service(
    vault: Vault, listener: Listener, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, provider: str
) -> None:
    """The service is on this machine here, as a gateway to another one may be."""
    settings = {"PROVIDER": provider, "URL": listener.url, "MODEL": "m"}
    for name, value in settings.items():
        monkeypatch.setenv(f"QUAID_EMBEDDING_{name}", value)
    monkeypatch.setenv("QUAID_CACHE_DIR", str(tmp_path / "cache"))
    vault.write("boat.md", NOTE)
    vault.write(f"{SECRET}.md", "A note that is called by a key.\n")
    with vault.memory() as memory:
        memory.sync()
        memory.recall(f"What opens {SECRET} on the boat?")
        assert dump(memory.index()) == rebuilt_dump(memory)
        assert_verified(memory)
    assert b"Maya likes tea." in b"".join(listener.sent)
    assert [secret for secret in HIDDEN if listener.holds(secret)] == []
    assert (vault.root / "boat.md").read_text() == NOTE


def test_the_vector_of_a_text_does_not_depend_on_its_neighbours(listener: Listener) -> None:
    settings = EmbeddingSettings(provider="openai", url=listener.url, model="m", dimensions=3)
    embedder = open_embedder(settings)
    assert embedder is not None
    texts = ["What is the PIN?", "4821", f"the key is {SECRET}", "<private>gone</private>", "tea"]
    together = embedder.embed(texts)
    alone = [embedder.embed([text])[0] for text in texts]
    assert [row.tolist() for row in together] == [row.tolist() for row in alone]
    assert json.loads(listener.sent[0].partition(b"\r\n\r\n")[2] or listener.sent[0].partition(b"\n\n")[2])["input"] == [
        "What is the PIN?", "4821", "the key is [redacted: github-pat]", " ", "tea",
    ]  # fmt: skip


def providers() -> list[type[RemoteProvider]]:
    return RemoteProvider.__subclasses__()


def ask(text: str) -> Request:
    turns = (("user", f"Look: {text}"), ("assistant", "What's the PIN?"), ("user", "4821"))
    return Request(
        "fast",
        "m",
        "p@1",
        f"Be kind. The spare key is {text}.",
        turns,
        {"type": "object", "properties": {}, "required": []},
        100,
    )


@pytest.mark.parametrize("provider", providers())
def test_no_prompt_brings_a_secret_to_a_model(listener: Listener, provider: type[RemoteProvider]) -> None:
    made = provider(ModelSettings(url=listener.url, provider=provider.__name__.removesuffix("Provider").lower()), {})  # type: ignore[call-arg, arg-type]
    with pytest.raises(Exception, match="format"):
        made.complete(ask(SECRET), time.monotonic() + 20)
    assert b"Be kind." in listener.sent[0]
    assert [secret for secret in (SECRET, "4821") if listener.holds(secret)] == []


def test_no_prompt_brings_a_secret_to_claude_code(tmp_path: Path) -> None:
    script = tmp_path / "claude"
    script.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/seen\ncat >> {tmp_path}/seen\n')
    script.chmod(0o755)
    with pytest.raises(Exception, match="no result"):
        ClaudeCodeProvider(str(script), {"PATH": "/usr/bin:/bin"}).complete(ask(SECRET), time.monotonic() + 20)
    seen = (tmp_path / "seen").read_text()
    assert "Be kind." in seen
    assert SECRET not in seen


def test_no_notification_brings_a_secret_to_a_webhook(listener: Listener, vault: Vault) -> None:
    settings = NotificationSettings(channels="webhook", level="debug", webhook=listener.url)
    deliver(vault.root, settings, "janitor", f"merged {SECRET}")
    assert b"merged [redacted: github-pat]" in listener.sent[0]


def test_a_caller_that_forgets_the_redaction_sends_no_secret(listener: Listener) -> None:
    """Whoever sends a body has to give it as a payload, which the wire reads."""
    payload = {
        "model": "m",
        "deep": [{"in": [f"the key is {SECRET}"]}],
        f"named {SECRET}": 1,
        "text": "my IBAN is DE89370400440532013000",
    }
    wire = Wire(listener.url)
    wire.post("/x", payload, {}, time.monotonic() + 20)
    with wire.stream("/x", time.monotonic() + 20, payload=payload):
        pass
    assert len(listener.sent) == 2
    assert [secret for secret in (SECRET, "DE89370400440532013000") if listener.holds(secret)] == []
    assert [
        name for name in inspect.signature(Wire.stream).parameters if name in ("content", "data", "files", "body")
    ] == []


def test_a_key_in_a_header_and_the_name_of_a_model_arrive_as_they_are(listener: Listener) -> None:
    named = f"ft:{SECRET}"
    Wire(listener.url).post("/x", {"model": named}, {"authorization": f"Bearer {SECRET}"}, time.monotonic() + 20)
    assert f"Bearer {SECRET}".encode() in listener.sent[0]
    assert json.dumps(named).encode() in listener.sent[0]


@for_each("name", sorted(path.stem for path in data_folder("prompts").glob("*.md")))
def test_a_prompt_of_quaid_arrives_as_it_is(name: str) -> None:
    prompt = load_prompt(name)
    inputs = prompt.fill(dict.fromkeys(prompt.slots, "Maya likes tea."))
    sent = {
        "system": [{"type": "text", "text": prompt.system}],
        "messages": [{"role": "system", "content": prompt.instructions}, {"role": "user", "content": inputs}],
        "response_format": {"json_schema": {"name": "answer", "schema": prompt.schema}},
        "max_tokens": prompt.max_output_tokens,
    }  # fmt: skip
    assert admit_payload(sent) == sent
