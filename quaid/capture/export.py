"""A vault as JSON lines, one per note, that `quaid import` restores byte for byte.

Settings, attachments, the history and other files are not exported.
"""

import base64
import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from quaid.capture.importers.formats import EXPORT_VERSION, can_import
from quaid.errors import BadInputError
from quaid.model import Kind
from quaid.recall.visibility import may_see
from quaid.shapes import json_object
from quaid.vault import files, layout, notes
from quaid.vault.layout import Layout

_FIELDS = (
    "title", "type", "status", "owner", "privacy", "confidence", "durability", "speaker", "source", "session",
    "project", "technical", "pinned", "verified", "confirmations", "created", "valid_from", "valid_until",
    "superseded_by",
)  # fmt: skip


def export_notes(
    root: Path, owners: Collection[str], kinds: Collection[str] = (), only: Collection[str] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield each note, or those at the paths `only`, by path, without the private notes of others than `owners`.

    `content` (or `content_base64`, if it is not UTF-8) is all of it; the other fields are for readers who want only the
    facts. `kinds` are the wanted ones; none means all.
    """
    if unknown := set(kinds) - set(Kind):
        raise BadInputError(f"Unknown kind: {', '.join(sorted(unknown))}. Kinds are: {', '.join(Kind)}.")
    place = Layout.of_vault(root)
    for path in sorted(files.list_notes(root).notes if only is None else only):
        if not can_import(path):
            continue
        data = files.read_note(root, path)
        if data is None or not may_see(path, data, owners, place):
            continue
        note = notes.parse_note(path, data, max_bytes=len(data) + 1, place=place)
        if kinds and note.kind not in kinds:
            continue
        fields = json_object(note, *_FIELDS, aliases=note.names[1:], keywords=note.keywords, edges=note.edges)
        if note.kind is Kind.FACT:
            fields["turns"] = [f"{cited.episode}#t{cited.turn}" for cited in note.citations]
        text = note.text or "\n\n".join(f"{c.speaker}: {c.text}" if c.speaker else c.text for c in note.chunks)
        row: dict[str, Any] = {"v": EXPORT_VERSION, "path": path, "kind": str(note.kind), "id": note.id, "text": text}
        row |= {name: value for name, value in fields.items() if value not in (None, "", [], False)}
        try:
            yield row | {"content": data.decode("utf-8")}
        except UnicodeDecodeError:
            yield row | {"content_base64": base64.b64encode(data).decode()}


def write_export(rows: Iterator[str], path: Path) -> int:
    """Write lines to a file atomically and return their number. Only an earlier export is replaced."""
    temporary = path.with_name(layout.temporary_name(path.name))
    try:
        start = b""
        if path.exists():
            with path.open("rb") as file:
                start = file.read(200)
        if start.strip() and not (start.startswith(b'{"v": ') and b'"path": ' in start):
            raise BadInputError(f"{path} exists and is not an export: it was left as it is. Give another file.")
        count = 0
        try:
            with temporary.open("x", encoding="utf-8", newline="\n") as new:
                for count, row in enumerate(rows, 1):  # noqa: B007
                    new.write(f"{row}\n")
                new.flush()
                os.fsync(new.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise BadInputError(f"{path} cannot be written ({reason}). Give a file in a folder of yours.") from error
    return count
