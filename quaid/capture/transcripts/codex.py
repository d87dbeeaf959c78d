"""Codex CLI's rollouts: `{"timestamp", "type", "payload"}` a line, everything that was said in them twice.

`response_item` lines are what went to the model and came from it, `event_msg` lines what the terminal showed. The
items are read, because they are the older and the fuller record; the events tell which of a user's items a person
typed, for the host puts instructions and surroundings there in the user's name. `compacted` lines repeat what stands
before them, and `thread_rolled_back` takes turns back.
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
from quaid.capture.transcripts.turns import Utterance, clean_typed, find_project, make_conversation
from quaid.model import Conversation

NAME = "Codex CLI rollouts"

_BOOKKEEPING = frozenset({"turn_context", "compacted", "world_state"})
_TYPES = _BOOKKEEPING | {"session_meta", "response_item", "event_msg"}
_ITEMS_NOT_SAID = (
    (re.compile("reasoning"), "thinking"),
    (re.compile(".*_output|.*_result"), "tool result"),
    (re.compile(".*_call"), "tool call"),
    (re.compile("ghost_snapshot|compaction.*|context_compaction"), "bookkeeping"),
)
_EVENTS = {"user_message": "user", "agent_message": "assistant"}

_INJECTED = re.compile(
    r"\s*(?:</?(?:environment_context|user_instructions|permissions instructions|turn_aborted|user_shell_command|skill"
    r"|subagent_notification|codex_internal_context|recommended_plugins|collaboration_mode|instructions|image|model_switch"
    r"|personality_spec|user_action)\b|# AGENTS\.md instructions"
    r"|Another language model started to solve this problem)",
    re.IGNORECASE,
)
_TAG = re.compile(r"\s*<[a-z][a-z0-9_ -]*>")
_REQUEST = re.compile(
    r"\A#+ (?:Context from my IDE setup|Files mentioned by the user):?\n.*?^## My request for Codex:[ \t]*\n?",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class _Entry:
    """Something said, in an item or an event, or so many turns taken back."""

    piece: Utterance
    is_event: bool = False
    turns_taken_back: int = 0


@dataclass(slots=True)
class _Rollout:
    session: str | None = None
    project: str | None = None
    started: datetime | None = None
    is_delegated: bool = False
    """Written by an agent that another agent sent: no person took part."""
    entries: list[_Entry] = field(default_factory=list)


def recognises(head: Sequence[str]) -> bool:
    """Whether one of the first non-empty lines has a type and a payload, or is an item without either."""
    return any(_payload(found) is not None for found in list_objects(head))


def read(lines: Iterator[str], skipped: Counter[str]) -> Iterator[Conversation]:
    """One conversation. A rollout of an agent that another agent sent has no turns."""
    rollout = _Rollout()
    for found in read_objects(lines, skipped):
        _read_line(found, rollout, skipped)
    pieces = _replay(rollout.entries, skipped)
    if rollout.is_delegated:
        skipped["sidechain"] += len(pieces)
        pieces = []
    yield make_conversation(pieces, "codex", rollout.session, rollout.started, rollout.project)


def _payload(found: dict[str, Any]) -> dict[str, Any] | None:
    if isinstance(found.get("payload"), dict):
        return found["payload"] if str(found.get("type")) in _TYPES else None
    # The first versions wrote the bare items.
    content = found.get("content")
    blocks = content if found.get("type") == "message" and isinstance(content, list) else []
    kinds = {block.get("type") for block in blocks if isinstance(block, dict) and isinstance(block.get("type"), str)}
    return None if kinds.isdisjoint({"input_text", "output_text"}) else found


def _read_line(found: dict[str, Any], rollout: _Rollout, skipped: Counter[str]) -> None:
    payload = _payload(found)
    kind = str(found.get("type")) if payload is not found else "response_item"
    if payload is None and "type" not in found and isinstance(found.get("id"), str):
        kind, payload = "session_meta", found
    if payload is None:
        skipped[next((reason for form, reason in _ITEMS_NOT_SAID if form.fullmatch(kind)), "unknown type")] += 1
        return
    at = parse_timestamp(found.get("timestamp")) or parse_timestamp(payload.get("timestamp"))
    if kind == "session_meta":
        _note_origin(payload, rollout, at)
    elif kind == "response_item":
        rollout.entries += _read_item(payload, at, skipped)
    elif kind == "event_msg":
        rollout.entries += _read_event(payload, at, skipped)
    else:
        skipped["bookkeeping"] += 1


def _note_origin(payload: dict[str, Any], rollout: _Rollout, at: datetime | None) -> None:
    # A forked rollout repeats its parent's after its own.
    if rollout.session is None and isinstance(payload.get("id"), str):
        source = payload.get("source")
        rollout.session = payload["id"]
        rollout.project = find_project(payload.get("cwd"))
        rollout.started = parse_timestamp(payload.get("timestamp")) or at
        rollout.is_delegated = isinstance(source, dict) and "subagent" in source


def _read_item(payload: dict[str, Any], at: datetime | None, skipped: Counter[str]) -> Iterator[_Entry]:
    kind = str(payload.get("type"))
    role = payload.get("role")
    if kind != "message":
        skipped[next((reason for form, reason in _ITEMS_NOT_SAID if form.fullmatch(kind)), "unknown type")] += 1
    elif role not in ("user", "assistant"):
        skipped["system or tool"] += 1
    else:
        for raw in find_texts(payload.get("content"), skipped):
            yield _Entry(Utterance(role, _clean(raw, role), at))


def _read_event(payload: dict[str, Any], at: datetime | None, skipped: Counter[str]) -> Iterator[_Entry]:
    kind = payload.get("type")
    role = _EVENTS.get(kind) if isinstance(kind, str) else None
    turns = payload.get("num_turns")
    if role and isinstance(payload.get("message"), str):
        yield _Entry(Utterance(role, _clean(payload["message"], role), at), is_event=True)
    elif kind == "thread_rolled_back" and isinstance(turns, int) and turns > 0:
        yield _Entry(Utterance("", ""), turns_taken_back=turns)
    else:
        skipped["bookkeeping"] += 1


def _clean(raw: str, role: str) -> str:
    text = clean_text(raw)
    # What the host injects is told by how it opens, so it is cleaned no further.
    return text if role == "assistant" or _INJECTED.match(text) else clean_typed(_REQUEST.sub("", text))


def _replay(entries: Sequence[_Entry], skipped: Counter[str]) -> list[Utterance]:
    typed = {entry.piece.text for entry in entries if entry.is_event and entry.piece.role == "user"}
    in_items = {
        entry.piece.role for entry in entries if not entry.is_event and not _is_injected(entry.piece, typed, skipped)
    }
    said: list[Utterance] = []
    for entry in entries:
        if entry.turns_taken_back:
            _take_back(said, entry.turns_taken_back, skipped)
        elif entry.is_event is (entry.piece.role not in in_items) and not _is_injected(entry.piece, typed):
            said.append(entry.piece)
    return said


def _is_injected(piece: Utterance, typed: set[str], skipped: Counter[str] | None = None) -> bool:
    is_unsaid = not piece.text
    if piece.role == "user" and not is_unsaid:
        # New kinds of these appear with every release; where there are events, they know better.
        is_strange = bool(typed) and piece.text not in typed and _TAG.match(piece.text) is not None
        is_unsaid = is_strange or _INJECTED.match(piece.text) is not None
    if is_unsaid and skipped is not None and piece.role:
        skipped["injected" if piece.text else "empty"] += 1
    return is_unsaid


def _take_back(said: list[Utterance], turns: int, skipped: Counter[str]) -> None:
    while said and turns:
        turns -= said.pop().role == "user"
        skipped["abandoned branch"] += 1
