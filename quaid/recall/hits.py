"""Render the selected candidates as hits, with the reasons for their rank and with their neighbours."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from quaid.index import documents, graph
from quaid.index.documents import Document
from quaid.local.claimed import OTHER_PERSON
from quaid.model import ChannelRank, Edge, Hit, Kind, Neighbour, is_owner_label, name_key, note_name
from quaid.recall import contradictions, scoring
from quaid.recall.candidates import CandidateSet, Chosen, hit_id, hit_kind
from quaid.recall.features import contributions
from quaid.recall.retrieval import Retrieved, SearchRequest
from quaid.redaction import admit
from quaid.text.quoting import neutralise

if TYPE_CHECKING:
    from collections.abc import Callable


EXPANDED = "second_pass"
"""The channel of what only the second pass has found."""
SOURCES = {"user": "owner", "assistant": "agent", "tool": "tool", "import": "import", OTHER_PERSON: OTHER_PERSON}
"""Whose word a note is, by its `source`, unless its speaker is another person."""
_BY_KIND = {Kind.EPISODE: "conversation", Kind.JOURNAL: "agent", Kind.SNIPPET: "agent"}


def render(
    request: SearchRequest,
    chosen: Sequence[Chosen],
    found: CandidateSet,
    retrieved: Retrieved,
    opposed: Mapping[int, set[int]],
) -> tuple[Hit, ...]:
    """Return the answer, best first. `text` is without secrets, and disarmed where that is on: what is recalled is
    data.
    """
    connection, day = request.connection, request.options.day
    edges = documents.fetch_edges(connection, {candidate.doc_id for candidate, _, _ in chosen})
    ids = documents.list_ids(connection, {doc_id for others in opposed.values() for doc_id in others})
    by_document = {candidate.doc_id: candidate for candidate, _, _ in chosen}
    candidates = [candidate for candidate, _, _ in chosen]
    ranks = _channel_ranks(candidates, retrieved)
    owner_keys = request.sources.cache.of(
        connection,
        ("aliases", request.owner_names, repr(request.scope)),
        lambda: graph.with_aliases(connection, request.owner_names, request.scope),
    )
    replaced = _list_replaced(request, candidates)
    headings = list_headings(request, candidates)
    neighbours: Mapping[int, tuple[Neighbour, ...]] = {}
    if request.options.with_neighbours or request.options.budget is not None:
        neighbours = list_neighbours(request, candidates, _text)
    return tuple(
        Hit(
            id=hit_id(candidate),
            kind=hit_kind(candidate),
            text=_text(candidate.text),
            score=round(min(1.0, max(0.0, score)), 4),
            path=candidate.path,
            session=candidate.session,
            turn=candidate.turn,
            speaker=candidate.turn_speaker or candidate.speaker,
            created=candidate.said_at or candidate.created,
            valid_from=candidate.valid_from,
            valid_until=candidate.valid_until,
            type=candidate.type,
            durability=candidate.durability,
            status=candidate.status,
            project=candidate.project,
            provenance=provenance(candidate, owner_keys),
            superseded=scoring.is_over(candidate, day),
            edges=tuple(Edge(*edge) for edge in edges.get(candidate.doc_id, ())),
            channels=ranks[candidate.chunk_id],
            stands_for=copies,
            via=retrieved.graph.via.get(candidate.doc_id, ()),
            contradicts=tuple(ids[doc_id] for doc_id in sorted(opposed.get(candidate.doc_id, ())) if doc_id in ids),
            later_than=_rivals(candidate, 1, by_document, opposed, ids),
            earlier_than=(
                *_rivals(candidate, -1, by_document, opposed, ids),
                *replaced.get((note_name(candidate.path), candidate.turn), ()),
            ),
            evidence=contributions(found.features.get(candidate.chunk_id, {}), found.shares),
            ordinal=candidate.ordinal,
            heading=headings[candidate.chunk_id],
            beside=neighbours.get(candidate.chunk_id, ()),
        )
        for candidate, score, copies in chosen
    )


def _rivals(
    candidate: Document,
    order: int,
    by_document: Mapping[int, Document],
    opposed: Mapping[int, set[int]],
    ids: Mapping[int, str],
) -> tuple[str, ...]:
    """Return the ids of the hits that contradict `candidate` and are the earlier (`order` 1) or the later (-1)."""
    rivals = (by_document.get(doc_id) for doc_id in sorted(opposed.get(candidate.doc_id, ())))
    return tuple(ids[each.doc_id] for each in rivals if each and contradictions.compare_times(candidate, each) == order)


def _list_replaced(
    request: SearchRequest, candidates: Sequence[Document]
) -> dict[tuple[str, int | None], tuple[str, ...]]:
    """Return for each turn that a replaced fact was learned from the ids of the facts that replaced it."""
    turns = [(note_name(each.path), each.turn) for each in candidates if each.turn is not None]
    found: dict[tuple[str, int | None], tuple[str, ...]] = {}
    for episode, turn, name in graph.replaced_turns(request.connection, turns, request.scope) if turns else ():
        later = documents.find_by_reference(request.connection, name, request.scope)
        ids = [each.id for each in later if each.superseded_by is None]
        found[episode, turn] = tuple(dict.fromkeys([*found.get((episode, turn), ()), *ids]))
    return found


def provenance(candidate: Document, owner_keys: Collection[str]) -> str:
    """Return whose word a memory is: owner, other, agent, tool, import or conversation."""
    return _BY_KIND.get(Kind(candidate.kind)) or whose_word(candidate.source, candidate.speaker, owner_keys)


def whose_word(source: str | None, speaker: str | None, owner_keys: Collection[str]) -> str:
    """Return the origin of a note with this source and speaker. A note without a source is the owner's. A speaker with
    none of the names in `owner_keys` is another person.
    """
    word = SOURCES.get(source or "", "owner")
    is_other = speaker and not is_owner_label(speaker) and name_key(speaker) not in owner_keys
    return OTHER_PERSON if word == "owner" and is_other else word


def _text(text: str) -> str:
    return neutralise(admit(text).text)


def _channel_ranks(candidates: Sequence[Document], retrieved: Retrieved) -> dict[int, dict[str, ChannelRank]]:
    """Return the rank and score of each candidate in each channel that found it, by chunk_id."""
    ranks: dict[int, dict[str, ChannelRank]] = {candidate.chunk_id: {} for candidate in candidates}
    for name, ranking in retrieved.rankings.items():
        for rank, (chunk_id, score) in enumerate(ranking, 1):
            if chunk_id in ranks:
                ranks[chunk_id][name] = ChannelRank(rank, round(score, 4))
    for chunk_id in ranks.keys() & retrieved.expanded:
        ranks[chunk_id][EXPANDED] = ChannelRank(0, 0.0)
    scores = retrieved.graph.scores
    for candidate in candidates:
        graph_score = scores.get(candidate.doc_id)
        if graph_score is not None:
            rank = 1 + sum(other > graph_score for other in scores.values())
            ranks[candidate.chunk_id]["graph"] = ChannelRank(rank, round(graph_score, 4))
    return ranks


TURNS = 2
"""Pieces of a conversation that are fetched on either side of a turn."""
SECTIONS = 3
"""Pieces of a note that are fetched on either side of a section."""
MOST = 25
"""The number of best hits that get neighbours: the budget has no room for more."""
_WITHOUT_HEADING = {Kind.FACT, Kind.REVIEW}


def list_neighbours(
    request: SearchRequest, candidates: Sequence[Document], shown: Callable[[str], str]
) -> dict[int, tuple[Neighbour, ...]]:
    """Return the visible neighbours of the best `candidates`, by chunk_id, in the order of their notes. `shown` formats
    a stored text for display.
    """
    connection = request.connection
    facts = {each.doc_id: each.chunk_id for each in candidates if each.kind == Kind.FACT}
    others = [each.chunk_id for each in candidates if each.kind != Kind.FACT][:MOST]
    cited = {(facts[doc_id], chunk_id) for doc_id, chunk_id in graph.cited_turns(connection, list(facts))}
    pairs = [*documents.list_adjacent(connection, others, TURNS, SECTIONS), *sorted(cited)]
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
                speaker=piece.turn_speaker,
                created=piece.said_at or piece.created,
                heading=headings[chunk_id],
                cited=(owner, chunk_id) in cited,
            )
            found.setdefault(owner, []).append(neighbour)
    return {owner: tuple(sorted(near, key=lambda each: (each.path, each.ordinal))) for owner, near in found.items()}


def list_headings(request: SearchRequest, candidates: Collection[Document]) -> Mapping[int, str]:
    """Return what is written over each of `candidates`, by chunk_id: `Title > Heading` of a section, the name of an
    entity, the title of a conversation that has one.
    """
    contexts = documents.list_texts(request.connection, [each.chunk_id for each in candidates], "context")
    return {each.chunk_id: _heading(each, contexts.get(each.chunk_id, "")) for each in candidates}


def _heading(candidate: Document, context: str) -> str:
    if candidate.kind in _WITHOUT_HEADING:
        return ""
    if candidate.kind == Kind.ENTITY:
        return candidate.title
    if candidate.turn is not None:
        return "" if candidate.title == note_name(candidate.path) else candidate.title
    return context or candidate.title
