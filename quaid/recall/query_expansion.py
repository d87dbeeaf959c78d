"""Query expansion, for when the answer is in doubt: names and key terms that the question may mean.

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
    from quaid.index.port import IndexConnection

MIN_RATIO = 0.75
"""Ratio of `difflib` from which a word may be a slip of another: one letter of five."""
MIN_STEM_RATIO = 0.6
MAX_STEMS = 20
MAX_MEANT = 3
MIN_MISSPELT = 4


@dataclass(frozen=True, slots=True)
class Expansion:
    """Words of the vault that a question may mean by words it does not have, and entities by part of a name."""

    words: tuple[str, ...] = ()
    named: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.words or self.named)


def expand(
    connection: IndexConnection,
    query: Query,
    named: Collection[str],
    scope: Scope,
    allowed: Collection[int] | None = None,
) -> Expansion:
    """Look for misspelt words and for names that the words are a part of, in `scope`, whose chunks are `allowed` (None
    for all).
    """
    unknown = [word for word in query.words if not fulltext.search(connection, fulltext.match_any([word]), 1, allowed)]
    words = dict.fromkeys(near for word in unknown for near in _nearest(connection, word, allowed))
    # Words that look like names: written with a capital, not only because the sentence begins with them.
    written = {token.strip("?!.,;:'\"()").removesuffix("'s") for token in query.text.split()[1:]}
    capitalised = {token.lower() for token in written if token[:1].isupper()}
    parts = [*(word for word in query.words if word in capitalised), *unknown, *words]
    found = graph.find_similar_names(connection, parts, scope) if parts else set()
    return Expansion(tuple(words), frozenset(found) - frozenset(named))


def _nearest(connection: IndexConnection, word: str, allowed: Collection[int] | None) -> list[str]:
    """Return words that chunks in `allowed` have: what only others' notes have is not even hinted at."""
    if len(word) < MIN_MISSPELT or not word.isalpha():
        return []
    from difflib import get_close_matches

    # By their stems first, as there is no list of the words as they are written.
    stems = get_close_matches(word, fulltext.list_stems(connection, word), n=MAX_STEMS, cutoff=MIN_STEM_RATIO)
    written = {other for stem in stems for other in fulltext.list_words(connection, stem, allowed)}
    return get_close_matches(word, sorted(written), n=MAX_MEANT, cutoff=MIN_RATIO)
