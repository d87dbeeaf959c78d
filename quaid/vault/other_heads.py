"""Heads of own notes that are not YAML: Hugo's TOML between `+++` lines, and the page properties of Logseq."""

from __future__ import annotations

import re
import tomllib
from datetime import date, time
from typing import Any

from quaid.vault.frontmatter import Head

_TOML = re.compile(r"\+\+\+[ \t]*\r?\n(?P<head>.*?)^\+\+\+[ \t]*\r?(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_PROPERTY = re.compile(r"(?:- )?(?P<key>[^\W\d][\w/-]*)::(?: +|(?=\r?$))(?P<value>[^\r\n]*)\r?(?:\n|\Z)", re.MULTILINE)
_LIST_KEYS = frozenset({"alias", "aliases", "tags", "keywords"})


def parse(text: str) -> Head:
    """Return the head of a note that has no YAML one; without fields, and all of `text` as its body, if it has none.
    Never fails: a broken head leaves a problem.
    """
    if toml := _TOML.match(text):
        try:
            return Head(_as_text(tomllib.loads(toml["head"].replace("\r\n", "\n"))), text[toml.end() :])
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            return Head(body=text, problems=(f"the frontmatter is not TOML: {error}",))
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
