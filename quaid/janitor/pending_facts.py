"""Facts that wait for their review: what a model is shown of them and their turns, and what it may take from there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from quaid.claims import Reading
from quaid.index.documents import Candidate, Document
from quaid.janitor.model_text import without_empty
from quaid.llm.prices import estimate_tokens
from quaid.local.runs import evidence_key
from quaid.model import Edit, Note
from quaid.text.relative_dates import with_dates
from quaid.text.stop_words import STOP_WORDS
from quaid.vault import headings, notes

MAX_TURNS = 4
PASSAGE = 500
"""The characters of a turn that are shown: all of most, of longer ones the sentences that the facts are about."""
MAX_QUOTED = 400
_SENTENCE = re.compile(r"[^.!?\n]*(?:[.!?\n]+|$)")
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_AGE = re.compile(r"(?i)\b(?:turn(?:ed|s|ing)?|aged?|am|i'm|is|he's|she's|was) (\d{1,2})\b")
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_SMALL_NUMBER = re.compile(r"(?<![\d.,])(\d{1,3})(?![\d.,]?\d)(?:[ -][^\W\d]+)?")
_UNITS = {"day": 1, "week": 7}
_OLDEST = 130


Turn = tuple[int, int | None]
"""The document and number of a turn."""


@dataclass(frozen=True, slots=True)
class PendingFact:
    """A fact that waits for its review: its note on disk, what its statement says, and the turns it rests on."""

    document: Document
    note: Note
    data: bytes
    statement: str
    turns: tuple[Candidate, ...]
    approval: Edit

    def key(self, task: str) -> str:
        """The key of a judgement of it by `task`."""
        return evidence_key(task, self.note.content_hash, *(turn.text for turn in self.turns))

    @property
    def sources(self) -> list[str]:
        """The texts that a rewording of it may take names and numbers from: what was said, and what follows from it."""
        told = [turn.said_at or self.note.created for turn in self.turns] or [self.note.created]
        moments = [moment for day in told if (moment := notes.parse_time(day))]
        days = [f"{moment:%A}, {_written(moment)}" for moment in moments]
        said = [with_dates(turn.text, notes.parse_time(turn.said_at)) for turn in self.turns]
        texts = [self.note.text, *(turn.text for turn in self.turns)]
        days += [day for moment in moments for text in texts for day in computed_days(text, moment)]
        speakers = [turn.speaker or "" for turn in self.turns]
        ends = [name for edge in self.note.edges for name in (edge.subject, edge.object)]
        held = [notes.format_day(day) for day in (self.note.valid_from, self.note.valid_until) if day]
        return [self.note.text, *days, *said, *speakers, *ends, *held, *self.note.keywords, self.note.speaker or ""]

    @property
    def quoted_turns(self) -> list[str]:
        """Lines that show its owner what it rests on."""
        turns = [(turn.speaker or "Somebody", headings.one_line(turn.text)) for turn in self.turns[:MAX_TURNS]]
        return ["", *(f"> {speaker}: {text[:MAX_QUOTED]}" for speaker, text in turns)] if turns else []

    @property
    def whole_turns(self) -> dict[Turn, Candidate]:
        """The first turns that it rests on, each whole, though the index may hold it in pieces."""
        found: dict[Turn, Candidate] = {}
        for piece in self.turns:
            turn = (piece.doc_id, piece.turn)
            found[turn] = found[turn]._replace(text=f"{found[turn].text} {piece.text}") if turn in found else piece
        return dict(list(found.items())[:MAX_TURNS])

    def show(self, numbers: Mapping[Turn, int]) -> dict[str, Any]:
        """The fields that a model is shown; `numbers` are those of the turns."""
        note = self.note
        return without_empty(
            {
                "text": self.statement,
                "category": note.type,
                "confidence": note.confidence,
                "source": note.source if note.source != "user" else None,
                "told": (note.created or "")[:10] if not self.turns else None,
                "speaker": note.speaker if not self.turns else None,
                "from": note.valid_from,
                "until": note.valid_until,
                "edges": [f"{edge.subject} {edge.relation} {edge.object}" for edge in note.edges],
                "said": [numbers[turn] for turn in self.whole_turns],
            }
        )


def show_turns(facts: Sequence[PendingFact]) -> tuple[list[dict[str, Any]], dict[Turn, int]]:
    """The turns that `facts` rest on, each once and around what they say, and their numbers."""
    said: dict[Turn, Candidate] = {}
    words: dict[Turn, set[str]] = {}
    for fact in facts:
        for turn, candidate in fact.whole_turns.items():
            said[turn] = candidate
            words.setdefault(turn, set()).update(Reading(fact.statement).words - STOP_WORDS)
    numbers = {turn: number for number, turn in enumerate(said, 1)}
    shown = []
    for turn, number in numbers.items():
        text = passage(said[turn].text, words[turn])
        moment = notes.parse_time(said[turn].said_at)
        day = f"{moment:%a %Y-%m-%d}" if moment else ""
        shown.append(without_empty({"t": number, "speaker": said[turn].speaker, "day": day, "text": text}))
    return shown, numbers


def estimate_sizes(facts: Sequence[PendingFact]) -> dict[int, int]:
    """Document -> the tokens that showing it takes, with its share of the turns it has in common with others."""
    cited = Counter(turn for fact in facts for turn in fact.whole_turns)
    return {
        fact.document.doc_id: estimate_tokens(str(fact.show(cited)))
        + sum((estimate_tokens(said.text[:PASSAGE]) + 20) // cited[turn] for turn, said in fact.whole_turns.items())
        for fact in facts
    }


def passage(text: str, words: Iterable[str], longest: int = PASSAGE) -> str:
    """`text`, of a longer one the sentences that have most of `words`, in their order, with … for what is left out."""
    if len(text) <= longest:
        return text
    wanted = set(words)
    sentences = [found[0][:longest] for found in _SENTENCE.finditer(text) if found[0].strip()]
    by_words = sorted(enumerate(sentences), key=lambda item: -len(wanted & Reading(item[1]).words))
    kept: set[int] = set()
    for place, sentence in by_words:
        if sum(len(sentences[other]) for other in kept) + len(sentence) <= longest:
            kept.add(place)
    parts = [
        ("… " if place and place - 1 not in kept else "") + sentence.strip()
        for place, sentence in enumerate(sentences)
        if place in kept
    ]
    return " ".join(parts) + (" …" if len(sentences) - 1 not in kept else "")


def computed_days(text: str, told: datetime) -> Iterator[str]:
    """Days and years that follow from `text` and the day it was told: `in ten days`, `for seven years`, `I am 34`."""
    reading = Reading(text)
    for number, unit in reading.numbers:
        if not number.isdecimal() or not 0 < int(number) <= _OLDEST:
            continue
        count = int(number)
        for sign in (-1, 1) if unit in _UNITS else ():
            yield _written(told + timedelta(days=sign * count * _UNITS[unit]))
        if unit == "month":
            months = (told.year * 12 + told.month - 1 + sign * count for sign in (-1, 1))
            yield from (f"{datetime(month // 12, month % 12 + 1, 1):%B %Y}" for month in months)  # noqa: DTZ001
        if unit == "year":
            yield str(told.year + count)
        if unit not in {*_UNITS, "month"}:  # in other languages the words around an age are not known
            yield f"{told.year - count} {told.year - count - 1}"
    for age in map(int, _AGE.findall(text)):
        yield f"{told.year - age} {told.year - age - 1}"  # before the birthday the year before
    for weekday in reading.words.intersection(_WEEKDAYS):
        ahead = (_WEEKDAYS.index(weekday) - told.weekday()) % 7
        yield from (_written(told + timedelta(days=ahead + shift)) for shift in (-14, -7, 0, 7, 14))


def without_dated_ages(fact: PendingFact, statement: str) -> str:
    """Return what `fact` says without the ages and spans of years for which `statement` has the year they began in."""
    told = [fact.note.created, *(turn.said_at for turn in fact.turns)]
    years = {moment.year for day in told if (moment := notes.parse_time(day))}
    named = set(map(int, _YEAR.findall(statement)))

    def is_dated(number: re.Match[str]) -> bool:
        return not named.isdisjoint(year - int(number[1]) - before for year in years for before in (0, 1))

    return _SMALL_NUMBER.sub(lambda number: "" if is_dated(number) else number[0], fact.statement)


def _written(day: datetime) -> str:
    return f"{day.day} {day:%B %Y} {day:%Y-%m-%d}"
