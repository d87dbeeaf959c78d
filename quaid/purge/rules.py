"""What becomes of notes, names and messages that hold a text which is purged."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable

from quaid.purge.wording import Wording

_FACT = re.compile(rb"(?m)^type: *fact *$")
_ID = re.compile(rb"(?m)^id: *[\"']?([0-9a-z]+)")
_MIN_WORDS = 3
"""A line of a note with fewer may be in any other note as well: a heading, a name."""
_MIN_BYTES = 10


class PurgeRules:
    """A fact that holds the text loses its note, and so does a note that is purged by its name, in all its versions.
    Everywhere else `[purged]` replaces the text.
    """

    def __init__(self, wording: Wording, versions: Iterable[bytes] = ()) -> None:
        self.wording = wording
        long = [data for data in versions if len(data) >= _MIN_BYTES]
        self._versions = {hashlib.sha256(data).digest() for data in long}
        self._ids = {note_id for data in long if (note_id := read_id(data))}

    def change_file(self, data: bytes) -> bytes | None:
        """Return the file without the text, None if it goes altogether."""
        if self._versions and hashlib.sha256(data).digest() in self._versions:
            return None
        if self._ids and read_id(data) in self._ids:
            return None
        if not self.wording.is_in(data):
            return data
        return None if _FACT.search(_head(data)) else self.wording.replace(data)

    def change_path(self, path: bytes) -> bytes:
        """Return the path without the text."""
        return self.wording.replace_name(path)

    def change_text(self, text: bytes) -> bytes:
        """Return a message without the text."""
        return self.wording.replace(text)


def read_id(data: bytes) -> bytes:
    """Return the id in the frontmatter of a note, empty where there is none."""
    found = _ID.search(_head(data))
    return found[1] if found else b""


def list_texts(versions: Collection[bytes]) -> list[str]:
    """Return what facts say, of all `versions`, a line a text: nobody else may repeat it. Other notes are no statement,
    and their words may well be elsewhere.
    """
    bodies = (data[len(_head(data)) :].decode("utf-8", "replace") for data in versions if _FACT.search(_head(data)))
    lines = (line.strip() for body in bodies for line in body.splitlines() if line.strip("- \t"))
    return list(dict.fromkeys(line for line in lines if len(line.split()) >= _MIN_WORDS))


def _head(data: bytes) -> bytes:
    end = data.find(b"\n---", 4) if data.startswith(b"---") else -1
    return data[: end + 4] if end > 0 else b""
