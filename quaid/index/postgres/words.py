"""Words in a `tsvector` for each chunk, found by a GIN index and ranked as FTS5 ranks them: bm25, k1 = 1.2, b = 0.75.

A lexeme is the number of the vault and a stem, so a list of the index is of one vault. Its positions are those of the
stem in the text, then in the context, then, with the label A, in the keywords.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from quaid.index.fulltext import WEIGHTS, Postings, list_best, match_any
from quaid.index.sqlite.connection import tokenize
from quaid.text.words import segmented

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from quaid.index.port import IndexConnection
    from quaid.index.postgres.connection import PostgresIndex

    Ranked = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]

K1, B = 1.2, 0.75
_BYTES = 12
"""What `MATCH` has of each chunk that is found."""
MATCH = "SELECT number, total, words, held, found FROM quaid.match(CAST(? AS tsquery[]), CAST(? AS text[]))"
_MAX_TERM = 150
"""Characters of a stem; of a longer one the rest is its hash, which leaves it as easy to tell from all others."""
_LABELS = ("", "", "A")
"""What marks a position in the text, the context and the keywords."""
_PHRASE = re.compile(r'"([^"]*)"( \*)?')
_MOST_TIMES, _MOST_KEYWORDS = 256, 8
"""How often a chunk has a stem: PostgreSQL keeps so many positions."""
_ALL_RANKED = 1.64493406685
"""What `ts_rank` divides by: the sum of 1 / n²."""


def make_vector(vault: int, texts: Sequence[str]) -> tuple[str, int]:
    """Return the stems of a chunk as a tsvector, and their number; `texts` are its text, context and keywords."""
    places: dict[str, list[str]] = defaultdict(list)
    first = 1
    for label, text in zip(_LABELS, texts, strict=True):
        stems = tokenize(segmented(text))
        for place, stem in enumerate(stems, first):
            places[stem].append(f"{place}{label}")
        first += len(stems) + 1  # no phrase goes from one into the next
    vector = " ".join(f"{_lexeme(vault, stem)}:{','.join(at)}" for stem, at in places.items())
    return vector, first - 1 - len(texts)


def _lexeme(vault: int, stem: str) -> str:
    if len(stem) > _MAX_TERM:
        stem = stem[:_MAX_TERM] + hashlib.sha256(stem.encode("utf-8", "replace")).hexdigest()
    return f"'{vault:x}.{stem}'"


class PgWords:
    """The words of an index: `Words` of `quaid.index.port`."""

    def __init__(self, index: PostgresIndex) -> None:
        self._index = index

    def insert(self, rows: Iterable[tuple[int, str, str, str]]) -> None:
        """The words of a chunk are a column of its row."""

    def remove(self, chunk_ids: Sequence[int]) -> None:
        """They go with the chunk."""

    def search(self, match: str, limit: int, allowed: Collection[int] | None) -> list[tuple[int, float]]:
        return list_best(*self.rank(match), limit, allowed)

    def list_matches(self, match: str, other: str = "") -> tuple[list[int], list[float]]:
        import numpy as np

        ids, scores = self.rank(f"{match} OR {other}" if other else match)
        for each in (match, other) if other else ():
            within = np.isin(ids, self.rank(each)[0])
            ids, scores = ids[within], scores[within]
        return ids.tolist(), scores.tolist()

    def rank(self, match: str, asked: Iterable[Any] | None = None) -> Ranked:
        """Return all chunks that match, ascending, and the bm25 of each; `asked` are the rows of `MATCH`, if it was."""
        import numpy as np

        found = [(np.empty(0, np.int64), np.empty(0, np.float64))]
        for share, mean, ids, lengths, times in self._find(match, asked):
            idf = max(math.log(share), 1e-6)
            found.append((ids, idf * times * (K1 + 1) / (times + K1 * (1 - B + B * lengths / mean))))
        together = np.concatenate([ids for ids, _ in found])
        ids, places = np.unique(together, return_inverse=True)
        scores: Any = np.bincount(places, np.concatenate([each for _, each in found]), len(ids))
        return ids, scores

    def _find(self, match: str, rows: Iterable[Any] | None = None) -> Iterator[tuple[float, float, Any, Any, Any]]:
        """Yield for each word and phrase the number of chunks without it for each that has it, the mean length of all
        chunks, the chunks that have it, their lengths, and how often they have it, weighed by column.
        """
        import numpy as np

        ranks, counts = list_ranks()
        if rows is None:
            asked = describe(match, self._index.place.vault)
            rows = self._index.execute(MATCH, asked) if asked else ()
        for _, total, words, held, sent in rows:
            row = np.frombuffer(sent or b"", [("chunk_id", ">i4"), ("length", ">i4"), ("rank", ">f4")])
            rank = row["rank"].astype(np.float64)
            above = np.clip(np.searchsorted(ranks, rank), 1, len(ranks) - 1)
            nearest = above - (2 * rank < ranks[above - 1] + ranks[above])
            times = np.where(rank < 0, -rank, counts[nearest])
            share, mean = (max(total, held) - held + 0.5) / (held + 0.5), max(words, 1) / max(total, 1)
            yield share, mean, row["chunk_id"].astype(np.int64), row["length"].astype(np.float64), times

    def count(self) -> int:
        return int(self._index.execute("SELECT chunks FROM quaid.vaults").get)

    def count_matches(self, match: str, most: int) -> int:
        return min(most, len(self.rank(match)[0]))

    def list_stems(self, first: str, after: str, lengths: tuple[int, int], limit: int) -> list[str]:
        rows = self._index.execute("SELECT stem FROM quaid.list_stems(?, ?, ?, ?) ORDER BY 1 LIMIT ?",
                                   (first, after, *lengths, limit))  # fmt: skip
        return [str(row[0]) for row in rows]

    def list_chunks(self, stem: str) -> Iterator[int]:
        for *_, ids, _, _ in self._find(f'"{stem}"'):
            yield from ids.tolist()


def describe(match: str, vault: int) -> tuple[list[str], list[str | None]] | None:
    """Return the parameters of `MATCH`, None where there is nothing to look for."""
    asked = [(stems, bool(star)) for text, star in _PHRASE.findall(match) if (stems := tokenize(text))]
    queries = [" <-> ".join(_lexeme(vault, stem) for stem in stems) + ":*" * begun for stems, begun in asked]
    phrases = [
        " ".join(_lexeme(vault, stem)[1:-1] for stem in stems) + "*" * begun if begun or len(stems) > 1 else None
        for stems, begun in asked
    ]
    return (queries, phrases) if asked else None


@cache
def list_ranks() -> tuple[Any, Any]:
    """Return the ranks that `ts_rank` gives a stem, ascending, and how often by column it is there then: a rank is the
    sum of the weights of its positions, each divided by the square of its number.
    """
    import numpy as np

    parts = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, _MOST_TIMES + _MOST_KEYWORDS + 1) ** 2)])
    texts, keywords = (each.ravel() for each in np.mgrid[0:_MOST_TIMES, 0:_MOST_KEYWORDS])
    ranks = (parts[texts] + WEIGHTS[2] * (parts[texts + keywords] - parts[texts])) / _ALL_RANKED
    order = np.argsort(ranks)[1:]
    return ranks[order], (texts + WEIGHTS[2] * keywords)[order]


class QuestionWords(Postings):
    """The words of one question, which a server forgets afterwards; they are searched with its vectors."""

    is_joined = True
    _ranked: tuple[str, Any] = "", None
    _sizes: Mapping[str, int] = {}

    def learn(self, connection: IndexConnection, rows: list[Any]) -> None:
        """Take the rows of `MATCH` for what was awaited."""
        words, match = self.awaited, match_any(self.awaited)
        self.awaited, self._ranked = (), (match, cast("PgWords", connection.words).rank(match, rows))
        sizes = {row[0]: len(row[4] or b"") // _BYTES for row in rows}
        asked = [word for word in words if describe(match_any([word]), 0)]
        self._sizes = dict.fromkeys(words, 0) | {word: sizes.get(at, 0) for at, word in enumerate(asked, start=1)}

    def count_matches(
        self, connection: IndexConnection, words: Sequence[str], allowed: Collection[int] | None = None
    ) -> Mapping[str, int]:
        is_known = allowed is None and self._sizes.keys() == {*words}
        return self._sizes if is_known else super().count_matches(connection, words, allowed)

    def search(
        self, connection: IndexConnection, words: Sequence[str], limit: int, allowed: Collection[int] | None = None
    ) -> list[tuple[int, float]]:
        if (match := match_any(words)) != self._ranked[0] or not match:
            self._ranked = match, cast("PgWords", connection.words).rank(match)
        ids, scores = self._ranked[1]
        return list_best(ids, scores, limit, allowed)
