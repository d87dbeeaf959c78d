"""Hits -> what a reader is shown of them in a budget: a block for each conversation and note, most relevant first.

    ## Thu 2023-05-25
    * Maya: we went to the fair last Saturday (= 2023-05-20)
    - Jon: how was it?
    …
    * Maya: Kit won a prize for her lantern

A line is a turn and its speaker, under its day. `*` marks a match, `-` its context, and `…` an omission between two
lines. A fact follows the turn that it cites; a turn that says the same is the match in its place. The budget goes to
the lines that are most likely to hold the answer for their length.

All text is escaped: no memory can begin a line itself.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from itertools import groupby, pairwise
from typing import Any, NamedTuple

from quaid.claims import find_lost_detail
from quaid.model import Hit, Neighbour
from quaid.recall import cutoff
from quaid.recall.intent import asks_for_course, asks_for_list
from quaid.text.quoting import as_name, describe_standing, neutralise, on_one_line, shorten
from quaid.text.relative_dates import with_dates
from quaid.text.stop_words import STOP_WORDS
from quaid.text.zones import order_key

MATCH, CONTEXT, GAP = "* ", "- ", "…"
LEGEND = "(* matches the question; - stands beside a match; … something was left out)"
MAX_TEXT = 1_200
"""Characters of one memory; the note has the rest. The pieces of notes and conversations are shorter."""
_BEHIND = 3
"""The n-th hit, from 0, counts `1 / (n + _BEHIND)`. Its odds fall faster, but questions want all of their evidence."""
_FRAME = 60
"""Characters added to the length of each line in its worth: a very short text says little."""
_EXPLAINED, _NEIGHBOUR_SHARE = 3, 0.15
"""A turn near one of the best hits counts so much of what the hit does, unless it is a better hit itself. Near others
one turn in a thousand holds evidence.
"""
_SHORT = 60
"""A hit among the best that is shorter comes with what it answers, or what answers it, whatever that says."""
_MIN_REPEATED = 0.5
"""A turn repeats a fact if it has at least this share of the fact's words."""
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MAX_HEADING = 120
_APART = "\0"
"""Separates the name of a vault from the name of a note in it."""
_SPEAKERS = ("User: ", "Assistant: ")
"""Roles that turns have; any other, such as a heading or a speaker called System, must not look like one."""
_PICTURE = "(?:photo|picture|image|photograph|photography|screenshot)"
_NESTED_CAPTION = rf"(?i)\b((?:an? )?{_PICTURE}s? of )(?:an? {_PICTURE} of )+"
_WORD = re.compile(r"[^\W_]+")


class Excerpt(NamedTuple):
    """The rendered `text` and the `hits` in it, each with the neighbours that are also shown."""

    text: str
    hits: tuple[Hit, ...]


@dataclass(frozen=True, slots=True)
class _Entry:
    """A piece of a note or a conversation, or a fact at its place there."""

    path: str
    ordinal: int
    text: str
    heading: str = ""
    turn: int | None = None
    speaker: str | None = None
    created: str | None = None
    hit: Hit | None = None
    is_fact: bool = False
    cited: frozenset[int] = frozenset()
    """Of a fact the ordinals of the turns in this conversation that it rests on."""


def pack(
    hits: Sequence[Hit],
    budget: int,
    *,
    question: str = "",
    more: bool = False,
    fill_to: int | None = None,
    with_ids: bool = False,
) -> Excerpt:
    """Render `hits`, best first, in at most `budget` tokens. Neighbours fill it up to `fill_to` tokens.

    The answer to a `question` for a list states whether it is complete. `more` means that other memories matched too.
    `with_ids` adds the id and the score to each line that matched.
    """
    apart = [_apart(hit) for hit in hits]
    original = {each.id: hit for each, hit in zip(apart, hits, strict=True)}
    hits = [_before_its_talk(hit, apart) for hit in apart]
    asks_list = asks_for_list(question)
    page = _Page(hits, budget, budget if fill_to is None else fill_to, with_ids=with_ids)
    if asks_list:
        page.room -= cutoff.weight(_completeness(len(hits), len(hits), more=True)) + 1
    shown = {hit.id for hit in hits[:1] if page.put(_entry_of(hit)) or page.put_trimmed(hit)}
    for hit, entry in _most_worth_first(hits):
        successors = [other for other in hits if other.id in hit.earlier_than and other.id not in shown]
        shown |= {other.id for other in successors if page.put(_entry_of(other))}
        if any(other.id not in shown for other in successors):
            continue
        is_shown = hit.id in shown
        if (is_shown if entry.hit is None else not is_shown) and page.put(entry):
            shown.add(hit.id)
    unshown = (hit for hit in hits if hit.id not in shown and shown.issuperset({*hit.earlier_than} & original.keys()))
    trimmed = next((hit for hit in unshown if page.put_trimmed(hit)), None)
    ranked = [hit for hit in hits if hit.id in shown or hit is trimmed]
    for neighbour in _in_order_of_need(ranked):
        page.put(_entry_of(neighbour))
    remarks = [LEGEND] if page.has_context else []
    remarks += [_completeness(len(ranked), len(hits), more=more)] if asks_list and ranked else []
    shown_hits = tuple(replace(original[hit.id], beside=page.shown_neighbours(hit)) for hit in ranked)
    return Excerpt("\n".join([*remarks, page.render(is_by_date=asks_for_course(question))]).strip(), shown_hits)


def _apart(hit: Hit) -> Hit:
    """Return `hit` with its vault before all that names a note: two vaults may have notes of one name."""
    if not hit.vault:
        return hit
    before = f"{hit.vault}{_APART}"
    names = ("contradicts", "later_than", "earlier_than")
    rivals: dict[str, Any] = {name: tuple(before + other for other in getattr(hit, name)) for name in names}
    neighbours = tuple(replace(each, path=before + each.path) for each in hit.beside)
    return replace(hit, id=before + hit.id, path=before + hit.path, beside=neighbours, **rivals)


def _before_its_talk(hit: Hit, hits: Sequence[Hit]) -> Hit:
    """Return a fact without the turns that it cites where it replaces a turn of their conversation: on a line of its
    own it comes first.
    """
    replaced = {other.path for other in hits if other.turn is not None and other.id in hit.later_than}
    return replace(hit, beside=()) if any(each.path in replaced for each in hit.beside) else hit


def _own(name: str) -> str:
    """Return a name as its vault has it."""
    return name.rpartition(_APART)[2]


def _most_worth_first(hits: Sequence[Hit]) -> list[tuple[Hit, _Entry]]:
    """Return the entries of `hits` and what makes them whole, each with its hit, those first that are likeliest to hold
    the answer for their length. What makes a hit whole never comes before it.
    """
    at_place = {(hit.path, hit.ordinal): hit for hit in hits}
    offers: list[tuple[float, Hit, _Entry]] = []
    for rank, hit in enumerate(hits):
        own = _worth(rank, len(hit.text))
        offers.append((own, hit, _entry_of(hit)))
        rest = sum(len(each.text) for each in hit.beside if _is_same_turn(hit, each))
        for each in _nearest_first(hit):
            is_missed = rank < _EXPLAINED and len(hit.text) < _SHORT and _is_explaining(hit, each)
            if _is_same_turn(hit, each):
                worth = _worth(rank, rest)
            elif each.cited or is_missed:
                worth = _worth(rank, len(each.text))
            elif rank < _EXPLAINED:
                worth = _worth(rank, len(each.text)) * _NEIGHBOUR_SHARE
            else:
                continue
            other = at_place.get((each.path, each.ordinal))
            offers.append((min(own, worth), other or hit, _entry_of(other or each)))
    offers.sort(key=lambda offer: -offer[0])
    return [(hit, entry) for _, hit, entry in offers]


def _worth(rank: int, length: int) -> float:
    return 1 / ((rank + _BEHIND) * (length + _FRAME))


def _completeness(shown: int, count: int, *, more: bool) -> str:
    if shown == count and not more:
        return f"({shown} of {count} that matched {'is' if count == 1 else 'are'} shown)"
    return f"({shown} of {'more than ' if more else ''}{count} that matched are shown)"


def _in_order_of_need(hits: Sequence[Hit]) -> Iterator[Neighbour]:
    """Yield the neighbours of `hits`: first the rest of their own turns, then the turns that they cite or answer, then
    the others, nearest first. Within each group the best hit comes first.
    """
    for is_needed in (
        _is_same_turn,
        _is_explaining,
        lambda hit, each: each.cited or abs(hit.ordinal - each.ordinal) == 1,
    ):
        for hit in hits:
            yield from (each for each in _nearest_first(hit) if is_needed(hit, each))
    for hit in hits:
        yield from _nearest_first(hit)


def _nearest_first(hit: Hit) -> list[Neighbour]:
    return sorted(hit.beside, key=lambda each: abs(each.ordinal - hit.ordinal))


def _is_same_turn(hit: Hit, other: Neighbour) -> bool:
    return hit.turn is not None and other.turn == hit.turn and not other.cited


def _is_explaining(hit: Hit, other: Neighbour) -> bool:
    """The turn that a fact rests on, the question that a turn answers, the answer to a turn that asks."""
    asks = hit.text.rstrip().endswith("?")
    answers = other.text.rstrip().endswith("?")
    return other.cited or (asks and other.ordinal == hit.ordinal + 1) or (answers and other.ordinal == hit.ordinal - 1)


def _entry_of(found: Hit | Neighbour) -> _Entry:
    hit = found if isinstance(found, Hit) else None
    place = found.path, found.ordinal, found.text, found.heading
    entry = _Entry(*place, found.turn, found.speaker, found.created, hit)
    if hit is None or hit.kind != "fact":
        return entry
    cited = [each for each in hit.beside if each.cited]
    if not cited:
        return replace(entry, is_fact=True)
    home = cited[0].path
    places = frozenset(each.ordinal for each in cited if each.path == home)
    return replace(entry, path=home, ordinal=max(places), heading=cited[0].heading, is_fact=True, cited=places)


class _Page:
    """Blocks, that with the best hit first, never longer than the budget."""

    def __init__(self, hits: Sequence[Hit], budget: int, fill_to: int, *, with_ids: bool) -> None:
        self._hits = {hit.id: hit for hit in hits}
        self._ranks = {hit.id: rank for rank, hit in enumerate(hits)}
        self.room = budget * cutoff.CHARACTERS_PER_TOKEN
        self._for_hits = (budget - fill_to) * cutoff.CHARACTERS_PER_TOKEN
        self._with_ids = with_ids
        self._blocks: dict[str, tuple[dict[tuple[int, str], _Entry], str]] = {}
        """By path, the entries of a block by (ordinal, id of a fact or empty), and its text."""
        self.has_context = False
        """Whether something is shown that did not match, which needs a word on the marks."""

    def put(self, entry: _Entry) -> bool:
        """Put the entry in its place; False if there is no room for it. What is there already stays as it is."""
        if len(entry.text) > MAX_TEXT:
            entry = replace(entry, text=shorten(entry.text, MAX_TEXT))
        if len(entry.text) > self.room:
            return False
        present, before = self._blocks.get(entry.path, ({}, ""))
        key = (entry.ordinal, entry.hit.id if entry.hit and entry.is_fact else "")
        if key in present and entry.hit is None:
            return True
        entries = {**present, key: entry}
        text = "\n".join(self._render_block(entries))
        used = cutoff.weight(text) - cutoff.weight(before) + (0 if present else 2)
        needs_legend = entry.hit is None and not self.has_context
        used += cutoff.weight(LEGEND) + 1 if needs_legend else 0
        if used > self.room - (0 if entry.hit else self._for_hits):
            return False
        self.room -= used
        self._blocks[entry.path] = entries, text
        self.has_context |= entry.hit is None
        return True

    def put_trimmed(self, hit: Hit) -> bool:
        """Put the beginning of `hit`; False if there is no room for it."""
        entry = _entry_of(hit)
        frame = cutoff.weight("\n".join(self._render_block({(0, ""): replace(entry, text="")}))) + 4
        trimmed = cutoff.trim(entry.text, (self.room - frame) // cutoff.CHARACTERS_PER_TOKEN)
        return bool(trimmed) and self.put(replace(entry, text=trimmed))

    def shown_neighbours(self, hit: Hit) -> tuple[Neighbour, ...]:
        """Return those of the neighbours of `hit` that are shown, as its own vault names them."""
        shown = {
            (path, ordinal)
            for path, (entries, _) in self._blocks.items()
            for (ordinal, _), entry in entries.items()
            if entry.hit is None
        }
        neighbours = (each for each in hit.beside if (each.path, each.ordinal) in shown)
        return tuple(replace(each, path=_own(each.path)) for each in neighbours)

    def render(self, *, is_by_date: bool = False) -> str:
        """Return the blocks, apart from each other by an empty line where one has several lines. They are in the order
        of the best hit that is in one or cites a turn in it, or the earliest first.
        """
        text = ""
        was_line = True
        ranks: dict[str, Any] = {}
        for path, (entries, _) in self._blocks.items():
            present = {entry.hit.id for entry in entries.values() if entry.hit}
            citing = {hit.id for hit in self._hits.values() if any(each.path == path for each in hit.beside)}
            ranks[path] = min((self._ranks[each] for each in present | citing), default=len(self._ranks))
            if is_by_date:
                ranks[path] = min(order_key(entry.created) for entry in entries.values())
        for path in sorted(ranks, key=ranks.__getitem__):
            block = self._blocks[path][1]
            is_line = "\n" not in block
            text += ("\n" if is_line and was_line else "\n\n") + block if text else block
            was_line = is_line
        return text

    def _render_block(self, entries: dict[tuple[int, str], _Entry]) -> Iterator[str]:
        ordered = [entries[key] for key in sorted(entries)]
        first = ordered[0]
        title, _, _ = first.heading.partition(" > ")
        # The day of a conversation of which several turns are shown, where they are all of one day.
        days = {each.turn: _day(each.created).strip() for each in ordered if each.turn is not None and not each.is_fact}
        day = days.popitem()[1] if len(days) > 1 and len({*days.values()}) == 1 else ""
        if title or day:
            # A note has its kind and its day there; the lines of a conversation have theirs.
            hit = next((each.hit for each in ordered if each.hit and each.turn is None and not each.is_fact), None)
            about = f" ({', '.join(filter(None, (hit.kind, _day(hit.created).strip())))})" if hit else ""
            heading = f"{on_one_line(title)[:_MAX_HEADING]}{about}" if title else ""
            yield f"## {heading}{f' ({day})' if heading and day else day}"
        turns = {entry.ordinal: entry for entry in ordered if not entry.is_fact}
        facts = [each for each in ordered if each.is_fact and not self._render_fact(each, turns, day)]
        repeated = {ordinal: fact.hit for fact in facts for ordinal in fact.cited}
        last: int | None = None
        section = ""
        for (_, is_fact), group in groupby(
            ordered, key=lambda each: (each.ordinal if each.turn is None or each.is_fact else -each.turn, each.is_fact)
        ):
            pieces = list(group)
            if last is not None and pieces[0].ordinal > last + 1:
                yield GAP
            last = pieces[-1].ordinal
            if is_fact:
                yield from (line for each in pieces if (line := self._render_fact(each, turns, day)))
                continue
            _, _, heading = pieces[0].heading.partition(" > ")
            hit = next((hit for each in pieces if (hit := each.hit or repeated.get(each.ordinal))), None)
            yield self._render_pieces(pieces, hit, heading if heading != section else "", day)
            section = heading

    def _render_pieces(self, pieces: Sequence[_Entry], hit: Hit | None, heading: str, day: str) -> str:
        """Return the line of a turn, or the paragraphs of a section, from the pieces of it that are shown. `hit` is the
        match in it, or the fact that it repeats.
        """
        first = pieces[0]
        stated_at = first.created if first.turn is not None else None
        gaps = [after.ordinal > before.ordinal + 1 for before, after in pairwise(pieces)]
        text = show(pieces[0].text, stated_at)
        for piece, is_apart in zip(pieces[1:], gaps, strict=True):
            text += (f" {GAP} " if is_apart else "\n") + show(piece.text, stated_at)
        mark = MATCH if hit else CONTEXT
        if first.turn is None:
            lead = neutralise(f"{on_one_line(heading)[:_MAX_HEADING]}: ") if heading else ""
            body = "\n  ".join(line for line in text.splitlines() if line.strip())
        else:
            lead = f"{'' if day else _day(first.created)}{as_name(first.speaker or '')}".strip()
            lead = f"{lead}: " if lead else ""
            lead = lead if lead in _SPEAKERS else neutralise(lead)
            body = " ".join(text.split())
        return f"{mark}{lead}{body}{self._about(hit)}"

    def _render_fact(self, fact: _Entry, turns: dict[int, _Entry], day: str) -> str:
        """Return the line of a fact; empty if the turns that it rests on say the same."""
        if fact.hit is None:
            return ""
        cited = [turns[ordinal] for ordinal in sorted(fact.cited) if ordinal in turns]
        if cited and not fact.hit.contradicts:
            transcript = " ".join(f"{turn.speaker or ''}: {turn.text}" for turn in cited)
            words = _content(fact.text)
            is_repeated = len(words & _content(transcript)) >= _MIN_REPEATED * len(words)
            if is_repeated and find_lost_detail(transcript, fact.text) is None:
                return ""
        speaker = as_name(fact.speaker or "")
        is_adjacent = any(turn.ordinal == fact.ordinal for turn in cited)
        stated = _day(fact.created)
        day_stated = "" if stated.strip() == day else stated
        lead = "fact" if is_adjacent else f"{day_stated}fact{f' by {speaker}' if speaker else ''}"
        body = " ".join(show(fact.text).split())
        return f"{MATCH}{lead}: {body}{self._about(fact.hit)}"

    def _about(self, hit: Hit | None) -> str:
        """Return what else is to be known of a hit, in brackets."""
        if hit is None:
            return ""
        about = describe_standing(hit)
        about += [f"score {hit.score:.2f}", f"id {on_one_line(_own(hit.id))}"] if self._with_ids else []
        return f" ({', '.join(about)})" if about else ""


def _content(text: str) -> set[str]:
    """Return the beginnings of its words that say something: `adopted` and `adopting` are one."""
    return {word[:5] for word in map(str.lower, _WORD.findall(text)) if word not in STOP_WORDS}


@lru_cache(maxsize=1_024)
def show(text: str, stated_at: str | None = None) -> str:
    """Escape a text, add the dates of its relative days, counted from `stated_at`, and reduce `a photo of a photo of`
    to one.
    """
    shown = re.sub(_NESTED_CAPTION, r"\1", neutralise(text))
    moment = _moment(stated_at)
    return with_dates(shown, moment, digits=True)


def show_neighbour(other: Neighbour, longest: int) -> str:
    """Render a neighbour of a hit on one line of at most `longest` characters."""
    speaker = as_name(other.speaker or "")
    lead = f"{_day(other.created)}{speaker}".strip() if other.turn is not None else ""
    body = shorten(" ".join(show(other.text, other.stated_at).split()), longest)
    return f"{lead}: {body}" if lead else body


def _moment(created: str | None) -> datetime | None:
    with suppress(ValueError):
        return datetime.fromisoformat(created) if created else None
    return None


def _day(created: str | None) -> str:
    """Return `Thu 2023-05-25 `, the day as it is written where it is not a whole date."""
    moment = _moment(created)
    if moment is not None:
        return f"{_DAYS[moment.weekday()]} {moment.date().isoformat()} "
    return f"{as_name(created[:10])} " if created else ""
