"""The words that a wallet is restored with: twelve or more of the 2,048 of BIP-39, in a row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby
from pathlib import Path

from quaid.redaction.secret_values import Span

MIN_WORDS = 12
MIN_DISTINCT = 8
"""Words of a phrase are drawn by chance: one that says the same again and again is prose."""
# Words of three to eight letters, numbered or not, in rows of any form.
_ROW = re.compile(
    r"(?<![^\W_])(?:\d{1,2}[.):]?[ \t]*)?[A-Za-z]{3,8}(?:[\s,;|]{1,6}(?:[>*-][ \t]*)?(?:\d{1,2}[.):]?[ \t]*)?[A-Za-z]{3,8}){11,}"
)
_WORD = re.compile(r"[A-Za-z]+")
_NAMED = re.compile(
    r"(?<![a-z])(?:(?:pass|seed|recovery|backup|secret)[ _-]?phrase|mnemonic)(?:\s+(?:is|was)|\s?[:=])\s{1,3}"
    r"(?P<words>[^\W\d_]{2,16}(?:[ -][^\W\d_]{2,16}){2,24})(?=[.!]?\s*(?:\n|\Z))",
    re.IGNORECASE,
)
_IN_SENTENCES = re.compile(
    r"(?<![a-z])(?:the|is|was|are|an?|to|of|in|on|my|your|it|not|be|been|for|with|and|or|that)(?![a-z])", re.IGNORECASE
)


def find_phrases(text: str) -> Iterator[Span]:
    """Phrases that open a wallet or a key: by their words, or assigned to their name."""
    for row in _ROW.finditer(text):
        for is_known, run in groupby(_WORD.finditer(row[0]), lambda word: word[0].lower() in _words()):
            words = list(run)
            if is_known and len(words) >= MIN_WORDS and len({word[0].lower() for word in words}) >= MIN_DISTINCT:
                yield Span(row.start() + words[0].start(), row.start() + words[-1].end(), "seed-phrase")
    lowered = text.lower()
    if "phrase" in lowered or "mnemonic" in lowered:
        for named in _NAMED.finditer(text):
            if not _IN_SENTENCES.search(named["words"]):
                yield Span(*named.span("words"), "passphrase")


@lru_cache(maxsize=1)
def _words() -> frozenset[str]:
    return frozenset(Path(__file__).with_name("bip39.txt").read_text("ascii").split())
