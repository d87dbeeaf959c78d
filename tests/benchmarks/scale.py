"""How fast Quaid is at a given number of fact notes: every promise of docs/reference/performance.md, measured.

    python tests/benchmarks/scale.py --notes 10000
    python tests/benchmarks/scale.py --notes 1000 --notes 10000 --notes 100000 --json result.json

Each figure is a median over several runs on a real vault: files on disk, a git repository, the built-in model.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench import (
    QUAID,
    commit_all,
    describe_machine,
    make_parser,
    median_s,
    p95,
    peak_mb,
    save,
    timed,
    write_fact,
)

from quaid import Memory
from quaid.place import state_folder

TARGETS = {
    "first embedding, facts/s": ">= 400",
    "no-change sync, s": "<= 0.15",
    "reindex, cached embeddings, s": "<= 4",
    "recall p50, ms": "<= 10",
    "recall p95, ms": "<= 20",
    "cold `quaid recall`, s": "<= 0.35",
    "remember with its commit, ms": "<= 100",
    "edit seen by the next read, ms": "at once",
    "edit seen under watch, s": "<= 1",
    "peak memory, MB": "<= 350",
}
BEGIN = datetime(2025, 1, 1, tzinfo=UTC)
FIRST = ("Maya", "Jon", "Ana", "Tomas", "Priya", "Noor", "Lev", "Ines", "Kofi", "Mei")
LAST = ("Chen", "Ortiz", "Weber", "Haddad", "Okafor", "Lindqvist", "Rossi", "Novak", "Patel", "Brandt")
PEOPLE = [f"{first} {last}" for first in FIRST for last in LAST]
VERBS = (
    "prefers", "moved to", "works on", "met", "sold", "is learning", "planted", "repaired", "visited", "wrote about",
)  # fmt: skip
THINGS = (
    "oat milk", "a blue bicycle", "the harbour office", "ceramics", "the night train", "a violin", "old maps",
    "a greenhouse", "the tax return", "sourdough", "the north trail", "a film camera", "chess openings", "wild bees",
    "the choir", "a sailing boat", "mushrooms", "the archive", "Portuguese", "a stone oven",
)  # fmt: skip
PLACES = (
    "Lisbon", "the market", "Hamburg", "the old mill", "Accra", "the library", "Prague", "the coast", "Delhi", "home",
)  # fmt: skip


def main() -> None:
    parser = make_parser(__doc__, keep=True)
    parser.add_argument("--notes", type=int, action="append")
    options = parser.parse_args()
    print(describe_machine())
    results = {}
    for notes in options.notes or [10_000]:
        # A process of its own: peak memory is a property of a process.
        with tempfile.NamedTemporaryFile(suffix=".json") as out:
            command = [sys.executable, __file__, "--one", str(notes), out.name, options.keep or ""]
            subprocess.run(command, check=True)
            results[notes] = json.loads(Path(out.name).read_text(encoding="utf-8"))
    _print_table(results)
    save(options.json, {"notes": results})


def measure(notes: int, keep: str) -> dict[str, float]:
    root = Path(keep or tempfile.gettempdir()) / f"quaid-scale-{notes}"
    made = not root.exists()
    if made:
        generate(root, notes)
    found: dict[str, float] = {}
    with Memory.open(root) as memory:
        if made:
            report, took = timed(memory.sync)
            found["first sync with embedding, s"] = took
            found["first embedding, facts/s"] = report.embedded / took
        found["no-change sync, s"] = median_s(9, memory.sync)
        found["reindex, cached embeddings, s"] = median_s(3, memory.reindex)
    found |= _recall(root)
    found["peak memory, MB"] = peak_mb()
    found["cold `quaid recall`, s"] = median_s(9, lambda: _cold(root))
    found |= _write(root)
    if not keep:
        shutil.rmtree(root)
    return found


def generate(root: Path, count: int) -> None:
    """`count` distinct facts as notes, committed."""
    chance = random.Random(11)
    Memory.create(root)[0].close()
    for number in range(count):
        now = BEGIN + timedelta(minutes=37 * number)
        write_fact(root, statement(chance, number), now, speaker=chance.choice(PEOPLE))
    commit_all(root, "facts")


def scale_vault(keep: Path, notes: int) -> Path:
    """Return the vault of so many facts in `keep`, made if it is missing."""
    root = keep / f"quaid-scale-{notes}"
    if not root.exists():
        generate(root, notes)
    return root


def question(chance: random.Random) -> str:
    return f"What did {chance.choice(PEOPLE)} do with {chance.choice(THINGS)} in {chance.choice(PLACES)}?"


def statement(chance: random.Random, number: int) -> str:
    who, whom = chance.sample(PEOPLE, 2)
    return (
        f"{who} {chance.choice(VERBS)} {chance.choice(THINGS)} with {whom} in {chance.choice(PLACES)}, "
        f"entry {number} of {chance.randint(1990, 2026)}"
    )


def _recall(root: Path) -> dict[str, float]:
    chance = random.Random(5)
    with Memory.open(root) as memory:
        for _ in range(5):
            memory.recall("who is learning the violin?")
        asked = [question(chance) for _ in range(200)]
        taken = [1000 * timed(lambda q=each: memory.recall(q))[1] for each in asked]
    return {"recall p50, ms": statistics.median(taken), "recall p95, ms": p95(taken)}


def _write(root: Path) -> dict[str, float]:
    with Memory.open(root) as memory:
        memory.remember("A first write opens what later ones find open")
        memory.remember("A second write begins to listen for changes")
        taken = [
            timed(lambda n=n: memory.remember(f"Benchmark {n}: the {THINGS[n]} went to {PEOPLE[n * 7]}"))[1] * 1000
            for n in range(15)
        ]
        seen = [_edit_and_read(memory, root, n) for n in range(9)]
    return {
        "remember with its commit, ms": statistics.median(taken),
        "edit seen by the next read, ms": statistics.median(seen),
        "edit seen under watch, s": _watch(root),
    }


def _edit_and_read(memory: Memory, root: Path, number: int) -> float:
    word = f"zyxomma{number}"
    path = next((root / "facts").rglob(f"*-entry-{number}*.md"), None) or next((root / "facts").rglob("*.md"))
    _save(path, path.read_text(encoding="utf-8") + f"\n{word}\n")
    hits, took = timed(lambda: memory.recall(word).hits)
    assert word in hits[0].text, "the edit was not seen"
    return took * 1000


def _watch(root: Path) -> float:
    """How long after a save a running `quaid watch` has the edit in the index (looked up without any sync)."""
    import apsw

    watcher = subprocess.Popen([*QUAID, "watch", "-q", "--vault", str(root)])
    try:
        time.sleep(3)
        taken = []
        for number in range(5):
            path = sorted((root / "facts").rglob("*.md"))[number * 3]
            word = f"quokka{number}{os.getpid()}"
            _save(path, path.read_text(encoding="utf-8") + f"\n{word}\n")
            saved = time.perf_counter()
            while True:
                index = apsw.Connection(str(state_folder(root) / "index.db"), flags=apsw.SQLITE_OPEN_READONLY)
                index.set_busy_timeout(5_000)
                if index.execute("SELECT 1 FROM fulltext WHERE fulltext MATCH ?", (word,)).fetchone():
                    break
                index.close()
                time.sleep(0.01)
                assert time.perf_counter() - saved < 30, "the watcher never saw the edit"
            taken.append(time.perf_counter() - saved)
            time.sleep(0.5)
        return statistics.median(taken)
    finally:
        watcher.terminate()
        watcher.wait(timeout=10)


def _save(path: Path, text: str) -> None:
    """As editors save: a new file, renamed over the old one."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def _cold(root: Path) -> None:
    command = [*QUAID, "recall", "what did Maya Chen do with the violin?", "--vault", str(root)]
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "[MEMORY]" in found


def _print_table(results: dict[int, dict[str, float]]) -> None:
    names = list(dict.fromkeys(name for found in results.values() for name in found))
    print(f"{'':34}" + "".join(f"{f'{notes:,} notes':>16}" for notes in results) + "   target at 10,000")
    for name in names:
        cells = "".join(f"{found[name]:16.3f}" if name in found else f"{'-':>16}" for found in results.values())
        print(f"{name:34}{cells}   {TARGETS.get(name, '')}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        measured = measure(int(sys.argv[2]), sys.argv[4])
        Path(sys.argv[3]).write_text(json.dumps(measured), encoding="utf-8")
    else:
        main()
