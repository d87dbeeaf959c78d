"""Which files are documents, and which project a file belongs to. Documents stay where they are: in the project's home
in the vault, or in one of its source roots.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from quaid.docs.registry import Project
from quaid.docs.roots import Root, judge
from quaid.model import Kind
from quaid.vault import files, layout

SUFFIXES = (".md", ".markdown", ".mdx", ".rst", ".txt")
ListFiles = Callable[[Path], Sequence[str] | None]
"""The files below a folder that is in a repository, relative to it; None where it is in none."""
FindRenamed = Callable[[Path, Sequence[str]], Mapping[str, str]]
"""The names that files below a folder which are gone have now, all relative to it; of those that were renamed."""

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
    def entry_path(self) -> str:
        """How the registry calls it, or should."""
        return self.id if self.is_in_vault else self.id.partition(":")[2]

    def evidence(self, data: bytes) -> str:
        """Names the document as it is: what is decided about it rests on that."""
        return hashlib.sha256(self.id.encode("utf-8", "surrogateescape") + b"\0" + data).hexdigest()


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All documents of the projects asked for. `missing` are registered ones without a file, as (project, path);
    `absent` the source roots that are not on this machine, `refused` those that may not be read.
    """

    docs: tuple[Doc, ...] = ()
    missing: tuple[tuple[str, str], ...] = ()
    absent: tuple[tuple[str, str], ...] = ()
    refused: tuple[tuple[str, Root], ...] = ()


def list_docs(vault: Path, projects: Sequence[Project], list_files: ListFiles, find_renamed: FindRenamed) -> Catalogue:
    """The documents of `projects`: those in their homes, those that their patterns find, and the registered ones.

    A file in two source roots belongs to the inner one. A registered document that was renamed is followed.
    """
    docs: dict[Path, Doc] = {}
    missing: list[tuple[str, str]] = []
    absent: list[tuple[str, str]] = []
    refused: list[tuple[str, Root]] = []
    for project in projects:
        here = _named_roots(project, vault)
        judged = judge(vault, project.source_roots)
        absent += [(project.name, root.written) for root in judged if not root.problem and not is_folder(root.folder)]
        refused += [(project.name, root) for root in judged if root.problem]
        found = [*_in_home(vault, project), *_in_roots(vault, project, here, list_files)]
        registered = {entry.path: _registered(vault, project, here, entry.path) for entry in project.entries}
        gone = [path for path, doc in registered.items() if doc is None]
        registered |= _renamed(vault, project, here, gone, find_renamed)
        taken = {doc.id for path, doc in registered.items() if doc is not None and path not in gone}
        for entry in project.entries:
            doc = registered[entry.path]
            if doc is None or (doc.registered_as and doc.id in taken):
                missing.append((project.name, entry.path))
            else:
                found = [other for other in found if other.id != doc.id]
                found.append(replace(doc, is_registered=True, sources=entry.sources, true_at=entry.true_at))
        for doc in found:
            known = docs.get(doc.file)
            if known is None or len(known.folder.parts) < len(doc.folder.parts):
                docs[doc.file] = doc
    return Catalogue(
        tuple(sorted(docs.values(), key=lambda doc: (doc.project, not doc.is_in_vault, doc.rel_path))),
        tuple(missing),
        tuple(absent),
        tuple(refused),
    )


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


def entry_path_of(vault: Path, project: Project, path: Path) -> str | None:
    """How the registry of `project` calls the file at `path`; None where it lies in none of its places."""
    real = _real(path)
    for name, root in _named_roots(project, vault).items():
        if real.is_relative_to(_real(root)):
            rel_path = real.relative_to(_real(root)).as_posix()
            return f"{name}/{rel_path}" if name else rel_path
    return real.relative_to(_real(vault)).as_posix() if real.is_relative_to(_real(vault)) else None


def is_folder(path: Path) -> bool:
    """Whether there is a folder, whatever stands in its place."""
    return os.path.isdir(path)  # noqa: PTH112 - which a name too long to be one does not make fail


def is_doc_name(name: str) -> bool:
    return name.lower().endswith(SUFFIXES) and not name.startswith((".", "~", "#"))


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _named_roots(project: Project, vault: Path) -> Mapping[str, Path]:
    """The source roots that are here, by the name their documents' ids begin with: none where there is only one."""
    named: dict[str, Root] = {}
    for root in judge(vault, project.source_roots):
        name = root.folder.name if len(project.source_roots) > 1 else ""
        number = 1
        while name in named:
            number += 1
            name = f"{root.folder.name}-{number}"
        named[name] = root
    return {name: root.folder for name, root in named.items() if not root.problem and is_folder(root.folder)}


def _in_home(vault: Path, project: Project) -> Iterator[Doc]:
    for folder, folders, names in os.walk(vault / project.home):
        folders[:] = sorted(name for name in folders if not layout.skips_folder(name))
        for name in sorted(names):
            path = Path(folder, name)
            if is_doc_name(name) and path.is_file() and not path.is_symlink():
                rel_path = path.relative_to(vault).as_posix()
                if not layout.is_conflict_copy(rel_path) and files.is_unicode(rel_path):
                    yield Doc(rel_path, project.name, vault, rel_path, is_in_vault=True)


def _in_roots(vault: Path, project: Project, here: Mapping[str, Path], list_files: ListFiles) -> Iterator[Doc]:
    if not project.auto_index or not here:
        return
    import pathspec

    wanted = pathspec.GitIgnoreSpec.from_lines([_anchored(pattern) for pattern in project.patterns])
    unwanted = pathspec.GitIgnoreSpec.from_lines(project.exclude)
    inside = _real(vault)
    for name, root in here.items():
        listed = list_files(root)
        for rel_path in sorted(_walk(root) if listed is None else listed):
            if not is_doc_name(PurePosixPath(rel_path).name) or _is_foreign(rel_path):
                continue
            if not wanted.match_file(rel_path) or unwanted.match_file(rel_path):
                continue
            if files.is_file_in(root, rel_path) and not _real(root / rel_path).is_relative_to(inside):
                yield Doc(_id(project, name, rel_path), project.name, root, rel_path)


def _registered(vault: Path, project: Project, here: Mapping[str, Path], path: str) -> Doc | None:
    for name, root in here.items():
        rel_path = path.removeprefix(f"{name}/") if name else path
        if _may_be_registered(rel_path) and files.is_file_in(root, rel_path):
            return Doc(_id(project, name, rel_path), project.name, root, rel_path)
    if _may_be_registered(path) and _is_no_memory(path) and files.is_file_in(vault, path):
        return Doc(path, project.name, vault, path, is_in_vault=True)
    return None


def _renamed(
    vault: Path, project: Project, here: Mapping[str, Path], gone: Sequence[str], find_renamed: FindRenamed
) -> Mapping[str, Doc]:
    """The documents that registered ones without a file have become, by the path in the registry."""
    found: dict[str, Doc] = {}
    for prefix, folder in (*((f"{name}/" if name else "", root) for name, root in here.items()), ("", vault)):
        old = [path for path in gone if path not in found and path.startswith(prefix) and _stays_inside(path)]
        new = find_renamed(folder, [path.removeprefix(prefix) for path in old]) if old else {}
        for path in old:
            name = new.get(path.removeprefix(prefix))
            doc = _registered(vault, project, here, f"{prefix}{name}") if name else None
            if doc is not None:
                found[path] = replace(doc, registered_as=path)
    return found


def _may_be_registered(path: str) -> bool:
    """Whether the registry's word makes a file a document: not of one that is hidden or of another kind."""
    *folders, name = path.split("/")
    return is_doc_name(name) and not any(folder.startswith(".") for folder in folders) and files.is_unicode(path)


def _is_no_memory(path: str) -> bool:
    """Whether a file of the vault may be a document: memories have owners, who may keep them to themselves."""
    return layout.kind_of(path, None) in (Kind.DOC, Kind.NOTE)


def _stays_inside(path: str) -> bool:
    return not path.startswith("/") and ".." not in path.split("/") and "\0" not in path


def _id(project: Project, root: str, rel_path: str) -> str:
    return f"{project.name}:{f'{root}/' if root else ''}{rel_path}"


def _anchored(pattern: str) -> str:
    """`*.md` means the files of the root itself, as in a shell, and not those of all folders, as in .gitignore."""
    return pattern if pattern.startswith(("/", "!", "**")) else f"/{pattern}"


def _is_foreign(rel_path: str) -> bool:
    *folders, _ = rel_path.split("/")
    return any(folder.startswith(".") or folder in _SKIPPED for folder in folders) or not files.is_unicode(rel_path)


def _walk(root: Path) -> Iterator[str]:
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in _SKIPPED]
        yield from (Path(folder, name).relative_to(root).as_posix() for name in names)
