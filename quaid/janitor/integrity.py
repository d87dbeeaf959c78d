"""What is wrong with the record as a whole: reported in the run's summary, changed by nobody but the owner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from quaid.index import documents, integrity

if TYPE_CHECKING:
    import apsw

_MOST_OF_A_KIND = 20


def find_problems(index: apsw.Connection) -> list[str]:
    """A sentence for each: replaced by a note that is not there, or in a circle; citations of turns that are not there;
    names that several entities have; ids used twice and heads that cannot be read.
    """
    found: list[str] = []
    for kind in (_successors(index), _citations(index), _names(index), _notes(index)):
        sentences = list(kind)
        found += sentences[:_MOST_OF_A_KIND]
        if len(sentences) > _MOST_OF_A_KIND:
            found.append(f"… and {len(sentences) - _MOST_OF_A_KIND:,} more of this kind.")
    return found


def _successors(index: apsw.Connection) -> Iterator[str]:
    rows = integrity.list_successors(index)
    next_of = {path: after for path, _, after in rows if after is not None}
    for path, named, after in rows:
        if after is None:
            yield f"{path} says that {named!r} replaced it, and no note is called so."
    told: set[str] = set()
    for start in next_of:
        circle = _circle(start, next_of)
        if circle and told.isdisjoint(circle):
            told.update(circle)
            yield f"{', '.join(sorted(circle))} replace each other in a circle, so none of them counts as true."


def _circle(start: str, next_of: dict[str, str]) -> list[str]:
    """The notes that come round to `start` again, following what replaced each."""
    seen = [start]
    while (after := next_of.get(seen[-1])) is not None:
        if after == start:
            return seen
        if after in seen:
            return []
        seen.append(after)
    return []


def _citations(index: apsw.Connection) -> Iterator[str]:
    lost: dict[str, list[str]] = {}
    for path, episode, turn in integrity.list_broken_citations(index):
        lost.setdefault(path, []).append(f"{episode}#t{turn}")
    for path, turns in lost.items():
        shown = ", ".join(turns[:3]) + (" …" if len(turns) > 3 else "")
        yield f"{path} rests on {shown}, which {'is' if len(turns) == 1 else 'are'} not there."


def _names(index: apsw.Connection) -> Iterator[str]:
    for name, paths in integrity.list_shared_names(index):
        yield f"{name!r} is the name of {' and of '.join(paths)}: recall takes them for one."


def _notes(index: apsw.Connection) -> Iterator[str]:
    problems = documents.list_problems(index)
    counts = Counter(path for path, _ in problems)
    for path, problem in problems:
        if counts.pop(path, 0):
            yield f"{path}: {problem}."
