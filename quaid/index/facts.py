"""All facts that nothing has replaced, with what telling them apart needs."""

from __future__ import annotations

import json
from collections.abc import Collection
from itertools import islice
from typing import NamedTuple

from quaid.index.port import IndexConnection
from quaid.index.scope import Scope
from quaid.text import endings

_SPARE = 3
"""For each fact that is listed this many are looked at, as some of them are over."""


class LivingFact(NamedTuple):
    """A fact that nothing has replaced. `chunk_id` and `text` are of its first chunk, which is all of it if it
    `is_whole`.
    """

    doc_id: int
    chunk_id: int
    path: str
    id: str
    owner: str
    project: str | None
    text: str
    text_hash: str
    type: str | None
    status: str | None
    confidence: float | None
    confirmations: int
    source: str | None
    created: str | None
    valid_from: str | None
    valid_until: str | None
    pinned: bool
    verified: bool
    is_whole: bool

    @property
    def is_protected(self) -> bool:
        """True if its owner has said that it stays as it is."""
        return self.pinned or self.verified


def list_living(connection: IndexConnection) -> list[LivingFact]:
    """Return all of them, by path. Notes that share an id are left out, as it is unknown which of them is meant."""
    rows = connection.execute(
        "SELECT d.doc_id, c.chunk_id, path, id, owner, project, c.text, text_hash, type, status, confidence, "
        "confirmations, source, created, valid_from, valid_until, pinned, verified, "
        "NOT EXISTS (SELECT 1 FROM chunks more WHERE more.doc_id = d.doc_id AND more.ordinal = 1) "
        "FROM documents d JOIN chunks c ON c.doc_id = d.doc_id AND c.ordinal = 0 "
        "WHERE kind = 'fact' AND superseded_by IS NULL "
        "AND id NOT IN (SELECT id FROM documents GROUP BY id HAVING count(*) > 1) ORDER BY path"
    )
    return [LivingFact(*row[:16], *map(bool, row[16:])) for row in rows]


def list_replaced_by(connection: IndexConnection, names: Collection[str]) -> list[str]:
    """Return paths of facts that say they were replaced by one of the notes called `names`."""
    rows = connection.execute(
        "SELECT path FROM documents WHERE kind = 'fact' AND superseded_by IN (SELECT value FROM json_each(?)) "
        "ORDER BY path",
        (json.dumps(list(names)),),
    )
    return [str(row[0]) for row in rows]


class _DatedFact(NamedTuple):
    """The fields of a fact that tell whether it is over."""

    created: str
    type: str | None
    durability: str | None
    valid_from: str | None
    valid_until: str | None
    text: str


_NEWEST = "created DESC, path"
_WEIGHTIEST = f"pinned DESC, verified DESC, confirmations DESC, {_NEWEST}"
_HAS_A_DAY = "kind = 'fact' AND created IS NOT NULL"
_IS_PREFERENCE = f"{_HAS_A_DAY} AND type = 'preference'"


def list_latest_facts(connection: IndexConnection, scope: Scope, limit: int, today: str) -> list[tuple[str, str]]:
    """Return (created, text) of the `limit` newest facts in `scope` that hold on `today` (YYYY-MM-DD), newest first. A
    text has behind it since when it is true: what was told last need not be what began last.
    """
    return _list_holding(connection, scope, limit, today, _HAS_A_DAY, _NEWEST)


def list_preferences(connection: IndexConnection, scope: Scope, limit: int, today: str) -> list[tuple[str, str]]:
    """Return the same of preferences: first what is pinned or verified, then what was confirmed most often."""
    return _list_holding(connection, scope, limit, today, _IS_PREFERENCE, _WEIGHTIEST)


def list_first_paths(connection: IndexConnection, latest: int, preferences: int) -> list[str]:
    """Return the paths of the `latest` newest facts and of as many first preferences, of whatever scope."""
    rows = connection.execute(
        f"SELECT * FROM (SELECT path FROM documents WHERE {_HAS_A_DAY} ORDER BY {_NEWEST} LIMIT ?) UNION "
        f"SELECT * FROM (SELECT path FROM documents WHERE {_IS_PREFERENCE} ORDER BY {_WEIGHTIEST} LIMIT ?)",
        (latest, preferences),
    )
    return [str(row[0]) for row in rows]


def _list_holding(
    connection: IndexConnection, scope: Scope, limit: int, today: str, which: str, order: str
) -> list[tuple[str, str]]:
    rows = connection.execute(
        # Which they are first, their texts then: asked at once, SQLite fetches the text of every fact.
        "SELECT first.created, type, durability, valid_from, valid_until, c.text FROM ("
        "SELECT doc_id, created, path, type, durability, valid_from, valid_until, pinned, verified, confirmations "
        f"FROM documents d WHERE {which} AND superseded_by IS NULL {scope.and_documents} "
        f"ORDER BY {order} LIMIT :limit) first "
        f"JOIN chunks c ON c.doc_id = first.doc_id AND c.ordinal = 0 ORDER BY {order}",
        {"limit": limit * _SPARE, **scope.values},
    )
    holding = (fact for fact in map(_DatedFact._make, rows) if not endings.is_over(fact, today))
    return [(fact.created, _with_days(fact)) for fact in islice(holding, limit)]


def _with_days(fact: _DatedFact) -> str:
    days = endings.tell_days(fact) if fact.valid_from else []
    return f"{fact.text} ({', '.join(days)})" if days else fact.text
