"""A writer killed at a random moment, again and again: is what it acknowledged there, and does the next write go on?

After each kill the owner may commit what is staged, what lies about may be two hours old, and one more fact is written.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

from ground import arguments, git, new_vault, show

HOURS_S = 7200


def main() -> None:
    options = arguments(__doc__ or "")
    with new_vault() as root:
        figures = kill_often(root, options.seconds, random.Random(options.seed))
    show("kills", {"remember, link": figures})
    sys.exit(1 if figures["facts lost"] or figures["blocked"] or figures["reverted"] else 0)


def kill_often(root: Path, seconds: float, dice: random.Random, kills: int = 1_000_000) -> dict[str, object]:
    """Kill writers for a while. Counts what was lost of what they acknowledged, and writes that were kept from going on."""
    from quaid import Memory
    from quaid.errors import QuaidError

    until, killed, acknowledged, blocked, refused_owner = time.time() + seconds, 0, [], 0, 0
    while time.time() < until and killed < kills:
        acknowledged += _kill_one(root, killed, dice.random() * 0.35, dice)
        killed += 1
        git_dir = root / ".git"
        if dice.random() < 0.3:
            for stray in (*git_dir.glob("quaid-commit-*"), *git_dir.glob("index.lock")):
                os.utime(stray, (time.time() - HOURS_S,) * 2)
        if dice.random() < 0.4:
            refused_owner += git(root, "commit", "-q", "--allow-empty", "-m", "owner", check=False).returncode != 0
        try:
            with Memory.open(root) as memory:
                acknowledged.append(memory.remember(f"Maya went on after kill {killed}").path)
        except QuaidError as error:
            blocked += 1
            print(f"blocked: {error}", file=sys.stderr)
            (git_dir / "index.lock").unlink(missing_ok=True)
    held = set(git(root, "ls-tree", "-r", "--name-only", "-z", "HEAD").stdout.split("\0"))
    removing = git(root, "log", "--diff-filter=D", "--author=Maya", "--format=%H", "--", "facts", "entities").stdout
    return {
        "kills": killed,
        "acknowledged": len(acknowledged),
        "facts lost": sum(path not in held for path in acknowledged),
        "reverted": len(removing.split()),
        "blocked": blocked,
        "owner refused": refused_owner,
        "staged": len(git(root, "diff", "--cached", "--name-only").stdout.split()),
    }


def _kill_one(root: Path, number: int, after_s: float, dice: random.Random) -> list[str]:
    """The paths that a writer acknowledged before it was killed, with its git processes or without them."""
    reading, writing = os.pipe()
    if not (child := os.fork()):
        os.setsid()
        _write_on(root, number, writing)
    os.close(writing)
    with os.fdopen(reading) as told:
        told.readline()  # it has begun
        time.sleep(after_s)
        (os.killpg if dice.random() < 0.5 else os.kill)(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return [line.strip() for line in told if line.endswith("\n")]


def _write_on(root: Path, number: int, told: int) -> None:
    from quaid import Memory

    try:
        with Memory.open(root) as memory:
            os.write(told, b"begun\n")
            for turn in range(1000):
                written = (
                    memory.link(f"Person {turn % 3}", "knows", f"Zoe q{number}x{turn}y")
                    if turn % 4 == 3
                    else memory.remember(f"Maya said q{number}x{turn}y to everybody")
                )
                os.write(told, f"{written.path}\n".encode())
    finally:
        os._exit(1)


if __name__ == "__main__":
    main()
