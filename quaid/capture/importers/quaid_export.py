"""Exports of `quaid export`: one file of a vault per line, which comes back as the bytes it was."""

from __future__ import annotations

import base64
import json
import re
from contextlib import suppress
from typing import Any

from quaid.capture.importers.import_content import ImportContent, ImportedFile, ImportSource
from quaid.errors import BadInputError
from quaid.vault import layout, ledger

NAME = "quaid"
VERSION = 1

_DRIVE = re.compile(r"[A-Za-z]:")


def recognises(source: ImportSource) -> bool:
    first = next((line for line in (source.only_text or "").split("\n") if line.strip()), "")
    row = _parse(first)
    return row is not None and "v" in row and "path" in row and bool({"content", "content_base64"} & row.keys())


def read(source: ImportSource, found: ImportContent) -> None:
    if source.is_folder:
        raise BadInputError(f"{source.name} is a folder. Give the file that quaid export wrote.")
    # Not by splitlines: what JSON leaves as it is, U+2028 for one, would end a line too.
    for number, line in enumerate(next(iter(source.files.values())).split(b"\n"), 1):
        if line.strip():
            file = _read_line(line, f"line {number} of {source.name}", found)
            if file is not None:
                found.files.append(file)


def is_exported(rel_path: str) -> bool:
    """Return True for a file of the vault that is memory: a note, or a device's counts. Nothing else may be written."""
    if _DRIVE.match(rel_path) or any(part in {"", ".", ".."} for part in rel_path.split("/")):
        return False
    if any(char in rel_path for char in "\\\0\n\r") or any("\ud800" <= char <= "\udfff" for char in rel_path):
        return False
    *folders, name = rel_path.split("/")
    if folders[-1:] == [ledger.USAGE_DIR] and name.endswith(".tsv"):
        return layout.is_vault_path(rel_path)
    return layout.is_note_path(rel_path)


def _read_line(line: bytes, place: str, found: ImportContent) -> ImportedFile | None:
    row = _parse(line.decode("utf-8", "replace"))
    if row is None:
        found.left_out["lines that are not JSON"] += 1
        return None
    version = row.get("v")
    if version != VERSION:
        raise BadInputError(f"The {place} was written by another version of Quaid (v is {version!r}). Update Quaid.")
    path, content, data = row.get("path"), row.get("content"), None
    if isinstance(content, str):
        with suppress(UnicodeEncodeError):
            data = content.encode("utf-8")
    else:
        with suppress(KeyError, TypeError, ValueError):
            data = base64.b64decode(row["content_base64"], validate=True)
    if not isinstance(path, str) or data is None:
        found.left_out["lines without a path or a content"] += 1
        return None
    if not is_exported(path):
        found.left_out["paths that no note of a vault can have"] += 1
        return None
    return ImportedFile(path, found.admitted_bytes(path, data))


def _parse(line: str) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None
