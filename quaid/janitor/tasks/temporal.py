"""Temporal: a time that is relative to its moment gets its date, `yesterday (7 May 2023)`, without a model.

New facts have it from the start (text.relative_dates.with_dates); those written by hand, imported or older may not.
"""

from collections.abc import Iterator

from quaid.index import documents, graph
from quaid.index.documents import Document
from quaid.janitor import fact_edits, model_text
from quaid.janitor.task_context import TaskContext
from quaid.local.runs import Decision, evidence_key
from quaid.model import Edit, Note
from quaid.text.relative_dates import with_dates
from quaid.vault import markdown, notes

TASK = "temporal"


def plan_temporal(context: TaskContext) -> Iterator[Decision]:
    """A decision for each fact whose statement has a relative time without its date."""
    for fact in context.find_facts("NOT pinned AND NOT verified"):
        if fact.status == "pending" and context.models is not None:
            continue  # what the review has left so waits for its owner's word, which is about the note as it is
        # Any day does: whether there is a relative time does not depend on it, and most facts have none.
        is_relative = with_dates(fact.text, context.now) != fact.text
        data = context.read(fact.path) if is_relative else None
        if data is None:
            continue
        note = notes.parse_fact(fact.path, data)
        stated, source = _find_time(context, fact, note)
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            continue
        if stated is None or markdown.has_conflict_markers(text):
            continue
        moment = notes.parse_time(stated)
        head, body = notes.split_body(text)
        start, end = fact_edits.statement_span(body)
        spoken = with_dates(body[start:end], moment)
        edit = Edit(note.rel_path, data, f"{head}{body[:start]}{spoken}{body[end:]}".encode())
        after = notes.parse_fact(note.rel_path, edit.after or b"")
        plain = markdown.plain(body[start:end])
        is_sound = after.text == note.text.replace(plain, with_dates(plain, moment), 1)
        # The dates must change no link, edge or citation.
        was, becomes = ((each.edges, each.links, each.citations, each.id) for each in (note, after))
        if is_sound and was == becomes and edit.after != data:
            key = evidence_key(TASK, note.content_hash, stated)
            subject = f"give a date to {model_text.quote(fact.text)}"
            why = f"It was told on {notes.format_day(stated)}, as {source} says."
            detail = f"After: {after.text}"
            yield Decision(TASK, "date", key, (edit,), subject, why, (note.id,), is_minor=True, detail=detail)


def _find_time(context: TaskContext, fact: Document, note: Note) -> tuple[str | None, str]:
    """Return when a fact was stated (ISO 8601), and the source of that: the last turn that it cites
    of the first conversation, else its note.

    For an imported fact without a date it is unknown: its note was made by the import.
    """
    cited = {chunk_id for _, chunk_id in graph.cited_turns(context.index, [fact.doc_id])}
    turns = documents.fetch_candidates(context.index, cited).values()
    spoken = {(turn.title, turn.turn): turn.said_at for turn in turns if turn.said_at}
    stated = [each for each in note.citations if (each.episode, each.turn) in spoken]
    # Other conversations have only confirmed it.
    if last := max((each.turn for each in stated if each.episode == stated[0].episode), default=0):
        return spoken[stated[0].episode, last], f"turn {last} of {stated[0].episode}"
    if note.source == "import":
        return note.valid_from, "`valid_from`"
    return note.created, "`created`"
