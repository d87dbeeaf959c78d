"""Documents of projects -> docs.db. They may lie outside of the vault: whoever knows the projects lists them and says
how they are taken apart.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from quaid.index import documents
from quaid.model import ParsedDoc
from quaid.place import DOCS_FILE
from quaid.settings import Settings
from quaid.sync.derived_index import DerivedIndex
from quaid.sync.embedding import Embedding
from quaid.vault import files

if TYPE_CHECKING:
    from quaid.index.port import IndexConnection

ParseDoc = Callable[[str, str, bytes], ParsedDoc]
"""(id of the document, project, bytes) -> the document as it is indexed."""


@dataclass(frozen=True, slots=True)
class DocFile:
    """A document at `folder / rel_path`, the latter with slashes; `project` is whose it is."""

    folder: Path
    rel_path: str
    project: str


class DocsIndex(DerivedIndex):
    """Keeps docs.db of the vault at `root` equal to `docs` (id -> file), all there are; `parse` takes them apart."""

    noun = "documents"

    def __init__(
        self, root: Path, docs: Mapping[str, DocFile], settings: Settings, embedding: Embedding, parse: ParseDoc
    ) -> None:
        self._docs = docs
        self._parse = parse
        self._max_bytes = settings.sync.max_note_bytes
        made_with = f"{settings.docs.chunk_tokens} {settings.docs.overlap_tokens} {self._max_bytes}"
        super().__init__(root, DOCS_FILE, embedding, made_with)

    def list_files(self, only: Collection[str] | None) -> files.NoteListing:
        listed = files.NoteListing({}, {})
        for doc_id in self._docs if only is None else self._docs.keys() & only:
            file = self._docs[doc_id]
            if file.rel_path.startswith("/") or ".." in file.rel_path.split("/") or "\0" in file.rel_path:
                listed.passed_over[files.printable(doc_id)] = "lies outside of its folder"
                continue
            found = files.list_some(file.folder, [file.rel_path])
            for stat in found.notes.values():
                listed.notes[doc_id] = stat
            for reason in found.passed_over.values():
                listed.passed_over[files.printable(doc_id)] = reason
        return listed

    def list_outdated(self, connection: IndexConnection, _is_whole: bool) -> Collection[str]:
        """Return the ids of documents that changed hands."""
        projects = documents.list_projects(connection)
        return {doc_id for doc_id in projects.keys() & self._docs if projects[doc_id] != self._docs[doc_id].project}

    def read_file(self, key: str) -> bytes | None:
        """Return as much as is searched, and one byte more that tells that there is more."""
        file = self._docs[key]
        try:
            return files.read_note(file.folder, file.rel_path, self._max_bytes + 1)
        except PermissionError:
            return b""
        except OSError:
            return None

    def parse_file(self, key: str, data: bytes) -> ParsedDoc:
        return self._parse(key, self._docs[key].project, data)
