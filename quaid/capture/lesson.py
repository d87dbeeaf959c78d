"""What a model has learned from a conversation, and what follows from it: facts to store, and what the commit says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from quaid.capture.extract import ExtractedFact, Extraction, LeftOut
from quaid.capture.facts import FactDetails
from quaid.capture.pieces import Material
from quaid.capture.storing import FactsPlan, NewFact
from quaid.errors import QuaidError
from quaid.model import Message, ModelUsage
from quaid.recall.intent import is_technical
from quaid.settings import CaptureSettings

MOST_LISTED = 100
"""So many facts are listed in a commit's body."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """Without an `extraction` there is a `problem`: nothing was learned, and the material waits.

    `renamed` are relations that go by another name (see `storing.plan_facts`), `quarantined` is the file that has what
    could not be kept, `degraded` what had to be done without.
    """

    material: Material
    extraction: Extraction | None = None
    renamed: Mapping[str, tuple[str, bool]] = field(default_factory=dict)
    model: str | None = None
    prompt: str | None = None
    usage: ModelUsage = field(default_factory=ModelUsage)
    problem: QuaidError | None = None
    quarantined: str | None = None
    degraded: tuple[str, ...] = ()

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        return self.extraction.left_out if self.extraction else ()


def wanted(found: Extraction, capture: CaptureSettings) -> Extraction:
    """What the owner wants to be kept of `found`."""
    return replace(
        found,
        facts=found.facts if capture.facts else (),
        snippets=found.snippets if capture.snippets else {},
        journal=found.journal if capture.journal else {},
    )


def new_facts(found: Extraction, material: Material, owner: str, episode_name: str | None) -> list[NewFact]:
    """The facts of `found`, pending, citing turns of the episode; without its name they cite nothing."""
    return [
        NewFact(
            fact.text,
            replace(
                details_of(fact, owner, fact.project),
                source=fact.source,
                extraction_confidence=fact.confidence if fact.source == "assistant" else None,
                session=material.session,
                turns=tuple(f"[[{episode_name}#^t{turn}]]" for turn in fact.turns) if episode_name else (),
            ),
        )
        for fact in found.facts
    ]


def details_of(fact: ExtractedFact, owner: str, project: str | None) -> FactDetails:
    """What a model has said of a fact, as a pending one of `owner` and `project`."""
    return FactDetails(
        type=fact.category,
        status="pending",
        owner=owner,
        confidence=fact.confidence,
        durability=fact.durability,
        privacy=fact.privacy,
        speaker=fact.speaker,
        project=project,
        technical=project is not None and is_technical(fact.text),
        valid_from=fact.valid_from,
        valid_until=fact.valid_until,
        keywords=fact.keywords,
        edges=fact.edges,
    )


def commit_message(lesson: Lesson, stored: FactsPlan) -> Message:
    """`extract: 14 facts from session 2f1c9a`, and what they are."""
    new = [fact for fact in stored.stored if fact.outcome == "created"]
    confirmed = [fact for fact in stored.stored if fact.outcome == "confirmed"]
    session = lesson.material.session
    turns = sum(not turn.is_note for turn in lesson.material.turns)
    body = [f"Learned from {_count(turns, 'turn')} by {lesson.model or 'no model'}."]
    body += listed("New", [fact.text for fact in new])
    body += listed("Said again", [fact.text for fact in confirmed])
    body += listed("New names", stored.entities)
    body += listed("Left out", [f"{item.text} ({item.reason})" for item in lesson.left_out])
    trailers = [("Quaid-Task", "extract"), ("Quaid-Session", session)]
    trailers += [("Quaid-Model", lesson.model)] if lesson.model else []
    trailers += [("Quaid-Prompt", lesson.prompt)] if lesson.prompt else []
    trailers += [("Quaid-Fact", fact.id) for fact in (*new, *confirmed)]
    subject = f"extract: {_count(len(new), 'fact')} from session {session}"
    return Message(subject, "\n\n".join(body), tuple(trailers))


def listed(title: str, lines: Sequence[str]) -> list[str]:
    """A paragraph of a commit's body: `title` with `lines` as a list below it; none for no lines."""
    if not lines:
        return []
    shown = [f"- {line}" for line in lines[:MOST_LISTED]]
    more = [f"- and {len(lines) - MOST_LISTED} more"] if len(lines) > MOST_LISTED else []
    return ["\n".join([f"{title}:", *shown, *more])]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
