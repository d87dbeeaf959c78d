"""Old versions of notes that stay reachable for an hour, where the system does not tell who has a file open.

There an editor may hold a note open, and save it long after Quaid has put a new file in its place. The next write finds
that text and sets it aside under the name of the note.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import time
from contextlib import suppress
from pathlib import Path

from quaid.model import Edit
from quaid.vault import file_swap, files, intent_log

FOLDER = "quaid-displaced"
"""In git's folder: a second name of a file must be on the same disk, and git must not see it."""
MAX_AGE_S = 3600.0
_NAME = re.compile(r"(\d{1,12})-([0-9a-f]{8})-([0-9a-f]{16})")


def keep(root: Path, git_dir: Path, edit: Edit) -> None:
    """Give the file of `edit` a second name before it is exchanged, where the file system can."""
    name = f"{time.time():.0f}-{os.urandom(4).hex()}-{_digest(edit.before or b'')}"
    kept = git_dir / FOLDER / name / edit.rel_path
    with suppress(OSError):
        kept.parent.mkdir(mode=0o700, parents=True)
        os.link(root / edit.rel_path, kept, follow_symlinks=False)


def set_aside_saved(root: Path, git_dir: Path) -> None:
    """Set aside text that editors have written into old versions since, and remove versions that are an hour old."""
    for folder in sorted((git_dir / FOLDER).glob("*")):
        named = _NAME.fullmatch(folder.name)
        if named is None or folder.is_symlink():
            continue
        since, token, digest = named.groups()
        if changed := _set_aside_changed(root, folder, digest):
            folder.rename(folder.with_name(f"{since}-{token}-{changed}"))
        elif time.time() - int(since) > MAX_AGE_S:
            shutil.rmtree(folder, ignore_errors=True)


def _set_aside_changed(root: Path, folder: Path, digest: str) -> str | None:
    """The digest of the old version in `folder` when it is no longer `digest`, and was set aside."""
    for path in [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]:
        rel_path = path.relative_to(folder).as_posix()
        data = files.read_note(folder, rel_path) or b""
        if digest != _digest(data) and _is_lost(root / rel_path, path, data):
            intent_log.set_aside(root, f"{rel_path} was saved while Quaid wrote it", [Edit(rel_path, None, data)])
            return _digest(data)
    return None


def _is_lost(note: Path, old: Path, data: bytes) -> bool:
    """Return True if a text that was saved a moment ago or longer is in the old version alone."""
    try:
        is_saved = time.time() - old.stat().st_mtime > file_swap.QUIET_S
        return is_saved and not (note.exists() and (note.samefile(old) or note.read_bytes() == data))
    except OSError:
        return False


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
