"""Words that say nothing about what a text is about, by language: stop_words.txt. A hook reads them without SQLite.

Closed classes only: articles, pronouns, prepositions, conjunctions, auxiliaries, question words; of Chinese and
Japanese as they are searched, in letters and pairs of letters. A stop word of one language is content in another
(`die`, `war`, `no`), so `language.py` decides first which list applies.
"""

import re
from functools import cache
from pathlib import Path


def read_lists(file_name: str) -> dict[str, str]:
    """Return the lists of a file in this folder by their names; a line `[name]` begins each."""
    text = Path(__file__).with_name(file_name).read_text("utf-8")
    return dict(re.findall(r"^\[(\w+)\]\n([^\[]*)", text, re.MULTILINE))


_LISTS = read_lists("stop_words.txt")
STOP_WORDS = frozenset(_LISTS["en"].split())
"""Those of English."""


def known_languages() -> tuple[str, ...]:
    """Return the languages whose stop words are known, as ISO 639-1 codes."""
    return tuple(_LISTS)


@cache
def stop_words(language: str | None) -> frozenset[str]:
    """Return the stop words of a language, in lower case; of an unknown one none."""
    return frozenset(_LISTS.get(language or "", "").split())
