"""An episode -> the turns to learn from, in pieces that fit into a prompt."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime

from quaid.capture.episode_note import NOTE_SPEAKER
from quaid.index.documents import Document
from quaid.llm.prices import estimate_tokens
from quaid.text.replies import asks_nothing
from quaid.vault import episodes, frontmatter, markdown, notes

OVERLAP_TURNS = 6
"""Turns before a piece that are shown with it as context."""
OVERLAP_SHARE = 0.25
"""The maximum share of a piece for earlier turns."""
ASSISTANT = "Assistant"
"""The name of the agent in the logs of agents."""
MAX_ANSWERED = 120
"""Characters. An agent that writes more states something of its own."""
_QUESTION = re.compile("[?\uff1f\u061f]")
_COMMAND = re.compile(r"/[\w:-]+")


@dataclass(frozen=True, slots=True)
class NumberedTurn:
    """A turn of an episode; `number` is that of its block id."""

    number: int
    speaker: str
    text: str
    at: datetime | None = None

    @property
    def is_note(self) -> bool:
        return self.speaker == NOTE_SPEAKER


@dataclass(frozen=True, slots=True)
class Material:
    """The `turns` of an episode to learn from, the `earlier` ones just before them, and the number of its last turn."""

    session: str
    project: str | None
    started: datetime | None
    turns: tuple[NumberedTurn, ...]
    earlier: tuple[NumberedTurn, ...] = ()
    last: int = 0

    @property
    def fingerprint(self) -> str:
        """A hash of the turns to learn from."""
        return hashlib.sha256(repr((self.session, self.turns)).encode()).hexdigest()

    @property
    def ended(self) -> datetime | None:
        return next((turn.at for turn in reversed(self.turns) if turn.at), None) or self.started


@dataclass(frozen=True, slots=True)
class Piece:
    """One prompt: `turns` to learn from, `earlier` ones as context, `notes` to self, the `related` stored facts."""

    material: Material
    turns: tuple[NumberedTurn, ...]
    earlier: tuple[NumberedTurn, ...] = ()
    notes: tuple[NumberedTurn, ...] = ()
    related: tuple[Document, ...] = ()

    @property
    def text(self) -> str:
        return "\n".join(_line(turn) for turn in (*self.earlier, *self.notes, *self.turns))

    @property
    def numbers(self) -> frozenset[int]:
        """The turns that facts of this piece may cite."""
        return frozenset(turn.number for turn in (*self.turns, *self.notes))

    def inputs(self, owner: str, known: str = "", today: date | None = None) -> Mapping[str, str]:
        """One text for each slot of the prompt `extract`; `known` are names from the memory."""
        material = self.material
        # The day alone: a conversation without a time begins when it is read, and each minute would be a new prompt.
        lines = [f"id: {material.session}", f"date: {_day(material.started)}"]
        lines += [f"today: {_day(today)}"] if today else []
        lines += [f"owner of the memory: {owner}"] if owner else []
        lines += [f"project: {material.project}"] if material.project else []
        return {
            "session": "\n".join(" ".join(line.split()) for line in lines),
            "known": known or "(none)",
            "related": "\n".join(f"{n}. {_show_fact(fact)}" for n, fact in enumerate(self.related, 1)) or "(none)",
            "notes": _shown(self.notes),
            "earlier": _shown(self.earlier),
            "conversation": _shown(self.turns),
        }


def read_material(text: str, *, everything: bool = False, through: int | None = None) -> Material:
    """Return the new turns of the episode note `text`, or `everything` in it, up to the turn `through`.

    Forgotten turns and text without a block id are left out.
    """
    head = frontmatter.parse(text)
    fields = head.fields
    started = notes.parse_time(_text(fields, "started"))
    turns = [
        # The time of a note to self is when it was added to the episode.
        NumberedTurn(
            turn.number,
            turn.speaker,
            turn.text,
            None if turn.speaker == NOTE_SPEAKER else notes.parse_time(turn.said_at),
        )
        for turn in episodes.parse_turns(head.body, started)
        if turn.number is not None and (through is None or turn.number <= through)
    ]
    learned = 0 if everything else episodes.read_count(fields, "extracted_turns") or 0
    new = tuple(turn for turn in turns if turn.number > learned and turn.text)
    old = [turn for turn in turns if turn.number <= learned and turn.text and not turn.is_note]
    return Material(
        session=_text(fields, "session") or "",
        project=_text(fields, "project"),
        started=started,
        turns=new,
        earlier=tuple(old[-OVERLAP_TURNS:]),
        last=max((turn.number for turn in turns), default=0),
    )


def first_piece(material: Material, limit_tokens: int | None = None) -> Piece:
    """Return the first whole turns of `material` that fit, one at least, as one piece; without a limit all of them."""
    budget = limit_tokens
    for place, turn in enumerate(material.turns if budget is not None else ()):
        budget = (budget or 0) - _tokens(turn)
        if budget < 0 and place:
            material = replace(material, turns=material.turns[:place], last=material.turns[place - 1].number)
            break
    turns = tuple(turn for turn in material.turns if not turn.is_note)
    return Piece(material, turns, material.earlier, tuple(turn for turn in material.turns if turn.is_note))


def split_material(material: Material, limit_tokens: int) -> list[Piece]:
    """Return pieces of at most `limit_tokens` tokens each, earlier turns included. Notes to self go with every piece,
    unless they would fill it: then they are read like turns.
    """
    own = tuple(turn for turn in material.turns if turn.is_note)
    if sum(map(_tokens, own)) > limit_tokens * OVERLAP_SHARE:
        own = ()
    budget = max(200, limit_tokens - sum(map(_tokens, own)))
    least = int(budget * (1 - OVERLAP_SHARE))
    groups: list[list[NumberedTurn]] = []
    size = 0
    for turn in (turn for turn in material.turns if turn not in own):
        # Counted in bytes, of which a character has one to three in nearly all texts.
        long = markdown.split_text(turn.text, max(100, least * 3 // 4)) if _tokens(turn) > least else ()
        for part in [replace(turn, text=text) for text in long] or [turn]:
            size += _tokens(part)
            if not groups or size > least:
                groups.append([])
                size = _tokens(part)
            groups[-1].append(part)
    pieces: list[Piece] = []
    before: Sequence[NumberedTurn] = material.earlier
    for group in groups:
        left = budget - sum(map(_tokens, group))
        earlier: list[NumberedTurn] = []
        for previous in reversed(before[-OVERLAP_TURNS:]):
            left -= _tokens(previous)
            if left < 0:
                break
            earlier.insert(0, previous)
        pieces.append(Piece(material, tuple(group), tuple(earlier), own))
        before = group
    return pieces or ([Piece(material, (), material.earlier, own)] if own else [])


def split_piece(piece: Piece) -> list[Piece]:
    """Return the halves of a piece that a model refuses, or its only turn without context; else nothing."""
    half = len(piece.turns) // 2
    if not half:
        return [replace(piece, earlier=())] if piece.earlier else []
    return [replace(piece, turns=turns, earlier=()) for turns in (piece.turns[:half], piece.turns[half:])]


def states_nothing(material: Material) -> bool:
    """Return True when the new turns are greetings, thanks, `go on`, a command and its output.

    Where that is not certain a model decides: a `no` to a question is a statement.
    """
    before, answered = (material.earlier[-1].text if material.earlier else ""), 0
    for turn in material.turns:
        is_idle = _COMMAND.fullmatch(turn.text) is not None or asks_nothing(turn.text)
        if turn.speaker == ASSISTANT:
            answered += len(turn.text)
        elif turn.is_note or _QUESTION.search(before) or not is_idle:
            return False
        before = turn.text
    return answered <= MAX_ANSWERED


def _day(day: date | None) -> str:
    return f"{day:%A} {day.day} {day:%B %Y}" if day else "not known"


def _tokens(turn: NumberedTurn) -> int:
    return estimate_tokens(_line(turn))


def _shown(turns: Sequence[NumberedTurn]) -> str:
    return "\n".join(map(_line, turns)) or "(none)"


def _line(turn: NumberedTurn) -> str:
    when = f" ({turn.at:%Y-%m-%d %H:%M})" if turn.at else ""
    # Only a turn begins a line with a number: a quotation cannot pass for one.
    text = turn.text.replace("\n", "\n  ")
    return f"[t{turn.number}] {turn.speaker or 'Somebody'}{when}: {text}"


def _show_fact(fact: Document) -> str:
    by = f" by {fact.speaker}" if fact.speaker else ""
    days = [
        f"said {fact.created[:10]}{by}" if fact.created else "",
        f"until {fact.valid_until}" if fact.valid_until else "",
    ]
    return f"{' '.join(fact.text.split())} ({', '.join(filter(None, days))})"


def _text(fields: Mapping[str, object], key: str) -> str | None:
    value = fields.get(key)
    return value.strip() or None if isinstance(value, str) else None
