"""The catalogue of documents: which files are documents, which one a reference names, which project owns a file.

Documents stay where they are: in the project's home in the vault, or in one of its source roots.
"""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from quaid.docs.registry import Project
from quaid.docs.source_roots import SourceRoot, check_roots, next_step
from quaid.errors import BadInputError, GitError, GitMissingError
from quaid.history.source_repository import open_repository
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

    `sources` and `true_at` are from the registry; `registered_as` is its former name there, if it was renamed since.
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
        """Its path in the registry."""
        return self.id if self.is_in_vault else self.id.partition(":")[2]

    def evidence(self, data: bytes) -> str:
        """Return the hash of the document as it is, on which decisions are based."""
        return hashlib.sha256(self.id.encode("utf-8", "surrogateescape") + b"\0" + data).hexdigest()


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The documents of some projects. `missing` are registered ones without a file, as (project, path); `absent` source
    roots that are not on this machine, `refused` those that may not be read.
    """

    docs: tuple[Doc, ...] = ()
    missing: tuple[tuple[str, str], ...] = ()
    absent: tuple[tuple[str, str], ...] = ()
    refused: tuple[tuple[str, SourceRoot], ...] = ()

    @property
    def remarks(self) -> list[str]:
        """Sentences about registered documents and source roots that are missing, moved or refused."""
        step = "Note that with: quaid docs register"
        return [
            *(
                f"{doc.registered_as} is {doc.registry_path} now. "
                f"{step} {shlex.quote(str(doc.file))} --project {doc.project}"
                for doc in self.docs
                if doc.registered_as
            ),
            *(
                f"{headings.one_line(path)} is registered and no longer exists. "
                f"Take it out of projects/{project}/PROJECT.md."
                for project, path in self.missing
            ),
            *(
                f"The source root {root} of {project} is not on this machine: its documents are not seen."
                for project, root in self.absent
            ),
            *(
                f"The documents of {project} cannot be checked: its source root {root.written} {root.problem}. "
                f"{next_step(project, root)}"
                for project, root in self.refused
            ),
        ]


def list_docs(vault: Path, projects: Sequence[Project]) -> Catalogue:
    """List the documents of `projects`: those in their homes, those that their patterns match, and the registered ones.

    A file in two source roots belongs to the inner one. Renames of registered documents are followed.
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
        found = {doc.id: doc for doc in lister.list_all()}
        registered = {row.path: lister.find(row.path) for row in project.registered}
        gone = [path for path, doc in registered.items() if doc is None]
        taken = {doc.id for doc in registered.values() if doc is not None}
        registered |= lister.follow_renames(gone)
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
    """Return the named documents. The name of a project means all of its own, unless they are those of `project`.

    Raises:
        BadInputError: a reference names no document, or several.
    """
    found: list[Doc] = []
    for reference in references:
        of_project = [doc for doc in docs if doc.project == reference] if project is None else []
        found += of_project or [find_doc(docs, reference)]
    return list(dict.fromkeys(found))


def find_doc(docs: Sequence[Doc], reference: str) -> Doc:
    """Return the document with this id, path, file name or title.

    Raises:
        BadInputError: there is none, or there are several.
    """
    path = Path(reference).expanduser()
    real = path.resolve() if is_file(path) else None
    ends = (f"/{reference}", f"/{reference}.md")
    matches = (
        [doc for doc in docs if reference in (doc.id, doc.registry_path)],
        [doc for doc in docs if real is not None and doc.file.resolve() == real],
        [doc for doc in docs if f"/{doc.rel_path}".endswith(ends)],
    )
    found = next(filter(None, matches), None)
    found = found or [doc for doc in docs if title_of(doc).casefold() == reference.casefold()]
    if not found:
        raise BadInputError(f"There is no document {reference!r}. See them with: quaid docs list")
    if len(found) > 1:
        listed = ", ".join(doc.id for doc in found[:5])
        raise BadInputError(f"{reference!r} may mean {listed}. Give one of these.")
    return found[0]


def title_of(doc: Doc) -> str:
    """Return a document's title, without secrets: the one in its head, else its first heading, else its file's name."""
    text, _ = notes.decode(files.read_note(doc.folder, doc.rel_path, _HEAD_BYTES) or b"", _HEAD_BYTES)
    fields = frontmatter.parse(text).fields
    titles = (fields[key].strip() for key in ("title", "label") if isinstance(fields.get(key), str))
    headed = (markdown.plain(line) for line in notes.split_body(text)[1].splitlines() if line.startswith("# "))
    title = next(filter(None, titles), None) or next(headed, "")
    return admit(title).text or Path(doc.rel_path).stem


def find_project(vault: Path, projects: Sequence[Project], path: Path) -> tuple[Project, str] | None:
    """Return the project that owns a file, and the file's path in its home or source root. The innermost root wins."""
    real = _real(path)
    best: tuple[int, Project, str] | None = None
    for project in projects:
        for folder in (vault / project.home, *project.roots(vault)):
            root = _real(folder)
            if real.is_relative_to(root) and (best is None or len(root.parts) > best[0]):
                best = len(root.parts), project, real.relative_to(root).as_posix()
    return (best[1], best[2]) if best else None


def registry_path_of(vault: Path, project: Project, path: Path) -> str | None:
    """Return the path of a file in the registry of `project`; None if it is outside the project."""
    real = _real(path)
    for name, root in (*_name_roots(check_roots(vault, project.source_roots)).items(), ("", vault)):
        if real.is_relative_to(_real(root)):
            rel_path = real.relative_to(_real(root)).as_posix()
            return f"{name}/{rel_path}" if name else rel_path
    return None


def is_file(path: Path) -> bool:
    """Return whether `path` is a file; never raises."""
    return os.path.isfile(path)  # noqa: PTH113 - does not fail for a name that is too long


def is_folder(path: Path) -> bool:
    """Return whether `path` is a folder; never raises."""
    return os.path.isdir(path)  # noqa: PTH112 - does not fail for a name that is too long


def is_doc_name(name: str) -> bool:
    """Return whether a file of this name is a document: visible, with one of `SUFFIXES`."""
    return name.lower().endswith(SUFFIXES) and not name.startswith((".", "~", "#"))


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _name_roots(roots: Sequence[SourceRoot]) -> Mapping[str, Path]:
    """Return the source roots on this machine by the prefix of their documents' ids: empty if there is one root."""
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
    """Lists the documents of one project; `roots` are its source roots on this machine by name."""

    def __init__(self, vault: Path, project: Project, roots: Mapping[str, Path]) -> None:
        self._vault = vault
        self._project = project
        self._roots = roots

    def list_all(self) -> Iterator[Doc]:
        """Yield the documents in the project's home, and those in its source roots that its patterns match."""
        for path in files.walk_files(self._vault / self._project.home):
            rel_path = path.relative_to(self._vault).as_posix()
            is_own = is_doc_name(path.name) and path.is_file() and not path.is_symlink()
            if is_own and not layout.is_conflict_copy(rel_path) and files.is_unicode(rel_path):
                yield self._make(None, rel_path)
        if not self._project.auto_index or not self._roots:
            return
        import pathspec

        # `*.md` means the files of the root itself, as in a shell, and not those of all folders, as in .gitignore.
        anchored = [text if text.startswith(("/", "!", "**")) else f"/{text}" for text in self._project.patterns]
        wanted = pathspec.GitIgnoreSpec.from_lines(anchored)
        unwanted = pathspec.GitIgnoreSpec.from_lines(self._project.exclude)
        inside = _real(self._vault)
        for name, root in self._roots.items():
            for rel_path in _list_files(root):
                if not _may_be_doc(rel_path) or not _SKIPPED.isdisjoint(rel_path.split("/")[:-1]):
                    continue
                is_wanted = wanted.match_file(rel_path) and not unwanted.match_file(rel_path)
                if is_wanted and files.is_file_in(root, rel_path) and not _real(root / rel_path).is_relative_to(inside):
                    yield self._make(name, rel_path)

    def find(self, path: str) -> Doc | None:
        """Return the document with this path in the registry; None for a file that is hidden or of another kind."""
        for name, root in self._roots.items():
            rel_path = path.removeprefix(f"{name}/") if name else path
            if _may_be_doc(rel_path) and files.is_file_in(root, rel_path):
                return self._make(name, rel_path)
        # Memories are not documents: they have owners, who may make them private.
        if not _may_be_doc(path) or not files.is_file_in(self._vault, path):
            return None
        head = frontmatter.parse((files.read_note(self._vault, path) or b"").decode("utf-8", "replace"))
        kind = self._project.layout.kind_of(path, head.fields)
        return self._make(None, path) if kind in (Kind.DOC, Kind.NOTE) else None

    def follow_renames(self, gone: Iterable[str]) -> Mapping[str, Doc]:
        """Return the documents that registered ones without a file have become, by the path in the registry."""
        found: dict[str, Doc] = {}
        left = [path for path in gone if not path.startswith("/") and ".." not in path.split("/") and "\0" not in path]
        folders = [(f"{name}/" if name else "", root) for name, root in self._roots.items()]
        for prefix, folder in (*folders, ("", self._vault)):
            old = [path.removeprefix(prefix) for path in left if path not in found and path.startswith(prefix)]
            with suppress(GitError, GitMissingError):
                for path, name in (_find_renamed(folder, old) if old else {}).items():
                    doc = self.find(f"{prefix}{name}")
                    if doc is not None:
                        found[f"{prefix}{path}"] = replace(doc, registered_as=f"{prefix}{path}")
        return found

    def _make(self, root: str | None, rel_path: str) -> Doc:
        """Return a document of a source root, or of the vault if `root` is None."""
        name = self._project.name
        if root is None:
            return Doc(rel_path, name, self._vault, rel_path, is_in_vault=True)
        return Doc(f"{name}:{f'{root}/' if root else ''}{rel_path}", name, self._roots[root], rel_path)


def _list_files(root: Path) -> list[str]:
    """Return the files below a source root, relative to it: those that git lists if it can read their repository."""
    with suppress(GitError):  # then it is listed as a plain folder, and a check says why
        found = open_repository(root)
        if found is not None:
            return sorted(found.present(root))
    return sorted(path.relative_to(root).as_posix() for path in files.walk_files(root, _SKIPPED))


def _may_be_doc(path: str) -> bool:
    *folders, name = path.split("/")
    return is_doc_name(name) and not any(folder.startswith(".") for folder in folders) and files.is_unicode(path)


def _find_renamed(folder: Path, paths: Sequence[str]) -> dict[str, str]:
    """Return old name -> new name of files below a folder that are gone; without those that git does not know."""
    found = open_repository(folder)
    if found is None:
        return {}
    base = found.inside(folder)
    below = f"{base}/" if base else ""
    renamed = found.find_renamed(f"{below}{path}" for path in paths)
    names = {path: renamed.get(f"{below}{path}", f"{below}{path}") for path in paths}
    # A rename that is not committed: exactly one new file has the content of the old one.
    gone = {path: name for path, name in names.items() if name in found.files and not is_file(found.top / name)}
    new: dict[bytes, list[str]] = {}
    for name in found.present(found.top) if gone else ():
        if name not in found.files and is_doc_name(name):
            data = files.read_note(found.top, name) or b""
            new.setdefault(data.replace(b"\r\n", b"\n"), []).append(name)
    blobs = found.git.read_blobs(found.files[name] for name in gone.values()) if gone else {}
    for path, name in gone.items():
        same = new.get(blobs.get(found.files[name], b"").replace(b"\r\n", b"\n"), [])
        names[path] = same[0] if len(same) == 1 else name
    moved = {path: name for path, name in names.items() if name.startswith(below) and name != f"{below}{path}"}
    return {path: name.removeprefix(below) for path, name in moved.items()}
