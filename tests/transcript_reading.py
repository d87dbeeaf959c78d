"""Transcripts as text -> conversations, for tests."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime

from quaid.capture.transcripts import read_conversations


def read_transcript(source, **options):
    """The one conversation of a transcript."""
    (conversation,) = read_conversations(source, **options)
    return conversation


def read(text, **options):
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    return read_transcript(io.BytesIO(data), **options)


def read_objects(*objects):
    return read("\n".join(json.dumps(item) for item in objects))


def said(conversation):
    return [(turn.speaker, turn.text) for turn in conversation.turns]


def utc(*parts):
    return datetime(*parts, tzinfo=UTC)


class ClaudeCodeSession:
    """Writes the lines of a Claude Code session, each hanging on the one before unless told otherwise."""

    def __init__(self):
        self.lines = []
        self.last = None

    def add(self, kind, uuid=None, **fields):
        uuid = uuid or f"u{len(self.lines)}"
        line = {
            "type": kind,
            "uuid": uuid,
            "parentUuid": self.last,
            "sessionId": "s",
            "cwd": "/home/maya/garden",
            **fields,
        }
        self.lines.append(line)
        self.last = uuid
        return self

    def user(self, content, **fields):
        return self.add("user", message={"role": "user", "content": content}, **fields)

    def assistant(self, *texts, message=None, **fields):
        blocks = [{"type": "text", "text": text} if isinstance(text, str) else text for text in texts]
        return self.add(
            "assistant",
            message={"role": "assistant", "id": message or f"m{len(self.lines)}", "content": blocks},
            **fields,
        )

    def read(self):
        return read_objects(*self.lines)
