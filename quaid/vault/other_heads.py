"""Heads of own notes that are not YAML in the first line: Hugo's TOML between `+++` lines and JSON, the page properties
of Logseq, and YAML below blank lines or below another head.
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import replace
from datetime import date, time
from typing import Any

from quaid.vault import frontmatter
from quaid.vault.frontmatter import Head

_TOML = re.compile(r"\+\+\+[ \t]*\r?\n(?P<head>.*?)^\+\+\+[ \t]*\r?(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_TOML_ENTRY = re.compile(r"^(?=[\w\"'\[])", re.MULTILINE)
_MAX_ENTRIES = 2_000
_PROPERTY = re.compile(
    r"(?:- |  )?(?P<key>[^\W\d][\w/-]*)::(?: +|(?=\r?$))(?P<value>[^\r\n]*)\r?(?:\n|\Z)", re.MULTILINE
)
_LIST_KEYS = frozenset({"alias", "aliases", "tags", "keywords"})


def parse(text: str) -> Head:
    """Return the head of a note that has no YAML one; without fields, and all of `text` as its body, if it has none.
    Never fails: a broken head leaves a problem.
    """
    if toml := _TOML.match(text):
        head, body = toml["head"].replace("\r\n", "\n"), text[toml.end() :]
        try:
            return Head(_as_text(tomllib.loads(f"\n{head}")), body)  # its first line is the second of the note
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            sound, broken = {}, ""
            for entry in _TOML_ENTRY.split(head)[:_MAX_ENTRIES]:
                try:
                    sound.update(tomllib.loads(entry))
                except (tomllib.TOMLDecodeError, RecursionError):
                    broken += entry
            return Head(_as_text(sound), broken + body, (f"the frontmatter is not TOML: {error}",))
    if text.startswith("{"):
        try:
            found, end = json.JSONDecoder().raw_decode(text)
            return Head(_as_text(found), text[end:])
        except (ValueError, RecursionError):
            return Head(body=text)
    late = frontmatter.parse(text.lstrip())
    if late.fields and not late.problems:
        return replace(late, problems=("it has frontmatter that does not begin in the first line",))
    fields: dict[str, Any] = {}
    end = 0
    while line := _PROPERTY.match(text, end):
        key = line["key"]
        value = line["value"].strip()
        fields[key] = [part.strip() for part in value.split(",")] if key.casefold() in _LIST_KEYS else value
        end = line.end()
    return Head(fields, text[end:])


def _as_text(value: Any) -> Any:
    """Return a value of TOML as the YAML head has it: scalars are strings."""
    if isinstance(value, dict):
        return {key: _as_text(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_text(item) for item in value]
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat() if isinstance(value, date | time) else str(value)
