"""Words in tables of postings, ranked as FTS5 ranks them: bm25 with k1 = 1.2 and b = 0.75."""

from __future__ import annotations

import hashlib
import re
import struct
import threading
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

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
        SELECT number, row_id, weight, length FROM asked JOIN postings USING (term)
        UNION ALL
        SELECT f.number, f.row_id, f.weight, l.length
        FROM unnest(CAST(:of AS int[]), CAST(:found AS int[]), CAST(:weights AS real[])) f (number, row_id, weight)
        JOIN lengths l ON l.row_id = f.row_id
    ),
    told AS (SELECT number, count(*) AS held FROM hits GROUP BY number),
    rare AS (
        SELECT number, greatest(ln((CAST(:total AS float8) - held + 0.5) / (held + 0.5)), 1e-6) AS idf FROM told
    )
    SELECT row_id, sum(idf * weight * 2.2 / (weight + 1.2 * (0.25 + 0.75 * length / CAST(:mean AS float8)))) AS score
    FROM hits JOIN rare USING (number) {within} GROUP BY row_id
"""


class _Waiting(threading.local):
    """What one thread has still to insert."""

    def __init__(self) -> None:
        self.postings: list[tuple[str, int, int, float, bytes]] = []
        """The rows of `postings`: a term, a row_id, its length, the weight, and the places."""
        self.lengths: list[tuple[int, int]] = []


class PgWords:
    """The words of an index: `Words` of `quaid.index.port`. What is inserted waits until it is asked for."""

    def __init__(self, index: PostgresIndex) -> None:
        self._index = index
        self._waiting = _Waiting()
        self._totals: tuple[tuple[int, int], tuple[int, float]] = ((-1, -1), (0, 1.0))

    def insert(self, rows: Iterable[tuple[int, str, str, str]]) -> None:
        for row_id, *texts in rows:
            places: dict[str, list[int]] = defaultdict(list)
            weights: dict[str, float] = defaultdict(float)
            length = 0
            for column, text in enumerate(texts):
                stems = tokenize(text)
                length += len(stems)
                for offset, stem in enumerate(stems):
                    term = _as_term(stem)
                    places[term].append(column << _COLUMN_BITS | offset)
                    weights[term] += WEIGHTS[column]
            self._waiting.lengths.append((row_id, length))
            self._waiting.postings += (
                (term, row_id, length, weights[term], struct.pack(f"<{len(at)}I", *at)) for term, at in places.items()
            )
            if len(self._waiting.postings) > _MAX_WAITING:
                self.flush()

    def flush(self) -> None:
        """Insert what waits."""
        lengths, waiting = self._waiting.lengths, self._waiting.postings
        self.forget()
        if not lengths:
            return
        row_ids, counts = zip(*lengths, strict=True)
        self._index.execute(
            "INSERT INTO lengths SELECT * FROM unnest(CAST(? AS int[]), CAST(? AS int[]))",
            (list(row_ids), list(counts)),
        )
        if waiting:
            columns = [list(column) for column in zip(*waiting, strict=True)]
            self._index.execute(
                "INSERT INTO postings SELECT * FROM unnest(CAST(? AS text[]), CAST(? AS int[]), "
                "CAST(? AS int[]), CAST(? AS real[]), CAST(? AS bytea[]))",
                columns,
            )

    def forget(self) -> None:
        """Drop what waits, with the transaction in which it was inserted."""
        self._waiting.postings, self._waiting.lengths = [], []

    def remove(self, chunk_ids: Sequence[int]) -> None:
        self.flush()
        for name in ("postings", "lengths"):
            self._index.execute(f"DELETE FROM {name} WHERE row_id = ANY (CAST(? AS int[]))", (list(chunk_ids),))

    def search(self, match: str, limit: int, allowed: Collection[int] | None) -> list[tuple[int, float]]:
        within = "" if allowed is None else "WHERE row_id = ANY (CAST(:allowed AS int[]))"
        return self._rank(match, within, {"limit": limit, "allowed": list(allowed or ())})

    def _rank(
        self, match: str, within: str, values: Mapping[str, object],
        order: str = "ORDER BY score DESC, row_id LIMIT :limit",
    ) -> list[tuple[int, float]]:  # fmt: skip
        self.flush()
        with self._index.snapshot():
            total, mean = self._total()
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
                for row_id, weight in self._find_phrase(stems, is_prefix=is_prefix).items():
                    asked["of"].append(number)
                    asked["found"].append(row_id)
                    asked["weights"].append(weight)
            score = _SCORE.format(within=within)
            rows = self._index.execute(f"{score} {order}", {**values, **asked, "total": total, "mean": mean})
            return [(int(row[0]), float(row[1])) for row in rows]

    def _find_phrase(self, stems: Sequence[str], *, is_prefix: bool) -> dict[int, float]:
        """Return the rows in which `stems` follow each other, and how often, weighed by column; the last of them may be
        the beginning of a stem.
        """
        starts: dict[int, set[int]] = {}
        for distance, stem in enumerate(stems):
            which, values = "term = ?", [stem]
            if is_prefix and distance == len(stems) - 1:
                which, values = "term >= ? AND term < ?", [stem, stem + _LAST]
            at: dict[int, set[int]] = defaultdict(set)
            found = self._index.execute(f"SELECT row_id, places FROM postings WHERE {which}", values)
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
        return {row_id: sum(WEIGHTS[at >> _COLUMN_BITS] for at in left) for row_id, left in starts.items()}

    def _total(self) -> tuple[int, float]:
        """Return how many rows have words, and how many words one has on average."""
        version = self._index.version()
        if self._totals[0] != version:
            row = self._index.execute("SELECT count(*), coalesce(avg(length), 0) FROM lengths").fetchone()
            assert row is not None
            self._totals = version, (int(row[0]), float(row[1]) or 1.0)
        return self._totals[1]

    def list_matches(self, match: str, other: str = "") -> tuple[list[int], list[float]]:
        found = self._rank(f"{match} OR {other}" if other else match, "", {}, "ORDER BY row_id")
        if other:
            both = set(self.list_matches(match)[0]).intersection(self.list_matches(other)[0])
            found = [each for each in found if each[0] in both]
        return [row_id for row_id, _ in found], [score for _, score in found]

    def count(self) -> int:
        self.flush()
        return self._total()[0]

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
