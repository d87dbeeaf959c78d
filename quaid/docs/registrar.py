"""Changes of the registry: create, find and archive projects, register and confirm documents."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from quaid.capture.writer import WritePlan, Writer, WriteResult, make_key
from quaid.docs import registry
from quaid.docs.catalogue import SUFFIXES, Doc, find_project, is_doc_name, is_folder, registry_path_of
from quaid.docs.registry import Project, RegisteredDoc, State
from quaid.docs.source_roots import allow, check_roots
from quaid.docs.sources import sources_of
from quaid.errors import BadInputError
from quaid.history.repository import find_repository
from quaid.model import Edit, Message
from quaid.redaction import admit
from quaid.vault import files, markdown, notes

if TYPE_CHECKING:
    from quaid.open_vault import OpenVault

MARKS = ("PROJECT.md", "TOOLS.md", "AGENTS.md")
"""A folder with one of these, or with a repository, is a project."""
MAX_DEPTH = 3
"""Levels below the folder that is searched for projects."""
_MAX_ABOUT = 600
_BADGE = re.compile(r"^\s*(?:\[!\[|!\[|<)")


@dataclass(frozen=True, slots=True)
class NewProject:
    """A project to be created. Empty lists mean the defaults."""

    name: str
    label: str = ""
    about: str = ""
    source_roots: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


class Registrar:
    """Writes the registry of one vault."""

    def __init__(self, vault: OpenVault) -> None:
        self._root = vault.root
        self._writer = Writer(vault)
        self._layout = vault.layout

    def create(self, new: NewProject, *, allow_roots: bool = True, name: str | None = None) -> WriteResult:
        """Create a project with a PROJECT.md to fill in, and allow its roots to be read.

        Without `allow_roots` they must have been allowed before. `name` is its folder's, if that exists.

        Raises:
            BadInputError: there is one of that name, or the name, a source root or a pattern cannot be one.
        """
        if "/" in new.name or "\\" in new.name:
            raise BadInputError(f"{new.name!r} is a path. Give a name, and the folder with --root.")
        name = name or registry.name_of(new.name)
        for pattern in (*new.patterns, *new.exclude):
            if not registry.is_pattern(pattern):
                raise BadInputError(f"{pattern!r} is not a pattern. Write it as in a .gitignore.")
        folders = [self._check_root(root, is_allowing=allow_roots) for root in new.source_roots]
        allow(folders)
        roots = tuple(dict.fromkeys(map(_render_root, folders)))
        label = admit(new.label or new.name).text
        project = Project(name, label, roots, new.patterns or registry.PATTERNS, new.exclude, layout=self._layout)
        about = new.about or next((text for root in project.roots(self._root) if (text := readme_paragraph(root))), "")
        about = admit(about).text or registry.ABOUT.format(label=label)

        def plan() -> WritePlan:
            existing = files.read_note(self._root, project.path)
            if existing is not None:
                known = registry.parse_project(name, existing, self._layout)
                again = f"It is {known.state}; take it up again with: quaid project activate {name}"
                step = again if known.state != "active" else f"See it with: quaid project show {name}"
                raise BadInputError(f"There is a project {name} already. {step}")
            edit = registry.plan_create(project, about, datetime.now(UTC))
            return _plan(project, "made", label, edit, subject=f"project: create {name}")

        return self._writer.write(make_key("project create", project), plan).written

    def set_state(self, name: str, state: State) -> WriteResult:
        """Archive or delete a project, or make it active again. Its files stay where they are."""

        def plan() -> WritePlan:
            project, data = self._read(name)
            text = f"project {name} is {state}"
            verb = {"active": "take up", "archived": "archive", "deleted": "delete"}[state]
            edits = [] if project.state == state else [registry.plan_fields(project.path, data, {"state": state})]
            return _plan(project, "set", text, *edits, subject=f"project: {verb} {name}")

        return self._writer.write(make_key("project state", name, state), plan).written

    def register(self, path: Path, name: str, given: Sequence[str], registered_as: str | None = None) -> WriteResult:
        """Register a document of project `name`: in its frontmatter if it is in the vault, else in the registry. A
        renamed one takes over the row of its former name `registered_as`.

        Raises:
            BadInputError: it is not a file of the project, or not a document.
        """

        def plan() -> WritePlan:
            project, data = self._read(name)
            doc_path = registry_path_of(self._root, project, path)
            if doc_path is None or not path.is_file():
                where = f"{path} is not a file in the home or the source roots of {name}."
                raise BadInputError(f"{where} See them with: quaid project show {name}")
            if not is_doc_name(path.name):
                raise BadInputError(f"{path.name} is not a document. One is visible and ends in {', '.join(SUFFIXES)}.")
            sources = []  # as the registry stores them, if they are paths from the current folder
            for source in given:
                real = Path(source).expanduser().absolute().resolve()
                roots = (root.resolve() for root in project.roots(self._root))
                root = next((root for root in roots if real.exists() and real.is_relative_to(root)), None)
                sources.append(real.relative_to(root).as_posix() if root else source)
            edits = []
            hint = None
            known = registry.registered_doc(project, doc_path, registered_as)
            row = RegisteredDoc(doc_path, tuple(sources) or known.sources, known.true_at)
            if sources and path.resolve() == (self._root / doc_path).resolve():
                before = files.read_note(self._root, doc_path) or b""
                edits = [registry.plan_fields(doc_path, before, {"sources": sources})]
                row = RegisteredDoc(doc_path)
            elif sources and sources_of(doc_path, _read_text(path.parent, path.name)).is_stated:
                hint = f"{path.name} itself names what it is about, and its own word goes before the registry's."
            edits.append(registry.plan_document(project, row, data, registered_as))
            subject = f"docs: register {doc_path} in {name}"
            return _plan(project, "registered", row.render(), *edits, subject=subject, hint=hint)

        call = make_key("docs register", str(path), name, given, registered_as)
        return self._writer.write(call, plan).written

    def confirm(self, doc: Doc, commit: str, *, by_owner: bool) -> WriteResult:
        """Note that a document is true as of a commit of its sources, `by_owner` in the owner's name."""

        def plan() -> WritePlan:
            project, data = self._read(doc.project)
            if doc.is_in_vault:
                before = files.read_note(self._root, doc.rel_path) or b""
                edit = registry.plan_fields(doc.rel_path, before, {"true_at": commit})
            else:
                known = registry.registered_doc(project, doc.registry_path, doc.registered_as)
                edit = registry.plan_document(project, replace(known, true_at=commit), data, doc.registered_as)
            return _plan(project, "confirmed true", doc.id, edit, subject=f"docs: {doc.id} is true at {commit[:10]}")

        return self._writer.write(make_key("docs confirm", doc.id, commit), plan, by_owner=by_owner).written

    def adopt_homes(self, *, dry_run: bool) -> list[str]:
        """Create a PROJECT.md in each folder of projects/ that has documents and none; return their names."""
        found = [
            folder.name
            for folder in sorted((self._root / self._layout.place(registry.FOLDER)).glob("*/"))
            if not folder.name.startswith(".") and not (folder / registry.FILE).is_file() and any(folder.glob("*.md"))
        ]
        for name in found if not dry_run else ():
            self.create(NewProject(name), name=name)
        return found

    def find_projects(self, folder: Path, known: Sequence[Project]) -> Iterator[NewProject]:
        """Yield the folders from `folder` down that look like projects and belong to none; none is in another."""
        names = {project.name for project in known}
        home = Path.home().resolve()
        waiting = [(folder.absolute(), 0)]
        while waiting:
            path, depth = waiting.pop(0)
            # All that its owner has is in a folder around it: an agent that is led astray could read that as documents.
            holds_home = home.is_relative_to(path.resolve())
            repository = find_repository(path)
            is_own = repository is not None and not repository.prefix
            if holds_home or not (is_own or any((path / mark).is_file() for mark in MARKS)):
                with suppress(OSError):
                    below = sorted(entry for entry in path.iterdir() if entry.is_dir() and not entry.is_symlink())
                    visible = [(entry, depth + 1) for entry in below if not entry.name.startswith(".")]
                    waiting += visible if depth < MAX_DEPTH else []
            elif find_project(self._root, known, path) is None and not path.is_relative_to(self._root):
                base = "project"
                with suppress(BadInputError):  # a name without a letter that fits
                    base = registry.name_of(path.name)
                name = next(name for name in (base, *(f"{base}-{n}" for n in range(2, 1000))) if name not in names)
                names.add(name)
                yield NewProject(name, readme_title(path) or path.name, source_roots=(_render_root(path),))

    def _read(self, name: str) -> tuple[Project, bytes]:
        path = Project(name, name, layout=self._layout).path
        data = files.read_note(self._root, path) if "/" not in name else None
        if data is None:
            raise registry.unknown_project(name, registry.read_projects(self._root))
        return registry.parse_project(name, data, self._layout), data

    def _check_root(self, root: str, *, is_allowing: bool) -> Path:
        (found,) = check_roots(self._root, (str(Path(root).expanduser().absolute()),))
        problem = "" if found.can_be_allowed else found.problem
        if problem or not is_folder(found.folder):
            raise BadInputError(
                f"{root} {problem or 'is not a folder'}. Give the folder where the project's files are."
            )
        if found.problem and not is_allowing:
            step = f"quaid project create NAME --root {shlex.quote(str(found.folder))}"
            raise BadInputError(f"{root} {found.problem}. Whoever owns it can allow it with: {step}")
        return found.folder


def _plan(project: Project, outcome: str, text: str, *edits: Edit, subject: str, hint: str | None = None) -> WritePlan:
    changed = tuple(edit for edit in edits if edit.before != edit.after)
    written = WriteResult(project.name, project.path, outcome if changed else "unchanged", text, hint=hint)
    return WritePlan(written, changed, Message(subject, trailers=(("Quaid-Task", subject.partition(":")[0]),)))


def readme_title(folder: Path) -> str:
    """Return the title of a folder's PROJECT.md or README; empty if there is no heading."""
    for name in ("PROJECT.md", "README.md", "AGENTS.md"):
        text = _read_text(folder, name)
        found = re.search(r"^# +(.+)", text, re.MULTILINE)
        if found:
            return markdown.plain(found[1].rstrip().rstrip("#"))[:100]
    return ""


def readme_paragraph(folder: Path) -> str:
    """Return the first paragraph of a folder's README, as text; empty if there is none."""
    for section in markdown.sections(notes.split_body(_read_text(folder, "README.md"))[1]):
        for paragraph in section.text.split("\n\n"):
            if paragraph and not _BADGE.match(paragraph):
                line = " ".join(paragraph.split())
                return line if len(line) <= _MAX_ABOUT else f"{line[:_MAX_ABOUT].rsplit(' ', 1)[0]} …"
    return ""


def _read_text(folder: Path, name: str) -> str:
    if not files.is_file_in(folder, name):
        return ""
    return (files.read_note(folder, name, 100_000) or b"").decode("utf-8", "replace")


def _render_root(root: Path) -> str:
    """Return a folder as the registry stores it: relative to the home folder if possible, to fit other machines."""
    home = Path.home()
    return f"~/{root.relative_to(home).as_posix()}" if root.is_relative_to(home) and root != home else str(root)
