"""The owner's git at the same time as Quaid's writes: does a commit of the owner's take back one of Quaid's?

`beside`: a commit of the owner's falls somewhere into a write. `hammer`: the owner commits without a pause.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from ground import arguments, git, new_vault, show

COMMANDS = (
    ("commit", "-q", "--allow-empty", "-m", "owner"),
    ("add", "-A"),
    ("commit", "-q", "--allow-empty", "-am", "owner"),
)


def main() -> None:
    options = arguments(__doc__ or "")
    dice = random.Random(options.seed)
    rows: dict[str, dict[str, object]] = {}
    for name, pause in (("beside", lambda: dice.random() * 0.25), ("hammer", lambda: 0.0)):
        with new_vault() as root:
            rows[name] = race(root, options.seconds / 2, pause)
    show("races", rows)
    sys.exit(1 if any(row["reverted"] or row["facts lost"] for row in rows.values()) else 0)


def race(root: Path, seconds: float, pause: Callable[[], float], writes: int = 1_000_000) -> dict[str, object]:
    """Remember facts for a while, with the owner's git beside it. Counts what went through and what was undone."""
    from quaid import Memory
    from quaid.errors import QuaidError

    over, counts = threading.Event(), {"commits": 0, "refused": 0}
    owner = threading.Thread(target=_own, args=(root, over, pause, counts))
    until, facts, refused = time.time() + seconds, [], 0
    with Memory.open(root) as memory:
        owner.start()
        try:
            while time.time() < until and len(facts) < writes:
                try:
                    facts.append(memory.remember(f"Maya said q{len(facts)}x{refused}y to everybody").path)
                except QuaidError:
                    refused += 1
        finally:
            over.set()
            owner.join()
    held = set(git(root, "ls-tree", "-r", "--name-only", "-z", "HEAD").stdout.split("\0"))
    removing = git(root, "log", "--diff-filter=D", "--author=Maya", "--format=%H", "--", "facts").stdout.split()
    return {
        "owner's commits": counts["commits"],
        "owner refused": counts["refused"],
        "writes": len(facts),
        "writes refused": refused,
        "reverted": len(removing),
        "facts lost": sum(path not in held and not (root / path).exists() for path in facts),
        "staged": len(git(root, "diff", "--cached", "--name-only").stdout.split()),
    }


def _own(root: Path, over: threading.Event, pause: Callable[[], float], counts: dict[str, int]) -> None:
    number = 0
    while not over.is_set():
        command = COMMANDS[number % len(COMMANDS)]
        number += 1
        done = git(root, *command, check=False)
        counts["commits" if done.returncode == 0 else "refused"] += command[0] == "commit" or done.returncode != 0
        time.sleep(pause())
    # What they had added is committed: a write that came after `git add` leaves its file to them.
    for _ in range(100):
        if git(root, *COMMANDS[0], check=False).returncode == 0:
            return
        time.sleep(0.02)


if __name__ == "__main__":
    main()
