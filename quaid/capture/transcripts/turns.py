"""The way from utterances to the turns of a conversation, which all formats have in common."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from quaid.capture.cleaning import clean_name, clean_text, split_message
from quaid.model import Conversation, Turn
from quaid.recall.metadata import strip_metadata

_Node = TypeVar("_Node", bound=Hashable)

CITABLE_CHARS = 2000
"""Characters that a turn of an agent has at most, unless a paragraph or a code block alone has more."""

_END = "\n\n."
_NO_TITLES = frozenset({"new chat", "untitled"})
_LAST_COMPONENT = re.compile(r"[^/\\]+(?=[/\\]*$)")


@dataclass(frozen=True, slots=True)
class Utterance:
    """One text that was said, cleaned.

    `place` is where it stands in its transcript. Between two prompts, equal texts of one `source` are one text that was
    written down twice; None is a source of its own.
    """

    role: str
    text: str
    at: datetime | None = None
    place: int = 0
    source: Hashable = None


def make_conversation(
    pieces: Iterable[Utterance],
    source: str,
    session: object = None,
    started: datetime | None = None,
    project: str | None = None,
    title: str | None = None,
) -> Conversation:
    """The conversation of `pieces`, in their order; without `started` it begins with the first time given. A `title`
    that only says that none was given is left out.

    Each piece is a turn, so none changes while the transcript grows; a long message of the agent is several.
    """
    turns: list[Turn] = []
    answered: set[tuple[Hashable, str]] = set()
    for piece in pieces:
        if piece.role != "assistant":
            answered.clear()
            turns.append(Turn("User", piece.text, "user", piece.at))
        elif piece.source is None or (piece.source, piece.text) not in answered:
            answered.add((piece.source, piece.text))
            parts = split_message(piece.text, CITABLE_CHARS)
            turns += [Turn("Assistant", part, "assistant", piece.at) for part in parts]
    named = session if isinstance(session, str) else None
    started = started or next((turn.at for turn in turns if turn.at), None)
    title = clean_name(title or "") or None
    is_titled = title is not None and title.casefold() not in _NO_TITLES
    return Conversation(tuple(turns), named, source, started, project, title=title if is_titled else None)


def clean_typed(text: str) -> str:
    """The text that a person typed, without what gateways and hosts put around it; possibly empty."""
    cleaned = clean_text(text)
    # A message that is all metadata is given back whole; with an end of its own it never is.
    typed = strip_metadata(cleaned + _END).removesuffix(".").rstrip()
    return cleaned if typed == cleaned.rstrip() else clean_text(typed)


def find_project(folder: object) -> str | None:
    """The name of a working folder."""
    found = _LAST_COMPONENT.search(folder) if isinstance(folder, str) else None
    return (clean_name(found[0]) if found else "") or None


def walk_back(leaf: _Node | None, parents: Mapping[_Node, _Node | None]) -> list[_Node]:
    """The way from the root to `leaf`, both included. Who is not in `parents` ends it, and so does a circle."""
    path: dict[_Node, None] = {}
    node = leaf
    while node is not None and node in parents and node not in path:
        path[node] = None
        node = parents[node]
    return list(reversed(path))
