"""Bytes -> JSON objects of any size of file, one at a time: an export is one list that may not fit into memory."""

from __future__ import annotations

import codecs
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

CONVERSATION_LIMIT = 32 * 2**20
"""Characters. A longer conversation is skipped and counted."""

_DECODER = json.JSONDecoder(strict=False)
_SEPARATORS = re.compile(r"[\s,\[\]\0\ufeff]*")
_NEXT_OBJECT = re.compile(r",\s*(?=\{)")
_KEY = re.compile(r'(?<!\\)"([A-Za-z_]{1,40})"\s*:')
_DOCUMENT_START = re.compile(r"[\s\ufeff\[]*(?=\{)")
_MAX_WORD_CHARS = 16


def spot_keys(start: bytes) -> frozenset[str]:
    """The keys of the first object in a file that begins with `start`; empty when it does not begin with one.

    Of an object that is cut off, all keys within reach, nested ones too.
    """
    text = _decoder(start).decode(start)
    place = _DOCUMENT_START.match(text)
    if place is None:
        return frozenset()
    try:
        found, _ = _DECODER.raw_decode(text, place.end())
    except (ValueError, RecursionError):
        return frozenset(_KEY.findall(text))
    return frozenset(found)


def read_documents(
    chunks: Iterator[bytes], is_wanted: Callable[[dict[str, Any]], bool], skipped: Counter[str]
) -> Iterator[dict[str, Any]]:
    """The objects in a list, in several lists, or one after another, that are wanted.

    No more is held than the longest conversation, at most `CONVERSATION_LIMIT`, and a chunk. What cannot be read is
    counted, and reading goes on with the next object that is wanted.
    """
    reader = _Window(chunks)
    is_lost = False
    while reader.has_more():
        try:
            found = reader.take()
        except (ValueError, RecursionError):
            skipped["unreadable conversation"] += not is_lost
            is_lost = True
            reader.skip()
            continue
        if isinstance(found, dict) and is_wanted(found):
            is_lost = False
            yield found
        elif not is_lost:
            skipped["unknown entry"] += 1


class _Window:
    """A window on the text, which grows until the value that begins in it is whole."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = _decode(chunks)
        self._text = ""
        self._place = 0

    def has_more(self) -> bool:
        while True:
            self._place = _SEPARATORS.match(self._text, self._place).end()  # type: ignore[union-attr]
            if self._place < len(self._text):
                return True
            if not self._grow():
                return False

    def take(self) -> object:
        """The value that begins here.

        Raises:
            ValueError, RecursionError: there is none.
        """
        while True:
            try:
                found, self._place = _DECODER.raw_decode(self._text, self._place)
            except ValueError as error:
                if not self._is_cut_off(error) or not self._grow():
                    raise
            else:
                return found

    def skip(self) -> None:
        """Go to where another object may begin; never to the same place."""
        following = _NEXT_OBJECT.search(self._text, self._place + 1)
        is_too_long = len(self._text) - self._place >= CONVERSATION_LIMIT
        self._place = following.end() if following and not is_too_long else len(self._text)

    def _is_cut_off(self, error: ValueError) -> bool:
        at = getattr(error, "pos", None)
        is_at_end = at is not None and at >= len(self._text) - _MAX_WORD_CHARS
        return is_at_end or str(error).startswith("Unterminated string")

    def _grow(self) -> bool:
        """Drop what was read and double the rest, so that nothing is decoded more than a few times."""
        rest = self._text[self._place :]
        if len(rest) >= CONVERSATION_LIMIT:
            return False
        pieces = [rest]
        wanted = max(len(rest), 1)
        for piece in self._chunks:
            pieces.append(piece)
            wanted -= len(piece)
            if wanted <= 0:
                break
        self._text, self._place = "".join(pieces), 0
        return len(self._text) > len(rest)


def _decode(chunks: Iterator[bytes]) -> Iterator[str]:
    decoder: codecs.IncrementalDecoder | None = None
    for chunk in chunks:
        decoder = decoder or _decoder(chunk)
        yield decoder.decode(chunk)
    if decoder:
        yield decoder.decode(b"", final=True)


def _decoder(start: bytes) -> codecs.IncrementalDecoder:
    is_wide = start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return codecs.getincrementaldecoder("utf-16" if is_wide else "utf-8-sig")("replace")
