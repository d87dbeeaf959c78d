"""The sections of a long doc that some changes may concern, as a model is shown them. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from quaid.docs.changes import SourceChange, shorten
from quaid.vault import replacements

GAP = "\n[…]\n\n"
_WORD = re.compile(r"\w{3,}")
_DIFF = 20_000
"""Characters of a difference that words are taken from."""


def excerpt(text: str, changes: Sequence[SourceChange], longest: int) -> str:
    """The body of a doc with bare newlines, in at most about `longest` characters.

    Of a longer one the beginning, and as many of the sections that have most words in common with the changes, each
    without the sections below it, in their order.
    """
    body = text[replacements.text_start(text) :].replace("\r\n", "\n")
    if len(body) <= longest:
        return body
    parts = [body[section.start : section.next] for section in replacements.sections(body)]
    words = _words(changes)
    wanted = sorted(range(len(parts)), key=lambda place: (place > 0, -len(words & set(_WORD.findall(parts[place])))))
    room = longest
    kept: dict[int, str] = {}
    for place in wanted:
        if len(parts[place]) <= room or not kept:
            kept[place] = shorten(parts[place], room)
            room -= len(kept[place])
    shown = [f"{GAP * (place > 0 and place - 1 not in kept)}{kept[place]}" for place in sorted(kept)]
    return "".join(shown) + GAP * (max(kept) < len(parts) - 1)


def _words(changes: Sequence[SourceChange]) -> set[str]:
    """What the changed lines and the names of the files are made of."""
    said = [f"{change.path} {change.old_path or ''}" for change in changes]
    for change in changes:
        said += [line for line in change.diff(context=0, longest=_DIFF).split("\n") if line[:1] in ("+", "-")]
    return {word for line in said for word in _WORD.findall(line)}
