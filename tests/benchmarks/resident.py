"""Whole processes, in `python -c pass`: `quaid recall` alone and answered by a resident, and `quaid status`.

    python tests/benchmarks/resident.py [--notes 10000 --notes 100000] [--runs 30] [--keep FOLDER] [--json result.json]

The vaults are those of scale.py (FOLDER/quaid-scale-NOTES, made where they are missing). The two ways are asked in turn,
each question by both, and their answers must be the same to the byte. `python -c pass` goes with them: what any
process costs on this machine just then. Processor time is that of the caller and its children, without the resident.
"""

from __future__ import annotations

import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import QUAID, describe_machine, make_parser, save
from scale import question, scale_vault

from quaid import Memory
from quaid.resident.finding import find_listening
from quaid.trust import trust

START_S = 120.0


def main() -> None:
    parser = make_parser(__doc__, keep=True)
    parser.add_argument("--notes", type=int, action="append")
    parser.add_argument("--runs", type=int, default=30)
    options = parser.parse_args()
    print(describe_machine())
    figures = {notes: measure(notes, options.runs, options.keep) for notes in options.notes or [10_000]}
    names = list(next(iter(figures.values())))
    print(f"{'':<34}" + "".join(f"{f'{notes:,} notes':>16}" for notes in figures))
    for name in names:
        print(f"{name:<34}" + "".join(f"{found[name]:>16.1f}" for found in figures.values()))
    save(options.json, {"notes": figures})


def measure(notes: int, runs: int, keep: str | None) -> dict[str, float]:
    root = scale_vault(Path(keep or tempfile.gettempdir()), notes)
    trust(root)
    with Memory.open(root) as memory:
        memory.sync()
    chance = random.Random(5)
    names = ("python -c pass", "resident", "alone", "status")
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    with resident(root) as started_s:
        for _ in range(runs):
            asked = question(chance)
            command = [*QUAID, "recall", asked, "--vault", str(root)]
            taken["python -c pass"].append(timed([sys.executable, "-c", "pass"], "auto")[1:])
            there, *costs = timed(command, "auto")
            taken["resident"].append(tuple(costs))
            alone, *costs = timed(command, "off")
            taken["alone"].append(tuple(costs))
            assert there == alone, asked
            taken["status"].append(timed([*QUAID, "status", "--vault", str(root)], "off")[1:])
        listening = find_listening(root)
    found: dict[str, float] = {}
    for name, each in taken.items():
        wall = sorted(wall for wall, _ in each)
        found[f"{name}, p50, ms"] = statistics.median(wall)
        found[f"{name}, p95, ms"] = wall[int(0.95 * len(wall))]
        found[f"{name}, least, ms"] = wall[0]
        found[f"{name}, processor p50, ms"] = statistics.median(cpu for _, cpu in each)
        found[f"{name}, times python -c pass"] = statistics.median(wall) / found["python -c pass, p50, ms"]
    assert listening is not None
    return found | {"resident's memory, MB": listening.memory_mb, "resident is there after, s": started_s}


@contextmanager
def resident(root: Path) -> Iterator[float]:
    """A process that answers for the vault at `root`; yields after how many seconds it did. Calls ask it."""
    before = os.environ.get("QUAID_RESIDENT")
    os.environ["QUAID_RESIDENT"] = "auto"
    started = time.monotonic()
    process = subprocess.Popen([sys.executable, "-m", "quaid.cli.resident", str(root), "900"])
    try:
        while find_listening(root) is None:
            assert time.monotonic() - started < START_S, "nobody listens"
            time.sleep(0.02)
        yield time.monotonic() - started
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(10)
        os.environ.pop("QUAID_RESIDENT")
        if before is not None:
            os.environ["QUAID_RESIDENT"] = before


def timed(command: list[str], mode: str) -> tuple[bytes, float, float]:
    """(what was printed, milliseconds, processor milliseconds) of a whole process."""
    started, cpu = time.perf_counter(), os.times()
    done = subprocess.run(command, capture_output=True, check=True, env={**os.environ, "QUAID_RESIDENT": mode})
    took, after = time.perf_counter() - started, os.times()
    spent = after.children_user + after.children_system - cpu.children_user - cpu.children_system
    return done.stdout + done.stderr, took * 1000, spent * 1000


if __name__ == "__main__":
    main()
