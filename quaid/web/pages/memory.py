"""A memory: the note, its source, its relations and its history; and the actions on it, each of which is a commit."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date
from typing import Any

from starlette.requests import Request

from quaid.capture.writer import FORGETTABLE, MARKABLE, MARKS
from quaid.errors import AmbiguousReferenceError, BadInputError, NoteNotFoundError, PartNotFoundError, QuaidError
from quaid.history.authorship import Authors
from quaid.index.references import NoteView
from quaid.local.claimed import OTHER_PERSON
from quaid.memory import Memory
from quaid.model import DURABILITIES, FACT_TYPES, PRIVACIES, STATUSES, Kind
from quaid.recall.provenance import NoteChange, Provenance
from quaid.recall.visibility import find_forgotten
from quaid.redaction import admit
from quaid.report.health import parse_day
from quaid.text.invisible import escaped
from quaid.text.zones import local_now
from quaid.timeline.changes import compare
from quaid.timeline.log import CommitView, describe, name_author
from quaid.vault import frontmatter, notes
from quaid.web.answer import Context, Form, Shown, go_to, go_to_written, own_address, page_number
from quaid.web.changes import Row, list_changes, make_view
from quaid.web.pages.person import describe_entity
from quaid.web.pages.review import list_questions
from quaid.web.rendering import read_part, render_markdown, render_note
from quaid.web.templating import memory_path

MAX_CHANGES = 50
"""The latest changes of a note that are shown."""
_DECISION_LINE = re.compile(r'^(- [^"\n]*"([^"\n]+)".*)$', re.MULTILINE)
"""A line about one of several decisions in a commit, and what it quotes."""
_NO_BRACKETS = str.maketrans("", "", "[]")
CHOICES = {"status": STATUSES, "durability": DURABILITIES, "privacy": PRIVACIES}
"""The properties of Quaid's notes that have one of a few values."""
LIST_PROPERTIES = frozenset({"aliases", "keywords", "tags", "turns"})
"""The properties that are lists even where they have one value."""


def show_memory(memory: Memory, request: Request) -> Context | Shown:
    """Return the referenced note, or for a forgotten one a page from which it can be restored."""
    reference = request.path_params["reference"]
    try:
        view = memory.get(reference)
    except PartNotFoundError:
        raise
    except NoteNotFoundError:
        if shown := _show_forgotten(memory, reference):
            return shown
        raise
    document = view.document
    found = memory.why(view.reference)
    asking = {note.path for note in found.linked_from if note.kind == Kind.REVIEW}
    is_entity = document.kind == Kind.ENTITY and not view.heading
    asked = list_questions(memory) if asking or is_entity else []
    questions = [each for each in asked if each.rel_path in asking]
    parsed = notes.parse_note(document.path, view.source, place=memory.layout)
    is_part = view.turn is not None or bool(view.heading)
    is_claim = document.source == OTHER_PERSON
    marks = MARKS if document.kind in MARKABLE and not is_part else ()
    changes = [*filter(None, (found.created,)), *found.edits][::-1]
    limit = len(changes) if request.query_params.get("all") == "history" else MAX_CHANGES
    part = page_number(request.query_params.get("part", ""))
    markdown, parts = read_part(view.markdown, part)
    head = {} if is_part else frontmatter.parse(view.markdown).fields
    properties = {name: read_values(value) for name, value in head.items()}
    written = {name: "\n".join((name, *values)) for name, values in properties.items()}
    return {
        "note": view,
        "seen": text_version(view),
        "entity": describe_entity(memory, document, asked, request) if is_entity else None,
        "problems": () if is_part else parsed.problems,
        "can_forget": document.kind in FORGETTABLE and not view.heading,
        "marks": {mark: getattr(parsed, mark) and not is_claim for mark in marks},
        "holds": document.kind == Kind.FACT and not document.superseded_by,
        "questions": questions,
        "linked_from": [note for note in found.linked_from if note.path not in {each.rel_path for each in questions}],
        "title": document.title if document.kind != "fact" else view.text or document.title,
        "body": render_markdown(markdown) if is_part or part > 1 else render_note(markdown),
        "source": admit(markdown, keep_lines=True).text,
        "part": min(part, parts),
        "parts": parts,
        "properties": properties,
        # A form would show what is printed otherwise: secrets, and characters that nobody sees.
        "fixed": {
            "id",
            *(name for name, text in written.items() if escaped(admit(text, keep_lines=True).text) != text),
        },
        "is_part": is_part,
        "choices": CHOICES | ({"type": FACT_TYPES} if document.kind == Kind.FACT else {}),
        "lists": LIST_PROPERTIES,
        "refused": None,
        "found": found,
        "life": _describe_history(memory, document.path, changes[:limit]),
        "more_changes": max(0, len(changes) - limit),
        "spans": list(_draw_times(found, local_now(memory.settings.timezone).date())),
        "turns": {
            session.path: [turn for turn in found.turns if turn.path == session.path] for session in found.sessions
        },
    }


def read_values(value: object) -> list[str]:
    """Return the values of a property as texts; links without quotes as links."""
    if isinstance(value, str):
        return [value.strip()] if value.strip() else []
    return [text for text in notes.list_texts(value) if text.strip()]


def _show_forgotten(memory: Memory, reference: str) -> Shown | None:
    found = find_forgotten(memory.git, reference, memory.owners, memory.layout)
    logged = memory.git.read_commits([found[0]]) if found else []
    commit = next(iter(memory.answers.see(each.commit for each in logged)), None)
    if found is None or commit is None:
        return None
    _, path, data = found
    note = notes.parse_note(path, data, place=memory.layout)
    turns = []
    for cited in note.citations:
        with suppress(NoteNotFoundError, AmbiguousReferenceError):  # forgotten too
            turns.append(memory.get(f"{cited.episode}#t{cited.turn}"))
    context = {
        "note_id": note.id,
        "note_path": path,
        "kind": note.kind.value,
        "title": note.text if note.kind is Kind.FACT and note.text else note.title,
        "body": render_note(data.decode("utf-8", "replace")),
        "commit": commit,
        "turns": turns,
    }
    return Shown("forgotten.html", context)


def _describe_history(memory: Memory, path: str, changes: Sequence[NoteChange]) -> list[Row]:
    """Return changes of the note at `path` as rows, with what each did to it in words and as a diff. Of a commit with
    several decisions, the reason is the lines that quote this note.
    """
    shown, authors = list[CommitView](), Authors.of(memory.settings.git, memory.git.owner())
    for change in changes:
        versions = change.before, change.after
        files = {"": versions} if change.before is not None else {}
        commit = change.commit
        if commit is None:
            shown.append(make_view("changed, but not committed yet", "", "owner", files))
            continue
        decisions: Sequence[tuple[str, str]] = _DECISION_LINE.findall(commit.body)
        if len(decisions) >= 2:
            texts = [(data or b"").decode("utf-8", "replace").translate(_NO_BRACKETS) for data in versions]
            plain = [" ".join(text.split()) for text in texts]
            lines = [line for line, quoted in decisions if any(quoted.removesuffix("…") in text for text in plain)]
            commit = replace(commit, body="\n".join(lines))
        before, after = ({path: data} if data is not None else {} for data in versions)
        who, meanings = name_author(commit, authors), compare(before, after, memory.layout)
        shown.append(CommitView(commit, who, describe([commit], meanings, who), files=files))
    pairs = zip(list_changes(memory, shown), changes, strict=True)
    return [{**row, "lines": change.changes} for row, change in pairs]


def _draw_times(found: Provenance, today: date) -> Iterator[Mapping[str, Any]]:
    """Yield when it was true, and when the memory knew it, as bars on one scale in percent."""
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
        yield {
            "name": name,
            "first": (document.valid_from or "")[:10] if name == "true" else first and first.isoformat(),
            "last": last and last.isoformat(),
            "start": min(100 * (start - begin).days / days, 100 - width) if days else 0.0,
            "width": width,
        }


# -- actions ---------------------------------------------------------------------------------------------------------


def find_as_shown(memory: Memory, form: Form, reference: str) -> NoteView:
    """Return the note to act on. BadInputError: its text has changed since the page with the form was shown."""
    view = memory.get(reference)
    if form.get("seen", text_version(view)) != text_version(view):
        raise BadInputError("This memory has changed since the page was shown, so nothing was done to it.")
    return view


def text_version(view: NoteView) -> str:
    return notes.content_hash(view.text.encode())[:16]


def forget(memory: Memory, form: Form, request: Request) -> str | Shown:
    """Remove a memory, or a turn of a conversation, from the vault. Git keeps it: what the owner has not committed yet
    is offered to be committed first.
    """
    reference = request.path_params["reference"]
    try:
        view = find_as_shown(memory, form, reference)
    except NoteNotFoundError:
        if _show_forgotten(memory, reference) is None:
            raise
        return go_to(memory_path(reference), "unchanged")
    try:
        written = memory.forget(view.reference, by_owner=True)
    except QuaidError as error:
        if error.code != "uncommitted":
            raise
        return Shown("uncommitted.html", {"note": view, "then": "forget"})
    return go_to_written(memory_path(view.document.id), written, "forgotten")


def commit_change(memory: Memory, form: Form, request: Request) -> str | Shown:
    """Commit a note as its owner has edited it elsewhere, then forget it if that was requested."""
    view = memory.get(request.path_params["reference"])
    written = memory.writer.commit_edit(view.document.path)
    if form.get("then") == "forget":
        return forget(memory, form, request)
    there = own_address(form.get("back", "")) or memory_path(view.document.id)
    return go_to_written(there, written, "committed")


def restore(memory: Memory, _: Form, request: Request) -> str:
    """Restore a forgotten memory, or a fact that was replaced."""
    written = memory.restore(request.path_params["reference"], by_owner=True)
    return go_to_written(memory_path(written.id), written, "restored")


def mark(memory: Memory, form: Form, request: Request) -> str:
    """Pin or verify a fact or a core note in its owner's name, or undo that."""
    name = next((each for each in MARKS if each == form.get("mark")), None)
    if name is None:
        raise BadInputError(f"A memory can be {' or '.join(MARKS)}: nothing was changed.")
    is_set = form.get("value") == "on"
    view = find_as_shown(memory, form, request.path_params["reference"])
    written = memory.writer.mark(view.reference, name, is_set=is_set)
    memory.sync()  # its file may say the same, and no longer count as another person's
    return go_to_written(memory_path(written.id), written, name if is_set else f"un{name}")


def dispute(memory: Memory, form: Form, request: Request) -> str:
    """Ask in review/ whether to forget a fact that the reader says is wrong."""
    view, why = find_as_shown(memory, form, request.path_params["reference"]), form.get("why", "").strip()
    written = memory.janitor.dispute(view.reference, why)
    if why and written.outcome == "unchanged":
        raise BadInputError("A question about it is open already, so your reason was not added. Answer it in Review.")
    return go_to_written(memory_path(written.id), written, "disputed")
