"""Chosen candidates -> hits, with all that says why they are there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from quaid.index import documents
from quaid.index.documents import Candidate
from quaid.index.scope import Scope
from quaid.model import ChannelRank, Edge, Hit, Kind
from quaid.recall import evidence, scoring
from quaid.recall.asking import Found
from quaid.recall.gathering import Gathered
from quaid.recall.options import RecallOptions
from quaid.recall.selecting import Chosen, day_of, hit_id, hit_kind
from quaid.redaction import admit
from quaid.settings import RecallSettings

if TYPE_CHECKING:
    import apsw

AGAIN = "second_pass"
"""The channel of what only the second pass has found."""
_BY_SOURCE = {"user": "owner", "assistant": "agent", "tool": "tool", "import": "import"}
_BY_KIND = {Kind.EPISODE: "conversation", Kind.JOURNAL: "agent", Kind.SNIPPET: "agent"}


def render_hits(
    connection: apsw.Connection,
    chosen: Sequence[Chosen],
    gathered: Gathered,
    found: Found,
    opposed: Mapping[int, set[int]],
    settings: RecallSettings,
    options: RecallOptions,
) -> tuple[Hit, ...]:
    """The answer, best first. `text` is without secrets, and disarmed where that is on: what is recalled is data."""
    today = day_of(options)
    edges = documents.fetch_edges(connection, {candidate.doc_id for candidate, _, _ in chosen})
    ids = documents.list_ids(connection, {doc_id for others in opposed.values() for doc_id in others})
    ranks = _channel_ranks({candidate.chunk_id for candidate, _, _ in chosen}, found)
    return tuple(
        Hit(
            id=hit_id(candidate),
            kind=hit_kind(candidate),
            text=_text(candidate.text, settings),
            score=round(score, 4),
            path=candidate.path,
            session=candidate.session,
            turn=candidate.turn,
            speaker=candidate.speaker or candidate.doc_speaker,
            created=candidate.said_at or candidate.created,
            valid_from=candidate.valid_from,
            valid_until=candidate.valid_until,
            status=candidate.status,
            project=candidate.project,
            provenance=provenance(candidate),
            superseded=scoring.is_over(candidate, today),
            edges=tuple(Edge(*edge) for edge in edges.get(candidate.doc_id, ())),
            channels=ranks.get(candidate.chunk_id, {}) | _graph_rank(candidate, found),
            stands_for=stands_for,
            via=found.graph.via.get(candidate.doc_id, ()),
            contradicts=tuple(ids[doc_id] for doc_id in sorted(opposed.get(candidate.doc_id, ())) if doc_id in ids),
            evidence=evidence.contributions(gathered.rows.get(candidate.chunk_id, {}), gathered.shares),
        )
        for candidate, score, stands_for in chosen
    )


def surroundings(connection: apsw.Connection, hit: Hit, scope: Scope, settings: RecallSettings) -> str:
    """A hit's text with what stands around it, as far as `scope` sees: the turns beside it, or all of its note."""
    turns = None if hit.turn is None else (hit.turn - 1, hit.turn + 1)
    said = documents.list_texts(connection, hit.path, turns, scope)
    return _text("\n\n".join(said), settings) if said else hit.text


def provenance(candidate: Candidate) -> str:
    """Whose word a memory is: owner, agent, tool, import or conversation. What nobody marked, the owner wrote."""
    kind = Kind(candidate.kind)
    if kind in _BY_KIND:
        return _BY_KIND[kind]
    return _BY_SOURCE.get(candidate.source or "", "owner")


def _text(text: str, settings: RecallSettings) -> str:
    text = admit(text).text
    if not settings.stages.neutralise:
        return text
    from quaid.text.quoting import neutralise

    return neutralise(text)


def _channel_ranks(chunk_ids: set[int], found: Found) -> dict[int, dict[str, ChannelRank]]:
    ranks: dict[int, dict[str, ChannelRank]] = {}
    for name, ranking in found.rankings.items():
        for rank, (chunk_id, score) in enumerate(ranking, 1):
            if chunk_id in chunk_ids:
                ranks.setdefault(chunk_id, {})[name] = ChannelRank(rank, round(score, 4))
    for chunk_id in chunk_ids & found.broadened:
        ranks.setdefault(chunk_id, {})[AGAIN] = ChannelRank(0, 0.0)
    return ranks


def _graph_rank(candidate: Candidate, found: Found) -> dict[str, ChannelRank]:
    score = found.graph.scores.get(candidate.doc_id)
    if score is None:
        return {}
    rank = 1 + sum(other > score for other in found.graph.scores.values())
    return {"graph": ChannelRank(rank, round(score, 4))}
