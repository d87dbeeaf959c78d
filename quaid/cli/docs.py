"""`quaid docs`, and how documents and their freshness look."""

from __future__ import annotations

import re
import shlex
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from quaid.cli.change_output import tell_written, warn_left
from quaid.cli.commands import Actions
from quaid.cli.invocation import Invocation, print_error
from quaid.cli.options import Project, Yes, argument, flag, option
from quaid.cli.terminal import (
    INDENT,
    clipped,
    coloured,
    columns,
    count,
    known,
    line_width,
    lines,
    moment,
    one_line,
    paragraphs,
    print_exactly,
    section,
    short,
    styled,
    titled,
)
from quaid.docs.freshness import WORDS, describe
from quaid.errors import QuaidError
from quaid.history.proposal import Proposed
from quaid.recall.trace import list_degraded
from quaid.shapes import json_object
from quaid.text.quoting import neutralise

if TYPE_CHECKING:
    from quaid.docs.catalogue import Catalogue, Doc
    from quaid.docs.documentation import Documentation
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


_References = Annotated[
    list[str] | None, argument("[REF]…", "A document by id, path, file name or title; or a project.")
]
_Reference = Annotated[str, argument("REF", "A document by id, path, file name or title.")]

run_docs = Actions(
    """
    Search the documents of projects, see which are out of date with their sources, and update them.

    Examples:
      quaid docs search "how is an index rebuilt" --project quaid
      quaid docs check --diff
      quaid docs check shop docs/recall.md
      quaid docs register docs/recall.md --source src/recall --source src/settings.py
      quaid docs update docs/recall.md --yes
    """,
    default="list",
)


@run_docs.action("list")
def list_docs(invocation: Invocation, references: _References = None, project: Project = None) -> None:
    """List the documents, with what each is about (the default)."""
    with invocation.open() as memory, invocation.progress(memory):
        catalogue = memory.documentation.catalogue(project)
        found = memory.documentation.check(references or (), project, catalogue)
    rows = []
    for doc, freshness in found:
        named, more = freshness.sources[:2], len(freshness.sources) - 2
        about = f"{', '.join(named)}{f' and {more} more' if more > 0 else ''} ({freshness.origin})" if named else ""
        rows.append((symbol(freshness), one_line(doc.id), day(freshness.updated), about))
    invocation.respond(
        lines(columns(rows), legend(freshness for _, freshness in found))
        or "No document yet. Make a project with: quaid project create NAME --root PATH",
        docs=[shape_of_freshness(doc, freshness) for doc, freshness in found],
        missing=catalogue.missing,
        absent_roots=catalogue.absent,
    )
    if not references:
        notify_missing(invocation, catalogue)


@run_docs.action("search")
def search_docs(
    invocation: Invocation,
    words: Annotated[list[str], argument("QUERY", "What you want to know, in words.")],
    project: Project = None,
    limit: Annotated[int | None, option("N", "Show at most N.", "--limit", "-n", min=1)] = None,
) -> None:
    """Show the passages that answer a question, each with a warning where its document is stale."""
    query = " ".join(words)
    with invocation.open() as memory, invocation.progress(memory):
        found, fresh = memory.documentation.search(query, project, limit)
    invocation.respond(
        paragraphs(*(_render_hit(hit, fresh.get(hit.doc), query) for hit in found.hits)),
        query=query,
        degraded=[sentence.partition(":")[0] for sentence in found.degraded],
        took_ms=round(found.took_ms, 1),
        doubt=found.doubt,
        hits=[
            json_object(
                hit,
                *("doc", "project", "title", "heading"),
                text=neutralise(hit.text),
                lines=[hit.first_line, hit.last_line],
                score=round(hit.score, 4),
                status=fresh[hit.doc].status if hit.doc in fresh else None,
                warning=_warning(fresh.get(hit.doc)),
            )
            for hit in found.hits
        ],
    )
    if degraded := list_degraded(found.degraded, found.trace):
        invocation.notify(f"quaid: {' · '.join(degraded)}")
    if found.doubt and found.hits:
        invocation.notify(f"quaid: in doubt: {found.doubt}")
    if not found.hits:
        invocation.notify("Nothing found. See what there is with: quaid docs list")


@run_docs.action("read")
def read_docs(
    invocation: Invocation,
    references: Annotated[list[str], argument("REF…", "Documents by id, path, file name or title.")],
    project: Project = None,
) -> None:
    """Print documents without the secrets in them."""
    shapes = []
    with invocation.open() as memory, invocation.progress(memory):
        for reference in references:
            doc, text, redacted = memory.documentation.read(reference, project)
            ((_, freshness),) = memory.documentation.check_docs([doc])
            shape = json_object(doc, "id", "project", "file", warning=_warning(freshness), text=neutralise(text))
            shapes.append(shape)
            if not invocation.as_json:
                sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
            if redacted:
                kinds = ", ".join(dict.fromkeys(redacted))
                invocation.notify(f"Secrets in it are not shown: {kinds}. Keep them out of documents.")
            if freshness.is_stale:
                invocation.notify(f"{doc.id} is {describe(freshness)}")
    if invocation.as_json:
        invocation.print_json(docs=shapes)


@run_docs.action("check")
def check_docs(
    invocation: Invocation,
    references: _References = None,
    project: Project = None,
    diff: Annotated[bool, flag("Show the changes as diffs.", "--diff")] = False,
    model: Annotated[bool, flag("Ask the fast model what matters, if there is one.", "--model/--no-model")] = True,
) -> None:
    """Show which documents are stale, since which commit and why."""
    with invocation.open() as memory, invocation.progress(memory):
        documentation = memory.documentation
        catalogue = documentation.catalogue(project)
        found = documentation.check(references or (), project, catalogue)
        found, problem = documentation.judge_changes(found) if model else (found, None)
        changes = documentation.changes([freshness for _, freshness in found if freshness.is_stale]) if diff else {}
    counted: Counter[str] = Counter(freshness.status for _, freshness in found)
    text = ", ".join(f"{counted[status]} {word}" for status, word in _COUNTED.items() if counted[status])
    invocation.respond(
        paragraphs(
            f"{count(len(found), 'document')}: {text}" if found else "No document yet.",
            *(_render_stale(doc, state, changes.get(doc.id, {})) for doc, state in found if state.is_stale),
            section(
                "Edited and not committed", [(doc.id, ", ".join(state.edited)) for doc, state in found if state.edited]
            ),
            section("Remarks", [(doc.id, problem) for doc, state in found for problem in state.problems]),
        ),
        docs=[
            shape_of_freshness(doc, state) | ({"diffs": changes[doc.id]} if doc.id in changes else {})
            for doc, state in found
        ],
    )
    if not references:
        notify_missing(invocation, catalogue)
    if problem:
        invocation.notify(f"No model was asked what matters: {problem}")


@run_docs.action("update")
def update_docs(
    invocation: Invocation,
    references: _References = None,
    project: Project = None,
    yes: Yes = False,
    patch: Annotated[bool, flag("Print a patch; change nothing.", "--patch")] = False,
) -> int:
    """Show what a model would change in stale documents.

    With --yes it becomes a commit in the vault, or a branch in the source repository.
    """
    from quaid.docs.updater import render_patch

    is_applied = yes and not patch
    shapes: list[dict[str, object]] = []
    failed = False
    with invocation.open() as memory, invocation.progress(memory):
        documentation = memory.documentation
        if is_applied:
            documentation.finish_killed()
        for found in documentation.propose(references or (), project):
            if isinstance(found, str):
                print_error(found)
                failed = True
                continue
            stale, update = found
            edits = [
                {"find": update.before[edit.start : edit.end], "replace": edit.new, "reason": edit.reason}
                for edit in update.edits
            ]
            shape: dict[str, object] = {
                "id": stale.doc.id,
                "still_true": not edits,
                **json_object(update, "summary", edits=edits),
                **json_object(update, "model", "prompt"),
            }
            shapes.append(shape)
            if is_applied and edits:
                failed |= _apply(invocation, documentation, stale, update, shape)
                continue
            text = render_patch(stale, update)
            shape["patch"] = text or None
            if not invocation.as_json and patch:  # for git, to which a control character is one of the file's
                print_exactly((text.rstrip("\n") + "\n").encode("utf-8", "surrogateescape"))
            elif not invocation.as_json:
                headers = ("diff --git", "index ", "--- ", "+++ ")
                rows = [coloured(row) for row in text.splitlines() if not row.startswith(headers)]
                head = f"{styled(stale.doc.id, 'bold')}: {update.summary or 'true as it is'}"
                invocation.print("\n".join([head, *rows]))
    if invocation.as_json:
        invocation.print_json(docs=shapes)
    elif not shapes and not failed:
        invocation.print("Nothing to do: no document is stale.")
    if any(not shape["still_true"] for shape in shapes) and not yes and not patch:
        step = "Carry it out with: quaid docs update --yes (the model is not asked again)"
        invocation.notify(f"Nothing was changed. {step}")
    return int(failed)


def _apply(
    invocation: Invocation, documentation: Documentation, stale: StaleDoc, update: DocUpdate, shape: dict[str, object]
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
        invocation.notify(f"Look at it and merge it: git -C {shlex.quote(str(stale.doc.folder))} merge {branch}")
    warn_left(invocation, () if isinstance(done, Proposed) else done.left)
    return False


@run_docs.action("confirm")
def confirm(
    invocation: Invocation,
    references: Annotated[list[str], argument("REF…", "The documents.")],
    project: Project = None,
) -> None:
    """Record that documents are true for their sources as they are now."""
    with invocation.open() as memory, invocation.progress(memory):
        for reference in references:
            tell_written(invocation, memory.documentation.confirm(reference, project))


@run_docs.action("register")
def register(
    invocation: Invocation,
    paths: Annotated[list[Path], argument("PATH…", "The files.")],
    project: Project = None,
    source: Annotated[list[str] | None, option("PATH", "A file or folder it is about; repeatable.")] = None,
) -> None:
    """Add documents to the registry; --source says what they are about."""
    with invocation.open() as memory, invocation.progress(memory):
        for path in paths:
            file = path.expanduser().absolute()
            tell_written(invocation, memory.documentation.register(file, project, tuple(source or ())))


@run_docs.action("history")
def show_history(
    invocation: Invocation,
    reference: _Reference,
    project: Project = None,
    limit: Annotated[int, option("N", "Show at most N.", "--limit", "-n", min=1)] = 20,
) -> None:
    """Show the commits that changed a document."""
    with invocation.open() as memory:
        doc, commits = memory.documentation.history(reference, project, limit)
    width = line_width() - 40
    rows = [
        (styled(short(commit.id), "yellow"), moment(commit.when), commit.author, clipped(commit.subject, width))
        for commit in commits
    ]
    invocation.respond(section(doc.id, rows) or f"{doc.id}: it was never committed.", id=doc.id, commits=commits)


@run_docs.action("sync")
def sync_docs(invocation: Invocation) -> None:
    """Bring the index of the documents up to date."""
    with invocation.open() as memory, invocation.progress(memory):
        report = memory.documentation.sync()
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


def symbol(freshness: Freshness) -> str:
    """One character for how fresh a document is."""
    mark, style = _MARKS[freshness.state]
    return styled(mark, style)


def legend(found: Iterable[Freshness]) -> str:
    """The meaning of the characters that were shown."""
    states = {freshness.state for freshness in found}
    return styled("  ".join(f"{_MARKS[state][0]} {word}" for state, word in WORDS.items() if state in states), "dim")


def _warning(freshness: Freshness | None) -> str | None:
    """Return a sentence when a document is stale, with since when; None when it is not, or was not checked."""
    return describe(freshness) if freshness is not None and freshness.is_stale else None


def day(iso: str | None) -> str:
    """`2026-11-20T14:30:00Z` as `2026-11-20`."""
    return (iso or "")[:10]


def notify_missing(invocation: Invocation, catalogue: Catalogue) -> None:
    """Remark on registered documents and source roots that are missing, moved or refused."""
    for remark in catalogue.remarks:
        invocation.notify(remark)


def shape_of_freshness(doc: Doc, freshness: Freshness) -> dict[str, object]:
    """Return a document and its freshness as JSON."""
    changes = [
        json_object(finding, "path", "old_path", "kind", trivial=finding.is_trivial)
        | json_object(finding, "why", "by", "commits")
        for finding in freshness.findings
    ]
    return {
        **json_object(doc, "id", "project", "file", registered=doc.is_registered, registered_as=doc.registered_as),
        "status": freshness.status,
        "warning": _warning(freshness),
        **json_object(freshness, "updated", "true_at", "since", "origin", "sources"),
        "changes": changes,
        **json_object(freshness, "edited", "problems"),
    }


def _render_hit(hit: DocHit, freshness: Freshness | None, query: str) -> str:
    """Return a passage with its place, and a warning when its document is stale."""
    heading = neutralise(" > ".join(dict.fromkeys((hit.title, *hit.heading))))
    warning = _warning(freshness)
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


def _render_stale(doc: Doc, freshness: Freshness, diffs: Mapping[str, str]) -> str:
    """Return a stale document, the changes of its sources that matter, and the diffs."""
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
