"""A model's answer about a conversation (prompts/extract.md) -> the facts, snippets and journal entries to keep.

The schema has been checked when an answer comes here. What only the conversation can tell is checked here: whether
cited turns exist, dates are dates, edges join two things. A fact is kept whole or left out whole; what is wrong beside
it (a date, an edge, one of several citations) is dropped, as it would be worse to lose the fact with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, TypeVar

from quaid.capture.cleaning import clean_line, clean_text
from quaid.capture.entity_names import NamedThing
from quaid.capture.fact_note import FactDetails
from quaid.capture.prompt_pieces import Material, NumberedTurn, Piece
from quaid.capture.relations import normalise_edge
from quaid.capture.storing import NewFact
from quaid.errors import BadInputError
from quaid.llm.exchange import FailedItem, ItemProblem
from quaid.model import CORE_FILES, Edge, name_key
from quaid.recall.intent import is_technical
from quaid.text.invisible import without_unseen
from quaid.text.quoting import gives_orders
from quaid.text.relative_dates import with_dates
from quaid.text.words import MINIMUM_WORDS, is_long_enough
from quaid.vault.notes import text_hash

T = TypeVar("T")

PROMPT = "extract"
MAX_SHOWN = 200
"""Characters of a fact without form that are shown where it is left out."""

_CITED = re.compile(r"(\d{1,9})\D*\Z")
_HAPPENED = frozenset({"event", "experience"})
_ANYBODY = frozenset({"", "user", "human", "somebody", "you", "me"})
"""Speakers by whom a transcript names nobody."""
_DATE = re.compile(r"\d{4}(?:-\d\d(?:-\d\d)?)?")
_ORDER = re.compile(
    r"\b(?:ignore|disregard|forget|override|bypass)\s+(?:(?:all|any|every|each|of|the|these|those|your|my|our|previous|prior|above"
    r"|earlier|preceding|former|existing|initial|original|system|safety)\s+){0,6}"
    r"(?:rules?|instructions?|guidelines?|prompts?|directions?|orders?)\b",
    re.IGNORECASE,
)
"""Orders to the reader of a text. People say such things to each other as well: a match alone proves nothing."""


@dataclass(frozen=True, slots=True)
class ExtractedFact:
    """One claim of a model's answer, checked. `turns` are numbers of the episode's turns."""

    text: str
    category: str
    confidence: float
    speaker: str | None
    source: str
    durability: str
    privacy: str
    keywords: tuple[str, ...]
    valid_from: str | None
    valid_until: str | None
    project: str | None
    turns: tuple[int, ...]
    edges: tuple[Edge, ...]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A fact that is not kept, and why."""

    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class Extraction:
    """The facts, names, snippets and journal entries of one conversation. `snippets` and `journal` are by core file."""

    facts: tuple[ExtractedFact, ...] = ()
    names: tuple[NamedThing, ...] = ()
    snippets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    journal: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()


def find_problems(value: Mapping[str, Any], piece: Piece) -> list[ItemProblem]:
    """Return what is wrong with facts of an answer that fits its schema and can be mended; ten at most."""
    known = piece.numbers
    found = []
    for place, fact in enumerate(value["facts"]):
        cited = list(_cited(fact["turns"]))
        if not any(turn in known for turn in cited):
            what = f"cites {', '.join(fact['turns'])}, which is not a turn here" if cited else "cites no turn"
            turns = f"t{min(known)} to t{max(known)}" if known else "none"
            found.append(ItemProblem("facts", place, f"{what}; the turns are {turns}"))
    return found[:10]


def list_failed(failed: Iterable[FailedItem]) -> tuple[LeftOut, ...]:
    """The facts among the items of an answer that do not fit its schema, as facts that are not kept."""
    from quaid.redaction import admit

    left: list[LeftOut] = []
    for item in failed:
        text = item.value.get("text") if isinstance(item.value, dict) else item.value
        shown = admit(clean_line(text)).text[:MAX_SHOWN] if isinstance(text, str) else ""
        if item.items == "facts":
            left.append(LeftOut(shown or "(no text)", f"it has not the form of a fact: {'; '.join(item.problems)}"))
    return tuple(left)


def read_answer(value: Mapping[str, Any], piece: Piece) -> Extraction:
    """The part of an answer that may be kept."""
    said = {turn.number: turn for turn in (*piece.turns, *piece.notes)}
    kept: list[ExtractedFact] = []
    left_out: list[LeftOut] = []
    for raw in value["facts"]:
        fact = _read_fact(raw, said, piece.material)
        reason = _rejection_reason(fact, said)
        if reason:
            left_out.append(LeftOut(fact.text, reason))
        else:
            kept.append(fact)
    snippets: dict[str, tuple[str, ...]] = {}
    journal: dict[str, tuple[str, ...]] = {}
    for file in CORE_FILES:
        lines = [clean_line(line) for line in (value.get("snippets") or {}).get(file) or ()]
        if safe := tuple(line for line in lines if line and not _is_order(line)):
            snippets[file] = safe
        entry = clean_text((value.get("journal") or {}).get(file) or "").strip()
        if entry and not _is_order(entry):
            journal[file] = (entry,)
    things = [
        NamedThing(
            clean_line(one["name"]), one.get("kind"), _unique(filter(None, map(clean_line, one.get("aliases") or ())))
        )
        for one in value.get("names") or ()
    ]
    names = _merge_names(thing for thing in things if thing.name)
    return Extraction(tuple(kept), names, snippets, journal, tuple(left_out))


def merge(parts: Sequence[Extraction]) -> Extraction:
    """The answers to all pieces of a conversation as one: a fact that several give is kept once, with all its turns."""
    facts: dict[str, ExtractedFact] = {}
    for fact in (fact for part in parts for fact in part.facts):
        key = text_hash(fact.text)
        first = facts.setdefault(key, fact)
        facts[key] = replace(
            first,
            confidence=max(first.confidence, fact.confidence),
            turns=_unique((*first.turns, *fact.turns)),
            keywords=_unique((*first.keywords, *fact.keywords)),
            edges=_unique((*first.edges, *fact.edges)),
        )
    return Extraction(
        tuple(facts.values()),
        _merge_names(thing for part in parts for thing in part.names),
        _union([part.snippets for part in parts]),
        _union([part.journal for part in parts]),
        tuple(left for part in parts for left in part.left_out),
    )


def keep_at_most(extraction: Extraction, most: int) -> Extraction:
    """The `most` facts that the model is surest of, in their order; the others are left out by name."""
    if not most or len(extraction.facts) <= most:
        return extraction
    surest = sorted(range(len(extraction.facts)), key=lambda place: -extraction.facts[place].confidence)
    chosen = set(surest[:most])
    reason = f"more than {most} facts at once (capture.max_facts)"
    left = [LeftOut(fact.text, reason) for place, fact in enumerate(extraction.facts) if place not in chosen]
    kept = tuple(fact for place, fact in enumerate(extraction.facts) if place in chosen)
    return replace(extraction, facts=kept, left_out=(*extraction.left_out, *left))


def new_facts(found: Extraction, material: Material, owner: str, episode_name: str | None) -> list[NewFact]:
    """The facts of `found`, pending, citing turns of the episode; without its name they cite nothing."""
    return [
        NewFact(
            fact.text,
            replace(
                details_of(fact, owner, fact.project),
                source=fact.source,
                extraction_confidence=fact.confidence if fact.source == "assistant" else None,
                session=material.session,
                turns=tuple(f"[[{episode_name}#^t{turn}]]" for turn in fact.turns) if episode_name else (),
            ),
        )
        for fact in found.facts
    ]


def details_of(fact: ExtractedFact, owner: str, project: str | None) -> FactDetails:
    """The details of a pending fact of `owner` and `project`."""
    return FactDetails(
        type=fact.category,
        status="pending",
        owner=owner,
        confidence=fact.confidence,
        durability=fact.durability,
        privacy=fact.privacy,
        speaker=fact.speaker,
        project=project,
        technical=project is not None and is_technical(fact.text),
        valid_from=fact.valid_from,
        valid_until=fact.valid_until,
        keywords=fact.keywords,
        edges=fact.edges,
    )


def _read_fact(raw: Mapping[str, Any], said: Mapping[int, NumberedTurn], material: Material) -> ExtractedFact:
    turns = tuple(dict.fromkeys(turn for turn in _cited(raw["turns"]) if turn in said))
    first = next((said[turn] for turn in turns), None)
    days = {moment.date() for turn in turns if (moment := said[turn].said_at)}
    # What was said on several days means none of them by `yesterday`, as far as one can tell.
    told = ((first.said_at if first else None) or material.started) if len(days) <= 1 else None
    heard = [said[turn].speaker for turn in turns if not said[turn].is_note]
    is_own_word = bool(heard) and all(name_key(speaker) == "assistant" for speaker in heard)
    edges: list[Edge] = []
    for edge in raw.get("edges") or ():
        with suppress(BadInputError):  # it joins no two things
            edges.append(
                normalise_edge(Edge(clean_line(edge["subject"]), edge["relation"], clean_line(edge["object"])))
            )
    return ExtractedFact(
        text=with_dates(clean_line(raw["text"]), told),
        category=raw["category"],
        confidence=float(raw["confidence"]),
        speaker=_speaker(clean_line(raw.get("speaker") or ""), heard),
        # What only the assistant has said is no word of the person, whatever the model makes of it.
        source="assistant" if is_own_word and raw["source"] == "user" else raw["source"],
        durability=raw["durability"],
        privacy=raw.get("privacy") or "private",
        keywords=_unique(word for item in raw.get("keywords") or () if (word := clean_line(item.replace(",", " ")))),
        valid_from=_date(raw.get("valid_from")),
        valid_until=_end_of(raw),
        project=clean_line(raw.get("project") or "") or None,
        turns=turns,
        edges=_unique(edges),
    )


def _speaker(named: str, heard: Sequence[str]) -> str | None:
    """Return who said it: of those whose turns are cited, `heard`, the one that the model has named. Where a turn names
    nobody in particular, the model may know their name.
    """
    for speaker in heard:
        if name_key(speaker) == name_key(named):
            return speaker
    is_unknown = not heard or any(name_key(speaker) in _ANYBODY for speaker in heard)
    return (named if named and is_unknown else next(iter(heard), "")) or None


def _end_of(raw: Mapping[str, Any]) -> str | None:
    """Return until when a state or a plan holds; None for what happened, which stays true, and for what has no end."""
    since, until = _date(raw.get("valid_from")), _date(raw.get("valid_until"))
    has_happened = raw["category"] in _HAPPENED or raw["durability"] == "immutable"
    return None if has_happened or (since and until and until <= since) else until


def _merge_names(things: Iterable[NamedThing]) -> tuple[NamedThing, ...]:
    """Each name once, with all its aliases."""
    merged: dict[str, NamedThing] = {}
    for thing in things:
        first = merged.setdefault(name_key(thing.name), thing)
        aliases = _unique((*first.aliases, *thing.aliases))
        merged[name_key(thing.name)] = replace(first, kind=first.kind or thing.kind, aliases=aliases)
    return tuple(merged.values())


def _rejection_reason(fact: ExtractedFact, said: Mapping[int, NumberedTurn]) -> str:
    """Return why a fact must not be kept; an empty text when it may."""
    if not is_long_enough(fact.text):
        return f"fewer than {MINIMUM_WORDS} words"
    if not fact.turns:
        return "it rests on no turn of this conversation"
    if _is_order(fact.text):
        return "it gives orders to its reader"
    if all(_is_order(said[turn].text) for turn in fact.turns):
        return "it rests only on a turn that gives orders to its reader"
    return ""


def _is_order(text: str) -> bool:
    return _ORDER.search(without_unseen(text)) is not None or gives_orders(text)


def _cited(turns: Iterable[str]) -> Iterator[int]:
    """`t3`, `D1:3`, `3` and `[t3]` all mean the third turn; `t3, t7` are two."""
    for cited in ",".join(turns).split(","):
        found = _CITED.search(cited)
        if found:
            yield int(found[1])


def _date(value: str | None) -> str | None:
    text = (value or "").strip()[:10]
    if not _DATE.fullmatch(text):
        return None
    try:
        return date.fromisoformat(f"{text}-01-01"[:10]).isoformat()
    except ValueError:
        return None


def _union(parts: Sequence[Mapping[str, tuple[str, ...]]]) -> dict[str, tuple[str, ...]]:
    """The lines of all `parts` for each core file, each once."""
    union = {file: _unique(line for part in parts for line in part.get(file, ())) for file in CORE_FILES}
    return {file: lines for file, lines in union.items() if lines}


def _unique(items: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(items))
