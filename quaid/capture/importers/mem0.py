"""mem0: memories as JSON, as its `get_all`, its exports and its pages answer.

`{"results": [{"id", "memory", "user_id", "created_at", "categories", "metadata", …}], "relations": […]}`, the list
alone, `{"memories": […]}`, or one memory a line.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from quaid.capture.cleaning import clean_line
from quaid.capture.importers.import_content import ImportContent, ImportedFact, ImportSource
from quaid.errors import BadInputError
from quaid.model import Edge
from quaid.vault import notes

NAME = "mem0"

_LISTS = ("results", "memories", "data")
_TEXTS = ("memory", "text", "data", "content")
_MAX_KEYWORDS = 12


def recognises(source: ImportSource) -> bool:
    rows = _load(source.only_text or "").memories
    return any("memory" in row or ("user_id" in row and _text_of(row)) for row in rows[:50])


def read(source: ImportSource, found: ImportContent) -> None:
    loaded = _load(source.only_text or "")
    if not any(_text_of(row) for row in loaded.memories):
        raise BadInputError(f"{source.name} holds no memories of mem0: a list of objects with a 'memory' was expected.")
    if loaded.broken:
        found.left_out["lines that are not JSON"] += loaded.broken
    for row in loaded.memories:
        fact = _as_fact(row, found)
        if fact is None:
            found.left_out["entries without a text"] += 1
        else:
            found.facts.append(fact)
    for row in loaded.relations:
        given = (_text_of(row, ("source",)), _text_of(row, ("destination", "target")))
        ends = [name.replace("_", " ").strip() for name in given]  # mem0 joins the words of a name with underscores
        relation = row.get("relationship") or row.get("relation")
        if all(ends) and isinstance(relation, str):
            found.edges.append(
                Edge(found.admitted("relations", ends[0]), relation, found.admitted("relations", ends[1]))
            )
        else:
            found.left_out["relations without two ends"] += 1


class _Loaded(NamedTuple):
    memories: list[dict[str, Any]]
    relations: list[dict[str, Any]]
    broken: int = 0


def _load(text: str) -> _Loaded:
    """The memories and the relations in a JSON text; nothing where it is of another kind."""
    if not text.lstrip().startswith(("{", "[")):
        return _Loaded([], [])
    data = _parse(text)
    if data is None:
        rows = [_parse(line) for line in text.splitlines() if line.strip()]
        return _Loaded(_objects(rows), [], rows.count(None))
    if not isinstance(data, dict):
        return _Loaded(_objects(data), [])
    memories = next((data[key] for key in _LISTS if isinstance(data.get(key), list)), [data])
    return _Loaded(_objects(memories), _objects(data.get("relations")))


def _parse(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _objects(data: object) -> list[dict[str, Any]]:
    return [row for row in data if isinstance(row, dict)] if isinstance(data, list) else []


def _text_of(row: dict[str, Any], keys: Sequence[str] = _TEXTS) -> str:
    return next((row[key] for key in keys if isinstance(row.get(key), str) and row[key].strip()), "")


def _as_fact(row: dict[str, Any], found: ImportContent) -> ImportedFact | None:
    place = str(row.get("id") or row.get("hash") or "")
    text = clean_line(found.admitted(place or "a memory without id", _text_of(row)))
    if not text:
        return None
    metadata = row.get("metadata")
    described = metadata if isinstance(metadata, dict) else {}
    words = [*_words(row.get("categories")), *_words(described.get("category")), *_words(described.get("type"))]
    keywords = [
        word for word in (found.admitted(place, word) for word in words) if word.casefold() not in text.casefold()
    ]
    expires = _moment(row.get("expiration_date"))
    owner = row.get("user_id")
    return ImportedFact(
        text,
        place,
        "preference" if "preference" in " ".join(words).casefold() else "fact",
        created=_moment(row.get("created_at")) or _moment(row.get("updated_at")),
        valid_until=expires.date().isoformat() if expires else None,
        keywords=tuple(dict.fromkeys(keywords))[:_MAX_KEYWORDS],
        owner=owner.strip() or None if found.keeps_owners and isinstance(owner, str) else None,
    )


def _words(value: object) -> list[str]:
    """A category, or a list of them, as words."""
    values = value if isinstance(value, list) else [value]
    return [" ".join(word.replace("_", " ").split())[:60] for word in values if isinstance(word, str) and word.strip()]


def _moment(value: object) -> datetime | None:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            return datetime.fromtimestamp(value, UTC)
        except (ValueError, OverflowError, OSError):
            return None
    return notes.parse_time(value) if isinstance(value, str) else None
