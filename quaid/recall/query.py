"""A question -> what the channels look for."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime

from quaid.index import fulltext, graph
from quaid.index.port import IndexConnection
from quaid.index.scope import Scope
from quaid.model import name_key
from quaid.recall.intent import CONTRACTIONS, REQUEST, Intent, classify
from quaid.text.dates import DateMention, find_dates
from quaid.text.host_blocks import without_host_blocks
from quaid.text.invisible import whole
from quaid.text.language import ENGLISH, language
from quaid.text.stop_words import stop_words
from quaid.text.words import fold, list_joined_parts, list_words

_SIGNS = ("[", "<", "(untrusted", "⟦", "Current time:")

# Compiled at the first message that has a sign; `re` keeps what it has compiled.
_SPANS = (
    "quaid-memory|system-reminder|active_memory_plugin|relevant-memories|task-notification|local-command-stdout"
    "|local-command-caveat|command-name|command-message|ide_opened_file|ide_selection"
)
_TAG = rf"(?i)<(?P<closes>/?)(?P<name>{_SPANS}|channel|command-args)(?![\w-])(?P<attributes>[^<>]*)>"
_CHANNELS = (
    "BlueBubbles|Channel|Discord|Email|Feishu|Gmail|Google ?Chat|IRC|LINE|Matrix|Mattermost|MS ?Teams|Nextcloud"
    "|Nostr|Signal|Slack|SMS|Teams|Telegram|Tlon|Twitch|WebChat|WeChat|WhatsApp|Zalo|iMessage"
)
_STAMP = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2})?"
_ZONE = r"(?:Z| ?(?:[A-Z]{2,5}(?:[+-][0-9:]{1,5})?|[+-][0-9]{2}:?[0-9]{2}))"
_OF_A_MACHINE = rf"(?:\bid:|\(@| \+[0-9]|\b[0-9]{{1,2}}:[0-9]{{2}}\b|{_STAMP})"
_ENVELOPE = (
    r"\A(?:\s*\[(?:"
    rf"(?:{_CHANNELS}) [^\[\]\n]{{0,300}}?{_OF_A_MACHINE}[^\[\]\n]{{0,200}}"
    rf"|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{{0,6}} {_STAMP}{_ZONE}?"
    rf"|[^\W\d_][^\[\]\n]{{0,200}} {_STAMP}{_ZONE}"
    rf"|{_STAMP}{_ZONE}"
    r"|cron:[^\[\]\n]{0,300}"
    r"|Forwarded from [^\[\]\n]{0,300}"
    r")\][ \t]*)+"
)
_BLOCKS = (
    r"(?m)^[ \t]*\[MEMORY\].*(?:\n[ \t]+\S.*)*\n?",
    r"(?m)^[ \t]*\[Replying to [^\]\n]*\]\n(?:(?!^[ \t]*\[Replying to ).*\n)*?[ \t]*\[/Replying\][ \t]*\n?",
    r"(?m)^[^\n]{1,80}(?:\(untrusted[^()\n]*\):|⟦openclaw:ctx⟧)[ \t]*\n```\w*\n(?:(?!```).*\n)*?```[ \t]*\n?",
    r"(?m)^[^\n]{1,80}⟦openclaw:ctx⟧[ \t]*\n(?!```)(?:[^\n]+\n)*",
    r"(?mi)^[ \t]*\[(?:message_id:|media attached\b|Image: source:)[^\n]*\][ \t]*\n?",
    rf"(?m)^[ \t]*System:[ ]\[{_STAMP}[^\]\n]{{0,20}}\][^\n]*\n?",
    r"(?m)^To send an image back, prefer the message tool[^\n]*\n?",
    r"(?m)^Current time: \w+day, [^\n]{0,80}[0-9]{4}[^\n]*\n?",
)
_CURRENT_MESSAGE = r"(?m)^(?:\[Current message - respond to this\][ \t]*)+\n?"
_MAX_PASSES = 8


def strip_metadata(text: str) -> str:
    """Return `text` as it was typed; all of it where it has no metadata or nothing else. Idempotent."""
    if not any(sign in text for sign in _SIGNS):
        return text
    stripped = text
    for _ in range(_MAX_PASSES):  # taking one out can uncover another
        before = stripped
        if "<" in stripped:
            stripped = without_host_blocks(stripped)
            pieces, position = [], 0
            for start, end in sorted(_tag_spans(stripped)):
                pieces.append(stripped[position : max(position, start)])
                position = max(position, end)
            stripped = "".join([*pieces, stripped[position:]])
        for block in _BLOCKS:
            stripped = re.sub(block, "", stripped)
        stripped = re.split(_CURRENT_MESSAGE, stripped)[-1]
        stripped = re.sub(_ENVELOPE, "", stripped)
        if stripped != before:
            stripped = stripped.strip()
        if stripped == before:
            return stripped if stripped.strip() else text
    return text  # no host nests so deep: somebody plays


def _tag_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield what is left out with tags: all between a pair, but of a pair that wraps the message only the tags."""
    opened: dict[str, list[re.Match[str]]] = {}
    for tag in re.finditer(_TAG, text):
        name = tag["name"].lower()
        if not tag["closes"]:
            opened.setdefault(name, []).append(tag)
        elif opened.get(name):
            opening = opened[name].pop()
            if name == "command-args" or (name == "channel" and opening["attributes"].strip()):
                yield opening.span()
                yield tag.span()
            else:
                yield opening.start(), tag.end()
    end = 0
    for opening in opened.get("quaid-memory", []):
        # Cut off by its host's limit: the rest of the paragraph is memory, as capture has it.
        if opening.start() >= end:
            end = text.find("\n\n", opening.end())
            end = len(text) if end < 0 else end
            yield opening.start(), end


MAX_NAME_WORDS = 4
"""Words in the longest run that is looked up as a name."""
MAX_PHRASES = 8
MAX_PHRASE = 200
"""Characters of a quoted phrase."""

_JOINT = "['.&-]"
"""The characters between the parts of a name."""
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


def parse(text: str, now: datetime, owner_names: Collection[str] = ()) -> Query:
    """Read a question, `now` is the caller's clock. Any text is a question; an empty one finds nothing."""
    text = strip_metadata(whole(text))
    spoken = text.replace("’", "'")  # noqa: RUF001
    tokens = list_words(spoken, _JOINT)
    spoken_in = language(text)
    # Only of English is known what means the owner: to read Spanish `me` and not `mi` or `aprendí` would be unfair.
    knows_owner = spoken_in in ENGLISH
    spoken_words = {token.lower() for token in tokens} if knows_owner else set()
    says_my = not _OWNER.isdisjoint(spoken_words)
    phrases = find_phrases(text)
    keys: list[str] = []
    if own_key := name_key(text.strip(" ?!.")):
        bare = [_POSSESSIVE.sub("", token) for token in tokens]
        lengths = range(MAX_NAME_WORDS, 0, -1)
        spans = ((start, start + length) for length in lengths for start in range(len(bare) - length + 1))
        runs = [name_key(" ".join(bare[start:end])) for start, end in spans]
        dropped = stop_words(spoken_in or "en")
        linked = map(name_key, find_names(text))
        within = map(name_key, list_joined_parts(text))
        keys = [own_key, *linked, *(key for key in runs if len(key) > 1 and key not in dropped), *within]
    words = fulltext.terms(text, spoken_in)
    if knows_owner:
        # Who asks for himself asks an assistant. Of others it may matter what they mentioned.
        is_request = says_my or "you" in spoken_words
        dropped = CONTRACTIONS | REQUEST if is_request else CONTRACTIONS
        words = [word for word in words if word not in dropped] or words
    stems = [] if knows_owner else fulltext.beginnings(words, spoken_in)
    # The words of a phrase say more together: those of English do for themselves, pairs of letters do not.
    together = [fulltext.as_phrase(phrase) for phrase in phrases if not phrase.isascii()]
    return Query(
        text.strip(),
        tuple(dict.fromkeys([*words, *together, *stems])),
        tuple(dict.fromkeys(keys)),
        tuple(dict.fromkeys(name_key(name) for name in owner_names if name)) if says_my else (),
        not _OWNER_AS_SUBJECT.isdisjoint(spoken_words),
        classify(text),
        find_dates(text, now),
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

    `"…"`, `“…”`, `„…“`, `«…»`, `「…」`, `『…』`, `《…》` and, only where it cannot be an apostrophe, `'…'` and `‘…’`.
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


MIN_RATIO = 0.75
"""Ratio of `difflib` from which a word may be a slip of another: one letter of five."""
MIN_STEM_RATIO = 0.6
MAX_STEMS = 20
MAX_CORRECTIONS = 3
MIN_MISSPELT = 4


def expand(
    connection: IndexConnection,
    query: Query,
    named: Collection[str],
    scope: Scope,
    allowed: Collection[int] | None = None,
) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return words of the vault that a question may mean by words it does not have, and entities by part of a name; of
    the chunks `allowed` (None for all) in `scope`.
    """
    unknown = [word for word, count in fulltext.count_matches(connection, query.words, allowed).items() if not count]
    words: dict[str, None] = {}
    for word in unknown:
        if len(word) < MIN_MISSPELT or not word.isalpha():
            continue
        from difflib import get_close_matches

        # By their stems first, as there is no list of the words as they are written. What only others' notes have is
        # not even hinted at.
        stems = get_close_matches(word, fulltext.list_stems(connection, word), n=MAX_STEMS, cutoff=MIN_STEM_RATIO)
        known = {other for stem in stems for other in fulltext.list_words(connection, stem, allowed)}
        words |= dict.fromkeys(get_close_matches(word, sorted(known), n=MAX_CORRECTIONS, cutoff=MIN_RATIO))
    # Words that look like names: written with a capital, not only because the sentence begins with them.
    written = {token.strip("?!.,;:'\"()").removesuffix("'s") for token in query.text.split()[1:]}
    capitalised = {token.lower() for token in written if token[:1].isupper()}
    parts = [*(word for word in query.words if word in capitalised), *unknown, *words]
    found = graph.find_similar_names(connection, parts, scope) if parts else set()
    return tuple(words), frozenset(found) - frozenset(named)
