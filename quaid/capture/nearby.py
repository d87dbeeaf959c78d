"""Memories of other programs on this machine that can be taken in. They are found by name and place and not read."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

MAX_PROJECTS = 200
MAX_ARCHIVES = 50
"""Files of a folder that are opened to see whether they are an export."""
_EXPORTED = "conversations"
"""Of ChatGPT and Claude.ai: conversations.json, or conversations-000.json and so on."""


class NearbyMemory(NamedTuple):
    """A file or folder, what it is, and the command that takes it in."""

    path: Path
    what: str
    command: Literal["import", "extract"]


def find_memories(home: Path, environ: Mapping[str, str], folders: Sequence[Path]) -> list[NearbyMemory]:
    """Return what programs keep in the home folder of the user, and the exports in `folders`."""
    claude = Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude").expanduser()
    kept = [
        *(NearbyMemory(path, "memory of Claude Code", "import") for path in _claude_memories(claude)),
        NearbyMemory(home / ".openclaw" / "workspace" / "MEMORY.md", "memory of OpenClaw", "import"),
        NearbyMemory(home / "basic-memory", "notes of basic-memory", "import"),
    ]
    found = [one for one in kept if _exists(one.path)]
    for folder in dict.fromkeys(folders):
        found += (NearbyMemory(path, "exported conversations", "extract") for path in _exports(folder))
    return found


def _claude_memories(claude: Path) -> Iterator[Path]:
    try:
        yield from sorted(islice(claude.glob("projects/*/memory/MEMORY.md"), MAX_PROJECTS))
    except OSError:
        return


def _exists(path: Path) -> bool:
    try:
        return path.is_file() or (path.is_dir() and any(path.rglob("*.md")))
    except OSError:
        return False


def _exports(folder: Path) -> Iterator[Path]:
    try:
        names = sorted(path for path in folder.iterdir() if path.suffix.lower() in {".json", ".zip"})
    except OSError:
        return
    for path in names[:MAX_ARCHIVES]:
        if (path.suffix.lower() == ".json" and path.stem.startswith(_EXPORTED) and path.is_file()) or (
            path.suffix.lower() == ".zip" and _holds_conversations(path)
        ):
            yield path


def _holds_conversations(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name.rpartition("/")[2] for name in archive.namelist()]
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError):
        return False
    return any(name.startswith(_EXPORTED) and name.endswith(".json") for name in names)
