"""The files of a work tree and of a state folder without a text: what can be made again is deleted."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from quaid.local.rows import clean_rows
from quaid.place import AS_OF_DIR, DOCS_FILE, INDEX_FILE, LOCAL_FILE, write_private
from quaid.purge.rules import PurgeRules
from quaid.purge.wording import Wording

_SQLITE = b"SQLite format 3\0"


def iterate_files(folder: Path, skipped: Sequence[str] = (".git",)) -> Iterator[Path]:
    """Yield every regular file below `folder`; no link is followed."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in skipped)
        files = (Path(place, name) for name in sorted(names))
        yield from (path for path in files if path.name not in skipped and path.is_file() and not path.is_symlink())


def clean_tree(top: Path, rules: PurgeRules) -> None:
    """Take the text out of the files below `top`, and out of their names."""
    for path in iterate_files(top):
        data = path.read_bytes()
        changed = rules.change_file(data)
        if changed is None:
            path.unlink()
            _remove_empty(path.parent, top)
            continue
        if changed != data:
            _overwrite(path, changed)
        name = os.fsencode(path.relative_to(top))
        if (new := rules.change_path(name)) != name:
            target = top / os.fsdecode(new)
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
    for path in iterate_files(state):
        if path.name.startswith((LOCAL_FILE, "cache.db")) and not path.name.endswith((".damaged", ".tmp")):
            continue
        data = path.read_bytes()
        if data.startswith(_SQLITE):  # a database that was set aside
            if path.name.endswith(".damaged"):
                path.unlink()
        elif (changed := wording.replace(data)) != data:
            write_private(path, changed)
        if wording.is_in(os.fsencode(path.name)):
            path.unlink(missing_ok=True)


def _overwrite(path: Path, data: bytes) -> None:
    draft = path.with_name(f".{path.name[:40]}.{os.urandom(6).hex()}.tmp")
    draft.write_bytes(data)
    shutil.copymode(path, draft)
    draft.replace(path)


def _remove_empty(folder: Path, top: Path) -> None:
    while folder != top and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent
