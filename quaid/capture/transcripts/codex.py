"""Codex CLI's rollouts: `{"timestamp", "type", "payload"}` a line, everything that was said in them twice.

`response_item` lines are what went to the model and came from it, `event_msg` lines what the terminal showed. The
items are read, because they are the older and the fuller record; the events tell which of a user's items a person
typed, as the host puts instructions and surroundings there in the user's name. What the user answered to a question
stands in the output of the tool that asked it. `compacted` lines repeat what stands before them, and
`thread_rolled_back` takes turns back.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from quaid.capture.cleaning import clean_text
from quaid.capture.transcripts.lines import (
    find_texts,
    list_at,
    list_objects,
    object_at,
    parse_object,
    read_objects,
    text_at,
)
from quaid.capture.transcripts.questions import pair_answers
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
_QUESTION_TOOL = "request_user_input"

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
    """Something said, in an item or an event or to a tool, or a number of turns taken back."""

    said: Utterance
    is_event: bool = False
    is_answered: bool = False
    """A question of a tool or the answer to it: no event repeats either."""
    turns_taken_back: int = 0


@dataclass(slots=True)
class _Rollout:
    session: str | None = None
    project: str | None = None
    started: datetime | None = None
    is_delegated: bool = False
    """Written by an agent that another agent sent: no person took part."""
    entries: list[_Entry] = field(default_factory=list)
    questions: dict[str, list[Any]] = field(default_factory=dict)
    """What tools asked the user, by the id of the call."""

    def read_line(self, found: dict[str, Any], skipped: Counter[str]) -> None:
        payload = _payload(found)
        kind = str(found.get("type")) if payload is not found else "response_item"
        if payload is None and "type" not in found and isinstance(found.get("id"), str):
            kind, payload = "session_meta", found
        if payload is None:
            skipped[_item_reason(kind)] += 1
            return
        at = parse_timestamp(found.get("timestamp")) or parse_timestamp(payload.get("timestamp"))
        # A forked rollout repeats its parent's head after its own.
        if kind == "session_meta" and self.session is None and isinstance(payload.get("id"), str):
            self.session = payload["id"]
            self.project = find_project(payload.get("cwd"))
            self.started = parse_timestamp(payload.get("timestamp")) or at
            self.is_delegated = "subagent" in object_at(payload, "source")
        elif kind == "response_item":
            self._read_item(payload, at, skipped)
        elif kind == "event_msg":
            self._read_event(payload, at, skipped)
        elif kind != "session_meta":
            skipped["bookkeeping"] += 1

    def _read_item(self, payload: dict[str, Any], at: datetime | None, skipped: Counter[str]) -> None:
        kind, role = str(payload.get("type")), payload.get("role")
        if kind != "message":
            if not self._read_answer(payload, at):
                skipped[_item_reason(kind)] += 1
        elif role not in ("user", "assistant"):
            skipped["system or tool"] += 1
        else:
            texts = find_texts(payload.get("content"), skipped)
            self.entries += [_Entry(Utterance(role, _clean(raw, role), at)) for raw in texts]

    def _read_answer(self, payload: dict[str, Any], at: datetime | None) -> bool:
        """Take a question, or the answer to one; return True for the answer."""
        call = text_at(payload, "call_id") or ""
        if payload.get("name") == _QUESTION_TOOL:
            self.questions[call] = list_at(parse_object(text_at(payload, "arguments") or ""), "questions")
        if call not in self.questions or (output := text_at(payload, "output")) is None:
            return False
        pairs = list(pair_answers(self.questions.pop(call), object_at(parse_object(output), "answers")))
        for pair in pairs:
            said = (Utterance(role, text, at) for role, text in zip(("assistant", "user"), pair, strict=True))
            self.entries += [_Entry(utterance, is_answered=True) for utterance in said]
        return bool(pairs)

    def _read_event(self, payload: dict[str, Any], at: datetime | None, skipped: Counter[str]) -> None:
        kind, turns = text_at(payload, "type") or "", payload.get("num_turns")
        role, message = _EVENTS.get(kind), text_at(payload, "message")
        if role and message is not None:
            self.entries.append(_Entry(Utterance(role, _clean(message, role), at), is_event=True))
        elif kind == "thread_rolled_back" and isinstance(turns, int) and turns > 0:
            self.entries.append(_Entry(Utterance("", ""), turns_taken_back=turns))
        else:
            skipped["bookkeeping"] += 1


def recognises(head: Sequence[str]) -> bool:
    """Return True when one of the first non-empty lines has a type and a payload, or is an item without either."""
    return any(_payload(found) is not None for found in list_objects(head))


def read(lines: Iterator[str], skipped: Counter[str]) -> Iterator[Conversation]:
    """One conversation. A rollout of an agent that another agent sent has no turns."""
    rollout = _Rollout()
    for found in read_objects(lines, skipped):
        rollout.read_line(found, skipped)
    said = _replay(rollout.entries, skipped)
    if rollout.is_delegated:
        skipped["sidechain"] += len(said)
        said = []
    yield make_conversation(said, "codex", rollout.session, rollout.started, rollout.project)


def _payload(found: dict[str, Any]) -> dict[str, Any] | None:
    if isinstance(found.get("payload"), dict):
        return found["payload"] if str(found.get("type")) in _TYPES else None
    # The first versions wrote the bare items.
    blocks = list_at(found, "content") if found.get("type") == "message" else []
    kinds = {text_at(block, "type") for block in blocks}
    return None if kinds.isdisjoint({"input_text", "output_text"}) else found


def _item_reason(kind: str) -> str:
    return next((reason for form, reason in _ITEMS_NOT_SAID if form.fullmatch(kind)), "unknown type")


def _clean(raw: str, role: str) -> str:
    text = clean_text(raw)
    # What the host injects is told by how it opens, so it is cleaned no further.
    return text if role == "assistant" or _INJECTED.match(text) else clean_typed(_REQUEST.sub("", text))


def _replay(entries: Sequence[_Entry], skipped: Counter[str]) -> list[Utterance]:
    typed = {entry.said.text for entry in entries if entry.is_event and entry.said.role == "user"}
    in_items = {
        entry.said.role
        for entry in entries
        if not (entry.is_event or entry.is_answered) and not _is_injected(entry.said, typed, skipped)
    }
    said: list[Utterance] = []
    for entry in entries:
        turns = entry.turns_taken_back
        while said and turns:
            turns -= said.pop().role == "user"
            skipped["abandoned branch"] += 1
        is_read = entry.is_event is (entry.said.role not in in_items)
        if entry.is_answered or (not entry.turns_taken_back and is_read and not _is_injected(entry.said, typed)):
            said.append(entry.said)
    return said


def _is_injected(utterance: Utterance, typed: set[str], skipped: Counter[str] | None = None) -> bool:
    is_unsaid = not utterance.text
    if utterance.role == "user" and not is_unsaid:
        # New kinds of these appear with every release; where there are events, they know better.
        is_strange = bool(typed) and utterance.text not in typed and _TAG.match(utterance.text) is not None
        is_unsaid = is_strange or _INJECTED.match(utterance.text) is not None
    if is_unsaid and skipped is not None and utterance.role:
        skipped["injected" if utterance.text else "empty"] += 1
    return is_unsaid
