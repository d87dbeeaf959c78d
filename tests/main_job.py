"""What a user and an agent do with Quaid, in commands; afterwards the kernel's count of attempts to reach anybody.

It runs in a network of its own, as a program, and so imports nothing of the tests.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path

COUNTED = ("ActiveOpens", "OutDatagrams", "Udp6OutDatagrams")
COMMANDS = (
    ("init", "{vault}"),
    ("remember", "Maya takes oat milk in her coffee."),
    ("extract", "{talk}"),
    ("recall", "What milk does Maya take?"),
    ("sync",),
    ("janitor", "run"),
    ("hook", "session-start"),
    ("status",),
    ("doctor",),
)
PAGES = ("/ask", "/ask?q=milk", "/timeline", "/graph", "/health")
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "host", "version": "1"}}


def attempts() -> dict[str, int]:
    rows = [line.split() for line in Path("/proc/net/snmp").read_text().splitlines()]
    counts = {}
    for names, row in zip(rows[::2], rows[1::2], strict=True):
        if names[0] in {"Tcp:", "Udp:"}:
            counts |= dict(zip(names[1:], map(int, row[1:]), strict=True))
    with suppress(OSError):
        counts |= {name: int(count) for name, count in map(str.split, Path("/proc/net/snmp6").read_text().splitlines())}
    return {name: counts.get(name, 0) for name in COUNTED}


def reach_out() -> None:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(socket.AF_INET, kind) as asking, suppress(OSError):
            asking.connect(("192.0.2.1", 53))
            asking.send(b"who is it?")


def work(folder: Path) -> None:
    vault = os.environ["QUAID_HOME"] = str(folder / "vault")
    for command in COMMANDS:
        words = [word.format(vault=vault, talk=folder / "talk.jsonl") for word in command]
        # The model of this test only knows how to extract.
        environ = os.environ if command[0] == "extract" else {**os.environ, "QUAID_MODELS_PROVIDER": "none"}
        done = subprocess.run(["quaid", *words], input="", env=environ, capture_output=True, text=True, check=False)
        assert done.returncode == 0 or command == ("doctor",), (command, done)
    with subprocess.Popen(["quaid", "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        _ask(server, 1, "initialize", HELLO)
        recall = {"name": "memory_recall", "arguments": {"query": "What milk does Maya take?"}}
        assert "oat milk" in _ask(server, 2, "tools/call", recall)


def look(vault: Path) -> dict[str, int]:
    """Open pages of `quaid view`; what was tried besides our own connections to it."""
    command = ["quaid", "view", "--no-browser", "--port", "0", "--vault", str(vault)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        host, entry = re.search(r"http://(127\.0\.0\.1:\d+)(/\?token=\S+)", server.stdout.readline()).groups()
        cookie = ""
        for path in (entry, *PAGES):
            asking = HTTPConnection(host)
            asking.request("GET", path, headers={"Cookie": cookie})
            answer = asking.getresponse()
            cookie = cookie or answer.headers["Set-Cookie"].partition(";")[0]
            assert answer.status == (303 if path == entry else 200), (path, answer.status)
            asking.close()
        counted = attempts()
        server.terminate()
    return counted | {"ActiveOpens": counted["ActiveOpens"] - 1 - len(PAGES)}


def _ask(server: subprocess.Popen[str], number: int, method: str, params: dict[str, object]) -> str:
    asked = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    server.stdin.write(json.dumps(asked) + "\n")
    server.stdin.flush()
    return server.stdout.readline()


if __name__ == "__main__":
    if sys.argv[2:] == ["view"]:
        print(json.dumps(look(Path(sys.argv[1]) / "vault")))
        sys.exit()
    if sys.argv[1:]:
        work(Path(sys.argv[1]))
    else:
        reach_out()
    print(json.dumps(attempts()))
