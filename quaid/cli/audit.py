"""`quaid audit`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

from quaid.cli.invocation import Invocation
from quaid.cli.options import option, parse_option_moment
from quaid.cli.terminal import columns, count, draw_bar, first, moment, paragraphs, section, titled
from quaid.report.audit import audit

BAR_WIDTH = 16
MAX_SHOWN = 10
HEADINGS = ("source", "facts", "", "notes", "commits", "first", "last")


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
    after = parse_option_moment("--since", since, datetime.now(UTC))
    with invocation.open() as memory, invocation.progress(memory):
        found = audit(memory, after, source)
    invocation.respond(_render(found), **found)
    if found["cut_off"]:
        invocation.notify(
            "This is a shallow clone: who wrote what is older is not known. Get it with: git fetch --unshallow"
        )


def _render(found: Mapping[str, Any]) -> str:
    """Return the sources, each with a bar, then what is unusual."""
    if not found["sources"]:
        return "No commit brought a note. What is not committed yet has no author: git status shows it."
    most = max(one["facts"] for one in found["sources"])
    rows, unusual = [HEADINGS], []
    for one in found["sources"]:
        name, bar = one["source"], draw_bar(one["facts"], most, BAR_WIDTH)
        numbers = f"{one['facts']:,}", bar, f"{one['notes']:,}", f"{one['commits']:,}"
        rows.append((name, *numbers, moment(one["first"])[:10], moment(one["last"])[:10]))
        for flood in one["floods"]:
            usual = f"usual are {flood['usual']:g} a day, at most {flood['most']:.0f}"
            unusual.append((name, f"a flood on {flood['day']}: {count(flood['facts'], 'fact')}; {usual}"))
        for over in one["over_quota"]:
            facts = f"{count(over['facts'], 'fact')} of {found['facts_per_day']:,}"
            unusual.append((name, f"over its quota on {over['day']}: {facts}"))
        others = set(one["committers"]) - {name.partition(":")[2]}
        if one["who"] in {"owner", "other"} and others:
            unusual.append((name, f"committed by {', '.join(sorted(others))}"))
    lone = [(each["source"], each["path"]) for each in found["lone"]]
    misfits = [(each["path"], f"source: {each['said']}, by {', '.join(each['authors'])}") for each in found["misfits"]]
    lists = (
        (f"{count(len(lone), 'fact')} that only one agent says, confirmed by nobody", lone),
        (f"{count(len(misfits), 'fact')} by another hand than `source:` says", misfits),
    )
    return paragraphs(
        columns(rows, right=(1, 3, 4)),
        section("Unusual", unusual),
        *(
            titled(
                title,
                [(row,) for row in first(columns(table).splitlines(), MAX_SHOWN, "… and {:,} more; all with --json")],
            )
            for title, table in lists
            if table
        ),
    )
