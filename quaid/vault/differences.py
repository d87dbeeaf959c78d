"""The differences between two versions of a note, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from quaid.model import Kind
from quaid.vault import episodes, frontmatter, markdown

MAX_QUOTED = 120
"""Characters of a value that are quoted."""
_OWN = "\0"
"""The subject of an entity's own edges, which must not change with its name."""


class _Difference(NamedTuple):
    """`what` is a key of the head, or one of the things a body is made of."""

    what: str
    before: str | None
    after: str | None

    @property
    def outcome(self) -> tuple[str, str | None, str | None]:
        return self.what, self.after, self.before if self.after is None else None


_STATEMENT, _EDGE, _LINE, _TURN = "\0statement", "\0edge", "\0line", "\0turn "


def describe(kind: Kind, befores: Sequence[bytes | None], after: bytes | None, turn: int | None = None) -> list[str]:
    """Sentences like `confidence 0.9 → 0.95`, none when nothing that is read has changed.

    Args:
        kind: what kind of note it is.
        befores: the version before; for a merge one of each side, and only what is in none of them is reported.
        after: the version after. A version that does not exist says nothing.
        turn: look at this turn of an episode only.
    """
    sides = [_compare(kind, before, after, turn) for before in befores]
    others = [{difference.outcome for difference in side} for side in sides[1:]]
    return list(_in_words(found for found in sides[0] if all(found.outcome in other for other in others)))


def _compare(kind: Kind, before: bytes | None, after: bytes | None, turn: int | None) -> list[_Difference]:
    old, new = _take_apart(kind, before), _take_apart(kind, after)
    if turn is not None:
        wanted = f"{_TURN}{turn}"
        old, new = ({key: value for key, value in side.items() if key[0] == wanted} for side in (old, new))
    keys = dict.fromkeys([*old, *new])
    return [_Difference(key[0], old.get(key), new.get(key)) for key in keys if old.get(key) != new.get(key)]


@lru_cache(maxsize=8)  # what one commit left is what the next one found
def _take_apart(kind: Kind, data: bytes | None) -> dict[tuple[str, str], str]:
    """Return the pieces of a version: (what it is, which of several) -> words."""
    if data is None:
        return {}
    head = frontmatter.parse(data.decode("utf-8", "replace").replace("\r\n", "\n"))
    pieces = {(key, ""): _spoken(value) for key, value in head.fields.items()}
    if kind is Kind.EPISODE:
        turns = episodes.parse_turns(head.body)
        return pieces | {(f"{_TURN}{turn.number}", ""): turn.text for turn in turns if turn.number is not None}
    if kind in {Kind.FACT, Kind.ENTITY}:
        return pieces | dict(_statement(head.body, kind))
    lines = Counter(line.strip() for line in head.body.splitlines() if line.strip())
    return pieces | {(_LINE, f"{line}\0{i}"): line for line, times in lines.items() for i in range(times)}


def _statement(body: str, kind: Kind) -> Iterator[tuple[tuple[str, str], str]]:
    if text := " ".join(markdown.plain(markdown.without_edges(body)).split()):
        yield (_STATEMENT, ""), text
    for edge in markdown.edges(body, _OWN if kind is Kind.ENTITY else None):
        spoken = " ".join(part for part in (edge.subject, edge.relation, edge.object) if part != _OWN)
        yield (_EDGE, spoken), spoken


def _in_words(differences: Iterable[_Difference]) -> Iterator[str]:
    added_turns: list[int] = []
    lines: dict[str, list[str]] = {"added": [], "removed": []}
    for what, before, after in differences:
        if what == _LINE:
            lines["removed" if after is None else "added"].append(before or after or "")
        elif what.startswith(_TURN) and before is None:
            added_turns.append(int(what.removeprefix(_TURN)))
        else:
            yield _sentence(what, before, after)
    for first, last in _runs(sorted(added_turns)):
        yield f"turn {first} added" if first == last else f"turns {first} to {last} added"
    for how, found in lines.items():
        if found:
            yield f"{len(found)} {'line' if len(found) == 1 else 'lines'} {how}: {_quoted(found[0])}"


def _sentence(what: str, before: str | None, after: str | None) -> str:
    how = "removed" if after is None else "added"
    if what == _EDGE:
        return f"edge {how}: {before or after}"
    if what.startswith(_TURN):
        if before and after:
            changed = f"{_quoted(before)} → {_quoted(after)}"
        else:  # a forgotten turn is an empty one
            changed = "removed" if after is None else "restored" if after else "forgotten"
        return f"turn {what.removeprefix(_TURN)} {changed}"
    if what == _STATEMENT:
        is_reworded = before is not None and after is not None
        return f"{_quoted(before or '')} → {_quoted(after or '')}" if is_reworded else f"statement {how}"
    if before is None:
        return f"{what} set to {_short(after or '')}"
    return f"{what} removed, was {_short(before)}" if after is None else f"{what} {_short(before)} → {_short(after)}"


def _runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """(first, last) of each stretch of consecutive numbers."""
    starts = [number for place, number in enumerate(numbers) if not place or numbers[place - 1] != number - 1]
    ends = [before for before, number in pairwise(numbers) if number != before + 1] + list(numbers[-1:])
    return zip(starts, ends, strict=True)


def _spoken(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_spoken, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_spoken(part)}" for key, part in value.items())
    return " ".join(str(value).split())


def _quoted(text: str) -> str:
    return f"“{_short(text)}”"


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= MAX_QUOTED else text[: MAX_QUOTED - 1].rstrip() + "…"
