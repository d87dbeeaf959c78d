"""What is kept of a bug, by whichever door it came in: versions, the call, the traceback, to paste into a report."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from quaid.errors import QuaidError
from quaid.place import LOG_DIR, state_folder, write_private
from quaid.redaction import admit
from quaid.text.invisible import escaped

PACKAGES = ("quaid", "apsw", "sqlite-vec", "onnxruntime", "numpy", "GitPython", "typer", "watchdog", "mcp")


def write_report(error: BaseException, arguments: Sequence[str], root: Path | None) -> Path | None:
    """Write the report into the vault's log folder, else the user's cache folder; where it went."""
    now = datetime.now(UTC)
    text = admit(_render(error, arguments, now)).text
    for folder in _folders(root):
        path = folder / f"bug-{now:%Y%m%d-%H%M%S}-{os.getpid()}.txt"
        try:
            write_private(path, escaped(text))
        except OSError:
            continue
        return path
    return None


def refusal_of(error: Exception, root: Path | None) -> QuaidError | None:
    """The sentence for a disk or a database that is at fault instead of Quaid; None where it is a bug."""
    if root is None:
        return None
    from quaid.sqlite import refusal

    return refusal(error, state_folder(root))


def _folders(root: Path | None) -> Iterator[Path]:
    if root is not None and state_folder(root).is_dir():
        yield state_folder(root) / LOG_DIR
    override = os.environ.get("QUAID_CACHE_DIR")
    if override:
        yield Path(override) / LOG_DIR
    else:
        import platformdirs

        yield platformdirs.user_cache_path("quaid") / LOG_DIR
    yield Path(tempfile.gettempdir())


def _render(error: BaseException, arguments: Sequence[str], now: datetime) -> str:
    versions = "\n".join(f"{name} {_version(name)}" for name in PACKAGES)
    return (
        f"{now.isoformat(timespec='seconds')}\n"
        f"quaid {' '.join(map(repr, arguments))}\n\n"
        f"Python {sys.version}\n{platform.platform()}\n{versions}\n\n" + "".join(traceback.format_exception(error))
    )


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
