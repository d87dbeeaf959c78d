"""Words as FTS5 takes a text apart, for an engine that keeps them itself."""

from __future__ import annotations

from functools import cache

import apsw

_OPTIONS = ["unicode61", "remove_diacritics", "2", "categories", "L* N* Co M* So"]
"""What `tokenize` says in schema.sql, behind porter."""


def tokenize(text: str) -> list[str]:
    """Return the stems of `text` in their order."""
    encoded = text.encode("utf-8", "replace")
    found = _tokenizer()(encoded, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False)
    return [str(stem) for stem in found]


@cache
def _tokenizer() -> apsw.FTS5Tokenizer:
    return apsw.Connection(":memory:").fts5_tokenizer("porter", _OPTIONS)
