"""The formats that can be imported, recognised by content: here mem0, exports of Quaid, and folders of notes."""

import base64
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from quaid.capture.cleaning import clean_line
from quaid.capture.facts import NewFact
from quaid.capture.importers.basic_memory import BasicMemory
from quaid.capture.importers.import_content import NOT_MARKDOWN, ImportContent, ImportFormat, ImportSource
from quaid.capture.importers.markdown_memories import MarkdownMemories
from quaid.capture.transcripts.parsing import parse_object, parse_timestamp
from quaid.errors import BadInputError
from quaid.model import Edge
from quaid.text.zones import localise
from quaid.vault import layout

EXPORT_VERSION = 1
_LISTS = ("results", "memories", "data")
_TEXTS = ("memory", "text", "data", "content")
_MAX_KEYWORDS = 12
_DRIVE = re.compile(r"[A-Za-z]:")


class QuaidExport(ImportFormat):
    """Exports of `quaid export`: one file of a vault per line, which comes back byte for byte."""

    name = "quaid"

    @staticmethod
    def recognises(source: ImportSource) -> bool:
        first = next((line for line in (source.only_text or "").split("\n") if line.strip()), "")
        keys = (parse_object(first) or {}).keys()
        return {"v", "path"} <= keys and not keys.isdisjoint({"content", "content_base64"})

    @staticmethod
    def read(source: ImportSource, found: ImportContent) -> None:
        if source.is_folder:
            raise BadInputError(f"{source.name} is a folder. Give the file that quaid export wrote.")
        # Not by splitlines: U+2028 for one, which JSON allows, would end a line too.
        for number, line in enumerate(next(iter(source.files.values())).split(b"\n"), 1):
            if not line.strip():
                continue
            row = parse_object(line.decode("utf-8", "replace"))
            if row is None:
                found.left_out["lines that are not JSON"] += 1
                continue
            version = row.get("v")
            if version != EXPORT_VERSION:
                raise BadInputError(
                    f"The line {number} of {source.name} was written by another version of Quaid (v is {version!r}). "
                    "Update Quaid."
                )
            path, content, data = row.get("path"), row.get("content"), None
            with suppress(KeyError, TypeError, ValueError):
                if isinstance(content, str):
                    data = content.encode()
                else:
                    data = base64.b64decode(row["content_base64"], validate=True)
            if not isinstance(path, str) or data is None:
                found.left_out["lines without a path or a content"] += 1
            elif not can_import(path):
                found.left_out["paths that no note of a vault can have"] += 1
            else:
                found.files.append((path, found.admit_bytes(path, data)))


def can_import(rel_path: str) -> bool:
    """Return True for the path of a note in a vault. Nothing else may be written."""
    if _DRIVE.match(rel_path) or any(part in {"", ".", ".."} for part in rel_path.split("/")):
        return False
    if any(char in rel_path for char in "\\\0\n\r") or any("\ud800" <= char <= "\udfff" for char in rel_path):
        return False
    return layout.is_note_path(rel_path)


class Mem0(ImportFormat):
    """mem0: memories as JSON, from its `get_all`, its exports and its pages.

    `{"results": [{"id", "memory", "user_id", "created_at", "categories", "metadata", …}], "relations": […]}`, the list
    alone, `{"memories": […]}`, or one memory per line.
    """

    name = "mem0"

    @staticmethod
    def recognises(source: ImportSource) -> bool:
        rows = _load_mem0(source.only_text or "")[0]
        return any("memory" in row or ("user_id" in row and _text_of(row)) for row in rows[:50])

    @staticmethod
    def read(source: ImportSource, found: ImportContent) -> None:
        memories, relations, broken = _load_mem0(source.only_text or "")
        if not any(_text_of(row) for row in memories):
            raise BadInputError(
                f"{source.name} holds no memories of mem0: a list of objects with a 'memory' was expected."
            )
        if broken:
            found.left_out["lines that are not JSON"] += broken
        for row in memories:
            Mem0.read_memory(row, found)
        for row in relations:
            given = (_text_of(row, ("source",)), _text_of(row, ("destination", "target")))
            ends = [name.replace("_", " ").strip() for name in given]  # mem0 joins the words of a name
            relation = row.get("relationship") or row.get("relation")
            if all(ends) and isinstance(relation, str):
                subject, target = (found.admit("relations", end) for end in ends)
                found.edges.append(Edge(subject, relation, target))
            else:
                found.left_out["relations without two ends"] += 1

    @staticmethod
    def read_memory(row: dict[str, Any], found: ImportContent) -> None:
        """Add the fact of one memory."""
        place = str(row.get("id") or row.get("hash") or "")
        text = clean_line(found.admit(place or "a memory without id", _text_of(row)))
        if not text:
            found.left_out["entries without a text"] += 1
            return
        metadata = row.get("metadata")
        described = metadata if isinstance(metadata, dict) else {}
        words = [*_words(row.get("categories")), *_words(described.get("category")), *_words(described.get("type"))]
        admitted = [found.admit(place, word) for word in words]
        keywords = [word for word in admitted if word.casefold() not in text.casefold()]
        created, updated, expires = (
            parse_timestamp(row.get(key)) for key in ("created_at", "updated_at", "expiration_date")
        )
        owner = row.get("user_id")
        found.facts.append(
            NewFact(
                text,
                imported_from=place,
                type="preference" if "preference" in " ".join(words).casefold() else "fact",
                created=(made := created or updated) and localise(made),
                valid_until=expires.date().isoformat() if expires else None,
                keywords=tuple(dict.fromkeys(keywords))[:_MAX_KEYWORDS],
                owner=owner.strip() or "default" if found.keeps_owners and isinstance(owner, str) else "default",
            )
        )


def _load_mem0(text: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]], int]:
    """Return (memories, relations, the number of broken lines); nothing for JSON of another kind."""
    if not text.lstrip().startswith(("{", "[")):
        return [], [], 0
    data = _parse(text)
    if data is None:
        rows = [_parse(line) for line in text.splitlines() if line.strip()]
        return _objects(rows), [], rows.count(None)
    if not isinstance(data, dict):
        return _objects(data), [], 0
    memories = next((data[key] for key in _LISTS if isinstance(data.get(key), list)), [data])
    return _objects(memories), _objects(data.get("relations")), 0


def _parse(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _objects(data: object) -> list[dict[str, Any]]:
    return [row for row in data if isinstance(row, dict)] if isinstance(data, list) else []


def _text_of(row: dict[str, Any], keys: Sequence[str] = _TEXTS) -> str:
    return next((row[key] for key in keys if isinstance(row.get(key), str) and row[key].strip()), "")


def _words(value: object) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [" ".join(word.replace("_", " ").split())[:60] for word in values if isinstance(word, str) and word.strip()]


class NoteFolder(ImportFormat):
    """A note, or a folder of them such as an Obsidian vault: its markdown is copied byte for byte.

    Links and names hold for the whole vault, so the links have the same targets as before. Settings of programs and
    attachments stay where they are.
    """

    name = "notes"

    @staticmethod
    def recognises(source: ImportSource) -> bool:
        return source.is_folder and bool(source.notes)

    @staticmethod
    def read(source: ImportSource, found: ImportContent) -> None:
        if not source.notes:
            raise BadInputError(f"{source.name} holds no markdown. Give a note, or the folder that holds the notes.")
        for path, data in source.files.items():
            if not path.endswith(".md"):
                found.left_out[NOT_MARKDOWN] += 1
            elif layout.is_conflict_copy(path):
                found.left_out["copies that a sync tool made of a conflict"] += 1
            elif not layout.is_note_path(path):
                found.left_out["temporary files of an editor"] += 1
            else:
                found.files.append((f"{found.into}/{path}", found.admit_bytes(path, data)))


FORMATS: tuple[type[ImportFormat], ...] = (QuaidExport, Mem0, BasicMemory, MarkdownMemories, NoteFolder)
"""Tried in this order; any folder with markdown is a folder of notes, so it stays last."""


def select_format(source: ImportSource, name: str | None = None) -> type[ImportFormat]:
    """Return the format `name`, else that of the program, else the one that recognises `source`."""
    if source.program and name is None:
        return next((form for form in FORMATS[:-1] if form.recognises(source)), MarkdownMemories)
    known = ", ".join(form.name for form in FORMATS)
    if name is not None:
        named = next((form for form in FORMATS if name == form.name), None)
        if named is None:
            raise BadInputError(f"{name!r} is not a format to import from. Known are: {known}.")
        return named
    for form in FORMATS:
        if form.recognises(source):
            return form
    raise BadInputError(
        f"{source.name} holds nothing that is known as memories. Say what it is with --from: one of {known}."
    )
