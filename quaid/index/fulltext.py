"""The keyword channel: the words of all chunks, ranked by bm25."""

import json
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from quaid.index.cache import Moment
from quaid.index.port import IndexConnection
from quaid.text.stop_words import stop_words
from quaid.text.words import SPELLINGS, find_words, is_joined_letter, segmented

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# bm25 weights of the columns text, context, keywords.
WEIGHTS = (1.0, 1.0, 0.5)
STEM = 5
"""The letters of a word that are its stem."""
MANY = MAX_READ = 20_000
"""In an index of more chunks so many are read of a question's words, those of the rarest first. The other words, which
would cost more time than the rest of the question, only rank what these found."""


def insert(connection: IndexConnection, rows: Iterable[tuple[int, str, str, str]]) -> None:
    """Insert the words of chunks: chunk_id, text, context, keywords."""
    connection.words.insert(
        (chunk_id, segmented(text), segmented(context), segmented(keywords))
        for chunk_id, text, context, keywords in rows
    )


def insert_again(connection: IndexConnection) -> None:
    """Insert the words of all chunks into an index that has none."""
    rows = connection.execute("SELECT chunk_id, text, context, keywords FROM chunks ORDER BY chunk_id")
    insert(connection, rows.fetchall())


def terms(text: str, language: str | None = None) -> list[str]:
    """Return the words of `text` worth searching, lower case, each once; all of them when every one is a stop word of
    its `language`, by default English.
    """
    words = list(dict.fromkeys(find_words(text)))
    dropped = stop_words(language or "en")
    return [word for word in words if dropped.isdisjoint((word, word.translate(SPELLINGS)))] or words


def beginnings(words: Iterable[str], language: str | None) -> list[str]:
    """Return the beginnings of long words, each a term: their stems in a language that SQLite cannot stem.

    Words that are cut after five letters find nearly as much as a stemmer does in most languages of Europe (McNamee and
    Mayfield, "Character N-Gram Tokenization for European Language Text Retrieval", Information Retrieval 2004).
    """
    if language in {"vi", "zh"}:  # their words have no endings
        return []
    return list(dict.fromkeys(f"{word[:STEM]}*" for word in words if len(word) > STEM and word.isalpha()))


def as_phrase(text: str) -> str:
    """Return `text` as one term: its words where they follow each other."""
    return " ".join(find_words(text))


def match_any(words: Sequence[str]) -> str:
    """Return a query: any of `words`, each quoted so that no word is syntax; one with spaces is a phrase, and one that
    ends with a star begins words.
    """
    return " OR ".join(
        f'"{word.rstrip("*").translate(SPELLINGS)}"' + " *" * (word.endswith("*") or is_joined_letter(word))
        for word in words
    )


def search(
    connection: IndexConnection, match: str, limit: int, allowed: Collection[int] | None = None
) -> list[tuple[int, float]]:
    """Return (chunk_id, bm25) of chunks in `allowed` (None for all), best first; bm25 is positive, more is better."""
    return connection.words.search(match, limit, allowed) if match else []


def count_matches(
    connection: IndexConnection, words: Sequence[str], allowed: Collection[int] | None = None
) -> dict[str, int]:
    """Return how many chunks, of those in `allowed` if it is given, have each of `words`."""
    matches = {word: match_any([word]) for word in words}
    if allowed is None:
        total = connection.words.count()
        return {word: connection.words.count_matches(match, total) for word, match in matches.items()}
    return {
        word: sum(chunk_id in allowed for chunk_id in connection.words.list_matches(match)[0])
        for word, match in matches.items()
    }


def list_stems(connection: IndexConnection, word: str, limit: int = 4000) -> list[str]:
    """Return stems of the vault that begin with the same letter and are not much longer: what `word` may be a slip
    of.
    """
    lengths = max(3, len(word) - 4), len(word) + 1
    return connection.words.list_stems(word[0], chr(ord(word[0]) + 1), lengths, limit)


def list_words(connection: IndexConnection, stem: str, allowed: Collection[int] | None = None) -> set[str]:
    """Return the words, in lower case, of some chunks in `allowed` (None for all) that contain `stem`. The words with
    that stem are among them.
    """
    found = connection.words.list_chunks(stem)
    chunk_ids = islice((each for each in found if allowed is None or each in allowed), 20)
    rows = connection.execute(
        "SELECT text || ' ' || context || ' ' || keywords FROM chunks "
        "WHERE chunk_id IN (SELECT CAST(value AS INTEGER) FROM json_each(?))",
        (json.dumps(list(chunk_ids)),),
    )
    return {word for (text,) in rows for word in find_words(text)}


MAX_CACHED_CHUNKS = 3_000_000
"""The maximum of cached chunks of all words, at 16 bytes each. The least recently used words are evicted first."""


def list_best(
    ids: "npt.NDArray[np.int64]", scores: "npt.NDArray[Any]", limit: int, allowed: Collection[int] | None = None
) -> list[tuple[int, float]]:
    """Return (chunk_id, score) of the best, of those in `allowed` if it is given; of equals the lower chunk_id."""
    import numpy as np

    if allowed is not None:
        within = np.isin(ids, np.fromiter(allowed, np.int64, len(allowed)))
        ids, scores = ids[within], scores[within]
    if len(ids) > limit:
        # Everything at least as good as the last one that fits: which of equal ones that is, the order below tells.
        fits = scores >= scores[np.argpartition(-scores, limit - 1)[limit - 1]]
        ids, scores = ids[fits], scores[fits]
    order = np.lexsort((ids, -scores))[:limit]
    return list(zip(ids[order].tolist(), scores[order].tolist(), strict=True))


class Postings:
    """The words of one index that were asked for, each with its chunks and their bm25."""

    is_joined = False
    """Whether what searches the vectors of a question searches its words with them."""
    awaited: Sequence[str] = ()
    """The words that the search of the vectors has to look for."""

    def __init__(self) -> None:
        self._asked = 0
        self._last: Sequence[str] = ()
        self._moment = Moment()
        self._total = 0
        self._counts: dict[str, int] = {}
        self._cached: OrderedDict[str, tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]] = OrderedDict()
        self._size = 0

    def is_quick(self, connection: IndexConnection, words: Sequence[str]) -> bool:
        """Return whether `search` takes no longer than a thread to start: it asks SQLite nothing, or little."""
        is_known = self._asked > 0 and self._moment.is_of(connection)
        return is_known and (self._total <= MANY or all(word in self._cached for word in words))

    def search(
        self, connection: IndexConnection, words: Sequence[str], limit: int, allowed: Collection[int] | None = None
    ) -> list[tuple[int, float]]:
        """Return (chunk_id, bm25) of chunks that have any of `words`, of those in `allowed` if it is given, best first,
        as `fulltext.search` does. In a large index chunks that have only frequent words may be missing.
        """
        if not words:
            return []
        if words is not self._last:  # one question may be asked in two scopes
            self._asked += 1
            self._last = words
        if self._asked == 1 and connection.words.count() <= MANY:  # a process with one question reads each word once
            return search(connection, match_any(words), limit, allowed)
        import numpy as np

        if not self._moment.is_of(connection):  # another index, or another state of it
            self._moment.move_to(connection)
            self._total, self._size = connection.words.count(), 0
            self._cached.clear()
            self._counts.clear()
        seen = None if allowed is None else np.fromiter(allowed, np.int64, len(allowed))
        read, others = (words, ()) if self._total <= MANY else self._split(connection, words, limit, seen)
        found = [self._of(connection, word) for word in read]
        if not any(len(ids) for ids, _ in found):
            return []
        scores = np.zeros(1 + max(int(ids[-1]) for ids, _ in found if len(ids)))
        for ids, of_word in found:
            scores[ids] += of_word
        if others:
            ranked, of_all = connection.words.list_matches(match_any(read), match_any(others))
            scores[ranked] = of_all
        if seen is None:
            ids = np.flatnonzero(scores)
        else:
            seen = seen[seen < len(scores)]
            ids = np.sort(seen[scores[seen] > 0])
        scores = scores[ids]
        return list_best(ids, scores, limit)

    def count_matches(
        self, connection: IndexConnection, words: Sequence[str], allowed: Collection[int] | None = None
    ) -> Mapping[str, int]:
        """Return what `fulltext.count_matches` does."""
        if allowed is None and self._moment.is_of(connection) and self._cached.keys() >= {*words}:
            return {word: len(self._cached[word][0]) for word in words}
        return count_matches(connection, words, allowed)

    def _split(
        self, connection: IndexConnection, words: Sequence[str], limit: int, seen: "npt.NDArray[np.int64] | None"
    ) -> tuple[Sequence[str], Sequence[str]]:
        """Return the words to read and those that rank what they find: the rarest first, until `MAX_READ` chunks are
        read and `limit` of those in `seen` (None for all) are found.
        """
        import numpy as np

        if unknown := [word for word in words if word not in self._counts]:
            self._counts |= count_matches(connection, unknown)
        by_count = sorted(words, key=self._counts.__getitem__)
        size = found = 0
        for place, word in enumerate(by_count):
            size += self._counts[word]
            if size > MAX_READ and found >= limit:
                return by_count[:place], by_count[place:]
            ids, _ = self._of(connection, word)
            found += len(ids) if seen is None else int(np.isin(ids, seen).sum())
        return by_count, ()

    def _of(self, connection: IndexConnection, word: str) -> tuple[Any, Any]:
        import numpy as np

        if word in self._cached:
            self._cached.move_to_end(word)
            return self._cached[word]
        ids, scores = connection.words.list_matches(match_any([word]))
        found = self._cached[word] = np.array(ids, np.int64), np.array(scores, np.float64)
        self._size += len(ids)
        while self._size > MAX_CACHED_CHUNKS and len(self._cached) > 1:
            self._size -= len(self._cached.popitem(last=False)[1][0])
        return found
