"""A question -> what the channels look for."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from quaid.index import fulltext
from quaid.model import name_key
from quaid.recall.intent import Intent, classify
from quaid.recall.metadata import strip_metadata
from quaid.recall.phrases import find_names, find_phrases
from quaid.text.dates import DateMention, find_dates
from quaid.text.stop_words import STOP_WORDS

LONGEST_NAME = 4
"""Words in the longest run that is looked up as a name."""
ALL_STAGES = frozenset({"metadata", "owner", "intent", "dates", "phrases"})

_WORD = re.compile(r"[^\W_]+(?:['.&-][^\W_]+)*", re.UNICODE)
_POSSESSIVE = re.compile(r"['’]s?$")  # noqa: RUF001 - people type both apostrophes
_OWNER = frozenset("i i'd i'll i'm i've me mine my myself our ours ourselves us we we're we've".split())  # noqa: SIM905


@dataclass(frozen=True, slots=True)
class Query:
    """What a question asks for.

    `words` are for the keyword channel; `name_keys` are all runs of words that could be a name, longest first;
    `owner_keys` are the names of the owner where the question says `my`.
    """

    text: str
    words: tuple[str, ...]
    name_keys: tuple[str, ...]
    owner_keys: tuple[str, ...] = ()
    intent: Intent = Intent.GENERAL
    dates: tuple[DateMention, ...] = ()
    phrases: tuple[str, ...] = ()


def parse(text: str, now: datetime, owner_names: Collection[str] = (), stages: Collection[str] = ALL_STAGES) -> Query:
    """Read a question, `now` being the asker's clock. Any text is a question; an empty one finds nothing."""
    text = text.encode("utf-8", "replace").decode()  # half a character, as a shell can pass one, is no text for SQLite
    if "metadata" in stages:
        text = strip_metadata(text)
    spoken = text.replace("’", "'")  # noqa: RUF001
    tokens = _WORD.findall(spoken)
    says_my = "owner" in stages and not _OWNER.isdisjoint(token.lower() for token in tokens)
    return Query(
        text.strip(),
        tuple(fulltext.terms(text)),
        _name_keys(text, [_POSSESSIVE.sub("", token) for token in tokens]),
        tuple(dict.fromkeys(name_key(name) for name in owner_names if name)) if says_my else (),
        classify(text) if "intent" in stages else Intent.GENERAL,
        find_dates(text, now) if "dates" in stages else (),
        find_phrases(text) if "phrases" in stages else (),
    )


def _name_keys(text: str, tokens: list[str]) -> tuple[str, ...]:
    whole = name_key(text.strip(" ?!."))
    if not whole:
        return ()
    runs = (
        name_key(" ".join(tokens[start : start + length]))
        for length in range(LONGEST_NAME, 0, -1)
        for start in range(len(tokens) - length + 1)
    )
    keys = (key for key in runs if len(key) > 1 and key not in STOP_WORDS)
    linked = (name_key(name) for name in find_names(text))
    return tuple(dict.fromkeys([whole, *linked, *keys]))
