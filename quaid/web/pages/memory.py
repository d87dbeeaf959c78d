"""A memory: the note, what it rests on, what has to do with it, and its life."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from quaid.redaction import admit
from quaid.vault import frontmatter
from quaid.web.rendering import render_markdown, render_note
from quaid.web.word_diff import Piece, diff_versions

if TYPE_CHECKING:
    from starlette.requests import Request

    from quaid.memory import Memory
    from quaid.recall.provenance import NoteChange, Provenance

MAX_CHANGES = 50
"""Of a note's life, the newest."""
TRAILERS = ("Task", "Run", "Decision", "Model", "Prompt", "Session")


class Step(NamedTuple):
    """A change in a note's life, with what it did to the text and who or what decided it."""

    change: NoteChange
    pieces: list[Piece]
    trailers: list[str]


class Span(NamedTuple):
    """A time as a bar: `start` and `width` in percent of the whole; a missing `first` or `last` is open."""

    name: str
    first: str | None
    last: str | None
    start: float
    width: float


def show_memory(memory: Memory, request: Request) -> Mapping[str, Any]:
    """Return the note that the address means.

    Raises:
        NoteNotFoundError, PartNotFoundError, AmbiguousReferenceError
    """
    view = memory.get(request.path_params["reference"])
    found = memory.why(view.reference)
    is_part = view.turn is not None or bool(view.heading)
    changes = [*filter(None, (found.created,)), *found.edits][::-1]
    return {
        "note": view,
        "title": view.document.title if view.document.kind != "fact" else view.text or view.document.title,
        "body": render_markdown(view.markdown) if is_part else render_note(view.markdown),
        "source": admit(view.markdown, keep_lines=True).text,
        "properties": {} if is_part else _list_properties(view.markdown),
        "found": found,
        "life": [_tell_step(change, is_created=change is found.created) for change in changes[:MAX_CHANGES]],
        "more_changes": max(0, len(changes) - MAX_CHANGES),
        "spans": list(_draw_times(found, datetime.now(UTC).date())),
        "turns": {
            session.path: [turn for turn in found.turns if turn.path == session.path] for session in found.sessions
        },
    }


def _list_properties(source: str) -> dict[str, list[str]]:
    """Return what the head of a note says, each value as a list of words."""
    fields = frontmatter.parse(source).fields
    return {
        name: [str(item) for item in (value if isinstance(value, list) else [value]) if str(item).strip()]
        for name, value in fields.items()
    }


def _tell_step(change: NoteChange, *, is_created: bool) -> Step:
    made = [f"{name.lower()} {value}" for name in TRAILERS if (value := change.trailer(name))]
    return Step(change, [] if is_created else diff_versions(change.before, change.after), made)


def _draw_times(found: Provenance, today: date) -> Iterator[Span]:
    """Yield when it was true, and when the memory knew it, on one scale."""
    document = found.note.document
    known_from = found.created.commit.when if found.created and found.created.commit else document.created
    ended = found.edits[-1].commit if found.replaced_by and found.edits else None
    valid = _day(document.valid_from), _day(document.valid_until)
    known = _day(known_from), _day(ended.when if ended else None)
    given = [today, *(day for day in (*valid, *known) if day)]
    begin, end = min(given), max(given)
    days = (end - begin).days
    for name, (first, last) in (("true", valid), ("known", known)):
        start, stop = first or begin, last or end
        yield Span(
            name,
            first.isoformat() if first else None,
            last.isoformat() if last else None,
            100 * (start - begin).days / days if days else 0.0,
            max(1.0, 100 * (stop - start).days / days) if days else 100.0,
        )


def _day(moment: str | None) -> date | None:
    try:
        return date.fromisoformat((moment or "")[:10])
    except ValueError:
        return None
