"""`quaid docs`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quaid.cli.change_output import tell_written
from quaid.cli.docs_output import (
    render_checked,
    render_docs,
    render_hit,
    say_missing,
    shape_of_freshness,
    shape_of_hit,
    warn_hidden,
    warning_of,
)
from quaid.cli.invocation import Invocation, fields
from quaid.cli.terminal import clipped, count, line_width, moment, one_line, paragraphs, section, short, styled
from quaid.docs.freshness import describe
from quaid.errors import UsageError
from quaid.recall.trace import list_degraded
from quaid.text.quoting import neutralise

if TYPE_CHECKING:
    from quaid.docs.documentation import Documentation

ACTIONS = ("list", "search", "read", "check", "update", "confirm", "register", "history", "sync")
_WITHOUT_REFERENCE = ("list", "check", "sync", "update")


def run_docs(
    ctx: typer.Context,
    action: Annotated[str, typer.Argument(metavar="ACTION", help=", ".join(ACTIONS))] = "list",
    references: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[REF|QUERY]…", help="A document by id, path, file name or title; a project; or a question."
        ),
    ] = None,
    project: Annotated[
        str | None, typer.Option("--project", "-p", metavar="NAME", help="Only documents of this project.")
    ] = None,
    source: Annotated[
        list[str] | None, typer.Option(metavar="PATH", help="register: a file or folder it is about; repeatable.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", metavar="N", min=1, help="search, history: show at most N.")
    ] = None,
    diff: Annotated[bool, typer.Option("--diff", help="check: show the changes as diffs.")] = False,
    model: Annotated[
        bool, typer.Option("--model/--no-model", help="check: ask the fast model what matters, if there is one.")
    ] = True,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="update: make the change.")] = False,
    patch: Annotated[bool, typer.Option("--patch", help="update: print a patch; change nothing.")] = False,
) -> int:
    r"""Search the documents of projects, see which are out of date with their sources, and update them.

    \b
    list [REF…]
               the documents, with what each is about
    search QUERY
               passages that answer it, each with a warning where its document is stale
    read REF   a document, without the secrets in it
    check [REF…]
               which documents are stale, since which commit and why; --diff shows the changes
    update [REF…]
               what a model would change in stale ones; --yes makes it a commit in the vault, or a branch in the source
               repository
    confirm REF
               record that a document is true for its sources as they are now
    register PATH
               add a document to the registry; --source says what it is about
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
    if not given and action not in _WITHOUT_REFERENCE:
        what = {"search": "a question", "register": "a file"}.get(action, "a document")
        raise UsageError(f"quaid docs {action} needs {what}.")
    if given and action == "sync":
        raise UsageError("quaid docs sync is for all documents; it takes no reference.")
    request = DocsRequest(
        tuple(given), project, tuple(source or ()), limit, diff=diff, model=model, yes=yes, patch=patch
    )
    invocation: Invocation = ctx.obj
    with invocation.open() as memory, invocation.progress(memory):
        return _ACTIONS[action](invocation, memory.documentation, request) or 0


@dataclass(frozen=True, slots=True)
class DocsRequest:
    """The command line behind the action."""

    given: tuple[str, ...]
    project: str | None
    sources: tuple[str, ...]
    limit: int | None
    diff: bool
    model: bool
    yes: bool
    patch: bool


def list_docs(invocation: Invocation, documentation: Documentation, request: DocsRequest) -> None:
    """Show the documents, with what each is about."""
    catalogue = documentation.catalogue(request.project)
    found = documentation.check(request.given, request.project, catalogue)
    invocation.respond(
        render_docs(found) or "No document yet. Make a project with: quaid project create NAME --root PATH",
        docs=[shape_of_freshness(doc, freshness) for doc, freshness in found],
        missing=catalogue.missing,
        absent_roots=catalogue.absent,
    )
    if not request.given:
        say_missing(invocation, catalogue)


def search_docs(invocation: Invocation, documentation: Documentation, request: DocsRequest) -> None:
    """Show the passages that answer a question."""
    query = " ".join(request.given)
    found, fresh = documentation.search(query, request.project, request.limit)
    hits = [shape_of_hit(hit, fresh.get(hit.doc)) for hit in found.hits]
    names = [sentence.partition(":")[0] for sentence in found.degraded]
    invocation.respond(
        paragraphs(*(render_hit(hit, fresh.get(hit.doc), query) for hit in found.hits)),
        query=query, degraded=names, took_ms=round(found.took_ms, 1), doubt=found.doubt, hits=hits,
    )  # fmt: skip
    if degraded := list_degraded(found.degraded, found.trace):
        invocation.notify(f"quaid: {' · '.join(degraded)}")
    if found.doubt and found.hits:
        invocation.notify(f"quaid: in doubt: {found.doubt}")
    if not found.hits:
        invocation.notify("Nothing found. See what there is with: quaid docs list")


def read_docs(invocation: Invocation, documentation: Documentation, request: DocsRequest) -> None:
    """Print documents without what is secret in them."""
    shapes = []
    for reference in request.given:
        doc, text, redacted = documentation.read(reference, request.project)
        ((_, freshness),) = documentation.check_docs([doc])
        shapes.append(
            {**fields(doc, "id", "project", "file"), "warning": warning_of(freshness), "text": neutralise(text)}
        )
        if not invocation.as_json:
            sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
        warn_hidden(invocation, redacted)
        if freshness.is_stale:
            invocation.notify(f"{doc.id} is {describe(freshness)}")
    if invocation.as_json:
        invocation.print_json(docs=shapes)


def check_docs(invocation: Invocation, documentation: Documentation, request: DocsRequest) -> None:
    """Show which documents are stale, since which commit and why."""
    catalogue = documentation.catalogue(request.project)
    found = documentation.check(request.given, request.project, catalogue)
    problem = None
    if request.model:
        found, problem = documentation.judge_changes(found)
    stale = [freshness for _, freshness in found if freshness.is_stale]
    changes = documentation.changes(stale) if request.diff else {}
    shapes = [
        {**shape_of_freshness(doc, freshness), **({"diffs": changes[doc.id]} if doc.id in changes else {})}
        for doc, freshness in found
    ]
    invocation.respond(render_checked(found, changes), docs=shapes)
    if not request.given:
        say_missing(invocation, catalogue)
    if problem:
        invocation.notify(f"No model was asked what matters: {problem}")


def update_docs(invocation: Invocation, documentation: Documentation, request: DocsRequest) -> int:
    """Show what a model would change in stale documents, or change it."""
    from quaid.cli.docs_update import update

    if request.yes and not request.patch:
        documentation.finish_killed()
    return update(invocation, documentation, request.given, request.project, yes=request.yes, patch=request.patch)


def confirm_docs(invocation: Invocation, documentation: Documentation, request: DocsRequest) -> None:
    """Note that documents are true as their sources are now."""
    for reference in request.given:
        tell_written(invocation, documentation.confirm(reference, request.project))


def register_docs(invocation: Invocation, documentation: Documentation, request: DocsRequest) -> None:
    """Put documents into the registry."""
    for reference in request.given:
        path = Path(reference).expanduser().absolute()
        tell_written(invocation, documentation.register(path, request.project, request.sources))


def show_history(invocation: Invocation, documentation: Documentation, request: DocsRequest) -> None:
    """Show the commits that changed a document."""
    doc, commits = documentation.history(request.given[0], request.project, request.limit or 20)
    width = line_width() - 40
    rows = [
        (styled(short(commit.id), "yellow"), moment(commit.when), commit.author, clipped(commit.subject, width))
        for commit in commits
    ]
    invocation.respond(section(doc.id, rows) or f"{doc.id}: it was never committed.", id=doc.id, commits=commits)


def sync_docs(invocation: Invocation, documentation: Documentation, _: DocsRequest) -> None:
    """Bring the index of the documents up to date."""
    report = documentation.sync()
    changed = [("added", len(report.added)), ("changed", len(report.modified)), ("removed", len(report.removed))]
    told = ", ".join(f"{number} {word}" for word, number in changed if number) or "nothing new"
    names = ("added", "modified", "removed", "total", "embedded", "pending", "passed_over", "problems", "redacted")
    shape = {**fields(report, *names, "degraded"), "took_s": round(report.took_s, 3)}
    invocation.respond(f"{count(report.total, 'document')} searchable, {told}", **shape)
    for sentence in report.degraded:
        invocation.notify(sentence)
    for doc, reason in report.passed_over.items():
        invocation.notify(f"{one_line(doc)} is not read: {reason}.")
    for doc, sentences in report.problems.items():
        invocation.notify(f"{one_line(doc)}: {'; '.join(sentences)}.")
    for doc, kinds in report.redacted.items():
        secrets = ", ".join(dict.fromkeys(kinds))
        invocation.notify(f"{doc} holds secrets, which are not searched: {secrets}. Keep them out of it.")


_ACTIONS: dict[str, Callable[[Invocation, Documentation, DocsRequest], int | None]] = {
    "list": list_docs,
    "search": search_docs,
    "read": read_docs,
    "check": check_docs,
    "update": update_docs,
    "confirm": confirm_docs,
    "register": register_docs,
    "history": show_history,
    "sync": sync_docs,
}
