"""The projects in a session's context: a line for each, and the notes of the one that the session works in.

Parsing YAML and looking for secrets take ten times as long as everything else, so what is shown is stored in the state
folder until a file changes. The number of documents and the stale ones are from their last check.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from quaid.errors import QuaidError, count
from quaid.local import state_files
from quaid.local.doc_cache import DocChecks
from quaid.place import LOCAL_FILE, VERSION, state_folder, write_private
from quaid.redaction import admit
from quaid.text.quoting import shorten
from quaid.vault import files
from quaid.vault.layout import Layout, list_project_files
from quaid.vault.markdown import text_of_note

FILE = "projects.json"
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
    homes = {path.parent.name: place.place(f"projects/{path.parent.name}") for path in list_project_files(root, place)}
    if not homes:
        return (), ()
    known = _read_files(root, homes)
    projects = {name: known[name] for name in sorted(homes) if known[name]["state"] == "active"}
    here = _find_owner(root, projects, homes, cwd) if cwd and cwd.startswith("/") else None
    notes = [(f"{homes[here]}/{note}", text) for note, text in known[here]["notes"].items()] if here else []
    ordered = sorted(projects, key=lambda name: (name != here, name))
    checked = _list_checked(root)
    lines: list[str] = []
    for name in ordered[:most]:
        project, own = projects[name], (f"{name}:", f"{homes[name]}/")
        docs = [(doc, status) for _, doc, status in checked if doc.startswith(own)]
        old = [doc.removeprefix(own[0]).removeprefix(own[1]) for doc, status in docs if status == "stale"]
        unknown = sum(status in {"no sources", "no history"} for _, status in docs)
        line = f"{name} ({project['label']})" if project["label"].casefold() != name else name
        line += ", where this session works" if name == here else ""
        counted = [count(len(docs), "doc")] if docs else []
        if old:
            shown = ", ".join(old[:MAX_STALE]) + (" …" if len(old) > MAX_STALE else "")
            counted.append(f"{len(old)} stale ({shown})")
        if unknown:
            counted.append(f"{unknown} unknown")
        about = ". ".join(filter(None, (project["about"].rstrip("."), ", ".join(counted))))
        lines.append(f"{line}: {about}" if about else line)
    lines += [f"and {len(ordered) - len(lines)} more: quaid project list"] if len(ordered) > len(lines) else []
    return tuple(lines), tuple((path, text) for path, text in notes if text)


def _read_files(root: Path, homes: Mapping[str, str]) -> dict[str, Any]:
    """Return what is shown of each project, by its name: what is stored, if no file has changed since."""
    key: list[object] = [VERSION, str(root)]
    for path in (f"{home}/{name}" for home in homes.values() for name in ("PROJECT.md", *NOTES)):
        with suppress(OSError):
            found = os.lstat(root / path)
            key.append([path, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino])
    file = state_folder(root) / FILE
    with suppress(OSError, ValueError, KeyError, TypeError):
        stored = json.loads(state_files.read(file))
        if stored["key"] == key:
            return dict(stored["projects"])
    projects = {name: _read_project(root, name, home) for name, home in homes.items()}
    with suppress(OSError, QuaidError):
        write_private(file, json.dumps({"key": key, "projects": projects}))
    return projects


def _read_project(root: Path, name: str, home: str) -> dict[str, Any]:
    """Read the part of a project that is shown; `about` is the first sentence of prose in its PROJECT.md."""
    from quaid.docs import markup, registry

    texts = {}
    for note in ("PROJECT.md", *NOTES):
        with suppress(OSError):  # no permission to read it
            if files.is_file_in(root, f"{home}/{note}"):
                texts[note] = (files.read_note(root, f"{home}/{note}", MAX_NOTE) or b"").decode("utf-8", "replace")
    project = registry.parse_project(name, texts.get("PROJECT.md", "").encode())
    safe = {note: text_of_note(admit(text).text) for note, text in texts.items()}
    about = markup.read_description("PROJECT.md", safe.pop("PROJECT.md", ""))
    return {
        "label": admit(project.label).text,
        "state": project.state if "PROJECT.md" in texts else "unreadable",
        "roots": list(project.source_roots),
        "about": "" if about == registry.ABOUT.format(label=project.label) else shorten(about, MAX_ABOUT),
        "notes": safe,
    }


def _find_owner(root: Path, projects: Mapping[str, Any], homes: Mapping[str, str], cwd: str) -> str | None:
    """Return the project with the innermost folder around `cwd`, also in another worktree of its repository."""
    from quaid.docs.source_roots import check_roots  # these are imported only where there are projects
    from quaid.history.repository import find_twin

    # Checked each time: what is stored does not know what may be read today.
    roots = [(r.folder, name) for name in projects for r in check_roots(root, projects[name]["roots"]) if not r.problem]
    folders = [*roots, *((root / homes[name], name) for name in projects)]
    with suppress(OSError, ValueError):  # not a valid name of a folder
        for is_twin in (False, True):
            here = find_twin(Path(cwd), (folder for folder, _ in roots)) if is_twin else Path(cwd)
            if here is None:
                break
            inside = f"{os.path.realpath(here)}/"
            real = ((os.path.realpath(folder), name) for folder, name in folders)
            around = [(-len(folder), name) for folder, name in real if inside.startswith(f"{folder}/")]
            if around:
                return min(around)[1]  # of two with the same root the first, as everywhere
    return None


def _list_checked(root: Path) -> list[tuple[float, str, str]]:
    """Return (minus its certainty, id, status) of each document as it was last checked, the most certain first."""
    checked = []
    with suppress(QuaidError):
        for doc, (_, found) in DocChecks(state_folder(root) / LOCAL_FILE).read().items():
            with suppress(ValueError, TypeError, KeyError):  # it cannot be read
                shape = json.loads(found)
                checked.append((-shape["certainty"], doc, shape["status"]))
    return sorted(checked)
