"""Core notes kept short: one that has grown too long is proposed to be trimmed, by replacing lines of it.

They are the owner's words, so it is always asked, and nothing is folded into such a note until it is short again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from quaid.janitor.decision import Decision
from quaid.janitor.model_questions import ask, judge_all, list_refused
from quaid.janitor.model_text import clean_reason, find_unsupported, is_safe_line
from quaid.janitor.task_context import TaskContext
from quaid.llm.exchange import ItemProblem
from quaid.local.runs import evidence_key
from quaid.model import CORE_FILES, Edit
from quaid.recall.core_room import list_cut
from quaid.vault import core_notes, markdown, notes, replacements
from quaid.vault.replacements import ChangeProblem, Replacement

TASK = "workspace"
MIN_LEFT = core_notes.MAX_CHARACTERS // 2
"""The characters of a note that must be left, or half of it if that is less: an answer that cuts more is careless."""


def plan(context: TaskContext) -> Iterator[Decision]:
    """A question for each core note that is too long to be read before every conversation, or that a session shows in
    part because it has no room for more.
    """
    rooms = _list_rooms(context)
    for core in CORE_FILES:
        before, text = context.read_core(core) or (None, "")
        if before and (core in rooms or core_notes.is_long(text)):
            decision = _trim(context, core, before, text, _size(text, rooms.get(core)))
            if decision is not None:
                yield decision


def _list_rooms(context: TaskContext) -> dict[str, int]:
    """The core notes that a session shows in part, with the characters that it has room for."""
    notes_of_core = ((core, context.read(core) or b"") for core in CORE_FILES)
    said = {core: markdown.text_of_note(data.decode("utf-8", "replace")) for core, data in notes_of_core}
    said = {core: text for core, text in said.items() if text}
    return {core: len(said[core]) - over for core, over in list_cut(tuple(said.items()), context.settings.hooks)}


def _trim(context: TaskContext, core: str, before: bytes, text: str, size: str) -> Decision | None:
    key = evidence_key(TASK, notes.content_hash(before))
    kept = context.judgements.known([key]).get(key)
    if kept is None:
        for proposal in judge_all(
            context,
            TASK,
            {key: core},
            lambda _: _ask(context, core, text, size),
            lambda _: 1,
            lambda _: f"how to shorten {core}",
            input_limit=1,
        ):
            kept = json.dumps(proposal, ensure_ascii=False)
            context.judgements.add(TASK, {key: kept})
    if kept is None:
        return None
    judgement = json.loads(kept)
    head, body = notes.split_body(text)
    trims, _ = _fit(body, judgement["changes"])
    trimmed = replacements.apply(body, trims)
    if not trims or _result_problem(body, trimmed):
        return None
    after = head + trimmed
    return Decision(
        task=TASK,
        kind="trim",
        key=key,
        edits=(Edit(core, before, after.encode()),),
        subject=f"shorten {core} from {len(text):,} to {len(after):,} characters",
        why=f"{core} is read before every conversation and has grown to {size}.",
        model=judgement["model"],
        prompt=judgement["prompt"],
        always_asks=True,
        detail="\n".join(replacements.describe(body, trim) for trim in trims),
    )


def _ask(context: TaskContext, core: str, text: str, size: str) -> dict[str, Any]:
    """The model's proposal as it is kept: checked each time it is used."""
    body = notes.split_body(text)[1]

    def check(value: Mapping[str, Any]) -> list[str | ItemProblem]:
        trims, problems = _fit(body, value["changes"])
        if problems:
            return [ItemProblem("changes", place, problem) for place, problem in problems]
        problem = _result_problem(body, replacements.apply(body, trims)) if trims else ""
        return [problem] if problem else []

    inputs = {
        "name": core,
        "note": replacements.number_lines(body),
        "size": size,
        "refused": list_refused(context),
    }
    answer = ask(context, TASK, inputs, check)
    return {"changes": answer.value["changes"], "model": answer.model, "prompt": answer.prompt}


def _fit(body: str, changes: Sequence[Mapping[str, Any]]) -> tuple[list[Replacement], list[ChangeProblem]]:
    def problem(new: str) -> str:
        if not all(is_safe_line(line) for line in new.splitlines() if line not in body):
            return "`replace` hides or orders something"
        invented = find_unsupported(new, [body])
        return f"`replace` says {invented[0]!r}, which the note does not" if invented else ""

    trims, problems = replacements.fit_lines(body, changes, lambda _, new: problem(new))
    return [replace(trim, reason=clean_reason(trim.reason)) for trim in trims], problems


def _result_problem(before: str, after: str) -> str:
    least = min(MIN_LEFT, len(before) // 2)
    if not least <= len(after) < len(before):
        return f"the note must get shorter, and keep at least {least:,} characters"
    if replacements.has_open_fence(after) and not replacements.has_open_fence(before):
        return "a block of code loses its last line and keeps its first"
    return ""


def _size(text: str, room: int | None) -> str:
    """How long a note is, and how long it may be."""
    size = f"{len(text):,} characters in {text.count(chr(10)) + 1:,} lines"
    if room is not None and room < core_notes.MAX_CHARACTERS:
        return f"{size}; sessions have room for {room:,} characters of it"
    return f"{size}; {core_notes.MAX_CHARACTERS:,} and {core_notes.MAX_LINES:,} are a good maximum"
