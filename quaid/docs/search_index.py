"""Searching the documents: their index is brought in step, asked, and each answer says how fresh its document is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from quaid.docs import chunks, search
from quaid.docs.catalogue import Catalogue
from quaid.docs.search import DocsFound
from quaid.index.matrix import VectorMatrix
from quaid.index.reader import IndexReader
from quaid.index.scope import ScopedChunks
from quaid.recall.asking import Sources
from quaid.recall.options import Depth
from quaid.recall.pipeline import Helpers
from quaid.settings import Settings
from quaid.sqlite import BUSY_MS
from quaid.sync.docs import DocFile, DocsIndex, DocsReport
from quaid.sync.indexer import max_note_bytes

if TYPE_CHECKING:
    from quaid.sync.embedding import Embedding, Progress


class DocsSearch:
    """Searches the documents of one vault. Belongs to one thread; keeps the vectors in memory between questions."""

    def __init__(self, root: Path, settings: Settings, embedding: Embedding) -> None:
        most = max_note_bytes(settings)
        self._settings = settings
        self._embedding = embedding
        self._index = DocsIndex(
            root,
            settings,
            embedding,
            lambda doc, project, data: chunks.parse_doc(doc, project, data, settings.docs, most),
        )
        self.path = self._index.path
        self._readers = IndexReader(self.path), IndexReader(self.path)
        self._matrix = VectorMatrix()
        self._scoped = ScopedChunks()

    def sync(
        self,
        catalogue: Catalogue,
        *,
        budget_s: float | None = None,
        fetch_weights: bool = True,
        progress: Progress | None = None,
        wait_ms: int = BUSY_MS,
    ) -> DocsReport:
        """Bring the index in step with the documents, all there are.

        Raises:
            LockedError, DiskFullError, VaultReadOnlyError
        """
        found = {doc.id: DocFile(doc.folder, doc.rel_path, doc.project) for doc in catalogue.docs}
        return self._index.sync(
            found, budget_s=budget_s, progress=progress, fetch_weights=fetch_weights, wait_ms=wait_ms
        )

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
