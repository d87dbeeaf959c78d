"""Every door shows a fact that cites the turns of several conversations, whichever of them are found or still exist."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from command_line import quaid
from hooks.test_hooks import hook
from mcp_host import call, talk
from starlette.testclient import TestClient
from vaults import Vault, copy_vault

from quaid.web.app import make_app
from quaid.web.guard import Keys

KEYS, PORT = Keys("printed", "started", "cookie", "form"), 7438
EPISODE = """---
type: episode
session: {name}
started: 2026-1{number}-05T14:00:00Z
---
**Maya**: {text} ^t1

**Assistant**: Noted. ^t2
"""
SAID = ["The ferry to Visby sails at noon", "The boat crosses at twelve o'clock", "Departure of the ship is midday"]
ASKED = "When does the ferry to Visby sail?"
STATED = "Maya takes the ferry to Visby on Fridays"
TURNS = {
    "two conversations": ["e0#^t1", "e1#^t1"], "three conversations": ["e2#^t1", "e0#^t1", "e1#^t2"],
    "none that is found": ["e1#^t2", "e2#^t2"], "one turn twice": ["e0#^t1", "e0#^t1", "e1#^t1"],
    "turns that are gone": ["e0#^t1", "e1#^t9", "gone#^t1"], "nothing that exists": ["e0#^t9", "gone#^t1", "also#^t4"],
    "a forgotten conversation": ["e0#^t1", "lost#^t1", "e2#^t2"],
    "what is no turn": ["e0", "e1#^", "facts/01ferry#^t1"],
}  # fmt: skip


@pytest.fixture(params=TURNS)
def cited(request: pytest.FixtureRequest, vault: Vault, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Vault:
    for number, text in enumerate(SAID):
        vault.write(f"episodes/2026/e{number}.md", EPISODE.format(name=f"e{number}", number=number, text=text))
    vault.write("episodes/2026/lost.md", EPISODE.format(name="lost", number=2, text="The ferry to Visby is lost"))
    turns = json.dumps([f"[[{turn}]]" for turn in TURNS[request.param]])
    fact = f"---\nid: 01ferry\ntype: fact\nstatus: active\nowner: default\ncreated: 2026-11-20T10:00:00Z\nturns: {turns}\n---\n{STATED}\n"
    vault.write("facts/01ferry.md", fact)
    vault.save()
    with vault.memory() as memory:
        memory.sync()
        memory.forget("lost")
    monkeypatch.setenv("QUAID_HOME", str(vault.root))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    return vault


@pytest.mark.matrix
@pytest.mark.parametrize("kinds", [(), ("--kind", "fact"), ("--kind", "turn")])
def test_the_command_line(cited: Vault, kinds: tuple[str, ...]) -> None:
    for options in ((), ("--json",), ("--budget", "300"), ("--budget", "40"), ("--budget", "300", "--json"),
                    ("--explain",), ("--budget", "300", "--explain"), ("--at", "2026-11-20")):  # fmt: skip
        code, out, err = quaid("recall", ASKED, *kinds, *options)
        assert (code, "Traceback" in err) == (0, False), (options, err)
        assert "Visby" in out, options
    for command in (("why", "01ferry"), ("why", "01ferry", "--json"), ("get", "01ferry"), ("context",), ("verify",)):
        code, _, err = quaid(*command)
        assert (code, "Traceback" in err) == (0, False), (command, err)


@pytest.mark.slow
def test_mcp_and_several_vaults(cited: Vault, tmp_path: Path) -> None:
    other = copy_vault(tmp_path / "other")
    other.write("episodes/2026/e0.md", EPISODE.format(name="e0", number=0, text=SAID[0]))
    other.write("facts/01ferry.md", (cited.root / "facts/01ferry.md").read_text())
    other.save()
    other.sync()
    _, out, err = quaid("recall", ASKED, "--vault", str(cited.root), "--vault", str(other.root), "--budget", "500")
    assert "Traceback" not in err
    assert STATED in out

    async def body(client):
        found = await call(client, "memory_recall", query=ASKED)
        assert STATED in [memory["text"] for memory in found["memories"]]
        for kind in ("fact", "turn"):
            assert (await call(client, "memory_recall", query=ASKED, kinds=[kind]))["memories"]
        assert (await call(client, "memory_get", ref="01ferry"))["text"] == STATED
        await call(client, "memory_history", ref="01ferry")

    talk(cited.root, body)
    talk(cited.root, body, vaults={"other": other.root})


def test_hooks(cited: Vault, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("quaid.hooks.entry.start_worker", lambda _: None)
    assert "Visby" in hook(monkeypatch, capsys, "user-prompt-submit", prompt=ASKED, session_id="s1", cwd="/")
    assert STATED in hook(monkeypatch, capsys, "session-start", source="startup", session_id="s2", cwd="/")


@pytest.mark.slow
def test_the_page(cited: Vault) -> None:
    with TestClient(make_app(cited.root, KEYS, PORT, asyncio.Event()), base_url=f"http://127.0.0.1:{PORT}") as client:
        client.cookies.set(f"quaid-view-{PORT}", KEYS.cookie)
        assert STATED in client.get("/ask", params={"q": ASKED}).text
        for path in ("/memory/01ferry", "/memory/e0", "/memory/e1"):
            assert client.get(path).status_code == 200, path
