"""The commit at which an answer turned: looked for by bisection, with the past asked at each step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from quaid.model import Hit, name_key
from quaid.recall.evaluation import find_expected

if TYPE_CHECKING:
    from quaid.timeline.changes import MemoryChange
    from quaid.timeline.log import LogEntry


@dataclass(frozen=True, slots=True)
class Turn:
    """What became of an answer: `is_there` at the end of the `commits` that were asked about. `entry` is the commit
    since which that is so and `changes` what it did; None where it was never seen otherwise in `asked` states.
    """

    is_there: bool
    asked: int
    commits: int
    entry: LogEntry | None = None
    changes: tuple[MemoryChange, ...] = ()


def is_found(hits: Sequence[Hit], expected: str, meant: frozenset[str]) -> bool:
    """Return whether one of `hits` is the note that `expected` names, or says it."""
    said = name_key(expected)
    return find_expected(hits, expected, meant) is not None or any(said in name_key(hit.text) for hit in hits)


def order_probes(commits: Sequence[str], hints: Iterable[str]) -> list[int]:
    """Return the places at which it is worth while to look for another answer than at the last of `commits`: where
    `hints` are and just before, the beginning, then further and further back.
    """
    place = {commit: number for number, commit in enumerate(commits)}
    near = [place[hint] - step for hint in hints if hint in place for step in (0, 1)]
    last = len(commits) - 1
    back = [last - 2**power for power in range(last.bit_length())]
    return [number for number in dict.fromkeys([*near, 0, *back]) if 0 <= number < last]


def find_turn(commits: Sequence[str], hints: Iterable[str], has: Callable[[str], bool]) -> tuple[str, bool] | None:
    """Return the commit, of those in order, since which `has` is as it is at the last one, and how that is; None
    where it was never seen otherwise. By bisection: between the places where it looks, one turn is found, not each.
    """
    is_there = has(commits[-1])
    start = next((number for number in order_probes(commits, hints) if has(commits[number]) != is_there), None)
    if start is None:
        return None
    end = len(commits) - 1
    while end - start > 1:
        middle = (start + end) // 2
        if has(commits[middle]) == is_there:
            end = middle
        else:
            start = middle
    return commits[end], is_there
