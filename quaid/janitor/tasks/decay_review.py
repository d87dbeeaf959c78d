"""Review of facts that have faded: the model proposes to let one go, to give it time, or to keep it for good."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from quaid.janitor import fact_edits
from quaid.janitor.decision import Decision
from quaid.janitor.judgements import known_judgements
from quaid.janitor.model_questions import ask, by_number, judge_all, list_refused, number_problems, numbered_lines
from quaid.janitor.model_text import clean_reason, quote
from quaid.janitor.task_context import TaskContext
from quaid.janitor.tasks.decay import EXTENDED, FadedFact, describe, forget, last_day, list_faded
from quaid.llm.prices import estimate_tokens
from quaid.vault import notes
from quaid.vault.frontmatter import FrontmatterBrokenError

TASK = "decay_review"
_INPUT_TOKENS = 8_000
_TOKENS_PER_ANSWER = 120
_JUDGEMENT = re.compile(r"(?P<says>delete|pin): (?P<reason>.*) \((?P<model>[^()]*), (?P<prompt>[^()]*)\)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Judgement:
    """A judgement, kept as `delete: a plan that is over (wise-20260101, decay_review@3f0c9a1b2c3d)`."""

    says: str
    reason: str
    model: str
    prompt: str

    def render(self, until: str) -> str:
        says = f"{EXTENDED}{until}" if self.says == "extend" else self.says
        return f"{says}: {self.reason} ({self.model}, {self.prompt})"

    @classmethod
    def parse(cls, text: str) -> _Judgement | None:
        """A kept judgement that asks for a decision. Time that was given and is over asks for a new one."""
        found = _JUDGEMENT.fullmatch(text)
        return None if found is None else cls(**found.groupdict())


def plan(context: TaskContext) -> Iterator[Decision]:
    """A question for each fact that is to go or to be pinned. What is given more time is looked at again after it."""
    if context.models is None:
        return
    faded = list_faded(context)
    judgements = known_judgements(context, [one.key for one in faded], _Judgement.parse)
    for found in judge_all(
        context,
        TASK,
        {one.key: one for one in faded if one.key not in judgements},
        lambda batch: _ask(context, batch),
        lambda one: estimate_tokens(numbered_lines([_shown(one)])),
        lambda one: one.text,
        input_limit=_INPUT_TOKENS,
        output_per_item=_TOKENS_PER_ANSWER,
    ):
        context.judgements.add(TASK, {key: judgement.render(last_day(context)) for key, judgement in found.items()})
        judgements |= found
    for one in faded:
        judgement = judgements.get(one.key)
        decision = None
        if judgement is not None and judgement.says == "delete":
            decision = forget(context, one, TASK, judgement.reason, judgement.model, judgement.prompt)
        elif judgement is not None and judgement.says == "pin":
            decision = _pin(context, one, judgement)
        if decision is not None:
            yield decision


def _ask(context: TaskContext, batch: Sequence[FadedFact]) -> dict[str, _Judgement]:
    inputs = {
        "facts": numbered_lines(map(_shown, batch)),
        "refused": list_refused(context),
    }
    answer = ask(context, TASK, inputs, lambda value: number_problems(value, "verdicts", len(batch)))
    return {
        one.key: _Judgement(item["verdict"], clean_reason(item["reason"]), answer.model, answer.prompt)
        for one, item in by_number(answer.value["verdicts"], batch)
    }


def _shown(faded: FadedFact) -> dict[str, Any]:
    """Return what the model is shown: only what is the same tomorrow, so that a question is asked once."""
    row = faded.document
    about = {
        "text": faded.text,
        "type": row.type,
        "confidence": faded.sure,
        "learned": (row.created or "")[:10],
        "last_used": faded.use.last_access and faded.last,
        "times_used": faded.use.accesses,
        "times_said": 1 + row.confirmations,
        "said_by": row.speaker,
        "valid_from": row.valid_from,
        "valid_until": row.valid_until,
    }
    return {key: value for key, value in about.items() if value is not None}


def _pin(context: TaskContext, faded: FadedFact, judgement: _Judgement) -> Decision | None:
    row = faded.document
    data = context.read(row.path)
    if data is None or notes.content_hash(data) != row.content_hash:
        return None
    try:
        edit = fact_edits.set_fields(row.path, data, {"pinned": True})
    except (FrontmatterBrokenError, UnicodeDecodeError):
        return None
    return Decision(
        task=TASK,
        kind="pin",
        key=faded.pin_key,
        edits=(edit,),
        subject=f"pin {quote(faded.text)}",
        why=judgement.reason,
        facts=(row.id,),
        model=judgement.model,
        prompt=judgement.prompt,
        detail=describe(faded),
    )
