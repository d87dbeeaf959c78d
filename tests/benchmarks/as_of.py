"""How long it takes to ask the memory as it was: `recall --as-of` in a vault with a history.

    python tests/benchmarks/as_of.py
    python tests/benchmarks/as_of.py --notes 10000 --commits 20 --json result.json

Each commit adds its share of the facts, edits 25 older ones and removes five. Every figure is the wall time of a whole
process that opens the vault, makes (or finds) the index of that revision and answers one question; all embeddings are
in the cache. Beside each stands its share of what `reindex` takes in the same run.
"""

from __future__ import annotations

import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from datetime import timedelta
from pathlib import Path

from bench import commit_all, describe_machine, make_parser, median_s, save, timed, write_fact
from scale import BEGIN, PEOPLE, statement

from quaid import Memory
from quaid.place import state_folder

TARGET_S = 2.0
EDITED, REMOVED = 25, 5
RUNS = 3


def main() -> None:
    parser = make_parser(__doc__, keep=True)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--commits", type=int, default=20)
    options = parser.parse_args()
    print(describe_machine())
    root = Path(options.keep or tempfile.gettempdir()) / f"quaid-as-of-{options.notes}"
    if not root.exists():
        generate(root, options.notes, options.commits)
    found = measure(root, options.commits)
    _print_table(found, options.notes)
    save(options.json, {"notes": options.notes, **found})
    if not options.keep:
        shutil.rmtree(root)


def generate(root: Path, notes: int, commits: int) -> None:
    """A vault of `notes` facts that came in `commits` commits, a day apart; its index, complete."""
    chance = random.Random(11)
    Memory.create(root)[0].close()
    living: list[Path] = []
    for number in range(commits):
        for path in chance.sample(living, min(EDITED, len(living))):
            path.write_text(f"{path.read_text(encoding='utf-8')}\nSeen again in month {number}.\n", encoding="utf-8")
        for path in chance.sample(living, min(REMOVED, len(living) // 10)):
            path.unlink()
            living.remove(path)
        for fact in range(notes * number // commits, notes * (number + 1) // commits):
            now = BEGIN + timedelta(minutes=37 * fact)
            living.append(write_fact(root, statement(chance, fact), now, speaker=chance.choice(PEOPLE)))
        commit_all(root, f"facts {number}", BEGIN + timedelta(days=number))
        with Memory.open(root) as memory:
            memory.sync()  # each text is embedded in its time, and the cache keeps it


def measure(root: Path, commits: int) -> dict[str, dict[str, float]]:
    """Wall times in seconds, the median of three runs, by revision."""
    with Memory.open(root) as memory:
        reindex = median_s(RUNS, memory.reindex)
    bare = median_s(RUNS, lambda: _ask(root, "none"))
    found = {"the present": {"reindex": reindex, "recall": bare}}
    for name, revision in (
        ("HEAD~1", "HEAD~1"),
        ("the middle", f"HEAD~{commits // 2}"),
        ("near the beginning", f"HEAD~{commits - 2}"),
    ):
        first, cached = [], []
        for _ in range(RUNS):
            shutil.rmtree(state_folder(root) / "as-of", ignore_errors=True)
            first.append(timed(lambda revision=revision: _ask(root, revision))[1])
            cached.append(timed(lambda revision=revision: _ask(root, revision))[1])
        found[name] = {"first": statistics.median(first), "cached": statistics.median(cached)}
    return found


def _ask(root: Path, revision: str) -> None:
    subprocess.run([sys.executable, __file__, "--ask", str(root), revision], check=True)


def answer(root: Path, revision: str) -> None:
    """What one process does; as of no revision it asks the present."""
    question = "what did Maya Chen do with the violin?"
    with Memory.open(root) as memory:
        memory.warm()
        found = memory.recall(question, 10, as_of=None if revision == "none" else revision, keep=False)
    assert found.hits
    assert not found.degraded, found.degraded


def _print_table(found: dict[str, dict[str, float]], notes: int) -> None:
    reindex, present = found["the present"]["reindex"], found["the present"]["recall"]
    print(f"{notes:,} notes; reindex {reindex:.2f} s; a process that asks the present {present:.2f} s")
    print(f"{'as of':24}{'first, s':>10}{'of reindex':>12}{'cached, s':>11}   target: first <= {TARGET_S:g} s")
    for name, row in found.items():
        if "first" in row:
            print(f"{name:24}{row['first']:10.2f}{row['first'] / reindex:11.0%} {row['cached']:11.2f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--ask"]:
        answer(Path(sys.argv[2]), sys.argv[3])
    else:
        main()
