"""The differences between two versions of a note, in words."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any

from quaid.model import Kind
from quaid.vault import episodes, frontmatter, markdown

MAX_QUOTED = 120
"""Characters of a value that are quoted."""
_OWN = "\0"
"""The subject of an entity's own edges, which must not change with its name."""
_STATEMENT, _EDGE, _LINE, _TURN = "\0statement", "\0edge", "\0line", "\0turn "
Difference = tuple[str, str | None, str | None]
"""A key of the head, or one of the four parts of a body, before and after."""


def describe(kind: Kind, befores: Sequence[bytes | None], after: bytes | None, turn: int | None = None) -> list[str]:
    """Return sentences like `confidence 0.9 → 0.95`, none if nothing that is read has changed.

    Args:
        kind: the kind of the note.
        befores: the version before; for a merge one of each side, and only what is in none of them is reported.
        after: the version after. A version that does not exist states nothing.
        turn: report only this turn of an episode.
    """
    sides: list[list[Difference]] = []
    for before in befores:
        old, new = _take_apart(kind, before), _take_apart(kind, after)
        keys = [key for key in dict.fromkeys([*old, *new]) if turn is None or key[0] == f"{_TURN}{turn}"]
        sides.append([(key[0], old.get(key), new.get(key)) for key in keys if old.get(key) != new.get(key)])
    outcomes = [{_outcome(difference) for difference in side} for side in sides]
    common = [found for found in sides[0] if all(_outcome(found) in other for other in outcomes)]
    sentences = []
    added_turns: list[int] = []
    lines: dict[str, list[str]] = {"added": [], "removed": []}
    for what, old_text, new_text in common:
        if what == _LINE:
            lines["removed" if new_text is None else "added"].append(old_text or new_text or "")
        elif what.startswith(_TURN) and old_text is None:
            added_turns.append(int(what.removeprefix(_TURN)))
        else:
            sentences.append(_describe_one(what, old_text, new_text))
    for _, run in groupby(enumerate(sorted(added_turns)), key=lambda pair: pair[1] - pair[0]):
        turns = [number for _, number in run]
        first, last = turns[0], turns[-1]
        sentences.append(f"turn {first} added" if first == last else f"turns {first} to {last} added")
    for how, found in lines.items():
        if found:
            sentences.append(f"{len(found)} {'line' if len(found) == 1 else 'lines'} {how}: {quote(found[0])}")
    return sentences


def _outcome(difference: Difference) -> Difference:
    what, before, after = difference
    return what, after, before if after is None else None


@lru_cache(maxsize=8)  # the version after one commit is the version before the next one
def _take_apart(kind: Kind, data: bytes | None) -> dict[tuple[str, str], str]:
    """Return the pieces of a version: (what it is, which of several) -> words."""
    if data is None:
        return {}
    head = frontmatter.parse(data.decode("utf-8", "replace").replace("\r\n", "\n"))
    pieces = {(key, ""): _in_words(value) for key, value in head.fields.items()}
    if kind is Kind.EPISODE:
        turns = episodes.parse_turns(head.body)
        return pieces | {(f"{_TURN}{turn.number}", ""): turn.text for turn in turns if turn.number is not None}
    if kind in {Kind.FACT, Kind.ENTITY}:
        if text := _in_words(markdown.plain(markdown.without_edges(head.body))):
            pieces[_STATEMENT, ""] = text
        for edge in markdown.edges(head.body, _OWN if kind is Kind.ENTITY else None):
            words = " ".join(part for part in (edge.subject, edge.relation, edge.object) if part != _OWN)
            pieces[_EDGE, words] = words
        return pieces
    lines = Counter(line.strip() for line in head.body.splitlines() if line.strip())
    return pieces | {(_LINE, f"{line}\0{i}"): line for line, times in lines.items() for i in range(times)}


def _describe_one(what: str, before: str | None, after: str | None) -> str:
    how = "removed" if after is None else "added"
    is_reworded = before is not None and after is not None
    if what == _EDGE:
        return f"edge {how}: {before or after}"
    if what.startswith(_TURN):
        if before and after:
            changed = f"{quote(before)} → {quote(after)}"
        else:  # a forgotten turn is an empty one
            changed = "removed" if after is None else "restored" if after else "forgotten"
        return f"turn {what.removeprefix(_TURN)} {changed}"
    if what == _STATEMENT:
        return f"{quote(before or '')} → {quote(after or '')}" if is_reworded else f"statement {how}"
    if is_reworded:
        return f"{what} {_short(before or '')} → {_short(after or '')}"
    return f"{what} removed, was {_short(before or '')}" if after is None else f"{what} set to {_short(after)}"


def _in_words(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_in_words, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_in_words(part)}" for key, part in value.items())
    return " ".join(str(value).split())


def quote(text: str, most: int = MAX_QUOTED) -> str:
    """Return a text on a line as a sentence quotes it, with an ellipsis if it is longer than `most` characters."""
    return f"“{_short(text, most)}”"


def _short(text: str, most: int = MAX_QUOTED) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"
