"""The properties of the owner's own notes: what of any frontmatter is searched and linked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from quaid.model import Edge, note_name
from quaid.vault import markdown

MAX_PROPERTIES = 50
MAX_VALUE_CHARS = 300
MAX_EDGES = 100
_MAX_VALUES = 1_000
_MAX_DEPTH = 5
_MAX_KEY_CHARS = 60
_MAX_TEXT_CHARS = 2_000
_NAMING = frozenset({"alias", "aliases", "keywords", "tag", "tags", "title"})
"""Keys that the index has already, as names and keywords."""
_LOOKS = frozenset({"cssclass", "cssclasses", "publish"})
"""Keys that tell Obsidian how to show a note."""
_LINK = re.compile(r"\[\[[^\[\]]+\]\]")
_NOT_WORD = re.compile(r"\W+")


def describe(fields: Mapping[str, Any]) -> str:
    """Return the properties as lines of `key: value, value`, bounded in number and length."""
    found = []
    for key, value in islice(fields.items(), MAX_PROPERTIES):
        said = ", ".join(filter(None, (_plain(text) for text in islice(list_texts(value), _MAX_VALUES))))
        if said and key.casefold() not in _NAMING | _LOOKS:
            found.append(f"{_plain(key)[:_MAX_KEY_CHARS]}: {said[:MAX_VALUE_CHARS]}")
    return "\n".join(found)


def edges(fields: Mapping[str, Any], subject: str) -> Iterator[Edge]:
    """Yield an edge from `subject` for each wikilink in a property; the relation is its key."""
    for key, value in islice(fields.items(), MAX_PROPERTIES):
        relation = _NOT_WORD.sub("_", key.casefold()).strip("_")
        if not relation or len(relation) > _MAX_KEY_CHARS or key.casefold() in _NAMING | _LOOKS:
            continue
        for text in islice(list_texts(value), _MAX_VALUES):
            for target in markdown.links(" ".join(_LINK.findall(text))):
                yield Edge(subject, relation, note_name(target))


def list_texts(value: object, depth: int = 0) -> Iterator[str]:
    """The texts in a value; what is nested too deeply is left out."""
    if isinstance(value, str):
        yield value[:_MAX_TEXT_CHARS]
    elif depth >= _MAX_DEPTH:
        return
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from (f"{key}: {text}" for text in list_texts(item, depth + 1))
    elif isinstance(value, list):
        if len(value) == 1 and isinstance(value[0], list) and all(isinstance(part, str) for part in value[0]):
            yield f"[[{', '.join(value[0])}]]"  # an unquoted [[Link]] is a list of lists to YAML
            return
        for item in value:
            yield from list_texts(item, depth + 1)


def _plain(text: str) -> str:
    return " ".join(markdown.plain(text).split())
