"""The command that takes in what a file or folder holds: conversations, memories, or papers to read."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from quaid.capture.importers.formats import select_format
from quaid.capture.importers.import_content import MARKDOWN, ImportSource
from quaid.capture.transcripts import is_transcript
from quaid.errors import BadInputError
from quaid.vault import layout

_MAX_FILES = 2000
"""Files of a folder that are looked at for a hint."""
_JSON = (".json", ".jsonl")
_MAX_EXPORT_BYTES = 64 * 2**20
_PAPERS = (".pdf", ".txt")


def list_transcripts(folder: Path) -> list[Path]:
    """The files in and below `folder` that hold conversations of a known program, by path; none that are hidden."""
    return [path for path in _walk(folder) if path.suffix.lower() not in (*MARKDOWN, *_PAPERS) and is_transcript(path)]


def hint_for(path: Path, tried: str) -> str:
    """A sentence that names the command for `path`, where it is another than the one that was `tried`; or nothing."""
    found = next(_list_commands(path, tried), None) if path.exists() else None
    if found is None:
        return ""
    command, what, given = found
    return f" It holds {what}: quaid {command} {given}"


def _list_commands(path: Path, tried: str) -> Iterator[tuple[str, str, str]]:
    """Yield (command, what it takes, its argument) for what `path` holds, the surest first."""
    files = list(islice(_walk(path), _MAX_FILES)) if path.is_dir() else [path]
    shown = shlex.quote(str(path))
    endings = {file.suffix.lower() for file in files}
    if tried != "extract" and any(is_transcript(file) for file in files if file.suffix.lower() not in MARKDOWN):
        yield "extract", "conversations", shown
    if tried != "import":
        if not endings.isdisjoint(MARKDOWN):
            yield "import", "notes", shown
        if exports := [file for file in files if _is_export(file)]:
            yield "import", "memories", shlex.quote(str(exports[0]))
    elif path.is_dir() and (exports := [file for file in files if _is_export(file)]):
        yield "import", "memories", shlex.quote(str(exports[0]))
    papers = [ending for ending in _PAPERS if ending in endings]
    if tried != "analyze" and papers:
        yield "analyze", "papers", f"{shown}/*{papers[0]}" if path.is_dir() else shown


def _is_export(path: Path) -> bool:
    if path.suffix.lower() not in _JSON:
        return False
    try:
        if path.stat().st_size > _MAX_EXPORT_BYTES:
            return False
        select_format(ImportSource(path.name, {path.name: path.read_bytes()}, is_folder=False))
    except (OSError, BadInputError):
        return False
    return True


def _walk(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.is_symlink() or layout.skips_folder(path.name):
            continue
        if path.is_dir():
            yield from _walk(path)
        elif path.is_file():
            yield path
