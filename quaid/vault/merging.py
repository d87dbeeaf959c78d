"""Three versions of a note into one, so that machines agree in whatever order they meet.

Pure. A part that only one side has changed gets that side's version. Where both have changed a part, it gets the
greater of the two in an order in which the base is the least: such a join is commutative, associative and
idempotent (Shapiro, Preguiça, Baquero & Zawirski, "Conflict-free replicated data types", 2011).
Begin with `merge_note`.
"""

import math
import re
from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from itertools import chain, pairwise, product
from typing import Any, Literal, NamedTuple, TypeVar

from quaid.vault import frontmatter, markdown
from quaid.vault.episodes import parse_turns
from quaid.vault.frontmatter import FrontmatterBrokenError, KeyLines

T = TypeVar("T")
Item = TypeVar("Item", bound=Hashable)
_Numbered = tuple[Any, int]


def choose(base: T, ours: T, theirs: T) -> T:
    """Return the value that a side changed; where both did, the greater one."""
    if ours in (theirs, base):
        return theirs
    return ours if theirs == base or ours > theirs else theirs  # type: ignore[operator]


def merge_sequences(
    base: Sequence[Item], ours: Sequence[Item], theirs: Sequence[Item], *, keep: Collection[Item] = ()
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
    numbered: list[list[_Numbered]] = [[], [], []]
    counts: list[Counter[Item]] = [Counter(), Counter(), Counter()]
    for items, own, seen in zip((base, ours, theirs), numbered, counts, strict=True):
        for each in items:
            own.append((each, seen[each]))
            seen[each] += 1
    remaining: list[_Numbered] = []
    for item, number in numbered[0]:
        before, most, least = counts[0][item], *sorted((counts[1][item], counts[2][item]), reverse=True)
        # Added by one side, an item stays, whatever the other has removed.
        if number < max(most if most > before else least, int(item in keep)):
            remaining.append((item, number))
    behind = _read_added(numbered[0], remaining, numbered[1:])
    merged: list[Item] = []
    for place in range(-1, len(remaining)):
        merged += [remaining[place][0]] if place >= 0 else []
        waiting = list(behind.get(place, ()))
        while waiting:
            item = waiting.pop()
            merged.append(item[0])
            waiting += behind.get(item, ())
    return merged


def _read_added(
    base: Sequence[_Numbered], remaining: Sequence[_Numbered], sides: Sequence[Sequence[_Numbered]]
) -> dict[int | _Numbered, list[_Numbered]]:
    """Return the items that the sides have added, the last first: those right behind an item of the base by its place
    (-1 is the beginning), the others by their parent.
    """
    known = frozenset(base)
    place_of = {item: place for place, item in enumerate(remaining)}
    parents: dict[_Numbered, _Numbered | None] = {}
    anchors: dict[_Numbered, int] = {}
    for side in sides:
        anchor = -1
        greater: list[_Numbered] = []
        for item in side:
            if item in known:
                anchor, greater = place_of.get(item, anchor), []
                continue
            while greater and greater[-1] < item:
                greater.pop()
            if not greater:
                anchors[item] = min(anchor, anchors.get(item, anchor))
            parents[item] = max([parent for parent in (parents.get(item), *greater[-1:]) if parent], default=None)
            greater.append(item)
    behind: dict[int | _Numbered, list[_Numbered]] = {}
    for item in sorted(parents, reverse=True):
        parent = parents[item]
        behind.setdefault(anchors[item] if parent is None else parent, []).append(item)
    return behind


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
BETWEEN_SENTENCES = re.compile(r"(?<=[.!?])\s+|(?<=[。！？।])\s*")  # noqa: RUF001
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


Sections = dict[Key, list[Unit]]
"""The units below each heading, which comes first; without one before the first heading."""


def merge_bodies(base: str, ours: str, theirs: str, *, newest_first: bool = False) -> str:
    """Return the body with the changes of both sides, section by section and line by line.

    Of a line that both have changed, the sentences are merged if each has preserved one, else both versions stay.
    """
    if ours in (theirs, base) or theirs == base:
        return choose(base, ours, theirs)
    sides, tails = zip(*map(_split_body, (base, ours, theirs)), strict=True)
    merged: Sections = {}
    reworded = set()
    for key in set().union(*sides):
        lines = [side.get(key, []) for side in sides]
        rewordings = [_find_rewordings(lines[0], side) for side in lines[1:]]
        changed = [_with_rewordings(side, found) for side, found in zip(lines[1:], rewordings, strict=True)]
        # A line of the base that both have reworded in part stays one line.
        merged[key] = _merge_units(lines[0], *changed, keep=rewordings[0].keys() | rewordings[1].keys())
        if any(unit.key != key for unit in merged[key]):
            reworded.add(key)
    step = -1 if newest_first else 1  # the order of what both have added ascends
    orders = [[key for key in side if key != _FIRST][::step] for side in sides]
    units: list[Unit] = []
    for key in [_FIRST, *merge_sequences(*orders, keep=reworded - {_FIRST})[::step]]:
        if key[1] and (not merged[key] or merged[key][0].key != key):
            # One side has removed the section and the other has added to it: under its heading again.
            units.append(next(side[key][0] for side in sides if key in side))
        units += merged[key]
    return _render(units, choose(*tails), list(chain.from_iterable(sides[0].values())))


def merge_turns(base: str, ours: str, theirs: str) -> str:
    """Return the turns of all sides, by their numbers; a turn that one has forgotten stays forgotten."""
    if ours in (theirs, base) or theirs == base:
        return choose(base, ours, theirs)
    sides, tails, silent = zip(*map(_split_turns, (base, ours, theirs)), strict=True)
    units = _merge_units(*sides)
    silent_keys = frozenset().union(*silent)
    forgotten = {unit.key[0] for unit in units if unit.key in silent_keys and unit.key[0]}
    left = [unit for unit in units if unit.key[0] not in forgotten or unit.key in silent_keys]
    return _render(left, choose(*tails), ())


def list_sentences(body: str) -> list[str]:
    """Return the sentences of prose in `body`, without the marks of lists before them, in their order."""
    units = chain.from_iterable(_split_body(body)[0].values())
    return [text for unit in units for _, text in _list_sentences(unit)]


def _merge_units(
    base: Sequence[Unit], ours: Sequence[Unit], theirs: Sequence[Unit], *, keep: Collection[Key] = ()
) -> list[Unit]:
    """Merge units by their keys. Those in `keep` one side has changed: they stay, though the other has removed them."""
    known = [{unit.key: unit for unit in reversed(side)} for side in (base, ours, theirs)]
    orders = [[unit.key for unit in side] for side in (base, ours, theirs)]
    merged = []
    for key in merge_sequences(*orders, keep=keep):
        before, one, other = (side.get(key) for side in known)
        one, other = one or before or other, other or before or one
        assert one is not None
        assert other is not None
        lead = choose(before.lead if before else "", one.lead, other.lead)
        if before is not None and len({before.text, one.text, other.text}) == 3:
            text = _merge_sentences(before.text, one.text, other.text)
        else:
            text = choose(before.text if before else "", one.text, other.text)
        merged.append(Unit(key, text, lead))
    return merged


def _merge_sentences(*texts: str) -> str:
    """Merge the sentences of the base, ours and theirs of one line."""
    ends = [_lead_end(text) for text in texts]
    leads = [text[:end] for text, end in zip(texts, ends, strict=True)]
    sides = [dict(_split_sentences(text[end:])) for text, end in zip(texts, ends, strict=True)]
    orders = [[key for key, _ in _split_sentences(text[end:])] for text, end in zip(texts, ends, strict=True)]
    joined = ""
    for key in merge_sequences(*orders):
        before, one, other = (side.get(key, "") for side in sides)
        sentence = choose(before, one or before or other, other or before or one)
        joined += sentence if sentence[-1] in _NO_SPACE else f"{sentence} "
    return choose(*leads) + joined.rstrip()


def _find_rewordings(base: Sequence[Unit], side: Sequence[Unit]) -> dict[Key, list[Unit]]:
    """The new lines that have a sentence of a line of `base` which is gone, by the key of that line."""
    there, before = {unit.key for unit in side}, {unit.key for unit in base}
    gone = {
        sentence: unit.key for unit in reversed(base) if unit.key not in there for sentence, _ in _list_sentences(unit)
    }
    found: dict[Key, list[Unit]] = {}
    for unit in side if gone else ():
        if unit.key not in before:
            line = next((gone[sentence] for sentence, _ in _list_sentences(unit) if sentence in gone), None)
            if line is not None:
                found.setdefault(line, []).append(unit)
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


def _split_body(body: str) -> tuple[Sections, str]:
    """Cut a body into sections at headings of level one and two, and those into lines; a code fence is one unit. Also
    return the tail after the last of them.
    """
    lines = body.split("\n")
    heads: set[int] = set()
    last_of: dict[int, int] = {}
    for block in markdown.split_blocks([line.removesuffix("\r") for line in lines], 0):
        if block.kind == "fence" or (block.kind == "heading" and block.first != block.last):
            last_of[block.first] = block.last
        if block.kind == "heading" and block.level <= 2:
            heads.add(block.first)
    section: list[Unit] = []
    sections = {_FIRST: section}
    seen: Counter[Key] = Counter()
    lead, place = "\n", 0
    while place < len(lines):
        last = last_of.get(place, place)
        text = "\n".join(lines[place : last + 1])
        if not text.strip():
            lead += f"{text}\n"
        else:
            # Case, white space and the tick in a box make no other line.
            key = int(_ITEM.match(text) is not None), text if "\n" in text else _BOX.sub(" ", _fold(text))
            if place in heads:
                number = seen[key]
                seen[key] += 1
                key = (_HEADING + number, key[1])
                section = sections[key] = []
            section.append(Unit(key, text, lead))
            lead = "\n"
        place = last + 1
    return sections, lead[:-1] if not lines[-1].strip() else ""


def _split_turns(body: str) -> tuple[list[Unit], str, frozenset[Key]]:
    """Return the turns of an episode, the tail after the last of them, and the keys of those that were forgotten."""
    body = f"\n{body}"
    turns = parse_turns(body)
    starts = [*(turn.start for turn in turns), len(body)]
    units, lead = [], body[: starts[0]]
    for turn, end in zip(turns, starts[1:], strict=True):
        written = body[turn.start : end]
        text = written.rstrip()
        units.append(Unit((turn.number or 0, _fold(text)), text, lead))
        lead = written[len(text) :]
    return units, lead, frozenset(unit.key for unit, turn in zip(units, turns, strict=True) if not turn.text)


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


def _split_sentences(text: str) -> list[tuple[Key, str]]:
    return [((0, _fold(sentence)), sentence) for sentence in BETWEEN_SENTENCES.split(text.strip()) if sentence]


def _list_sentences(unit: Unit) -> list[tuple[Key, str]]:
    """Return the sentences of a line of prose, without its mark; none of anything else."""
    is_whole = "\n" in unit.text or _WHOLE.match(unit.text)
    return [] if is_whole else _split_sentences(unit.text[_lead_end(unit.text) :])


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
_ORDERS = {
    "status": ("pending", "approved", "active", "", "superseded", "rejected", "archived", "deleted", "forgotten"),
    "privacy": ("public", "shared", "private"),
}
"""From the least to the greatest: nothing that was forgotten returns. Other values rank as the empty one."""
_TIMES = ("updated", "modified")
_OF_READING = "last_turn"
"""The last of the `turn_count` turns that were read."""
_RANKED = frozenset({*_MOST, *_EARLIEST, *_LATEST, _OF_READING, *_ORDERS})
"""Keys whose values have an order."""


Versions = tuple[KeyLines | None, KeyLines | None, KeyLines | None]
"""One key in the head of the base, ours and theirs."""


def merge_heads(
    base: str, ours: str, theirs: str, more: Mapping[str, Sequence[str]]
) -> tuple[str, list[tuple[str, str]]]:
    """Return the head with the changes of both sides, and the (key, value) of which another value was chosen.

    The arguments are whole notes; `more` are items for lists. Lists are merged as sets, counts are added, of dates that
    say since when the earliest counts, and of any other value that both have changed the later one: the side's own
    `updated` decides, then the text.

    Raises:
        FrontmatterBrokenError: one of the heads cannot be taken apart by its keys.
    """
    heads = [{key.name: key for key in frontmatter.split_keys(text)} for text in (base, ours, theirs)]
    names = [list(head) for head in heads]
    other: list[tuple[str, str]] = []
    there: dict[str, KeyLines] = {}
    for name in sorted(set().union(*heads)):
        versions = heads[0].get(name), heads[1].get(name), heads[2].get(name)
        merged = _merge_key(versions, _order_sides(name, heads), other)
        if merged is not None:
            there[name] = merged
    order = [name for name in merge_sequences(*names, keep=there) if name in there]
    text = "".join(there[name].lines for name in order)
    fields = {name: there[name].value for name in order}
    for name, items in more.items():
        if not set(items) <= set(known := _as_list(fields.get(name))):
            fields[name] = sorted({*known, *items})
            text = frontmatter.set_fields(f"---\n{text}---\n", {name: fields[name]})[4:-4]
    whole = f"---\n{text}---\n" if text else ""
    if dict(frontmatter.parse(whole).fields) != fields:
        raise FrontmatterBrokenError("its keys cannot be parted")
    return whole, other


def _merge_key(versions: Versions, times: tuple[Any, Any], other: list[tuple[str, str]]) -> KeyLines | None:
    """Return the key as it will be. `times` say which side counts more; a value that is lost goes into `other`."""
    base, ours, theirs = (None if version is None else version.value for version in versions)
    name = next(version.name for version in versions if version is not None)
    if base in (ours, theirs) or (ours == theirs and name not in _ADDED):
        value = theirs if ours == base else ours
        lines = [each.lines for each in versions[1:] if each is not None and each.value == value]
        before = versions[0].lines if versions[0] is not None else ""
        return None if value is None else KeyLines(name, value, choose(before, lines[0], lines[-1]))
    if ours is None or theirs is None:  # changed by one, removed by the other
        return versions[1] or versions[2]
    if name in _LISTS or isinstance(ours, list) or isinstance(theirs, list):
        return _with_value(versions, merge_sequences(*map(_as_list, (base, ours, theirs))))
    if name in _ADDED:
        numbers = [_as_number(value) for value in (base, ours, theirs)]
        grown = sum(max(number - numbers[0], 0) for number in numbers[1:])
        # A count that one has lowered does not undo what the other has counted.
        return _with_value(versions, int(numbers[0] + grown if grown else min(numbers[1:])))
    is_theirs = (times[0], _rank(name, ours)) < (times[1], _rank(name, theirs))
    if name not in _RANKED:
        other.append((name, _text(ours if is_theirs else theirs)))
    return versions[2 if is_theirs else 1]


def _with_value(versions: Versions, value: Any) -> KeyLines:
    """Return the greater of the two versions, with `value`."""
    sides = [version for version in versions[1:] if version is not None]
    if written := [version for version in sides if version.value in (value, str(value))]:
        return max(written, key=lambda version: version.lines)
    lines = max(version.lines for version in sides)
    (made,) = frontmatter.split_keys(frontmatter.set_fields(f"---\n{lines}---\n", {sides[0].name: value}))
    return made


def _order_sides(name: str, heads: Sequence[Mapping[str, KeyLines]]) -> tuple[Any, Any]:
    """Return what decides which side's value of a key counts more, before the value itself does: for most keys when
    each side was changed, as it states itself.
    """
    values = [{key: lines.value for key, lines in head.items()} for head in heads]
    if name == _OF_READING:
        return _as_number(values[1].get("turn_count")), _as_number(values[2].get("turn_count"))
    if name in _RANKED:
        return 0, 0
    changed = [
        [_text(side[key]) for key in _TIMES if side.get(key) not in (None, values[0].get(key))] for side in values[1:]
    ]
    return max(changed[0], default=""), max(changed[1], default="")


def _rank(name: str, value: Any) -> Any:
    """Return the rank of a value that both sides have changed; the one of lower rank is lost."""
    if name in _MOST:
        return _as_number(value), _text(value)
    if name in _EARLIEST:  # in reverse order
        return bool(value), [-ord(char) for char in _text(value)] + [1]
    if order := _ORDERS.get(name):
        usual = order.index("") if "" in order else -1
        return order.index(value) if value in order else usual, _text(value)
    return _text(value)


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
        raise FrontmatterBrokenError("a list in it holds more than words")
    return items


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
        texts, boms, newlines = zip(*map(_read_text, (base, ours, theirs)), strict=True)
        merged = _merge_texts(*texts, path=path)
    except (FrontmatterBrokenError, UnicodeDecodeError):
        return None
    if merged is not None:
        merged = choose(*boms) + merged.replace("\n", choose(*newlines) or "\n")
    return None if merged is None else merged.encode()


def _merge_texts(base: str, ours: str, theirs: str, *, path: str) -> str | None:
    shapes = {_shape_of(path, text) for text in (base, ours, theirs) if text}
    shape = shapes.pop() if len(shapes) == 1 else None
    if shape is None:
        return None
    bodies = [text[frontmatter.body_start(text) :] for text in (base, ours, theirs)]
    others = [set(_OTHER.findall(body)) for body in bodies]
    bodies = [
        f"{_OTHER.sub('', body).rstrip()}\n" if found else body for body, found in zip(bodies, others, strict=True)
    ]
    body = merge_turns(*bodies) if shape == "episode" else merge_bodies(*bodies, newest_first=shape == "journal")
    disputed = _list_disputed(*bodies) if shape == "fact" and bodies[1] != bodies[2] else []
    head, lost = merge_heads(base, ours, theirs, {DISPUTED: disputed} if disputed else {})
    kept = set.intersection(*others) | (others[1] - others[0]) | (others[2] - others[0])
    written = {line.rstrip() for line in kept}
    written |= {f"%%merged: {name}: {' '.join(value.split()).replace('%%', '% %')}%%" for name, value in lost}
    if not written:
        return head + body
    return head + "\n".join([*([body.rstrip(), ""] if body.strip() else []), *sorted(written), ""])


def _shape_of(path: str, text: str) -> Literal["fact", "note", "journal", "episode"] | None:
    """Return how a note is cut into parts; None for any other file, of which only the lines are known.

    layout.py decides the kind and the owner of a note, which a merge has no time to import. A mistake here costs
    nothing but form.
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

    before, *sides = (dict.fromkeys(map(markdown.plain, list_sentences(body))) for body in (base, ours, theirs))
    is_replaced = not before.keys() <= sides[0].keys() | sides[1].keys()
    disputed: set[str] = set()
    for one, other in product(*sides):
        if one in before or other in before or one in sides[1] or other in sides[0]:
            continue
        words, others = Reading(one).words, Reading(other).words
        is_alike = len(words & others) >= _ALIKE * len(words | others)
        if (is_replaced or is_alike) and difference(one, other) and not is_about_others(one, other):
            disputed |= {one, other}
    return sorted(disputed)


def _read_text(data: bytes) -> tuple[str, str, str]:
    """Return a file's text with bare newlines, its byte order mark and its newline.

    Raises:
        UnicodeDecodeError: it is not UTF-8, or no text.
    """
    text = data.decode("utf-8")
    if "\0" in text:
        raise UnicodeDecodeError("utf-8", data, data.index(0), data.index(0) + 1, "it is not text")
    bom = "\ufeff" if text.startswith("\ufeff") else ""
    lines = text.count("\n")
    newline = ("\r\n" if text.count("\r\n") == lines else "\n") if lines else ""
    text = text.removeprefix(bom)
    return text.replace("\r\n", "\n") if newline == "\r\n" else text, bom, newline
