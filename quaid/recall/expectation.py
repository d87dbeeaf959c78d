"""Is the expected memory among the hits? What `recall --expect` and `quaid eval` decide."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from quaid.errors import CouldNotAskError, QuaidError, UsageError
from quaid.index import documents
from quaid.model import Hit, Recall, name_key, note_name

if TYPE_CHECKING:
    import apsw

_TURN = re.compile(r"(?P<note>.+)#\^?t(?P<turn>\d+)")
_SHORTEST_PART = 4
_NOT_AS_ASKED = ("config", "stale", "removals")
"""What is degraded when the settings are not the owner's, or the index that answered is not in step with the files."""


def find_expected(hits: Sequence[Hit], reference: str, meant: Collection[str] = ()) -> int | None:
    """The rank, from 1, of the first hit that `reference` names, None when there is none.

    A reference is what `quaid get` takes: an id or four characters or more from either end of it, a path, a name, the
    session of a conversation, or one turn of it (`20-1402-2f1c9a#t3`), each also as a link. Aliases and the ids of
    episodes are no part of a hit: what the index makes of the reference comes as `meant`, the paths `list_meant` gives.
    """
    note, turn = parse_reference(reference)
    for rank, hit in enumerate(hits, 1):
        if turn in {None, hit.turn} and (hit.path in meant or _is_called(hit, note)):
            return rank
    return None


def list_meant(connection: apsw.Connection, reference: str) -> frozenset[str]:
    """The paths of the notes that `reference` may mean in this index; none when it has no such note."""
    note, _ = parse_reference(reference)
    return frozenset(document.path for document in documents.resolve(connection, note)) if note else frozenset()


def parse_reference(reference: str) -> tuple[str, int | None]:
    """(note, turn) of `7k3qd`, `20-1402-2f1c9a#t3`, `[[20-1402-2f1c9a#^t3|what she said]]`."""
    text = reference.strip()
    if text.startswith("[[") and text.endswith("]]"):
        text = text[2:-2].partition("|")[0].strip()
    match = _TURN.fullmatch(text)
    return (match["note"], int(match["turn"])) if match else (text, None)


@contextmanager
def deciding() -> Iterator[None]:
    """Inside, the exit code is the answer. Whatever keeps the question from being put must not look like one: `git
    bisect` would take it for a lost memory, and 125 is how it is told to pass over a commit.
    """
    try:
        yield
    except UsageError:
        raise
    except QuaidError as error:
        raise CouldNotAskError(error) from error


def check_decidable(answer: Recall) -> None:
    """Refuse an answer from an index that is not in step with the files that are checked out.

    Raises:
        CouldNotAskError
    """
    missing = [name for name in answer.degraded if name in _NOT_AS_ASKED]
    if missing:
        raise CouldNotAskError(f"The answer is not that of this vault ({', '.join(missing)}). Try: quaid sync")


def _is_called(hit: Hit, note: str) -> bool:
    """By what a hit itself says; an exact name, or a part of an id that is not a path."""
    file_name = note_name(hit.path)
    if note in {hit.id, hit.path} or (note and hit.turn is not None and note == hit.session):
        return True
    if name_key(note.removesuffix(".md")) == name_key(file_name):
        return True
    part = note.lower()
    has_id = hit.turn is None and hit.id != hit.path
    return has_id and len(part) >= _SHORTEST_PART and (hit.id.startswith(part) or hit.id.endswith(part))
