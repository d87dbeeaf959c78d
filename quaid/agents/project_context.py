"""The projects in a session's context: a line for each, and the notes of the one that the session works in.

Parsing YAML and removing secrets take ten times as long as everything else, so the result is cached until the file
changes. The number of documents and the stale ones are from their last check.
"""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from quaid.errors import QuaidError
from quaid.local.doc_cache import DocChecks, ProjectNotes
from quaid.place import LOCAL_FILE, VERSION, state_folder
from quaid.redaction import admit
from quaid.text.quoting import shorten
from quaid.vault import files
from quaid.vault.layout import Layout, list_project_files
from quaid.vault.markdown import text_of_note

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
    names = sorted(homes)
    if not names:
        return (), ()
    cache = _FileCache(root)
    found = {name: cache.read(f"{homes[name]}/PROJECT.md", project=name) for name in names}
    projects = {name: project for name, project in found.items() if project and project["state"] == "active"}
    here = _find_owner(root, projects, homes, cwd) if cwd and cwd.startswith("/") else None
    notes = [(path, cache.read(path)) for path in (f"{homes[here]}/{note}" for note in NOTES if here)]
    cache.save(names)
    ordered = sorted(projects, key=lambda name: (name != here, name))
    checked = _list_checked(root, place)
    lines: list[str] = []
    for name in ordered[:most]:
        project, docs = projects[name], sorted(checked.get(name, ()))
        old = [path for _, path, status in docs if status == "stale"]
        unknown = sum(status in {"no sources", "no history"} for *_, status in docs)
        line = f"{name} ({project['label']})" if project["label"].casefold() != name else name
        line += ", where this session works" if name == here else ""
        counted = [f"{len(docs)} {'doc' if len(docs) == 1 else 'docs'}"] if docs else []
        if old:
            shown = ", ".join(old[:MAX_STALE]) + (" …" if len(old) > MAX_STALE else "")
            counted.append(f"{len(old)} stale ({shown})")
        if unknown:
            counted.append(f"{unknown} unknown")
        about = ". ".join(filter(None, (project["about"].rstrip("."), ", ".join(counted))))
        lines.append(f"{line}: {about}" if about else line)
    lines += [f"and {len(ordered) - len(lines)} more: quaid project list"] if len(ordered) > len(lines) else []
    return tuple(lines), tuple((path, text) for path, text in notes if text)


class _FileCache:
    """A cache of parsed files by their bytes. If it cannot be stored, files are parsed each time."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._store = ProjectNotes(state_folder(root) / LOCAL_FILE)
        self._known: dict[str, tuple[str, str]] = {}
        self._new: dict[str, tuple[str, str]] = {}
        with suppress(QuaidError):
            self._known = self._store.read()

    def read(self, path: str, project: str = "") -> Any:
        """Return the PROJECT.md of `project` at `path`, or the text of another note; None if there is no such file."""
        try:
            data = files.read_note(self._root, path, MAX_NOTE) if files.is_file_in(self._root, path) else None
        except OSError:  # no permission to read it
            data = None
        if data is None:
            return None
        key = hashlib.sha256(f"{VERSION} {self._root}\0".encode() + data).hexdigest()
        known = self._known.get(path)
        if known is not None and known[0] == key:
            with suppress(ValueError):
                return json.loads(known[1])
        text = data.decode("utf-8", "replace")
        parsed = _read_project(project, text) if project else _without_secrets(text)
        self._new[path] = key, json.dumps(parsed)
        return parsed

    def save(self, names: Sequence[str]) -> None:
        """Store what is new, and remove the projects that are not among `names`."""
        gone = [path for path in self._known if path.split("/")[-2] not in names]
        if self._new or gone:
            with suppress(QuaidError):
                self._store.store(self._new, gone)


def _read_project(name: str, text: str) -> dict[str, Any]:
    """Parse the part of a PROJECT.md that is shown; `about` is its first sentence of prose."""
    from quaid.docs import markup, registry

    project = registry.parse_project(name, text.encode())
    about = markup.read_description("PROJECT.md", _without_secrets(text))
    return {
        "label": _without_secrets(project.label),
        "state": project.state,
        "roots": list(project.source_roots),
        "about": "" if about == registry.ABOUT.format(label=project.label) else shorten(about, MAX_ABOUT),
    }


def _without_secrets(text: str) -> str:
    return text_of_note(admit(text).text)


def _find_owner(root: Path, projects: Mapping[str, Any], homes: Mapping[str, str], cwd: str) -> str | None:
    """Return the project with the innermost folder around `cwd`, also in another worktree of its repository."""
    from quaid.docs.source_roots import check_roots  # these are imported only where there are projects
    from quaid.history.repository import find_twin

    # Checked each time: the cache does not know what may be read today.
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


def _list_checked(root: Path, place: Layout) -> dict[str, list[tuple[float, str, str]]]:
    """Return the documents of each project as they were last checked: (minus its certainty, path, status)."""
    checked: dict[str, list[tuple[float, str, str]]] = {}
    with suppress(QuaidError):
        for doc, (_, found) in DocChecks(state_folder(root) / LOCAL_FILE).read().items():
            with suppress(ValueError, TypeError, KeyError):  # it cannot be read
                shape = json.loads(found)
                at_home = place.project_of(doc)
                project, path = place.inner_path(doc).split("/", 2)[1:] if at_home else doc.split(":", 1)
                checked.setdefault(project, []).append((-shape["certainty"], path, shape["status"]))
    return checked
