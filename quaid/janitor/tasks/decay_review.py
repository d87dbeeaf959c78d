"""What becomes of facts that have faded: the model proposes to let one go, to give it time, or to keep it for good."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from quaid.janitor import fact_edits
from quaid.janitor.decision import Decision
from quaid.janitor.folding import list_refused, number_problems, numbered_lines
from quaid.janitor.model_text import clean_reason, quote
from quaid.janitor.task_context import TaskContext
from quaid.janitor.tasks.decay import EXTENDED, FadedFact, describe, forget, last_day, list_faded
from quaid.llm.batches import batches
from quaid.llm.prices import estimate_tokens
from quaid.vault import notes
from quaid.vault.frontmatter import FrontmatterBrokenError

if TYPE_CHECKING:
    from quaid.llm.prompts import Prompt

TASK = "decay_review"
_INPUT_TOKENS = 8_000
_TOKENS_PER_ANSWER = 120
_VERDICT = re.compile(r"(?P<word>delete|pin): (?P<reason>.*) \((?P<model>[^()]*), (?P<prompt>[^()]*)\)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Judgement:
    """As it is kept: `delete: a plan that is over (wise-20260101, decay_review@3f0c9a1b2c3d)`."""

    word: str
    reason: str
    model: str
    prompt: str

    def render(self, until: str) -> str:
        word = f"{EXTENDED}{until}" if self.word == "extend" else self.word
        return f"{word}: {self.reason} ({self.model}, {self.prompt})"


def plan(context: TaskContext) -> Iterator[Decision]:
    """A question for each fact that is to go or to be pinned. What is given more time is looked at again after it.

    Raises:
        ModelError: as `Models.ask`.
    """
    if context.models is None:
        return
    faded = list_faded(context)
    known = context.judgements.known([one.key for one in faded])
    judgements = {key: judgement for key, text in known.items() if (judgement := _parse(text)) is not None}
    judgements |= _judge(context, [one for one in faded if one.key not in judgements])
    for one in faded:
        judgement = judgements.get(one.key)
        decision = None
        if judgement is not None and judgement.word == "delete":
            decision = forget(context, one, TASK, judgement.reason, judgement.model, judgement.prompt)
        elif judgement is not None and judgement.word == "pin":
            decision = _pin(context, one, judgement)
        if decision is not None:
            yield decision


def _judge(context: TaskContext, faded: Sequence[FadedFact]) -> dict[str, _Judgement]:
    """The model's judgements by key, kept before the next batch is asked."""
    found: dict[str, _Judgement] = {}
    if not faded or context.models is None:
        return found
    prompt = context.models.prompt(TASK)
    for batch in batches(
        faded,
        tokens_of=lambda one: estimate_tokens(numbered_lines([_shown(one)])),
        input_limit=_INPUT_TOKENS,
        output_per_item=_TOKENS_PER_ANSWER,
        output_limit=prompt.max_output_tokens,
    ):
        judgements = _ask(context, prompt, batch)
        context.judgements.add(
            TASK, {key: judgement.render(last_day(context)) for key, judgement in judgements.items()}
        )
        found |= judgements
    return found


def _ask(context: TaskContext, prompt: Prompt, batch: Sequence[FadedFact]) -> dict[str, _Judgement]:
    assert context.models is not None

    def check(value: Mapping[str, Any]) -> list[str]:
        return number_problems([judgement["n"] for judgement in value["verdicts"]], len(batch))

    inputs = {"facts": numbered_lines(map(_shown, batch)), "refused": list_refused(context)}
    answer = context.models.ask(prompt, inputs, check=check)
    said = [judgement["n"] for judgement in answer.value["verdicts"]]
    return {
        batch[given["n"] - 1].key: _Judgement(
            given["verdict"], clean_reason(given["reason"], "The model gave no reason."), answer.model, answer.prompt
        )
        for given in answer.value["verdicts"]
        if given["n"] <= len(batch) and said.count(given["n"]) == 1
    }


def _shown(faded: FadedFact) -> dict[str, Any]:
    """Nothing that is another tomorrow: the same question is asked once."""
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


def _parse(text: str) -> _Judgement | None:
    """A kept judgement that asks for a decision. Time that was given and is over asks for a new one."""
    found = _VERDICT.fullmatch(text)
    return None if found is None else _Judgement(found["word"], found["reason"], found["model"], found["prompt"])
