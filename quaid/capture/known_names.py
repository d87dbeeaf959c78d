"""The names that the memory has and a text uses, as a model is shown them: to tell who is meant."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from quaid.capture.entity_names import has_no_capitals
from quaid.index import documents, graph
from quaid.model import name_key

if TYPE_CHECKING:
    from quaid.index.port import IndexConnection

_MAX_SHOWN = 60
_MAX_TIES = 4
_MIN_CHARACTERS = 2
_MAX_PROJECTS = 40


def show_known_names(index: IndexConnection, text: str) -> str:
    """Return a line for each entity whose name or alias `text` uses, or for a person the first name, as much of it as
    `index` shows: `Anna Kowalski (person, also Ania): colleague_of Maya`. A last line has all projects.
    """
    words = f" {name_key(text)} "
    names: dict[str, list[str]] = defaultdict(list)
    for name, note in graph.entity_names(index):
        names[note].append(name)
    alike = {note: called for note, called in names.items() if any(_begins_in(name, words) for name in called)}
    types = graph.entity_types(index, alike)
    used = [
        note
        for note, called in alike.items()
        if types.get(note) == "person" or any(name_key(name) in words for name in called)
    ]
    lines = [_line(index, note, alike[note], types.get(note)) for note in used[:_MAX_SHOWN]]
    projects = sorted(name for name in documents.count_by(index, "project") if name)[:_MAX_PROJECTS]
    return "\n".join([*lines, *([f"projects: {', '.join(projects)}"] if projects else [])])


def _begins_in(name: str, words: str) -> bool:
    """Return True when the first word of a name is a word of the text, or part of one where words are not set apart."""
    first = next(iter(name_key(name).split()), "")
    # Looking for it as it is first spares an expression for each of thousands of names.
    if len(first) < _MIN_CHARACTERS or first not in words:
        return False
    return has_no_capitals(name) or re.search(rf"(?<!\w){re.escape(first)}(?!\w)", words) is not None


def _line(index: IndexConnection, note: str, called: list[str], kind: str | None) -> str:
    aliases = [name for name in called if name_key(name) != name_key(note)]
    about = ", ".join([kind or "concept", *(f"also {alias}" for alias in aliases)])
    keys = {name_key(note)}
    ties = [
        f"{one.relation} {one.object}" if name_key(one.subject) in keys else f"{one.subject} {one.relation} {note}"
        for one in graph.neighbours(index, keys, limit=_MAX_TIES)
    ]
    return f"{note} ({about})" + (f": {'; '.join(dict.fromkeys(ties))}" if ties else "")
