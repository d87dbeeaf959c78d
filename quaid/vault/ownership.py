"""Read whose a note is and who may see it, however that is spelled.

Whatever a person would read as private is private. So a head that is not sound YAML is read line by line as well, in
any case and under any markup, and a word that is not known hides a note instead of showing it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

from quaid.model import note_name
from quaid.vault import markdown, properties

OPEN = frozenset({"shared", "public"})
"""The words that show a note to everyone."""
_OWNER_KEYS = frozenset({"owner", "owners"})
_PRIVACY_KEYS = frozenset({"privacy", "private", "visibility", "confidential"})
_DENIED = frozenset({"false", "no", "off", "0"})
"""`private: false` states nothing."""
_MAX_CHARS = 4_000
"""Characters of a note without a sound head that are read line by line."""
_LINE = re.compile(
    r"(?:^|[{,?])[^\w\n{,?]*(?P<key>owners?|privacy|private|visibility|confidential)[^\w\n:=]*(?:::?|=)"
    r"(?P<value>[ \t]*\[[^\]\n]*\]*|[^\n,;{}]*)(?P<more>(?:\n[ \t-][^\n:=]*$)*)",
    re.IGNORECASE | re.MULTILINE,
)
_PRIVATE_ITEM = re.compile(r"[-:=,\[][ \t]*[\"'#]*private[\"']*[ \t]*(?:[,\]}]|$)", re.IGNORECASE | re.MULTILINE)
_MAY_STATE = re.compile(rb"owner|priva|visibility|confidential|\0|\xef\xbc|\\[xu]", re.IGNORECASE)


def may_state(data: bytes) -> bool:
    """Return False if a file states neither, in any encoding and spelling."""
    return _MAY_STATE.search(data) is not None


def read(text: str, fields: Mapping[str, Any], *, is_sound: bool) -> tuple[str, str]:
    """Return the owner and the privacy (one of `OPEN`, or `private`) that a note states, each empty where it does not:
    in the `fields` of its head and, where that is not sound, in the lines of its `text`.

    Several owners become one name that nobody has, so that the note is hidden from all.
    """
    marks = [*_list_marks(fields), *(() if is_sound else _list_line_marks(text))]
    names = dict.fromkeys(name for key, value in marks if key in _OWNER_KEYS and (name := _clean_name(value)))
    stated = [(key, words) for key, value in marks if key in _PRIVACY_KEYS and (words := _words(value))]
    stated = [(key, words) for key, words in stated if key in {"privacy", "visibility"} or words not in _DENIED]
    opened = {words for key, words in stated if key == "privacy"}
    privacy = "private" if any(words not in OPEN for _, words in stated) or len(opened) > 1 else "".join(opened)
    return ", ".join(names), privacy


def _list_marks(fields: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (key, value) of the marks in a head, at any depth; the item `private` is a mark under any key."""
    for key, value in fields.items():
        name, texts = re.sub(r"[\W_]", "", _fold(key)), [*properties.list_texts(value)]
        if name in _OWNER_KEYS | _PRIVACY_KEYS:
            yield from ((name, text) for text in texts)
        elif name != "keywords" and any(_words(text) == "private" for text in texts):
            yield "private", "private"
        for item in value if isinstance(value, list) else [value]:
            yield from _list_marks(item) if isinstance(item, Mapping) else ()


def _list_line_marks(text: str) -> Iterator[tuple[str, str]]:
    lines = "\n".join(unicodedata.normalize("NFKC", text[:_MAX_CHARS]).splitlines())
    for found in _LINE.finditer(lines):
        for value in (found["value"].split(" #", 1)[0], *found["more"].split("\n")):
            for part in [value] if "[[" in value else re.split(r"[,\[\]]", value):
                yield found["key"].casefold(), part
                if _MAY_STATE.search(part.encode("utf-8", "replace")):  # `owner: Bob privacy: private` in one line
                    yield "private", part
    if _PRIVATE_ITEM.search(lines):
        yield "private", "private"


def _clean_name(value: str) -> str:
    linked = re.search(r"\[\[([^\[\]]+)\]\]", value)
    return (note_name(markdown.link_target(linked[1])) if linked else value).strip(" \t\"'*_`>-@")


def _words(value: str) -> str:
    return re.sub(r"[\W_]+", " ", _fold(value)).strip()


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
