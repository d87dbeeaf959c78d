"""Words in tables of postings, ranked as FTS5 ranks them: bm25 with k1 = 1.2 and b = 0.75."""

from __future__ import annotations

import hashlib
import re
import struct
import threading
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from quaid.index.fulltext import WEIGHTS
from quaid.index.sqlite.connection import tokenize

if TYPE_CHECKING:
    from quaid.index.postgres.connection import PostgresIndex

_MAX_TERM = 150
"""Characters of a stem; of a longer one the rest is its hash, which leaves it as easy to tell from all others."""
_MAX_WAITING = 20_000
"""Postings that wait to be inserted together."""
_COLUMN_BITS = 28
"""A place is four bytes: the column above so many bits, the offset in them."""
_LAST = "\U0010ffff"
_PHRASE = re.compile(r'"([^"]*)"( \*)?')
_SCORE = """
    WITH asked (number, term) AS (SELECT * FROM unnest(CAST(:numbers AS int[]), CAST(:terms AS text[]))),
    hits AS (
        SELECT number, row_id, weight, length FROM asked JOIN {postings} USING (term)
        UNION ALL
        SELECT f.number, f.row_id, f.weight, l.length
        FROM unnest(CAST(:of AS int[]), CAST(:found AS int[]), CAST(:weights AS real[])) f (number, row_id, weight)
        JOIN {lengths} l ON l.row_id = f.row_id
    ),
    told AS (SELECT number, count(*) AS held FROM hits GROUP BY number),
    rare AS (
        SELECT number, greatest(ln((CAST(:total AS float8) - held + 0.5) / (held + 0.5)), 1e-6) AS idf FROM told
    )
    SELECT row_id, sum(idf * weight * 2.2 / (weight + 1.2 * (0.25 + 0.75 * length / CAST(:mean AS float8)))) AS score
    FROM hits JOIN rare USING (number) {within} GROUP BY row_id
"""


class _Table(NamedTuple):
    """Where the words of chunks, or of episodes, are, and what its columns weigh."""

    postings: str
    lengths: str
    weights: tuple[float, ...]


_CHUNKS = _Table("postings", "lengths", WEIGHTS)
_EPISODES = _Table("episode_postings", "episode_lengths", (1.0, 1.0))


class _Waiting(threading.local):
    """What one thread has still to insert."""

    def __init__(self) -> None:
        self.postings: dict[_Table, list[tuple[str, int, int, float, bytes]]] = {_CHUNKS: [], _EPISODES: []}
        """The rows of `postings`: a term, a row_id, its length, the weight, and the places."""
        self.lengths: dict[_Table, list[tuple[int, int]]] = {_CHUNKS: [], _EPISODES: []}


class PgWords:
    """The words of an index: `Words` of `quaid.index.port`. What is inserted waits until it is asked for."""

    def __init__(self, index: PostgresIndex) -> None:
        self._index = index
        self._waiting = _Waiting()
        self._totals: tuple[tuple[int, int], dict[_Table, tuple[int, float]]] = ((-1, -1), {})

    def insert(self, rows: Iterable[tuple[int, str, str, str]]) -> None:
        for row_id, *texts in rows:
            self._add(_CHUNKS, row_id, texts)

    def insert_episodes(self, rows: Iterable[tuple[int, str, str]]) -> None:
        for row_id, *texts in rows:
            self._add(_EPISODES, row_id, texts)

    def _add(self, table: _Table, row_id: int, texts: Sequence[str]) -> None:
        places: dict[str, list[int]] = defaultdict(list)
        weights: dict[str, float] = defaultdict(float)
        length = 0
        for column, text in enumerate(texts):
            stems = tokenize(text)
            length += len(stems)
            for offset, stem in enumerate(stems):
                term = _as_term(stem)
                places[term].append(column << _COLUMN_BITS | offset)
                weights[term] += table.weights[column]
        self._waiting.lengths[table].append((row_id, length))
        self._waiting.postings[table] += (
            (term, row_id, length, weights[term], struct.pack(f"<{len(at)}I", *at)) for term, at in places.items()
        )
        if len(self._waiting.postings[table]) > _MAX_WAITING:
            self.flush()

    def flush(self) -> None:
        """Insert what waits."""
        for table in (_CHUNKS, _EPISODES):
            lengths, waiting = self._waiting.lengths[table], self._waiting.postings[table]
            self._waiting.lengths[table], self._waiting.postings[table] = [], []
            if not lengths:
                continue
            row_ids, counts = zip(*lengths, strict=True)
            self._index.execute(
                f"INSERT INTO {table.lengths} SELECT * FROM unnest(CAST(? AS int[]), CAST(? AS int[]))",
                (list(row_ids), list(counts)),
            )
            if waiting:
                columns = [list(column) for column in zip(*waiting, strict=True)]
                self._index.execute(
                    f"INSERT INTO {table.postings} SELECT * FROM unnest(CAST(? AS text[]), CAST(? AS int[]), "
                    "CAST(? AS int[]), CAST(? AS real[]), CAST(? AS bytea[]))",
                    columns,
                )

    def forget(self) -> None:
        """Drop what waits, with the transaction in which it was inserted."""
        for table in (_CHUNKS, _EPISODES):
            self._waiting.postings[table], self._waiting.lengths[table] = [], []

    def remove(self, doc_id: int, chunk_ids: Sequence[int]) -> None:
        self.flush()
        for table, row_ids in ((_CHUNKS, list(chunk_ids)), (_EPISODES, [doc_id])):
            for name in (table.postings, table.lengths):
                self._index.execute(f"DELETE FROM {name} WHERE row_id = ANY (CAST(? AS int[]))", (row_ids,))

    def search(self, match: str, limit: int, allowed: Collection[int] | None) -> list[tuple[int, float]]:
        within = "" if allowed is None else "WHERE row_id = ANY (CAST(:allowed AS int[]))"
        return self._rank(_CHUNKS, match, within, {"limit": limit, "allowed": list(allowed or ())})

    def search_episodes(
        self, match: str, limit: int, documents: str, values: Mapping[str, object]
    ) -> list[tuple[int, float]]:
        within = f"WHERE row_id IN (SELECT d.doc_id FROM documents d WHERE {documents})" if documents else ""
        return self._rank(_EPISODES, match, within, {**values, "limit": limit})

    def _rank(
        self, table: _Table, match: str, within: str, values: Mapping[str, object],
        order: str = "ORDER BY score DESC, row_id LIMIT :limit",
    ) -> list[tuple[int, float]]:  # fmt: skip
        self.flush()
        with self._index.snapshot():
            total, mean = self._total(table)
            if not total:
                return []
            # The single stems, and the rows that contain the phrases and the prefixes.
            asked: dict[str, list[object]] = {name: [] for name in ("numbers", "terms", "of", "found", "weights")}
            phrases = [([*map(_as_term, tokenize(text))], bool(star)) for text, star in _PHRASE.findall(match)]
            for number, (stems, is_prefix) in enumerate(phrase for phrase in phrases if phrase[0]):
                if len(stems) == 1 and not is_prefix:
                    asked["numbers"].append(number)
                    asked["terms"].append(stems[0])
                    continue
                for row_id, weight in self._find_phrase(table, stems, is_prefix=is_prefix).items():
                    asked["of"].append(number)
                    asked["found"].append(row_id)
                    asked["weights"].append(weight)
            score = _SCORE.format(postings=table.postings, lengths=table.lengths, within=within)
            rows = self._index.execute(f"{score} {order}", {**values, **asked, "total": total, "mean": mean})
            return [(int(row[0]), float(row[1])) for row in rows]

    def _find_phrase(self, table: _Table, stems: Sequence[str], *, is_prefix: bool) -> dict[int, float]:
        """Return the rows in which `stems` follow each other, and how often, weighed by column; the last of them may be
        the beginning of a stem.
        """
        starts: dict[int, set[int]] = {}
        for distance, stem in enumerate(stems):
            which, values = "term = ?", [stem]
            if is_prefix and distance == len(stems) - 1:
                which, values = "term >= ? AND term < ?", [stem, stem + _LAST]
            at: dict[int, set[int]] = defaultdict(set)
            found = self._index.execute(f"SELECT row_id, places FROM {table.postings} WHERE {which}", values)
            for row_id, places in found:
                at[row_id].update(struct.unpack(f"<{len(places) // 4}I", places))
            if distance == 0:
                starts = at
                continue
            starts = {
                row_id: left
                for row_id in starts.keys() & at.keys()
                if (left := {start for start in starts[row_id] if start + distance in at[row_id]})
            }
        return {row_id: sum(table.weights[at >> _COLUMN_BITS] for at in left) for row_id, left in starts.items()}

    def _total(self, table: _Table) -> tuple[int, float]:
        """Return how many rows have words, and how many words one has on average."""
        version = self._index.version()
        if self._totals[0] != version:
            self._totals = version, {}
        totals = self._totals[1]
        if table not in totals:
            row = self._index.execute(f"SELECT count(*), coalesce(avg(length), 0) FROM {table.lengths}").fetchone()
            assert row is not None
            totals[table] = int(row[0]), float(row[1]) or 1.0
        return totals[table]

    def list_matches(self, match: str) -> tuple[list[int], list[float]]:
        found = self._rank(_CHUNKS, match, "", {}, "ORDER BY row_id")
        return [row_id for row_id, _ in found], [score for _, score in found]

    def count(self) -> int:
        self.flush()
        return self._total(_CHUNKS)[0]

    def count_matches(self, match: str, most: int) -> int:
        return min(most, len(self.list_matches(match)[0]))

    def list_stems(self, first: str, after: str, lengths: tuple[int, int], limit: int) -> list[str]:
        self.flush()
        rows = self._index.execute(
            "SELECT DISTINCT term FROM postings WHERE term >= ? AND term < ? AND length(term) BETWEEN ? AND ? "
            "ORDER BY term LIMIT ?",
            (first, after, *lengths, limit),
        )
        return [str(row[0]) for row in rows]

    def list_chunks(self, stem: str) -> Iterator[int]:
        self.flush()
        rows = self._index.execute(
            "SELECT row_id, octet_length(places) / 4 FROM postings WHERE term = ? ORDER BY row_id", (_as_term(stem),)
        )
        return (int(row_id) for row_id, times in rows for _ in range(times))


def _as_term(stem: str) -> str:
    if len(stem) <= _MAX_TERM:
        return stem
    return stem[:_MAX_TERM] + hashlib.sha256(stem.encode("utf-8", "replace")).hexdigest()
