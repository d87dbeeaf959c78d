"""Bytes -> lines -> JSON objects, one at a time, whatever state the file is in."""

from __future__ import annotations

import codecs
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import IO, Any

LINE_LIMIT_BYTES = 64 * 2**20
"""Bytes. A longer line is skipped and counted."""

_TEXT_BLOCKS = frozenset({"text", "input_text", "output_text"})
_OTHER_BLOCKS = {
    "thinking": "thinking",
    "redacted_thinking": "thinking",
    "tool_use": "tool call",
    "server_tool_use": "tool call",
    "toolCall": "tool call",
    "tool_result": "tool result",
}
_JSON_START = re.compile(r"""\s*(?:\{\s*(?:"|\}|$)|\[\s*(?:[{"\[\]]|$))""")


def read_lines(stream: IO[bytes], skipped: Counter[str]) -> Iterator[str]:
    """The lines of `stream` without their newlines, blank ones included, as text.

    UTF-8 with or without BOM, or UTF-16 with one; bytes that are not text become U+FFFD.
    """
    first = stream.readline(LINE_LIMIT_BYTES)
    if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        yield from (first + stream.read()).decode("utf-16", "replace").split("\n")
        return
    raw = first.removeprefix(codecs.BOM_UTF8)
    while raw:
        if len(raw) >= LINE_LIMIT_BYTES and not raw.endswith(b"\n"):
            while (chunk := stream.readline(LINE_LIMIT_BYTES)) and not chunk.endswith(b"\n"):
                pass
            skipped["overlong line"] += 1
        else:
            yield raw.decode("utf-8", "replace").removesuffix("\n").removesuffix("\r")
        raw = stream.readline(LINE_LIMIT_BYTES)


def parse_object(line: str) -> dict[str, Any] | None:
    """The JSON object on `line`, or None when it holds anything else or is half-written."""
    try:
        value = json.loads(line.replace("\0", "").strip())
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def list_objects(head: Sequence[str]) -> list[dict[str, Any]]:
    """The JSON objects among `head`; empty unless most of its lines begin like JSON."""
    return [found for line in head if (found := parse_object(line)) is not None] if is_json(head) else []


def is_json(head: Sequence[str]) -> bool:
    """Return True when these lines are JSON or JSONL rather than prose that quotes some."""
    starts = [_JSON_START.match(line.replace("\0", "")) is not None for line in head]
    return bool(starts) and (starts[0] or sum(starts) * 2 > len(starts))


def read_objects(lines: Iterator[str], skipped: Counter[str]) -> Iterator[dict[str, Any]]:
    """The JSON objects on `lines`; what cannot be read is counted, blank lines are not."""
    for line in lines:
        found = parse_object(line)
        if found is not None:
            yield found
        elif line.strip("\0 \t\r"):
            skipped["unreadable line"] += 1


def find_texts(content: object, skipped: Counter[str]) -> Iterator[str]:
    """The texts in a message's content: a string, or a list of strings, `{"type": "text", "text"}` blocks and documents
    that were pasted.
    """
    blocks = [content] if isinstance(content, str) else content if isinstance(content, list) else []
    for block in blocks:
        if isinstance(block, str):
            yield block
            continue
        found = block if isinstance(block, dict) else {}
        kind = str(found.get("type"))
        is_pasted = kind == "document" and (text_at(found, "title") or "").lower().startswith("paste")
        text = text_at(found, "source", "data") if is_pasted else found.get("text")
        if (is_pasted or kind in _TEXT_BLOCKS) and isinstance(text, str):
            yield text
        else:
            skipped[_OTHER_BLOCKS.get(kind, "attachment")] += 1


def value_at(found: object, *keys: str) -> Any:
    """The value below `keys`, of objects in objects; None where one of them is missing."""
    for key in keys:
        if not isinstance(found, dict):
            return None
        found = found.get(key)
    return found


def text_at(found: object, *keys: str) -> str | None:
    """The string below `keys`; None where there is none."""
    for key in keys:  # as value_at, without a call: a line has several texts
        if not isinstance(found, dict):
            return None
        found = found.get(key)
    return found if isinstance(found, str) else None


def object_at(found: object, *keys: str) -> dict[str, Any]:
    """The object below `keys`; empty where there is none."""
    value = value_at(found, *keys)
    return value if isinstance(value, dict) else {}


def list_at(found: object, *keys: str) -> list[Any]:
    """The list below `keys`; empty where there is none."""
    value = value_at(found, *keys)
    return value if isinstance(value, list) else []
