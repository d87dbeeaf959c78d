"""`quaid docs` and `quaid project`."""

import re
import shlex
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

from quaid.cli import terminal as ui
from quaid.cli.change_output import tell_written, warn_left
from quaid.cli.commands import Actions
from quaid.cli.invocation import Invocation, error_shape, print_error
from quaid.cli.options import DryRun, Yes, argument, flag, option
from quaid.docs.catalogue import Catalogue, Doc
from quaid.docs.documentation import Documentation
from quaid.docs.freshness import WORDS, Freshness, describe
from quaid.docs.judgements import StaleDoc
from quaid.docs.registrar import NewProject
from quaid.docs.registry import STATES, Project, State
from quaid.docs.search import DocHit
from quaid.docs.source_roots import next_step
from quaid.docs.sources import is_record
from quaid.docs.updater import render_patch
from quaid.docs.updates import DocUpdate
from quaid.errors import BadInputError, QuaidError, name_first
from quaid.history.proposal import Proposed
from quaid.recall.trace import list_degraded
from quaid.shapes import json_object
from quaid.text.quoting import neutralise

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


_InProject = Annotated[str | None, option("NAME", "Only documents of this project.", "--project", "-p")]
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
def list_docs(invocation: Invocation, references: _References = None, project: _InProject = None) -> None:
    """List the documents, with what each is about (the default)."""
    with invocation.open() as memory, invocation.progress(memory):
        catalogue = memory.documentation.catalogue(project)
        found = memory.documentation.check(references or (), project, catalogue)
    rows = []
    for doc, freshness in found:
        about = f"{name_first(freshness.sources, 2)} ({freshness.origin})" if freshness.sources else ""
        rows.append((symbol(freshness), ui.one_line(doc.id), day(freshness.updated), about))
    invocation.respond(
        ui.lines(ui.columns(rows), legend(freshness for _, freshness in found))
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
    project: _InProject = None,
    limit: Annotated[int | None, option("N", "Show at most N.", "--limit", "-n", min=1)] = None,
) -> None:
    """Show the passages that answer a question, each with a warning where its document is stale."""
    query = " ".join(words)
    with invocation.open() as memory, invocation.progress(memory):
        found, fresh = memory.documentation.search(query, project, limit)
    invocation.respond(
        ui.paragraphs(*(_render_hit(hit, fresh.get(hit.doc), query) for hit in found.hits)),
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
    project: _InProject = None,
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
    project: _InProject = None,
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
        ui.paragraphs(
            f"{ui.count(len(found), 'document')}: {text}" if found else "No document yet.",
            *(_render_stale(doc, state, changes.get(doc.id, {})) for doc, state in found if state.is_stale),
            ui.section(
                "Edited and not committed", [(doc.id, ", ".join(state.edited)) for doc, state in found if state.edited]
            ),
            ui.section("Remarks", [(doc.id, problem) for doc, state in found for problem in state.problems]),
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
    project: _InProject = None,
    yes: Yes = False,
    patch: Annotated[bool, flag("Print a patch; change nothing.", "--patch")] = False,
) -> int:
    """Show what a model would change in stale documents.

    With --yes it becomes a commit in the vault, or a branch in the source repository.
    """
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
                ui.print_exactly((text.rstrip("\n") + "\n").encode("utf-8", "surrogateescape"))
            elif not invocation.as_json:
                headers = ("diff --git", "index ", "--- ", "+++ ")
                rows = [ui.coloured(row) for row in text.splitlines() if not row.startswith(headers)]
                head = f"{ui.styled(stale.doc.id, 'bold')}: {update.summary or 'true as it is'}"
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
        shape["error"] = error_shape(error)
        print_error(f"{error}")
        return True
    commit, branch = (None, done.branch) if isinstance(done, Proposed) else (done.commit, None)
    shape |= {"commit": commit, "branch": branch}
    if not invocation.as_json:
        head = f"{ui.styled('Updated', 'green')}: {stale.doc.id}, {ui.count(len(update.edits), 'passage')}"
        invocation.print(ui.titled(head, ui.known(("commit", ui.short(commit)), ("branch", branch))))
    if branch:
        invocation.notify(f"Look at it and merge it: git -C {shlex.quote(str(stale.doc.folder))} merge {branch}")
    warn_left(invocation, () if isinstance(done, Proposed) else done.left)
    return False


@run_docs.action("confirm")
def confirm(
    invocation: Invocation,
    references: Annotated[list[str], argument("REF…", "The documents.")],
    project: _InProject = None,
) -> None:
    """Record that documents are true for their sources as they are now."""
    with invocation.open() as memory, invocation.progress(memory):
        for reference in references:
            tell_written(invocation, memory.documentation.confirm(reference, project))


@run_docs.action("register")
def register(
    invocation: Invocation,
    paths: Annotated[list[Path], argument("PATH…", "The files.")],
    project: _InProject = None,
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
    project: _InProject = None,
    limit: Annotated[int, option("N", "Show at most N.", "--limit", "-n", min=1)] = 20,
) -> None:
    """Show the commits that changed a document."""
    with invocation.open() as memory:
        doc, commits = memory.documentation.history(reference, project, limit)
    width = ui.line_width() - 40
    rows = [
        (
            ui.styled(ui.short(commit.id), "yellow"),
            ui.moment(commit.when),
            commit.author,
            ui.clipped(commit.subject, width),
        )
        for commit in commits
    ]
    invocation.respond(ui.section(doc.id, rows) or f"{doc.id}: it was never committed.", id=doc.id, commits=commits)


@run_docs.action("sync")
def sync_docs(invocation: Invocation) -> None:
    """Bring the index of the documents up to date."""
    with invocation.open() as memory, invocation.progress(memory):
        report = memory.documentation.sync()
    changed = [("added", len(report.added)), ("changed", len(report.modified)), ("removed", len(report.removed))]
    news = ", ".join(f"{number} {word}" for word, number in changed if number) or "nothing new"
    shape = json_object(report, without=("renamed", "rebuilt"), took_s=round(report.took_s, 3))
    invocation.respond(f"{ui.count(report.total, 'document')} searchable, {news}", **shape)
    for sentence in report.degraded:
        invocation.notify(sentence)
    for doc, reason in report.passed_over.items():
        invocation.notify(f"{ui.one_line(doc)} is not read: {reason}.")
    for doc, sentences in report.problems.items():
        invocation.notify(f"{ui.one_line(doc)}: {'; '.join(sentences)}.")
    for doc, kinds in report.redacted.items():
        secrets = ", ".join(dict.fromkeys(kinds))
        invocation.notify(f"{doc} holds secrets, which are not searched: {secrets}. Keep them out of it.")


def symbol(freshness: Freshness) -> str:
    """One character for how fresh a document is."""
    mark, style = _MARKS[freshness.state]
    return ui.styled(mark, style)


def legend(found: Iterable[Freshness]) -> str:
    """The meaning of the characters that were shown."""
    states = {freshness.state for freshness in found}
    return ui.styled("  ".join(f"{_MARKS[state][0]} {word}" for state, word in WORDS.items() if state in states), "dim")


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
    """Return a passage with its place, and a warning when its document is stale. Of a long one the line that has most
    of the question's words is shown.
    """
    text = neutralise(hit.text)
    if len(text) > MAX_SHOWN:
        words = set(re.findall(r"\w{3,}", query.lower()))
        rows = text.splitlines(keepends=True)
        best = max(range(len(rows)), key=lambda number: sum(word in rows[number].lower() for word in words))
        is_near = sum(map(len, rows[: best + 1])) <= MAX_SHOWN
        rest = text if is_near else "…\n" + "".join(rows[max(0, best - LINES_BEFORE) :])
        text = f"{rest[:MAX_SHOWN].rstrip()} …" if len(rest) > MAX_SHOWN else rest
    heading = neutralise(" > ".join(dict.fromkeys((hit.title, *hit.heading))))
    warning = _warning(freshness)
    return ui.lines(
        f"{ui.styled(f'{hit.score:.2f}', 'cyan')}  {ui.styled(heading, 'bold')}",
        ui.styled(f"{ui.INDENT}{hit.doc}:{hit.first_line}-{hit.last_line}", "dim"),
        f"{ui.INDENT}{ui.styled(f'! {warning}', 'yellow')}" if warning else "",
        "\n".join(f"{ui.INDENT}{line}".rstrip() for line in text.splitlines()),
    )


def _render_stale(doc: Doc, freshness: Freshness, diffs: Mapping[str, str]) -> str:
    """Return a stale document, the changes of its sources that matter, and the diffs."""
    assert freshness.true_at is not None
    width = ui.line_width() // 2
    rows = [
        (f"    {finding.path}", ui.clipped(finding.why, width), ui.short(commit.id), ui.clipped(commit.subject, width))
        for finding in freshness.significant
        for commit in finding.commits[:1]
    ]
    trivial = len(freshness.findings) - len(freshness.significant)
    others = f"    {ui.count(trivial, 'other change')} that {'does' if trivial == 1 else 'do'} not matter"
    shown = []
    for path, diff in diffs.items():
        shown.append("\n".join([f"\n  {ui.styled(path, 'bold')}", *map(ui.coloured, diff.splitlines())]))
    return ui.lines(
        f"{symbol(freshness)} {ui.styled(doc.id, 'bold')}",
        f"  true at {ui.short(freshness.true_at.id)} {day(freshness.true_at.when)}, {describe(freshness)}",
        ui.columns(rows),
        ui.styled(others, "dim") if trivial else "",
        *shown,
    )


MAX_LISTED = 20
BAR_WIDTH = 24
MAX_PATH = 42
_Name = Annotated[str, argument("NAME", "A project.")]

run_project = Actions(
    """
    Manage projects and their documents. A project is the frontmatter of a note, projects/NAME/PROJECT.md.

    Examples:
      quaid project create quaid --root ~/code/quaid
      quaid project show quaid
      quaid project find ~/code/quaid/src/index.py
      quaid project discover ~/code --dry-run
    """,
    default="list",
)


@run_project.action("list")
def list_projects(
    invocation: Invocation,
    every: Annotated[bool, flag("Also archived and deleted projects.", "--all")] = False,
) -> None:
    """List the projects, with their documents and how many are stale (the default)."""
    with invocation.open() as memory, invocation.progress(memory):
        projects = memory.documentation.projects(STATES if every else ("active",))
        found = memory.documentation.check() if projects else []
    rows, shapes = [], []
    for project in projects:
        counted = Counter(freshness.status for doc, freshness in found if doc.project == project.name)
        shapes.append({**shape_of_project(project), "docs": counted})
        documents = ui.count(counted.total(), "document") if project.state == "active" else project.state
        stale = f"{counted['stale']} stale" if counted["stale"] else ""
        rows.append((ui.styled(project.name, "bold"), documents, stale, ", ".join(project.source_roots)))
    invocation.respond(ui.columns(rows) or "No project yet.", projects=shapes)
    if not projects:
        invocation.notify("Make one with: quaid project create NAME --root PATH")


@run_project.action("create")
def create(
    invocation: Invocation,
    name: _Name,
    label: Annotated[str, option("TEXT", "Its name for people.")] = "",
    about: Annotated[str, option("TEXT", "What it is, in a sentence or two.")] = "",
    root: Annotated[
        list[str] | None, option("PATH", "A folder with its source code, such as a repository; repeatable.")
    ] = None,
    pattern: Annotated[list[str] | None, option("GLOB", "Files that are documents; repeatable.")] = None,
    exclude: Annotated[list[str] | None, option("GLOB", "Files that are not documents; repeatable.")] = None,
) -> None:
    """Create a project; --root is where its source code is."""
    new = NewProject(name, label, about, tuple(root or ()), tuple(pattern or ()), tuple(exclude or ()))
    with invocation.open() as memory, invocation.progress(memory):
        written = memory.documentation.create(new)
        tell_written(invocation, written)
    invocation.notify(f"See its documents with: quaid project show {written.id}")


@run_project.action("show")
def show_project(invocation: Invocation, name: _Name) -> None:
    """Show the documents of a project: which are out of date, and since which commit."""
    with invocation.open() as memory, invocation.progress(memory):
        project = memory.documentation.project(name)
        catalogue = memory.documentation.catalogue(project.name)
        found = memory.documentation.check_docs(catalogue.docs)
    invocation.respond(
        render_project(project, found),
        project=shape_of_project(project),
        docs=[shape_of_freshness(doc, freshness) for doc, freshness in found],
        missing=[path for _, path in catalogue.missing],
        absent_roots=[root for _, root in catalogue.absent],
    )
    notify_missing(invocation, catalogue)
    for problem in project.problems:
        invocation.notify(f"{project.path}: {problem}")


@run_project.action("find")
def find_project(invocation: Invocation, path: Annotated[Path, argument("PATH", "A file.")]) -> None:
    """Show the project that a file belongs to, and the documents that are about it."""
    with invocation.open() as memory, invocation.progress(memory):
        memory.documentation.check()  # the sources of documents are stored by their last check
        owner = memory.documentation.find(path.expanduser().absolute())
    if owner is None:
        raise BadInputError(f"{path} belongs to no project. Make one with: quaid project create NAME --root PATH")
    rows = [("path", owner.path), *(("document", doc) for doc in owner.docs)]
    text = ui.titled(ui.styled(owner.project.name, "bold"), rows)
    invocation.respond(text, project=shape_of_project(owner.project), path=owner.path, docs=owner.docs)


@run_project.action("discover")
def discover(
    invocation: Invocation,
    folder: Annotated[Path | None, argument("PATH", "A folder.")] = None,
    dry_run: DryRun = False,
) -> None:
    """Look for projects below a folder, and for new documents."""
    with invocation.open() as memory, invocation.progress(memory):
        found = memory.documentation.discover(folder.expanduser() if folder else None, dry_run=dry_run)
    projects = [(new.name, ", ".join(new.source_roots)) for new in found.projects]
    projects += [(name, f"projects/{name}/") for name in found.homes]
    counted, new_docs = (Counter(doc.project for doc in docs) for docs in (found.catalogue.docs, found.new))
    docs = [
        (name, ui.count(number, "document"), f"{new_docs[name]} new" if new_docs[name] else "")
        for name, number in counted.items()
    ]
    new_ids = [doc.id for doc in found.new]
    text = ui.lines(
        ui.section("Projects that would be made" if dry_run else "New projects", projects),
        ui.section("Documents", docs),
        ui.section("New documents", [(row,) for row in ui.first(new_ids, MAX_LISTED)]),
    )
    invocation.respond(
        text or "Nothing found.",
        dry_run=dry_run,
        projects=[json_object(new, "name", "label", "source_roots") for new in found.projects],
        homes=found.homes,
        docs=counted,
        new_docs=new_ids,
        missing=found.catalogue.missing,
        absent_roots=found.catalogue.absent,
    )
    notify_missing(invocation, found.catalogue)
    if found.new and not dry_run:
        invocation.notify("See how fresh they are with: quaid docs check")


@run_project.action("allow")
def allow_roots(invocation: Invocation, name: _Name) -> None:
    """Allow the source roots of a project to be read here, when PROJECT.md came from another machine."""
    with invocation.open() as memory:
        project = memory.documentation.project(name)
        roots = memory.documentation.allow(name)
    readable = [root.folder for root in roots if not root.problem]
    refused = [root for root in roots if root.problem]
    text = ui.lines(*(f"Documents are read from {folder}" for folder in readable))
    invocation.respond(
        text or f"{name} has no source root to read.",
        roots=readable,
        refused=[[root.written, root.problem] for root in refused],
    )
    for root in refused:
        invocation.notify(f"{root.written} {root.problem}. {next_step(project.name, root)}")


@run_project.action("archive")
def archive(invocation: Invocation, name: _Name) -> None:
    """Put a project aside; no file is removed."""
    _set_state(invocation, name, "archived")


@run_project.action("delete")
def delete(invocation: Invocation, name: _Name) -> None:
    """Mark a project as deleted; no file is removed."""
    _set_state(invocation, name, "deleted")


@run_project.action("activate")
def activate(invocation: Invocation, name: _Name) -> None:
    """Bring back a project that was archived or deleted."""
    _set_state(invocation, name, "active")


def _set_state(invocation: Invocation, name: str, state: State) -> None:
    with invocation.open() as memory, invocation.progress(memory):
        project = memory.documentation.project(name)
        tell_written(invocation, memory.documentation.registrar.set_state(project.name, state))


def shape_of_project(project: Project) -> dict[str, object]:
    """Return a row of the registry as JSON."""
    names = ("name", "label", "path", "state", "source_roots", "patterns", "exclude", "auto_index")
    documents = [doc.render() for doc in project.registered]
    return {**json_object(project, *names), "documents": documents, "problems": project.problems}


def render_project(project: Project, found: Sequence[tuple[Doc, Freshness]]) -> str:
    """Return a project with its documents, stale and true."""
    counted: Counter[str] = Counter(freshness.status for _, freshness in found)
    checked = counted["fresh"] + counted["stale"]
    named = [project.name] if project.name != project.label else []
    named += [project.state] if project.state != "active" else []
    head = [f"{ui.styled(project.label, 'bold')}  {', '.join(named)}".rstrip()]
    head += [f"  {root}" for root in project.source_roots]
    if checked:
        bar = ui.draw_bar(counted["fresh"], checked, BAR_WIDTH).ljust(BAR_WIDTH, "·")
        head.append(f"  {bar}  {counted['fresh']} of {checked} true to their sources")
    # There may be hundreds of records such as dated decisions, and none goes out of date.
    shown = [(doc, state) for doc, state in found if state.status != "no sources" or not is_record(doc.rel_path)]
    rows = []
    for doc, freshness in shown:
        path = doc.rel_path.removeprefix(f"{project.home}/")
        if len(path) > MAX_PATH:
            path = f"{path[: MAX_PATH // 3]}…{path[-MAX_PATH * 2 // 3 + 1 :]}"
        rows.append((symbol(freshness), path, day(freshness.updated), describe(freshness)))
    taken = sum(max((len(row[i]) for row in rows), default=0) + 2 for i in range(3))
    width = max(20, ui.line_width() - 2 - taken)
    left = len(found) - len(shown)
    records = "changelogs, dated decisions and the like; they tell how it was, and are not checked"
    return ui.lines(
        *head,
        ui.section("Documents", [(*row[:-1], ui.clipped(row[-1], width)) for row in rows]),
        f"  and {ui.count(left, 'record')}: {records}" if left else "",
        legend(freshness for _, freshness in shown),
    )
