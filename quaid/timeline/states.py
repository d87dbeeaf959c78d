"""Two states of the memory compared: the commits they refer to, the files that differ, the answers that changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from quaid.errors import RevisionError, UsageError
from quaid.history.revisions import parse_moment
from quaid.model import Hit
from quaid.recall.evaluation import EvalQuestion, find_expected, parse_questions
from quaid.text.dates import parse_day
from quaid.timeline.changes import MemoryChange, Span, list_blobs, read_sides
from quaid.vault import files

if TYPE_CHECKING:
    from quaid.history.revisions import Point, Revisions
    from quaid.history.vault_history import History

ANSWERS = 5
"""The default number of hits that count as the answer to a question."""


@dataclass(frozen=True, slots=True)
class StateDiff:
    """The memory at `before` and at `after`: None is the time before there was any, and the files as they are."""

    before: Point | None
    after: Point | None
    changes: tuple[MemoryChange, ...]


@dataclass(frozen=True, slots=True)
class AnswerChange:
    """The hits that a question finds in one state and not in the other; `found` and `missing` are the answers it
    expects, as written, that it finds or misses since.
    """

    question: EvalQuestion
    gained: tuple[Hit, ...]
    lost: tuple[Hit, ...]
    found: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


def find_span(revisions: Revisions, text: str, now: datetime) -> tuple[Point | None, Point | None]:
    """Return the two states that `A..B` names, None as in `StateDiff`. Each is a commit or a day; days are whole:
    `yesterday..` is what changed since yesterday began. `A` alone is `A..`.

    Raises:
        UsageError, RevisionError: there is no such commit or day.
    """
    first, _, last = text.partition("..")
    if last.startswith("."):
        raise UsageError(f"{text!r} has three dots. Give two commits or days with two between them: A..B")
    return (
        _find(revisions, first.strip() or "HEAD", now, is_start=True),
        _find(revisions, last.strip(), now, is_start=False) if last.strip() else None,
    )


def _find(revisions: Revisions, text: str, now: datetime, *, is_start: bool) -> Point | None:
    day = _parse_day(revisions, text, now, is_start=is_start)
    try:
        return revisions.find(day or text)
    except RevisionError:
        if day and is_start:
            return None  # the history begins later
        raise


def _parse_day(revisions: Revisions, text: str, now: datetime, *, is_start: bool) -> str:
    """Return the day whose end is the referenced state, as `Revisions.find` takes it; empty where a commit is."""
    moment = parse_moment(text)
    if moment is not None:
        is_day = len(text.strip()) == len("2026-03-01")
        return f"{moment - timedelta(days=1):%Y-%m-%d}" if is_start and is_day else text
    try:
        revisions.find(text)
    except RevisionError as unknown:
        try:
            day = parse_day(text, now, end=not is_start)
        except UsageError:
            raise unknown from None
        return f"{day - timedelta(days=1) if is_start else day:%Y-%m-%d}"
    return ""


def read_states(
    git: History, root: Path, before: Point | None, after: Point | None
) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Return the files in which two states differ, path -> bytes, as they were and as they are."""
    last = after.id if after else git.state().head
    pairs = git.revisions.compare(before.id if before else None, last) if last else ()
    spans: dict[str, Span] = {}
    for old, new in pairs:
        path = (new or old).rel_path  # type: ignore[union-attr]
        spans[path] = old.blob if old and old.is_regular else None, new.blob if new and new.is_regular else None
    changed = git.uncommitted() if after is None else []
    known = git.list_tree(before.id) if before and changed else {}
    spans |= {path: (known.get(path), None) for path in changed if path not in spans}
    old_files, new_files = read_sides(spans, git.read_blobs(list_blobs(spans)))
    for path in changed:
        new_files.pop(path, None)
        if (data := files.read_note(root, path)) is not None:
            new_files[path] = data
    same = [path for path, data in new_files.items() if old_files.get(path) == data]
    for path in same:
        del old_files[path], new_files[path]
    return old_files, new_files


def read_questions(path: Path) -> list[EvalQuestion]:
    """Return the questions of a file as `quaid eval` reads it; of one that is neither markdown nor JSON lines each line
    is one.

    Raises:
        BadInputError: it asks nothing.
        OSError, UnicodeDecodeError: it cannot be read.
    """
    text = path.read_text(encoding="utf-8")
    if path.suffix not in {".md", ".jsonl"}:
        lines = (line.strip() for line in text.removeprefix("\ufeff").splitlines())
        text = "\n".join(line if line.startswith(("- ", "* ", "#")) or not line else f"- {line}" for line in lines)
    return parse_questions(text, str(path))


def compare_answers(
    question: EvalQuestion, old: Sequence[Hit], new: Sequence[Hit], targets: Mapping[str, frozenset[str]]
) -> AnswerChange:
    """Return what a question gains and loses from its `old` hits to the `new` ones. `targets` has the paths of the
    notes that each expected name may refer to.
    """
    known, left = {hit.id for hit in old}, {hit.id for hit in new}
    ranks = {name: [find_expected(hits, name, paths) for hits in (old, new)] for name, paths in targets.items()}
    return AnswerChange(
        question,
        tuple(hit for hit in new if hit.id not in known),
        tuple(hit for hit in old if hit.id not in left),
        tuple(name for name, (was, now) in ranks.items() if was is None and now is not None),
        tuple(name for name, (was, now) in ranks.items() if was is not None and now is None),
    )
