"""Which documents there are, as git knows their files, and which one is meant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from quaid.docs.catalogue import Doc, is_doc_name
from quaid.errors import BadInputError, GitError, GitMissingError
from quaid.history.source_repository import SourceRepository
from quaid.history.vault_history import History
from quaid.redaction import admit
from quaid.vault import files, frontmatter, markdown, notes

_HEAD_BYTES = 20_000


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
        lambda doc: reference in (doc.id, doc.entry_path),
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
    """What a document calls itself, without secrets: its title, else its first heading, else the name of its file."""
    text, _ = notes.decode(files.read_note(doc.folder, doc.rel_path, _HEAD_BYTES) or b"", _HEAD_BYTES)
    return admit(_title_in(text)).text or Path(doc.rel_path).stem


def _title_in(text: str) -> str:
    fields = frontmatter.parse(text).fields
    for key in ("title", "label"):
        if isinstance(fields.get(key), str) and fields[key].strip():
            return str(fields[key]).strip()
    return next((markdown.plain(line) for line in notes.split_body(text)[1].splitlines() if line.startswith("# ")), "")


def is_file(path: Path) -> bool:
    """Whether there is one, whatever stands in its place."""
    try:
        return path.is_file()
    except OSError:  # a name too long to be one
        return False


def list_files(folder: Path) -> list[str] | None:
    """As `ListFiles`; where git cannot read its repository, a folder is one like any other, and a check says why."""
    try:
        found = History.open_source(folder)
        return found.present(folder) if found is not None else None
    except GitError:
        return None


def find_renamed(folder: Path, paths: Sequence[str]) -> dict[str, str]:
    """As `FindRenamed`; what cannot be found out was not renamed."""
    try:
        found = History.open_source(folder)
        if found is None:
            return {}
        base = found.inside(folder)
        below = f"{base}/" if base else ""
        renamed = found.find_renamed(f"{below}{path}" for path in paths)
        names = {path: renamed.get(f"{below}{path}", f"{below}{path}") for path in paths}
        names |= _moved_since(found, names)
    except (GitError, GitMissingError):
        return {}
    return {
        path: name.removeprefix(below)
        for path, name in names.items()
        if name.startswith(below) and name != f"{below}{path}"
    }


def _moved_since(repository: SourceRepository, names: Mapping[str, str]) -> dict[str, str]:
    """Those that HEAD has and the disk does not, where one new file holds just what they held."""
    there = repository.files
    gone = {path: name for path, name in names.items() if name in there and not is_file(repository.top / name)}
    if not gone:
        return {}
    new: dict[bytes, list[str]] = {}
    for name in repository.present(repository.top):
        if name not in there and is_doc_name(name):
            new.setdefault(_text_of(files.read_note(repository.top, name)), []).append(name)
    blobs = repository.read_blobs(there[name] for name in gone.values())
    same = {path: new.get(_text_of(blobs.get(there[name])), []) for path, name in gone.items()}
    return {path: found[0] for path, found in same.items() if len(found) == 1}


def _text_of(data: bytes | None) -> bytes:
    return (data or b"").replace(b"\r\n", b"\n")
