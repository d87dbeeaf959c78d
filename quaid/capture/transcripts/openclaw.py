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
from quaid.capture.transcripts.lines import find_texts, list_objects, object_at, read_objects, text_at
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
_DIRECTIVE = r"\[\[ ?(?:reply_to_current|reply_to: ?[^\[\]\n]{1,200}|audio_as_voice) ?\]\]"
_DIRECTIVES = re.compile(rf"\A(?:\s*{_DIRECTIVE})+\s*|{_DIRECTIVE}\s*\Z")
"""What tells the gateway how to send an answer."""
_FAILURE = re.compile(
    r"(?:\u26a0\ufe0f? ?)?(?:Agent failed before reply\b|\[assistant turn failed before producing content\])"
    r"|\u26a0\ufe0f? (?=[^\w\s])\S+ [^\n]*\bfailed\b[^\n]*\Z"
)
"""What the gateway says in the agent's name when a call of a model or a tool has failed."""
_SILENCE = frozenset({"NO_REPLY", "HEARTBEAT_OK"})


@dataclass(slots=True)
class _Session:
    session: str | None = None
    project: str | None = None
    started: datetime | None = None
    numbers: dict[str, int] = field(default_factory=dict)
    """An entry's id -> its number."""
    parents: dict[int, int | None] = field(default_factory=dict)
    last_kind: str = ""
    said: list[Utterance] = field(default_factory=list)
    """The place of an utterance is its entry's number."""

    def read_header(self, found: dict[str, Any]) -> None:
        if self.session is None and isinstance(found.get("id"), str):
            self.session = found["id"]
            self.project = find_project(found.get("cwd"))
            self.started = parse_timestamp(found.get("timestamp"))

    def read_entry(self, found: dict[str, Any], skipped: Counter[str]) -> None:
        kind = found["type"]
        number = len(self.parents)
        self.parents[number] = self._find_parent(found)
        self.last_kind = kind
        if isinstance(found.get("id"), str):
            self.numbers[found["id"]] = number
        if kind == "message":
            self.said += _utterances(found, number, skipped)
        else:
            skipped[_NOT_SAID.get(kind, "unknown type")] += 1

    def _find_parent(self, found: dict[str, Any]) -> int | None:
        before = len(self.parents) - 1 if self.parents else None
        parent = text_at(found, "parentId")
        if parent is not None:
            # A parent that is not in the file was lost or compacted away: the entry before must do.
            return self.numbers.get(parent, before)
        is_root = "parentId" in found and found["type"] not in _BEGINNINGS_ANEW
        return None if is_root and self.last_kind not in _BEGINNINGS_ANEW else before


def recognises(head: Sequence[str]) -> bool:
    """Return True when one of the first non-empty lines is a header with a version or an entry of the tree."""
    return any(_is_header(found) or _is_entry(found) for found in list_objects(head))


def read(lines: Iterator[str], skipped: Counter[str]) -> Iterator[Conversation]:
    """One conversation: what leads to the last entry."""
    session = _Session()
    for found in read_objects(lines, skipped):
        if _is_header(found):
            session.read_header(found)
        elif isinstance(found.get("type"), str):
            session.read_entry(found, skipped)
        else:
            skipped["unknown type"] += 1
    path = set(walk_back(len(session.parents) - 1, session.parents))
    kept = [utterance for utterance in session.said if utterance.place in path]
    if len(kept) < len(session.said):
        skipped["abandoned branch"] += len(session.said) - len(kept)
    yield make_conversation(kept, "openclaw", session.session, session.started, session.project)


def _is_header(found: dict[str, Any]) -> bool:
    return found.get("type") == "session" and ("version" in found or "cwd" in found)


def _is_entry(found: dict[str, Any]) -> bool:
    kind = text_at(found, "type") or ""
    return (kind == "message" or kind in _NOT_SAID) and isinstance(found.get("id"), str) and "parentId" in found


def _utterances(found: dict[str, Any], number: int, skipped: Counter[str]) -> Iterator[Utterance]:
    message = object_at(found, "message")
    role = message.get("role")
    if role not in ("user", "assistant"):
        skipped["system or tool"] += 1
        return
    at = parse_timestamp(found.get("timestamp")) or parse_timestamp(message.get("timestamp"))
    for raw in find_texts(message.get("content"), skipped):
        text = clean_text(raw)
        if role == "assistant":
            text = _DIRECTIVES.sub("", text).rstrip()
        is_machine = role == "user" and _MACHINE_TEXT.match(text)
        if role == "user" and not is_machine:
            text = clean_typed(text)
            is_machine = _MACHINE_TEXT.match(text)
        if is_machine:
            skipped["notification"] += 1
        elif role == "assistant" and text in _SILENCE:
            skipped["silence"] += 1
        elif role == "assistant" and _FAILURE.match(text):
            skipped["error message"] += 1
        elif not text:
            skipped["empty"] += 1
        else:
            # What a channel delivered is written down once more by the gateway.
            yield Utterance(role, text, at, number, source="answer")
