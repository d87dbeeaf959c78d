"""Health: how the memory grew, how fast it answers, what was asked in vain, what contradicts itself, what models took.

What fades, and the checks of `quaid doctor`, take longer and are parts of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

from quaid.errors import BadInputError, QuaidError
from quaid.janitor.tasks.decay import FLOOR
from quaid.recall.visibility import visible_paths
from quaid.report import health, stats
from quaid.report.doctor import examine
from quaid.report.status import status_of
from quaid.web.answer import Shown, go_to

if TYPE_CHECKING:
    from starlette.requests import Request

    from quaid.index.views import NoteView
    from quaid.memory import Memory

MAX_COLOURS = 4
MAX_DAYS = 60
MAX_PROMPTS = 12
LEVELS = ("error", "warning", "ok")
HERE = "/health"


class Column(NamedTuple):
    """A column of figures: `colour` from 1 where it is drawn, 0 for what is told in the table only."""

    name: str
    values: tuple[float | None, ...]
    colour: int = 0


class Limit(NamedTuple):
    """What was used of what may be used in a day; `width` in percent, 0 as `most` for no limit."""

    name: str
    used: float
    most: float
    width: float


def show_health(memory: Memory, request: Request) -> Mapping[str, Any]:
    """Return the figures that are there at once, and the fact that has just answered a gap."""
    recalls, models = stats.recall_stats_of(memory), stats.model_stats_of(memory)
    gaps, all_gaps = stats.list_gaps(memory, health.MAX_GAPS)
    growth = health.measure_growth(memory)
    today, caps = models.today, models.caps
    used_of = (("tokens", today.tokens, caps.max_tokens_per_day), ("$", today.cost_usd or 0.0, caps.max_usd_per_day))
    days, spent = recalls.numbers.days[-MAX_DAYS:], models.days[-MAX_DAYS:]
    return {
        "growth": growth,
        "kinds": _draw_kinds(growth.kinds),
        "recalls": recalls,
        "recall_days": [day.date for day in days],
        "recall_columns": [
            Column("half within, ms", tuple(day.p50_ms for day in days), 1),
            Column("95 of 100 within, ms", tuple(day.p95_ms for day in days), 2),
            Column("recalls", tuple(day.recalls for day in days)),
            Column("without an answer", tuple(day.recalls - day.answered for day in days)),
            Column("degraded", tuple(day.degraded for day in days)),
        ],
        "answer": _find_answer(memory, request.query_params.get("fact", "")),
        "gaps": [gap for gap in gaps if gap.text],
        "wordless": all_gaps - sum(gap.text is not None for gap in gaps),
        "all_gaps": all_gaps,
        "kept_gaps": memory.settings.recall.gaps,
        "contradictions": health.list_contradictions(memory),
        "models": models,
        "limits": [
            Limit(name, used, most, min(100.0, 100 * used / most) if most else 0.0) for name, used, most in used_of
        ],
        "model_days": [day.day for day in spent],
        "model_columns": [
            Column("cost, $", tuple(day.usage.cost_usd for day in spent), 1),
            Column("calls", tuple(day.usage.calls for day in spent)),
            Column("tokens in", tuple(day.usage.input_tokens for day in spent)),
            Column("tokens out", tuple(day.usage.output_tokens for day in spent)),
        ],
        "prompts": models.prompts[:MAX_PROMPTS],
    }


def _find_answer(memory: Memory, fact_id: str) -> NoteView | None:
    try:
        return memory.get(fact_id) if fact_id else None
    except QuaidError:
        return None  # it was undone, or forgotten


def show_fading(memory: Memory, _: Request) -> Mapping[str, Any]:
    """Return what fades, and when."""
    try:
        fading = health.measure_fading(memory)
    except QuaidError as error:
        return {"problem": str(error), "fading": None}
    return {"problem": "", "fading": fading, "floor": FLOOR}


def show_checks(memory: Memory, _: Request) -> Mapping[str, Any]:
    """Return what needs attention, and what doctor says, the worst first."""
    whole, seen = memory.whole_index(), memory.visible_index()
    attention = [(each, visible_paths(each.paths, whole, seen)) for each in status_of(memory).attention]
    findings = sorted(examine(memory.root), key=lambda finding: LEVELS.index(finding.level))
    told = " ".join(each.what for each, _ in attention)
    return {
        "attention": [(each, paths) for each, paths in attention if paths or not each.paths],
        "findings": [each for each in findings if each.level != "ok" and each.sentence.rstrip(".") not in told],
        "fine": [finding for finding in findings if finding.level == "ok"],
    }


def answer_gap(memory: Memory, form: Mapping[str, str], _: Request) -> str | Shown:
    """Remember what the reader typed as the answer to a question that found nothing, and close the gap."""
    gap, answer = health.find_gap(memory, form.get("key", "")), form.get("answer", "").strip()
    try:
        if not answer:
            raise BadInputError("The answer is empty. Write what the memory should know, as a sentence.")
        answered = health.answer_gap(memory, gap, answer)
    except QuaidError as refusal:
        return Shown("gap.html", {"gap": gap, "answer": answer, "problem": str(refusal)})
    written = answered.written
    said = "left" if written.left else "gap_unfound" if answered.is_found is False else "gap_answered"
    there = go_to(HERE, said, written.commit)
    return f"{there}&{urlencode({'fact': written.id})}#gaps"


def leave_out_gap(memory: Memory, form: Mapping[str, str], _: Request) -> str:
    """Close a gap without an answer."""
    health.close_gap(memory, form.get("key", ""))
    return f"{HERE}?said=gap_left_out#gaps"


def _draw_kinds(kinds: Mapping[str, tuple[int, ...]]) -> list[Column]:
    """Return a column for each kind; those after the most frequent ones are drawn as one."""
    columns = [Column(kind, counts, place) for place, (kind, counts) in enumerate(kinds.items(), 1)]
    if len(columns) <= MAX_COLOURS + 1:
        return columns
    rest = [column.values for column in columns[MAX_COLOURS:]]
    return [*columns[:MAX_COLOURS], Column("other", tuple(map(sum, zip(*rest, strict=True))), MAX_COLOURS + 1)]
