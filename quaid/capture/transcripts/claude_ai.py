"""Claude.ai's conversations, from an export: messages with blocks, and links to the message before.

A message that was edited leaves its old branch in the list. The contents of attached files are in the export too;
nobody said them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any

from quaid.capture.cleaning import clean_name, clean_text
from quaid.capture.transcripts.lines import find_texts
from quaid.capture.transcripts.timestamps import parse_timestamp
from quaid.capture.transcripts.turns import Utterance, make_conversation, walk_back
from quaid.model import Conversation

NAME = "Claude.ai exports"

_ROLES = {"human": "user", "user": "user", "assistant": "assistant"}


def recognises_document(keys: Collection[str]) -> bool:
    """Whether an object with these keys is a conversation."""
    return "chat_messages" in keys and "uuid" in keys


def read_document(found: dict[str, Any], skipped: Counter[str]) -> Conversation:
    """The branch that ends in the newest message."""
    listed = found.get("chat_messages")
    messages = [message for message in listed if isinstance(message, dict)] if isinstance(listed, list) else []
    path = _branch(messages, found.get("current_leaf_message_uuid"))
    pieces = [piece for number in path for piece in _pieces(messages[number], skipped)]
    if len(path) < len(messages):
        skipped["abandoned branch"] += len(messages) - len(path)
    project = found.get("project")
    project = project.get("name") if isinstance(project, dict) else None
    named = (clean_name(project) or None) if isinstance(project, str) else None
    return make_conversation(pieces, "claude-ai", found.get("uuid"), parse_timestamp(found.get("created_at")), named)


def _branch(messages: list[dict[str, Any]], leaf: object) -> list[int]:
    numbers = {message["uuid"]: n for n, message in enumerate(messages) if isinstance(message.get("uuid"), str)}
    parents: dict[int, int | None] = {}
    for number, message in enumerate(messages):
        parent = message.get("parent_message_uuid")
        # The first message names one of zeros; older exports name none at all, and there the list is the order.
        is_linked = isinstance(parent, str)
        parents[number] = numbers.get(parent) if is_linked else number - 1 if number else None
    last = len(messages) - 1 if messages else None
    return walk_back(numbers.get(leaf, last) if isinstance(leaf, str) else last, parents)


def _pieces(message: dict[str, Any], skipped: Counter[str]) -> Iterator[Utterance]:
    sender = message.get("sender")
    role = _ROLES.get(sender) if isinstance(sender, str) else None
    if role is None:
        skipped["unknown role"] += 1
        return
    for key in ("attachments", "files"):
        if isinstance(message.get(key), list) and message[key]:
            skipped["attachment"] += len(message[key])
    # The plain text repeats the blocks, with a notice in place of those that are not text.
    content = message.get("content")
    said = content if isinstance(content, list) and content else message.get("text")
    text = clean_text("\n\n".join(text for text in find_texts(said, skipped) if text.strip()))
    if text:
        yield Utterance(role, text, parse_timestamp(message.get("created_at")))
    else:
        skipped["empty"] += 1
