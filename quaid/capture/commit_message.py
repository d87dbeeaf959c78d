"""The commit message of an extraction, and the lists in it."""

from __future__ import annotations

from collections.abc import Sequence

from quaid.capture.conversation_reader import ConversationReading
from quaid.capture.storing import FactsPlan
from quaid.model import Message

MAX_LISTED = 100
"""Facts listed in a commit's body; the rest is counted."""


def commit_message(reading: ConversationReading, stored: FactsPlan) -> Message:
    """`extract: 14 facts from session 2f1c9a`, and what they are. Facts that are known were said again."""
    new, confirmed = stored.with_outcome("created"), stored.with_outcome("confirmed")
    session = reading.material.session
    turns = sum(not turn.is_note for turn in reading.material.turns)
    body = [f"Learned from {_count(turns, 'turn')} by {reading.model or 'no model'}."]
    body += listed("New", [fact.text for fact in new])
    body += listed("Said again", [fact.text for fact in confirmed])
    body += listed("New names", stored.entities)
    body += listed("Left out", [f"{item.text} ({item.reason})" for item in reading.left_out])
    trailers = [("Quaid-Task", "extract"), ("Quaid-Session", session)]
    trailers += [("Quaid-Model", reading.model)] if reading.model else []
    trailers += [("Quaid-Prompt", reading.prompt)] if reading.prompt else []
    trailers += [("Quaid-Fact", fact.id) for fact in (*new, *confirmed)]
    learned = _count(len(new), "fact")
    if not new:
        learned = f"{_count(len(confirmed), 'fact')} said again" if confirmed else "observations"
    return Message(f"extract: {learned} from session {session}", "\n\n".join(body), tuple(trailers))


def listed(title: str, lines: Sequence[str]) -> list[str]:
    """A paragraph of a commit's body: `title` with `lines` as a list below it; none for no lines."""
    if not lines:
        return []
    shown = [f"- {line}" for line in lines[:MAX_LISTED]]
    more = [f"- and {len(lines) - MAX_LISTED} more"] if len(lines) > MAX_LISTED else []
    return ["\n".join([f"{title}:", *shown, *more])]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
