"""Core notes kept short: one that has grown too long is proposed to be trimmed, by replacing exact pieces of it.

They are the owner's words, so it is always asked, and nothing is folded into such a note until it is short again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from quaid.janitor.decision import Decision
from quaid.janitor.folding import list_refused, may_stand, read_core
from quaid.janitor.judging import reason_of, unsaid
from quaid.janitor.task_context import Context
from quaid.local.runs import key_of
from quaid.model import CORE_FILES, Edit
from quaid.vault import core_notes, notes, replacements
from quaid.vault.replacements import Replacement

if TYPE_CHECKING:
    from quaid.llm.exchange import Answer

TASK = "workspace"
LEAST_LEFT = core_notes.MAX_CHARACTERS // 2
"""So many characters of a note must be left, or half of it where that is less: who cuts more has not read it."""


def plan(context: Context) -> Iterator[Decision]:
    """A question for each core note that is too long.

    Raises:
        ModelError: as `Models.ask`.
    """
    for core in CORE_FILES:
        note = read_core(context, core)
        before, text = note if note is not None else (None, "")
        decision = _plan_core(context, core, before, text) if before and core_notes.is_long(text) else None
        if decision is not None:
            yield decision


def _plan_core(context: Context, core: str, before: bytes, text: str) -> Decision | None:
    key = key_of(TASK, notes.content_hash(before))
    told = context.judgements.known([key]).get(key)
    if told is None and context.models is not None:
        told = json.dumps(_ask(context, core, text), ensure_ascii=False)
        context.judgements.add(TASK, {key: told})
    if told is None:
        return None
    verdict = json.loads(told)
    head, body = notes.split_body(text)
    trims, _ = _fit(body, verdict["changes"])
    trimmed = replacements.apply(body, trims)
    if not trims or not _is_measured(body, trimmed):
        return None
    after = head + trimmed
    return Decision(
        task=TASK,
        kind="trim",
        key=key,
        edits=(Edit(core, before, after.encode()),),
        subject=f"trim {core} from {len(text):,} to {len(after):,} characters",
        why=f"{core} is read before every conversation and has grown to {_size(text)}; "
        f"{core_notes.MAX_CHARACTERS:,} and {core_notes.MAX_LINES:,} are a good most.",
        model=verdict["model"],
        prompt=verdict["prompt"],
        always_asks=True,
        detail="\n".join(replacements.describe(body, trim) for trim in trims),
    )


def _ask(context: Context, core: str, text: str) -> dict[str, Any]:
    """What the model proposes, as it is kept: checked each time it is used."""
    assert context.models is not None
    body = notes.split_body(text)[1]

    def check(value: Mapping[str, Any]) -> list[str]:
        trims, problems = _fit(body, value["changes"])
        if trims and not problems and not _is_measured(body, replacements.apply(body, trims)):
            return [f"the note must get shorter, and keep at least {_least(body):,} characters"]
        return problems

    inputs = {
        "name": core,
        "note": body.replace("\r\n", "\n"),
        "size": _size(text),
        "refused": list_refused(context),
    }
    answer: Answer = context.models.ask(context.models.prompt(TASK), inputs, check=check)
    return {"changes": answer.value["changes"], "model": answer.model, "prompt": answer.prompt}


def _fit(body: str, changes: Sequence[Mapping[str, Any]]) -> tuple[list[Replacement], list[str]]:
    trims, problems = replacements.fit(body, changes, lambda _, new: _fault(new, body))
    return [replace(trim, reason=reason_of(trim.reason, "The model gave no reason.")) for trim in trims], problems


def _fault(new: str, body: str) -> str:
    if not all(may_stand(line) for line in new.splitlines() if line not in body):
        return "`replace` hides or orders something"
    invented = unsaid(new, [body])
    return f"`replace` says {invented[0]!r}, which the note does not" if invented else ""


def _is_measured(before: str, after: str) -> bool:
    return _least(before) <= len(after) < len(before)


def _least(text: str) -> int:
    return min(LEAST_LEFT, len(text) // 2)


def _size(text: str) -> str:
    return f"{len(text):,} characters in {text.count(chr(10)) + 1:,} lines"
