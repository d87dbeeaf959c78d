"""Hermes' event streams (ATOF): the start and end of everything an agent does, of many sessions in one file.

A scope `hermes.turn` may carry what was asked and answered. Where none does, the scopes of the calls to the model are
read: each repeats the conversation so far, so that only its last message may be new.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from quaid.capture.cleaning import clean_text
from quaid.capture.transcripts.lines import (
    find_texts,
    list_at,
    list_objects,
    object_at,
    read_objects,
    text_at,
    value_at,
)
from quaid.capture.transcripts.timestamps import parse_timestamp
from quaid.capture.transcripts.turns import Utterance, clean_typed, make_conversation
from quaid.model import Conversation

NAME = "Hermes event streams"


@dataclass(slots=True)
class _Session:
    turns: list[Utterance] = field(default_factory=list)
    calls: list[Utterance] = field(default_factory=list)
    asked: tuple[int, str] = (0, "")
    """The number of the user's messages in the last call, and the last of them."""

    def read_event(self, found: dict[str, Any], skipped: Counter[str]) -> None:
        data = object_at(found, "data")
        is_end = found.get("scope_category") == "end"
        role = "assistant" if is_end else "user"
        at = parse_timestamp(found.get("timestamp"))
        if found.get("name") == "hermes.turn":
            self.turns += [Utterance(role, text, at) for text in _clean(data.get(role), role, skipped)]
        elif found.get("category") != "llm":
            skipped["tool call" if found.get("category") == "tool" else "bookkeeping"] += 1
        else:
            content = _find_answer(data) if is_end else self._find_question(data)
            self.calls += [Utterance(role, text, at) for text in _clean(content, role, skipped)]

    def _find_question(self, data: dict[str, Any]) -> object:
        """The last message of the user, if this call is the first to send it."""
        request = data.get("content")
        messages = request.get("messages") if isinstance(request, dict) else data.get("messages")
        if not isinstance(messages, list):
            return request
        contents = [message.get("content") for message in messages if value_at(message, "role") == "user"]
        before, self.asked = self.asked, (len(contents), str(contents[-1:]))
        return contents[-1] if contents and self.asked != before else None


def recognises(head: Sequence[str]) -> bool:
    """Return True when one of the first non-empty lines is an event."""
    return any(_is_event(found) for found in list_objects(head))


def read(lines: Iterator[str], skipped: Counter[str]) -> Iterator[Conversation]:
    """A conversation for each session, in the order in which they begin."""
    sessions: dict[str | None, _Session] = {}
    owners: dict[str, str] = {}
    for found in read_objects(lines, skipped):
        if not _is_event(found):
            skipped["unknown type"] += 1
            continue
        name, parent = text_at(found, "metadata", "session_id"), text_at(found, "parent_uuid")
        if name is None and parent is not None:
            name = owners.get(parent)
        if name is not None and isinstance(found.get("uuid"), str):
            owners[found["uuid"]] = name
        sessions.setdefault(name, _Session()).read_event(found, skipped)
    for name, session in sessions.items():
        if session.turns or session.calls or name is not None or len(sessions) == 1:
            yield make_conversation(session.turns or session.calls, "hermes", name)


def _is_event(found: dict[str, Any]) -> bool:
    return "atof_version" in found and isinstance(found.get("kind"), str)


def _find_answer(data: dict[str, Any]) -> object:
    choices = list_at(data, "choices")
    message = data.get("assistant_message") or (value_at(choices[0], "message") if choices else None)
    return message.get("content") if isinstance(message, dict) else message


def _clean(content: object, role: str, skipped: Counter[str]) -> Iterator[str]:
    for raw in find_texts(content, skipped):
        text = clean_typed(raw) if role == "user" else clean_text(raw)
        if text:
            yield text
        else:
            skipped["empty"] += 1
