"""`quaid project`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from quaid.cli.change_output import tell_written
from quaid.cli.commands import Actions
from quaid.cli.docs import day, legend, notify_missing, shape_of_freshness, symbol
from quaid.cli.invocation import Invocation
from quaid.cli.options import DryRun, argument, flag, option
from quaid.cli.terminal import clipped, columns, count, draw_bar, first, line_width, lines, section, styled, titled
from quaid.docs.freshness import describe
from quaid.docs.registrar import NewProject
from quaid.docs.registry import STATES, State
from quaid.docs.source_roots import next_step
from quaid.docs.sources import is_record
from quaid.errors import BadInputError
from quaid.shapes import json_object

if TYPE_CHECKING:
    from quaid.docs.catalogue import Doc
    from quaid.docs.freshness import Freshness
    from quaid.docs.registry import Project

MAX_SHOWN = 20
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
        documents = count(counted.total(), "document") if project.state == "active" else project.state
        stale = f"{counted['stale']} stale" if counted["stale"] else ""
        rows.append((styled(project.name, "bold"), documents, stale, ", ".join(project.source_roots)))
    invocation.respond(columns(rows) or "No project yet.", projects=shapes)
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
    text = titled(styled(owner.project.name, "bold"), rows)
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
        (name, count(number, "document"), f"{new_docs[name]} new" if new_docs[name] else "")
        for name, number in counted.items()
    ]
    new_ids = [doc.id for doc in found.new]
    text = lines(
        section("Projects that would be made" if dry_run else "New projects", projects),
        section("Documents", docs),
        section("New documents", [(row,) for row in first(new_ids, MAX_SHOWN)]),
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
    text = lines(*(f"Documents are read from {folder}" for folder in readable))
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
    head = [f"{styled(project.label, 'bold')}  {', '.join(named)}".rstrip()]
    head += [f"  {root}" for root in project.source_roots]
    if checked:
        bar = draw_bar(counted["fresh"], checked, BAR_WIDTH).ljust(BAR_WIDTH, "·")
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
    width = max(20, line_width() - 2 - taken)
    left = len(found) - len(shown)
    records = "changelogs, dated decisions and the like; they tell how it was, and are not checked"
    return lines(
        *head,
        section("Documents", [(*row[:-1], clipped(row[-1], width)) for row in rows]),
        f"  and {count(left, 'record')}: {records}" if left else "",
        legend(freshness for _, freshness in shown),
    )
