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
from quaid.capture.transcripts.lines import find_texts, list_objects, read_objects
from quaid.capture.transcripts.timestamps import parse_timestamp
from quaid.capture.transcripts.turns import Utterance, clean_typed, make_conversation
from quaid.model import Conversation

NAME = "Hermes event streams"


@dataclass(slots=True)
class _Session:
    turns: list[Utterance] = field(default_factory=list)
    calls: list[Utterance] = field(default_factory=list)
    asked: tuple[int, str] = (0, "")
    """How many messages of the user the last call had, and the last of them."""


def recognises(head: Sequence[str]) -> bool:
    """Whether one of the first non-empty lines is an event."""
    return any(_is_event(found) for found in list_objects(head))


def read(lines: Iterator[str], skipped: Counter[str]) -> Iterator[Conversation]:
    """A conversation for each session, in the order in which they begin."""
    sessions: dict[str | None, _Session] = {}
    owners: dict[str, str] = {}
    for found in read_objects(lines, skipped):
        if not _is_event(found):
            skipped["unknown type"] += 1
            continue
        name = _find_session(found, owners)
        _read_event(found, sessions.setdefault(name, _Session()), skipped)
    for name, session in sessions.items():
        if session.turns or session.calls or name is not None or len(sessions) == 1:
            yield make_conversation(session.turns or session.calls, "hermes", name)


def _is_event(found: dict[str, Any]) -> bool:
    return "atof_version" in found and isinstance(found.get("kind"), str)


def _find_session(found: dict[str, Any], owners: dict[str, str]) -> str | None:
    metadata = found.get("metadata")
    parent = found.get("parent_uuid")
    name = metadata.get("session_id") if isinstance(metadata, dict) else None
    name = name if isinstance(name, str) else owners.get(parent) if isinstance(parent, str) else None
    if name is not None and isinstance(found.get("uuid"), str):
        owners[found["uuid"]] = name
    return name


def _read_event(found: dict[str, Any], session: _Session, skipped: Counter[str]) -> None:
    data = found.get("data")
    data = data if isinstance(data, dict) else {}
    is_end = found.get("scope_category") == "end"
    at = parse_timestamp(found.get("timestamp"))
    if found.get("name") == "hermes.turn":
        role = "assistant" if is_end else "user"
        session.turns += [Utterance(role, text, at) for text in _clean(data.get(role), role, skipped)]
    elif found.get("category") != "llm":
        skipped["tool call" if found.get("category") == "tool" else "bookkeeping"] += 1
    elif is_end:
        session.calls += [Utterance("assistant", text, at) for text in _clean(_answer(data), "assistant", skipped)]
    else:
        session.calls += [Utterance("user", text, at) for text in _clean(_question(data, session), "user", skipped)]


def _question(data: dict[str, Any], session: _Session) -> object:
    request = data.get("content")
    messages = request.get("messages") if isinstance(request, dict) else data.get("messages")
    if not isinstance(messages, list):
        return request
    contents = [message.get("content") for message in messages if _role(message) == "user"]
    asked = (len(contents), str(contents[-1:]))
    is_new = asked != session.asked and bool(contents)
    session.asked = asked
    return contents[-1] if is_new else None


def _role(message: object) -> object:
    return message.get("role") if isinstance(message, dict) else None


def _answer(data: dict[str, Any]) -> object:
    choices = data.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = data.get("assistant_message") or (first.get("message") if isinstance(first, dict) else None)
    return message.get("content") if isinstance(message, dict) else message


def _clean(content: object, role: str, skipped: Counter[str]) -> Iterator[str]:
    for raw in find_texts(content, skipped):
        text = clean_typed(raw) if role == "user" else clean_text(raw)
        if text:
            yield text
        else:
            skipped["empty"] += 1
