"""The turns of episodes, and the chunks that each is cut into."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

from quaid.index.scope import Scope

if TYPE_CHECKING:
    from quaid.index.port import IndexConnection


class TurnChunks(NamedTuple):
    """A turn of an episode and its chunks, which are numbered one after the other."""

    number: int
    speaker: str | None
    first: int
    last: int

    @property
    def chunks(self) -> range:
        """The ids of its chunks."""
        return range(self.first, self.last + 1)


def list_turns(connection: IndexConnection, doc_ids: Collection[int]) -> dict[int, tuple[int, list[TurnChunks]]]:
    """Return of each episode the size of its file in bytes and its turns in their order, by doc_id."""
    rows = connection.execute(
        "SELECT c.doc_id, d.size, json_group_array(c.turn), json_group_array(c.speaker), json_group_array(c.first), "
        "json_group_array(c.last) FROM ("
        "SELECT doc_id, turn, min(speaker) AS speaker, min(chunk_id) AS first, max(chunk_id) AS last FROM chunks "
        "WHERE doc_id IN (SELECT CAST(value AS INTEGER) FROM json_each(?)) AND turn IS NOT NULL "
        "GROUP BY doc_id, turn) c "
        "JOIN documents d USING (doc_id) GROUP BY c.doc_id, d.size",
        (json.dumps(list(doc_ids)),),
    )
    found: dict[int, tuple[int, list[TurnChunks]]] = {}
    for doc_id, size, *columns in rows:
        turns = map(TurnChunks._make, zip(*map(json.loads, columns), strict=True))
        found[int(doc_id)] = int(size), sorted(turns, key=lambda turn: turn.first)
    return found


def list_speakers(connection: IndexConnection, scope: Scope) -> list[str]:
    """Return who speaks in the conversations in `scope`."""
    documents = "" if scope.is_open else "JOIN documents d USING (doc_id)"
    rows = connection.execute(
        f"SELECT DISTINCT c.speaker FROM chunks c {documents} "
        f"WHERE c.turn IS NOT NULL AND c.speaker IS NOT NULL {scope.and_chunks}",
        scope.values,
    )
    return [row[0] for row in rows]
