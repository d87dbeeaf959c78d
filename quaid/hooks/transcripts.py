"""Opening the transcripts of agent programs, and no other file.

Hooks and queue items contain paths. Either may come from an attacker who wants another file read, so the same function
opens both.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from quaid.errors import BadInputError

_SUFFIXES = (".jsonl", ".json")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def transcript_folders() -> Iterator[Path]:
    """Yield the folders of transcripts of the programs that Quaid has hooks for."""
    home = Path.home()
    yield _setting("CLAUDE_CONFIG_DIR", home / ".claude") / "projects"
    yield _setting("CODEX_HOME", home / ".codex") / "sessions"
    yield home / ".gemini" / "tmp"
    yield _setting("OPENCLAW_STATE_DIR", home / ".openclaw") / "agents"


def open_transcript(path: str) -> IO[bytes]:
    """Open a transcript: a regular file of this user in the folder of an agent's program, not a link out of it.

    Raises:
        BadInputError: it is something else.
        OSError: it cannot be opened.
    """
    real = Path(os.path.realpath(path)) if Path(path).is_absolute() else Path()
    for folder in map(Path, map(os.path.realpath, transcript_folders())):
        if real.is_relative_to(folder) and real != folder and real.suffix in _SUFFIXES:
            return _open_below(folder, real.relative_to(folder).parts, path)
    raise _refusal(path, "it is not in the folder of an agent's program")


def open_spooled(path: str, folder: Path) -> IO[bytes]:
    """Open the messages that a hook has stored in the queue `folder`. Raises as `open_transcript`."""
    return _open_below(folder, (Path(path).name,), path)


def _open_below(folder: Path, parts: tuple[str, ...], path: str) -> IO[bytes]:
    """Open folder by folder, so that none on the way can be replaced by a link meanwhile."""
    here = os.open(folder, _FOLDER)
    try:
        for part in parts[:-1]:
            below = os.open(part, _FOLDER, dir_fd=here)
            os.close(here)
            here = below
        opened = os.open(parts[-1], _FILE, dir_fd=here)
    finally:
        os.close(here)
    about = os.fstat(opened)
    if not stat.S_ISREG(about.st_mode) or about.st_uid != os.getuid():
        os.close(opened)
        raise _refusal(path, "it is not a file of yours")
    return os.fdopen(opened, "rb")


def _refusal(path: str, why: str) -> BadInputError:
    return BadInputError(f"{path} is not read as a transcript: {why}. Take it in yourself with: quaid extract FILE")


def _setting(name: str, default: Path) -> Path:
    value = os.environ.get(name, "")
    return Path(value).expanduser() if value else default
