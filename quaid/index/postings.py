"""Where the words of questions stand, in memory, for a process that keeps asking.

FTS5 computes bm25 anew for every chunk that has any word of a question: 3 ms at 10,000 chunks, 23 at 100,000. Nearly
all of it goes to the few words that many chunks have, which come again with the next question. bm25 of several words is
the sum of theirs, so what FTS5 says of one word is kept until the index changes, and added up.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from quaid.index import fulltext
from quaid.index.kept import Moment
from quaid.index.port import IndexConnection

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MAX_KEPT, KEPT_SHARE = 3_000_000, 8
"""Chunks of all words that are kept, at 16 bytes each, or so many times the chunks of a very large index; the words
that were asked for longest ago go first."""


class Postings:
    """The words of one index that were asked for, each with its chunks and their bm25."""

    def __init__(self) -> None:
        self._asked = 0
        self._last: Sequence[str] = ()
        self._moment = Moment()
        self._total = 0
        self._kept: OrderedDict[str, tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]] = OrderedDict()
        self._size = 0

    def has(self, connection: IndexConnection, words: Sequence[str]) -> bool:
        """Return whether `search` can answer without asking SQLite."""
        return self._asked > 0 and self._moment.is_of(connection) and all(word in self._kept for word in words)

    def is_quick(self, connection: IndexConnection, words: Sequence[str]) -> bool:
        """Return whether `search` takes no longer than a thread to start: it asks SQLite nothing, or little."""
        is_small = 0 < self._total <= fulltext.MANY and self._moment.is_of(connection)
        return is_small or self.has(connection, words)

    def search(
        self, connection: IndexConnection, words: Sequence[str], limit: int, allowed: Collection[int] | None = None
    ) -> list[tuple[int, float]]:
        """Return (chunk_id, bm25) of chunks that have any of `words`, of those in `allowed` if it is given, best first,
        as `fulltext.search` does. Words that most chunks of a large index have count only where there are no others.
        """
        if not words:
            return []
        if words is not self._last:  # one question may be asked in two scopes
            self._asked += 1
            self._last = words
        if self._asked == 1:  # a process with one question reads each word once
            match = fulltext.match_any(fulltext.list_telling(connection, words))
            return fulltext.search(connection, match, limit, allowed)
        import numpy as np

        if not self._moment.is_of(connection):
            self._begin(connection)
        found = [self._of(connection, word) for word in words]
        telling = [each for each in found if not fulltext.is_common(len(each[0]), self._total)] or found
        if not any(len(ids) for ids, _ in telling):
            return []
        scores = np.zeros(1 + max(int(ids[-1]) for ids, _ in telling if len(ids)))
        for ids, of_word in telling:
            scores[ids] += of_word
        if allowed is None:
            ids = np.flatnonzero(scores)
        else:
            seen = np.fromiter(allowed, np.int64, len(allowed))
            seen = seen[seen < len(scores)]
            ids = np.sort(seen[scores[seen] > 0])
        return _best(ids, scores[ids], limit)

    def _begin(self, connection: IndexConnection) -> None:
        """Forget what was of another index or of another state of it."""
        self._moment.move_to(connection)
        self._total = connection.words.count()
        self._kept.clear()
        self._size = 0

    def _of(self, connection: IndexConnection, word: str) -> tuple[Any, Any]:
        import numpy as np

        if word in self._kept:
            self._kept.move_to_end(word)
            return self._kept[word]
        ids, scores = connection.words.list_matches(fulltext.match_any([word]))
        kept = self._kept[word] = np.array(ids, np.int64), np.array(scores, np.float64)
        self._size += len(ids)
        while self._size > max(MAX_KEPT, KEPT_SHARE * self._total) and len(self._kept) > 1:
            self._size -= len(self._kept.popitem(last=False)[1][0])
        return kept


def _best(ids: npt.NDArray[np.int64], scores: npt.NDArray[np.float64], limit: int) -> list[tuple[int, float]]:
    """Return the `limit` best as (chunk_id, score), of equal ones the lower chunk_id first."""
    import numpy as np

    if len(ids) > limit:
        # Everything at least as good as the last one that fits: which of equal ones that is, the order below tells.
        least = scores[np.argpartition(-scores, limit - 1)[limit - 1]]
        fits = scores >= least
        ids, scores = ids[fits], scores[fits]
    order = np.lexsort((ids, -scores))[:limit]
    return list(zip(ids[order].tolist(), scores[order].tolist(), strict=True))
