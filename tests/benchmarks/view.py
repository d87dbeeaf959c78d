"""How long the pages of `quaid view` take at a given number of notes, and of entities besides.

    python tests/benchmarks/view.py --notes 10000 --entities 2000
    python tests/benchmarks/view.py --notes 100000 --entities 2000 --only memories

Each figure is from the request to the whole page, the median of eleven, and the processor time of this process and of
git for it, which does not grow with what else the machine does. `--only` measures the pages whose name begins so. Before them, of a server that has just begun: from
the command to the address that it prints, and the first page, asked for as soon as the address is there and a second later,
when a browser would.
Where Chromium is there, also from the request for the graph to its first picture, and how long a frame takes while one
zooms and moves it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
from bench import describe_machine
from scale import PEOPLE, generate
from starlette.testclient import TestClient

from quaid import Memory
from quaid.index.documents import list_living
from quaid.janitor import asking, runner
from quaid.janitor.decision import RunReport
from quaid.janitor.fact_edits import rewrite
from quaid.janitor.runner import RunOptions
from quaid.janitor.task_context import TaskContext
from quaid.local.runs import Decision, evidence_key
from quaid.model import ENTITY_TYPES
from quaid.web.app import make_app
from quaid.web.guard import Keys
from quaid.web.pages.sessions import list_sessions

PORT = 7438


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--entities", type=int, default=2_000)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    print(describe_machine(), f"load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "vault"
        generate(root, options.notes)
        person = relate(root, options.entities)
        with Memory.open(root) as memory:
            memory.sync()
            fact, gone = (hit.id for hit in memory.recall("oat milk", kinds=("fact",)).hits[:2])
            memory.forget(gone)
            night = tidy(memory)
            head = memory.git.state().head
            memory.recall("oat milk", door="mcp", session="cursor-vscode")
            session = list_sessions(memory)[0]["href"]
        for name, took in ({} if options.only else _time_start(root)).items():
            print(f"{name:<20} {took:7.1f} ms")
        keys = Keys.make()
        with TestClient(make_app(root, keys, PORT, asyncio.Event()), base_url=f"http://127.0.0.1:{PORT}") as client:
            client.cookies.set(f"quaid-view-{PORT}", keys.cookie)
            for name, path in {
                "today": "/", "sessions": "/sessions", "session of an agent": session, "newest": "/ask",
                "question": "/ask?q=who+prefers+oat+milk", "memory": f"/memory/{fact}",
                "person": f"/memory/{person}", "facts of a theme": f"/memory/{person}?theme=home&page=2",
                "edit": f"/edit/{fact}", "forgotten": f"/memory/{gone}",
                "memories": "/memories", "memories, facts": "/memories?kind=fact&sort=-strength",
                "memories, a name": "/memories?about=Maya+Chen+7&q=near", "memories, by name": "/memories?sort=about",
                "graph": "/graph", "graph on a day": "/graph?focus=Maya+Chen+7&hops=2&on=2026-01-01",
                "graph.json": "/graph.json", "timeline": "/timeline", "timeline, a day": "/timeline?at=2025-03-14",
                "timeline, true": "/timeline?show=true&at=2025-03", "timeline, changes": "/timeline?show=changes",
                "timeline, talks": "/timeline?show=conversations", "conversation": "/session/talk",
                "review": "/review", "nights": "/nights", "night": f"/nights/{night.run}", "change": f"/change/{head}",
                "health": "/health", "health: fading": "/health/fading", "health: checks": "/health/checks",
                "projects": "/projects",
            }.items():  # fmt: skip
                if name.startswith(options.only):
                    took, busy = (
                        statistics.median(each) for each in zip(*(_time(client, path) for _ in range(11)), strict=True)
                    )
                    print(f"{name:<20} {took:7.1f} ms {busy:7.1f} ms of processor time", flush=True)
        print(f"load {os.getloadavg()[0]:.1f}")
        if not options.only:
            _measure_picture(root)


def _time_start(root: Path) -> dict[str, float]:
    """Return medians of five: from the command to the address, and the first page at once and a second later, ms."""
    command = [sys.executable, "-m", "quaid.cli.main", "--vault", str(root), "view", "--no-browser", "--port", "0"]
    took: dict[str, list[float]] = {"address printed": [], "first page, at once": [], "first page": []}
    for number in range(10):
        started = time.perf_counter()
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout
            address = next(word for line in server.stdout for word in line.split() if word.startswith("http://"))
            took["address printed"].append(1000 * (time.perf_counter() - started))
            name = "first page" if number % 2 else "first page, at once"
            time.sleep(number % 2)
            asked = time.perf_counter()
            with httpx.Client(follow_redirects=True) as browser:
                assert "Today" in browser.get(address).text
            took[name].append(1000 * (time.perf_counter() - asked))
            server.terminate()
    return {name: statistics.median(times) for name, times in took.items()}


def _measure_picture(root: Path) -> None:
    """Print how long Chromium takes to show what an editor saved, to the first picture of the graph, and for a frame while
    that is zoomed and moved.
    """
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from vaults import Vault
    from web.browsing import start_browser, visit

    try:
        with start_browser() as browser, visit(browser, Vault(root)) as site:
            drawn = [_draw(site) for _ in range(3)]
            seen = [_time_edit(site, root, number) for number in range(5)]
    except BaseException as error:
        print(f"{'first picture':<20} not measured: {error}")
        return
    print(f"{'an edit is seen':<20} {statistics.median(seen):7.1f} ms")
    print(f"{'first picture':<20} {statistics.median(first for first, _ in drawn):7.1f} ms")
    frames = sorted(frame for _, those in drawn for frame in those)
    print(f"{'a frame':<20} {statistics.median(frames):7.1f} ms, 95 % below {frames[int(0.95 * len(frames))]:.1f} ms")


def _time_edit(site: Any, root: Path, number: int) -> float:
    """Return how long a note that was just written takes to appear on an open page, in ms."""
    tab = site.open("/ask?q=walrus")
    tab.wait_for_timeout(1_000)
    started = time.perf_counter()
    _write(root / f"notes/walrus-{number}.md", f"The walrus {number} sleeps on the ice.\n")
    tab.get_by_text(f"walrus {number} sleeps").first.wait_for()
    took = 1000 * (time.perf_counter() - started)
    tab.close()
    return took


def _draw(site: Any) -> tuple[float, list[float]]:
    tab = site.open("/graph")
    tab.locator("[data-drawn]").wait_for(timeout=60_000)
    first = tab.evaluate("performance.getEntriesByName('graph drawn')[0].startTime")
    tab.wait_for_timeout(3_000)
    box = tab.locator("#drawing").bounding_box()
    tab.mouse.move(box["x"] + 300, box["y"] + 250)
    tab.evaluate(
        "() => { window.frames_ = []; let last = performance.now(); const next = (now) => { frames_.push(now - last); "
        "last = now; requestAnimationFrame(next); }; requestAnimationFrame(next); }"
    )
    for step in range(15):
        tab.mouse.wheel(0, -60 if step < 8 else 40)
        tab.wait_for_timeout(30)
    tab.mouse.down()
    for step in range(30):
        tab.mouse.move(box["x"] + 300 + 5 * step, box["y"] + 250 + 2 * step)
        tab.wait_for_timeout(16)
    tab.mouse.up()
    frames = tab.evaluate("frames_")
    tab.close()
    return first, frames[1:]


def relate(root: Path, count: int) -> str:
    """Write entities, two facts with an edge for each, and a conversation of 400 turns, committed; return the name of the
    entity with the most edges.
    """
    chance = random.Random(7)
    names = [f"{chance.choice(PEOPLE)} {number}" for number in range(count)]
    for number, name in enumerate(names):
        kind = ENTITY_TYPES[number % len(ENTITY_TYPES)]
        _write(root / f"entities/{name}.md", f"---\nid: 01k{number:023d}\ntype: {kind}\n---\n")
        for place, relation in enumerate(("works_with", "lives_near")):
            other = names[int(count * chance.random() ** 3)]  # few have many
            month = 1 + number % 12
            _write(
                root / f"facts/edges/{relation}-{number}.md",
                f"---\nid: 01m{2 * number + place:023d}\ntype: fact\nstatus: active\nowner: default\n"
                f"created: 2026-{month:02}-11T09:30:00Z\nvalid_from: 2025-{month:02}-03\n"
                f"{f'valid_until: 2026-{month:02}-28' if number % 5 == 0 else 'confidence: 0.9'}\n"
                f'turns: ["[[talk#^t{1 + number % 400}]]"]\n---\n'
                f"[[{name}]] {relation} [[{other}]]\n\n- [[{name}]] {relation} [[{other}]]\n",
            )
    turns = "".join(f"**Maya** (14:02): The {number}. thing I say. ^t{number}\n\n" for number in range(1, 401))
    head = "---\nid: talk\ntype: episode\nsession: talk\nturn_count: 400\nstarted: 2026-03-20T14:02:00Z\n---\n"
    _write(root / "episodes/2026/03/talk.md", head + turns)
    subprocess.run(["git", "add", "-A"], cwd=root, check=True)
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", *identity, "commit", "-qm", "relations"], cwd=root, check=True)
    return names[0]


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def tidy(memory: Memory) -> RunReport:
    """A night that asks twenty questions about facts, and rewords a hundred others."""

    def plan(context: TaskContext) -> Iterator[Decision]:
        for number, fact in enumerate(list_living(context.index)[:120]):
            edit = rewrite(fact.path, context.read(fact.path) or b"", f"{fact.text} Indeed.")
            yield Decision(
                "task", "rewrite", evidence_key("task", fact.path), (edit,), f"rewrite {fact.text}", "It reads better.",
                (fact.id,), always_asks=number < asking.MAX_A_WEEK,
            )  # fmt: skip

    names = {"name": "task", "phase": "memory", "needs_model": False, "module": "made_up", "switch": "", "plan": plan}
    asking.MAX_A_WEEK = 20
    runner.TASKS = (SimpleNamespace(**names),)
    return memory.janitor.run(RunOptions())


def _time(client: TestClient, path: str) -> tuple[float, float]:
    """Return the ms from the request to the whole page, and the ms of processor time."""

    def read_busy() -> float:
        return time.process_time() + sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])

    started, busy = time.perf_counter(), read_busy()
    assert client.get(path).status_code == 200
    return 1000 * (time.perf_counter() - started), 1000 * (read_busy() - busy)


if __name__ == "__main__":
    main()
