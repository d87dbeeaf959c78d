"""When the answer is in doubt: the question asked once more, more broadly, by names and key terms.

A word that the vault does not have may be a slip of one that it has; a name may be part of a longer one. Neither is
tried while the question as asked is answered well: broader is vaguer.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from quaid.index import fulltext, graph
from quaid.index.scope import Scope
from quaid.recall.query import Query

if TYPE_CHECKING:
    import apsw

LEAST_ALIKE = 0.75
"""Ratio of `difflib` from which a word may be a slip of another: one letter of five."""
LEAST_ALIKE_STEM = 0.6
MOST_STEMS = 20
MOST_MEANT = 3
SHORTEST_SLIP = 4


@dataclass(frozen=True, slots=True)
class Broader:
    """What else a question may mean: words of the vault for words it does not have, and entities by part of a name."""

    words: tuple[str, ...] = ()
    named: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.words or self.named)


def broaden(
    connection: apsw.Connection,
    query: Query,
    named: Collection[str],
    scope: Scope,
    allowed: Collection[int] | None = None,
) -> Broader:
    """Look for slips among the words and for names that the words are a part of, in `scope`, whose chunks are
    `allowed` (None for all).
    """
    unknown = [word for word in query.words if not _is_known(connection, word, allowed)]
    words = dict.fromkeys(near for word in unknown for near in _nearest(connection, word, allowed))
    parts = [*_capitalised(query), *unknown, *words]
    found = graph.find_similar_names(connection, parts, scope) if parts else set()
    return Broader(tuple(words), frozenset(found) - frozenset(named))


def _is_known(connection: apsw.Connection, word: str, allowed: Collection[int] | None) -> bool:
    return bool(fulltext.search(connection, fulltext.match_any([word]), 1, allowed))


def _nearest(connection: apsw.Connection, word: str, allowed: Collection[int] | None) -> list[str]:
    """Words that chunks in `allowed` have: what only others' notes have is not even hinted at."""
    if len(word) < SHORTEST_SLIP or not word.isalpha():
        return []
    from difflib import get_close_matches

    # By their stems first, for there is no list of the words as they are written.
    stems = get_close_matches(word, fulltext.list_stems(connection, word), n=MOST_STEMS, cutoff=LEAST_ALIKE_STEM)
    written = {other for stem in stems for other in fulltext.list_words(connection, stem, allowed)}
    return get_close_matches(word, sorted(written), n=MOST_MEANT, cutoff=LEAST_ALIKE)


def _capitalised(query: Query) -> list[str]:
    """Words that look like names: written with a capital, not only because the sentence begins with them."""
    tokens = query.text.split()
    written = {token.strip("?!.,;:'\"()").removesuffix("'s") for token in tokens[1:]}
    names = {token.lower() for token in written if token[:1].isupper()}
    return [word for word in query.words if word in names]
