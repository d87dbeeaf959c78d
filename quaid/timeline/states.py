"""Two states of the memory compared: the commits they refer to, the files that differ, the answers that changed."""

from datetime import date, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from quaid.errors import BadInputError, RevisionError, UsageError
from quaid.history.revisions import Point, Revisions, parse_moment
from quaid.history.vault_history import History
from quaid.model import Hit
from quaid.recall.evaluation import EvalQuestion, parse_questions
from quaid.text.dates import parse_day
from quaid.timeline.changes import Span, list_blobs, read_sides
from quaid.vault import files

ANSWERS = 5
"""The default number of hits that count as the answer to a question."""


class AnswerChange(NamedTuple):
    """The hits that a question finds in one state and not in the other; `found` and `missing` are the answers it
    expects, as written, that it finds or misses since.
    """

    question: EvalQuestion
    gained: tuple[Hit, ...]
    lost: tuple[Hit, ...]
    found: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


def find_span(revisions: Revisions, text: str, now: datetime) -> tuple[Point | None, Point | None]:
    """Return the two states that `A..B` names: None is the time before there was any, and the files as they are. Each
    is a commit or a day; days are whole: `yesterday..` is what changed since yesterday began. `A` alone is `A..`.

    Raises:
        UsageError, RevisionError: there is no such commit or day.
    """
    first, _, last = (part.strip() for part in text.partition(".."))
    if last.startswith("."):
        raise UsageError(f"{text!r} has three dots. Give two commits or days with two between them: A..B")
    return (
        _find(revisions, first or "HEAD", now, is_start=True),
        _find(revisions, last, now, is_start=False) if last else None,
    )


def _find(revisions: Revisions, text: str, now: datetime, *, is_start: bool) -> Point | None:
    """Return the referenced commit, or the state at the end of a day: for the start of a span, of the day before."""
    moment = parse_moment(text)
    if moment is not None:
        is_day = is_start and len(text) == len("2026-03-01")
        day = f"{date.fromisoformat(text) - timedelta(days=1)}" if is_day else text
    else:
        try:
            return revisions.find(text)
        except RevisionError as unknown:
            try:
                last = parse_day(text, now, end=not is_start)
            except UsageError:
                raise unknown from None
            day = f"{last - timedelta(days=1) if is_start else last:%Y-%m-%d}"
    try:
        return revisions.find(day)
    except RevisionError:
        if is_start:
            return None  # the history begins later
        raise


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
    old_files, new_files = read_sides(spans, git.runner.read_blobs(list_blobs(spans)))
    for path in changed:
        new_files.pop(path, None)
        if (data := files.read_note(root, path)) is not None:
            new_files[path] = data
    same = [path for path, data in new_files.items() if old_files.get(path) == data]
    for path in same:
        del old_files[path], new_files[path]
    return old_files, new_files


def read_questions(path: Path) -> list[EvalQuestion]:
    """Return the questions of a file: list items in markdown, JSON lines, or in any other file a question a line.

    Raises:
        BadInputError: it cannot be read, or asks nothing.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise BadInputError(
            f"There is no file {path}. Give a file with questions in markdown or JSON lines."
        ) from error
    except UnicodeDecodeError as error:
        raise BadInputError(f"{path} is not UTF-8 text. Save it as UTF-8 and try again.") from error
    except OSError as error:
        raise BadInputError(f"{path} cannot be read ({error.strerror}). Give a file with questions.") from error
    if path.suffix not in {".md", ".markdown", ".jsonl"}:
        lines = (line.strip() for line in text.removeprefix("\ufeff").splitlines())
        text = "\n".join(line if line.startswith(("- ", "* ", "#")) or not line else f"- {line}" for line in lines)
    return parse_questions(text, str(path))
