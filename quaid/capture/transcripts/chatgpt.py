"""ChatGPT's conversations, from an export or a page: a tree of nodes of which `current_node` is the end.

An edited question and an answer asked for again leave their old branch in the tree. Besides what was said it holds
instructions, searches, code and its output, and thoughts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any

from quaid.capture.cleaning import clean_text
from quaid.capture.transcripts.lines import object_at, text_at, value_at
from quaid.capture.transcripts.timestamps import parse_timestamp
from quaid.capture.transcripts.turns import Utterance, make_conversation, walk_back
from quaid.model import Conversation

NAME = "ChatGPT exports"

_SAID = frozenset({"text", "multimodal_text"})
_SPOKEN = frozenset({"text", "audio_transcription"})
_THOUGHTS = frozenset({"thoughts", "reasoning_recap"})
_HIDDEN = ("is_visually_hidden_from_conversation", "is_user_system_message")
_CITATION = re.compile("\ue200[^\ue200\ue201]{0,400}\ue201")


def recognises_document(keys: Collection[str]) -> bool:
    """Return True when an object with these keys is a conversation."""
    return "mapping" in keys and not {"current_node", "conversation_id", "create_time"}.isdisjoint(keys)


def read_document(found: dict[str, Any], skipped: Counter[str]) -> Conversation:
    """The branch that ends in the current node; without one, in the newest."""
    nodes = {name: node for name, node in object_at(found, "mapping").items() if isinstance(node, dict)}
    parents = {name: text_at(node, "parent") or None for name, node in nodes.items()}

    def seconds(name: str) -> float:
        at = parse_timestamp(value_at(nodes[name], "message", "create_time"))
        return at.timestamp() if at else 0.0

    current = text_at(found, "current_node")
    path = walk_back(current if current in nodes else max(reversed(nodes), key=seconds, default=None), parents)
    said = [utterance for name in path for utterance in _utterances(nodes[name].get("message"), skipped)]
    beside = sum(bool(list(_utterances(nodes[name].get("message"), Counter()))) for name in nodes.keys() - set(path))
    if beside:
        skipped["abandoned branch"] += beside
    session = text_at(found, "conversation_id") or text_at(found, "id")
    return make_conversation(
        said, "chatgpt", session, parse_timestamp(found.get("create_time")), title=text_at(found, "title")
    )


def _utterances(message: object, skipped: Counter[str]) -> Iterator[Utterance]:
    if not isinstance(message, dict):
        return
    role = value_at(message, "author", "role")
    reason = _skip_reason(message, role)
    if reason:
        skipped[reason] += 1
        return
    texts: list[str] = []
    content = message["content"]
    parts = content.get("parts")
    for part in parts if isinstance(parts, list) else [content.get("text")]:
        kind = part.get("content_type", "text") if isinstance(part, dict) else "text"
        text = part.get("text") if isinstance(part, dict) else part
        if isinstance(text, str) and isinstance(kind, str) and kind in _SPOKEN:
            texts += [text] if text.strip() else []
        else:
            skipped["attachment"] += 1
    cleaned = clean_text(_CITATION.sub("", "\n\n".join(texts)))
    if cleaned:
        yield Utterance(str(role), cleaned, parse_timestamp(message.get("create_time")))
    else:
        skipped["empty"] += 1


def _skip_reason(message: dict[str, Any], role: object) -> str | None:
    """Return why a message was not said by anybody; None for one that was."""
    content = message.get("content")
    kind = content.get("content_type", "text") if isinstance(content, dict) else None
    if role not in ("user", "assistant"):
        return "system or tool"
    if any(object_at(message, "metadata").get(mark) for mark in _HIDDEN):
        return "hidden"
    if (isinstance(kind, str) and kind in _THOUGHTS) or message.get("channel") == "analysis":
        return "thinking"
    if not isinstance(kind, str) or kind not in _SAID:
        return "attachment"
    return None if message.get("recipient", "all") in ("all", None) else "tool call"
