"""Chosen candidates -> hits, with all that says why they are there, and what stands beside them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from quaid.index import documents, graph
from quaid.index.documents import Candidate
from quaid.local.claimed import OTHER_PERSON
from quaid.model import ChannelRank, Edge, Hit, Kind, Neighbour, is_owner_label, name_key, note_name
from quaid.recall import contradictions, scoring, surroundings
from quaid.recall.candidates import CandidateSet, Chosen, hit_id, hit_kind
from quaid.recall.features import contributions
from quaid.recall.retrieval import Retrieved, SearchRequest
from quaid.redaction import admit
from quaid.settings import RecallSettings

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
    connection, settings, day = request.connection, request.settings, request.options.day
    edges = documents.fetch_edges(connection, {candidate.doc_id for candidate, _, _ in chosen})
    ids = documents.list_ids(connection, {doc_id for others in opposed.values() for doc_id in others})
    by_document = {candidate.doc_id: candidate for candidate, _, _ in chosen}
    candidates = [candidate for candidate, _, _ in chosen]
    ranks = _channel_ranks(candidates, retrieved)
    owner_keys = request.sources.kept.of(
        connection,
        ("aliases", request.owner_names, repr(request.scope)),
        lambda: graph.with_aliases(connection, request.owner_names, request.scope),
    )
    replaced = _list_replaced(request, candidates)
    headings = surroundings.list_headings(request, candidates)
    beside: Mapping[int, tuple[Neighbour, ...]] = {}
    if request.options.beside or request.options.budget is not None:
        beside = surroundings.list_neighbours(request, candidates, lambda text: _text(text, settings))
    return tuple(
        Hit(
            id=hit_id(candidate),
            kind=hit_kind(candidate),
            text=_text(candidate.text, settings),
            score=round(min(1.0, max(0.0, score)), 4),
            path=candidate.path,
            session=candidate.session,
            turn=candidate.turn,
            speaker=candidate.speaker or candidate.doc_speaker,
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
            stands_for=stands_for,
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
            beside=beside.get(candidate.chunk_id, ()),
        )
        for candidate, score, stands_for in chosen
    )


def _rivals(
    candidate: Candidate,
    order: int,
    by_document: Mapping[int, Candidate],
    opposed: Mapping[int, set[int]],
    ids: Mapping[int, str],
) -> tuple[str, ...]:
    """Return the ids of the hits that contradict `candidate` and are the earlier (`order` 1) or the later (-1)."""
    rivals = (by_document.get(doc_id) for doc_id in sorted(opposed.get(candidate.doc_id, ())))
    return tuple(ids[each.doc_id] for each in rivals if each and contradictions.compare_times(candidate, each) == order)


def _list_replaced(
    request: SearchRequest, candidates: Sequence[Candidate]
) -> dict[tuple[str, int | None], tuple[str, ...]]:
    """Return for each turn that a replaced fact was learned from the ids of the facts that replaced it."""
    turns = [(note_name(each.path), each.turn) for each in candidates if each.turn is not None]
    found: dict[tuple[str, int | None], tuple[str, ...]] = {}
    for episode, turn, name in graph.replaced_turns(request.connection, turns, request.scope) if turns else ():
        later = documents.find_by_reference(request.connection, name, request.scope)
        ids = [each.id for each in later if each.superseded_by is None]
        found[episode, turn] = tuple(dict.fromkeys([*found.get((episode, turn), ()), *ids]))
    return found


def provenance(candidate: Candidate, owner_keys: Collection[str]) -> str:
    """Return whose word a memory is: owner, other, agent, tool, import or conversation."""
    return _BY_KIND.get(Kind(candidate.kind)) or whose_word(candidate.source, candidate.doc_speaker, owner_keys)


def whose_word(source: str | None, speaker: str | None, owner_keys: Collection[str]) -> str:
    """Return whose word a note with this source and speaker is. The owner wrote what nobody marked; what a speaker said
    who goes by none of `owner_keys` is the word of another person.
    """
    word = SOURCES.get(source or "", "owner")
    is_other = speaker and not is_owner_label(speaker) and name_key(speaker) not in owner_keys
    return OTHER_PERSON if word == "owner" and is_other else word


def _text(text: str, settings: RecallSettings) -> str:
    text = admit(text).text
    if not settings.stages.neutralise:
        return text
    from quaid.text.quoting import neutralise

    return neutralise(text)


def _channel_ranks(candidates: Sequence[Candidate], retrieved: Retrieved) -> dict[int, dict[str, ChannelRank]]:
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
