"""`quaid stats` and `quaid audit`: what the memory is made of, in numbers, and where it comes from."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Annotated, Any

from quaid.cli import terminal as ui
from quaid.cli.invocation import Invocation
from quaid.cli.options import flag, option, parse_option_moment
from quaid.errors import UsageError
from quaid.local.model_usage import DayUsage, PromptUsage
from quaid.local.recall_log import Gap
from quaid.local.recall_summary import RecallSummary
from quaid.local.runs import Snapshot
from quaid.model import ModelUsage, Use
from quaid.report import stats
from quaid.report.audit import audit
from quaid.report.stats import HEALTH_DAYS
from quaid.settings import ModelSettings, RecallSettings
from quaid.shapes import json_object
from quaid.text.zones import local_now

BAR_WIDTH = 32
WIDTH = 58
"""Characters of a title or a question."""
MAX_DAYS = 14
MAX_GAPS = 20
MAX_PROMPTS = 12
DAYS_A_CELL = 2
_LEVELS = "▁▂▃▄▅▆▇█"
AUDIT_BAR = 16
MAX_SHOWN = 10
HEADINGS = ("source", "facts", "", "notes", "commits", "first", "last")


def run_stats(
    invocation: Invocation,
    recall: Annotated[bool, flag("Recall: its speed, its answers, what is recalled most.", "--recall")] = False,
    gaps: Annotated[bool, flag("Questions that found nothing, newest first.", "--gaps")] = False,
    models: Annotated[bool, flag("Tokens and cost of language models, by day and by prompt.", "--models")] = False,
    health: Annotated[
        bool, flag("The state of the memory after each janitor run of the last 60 days.", "--health")
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
        vault, settings = memory.root, memory.settings
        if recall:
            numbers, most_recalled = stats.recall_stats_of(memory)
            most = [{"id": ref, "title": title, **json_object(use)} for ref, title, use in most_recalled]
            shape = {"vault": vault, "log": settings.recall.log, **json_object(numbers, most_recalled=most)}
            invocation.respond(render_recall_stats(numbers, most_recalled, settings.recall), **shape)
        elif gaps:
            found, total = stats.list_gaps(memory, stats.MAX_GAPS)
            text = render_gap_stats(found, total, settings.recall)
            invocation.respond(text, vault=vault, kept=settings.recall.gaps, total=total, gaps=found)
        elif models:
            today, days, prompts = stats.model_stats_of(memory)
            invocation.respond(
                render_model_stats(today, days, prompts, settings.models),
                vault=vault,
                today=today,
                **json_object(settings.models, "max_tokens_per_day", "max_usd_per_day"),
                days=[{"date": day.day, **json_object(day.usage), "unsettled": day.unsettled} for day in days],
                prompts=[
                    {**json_object(one, "prompt", "provider", "model"), **json_object(one.usage)} for one in prompts
                ],
            )
        elif health:
            until = local_now(memory.settings.timezone).date()
            last, warning, history = stats.health_stats_of(memory, until)
            shape = {"vault": vault, "until": until, "last_success": last, "warning": warning, "days": history}
            invocation.respond(render_health_stats(history, until, warning), **shape)
        else:
            contents = stats.stats_of(memory)
            invocation.respond(render_stats(contents), **json_object(contents))


def render_stats(numbers: stats.Stats) -> str:
    """Return the first page: notes by kind, type, status and speaker."""
    head = ui.known(
        ("notes", f"{numbers.notes:,}"),
        ("graph", f"{numbers.entities:,} entities, {numbers.edges:,} edges, {numbers.relations:,} relations"),
        ("chunks", f"{numbers.chunks:,}, {numbers.embedded:,} embedded"),
        ("disk", f"index {ui.size(numbers.index_bytes)}, embeddings {ui.size(numbers.cache_bytes)}"),
        ("time", f"{ui.moment(numbers.oldest)} to {ui.moment(numbers.newest)}" if numbers.oldest else None),
    )
    groups = {
        "Kinds": numbers.kinds,
        "Types": numbers.types,
        "Status": numbers.statuses,
        "Speakers": numbers.speakers,
    }
    tables = (
        ui.section(title, [(name, f"{number:,}") for name, number in group.items()], right=(1,))
        for title, group in groups.items()
    )
    return ui.paragraphs(ui.columns(head), *tables)


def render_recall_stats(
    numbers: RecallSummary, most_recalled: Sequence[tuple[str, str | None, Use]], settings: RecallSettings
) -> str:
    """Return the page of `--recall`."""
    off = "The recall log is off; switch it on with: quaid config recall.log text" if settings.log == "off" else ""
    often = ui.section(
        "Most recalled",
        [
            (f"{use.accesses:,}x", ui.clipped(name or f"{ref} (no longer there)", WIDTH))
            for ref, name, use in most_recalled
        ],
        right=(0,),
    )
    latency = numbers.latency
    if not numbers.recalls or latency is None:
        return ui.paragraphs(
            off or "No recall is logged yet. Ask something: quaid recall 'what does Maya drink?'", often
        )
    answered, degraded = (f"{100 * n / numbers.recalls:.0f}%" for n in (numbers.answered, numbers.degraded_recalls))
    without = f"{numbers.unanswered:,}" if numbers.unanswered else "none"
    hint = " (see quaid stats --gaps)" if numbers.unanswered else ""
    kinds = ", ".join(f"{kind} {number:,}" for kind, number in numbers.degraded.items())
    head = [
        ("recalls", f"{numbers.recalls:,} from {ui.moment(numbers.first)} to {ui.moment(numbers.last)}"),
        ("answered", f"{numbers.answered:,} ({answered}), {without} without a hit{hint}"),
        ("degraded", f"{numbers.degraded_recalls:,} ({degraded}): {kinds}" if numbers.degraded_recalls else "none"),
        ("asked by", ", ".join(f"{door} {number:,}" for door, number in numbers.doors.items())),
    ]
    speeds = [("", "half within", "95% within")]
    speeds += [
        (name, ui.milliseconds(stage.p50_ms), ui.milliseconds(stage.p95_ms))
        for name, stage in {"all": latency, **numbers.stages}.items()
    ]
    held = [position for position, bar in enumerate(numbers.histogram) if bar.count]
    bars = numbers.histogram[held[0] : held[-1] + 1]
    times = [(f"up to {ui.milliseconds(bar.up_to_ms)}" if bar.up_to_ms else "longer", f"{bar.count:,}") for bar in bars]
    newest = numbers.days[-MAX_DAYS:]
    days = [
        (day.date, f"{day.recalls:,}", f"{100 * day.answered / day.recalls:.0f}%", ui.milliseconds(day.p50_ms))
        for day in newest
    ]
    return ui.paragraphs(
        off,
        ui.columns(head),
        ui.section("Speed", speeds, right=(1, 2)),
        _bars("How long a recall took", times, [bar.count for bar in bars], BAR_WIDTH),
        _bars("By day: recalls, share answered, half within", days, [day.recalls for day in newest], BAR_WIDTH),
        often,
    )


def _bars(title: str, rows: Sequence[tuple[str, ...]], numbers: Sequence[int], width: int) -> str:
    """Return a section of rows, each with a bar as long as its number is of the greatest."""
    drawn = [(*row, ui.draw_bar(number, max(numbers), width)) for row, number in zip(rows, numbers, strict=True)]
    return ui.section(title, drawn, right=range(1, len(rows[0])))


def render_gap_stats(gaps: Sequence[Gap], total: int, settings: RecallSettings) -> str:
    """Return the page of `--gaps`; the recall log may store the words of every question too."""
    in_log = " The recall log stores the words of all questions; to store none: quaid config recall.log hashes"
    in_log = in_log if settings.log == "text" else ""
    if not gaps and settings.gaps == "off":
        return f"Questions that find nothing are not listed. List them with: quaid config recall.gaps hashes.{in_log}"
    if not gaps:
        return "No gap is known: every question asked so far has found something."
    rows = [
        (ui.moment(gap.last_asked), f"{gap.asked:,}x", ui.clipped(gap.text or gap.key[:12], WIDTH))
        for gap in gaps[:MAX_GAPS]
    ]
    stored = "This list stores only hashes" if settings.gaps == "hashes" else "New questions are not listed"
    step = f"\n{stored}. Store the words from now on with: quaid config recall.gaps text.{in_log}"
    return ui.lines(
        ui.section(f"{ui.count(total, 'question')} found nothing", rows),
        f"  … and {total - len(rows):,} more" if total > len(rows) else "",
        "" if settings.gaps == "text" else step,
    )


def render_model_stats(
    today: ModelUsage, days: Sequence[DayUsage], prompts: Sequence[PromptUsage], caps: ModelSettings
) -> str:
    """Return the page of `--models`."""
    if not days:
        return "No model was asked here in 90 days. See which one would be: quaid doctor"
    tokens = f" of {caps.max_tokens_per_day:,}" if caps.max_tokens_per_day else ""
    dollars = f" of ${caps.max_usd_per_day:.2f}" if caps.max_usd_per_day else ""
    spent = f"{ui.count(today.calls, 'call')}, {today.tokens:,} tokens{tokens}, {_dollars(today.cost_usd)}{dollars}"
    unsettled = sum(day.unsettled for day in days)
    head = ui.known(
        ("today", spent),
        ("unended", f"{ui.count(unsettled, 'call')}, counted at the most that could be taken" if unsettled else None),
    )
    newest = days[-MAX_DAYS:]
    by_prompt = [(one.prompt.partition("@")[0], one.model, *_usage(one.usage)) for one in prompts[:MAX_PROMPTS]]
    return ui.paragraphs(
        ui.columns(head),
        _bars(
            "By day: calls, tokens in and out, cost",
            [(day.day, *_usage(day.usage)) for day in newest],
            [day.usage.tokens for day in newest],
            BAR_WIDTH // 2,
        ),
        ui.section("By prompt, 90 days", by_prompt, right=(2, 3, 4, 5)),
    )


def render_health_stats(days: Sequence[Snapshot], until: date, warning: str | None) -> str:
    """Return the page of `--health`."""
    if not days:
        return warning or "The janitor has not run here in 60 days. Begin with: quaid janitor run"
    costs = [day.cost_usd for day in days if day.cost_usd is not None]
    head = [
        ("runs", f"on {ui.count(len(days), 'day')} from {days[0].day} to {days[-1].day}"),
        ("cost", f"{_dollars(sum(costs))}{'' if len(costs) == len(days) else ' and more, of unknown price'}"),
    ]
    charts: dict[str, list[float | None]] = {
        "notes": [day.notes for day in days],
        "facts": [day.kinds.get("fact", 0) for day in days],
        "pending": [day.pending for day in days],
        "superseded": [day.superseded for day in days],
        "entities": [day.entities for day in days],
        "edges": [day.edges for day in days],
        "embedded": [day.embedded_share for day in days],
        "index": [day.index_bytes for day in days],
        "repository": [day.repository_bytes for day in days],
        "recall": [day.recall_p50_ms for day in days],
        "gaps": [day.gaps for day in days],
        "questions": [day.waiting for day in days],
        "cost": [day.cost_usd for day in days],
    }
    rows = [
        (name, *_chart(name, dict(zip((day.day for day in days), numbers, strict=True)), until))
        for name, numbers in charts.items()
    ]
    title = f"{HEALTH_DAYS} days: the last, the change, {DAYS_A_CELL} days a bar"
    return ui.paragraphs(ui.columns(head), ui.section(title, rows, right=(1, 2)), warning)


def _chart(name: str, figures: Mapping[str, float | None], until: date) -> tuple[str, str, str]:
    """Return the last value, how far it is from the first, and a line of bars from the lowest to the highest."""
    measured = {day: number for day, number in figures.items() if number is not None}
    if not measured:
        return "-", "", ""
    values = [*measured.values()]
    first, last = _format_figure(name, values[0]), _format_figure(name, values[-1])
    change = f"{'+' if values[-1] > values[0] else '-'}{_format_figure(name, abs(values[-1] - values[0]))}"
    cells: list[float | None] = [None] * (HEALTH_DAYS // DAYS_A_CELL)
    for day, number in measured.items():
        cells[-1 - (until - date.fromisoformat(day)).days // DAYS_A_CELL] = number
    shown = [number for number in cells if number is not None]
    low, span = min(shown), max(shown) - min(shown)
    top = len(_LEVELS) - 1
    bars = (" " if cell is None else _LEVELS[round(top * (cell - low) / span) if span else 0] for cell in cells)
    return last, "" if first == last else change, "".join(bars).rstrip()


def _format_figure(name: str, number: float) -> str:
    if name in {"index", "repository"}:
        return ui.size(int(number))
    if name == "recall":
        return ui.milliseconds(number)
    if name == "cost":
        return _dollars(number)
    return f"{100 * number:.0f}%" if name == "embedded" else f"{number:,.0f}"


def _usage(usage: ModelUsage) -> tuple[str, ...]:
    return f"{usage.calls:,}x", f"{usage.input_tokens:,}", f"{usage.output_tokens:,}", _dollars(usage.cost_usd)


def _dollars(cost_usd: float | None) -> str:
    return (
        "unknown" if cost_usd is None else f"${cost_usd:.2f}" if cost_usd >= 1 or not cost_usd else f"${cost_usd:.4f}"
    )


def run_audit(
    invocation: Invocation,
    since: Annotated[str | None, option("DAY", "What came from this day on: 2026-03-01, last March.")] = None,
    source: Annotated[
        str | None, option("NAME", "Only sources whose name contains this: owner, claude, import.")
    ] = None,
) -> None:
    """Audit the sources of your memories and list the weakly supported ones.

    Examples:
      quaid audit
      quaid audit --since "last week" --source agent:
      quaid audit --json | jq '.sources[] | select(.floods != [])'
    """
    with invocation.open() as memory, invocation.progress(memory):
        after = parse_option_moment("--since", since, local_now(memory.settings.timezone))
        found = audit(memory, after, source)
    text = "No commit brought a note. What is not committed yet has no author: git status shows it."
    if found["sources"]:
        text = _render_sources(found)
    invocation.respond(text, **found)
    if found["cut_off"]:
        invocation.notify(
            "This is a shallow clone: who wrote what is older is not known. Get it with: git fetch --unshallow"
        )


def _render_sources(found: Mapping[str, Any]) -> str:
    """Return the sources, each with a bar, then what is unusual."""
    most = max(one["facts"] for one in found["sources"])
    rows, unusual = [HEADINGS], []
    for one in found["sources"]:
        name, bar = one["source"], ui.draw_bar(one["facts"], most, AUDIT_BAR)
        numbers = f"{one['facts']:,}", bar, f"{one['notes']:,}", f"{one['commits']:,}"
        rows.append((name, *numbers, ui.moment(one["first"])[:10], ui.moment(one["last"])[:10]))
        for flood in one["floods"]:
            usual = f"usual are {flood['usual']:g} a day, at most {flood['most']:.0f}"
            unusual.append((name, f"a flood on {flood['day']}: {ui.count(flood['facts'], 'fact')}; {usual}"))
        for over in one["over_quota"]:
            facts = f"{ui.count(over['facts'], 'fact')} of {found['facts_per_day']:,}"
            unusual.append((name, f"over its quota on {over['day']}: {facts}"))
        others = set(one["committers"]) - {name.partition(":")[2]}
        if one["who"] in {"owner", "other"} and others:
            unusual.append((name, f"committed by {', '.join(sorted(others))}"))
    lone = [(each["source"], each["path"]) for each in found["lone"]]
    misfits = [(each["path"], f"source: {each['said']}, by {', '.join(each['authors'])}") for each in found["misfits"]]
    lists = (
        (f"{ui.count(len(lone), 'fact')} that only one agent says, confirmed by nobody", lone),
        (f"{ui.count(len(misfits), 'fact')} by another hand than `source:` says", misfits),
    )
    return ui.paragraphs(
        ui.columns(rows, right=(1, 3, 4)),
        ui.section("Unusual", unusual),
        *(
            ui.titled(
                title,
                [
                    (row,)
                    for row in ui.first(ui.columns(table).splitlines(), MAX_SHOWN, "… and {:,} more; all with --json")
                ],
            )
            for title, table in lists
            if table
        ),
    )
