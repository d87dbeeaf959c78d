"""Problems of the record as a whole: reported in the run's summary, changed only by the owner."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from quaid.index import contents, documents
from quaid.vault.notes import NOT_MADE

if TYPE_CHECKING:
    from quaid.index.port import IndexConnection

_MAX_OF_A_KIND = 20


def find_problems(index: IndexConnection) -> list[str]:
    """Return a sentence for each problem: facts replaced by a missing note or in a circle, citations of missing turns,
    names with more than one entity, duplicate ids and unreadable heads.
    """
    names = (
        f"{name!r} is the name of {' and of '.join(paths)}: recall takes them for one."
        for name, paths in contents.list_shared_names(index)
    )
    first_problems: dict[str, str] = {}
    for path, problem in documents.list_problems(index):
        if problem != NOT_MADE:  # `quaid status` names them; nothing is wrong with them
            first_problems.setdefault(path, problem)
    notes = (f"{path}: {problem}." for path, problem in first_problems.items())
    found: list[str] = []
    lost: dict[str, list[str]] = {}
    for path, episode, turn in contents.list_broken_citations(index):
        lost.setdefault(path, []).append(f"{episode}#t{turn}")
    citations = (
        f"{path} rests on {', '.join(turns[:3])}{' …' if len(turns) > 3 else ''}, which "
        f"{'is' if len(turns) == 1 else 'are'} not there."
        for path, turns in lost.items()
    )
    for kind in (_check_successors(index), citations, names, notes):
        sentences = list(kind)
        found += sentences[:_MAX_OF_A_KIND]
        if len(sentences) > _MAX_OF_A_KIND:
            found.append(f"… and {len(sentences) - _MAX_OF_A_KIND:,} more of this kind.")
    return found


def _check_successors(index: IndexConnection) -> Iterator[str]:
    rows = contents.list_successors(index)
    next_of = {path: after for path, _, after in rows if after is not None}
    for path, named, after in rows:
        if after is None:
            yield f"{path} says that {named!r} replaced it, and no note is called so."
    reported: set[str] = set()
    for start in next_of:
        seen = [start]
        while (after := next_of.get(seen[-1])) is not None and after not in seen:
            seen.append(after)
        if after == start and reported.isdisjoint(seen):
            reported.update(seen)
            yield f"{', '.join(sorted(seen))} replace each other in a circle, so none of them counts as true."
