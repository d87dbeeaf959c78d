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
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

from machine import describe_machine
from scale import generate
from starlette.testclient import TestClient

from quaid import Memory
from quaid.index.facts import list_living
from quaid.janitor import runner
from quaid.janitor.decision import Decision
from quaid.janitor.fact_edits import rewrite
from quaid.janitor.policy import MAX_QUESTIONS
from quaid.janitor.run_report import RunReport
from quaid.janitor.runner import RunOptions
from quaid.janitor.task_context import TaskContext
from quaid.local.runs import evidence_key
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
            fact = memory.recall("oat milk").hits[0].id
            night = tidy(memory)
            head = memory.git.state().head
        keys = Keys.make()
        with TestClient(make_app(root, keys, PORT, asyncio.Event()), base_url=f"http://127.0.0.1:{PORT}") as client:
            client.cookies.set(f"quaid-view-{PORT}", keys.cookie)
            print(f"{'first page':<20} {_timed(client, '/'):7.1f} ms")
            for name, path in {
                "newest": "/", "question": "/?q=who+prefers+oat+milk", "memory": f"/memory/{fact}",
                "review": "/review", "nights": "/nights", "night": f"/nights/{night.run}", "change": f"/change/{head}",
            }.items():  # fmt: skip
                print(f"{name:<20} {statistics.median(_timed(client, path) for _ in range(11)):7.1f} ms")


def tidy(memory: Memory) -> RunReport:
    """A night that asks twenty questions about facts, and rewords a hundred others."""

    def plan(context: TaskContext) -> Iterator[Decision]:
        for number, fact in enumerate(list_living(context.index)[:120]):
            edit = rewrite(fact.path, context.read(fact.path) or b"", f"{fact.text} Indeed.")
            yield Decision(
                "task", "rewrite", evidence_key("task", fact.path), (edit,), f"rewrite {fact.text}", "It reads better.",
                (fact.id,), always_asks=number < MAX_QUESTIONS,
            )  # fmt: skip

    names = {"name": "task", "phase": "memory", "needs_model": False, "by_runner": False, "switch": "", "plan": plan}
    runner.TASKS = (SimpleNamespace(**names),)
    return memory.janitor.run(RunOptions())


def _timed(client: TestClient, path: str) -> float:
    started = time.perf_counter()
    assert client.get(path).status_code == 200
    return 1000 * (time.perf_counter() - started)


if __name__ == "__main__":
    main()
