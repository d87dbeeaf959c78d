"""Checks of a model's text: which parts are new, and whether notes, commits and questions may have it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from quaid.claims import find_lost_detail
from quaid.errors import ModelAnswerError
from quaid.text.quoting import neutralise, shorten
from quaid.text.words import MINIMUM_WORDS, is_long_enough
from quaid.vault import headings, markdown

MAX_REASON_CHARACTERS = 300

_DIGITS = re.compile(r"\d+(?:[.,]\d+)*")
_THOUSANDS = re.compile(r",(?=\d{3}(?!\d))")
_CHANGE = re.compile(r"^- (before|after): (.+)$", re.MULTILINE)
_HIDING = ("%%", "<!--", "![[", "```", "~~~")
"""Markup that would hide or embed more than its own line."""


class CarelessAnswerError(ModelAnswerError):
    """An answer that treats too many items alike: they were not judged, and a smaller question would hide that."""


def find_unsupported(text: str, sources: Sequence[str]) -> list[str]:
    """Return the parts of `text` that none of `sources` has: numbers, with days and years, and the first name."""

    def plain(number: str) -> str:
        return _THOUSANDS.sub("", number).lstrip("0") or "0"

    source = " . ".join(sources)
    numbers = {plain(number) for number in _DIGITS.findall(source)}
    found = [number for number in _DIGITS.findall(text) if plain(number) not in numbers]
    name = find_missing(source, text)
    return list(dict.fromkeys([*found, *([name] if name and not name.isdigit() else [])]))


def find_missing(text: str, original: str) -> str | None:
    """Return a number or a name that `original` has and `text` has not, as it is written."""
    stem = find_lost_detail(text, original)
    written = re.search(rf"(?i)(?<!\w){re.escape(stem)}", original) if stem else None
    return written[0] if written else stem


def statement_problem(text: str, original: str = "") -> str:
    """Return why `text` cannot be the statement of a note; empty when it can: one plain line without orders. It may
    have signs that could be markup if the `original` has some.
    """
    if not is_long_enough(text):
        return f"it has fewer than {MINIMUM_WORDS} words"
    if headings.one_line(text) != text or (markdown.escape(text) != text and markdown.escape(original) == original):
        return "it is not one line without markup"
    return "it gives orders to its reader" if neutralise(text) != text else ""


def is_safe_line(line: str) -> bool:
    """Return whether agents may read a line before every conversation: it gives no orders and hides nothing."""
    return neutralise(line) == line and not any(mark in line for mark in _HIDING)


def plain_line(text: str) -> str:
    """Return markdown as one line of plain text."""
    return headings.one_line(markdown.plain(text))


def clean_reason(text: str, otherwise: str = "The model gave no reason.") -> str:
    """Return a model's reason, fit for a commit and a question."""
    return shorten(neutralise(headings.one_line(text)), MAX_REASON_CHARACTERS) or otherwise


def without_empty(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return `fields` without the empty ones."""
    return {key: value for key, value in fields.items() if value}


def show_change(before: Iterable[str], after: Iterable[str]) -> str:
    """Return lines for a commit and a question: the facts before and after. `read_change` reads them."""
    lines = [("before", text) for text in before] + [("after", text) for text in after]
    return "\n".join(f"- {when}: {headings.one_line(text)}" for when, text in lines)


def read_change(body: str) -> dict[str, list[str]]:
    """Return the `before` and `after` that `show_change` has written into `body`; empty where it has not."""
    found: dict[str, list[str]] = {}
    for when, text in _CHANGE.findall(body):
        found.setdefault(when, []).append(text)
    return found


def quote(text: str, most: int = 44) -> str:
    """Return `"Maya takes oat milk in her coffee"`, truncated at a word if it is too long for a subject."""
    line = headings.one_line(text)
    if len(line) > most:
        line = f"{line[:most].rsplit(' ', 1)[0].rstrip(' ,;.')}…"
    return f'"{line}"'
