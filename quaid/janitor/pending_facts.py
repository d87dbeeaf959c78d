"""Pending facts: what the reviewing model sees of them and their turns, and what it may take from there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from quaid.claims import Reading
from quaid.index.documents import Document
from quaid.janitor.model_text import without_empty
from quaid.llm.prices import estimate_tokens
from quaid.local.runs import evidence_key
from quaid.model import Edit, Note
from quaid.text.relative_dates import with_dates
from quaid.text.stop_words import STOP_WORDS
from quaid.vault import headings, notes

MAX_TURNS = 4
PASSAGE = 500
"""Characters of a turn that are shown: of a longer one, the sentences that the facts are about."""
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
    """A fact without a review: its note on disk, its statement, the turns it cites, and the edit that approves it."""

    document: Document
    note: Note
    data: bytes
    statement: str
    turns: tuple[Document, ...]
    approval: Edit

    def key(self, task: str) -> str:
        """Return the key of a judgement of it by `task`."""
        return evidence_key(task, self.note.content_hash, *(turn.text for turn in self.turns))

    @property
    def sources(self) -> list[str]:
        """The texts that a rewording may take names and numbers from: the turns, and what follows from them."""
        note = self.note
        stated = [turn.said_at or note.created for turn in self.turns] or [note.created]
        moments = [moment for day in stated if (moment := notes.parse_time(day))]
        days = [f"{moment:%A}, {_format_date(moment)}" for moment in moments]
        turns = [with_dates(turn.text, notes.parse_time(turn.said_at)) for turn in self.turns]
        texts = [note.text, *(turn.text for turn in self.turns)]
        days += [day for moment in moments for text in texts for day in _compute_days(text, moment)]
        speakers = [turn.turn_speaker or "" for turn in self.turns]
        ends = [name for edge in note.edges for name in (edge.subject, edge.object)]
        period = [notes.format_day(day) for day in (note.valid_from, note.valid_until) if day]
        return [note.text, *days, *turns, *speakers, *ends, *period, *note.keywords, note.speaker or ""]

    @property
    def quoted_turns(self) -> list[str]:
        """Lines that show its owner the turns it cites."""
        turns = [(turn.turn_speaker or "Somebody", headings.one_line(turn.text)) for turn in self.turns[:MAX_TURNS]]
        return ["", *(f"> {speaker}: {text[:MAX_QUOTED]}" for speaker, text in turns)] if turns else []

    @property
    def whole_turns(self) -> dict[Turn, Document]:
        """The first turns that it cites, each whole, though the index may have it in pieces."""
        found: dict[Turn, Document] = {}
        for piece in self.turns:
            turn = (piece.doc_id, piece.turn)
            found[turn] = found[turn]._replace(text=f"{found[turn].text} {piece.text}") if turn in found else piece
        return dict(list(found.items())[:MAX_TURNS])

    def show(self, numbers: Mapping[Turn, int]) -> dict[str, Any]:
        """Return the fields that a model sees; `numbers` are those of the turns."""
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
    """Return the turns that `facts` cite, each once and cut to what they say, and their numbers."""
    cited: dict[Turn, Document] = {}
    words: dict[Turn, set[str]] = {}
    for fact in facts:
        for turn, candidate in fact.whole_turns.items():
            cited[turn] = candidate
            words.setdefault(turn, set()).update(Reading(fact.statement).words - STOP_WORDS)
    numbers = {turn: number for number, turn in enumerate(cited, 1)}
    shown = []
    for turn, number in numbers.items():
        text = _passage(cited[turn].text, words[turn])
        moment = notes.parse_time(cited[turn].said_at)
        day = f"{moment:%a %Y-%m-%d}" if moment else ""
        shown.append(without_empty({"t": number, "speaker": cited[turn].turn_speaker, "day": day, "text": text}))
    return shown, numbers


def estimate_sizes(facts: Sequence[PendingFact]) -> dict[int, int]:
    """Return the tokens that each fact takes, by document, with its share of the turns that others cite too."""
    cited = Counter(turn for fact in facts for turn in fact.whole_turns)
    return {
        fact.document.doc_id: estimate_tokens(str(fact.show(cited)))
        + sum((estimate_tokens(text.text[:PASSAGE]) + 20) // cited[turn] for turn, text in fact.whole_turns.items())
        for fact in facts
    }


def _passage(text: str, wanted: set[str]) -> str:
    """Return `text`; of a longer one the sentences that have most of the words, in their order, with … for gaps."""
    if len(text) <= PASSAGE:
        return text
    sentences = [found[0][:PASSAGE] for found in _SENTENCE.finditer(text) if found[0].strip()]
    by_words = sorted(enumerate(sentences), key=lambda item: -len(wanted & Reading(item[1]).words))
    chosen: set[int] = set()
    for place, sentence in by_words:
        if sum(len(sentences[other]) for other in chosen) + len(sentence) <= PASSAGE:
            chosen.add(place)
    parts = [
        ("… " if place and place - 1 not in chosen else "") + sentence.strip()
        for place, sentence in enumerate(sentences)
        if place in chosen
    ]
    return " ".join(parts) + (" …" if len(sentences) - 1 not in chosen else "")


def _compute_days(text: str, stated: datetime) -> Iterator[str]:
    """Yield days and years that follow from `text` and its day: `in ten days`, `for seven years`, `I am 34`."""
    reading = Reading(text)
    for number, unit in reading.numbers:
        if not number.isdecimal() or not 0 < int(number) <= _OLDEST:
            continue
        count = int(number)
        for sign in (-1, 1) if unit in _UNITS else ():
            yield _format_date(stated + timedelta(days=sign * count * _UNITS[unit]))
        if unit == "month":
            months = (stated.year * 12 + stated.month - 1 + sign * count for sign in (-1, 1))
            yield from (f"{datetime(month // 12, month % 12 + 1, 1):%B %Y}" for month in months)  # noqa: DTZ001
        if unit == "year":
            yield str(stated.year + count)
        if unit not in {*_UNITS, "month"}:  # in other languages the words around an age are not known
            yield f"{stated.year - count} {stated.year - count - 1}"
    for age in map(int, _AGE.findall(text)):
        yield f"{stated.year - age} {stated.year - age - 1}"  # before the birthday the year before
    for weekday in reading.words.intersection(_WEEKDAYS):
        ahead = (_WEEKDAYS.index(weekday) - stated.weekday()) % 7
        yield from (_format_date(stated + timedelta(days=ahead + shift)) for shift in (-14, -7, 0, 7, 14))


def without_dated_ages(fact: PendingFact, statement: str) -> str:
    """Return the statement of `fact` without the ages and spans of years whose first year `statement` has."""
    stated = [fact.note.created, *(turn.said_at for turn in fact.turns)]
    years = {moment.year for day in stated if (moment := notes.parse_time(day))}
    named = set(map(int, _YEAR.findall(statement)))

    def is_dated(number: re.Match[str]) -> bool:
        return not named.isdisjoint(year - int(number[1]) - before for year in years for before in (0, 1))

    return _SMALL_NUMBER.sub(lambda number: "" if is_dated(number) else number[0], fact.statement)


def _format_date(day: datetime) -> str:
    return f"{day.day} {day:%B %Y} {day:%Y-%m-%d}"
