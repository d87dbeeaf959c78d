from __future__ import annotations

import asyncio
from contextlib import ExitStack, contextmanager

import pytest
from starlette.testclient import TestClient
from vaults import be_calm, copy_vault
from web.browsing import start_browser

from quaid.web.app import make_app
from quaid.web.guard import Keys

PORT = 7438
KEYS = Keys("printed", "started", "cookie", "form")
HOSTILE = """---
type: note
---
# <img src=x onerror=alert(1)>

<script>alert(2)</script> [run](javascript:alert(3)) ![spy](http://evil.example/x.png)
[out](https://example.org/a?b=1) \u202etxt.exe \x1b[31mred [[Maya|her]] and [[01milk#^x1]] {{ 7 * 7 }}

A block of text ^x1
"""


@pytest.fixture(scope="session")
def seen_vault(tmp_path_factory):
    """A vault that nobody changes: facts that were corrected, a conversation, a hostile note, a stranger's secret."""
    with pytest.MonkeyPatch.context() as patch:
        be_calm(patch)
        vault = copy_vault(tmp_path_factory.mktemp("view") / "vault")
        vault.write(
            "episodes/2026/03/20-1402-2f1c9a.md",
            "---\nid: 20-1402-2f1c9a\ntype: episode\nsession: 2f1c9a\nstarted: 2026-03-20T14:02:00Z\n---\n"
            "**Maya** (14:02): I only take oat milk now. ^t1\n\n**Assistant** (14:03): Noted, oat milk. ^t2\n",
        )
        vault.write(
            "facts/milk.md",
            "---\nid: 01milk\ntype: fact\nstatus: active\nowner: default\nvalid_from: 2026-03-01\n"
            'turns: ["[[20-1402-2f1c9a#^t1]]"]\n---\nMaya takes soy milk in her coffee\n',
        )
        vault.write_fact("tea", "Maya drinks green tea in the afternoon")
        vault.write("hostile.md", HOSTILE)
        vault.write("linking.md", "# Breakfast\n\nSee [[milk]] and coffee.\n")
        vault.write(
            "facts/secret.md",
            "---\nid: 01secret\ntype: fact\nstatus: active\nowner: bob\nprivacy: private\n---\nBob hides oat milk\n",
        )
        vault.save("first")
        milk = vault.root / "facts/milk.md"
        milk.write_text(milk.read_text().replace("soy", "oat"))
        vault.save("oat, not soy")
        yield vault


@contextmanager
def serve_here(vault):
    """The application of a vault in this process, entered by nobody yet."""
    app = make_app(vault.root, KEYS, PORT, asyncio.Event())
    with TestClient(app, base_url=f"http://127.0.0.1:{PORT}") as client:
        yield client


@contextmanager
def let_in(vault):
    """The same, and a browser that was let in."""
    with serve_here(vault) as client:
        client.cookies.set(f"quaid-view-{PORT}", KEYS.cookie)
        yield client


@pytest.fixture(scope="module")
def calm():
    with pytest.MonkeyPatch.context() as patch:
        be_calm(patch)
        yield


@pytest.fixture(scope="session")
def site(seen_vault):
    """The application, entered by nobody yet."""
    with pytest.MonkeyPatch.context() as patch:
        be_calm(patch)
        with serve_here(seen_vault) as client:
            yield client


@pytest.fixture
def client(site, monkeypatch):
    """A browser that was let in."""
    be_calm(monkeypatch)  # a fixture of a module that began before `site` takes its environment along when it ends
    site.cookies.clear()
    site.cookies.set(f"quaid-view-{PORT}", KEYS.cookie)
    yield site
    site.cookies.clear()


@pytest.fixture
def open_client(monkeypatch):
    """A function that gives a browser which was let in to a vault."""
    be_calm(monkeypatch)
    with ExitStack() as opened:

        def enter(vault) -> TestClient:
            client = TestClient(make_app(vault.root, KEYS, PORT, asyncio.Event()), base_url=f"http://127.0.0.1:{PORT}")
            client.cookies.set(f"quaid-view-{PORT}", KEYS.cookie)
            return opened.enter_context(client)

        yield enter


@pytest.fixture(scope="module")
def browser():
    with start_browser() as started:
        yield started
