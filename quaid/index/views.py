"""One note, or one turn of it, as the index has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from quaid.errors import NoteNotFoundError
from quaid.index import documents, references
from quaid.index.documents import Document
from quaid.model import Edge

if TYPE_CHECKING:
    from quaid.index.port import IndexConnection


@dataclass(frozen=True, slots=True)
class NoteView:
    """One note, or the part of it that was asked for: a turn of an episode, or what stands under `heading`.

    `text` is without markup. `source` are the bytes of the file, or of that part.
    """

    document: Document
    text: str
    edges: tuple[Edge, ...] = ()
    turn: int | None = None
    heading: str = ""
    source: bytes = b""

    @property
    def reference(self) -> str:
        """What means just this note, or this turn of it."""
        return self.document.id if self.turn is None else f"{self.document.id}#t{self.turn}"

    @property
    def markdown(self) -> str:
        """The note as it is written, head included."""
        return self.source.decode("utf-8", "replace")


def view_note(index: IndexConnection, reference: str) -> NoteView:
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
