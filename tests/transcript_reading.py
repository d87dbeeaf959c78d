"""Transcripts as text -> conversations, for tests."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime

from quaid.capture.transcripts import read_transcripts


def read_transcript(source, **options):
    """The one conversation of a transcript."""
    (conversation,) = read_transcripts(source, **options)
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
