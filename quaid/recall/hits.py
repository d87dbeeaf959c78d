"""Render the selected candidates as hits, with the reasons for their rank and with their neighbours."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from typing import Any

from quaid.index import documents, graph
from quaid.index.documents import Document
from quaid.local.claimed import OTHER_PERSON
from quaid.model import ChannelRank, Edge, Hit, Kind, Neighbour, is_owner_label, name_key, note_name
from quaid.recall import contradictions, scoring
from quaid.recall.candidates import hit_id, hit_kind
from quaid.recall.features import contributions
from quaid.recall.search import Chosen, Search
from quaid.redaction import admit
from quaid.text.quoting import neutralise

EXPANDED = "second_pass"
"""The channel of what only the second pass has found."""
SOURCES = {"user": "owner", "assistant": "agent", "tool": "tool", "import": "import", OTHER_PERSON: OTHER_PERSON}
"""Whose word a note is, by its `source`, unless its speaker is another person."""
_BY_KIND = {Kind.EPISODE: "conversation", Kind.JOURNAL: "agent", Kind.SNIPPET: "agent"}
_OF_ROW = [each.name for each in fields(Hit) if each.name in Document._fields]
TURNS = 2
"""Pieces of a conversation that are fetched on either side of a turn."""
SECTIONS = 3
"""Pieces of a note that are fetched on either side of a section."""
MOST = 25
"""The number of best hits that get neighbours: the budget has no room for more."""


def render(search: Search, chosen: Sequence[Chosen], opposed: Mapping[int, set[int]]) -> tuple[Hit, ...]:
    """Return the answer, best first. `text` is without secrets, and disarmed where that is on: what is recalled is
    data.
    """
    connection, day = search.connection, search.options.day
    candidates = [candidate for candidate, _, _ in chosen]
    by_document = {candidate.doc_id: candidate for candidate in candidates}
    edges = documents.fetch_edges(connection, by_document.keys())
    ids = documents.list_ids(connection, {doc_id for others in opposed.values() for doc_id in others})
    ranks = _rank_in_channels(search, candidates)
    owner_keys = search.sources.cache.of(connection, graph.with_aliases, search.sources.owner_names, search.scope)
    replaced: dict[tuple[str, int | None], list[str]] = {}  # by turn: the ids of the facts that replaced those from it
    turns = [(note_name(each.path), each.turn) for each in candidates if each.turn is not None]
    for episode, turn, name in graph.replaced_turns(connection, turns, search.scope) if turns else ():
        later = documents.find_by_reference(connection, name, search.scope)
        replaced.setdefault((episode, turn), []).extend(each.id for each in later if each.superseded_by is None)
    headings = list_headings(search, candidates)
    neighbours: Mapping[int, tuple[Neighbour, ...]] = {}
    if search.options.with_neighbours or search.options.budget is not None:
        neighbours = list_neighbours(search, candidates)
    hits = []
    for candidate, score, count in chosen:
        against = sorted(opposed.get(candidate.doc_id, ()))
        order = {
            doc_id: contradictions.compare_times(candidate, by_document[doc_id])
            for doc_id in against
            if doc_id in by_document
        }
        of_row: dict[str, Any] = {name: getattr(candidate, name) for name in _OF_ROW}
        of_row |= {
            "id": hit_id(candidate),
            "kind": hit_kind(candidate),
            "text": _show(candidate.text),
            "speaker": candidate.turn_speaker or candidate.speaker,
            "created": candidate.said_at or candidate.created,
        }
        hits.append(
            Hit(
                **of_row,
                score=round(min(1.0, max(0.0, score)), 4),
                provenance=_BY_KIND.get(Kind(candidate.kind))
                or whose_word(candidate.source, candidate.speaker, owner_keys),
                superseded=scoring.is_over(candidate, day),
                edges=tuple(Edge(*edge) for edge in edges.get(candidate.doc_id, ())),
                channels=ranks[candidate.chunk_id],
                stands_for=count,
                via=search.via.get(candidate.doc_id, ()),
                contradicts=tuple(ids[doc_id] for doc_id in against if doc_id in ids),
                later_than=tuple(ids[doc_id] for doc_id in order if order[doc_id] == 1),
                earlier_than=(
                    *(ids[doc_id] for doc_id in order if order[doc_id] == -1),
                    *dict.fromkeys(replaced.get((note_name(candidate.path), candidate.turn), ())),
                ),
                evidence=contributions(search.features.get(candidate.chunk_id, {}), search.shares),
                heading=headings[candidate.chunk_id],
                beside=neighbours.get(candidate.chunk_id, ()),
            )
        )
    return tuple(hits)


def whose_word(source: str | None, speaker: str | None, owner_keys: Collection[str]) -> str:
    """Return the origin of a note with this source and speaker. A note without a source is the owner's. A speaker with
    none of the names in `owner_keys` is another person.
    """
    word = SOURCES.get(source or "", "owner")
    is_other = speaker and not is_owner_label(speaker) and name_key(speaker) not in owner_keys
    return OTHER_PERSON if word == "owner" and is_other else word


def _show(text: str) -> str:
    return neutralise(admit(text).text)


def _rank_in_channels(search: Search, candidates: Sequence[Document]) -> dict[int, dict[str, ChannelRank]]:
    """Return the rank and score of each candidate in each channel that found it, by chunk_id."""
    ranks: dict[int, dict[str, ChannelRank]] = {candidate.chunk_id: {} for candidate in candidates}
    for name, ranking in search.rankings.items():
        for rank, (chunk_id, score) in enumerate(ranking, 1):
            if chunk_id in ranks:
                ranks[chunk_id][name] = ChannelRank(rank, round(score, 4))
    for chunk_id in ranks.keys() & search.second_pass:
        ranks[chunk_id][EXPANDED] = ChannelRank(0, 0.0)
    for candidate in candidates:
        if (nearness := search.graph.get(candidate.doc_id)) is not None:
            rank = 1 + sum(other > nearness for other in search.graph.values())
            ranks[candidate.chunk_id]["graph"] = ChannelRank(rank, round(nearness, 4))
    return ranks


def list_neighbours(search: Search, candidates: Sequence[Document]) -> dict[int, tuple[Neighbour, ...]]:
    """Return the visible neighbours of the best `candidates`, by chunk_id, in the order of their notes."""
    connection = search.connection
    facts = {each.doc_id: each.chunk_id for each in candidates if each.kind == Kind.FACT}
    others = [each.chunk_id for each in candidates if each.kind != Kind.FACT][:MOST]
    cited = {(facts[doc_id], chunk_id) for doc_id, chunk_id in graph.cited_turns(connection, list(facts))}
    pairs = [*documents.list_adjacent(connection, others, TURNS, SECTIONS), *sorted(cited)]
    pieces = documents.fetch_candidates(connection, {chunk_id for _, chunk_id in pairs}, search.scope)
    headings = list_headings(search, pieces.values())
    found: dict[int, list[Neighbour]] = {}
    for owner, chunk_id in pairs:
        if (piece := pieces.get(chunk_id)) is not None:
            neighbour = Neighbour(
                path=piece.path,
                ordinal=piece.ordinal,
                text=_show(piece.text),
                turn=piece.turn,
                speaker=piece.turn_speaker,
                created=piece.said_at or piece.created,
                heading=headings[chunk_id],
                cited=(owner, chunk_id) in cited,
            )
            found.setdefault(owner, []).append(neighbour)
    return {owner: tuple(sorted(near, key=lambda each: (each.path, each.ordinal))) for owner, near in found.items()}


def list_headings(search: Search, candidates: Collection[Document]) -> dict[int, str]:
    """Return what is written over each of `candidates`, by chunk_id: `Title > Heading` of a section, the name of an
    entity, the title of a conversation that has one.
    """
    headings = documents.list_texts(search.connection, [each.chunk_id for each in candidates], "context")
    for each in candidates:
        if each.kind in {Kind.FACT, Kind.REVIEW}:
            headings[each.chunk_id] = ""
        elif each.kind == Kind.ENTITY:
            headings[each.chunk_id] = each.title
        elif each.turn is not None:
            headings[each.chunk_id] = "" if each.title == note_name(each.path) else each.title
        else:
            headings[each.chunk_id] = headings.get(each.chunk_id) or each.title
    return headings
