"""`quaid docs`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quaid.cli.change_output import tell_written, warn_left
from quaid.cli.docs_output import (
    render_checked,
    render_docs,
    render_hit,
    render_update,
    say_missing,
    shape_of_freshness,
    shape_of_hit,
    shape_of_update,
    warning_of,
)
from quaid.cli.invocation import Invocation, print_error
from quaid.cli.terminal import (
    clipped,
    count,
    known,
    line_width,
    moment,
    one_line,
    paragraphs,
    print_exactly,
    section,
    short,
    styled,
    titled,
)
from quaid.docs.freshness import describe
from quaid.errors import QuaidError, UsageError
from quaid.history.proposal import Proposed
from quaid.recall.trace import list_degraded
from quaid.shapes import json_object
from quaid.text.quoting import neutralise

if TYPE_CHECKING:
    from quaid.docs.documentation import Documentation
    from quaid.docs.judgements import StaleDoc
    from quaid.docs.updates import DocUpdate

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
    given = references or []
    _check_usage(action, given)
    invocation: Invocation = ctx.obj
    with invocation.open() as memory, invocation.progress(memory):
        documentation = memory.documentation
        match action:
            case "list":
                list_docs(invocation, documentation, given, project)
            case "search":
                search_docs(invocation, documentation, " ".join(given), project, limit)
            case "read":
                read_docs(invocation, documentation, given, project)
            case "check":
                check_docs(invocation, documentation, given, project, diff=diff, model=model)
            case "update":
                return update_docs(invocation, documentation, given, project, yes=yes, patch=patch)
            case "history":
                show_history(invocation, documentation, given[0], project, limit or 20)
            case "sync":
                sync_docs(invocation, documentation)
            case _:
                change_registry(invocation, documentation, action, given, project, source or ())
    return 0


def _check_usage(action: str, references: Sequence[str]) -> None:
    if action not in ACTIONS:
        raise UsageError(f"There is no action {action!r}. Give one of {', '.join(ACTIONS)}.")
    if not references and action not in _WITHOUT_REFERENCE:
        what = {"search": "a question", "register": "a file"}.get(action, "a document")
        raise UsageError(f"quaid docs {action} needs {what}.")
    if references and action == "sync":
        raise UsageError("quaid docs sync is for all documents; it takes no reference.")


def list_docs(
    invocation: Invocation, documentation: Documentation, references: Sequence[str], project: str | None
) -> None:
    """Show the documents, with what each is about."""
    catalogue = documentation.catalogue(project)
    found = documentation.check(references, project, catalogue)
    invocation.respond(
        render_docs(found) or "No document yet. Make a project with: quaid project create NAME --root PATH",
        docs=[shape_of_freshness(doc, freshness) for doc, freshness in found],
        missing=catalogue.missing,
        absent_roots=catalogue.absent,
    )
    if not references:
        say_missing(invocation, catalogue)


def search_docs(
    invocation: Invocation, documentation: Documentation, query: str, project: str | None, limit: int | None
) -> None:
    """Show the passages that answer a query."""
    found, fresh = documentation.search(query, project, limit)
    invocation.respond(
        paragraphs(*(render_hit(hit, fresh.get(hit.doc), query) for hit in found.hits)),
        query=query,
        degraded=[sentence.partition(":")[0] for sentence in found.degraded],
        took_ms=round(found.took_ms, 1),
        doubt=found.doubt,
        hits=[shape_of_hit(hit, fresh.get(hit.doc)) for hit in found.hits],
    )
    if degraded := list_degraded(found.degraded, found.trace):
        invocation.notify(f"quaid: {' · '.join(degraded)}")
    if found.doubt and found.hits:
        invocation.notify(f"quaid: in doubt: {found.doubt}")
    if not found.hits:
        invocation.notify("Nothing found. See what there is with: quaid docs list")


def read_docs(
    invocation: Invocation, documentation: Documentation, references: Sequence[str], project: str | None
) -> None:
    """Print documents without the secrets in them."""
    shapes = []
    for reference in references:
        doc, text, redacted = documentation.read(reference, project)
        ((_, freshness),) = documentation.check_docs([doc])
        shapes.append(json_object(doc, "id", "project", "file", warning=warning_of(freshness), text=neutralise(text)))
        if not invocation.as_json:
            sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
        if redacted:
            kinds = ", ".join(dict.fromkeys(redacted))
            invocation.notify(f"Secrets in it are not shown: {kinds}. Keep them out of documents.")
        if freshness.is_stale:
            invocation.notify(f"{doc.id} is {describe(freshness)}")
    if invocation.as_json:
        invocation.print_json(docs=shapes)


def check_docs(
    invocation: Invocation,
    documentation: Documentation,
    references: Sequence[str],
    project: str | None,
    *,
    diff: bool,
    model: bool,
) -> None:
    """Show which documents are stale, since which commit and why."""
    catalogue = documentation.catalogue(project)
    found = documentation.check(references, project, catalogue)
    problem = None
    if model:
        found, problem = documentation.judge_changes(found)
    changes = documentation.changes([freshness for _, freshness in found if freshness.is_stale]) if diff else {}
    shapes = [
        shape_of_freshness(doc, freshness) | ({"diffs": changes[doc.id]} if doc.id in changes else {})
        for doc, freshness in found
    ]
    invocation.respond(render_checked(found, changes), docs=shapes)
    if not references:
        say_missing(invocation, catalogue)
    if problem:
        invocation.notify(f"No model was asked what matters: {problem}")


def update_docs(
    invocation: Invocation,
    documentation: Documentation,
    references: Sequence[str],
    project: str | None,
    *,
    yes: bool,
    patch: bool,
) -> int:
    """Propose updates of stale documents, and carry them out with `yes`; return the exit code."""
    from quaid.docs.updater import render_patch

    is_applied = yes and not patch
    if is_applied:
        documentation.finish_killed()
    shapes: list[dict[str, object]] = []
    failed = False
    for found in documentation.propose(references, project):
        if isinstance(found, str):
            print_error(found)
            failed = True
            continue
        stale, update = found
        shape = shape_of_update(stale, update)
        shapes.append(shape)
        if is_applied and update.edits:
            failed |= _apply_update(invocation, documentation, stale, update, shape)
        else:
            text = render_patch(stale, update)
            shape["patch"] = text or None
            if not invocation.as_json and patch:  # for git, to which a control character is one of the file's
                print_exactly((text.rstrip("\n") + "\n").encode("utf-8", "surrogateescape"))
            elif not invocation.as_json:
                invocation.print(render_update(stale, update, text))
    if invocation.as_json:
        invocation.print_json(docs=shapes)
    elif not shapes and not failed:
        invocation.print("Nothing to do: no document is stale.")
    if any(not shape["still_true"] for shape in shapes) and not yes and not patch:
        step = "Carry it out with: quaid docs update --yes (the model is not asked again)"
        invocation.notify(f"Nothing was changed. {step}")
    return int(failed)


def _apply_update(
    invocation: Invocation,
    documentation: Documentation,
    stale: StaleDoc,
    update: DocUpdate,
    shape: dict[str, object],
) -> bool:
    """Carry out an update and add the outcome to its JSON; return whether that failed."""
    try:
        done = documentation.apply(stale, update)
    except QuaidError as error:
        shape["error"] = {"code": error.code, "message": str(error)}
        print_error(f"{error}")
        return True
    commit, branch = (None, done.branch) if isinstance(done, Proposed) else (done.commit, None)
    shape |= {"commit": commit, "branch": branch}
    if not invocation.as_json:
        head = f"{styled('Updated', 'green')}: {stale.doc.id}, {count(len(update.edits), 'passage')}"
        invocation.print(titled(head, known(("commit", short(commit)), ("branch", branch))))
        if branch:
            folder = shlex.quote(str(stale.doc.folder))
            invocation.notify(f"Look at it and merge it: git -C {folder} merge {branch}")
    warn_left(invocation, () if isinstance(done, Proposed) else done.left)
    return False


def change_registry(
    invocation: Invocation,
    documentation: Documentation,
    action: str,
    references: Sequence[str],
    project: str | None,
    sources: Sequence[str],
) -> None:
    """Register documents, or confirm that they are true as their sources are now."""
    for reference in references:
        if action == "confirm":
            written = documentation.confirm(reference, project)
        else:
            written = documentation.register(Path(reference).expanduser().absolute(), project, tuple(sources))
        tell_written(invocation, written)


def show_history(
    invocation: Invocation, documentation: Documentation, reference: str, project: str | None, limit: int
) -> None:
    """Show the commits that changed a document."""
    doc, commits = documentation.history(reference, project, limit)
    width = line_width() - 40
    rows = [
        (styled(short(commit.id), "yellow"), moment(commit.when), commit.author, clipped(commit.subject, width))
        for commit in commits
    ]
    invocation.respond(section(doc.id, rows) or f"{doc.id}: it was never committed.", id=doc.id, commits=commits)


def sync_docs(invocation: Invocation, documentation: Documentation) -> None:
    """Bring the index of the documents up to date."""
    report = documentation.sync()
    changed = [("added", len(report.added)), ("changed", len(report.modified)), ("removed", len(report.removed))]
    news = ", ".join(f"{number} {word}" for word, number in changed if number) or "nothing new"
    shape = json_object(report, without=("renamed", "rebuilt"), took_s=round(report.took_s, 3))
    invocation.respond(f"{count(report.total, 'document')} searchable, {news}", **shape)
    for sentence in report.degraded:
        invocation.notify(sentence)
    for doc, reason in report.passed_over.items():
        invocation.notify(f"{one_line(doc)} is not read: {reason}.")
    for doc, sentences in report.problems.items():
        invocation.notify(f"{one_line(doc)}: {'; '.join(sentences)}.")
    for doc, kinds in report.redacted.items():
        secrets = ", ".join(dict.fromkeys(kinds))
        invocation.notify(f"{doc} holds secrets, which are not searched: {secrets}. Keep them out of it.")
