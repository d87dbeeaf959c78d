"""Documents, how fresh they are, and passages of them, for people and as JSON: for `quaid docs` and `quaid project`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from quaid.cli.invocation import Invocation
from quaid.cli.recall_output import INDENT
from quaid.cli.terminal import (
    clipped,
    coloured,
    columns,
    count,
    line_width,
    lines,
    one_line,
    paragraphs,
    section,
    short,
    styled,
)
from quaid.docs.freshness import WORDS, describe
from quaid.shapes import json_object
from quaid.text.quoting import neutralise

if TYPE_CHECKING:
    from quaid.docs.catalogue import Catalogue, Doc
    from quaid.docs.freshness import Freshness
    from quaid.docs.judgements import StaleDoc
    from quaid.docs.search import DocHit
    from quaid.docs.updates import DocUpdate

MAX_SHOWN = 900
"""Characters of a passage; `quaid docs read` has the rest."""
LINES_BEFORE = 2
_MARKS = {
    "fresh": ("●", "green"),
    "edited": ("◐", "yellow"),
    "stale": ("○", "red"),
    "no sources": ("·", "dim"),
    "no history": ("?", "yellow"),
}
_COUNTED = {"stale": "stale", "fresh": "true", "no sources": "without sources", "no history": "that cannot be checked"}


def symbol(freshness: Freshness) -> str:
    """One character for how fresh a document is."""
    mark, style = _MARKS[freshness.state]
    return styled(mark, style)


def legend(found: Iterable[Freshness]) -> str:
    """The meaning of the characters that were shown."""
    states = {freshness.state for freshness in found}
    return styled("  ".join(f"{_MARKS[state][0]} {word}" for state, word in WORDS.items() if state in states), "dim")


def warning_of(freshness: Freshness | None) -> str | None:
    """A sentence when a document is stale, with since when; None when it is not, or was not checked."""
    return describe(freshness) if freshness is not None and freshness.is_stale else None


def day(iso: str | None) -> str:
    """`2026-11-20T14:30:00Z` as `2026-11-20`."""
    return (iso or "")[:10]


def say_missing(invocation: Invocation, catalogue: Catalogue) -> None:
    """Remark on registered documents and source roots that are missing, moved or refused."""
    for remark in catalogue.remarks:
        invocation.notify(remark)


def shape_of_freshness(doc: Doc, freshness: Freshness) -> dict[str, object]:
    """A document and its freshness as JSON."""
    changes = [
        json_object(finding, "path", "old_path", "kind", trivial=finding.is_trivial)
        | json_object(finding, "why", "by", "commits")
        for finding in freshness.findings
    ]
    return json_object(
        doc,
        "id",
        "project",
        "file",
        registered=doc.is_registered,
        registered_as=doc.registered_as,
        status=freshness.status,
        warning=warning_of(freshness),
        **json_object(freshness, "updated", "true_at", "since", "origin", "sources"),
        changes=changes,
        **json_object(freshness, "edited", "problems"),
    )


def shape_of_hit(hit: DocHit, freshness: Freshness | None) -> dict[str, object]:
    """A passage as JSON."""
    return json_object(
        hit,
        "doc",
        "project",
        "title",
        "heading",
        text=neutralise(hit.text),
        lines=[hit.first_line, hit.last_line],
        score=round(hit.score, 4),
        status=freshness.status if freshness else None,
        warning=warning_of(freshness),
    )


def shape_of_update(stale: StaleDoc, update: DocUpdate) -> dict[str, object]:
    """A proposed update as JSON."""
    edits = [
        {"find": update.before[edit.start : edit.end], "replace": edit.new, "reason": edit.reason}
        for edit in update.edits
    ]
    shape = {"id": stale.doc.id, "still_true": not edits, "summary": update.summary, "edits": edits}
    return shape | json_object(update, "model", "prompt")


def render_docs(found: Sequence[tuple[Doc, Freshness]]) -> str:
    """One line a document, with what it is about."""
    rows = []
    for doc, freshness in found:
        named, more = freshness.sources[:2], len(freshness.sources) - 2
        about = f"{', '.join(named)}{f' and {more} more' if more > 0 else ''} ({freshness.origin})" if named else ""
        rows.append((symbol(freshness), one_line(doc.id), day(freshness.updated), about))
    return lines(columns(rows), legend(freshness for _, freshness in found))


def render_hit(hit: DocHit, freshness: Freshness | None, query: str) -> str:
    """A passage with where it stands, and a warning when its document is stale."""
    heading = neutralise(" > ".join(dict.fromkeys((hit.title, *hit.heading))))
    warning = warning_of(freshness)
    passage = _excerpt(neutralise(hit.text), query).splitlines()
    return lines(
        f"{styled(f'{hit.score:.2f}', 'cyan')}  {styled(heading, 'bold')}",
        styled(f"{INDENT}{hit.doc}:{hit.first_line}-{hit.last_line}", "dim"),
        f"{INDENT}{styled(f'! {warning}', 'yellow')}" if warning else "",
        "\n".join(f"{INDENT}{line}".rstrip() for line in passage),
    )


def _excerpt(text: str, query: str) -> str:
    """At most `MAX_SHOWN` characters of a passage, with the line that has most of the question's words."""
    if len(text) <= MAX_SHOWN:
        return text
    words = set(re.findall(r"\w{3,}", query.lower()))
    rows = text.splitlines(keepends=True)
    best = max(range(len(rows)), key=lambda number: sum(word in rows[number].lower() for word in words))
    is_near = sum(map(len, rows[: best + 1])) <= MAX_SHOWN
    rest = text if is_near else "".join(rows[max(0, best - LINES_BEFORE) :])
    end = f"{rest[:MAX_SHOWN].rstrip()} …" if len(rest) > MAX_SHOWN else rest
    return end if is_near else f"…\n{end}"


def render_checked(found: Sequence[tuple[Doc, Freshness]], changes: Mapping[str, Mapping[str, str]]) -> str:
    """The number of stale documents, why each one is, and its `changes`: of each document's sources, a diff by path."""
    counted: Counter[str] = Counter(freshness.status for _, freshness in found)
    text = ", ".join(f"{counted[status]} {word}" for status, word in _COUNTED.items() if counted[status])
    return paragraphs(
        f"{count(len(found), 'document')}: {text}" if found else "No document yet.",
        *(render_stale(doc, freshness, changes.get(doc.id, {})) for doc, freshness in found if freshness.is_stale),
        section(
            "Edited and not committed", [(doc.id, ", ".join(state.edited)) for doc, state in found if state.edited]
        ),
        section("Remarks", [(doc.id, problem) for doc, freshness in found for problem in freshness.problems]),
    )


def render_stale(doc: Doc, freshness: Freshness, diffs: Mapping[str, str]) -> str:
    """A stale document, the changes of its sources that matter, and the diffs."""
    assert freshness.true_at is not None
    width = line_width() // 2
    rows = [
        (f"    {finding.path}", clipped(finding.why, width), short(commit.id), clipped(commit.subject, width))
        for finding in freshness.significant
        for commit in finding.commits[:1]
    ]
    trivial = len(freshness.findings) - len(freshness.significant)
    others = f"    {count(trivial, 'other change')} that {'does' if trivial == 1 else 'do'} not matter"
    shown = []
    for path, diff in diffs.items():
        shown.append("\n".join([f"\n  {styled(path, 'bold')}", *map(coloured, diff.splitlines())]))
    return lines(
        f"{symbol(freshness)} {styled(doc.id, 'bold')}",
        f"  true at {short(freshness.true_at.id)} {day(freshness.true_at.when)}, {describe(freshness)}",
        columns(rows),
        styled(others, "dim") if trivial else "",
        *shown,
    )


def render_update(stale: StaleDoc, update: DocUpdate, patch: str) -> str:
    """A proposed update with its changes."""
    head = f"{styled(stale.doc.id, 'bold')}: {update.summary or 'true as it is'}"
    headers = ("diff --git", "index ", "--- ", "+++ ")
    return "\n".join([head, *(coloured(row) for row in patch.splitlines() if not row.startswith(headers))])
