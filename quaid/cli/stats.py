"""`quaid stats`: what the memory is made of, and pages on recall, gaps, models and health."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Annotated

import typer

from quaid.cli.invocation import Invocation
from quaid.cli.terminal import (
    aligned,
    clipped,
    columns,
    count,
    draw_bar,
    known,
    lines,
    milliseconds,
    moment,
    paragraphs,
    section,
    size,
)
from quaid.errors import UsageError
from quaid.local.recall_log import Gap
from quaid.model import ModelUsage
from quaid.report import stats
from quaid.report.stats import HEALTH_DAYS
from quaid.settings import RecallSettings
from quaid.shapes import json_object

BAR_WIDTH = 32
TITLE_WIDTH = 58
MAX_DAYS = 14
MAX_GAPS = 20
MAX_PROMPTS = 12
DAYS_A_CELL = 2
_LEVELS = "▁▂▃▄▅▆▇█"


def run_stats(
    invocation: Invocation,
    recall: Annotated[
        bool, typer.Option("--recall", help="Recall: its speed, its answers, what is recalled most.")
    ] = False,
    gaps: Annotated[bool, typer.Option("--gaps", help="Questions that found nothing, newest first.")] = False,
    models: Annotated[
        bool, typer.Option("--models", help="Tokens and cost of language models, by day and by prompt.")
    ] = False,
    health: Annotated[
        bool, typer.Option("--health", help="The state of the memory after each janitor run of the last 60 days.")
    ] = False,
) -> None:
    """Show what the memory is made of, in numbers, or one page on recall, gaps, models or health.

    Examples:
      quaid stats
      quaid stats --recall
      quaid stats --gaps --json | jq .gaps
      quaid stats --models
      quaid stats --health
    """
    if recall + gaps + models + health > 1:
        raise UsageError("--recall, --gaps, --models and --health are pages of their own. Ask for one of them.")
    with invocation.open() as memory:
        vault, settings = str(memory.root), memory.settings
        if recall:
            recalls = stats.recall_stats_of(memory)
            most = [{"id": ref, "title": title, **json_object(use)} for ref, title, use in recalls.most_recalled]
            shape = json_object(recalls.numbers, most_recalled=most)
            invocation.respond(render_recall_stats(recalls), vault=vault, log=recalls.log, **shape)
        elif gaps:
            found, total = stats.list_gaps(memory, stats.MAX_GAPS)
            text = render_gap_stats(found, total, settings.recall)
            invocation.respond(text, vault=vault, kept=settings.recall.gaps, total=total, gaps=found)
        elif models:
            usage = stats.model_stats_of(memory)
            invocation.respond(
                render_model_stats(usage),
                vault=vault,
                today=usage.today,
                **json_object(usage.caps, "max_tokens_per_day", "max_usd_per_day"),
                days=[{"date": day.day, **json_object(day.usage), "unsettled": day.unsettled} for day in usage.days],
                prompts=[
                    {**json_object(one, "prompt", "provider", "model"), **json_object(one.usage)}
                    for one in usage.prompts
                ],
            )
        elif health:
            history = stats.health_stats_of(memory)
            invocation.respond(render_health_stats(history), **json_object(history))
        else:
            contents = stats.stats_of(memory)
            invocation.respond(render_stats(contents), **json_object(contents))


def render_stats(numbers: stats.Stats) -> str:
    """Return the first page: notes by kind, type, status and speaker."""
    head = known(
        ("notes", f"{numbers.notes:,}"),
        ("graph", f"{numbers.entities:,} entities, {numbers.edges:,} edges, {numbers.relations:,} relations"),
        ("chunks", f"{numbers.chunks:,}, {numbers.embedded:,} embedded"),
        ("disk", f"index {size(numbers.index_bytes)}, embeddings {size(numbers.cache_bytes)}"),
        ("time", f"{moment(numbers.oldest)} to {moment(numbers.newest)}" if numbers.oldest else None),
    )
    groups = {
        "Kinds": numbers.kinds,
        "Types": numbers.types,
        "Status": numbers.statuses,
        "Speakers": numbers.speakers,
    }
    tables = (
        section(title, aligned([(name, f"{number:,}") for name, number in group.items()], right=(1,)))
        for title, group in groups.items()
    )
    return paragraphs(columns(head), *tables)


def render_recall_stats(found: stats.RecallStats) -> str:
    """Return the page of `--recall`."""
    numbers, latency = found.numbers, found.numbers.latency
    off = "The recall log is off; switch it on with: quaid config recall.log text" if found.log == "off" else ""
    often = [
        (f"{use.accesses:,}x", clipped(title or f"{ref} (no longer there)", TITLE_WIDTH))
        for ref, title, use in found.most_recalled
    ]
    most_recalled = section("Most recalled", aligned(often, right=(0,)))
    if not numbers.recalls or latency is None:
        return paragraphs(
            off or "No recall is logged yet. Ask something: quaid recall 'what does Maya drink?'", most_recalled
        )
    answered = f"{numbers.answered:,} ({_share(numbers.answered, numbers.recalls)})"
    without = f"{numbers.unanswered:,} without a hit (see quaid stats --gaps)"
    degraded = ", ".join(f"{kind} {number:,}" for kind, number in numbers.degraded.items())
    share = _share(numbers.degraded_recalls, numbers.recalls)
    head = [
        ("recalls", f"{numbers.recalls:,} from {moment(numbers.first)} to {moment(numbers.last)}"),
        ("answered", f"{answered}, {without if numbers.unanswered else 'none without a hit'}"),
        ("degraded", f"{numbers.degraded_recalls:,} ({share}): {degraded}" if numbers.degraded_recalls else "none"),
        ("asked by", ", ".join(f"{door} {number:,}" for door, number in numbers.doors.items())),
    ]
    speeds = [("", "half within", "95% within")]
    speeds += [
        (name, milliseconds(stage.p50_ms), milliseconds(stage.p95_ms))
        for name, stage in {"all": latency, **numbers.stages}.items()
    ]
    held = [position for position, bar in enumerate(numbers.histogram) if bar.count]
    bars = numbers.histogram[held[0] : held[-1] + 1]
    times = [(f"up to {milliseconds(bar.up_to_ms)}" if bar.up_to_ms else "longer", f"{bar.count:,}") for bar in bars]
    newest = numbers.days[-MAX_DAYS:]
    days = [
        (day.date, f"{day.recalls:,}", _share(day.answered, day.recalls), milliseconds(day.p50_ms)) for day in newest
    ]
    return paragraphs(
        off,
        columns(head),
        section("Speed", aligned(speeds, right=(1, 2))),
        section("How long a recall took", _with_bars(times, [bar.count for bar in bars], BAR_WIDTH)),
        section(
            "By day: recalls, share answered, half within",
            _with_bars(days, [day.recalls for day in newest], BAR_WIDTH),
        ),
        most_recalled,
    )


def _with_bars(rows: Sequence[tuple[str, ...]], numbers: Sequence[int], width: int) -> list[tuple[str, ...]]:
    """The rows, all but their first column right-aligned, each with a bar as long as its number is of the greatest."""
    drawn = [(*row, draw_bar(number, max(numbers), width)) for row, number in zip(rows, numbers, strict=True)]
    return aligned(drawn, right=range(1, len(rows[0])))


def render_gap_stats(gaps: Sequence[Gap], total: int, settings: RecallSettings) -> str:
    """Return the page of `--gaps`; the recall log may store the words of every question too."""
    in_log = " The recall log stores the words of all questions; to store none: quaid config recall.log hashes"
    in_log = in_log if settings.log == "text" else ""
    if not gaps and settings.gaps == "off":
        return f"Questions that find nothing are not listed. List them with: quaid config recall.gaps hashes.{in_log}"
    if not gaps:
        return "No gap is known: every question asked so far has found something."
    shown = gaps[:MAX_GAPS]
    rows = [
        (moment(gap.last_asked), f"{gap.asked:,}x", clipped(gap.text or gap.key[:12], TITLE_WIDTH)) for gap in shown
    ]
    more = total - len(shown)
    stored = "This list stores only hashes" if settings.gaps == "hashes" else "New questions are not listed"
    step = f"\n{stored}. Store the words from now on with: quaid config recall.gaps text.{in_log}"
    return lines(
        section(f"{count(total, 'question')} found nothing", rows),
        f"  … and {more:,} more" if more else "",
        "" if settings.gaps == "text" else step,
    )


def render_model_stats(found: stats.ModelStats) -> str:
    """Return the page of `--models`."""
    if not found.days:
        return "No model was asked here in 90 days. See which one would be: quaid doctor"
    today, caps = found.today, found.caps
    tokens = f" of {caps.max_tokens_per_day:,}" if caps.max_tokens_per_day else ""
    dollars = f" of ${caps.max_usd_per_day:.2f}" if caps.max_usd_per_day else ""
    unsettled = sum(day.unsettled for day in found.days)
    head = known(
        (
            "today",
            f"{count(today.calls, 'call')}, {today.tokens:,} tokens{tokens}, {_dollars(today.cost_usd)}{dollars}",
        ),
        ("unended", f"{count(unsettled, 'call')}, counted at the most that could be taken" if unsettled else None),
    )
    newest = found.days[-MAX_DAYS:]
    days = [(day.day, *_usage(day.usage)) for day in newest]
    prompts = [(one.prompt.partition("@")[0], one.model, *_usage(one.usage)) for one in found.prompts[:MAX_PROMPTS]]
    return paragraphs(
        columns(head),
        section(
            "By day: calls, tokens in and out, cost",
            _with_bars(days, [day.usage.tokens for day in newest], BAR_WIDTH // 2),
        ),
        section("By prompt, 90 days", aligned(prompts, right=(2, 3, 4, 5))),
    )


def render_health_stats(found: stats.HealthStats) -> str:
    """Return the page of `--health`."""
    if not found.days:
        return found.warning or "The janitor has not run here in 60 days. Begin with: quaid janitor run"
    costs = [day.cost_usd for day in found.days if day.cost_usd is not None]
    head = [
        ("runs", f"on {count(len(found.days), 'day')} from {found.days[0].day} to {found.days[-1].day}"),
        ("cost", f"{_dollars(sum(costs))}{'' if len(costs) == len(found.days) else ' and more, of unknown price'}"),
    ]
    columns_of_days: dict[str, list[float | None]] = {
        "notes": [day.notes for day in found.days],
        "facts": [day.kinds.get("fact", 0) for day in found.days],
        "pending": [day.pending for day in found.days],
        "superseded": [day.superseded for day in found.days],
        "entities": [day.entities for day in found.days],
        "edges": [day.edges for day in found.days],
        "embedded": [day.embedded_share for day in found.days],
        "index": [day.index_bytes for day in found.days],
        "repository": [day.repository_bytes for day in found.days],
        "recall": [day.recall_p50_ms for day in found.days],
        "gaps": [day.gaps for day in found.days],
        "questions": [day.waiting for day in found.days],
        "cost": [day.cost_usd for day in found.days],
    }
    rows = [(name, *_chart(name, found, values)) for name, values in columns_of_days.items()]
    title = f"{HEALTH_DAYS} days: the last, the change, {DAYS_A_CELL} days a bar"
    return paragraphs(columns(head), section(title, aligned(rows, right=(1, 2))), found.warning)


def _chart(name: str, found: stats.HealthStats, numbers: Sequence[float | None]) -> tuple[str, str, str]:
    """Return the last value, how far it is from the first, and a line of bars from the lowest to the highest."""
    measured = {day.day: number for day, number in zip(found.days, numbers, strict=True) if number is not None}
    if not measured:
        return "-", "", ""
    values = [*measured.values()]
    first, last = _format_figure(name, values[0]), _format_figure(name, values[-1])
    change = _format_figure(name, abs(values[-1] - values[0]))
    change = "" if first == last else f"{'+' if values[-1] > values[0] else '-'}{change}"
    until = date.fromisoformat(found.until)
    cells: list[float | None] = [None] * (HEALTH_DAYS // DAYS_A_CELL)
    for day, number in measured.items():
        cells[-1 - (until - date.fromisoformat(day)).days // DAYS_A_CELL] = number
    shown = [number for number in cells if number is not None]
    low, span = min(shown), max(shown) - min(shown)
    top = len(_LEVELS) - 1
    bars = (" " if cell is None else _LEVELS[round(top * (cell - low) / span) if span else 0] for cell in cells)
    return last, change, "".join(bars).rstrip()


def _format_figure(name: str, number: float) -> str:
    if name in {"index", "repository"}:
        return size(int(number))
    if name == "recall":
        return milliseconds(number)
    if name == "cost":
        return _dollars(number)
    return f"{100 * number:.0f}%" if name == "embedded" else f"{number:,.0f}"


def _usage(usage: ModelUsage) -> tuple[str, ...]:
    return f"{usage.calls:,}x", f"{usage.input_tokens:,}", f"{usage.output_tokens:,}", _dollars(usage.cost_usd)


def _dollars(cost_usd: float | None) -> str:
    return (
        "unknown" if cost_usd is None else f"${cost_usd:.2f}" if cost_usd >= 1 or not cost_usd else f"${cost_usd:.4f}"
    )


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f}%"
