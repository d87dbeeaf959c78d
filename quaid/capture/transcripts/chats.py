"""Conversations that name their speakers: JSON lines from any program, and chat logs as people paste them."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from quaid.capture.cleaning import clean_name, clean_text
from quaid.capture.transcripts.parsing import Format, find_start, find_texts, is_json, parse_timestamp, text_at
from quaid.model import Conversation, Turn
from quaid.text.stop_words import read_lists

_ROLES = {"user": "user", "human": "user", "assistant": "assistant", "ai": "assistant", "model": "assistant"}
_MACHINE_ROLES = frozenset({"system", "developer", "tool", "function", "toolResult"})

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
_MACHINES = frozenset({"system", "tool"})
_LABELS = frozenset(read_lists("names.txt")["labels"].split())
_REPLACED = frozenset("\ufffd") | {chr(code) for code in range(32) if chr(code) not in "\t\n\r\f\v\0\x1b"}


class JsonLines(Format):
    """JSON lines, one turn per line, from any program that can write them.

    `{"role": "user", "content": "…", "speaker"?: "Maya", "timestamp"?: "…"}`, or the same wrapped as
    `{"type": "message", "message": {…}}`. A line `{"session": "…", "started": "…"}` may come first. Facts and
    benchmarks cite turns by number, so turn n is the n-th line of a user or assistant that carries text, even if none
    of it is left.
    """

    name = 'JSON lines with "role" and "content"'
    source = "jsonl"

    def __init__(self, skipped: Counter[str]) -> None:
        super().__init__(skipped)
        self._turns: list[Turn] = []

    @staticmethod
    def is_entry(found: dict[str, Any]) -> bool:
        return bool(_find_message(found)) or {"session", "started"} <= found.keys()

    def read_entry(self, found: dict[str, Any]) -> None:
        message = _find_message(found)
        if message is None:
            is_header = "session" in found or "started" in found or found.get("type") == "session"
            if self._turns or not is_header or self.session or self.started or self.project:
                self.skipped["unknown type"] += 1
                return
            session = found.get("session", found.get("id"))
            self.session = clean_name(str(session)) or None if isinstance(session, str | int) else None
            self.started = parse_timestamp(found.get("started", found.get("timestamp")))
            self.project = clean_name(text_at(found, "project") or "") or None
            return
        role = _ROLES.get(message["role"])
        if role is None:
            self.skipped["system or tool" if message["role"] in _MACHINE_ROLES else "unknown role"] += 1
            return
        raw = "\n\n".join(text for text in find_texts(message["content"], self.skipped) if text.strip())
        if not raw:
            self.skipped["empty"] += 1
            return
        speaker = text_at(message, "speaker") or text_at(found, "speaker") or ""
        at = parse_timestamp(message.get("timestamp")) or parse_timestamp(found.get("timestamp"))
        self._turns.append(Turn(clean_name(speaker) or role.capitalize(), clean_text(raw), role, at))

    def finish(self) -> Iterator[Conversation]:
        started = self.started or find_start(self._turns)
        yield Conversation(tuple(self._turns), self.session, self.source, started, self.project)


def _find_message(found: dict[str, Any]) -> dict[str, Any] | None:
    inner = found.get("message") if found.get("type") == "message" else found
    is_message = isinstance(inner, dict) and isinstance(inner.get("role"), str) and "content" in inner
    return inner if is_message else None


class _Opening(NamedTuple):
    """A line that may begin a turn, and the time on it."""

    line: int
    name: str
    text: str
    time: str
    after_blank: bool
    is_wide: bool
    """Its colon is as wide as a Chinese letter: such a colon follows labels as often as names."""

    @property
    def key(self) -> str:
        return self.name.casefold()

    @property
    def is_capitalised(self) -> bool:
        return _CAPITALISED.fullmatch(self.name) is not None


class PlainText(Format):
    """Chat logs as people paste them: `Name: text`, with or without times, over one line or many.

    Any colon could begin a turn, and most do not: `Note: …` and `https://…` are parts of turns. So the whole text is
    scanned first for how this log marks its speakers: with a time before each, with a blank line before each, or with
    the name alone. Repeated names, and the first one, count for more than a single word with a colon. A text without
    speakers is one turn of "User".
    """

    name = 'plain text with "Name: what was said"'

    @classmethod
    def recognises(cls, head: Sequence[str]) -> bool:
        sample = "\n".join(line[:2000] for line in head)
        strange = sum(character in _REPLACED for character in sample)
        return not is_json(head) and strange * 10 <= len(sample)

    def read(self, lines: Iterator[str]) -> Iterator[Conversation]:
        text_lines = "\n".join(lines).replace("\0", "").replace("\r", "\n").lstrip("\n").split("\n")
        openings = _select(_find_openings(text_lines))
        ends = [opening.line for opening in openings] + [len(text_lines)]
        preamble = clean_text("\n".join(text_lines[: ends[0]]))
        turns = [Turn("User", preamble)] if preamble else []
        for opening, end in zip(openings, ends[1:], strict=True):
            text = clean_text("\n".join([opening.text, *text_lines[opening.line + 1 : end]]))
            if opening.key in _MACHINES:
                self.skipped["system or tool"] += 1
            elif not text:
                self.skipped["empty"] += 1
            else:
                role = "assistant" if opening.key in _ASSISTANTS else "user"
                turns.append(Turn(opening.name, text, role, parse_timestamp(opening.time)))
        yield Conversation(tuple(turns), source="text", started=find_start(turns))


def _find_openings(lines: Sequence[str]) -> list[_Opening]:
    fences = [number for number, line in enumerate(lines) if _FENCE.match(line)]
    # A fence without a partner encloses nothing: zip drops it.
    pairs = zip(fences[::2], fences[1::2], strict=False)
    fenced = {number for start, end in pairs for number in range(start, end + 1)}
    found = []
    for number, line in enumerate(lines):
        match = _SPEAKER_LINE.fullmatch(line.rstrip()) if number not in fenced and _COLON.search(line[:120]) else None
        if match is None:
            continue
        after_blank = number == 0 or not lines[number - 1].strip()
        time = (match["before"] or match["after"] or "").strip(" []()-\u2013\u2014,")
        text = match["text"] or match["wide"] or ""
        opening = _Opening(number, clean_name(match["name"]), text, time, after_blank, not match["colon"])
        words = opening.key.split()
        may_be_name = not _LABELS.intersection(words) and (opening.is_capitalised or len(words) == 1)
        if opening.name and (time or match["bold"] or may_be_name):
            found.append(opening)
    return found


def _select(candidates: list[_Opening]) -> list[_Opening]:
    """Return the candidates that begin turns, by the way this log marks them."""
    timed = [opening for opening in candidates if opening.time]
    untimed = [opening for opening in candidates if not opening.time]
    if timed and (candidates[0].time or (len(timed) > len(untimed) and _find_sure(timed))):
        return timed
    sure = _find_sure(untimed)
    # In a text that opens without a speaker and repeats none, a name with a colon is prose.
    is_chat = bool(sure) or any(opening.line == 0 and not opening.is_wide for opening in untimed)
    likely = [
        opening
        for opening in untimed
        if opening.key in sure
        or (is_chat and opening.is_capitalised and opening.text and not opening.text[0].isdigit())
    ]
    has_blanks = sum(opening.after_blank for opening in likely[1:]) * 2 > len(likely[1:])
    return [opening for opening in likely if opening.after_blank or opening.key in sure or not has_blanks]


def _find_sure(openings: list[_Opening]) -> set[str]:
    times_seen = Counter(opening.key for opening in openings)
    return {key for key, count in times_seen.items() if count > 1 or key in _ASSISTANTS | _PEOPLE | _MACHINES}
