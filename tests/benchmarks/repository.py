"""How long a large history takes: a commit, `quaid push` and `pull` of one change, `log`, `status`, `why` and `audit`.

    python tests/benchmarks/repository.py
    python tests/benchmarks/repository.py --notes 10000 --commits 2000 --audit --json result.json

The repository is made by `git fast-import`: `--commits` of Quaid's, each of which adds its share of `--notes`. Each
figure is the median of `--runs`: processor time (user and system, of this process and of those it starts) and wall
time. Push and pull go to a bare repository on this disk and from it to a second vault. `quaid` is a whole process; the
indexes are built before the first, and follow each commit.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench import describe_machine, make_parser, processor_s, quaid, save

from quaid import Memory
from quaid.history.vault_history import History
from quaid.model import Edit, Message
from quaid.settings import GitSettings

TARGETS_MS = {"commit": 250, "quaid push": 1000, "quaid pull": 1000, "quaid log": 500}
NOTE = (
    "---\nid: 01{number:024}\ntype: fact\nstatus: active\nowner: default\nsource: user\n---\nMaya read book {number}.\n"
)
QUAID = "Quaid <quaid@localhost>"
BEGAN = 1_700_000_000


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--notes", type=int, default=100_000)
    parser.add_argument("--commits", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--audit", action="store_true", help="also measure quaid audit")
    options = parser.parse_args()
    print(describe_machine())
    with tempfile.TemporaryDirectory(prefix="quaid-repository-") as folder:
        for name, value in {"CONFIG": "config", "STATE": "state"}.items():
            os.environ[f"QUAID_{name}_DIR"] = f"{folder}/{value}"
        os.environ |= {"QUAID_EMBEDDING_PROVIDER": "none", "QUAID_MODELS_PROVIDER": "none"}
        found = measure(Path(folder), options)
    print(f"{options.notes:,} notes, {options.commits:,} commits; medians of {options.runs}, in ms")
    for name, (cpu, wall) in found.items():
        print(f"{name:12} processor {cpu:7.0f}   wall {wall:7.0f}   target {TARGETS_MS.get(name, '-')}")
    save(options.json, {"notes": options.notes, "commits": options.commits, "ms": found})


def measure(folder: Path, options: argparse.Namespace) -> dict[str, tuple[float, float]]:
    """(processor time, wall time) in ms of each operation."""
    root, bare, other = folder / "vault", folder / "bare.git", folder / "other"
    Memory.create(root)[0].close()
    fill(root, options.notes, options.commits)
    git(folder, "clone", "-q", "--bare", str(root), str(bare))
    quaid("clone", str(bare), str(other))
    quaid("remote", "add", str(bare), "--vault", str(root))
    quaid("push", "--vault", str(root))
    history, numbers = History(root, GitSettings()), iter(range(options.notes, options.notes + 10_000))

    def commit() -> None:
        number = next(numbers)
        edit = Edit(path_of(number), None, NOTE.format(number=number).encode())
        (root / edit.rel_path).parent.mkdir(parents=True, exist_ok=True)
        (root / edit.rel_path).write_bytes(edit.after or b"")
        assert history.commit([edit], Message(f"remember: book {number}")).id

    runs: dict[str, Callable[[], object]] = {
        "commit": commit,
        "quaid push": lambda: quaid("push", "--vault", str(root)),
        "quaid pull": lambda: quaid("pull", "--vault", str(other)),
        "quaid log": lambda: quaid("log", "--vault", str(root)),
        "quaid status": lambda: quaid("status", "--vault", str(root)),
        "quaid why": lambda: quaid("why", path_of(options.notes // 2), "--vault", str(root)),
    }
    for vault in (root, other):
        quaid("sync", "--accept-removals", "--vault", str(vault))
    if options.audit:
        runs["quaid audit"] = lambda: quaid("audit", "--json", "--vault", str(root))
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
    for _ in range(options.runs + 1):  # the first warms the caches of the disk and does not count
        for name, job in runs.items():
            taken[name].append(timed(job))
    return {
        name: (statistics.median(cpu for cpu, _ in each[1:]), statistics.median(wall for _, wall in each[1:]))
        for name, each in taken.items()
    }


def fill(root: Path, notes: int, commits: int) -> None:
    """Add the notes to the branch in so many commits, and check them out."""
    head = git(root, "rev-parse", "HEAD").decode().strip()
    stream = b"".join(list_commits(head, notes, commits))
    git(root, "fast-import", "--quiet", stdin=stream)
    git(root, "reset", "-q", "--hard", "main")
    git(root, "pack-refs", "--all")


def list_commits(parent: str, notes: int, commits: int) -> Iterator[bytes]:
    """The stream that `git fast-import` reads."""
    for place in range(commits):
        message = f"extract: books from session {place}\n\nQuaid-Task: extract\nQuaid-Session: {place}\n".encode()
        yield f"commit refs/heads/main\ncommitter {QUAID} {BEGAN + 3600 * place} +0000\n".encode()
        yield b"data %d\n%b\n" % (len(message), message)
        if place == 0:
            yield f"from {parent}\n".encode()
        for number in range(place * notes // commits, (place + 1) * notes // commits):
            data = NOTE.format(number=number).encode()
            yield f"M 100644 inline {path_of(number)}\n".encode() + b"data %d\n%b\n" % (len(data), data)


def path_of(number: int) -> str:
    """Quaid's own places: a folder for each month, of some 3,000 notes here."""
    months = number // 3_000
    return f"facts/{2000 + months // 12}/{months % 12 + 1:02}/maya-read-book-{number:08}.md"


def timed(job: Callable[[], object]) -> tuple[float, float]:
    """(processor time, wall time) in ms."""
    cpu, wall = processor_s(), time.perf_counter()
    job()
    return 1000 * (processor_s() - cpu), 1000 * (time.perf_counter() - wall)


def git(folder: Path, *args: str, stdin: bytes = b"") -> bytes:
    quiet = ("-c", "gc.auto=0", "-c", "maintenance.auto=false")
    return run([str(shutil.which("git")), "-C", str(folder), *quiet, *args], stdin)


def run(command: list[str], stdin: bytes = b"") -> bytes:
    return subprocess.run(command, input=stdin, stdout=subprocess.PIPE, check=True).stdout


if __name__ == "__main__":
    main()
