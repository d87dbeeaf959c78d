"""The projects in a session's context: a line for each, and the notes of the one that the session works in.

The number of documents and the stale ones are from their last check.
"""

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from quaid.errors import QuaidError, count
from quaid.local.doc_cache import DocChecks
from quaid.place import LOCAL_FILE, state_folder
from quaid.redaction import admit
from quaid.text.quoting import shorten
from quaid.vault import files
from quaid.vault.layout import Layout, list_project_files
from quaid.vault.markdown import text_of_note

if TYPE_CHECKING:
    from quaid.docs.registry import Project

MAX_PROJECTS = 12
"""Projects that are listed."""
MAX_STALE = 3
MAX_ABOUT = 140
MAX_NOTE = 100_000
"""Bytes that are read of a file."""
NOTES = ("TOOLS.md", "AGENTS.md")
"""The notes in a project's home that an agent reads."""


def read_projects(
    root: Path, place: Layout, cwd: str | None = None, most: int | None = MAX_PROJECTS
) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """Return a line for each active project, at most `most`, that of a session in the folder `cwd` first; and the notes
    of that project, as (path, text).
    """
    if not any(list_project_files(root, place)):
        return (), ()
    from quaid.docs.catalogue import find_owner  # only where there are projects
    from quaid.docs.registry import read_projects

    projects = [project for project in read_projects(root) if project.state == "active"]
    owner = None
    with suppress(OSError, ValueError):  # not a valid name of a folder
        owner = find_owner(root, projects, Path(cwd)) if cwd and cwd.startswith("/") else None
    here = owner[0] if owner is not None else None
    paths = [f"{here.home}/{note}" for note in NOTES] if here is not None else []
    notes = [(path, text_of_note(_read(root, path))) for path in paths]
    ordered = sorted(projects, key=lambda project: (project is not here, project.name))
    checked = _list_checked(root)
    lines: list[str] = []
    for project in ordered[:most]:
        docs = [(doc, status) for _, doc, status in checked if project.owns(doc)]
        old = [project.inner_path(doc) for doc, status in docs if status == "stale"]
        unknown = sum(status in {"no sources", "no history"} for _, status in docs)
        label = admit(project.label).text
        line = f"{project.name} ({label})" if label.casefold() != project.name else project.name
        line += ", where this session works" if project is here else ""
        counted = [count(len(docs), "doc")] if docs else []
        if old:
            shown = ", ".join(old[:MAX_STALE]) + (" …" if len(old) > MAX_STALE else "")
            counted.append(f"{len(old)} stale ({shown})")
        if unknown:
            counted.append(f"{unknown} unknown")
        about = ". ".join(filter(None, (_describe(root, project).rstrip("."), ", ".join(counted))))
        lines.append(f"{line}: {about}" if about else line)
    lines += [f"and {len(ordered) - len(lines)} more: quaid project list"] if len(ordered) > len(lines) else []
    return tuple(lines), tuple((path, text) for path, text in notes if text)


def _read(root: Path, path: str) -> str:
    """Return a file of a project without secrets and private parts; empty if there is none."""
    try:
        data = files.read_note(root, path, MAX_NOTE) if files.is_file_in(root, path) else None
    except OSError:  # no permission to read it
        data = None
    return admit((data or b"").decode("utf-8", "replace")).text


def _describe(root: Path, project: "Project") -> str:
    """Return the first sentence of prose in a PROJECT.md; empty where nobody has written one."""
    from quaid.docs import markup, registry

    about = markup.read_description(project.path, text_of_note(_read(root, project.path)))
    return "" if about == registry.ABOUT.format(label=project.label) else shorten(about, MAX_ABOUT)


def _list_checked(root: Path) -> list[tuple[float, str, str]]:
    """Return (minus its certainty, id, status) of each document as it was last checked, the most certain first."""
    checked = []
    with suppress(QuaidError):
        for doc, (_, found) in DocChecks(state_folder(root) / LOCAL_FILE).read().items():
            with suppress(ValueError, TypeError, KeyError):  # it cannot be read
                shape = json.loads(found)
                checked.append((-shape["certainty"], doc, shape["status"]))
    return sorted(checked)
