"""The catalogue of documents: which files are documents, which one a reference names, which project owns a file.

Documents stay where they are: in the project's home in the vault, or in one of its source roots.
"""

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from quaid.docs import markup
from quaid.docs.registry import Project
from quaid.docs.source_roots import ABSENT, SourceRoot, check_roots, next_step
from quaid.errors import BadInputError, GitError
from quaid.history.repository import find_twin
from quaid.history.source_repository import open_repository
from quaid.redaction import admit
from quaid.vault import files, frontmatter, headings, layout, notes

SUFFIXES = (".md", ".markdown", ".mdx", ".rst", ".adoc", ".asciidoc", ".txt")
_HEAD_BYTES = 20_000
"""The bytes of a document that are read for its title."""
_SKIPPED = frozenset(
    {"node_modules", "__pycache__", "site-packages", "venv", "dist", "build", "target", "vendor", "third_party"}
)
"""Folders of a source root that hold other people's documents, or none."""


@dataclass(frozen=True, slots=True)
class Doc:
    """A document: `folder / rel_path` on the disk. `id` is its path in the vault, or `project:path` in a source root.

    `sources` and `true_at` are from the registry.
    """

    id: str
    project: str
    folder: Path
    rel_path: str
    is_in_vault: bool = False
    is_registered: bool = False
    sources: tuple[str, ...] = ()
    true_at: str | None = None

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
    """The documents of some projects. `hidden` are those that the caller may not see, `missing` registered ones without
    a file, as (project, path), and `refused` source roots that are not read, with the names of their projects.
    """

    docs: tuple[Doc, ...] = ()
    hidden: tuple[Doc, ...] = ()
    missing: tuple[tuple[str, str], ...] = ()
    refused: tuple[tuple[str, SourceRoot], ...] = ()

    @property
    def absent(self) -> tuple[tuple[str, str], ...]:
        """The source roots that are not on this machine."""
        return tuple((project, root.written) for project, root in self.refused if root.problem == ABSENT)

    @property
    def remarks(self) -> list[str]:
        """Sentences about registered documents and source roots that are missing or refused."""
        gone = [
            f"{headings.one_line(path)} is registered and no longer exists. "
            f"Take it out of projects/{project}/PROJECT.md, or write its new name there."
            for project, path in self.missing
        ]
        refused = [
            f"The documents of {project} cannot be checked: its source root {root.written} {root.problem}. "
            f"{next_step(project, root)}"
            for project, root in self.refused
        ]
        return gone + refused


def list_docs(vault: Path, projects: Sequence[Project]) -> Catalogue:
    """List the documents of `projects`: those in their homes, those that their patterns match, and the registered ones.

    A file in two source roots belongs to the inner one.
    """
    docs: dict[Path, Doc] = {}
    missing: list[tuple[str, str]] = []
    refused: list[tuple[str, SourceRoot]] = []
    for project in projects:
        roots = check_roots(vault, project.source_roots)
        refused += [(project.name, root) for root in roots if root.problem]
        folders = _list_folders(vault, project, roots)
        listed = (_find_in(folders, path) for path in _list_paths(project, folders))
        found = {doc.registry_path: doc for doc in listed if doc is not None}
        for row in project.registered:
            doc = found.get(row.path) or _find_in(folders, row.path)
            if doc is None:
                missing.append((project.name, row.path))
            else:
                found[row.path] = replace(doc, is_registered=True, sources=row.sources, true_at=row.true_at)
        for doc in found.values():
            known = docs.get(doc.file)
            if known is None or len(known.folder.parts) < len(doc.folder.parts):
                docs[doc.file] = doc
    ordered = sorted(docs.values(), key=lambda doc: (doc.project, not doc.is_in_vault, doc.rel_path))
    return Catalogue(tuple(ordered), (), tuple(missing), tuple(refused))


def locate_doc(vault: Path, project: Project, path: Path) -> Doc | None:
    """Return the document of a project at `path`, listed or not; None if no document of the project can be there."""
    found = find_project(vault, [project], path)
    folders = _list_folders(vault, project, check_roots(vault, project.source_roots))
    return _find_in(folders, found[1]) if found is not None else None


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
    real = path.resolve() if os.path.isfile(path) else None  # noqa: PTH113 - no name is too long for it
    ends = tuple(f"/{reference}{ending}" for ending in ("", *SUFFIXES))
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
    title = next(filter(None, titles), None) or markup.read_title(doc.rel_path, text)
    return admit(title).text or Path(doc.rel_path).stem


def find_project(vault: Path, projects: Sequence[Project], path: Path) -> tuple[Project, str] | None:
    """Return the project that owns a file, and the file's path in its registry. The innermost folder wins."""
    real = _real(path)
    owners = [
        (len(_real(folder.file).parts), project, folder.registry_path + real.relative_to(_real(folder.file)).as_posix())
        for project in projects
        for folder in _list_folders(vault, project, check_roots(vault, project.source_roots))
        if real.is_relative_to(_real(folder.file))
    ]
    return max(owners, key=lambda owner: owner[0])[1:] if owners else None


def find_owner(vault: Path, projects: Sequence[Project], path: Path) -> tuple[Project, str] | None:
    """Return what `find_project` does, for a file in another worktree of a project's repository too."""
    found = find_project(vault, projects, path)
    if found is None:
        roots = (root for project in projects for root in project.roots(vault) if root.is_dir())
        twin = find_twin(path, roots)
        found = find_project(vault, projects, twin) if twin is not None else None
    return found


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _list_folders(vault: Path, project: Project, roots: Sequence[SourceRoot]) -> list[Doc]:
    """Return the home of a project and the source roots that can be read, as what ids and paths of documents in them
    begin with. With several source roots their names are part of it.
    """
    home = f"{project.home}/"
    folders: dict[str, Doc | None] = {home: Doc(home, project.name, vault, home, is_in_vault=True)}
    for root in roots:
        name = root.folder.name if len(roots) > 1 else ""
        names = [f"{name}/", *(f"{name}-{number}/" for number in range(2, len(roots) + 1))] if name else [""]
        prefix = next(prefix for prefix in names if prefix not in folders)
        folders[prefix] = None if root.problem else Doc(f"{project.name}:{prefix}", project.name, root.folder, "")
    return [folder for folder in folders.values() if folder is not None]


def _list_paths(project: Project, folders: Sequence[Doc]) -> Iterator[str]:
    """Yield the files in the project's home, and those in its source roots that its patterns match, as the registry
    names them.
    """
    home, *roots = folders
    for file in files.walk_files(home.file):
        yield file.relative_to(home.folder).as_posix()
    if not project.auto_index or not roots:
        return
    import pathspec

    # `*.md` means the files of the root itself, as in a shell, and not those of all folders, as in .gitignore.
    anchored = [text if text.startswith(("/", "!", "**")) else f"/{text}" for text in project.patterns]
    wanted = pathspec.GitIgnoreSpec.from_lines(anchored)
    unwanted = pathspec.GitIgnoreSpec.from_lines(project.exclude)
    for root in roots:
        paths = None
        with suppress(GitError):  # then it is listed as a plain folder, and a check says why
            repository = open_repository(root.folder)
            paths = repository.present(root.folder) if repository is not None else None
        if paths is None:
            paths = [file.relative_to(root.folder).as_posix() for file in files.walk_files(root.folder, _SKIPPED)]
        for path in sorted(paths):
            if path.lower().endswith(SUFFIXES) and wanted.match_file(path) and not unwanted.match_file(path):
                is_own = not _real(root.folder / path).is_relative_to(_real(home.folder))
                if is_own and _SKIPPED.isdisjoint(path.split("/")[:-1]):
                    yield root.registry_path + path


def _find_in(folders: Sequence[Doc], path: str) -> Doc | None:
    """Return the document with this path in the registry; None for a file that is hidden or of another kind."""
    for base in folders:
        rel_path = path.removeprefix(base.registry_path)
        is_hidden = any(part.startswith((".", "~", "#")) for part in rel_path.split("/"))
        if path.startswith(base.registry_path) and rel_path.lower().endswith(SUFFIXES) and not is_hidden:
            is_odd = layout.is_conflict_copy(rel_path) or not files.is_unicode(rel_path)
            if not is_odd and files.is_file_in(base.file, rel_path):
                return replace(base, id=base.id + rel_path, rel_path=base.rel_path + rel_path)
    return None
