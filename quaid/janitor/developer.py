"""What only those who work on Quaid want of a night."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

LIMIT_S = 1800


def run_tests(checkout: Path = Path(__file__).parents[2]) -> list[str]:
    """How Quaid's own tests went, in a sentence; nothing unless QUAID_DEV is 1."""
    if os.environ.get("QUAID_DEV") != "1":
        return []
    if not (checkout / "tests").is_dir():
        return ["Quaid's own tests were not run: it was installed without them."]
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("QUAID_", "GIT_"))}
    command = [sys.executable, "-P", "-m", "pytest", "-q"]
    try:
        done = subprocess.run(
            command, cwd=checkout, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=LIMIT_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return [f"Quaid's own tests took longer than {LIMIT_S // 60} minutes and were stopped."]
    told = "passed" if done.returncode == 0 else "failed"
    last = (done.stdout.strip() or done.stderr.strip()).splitlines()[-1:]
    return [f"Quaid's own tests {told}: {''.join(last)}"]
