"""`quaid audit`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from quaid.cli.dates import parse_option_moment
from quaid.cli.invocation import Invocation
from quaid.cli.terminal import aligned, columns, count, draw_bar, moment, paragraphs, section, titled
from quaid.report.audit import audit

BAR_WIDTH = 16
MAX_SHOWN = 10
HEADINGS = ("source", "facts", "", "notes", "commits", "first", "last")


def run_audit(
    ctx: typer.Context,
    since: Annotated[
        str | None, typer.Option(metavar="DAY", help="What came from this day on: 2026-03-01, last March.")
    ] = None,
    source: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only sources whose name contains this: owner, claude, import.")
    ] = None,
) -> None:
    """Audit the sources of your memories and list the weakly supported ones.

    Examples:
      quaid audit
      quaid audit --since "last week" --source agent:
      quaid audit --json | jq '.sources[] | select(.floods != [])'
    """
    invocation: Invocation = ctx.obj
    after = parse_option_moment("--since", since, datetime.now(UTC))
    with invocation.open() as memory, invocation.progress(memory):
        found = audit(memory, after, source)
    invocation.respond(_render(found), **found)
    if found["cut_off"]:
        invocation.notify(
            "This is a shallow clone: who wrote what is older is not known. Get it with: git fetch --unshallow"
        )


def _render(found: Mapping[str, Any]) -> str:
    """The sources, each with a bar, then what is unusual."""
    if not found["sources"]:
        return "No commit brought a note. What is not committed yet has no author: git status shows it."
    most = max(one["facts"] for one in found["sources"])
    rows = [HEADINGS]
    for one in found["sources"]:
        bar = draw_bar(one["facts"], most, BAR_WIDTH)
        days = moment(one["first"])[:10], moment(one["last"])[:10]
        rows.append((one["source"], f"{one['facts']:,}", bar, f"{one['notes']:,}", f"{one['commits']:,}", *days))
    lone = [(each["source"], each["path"]) for each in found["lone"]]
    misfits = [(each["path"], f"source: {each['said']}, by {', '.join(each['authors'])}") for each in found["misfits"]]
    return paragraphs(
        columns(aligned(rows, right=(1, 3, 4))),
        section("Unusual", _list_unusual(found)),
        _list_some(f"{count(len(lone), 'fact')} that only one agent says, confirmed by nobody", lone),
        _list_some(f"{count(len(misfits), 'fact')} by another hand than `source:` says", misfits),
    )


def _list_unusual(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for one in found["sources"]:
        for flood in one["floods"]:
            usual = f"usual are {flood['usual']:g} a day, at most {flood['most']:.0f}"
            yield one["source"], f"a flood on {flood['day']}: {count(flood['facts'], 'fact')}; {usual}"
        for over in one["over_quota"]:
            facts = f"{count(over['facts'], 'fact')} of {found['facts_per_day']:,}"
            yield one["source"], f"over its quota on {over['day']}: {facts}"
        others = set(one["committers"]) - {one["source"].partition(":")[2]}
        if one["who"] in {"owner", "other"} and others:
            yield one["source"], f"committed by {', '.join(sorted(others))}"


def _list_some(title: str, rows: Sequence[tuple[str, str]]) -> str:
    more = len(rows) - MAX_SHOWN
    shown = [*rows[:MAX_SHOWN], *([(f"… and {more:,} more; all with --json",)] if more > 0 else [])]
    return titled(title, shown) if rows else ""
