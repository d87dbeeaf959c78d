"""A model's answer about a conversation (prompts/extract.md) -> the facts, snippets and journal entries to store.

The schema of an answer was checked before. What only the conversation can show is checked here: whether cited turns
exist, dates are dates, edges join two things. A fact is stored whole or left out whole; a wrong detail (a date, an
edge, one of several citations) is dropped, as losing the fact with it would be worse.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeVar

from quaid.capture.cleaning import clean_line, clean_text
from quaid.capture.entities import NamedThing
from quaid.capture.facts import FactsPlan, NewFact, StoredFact
from quaid.capture.prompt_pieces import Material, NumberedTurn, Piece
from quaid.capture.relations import is_known, normalise_edge
from quaid.capture.writer import WritePlan
from quaid.claims import is_denied
from quaid.errors import BadInputError
from quaid.llm.exchange import ItemProblem
from quaid.model import CORE_FILES, Edge, Message, ModelUsage, name_key
from quaid.recall.intent import is_technical
from quaid.text.dates import read_period
from quaid.text.endings import HAPPENED
from quaid.text.invisible import without_unseen
from quaid.text.quoting import gives_orders
from quaid.text.relative_dates import relative_words, with_dates
from quaid.text.words import MINIMUM_WORDS, is_long_enough
from quaid.vault.notes import text_hash

T = TypeVar("T")

PROMPT = "extract"
MAX_FACTS = 500
"""The maximum of facts from one conversation."""
PIECE_TOKENS = 12_000
"""A longer conversation is given to the model in overlapping pieces of this size."""
MAX_SHOWN = 200
"""Characters of a malformed fact that are shown where it is left out."""
MAX_WORDS = 6
"""Words that a question may use for a new relation."""
DENIED_CONFIDENCE = 0.5
"""The most for a fact that contradicts its only turn even after it was sent back."""
MAX_LISTED = 100
"""Facts listed in a commit's body; the rest is counted."""

KINDS = frozenset({"person", "pet", "place", "organization", "project", "event", "thing", "concept"})
"""Of names."""

_CITED = re.compile(r"(\d{1,9})\D*\Z")
_ANYBODY = frozenset({"", "user", "human", "somebody", "you", "me"})
"""Speakers without a name."""
_ORDER = re.compile(
    r"\b(?:ignore|disregard|forget|override|bypass)\s+(?:(?:all|any|every|each|of|the|these|those|your|my|our|previous|prior|above"
    r"|earlier|preceding|former|existing|initial|original|system|safety)\s+){0,6}"
    r"(?:rules?|instructions?|guidelines?|prompts?|directions?|orders?)\b",
    re.IGNORECASE,
)
"""Orders to the reader of a text. People give them to each other as well: a match alone proves nothing."""


class LeftOut(NamedTuple):
    """A statement that is not stored, and why."""

    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class Extraction:
    """What a model found in a source. `turns` of its facts are numbers; `snippets` and `journal` are by core file.

    `words` are those that a question may use for a new relation.
    """

    facts: tuple[NewFact, ...] = ()
    names: tuple[NamedThing, ...] = ()
    snippets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    journal: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()
    model: str | None = None
    prompt: str | None = None
    usage: ModelUsage = field(default_factory=ModelUsage)
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What was stored from a source. `left` is on disk but not committed."""

    facts: tuple[StoredFact, ...] = ()
    entities: tuple[str, ...] = ()
    edges: int = 0
    left_out: tuple[LeftOut, ...] = ()
    model: str | None = None
    prompt: str | None = None
    usage: ModelUsage = field(default_factory=ModelUsage)
    commit: str | None = None
    left: tuple[str, ...] = ()
    is_dry_run: bool = False


def learned_fields(plan: WritePlan, found: Extraction) -> dict[str, Any]:
    """Return the fields of `Learned`."""
    details = plan.details
    return {
        "facts": tuple(StoredFact(*fact) for fact in details.get("facts", ())),
        "entities": tuple(details.get("entities", ())),
        "edges": details.get("edges", 0),
        "left_out": tuple(LeftOut(*item) for item in details.get("left_out", found.left_out)),
        "model": found.model,
        "prompt": found.prompt,
        "usage": found.usage,
        "commit": plan.written.commit,
        "left": plan.written.left,
    }


def find_problems(value: Mapping[str, Any], piece: Piece) -> list[ItemProblem]:
    """Return the repairable problems of facts in an answer that fits its schema, ten at most."""
    spoken = {turn.number: turn.text for turn in (*piece.turns, *piece.notes)}
    found = find_uncited(value, piece)
    for place, fact in enumerate(value["facts"]):
        cited = [*(set(_cited(fact.get("turns", ()))) & spoken.keys())]
        if len(cited) == 1 and is_denied(fact["text"], spoken[cited[0]]):
            found.append(ItemProblem("facts", place, f"or its turn t{cited[0]} denies what the other says"))
    return found[:10]


def find_uncited(value: Mapping[str, Any], piece: Piece) -> list[ItemProblem]:
    """Return the facts that cite no turn of `piece`; none of an answer that cites no turns, as of a file."""
    known = piece.numbers
    found = []
    for place, fact in enumerate(value["facts"]):
        cited = list(_cited(fact.get("turns", ())))
        if "turns" in fact and not any(turn in known for turn in cited):
            what = f"cites {', '.join(fact['turns'])}, which is not a turn here" if cited else "cites no turn"
            turns = f"t{min(known)} to t{max(known)}" if known else "none"
            found.append(ItemProblem("facts", place, f"{what}; the turns are {turns}"))
    return found


def read_answer(value: Mapping[str, Any], piece: Piece) -> Extraction:
    """Return what may be stored of an answer."""
    turns = {turn.number: turn for turn in (*piece.turns, *piece.notes)}
    facts: list[NewFact] = []
    left_out: list[LeftOut] = []
    read = [_read_fact(raw, turns, piece.material) for raw in value["facts"]]
    pools = {"f": [fact.text for fact in read], "": [fact.id for fact in piece.related]}
    for raw, fact in zip(value["facts"], read, strict=True):
        if raw.get("non_literal"):
            continue
        reasons = {
            f"fewer than {MINIMUM_WORDS} words": not is_long_enough(fact.text),
            "it rests on no turn of this conversation": not fact.turns,
            "it gives orders to its reader": _is_order(fact.text),
            "it rests only on a turn that gives orders to its reader": all(
                _is_order(turns[int(turn)].text) for turn in fact.turns
            ),
        }
        reason = next((reason for reason, holds in reasons.items() if holds), None)
        if reason is None:
            older = _unique(filter(None, (_find_marked(mark, pools) for mark in raw.get("replaces") or ())))
            same = _find_marked(raw.get("confirms"), pools)
            # What says that it is the same and something else is compared by the next run of the janitor.
            facts.append(fact if older and same else replace(fact, id=same, replaces=older))
        else:
            left_out.append(LeftOut(fact.text, reason))
    core: dict[str, dict[str, tuple[str, ...]]] = {"snippets": {}, "journal": {}}
    for part, found in core.items():
        for line in value.get(part) or ():
            file, _, text = line.partition(":")
            safe = clean_line(text) if part == "snippets" else clean_text(text).strip()
            if file in CORE_FILES and safe and not _is_order(safe):
                found[file] = (*found.get(file, ()), safe)
    things: list[NamedThing] = []
    for one in value.get("names") or ():
        name, *rest = map(clean_line, one.split("|"))
        kind = rest.pop(0).lower() if rest and rest[0].lower() in KINDS else None
        things.append(NamedThing(name, kind, _unique(filter(None, rest))))
    names = _merge_names(thing for thing in things if thing.name)
    words = read_relation_words(value, facts)
    return Extraction(tuple(facts), names, core["snippets"], core["journal"], tuple(left_out), words=words)


def read_relation_words(value: Mapping[str, Any], facts: Iterable[NewFact]) -> dict[str, tuple[str, ...]]:
    """Return new relation of `facts` -> the words that a question about it may have."""
    used = {edge.relation for fact in facts for edge in fact.edges}
    found: dict[str, tuple[str, ...]] = {}
    for line in value.get("relations") or ():
        name, *rest = re.split("[|:]", line, maxsplit=1)
        words = _unique(filter(str.isalpha, re.findall(r"[^\W_]+", " ".join(rest).casefold())))[:MAX_WORDS]
        with suppress(BadInputError):  # it has no name
            relation = normalise_edge(Edge("subject", name, "target")).relation
            if words and relation in used and not is_known(relation):
                found[relation] = words
    return found


def merge(parts: Sequence[Extraction], max_facts: int = MAX_FACTS) -> Extraction:
    """Merge the answers to all pieces of a source: a fact in several is stored once, with all its turns.

    Of more than `max_facts` facts the ones with the highest confidence are stored, the others are left out by name.
    """
    merged: dict[str, NewFact] = {}
    for fact in (fact for part in parts for fact in part.facts):
        first = merged.setdefault(text_hash(fact.text), fact)
        merged[text_hash(fact.text)] = replace(
            first,
            id=first.id or fact.id,
            replaces=_unique((*first.replaces, *fact.replaces)),
            confidence=max(first.confidence, fact.confidence),
            created=max(filter(None, (first.created, fact.created)), default=None),
            turns=_unique((*first.turns, *fact.turns)),
            keywords=_unique((*first.keywords, *fact.keywords)),
            edges=_unique((*first.edges, *fact.edges)),
        )
    facts = list(merged.values())
    surest = sorted(range(len(facts)), key=lambda place: -facts[place].confidence)
    stored = set(surest[:max_facts])
    reason = f"more than {max_facts} facts at once"
    return Extraction(
        tuple(fact for place, fact in enumerate(facts) if place in stored),
        _merge_names(thing for part in parts for thing in part.names),
        _union([part.snippets for part in parts]),
        _union([part.journal for part in parts]),
        (
            *(left for part in parts for left in part.left_out),
            *(LeftOut(fact.text, reason) for place, fact in enumerate(facts) if place not in stored),
        ),
        model=next((part.model for part in reversed(parts) if part.model), None),
        prompt=next((part.prompt for part in reversed(parts) if part.prompt), None),
        usage=sum((part.usage for part in parts), ModelUsage()),
        words={relation: words for part in parts for relation, words in part.words.items()},
    )


def _read_fact(raw: Mapping[str, Any], turns: Mapping[int, NumberedTurn], material: Material) -> NewFact:
    cited = [turns[number] for number in dict.fromkeys(_cited(raw["turns"])) if number in turns]
    text, stated_at = clean_line(raw["text"]), _find_moment(cited, turns, material)
    # `yesterday` is counted from the last of the cited turns that has the word.
    with_words = [turn for turn in cited if relative_words(text) & relative_words(turn.text)]
    spoken_at = _find_moment(with_words, turns, material) if with_words else stated_at
    speakers = [turn.speaker for turn in cited if not turn.is_note]
    named = clean_line(raw.get("speaker") or "")
    # For an unnamed speaker the model may know the name.
    is_unknown = not speakers or any(name_key(one) in _ANYBODY for one in speakers)
    # What the assistant proposed and somebody agreed to is that person's word.
    people = [one for one in speakers if name_key(one) != "assistant"] or speakers
    other = named if named and is_unknown else next(iter(people), "")
    speaker = next((one for one in speakers if name_key(one) == name_key(named)), other)
    # The cited turns decide whose claim it is: that of the assistant alone is not a person's, nor the other way round.
    source = raw["source"]
    if speakers and all(name_key(one) == "assistant" for one in speakers):
        source = "assistant"
    elif source == "assistant" and all(name_key(one) in _ANYBODY for one in speakers):
        source = "user" if speakers else source
    confidence = float(raw["confidence"])
    if len(cited) == 1 and is_denied(raw["text"], cited[0].text):
        confidence = min(confidence, DENIED_CONFIDENCE)
    edges: list[Edge] = []
    for edge in raw.get("edges") or ():
        ends = edge.split("|") if isinstance(edge, str) else (edge["subject"], edge["relation"], edge["object"])
        with suppress(BadInputError, ValueError):  # it joins no two things
            subject, relation, target = map(clean_line, ends)
            edges.append(normalise_edge(Edge(subject, relation, target)))
    since = read_period((raw.get("valid_from") or "").strip()[:10])
    until = read_period((raw.get("valid_until") or "").strip()[:10], end=True)
    # An event stays true; only a state or a plan ends.
    has_happened = raw["category"] in HAPPENED
    durability = raw.get("durability") or ("immutable" if has_happened else "mutable")
    is_event = has_happened or durability == "immutable"
    has_end = until and not is_event and not (since and until <= since)
    return NewFact(
        with_dates(text, spoken_at, kind=raw["category"], days=[*filter(None, (since, until))]),
        type=raw["category"],
        status="pending",
        confidence=confidence,
        extraction_confidence=confidence if source == "assistant" else None,
        durability=durability,
        privacy=raw.get("privacy") or "private",
        speaker=speaker or None,
        source=source,
        project=clean_line(raw.get("project") or "") or None,
        created=stated_at,
        valid_from=since,
        valid_until=until if has_end else None,
        keywords=_unique(word for item in raw.get("keywords") or () if (word := clean_line(item.replace(",", " ")))),
        turns=tuple(str(turn.number) for turn in cited),
        edges=_unique(edges),
    )


def _find_moment(
    cited: Iterable[NumberedTurn], turns: Mapping[int, NumberedTurn], material: Material
) -> datetime | None:
    """Return when the last of the cited turns was spoken: of one without a time, the time of the one before."""
    last = max((turn.number for turn in cited), default=0)
    known = [turn.at for turn in turns.values() if turn.number <= last and turn.at]
    moment = known[-1] if known else material.started
    # A later turn of the same minute gets a later id.
    return moment and moment + timedelta(milliseconds=min(last, 999))


def as_project(fact: NewFact, owner: str, project: str | None) -> NewFact:
    """Return a fact of `owner` and `project`."""
    return replace(fact, owner=owner, project=project, technical=project is not None and is_technical(fact.text))


def cite_episode(found: Extraction, session: str, owner: str, episode_name: str | None) -> list[NewFact]:
    """Return the facts of `found`, citing turns of the episode; without its name they cite nothing."""
    return [
        replace(
            as_project(fact, owner, fact.project),
            session=session,
            turns=tuple(f"[[{episode_name}#^t{turn}]]" for turn in fact.turns) if episode_name else (),
        )
        for fact in found.facts
    ]


def _merge_names(things: Iterable[NamedThing]) -> tuple[NamedThing, ...]:
    merged: dict[str, NamedThing] = {}
    for thing in things:
        first = merged.setdefault(name_key(thing.name), thing)
        aliases = _unique((*first.aliases, *thing.aliases))
        merged[name_key(thing.name)] = NamedThing(first.name, first.kind or thing.kind, aliases)
    return tuple(merged.values())


def _is_order(text: str) -> bool:
    return _ORDER.search(without_unseen(text)) is not None or gives_orders(text)


def _cited(turns: Iterable[str]) -> Iterator[int]:
    """`t3`, `D1:3`, `3` and `[t3]` are all the third turn; `t3, t7` are two."""
    for cited in ",".join(turns).split(","):
        if found := _CITED.search(cited):
            yield int(found[1])


def _find_marked(mark: str | None, pools: Mapping[str, Sequence[str]]) -> str | None:
    """Return the fact that `2` (a related fact) or `f2` (a fact of the same answer) means, None where there is none."""
    found = re.fullmatch(r"[\[#\s]*(f?)(\d{1,3})[\].\s]*", mark or "")
    pool = pools[found[1]] if found else ()
    return pool[int(found[2]) - 1] if found and 0 < int(found[2]) <= len(pool) else None


def _union(parts: Sequence[Mapping[str, tuple[str, ...]]]) -> dict[str, tuple[str, ...]]:
    union = {file: _unique(line for part in parts for line in part.get(file, ())) for file in CORE_FILES}
    return {file: lines for file, lines in union.items() if lines}


def _unique(items: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(items))


def build_message(
    subject: str,
    opening: str,
    found: Extraction,
    stored: FactsPlan,
    source: Sequence[tuple[str, str]],
    missing: Sequence[str] = (),
) -> Message:
    """Return the message of a commit that stores what was learned. `source` are its first trailers."""
    new, confirmed, replaced = map(stored.with_outcome, ("created", "confirmed", "replaced"))
    sections = {
        "New": [fact.text for fact in new],
        "No longer true": [fact.text for fact in replaced],
        "Confirmed": [fact.text for fact in confirmed],
        "No longer in the file": missing,
        "New names": stored.entities,
        "Left out": [f"{item.text} ({item.reason})" for item in found.left_out],
    }
    body = [opening]
    for title, lines in sections.items():
        listed = [f"- {line}" for line in lines[:MAX_LISTED]]
        listed += [f"- and {len(lines) - MAX_LISTED} more"] if len(lines) > MAX_LISTED else []
        body += ["\n".join([f"{title}:", *listed])] if listed else []
    trailers = [*source]
    trailers += [("Quaid-Model", found.model)] if found.model else []
    trailers += [("Quaid-Prompt", found.prompt)] if found.prompt else []
    trailers += [("Quaid-Fact", fact.id) for fact in (*new, *confirmed, *replaced)]
    return Message(subject, "\n\n".join(body), tuple(trailers))
