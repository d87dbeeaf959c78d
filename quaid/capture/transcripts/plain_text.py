"""Chat logs as people paste them: `Name: what was said`, with or without times, over one line or many.

Any colon could begin a turn, and most do not: `Note: …` and `https://…` stand inside what somebody says. So the
whole text is looked at first, to see how this log marks its speakers: with a time before each, with a blank line
before each, or with the name alone. Names that come again, and the first one, count for more than a single word
with a colon.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from quaid.capture.cleaning import clean_name, clean_text
from quaid.capture.transcripts.lines import is_json
from quaid.capture.transcripts.timestamps import parse_timestamp
from quaid.model import Conversation, Turn

NAME = 'plain text with "Name: what was said"'

_DATE = r"(?:[0-9]{4}[-/.][0-9]{1,2}[-/.][0-9]{1,2}|[0-9]{1,2}[-/.][0-9]{1,2}[-/.][0-9]{2,4})"
_CLOCK = r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,6})?)?(?:\s?[aApP]\.?[mM]\.?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?"
_TIME = rf"(?:{_DATE}(?:(?:T|,?\s){_CLOCK})?|{_CLOCK})"
_NAME = r"[^\W\d_][^\n:：*<>\[\](){}|\"`/\\=;!?,]{0,39}?"  # noqa: RUF001
_SPEAKER_LINE = re.compile(
    rf"(?P<before>(?:\[{_TIME}\]|\({_TIME}\)|{_TIME})\s?[-\u2013\u2014,]?\s?)?"
    rf"(?P<bold>\*\*)?<?(?P<name>{_NAME})>?(?:\*\*)?"
    rf"(?:,?\s?(?P<after>[\[(]{_TIME}[\])]))?"
    rf"(?:(?P<colon>:)(?:\*\*)?(?:\s+(?P<text>.*))?|：(?:\*\*)?\s*(?P<wide>.*))"  # noqa: RUF001
)
_COLON = re.compile("[:：]")  # noqa: RUF001
_FENCE = re.compile(r" {0,3}(?:```|~~~)")
_WORD = r"[^\W\d_a-z][\w\u0300-\u036f\u0591-\u065f\u0900-\u109f\u1780-\u17ff'\u2019.-]*"  # with marks
_CAPITALISED = re.compile(rf"{_WORD}(?: (?:(?:de|van|von|der|la|di|da|al) )*{_WORD}){{0,3}}")

_ASSISTANTS = frozenset({"assistant", "ai", "bot", "agent", "claude", "chatgpt", "gpt", "gemini", "copilot", "model"})
_PEOPLE = frozenset({"user", "human", "me", "you", "customer"})
_NOT_SAID = frozenset({"system", "tool"})
_LABELS = frozenset(
    """
    action actions addendum address agenda answer attachment attendees author bcc bug caution cc caveat conclusion
    context cons cost date deadline decision default description details disclaimer due edit email error example
    expected file fix fixed from fyi goal header hint http https idea important info ingredients input issue
    language lesson line link list location maybe meeting message name nb next note notes observation option options
    output owner password participants people phone plan price problem pros ps p.s question re reason reference
    references remember reminder result results see sent source sources status step steps subject summary task tasks
    then time tip title tldr tl;dr to todo total traceback type update url usage username version warning when where
    why
    """.split()  # noqa: SIM905 - a word list reads best as words
)
_REPLACED = frozenset("\ufffd") | {chr(code) for code in range(32) if chr(code) not in "\t\n\r\f\v\0\x1b"}


@dataclass(frozen=True, slots=True)
class _Opening:
    """A line that may begin a turn."""

    line: int
    name: str
    text: str
    has_time: bool
    at: datetime | None
    after_blank: bool
    is_wide: bool = False
    """Its colon is as wide as a Chinese letter: what stands before it is as often a label."""

    @property
    def key(self) -> str:
        return self.name.casefold()

    @property
    def is_known(self) -> bool:
        return self.key in _ASSISTANTS or self.key in _PEOPLE or self.key in _NOT_SAID

    @property
    def may_be_name(self) -> bool:
        words = self.key.split()
        return not _LABELS.intersection(words) and (_CAPITALISED.fullmatch(self.name) is not None or len(words) == 1)

    @property
    def reads_as_name(self) -> bool:
        return _CAPITALISED.fullmatch(self.name) is not None and bool(self.text) and not self.text[0].isdigit()


def recognises(head: Sequence[str]) -> bool:
    """Return True for text that is not JSON."""
    sample = "\n".join(line[:2000] for line in head)
    strange = sum(character in _REPLACED for character in sample)
    return not is_json(head) and strange * 10 <= len(sample)


def read(lines: Iterator[str], skipped: Counter[str]) -> Iterator[Conversation]:
    """One conversation, the turns of a chat log; a text that names no speakers is one turn of "User"."""
    said = "\n".join(lines).replace("\0", "").replace("\r", "\n").lstrip("\n").split("\n")
    openings = _choose(_find_openings(said))
    ends = [opening.line for opening in openings] + [len(said)]
    preamble = clean_text("\n".join(said[: ends[0]]))
    turns = [Turn("User", preamble)] if preamble else []
    for opening, end in zip(openings, ends[1:], strict=True):
        text = clean_text("\n".join([opening.text, *said[opening.line + 1 : end]]))
        if opening.key in _NOT_SAID:
            skipped["system or tool"] += 1
        elif not text:
            skipped["empty"] += 1
        else:
            role = "assistant" if opening.key in _ASSISTANTS else "user"
            turns.append(Turn(opening.name, text, role, opening.at))
    yield Conversation(tuple(turns), source="text", started=next((turn.at for turn in turns if turn.at), None))


def _find_openings(said: Sequence[str]) -> list[_Opening]:
    fences = [number for number, line in enumerate(said) if _FENCE.match(line)]
    # A fence without a partner fences nothing in: zip drops it.
    pairs = zip(fences[::2], fences[1::2], strict=False)
    fenced = {number for start, end in pairs for number in range(start, end + 1)}
    found = []
    for number, line in enumerate(said):
        match = _SPEAKER_LINE.fullmatch(line.rstrip()) if number not in fenced and _COLON.search(line[:120]) else None
        if match is None:
            continue
        after_blank = number == 0 or not said[number - 1].strip()
        time = (match["before"] or match["after"] or "").strip(" []()-\u2013\u2014,")
        name, text = clean_name(match["name"]), match["text"] or match["wide"] or ""
        opening = _Opening(number, name, text, bool(time), parse_timestamp(time), after_blank, not match["colon"])
        if name and (time or match["bold"] or opening.may_be_name):
            found.append(opening)
    return found


def _choose(candidates: list[_Opening]) -> list[_Opening]:
    """The candidates that begin turns, by the way this log marks them."""
    timed = [opening for opening in candidates if opening.has_time]
    untimed = [opening for opening in candidates if not opening.has_time]
    if timed and (candidates[0].has_time or (len(timed) > len(untimed) and _find_sure(timed))):
        return timed
    sure = _find_sure(untimed)
    # In a text that opens without a speaker and repeats none, a name with a colon is prose.
    is_chat = bool(sure) or any(opening.line == 0 and not opening.is_wide for opening in untimed)
    likely = [opening for opening in untimed if opening.key in sure or (is_chat and opening.reads_as_name)]
    has_blanks = sum(opening.after_blank for opening in likely[1:]) * 2 > len(likely[1:])
    return [opening for opening in likely if opening.after_blank or opening.key in sure or not has_blanks]


def _find_sure(openings: list[_Opening]) -> set[str]:
    """The names that come again, or that agents' logs use."""
    times_seen = Counter(opening.key for opening in openings)
    return {opening.key for opening in openings if opening.is_known or times_seen[opening.key] > 1}
