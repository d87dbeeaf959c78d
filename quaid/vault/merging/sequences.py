"""Three versions of a list into one: what neither side removed, with what either has added."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
Item = TypeVar("Item", bound=Hashable)
_Numbered = tuple[Any, int]


def choose(base: T, ours: T, theirs: T) -> T:
    """Return the value that a side changed; where both did, the greater one."""
    if ours in (theirs, base):
        return theirs
    return ours if theirs == base or ours > theirs else theirs  # type: ignore[operator]


def merge_sequences(
    base: Sequence[Item], ours: Sequence[Item], theirs: Sequence[Item], keep: Collection[Item] = ()
) -> list[Item]:
    """Return the items of `base` that both sides have, or that are in `keep`, in its order, and those that a side has
    added, behind the same item of `base` as there.

    What both have added in one place is put in order by a tree: the parent of an item is the nearest greater one before
    it, and siblings ascend. Such trees and lists are in one-to-one correspondence, so each side keeps its own order
    where it can, and the union of two trees (of two parents the greater one) does not depend on which came first.
    """
    if not keep and theirs in (ours, base):
        return list(ours)
    if not keep and ours == base:
        return list(theirs)
    counts = [Counter(items) for items in (base, ours, theirs)]
    wanted = {item: max(_count(*(each[item] for each in counts)), int(item in keep)) for item in set().union(*counts)}
    numbered = [list(_number(items)) for items in (base, ours, theirs)]
    kept = [(item, number) for item, number in numbered[0] if number < wanted[item]]
    return [item for item, _ in _Added(numbered[0], kept, numbered[1:]).put_behind(kept)]


def _count(base: int, ours: int, theirs: int) -> int:
    """How often an item is there: added by one side, it stays, whatever the other has removed."""
    most = max(ours, theirs)
    return most if most > base else min(ours, theirs)


def _number(items: Sequence[Item]) -> Iterator[_Numbered]:
    seen: Counter[Item] = Counter()
    for item in items:
        yield item, seen[item]
        seen[item] += 1


class _Added:
    """The items that the sides have added: those right behind an item of the base by its place (-1 is the beginning),
    the others by their parent.
    """

    def __init__(self, base: Sequence[_Numbered], kept: Sequence[_Numbered], sides: Sequence[list[_Numbered]]) -> None:
        self._base = frozenset(base)
        self._place_of = {item: place for place, item in enumerate(kept)}
        self._parents: dict[_Numbered, _Numbered | None] = {}
        self._anchors: dict[_Numbered, int] = {}
        for side in sides:
            self._read(side)
        self._behind: dict[int | _Numbered, list[_Numbered]] = {}
        for item in sorted(self._parents, reverse=True):  # a stack takes the last one first
            parent = self._parents[item]
            self._behind.setdefault(self._anchors[item] if parent is None else parent, []).append(item)

    def _read(self, side: Sequence[_Numbered]) -> None:
        anchor, greater = -1, list[_Numbered]()
        for item in side:
            if item in self._base:
                anchor, greater = self._place_of.get(item, anchor), []
                continue
            while greater and greater[-1] < item:
                greater.pop()
            self._add(item, greater[-1] if greater else None, anchor)
            greater.append(item)

    def _add(self, item: _Numbered, parent: _Numbered | None, anchor: int) -> None:
        known = self._parents.get(item)
        if known is None or (parent is not None and parent > known):
            self._parents[item] = parent if parent is not None else known
        if parent is None:
            self._anchors[item] = min(anchor, self._anchors.get(item, anchor))

    def put_behind(self, kept: Sequence[_Numbered]) -> Iterator[_Numbered]:
        """Yield the items of `kept`, each followed by those that belong behind it."""
        for place in range(-1, len(kept)):
            if place >= 0:
                yield kept[place]
            waiting = list(self._behind.get(place, ()))
            while waiting:
                item = waiting.pop()
                yield item
                waiting += self._behind.get(item, ())
