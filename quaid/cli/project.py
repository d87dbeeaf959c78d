"""`quaid project`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quaid.cli.change_output import tell_written
from quaid.cli.docs_output import day, legend, say_missing, shape_of_freshness, symbol
from quaid.cli.invocation import Invocation, fields
from quaid.cli.terminal import clipped, columns, count, draw_bar, line_width, lines, section, styled, titled
from quaid.docs.freshness import describe
from quaid.errors import BadInputError, UsageError

if TYPE_CHECKING:
    from quaid.docs.catalogue import Doc
    from quaid.docs.documentation import Documentation, ProjectDiscovery
    from quaid.docs.freshness import Freshness
    from quaid.docs.registry import Project

ACTIONS = ("list", "create", "show", "find", "discover", "allow", "archive", "delete", "activate")
_STATES = {"archive": "archived", "delete": "deleted", "activate": "active"}
_WITHOUT_NAME = ("list", "discover")
MAX_SHOWN = 20
BAR_WIDTH = 24
MAX_PATH = 42


def run_project(
    ctx: typer.Context,
    action: Annotated[str, typer.Argument(metavar="ACTION", help=", ".join(ACTIONS))] = "list",
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME|PATH]", help="A project, a file (find) or a folder (discover).")
    ] = None,
    label: Annotated[str, typer.Option(metavar="TEXT", help="create: its name for people.")] = "",
    about: Annotated[str, typer.Option(metavar="TEXT", help="create: what it is, in a sentence or two.")] = "",
    root: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="create: a folder with its source code, such as a repository; repeatable."),
    ] = None,
    pattern: Annotated[
        list[str] | None, typer.Option(metavar="GLOB", help="create: files that are documents; repeatable.")
    ] = None,
    exclude: Annotated[
        list[str] | None, typer.Option(metavar="GLOB", help="create: files that are not documents; repeatable.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="list: also archived and deleted projects.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="discover: show what would be created.")] = False,
) -> None:
    r"""Manage projects and their documents. A project is the frontmatter of a note, projects/NAME/PROJECT.md.

    \b
    list       the projects, with their documents and how many are stale
    create NAME
               create a project; --root is where its source code is
    show NAME  its documents: which are out of date, and since which commit
    find PATH  which project a file belongs to, and which documents are about it
    discover [PATH]
               look for projects below a folder, and for new documents
    allow NAME allow its source roots to be read here, when PROJECT.md came from another machine
    archive, delete, activate NAME
               change the state of a project; no file is removed

    Examples:
      quaid project create quaid --root ~/code/quaid
      quaid project show quaid
      quaid project find ~/code/quaid/src/index.py
      quaid project discover ~/code --dry-run
    """
    if action not in ACTIONS:
        raise UsageError(f"There is no action {action!r}. Give one of {', '.join(ACTIONS)}.")
    if name is None and action not in _WITHOUT_NAME:
        raise UsageError(f"quaid project {action} needs a {'file' if action == 'find' else 'name'}.")
    invocation: Invocation = ctx.obj
    with invocation.open() as memory, invocation.progress(memory):
        documentation = memory.documentation
        if action == "list":
            list_projects(invocation, documentation, every=every)
        elif action == "discover":
            discover_projects(invocation, documentation, name, dry_run=dry_run)
        elif action == "create":
            from quaid.docs.registrar import NewProject

            new = NewProject(name or "", label, about, tuple(root or ()), tuple(pattern or ()), tuple(exclude or ()))
            written = documentation.create(new)
            tell_written(invocation, written)
            invocation.notify(f"See its documents with: quaid project show {written.id}")
        elif action in _STATES:
            project = documentation.project(name or "")
            tell_written(invocation, documentation.registrar.set_state(project.name, _STATES[action]))  # type: ignore[arg-type]
        else:
            act = {"show": show_project, "find": find_project, "allow": allow_roots}[action]
            act(invocation, documentation, name or "")


def list_projects(invocation: Invocation, documentation: Documentation, *, every: bool) -> None:
    """Show the projects, with `every` also those that were put aside."""
    from quaid.docs.registry import STATES

    projects = documentation.projects(STATES if every else ("active",))
    found = documentation.check() if projects else []
    counted: dict[str, Counter[str]] = {
        p.name: Counter(freshness.status for doc, freshness in found if doc.project == p.name) for p in projects
    }
    shape = [{**shape_of_project(project), "docs": counted[project.name]} for project in projects]
    rows = [
        (
            styled(project.name, "bold"),
            project.state if project.state != "active" else count(counted[project.name].total(), "document"),
            f"{counted[project.name]['stale']} stale" if counted[project.name]["stale"] else "",
            ", ".join(project.source_roots),
        )
        for project in projects
    ]
    invocation.respond(columns(rows) or "No project yet.", projects=shape)
    if not projects:
        invocation.notify("Make one with: quaid project create NAME --root PATH")


def shape_of_project(project: Project) -> dict[str, object]:
    """A row of the registry as JSON."""
    names = ("name", "label", "path", "state", "source_roots", "patterns", "exclude", "auto_index")
    documents = [doc.render() for doc in project.registered]
    return {**fields(project, *names), "documents": documents, "problems": project.problems}


def show_project(invocation: Invocation, documentation: Documentation, name: str) -> None:
    """Show how fresh each document of a project is, and since which commit it is not."""
    project = documentation.project(name)
    catalogue = documentation.catalogue(project.name)
    found = documentation.check_docs(catalogue.docs)
    invocation.respond(
        render_project(project, found),
        project=shape_of_project(project),
        docs=[shape_of_freshness(doc, freshness) for doc, freshness in found],
        missing=[path for _, path in catalogue.missing],
        absent_roots=[root for _, root in catalogue.absent],
    )
    say_missing(invocation, catalogue)
    for problem in project.problems:
        invocation.notify(f"{project.path}: {problem}")


def render_project(project: Project, found: Sequence[tuple[Doc, Freshness]]) -> str:
    """A project with its documents, stale and true."""
    from quaid.docs.sources import is_record

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


def allow_roots(invocation: Invocation, documentation: Documentation, name: str) -> None:
    """Let the source roots of a project be read on this machine."""
    from quaid.docs.source_roots import next_step

    project = documentation.project(name)
    roots = documentation.allow(name)
    readable = [str(root.folder) for root in roots if not root.problem]
    refused = [root for root in roots if root.problem]
    text = lines(*(f"Documents are read from {folder}" for folder in readable))
    invocation.respond(
        text or f"{name} has no source root to read.",
        roots=readable,
        refused=[[root.written, root.problem] for root in refused],
    )
    for root in refused:
        invocation.notify(f"{root.written} {root.problem}. {next_step(project.name, root)}")


def find_project(invocation: Invocation, documentation: Documentation, path: str) -> None:
    """Show the project that a file belongs to, and the documents that are about it."""
    documentation.check()  # the sources of documents are stored by their last check
    owner = documentation.find(Path(path).expanduser().absolute())
    if owner is None:
        raise BadInputError(f"{path} belongs to no project. Make one with: quaid project create NAME --root PATH")
    rows = [("path", owner.path), *(("document", doc) for doc in owner.docs)]
    invocation.respond(
        titled(styled(owner.project.name, "bold"), rows),
        project=shape_of_project(owner.project), path=owner.path, docs=owner.docs,
    )  # fmt: skip


def discover_projects(
    invocation: Invocation, documentation: Documentation, folder: str | None, *, dry_run: bool
) -> None:
    """Look for projects below a folder, and for new documents."""
    found = documentation.discover(Path(folder).expanduser() if folder else None, dry_run=dry_run)
    invocation.respond(
        render_discovered(found, dry_run=dry_run),
        dry_run=dry_run,
        projects=[fields(new, "name", "label", "source_roots") for new in found.projects],
        homes=found.homes,
        docs=Counter(doc.project for doc in found.catalogue.docs),
        new_docs=[doc.id for doc in found.new],
        missing=found.catalogue.missing,
        absent_roots=found.catalogue.absent,
    )
    say_missing(invocation, found.catalogue)
    if found.new and not dry_run:
        invocation.notify("See how fresh they are with: quaid docs check")


def render_discovered(found: ProjectDiscovery, *, dry_run: bool) -> str:
    """The projects and documents that were found."""
    title = "Projects that would be made" if dry_run else "New projects"
    projects = [(new.name, ", ".join(new.source_roots)) for new in found.projects]
    projects += [(name, f"projects/{name}/") for name in found.homes]
    new = Counter(doc.project for doc in found.new)
    docs = [
        (name, count(number, "document"), f"{new[name]} new" if new[name] else "")
        for name, number in Counter(doc.project for doc in found.catalogue.docs).items()
    ]
    listed = [(doc.id,) for doc in found.new[:MAX_SHOWN]]
    listed += [(f"and {len(found.new) - MAX_SHOWN} more",)] if len(found.new) > MAX_SHOWN else []
    parts = (section(title, projects), section("Documents", docs), section("New documents", listed))
    return lines(*parts) or "Nothing found."
