"""OpenClaw's session files (version 3, which are pi's): JSON lines that are a tree by `parentId`.

Going back leaves the branch behind in the file, so the conversation is what leads to the last entry. What was said
before a compaction or a reset belongs to it; summaries that the model wrote, and messages that extensions put in, do
not. A gateway puts before a user's words who sent them, where and when.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from quaid.capture.cleaning import clean_text
from quaid.capture.transcripts.lines import find_texts, list_objects, read_objects
from quaid.capture.transcripts.timestamps import parse_timestamp
from quaid.capture.transcripts.turns import Utterance, clean_typed, find_project, make_conversation, walk_back
from quaid.model import Conversation

NAME = "OpenClaw sessions"

_NOT_SAID = {
    "branch_summary": "summary",
    "compaction": "summary",
    "custom": "bookkeeping",
    "custom_message": "injected",
    "label": "bookkeeping",
    "model_change": "bookkeeping",
    "reset": "bookkeeping",
    "session_info": "bookkeeping",
    "thinking_level_change": "bookkeeping",
}
_BEGINNINGS_ANEW = frozenset({"compaction", "reset"})
_MACHINE_TEXT = re.compile(
    r"\[cron:|\[Inter-session message\]|\[Subagent Context\]|Read HEARTBEAT\.md\b|Pre-compaction memory flush\b"
    r"|A new session was started via /new or /reset\b"
)
_SILENCE = frozenset({"NO_REPLY", "HEARTBEAT_OK"})


@dataclass(slots=True)
class _Session:
    session: str | None = None
    project: str | None = None
    started: datetime | None = None
    numbers: dict[str, int] = field(default_factory=dict)
    parents: dict[int, int | None] = field(default_factory=dict)
    last_kind: str = ""
    pieces: list[Utterance] = field(default_factory=list)
    """What was said; the place of a piece is its entry's number."""


def recognises(head: Sequence[str]) -> bool:
    """Whether one of the first non-empty lines is a header with a version or an entry of the tree."""
    return any(_is_header(found) or _is_entry(found) for found in list_objects(head))


def read(lines: Iterator[str], skipped: Counter[str]) -> Iterator[Conversation]:
    """One conversation: what leads to the last entry."""
    session = _Session()
    for found in read_objects(lines, skipped):
        if _is_header(found):
            _read_header(found, session)
        elif isinstance(found.get("type"), str):
            _read_entry(found, session, skipped)
        else:
            skipped["unknown type"] += 1
    path = set(walk_back(len(session.parents) - 1, session.parents))
    kept = [piece for piece in session.pieces if piece.place in path]
    if len(kept) < len(session.pieces):
        skipped["abandoned branch"] += len(session.pieces) - len(kept)
    yield make_conversation(kept, "openclaw", session.session, session.started, session.project)


def _is_header(found: dict[str, Any]) -> bool:
    return found.get("type") == "session" and ("version" in found or "cwd" in found)


def _is_entry(found: dict[str, Any]) -> bool:
    kind = found.get("type")
    is_known = kind == "message" or (isinstance(kind, str) and kind in _NOT_SAID)
    return is_known and isinstance(found.get("id"), str) and "parentId" in found


def _read_header(found: dict[str, Any], session: _Session) -> None:
    if session.session is None and isinstance(found.get("id"), str):
        session.session = found["id"]
        session.project = find_project(found.get("cwd"))
        session.started = parse_timestamp(found.get("timestamp"))


def _read_entry(found: dict[str, Any], session: _Session, skipped: Counter[str]) -> None:
    kind = found["type"]
    number = len(session.parents)
    session.parents[number] = _find_parent(found, session)
    session.last_kind = kind
    if isinstance(found.get("id"), str):
        session.numbers[found["id"]] = number
    if kind == "message":
        session.pieces += _pieces(found, number, skipped)
    else:
        skipped[_NOT_SAID.get(kind, "unknown type")] += 1


def _find_parent(found: dict[str, Any], session: _Session) -> int | None:
    before = len(session.parents) - 1 if session.parents else None
    parent = found.get("parentId")
    if isinstance(parent, str):
        # A parent that is not in the file was lost or compacted away: the entry before must do.
        return session.numbers.get(parent, before)
    is_root = "parentId" in found and found["type"] not in _BEGINNINGS_ANEW
    return None if is_root and session.last_kind not in _BEGINNINGS_ANEW else before


def _pieces(found: dict[str, Any], number: int, skipped: Counter[str]) -> Iterator[Utterance]:
    message = found.get("message")
    role = message.get("role") if isinstance(message, dict) else None
    if not isinstance(message, dict) or role not in ("user", "assistant"):
        skipped["system or tool"] += 1
        return
    at = parse_timestamp(found.get("timestamp")) or parse_timestamp(message.get("timestamp"))
    for raw in find_texts(message.get("content"), skipped):
        text, reason = _said(raw, role)
        if reason:
            skipped[reason] += 1
        else:
            # What a channel delivered is written down once more by the gateway.
            yield Utterance(role, text, at, number, source="answer")


def _said(raw: str, role: str) -> tuple[str, str | None]:
    text = clean_text(raw)
    if role == "assistant":
        return text, "silence" if text in _SILENCE else None if text else "empty"
    if _MACHINE_TEXT.match(text):
        return text, "notification"
    typed = clean_typed(text)
    if typed and _MACHINE_TEXT.match(typed):
        return typed, "notification"
    return typed, None if typed else "empty"
