"""`quaid project`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quaid.cli.docs_freshness import day, legend, say_missing, shape_of_freshness, symbol
from quaid.cli.invocation import Invocation
from quaid.cli.terminal import clipped, columns, count, draw_bar, line_width, section, styled
from quaid.cli.write_output import tell_written
from quaid.docs.freshness import describe
from quaid.errors import BadInputError, UsageError

if TYPE_CHECKING:
    from quaid.docs.catalogue import Doc
    from quaid.docs.documentation import Discovery, Documentation
    from quaid.docs.freshness import Freshness
    from quaid.docs.registry import Project

ACTIONS = ("list", "create", "show", "find", "discover", "allow", "archive", "delete", "activate")
_STATES = {"archive": "archived", "delete": "deleted", "activate": "active"}
_WITHOUT_NAME = ("list", "discover")
MOST_SHOWN = 20
BAR = 24
LONGEST_PATH = 42


def run_project(
    ctx: typer.Context,
    action: Annotated[str, typer.Argument(metavar="ACTION", help=", ".join(ACTIONS))] = "list",
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME|PATH]", help="A project; a file (find); a folder (discover).")
    ] = None,
    label: Annotated[str, typer.Option(metavar="TEXT", help="create: how it is called.")] = "",
    about: Annotated[str, typer.Option(metavar="TEXT", help="create: what it is, in a sentence or two.")] = "",
    root: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="create: a folder with its files, as a repository; repeatable."),
    ] = None,
    pattern: Annotated[
        list[str] | None, typer.Option(metavar="GLOB", help="create: which of them are documents; repeatable.")
    ] = None,
    exclude: Annotated[
        list[str] | None, typer.Option(metavar="GLOB", help="create: which are not; repeatable.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="list: archived and deleted ones as well.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="discover: show what would be made.")] = False,
) -> int:
    r"""The projects whose documents are kept true: each is the frontmatter of a note, projects/NAME/PROJECT.md.

    \b
    list       the projects, with their documents and how many are stale
    create NAME
               make one; --root is where its source code is
    show NAME  its documents: how fresh each is, and since which commit it is not
    find PATH  which project a file belongs to, and which documents are about it
    discover [PATH]
               look for projects below a folder, and for new documents
    allow NAME let its source roots be read on this machine, where PROJECT.md came from elsewhere
    archive, delete, activate NAME
               put it aside, or take it up again; no file is removed

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
            return _list(invocation, documentation, every=every)
        if action == "discover":
            return _discover(invocation, documentation, name, dry_run=dry_run)
        assert name is not None
        if action == "show":
            return _show(invocation, documentation, name)
        if action == "find":
            return _find(invocation, documentation, name)
        if action == "allow":
            return _allow(invocation, documentation, name)
        if action == "create":
            from quaid.docs.registrar import NewProject

            new = NewProject(name, label, about, tuple(root or ()), tuple(pattern or ()), tuple(exclude or ()))
            written = documentation.create(new)
            tell_written(invocation, written)
            invocation.say(f"See its documents with: quaid project show {written.id}")
        else:
            project = documentation.project(name)
            tell_written(invocation, documentation.registrar.set_state(project.name, _STATES[action]))  # type: ignore[arg-type]
    return 0


def _list(invocation: Invocation, documentation: Documentation, *, every: bool) -> int:
    from quaid.docs.registry import STATES

    projects = documentation.projects(STATES if every else ("active",))
    found = documentation.check() if projects else []
    counted: dict[str, Counter[str]] = {
        p.name: Counter(freshness.status for doc, freshness in found if doc.project == p.name) for p in projects
    }
    shape = [{**shape_of_project(project), "docs": dict(counted[project.name])} for project in projects]
    invocation.tell(lambda: _render_list(projects, counted), projects=shape)
    if not projects:
        invocation.say("Make one with: quaid project create NAME --root PATH")
    return 0


def _render_list(projects: Sequence[Project], counted: Mapping[str, Mapping[str, int]]) -> str:
    rows = [
        (
            styled(project.name, "bold"),
            project.state if project.state != "active" else count(sum(counted[project.name].values()), "document"),
            f"{counted[project.name]['stale']} stale" if counted[project.name].get("stale") else "",
            ", ".join(project.source_roots),
        )
        for project in projects
    ]
    return columns(rows) or "No project yet."


def shape_of_project(project: Project) -> dict[str, object]:
    """A row of the registry as JSON."""
    return {
        "name": project.name,
        "label": project.label,
        "path": project.path,
        "state": project.state,
        "source_roots": list(project.source_roots),
        "patterns": list(project.patterns),
        "exclude": list(project.exclude),
        "auto_index": project.auto_index,
        "documents": [doc.render() for doc in project.registered],
        "problems": list(project.problems),
    }


def _show(invocation: Invocation, documentation: Documentation, name: str) -> int:
    project = documentation.project(name)
    catalogue = documentation.catalogue(project.name)
    found = documentation.check_docs(catalogue.docs)
    shape = {
        "project": shape_of_project(project),
        "docs": [shape_of_freshness(doc, freshness) for doc, freshness in found],
        "missing": [path for _, path in catalogue.missing],
        "absent_roots": [root for _, root in catalogue.absent],
    }
    invocation.tell(lambda: _render_show(project, found), **shape)
    say_missing(invocation, catalogue)
    for problem in project.problems:
        invocation.say(f"{project.path}: {problem}")
    return 0


def _render_show(project: Project, found: Sequence[tuple[Doc, Freshness]]) -> str:
    counted: Counter[str] = Counter(freshness.status for _, freshness in found)
    checked = counted["fresh"] + counted["stale"]
    named = [project.name] if project.name != project.label else []
    named += [project.state] if project.state != "active" else []
    head = [f"{styled(project.label, 'bold')}  {', '.join(named)}".rstrip()]
    head += [f"  {root}" for root in project.source_roots]
    if checked:
        bar = draw_bar(counted["fresh"], checked, BAR).ljust(BAR, "·")
        head.append(f"  {bar}  {counted['fresh']} of {checked} true to their sources")
    told = [(doc, freshness) for doc, freshness in found if not _is_left_out(doc, freshness)]
    rows = [
        (
            symbol(freshness),
            _short(doc.rel_path.removeprefix(f"{project.home}/")),
            day(freshness.updated),
            describe(freshness),
        )
        for doc, freshness in told
    ]
    left = len(found) - len(told)
    kinds = "changelogs, dated decisions and the like; they tell how it was, and are not checked"
    more = f"  and {count(left, 'record')}: {kinds}" if left else ""
    lines = [_fitted(row, rows, line_width() - 2) for row in rows]
    return "\n".join(
        filter(None, [*head, section("Documents", lines), more, legend(freshness for _, freshness in told)])
    )


def _is_left_out(doc: Doc, freshness: Freshness) -> bool:
    """Whether a document is a record such as a dated decision: there may be hundreds, and none goes out of date."""
    from quaid.docs.sources import is_record

    return freshness.status == "no sources" and is_record(doc.rel_path)


def _short(path: str) -> str:
    """A path whose middle is left out where it is long."""
    return path if len(path) <= LONGEST_PATH else f"{path[: LONGEST_PATH // 3]}…{path[-LONGEST_PATH * 2 // 3 + 1 :]}"


def _fitted(row: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> Sequence[str]:
    """A row of columns whose last cell ends where the terminal does."""
    taken = sum(max(len(other[i]) for other in rows) + 2 for i in range(len(row) - 1))
    return (*row[:-1], clipped(row[-1], max(20, width - taken)))


def _allow(invocation: Invocation, documentation: Documentation, name: str) -> int:
    from quaid.docs.source_roots import next_step

    project = documentation.project(name)
    roots = documentation.allow(name)
    readable = [str(root.folder) for root in roots if not root.problem]
    refused = [root for root in roots if root.problem]
    told = (
        "\n".join(f"Documents are read from {folder}" for folder in readable) or f"{name} has no source root to read."
    )
    invocation.tell(lambda: told, roots=readable, refused=[[root.written, root.problem] for root in refused])
    for root in refused:
        invocation.say(f"{root.written} {root.problem}. {next_step(project.name, root)}")
    return 0


def _find(invocation: Invocation, documentation: Documentation, path: str) -> int:
    documentation.check()  # what documents are about is kept by their last check
    owner = documentation.find(Path(path).expanduser().absolute())
    if owner is None:
        raise BadInputError(f"{path} belongs to no project. Make one with: quaid project create NAME --root PATH")
    rows = [("path", owner.path), *(("document", doc) for doc in owner.docs)]
    body = "\n".join(f"  {line}" for line in columns(rows).splitlines())
    invocation.tell(
        lambda: f"{styled(owner.project.name, 'bold')}\n{body}",
        project=shape_of_project(owner.project),
        path=owner.path,
        docs=list(owner.docs),
    )
    return 0


def _discover(invocation: Invocation, documentation: Documentation, folder: str | None, *, dry_run: bool) -> int:
    found = documentation.discover(Path(folder).expanduser() if folder else None, dry_run=dry_run)
    shape = {
        "dry_run": dry_run,
        "projects": [
            {"name": new.name, "label": new.label, "source_roots": list(new.source_roots)} for new in found.projects
        ],
        "homes": list(found.homes),
        "docs": dict(Counter(doc.project for doc in found.catalogue.docs)),
        "new_docs": [doc.id for doc in found.new],
        "missing": [list(pair) for pair in found.catalogue.missing],
        "absent_roots": [list(pair) for pair in found.catalogue.absent],
    }
    invocation.tell(lambda: _render_discovered(found, dry_run=dry_run), **shape)
    say_missing(invocation, found.catalogue)
    if found.new and not dry_run:
        invocation.say("See how fresh they are with: quaid docs check")
    return 0


def _render_discovered(found: Discovery, *, dry_run: bool) -> str:
    title = "Projects that would be made" if dry_run else "New projects"
    projects = [(new.name, ", ".join(new.source_roots)) for new in found.projects]
    projects += [(name, f"projects/{name}/") for name in found.homes]
    new = Counter(doc.project for doc in found.new)
    docs = [
        (name, count(number, "document"), f"{new[name]} new" if new[name] else "")
        for name, number in Counter(doc.project for doc in found.catalogue.docs).items()
    ]
    listed = [(doc.id,) for doc in found.new[:MOST_SHOWN]]
    listed += [(f"and {len(found.new) - MOST_SHOWN} more",)] if len(found.new) > MOST_SHOWN else []
    parts = [section(title, projects), section("Documents", docs), section("New documents", listed)]
    return "\n".join(filter(None, parts)) or "Nothing found."
