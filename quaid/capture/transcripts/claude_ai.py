"""Claude.ai's conversations, from an export: messages with blocks, and links to the message before.

A message that was edited leaves its old branch in the list. The contents of attached files are in the export too;
nobody said them. A long text that was pasted into a message is an attachment without a name of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any

from quaid.capture.cleaning import clean_name, clean_text
from quaid.capture.transcripts.lines import find_texts, list_at, text_at
from quaid.capture.transcripts.timestamps import parse_timestamp
from quaid.capture.transcripts.turns import Utterance, make_conversation, walk_back
from quaid.model import Conversation

NAME = "Claude.ai exports"

_ROLES = {"human": "user", "user": "user", "assistant": "assistant"}


def recognises_document(keys: Collection[str]) -> bool:
    """Return True when an object with these keys is a conversation."""
    return "chat_messages" in keys and "uuid" in keys


def read_document(found: dict[str, Any], skipped: Counter[str]) -> Conversation:
    """The branch that ends in the newest message."""
    messages = [message for message in list_at(found, "chat_messages") if isinstance(message, dict)]
    numbers = {message["uuid"]: n for n, message in enumerate(messages) if isinstance(message.get("uuid"), str)}
    parents: dict[int, int | None] = {}
    for number, message in enumerate(messages):
        parent = text_at(message, "parent_message_uuid")
        # The first message names one of zeros; older exports name none at all, and there the list is the order.
        parents[number] = numbers.get(parent) if parent is not None else number - 1 if number else None
    last = len(messages) - 1 if messages else None
    leaf = text_at(found, "current_leaf_message_uuid")
    path = walk_back(numbers.get(leaf, last) if leaf is not None else last, parents)
    said = [utterance for number in path for utterance in _utterances(messages[number], skipped)]
    if len(path) < len(messages):
        skipped["abandoned branch"] += len(messages) - len(path)
    project = clean_name(text_at(found, "project", "name") or "") or None
    started = parse_timestamp(found.get("created_at"))
    return make_conversation(said, "claude-ai", found.get("uuid"), started, project, text_at(found, "name"))


def _utterances(message: dict[str, Any], skipped: Counter[str]) -> Iterator[Utterance]:
    role = _ROLES.get(text_at(message, "sender") or "")
    if role is None:
        skipped["unknown role"] += 1
        return
    pasted = [text for attached in list_at(message, "attachments") if (text := _find_pasted(attached))]
    if attached := sum(len(list_at(message, key)) for key in ("attachments", "files")) - len(pasted):
        skipped["attachment"] += attached
    # The plain text repeats the blocks, with a notice in place of those that are not text.
    content = list_at(message, "content") or message.get("text")
    text = clean_text("\n\n".join(text for text in (*pasted, *find_texts(content, skipped)) if text.strip()))
    if text:
        yield Utterance(role, text, parse_timestamp(message.get("created_at")))
    else:
        skipped["empty"] += 1


def _find_pasted(attached: object) -> str | None:
    name = text_at(attached, "file_name")
    is_pasted = name is not None and (not name or name.lower().startswith("paste"))
    return text_at(attached, "extracted_content") if is_pasted else None
