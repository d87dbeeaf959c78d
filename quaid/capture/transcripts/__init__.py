"""Transcript -> conversations: one module per format, recognised by content, never by file name.

A format is lines (most agents' logs, chat logs) or documents (exports: JSON that holds many conversations, perhaps in
a ZIP archive). Both are read as a stream, one conversation at a time.
"""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, Protocol, cast

from quaid.capture.cleaning import clean_name, clean_text
from quaid.capture.transcripts import (
    chatgpt,
    claude_ai,
    claude_code,
    codex,
    gemini,
    generic_jsonl,
    hermes,
    openclaw,
    plain_text,
)
from quaid.capture.transcripts.json_stream import read_documents, spot_keys
from quaid.capture.transcripts.lines import LINE_LIMIT_BYTES, read_lines
from quaid.errors import BadInputError
from quaid.model import Conversation, Turn
from quaid.text.invisible import whole

_ARCHIVE_STARTS = (b"PK\x03\x04", b"PK\x05\x06")
_HEAD_LINES = 24
_START_BYTES = 2**18


class LineFormat(Protocol):
    """The attributes of a module in `FORMATS`: a format of lines."""

    NAME: str
    """As an error message lists it."""

    def recognises(self, head: Sequence[str]) -> bool:
        """Return True when `head`, the first non-empty lines of a file, one or more, is of this format."""
        ...

    def read(self, lines: Iterator[str], skipped: Counter[str]) -> Iterator[Conversation]:
        """All lines as conversations, holding no more than it keeps; counts what it leaves out in `skipped`."""
        ...


class DocumentFormat(Protocol):
    """The attributes of a module in `DOCUMENTS`: a format in which a conversation is a JSON object."""

    NAME: str

    def recognises_document(self, keys: Collection[str]) -> bool:
        """Return True when an object with these keys is a conversation of this format."""
        ...

    def read_document(self, found: dict[str, Any], skipped: Counter[str]) -> Conversation:
        """The conversation; counts what it leaves out in `skipped`."""
        ...


FORMATS = cast("tuple[LineFormat, ...]", (claude_code, codex, gemini, openclaw, hermes, generic_jsonl, plain_text))
"""Asked in this order; plain text takes whatever is text and not JSON, so it stays last."""

DOCUMENTS = cast("tuple[DocumentFormat, ...]", (chatgpt, claude_ai, gemini))

AGENTS = cast("tuple[LineFormat, ...]", (claude_code, codex, gemini, openclaw))
SPOOL = cast("tuple[LineFormat, ...]", (generic_jsonl,))
_AGENTS_DOCUMENTS = cast("tuple[DocumentFormat, ...]", (gemini,))


@dataclass(frozen=True, slots=True)
class AgentLog(os.PathLike[str]):
    """A file that an agent's program or its hook wrote: `opening` opens it, and nothing but `formats` is read."""

    path: str
    opening: Callable[[], IO[bytes]]
    formats: tuple[LineFormat, ...] = AGENTS

    def __fspath__(self) -> str:
        return self.path


def read_transcripts(source: Path | AgentLog | IO[bytes], *, session: str | None = None) -> Iterator[Conversation]:
    """The conversations of a transcript or an export, each as soon as it is read; `session` overrules the one it names.

    A session in which nobody said anything is a conversation without turns. Lines and conversations that are unreadable
    or unknown are counted in `skipped`, not fatal.

    Raises:
        BadInputError: when read from. The file cannot be opened, is empty or binary, is JSON of an unknown kind or a
            broken archive, or `session` was given for several conversations.
    """
    name = os.fspath(source) if isinstance(source, (Path, AgentLog)) else _stream_name(source)
    skipped: Counter[str] = Counter()
    try:
        if isinstance(source, AgentLog):
            with source.opening() as stream:
                documents = _AGENTS_DOCUMENTS if source.formats == AGENTS else ()
                found = _read(stream, name, skipped, source.formats, documents)
                yield from _finish(found, skipped, name, session)
        elif isinstance(source, Path):
            with source.open("rb") as stream:
                yield from _finish(_read(stream, name, skipped), skipped, name, session)
        else:
            yield from _finish(_read(source, name, skipped), skipped, name, session)
    except OSError as error:
        reason = error.strerror or str(error)
        raise BadInputError(f"{name} cannot be read ({reason}). Check the path and its permissions.") from error


def is_transcript(path: Path) -> bool:
    """Return True when a file holds conversations of a known program; plain text, which may be anything, is not one."""
    try:
        with path.open("rb") as stream:
            start = _read_start(stream)
            if start.startswith(_ARCHIVE_STARTS):
                from quaid.capture.transcripts.archives import read_members

                return any(True for _ in read_members(stream, path.name))
    except (OSError, BadInputError):
        return False
    head = _read_head(start)
    return _find_document(start) is not None or any(form.recognises(head) for form in FORMATS[:-1])


def _finish(
    found: Iterator[Conversation], skipped: Counter[str], name: str, session: str | None
) -> Iterator[Conversation]:
    """Each conversation with its session's name, and with what was left out around it."""
    held: Conversation | None = None
    for conversation in found:
        if held is not None:
            if session:
                raise BadInputError(f"{name} holds several conversations, each with a session of its own. Name none.")
            yield held
        held = _counted(conversation, skipped)
        given = whole(session) or clean_name(conversation.session or "") or None
        held = replace(held, session=given)
    if held is None:
        raise BadInputError(f"{name} holds no conversation that can be read. Give a transcript with something said.")
    yield _counted(held, skipped)


def _counted(conversation: Conversation, skipped: Counter[str]) -> Conversation:
    both = dict(Counter(conversation.skipped) + skipped)
    skipped.clear()
    return replace(conversation, skipped=both)


def _read(
    stream: IO[bytes],
    name: str,
    skipped: Counter[str],
    formats: Sequence[LineFormat] = FORMATS,
    documents: Sequence[DocumentFormat] = DOCUMENTS,
) -> Iterator[Conversation]:
    is_log = formats is not FORMATS
    start = _read_start(stream)
    whole = cast("IO[bytes]", io.BufferedReader(_Rewound(start, stream), _START_BYTES))
    if start.startswith(_ARCHIVE_STARTS) and not is_log:
        yield from _read_archive(stream if stream.seekable() else whole, name, skipped)
        return
    document = _find_document(start, documents)
    head = _read_head(start)
    if not head and not is_log:
        raise BadInputError(f"{name} holds no text. Give a transcript with at least one thing said.")
    form = None
    if document is None or _has_whole_line(start):
        form = next((form for form in formats if form.recognises(head)), None)
    if form is not None:
        yield from form.read(read_lines(whole, skipped), skipped)
    elif document is not None:
        yield from _read_documents(iter(lambda: whole.read(_START_BYTES), b""), document, skipped)
    elif is_log:
        raise BadInputError(f"{name} is not a transcript of an agent. Take it in yourself with: quaid extract FILE")
    else:
        names = [*(form.NAME for form in FORMATS[:-1]), *(form.NAME for form in DOCUMENTS), FORMATS[-1].NAME]
        known = ", ".join(dict.fromkeys(names))
        raise BadInputError(
            f"{name} is not a transcript Quaid knows; known are: {known}. Convert it to one of these and try again."
        )


def _read_head(start: bytes) -> list[str]:
    lines = read_lines(io.BytesIO(start), Counter())
    return list(islice((line for line in lines if line.strip("\0 \t\r")), _HEAD_LINES))


def _read_archive(stream: IO[bytes], name: str, skipped: Counter[str]) -> Iterator[Conversation]:
    from quaid.capture.transcripts.archives import read_members

    for chunks in read_members(stream, name):
        start = next(chunks, b"")
        document = _find_document(start)
        if document is not None:
            yield from _read_documents(chain([start], chunks), document, skipped)
        elif start.strip(b"[] \t\r\n"):
            skipped["unknown file"] += 1


def _read_documents(chunks: Iterator[bytes], document: DocumentFormat, skipped: Counter[str]) -> Iterator[Conversation]:
    for found in read_documents(chunks, lambda found: document.recognises_document(found.keys()), skipped):
        left_out: Counter[str] = Counter()
        conversation = document.read_document(found, left_out)
        yield replace(conversation, skipped=left_out)


def _find_document(start: bytes, documents: Sequence[DocumentFormat] = DOCUMENTS) -> DocumentFormat | None:
    keys = spot_keys(start) if documents else frozenset()
    return next((form for form in documents if form.recognises_document(keys)), None)


def _read_start(stream: IO[bytes]) -> bytes:
    """Enough to tell the format by: a whole line, unless it is a document that may be one line of any length."""
    start = _read_up_to(stream, _START_BYTES)
    while not _has_whole_line(start) and start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        if _find_document(start) is not None:
            break
        more = _read_up_to(stream, len(start))
        start += more
        if not more or len(start) >= LINE_LIMIT_BYTES:
            break
    return start


def _read_up_to(stream: IO[bytes], size: int) -> bytes:
    pieces = []
    while size > 0 and (piece := stream.read(size)):
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def _has_whole_line(start: bytes) -> bool:
    return len(start) < _START_BYTES or b"\n" in start.strip()


class _Rewound(io.RawIOBase):
    """A stream from its start again, when that was read already."""

    def __init__(self, start: bytes, rest: IO[bytes]) -> None:
        super().__init__()
        self._start = memoryview(start)
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._start:
            piece: bytes | memoryview = self._start[: len(buffer)]
            self._start = self._start[len(piece) :]
        else:
            piece = self._rest.read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)


def _stream_name(stream: IO[bytes]) -> str:
    name = getattr(stream, "name", None)
    return name if isinstance(name, str) else "The input"


def read_conversations(
    source: str | os.PathLike[str] | IO[bytes] | Sequence[Turn], session: str | None
) -> Iterator[Conversation]:
    """The conversations of a file, of an open stream, or one of turns as they are given, cleaned."""
    if isinstance(source, AgentLog):
        yield from read_transcripts(source, session=session)
    elif isinstance(source, (str, os.PathLike)):
        yield from read_transcripts(Path(source), session=session)
    elif hasattr(source, "read"):  # an open file is not a subclass of typing.IO
        yield from read_transcripts(cast("IO[bytes]", source), session=session)
    else:
        said = (replace(turn, text=clean_text(turn.text), speaker=whole(turn.speaker)) for turn in source)
        yield Conversation(tuple(said), whole(session))
