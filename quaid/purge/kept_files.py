"""The files of a work tree and of a state folder without a text: what can be made again is deleted."""

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

from quaid.history.rewriting import overwrite
from quaid.local.rows import clean_rows
from quaid.place import AS_OF_DIR, DOCS_FILE, INDEX_FILE, LOCAL_FILE, write_private
from quaid.purge.wording import Wording
from quaid.sqlite import DAILY

_SQLITE = b"SQLite format 3\0"


def iterate_files(folder: Path) -> Iterator[Path]:
    """Yield every regular file and symbolic link below `folder`, except in repositories; no link is followed."""
    return (path for path in iterate_entries(folder, ".git") if path.is_symlink() or path.is_file())


def iterate_entries(folder: Path, skipped: str = "") -> Iterator[Path]:
    """Yield all that is below `folder`, folders too, and not in what is called `skipped`; no link is followed. Raises
    OSError: a folder cannot be read.
    """

    def refuse(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):  # another program has removed it
            raise error

    for place, folders, names in os.walk(folder, onerror=refuse):
        yield from (Path(place, name) for name in sorted([*folders, *names]) if name != skipped)
        folders[:] = sorted(name for name in folders if name != skipped)


def read_file(path: Path) -> bytes:
    """Return what git keeps of a file: of a symbolic link where it leads."""
    return os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()


def clean_tree(top: Path, wording: Wording) -> None:
    """Take the text out of the files below `top`, and out of their names."""
    for path in list(iterate_files(top)):
        data = read_file(path)
        changed = wording.change_file(data)
        if changed is None:
            path.unlink()
            _remove_empty(path.parent)
            continue
        if changed != data:
            overwrite(path, changed)
        name = os.fsencode(path.relative_to(top))
        if (new := wording.change_path(name)) != name:
            wanted = target = top / os.fsdecode(new)
            numbers = count(2)
            while os.path.lexists(target):
                target = wanted.with_stem(f"{wanted.stem}-{next(numbers)}")
            target.parent.mkdir(parents=True, exist_ok=True)
            path.replace(target)
            _remove_empty(path.parent)


def clean_state(state: Path, wording: Wording) -> None:
    """Take the text out of what this machine keeps of a vault. The indexes are deleted: they are made again."""
    shutil.rmtree(state / AS_OF_DIR, ignore_errors=True)
    for name in (INDEX_FILE, DOCS_FILE):
        for path in state.glob(f"{name}*"):
            path.unlink()
    if (state / LOCAL_FILE).exists():
        clean_rows(state / LOCAL_FILE, wording.change_text)
    for path in iterate_files(state):
        is_copy = path.name.endswith((".damaged", DAILY, f"{DAILY}.tmp"))
        if path.is_symlink() or (path.name.startswith((LOCAL_FILE, "cache.db")) and not is_copy):
            continue
        data = path.read_bytes()
        if wording.is_in(os.fsencode(path.name)) or (is_copy and data.startswith(_SQLITE)):
            path.unlink()
        elif not data.startswith(_SQLITE) and (changed := wording.change_text(data)) != data:
            write_private(path, changed)


def _remove_empty(folder: Path) -> None:
    with suppress(OSError):  # something is in it, or in the one above
        os.removedirs(folder)
