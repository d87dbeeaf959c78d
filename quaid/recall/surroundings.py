"""What stands around hits: the turns beside a turn, the rest of a note, the turns that a fact rests on."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from quaid.index import documents, graph
from quaid.index.documents import Candidate
from quaid.model import Kind, Neighbour, note_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from quaid.recall.retrieval import SearchRequest

TURNS = 2
"""Pieces of a conversation that are fetched on either side of a turn."""
SECTIONS = 3
"""Pieces of a note that are fetched on either side of a section."""
MOST = 25
"""Hits that are shown with what stands around them, the best ones: for more there is no room."""
_WITHOUT_HEADING = {Kind.FACT, Kind.REVIEW}


def list_neighbours(
    request: SearchRequest, candidates: Sequence[Candidate], shown: Callable[[str], str]
) -> dict[int, tuple[Neighbour, ...]]:
    """Return what stands beside the best of `candidates` and may be seen, by chunk_id, in its order. `shown` makes
    a text of the record one that is shown.
    """
    connection = request.connection
    facts = {each.doc_id: each.chunk_id for each in candidates if each.kind == Kind.FACT}
    others = [each.chunk_id for each in candidates if each.kind != Kind.FACT][:MOST]
    cited = {(facts[doc_id], chunk_id) for doc_id, chunk_id in graph.cited_turns(connection, list(facts))}
    pairs = [*documents.list_beside(connection, others, TURNS, SECTIONS), *sorted(cited)]
    wanted = {chunk_id for _, chunk_id in pairs}
    pieces = documents.fetch_candidates(connection, wanted, request.scope)
    headings = list_headings(request, pieces.values())
    found: dict[int, list[Neighbour]] = {}
    for owner, chunk_id in pairs:
        if (piece := pieces.get(chunk_id)) is not None:
            neighbour = Neighbour(
                path=piece.path,
                ordinal=piece.ordinal,
                text=shown(piece.text),
                turn=piece.turn,
                speaker=piece.speaker,
                created=piece.said_at or piece.created,
                heading=headings[chunk_id],
                cited=(owner, chunk_id) in cited,
            )
            found.setdefault(owner, []).append(neighbour)
    return {owner: tuple(sorted(beside, key=lambda each: (each.path, each.ordinal))) for owner, beside in found.items()}


def list_headings(request: SearchRequest, candidates: Collection[Candidate]) -> Mapping[int, str]:
    """Return what is written over each of `candidates`, by chunk_id: `Title > Heading` of a section, the name of an
    entity, the title of a conversation that has one.
    """
    contexts = documents.list_texts(request.connection, [each.chunk_id for each in candidates], "context")
    return {each.chunk_id: _heading(each, contexts.get(each.chunk_id, "")) for each in candidates}


def _heading(candidate: Candidate, context: str) -> str:
    if candidate.kind in _WITHOUT_HEADING:
        return ""
    if candidate.kind == Kind.ENTITY:
        return candidate.title
    if candidate.turn is not None:
        return "" if candidate.title == note_name(candidate.path) else candidate.title
    return context or candidate.title
