"""A memory: the note, what it rests on, what has to do with it, and its life."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from quaid.capture.note_edit import MARKABLE, MARKS
from quaid.capture.writer import FORGETTABLE
from quaid.errors import AmbiguousReferenceError, NoteNotFoundError, PartNotFoundError
from quaid.local.claimed import OTHER_PERSON
from quaid.model import Kind
from quaid.recall.visibility import find_forgotten
from quaid.redaction import admit
from quaid.report.health import parse_day
from quaid.vault import frontmatter, notes
from quaid.vault.layout import Layout
from quaid.web.answer import Shown
from quaid.web.pages.review import list_questions
from quaid.web.rendering import render_markdown, render_note, render_reason
from quaid.web.word_diff import Piece, diff_versions

if TYPE_CHECKING:
    from markupsafe import Markup
    from starlette.requests import Request

    from quaid.index.views import NoteView
    from quaid.janitor.questions import Question
    from quaid.memory import Memory
    from quaid.model import Note
    from quaid.recall.provenance import NoteChange, Provenance

MAX_CHANGES = 50
"""Of a note's life, the newest."""
_LISTED = re.compile(r'^(- [^"\n]*"([^"\n]+)".*)$', re.MULTILINE)
"""A line of a commit that tells of one decision among many, and what it quotes."""
TRAILERS = ("Task", "Run", "Decision", "Model", "Prompt", "Session")


class Step(NamedTuple):
    """A change in a note's life: why it was made, what it did to the text, and who or what decided it."""

    change: NoteChange
    why: Markup
    pieces: list[Piece]
    trailers: list[str]


class Span(NamedTuple):
    """A time as a bar: `start` and `width` in percent of the whole; a missing `first` or `last` is open."""

    name: str
    first: str | None
    last: str | None
    start: float
    width: float


def show_memory(memory: Memory, request: Request) -> Mapping[str, Any] | Shown:
    """Return the note that the address means; of one that is forgotten a page from which it can be brought back.

    Raises:
        NoteNotFoundError, PartNotFoundError, AmbiguousReferenceError
    """
    reference = request.path_params["reference"]
    try:
        view = memory.get(reference)
    except PartNotFoundError:
        raise
    except NoteNotFoundError:
        if shown := _show_forgotten(memory, reference):
            return shown
        raise
    kind = view.document.kind
    found = memory.why(view.reference)
    asked = list(_list_asked(memory, found))
    parsed = notes.parse_note(view.document.path, view.source, place=_layout(memory))
    is_part = view.turn is not None or bool(view.heading)
    is_claim = view.document.source == OTHER_PERSON
    marks = MARKS if kind in MARKABLE and not is_part else ()
    changes = [*filter(None, (found.created,)), *found.edits][::-1]
    return {
        "note": view,
        "problems": () if is_part else parsed.problems,
        "can_forget": kind in FORGETTABLE and not view.heading,
        "marks": {mark: getattr(parsed, mark) and not is_claim for mark in marks},
        "holds": kind == Kind.FACT and not view.document.superseded_by,
        "questions": asked,
        "linked_from": [note for note in found.linked_from if note.path not in {each.rel_path for each in asked}],
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


def _list_asked(memory: Memory, found: Provenance) -> Iterator[Question]:
    """Yield the questions about a note that Review asks, or that are answered there and not carried out yet."""
    asking = {note.path for note in found.linked_from if note.kind == Kind.REVIEW}
    if asking:
        yield from (question for question in list_questions(memory) if question.rel_path in asking)


def _show_forgotten(memory: Memory, reference: str) -> Shown | None:
    found = find_forgotten(memory.git, reference, memory.owners, _layout(memory))
    logged = memory.git.branches.read_commits([found[0]]) if found else []
    commit = next(iter(memory.answers.see(each.commit for each in logged)), None)
    if found is None or commit is None:
        return None
    _, path, data = found
    note = notes.parse_note(path, data, place=_layout(memory))
    context = {
        "note_id": note.id,
        "note_path": path,
        "kind": note.kind.value,
        "title": note.text if note.kind is Kind.FACT and note.text else note.title,
        "body": render_note(data.decode("utf-8", "replace")),
        "commit": commit,
        "turns": list(_list_said(memory, note)),
    }
    return Shown("forgotten.html", context)


def _list_said(memory: Memory, note: Note) -> Iterator[NoteView]:
    """Yield the turns that a note cites and that are there still."""
    for cited in note.citations:
        with suppress(NoteNotFoundError, AmbiguousReferenceError):
            yield memory.get(f"{cited.episode}#t{cited.turn}")


def _layout(memory: Memory) -> Layout:
    return Layout.of(memory.settings.vault)


def _list_properties(source: str) -> dict[str, list[str]]:
    """Return what the head of a note says, each value as a list of words."""
    fields = frontmatter.parse(source).fields
    return {
        name: [str(item) for item in (value if isinstance(value, list) else [value]) if str(item).strip()]
        for name, value in fields.items()
    }


def _tell_step(change: NoteChange, *, is_created: bool) -> Step:
    """Return a change with the reason that its commit gives; of one that lists many decisions those that quote this
    note.
    """
    made = [f"{name.lower()} {value}" for name in TRAILERS if (value := change.trailer(name)) and "," not in value]
    pieces = [] if is_created else diff_versions(change.before, change.after)
    body = change.commit.body if change.commit else ""
    listed = _LISTED.findall(body)
    if len(listed) < 2:
        return Step(change, render_reason(body), pieces, made)
    texts = [
        " ".join((data or b"").decode("utf-8", "replace").replace("[[", "").replace("]]", "").split())
        for data in (change.before, change.after)
    ]
    lines = [line for line, quoted in listed if any(quoted.removesuffix("…") in text for text in texts)]
    return Step(change, render_reason("\n".join(lines)), pieces, made)


def _draw_times(found: Provenance, today: date) -> Iterator[Span]:
    """Yield when it was true, and when the memory knew it, on one scale."""
    document = found.note.document
    known_from = found.created.commit.when if found.created and found.created.commit else document.created
    ended = found.edits[-1].commit if found.replaced_by and found.edits else None
    valid = parse_day(document.valid_from), parse_day(document.valid_until)
    known = parse_day(known_from), parse_day(ended.when if ended else None)
    given = [today, *(day for day in (*valid, *known) if day)]
    begin, end = min(given), max(given)
    days = (end - begin).days
    for name, (first, last) in (("true", valid), ("known", known)):
        start, stop = first or begin, last or end
        width = max(1.0, 100 * (stop - start).days / days) if days else 100.0
        yield Span(
            name,
            first.isoformat() if first else None,
            last.isoformat() if last else None,
            min(100 * (start - begin).days / days, 100 - width) if days else 0.0,
            width,
        )
