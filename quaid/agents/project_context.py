"""What a session is told of the projects before it starts: a line each, and the notes of the one it works in.

It has a moment: reading YAML and looking for secrets take ten times as long as all else, so what was made of a file is
kept until the file is another. How many documents there are and which are stale is what the last look at them found.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quaid.errors import QuaidError
from quaid.model import VERSION
from quaid.place import DOCS_FILE, LOCAL_FILE, state_folder
from quaid.vault import files, markdown
from quaid.vault.markdown import text_of_note

MAX_PROJECTS = 12
"""Projects with a line of their own."""
MAX_STALE = 3
MAX_ABOUT = 140
MAX_NOTE = 100_000
"""Bytes of a file that are read."""
NOTES = ("TOOLS.md", "AGENTS.md")
"""What an agent reads that works in a project, beside PROJECT.md in its home."""
_SENTENCE = re.compile(r"(?<=[.!?])\s")


@dataclass(frozen=True, slots=True)
class ProjectContext:
    """`lines` are one for each project, the one that a session works in first; `notes` are (path, text) of that one."""

    lines: tuple[str, ...] = ()
    notes: tuple[tuple[str, str], ...] = ()


def read_projects(root: Path, cwd: str | None = None, most: int | None = MAX_PROJECTS) -> ProjectContext:
    """The active projects of the vault at `root`, `most` of them with a line of their own (None: all), for a session
    that works in the folder `cwd`.
    """
    names = sorted(path.parent.name for path in root.glob("projects/*/PROJECT.md"))
    if not names:
        return ProjectContext()
    made = _Made(root)
    found = {name: made.of(f"projects/{name}/PROJECT.md", _Reading(root, name)) for name in names}
    projects = {name: project for name, project in found.items() if project and project["state"] == "active"}
    here = _find_owner(root, projects, cwd) if cwd and cwd.startswith("/") else None
    notes = [(path, made.of(path, _safe)) for path in (f"projects/{here}/{note}" for note in NOTES) if here]
    made.keep(names)
    ordered = sorted(projects, key=lambda name: (name != here, name))
    docs, stale = _count_docs(root)
    lines = [
        _line(name, projects[name], docs[name], stale.get(name, ()), is_here=name == here) for name in ordered[:most]
    ]
    lines += [f"and {len(ordered) - len(lines)} more: quaid project list"] if len(ordered) > len(lines) else []
    return ProjectContext(tuple(lines), tuple((path, text) for path, text in notes if text))


class _Made:
    """What was made of files, by their bytes. Where it cannot be kept it is made anew each time."""

    def __init__(self, root: Path) -> None:
        from quaid.local.project_notes import ProjectNotes

        self._root = root
        self._store = ProjectNotes(state_folder(root) / LOCAL_FILE)
        self._known: dict[str, tuple[str, str]] = {}
        self._new: dict[str, tuple[str, str]] = {}
        with suppress(QuaidError):
            self._known = self._store.read()

    def of(self, path: str, make: Callable[[str], Any]) -> Any:
        try:
            data = files.read_note(self._root, path, MAX_NOTE) if files.is_file_in(self._root, path) else None
        except OSError:  # not ours to read
            data = None
        if data is None:
            return None
        key = hashlib.sha256(f"{VERSION} {self._root}\0".encode() + data).hexdigest()
        known = self._known.get(path)
        if known is not None and known[0] == key:
            with suppress(ValueError):
                return json.loads(known[1])
        made = make(data.decode("utf-8", "replace"))
        self._new[path] = key, json.dumps(made)
        return json.loads(self._new[path][1])

    def keep(self, names: Sequence[str]) -> None:
        """Keep what is new, and let go of the projects that are not among `names`."""
        gone = [path for path in self._known if path.split("/")[1] not in names]
        if self._new or gone:
            with suppress(QuaidError):
                self._store.keep(self._new, gone)


class _Reading:
    """Reads one PROJECT.md."""

    def __init__(self, root: Path, name: str) -> None:
        self._root, self._name = root, name

    def __call__(self, text: str) -> dict[str, Any]:
        from quaid.docs import registry

        project = registry.parse_project(self._name, text.encode())
        about = _about(text)
        return {
            "label": _safe(project.label),
            "state": project.state,
            "roots": list(project.source_roots),
            "about": "" if about == registry.ABOUT.format(label=project.label) else about,
        }


def _safe(text: str) -> str:
    """What a file says, without secrets."""
    from quaid.redaction import admit

    return text_of_note(admit(text).text)


def _about(text: str) -> str:
    """The first sentence below the title."""
    section = next(iter(markdown.sections(_safe(text))), None)
    if section is None or len(section.heading) > 1:
        return ""
    sentence = " ".join(_SENTENCE.split(section.text.split("\n\n")[0], maxsplit=1)[0].split())
    return sentence if len(sentence) <= MAX_ABOUT else f"{sentence[:MAX_ABOUT].rsplit(' ', 1)[0]} …"


def _find_owner(root: Path, projects: Mapping[str, Any], cwd: str) -> str | None:
    """The project that a folder belongs to, also one in another worktree of its repository."""
    from quaid.docs.roots import judge

    # Judged anew each time: what is kept of PROJECT.md says nothing about what may be read today.
    judged = {name: judge(root, project["roots"]) for name, project in projects.items()}
    readable = {name: {"roots": [str(r.folder) for r in roots if not r.problem]} for name, roots in judged.items()}
    return _find_among(root, readable, cwd)


def _find_among(root: Path, projects: Mapping[str, Any], cwd: str) -> str | None:
    try:
        return _innermost(root, projects, cwd) or _find_by_worktree(root, projects, cwd)
    except (OSError, ValueError):  # no folder's name
        return None


def _innermost(root: Path, projects: Mapping[str, Any], cwd: str) -> str | None:
    here = os.path.realpath(cwd)
    folders = (
        (name, folder) for name, project in projects.items() for folder in [root / "projects" / name, *project["roots"]]
    )
    real = ((name, os.path.realpath(folder)) for name, folder in folders)
    around = [(-len(folder), name) for name, folder in real if f"{here}/".startswith(f"{folder}/")]
    return min(around)[1] if around else None  # of two with the same root the first, as everywhere


def _find_by_worktree(root: Path, projects: Mapping[str, Any], cwd: str) -> str | None:
    from quaid.history.repository import find_twin

    twin = find_twin(Path(cwd), (Path(folder) for project in projects.values() for folder in project["roots"]))
    return None if twin is None else _innermost(root, projects, str(twin))


def _count_docs(root: Path) -> tuple[Counter[str], dict[str, list[str]]]:
    """How many documents each project has, and which of them were stale when they were last checked."""
    from quaid.index import database, documents
    from quaid.index.reader import IndexReader
    from quaid.local.doc_checks import DocChecks

    docs: Counter[str] = Counter()
    stale: dict[str, list[str]] = {}
    reader = IndexReader(state_folder(root) / DOCS_FILE)
    with suppress(database.DatabaseError):
        index = reader.open()
        docs.update(project or "" for project in (documents.list_projects(index) if index else {}).values())
    reader.close()
    with suppress(QuaidError):
        for doc, (_, found) in DocChecks(state_folder(root) / LOCAL_FILE).read().items():
            with suppress(ValueError, TypeError, KeyError):  # what cannot be read tells nothing
                if json.loads(found)["status"] == "stale":
                    project, path = doc.split("/", 2)[1:] if doc.startswith("projects/") else doc.split(":", 1)
                    stale.setdefault(project, []).append(path)
    return docs, stale


def _line(name: str, project: Mapping[str, Any], docs: int, stale: Sequence[str], *, is_here: bool) -> str:
    label = f" ({project['label']})" if project["label"].casefold() != name else ""
    here = ", where this session works" if is_here else ""
    told = [project["about"].rstrip(".")] if project["about"] else []
    if docs or stale:
        shown = ", ".join(stale[:MAX_STALE]) + (" …" if len(stale) > MAX_STALE else "")
        counted = [f"{docs} {'doc' if docs == 1 else 'docs'}"] if docs else []
        told.append(", ".join([*counted, *([f"{len(stale)} stale ({shown})"] if stale else [])]))
    return f"{name}{label}{here}" + (f": {'. '.join(told)}" if told else "")
