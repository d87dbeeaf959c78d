"""Corrections of a memory: one property, a wrong relation, two notes of one person. Each is a commit."""

import json
import re
from collections.abc import Iterator
from typing import Any

from starlette.requests import Request

from quaid.capture.entities import Profile, contradict
from quaid.capture.writer import WritePlan, WriteResult, make_key
from quaid.errors import BadInputError, NoteNotFoundError
from quaid.index import documents, graph
from quaid.index.documents import IDS, NAMES, Document
from quaid.janitor import fact_edits
from quaid.janitor.decision import fact_evidence
from quaid.janitor.settling import Draft
from quaid.janitor.tasks import edges as edges_task
from quaid.janitor.vetoes import TASK, VETO
from quaid.local.runs import evidence_key
from quaid.memory import Memory
from quaid.model import FACT_TYPES, Edge, Edit, Kind, Message, name_key
from quaid.vault import frontmatter, notes
from quaid.web.answer import Context, Form, Shown, go_to_written, own_address
from quaid.web.pages.editing import read_bytes
from quaid.web.pages.memory import CHOICES, LIST_PROPERTIES, read_values, show_memory
from quaid.web.rendering import render_note
from quaid.web.templating import memory_path

MAX_LINKING = 20
"""Notes whose links change that are named before two notes are merged."""
_CALLED = (
    "d.kind = 'entity' AND d.doc_id IN (SELECT doc_id FROM names WHERE name_key IN "
    "(SELECT value FROM json_each(?))) AND d.path <> ?"
)
_NUMBER = re.compile(r"-?\d{1,9}(?:\.\d{1,9})?")


# -- one property ----------------------------------------------------------------------------------------------------


def set_property(memory: Memory, form: Form, request: Request) -> str | Shown:
    """Set one property of a note as its owner has typed it, or remove it where nothing was typed. What cannot be set is
    shown on the page again, with the reason.
    """
    document = memory.get(request.path_params["reference"]).document
    name, typed, was = (form.get(field, "").replace("\r\n", "\n").strip() for field in ("name", "value", "was"))
    data = read_bytes(memory, document.path)
    try:
        text = data.decode("utf-8")
        now = read_values(frontmatter.parse(text).fields.get(name))
        after = frontmatter.set_fields(text, {name: _read_value(name, typed)}).encode()
        problem = next(_list_problems(memory, document, name, data, after), "")
    except (frontmatter.FrontmatterBrokenError, UnicodeDecodeError):
        problem = "The properties of this note cannot be read for certain: edit the note instead."
    else:
        if now != [line.strip() for line in was.split("\n") if line.strip()]:
            problem = f"{name} was changed since the page was shown: it is {', '.join(now) or 'not set'} now."
    if problem:
        shown = show_memory(memory, request)
        context = shown.context if isinstance(shown, Shown) else shown
        return Shown("memory.html", {**context, "refused": (name, typed, problem)}, 400)
    written = memory.writer.save_edit(document.path, data, after)
    return go_to_written(memory_path(document.id), written, "property_set" if typed else "property_removed")


def _read_value(name: str, typed: str) -> frontmatter.Value | None:
    """Return what was typed as a value of YAML, None where nothing was: a list has an item on each line."""
    if name in LIST_PROPERTIES or "\n" in typed:
        return [item for line in typed.split("\n") if (item := line.strip())] or None
    if typed in {"true", "false"}:
        return typed == "true"
    if _NUMBER.fullmatch(typed):
        number = float(typed) if "." in typed else int(typed)
        return number if str(number) == typed else typed
    return typed or None


def _list_problems(memory: Memory, document: Document, name: str, before: bytes, after: bytes) -> Iterator[str]:
    """Yield why a note with the property `name` as it is in `after` would not be right."""
    if not name or name == "id":
        yield "A property needs a name, and the id of a note never changes."
    was, now = (notes.parse_note(document.path, data, place=memory.layout) for data in (before, after))
    value = str(frontmatter.parse(after.decode("utf-8")).fields.get(name, ""))
    choices = FACT_TYPES if name == "type" and was.kind is Kind.FACT else CHOICES.get(name, ())
    if now.kind is not was.kind:
        yield f"With this {name} it would no longer be a {was.kind.value}."
    for problem in now.problems:
        if problem not in was.problems:
            yield f"{problem[:1].upper()}{problem[1:]}."
    if was.kind is not Kind.NOTE and value and choices and value not in choices:
        yield f"{name.capitalize()} is one of: {', '.join(choices)}."
    if name == "confidence" and now.confidence is not None and not 0 <= now.confidence <= 1:
        yield "Confidence is a number from 0 to 1."
    since, until = now.valid_from or "", now.valid_until or ""
    if since and until and until[: len(since)] < since[: len(until)]:
        yield f"It would be over on {until}, before it begins on {since}."
    new = {name_key(each): each for each in now.names if each not in was.names} if was.kind is Kind.ENTITY else {}
    for other in documents.find_documents(memory.index(), _CALLED, (json.dumps(list(new)), document.path)):
        yield f"It is a name of {other.title} already. If the two are the same, merge their notes."


# -- a wrong relation ------------------------------------------------------------------------------------------------


def cut_relation(memory: Memory, form: Form, _: Request) -> str:
    """Remove a relation from every note that states it. A fact that states nothing else is forgotten."""
    wanted = Edge(*(form.get(name, "") for name in ("subject", "relation", "object")))
    written = memory.writer.write(make_key("cut", wanted), plan_cut, memory, wanted, by_owner=True).written
    return go_to_written(own_address(form.get("back", "")) or memory_path(wanted.subject), written, "cut")


def plan_cut(memory: Memory, wanted: Edge) -> WritePlan:
    index = memory.index()
    subjects, objects = (graph.with_aliases(index, [name]) for name in (wanted.subject, wanted.object))
    rows = index.execute(
        "SELECT DISTINCT doc_id, subject, object FROM edges WHERE relation = ? AND "
        "subject_key IN (SELECT value FROM json_each(?)) AND object_key IN (SELECT value FROM json_each(?))",
        (wanted.relation, json.dumps(subjects), json.dumps(objects)),
    )
    stated: dict[int, list[Edge]] = {}
    for doc_id, subject, target in rows:
        stated.setdefault(doc_id, []).append(Edge(subject, wanted.relation, target))
    edits: list[Edit] = []
    trailers = [(TASK, "cut")]
    for document in documents.find_documents(index, f"d.doc_id IN {IDS}", (json.dumps(list(stated)),)):
        data = read_bytes(memory, document.path)
        note = notes.parse_note(document.path, data, place=memory.layout)
        edit = fact_edits.remove_edges(document.path, data, stated[document.doc_id], note.names[0])
        rest = notes.parse_note(document.path, edit.after or b"", place=memory.layout)
        if not {*stated[document.doc_id]}.isdisjoint(rest.edges):
            raise BadInputError(f"A property of your own note {document.path} states it: change that note.")
        # The text of a fact that states nothing is the name of its file.
        says_more = note.kind is not Kind.FACT or bool(rest.edges) or rest.text != rest.names[0]
        edits.append(edit if says_more else Edit(document.path, data, None))
        trailers.append(("Quaid-Fact", document.id))
        if note.kind is Kind.FACT and says_more and not rest.edges:
            # No run reads it from the statement again.
            speaker = edges_task.find_speaker(rest, memory.settings)
            key = evidence_key(edges_task.TASK, fact_evidence(rest), speaker)
            trailers.append((VETO, f"{edges_task.TASK} {key}"))
    if not edits:
        raise BadInputError("No note states this relation any more.")
    text = f"{wanted.subject} {wanted.relation.replace('_', ' ')} {wanted.object}"
    message = Message(f"cut: {text}", trailers=tuple(trailers))
    return WritePlan(WriteResult(edits[0].rel_path, edits[0].rel_path, "edited", text), tuple(edits), message)


# -- two notes of one person -----------------------------------------------------------------------------------------


def show_merge(memory: Memory, request: Request) -> Context:
    """Return the note that two notes of one person would become, and the notes whose links would change."""
    one = _find_entity(memory, request.path_params["reference"])
    given = request.query_params.get("with", "").strip()
    shown: dict[str, Any] = {"one": one, "given": given, "problem": "", "other": None}
    shown["names"] = [name for name, _ in graph.entity_names(memory.index()) if name_key(name) != name_key(one.title)]
    if not given:
        return shown
    try:
        other = _find_entity(memory, given)
        stays, gone = (other, one) if request.query_params.get("name") == "other" else (one, other)
        edits = _plan_merge(memory, stays.path, gone.path)
    except (BadInputError, NoteNotFoundError) as error:
        return {**shown, "problem": str(error).partition("\n")[0]}
    merged = next(edit.after or b"" for edit in edits if edit.rel_path == stays.path).decode("utf-8", "replace")
    mine, theirs = (
        Profile.of(map(name_key, notes.parse_note(each.path, view.source, place=memory.layout).names), view.edges)
        for each in (one, other)
        for view in (memory.get(each.path),)
    )
    listed = json.dumps([edit.rel_path for edit in edits if edit.rel_path not in {one.path, other.path}])
    return {
        **shown,
        "other": other,
        "stays": stays,
        "gone": gone,
        "seen": make_key(edits),
        "are_two": contradict(mine, theirs) or any(tie[2] in theirs.keys for tie in mine.ties),
        "merged": render_note(merged),
        "properties": {name: read_values(value) for name, value in frontmatter.parse(merged).fields.items()},
        "linking": documents.find_documents(memory.index(), f"path IN {NAMES}", (listed,), with_text=True),
        "max_linking": MAX_LINKING,
    }


def merge(memory: Memory, form: Form, request: Request) -> str:
    """Make one note of two notes of one person; links to either lead to it."""
    stays, gone = (_find_entity(memory, each) for each in (request.path_params["reference"], form.get("with", "")))

    def plan() -> WritePlan:
        edits = _plan_merge(memory, stays.path, gone.path)
        if form.get("seen", make_key(edits)) != make_key(edits):
            raise BadInputError("One of the two notes has changed since the page was shown, so they were not merged.")
        message = Message(f"merge: {gone.title} is {stays.title}", trailers=((TASK, "merge"), ("Quaid-Fact", stays.id)))
        return WritePlan(WriteResult(stays.id, stays.path, "edited", stays.title), edits, message)

    written = memory.writer.write(make_key("same", stays.path, gone.path), plan, by_owner=True).written
    return go_to_written(memory_path(stays.path), written, "merged")


def _plan_merge(memory: Memory, stays: str, gone: str) -> tuple[Edit, ...]:
    draft = Draft(memory)
    one, other = draft.read(stays), draft.read(gone)
    if one and other and one != other:
        draft.join(one, other)
    if not draft.joined:
        raise BadInputError("These two notes cannot be merged for certain. Edit one of them, and forget the other.")
    return draft.edits


def _find_entity(memory: Memory, reference: str) -> Document:
    document = memory.get(reference).document
    if document.kind != Kind.ENTITY:
        raise BadInputError(f"{document.title!r} is no note of a person or thing: only those are merged.")
    return document
