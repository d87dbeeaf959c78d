"""Disputes: a fact that its owner says is wrong, the question whether to forget it, and what a yes does.

The question is the only record of a dispute, so every clone has it. While it is open no run changes the fact; it closes
when the fact says something else.
"""

import re
from collections.abc import Collection
from datetime import datetime
from pathlib import Path

from quaid.index.documents import Document
from quaid.janitor.decision import DISPUTE, fact_evidence
from quaid.janitor.model_text import clean_reason, quote
from quaid.janitor.questions import Question, question_path, render_question
from quaid.local.runs import Decision, evidence_key
from quaid.model import Edit, Message, note_name
from quaid.redaction import admit
from quaid.vault import files, headings, notes
from quaid.vault.layout import Layout

_REASON = "You say that it is wrong"
_WHY = re.compile(rf"^{_REASON}[.:].*$", re.MULTILINE)


def find_disputed(facts: Collection[Document], question: Question) -> Document | None:
    """Return the one of `facts` that `question` is about; None when it is gone or has changed."""
    named = (fact for fact in facts if note_name(fact.path) in question.about)
    return next((fact for fact in named if _key(fact, question.created) == question.key), None)


def is_asked(fact: Document, open_questions: Collection[Question]) -> Question | None:
    """Return the open question about `fact`, if its owner has disputed it already."""
    return next((q for q in open_questions if q.kind == DISPUTE and find_disputed([fact], q)), None)


def plan_question(fact: Document, data: bytes, why: str, now: datetime, place: Layout) -> tuple[Edit, Message]:
    """Return the note that asks about `fact`, whose file has the bytes `data`, and the message of its commit. `why` is
    the owner's reason.
    """
    reason = clean_reason(admit(why).text, "")
    decision = _decide(fact, data, notes.render_time(now), f"{_REASON}: {reason}" if reason else f"{_REASON}.")
    question = render_question(decision, now, {fact.path: data}, place)
    edit = Edit(question_path(DISPUTE, decision.key, place), None, question)
    trailers = (("Quaid-Task", DISPUTE), ("Quaid-Fact", fact.id))
    return edit, Message(f"{DISPUTE}: {headings.one_line(fact.text)}", reason, trailers)


def decide_answered(facts: Collection[Document], question: Question, root: Path) -> Decision | None:
    """Return what a yes to `question` does in the vault at `root`; None where it is not about a dispute, or the fact is
    not there.
    """
    fact = find_disputed(facts, question) if question.kind == DISPUTE else None
    data = files.read_note(root, fact.path) if fact is not None else None
    if fact is None or data is None:
        return None
    why = _WHY.search(question.data.decode("utf-8", "replace"))
    return _decide(fact, data, question.created, why[0] if why else f"{_REASON}.")


def _decide(fact: Document, data: bytes, created: str, why: str) -> Decision:
    key, edits, subject = _key(fact, created), (Edit(fact.path, data, None),), f"forget {quote(fact.text)}"
    detail = f"> {headings.one_line(fact.text)}\n\n- note: [[{note_name(fact.path)}]]"
    return Decision(DISPUTE, DISPUTE, key, edits, subject, why, (fact.id,), always_asks=True, detail=detail)


def _key(fact: Document, created: str) -> str:
    # With the moment: an owner who has answered no may dispute it again later.
    return evidence_key(DISPUTE, fact_evidence(fact), created)
