"""How long the pages of `quaid view` take at a given number of notes.

    python tests/benchmarks/view.py --notes 10000

Each figure is from the request to the whole page: the first of a server that has just begun, then medians of eleven.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from pathlib import Path

from machine import describe_machine
from scale import generate
from starlette.testclient import TestClient

from quaid import Memory
from quaid.web.app import make_app
from quaid.web.guard import Keys

PORT = 7438


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--notes", type=int, default=10_000)
    options = parser.parse_args()
    print(describe_machine())
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "vault"
        generate(root, options.notes)
        with Memory.open(root) as memory:
            memory.sync()
            fact, gone = (hit.id for hit in memory.recall("oat milk", kinds=("fact",)).hits[:2])
            memory.forget(gone)
        keys = Keys.make()
        with TestClient(make_app(root, keys, PORT, asyncio.Event()), base_url=f"http://127.0.0.1:{PORT}") as client:
            client.cookies.set(f"quaid-view-{PORT}", keys.cookie)
            print(f"{'first page':<20} {_timed(client, '/'):7.1f} ms")
            for name, path in {
                "newest": "/", "question": "/?q=who+prefers+oat+milk", "memory": f"/memory/{fact}",
                "edit": f"/edit/{fact}", "forgotten": f"/memory/{gone}",
            }.items():  # fmt: skip
                print(f"{name:<20} {statistics.median(_timed(client, path) for _ in range(11)):7.1f} ms")


def _timed(client: TestClient, path: str) -> float:
    started = time.perf_counter()
    assert client.get(path).status_code == 200
    return 1000 * (time.perf_counter() - started)


if __name__ == "__main__":
    main()
