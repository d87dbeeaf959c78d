"""Runs every writing command on disks that are full at each level: the vault, its state, its git folder, a file's size.

    python tests/torture/disk.py --rounds 60 --seed 1

A command that is refused says so in a sentence and leaves every note and commit as it was; one that is not refused has
done its work; nobody says that nothing was changed when something was. With room again all is well. Small disks are
mounted in a user namespace of their own; where that is not allowed, only the size of files is limited. Prints a table,
and the figures as a line of JSON; the exit code is 1 when anything broke.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]
else:
    sys.path.append(str(Path(__file__).parent))

from damage import figures_of, make_vault, run, serving_embeddings

from quaid.place import state_folder

DISK_BYTES = 24_000_000
FREE = (0, 4096, 16_384, 65_536, 262_144)
SHORT = [("limit", 16_384, "import")]
LEVELS = ("vault", "state", "git", "limit")
COMMANDS: dict[str, tuple[str, ...]] = {
    "remember": ("remember", "Maya bought a lawnmower in spring"),
    "link": ("link", "Maya", "works_at", "Acme"),
    "forget": ("forget", "01f3"),
    "note": ("note", "call Maya back"),
    "config": ("config", "recall.limit", "7"),
    "import": ("import", "{folder}/memories.json"),
    "extract": ("extract", "{folder}/talk.jsonl"),
    "janitor": ("janitor", "run"),
    "sync": ("sync",),
    "reindex": ("reindex",),
    "recall": ("recall", "quokka number 7"),
    "docs sync": ("docs", "sync"),
}


def can_mount() -> bool:
    """Whether a user namespace with mounts of its own is to be had."""
    try:
        return subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@contextmanager
def small(folder: Path) -> Iterator[None]:
    """A disk of its own for what is in `folder`."""
    aside = folder.with_name(f"{folder.name}.aside")
    shutil.copytree(folder, aside, symlinks=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "none", str(folder)], check=True)
    try:
        shutil.copytree(aside, folder, symlinks=True, dirs_exist_ok=True)
        shutil.rmtree(aside)
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@contextmanager
def filled(folder: Path, free: int) -> Iterator[None]:
    """The disk of `folder` with no more than `free` bytes left."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))
    os.truncate(ballast, max(0, ballast.stat().st_size - free))
    try:
        yield
    finally:
        ballast.unlink(missing_ok=True)


@contextmanager
def limited(size: int) -> Iterator[None]:
    """No file may grow beyond `size`: what a quota or an old file system does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def record(root: Path) -> tuple[str, dict[str, bytes]]:
    """The commit and every file of the vault but git's, the state and the ballast."""
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=True).stdout
    state = state_folder(root)
    files = (path for path in root.rglob("*") if path.is_file() and root / ".git" not in path.parents)
    return head, {
        str(path): path.read_bytes() for path in files if state not in path.parents and path.name != "ballast"
    }


def play(root: Path, level: str, free: int, name: str, command: tuple[str, ...]) -> list[str]:
    """One command without room, and again with room; what broke, in words."""
    before = record(root)
    place = {"vault": root, "state": state_folder(root), "git": root / ".git"}.get(level)
    with filled(place, free) if place is not None else limited(max(free, 4096)):
        code, out, err = run(root, command)
    after = record(root)
    told, broke = out + err, []
    if code not in {0, 1, 75}:
        broke.append(f"exit {code}: {told.strip()[-300:]}")
    if code and after != before:
        changed = [path for path in {*before[1], *after[1]} if before[1].get(path) != after[1].get(path)]
        broke.append(f"exit {code} and not rolled back: {changed[:5]} {told.strip()[-300:]}")
    if after[0] != before[0] and "nothing was changed" in told:
        broke.append(f"committed, and said: {told.strip()[-300:]}")
    if code and len(err.split()) < 4:
        broke.append(f"no sentence: {err!r}")
    for step, again in ((name, command), ("verify", ("verify",)), ("status", ("status",))):
        code, out, err = run(root, again)
        if code and not (step == name == "forget" and after != before):
            broke.append(f"{step} with room again: exit {code}: {(out + err).strip()[-300:]}")
    if strays := [str(path) for path in root.rglob("*.tmp")]:
        broke.append(f"left behind: {strays[:3]}")
    return broke


def torture(rounds: int, seed: int, *, plan: list[tuple[str, int, str]] | None = None) -> dict[str, Any]:
    """Play `rounds` random rounds, or those of `plan`; the figures. The mounts are the caller's namespace's."""
    chance = random.Random(seed)
    levels = LEVELS if os.environ.get("QUAID_TORTURE_MOUNTS") else LEVELS[-1:]
    started = time.monotonic()
    tried: Counter[str] = Counter()
    broken: dict[str, list[str]] = {}
    folder = Path(tempfile.mkdtemp(prefix="quaid-torture-"))
    environment = dict(os.environ)
    services = ExitStack()
    try:
        root = make_vault(folder, services.enter_context(serving_embeddings()))
        (folder / "memories.json").write_text(
            json.dumps([{"id": f"{n}", "memory": f"Maya's wombat number {n} likes carrots."} for n in range(20)])
        )
        (folder / "talk.jsonl").write_text(
            '{"session": "s1", "started": "2026-11-20T14:00:00Z"}\n{"role": "user", "content": "We adopted a quokka."}\n'
        )
        state = state_folder(root)
        for each, kept_as in ((root, "vault"), (state, "state")):
            shutil.copytree(each, folder / "whole" / kept_as, symlinks=True)
        for number in range(len(plan) if plan else rounds):
            level, free, name = plan[number] if plan else (
                chance.choice(levels), chance.choice(FREE), chance.choice([*COMMANDS]),
            )  # fmt: skip
            for each, kept_as in ((root, "vault"), (state, "state")):
                shutil.rmtree(each, ignore_errors=True)
                shutil.copytree(folder / "whole" / kept_as, each, symlinks=True)
            place = {"vault": root, "state": state, "git": root / ".git"}.get(level)
            command = tuple(word.format(folder=folder) for word in COMMANDS[name])
            tried[level] += 1
            with small(place) if place is not None else nullcontext():
                found = play(root, level, free, name, command)
            if found:
                broken.setdefault(f"{level} {free} {name}", []).extend(found)
                print(f"round {number}, {level} with {free} bytes, {name}: " + "\n  ".join(found), file=sys.stderr)
    finally:
        services.close()
        os.environ.clear()
        os.environ.update(environment)
        shutil.rmtree(folder, ignore_errors=True)
    return figures_of("disk", seed, tried, broken, time.monotonic() - started)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--short", action="store_true", help="the form that the suite runs")
    given = parser.parse_args()
    if not given.short and "QUAID_TORTURE_MOUNTS" not in os.environ:
        if can_mount():
            os.environ["QUAID_TORTURE_MOUNTS"] = "1"
            os.execvp("unshare", ["unshare", "-rm", sys.executable, *sys.argv])
        print("No mounts of our own are allowed here: only the size of files is limited.", file=sys.stderr)
    figures = torture(given.rounds, given.seed, plan=SHORT if given.short else None)
    for level, number in sorted(figures["tried"].items()):
        failed = sum(n for what, n in figures["broke"].items() if what.split()[0] == level)
        print(f"{level:<8} tried {number:>4}   broke {failed:>4}")
    del figures["details"]
    print(json.dumps(figures))
    return 1 if figures["broke"] else 0


if __name__ == "__main__":
    sys.exit(main())
