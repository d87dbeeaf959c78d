"""The projects in a session's context: a line for each, and the notes of the one that the session works in.

Parsing YAML and removing secrets take ten times as long as everything else, so the result is cached until the file
changes. The number of documents and the stale ones are from their last check.
"""

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from quaid.errors import QuaidError
from quaid.index import documents
from quaid.index.sqlite import database
from quaid.index.sqlite.database import IndexReader
from quaid.local.doc_cache import DocChecks, ProjectNotes
from quaid.place import DOCS_FILE, LOCAL_FILE, VERSION, state_folder
from quaid.redaction import admit
from quaid.vault import files, markdown
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
_SENTENCE = re.compile(r"(?<=[.!?])\s")


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
    docs, stale = _count_docs(root, place)
    lines: list[str] = []
    for name in ordered[:most]:
        project, old = projects[name], stale.get(name, ())
        line = f"{name} ({project['label']})" if project["label"].casefold() != name else name
        line += ", where this session works" if name == here else ""
        counted = [f"{docs[name]} {'doc' if docs[name] == 1 else 'docs'}"] if docs[name] else []
        if old:
            shown = ", ".join(old[:MAX_STALE]) + (" …" if len(old) > MAX_STALE else "")
            counted.append(f"{len(old)} stale ({shown})")
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
    """Parse the part of a PROJECT.md that is shown; `about` is the first sentence below the title."""
    from quaid.docs import registry

    project = registry.parse_project(name, text.encode())
    section = next(iter(markdown.sections(_without_secrets(text))), None)
    paragraph = section.text.split("\n\n")[0] if section is not None and len(section.heading) <= 1 else ""
    about = " ".join(_SENTENCE.split(paragraph, maxsplit=1)[0].split())
    if len(about) > MAX_ABOUT:
        about = f"{about[:MAX_ABOUT].rsplit(' ', 1)[0]} …"
    return {
        "label": _without_secrets(project.label),
        "state": project.state,
        "roots": list(project.source_roots),
        "about": "" if about == registry.ABOUT.format(label=project.label) else about,
    }


def _without_secrets(text: str) -> str:
    return text_of_note(admit(text).text)


def _find_owner(root: Path, projects: Mapping[str, Any], homes: Mapping[str, str], cwd: str) -> str | None:
    """Return the project that owns a folder, also in another worktree of its repository."""
    from quaid.docs.source_roots import check_roots  # these are imported only where there are projects
    from quaid.history.repository import find_twin

    # Checked each time: the cache does not know what may be read today.
    checked = {name: check_roots(root, project["roots"]) for name, project in projects.items()}
    folders = {name: [str(r.folder) for r in roots if not r.problem] for name, roots in checked.items()}
    around = {name: [str(root / homes[name]), *listed] for name, listed in folders.items()}
    try:
        if found := _innermost(around, cwd):
            return found
        twin = find_twin(Path(cwd), (Path(folder) for listed in folders.values() for folder in listed))
        return None if twin is None else _innermost(around, str(twin))
    except (OSError, ValueError):  # not a valid name of a folder
        return None


def _innermost(folders: Mapping[str, Sequence[str]], cwd: str) -> str | None:
    """Return the project with the innermost folder around `cwd`."""
    here = os.path.realpath(cwd)
    real = ((name, os.path.realpath(folder)) for name, listed in folders.items() for folder in listed)
    around = [(-len(folder), name) for name, folder in real if f"{here}/".startswith(f"{folder}/")]
    return min(around)[1] if around else None  # of two with the same root the first, as everywhere


def _count_docs(root: Path, place: Layout) -> tuple[Counter[str], dict[str, list[str]]]:
    """Return how many documents each project has, and those that were stale when they were last checked."""
    docs: Counter[str] = Counter()
    stale: dict[str, list[str]] = {}
    reader = IndexReader(state_folder(root) / DOCS_FILE)
    with suppress(database.DatabaseError):
        index = reader.open()
        docs.update(project or "" for project in (documents.list_projects(index) if index else {}).values())
    reader.close()
    with suppress(QuaidError):
        for doc, (_, found) in DocChecks(state_folder(root) / LOCAL_FILE).read().items():
            with suppress(ValueError, TypeError, KeyError):  # it cannot be read
                if json.loads(found)["status"] == "stale":
                    at_home = place.project_of(doc)
                    project, path = place.inner_path(doc).split("/", 2)[1:] if at_home else doc.split(":", 1)
                    stale.setdefault(project, []).append(path)
    return docs, stale
