"""Temporal contiguity: what was learned together is remembered together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from quaid.index import documents
from quaid.index.documents import Candidate
from quaid.index.scope import Scope

if TYPE_CHECKING:
    import apsw

MOST_SESSIONS = 3
MOST_FACTS = 30


def from_same_sessions(
    connection: apsw.Connection, ranked: Sequence[Candidate], scores: Mapping[int, float], decay: float, scope: Scope
) -> tuple[dict[int, Candidate], dict[int, float]]:
    """Facts from the sessions of the best candidates, and what each has of the score of the one it came with
    (the seeds' coSessionDecay).
    """
    best: dict[str, float] = {}
    for candidate in ranked:
        if candidate.session is not None and len(best) < MOST_SESSIONS:
            best.setdefault(candidate.session, scores[candidate.chunk_id])
    if not best:
        return {}, {}
    chunk_ids = documents.facts_of_sessions(connection, best, scope, MOST_FACTS)
    candidates = documents.fetch_candidates(connection, chunk_ids, scope)
    return candidates, {i: decay * best[c.session] for i, c in candidates.items() if c.session in best}
