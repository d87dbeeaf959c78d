"""One note, or one turn of it, as the index has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from quaid.errors import NoteNotFoundError
from quaid.index import documents, references
from quaid.index.documents import Document
from quaid.model import Edge

if TYPE_CHECKING:
    import apsw


@dataclass(frozen=True, slots=True)
class NoteView:
    """One note, or one turn of an episode, as text without markup. `heading` is the part of it that was asked for."""

    document: Document
    text: str
    edges: tuple[Edge, ...] = ()
    turn: int | None = None
    heading: str = ""


def view_note(index: apsw.Connection, reference: str) -> NoteView:
    """Return the note, or the turn, that `reference` names.

    Raises:
        NoteNotFoundError, AmbiguousReferenceError
    """
    document, turn, heading = references.resolve_one(index, reference)
    text = documents.text_of(index, document.doc_id, turn)
    if turn is not None and not text:
        raise NoteNotFoundError(reference)
    edges = documents.fetch_edges(index, [document.doc_id]).get(document.doc_id, [])
    return NoteView(document, text, tuple(Edge(*edge) for edge in edges), turn, heading)
