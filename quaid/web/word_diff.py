"""The difference of two versions of a text, line by line, and in a changed line word by word."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

from quaid.redaction import admit

CONTEXT = 2
"""Unchanged lines that are shown around a change."""
MAX_LINES = 2_000
"""Longer texts are not compared: the time is quadratic."""
MAX_WORDS = 1_500
"""Of a changed passage; a longer one is shown as removed and added."""
_WORD = re.compile(r"\w+|\s+|[^\w\s]")

How = Literal["same", "removed", "added", "gap"]

_PARTS: tuple[How, How, How] = ("same", "removed", "added")
_MARKS: dict[str, How] = {" ": "same", "-": "removed", "+": "added"}


class Piece(NamedTuple):
    """A stretch of text, and what became of it. A gap replaces unchanged lines."""

    how: How
    text: str


def diff_words(before: str, after: str) -> list[Piece]:
    """Return `after` with the removed parts of `before` in their places; nothing if they are the same."""
    if before == after:
        return []
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    if max(len(old), len(new)) > MAX_LINES:
        return [Piece("gap", f"too long to compare: {len(old):,} lines before, {len(new):,} after")]
    pieces: list[Piece] = []
    for group in SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(CONTEXT):
        pieces += [Piece("gap", "…\n")] if group[0][1] else []
        for tag, start, end, first, last in group:
            removed, added = "".join(old[start:end]), "".join(new[first:last])
            pieces += [Piece("same", removed)] if tag == "equal" else _diff_passage(removed, added)
    return pieces


def _diff_passage(before: str, after: str) -> list[Piece]:
    old, new = _WORD.findall(before), _WORD.findall(after)
    if max(len(old), len(new)) > MAX_WORDS:
        steps = [("replace", 0, len(old), 0, len(new))]
    else:
        steps = list(SequenceMatcher(None, old, new, autojunk=False).get_opcodes())
    same, changes = "", list[tuple[str, str, str]]()
    for tag, start, end, first, last in steps:
        removed, added = "".join(old[start:end]), "".join(new[first:last])
        if tag == "equal":
            same = removed
            continue
        # Between two changes, unchanged text that is shorter than both only breaks up what a reader compares.
        while changes and len(same) <= min(max(map(len, each)) for each in ((removed, added), changes[-1][1:])):
            earlier, before_removed, before_added = changes.pop()
            removed, added, same = before_removed + same + removed, before_added + same + added, earlier
        changes.append((same, removed, added))
        same = ""
    texts = [pair for each in changes for pair in zip(_PARTS, each, strict=True)]
    return [Piece(how, text) for how, text in (*texts, ("same", same)) if text]


def diff_versions(before: bytes | None, after: bytes | None) -> list[Piece]:
    """Return the difference of two versions of a file, None for no file. Secrets are removed first: a piece of one
    would not be recognised.
    """
    old, new = (admit((data or b"").decode("utf-8", "replace"), keep_lines=True).text for data in (before, after))
    return diff_words(old, new)


def read_diff(diff: str) -> list[Piece]:
    """Return the lines of a unified diff without the marks they begin with; hunks are separated by gaps."""
    pieces = []
    for line in diff.splitlines(keepends=True):
        how = _MARKS.get(line[:1])
        pieces.append(Piece(how, line[1:]) if how else Piece("gap", "…\n" if line.startswith("@@") else line))
    return pieces


def mark_differences(texts: Sequence[str]) -> list[list[Piece]]:
    """Return each text in pieces: the words that only one of the first two has are `removed` and `added`. The texts
    are without secrets: a piece of one would not be recognised.
    """
    shown = [[Piece("same", text)] for text in texts]
    if len(texts) > 1:
        diff = diff_words(texts[0], texts[1])
        if any(piece.how == "same" and re.search(r"\w", piece.text) for piece in diff):
            shown[:2] = [[piece for piece in diff if piece.how in {"same", how}] for how in ("removed", "added")]
    return shown
