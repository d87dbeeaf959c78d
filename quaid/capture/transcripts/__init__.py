"""Transcript -> Conversation: one module per format, recognised by content, never by file name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import IO, Protocol, cast

from quaid.capture.cleaning import clean_name
from quaid.capture.transcripts import claude_code, generic_jsonl, plain_text
from quaid.capture.transcripts.lines import read_lines
from quaid.errors import BadInputError
from quaid.model import Conversation

__all__ = ["FORMATS", "Format", "read_transcript"]

_HEAD_LINES = 24


class Format(Protocol):
    """What a module must have to be in `FORMATS`."""

    NAME: str
    """As an error message lists it."""

    def recognises(self, head: Sequence[str]) -> bool:
        """Whether this format wrote these lines: the first non-empty ones of a file, one or more."""
        ...

    def read(self, lines: Iterator[str], skipped: Counter[str]) -> Conversation:
        """All lines as a conversation, holding no more than it keeps; counts what it leaves out in `skipped`."""
        ...


FORMATS = cast("tuple[Format, ...]", (claude_code, generic_jsonl, plain_text))
"""Asked in this order; plain text takes whatever is text and not JSON, so it stays last."""


def read_transcript(source: Path | IO[bytes], *, session: str | None = None) -> Conversation:
    """Read a transcript line by line; `session` overrules the one it names.

    A session in which nobody said anything is a conversation without turns. Unreadable and unknown lines are counted
    in `skipped`, not fatal.

    Raises:
        BadInputError: the file cannot be opened, is empty or binary, or is JSON of an unknown kind.
    """
    name = str(source) if isinstance(source, Path) else _stream_name(source)
    try:
        if isinstance(source, Path):
            with source.open("rb") as stream:
                return _read(stream, name, session)
        return _read(source, name, session)
    except OSError as error:
        reason = error.strerror or str(error)
        raise BadInputError(f"{name} cannot be read ({reason}). Check the path and its permissions.") from error


def _read(stream: IO[bytes], name: str, session: str | None) -> Conversation:
    skipped: Counter[str] = Counter()
    lines = read_lines(stream, skipped)
    first_lines = list(_until_head_is_full(lines))
    head = [line for line in first_lines if line.strip("\0 \t\r")]
    if not head:
        raise BadInputError(f"{name} holds no text. Give a transcript with at least one thing said.")
    for form in FORMATS:
        if form.recognises(head):
            conversation = form.read(chain(first_lines, lines), skipped)
            given = session or clean_name(conversation.session or "") or None
            return replace(conversation, session=given, skipped=dict(skipped))
    known = ", ".join(form.NAME for form in FORMATS)
    raise BadInputError(
        f"{name} is not a transcript Quaid knows; known are: {known}. Convert it to one of these and try again."
    )


def _until_head_is_full(lines: Iterator[str]) -> Iterator[str]:
    found = 0
    for line in lines:
        yield line
        found += bool(line.strip("\0 \t\r"))
        if found == _HEAD_LINES:
            return


def _stream_name(stream: IO[bytes]) -> str:
    name = getattr(stream, "name", None)
    return name if isinstance(name, str) else "The input"
