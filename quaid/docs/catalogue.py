"""The catalogue of documents: the files that are documents, the one that is meant, the project of a file.

Documents stay where they are: in the project's home in the vault, or in one of its source roots.
"""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from quaid.docs.registry import Project
from quaid.docs.source_roots import SourceRoot, check_roots, next_step
from quaid.errors import BadInputError, GitError, GitMissingError
from quaid.history.source_repository import SourceRepository, open_repository
from quaid.model import Kind
from quaid.redaction import admit
from quaid.vault import files, frontmatter, headings, layout, markdown, notes

SUFFIXES = (".md", ".markdown", ".mdx", ".rst", ".txt")
_HEAD_BYTES = 20_000
"""The bytes of a document that are read for its title."""
_SKIPPED = frozenset(
    {"node_modules", "__pycache__", "site-packages", "venv", "dist", "build", "target", "vendor", "third_party"}
)
"""Folders of a source root that hold other people's documents, or none."""


@dataclass(frozen=True, slots=True)
class Doc:
    """A document: `folder / rel_path` on the disk. `id` is its path in the vault, or `project:path` in a source root.

    `sources` and `true_at` are what the registry says of it; `registered_as` is how it was called when that was
    written, where that is not its name any more.
    """

    id: str
    project: str
    folder: Path
    rel_path: str
    is_in_vault: bool = False
    is_registered: bool = False
    sources: tuple[str, ...] = ()
    true_at: str | None = None
    registered_as: str | None = None

    @property
    def file(self) -> Path:
        return self.folder / self.rel_path

    @property
    def registry_path(self) -> str:
        """The path that the registry has for it, or would have."""
        return self.id if self.is_in_vault else self.id.partition(":")[2]

    def evidence(self, data: bytes) -> str:
        """Names the document as it is: what is decided about it rests on that."""
        return hashlib.sha256(self.id.encode("utf-8", "surrogateescape") + b"\0" + data).hexdigest()


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The documents of the projects asked for. `missing` are registered ones without a file, as (project, path);
    `absent` the source roots that are not on this machine, `refused` those that may not be read.
    """

    docs: tuple[Doc, ...] = ()
    missing: tuple[tuple[str, str], ...] = ()
    absent: tuple[tuple[str, str], ...] = ()
    refused: tuple[tuple[str, SourceRoot], ...] = ()

    @property
    def remarks(self) -> list[str]:
        """Sentences about registered documents and source roots that are missing, moved or refused."""
        moved = [
            f"{doc.registered_as} is {doc.registry_path} now. Note that with: "
            f"quaid docs register {shlex.quote(str(doc.file))} --project {doc.project}"
            for doc in self.docs
            if doc.registered_as
        ]
        missing = [
            f"{headings.one_line(path)} is registered and no longer exists. "
            f"Take it out of projects/{project}/PROJECT.md."
            for project, path in self.missing
        ]
        absent = [
            f"The source root {root} of {project} is not on this machine: its documents are not seen."
            for project, root in self.absent
        ]
        refused = [
            f"The documents of {project} cannot be checked: its source root {root.written} {root.problem}. "
            f"{next_step(project, root)}"
            for project, root in self.refused
        ]
        return [*moved, *missing, *absent, *refused]


def list_docs(vault: Path, projects: Sequence[Project]) -> Catalogue:
    """The documents of `projects`: those in their homes, those that their patterns find, and the registered ones.

    A file in two source roots belongs to the inner one. A registered document that was renamed is followed.
    """
    docs: dict[Path, Doc] = {}
    missing: list[tuple[str, str]] = []
    absent: list[tuple[str, str]] = []
    refused: list[tuple[str, SourceRoot]] = []
    for project in projects:
        roots = check_roots(vault, project.source_roots)
        absent += [(project.name, root.written) for root in roots if not root.problem and not is_folder(root.folder)]
        refused += [(project.name, root) for root in roots if root.problem]
        lister = _Lister(vault, project, _name_roots(roots))
        found = {doc.id: doc for doc in (*lister.list_home(), *lister.list_roots())}
        registered = {row.path: lister.find(row.path) for row in project.registered}
        gone = [path for path, doc in registered.items() if doc is None]
        registered |= lister.follow_renames(gone)
        taken = {doc.id for path, doc in registered.items() if doc is not None and path not in gone}
        for row in project.registered:
            doc = registered[row.path]
            if doc is None or (doc.registered_as and doc.id in taken):
                missing.append((project.name, row.path))
            else:
                found.pop(doc.id, None)
                found[doc.id] = replace(doc, is_registered=True, sources=row.sources, true_at=row.true_at)
        for doc in found.values():
            known = docs.get(doc.file)
            if known is None or len(known.folder.parts) < len(doc.folder.parts):
                docs[doc.file] = doc
    ordered = sorted(docs.values(), key=lambda doc: (doc.project, not doc.is_in_vault, doc.rel_path))
    return Catalogue(tuple(ordered), tuple(missing), tuple(absent), tuple(refused))


def find_docs(docs: Sequence[Doc], references: Sequence[str], project: str | None = None) -> list[Doc]:
    """The documents that are meant: by the name of a project all of its own, or of `project` alone.

    Raises:
        BadInputError: a reference means none, or several.
    """
    found: list[Doc] = []
    for reference in references:
        of_project = [doc for doc in docs if doc.project == reference] if project is None else []
        found += of_project or [find_doc(docs, reference)]
    return list(dict.fromkeys(found))


def find_doc(docs: Sequence[Doc], reference: str) -> Doc:
    """The one document that is meant by an id, a path, a file name or a title.

    Raises:
        BadInputError: none is, or several are.
    """
    path = Path(reference).expanduser()
    real = path.resolve() if is_file(path) else None
    tests = (
        lambda doc: reference in (doc.id, doc.registry_path),
        lambda doc: real is not None and doc.file.resolve() == real,
        lambda doc: f"/{doc.rel_path}".endswith(f"/{reference}") or f"/{doc.rel_path}".endswith(f"/{reference}.md"),
        lambda doc: title_of(doc).casefold() == reference.casefold(),
    )
    for test in tests:
        found = [doc for doc in docs if test(doc)]
        if len(found) == 1:
            return found[0]
        if found:
            listed = ", ".join(doc.id for doc in found[:5])
            raise BadInputError(f"{reference!r} may mean {listed}. Give one of these.")
    raise BadInputError(f"There is no document {reference!r}. See them with: quaid docs list")


def title_of(doc: Doc) -> str:
    """Return a document's title, without secrets: the one in its head, else its first heading, else its file's name."""
    text, _ = notes.decode(files.read_note(doc.folder, doc.rel_path, _HEAD_BYTES) or b"", _HEAD_BYTES)
    fields = frontmatter.parse(text).fields
    titles = (fields[key].strip() for key in ("title", "label") if isinstance(fields.get(key), str))
    headings = (markdown.plain(line) for line in notes.split_body(text)[1].splitlines() if line.startswith("# "))
    title = next(filter(None, titles), None) or next(headings, "")
    return admit(title).text or Path(doc.rel_path).stem


def find_project(vault: Path, projects: Sequence[Project], path: Path) -> tuple[Project, str] | None:
    """The project that owns a file, and the file's path within its home or source root. The innermost root wins."""
    real = _real(path)
    best: tuple[int, Project, str] | None = None
    for project in projects:
        for folder in (vault / project.home, *project.roots(vault)):
            root = _real(folder)
            if real.is_relative_to(root) and (best is None or len(root.parts) > best[0]):
                best = len(root.parts), project, real.relative_to(root).as_posix()
    return (best[1], best[2]) if best else None


def registry_path_of(vault: Path, project: Project, path: Path) -> str | None:
    """Return the path that the registry of `project` has for a file; None if it lies outside of the project."""
    real = _real(path)
    for name, root in _name_roots(check_roots(vault, project.source_roots)).items():
        if real.is_relative_to(_real(root)):
            rel_path = real.relative_to(_real(root)).as_posix()
            return f"{name}/{rel_path}" if name else rel_path
    return real.relative_to(_real(vault)).as_posix() if real.is_relative_to(_real(vault)) else None


def is_file(path: Path) -> bool:
    """Return whether `path` is a file; never raises."""
    return os.path.isfile(path)  # noqa: PTH113 - which a name too long to be one does not make fail


def is_folder(path: Path) -> bool:
    """Return whether `path` is a folder; never raises."""
    return os.path.isdir(path)  # noqa: PTH112 - which a name too long to be one does not make fail


def is_doc_name(name: str) -> bool:
    """Return whether a file of this name is a document: visible, with one of `SUFFIXES`."""
    return name.lower().endswith(SUFFIXES) and not name.startswith((".", "~", "#"))


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _name_roots(roots: Sequence[SourceRoot]) -> Mapping[str, Path]:
    """The source roots that are here, by the name their documents' ids begin with: empty where there is only one."""
    named: dict[str, SourceRoot] = {}
    for root in roots:
        name = root.folder.name if len(roots) > 1 else ""
        number = 1
        while name in named:
            number += 1
            name = f"{root.folder.name}-{number}"
        named[name] = root
    return {name: root.folder for name, root in named.items() if not root.problem and is_folder(root.folder)}


class _Lister:
    """Lists the documents of one project; `roots` are the source roots that are here, by name."""

    def __init__(self, vault: Path, project: Project, roots: Mapping[str, Path]) -> None:
        self._vault = vault
        self._project = project
        self._roots = roots

    @cached_property
    def _layout(self) -> layout.Layout:
        return layout.Layout.of_vault(self._vault)

    def list_home(self) -> Iterator[Doc]:
        """The documents in the project's home."""
        for folder, folders, names in os.walk(self._vault / self._project.home):
            folders[:] = sorted(name for name in folders if not layout.skips_folder(name))
            for name in sorted(filter(is_doc_name, names)):
                path = Path(folder, name)
                rel_path = path.relative_to(self._vault).as_posix()
                is_own = path.is_file() and not path.is_symlink() and not layout.is_conflict_copy(rel_path)
                if is_own and files.is_unicode(rel_path):
                    yield self._in_vault(rel_path)

    def list_roots(self) -> Iterator[Doc]:
        """The documents in its source roots that its patterns find."""
        if not self._project.auto_index or not self._roots:
            return
        import pathspec

        # `*.md` means the files of the root itself, as in a shell, and not those of all folders, as in .gitignore.
        anchored = [text if text.startswith(("/", "!", "**")) else f"/{text}" for text in self._project.patterns]
        wanted = pathspec.GitIgnoreSpec.from_lines(anchored)
        unwanted = pathspec.GitIgnoreSpec.from_lines(self._project.exclude)
        inside = _real(self._vault)
        for name, root in self._roots.items():
            for rel_path in sorted(_list_files(root)):
                *folders, file_name = rel_path.split("/")
                if not is_doc_name(file_name) or any(map(_is_skipped, folders)) or not files.is_unicode(rel_path):
                    continue
                if not wanted.match_file(rel_path) or unwanted.match_file(rel_path):
                    continue
                if files.is_file_in(root, rel_path) and not _real(root / rel_path).is_relative_to(inside):
                    yield self._in_root(name, rel_path)

    def find(self, path: str) -> Doc | None:
        """The document that the registry calls `path`; None for a file that is hidden or of another kind."""
        for name, root in self._roots.items():
            rel_path = path.removeprefix(f"{name}/") if name else path
            if _may_be_registered(rel_path) and files.is_file_in(root, rel_path):
                return self._in_root(name, rel_path)
        # Memories are not documents: they have owners, who may keep them to themselves.
        if not _may_be_registered(path) or not files.is_file_in(self._vault, path):
            return None
        head = frontmatter.parse((files.read_note(self._vault, path) or b"").decode("utf-8", "replace"))
        kind = self._layout.kind_of(path, head.fields)
        return self._in_vault(path) if kind in (Kind.DOC, Kind.NOTE) else None

    def follow_renames(self, gone: Sequence[str]) -> Mapping[str, Doc]:
        """The documents that registered ones without a file have become, by the path in the registry."""
        inside = [
            path for path in gone if not path.startswith("/") and ".." not in path.split("/") and "\0" not in path
        ]
        found: dict[str, Doc] = {}
        folders = [(f"{name}/" if name else "", root) for name, root in self._roots.items()]
        for prefix, folder in (*folders, ("", self._vault)):
            old = [path.removeprefix(prefix) for path in inside if path not in found and path.startswith(prefix)]
            for path, name in (_find_renamed(folder, old) if old else {}).items():
                doc = self.find(f"{prefix}{name}")
                if doc is not None:
                    found[f"{prefix}{path}"] = replace(doc, registered_as=f"{prefix}{path}")
        return found

    def _in_vault(self, rel_path: str) -> Doc:
        return Doc(rel_path, self._project.name, self._vault, rel_path, is_in_vault=True)

    def _in_root(self, name: str, rel_path: str) -> Doc:
        doc_id = f"{self._project.name}:{f'{name}/' if name else ''}{rel_path}"
        return Doc(doc_id, self._project.name, self._roots[name], rel_path)


def _list_files(root: Path) -> Iterator[str]:
    """The files below a source root, relative to it: as git knows them where it can read their repository."""
    try:
        found = open_repository(root)
        if found is not None:
            yield from found.present(root)
            return
    except GitError:  # then a folder is one like any other, and a check says why
        pass
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not _is_skipped(name)]
        yield from (Path(folder, name).relative_to(root).as_posix() for name in names)


def _is_skipped(folder: str) -> bool:
    return folder.startswith(".") or folder in _SKIPPED


def _may_be_registered(path: str) -> bool:
    *folders, name = path.split("/")
    return is_doc_name(name) and not any(folder.startswith(".") for folder in folders) and files.is_unicode(path)


def _find_renamed(folder: Path, paths: Sequence[str]) -> dict[str, str]:
    """The names that files below a folder which are gone have now, all relative to it; what cannot be found out was not
    renamed.
    """
    try:
        found = open_repository(folder)
        if found is None:
            return {}
        base = found.inside(folder)
        below = f"{base}/" if base else ""
        renamed = found.find_renamed(f"{below}{path}" for path in paths)
        names = {path: renamed.get(f"{below}{path}", f"{below}{path}") for path in paths}
        names |= _find_moved(found, names)
    except (GitError, GitMissingError):
        return {}
    moved = {path: name for path, name in names.items() if name.startswith(below) and name != f"{below}{path}"}
    return {path: name.removeprefix(below) for path, name in moved.items()}


def _find_moved(repository: SourceRepository, names: Mapping[str, str]) -> dict[str, str]:
    """The new names of files that HEAD has and the disk does not, where one new file holds exactly what they held."""
    there = repository.files
    gone = {path: name for path, name in names.items() if name in there and not is_file(repository.top / name)}
    if not gone:
        return {}
    new: dict[bytes, list[str]] = {}
    for name in repository.present(repository.top):
        if name not in there and is_doc_name(name):
            data = files.read_note(repository.top, name) or b""
            new.setdefault(data.replace(b"\r\n", b"\n"), []).append(name)
    blobs = repository.read_blobs(there[name] for name in gone.values())
    same = {path: new.get(blobs.get(there[name], b"").replace(b"\r\n", b"\n"), []) for path, name in gone.items()}
    return {path: found[0] for path, found in same.items() if len(found) == 1}
