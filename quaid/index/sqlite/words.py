"""Words in FTS5, which ranks them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice

import apsw

from quaid.index.fulltext import WEIGHTS

_RANKED = (
    f"SELECT rowid AS found, bm25(fulltext, {', '.join(map(str, WEIGHTS))}) AS score "
    "FROM fulltext WHERE fulltext MATCH ?"
)
_TOKENIZER = ["unicode61", "remove_diacritics", "2", "categories", "L* N* Co M* So"]
"""What `tokenize` says in schema.sql, behind porter."""


class Fts5:
    """The words of an index: `Words` of `quaid.index.port`."""

    __slots__ = ("_connection",)

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def insert(self, rows: Iterable[tuple[int, str, str, str]]) -> None:
        self._connection.executemany("INSERT INTO fulltext (rowid, text, context, keywords) VALUES (?,?,?,?)", rows)

    def insert_episodes(self, rows: Iterable[tuple[int, str, str]]) -> None:
        self._connection.executemany("INSERT INTO episode_words (rowid, text, context) VALUES (?,?,?)", rows)

    def remove(self, doc_id: int, chunk_ids: Sequence[int]) -> None:
        self._connection.executemany("DELETE FROM fulltext WHERE rowid = ?", [(chunk_id,) for chunk_id in chunk_ids])
        self._connection.execute("DELETE FROM episode_words WHERE rowid = ?", (doc_id,))

    def search(self, match: str, limit: int, allowed: Collection[int] | None) -> list[tuple[int, float]]:
        """Rank all that match; with `allowed` only the best of these come as far as this."""
        if allowed is not None:
            ranked = self._connection.execute(f"{_RANKED} ORDER BY score, rowid", (match,))
            return list(islice(((row[0], -row[1]) for row in ranked if row[0] in allowed), limit))
        # In one row, as another thread would run between two of them.
        rows = self._connection.execute(
            f"SELECT json_group_array(json_array(found, -score)) FROM ({_RANKED} ORDER BY score, rowid LIMIT ?)",
            (match, limit),
        )
        return [(chunk_id, score) for chunk_id, score in json.loads(next(rows)[0])]

    def search_episodes(
        self, match: str, limit: int, documents: str, values: Mapping[str, object]
    ) -> list[tuple[int, float]]:
        within = f"JOIN documents d ON d.doc_id = episode_words.rowid AND {documents}" if documents else ""
        rows = self._connection.execute(
            f"SELECT episode_words.rowid, bm25(episode_words) AS score FROM episode_words {within} "
            "WHERE episode_words MATCH :match ORDER BY score, episode_words.rowid LIMIT :limit",
            {"match": match, "limit": limit, **values},
        )
        return [(int(row[0]), -float(row[1])) for row in rows]

    def list_matches(self, match: str) -> tuple[list[int], list[float]]:
        rows = self._connection.execute(
            f"SELECT json_group_array(found), json_group_array(-score) FROM ({_RANKED} ORDER BY rowid)", (match,)
        )
        ids, scores = next(rows)
        return json.loads(ids), json.loads(scores)

    def count(self) -> int:
        return int(self._connection.execute("SELECT count(*) FROM fulltext_docsize").get)

    def count_matches(self, match: str, most: int) -> int:
        counted = "SELECT count(*) FROM (SELECT 1 FROM fulltext WHERE fulltext MATCH ? LIMIT ?)"
        return int(self._connection.execute(counted, (match, most)).get)

    def list_stems(self, first: str, after: str, lengths: tuple[int, int], limit: int) -> list[str]:
        rows = self._connection.execute(
            "SELECT term FROM vocabulary WHERE term >= ? AND term < ? AND length(term) BETWEEN ? AND ? LIMIT ?",
            (first, after, *lengths, limit),
        )
        return [str(row[0]) for row in rows]

    def list_chunks(self, stem: str) -> Iterator[int]:
        return (int(row[0]) for row in self._connection.execute("SELECT doc FROM occurrences WHERE term = ?", (stem,)))


def tokenize(text: str) -> list[str]:
    """Return the stems of `text` in their order, as FTS5 splits it, for an engine that keeps them itself."""
    encoded = text.encode("utf-8", "replace")
    found = _tokenizer()(encoded, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False)
    return [str(stem) for stem in found]


@cache
def _tokenizer() -> apsw.FTS5Tokenizer:
    return apsw.Connection(":memory:").fts5_tokenizer("porter", _TOKENIZER)
