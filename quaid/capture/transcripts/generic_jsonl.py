"""JSON lines, one turn a line, from any program that can write them.

`{"role": "user", "content": "…", "speaker"?: "Maya", "timestamp"?: "…"}`, or the same wrapped as
`{"type": "message", "message": {…}}`. A line `{"session": "…", "started": "…"}` may come first. Facts and
benchmarks cite turns by number, so a line that carries text is one turn, always.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from quaid.capture.cleaning import clean_name, clean_text
from quaid.capture.transcripts.lines import find_texts, list_objects, read_objects, text_at
from quaid.capture.transcripts.timestamps import parse_timestamp
from quaid.model import Conversation, Turn

NAME = 'JSON lines with "role" and "content"'

_ROLES = {"user": "user", "human": "user", "assistant": "assistant", "ai": "assistant", "model": "assistant"}
_NOT_SAID = frozenset({"system", "developer", "tool", "function", "toolResult"})
_DEFAULT_SPEAKERS = {"user": "User", "assistant": "Assistant"}


def recognises(head: Sequence[str]) -> bool:
    """Return True when one of the first non-empty lines is a message or a header of this format."""
    return any(_message(found) or {"session", "started"} <= found.keys() for found in list_objects(head))


def read(lines: Iterator[str], skipped: Counter[str]) -> Iterator[Conversation]:
    """One conversation: turn n is the n-th line of a user or assistant that carries text, even if none is left."""
    head = Conversation((), source="jsonl")
    turns: list[Turn] = []
    for found in read_objects(lines, skipped):
        message = _message(found)
        is_header = "session" in found or "started" in found or found.get("type") == "session"
        if message is not None:
            turns += _turns(found, message, skipped)
        elif not turns and is_header and not (head.session or head.started or head.project):
            session = found.get("session", found.get("id"))
            head = replace(
                head,
                session=clean_name(str(session)) or None if isinstance(session, str | int) else None,
                started=parse_timestamp(found.get("started", found.get("timestamp"))),
                project=clean_name(text_at(found, "project") or "") or None,
            )
        else:
            skipped["unknown type"] += 1
    started = head.started or next((turn.at for turn in turns if turn.at), None)
    yield replace(head, turns=tuple(turns), started=started)


def _message(found: dict[str, Any]) -> dict[str, Any] | None:
    inner = found.get("message") if found.get("type") == "message" else found
    is_message = isinstance(inner, dict) and isinstance(inner.get("role"), str) and "content" in inner
    return inner if is_message else None


def _turns(found: dict[str, Any], message: dict[str, Any], skipped: Counter[str]) -> Iterator[Turn]:
    role = _ROLES.get(message["role"])
    if role is None:
        skipped["system or tool" if message["role"] in _NOT_SAID else "unknown role"] += 1
        return
    raw = "\n\n".join(text for text in find_texts(message["content"], skipped) if text.strip())
    if not raw:
        skipped["empty"] += 1
        return
    speaker = message.get("speaker") or found.get("speaker")
    yield Turn(
        speaker=(clean_name(speaker) if isinstance(speaker, str) else "") or _DEFAULT_SPEAKERS[role],
        text=clean_text(raw),
        role=role,
        at=parse_timestamp(message.get("timestamp")) or parse_timestamp(found.get("timestamp")),
    )
