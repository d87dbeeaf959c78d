"""Transcript -> conversations. Formats are recognised by content, never by file name.

A format is lines (most agents' logs, chat logs) or documents (exports: JSON that holds many conversations, perhaps in
a ZIP archive). Both are read as a stream, one conversation at a time.
"""

import io
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from shutil import copyfileobj
from tempfile import SpooledTemporaryFile
from typing import IO, cast

from quaid.capture.cleaning import clean_name, clean_text
from quaid.capture.transcripts.agents import Codex, Gemini, Hermes, OpenClaw
from quaid.capture.transcripts.chats import JsonLines, PlainText
from quaid.capture.transcripts.claude_code import ClaudeCode
from quaid.capture.transcripts.exports import ChatGpt, ClaudeAi, find_keys, read_archive, read_documents
from quaid.capture.transcripts.parsing import LINE_LIMIT_BYTES, DocumentFormat, Format, read_lines
from quaid.errors import BadInputError
from quaid.model import Conversation, Turn
from quaid.text.invisible import whole

_ARCHIVE_STARTS = (b"PK\x03\x04", b"PK\x05\x06")
_HEAD_LINES = 24
_START_BYTES = 2**18
_MEMORY_BYTES = 16 * 2**20

FORMATS: tuple[type[Format], ...] = (ClaudeCode, Codex, Gemini, OpenClaw, Hermes, JsonLines, PlainText)
"""Tried in this order; plain text takes any text that is not JSON, so it stays last."""

DOCUMENTS: tuple[type[DocumentFormat], ...] = (ChatGpt, ClaudeAi, Gemini)

AGENTS: tuple[type[Format], ...] = (ClaudeCode, Codex, Gemini, OpenClaw)
SPOOL: tuple[type[Format], ...] = (JsonLines,)


@dataclass(frozen=True, slots=True)
class AgentLog(os.PathLike[str]):
    """An open file that an agent's program or its hook wrote; it is read as one of `formats` or not at all."""

    path: str
    stream: IO[bytes]
    formats: tuple[type[Format], ...] = AGENTS

    def __fspath__(self) -> str:
        return self.path


def read_conversations(
    source: str | os.PathLike[str] | IO[bytes] | Sequence[Turn], session: str | None = None
) -> Iterator[Conversation]:
    """Yield the conversations of a transcript or an export as they are read, or the one of the turns that are given.

    `session` overrides the one that it names. A session without utterances is a conversation without turns. Unreadable
    or unknown lines and conversations are counted in `skipped`, not fatal.
    """
    name, formats = "The input", FORMATS
    try:
        if isinstance(source, AgentLog):
            name, formats = source.path, source.formats
            with source.stream as stream:
                yield from _finish(stream, name, session, formats)
        elif isinstance(source, (str, os.PathLike)):
            name = os.fspath(source)
            with Path(name).open("rb") as stream:
                yield from _finish(stream, name, session, formats)
        elif hasattr(source, "read"):  # an open file is not a subclass of typing.IO
            stream, given = cast("IO[bytes]", source), getattr(source, "name", None)
            name = given if isinstance(given, str) else name
            with _rewindable(stream) as rewindable:
                yield from _finish(rewindable, name, session, formats)
        else:
            turns = (replace(turn, text=clean_text(turn.text), speaker=whole(turn.speaker)) for turn in source)
            yield Conversation(tuple(turns), whole(session))
    except OSError as error:
        raise BadInputError.unreadable(name, error) from error


def is_transcript(path: Path) -> bool:
    """Return True when a file holds conversations of a known program; plain text, which may be anything, is not one."""
    try:
        with path.open("rb") as stream:
            start = _read_start(stream)
            if start.startswith(_ARCHIVE_STARTS):
                return any(True for _ in read_archive(stream, path.name))
    except (OSError, BadInputError):
        return False
    head = _read_head(start)
    return _find_document(start) is not None or any(form.recognises(head) for form in FORMATS[:-1])


def _finish(
    stream: IO[bytes], name: str, session: str | None, formats: tuple[type[Format], ...]
) -> Iterator[Conversation]:
    """Yield each conversation with its session's name, and with the counts of what was left out around it."""
    skipped: Counter[str] = Counter()
    last: Conversation | None = None
    for conversation in _read(stream, name, skipped, formats):
        if last is not None:
            if session:
                raise BadInputError(f"{name} holds several conversations, each with a session of its own. Name none.")
            yield last
        named = whole(session) or clean_name(conversation.session or "") or None
        last = replace(conversation, session=named, skipped=dict(Counter(conversation.skipped) + skipped))
        skipped.clear()
    if last is None:
        raise BadInputError(f"{name} holds no conversation that can be read. Give a transcript with something said.")
    yield replace(last, skipped=dict(Counter(last.skipped) + skipped))


@contextmanager
def _rewindable(stream: IO[bytes]) -> Iterator[IO[bytes]]:
    """Yield the stream, or a copy of one that cannot be read twice, such as a pipe."""
    if stream.seekable():
        yield stream
        return
    with SpooledTemporaryFile(max_size=_MEMORY_BYTES) as copy:
        copyfileobj(stream, copy)
        copy.seek(0)
        yield copy


def _read(
    stream: IO[bytes], name: str, skipped: Counter[str], formats: tuple[type[Format], ...]
) -> Iterator[Conversation]:
    is_log = formats is not FORMATS
    documents = DOCUMENTS if not is_log else (Gemini,) if Gemini in formats else ()
    begin, start = stream.tell(), _read_start(stream)
    stream.seek(begin)
    if start.startswith(_ARCHIVE_STARTS) and not is_log:
        for chunks in read_archive(stream, name):
            first = next(chunks, b"")
            document = _find_document(first)
            if document is not None:
                yield from _read_documents(chain([first], chunks), document, skipped)
            elif first.strip(b"[] \t\r\n"):
                skipped["unknown file"] += 1
        return
    document = _find_document(start, documents)
    head = _read_head(start)
    if not head and not is_log:
        raise BadInputError(f"{name} holds no text. Give a transcript with at least one thing said.")
    form = None
    if document is None or _has_whole_line(start):
        form = next((form for form in formats if form.recognises(head)), None)
    if form is not None:
        yield from form(skipped).read(read_lines(stream, skipped))
    elif document is not None:
        yield from _read_documents(iter(partial(stream.read, _START_BYTES), b""), document, skipped)
    elif is_log:
        raise BadInputError(f"{name} is not a transcript of an agent. Take it in yourself with: quaid extract FILE")
    else:
        names = [*(form.name for form in FORMATS[:-1]), *(form.name for form in DOCUMENTS), FORMATS[-1].name]
        known = ", ".join(dict.fromkeys(names))
        raise BadInputError(
            f"{name} is not a transcript Quaid knows; known are: {known}. Convert it to one of these and try again."
        )


def _read_head(start: bytes) -> list[str]:
    lines = read_lines(io.BytesIO(start), Counter())
    return list(islice((line for line in lines if line.strip("\0 \t\r")), _HEAD_LINES))


def _read_documents(
    chunks: Iterator[bytes], form: type[DocumentFormat], skipped: Counter[str]
) -> Iterator[Conversation]:
    for found in read_documents(chunks, form, skipped):
        reader = form(Counter())
        conversation = reader.read_document(found)
        yield replace(conversation, skipped=reader.skipped)


def _find_document(start: bytes, documents: Sequence[type[DocumentFormat]] = DOCUMENTS) -> type[DocumentFormat] | None:
    keys = find_keys(start) if documents else frozenset()
    return next((form for form in documents if form.is_conversation(keys)), None)


def _read_start(stream: IO[bytes]) -> bytes:
    """Return enough to recognise the format: a whole line, unless it is a document in one line of any length."""
    start = stream.read(_START_BYTES)
    while not _has_whole_line(start) and start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        if _find_document(start) is not None:
            break
        more = stream.read(len(start))
        start += more
        if not more or len(start) >= LINE_LIMIT_BYTES:
            break
    return start


def _has_whole_line(start: bytes) -> bool:
    return len(start) < _START_BYTES or b"\n" in start.strip()
