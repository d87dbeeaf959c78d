"""The report of a bug, by whichever door it came in: versions, the call, the traceback, to paste into an issue."""

import os
import platform
import sys
import tempfile
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from quaid.embed.weights import cache_folder
from quaid.errors import QuaidError
from quaid.place import LOG_DIR, state_folder, write_private
from quaid.redaction import admit
from quaid.sqlite import refusal
from quaid.text.invisible import escaped

PACKAGES = ("quaid", "apsw", "sqlite-vec", "onnxruntime", "numpy", "typer", "watchdog", "mcp")


def write_report(error: BaseException, arguments: Sequence[str], root: Path | None) -> Path | None:
    """Write the report into the vault's log folder, else the user's cache folder; return its path, None without any."""
    now = datetime.now(UTC)
    versions = []
    for package in PACKAGES:
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            versions.append(f"{package} not installed")
    call = f"{now.isoformat(timespec='seconds')}\nquaid {' '.join(map(repr, arguments))}"
    machine = "\n".join((f"Python {sys.version}", platform.platform(), *versions))
    text = admit(f"{call}\n\n{machine}\n\n{''.join(traceback.format_exception(error))}").text
    folders = [cache_folder() / LOG_DIR, Path(tempfile.gettempdir())]
    if root is not None and state_folder(root).is_dir():
        folders.insert(0, state_folder(root) / LOG_DIR)
    for folder in folders:
        path = folder / f"bug-{now:%Y%m%d-%H%M%S}-{os.getpid()}.txt"
        try:
            write_private(path, escaped(text))
        except OSError:
            continue
        return path
    return None


def refusal_of(error: Exception, root: Path | None) -> QuaidError | None:
    """The sentence for a disk or a database that is at fault instead of Quaid; None where it is a bug."""
    return None if root is None else refusal(error, state_folder(root))
