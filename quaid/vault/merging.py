"""Three versions of a note into one, so that machines agree in whatever order they meet.

Pure. A part that only one side has changed gets that side's version. Where both have changed a part, it gets the
greater of the two in an order in which the base is the least: such a join is commutative, associative and
idempotent (Shapiro, Preguiça, Baquero & Zawirski, "Conflict-free replicated data types", 2011).
Begin with `merge_note`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from itertools import pairwise, product
from typing import Any, Literal, NamedTuple, TypeVar

from quaid.vault import frontmatter
from quaid.vault.frontmatter import FrontmatterBrokenError, KeyLines
from quaid.vault.markdown import split_blocks

T = TypeVar("T")
Item = TypeVar("Item", bound=Hashable)
_Numbered = tuple[Any, int]


def choose(base: T, ours: T, theirs: T) -> T:
    """Return the value that a side changed; where both did, the greater one."""
    if ours in (theirs, base):
        return theirs
    return ours if theirs == base or ours > theirs else theirs  # type: ignore[operator]


def merge_sequences(
    base: Sequence[Item], ours: Sequence[Item], theirs: Sequence[Item], keep: Collection[Item] = ()
) -> list[Item]:
    """Return the items of `base` that both sides have, or that are in `keep`, in its order, and those that a side has
    added, behind the same item of `base` as there.

    What both have added in one place is put in order by a tree: the parent of an item is the nearest greater one before
    it, and siblings ascend. Such trees and lists are in one-to-one correspondence, so each side keeps its own order
    where it can, and the union of two trees (of two parents the greater one) does not depend on which came first.
    """
    if not keep and theirs in (ours, base):
        return list(ours)
    if not keep and ours == base:
        return list(theirs)
    counts = [Counter(items) for items in (base, ours, theirs)]
    wanted = {item: max(_count(*(each[item] for each in counts)), int(item in keep)) for item in set().union(*counts)}
    numbered = [list(_number(items)) for items in (base, ours, theirs)]
    remaining = [(item, number) for item, number in numbered[0] if number < wanted[item]]
    return [item for item, _ in _Added(numbered[0], remaining, numbered[1:]).insert_after(remaining)]


def _count(base: int, ours: int, theirs: int) -> int:
    """How often an item is there: added by one side, it stays, whatever the other has removed."""
    most = max(ours, theirs)
    return most if most > base else min(ours, theirs)


def _number(items: Sequence[Item]) -> Iterator[_Numbered]:
    seen: Counter[Item] = Counter()
    for item in items:
        yield item, seen[item]
        seen[item] += 1


class _Added:
    """The items that the sides have added: those right behind an item of the base by its place (-1 is the beginning),
    the others by their parent.
    """

    def __init__(
        self, base: Sequence[_Numbered], remaining: Sequence[_Numbered], sides: Sequence[list[_Numbered]]
    ) -> None:
        self._base = frozenset(base)
        self._place_of = {item: place for place, item in enumerate(remaining)}
        self._parents: dict[_Numbered, _Numbered | None] = {}
        self._anchors: dict[_Numbered, int] = {}
        for side in sides:
            self._read(side)
        self._behind: dict[int | _Numbered, list[_Numbered]] = {}
        for item in sorted(self._parents, reverse=True):  # a stack takes the last one first
            parent = self._parents[item]
            self._behind.setdefault(self._anchors[item] if parent is None else parent, []).append(item)

    def _read(self, side: Sequence[_Numbered]) -> None:
        anchor, greater = -1, list[_Numbered]()
        for item in side:
            if item in self._base:
                anchor, greater = self._place_of.get(item, anchor), []
                continue
            while greater and greater[-1] < item:
                greater.pop()
            self._add(item, greater[-1] if greater else None, anchor)
            greater.append(item)

    def _add(self, item: _Numbered, parent: _Numbered | None, anchor: int) -> None:
        known = self._parents.get(item)
        if known is None or (parent is not None and parent > known):
            self._parents[item] = parent if parent is not None else known
        if parent is None:
            self._anchors[item] = min(anchor, self._anchors.get(item, anchor))

    def insert_after(self, remaining: Sequence[_Numbered]) -> Iterator[_Numbered]:
        """Yield the items of `remaining`, each followed by those that belong behind it."""
        for place in range(-1, len(remaining)):
            if place >= 0:
                yield remaining[place]
            waiting = list(self._behind.get(place, ()))
            while waiting:
                item = waiting.pop()
                yield item
                waiting += self._behind.get(item, ())


# -- conflict markers -------------------------------------------------------------------------------------------------

Side = Literal["ours", "theirs", "both"]
SIDES: tuple[Side, ...] = ("ours", "theirs", "both")
_REGION = re.compile(
    rb"^(?P<open><{7,})(?: [^\r\n]*)?\r?\n(?P<ours>.*?)"
    rb"(?:^\|{7,}(?: [^\r\n]*)?\r?\n(?P<base>.*?))?"
    rb"^={7,}\r?\n(?P<theirs>.*?)^>{7,}(?: [^\r\n]*)?\r?(?:\n|\Z)",
    re.MULTILINE | re.DOTALL,
)


def find_conflicts(data: bytes, *sides: bytes) -> list[bytes]:
    """Return the conflicts in `data`, marks included. Marks that one of the merged `sides` has are text."""
    found = (region[0] for region in _REGION.finditer(data)) if b"<<<<<<<" in data else ()
    return [region for region in found if not any(region in side for side in sides)]


def choose_side(data: bytes, side: Side, *sides: bytes) -> bytes:
    """Return `data` with `side` of each conflict; of both sides that are equal, one."""
    conflicts = find_conflicts(data, *sides)

    def chosen(region: re.Match[bytes]) -> bytes:
        if region[0] not in conflicts:
            return region[0]
        if side != "both":
            return region[side]
        return region["ours"] + (region["theirs"] if region["theirs"] != region["ours"] else b"")

    return _REGION.sub(chosen, data)


# -- bodies -----------------------------------------------------------------------------------------------------------

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
    """A body in pieces, and the `tail` after the last of them."""

    sections: tuple[Section, ...]
    tail: str

    @property
    def units(self) -> list[Unit]:
        return [unit for section in self.sections for unit in section.units]


def merge_bodies(base: str, ours: str, theirs: str, *, newest_first: bool = False) -> str:
    """Return the body with the changes of both sides, section by section and line by line.

    Of a line that both have changed, the sentences are merged if each has preserved one, else both versions stay.
    """
    if ours in (theirs, base) or theirs == base:
        return choose(base, ours, theirs)
    sides = [_split_body(body) for body in (base, ours, theirs)]
    by_key = [{section.key: section.units for section in side.sections} for side in sides]
    merged = {key: _merge_units(*(side.get(key, ()) for side in by_key)) for key in set().union(*by_key)}
    reworded = {key for key, units in merged.items() if any(unit.key != key for unit in units)}
    step = -1 if newest_first else 1  # the order of what both have added ascends
    orders = [[section.key for section in side.sections[1:]][::step] for side in sides]
    order = [_FIRST, *merge_sequences(orders[0], orders[1], orders[2], reworded - {_FIRST})[::step]]
    units = [unit for key in order for unit in _with_heading(key, merged[key], by_key)]
    return _render(units, choose(*(side.tail for side in sides)), sides[0].units)


def merge_turns(base: str, ours: str, theirs: str) -> str:
    """Return the turns of all sides, by their numbers; a turn that one has forgotten stays forgotten."""
    if ours in (theirs, base) or theirs == base:
        return choose(base, ours, theirs)
    sides, silent = zip(*(_split_turns(body) for body in (base, ours, theirs)), strict=True)
    units = _merge_equal(*(side.units for side in sides))
    silent_keys = frozenset().union(*silent)
    forgotten = {unit.key[0] for unit in units if unit.key in silent_keys and unit.key[0]}
    left = [unit for unit in units if unit.key[0] not in forgotten or unit.key in silent_keys]
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
    sentences = [_sentences(text[end:]) for text, end in zip((base, ours, theirs), ends, strict=True)]
    words = [dict(side) for side in sentences]
    texts = []
    for key in merge_sequences(*([key for key, _ in side] for side in sentences)):
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
    """The text of `units`. A list item is as far from the text before it as in `base`: on another side it may
    have been the first of its list. A new one follows the item before it, or a blank line.
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


# -- frontmatter ------------------------------------------------------------------------------------------------------

_ADDED = frozenset({"confirmations"})
"""Counts: what each side has counted since is added."""
_MOST = frozenset({"confidence", "extraction_confidence", "turn_count", "extracted_turns", "inherited"})
_EARLIEST = frozenset({"id", "created", "started"})
"""An id begins with the moment in which it was made."""
_LATEST = frozenset({"ended", "updated", "modified", "analysed", "extracted", "last_access"})
_LISTS = frozenset(
    {"aliases", "about", "disputed", "documents", "facts", "former", "keywords", "speakers", "tags", "turns"}
)
_STATUSES = ("pending", "approved", "active", "", "superseded", "rejected", "archived", "deleted", "forgotten")
"""From the least to the greatest: nothing that was forgotten returns. Other values rank as the empty one."""
_PRIVACIES = ("public", "shared", "private")
_TIMES = ("updated", "modified")
_OF_READING = "last_turn"
"""Says which turn is the last of the `turn_count` that were read."""


class MergedHead(NamedTuple):
    """`text` with its `---` lines, empty for no keys. `fields` are what it says. `other` are the values, by key, of
    which another one was chosen.
    """

    text: str
    fields: Mapping[str, Any]
    other: tuple[tuple[str, str], ...]


class _Versions(NamedTuple):
    """One key in the three heads; None where a head has it not."""

    name: str
    base: KeyLines | None
    ours: KeyLines | None
    theirs: KeyLines | None


def merge_heads(base: str, ours: str, theirs: str, more: Mapping[str, Sequence[str]] | None = None) -> MergedHead:
    """Return the head with the changes of both sides. The arguments are whole notes; `more` are items for lists.

    Lists are merged as sets, counts are added, of dates that say since when the earliest counts, and of any other value
    that both have changed the later one: the side's own `updated` decides, then the text.

    Raises:
        FrontmatterBrokenError: one of the heads cannot be taken apart by its keys.
    """
    heads = [{key.name: key for key in frontmatter.split_keys(text)} for text in (base, ours, theirs)]
    keys = {name: _Versions(name, *(head.get(name) for head in heads)) for name in set().union(*heads)}
    other: list[tuple[str, str]] = []
    merged = {name: _merge_key(versions, _order_sides(name, heads), other) for name, versions in keys.items()}
    there = {name: key for name, key in merged.items() if key is not None}
    names = [list(head) for head in heads]
    order = [name for name in merge_sequences(names[0], names[1], names[2], there) if name in there]
    text = "".join(there[name].lines for name in order)
    fields = {name: there[name].value for name in order}
    for name, items in (more or {}).items():
        if not set(items) <= set(known := _as_list(fields.get(name))):
            fields[name] = sorted({*known, *items})
            text = frontmatter.set_fields(f"---\n{text}---\n", {name: fields[name]})[4:-4]
    whole = f"---\n{text}---\n" if text else ""
    if dict(frontmatter.parse(whole).fields) != fields:
        raise frontmatter.FrontmatterBrokenError("its keys cannot be parted")
    return MergedHead(whole, fields, tuple(sorted(other)))


def _merge_key(key: _Versions, times: tuple[Any, Any], other: list[tuple[str, str]]) -> KeyLines | None:
    """The key as it will be. `times` say which side counts more; a value that is lost goes into `other`."""
    base, ours, theirs = (None if version is None else version.value for version in key[1:])
    is_one_sided = base in (ours, theirs)
    if is_one_sided or (ours == theirs and key.name not in _ADDED):
        return _choose_lines(key, theirs if ours == base else ours)
    if ours is None or theirs is None:  # changed by one, removed by the other
        return key.ours or key.theirs
    if key.name in _LISTS or isinstance(ours, list) or isinstance(theirs, list):
        return _with_value(key, merge_sequences(*map(_as_list, (base, ours, theirs))))
    if key.name in _ADDED:
        numbers = [_as_number(value) for value in (base, ours, theirs)]
        grown = sum(max(number - numbers[0], 0) for number in numbers[1:])
        # A count that one has lowered does not undo what the other has counted.
        return _with_value(key, int(numbers[0] + grown if grown else min(numbers[1:])))
    rank: Callable[[Any], Any] = _RANKS.get(key.name, _text)
    chosen, left = key.ours, key.theirs
    if (times[0], rank(ours)) < (times[1], rank(theirs)):
        chosen, left = left, chosen
    if key.name not in _RANKS and left is not None:
        other.append((key.name, _text(left.value)))
    return chosen


def _choose_lines(key: _Versions, value: Any) -> KeyLines | None:
    """The lines that say `value`; where both sides wrote them anew, the greater ones."""
    if value is None:
        return None
    versions = [version for version in (key.ours, key.theirs) if version is not None and version.value == value]
    lines = [version.lines for version in versions]
    before = key.base.lines if key.base is not None else ""
    return KeyLines(key.name, value, choose(before, lines[0], lines[-1]))


def _with_value(key: _Versions, value: Any) -> KeyLines:
    """The greater of the two versions, changed to say `value`."""
    assert key.ours is not None
    assert key.theirs is not None
    written = [version for version in (key.ours, key.theirs) if version.value in (value, str(value))]
    if written:
        return max(written, key=lambda version: version.lines)
    lines = max(key.ours.lines, key.theirs.lines)
    changed = frontmatter.set_fields(f"---\n{lines}---\n", {key.name: value})
    (made,) = frontmatter.split_keys(changed)
    return made


def _order_sides(name: str, heads: Sequence[Mapping[str, KeyLines]]) -> tuple[Any, Any]:
    """What tells of two sides which one's value of a key counts more, before the value itself does."""
    if name == _OF_READING:
        return _as_number(_value(heads[1], "turn_count")), _as_number(_value(heads[2], "turn_count"))
    if name in _RANKS:
        return 0, 0
    return _time_of(heads[1], heads[0]), _time_of(heads[2], heads[0])


def _time_of(head: Mapping[str, KeyLines], base: Mapping[str, KeyLines]) -> str:
    """When this side was changed, as it says itself."""
    times = [_text(head[name].value) for name in _TIMES if name in head and _value(base, name) != head[name].value]
    return max(times, default="")


def _value(head: Mapping[str, KeyLines], name: str) -> Any:
    return head[name].value if name in head else None


def _as_number(value: Any) -> float:
    try:
        number = float(_text(value))
    except ValueError:
        return 0.0
    return number if math.isfinite(number) else 0.0


def _text(value: Any) -> str:
    return value if isinstance(value, str) else str(value)


def _as_list(value: Any) -> list[str]:
    """Return a value as items; a value that is not text becomes its notation, which no set of another type equals."""
    if value is None or value == "":
        return []
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    # YAML takes an unquoted [[Link]] for a list in a list.
    items = [f"[[{item[0][0]}]]" if isinstance(item, list) and item and item[0] else item for item in value]
    if not all(isinstance(item, str) for item in items):
        raise frontmatter.FrontmatterBrokenError("a list in it holds more than words")
    return items


def _before(value: Any) -> tuple[bool, list[int]]:
    """Sorts texts in reverse order."""
    return bool(value), [-ord(char) for char in _text(value)] + [1]


def _place_in(order: Sequence[str]) -> Callable[[Any], tuple[int, str]]:
    usual = order.index("") if "" in order else -1
    return lambda value: (order.index(value) if value in order else usual, _text(value))


_RANKS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(_MOST, lambda value: (_as_number(value), _text(value))),
    **dict.fromkeys(_EARLIEST, _before),
    **dict.fromkeys(_LATEST, _text),
    _OF_READING: _text,
    "status": _place_in(_STATUSES),
    "privacy": _place_in(_PRIVACIES),
}
"""The rank of a value that both sides have changed; the one of lower rank is lost."""


# -- notes ------------------------------------------------------------------------------------------------------------

DISPUTED = "disputed"
"""The key of a fact that lists the statements of which only one is true."""
MAX_BYTES = 4_000_000
_OTHER = re.compile(r"^%%merged: [^\n]*%%[ \t]*\n?", re.MULTILINE)
"""A value that was not chosen; markdown shows it to nobody, git and an editor do."""
_ALIKE = 0.4
"""The share of words that two statements about one thing have in common."""


_JOURNAL = re.compile(r"(?:.*/)?journal/(?:archive/)?[^/]+\.md")
_BY_NAME = re.compile(
    r"(?:.*/)?snippets/[^/]+\.snippets\.md|(?:.*/)?review/[^/]+\.md|(?:.*/)?projects/[^/]+/PROJECT\.md"
    r"|(?:SOUL|USER|MEMORY|AGENTS)\.md"
)
_Shape = Literal["fact", "note", "journal", "episode"]


class _Text(NamedTuple):
    """A file as it is merged: with bare newlines and without a byte order mark."""

    bom: str
    newline: str
    text: str


def merge_note(base: bytes, ours: bytes, theirs: bytes, path: str) -> bytes | None:
    """Return the file at `path` with the changes of both sides to `base`, which is empty where both have added it.

    None where only lines can be compared: it is no note of Quaid's, or its head or bytes cannot be read without
    guessing.
    """
    if ours in (theirs, base) or theirs == base:
        return choose(base, ours, theirs)
    if max(map(len, (base, ours, theirs))) > MAX_BYTES:
        return None
    try:
        if path.endswith(".tsv"):
            return _merge_ledgers(ours, theirs, path)
        texts = [_read_text(data) for data in (base, ours, theirs)]
        merged = _merge_texts(texts[0].text, texts[1].text, texts[2].text, path)
    except (FrontmatterBrokenError, UnicodeDecodeError):
        return None
    if merged is None:
        return None
    newline = choose(*(each.newline for each in texts))
    return (choose(*(each.bom for each in texts)) + merged.replace("\n", newline or "\n")).encode()


def _merge_texts(base: str, ours: str, theirs: str, path: str) -> str | None:
    shapes = {_shape_of(path, text) for text in (base, ours, theirs) if text}
    shape = shapes.pop() if len(shapes) == 1 else None
    if shape is None:
        return None
    starts = [frontmatter.body_start(text) for text in (base, ours, theirs)]
    bodies = [text[start:] for text, start in zip((base, ours, theirs), starts, strict=True)]
    others_lines = [set(_OTHER.findall(body)) for body in bodies]
    bodies = [
        f"{_OTHER.sub('', body).rstrip()}\n" if other else body
        for body, other in zip(bodies, others_lines, strict=True)
    ]
    body = merge_turns(*bodies) if shape == "episode" else merge_bodies(*bodies, newest_first=shape == "journal")
    disputed = _list_disputed(*bodies) if shape == "fact" and bodies[1] != bodies[2] else []
    head = merge_heads(base, ours, theirs, {DISPUTED: disputed} if disputed else None)
    written = {
        line.rstrip()
        for line in (others_lines[0] & others_lines[1] & others_lines[2])
        | (others_lines[1] - others_lines[0])
        | (others_lines[2] - others_lines[0])
    }
    written |= {f"%%merged: {name}: {' '.join(value.split()).replace('%%', '% %')}%%" for name, value in head.other}
    if not written:
        return head.text + body
    return head.text + "\n".join([*([body.rstrip(), ""] if body.strip() else []), *sorted(written), ""])


def _shape_of(path: str, text: str) -> _Shape | None:
    """How a note is cut into parts; None for any other file, of which only the lines are known.

    What a note is and to whom it belongs is for layout.py to say, which a merge has no time to import. A mistake here
    costs nothing but form.
    """
    if not path.endswith(".md") or ("<<<<<<<" in text and ">>>>>>>" in text):
        return None
    fields = frontmatter.parse(text).fields
    if fields.get("type") == "episode" and "session" in fields:
        return "episode"
    if "id" in fields and "type" in fields:
        return "fact" if "status" in fields or "confidence" in fields else "note"
    return "journal" if _JOURNAL.fullmatch(path) else "note" if _BY_NAME.fullmatch(path) else None


def _list_disputed(base: str, ours: str, theirs: str) -> list[str]:
    """Return the statements that one side made, with those of the other side that contradict them."""
    from quaid.claims import Reading, difference, is_about_others
    from quaid.vault import markdown

    statements = [dict.fromkeys(map(markdown.plain, list_sentences(body))) for body in (base, ours, theirs)]
    is_replaced = not statements[0].keys() <= statements[1].keys() | statements[2].keys()
    new = [
        [text for text in side if text not in statements[0] and text not in other]
        for side, other in (statements[1:], statements[:0:-1])
    ]
    disputed: set[str] = set()
    for one, other in product(*new):
        words, others = Reading(one).words, Reading(other).words
        is_alike = len(words & others) >= _ALIKE * len(words | others)
        if (is_replaced or is_alike) and difference(one, other) and not is_about_others(one, other):
            disputed |= {one, other}
    return sorted(disputed)


def _read_text(data: bytes) -> _Text:
    """Raises:
    UnicodeDecodeError: it is not UTF-8, or no text.
    """
    text = data.decode("utf-8")
    if "\0" in text:
        raise UnicodeDecodeError("utf-8", data, data.index(0), data.index(0) + 1, "it is not text")
    bom = "\ufeff" if text.startswith("\ufeff") else ""
    lines = text.count("\n")
    newline = ("\r\n" if text.count("\r\n") == lines else "\n") if lines else ""
    return _Text(bom, newline, text.removeprefix(bom).replace("\r\n", "\n") if newline == "\r\n" else text[len(bom) :])


def _merge_ledgers(ours: bytes, theirs: bytes, path: str) -> bytes | None:
    """Of one device's two counters for a memory the later one holds all that the other knew."""
    from quaid.vault import ledger

    sides = [ledger.parse_ledger(data) for data in (ours, theirs)]
    if any(side.broken for side in sides) or "usage" not in path.split("/"):
        return None
    return ledger.render_ledger(ledger.merge_versions(sides[0].rows, sides[1].rows))
