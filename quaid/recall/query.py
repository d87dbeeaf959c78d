"""A question -> what the channels look for."""

from __future__ import annotations

import re
from dataclasses import dataclass

from quaid.index import fulltext
from quaid.model import name_key

LONGEST_NAME = 4
"""Words in the longest run that is looked up as a name."""

_WORD = re.compile(r"[^\W_]+(?:['.&-][^\W_]+)*", re.UNICODE)
_POSSESSIVE = re.compile(r"['’]s?$")  # noqa: RUF001 - people type both apostrophes


@dataclass(frozen=True, slots=True)
class Query:
    """`words` for the keyword channel; `name_keys` are all runs of words that could be a name, longest first."""

    text: str
    words: tuple[str, ...]
    name_keys: tuple[str, ...]


def parse(text: str) -> Query:
    """Read a question. Any text is a question; an empty one finds nothing."""
    text = text.encode("utf-8", "replace").decode()  # half a character, as a shell can pass one, is no text for SQLite
    tokens = [_POSSESSIVE.sub("", word) for word in _WORD.findall(text.replace("’", "'"))]  # noqa: RUF001
    runs = (
        name_key(" ".join(tokens[start : start + length]))
        for length in range(LONGEST_NAME, 0, -1)
        for start in range(len(tokens) - length + 1)
    )
    keys = dict.fromkeys(key for key in runs if len(key) > 1 and key not in fulltext.STOP_WORDS)
    whole = name_key(text.strip(" ?!."))
    return Query(text.strip(), tuple(fulltext.terms(text)), tuple(dict.fromkeys([whole, *keys])) if whole else ())
