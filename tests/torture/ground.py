"""What the torture harnesses share: a vault of their own, its owner's git, and how figures are printed."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, os.environ.get("PYTHONPATH") or str(Path(__file__).parents[2]))

OWNER = ("-c", "user.name=Maya", "-c", "user.email=maya@example.org", "-c", "core.quotePath=false")
ENVIRONMENT = {
    "QUAID_EMBEDDING_PROVIDER": "none",
    "QUAID_MODELS_PROVIDER": "none",
    "QUAID_NOTIFICATIONS_CHANNELS": "",
    "QUAID_VAULT_HAND_WRITTEN": "managed",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


def arguments(description: str, *flags: str) -> argparse.Namespace:
    """`--seconds N`: how long; `--seed N`: which dice; and `flags`."""
    parser = argparse.ArgumentParser(description=description)
    for flag in flags:
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


@contextmanager
def new_vault() -> Iterator[Path]:
    """A vault in a temporary folder, gone afterwards; nothing of this machine's user is read."""
    from quaid import Memory

    folder, before = Path(tempfile.mkdtemp(prefix="quaid-torture-")), dict(os.environ)
    os.environ.update(ENVIRONMENT, QUAID_CONFIG_DIR=str(folder / "config"), QUAID_STATE_DIR=str(folder / "state"))
    try:
        Memory.create(folder / "vault")[0].close()
        yield folder / "vault"
    finally:
        os.environ.clear()
        os.environ.update(before)
        shutil.rmtree(folder, ignore_errors=True)


def git(root: Path, *args: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run the owner's git in the vault."""
    done = subprocess.run(["git", *OWNER, *args], cwd=root, capture_output=True, text=True, check=False)
    if check and done.returncode:
        raise RuntimeError(f"git {' '.join(args)}: {done.stderr}")
    return done


def show(title: str, rows: Mapping[str, Mapping[str, object]]) -> None:
    """Print one table, a row each, and the same figures as one line of JSON."""
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    width = max(len(name) for name in (*rows, title))
    print("  ".join([title.ljust(width), *(column.rjust(max(8, len(column))) for column in columns)]))
    for name, row in rows.items():
        cells = (str(row.get(column, "")).rjust(max(8, len(column))) for column in columns)
        print("  ".join([name.ljust(width), *cells]))
    print(json.dumps({title: rows}))
