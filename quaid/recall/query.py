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
from quaid.text.dates import DateMention, find_dates
from quaid.text.invisible import whole
from quaid.text.language import ENGLISH, language
from quaid.text.stop_words import stop_words
from quaid.text.words import fold, list_joined_parts, list_words

MAX_NAME_WORDS = 4
"""Words in the longest run that is looked up as a name."""
MAX_PHRASES = 8
MAX_PHRASE = 200
"""Characters of a quoted phrase."""
ALL_STAGES = frozenset({"metadata", "owner", "intent", "dates", "phrases"})

_JOINT = "['.&-]"
"""What stands within a name."""
_POSSESSIVE = re.compile(r"['’]s?$")  # noqa: RUF001 - people type both apostrophes
_OWNER = frozenset("i i'd i'll i'm i've me mine my myself our ours ourselves us we we're we've".split())  # noqa: SIM905
_OWNER_AS_SUBJECT = frozenset("i i'd i'll i'm i've we we're we've".split())  # noqa: SIM905
_MARKS = frozenset("\"'“„«‘「『《")  # noqa: RUF001 - people type all of these

# Compiled when a question has a mark: `re` keeps what it has compiled, and most questions have none. An inch sign
# follows its number and an apostrophe its letter, so neither opens. No inner part may hold an opening mark, else a row
# of unclosed ones would be read to its end again and again.
_QUOTED = r"""(?xi)
      (?<![^\W_])(?<!")"(?P<straight>[^\s"][^"\n]*)"(?![^\W_])
    | “(?P<curly>[^“”"\n]+)[”"]
    | „(?P<low>[^„“”\n]+)[“”]
    | «(?P<angle>[^«»\n]+)»
    | 「(?P<corner>[^「」\n]+)」
    | 『(?P<white>[^『』\n]+)』
    | 《(?P<title>[^《》\n]+)》
    | (?<!\w)['‘](?!(?:tis|twas|til|em|cause|n|bout|round|\d\ds?)\b)
      (?: (?<=‘)(?P<single>[^‘\n]*?[^‘\s])’(?!\w)
        | (?<=')(?P<typed>[^\W_](?:[^'\n]|(?<=\w)'(?=\w))*?(?<!\s))'(?![\w'])
      )
"""  # noqa: RUF001
_WIKILINK = r"\[\[([^\[\]|#^\n]+)[^\[\]\n]*\]\]"


@dataclass(frozen=True, slots=True)
class Query:
    """A question as the channels search for it.

    `words` are for the keyword channel; `name_keys` are all runs of words that could be a name, longest first;
    `owner_keys` are the names of the owner where the question says `my`; it is about the owner where it says `I`.
    `language` is None where nothing tells.
    """

    text: str
    words: tuple[str, ...]
    name_keys: tuple[str, ...]
    owner_keys: tuple[str, ...] = ()
    is_about_owner: bool = False
    intent: Intent = Intent.GENERAL
    dates: tuple[DateMention, ...] = ()
    phrases: tuple[str, ...] = ()
    language: str | None = None


def parse(text: str, now: datetime, owner_names: Collection[str] = (), stages: Collection[str] = ALL_STAGES) -> Query:
    """Read a question, `now` being the asker's clock. Any text is a question; an empty one finds nothing."""
    text = whole(text)
    if "metadata" in stages:
        text = strip_metadata(text)
    spoken = text.replace("’", "'")  # noqa: RUF001
    tokens = list_words(spoken, _JOINT)
    spoken_in = language(text)
    # Only of English is known what means the owner: to read Spanish `me` and not `mi` or `aprendí` would be unfair.
    knows_owner = "owner" in stages and spoken_in in ENGLISH
    spoken_words = {token.lower() for token in tokens} if knows_owner else set()
    says_my = not _OWNER.isdisjoint(spoken_words)
    phrases = find_phrases(text) if "phrases" in stages else ()
    # The words of a phrase say more together: those of English do for themselves, pairs of letters do not.
    together = [fulltext.as_phrase(phrase) for phrase in phrases if not phrase.isascii()]
    return Query(
        text.strip(),
        tuple(dict.fromkeys([*fulltext.terms(text, spoken_in), *together])),
        _name_keys(text, [_POSSESSIVE.sub("", token) for token in tokens], spoken_in),
        tuple(dict.fromkeys(name_key(name) for name in owner_names if name)) if says_my else (),
        not _OWNER_AS_SUBJECT.isdisjoint(spoken_words),
        classify(text) if "intent" in stages else Intent.GENERAL,
        find_dates(text, now) if "dates" in stages else (),
        phrases,
        spoken_in,
    )


def list_shared_words(query: Query) -> tuple[str, ...]:
    """Return the words of a question that mean the same in a text of another language: names, as far as a capital
    tells them, numbers, and words of another script than the question's own.
    """
    written = [token for token in list_words(fold(query.text)) if not token.islower()]
    capitalised = {token.lower() for token in written}
    letters = [letter.isascii() for letter in query.text if letter.isalpha()]
    is_latin = 2 * sum(letters) > len(letters)
    return tuple(
        word for word in query.words if word in capitalised or word.upper() == word or (word.isascii() and not is_latin)
    )


def find_phrases(text: str) -> tuple[str, ...]:
    """Return the quoted phrases of `text` in their order, once each, without their marks.

    `"…"`, `“…”`, `„…“`, `«…»`, `「…」`, `『…』`, `《…》` and, only where no apostrophe can be meant, `'…'` and `‘…’`.
    """  # noqa: RUF002
    if _MARKS.isdisjoint(text):
        return ()
    found = (match[match.lastgroup or 0] for match in re.finditer(_QUOTED, text))
    phrases = dict.fromkeys(" ".join(phrase.split()).strip(" ,.;:!?") for phrase in found)
    return tuple(p for p in phrases if len(p) <= MAX_PHRASE and sum(map(str.isalnum, p)) > 1)[:MAX_PHRASES]


def find_names(text: str) -> tuple[str, ...]:
    """Return the targets of the wikilinks in `text`: `Maya Chen` of `[[entities/Maya Chen.md#Job|her]]`."""
    if "[[" not in text:
        return ()
    targets = (match[1].strip().rsplit("/", 1)[-1] for match in re.finditer(_WIKILINK, text))
    names = (" ".join(target.removesuffix(".md").split()) for target in targets)
    return tuple(dict.fromkeys(name for name in names if name))[:MAX_PHRASES]


def _name_keys(text: str, tokens: list[str], spoken_in: str | None) -> tuple[str, ...]:
    whole = name_key(text.strip(" ?!."))
    if not whole:
        return ()
    runs = (
        name_key(" ".join(tokens[start : start + length]))
        for length in range(MAX_NAME_WORDS, 0, -1)
        for start in range(len(tokens) - length + 1)
    )
    dropped = stop_words(spoken_in or "en")
    keys = (key for key in runs if len(key) > 1 and key not in dropped)
    linked = (name_key(name) for name in find_names(text))
    within = (name_key(part) for part in list_joined_parts(text))
    return tuple(dict.fromkeys([whole, *linked, *keys, *within]))
