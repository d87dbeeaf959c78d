"""Memories of other programs on this machine that can be taken in. They are found by name and place and not read."""

import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

MAX_PROJECTS = 200
MAX_ARCHIVES = 50
"""Files of a folder that are opened to see whether they are an export."""
_EXPORTED = "conversations"
"""Of ChatGPT and Claude.ai: conversations.json, or conversations-000.json and so on."""


def find_memories(home: Path, environ: Mapping[str, str], folders: Sequence[Path]) -> list[tuple[Path, str, str]]:
    """Return the memories of programs in the home folder of the user, and the exports in `folders`: each a file or
    folder, what it is, and the command that takes it in.
    """
    claude = Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude").expanduser()
    places: list[tuple[Path, str]] = []
    with suppress(OSError):
        memories = sorted(islice(claude.glob("projects/*/memory/MEMORY.md"), MAX_PROJECTS))
        places = [(path, "memory of Claude Code") for path in memories]
    places.append((home / ".openclaw" / "workspace" / "MEMORY.md", "memory of OpenClaw"))
    places.append((home / "basic-memory", "notes of basic-memory"))
    found: list[tuple[Path, str, str]] = []
    for path, what in places:
        with suppress(OSError):
            if path.is_file() or (path.is_dir() and any(path.rglob("*.md"))):
                found.append((path, what, "import"))
    for folder in dict.fromkeys(folders):
        with suppress(OSError):
            files = sorted(path for path in folder.iterdir() if path.suffix.lower() in {".json", ".zip"})
            exports = filter(_is_export, files[:MAX_ARCHIVES])
            found += [(path, "exported conversations", "extract") for path in exports]
    return found


def _is_export(path: Path) -> bool:
    if path.suffix.lower() == ".json":
        return path.stem.startswith(_EXPORTED) and path.is_file()
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name.rpartition("/")[2] for name in archive.namelist()]
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError):
        return False
    return any(name.startswith(_EXPORTED) and name.endswith(".json") for name in names)
