"""The files of a work tree and of a state folder without a text: what can be made again is deleted."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from quaid.errors import DiskFailedError
from quaid.history.moving import overwrite
from quaid.local.rows import clean_rows
from quaid.place import AS_OF_DIR, DOCS_FILE, INDEX_FILE, LOCAL_FILE, write_private
from quaid.purge.rules import PurgeRules
from quaid.purge.wording import Wording
from quaid.sqlite import DAILY

_SQLITE = b"SQLite format 3\0"


def iterate_files(folder: Path) -> Iterator[Path]:
    """Yield every regular file and symbolic link below `folder`, except in repositories; no link is followed.

    Raises:
        DiskFailedError: a folder cannot be read.
    """
    for path in iterate_entries(folder, ".git"):
        if path.is_symlink() or path.is_file():
            yield path


def iterate_entries(folder: Path, skipped: str = "") -> Iterator[Path]:
    """Yield all that is below `folder` and not in what is called `skipped`, folders too; no link is followed.

    Raises:
        DiskFailedError: a folder cannot be read.
    """
    for place, folders, names in os.walk(folder, onerror=_refuse):
        yield from (Path(place, name) for name in sorted([*folders, *names]) if name != skipped)
        folders[:] = sorted(name for name in folders if name != skipped)


def read_file(path: Path) -> bytes:
    """Return what git keeps of a file: of a symbolic link where it leads.

    Raises:
        DiskFailedError: it cannot be read.
        FileNotFoundError: it is gone.
    """
    try:
        return os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
    except OSError as error:
        _refuse(error)
        raise


def _refuse(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise DiskFailedError(error.filename, error.strerror or str(error)) from error


def clean_tree(top: Path, rules: PurgeRules) -> None:
    """Take the text out of the files below `top`, and out of their names."""
    for path in list(iterate_files(top)):
        data = read_file(path)
        changed = rules.change_file(data)
        if changed is None:
            path.unlink()
            _remove_empty(path.parent, top)
            continue
        if changed != data:
            overwrite(path, changed)
        name = os.fsencode(path.relative_to(top))
        if (new := rules.change_path(name)) != name:
            wanted = target = top / os.fsdecode(new)
            numbers = count(2)
            while os.path.lexists(target):
                target = wanted.with_stem(f"{wanted.stem}-{next(numbers)}")
            target.parent.mkdir(parents=True, exist_ok=True)
            path.replace(target)
            _remove_empty(path.parent, top)


def clean_state(state: Path, wording: Wording) -> None:
    """Take the text out of what this machine keeps of a vault. The indexes are deleted: they are made again."""
    shutil.rmtree(state / AS_OF_DIR, ignore_errors=True)
    for name in (INDEX_FILE, DOCS_FILE):
        for path in state.glob(f"{name}*"):
            path.unlink()
    if (state / LOCAL_FILE).exists():
        clean_rows(state / LOCAL_FILE, wording.is_in, wording.replace)
    for path in filter(lambda path: not path.is_symlink(), iterate_files(state)):
        if path.name.startswith((LOCAL_FILE, "cache.db")) and not path.name.endswith((".damaged", DAILY, ".tmp")):
            continue
        data = path.read_bytes()
        if data.startswith(_SQLITE):  # a database that was set aside, or a copy of one
            if path.name.endswith((".damaged", DAILY, f"{DAILY}.tmp")):
                path.unlink()
        elif (changed := wording.replace(data)) != data:
            write_private(path, changed)
        if wording.is_in(os.fsencode(path.name)):
            path.unlink(missing_ok=True)


def _remove_empty(folder: Path, top: Path) -> None:
    while folder != top and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent
