"""How fresh a document is, for people and for programs: what `quaid docs` and `quaid project` have in common."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import TYPE_CHECKING

from quaid.cli.invocation import Invocation
from quaid.cli.terminal import one_line, styled
from quaid.docs.freshness import describe
from quaid.docs.source_roots import next_step

if TYPE_CHECKING:
    from quaid.docs.catalogue import Catalogue, Doc
    from quaid.docs.freshness import Freshness, SourceFinding

_MARKS = {
    "fresh": ("●", "green", "true"),
    "edited": ("◐", "yellow", "sources edited, not committed"),
    "stale": ("○", "red", "stale"),
    "no sources": ("·", "dim", "names no sources"),
    "no history": ("?", "yellow", "cannot be checked"),
}


def symbol(freshness: Freshness) -> str:
    """One character for how fresh it is."""
    mark, style, _ = _MARKS[_state(freshness)]
    return styled(mark, style)


def legend(found: Iterable[Freshness]) -> str:
    """What the characters mean that were shown."""
    states = set(map(_state, found))
    return styled("  ".join(f"{mark} {word}" for state, (mark, _, word) in _MARKS.items() if state in states), "dim")


def _state(freshness: Freshness) -> str:
    return "edited" if freshness.edited and not freshness.is_stale else freshness.status


def warning_of(freshness: Freshness | None) -> str | None:
    """That a document is stale, and since when; None where it is not, or was not looked at."""
    return describe(freshness) if freshness is not None and freshness.is_stale else None


def day(iso: str | None) -> str:
    return (iso or "")[:10]


def say_missing(invocation: Invocation, catalogue: Catalogue) -> None:
    """Which documents and source roots the registry names and nobody finds, or finds under another name."""
    for doc in catalogue.docs:
        if doc.registered_as:
            invocation.say(
                f"{doc.registered_as} is {doc.registry_path} now. Note that with: "
                f"quaid docs register {shlex.quote(str(doc.file))} --project {doc.project}"
            )
    for project, path in catalogue.missing:
        gone = f"{one_line(path)} is registered and is no file any more"
        invocation.say(f"{gone}. Take it out of projects/{project}/PROJECT.md.")
    for project, root in catalogue.absent:
        invocation.say(f"The source root {root} of {project} is not on this machine: its documents are not seen.")
    for project, refused in catalogue.refused:
        cannot = f"The documents of {project} cannot be checked: its source root {refused.written} {refused.problem}"
        invocation.say(f"{cannot}. {next_step(project, refused)}")


def shape_of_freshness(doc: Doc, freshness: Freshness) -> dict[str, object]:
    """A document and how fresh it is, as JSON."""
    return {
        "id": doc.id,
        "project": doc.project,
        "file": str(doc.file),
        "registered": doc.is_registered,
        "registered_as": doc.registered_as,
        "status": freshness.status,
        "warning": warning_of(freshness),
        "updated": freshness.updated,
        "true_at": freshness.true_at,
        "since": freshness.since,
        "origin": freshness.origin,
        "sources": list(freshness.sources),
        "changes": [shape_of_finding(finding) for finding in freshness.findings],
        "edited": list(freshness.edited),
        "problems": list(freshness.problems),
    }


def shape_of_finding(finding: SourceFinding) -> dict[str, object]:
    """What became of one source, as JSON."""
    return {
        "path": finding.path,
        "old_path": finding.old_path,
        "kind": finding.kind,
        "trivial": finding.is_trivial,
        "why": finding.why,
        "by": finding.by,
        "commits": list(finding.commits),
    }
