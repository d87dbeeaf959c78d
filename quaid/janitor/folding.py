"""What the tasks share that tend the core notes: which may be added to, what may stand in one, and what was refused."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from quaid.janitor.task_context import Context
from quaid.janitor.vetoes import MOST_EXAMPLES
from quaid.local.runs import evidence_key
from quaid.text.quoting import neutralise
from quaid.vault import markdown, notes

_HIDING = ("%%", "<!--", "![[", "```", "~~~")
"""What would hide, or bring in, more than the line it stands in."""


def read_core(context: Context, core: str) -> tuple[bytes | None, str] | None:
    """The bytes and text of a core note that may be edited; (None, "") where there is none yet.

    None for one that is pinned or verified, in the middle of a merge, or no text.
    """
    data = context.read(core)
    if data is None:
        return None, ""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    note = notes.parse_note(core, data)
    may_edit = not (note.pinned or note.verified or markdown.has_conflict_markers(text))
    return (data, text) if may_edit else None


def may_stand(bullet: str) -> bool:
    """Whether a line, whoever wrote it, can stand where agents read it before every conversation: it orders them
    nothing, and hides nothing.
    """
    return neutralise(bullet) == bullet and not any(mark in bullet for mark in _HIDING)


def numbered_lines(items: Iterable[Mapping[str, Any]]) -> str:
    """A line of JSON each, numbered from 1: no text can end its own line and begin another one."""
    lines = (json.dumps({"n": n, **item}, ensure_ascii=False) for n, item in enumerate(items, 1))
    return "\n".join(lines)


def number_problems(numbers: Sequence[int], count: int, *, all_wanted: bool = True) -> list[str]:
    """What is wrong with the numbers that an answer is about, of those from 1 to `count`."""
    problems = [f"there is no number {n}" for n in sorted({n for n in numbers if n > count})]
    problems += [f"number {n} is answered twice" for n in sorted({n for n in numbers if numbers.count(n) > 1})]
    missing = sorted(set(range(1, count + 1)) - set(numbers)) if all_wanted else []
    return [*problems, *(f"number {n} is missing" for n in missing)]


def list_refused(context: Context) -> str:
    """What the owner did not want of this task, for its prompt."""
    newest = context.vetoes[:MOST_EXAMPLES]
    return "\n".join(json.dumps(veto.subject, ensure_ascii=False) for veto in newest) or "(nothing so far)"


# -- evidence of decisions about several things ----------------------------------------------------------------------
# A decision about five observations has one key, and a sixth observation would make it another one. So what each rested
# on is remembered, and nothing that a refused decision rested on is proposed again.


def remember_evidence(context: Context, task: str, key: str, evidence: Collection[str]) -> None:
    context.judgements.add(task, {_evidence_key(key): " ".join(sorted(evidence))})


def refused_evidence(context: Context) -> set[str]:
    """All that decisions which the owner has undone or refused rested on."""
    keys = {*context.vetoed, *(veto.key for veto in context.vetoes)}
    told = context.judgements.known([_evidence_key(key) for key in keys])
    return {part for parts in told.values() for part in parts.split()}


def _evidence_key(key: str) -> str:
    return evidence_key("evidence", key)
