"""`quaid docs` and `quaid project`."""

import re
import shlex
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from quaid.cli import terminal as ui
from quaid.cli.change_output import tell_written, warn_left
from quaid.cli.commands import Actions
from quaid.cli.invocation import Invocation, error_shape, print_error
from quaid.cli.options import DryRun, Yes, argument, flag, option
from quaid.docs.catalogue import Catalogue, Doc
from quaid.docs.documentation import Documentation
from quaid.docs.freshness import PARTS, Freshness, Status, describe
from quaid.docs.registry import PATTERNS, STATES, Project
from quaid.docs.search import DocHit
from quaid.docs.updates import DocUpdate, OpenDoc
from quaid.errors import BadInputError, QuaidError, name_first
from quaid.history.proposal import Proposed
from quaid.recall.trace import list_degraded
from quaid.shapes import json_object
from quaid.text.quoting import neutralise, shorten

MAX_SHOWN = 900
"""Characters of a passage; `quaid docs read` has the rest."""
LINES_BEFORE = 2
MAX_DOUBTS = 3
"""Doubts that are shown of a stale document."""
MAX_LISTED = 20
_STATES: Mapping[Status, tuple[str, str, str]] = {
    "stale": ("○", "red", "stale"),
    "moved": ("◌", "yellow", "with moved sources"),
    "fresh": ("●", "green", "true"),
    "no sources": ("?", "dim", "unknown"),
    "no history": ("!", "yellow", "that cannot be checked"),
    "record": ("·", "dim", "not checked"),
}
"""The mark, the colour and the name of each status."""

_InProject = Annotated[str | None, option("NAME", "Only documents of this project.", "--project", "-p")]
_References = Annotated[
    list[str] | None, argument("[REF]…", "A document by id, path, file name or title; or a project.")
]
_Name = Annotated[str, argument("NAME", "A project.")]

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
    invocation.respond(
        render_docs(found) or "No document yet. Make a project with: quaid project create NAME --root PATH",
        docs=[shape_of_doc(doc, freshness) for doc, freshness in found],
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
    hits = [
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
    ]
    invocation.respond(
        ui.paragraphs(*(_render_hit(hit, fresh.get(hit.doc), query) for hit in found.hits)),
        query=query,
        degraded=[sentence.partition(":")[0] for sentence in found.degraded],
        took_ms=round(found.took_ms, 1),
        doubt=found.doubt,
        hits=hits,
    )
    if degraded := list_degraded(found.degraded, found.trace):
        invocation.notify(f"quaid: {' · '.join(degraded)}")
    if found.doubt and hits:
        invocation.notify(f"quaid: in doubt: {found.doubt}")
    if not hits:
        invocation.notify("Nothing found. See what there is with: quaid docs list")


def _render_hit(hit: DocHit, freshness: Freshness | None, query: str) -> str:
    """Return a passage with its place, and a warning when its document is stale. Of a long one the line that has most
    of the question's words is shown.
    """
    rows = neutralise(hit.text).splitlines(keepends=True)
    words = set(re.findall(r"\w{3,}", query.lower()))
    best = max(range(len(rows)), key=lambda number: sum(word in rows[number].lower() for word in words), default=0)
    if sum(map(len, rows[: best + 1])) > MAX_SHOWN:
        rows = ["…\n", *rows[max(0, best - LINES_BEFORE) :]]
    heading = neutralise(" > ".join(dict.fromkeys((hit.title, *hit.heading))))
    warning = _warning(freshness)
    return ui.lines(
        f"{ui.styled(f'{hit.score:.2f}', 'cyan')}  {ui.styled(heading, 'bold')}",
        ui.styled(f"{ui.INDENT}{hit.doc}:{hit.first_line}-{hit.last_line}", "dim"),
        f"{ui.INDENT}{ui.styled(f'! {warning}', 'yellow')}" if warning else "",
        "\n".join(f"{ui.INDENT}{line}".rstrip() for line in shorten("".join(rows), MAX_SHOWN).splitlines()),
    )


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
            ((_, freshness),) = memory.documentation.check([doc.id], doc.project)
            warning = _warning(freshness)
            shapes.append(json_object(doc, "id", "project", "file", warning=warning, text=neutralise(text)))
            if not invocation.as_json:
                sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
            if redacted:
                kinds = ", ".join(dict.fromkeys(redacted))
                invocation.notify(f"Secrets in it are not shown: {kinds}. Keep them out of documents.")
            if warning:
                invocation.notify(f"{doc.id} is {warning}")
    invocation.respond("", docs=shapes)


@run_docs.action("check")
def check_docs(
    invocation: Invocation,
    references: _References = None,
    project: _InProject = None,
    diff: Annotated[bool, flag("Show the changes as diffs.", "--diff")] = False,
) -> None:
    """Show which documents are stale, since which commit and why."""
    with invocation.open() as memory, invocation.progress(memory):
        documentation = memory.documentation
        catalogue = documentation.catalogue(project)
        found = documentation.check(references or (), project, catalogue)
        changes = documentation.changes([freshness for _, freshness in found if freshness.is_stale]) if diff else {}
    stale = sorted((pair for pair in found if pair[1].is_stale), key=lambda pair: (-pair[1].certainty, pair[0].id))
    moved = [doc.id for doc, freshness in found if freshness.status == "moved"]
    remarks: dict[str, list[str]] = {}
    for doc, freshness in found:
        for problem in freshness.problems:
            remarks.setdefault(problem, []).append(doc.id)
    invocation.respond(
        ui.paragraphs(
            count_docs(found) or "No document yet.",
            *(_render_stale(doc, freshness, changes.get(doc.id, {})) for doc, freshness in stale),
            f"Sources moved, nothing certain that they name: {', '.join(ui.first(moved, MAX_LISTED))}" if moved else "",
            ui.section("Remarks", [(docs[0] if len(docs) == 1 else "", each) for each, docs in remarks.items()]),
        ),
        docs=[
            shape_of_doc(doc, freshness) | ({"diffs": changes[doc.id]} if doc.id in changes else {})
            for doc, freshness in found
        ],
    )
    if not references:
        notify_missing(invocation, catalogue)


def _render_stale(doc: Doc, freshness: Freshness, diffs: Mapping[str, str]) -> str:
    """Return a stale document, what changed that it names and where it does, and the diffs."""
    assert freshness.true_at is not None
    rows = []
    for doubt in freshness.doubts[:MAX_DOUBTS]:
        commit = f"{ui.short(doubt.commit.id)} {doubt.commit.subject}" if doubt.commit else ""
        rows.append(f"    {doubt.symbol} {PARTS[doubt.part]} ({ui.styled(doubt.path, 'dim')}) {commit}".rstrip())
        if doubt.sentence:
            rows.append(ui.styled(f"      {doubt.line}: {ui.clipped(doubt.sentence, ui.line_width() - 12)}", "dim"))
    rows = rows or [f"    {finding.path}: {finding.why}" for finding in freshness.findings[:MAX_DOUBTS]]
    for path, diff in diffs.items():
        rows += [f"\n  {ui.styled(path, 'bold')}", *map(ui.coloured, diff.splitlines())]
    head = f"{mark(freshness)} {ui.styled(doc.id, 'bold')}"
    then = f"  true at {ui.short(freshness.true_at.id)} {freshness.true_at.when[:10]}, {describe(freshness)}"
    return "\n".join([head, then, *rows])


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
    shapes: list[dict[str, Any]] = []
    failed = False
    with invocation.open() as memory, invocation.progress(memory):
        documentation = memory.documentation
        if yes and not patch:
            documentation.finish_killed()
        for found in documentation.propose(references or (), project):
            if isinstance(found, str):
                print_error(found)
                failed = True
                continue
            stale, update = found
            edits = [
                {"find": stale.text[edit.start : edit.end], "replace": edit.new, "reason": edit.reason}
                for edit in update.edits
            ]
            names = ("summary", "model", "prompt")
            shape = json_object(update, *names, id=stale.doc.id, still_true=not edits, edits=edits)
            if yes and not patch and edits:
                shape |= _apply(invocation, documentation, stale, update)
            else:
                text = stale.render_patch(update)
                shape["patch"] = text or None
                if patch and not invocation.as_json:  # to git, a control character is one of the file's
                    ui.print_exactly((text.rstrip("\n") + "\n").encode("utf-8", "surrogateescape"))
                elif not invocation.as_json:
                    headers = ("diff --git", "index ", "--- ", "+++ ")
                    rows = [ui.coloured(row) for row in text.splitlines() if not row.startswith(headers)]
                    head = f"{ui.styled(stale.doc.id, 'bold')}: {update.summary or 'true as it is'}"
                    invocation.print("\n".join([head, *rows]))
            failed |= "error" in shape
            shapes.append(shape)
    if shapes or failed or invocation.as_json:
        invocation.respond("", docs=shapes)
    else:
        invocation.print("Nothing to do: no document is stale.")
    if not (yes or patch or all(shape["still_true"] for shape in shapes)):
        step = "Carry it out with: quaid docs update --yes (the model is not asked again)"
        invocation.notify(f"Nothing was changed. {step}")
    return int(failed)


def _apply(
    invocation: Invocation, documentation: Documentation, stale: OpenDoc, update: DocUpdate
) -> dict[str, object]:
    """Carry out an update, print the outcome and return it as JSON."""
    try:
        done = documentation.apply(stale, update)
    except QuaidError as error:
        print_error(f"{error}")
        return {"error": error_shape(error)}
    commit, branch = (None, done.branch) if isinstance(done, Proposed) else (done.commit, None)
    head = f"{ui.styled('Updated', 'green')}: {stale.doc.id}, {ui.count(len(update.edits), 'passage')}"
    if not invocation.as_json:
        invocation.print(ui.titled(head, ui.known(("commit", ui.short(commit)), ("branch", branch))))
    if branch:
        invocation.notify(f"Look at it and merge it: git -C {shlex.quote(str(stale.doc.folder))} merge {branch}")
    warn_left(invocation, () if isinstance(done, Proposed) else done.left)
    return {"commit": commit, "branch": branch}


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


def mark(freshness: Freshness) -> str:
    """One character for how fresh a document is."""
    character, style, _ = _STATES[freshness.status]
    return ui.styled(character, style)


def count_docs(found: Sequence[tuple[Doc, Freshness]]) -> str:
    """`8 documents: ○ 1 stale, ? 7 unknown`; empty if there are none."""
    counted = Counter(freshness.status for _, freshness in found)
    listed = [f"{sign} {counted[status]} {name}" for status, (sign, _, name) in _STATES.items() if counted[status]]
    return f"{ui.count(len(found), 'document')}: {', '.join(listed)}" if found else ""


def render_docs(found: Sequence[tuple[Doc, Freshness]]) -> str:
    """A line for each document: its sources, or why it may not be true; then how many of each there are."""
    rows = []
    for doc, freshness in found:
        about = describe(freshness)
        if freshness.status == "fresh":
            about = f"{name_first(freshness.sources, 2)} ({freshness.origin})"
        updated = (freshness.updated or "")[:10]
        rows.append((mark(freshness), ui.one_line(doc.id), updated, ui.clipped(about, ui.line_width() * 2 // 3)))
    return ui.lines(ui.columns(rows), count_docs(found))


def _warning(freshness: Freshness | None) -> str | None:
    """Return a sentence when a document is stale, with since when; None when it is not, or was not checked."""
    return describe(freshness) if freshness is not None and freshness.is_stale else None


def notify_missing(invocation: Invocation, catalogue: Catalogue) -> None:
    """Remark on registered documents and source roots that are missing, moved or refused."""
    for remark in catalogue.remarks:
        invocation.notify(remark)


def shape_of_doc(doc: Doc, freshness: Freshness) -> dict[str, object]:
    """Return a document and its freshness as JSON."""
    shown = ("path", "old_path", "kind", "why", "commits")
    changes = [json_object(finding, *shown) for finding in freshness.findings]
    return {
        **json_object(doc, "id", "project", "file", registered=doc.is_registered),
        **json_object(freshness, without=("doc", "findings"), warning=_warning(freshness), changes=changes),
    }


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
        own = [(doc, freshness) for doc, freshness in found if doc.project == project.name]
        shapes.append(shape_of_project(project) | {"docs": Counter(freshness.status for _, freshness in own)})
        documents = count_docs(own) if project.state == "active" else project.state
        rows.append((ui.styled(project.name, "bold"), documents, ", ".join(project.source_roots)))
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
    new = Project(name, label, tuple(root or ()), tuple(pattern or PATTERNS), tuple(exclude or ()))
    with invocation.open() as memory, invocation.progress(memory):
        written = memory.documentation.create(new, about)
        tell_written(invocation, written)
    invocation.notify(f"See its documents with: quaid project show {written.id}")


@run_project.action("show")
def show_project(invocation: Invocation, name: _Name) -> None:
    """Show the documents of a project: which are out of date, and since which commit."""
    with invocation.open() as memory, invocation.progress(memory):
        project = memory.documentation.project(name)
        catalogue = memory.documentation.catalogue(project.name)
        found = memory.documentation.check((), project.name, catalogue)
    named = [project.name] if project.name != project.label else []
    named += [project.state] if project.state != "active" else []
    found.sort(key=lambda pair: -pair[1].certainty if pair[1].is_stale else 0)
    invocation.respond(
        ui.lines(
            f"{ui.styled(project.label, 'bold')}  {', '.join(named)}".rstrip(),
            *(f"  {root}" for root in project.source_roots),
            render_docs(found),
        ),
        project=shape_of_project(project),
        docs=[shape_of_doc(doc, freshness) for doc, freshness in found],
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
    project, inside, docs = owner
    text = ui.titled(ui.styled(project.name, "bold"), [("path", inside), *(("document", doc) for doc in docs)])
    invocation.respond(text, project=shape_of_project(project), path=inside, docs=docs)


@run_project.action("discover")
def discover(
    invocation: Invocation,
    folder: Annotated[Path | None, argument("PATH", "A folder.")] = None,
    dry_run: DryRun = False,
) -> None:
    """Look for projects below a folder, and for new documents."""
    with invocation.open() as memory, invocation.progress(memory):
        found = memory.documentation.discover(folder.expanduser() if folder else None, dry_run=dry_run)
        catalogue = memory.documentation.catalogue()
        known = {freshness.doc for freshness in memory.documentation.known()}
    projects = [(new.name, ", ".join(new.source_roots) or f"{new.home}/") for new in found]
    new_docs = [doc.id for doc in catalogue.docs if doc.id not in known]
    text = ui.lines(
        ui.section("Projects that would be made" if dry_run else "New projects", projects),
        ui.section("New documents", [(row,) for row in ui.first(new_docs, MAX_LISTED)]),
    )
    invocation.respond(
        text or "Nothing new.",
        dry_run=dry_run,
        projects=[json_object(new, "name", "label", "source_roots") for new in found if new.source_roots],
        homes=[new.name for new in found if not new.source_roots],
        docs=Counter(doc.project for doc in catalogue.docs),
        new_docs=new_docs,
        missing=catalogue.missing,
        absent_roots=catalogue.absent,
    )
    notify_missing(invocation, catalogue)
    if new_docs and not dry_run:
        invocation.notify("See how fresh they are with: quaid docs check")


@run_project.action("allow")
def allow_roots(invocation: Invocation, name: _Name) -> None:
    """Allow the source roots of a project to be read here, when PROJECT.md came from another machine."""
    with invocation.open() as memory:
        roots = memory.documentation.allow(name)
        catalogue = memory.documentation.catalogue(name)
    readable = [root.folder for root in roots if not root.problem]
    invocation.respond(
        ui.lines(*(f"Documents are read from {folder}" for folder in readable))
        or f"{name} has no source root to read.",
        roots=readable,
        refused=[[root.written, root.problem] for root in roots if root.problem],
    )
    notify_missing(invocation, catalogue)


@run_project.action("archive")
def archive(invocation: Invocation, name: _Name) -> None:
    """Put a project aside; no file is removed."""
    with invocation.open() as memory:
        tell_written(invocation, memory.documentation.registrar.set_state(name, "archived"))


@run_project.action("delete")
def delete(invocation: Invocation, name: _Name) -> None:
    """Mark a project as deleted; no file is removed."""
    with invocation.open() as memory:
        tell_written(invocation, memory.documentation.registrar.set_state(name, "deleted"))


@run_project.action("activate")
def activate(invocation: Invocation, name: _Name) -> None:
    """Bring back a project that was archived or deleted."""
    with invocation.open() as memory:
        tell_written(invocation, memory.documentation.registrar.set_state(name, "active"))


def shape_of_project(project: Project) -> dict[str, object]:
    """Return a row of the registry as JSON."""
    documents = [doc.render() for doc in project.registered]
    return json_object(project, without=("registered", "layout"), path=project.path, documents=documents)
