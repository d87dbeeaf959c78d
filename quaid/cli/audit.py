"""`quaid audit`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quaid.cli.dates import parse_option_moment
from quaid.cli.invocation import Invocation
from quaid.cli.terminal import (
    aligned,
    clipped,
    columns,
    count,
    draw_bar,
    moment,
    paragraphs,
    section,
    short,
    titled,
)
from quaid.report.audit import Audit, SourceReport, audit_of

if TYPE_CHECKING:
    from quaid.recall.origins import Account

BAR_WIDTH = 16
MAX_SHOWN = 10
TEXT_WIDTH = 40
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
    """Show where the memories came from, by the commits that brought them, and which rest on little.

    Examples:
      quaid audit
      quaid audit --since "last week" --source agent:
      quaid audit --json | jq '.sources[] | select(.floods != [])'
    """
    invocation: Invocation = ctx.obj
    after = parse_option_moment("--since", since, datetime.now(UTC))
    with invocation.open() as memory, invocation.progress(memory) as bar:
        found = audit_of(memory, bar.update, after, source)
    shape = {
        "vault": found.vault,
        "facts_per_day": found.facts_per_day,
        "sources": [_shape(one) for one in found.sources],
        "lone": [each._asdict() for each in found.lone],
        "misfits": [each._asdict() for each in found.misfits],
        "not_looked_at": found.left,
        "cut_off": found.is_cut_off,
    }
    invocation.respond(render_audit(found), **shape)
    if found.is_cut_off:
        invocation.notify(
            "This is a shallow clone: who wrote what is older is not known. Get it with: git fetch --unshallow"
        )


def _shape(one: SourceReport) -> dict[str, Any]:
    account = one.account
    return {
        "source": account.source,
        "who": account.who,
        "commits": account.commits,
        "notes": account.notes,
        "facts": account.facts,
        "alone": one.alone,
        "sessions": len(account.sessions),
        "committers": sorted(account.committers),
        "first": _iso(account.first),
        "last": _iso(account.last),
        "floods": [flood._asdict() for flood in one.floods],
        "over_quota": [{"day": day, "facts": facts} for day, facts in one.over],
    }


def _iso(when: datetime | None) -> str | None:
    return when.isoformat().replace("+00:00", "Z") if when else None


def render_audit(found: Audit) -> str:
    """The sources, each with a bar, and below them what is remarkable."""
    if not found.sources:
        return "No commit brought a note. What is not committed yet has no author: git status shows it."
    most = max(one.account.facts for one in found.sources)
    rows = [HEADINGS, *(_row(one.account, most) for one in found.sources)]
    lone = [(each.source, each.path) for each in found.lone]
    misfits = [
        (f"{each.path}:{each.line}", f"by {each.author} ({short(each.commit)})", clipped(each.text, TEXT_WIDTH))
        for each in found.misfits
    ]
    left = f"{count(found.left, 'more note')} not looked at; choose with --source and --since" if found.left else ""
    return paragraphs(
        columns(aligned(rows, right=(1, 3, 4))),
        section("Unusual", _list_unusual(found)),
        _listed(f"{count(len(lone), 'fact')} that only one agent says, confirmed by nobody", lone),
        _listed(f"{count(len(misfits), 'line')} by another hand than `source:` says", misfits),
        left,
    )


def _row(account: Account, most: int) -> tuple[str, ...]:
    first, last = (moment(_iso(when))[:10] for when in (account.first, account.last))
    bar = draw_bar(account.facts, most, BAR_WIDTH)
    return account.source, f"{account.facts:,}", bar, f"{account.notes:,}", f"{account.commits:,}", first, last


def _list_unusual(found: Audit) -> Iterator[tuple[str, str]]:
    for one in found.sources:
        for flood in one.floods:
            usual = f"usual are {flood.usual:g} a day, at most {flood.most:.0f}"
            yield one.account.source, f"a flood on {flood.day}: {count(flood.facts, 'fact')}; {usual}"
        for day, facts in one.over:
            yield one.account.source, f"over its quota on {day}: {count(facts, 'fact')} of {found.facts_per_day:,}"
        others = one.account.committers - {one.account.source.partition(":")[2]}
        if one.account.who in {"owner", "other"} and others:
            yield one.account.source, f"committed by {', '.join(sorted(others))}"


def _listed(title: str, rows: Sequence[tuple[str, ...]]) -> str:
    more = len(rows) - MAX_SHOWN
    shown = [*rows[:MAX_SHOWN], *([(f"… and {more:,} more; all with --json",)] if more > 0 else [])]
    return titled(title, shown) if rows else ""
