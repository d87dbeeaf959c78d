"""`quaid docs`."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quaid.cli.docs_freshness import day, legend, say_missing, shape_of_freshness, symbol, warning_of
from quaid.cli.hits import INDENT, list_degraded
from quaid.cli.invocation import Invocation
from quaid.cli.terminal import clipped, coloured, columns, count, line_width, moment, one_line, section, styled
from quaid.cli.write_output import tell_written
from quaid.docs.freshness import describe
from quaid.errors import UsageError
from quaid.text.quoting import neutralise

if TYPE_CHECKING:
    from quaid.docs.catalogue import Doc
    from quaid.docs.documentation import Documentation
    from quaid.docs.freshness import Freshness
    from quaid.docs.search import DocHit

ACTIONS = ("list", "search", "read", "check", "update", "confirm", "register", "history", "sync")
_MAY_GO_WITHOUT_REFERENCE = ("list", "check", "sync", "update")
MOST_SHOWN = 900
"""Characters of a passage; `quaid docs read` has the rest."""
LINES_BEFORE = 2


def run_docs(
    ctx: typer.Context,
    action: Annotated[str, typer.Argument(metavar="ACTION", help=", ".join(ACTIONS))] = "list",
    references: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[REF|QUERY]…", help="A document by id, path, file name or title; a project; a question."
        ),
    ] = None,
    project: Annotated[
        str | None, typer.Option("--project", "-p", metavar="NAME", help="Of this project alone.")
    ] = None,
    source: Annotated[
        list[str] | None, typer.Option(metavar="PATH", help="register: what it is about; repeatable.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", metavar="N", min=1, help="search, history: at most so many.")
    ] = None,
    diff: Annotated[bool, typer.Option("--diff", help="check: show what changed.")] = False,
    model: Annotated[
        bool, typer.Option("--model/--no-model", help="check: ask the fast model what matters, if there is one.")
    ] = True,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="update: carry it out.")] = False,
    patch: Annotated[bool, typer.Option("--patch", help="update: print it as a patch, change nothing.")] = False,
) -> int:
    r"""Documents of projects: find what they say, see which their sources have left behind, bring them up to date.

    \b
    list [REF…]
               the documents, with what each is about
    search QUERY
               passages that answer it, each with a warning where its document is stale
    read REF   a document, without what is secret in it
    check [REF…]
               which documents are stale, since which commit and why; --diff shows the changes
    update [REF…]
               what a model would change in stale ones; --yes makes it a commit in the vault, or a branch in the source
               repository
    confirm REF
               note that a document is true as its sources are now
    register PATH
               put a document into the registry; --source says what it is about
    history REF
               the commits that changed it
    sync       bring the index of the documents up to date

    Examples:
      quaid docs search "how is an index rebuilt" --project quaid
      quaid docs check --diff
      quaid docs check shop docs/recall.md
      quaid docs register docs/recall.md --source src/recall --source src/settings.py
      quaid docs update docs/recall.md --yes
    """
    if action not in ACTIONS:
        raise UsageError(f"There is no action {action!r}. Give one of {', '.join(ACTIONS)}.")
    given = references or []
    if not given and action not in _MAY_GO_WITHOUT_REFERENCE:
        what = {"search": "a question", "register": "a file"}.get(action, "a document")
        raise UsageError(f"quaid docs {action} needs {what}.")
    if given and action == "sync":
        raise UsageError("quaid docs sync is for all documents; it takes no reference.")
    wanted = Wanted(tuple(given), project, tuple(source or ()), limit, diff=diff, model=model, yes=yes, patch=patch)
    invocation: Invocation = ctx.obj
    with invocation.open() as memory, invocation.progress(memory):
        return _ACTIONS[action](invocation, memory.documentation, wanted)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What stands on the command line behind the action."""

    given: tuple[str, ...]
    project: str | None
    sources: tuple[str, ...]
    limit: int | None
    diff: bool
    model: bool
    yes: bool
    patch: bool


def _list(invocation: Invocation, documentation: Documentation, wanted: Wanted) -> int:
    catalogue = documentation.catalogue(wanted.project)
    found = documentation.check(wanted.given, wanted.project, catalogue)
    invocation.tell(
        lambda: _render_docs(found) or "No document yet. Make a project with: quaid project create NAME --root PATH",
        docs=[shape_of_freshness(doc, freshness) for doc, freshness in found],
        missing=[list(pair) for pair in catalogue.missing],
        absent_roots=[list(pair) for pair in catalogue.absent],
    )
    if not wanted.given:
        say_missing(invocation, catalogue)
    return 0


def _render_docs(found: Sequence[tuple[Doc, Freshness]]) -> str:
    rows = [
        (symbol(freshness), one_line(doc.id), day(freshness.updated), _about(freshness)) for doc, freshness in found
    ]
    return "\n".join(filter(None, [columns(rows), legend(freshness for _, freshness in found)]))


def _about(freshness: Freshness) -> str:
    if not freshness.sources:
        return ""
    shown = ", ".join(freshness.sources[:2])
    more = f" and {len(freshness.sources) - 2} more" if len(freshness.sources) > 2 else ""
    return f"{shown}{more} ({freshness.origin})"


def _search(invocation: Invocation, documentation: Documentation, wanted: Wanted) -> int:
    query = " ".join(wanted.given)
    found, fresh = documentation.search(query, wanted.project, wanted.limit)
    hits = [shape_of_hit(hit, fresh.get(hit.doc)) for hit in found.hits]
    names = [sentence.partition(":")[0] for sentence in found.degraded]
    invocation.tell(
        lambda: "\n\n".join(_render_hit(hit, fresh.get(hit.doc), query) for hit in found.hits),
        query=query, degraded=names, took_ms=round(found.took_ms, 1), doubt=found.doubt, hits=hits,
    )  # fmt: skip
    if degraded := list_degraded(found):
        invocation.say(f"quaid: {' · '.join(degraded)}")
    if found.doubt and found.hits:
        invocation.say(f"quaid: in doubt: {found.doubt}")
    if not found.hits:
        invocation.say("Nothing found. See what there is with: quaid docs list")
    return 0


def shape_of_hit(hit: DocHit, freshness: Freshness | None) -> dict[str, object]:
    """A passage as JSON."""
    return {
        "doc": hit.doc,
        "project": hit.project,
        "title": hit.title,
        "heading": list(hit.heading),
        "text": neutralise(hit.text),
        "lines": [hit.first_line, hit.last_line],
        "score": round(hit.score, 4),
        "status": freshness.status if freshness else None,
        "warning": warning_of(freshness),
    }


def _render_hit(hit: DocHit, freshness: Freshness | None, query: str) -> str:
    place = f"{hit.doc}:{hit.first_line}-{hit.last_line}"
    heading = " > ".join(dict.fromkeys((hit.title, *hit.heading)))
    shown = _shortened(neutralise(hit.text), query)
    lines = [
        f"{styled(f'{hit.score:.2f}', 'cyan')}  {styled(neutralise(heading), 'bold')}",
        styled(f"{INDENT}{place}", "dim"),
    ]
    if freshness is not None and freshness.is_stale:
        lines.append(f"{INDENT}{styled(f'! {describe(freshness)}', 'yellow')}")
    lines.append("\n".join(f"{INDENT}{line}".rstrip() for line in shown.splitlines()))
    return "\n".join(lines)


def _shortened(text: str, query: str) -> str:
    """So much of a passage as a screen takes, with the line that has most of the question's words."""
    if len(text) <= MOST_SHOWN:
        return text
    words = set(re.findall(r"\w{3,}", query.lower()))
    lines = text.splitlines(keepends=True)
    best = max(range(len(lines)), key=lambda number: sum(word in lines[number].lower() for word in words))
    is_near = sum(map(len, lines[: best + 1])) <= MOST_SHOWN
    rest = text if is_near else "".join(lines[max(0, best - LINES_BEFORE) :])
    end = f"{rest[:MOST_SHOWN].rstrip()} …" if len(rest) > MOST_SHOWN else rest
    return end if is_near else f"…\n{end}"


def _read(invocation: Invocation, documentation: Documentation, wanted: Wanted) -> int:
    shapes = []
    for reference in wanted.given:
        doc, text, redacted = documentation.read(reference, wanted.project)
        ((_, freshness),) = documentation.check_docs([doc])
        shapes.append(
            {
                "id": doc.id,
                "project": doc.project,
                "file": str(doc.file),
                "warning": warning_of(freshness),
                "text": neutralise(text),
            }
        )
        if not invocation.as_json:
            sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
        warn_hidden(invocation, redacted)
        if freshness.is_stale:
            invocation.say(f"{doc.id} is {describe(freshness)}")
    if invocation.as_json:
        invocation.answer(docs=shapes)
    return 0


def warn_hidden(invocation: Invocation, kinds: Sequence[str]) -> None:
    """Which secrets stand in a document and are not shown."""
    if kinds:
        invocation.say(f"Secrets in it are not shown: {', '.join(dict.fromkeys(kinds))}. Keep them out of documents.")


def _check(invocation: Invocation, documentation: Documentation, wanted: Wanted) -> int:
    catalogue = documentation.catalogue(wanted.project)
    found = documentation.check(wanted.given, wanted.project, catalogue)
    problem = None
    if wanted.model:
        found, problem = documentation.judge_changes(found)
    changes = documentation.changes([freshness for _, freshness in found if freshness.is_stale]) if wanted.diff else {}
    shapes = [
        {**shape_of_freshness(doc, freshness), **({"diffs": changes[doc.id]} if doc.id in changes else {})}
        for doc, freshness in found
    ]
    invocation.tell(lambda: _render_checked(found, changes), docs=shapes)
    if not wanted.given:
        say_missing(invocation, catalogue)
    if problem:
        invocation.say(f"No model was asked what matters: {problem}")
    return 0


def _render_checked(found: Sequence[tuple[Doc, Freshness]], changes: Mapping[str, Mapping[str, str]]) -> str:
    stale = [(doc, freshness) for doc, freshness in found if freshness.is_stale]
    blocks = [_render_stale(doc, freshness, changes.get(doc.id, {})) for doc, freshness in stale]
    problems = [(doc.id, problem) for doc, freshness in found for problem in freshness.problems]
    edited = [(doc.id, ", ".join(freshness.edited)) for doc, freshness in found if freshness.edited]
    counted: dict[str, int] = {}
    for _, freshness in found:
        counted[freshness.status] = counted.get(freshness.status, 0) + 1
    words = {"stale": "stale", "fresh": "true", "no sources": "without sources", "no history": "that cannot be checked"}
    told = ", ".join(f"{counted[status]} {word}" for status, word in words.items() if counted.get(status))
    head = f"{count(len(found), 'document')}: {told}" if found else "No document yet."
    parts = [head, *blocks, section("Edited and not committed", edited), section("Remarks", problems)]
    return "\n\n".join(filter(None, parts))


def _render_stale(doc: Doc, freshness: Freshness, diffs: Mapping[str, str]) -> str:
    assert freshness.true_at is not None
    lines = [
        f"{symbol(freshness)} {styled(doc.id, 'bold')}",
        f"  true at {freshness.true_at.id[:10]} {day(freshness.true_at.when)}, {describe(freshness)}",
    ]
    width = line_width() // 2
    rows = [
        (f"    {finding.path}", clipped(finding.why, width), commit.id[:10], clipped(commit.subject, width))
        for finding in freshness.significant
        for commit in finding.commits[:1]
    ]
    lines += columns(rows).splitlines()
    trivial = len(freshness.findings) - len(freshness.significant)
    lines += (
        [styled(f"    {count(trivial, 'other change')} that {'does' if trivial == 1 else 'do'} not matter", "dim")]
        if trivial
        else []
    )
    for path, text in diffs.items():
        lines += [f"\n  {styled(path, 'bold')}", *map(coloured, text.splitlines())]
    return "\n".join(lines)


def _history(invocation: Invocation, documentation: Documentation, wanted: Wanted) -> int:
    doc, commits = documentation.history(wanted.given[0], wanted.project, wanted.limit or 20)
    rows = [
        (
            styled(commit.id[:10], "yellow"),
            moment(commit.when),
            commit.author,
            clipped(commit.subject, line_width() - 40),
        )
        for commit in commits
    ]
    invocation.tell(
        lambda: section(doc.id, rows) or f"{doc.id}: nobody has committed it yet.", id=doc.id, commits=list(commits)
    )
    return 0


def _sync(invocation: Invocation, documentation: Documentation, _wanted: Wanted) -> int:
    report = documentation.sync()
    changed = [("added", len(report.added)), ("changed", len(report.modified)), ("removed", len(report.removed))]
    told = ", ".join(f"{number} {word}" for word, number in changed if number) or "nothing new"
    invocation.tell(
        lambda: f"{count(report.total, 'document')} searchable, {told}",
        added=list(report.added), modified=list(report.modified), removed=list(report.removed), total=report.total,
        embedded=report.embedded, pending=report.pending, passed_over=dict(report.passed_over),
        problems={doc: list(sentences) for doc, sentences in report.problems.items()},
        redacted={doc: list(kinds) for doc, kinds in report.redacted.items()}, degraded=list(report.degraded),
        took_s=round(report.took_s, 3),
    )  # fmt: skip
    for sentence in report.degraded:
        invocation.say(sentence)
    for doc, reason in report.passed_over.items():
        invocation.say(f"{one_line(doc)} is not read: {reason}.")
    for doc, sentences in report.problems.items():
        invocation.say(f"{one_line(doc)}: {'; '.join(sentences)}.")
    for doc, kinds in report.redacted.items():
        invocation.say(
            f"{doc} holds secrets, which are not searched: {', '.join(dict.fromkeys(kinds))}. Keep them out of it."
        )
    return 0


def _register(invocation: Invocation, documentation: Documentation, wanted: Wanted) -> int:
    for reference in wanted.given:
        path = Path(reference).expanduser().absolute()
        tell_written(invocation, documentation.register(path, wanted.project, wanted.sources))
    return 0


def _confirm(invocation: Invocation, documentation: Documentation, wanted: Wanted) -> int:
    for reference in wanted.given:
        tell_written(invocation, documentation.confirm(reference, wanted.project))
    return 0


def _update(invocation: Invocation, documentation: Documentation, wanted: Wanted) -> int:
    from quaid.cli.docs_update import update

    if wanted.yes and not wanted.patch:
        documentation.finish_killed()
    return update(invocation, documentation, wanted.given, wanted.project, yes=wanted.yes, patch=wanted.patch)


_ACTIONS: dict[str, Callable[[Invocation, Documentation, Wanted], int]] = {
    "list": _list,
    "search": _search,
    "read": _read,
    "check": _check,
    "update": _update,
    "confirm": _confirm,
    "register": _register,
    "history": _history,
    "sync": _sync,
}
