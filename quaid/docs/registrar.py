"""Changes of the registry: create, find and archive projects, register and confirm documents."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from quaid.capture.writer import WritePlan, Writer, WriteResult, make_key
from quaid.docs import markup, registry
from quaid.docs.catalogue import SUFFIXES, Doc, find_project
from quaid.docs.registry import Project, RegisteredDoc, State
from quaid.docs.source_roots import allow, check_roots
from quaid.docs.sources import sources_of
from quaid.errors import BadInputError
from quaid.history.repository import find_repository
from quaid.model import Edit, Message
from quaid.open_vault import OpenVault
from quaid.redaction import admit
from quaid.text.quoting import shorten
from quaid.vault import files

MARKS = ("PROJECT.md", "TOOLS.md", "AGENTS.md")
"""A folder with one of these, or with a repository, is a project."""
MAX_DEPTH = 3
"""Levels below the folder that is searched for projects."""
_MAX_ABOUT = 300
README = tuple(f"README{ending}" for ending in SUFFIXES)


class Registrar:
    """Writes the registry of one vault. All raise BadInputError for a `name` that no project has."""

    def __init__(self, vault: OpenVault) -> None:
        self._root = vault.root
        self._writer = Writer(vault)
        self._layout = vault.layout

    def create(self, new: Project, about: str = "", *, allow_roots: bool = True, is_named: bool = False) -> WriteResult:
        """Create a project, described by `about` or the first sentence of its README, and allow its roots to be read.

        Without `allow_roots` they must have been allowed before. `is_named`: its name is that of its folder.

        Raises:
            BadInputError: there is one of that name, or the name, a source root or a pattern cannot be one.
        """
        name = new.name if is_named else registry.name_of(new.name)
        folders = [self._check_root(root, is_allowing=allow_roots) for root in new.source_roots]
        label = admit(new.label or new.name).text
        roots = tuple(dict.fromkeys(map(_render_root, folders)))
        project = replace(new, name=name, label=label, source_roots=roots, layout=self._layout)
        about = admit(about or next(filter(None, map(readme_sentence, folders)), "")).text
        edit = registry.plan_create(project, about or registry.ABOUT.format(label=label), datetime.now(UTC))
        if problems := registry.parse_project(name, edit.after or b"").problems:
            raise BadInputError(f"The project cannot be made: {'; '.join(problems)}.")
        allow(folders)

        def plan() -> WritePlan:
            if files.read_note(self._root, project.path) is not None:
                step = "See it with: quaid project list --all"
                raise BadInputError(f"There is a project {name} already. {step}")
            return _plan(project, "made", label, edit, subject=f"project: create {name}")

        return self._writer.write(make_key("project create", project), plan).written

    def set_state(self, name: str, state: State) -> WriteResult:
        """Archive or delete a project, or make it active again. Its files stay where they are."""

        def plan() -> WritePlan:
            project, data = self._read(name)
            edits = [] if project.state == state else [registry.plan_fields(project.path, data, {"state": state})]
            what = f"{project.name} is {state}"
            return _plan(project, "set", f"project {what}", *edits, subject=f"project: {what}")

        return self._writer.write(make_key("project state", name, state), plan).written

    def register(self, doc: Doc, given: Sequence[str]) -> WriteResult:
        """Register a document with its sources: in its frontmatter if it is in the vault, else in the registry."""
        project = registry.read_project(self._root, doc.project)
        roots = [root.resolve() for root in project.roots(self._root)]
        sources = []  # as the registry stores them, if they are paths from the current folder
        for source in given:
            real = Path(source).expanduser().absolute().resolve()
            root = next((root for root in roots if real.exists() and real.is_relative_to(root)), None)
            sources.append(real.relative_to(root).as_posix() if root else source)
        text = RegisteredDoc(doc.registry_path, tuple(sources)).render()
        is_stated = not doc.is_in_vault and sources_of(_read_text(doc.folder, doc.rel_path)).is_stated
        own = f"{doc.file.name} itself names what it is about, and its own word goes before the registry's."
        subject = f"docs: register {doc.registry_path} in {doc.project}"
        changes = {"sources": tuple(sources)} if sources else {}
        return self._write_doc(doc, "registered", text, subject, changes, hint=own if sources and is_stated else None)

    def confirm(self, doc: Doc, commit: str, *, by_owner: bool) -> WriteResult:
        """Note that a document is true as of a commit of its sources, `by_owner` in the owner's name."""
        subject = f"docs: {doc.id} is true at {commit[:10]}"
        return self._write_doc(doc, "confirmed true", doc.id, subject, {"true_at": commit}, by_owner=by_owner)

    def _write_doc(
        self,
        doc: Doc,
        outcome: str,
        text: str,
        subject: str,
        changes: Mapping[str, Any],
        *,
        by_owner: bool = False,
        hint: str | None = None,
    ) -> WriteResult:
        def plan() -> WritePlan:
            project, data = self._read(doc.project)
            if doc.is_in_vault:
                edit = registry.plan_fields(doc.id, files.read_note(self._root, doc.id) or b"", changes)
            else:
                edit = registry.plan_document(project, data, doc.registry_path, changes)
            return _plan(project, outcome, text, edit, subject=subject, hint=hint)

        return self._writer.write(make_key(subject, changes), plan, by_owner=by_owner).written

    def find_homes(self) -> list[Project]:
        """Return a project for each folder of projects/ that has notes and no PROJECT.md."""
        folders = sorted((self._root / self._layout.place(registry.FOLDER)).glob("[!.]*/"))
        homes = (folder for folder in folders if not (folder / registry.FILE).is_file() and any(folder.glob("*.md")))
        return [Project(home.name, layout=self._layout) for home in homes]

    def find_projects(self, folder: Path, more: Sequence[Project]) -> Iterator[Project]:
        """Yield the folders from `folder` down that look like projects and belong to none, none of them in another.
        Their names are those of no project of the registry nor of `more`.
        """
        known = [*registry.read_projects(self._root), *more]
        names = {project.name for project in known}
        for path in _find_marked(folder.absolute(), MAX_DEPTH):
            if find_project(self._root, known, path) is None and not path.is_relative_to(self._root):
                base = "project"
                with suppress(BadInputError):  # a name without a letter that fits
                    base = registry.name_of(path.name)
                name = next(name for name in (base, *(f"{base}-{n}" for n in range(2, 1000))) if name not in names)
                names.add(name)
                yield Project(name, path.name, source_roots=(_render_root(path),))

    def _read(self, name: str) -> tuple[Project, bytes]:
        project = registry.read_project(self._root, name)
        data = files.read_note(self._root, project.path) or b""
        return registry.parse_project(project.name, data, self._layout), data

    def _check_root(self, root: str, *, is_allowing: bool) -> Path:
        (found,) = check_roots(self._root, (str(Path(root).expanduser().absolute()),))
        if found.problem and not (found.can_be_allowed and is_allowing):
            step = "Give the folder where the project's files are."
            if found.can_be_allowed:
                create = f"quaid project create NAME --root {shlex.quote(str(found.folder))}"
                step = f"Its owner can allow it with: {create}"
            raise BadInputError(f"{root} {found.problem}. {step}")
        return found.folder


def _plan(project: Project, outcome: str, text: str, *edits: Edit, subject: str, hint: str | None = None) -> WritePlan:
    changed = tuple(edit for edit in edits if edit.before != edit.after)
    written = WriteResult(project.name, project.path, outcome if changed else "unchanged", text, hint=hint)
    return WritePlan(written, changed, Message(subject, trailers=(("Quaid-Task", subject.partition(":")[0]),)))


def _find_marked(folder: Path, depth: int) -> Iterator[Path]:
    """Yield the folders that look like projects, down to `depth` levels below one."""
    repository = find_repository(folder)
    is_own = repository is not None and not repository.prefix
    # All that its owner has is in a folder around it: an agent that is led astray could read that as documents.
    holds_home = Path.home().resolve().is_relative_to(folder.resolve())
    if not holds_home and (is_own or any((folder / mark).is_file() for mark in MARKS)):
        yield folder
        return
    below: list[Path] = []
    with suppress(OSError):
        below = sorted(entry for entry in folder.glob("[!.]*/") if not entry.is_symlink()) if depth else []
    for entry in below:
        yield from _find_marked(entry, depth - 1)


def readme_sentence(folder: Path) -> str:
    """Return the first sentence of prose in a folder's README; empty if there is none."""
    found = (markup.read_description(name, _read_text(folder, name)) for name in README)
    return shorten(next(filter(None, found), ""), _MAX_ABOUT)


def _read_text(folder: Path, name: str) -> str:
    if not files.is_file_in(folder, name):
        return ""
    return (files.read_note(folder, name, 100_000) or b"").decode("utf-8", "replace")


def _render_root(root: Path) -> str:
    """Return a folder as the registry stores it: relative to the home folder if possible, to fit other machines."""
    home = Path.home()
    return f"~/{root.relative_to(home).as_posix()}" if root.is_relative_to(home) and root != home else str(root)
