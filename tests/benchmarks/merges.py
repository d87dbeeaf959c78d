"""Random three-way merges of all sorts of notes: what is lost, and whether the order of machines matters.

    python tests/benchmarks/merges.py [COUNT] [SEED]

Prints for each sort of note how many merges there were, how many could not be made by parts, how many lost a statement,
differed with the sides exchanged, and of those of three machines how many differed in what they say, and in the order
of lines alone. Then the time of a merge and of the driver, in processor time. Exits with 1 when anything was lost.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from merged_notes import LINES, SENTENCES_OF_LINES, SORTS, Sort, change, find_lost, list_statements  # noqa: E402

from quaid.vault.merging import merge_note  # noqa: E402

COLUMNS = (
    "merges",
    "not by parts",
    "lost",
    "differ",
    "of three",
    "differ in words",
    "differ in order",
    "of those kept apart",
)


def main(count: int, seed: int) -> int:
    """Run `count` merges and print what came of them."""
    rng = Random(seed)
    found: dict[str, Counter[str]] = {name: Counter() for name in SORTS}
    started = time.process_time()
    merges = 0
    for _ in range(count):
        name = rng.choice(list(SORTS))
        merges += merge_once(rng, SORTS[name], found[name])
    took_s = time.process_time() - started
    print(f"{'':10}" + "".join(f"{column:>20}" for column in COLUMNS))
    for name, counts in found.items():
        print(f"{name:10}" + "".join(f"{counts[column]:>20,}" for column in COLUMNS))
    print(f"{merges:,} merges in {took_s:.1f} s of processor time, making the notes included; seed {seed}")
    print(
        f"the driver: {time_driver() * 1000:.0f} ms of processor time (least of 15); Python alone: {time_python() * 1000:.0f} ms"
    )
    bad = ("not by parts", "lost", "differ", "differ in words", "of those kept apart")
    return int(any(counts[column] for counts in found.values() for column in bad))


def merge_once(rng: Random, sort: Sort, counts: Counter[str]) -> int:
    """One merge of two machines and, where all files differ, of three; how many merges that took."""
    kinds = rng.choice([LINES, SENTENCES_OF_LINES, (*LINES, "reword", "append")])
    base = sort.make(rng) if rng.random() < 0.75 else ""
    one, two, three = (change(rng, sort, base, kinds) for _ in range(3))
    taken = 0

    def merge(left: str, right: str) -> str | None:
        nonlocal taken
        taken += 1
        merged = merge_note(base.encode(), left.encode(), right.encode(), sort.path)
        return merged.decode() if merged is not None else None

    both, other, outer = merge(one, two), merge(two, three), merge(one, three)
    counts["merges"] += 1
    if both is None or other is None or outer is None:
        counts["not by parts"] += 1
        return taken
    counts["lost"] += bool(find_lost(base, one, two, both))
    counts["differ"] += both != merge(two, one)
    if len({base, one, two, three, both, other, outer}) == 7:
        counts["of three"] += 1
        left, right = merge(both, three), merge(one, other)
        words = left is None or right is None or list_statements(left) != list_statements(right)
        counts["differ in words"] += words
        counts["differ in order"] += left != right and not words
        counts["of those kept apart"] += left != right and kinds in (LINES, SENTENCES_OF_LINES)
    return taken


def time_driver() -> float:
    """Seconds of processor time that `quaid merge-driver` takes for a fact that both sides have confirmed."""
    rng = Random(1)
    base = SORTS["fact"].make(rng)
    with TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in "OAB"]
        for path, number in zip(paths, (0, 1, 2), strict=True):
            path.write_text(base.replace("speaker: Maya", f"confirmations: {number}"), encoding="utf-8")
        ours = paths[1].read_bytes()
        times = []
        for _ in range(15):
            paths[1].write_bytes(ours)
            times.append(time_process([sys.executable, "-P", "-m", "quaid", "merge-driver", *map(str, paths), "7", SORTS["fact"].path]))  # fmt: skip
        return min(times)


def time_python() -> float:
    """The same of a Python that does nothing."""
    return min(time_process([sys.executable, "-c", "pass"]) for _ in range(15))


def time_process(command: list[str]) -> float:
    """Seconds of processor time of a process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, cwd=ROOT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    given = [*sys.argv[1:3], *("10000", "1")[len(sys.argv) - 1 :]]
    sys.exit(main(int(given[0]), int(given[1])))
