"""Where the time of a question goes: each stage of recall, at 1,000 and at 10,000 fact notes.

    python tests/benchmarks/stages.py --keep /tmp/vaults
    python tests/benchmarks/stages.py --notes 100000 --json stages.json
    python tests/benchmarks/stages.py --all            # 100,000 too

200 questions at depth `fast` in a running process, the second question on (the matrix of vectors is in memory), and the
first question of fresh processes (cold). The keyword channel works beside the vector channel,
so that stages add up to more than the whole; *between* is what of the time none of them has. *pipeline* is what recall
takes inside, *whole* the call: with the look whether files have changed, and the books.

The rows at the end have `quaid recall` from the shell for cold, a whole process. The scoped ones ask a copy of the vault in which every other note is another owner's and private, and a third each
belongs to one project, to another, to none: once as its owner, once for one project as well.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench import commit_all, describe_machine, kept_folder, make_parser, median_s, p95, quaid, save, timed
from scale import question, scale_vault

from quaid import Memory
from quaid.trust import trust

USUAL = (1_000, 10_000)
MOST = 100_000
QUESTIONS = 200
COLD_RUNS = 9
MINE, THEIRS = "default", "somebody-else"
PROJECTS = ("harbour", "orchard", None)
QUESTION = "what did Maya Chen do with the violin?"

Times = dict[str, dict[str, float]]


def main() -> None:
    options = _arguments()
    sizes = [*(options.notes or USUAL), *([MOST] if options.all else [])]
    print(describe_machine())
    results = {}
    with kept_folder(options.keep) as folder:
        for notes in sizes:
            results[notes] = measure(folder, notes)
    _print_table(results)
    save(options.json, {"questions": QUESTIONS, "notes": results})


def measure(folder: Path, notes: int) -> dict[str, Any]:
    root = scale_vault(folder, notes)
    with Memory.open(root) as memory:
        memory.sync()
    scoped = folder / f"quaid-scoped-{notes}"
    if not scoped.exists():
        divide(root, scoped)
    with Memory.open(scoped) as memory:
        memory.sync()
    warm = ask_all(root)
    cold = ask_cold(root)
    for name, row in warm.items():
        row["cold"] = cold.get(name, 0.0)
    return {
        "stages": warm,
        "scoped": {
            "one owner, all notes": warm["whole"],
            "owner of half the notes": ask_all(scoped)["whole"],
            "owner, and one project": ask_all(scoped, projects=[PROJECTS[0]])["whole"],
        },
        "scoped_process_ms": {
            "one owner, all notes": 1000 * median_s(COLD_RUNS, lambda: _ask_from_shell(root)),
            "owner of half the notes": 1000 * median_s(COLD_RUNS, lambda: _ask_from_shell(scoped)),
            "owner, and one project": 1000
            * median_s(COLD_RUNS, lambda: _ask_from_shell(scoped, "--project", "harbour")),
        },
    }


def divide(source: Path, root: Path) -> None:
    """A copy of a vault that two owners share, in two projects and none. Its texts are in the embedding cache."""
    shutil.copytree(source, root, symlinks=True)
    trust(root)
    for number, path in enumerate(sorted((root / "facts").rglob("*.md"))):
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        owner = next(place for place, line in enumerate(lines) if line.startswith("owner:"))
        project = PROJECTS[number // 2 % len(PROJECTS)]
        lines[owner] = f"owner: {THEIRS if number % 2 else MINE}\n" + (f"project: {project}\n" if project else "")
        path.write_text("".join(lines), encoding="utf-8")
    commit_all(root, "two owners")


def ask_all(root: Path, **scope: Any) -> Times:
    """p50 and p95 of each stage in milliseconds, over the questions it ran for, and the share of those."""
    chance = random.Random(5)
    taken: dict[str, list[float]] = {}
    with Memory.open(root) as memory:
        memory.recall(QUESTION, depth="fast", **scope)
        for _ in range(QUESTIONS):
            for name, took in ask_one(memory, question(chance), **scope).items():
                taken.setdefault(name, []).append(took)
    return {
        name: {"p50": statistics.median(took), "p95": p95(took), "ran": len(took) / QUESTIONS}
        for name, took in taken.items()
    }


def ask_one(memory: Memory, asked: str, **scope: Any) -> dict[str, float]:
    found, whole_s = timed(lambda: memory.recall(asked, depth="fast", **scope))
    assert found.hits, f"nothing was found for {asked!r}"
    assert not found.degraded, found.degraded
    stages = found.trace["took_ms"]
    assert isinstance(stages, Mapping)
    beside = stages["keyword"]
    between = found.took_ms - sum(stages.values()) + min(beside, stages["vector"])
    return {**stages, "between": between, "pipeline": found.took_ms, "whole": 1000 * whole_s}


def ask_cold(root: Path) -> dict[str, float]:
    """The first question of a process, by stage: the median of several."""
    runs = []
    for _ in range(COLD_RUNS):
        asked = subprocess.run([sys.executable, __file__, "--ask", str(root)], check=True, capture_output=True)
        runs.append(json.loads(asked.stdout))
    return {name: statistics.median(run.get(name, 0.0) for run in runs) for name in runs[0]}


def _ask_from_shell(root: Path, *options: str) -> None:
    assert "[MEMORY]" in quaid("recall", QUESTION, "--vault", str(root), *options)


def _print_table(results: Mapping[int, Mapping[str, Any]]) -> None:
    head = f"{'p50':>10}{'p95':>8}{'cold':>8}"
    print(f"{'ms':26}" + "".join(f"{f'{notes:,} notes':>26}" for notes in results))
    print(f"{'':26}" + head * len(results))
    for name in dict.fromkeys(name for found in results.values() for name in found["stages"]):
        print(f"{name:26}" + "".join(_cells(found["stages"].get(name)) for found in results.values()))
    print("whole, by what may be seen; cold is `quaid recall`, the process")
    for name in next(iter(results.values()))["scoped"]:
        rows = ({**found["scoped"][name], "cold": found["scoped_process_ms"][name]} for found in results.values())
        print(f"  {name:24}" + "".join(_cells(row) for row in rows))
    seldom = {
        name: row["ran"] for found in results.values() for name, row in found["stages"].items() if row["ran"] < 0.995
    }
    for name, share in seldom.items():
        print(f"{name} ran for {share:.0%} of the questions; its times are of those")


def _cells(row: Mapping[str, float] | None) -> str:
    return f"{'-':>26}" if row is None else f"{row['p50']:10.2f}{row['p95']:8.2f}{row['cold']:8.1f}"


def _arguments() -> argparse.Namespace:
    parser = make_parser(__doc__, keep=True)
    parser.add_argument("--notes", type=int, action="append", help="so many notes; repeatable (default 1000 and 10000)")
    parser.add_argument("--all", action="store_true", help="100,000 notes as well")
    return parser.parse_args()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--ask"]:
        with Memory.open(sys.argv[2]) as opened:
            opened.warm()
            print(json.dumps(ask_one(opened, QUESTION)))
    else:
        main()
