"""Searching the documents: their index is brought in step, asked, and each answer says how fresh its document is."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from quaid.docs import chunks, search
from quaid.docs.catalogue import Catalogue
from quaid.docs.search import DocsFound
from quaid.index.matrix import VectorMatrix
from quaid.index.reader import IndexReader
from quaid.index.scope import ScopedChunks
from quaid.place import DOCS_FILE, state_folder
from quaid.recall.options import Depth
from quaid.recall.pipeline import Helpers
from quaid.recall.retrieval import Sources
from quaid.settings import Settings
from quaid.sync.docs import DocFile, DocsIndex

if TYPE_CHECKING:
    from quaid.sync.derived_index import SyncOptions, SyncReport
    from quaid.sync.embedding import Embedding, Progress


class DocsSearch:
    """Searches the documents of one vault. Belongs to one thread; keeps the vectors in memory between questions."""

    def __init__(self, root: Path, settings: Settings, embedding: Embedding) -> None:
        self._root = root
        self._settings = settings
        self._embedding = embedding
        self.path = state_folder(root) / DOCS_FILE
        self._readers = IndexReader(self.path), IndexReader(self.path)
        self._matrix = VectorMatrix()
        self._scoped = ScopedChunks()

    def sync(
        self, catalogue: Catalogue, options: SyncOptions | None = None, progress: Progress | None = None
    ) -> SyncReport:
        """Bring the index in step with the documents, all there are.

        Raises:
            LockedError, DiskFullError, DiskFailedError, VaultReadOnlyError
        """
        found = {doc.id: DocFile(doc.folder, doc.rel_path, doc.project) for doc in catalogue.docs}
        parse = partial(chunks.parse_doc, settings=self._settings.docs, max_bytes=self._settings.sync.max_note_bytes)
        return DocsIndex(self._root, found, self._settings, self._embedding, parse).sync(options, progress)

    def search(
        self, query: str, projects: frozenset[str], limit: int | None, depth: Depth, helpers: Callable[[], Helpers]
    ) -> DocsFound:
        """Passages that answer `query`, from the index as it is."""
        one, other = (reader.open() for reader in self._readers)
        if one is None or other is None:
            return DocsFound(query, ())
        sources = Sources(one, other, self._embedding.embedder_of, self._matrix, self._scoped)
        return search.search(
            sources, query, self._settings.recall, limit=limit or self._settings.docs.limit, projects=projects,
            depth=depth, helpers=helpers(),
        )  # fmt: skip

    def close(self) -> None:
        for reader in self._readers:
            reader.close()
