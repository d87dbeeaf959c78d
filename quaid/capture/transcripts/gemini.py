"""Gemini CLI's sessions: a log of messages and patches to them, or, from older versions, one JSON object.

The first line tells session and start. A message is written again whenever something is added to it, so of an id the
first place and the last content count. `{"$rewindTo": id}` takes back that message and all after it. `{"$set":
{"messages": …}}` is what the model sees from then on, not what was said: a compression puts a summary there, under
new ids; it is read only where there are no messages besides.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from quaid.capture.cleaning import clean_text
from quaid.capture.transcripts.lines import (
    list_at,
    list_objects,
    object_at,
    parse_object,
    read_objects,
    text_at,
    value_at,
)
from quaid.capture.transcripts.questions import pair_answers
from quaid.capture.transcripts.timestamps import parse_timestamp
from quaid.capture.transcripts.turns import Utterance, clean_typed, find_project, make_conversation
from quaid.model import Conversation

NAME = "Gemini CLI sessions"

_ROLES = {"user": "user", "gemini": "assistant"}
_NOTICES = frozenset({"info", "warning", "error"})
_INJECTED = re.compile(r"\s*<(?:session_context|hook_context|state_snapshot|environment_context)\b")
_COMMAND = re.compile(r"/[\w:-]+\s*\Z")
_QUESTION_TOOL = "ask_user"
_FILES_START = "--- Content from referenced files ---"
_FILES_END = "--- End of content ---"
_PARTS_NOT_SAID = {"functionCall": "tool call", "functionResponse": "tool result"}


def recognises(head: Sequence[str]) -> bool:
    """Return True when one of the first non-empty lines is a header, a message or a patch of Gemini CLI."""
    return any(
        _is_header(found)
        or (found.get("type") == "gemini" and {"id", "content"} <= found.keys())
        or "$rewindTo" in found
        for found in list_objects(head)
    )


def recognises_document(keys: Collection[str]) -> bool:
    """Return True when an object with these keys is a session of the older kind."""
    return {"sessionId", "messages", "startTime"} <= set(keys)


def read(lines: Iterator[str], skipped: Counter[str]) -> Iterator[Conversation]:
    """One conversation: what the terminal shows at the end of the log. A helper agent's session has no turns."""
    metadata: dict[str, Any] = {}
    said: dict[str, tuple[list[Utterance], Counter[str]]] = {}
    for found in read_objects(lines, skipped):
        if (target := text_at(found, "$rewindTo")) is not None:
            if target not in said:
                # It names a message of the model's view: what was said stays.
                skipped["unknown rewind"] += 1
            while target in said:
                said.popitem()
                skipped["abandoned branch"] += 1
        elif isinstance(found.get("id"), str):
            left_out: Counter[str] = Counter()
            said[found["id"]] = (list(_utterances(found, left_out)), left_out)
        elif isinstance(found.get("$set"), dict) or _is_header(found):
            metadata |= found.get("$set") or found
        else:
            skipped["unknown type"] += 1
    for _, left_out in said.values():
        skipped.update(left_out)
    utterances = [utterance for utterances, _ in said.values() for utterance in utterances]
    yield _make(metadata, utterances if said else _read_messages(metadata, skipped), skipped)


def read_document(found: dict[str, Any], skipped: Counter[str]) -> Conversation:
    """A session of the older kind."""
    return _make(found, _read_messages(found, skipped), skipped)


def _is_header(found: dict[str, Any]) -> bool:
    return (
        isinstance(found.get("sessionId"), str)
        and "type" not in found
        and ("projectHash" in found or "startTime" in found)
    )


def _read_messages(metadata: dict[str, Any], skipped: Counter[str]) -> list[Utterance]:
    messages = [message for message in list_at(metadata, "messages") if isinstance(message, dict)]
    return [utterance for message in messages for utterance in _utterances(message, skipped)]


def _make(metadata: dict[str, Any], said: list[Utterance], skipped: Counter[str]) -> Conversation:
    if metadata.get("kind") == "subagent":
        skipped["sidechain"] += len(said)
        said = []
    folders = list_at(metadata, "directories")
    project = find_project(folders[0]) if folders else None
    return make_conversation(
        said, "gemini", metadata.get("sessionId"), parse_timestamp(metadata.get("startTime")), project
    )


def _utterances(message: dict[str, Any], skipped: Counter[str]) -> Iterator[Utterance]:
    kind = text_at(message, "type") or ""
    role = _ROLES.get(kind)
    if role is None:
        skipped["notice" if kind in _NOTICES else "unknown type"] += 1
        return
    # Files named with @ are put behind what was typed; what was typed is shown.
    content = message.get("displayContent") if role == "user" else None
    texts = list(_find_texts(content or message.get("content"), skipped))
    text = clean_text("".join(texts)) if role == "assistant" else clean_typed("\n\n".join(filter(str.strip, texts)))
    at = parse_timestamp(message.get("timestamp"))
    if text and not (role == "user" and _COMMAND.match(text)):
        yield Utterance(role, text, at)
    else:
        skipped["command" if text else "empty"] += 1
    for call in list_at(message, "toolCalls"):
        if text_at(call, "name") == _QUESTION_TOOL:
            for asked, answer in _read_answers(call):
                yield from (Utterance("assistant", asked, at), Utterance("user", answer, at))


def _read_answers(call: object) -> Iterator[tuple[str, str]]:
    """(question, answer) of a call of the tool with which the agent asks its user."""
    for part in list_at(call, "result"):
        output = object_at(part, "functionResponse", "response").get("output")
        answers = value_at(parse_object(output) if isinstance(output, str) else output, "answers")
        yield from pair_answers(value_at(call, "args", "questions"), answers)


def _find_texts(content: object, skipped: Counter[str]) -> Iterator[str]:
    is_file = False
    for part in content if isinstance(content, list) else [content]:
        text = part.get("text") if isinstance(part, dict) else part
        if not isinstance(text, str):
            kinds = [reason for key, reason in _PARTS_NOT_SAID.items() if isinstance(part, dict) and key in part]
            if part is not None:
                skipped[kinds[0] if kinds else "attachment"] += 1
            continue
        is_file = (is_file or text.strip().startswith(_FILES_START)) and _FILES_END not in text
        if value_at(part, "thought"):
            skipped["thinking"] += 1
        elif is_file or _FILES_END in text:
            skipped["attachment"] += 1
        elif _INJECTED.match(text):
            skipped["injected"] += 1
        else:
            yield text
