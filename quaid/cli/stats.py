"""`quaid stats`: what the memory is made of, and pages on recall, gaps, models and health."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quaid.cli.invocation import Invocation
from quaid.cli.terminal import aligned, columns, count, draw_bar, milliseconds, moment, one_line, section, size
from quaid.errors import UsageError
from quaid.model import ModelUsage
from quaid.place import LOCAL_FILE, state_folder
from quaid.report.status import GapStats, MostRecalled, RecallStats, Stats, gap_stats_of, recall_stats_of, stats_of

if TYPE_CHECKING:
    from quaid.local.health import Snapshot
    from quaid.local.model_usage import DayUsage, PromptUsage
    from quaid.local.recall_summary import Bar, RecallDay, RecallSummary
    from quaid.memory import Memory
    from quaid.settings import ModelSettings

WIDEST_BAR = 32
WIDEST_TITLE = 56
MOST_DAYS = 14
MAX_GAPS = 20
MOST_PROMPTS = 12
HEALTH_DAYS = 60
DAYS_A_CELL = 2
_LEVELS = "▁▂▃▄▅▆▇█"

OfRecall = Annotated[bool, typer.Option("--recall", help="How recall does: speed, answers, what is recalled most.")]
OfGaps = Annotated[bool, typer.Option("--gaps", help="What was asked and not found, newest first.")]
OfModels = Annotated[bool, typer.Option("--models", help="What language models took, by day and by prompt.")]
OfHealth = Annotated[bool, typer.Option("--health", help="How the memory was after each janitor run of 60 days.")]


def run_stats(
    ctx: typer.Context,
    recall: OfRecall = False,
    gaps: OfGaps = False,
    models: OfModels = False,
    health: OfHealth = False,
) -> None:
    """What the memory is made of, in numbers; or one page of how it does.

    Examples:
      quaid stats
      quaid stats --recall
      quaid stats --gaps --json | jq .gaps
      quaid stats --models
      quaid stats --health
    """
    if recall + gaps + models + health > 1:
        raise UsageError("--recall, --gaps, --models and --health are pages of their own. Ask for one of them.")
    invocation: Invocation = ctx.obj
    with invocation.open() as memory:
        if recall:
            recalls = recall_stats_of(memory)
            shape = {"vault": recalls.vault, "log": recalls.log, **asdict(recalls.numbers)}
            most = [{"id": one.id, "title": one.title, **asdict(one.use)} for one in recalls.most_recalled]
            invocation.tell(lambda: _render_recall(recalls), **shape, most_recalled=most)
        elif gaps:
            found = gap_stats_of(memory)
            listed = [gap._asdict() for gap in found.gaps]
            invocation.tell(
                lambda: _render_gaps(found), vault=found.vault, kept=found.kept, total=found.total, gaps=listed
            )
        elif models:
            taken = _model_stats_of(memory)
            invocation.tell(lambda: _render_models(taken), **_model_shape(taken))
        elif health:
            seen = _health_of(memory)
            invocation.tell(lambda: _render_health(seen), **asdict(seen))
        else:
            stats = stats_of(memory)
            invocation.tell(lambda: _render_stats(stats), **asdict(stats))


def _render_stats(stats: Stats) -> str:
    head = [
        ("notes", f"{stats.notes:,}"),
        ("graph", f"{stats.entities:,} entities, {stats.edges:,} edges, {stats.relations:,} relations"),
        ("chunks", f"{stats.chunks:,}, {stats.embedded:,} embedded"),
        ("disk", f"index {size(stats.index_bytes)}, embeddings {size(stats.cache_bytes)}"),
    ]
    if stats.oldest:
        head.append(("time", f"{moment(stats.oldest)} to {moment(stats.newest)}"))
    groups = (("Kinds", stats.kinds), ("Types", stats.types), ("Status", stats.statuses), ("Speakers", stats.speakers))
    sections = [section(title, _numbered(numbers)) for title, numbers in groups]
    return "\n\n".join(part for part in (columns(head), *sections) if part)


def _numbered(numbers: dict[str, int]) -> list[tuple[str, str]]:
    width = max((len(f"{number:,}") for number in numbers.values()), default=0)
    return [(name, f"{number:>{width},}") for name, number in numbers.items()]


def _render_recall(stats: RecallStats) -> str:
    numbers = stats.numbers
    off = "The recall log is off; switch it on with: quaid config recall.log text" if stats.log == "off" else ""
    if not numbers.recalls or numbers.latency is None:
        nothing = "No recall is logged yet. Ask something: quaid recall 'what does Maya drink?'"
        return "\n\n".join(part for part in (off or nothing, _most_recalled(stats.most_recalled)) if part)
    latency = numbers.latency
    head = [
        ("recalls", f"{numbers.recalls:,} from {moment(numbers.first)} to {moment(numbers.last)}"),
        ("answered", f"{numbers.answered:,} ({_share(numbers.answered, numbers.recalls)}), {_unanswered(numbers)}"),
        ("degraded", _degraded(numbers)),
        ("asked by", ", ".join(f"{door} {number:,}" for door, number in numbers.doors.items())),
    ]
    speeds: list[tuple[str, ...]] = [
        ("", "half within", "95% within"),
        ("all", milliseconds(latency.p50_ms), milliseconds(latency.p95_ms)),
    ]
    speeds += [(name, milliseconds(stage.p50_ms), milliseconds(stage.p95_ms)) for name, stage in numbers.stages.items()]
    parts = (
        off,
        columns(head),
        section("Speed", aligned(speeds, right=(1, 2))),
        section("How long a recall took", _histogram(numbers.histogram)),
        section("By day: recalls, share answered, half within", _days(numbers.days)),
        _most_recalled(stats.most_recalled),
    )
    return "\n\n".join(part for part in parts if part)


def _unanswered(numbers: RecallSummary) -> str:
    if not numbers.unanswered:
        return "none without a hit"
    return f"{numbers.unanswered:,} without a hit (see quaid stats --gaps)"


def _degraded(numbers: RecallSummary) -> str:
    if not numbers.degraded_recalls:
        return "none"
    kinds = ", ".join(f"{kind} {number:,}" for kind, number in numbers.degraded.items())
    return f"{numbers.degraded_recalls:,} ({_share(numbers.degraded_recalls, numbers.recalls)}): {kinds}"


def _histogram(bars: Sequence[Bar]) -> list[tuple[str, ...]]:
    """From the first to the last bar that holds anything."""
    held = [position for position, bar in enumerate(bars) if bar.count]
    shown = bars[held[0] : held[-1] + 1]
    most = max(bar.count for bar in shown)
    return aligned(
        [
            (
                f"up to {milliseconds(bar.up_to_ms)}" if bar.up_to_ms else "longer",
                f"{bar.count:,}",
                draw_bar(bar.count, most, WIDEST_BAR),
            )
            for bar in shown
        ],
        right=(1,),
    )


def _days(days: Sequence[RecallDay]) -> list[tuple[str, ...]]:
    """The newest days on which anything was asked."""
    shown = days[-MOST_DAYS:]
    most = max(day.recalls for day in shown)
    return aligned(
        [
            (
                day.date,
                f"{day.recalls:,}",
                _share(day.answered, day.recalls),
                milliseconds(day.p50_ms),
                draw_bar(day.recalls, most, WIDEST_BAR),
            )
            for day in shown
        ],
        right=(1, 2, 3),
    )


def _most_recalled(most: Sequence[MostRecalled]) -> str:
    rows = [(f"{one.use.accesses:,}x", _clipped(one.title or f"{one.id} (no longer there)")) for one in most]
    return section("Most recalled", aligned(rows, right=(0,)))


def _render_gaps(stats: GapStats) -> str:
    if stats.kept == "off" and not stats.gaps:
        return "Questions that find nothing are not kept. Keep them with: quaid config recall.gaps hashes"
    if not stats.gaps:
        return "No gap is known: every question asked so far has found something."
    shown = stats.gaps[:MAX_GAPS]
    rows = [(moment(gap.last_asked), f"{gap.asked:,}x", _clipped(gap.text or gap.key[:12])) for gap in shown]
    more = stats.total - len(shown)
    lines = [section(f"{count(stats.total, 'question')} found nothing", rows)]
    lines += [f"  … and {more:,} more"] if more else []
    if stats.kept != "text":
        kept = "Only hashes are kept" if stats.kept == "hashes" else "New ones are not kept"
        lines.append(f"\n{kept}. Keep what you ask from now on with: quaid config recall.gaps text")
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class _ModelStats:
    """What models took on this machine, on each day and by each prompt, and what they may take today (UTC)."""

    vault: str
    caps: ModelSettings
    today: ModelUsage
    days: list[DayUsage]
    prompts: list[PromptUsage]


def _model_stats_of(memory: Memory) -> _ModelStats:
    from quaid.local.model_usage import ModelRecords

    records = ModelRecords(state_folder(memory.root) / LOCAL_FILE)
    today = records.spent(datetime.now(UTC).date().isoformat())
    return _ModelStats(str(memory.root), memory.settings.models, today, records.by_day(), records.by_prompt())


def _model_shape(stats: _ModelStats) -> dict[str, Any]:
    caps = {"max_tokens_per_day": stats.caps.max_tokens_per_day, "max_usd_per_day": stats.caps.max_usd_per_day}
    days = [{"date": day.day, **day.usage._asdict(), "unsettled": day.unsettled} for day in stats.days]
    prompts = [
        {"prompt": one.prompt, "provider": one.provider, "model": one.model, **one.usage._asdict()}
        for one in stats.prompts
    ]
    return {"vault": stats.vault, "today": stats.today._asdict(), **caps, "days": days, "prompts": prompts}


def _render_models(stats: _ModelStats) -> str:
    if not stats.days:
        return "No model was asked here in 90 days. See which one would be: quaid doctor"
    today, caps = stats.today, stats.caps
    tokens = f" of {caps.max_tokens_per_day:,}" if caps.max_tokens_per_day else ""
    dollars = f" of ${caps.max_usd_per_day:.2f}" if caps.max_usd_per_day else ""
    head = [
        ("today", f"{count(today.calls, 'call')}, {today.tokens:,} tokens{tokens}, {_dollars(today.cost_usd)}{dollars}")
    ]
    unsettled = sum(day.unsettled for day in stats.days)
    if unsettled:
        head.append(("unended", f"{count(unsettled, 'call')}, counted at the most that could be taken"))
    shown = stats.days[-MOST_DAYS:]
    most = max(day.usage.tokens for day in shown)
    days = [(day.day, *_taken(day.usage), draw_bar(day.usage.tokens, most, WIDEST_BAR // 2)) for day in shown]
    prompts = [(one.prompt.partition("@")[0], one.model, *_taken(one.usage)) for one in stats.prompts[:MOST_PROMPTS]]
    parts = (
        columns(head),
        section("By day: calls, tokens in and out, cost", aligned(days, right=(1, 2, 3, 4))),
        section("By prompt, 90 days", aligned(prompts, right=(2, 3, 4, 5))),
    )
    return "\n\n".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class _Health:
    """The snapshots of the last 60 days (UTC), one a day; `warning` when the janitor has not run for long."""

    vault: str
    until: str
    last_success: str | None
    warning: str | None
    days: list[Snapshot]


def _health_of(memory: Memory) -> _Health:
    from quaid.janitor.news import overdue
    from quaid.local.health import HealthLog
    from quaid.local.runs import Runs

    path = state_folder(memory.root) / LOCAL_FILE
    now = datetime.now(UTC)
    runs = Runs(path)
    last = runs.last_success()
    until = now.date().isoformat()
    since = (now.date() - timedelta(days=HEALTH_DAYS - 1)).isoformat()
    return _Health(
        str(memory.root),
        until,
        last.started if last else None,
        overdue(runs, now),
        [day for day in HealthLog(path).by_day(since) if day.day <= until],  # a clock may have been set back
    )


def _render_health(health: _Health) -> str:
    if not health.days:
        return health.warning or "The janitor has not run here in 60 days. Begin with: quaid janitor run"
    costs = [day.cost_usd for day in health.days if day.cost_usd is not None]
    head = [
        ("runs", f"on {count(len(health.days), 'day')} from {health.days[0].day} to {health.days[-1].day}"),
        ("cost", f"{_dollars(sum(costs))}{'' if len(costs) == len(health.days) else ' and more, of unknown price'}"),
    ]
    measures: tuple[tuple[str, Callable[[Snapshot], float | None], Callable[[float], str]], ...] = (
        ("notes", lambda day: day.notes, _whole),
        ("facts", lambda day: day.kinds.get("fact", 0), _whole),
        ("pending", lambda day: day.pending, _whole),
        ("superseded", lambda day: day.superseded, _whole),
        ("entities", lambda day: day.entities, _whole),
        ("edges", lambda day: day.edges, _whole),
        ("embedded", lambda day: day.embedded_share, lambda share: _share(round(100 * share), 100)),
        ("index", lambda day: day.index_bytes, lambda number: size(int(number))),
        ("repository", lambda day: day.repository_bytes, lambda number: size(int(number))),
        ("recall", lambda day: day.recall_p50_ms, milliseconds),
        ("gaps", lambda day: day.gaps, _whole),
        ("questions", lambda day: day.waiting, _whole),
        ("cost", lambda day: day.cost_usd, _dollars),
    )
    rows = [(name, *_charted(health, value, show)) for name, value, show in measures]
    title = f"{HEALTH_DAYS} days: the last, the change, {DAYS_A_CELL} days a bar"
    return "\n\n".join(
        part for part in (columns(head), section(title, aligned(rows, right=(1, 2))), health.warning) if part
    )


def _charted(
    health: _Health, value: Callable[[Snapshot], float | None], show: Callable[[float], str]
) -> tuple[str, str, str]:
    """The last value, how far it is from the first, and a line of bars from the lowest to the highest."""
    until = date.fromisoformat(health.until)
    cells: list[float | None] = [None] * (HEALTH_DAYS // DAYS_A_CELL)
    for day in health.days:
        known = value(day)
        if known is not None:
            cells[-1 - (until - date.fromisoformat(day.day)).days // DAYS_A_CELL] = known
    known_values = [known for known in map(value, health.days) if known is not None]
    if not known_values:
        return "-", "", ""
    first, last = known_values[0], known_values[-1]
    change = "" if show(first) == show(last) else f"{'+' if last > first else '-'}{show(abs(last - first))}"
    return show(last), change, _sparkline(cells)


def _sparkline(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    low, span = min(known), max(known) - min(known)
    top = len(_LEVELS) - 1
    bars = (" " if value is None else _LEVELS[round(top * (value - low) / span) if span else 0] for value in values)
    return "".join(bars).rstrip()


def _whole(number: float) -> str:
    return f"{number:,.0f}"


def _taken(usage: ModelUsage) -> tuple[str, ...]:
    return f"{usage.calls:,}x", f"{usage.input_tokens:,}", f"{usage.output_tokens:,}", _dollars(usage.cost_usd)


def _dollars(cost_usd: float | None) -> str:
    return (
        "unknown" if cost_usd is None else f"${cost_usd:.2f}" if cost_usd >= 1 or not cost_usd else f"${cost_usd:.4f}"
    )


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f}%"


def _clipped(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= WIDEST_TITLE else f"{line[:WIDEST_TITLE].rstrip()} …"
