"""Three versions of a note's frontmatter into one, key by key."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from quaid.vault import frontmatter
from quaid.vault.frontmatter import KeyLines
from quaid.vault.merging.sequences import choose, merge_sequences

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
"""From the least to the greatest: nothing that was forgotten returns. Others stand where the empty one does."""
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
        numbers = [_number(value) for value in (base, ours, theirs)]
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
    said = [version for version in (key.ours, key.theirs) if version is not None and version.value == value]
    lines = [version.lines for version in said]
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
        return _number(_value(heads[1], "turn_count")), _number(_value(heads[2], "turn_count"))
    if name in _RANKS:
        return 0, 0
    return _time_of(heads[1], heads[0]), _time_of(heads[2], heads[0])


def _time_of(head: Mapping[str, KeyLines], base: Mapping[str, KeyLines]) -> str:
    """When this side was changed, as it says itself."""
    said = [_text(head[name].value) for name in _TIMES if name in head and _value(base, name) != head[name].value]
    return max(said, default="")


def _value(head: Mapping[str, KeyLines], name: str) -> Any:
    return head[name].value if name in head else None


def _number(value: Any) -> float:
    try:
        number = float(_text(value))
    except ValueError:
        return 0.0
    return number if math.isfinite(number) else 0.0


def _text(value: Any) -> str:
    return value if isinstance(value, str) else str(value)


def _as_list(value: Any) -> list[str]:
    """A value as items; what is no text stands as its own notation, which no set of another type equals."""
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
    """Sorts a text before those that stand behind it, as its reverse."""
    return bool(value), [-ord(char) for char in _text(value)] + [1]


def _place_in(order: Sequence[str]) -> Callable[[Any], tuple[int, str]]:
    usual = order.index("") if "" in order else -1
    return lambda value: (order.index(value) if value in order else usual, _text(value))


_RANKS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(_MOST, lambda value: (_number(value), _text(value))),
    **dict.fromkeys(_EARLIEST, _before),
    **dict.fromkeys(_LATEST, _text),
    _OF_READING: _text,
    "status": _place_in(_STATUSES),
    "privacy": _place_in(_PRIVACIES),
}
"""How much a value counts where both sides have changed it; nothing is kept of the one that counts less."""
