"""A question that a program put to its user with a tool, and the answer: the one is the assistant's, the other was
typed or chosen by a person.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from quaid.capture.cleaning import clean_text
from quaid.capture.transcripts.lines import text_at, value_at

_NOTE = "user_note:"
"""What Codex puts before an answer that was typed beside the chosen one."""


def pair_answers(questions: object, answers: object, notes: object = None) -> Iterator[tuple[str, str]]:
    """Each question that was answered, with its answer, in the order in which they were asked.

    `answers` and `notes` are keyed by the question's text, its id or its number from 0. An answer is a text, a list of
    them or an object with `answers`; a note is an object with `notes`. What has another shape is passed over.
    """
    for number, question in enumerate(questions if isinstance(questions, (list, tuple)) else ()):
        text = clean_text(text_at(question, "question") or "")
        keys = (text_at(question, "question"), text_at(question, "id"), str(number))
        given = _find(answers, keys)
        said = value_at(given, "answers") if isinstance(given, dict) else given
        said = [*(said if isinstance(said, list) else [said]), text_at(_find(notes, keys), "notes")]
        texts = [item.removeprefix(_NOTE).strip() for item in said if isinstance(item, str)]
        answer = clean_text("\n".join(filter(None, texts)))
        if text and answer:
            yield text, answer


def _find(found: object, keys: tuple[str | None, ...]) -> Any:
    return next((found[key] for key in keys if key in found), None) if isinstance(found, dict) else None
