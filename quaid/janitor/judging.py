"""What the tasks share that put facts before a model: what of its wording was never said, and what may be written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from quaid.capture.fact_note import MINIMUM_WORDS, count_words
from quaid.claims import lacks
from quaid.janitor import questions
from quaid.janitor.task_context import Context
from quaid.text.quoting import neutralise
from quaid.vault import headings, markdown

LONGEST_REASON = 300

_DIGITS = re.compile(r"\d+(?:[.,]\d+)*")
_THOUSANDS = re.compile(r",(?=\d{3}(?!\d))")


def unsaid(text: str, sources: Sequence[str]) -> list[str]:
    """What of `text` none of `sources` says: its numbers, days and years among them, and the first of its names."""
    said = " . ".join(sources)
    numbers = {_plain_number(number) for number in _DIGITS.findall(said)}
    found = [number for number in _DIGITS.findall(text) if _plain_number(number) not in numbers]
    name = lost(said, text)
    return list(dict.fromkeys([*found, *([name] if name and not name.isdigit() else [])]))


def lost(kept: str, dropped: str) -> str | None:
    """A number or a name that `dropped` has and `kept` has not, as it is written."""
    stem = lacks(kept, dropped)
    written = re.search(rf"(?i)(?<!\w){re.escape(stem)}", dropped) if stem else None
    return written[0] if written else stem


def fault_of(text: str) -> str:
    """Why `text`, from a model, cannot be what a note says; empty when it can: one plain line that no machine obeys."""
    if count_words(text) < MINIMUM_WORDS:
        return f"it has fewer than {MINIMUM_WORDS} words"
    if plain_line(text) != text or any(mark in text for mark in ("[[", "]]", "%%", "<!--")):
        return "it is not one line without markup"
    return "it gives orders to its reader" if neutralise(text) != text else ""


def one_line(text: str | None) -> str:
    """What a model wrote, without line breaks and control characters."""
    return headings.one_line(text or "")


def plain_line(text: str) -> str:
    """Markdown as one line of plain text."""
    return headings.one_line(markdown.plain(text))


def reason_of(text: str, otherwise: str) -> str:
    """A model's reason, fit for a commit and a question."""
    reason = neutralise(one_line(text))
    if len(reason) > LONGEST_REASON:
        reason = f"{reason[:LONGEST_REASON].rstrip()} …"
    return reason or otherwise


def quote(text: str, most: int = 44) -> str:
    """`"Maya takes oat milk in her coffee"`, cut at a word where it is too long for a subject."""
    line = one_line(text)
    if len(line) > most:
        line = f"{line[:most].rsplit(' ', 1)[0].rstrip(' ,;.')}…"
    return f'"{line}"'


def is_asked(context: Context, key: str, kinds: Iterable[str]) -> bool:
    """Whether a decision of one of `kinds` on this evidence waits for its owner, who has not answered yet."""
    for kind in kinds:
        path = f"{questions.FOLDER}/{kind}-{key[:8]}.md"
        data = context.read(path)
        question = questions.read_question(path, data) if data is not None else None
        if question is not None and question.key == key and question.answer is None:
            return True
    return False


def _plain_number(number: str) -> str:
    return _THOUSANDS.sub("", number).lstrip("0") or "0"
