"""Health: how the memory grew, how fast it answers, unanswered questions, contradictions, and the use of models.

What fades, and the checks of `quaid doctor`, take longer and are separate parts.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request

from quaid.errors import BadInputError, QuaidError
from quaid.janitor.tasks.decay import FLOOR
from quaid.memory import Memory
from quaid.recall.visibility import visible_paths
from quaid.report import health, stats
from quaid.report.checks import examine
from quaid.report.status import status_of
from quaid.web.answer import Context, Form, Shown, go_to

MAX_COLOURS = 4
MAX_DAYS = 60
MAX_PROMPTS = 12
LEVELS = ("error", "warning", "ok")
HERE = "/health"


def show_health(memory: Memory, request: Request) -> Context:
    """Return the figures that are known at once, and the fact that has just answered a gap."""
    numbers, most_recalled = stats.recall_stats_of(memory)
    today, by_day, prompts = stats.model_stats_of(memory)
    recalls = {"numbers": numbers, "most_recalled": most_recalled, "log": memory.settings.recall.log}
    gaps, all_gaps = stats.list_gaps(memory, health.MAX_GAPS)
    growth = health.measure_growth(memory)
    days, spent, caps = numbers.days[-MAX_DAYS:], by_day[-MAX_DAYS:], memory.settings.models
    kinds = [_column(kind, counts, place) for place, (kind, counts) in enumerate(growth.kinds.items(), 1)]
    if len(kinds) > MAX_COLOURS + 1:  # the less frequent ones are one column
        others = [*growth.kinds.values()][MAX_COLOURS:]
        kinds[MAX_COLOURS:] = [_column("other", [*map(sum, zip(*others, strict=True))], MAX_COLOURS + 1)]
    answer = None
    if fact := request.query_params.get("fact", ""):
        with suppress(QuaidError):  # it was undone, or forgotten
            answer = memory.get(fact)
    return {
        "growth": growth,
        "kinds": kinds,
        "recalls": recalls,
        "recall_days": [day.date for day in days],
        "recall_columns": [
            _column("median, ms", [day.p50_ms for day in days], 1),
            _column("95th percentile, ms", [day.p95_ms for day in days], 2),
            _column("recalls", [day.recalls for day in days]),
            _column("unanswered", [day.recalls - day.answered for day in days]),
            _column("degraded", [day.degraded for day in days]),
        ],
        "answer": answer,
        "gaps": [gap for gap in gaps if gap.text],
        "wordless": all_gaps - sum(gap.text is not None for gap in gaps),
        "all_gaps": all_gaps,
        "kept_gaps": memory.settings.recall.gaps,
        "contradictions": health.list_contradictions(memory),
        "models": {"today": today, "days": by_day, "caps": caps},
        "limits": [
            _limit("tokens", today.tokens, caps.max_tokens_per_day),
            _limit("$", today.cost_usd or 0.0, caps.max_usd_per_day),
        ],
        "model_days": [day.day for day in spent],
        "model_columns": [
            _column("cost, $", [day.usage.cost_usd for day in spent], 1),
            _column("calls", [day.usage.calls for day in spent]),
            _column("tokens in", [day.usage.input_tokens for day in spent]),
            _column("tokens out", [day.usage.output_tokens for day in spent]),
        ],
        "prompts": prompts[:MAX_PROMPTS],
    }


def _column(name: str, figures: Sequence[float | None], colour: int = 0) -> Mapping[str, Any]:
    """Return a column of a table; with a colour, from 1, it is drawn as well."""
    return {"name": name, "figures": figures, "colour": colour}


def _limit(name: str, used: float, most: float) -> Mapping[str, Any]:
    """Return the use of a daily budget, with a width in percent; `most` is 0 without a limit."""
    width = min(100.0, 100 * used / most) if most else 0.0
    return {"name": name, "used": used, "most": most, "width": width}


def show_fading(memory: Memory, _: Request) -> Context:
    """Return what fades, and when."""
    try:
        fading = health.measure_fading(memory)
    except QuaidError as error:
        return {"problem": str(error), "fading": None}
    return {"problem": "", "fading": fading, "floor": FLOOR}


def show_checks(memory: Memory, _: Request) -> Context:
    """Return what needs attention, and the findings of doctor, the worst first."""
    whole, seen = memory.whole_index(), memory.visible_index()
    attention = [(each, visible_paths(each.paths, whole, seen)) for each in status_of(memory).attention]
    findings = sorted(examine(memory.root), key=lambda finding: LEVELS.index(finding.level))
    known = tuple(each.what.rstrip(".") for each, _ in attention)
    return {
        "attention": [(each, paths) for each, paths in attention if paths or not each.paths],
        "findings": [each for each in findings if each.level != "ok" and not each.sentence.startswith(known)],
        "fine": [finding for finding in findings if finding.level == "ok"],
    }


def answer_gap(memory: Memory, form: Form, _: Request) -> str | Shown:
    """Remember the reader's answer to a question that found nothing, and close the gap."""
    gap, answer = health.find_gap(memory, form.get("key", "")), form.get("answer", "").strip()
    try:
        if not answer:
            raise BadInputError("The answer is empty. Write what the memory should know as a sentence.")
        written, is_found = health.answer_gap(memory, gap, answer)
    except QuaidError as refusal:
        return Shown("gap.html", {"gap": gap, "answer": answer, "problem": str(refusal)})
    message = "left" if written.left else "gap_unfound" if is_found is False else "gap_answered"
    there = go_to(HERE, message, written.commit)
    return f"{there}&{urlencode({'fact': written.id})}#gaps"


def leave_out_gap(memory: Memory, form: Form, _: Request) -> str:
    """Close a gap without an answer."""
    health.close_gap(memory, form.get("key", ""))
    return go_to(f"{HERE}#gaps", "gap_left_out")
