"""A fact is replaced because somebody says so, and holds again when that is taken back."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from quaid.capture import fact_note
from quaid.capture.storing import KnownFact, NewFact
from quaid.errors import BadInputError, NoteNotFoundError, NothingToReplaceError
from quaid.history.merge import revert_change
from quaid.index import documents, references
from quaid.index.documents import Document
from quaid.model import Edit, Kind
from quaid.vault import frontmatter, notes

if TYPE_CHECKING:
    from quaid.capture.note_finder import NoteFinder
    from quaid.capture.writer import WritePlan
    from quaid.history.vault_history import History
    from quaid.index.port import IndexConnection


def find_replaced(index: IndexConnection, finder: NoteFinder, reference: str, new: NewFact) -> Document:
    """Return the fact that `reference` means, by its id, by its name or by what it says, and that `new` replaces.

    Raises:
        NothingToReplaceError: there is none that holds.
        AmbiguousReferenceError: it could be several.
        BadInputError: it says the same as `new`.
    """
    try:
        document, turn, _ = references.resolve_one(index, reference)
    except NoteNotFoundError:
        (said,) = finder.find_duplicates(index, [NewFact(reference, new.details)])
        if not isinstance(said, KnownFact):
            raise NothingToReplaceError(reference) from None
        document, turn, _ = references.resolve_one(index, said.rel_path)
    if document.kind != Kind.FACT or turn is not None or document.superseded_by:
        raise NothingToReplaceError(reference)
    if documents.text_of(index, document.doc_id) == new.statement:
        raise BadInputError(f"{document.id} says just that already: it cannot replace itself. Say what is true now.")
    return document


def plan_end(old: Document, data: bytes, new_path: str, since: str | None, now: datetime) -> Edit:
    """Return the edit that says that the note at `new_path` replaces `old`, which was true until that began."""
    until = (since or notes.render_time(now))[:10]
    has_begun = (old.valid_from or "")[:10] <= until
    return fact_note.supersede(old.path, data, new_path, until if has_begun else None)


def add_end(new: WritePlan, ended: Edit, old_id: str, said: str) -> WritePlan:
    """Return the plan of a `new` fact with the end of the one that it replaces, which `said` something else."""
    hint = f'It replaces "{said}", which is kept as no longer true. Take that back with: quaid restore {old_id}'
    trailers = (*new.message.trailers, ("Quaid-Fact", old_id))
    return replace(
        new,
        written=replace(new.written, replaced=old_id, hint=hint),
        edits=(*new.edits, ended),
        message=replace(new.message, body=f"Replaces: {said}", trailers=trailers),
    )


def plan_taking_back(history: History, document: Document, data: bytes) -> Edit:
    """Return the edit that takes back that `document` was replaced, and nothing that was written into it since.

    Raises:
        BadInputError: the history does not tell how it was before.
    """
    for revision in history.note_history(document.path, document.id):
        before, after = next(iter(revision.befores), None), revision.after
        if before is None or after is None or not _is_replaced(after) or _is_replaced(before):
            continue
        wanted = revert_change(before, after, data).text
        if not _is_replaced(wanted):
            return Edit(document.path, data, wanted)
        break
    raise BadInputError(
        f"{document.path} says that it was replaced, and git has no version without that. Take superseded_by out of it "
        f"with: quaid edit {document.id}"
    )


def _is_replaced(data: bytes) -> bool:
    return "superseded_by" in frontmatter.parse(data.decode("utf-8", "replace")).fields
