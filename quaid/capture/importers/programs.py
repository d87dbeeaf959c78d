"""Where the programs of agents store their memories on this machine. Nothing is read to find them."""

import os
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from quaid.capture.importers.agent_memories import CLAUDE_AI, MEMORIES

MAX_ENTRIES = 200
"""Projects of a program, and files of a folder, that are looked at."""
_PROGRAMS = {
    # name: title, the variable that moves its folder, that folder in the home folder, and its files and folders in it
    "codex": ("Codex", "CODEX_HOME", ".codex", "memories"),
    "claude-code": ("Claude Code", "CLAUDE_CONFIG_DIR", ".claude", "projects/*/memory"),
    "openclaw": ("OpenClaw", "OPENCLAW_STATE_DIR", ".openclaw", "workspace*/[MU]*.md workspace*/memory"),
    "gemini": ("Gemini CLI", "", ".gemini", "GEMINI.md"),
    "cursor": ("Cursor", "", ".cursor", "rules memories"),
    "windsurf": ("Windsurf", "", ".codeium/windsurf", "memories"),
    "basic-memory": ("basic-memory", "", "", "basic-memory"),
}


class Program(NamedTuple):
    """A program with memories. `places` are files and folders in `folder`; notes are named relative to that."""

    name: str
    title: str
    folder: Path
    places: tuple[Path, ...]


def find_programs(home: Path, environ: Mapping[str, str]) -> list[Program]:
    """Return the programs that store memories on this machine, and the newest export of memories in Downloads."""
    found: list[Program] = []
    for name, (title, variable, folder, patterns) in _PROGRAMS.items():
        base = Path(environ.get(variable) or home / folder).expanduser()
        with suppress(OSError):
            matches = [path for pattern in patterns.split() for path in islice(base.glob(pattern), MAX_ENTRIES)]
            notes = [path for path in matches if path.is_file() or any(path.rglob("*.md*"))]
            if places := tuple(sorted(notes)):
                found.append(Program(name, title, base, places))
    if exports := [*find_exports([home / "Downloads"], MEMORIES)]:
        newest = max(exports, key=os.path.getmtime)
        found.append(Program(CLAUDE_AI, "Claude.ai, exported", newest.parent, (newest,)))
    return found


def name_program(name: str, path: Path) -> Program:
    """Return the memories in a file or folder under a name of its owner's choice, as if a program stored them."""
    return Program(name, name, path if path.is_dir() else path.parent, (path,))


def find_exports(folders: Iterable[Path], named: re.Pattern[str]) -> Iterator[Path]:
    """Yield the files in `folders` that are `named` so, and the archives that have such a file."""
    for folder in dict.fromkeys(folders):
        with suppress(OSError):
            files = sorted(path for path in folder.iterdir() if path.suffix.lower() in {".json", ".zip"})
            yield from (path for path in files[:MAX_ENTRIES] if any(map(named.fullmatch, list_names(path))))


def list_names(path: Path) -> list[str]:
    if path.suffix.lower() == ".json":
        return [path.name]
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError):
        return []
