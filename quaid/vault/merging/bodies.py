"""Three versions of a note's body into one: sections, the lines in them, the sentences in a line; turns of episodes.

What both sides have written in one place is kept twice, once each. Nothing is lost but what a side has removed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from quaid.vault.blocks import split_blocks
from quaid.vault.merging.sequences import choose, merge_sequences

_BOX = re.compile(r"(?<=\[)[xX](?=\][ \t])")
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]")
_LEAD = re.compile(r"(?:[ \t]*(?:>|[-*+]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?)*[ \t]*")
_BETWEEN_SENTENCES = re.compile(r"(?<=[.!?])\s+|(?<=[。！？।])\s*")  # noqa: RUF001
_NO_SPACE = "。！？।"  # noqa: RUF001
_WHOLE = re.compile(r"[ \t]*(?:`{3}|~{3}|\||#{1,6}[ \t]|[-*+][ \t].*\]\][ \t]*$)")
"""What is no prose: code, tables, headings, edges."""

Key = tuple[int, str]
"""Of a line a number, which has prose before lists and both before headings, and what it says; of a turn its own."""
_HEADING = 2
_FIRST: Key = (0, "")
"""The section before the first heading."""


class Unit(NamedTuple):
    """A line, or lines that belong together. `lead` are the newlines and blanks before it; two units with one `key` are
    versions of each other.
    """

    key: Key
    text: str
    lead: str


class Section(NamedTuple):
    """The units below a heading, which comes first; without one before the first heading."""

    key: Key
    units: tuple[Unit, ...]


class Body(NamedTuple):
    """A body in pieces. `tail` stands behind the last of them."""

    sections: tuple[Section, ...]
    tail: str

    @property
    def units(self) -> list[Unit]:
        return [unit for section in self.sections for unit in section.units]


def merge_bodies(base: str, ours: str, theirs: str, *, newest_first: bool = False) -> str:
    """Return the body with the changes of both sides, section by section and line by line.

    Of a line that both have changed, the sentences are merged where each has kept one, else both versions are kept.
    """
    if ours in (theirs, base) or theirs == base:
        return choose(base, ours, theirs)
    sides = [_split_body(body) for body in (base, ours, theirs)]
    by_key = [{section.key: section.units for section in side.sections} for side in sides]
    merged = {key: _merge_units(*(side.get(key, ()) for side in by_key)) for key in set().union(*by_key)}
    said = {key for key, units in merged.items() if any(unit.key != key for unit in units)}
    step = -1 if newest_first else 1  # the order of what both have added ascends
    orders = [[section.key for section in side.sections[1:]][::step] for side in sides]
    order = [_FIRST, *merge_sequences(orders[0], orders[1], orders[2], said - {_FIRST})[::step]]
    units = [unit for key in order for unit in _with_heading(key, merged[key], by_key)]
    return _render(units, choose(*(side.tail for side in sides)), sides[0].units)


def merge_turns(base: str, ours: str, theirs: str) -> str:
    """Return the turns of all sides, by their numbers; a turn that one has forgotten stays forgotten."""
    if ours in (theirs, base) or theirs == base:
        return choose(base, ours, theirs)
    sides, silent = zip(*(_split_turns(body) for body in (base, ours, theirs)), strict=True)
    units = _merge_equal(*(side.units for side in sides))
    said_nothing = frozenset().union(*silent)
    forgotten = {unit.key[0] for unit in units if unit.key in said_nothing and unit.key[0]}
    left = [unit for unit in units if unit.key[0] not in forgotten or unit.key in said_nothing]
    return _render(left, choose(*(side.tail for side in sides)), ())


def list_sentences(body: str) -> list[str]:
    """Return the sentences of prose in `body`, without the marks of lists before them, in their order."""
    found = []
    for unit in _split_body(body).units:
        if not _is_whole(unit):
            found += [text for _, text in _sentences(unit.text[_lead_end(unit.text) :])]
    return found


def _merge_units(base: Sequence[Unit], ours: Sequence[Unit], theirs: Sequence[Unit]) -> list[Unit]:
    """The lines of one section. A line of the base that both have reworded in part stays one line."""
    one, other = _find_rewordings(base, ours), _find_rewordings(base, theirs)
    sides = _with_rewordings(ours, one), _with_rewordings(theirs, other)
    return _merge_equal(base, *sides, one.keys() | other.keys())


def _merge_equal(
    base: Sequence[Unit], ours: Sequence[Unit], theirs: Sequence[Unit], keep: Collection[Key] = ()
) -> list[Unit]:
    """Units by their keys alone. Those in `keep` one side has changed: they stay, though the other has removed them."""
    known = [{unit.key: unit for unit in reversed(side)} for side in (base, ours, theirs)]
    orders = [[unit.key for unit in side] for side in (base, ours, theirs)]
    order = merge_sequences(orders[0], orders[1], orders[2], keep)
    return [_merge_versions(*(side.get(key) for side in known)) for key in order]


def _merge_versions(base: Unit | None, ours: Unit | None, theirs: Unit | None) -> Unit:
    one, other = ours or base or theirs, theirs or base or ours
    assert one is not None
    assert other is not None
    before = base or Unit(one.key, "", "")
    lead = choose(before.lead, one.lead, other.lead)
    if base is not None and len({base.text, one.text, other.text}) == 3:
        return Unit(one.key, _merge_sentences(base.text, one.text, other.text), lead)
    return Unit(one.key, choose(before.text, one.text, other.text), lead)


def _merge_sentences(base: str, ours: str, theirs: str) -> str:
    ends = [_lead_end(text) for text in (base, ours, theirs)]
    leads = [text[:end] for text, end in zip((base, ours, theirs), ends, strict=True)]
    said = [_sentences(text[end:]) for text, end in zip((base, ours, theirs), ends, strict=True)]
    words = [dict(side) for side in said]
    texts = []
    for key in merge_sequences(*([key for key, _ in side] for side in said)):
        before, one, other = (side.get(key, "") for side in words)
        texts.append(choose(before, one or before or other, other or before or one))
    joined = "".join(text if text[-1] in _NO_SPACE else f"{text} " for text in texts)
    return choose(*leads) + joined.rstrip()


def _find_rewordings(base: Sequence[Unit], side: Sequence[Unit]) -> dict[Key, list[Unit]]:
    """The new lines that have a sentence of a line of `base` which is gone, by the key of that line."""
    there, before = {unit.key for unit in side}, {unit.key for unit in base}
    gone = {
        sentence: unit.key for unit in reversed(base) if unit.key not in there for sentence in _keys_of_sentences(unit)
    }
    found: dict[Key, list[Unit]] = {}
    for unit in side if gone else ():
        if unit.key not in before:
            of = next((gone[sentence] for sentence in _keys_of_sentences(unit) if sentence in gone), None)
            found.setdefault(of, []).append(unit) if of is not None else None
    return found


def _with_rewordings(side: Sequence[Unit], rewordings: Mapping[Key, list[Unit]]) -> list[Unit]:
    """The lines of a side with each rewording of a line of the base as a version of that line."""
    versions = {units[0].key: (key, units) for key, units in rewordings.items()}
    absorbed = {unit.key for units in rewordings.values() for unit in units[1:]}
    lines = []
    for unit in side:
        key, units = versions.get(unit.key, (unit.key, [unit]))
        if unit.key not in absorbed:
            more = "".join(f" {other.text[_lead_end(other.text) :]}" for other in units[1:])
            lines.append(Unit(key, unit.text + more, unit.lead))
    return lines


def _with_heading(key: Key, units: Sequence[Unit], sides: Sequence[Mapping[Key, Sequence[Unit]]]) -> list[Unit]:
    """The units of a section that one side has removed and to which the other has added: under its heading again."""
    if key[1] and (not units or units[0].key != key):
        heading = next(side[key][0] for side in sides if key in side)
        return [heading, *units]
    return list(units)


def _split_body(body: str) -> Body:
    """Cut a body into sections at headings of level one and two, and those into lines; a code fence is one unit."""
    lines = body.split("\n")
    heading_of: dict[int, int] = {}
    last_of: dict[int, int] = {}
    for block in split_blocks([line.removesuffix("\r") for line in lines], 0):
        if block.kind == "fence" or (block.kind == "heading" and block.first != block.last):
            last_of[block.first] = block.last
        if block.kind == "heading" and block.level <= 2:
            heading_of[block.first] = block.level
    sections: list[tuple[Key, list[Unit]]] = [(_FIRST, [])]
    seen: dict[Key, int] = {}
    lead, place = "\n", 0
    while place < len(lines):
        last = last_of.get(place, place)
        text = "\n".join(lines[place : last + 1])
        if not text.strip():
            lead += f"{text}\n"
        else:
            # Case, white space and the tick in a box make no other line.
            key = int(_ITEM.match(text) is not None), text if "\n" in text else _BOX.sub(" ", _fold(text))
            if place in heading_of:
                seen[key] = seen.get(key, -1) + 1
                key = (_HEADING + seen[key], key[1])
                sections.append((key, []))
            sections[-1][1].append(Unit(key, text, lead))
            lead = "\n"
        place = last + 1
    return Body(
        tuple(Section(key, tuple(units)) for key, units in sections), lead[:-1] if not lines[-1].strip() else ""
    )


def _split_turns(body: str) -> tuple[Body, frozenset[Key]]:
    """The turns of an episode, and the keys of those that were forgotten."""
    from quaid.vault.episodes import parse_turns

    body = f"\n{body}"
    turns = parse_turns(body)
    starts = [*(turn.start for turn in turns), len(body)]
    units, lead = [], body[: starts[0]]
    for turn, end in zip(turns, starts[1:], strict=True):
        written = body[turn.start : end]
        text = written.rstrip()
        units.append(Unit((turn.number or 0, _fold(text)), text, lead))
        lead = written[len(text) :]
    silent = {unit.key for unit, turn in zip(units, turns, strict=True) if not turn.text}
    return Body((Section(_FIRST, tuple(units)),), lead), frozenset(silent)


def _render(units: Sequence[Unit], tail: str, base: Sequence[Unit]) -> str:
    """The text of `units`. An item of a list stands as far from what is before it as in `base`: on another side it may
    have been the first of its list. A new one stands right behind the item before it, or behind a blank line.
    """
    items = [unit for unit in base if _ITEM.match(unit.text)]
    firsts = {unit.key: unit.lead for unit in items} | {
        unit.key: "" for before, unit in pairwise(base) if _ITEM.match(unit.text) and _ITEM.match(before.text)
    }
    followers = {unit.key: unit.lead for unit in items if not firsts[unit.key]}
    written: list[str] = []
    is_item = False
    for unit in units:
        starts_item = _ITEM.match(unit.text) is not None
        lead = unit.lead
        if starts_item:
            lead = followers.get(unit.key, "\n") if is_item else firsts.get(unit.key) or "\n" * min(2, 1 + len(written))
        written += [lead, unit.text]
        is_item = starts_item
    return "".join([*written, tail])[1:]


def _fold(text: str) -> str:
    return " ".join(text.split()).casefold()


def _lead_end(text: str) -> int:
    found = _LEAD.match(text)
    return found.end() if found else 0


def _sentences(text: str) -> list[tuple[Key, str]]:
    return [((0, _fold(sentence)), sentence) for sentence in _BETWEEN_SENTENCES.split(text.strip()) if sentence]


def _keys_of_sentences(unit: Unit) -> list[Key]:
    return [] if _is_whole(unit) else [key for key, _ in _sentences(unit.text[_lead_end(unit.text) :])]


def _is_whole(unit: Unit) -> bool:
    return "\n" in unit.text or _WHOLE.match(unit.text) is not None
