"""The command for the content of a file or folder: conversations, memories, or papers to read."""

import shlex
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from quaid.capture.importers.formats import select_format
from quaid.capture.importers.import_content import MARKDOWN, ImportSource
from quaid.capture.transcripts import is_transcript
from quaid.errors import BadInputError
from quaid.vault import layout

_MAX_FILES = 2000
"""Files of a folder that are read for a hint."""
_JSON = (".json", ".jsonl")
_MAX_EXPORT_BYTES = 64 * 2**20
_PAPERS = (".pdf", ".txt")


def list_transcripts(folder: Path) -> list[Path]:
    """Return the files in and below `folder` with conversations of a known program, without hidden ones."""
    return [path for path in _walk(folder) if path.suffix.lower() not in (*MARKDOWN, *_PAPERS) and is_transcript(path)]


def hint_for(path: Path, tried: str) -> str:
    """Return a sentence with the command for `path`, if it is not the one that was `tried`; else an empty text."""
    if not path.exists():
        return ""
    files = list(islice(_walk(path), _MAX_FILES)) if path.is_dir() else [path]
    shown = shlex.quote(str(path))
    endings = {file.suffix.lower() for file in files}
    if tried != "extract" and any(is_transcript(file) for file in files if file.suffix.lower() not in MARKDOWN):
        return f" It holds conversations: quaid extract {shown}"
    if tried != "import" and not endings.isdisjoint(MARKDOWN):
        return f" It holds notes: quaid import {shown}"
    for file in files if tried != "import" or path.is_dir() else ():
        with suppress(OSError, BadInputError):
            if file.suffix.lower() in _JSON and file.stat().st_size <= _MAX_EXPORT_BYTES:
                select_format(ImportSource(file.name, {file.name: file.read_bytes()}, is_folder=False))
                return f" It holds memories: quaid import {shlex.quote(str(file))}"
    papers = next((ending for ending in _PAPERS if ending in endings), None)
    if tried == "analyze" or papers is None:
        return ""
    return f" It holds papers: quaid analyze {f'{shown}/*{papers}' if path.is_dir() else shown}"


def _walk(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.is_symlink() or layout.skips_folder(path.name):
            continue
        if path.is_dir():
            yield from _walk(path)
        elif path.is_file():
            yield path
