"""A question -> passages of documents, by the channels, fusion and doubt that memories are recalled with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from quaid.docs import chunks
from quaid.docs.catalogue import Catalogue
from quaid.embed.runtime import open_multiply
from quaid.errors import QuaidError
from quaid.index import contents, passages
from quaid.index.kept import KeptAnswers
from quaid.index.matrix import VectorMatrix
from quaid.index.postings import Postings
from quaid.index.sqlite.reader import IndexReader
from quaid.model import ChannelRank
from quaid.place import DOCS_FILE, state_folder
from quaid.recall import pipeline
from quaid.recall.options import FEATURES, Depth, RecallOptions, Weights
from quaid.recall.pipeline import Helpers
from quaid.recall.retrieval import Sources
from quaid.settings import RecallSettings, Settings
from quaid.sqlite import retry_after_damage
from quaid.sync.derived_index import SyncOptions, SyncReport
from quaid.sync.docs import DocFile, DocsIndex

if TYPE_CHECKING:
    from quaid.sync.embedding import Embedding, Progress

SEARCH_WAIT_MS = 500
"""For another process that is indexing the documents: a question is answered from what there is."""
MAX_EMBED_S = 1.0
"""Passages are long: a large repository takes twenty seconds, and a question does not wait for that."""
MAX_OF_ONE_DOC = 2
"""The passages of one document that may go before those of others: a question is often answered in two pages."""
WEIGHTS = Weights(**dict.fromkeys(FEATURES, 0.0) | {"own": 1.0, "phrase": 0.3})
"""A passage gets no support from its neighbours: it counts by its own words and likeness at the configured share
(`beside`, of what stands alone), and by a quoted phrase. Its length does not count, as it was cut.
"""
_SPARE = 4
"""The hits that are looked at, in times of the limit, to have others to take in between."""


@dataclass(frozen=True, slots=True)
class DocHit:
    """A passage of a document: its markdown, the headings it stands under (outermost first) and its first and last line
    in the file. `score` is in [0, 1], that of its best chunk; `channels` says who found that and where, `stands_for`
    how many passages say the same.
    """

    doc: str
    project: str
    title: str
    heading: tuple[str, ...]
    text: str
    first_line: int
    last_line: int
    score: float
    channels: Mapping[str, ChannelRank] = field(default_factory=dict)
    stands_for: int = 1


@dataclass(frozen=True, slots=True)
class DocSearchResult:
    """The answer to one question, best first. `degraded` names every channel that was missing, `doubt` says why the
    best hit may not be an answer.
    """

    query: str
    hits: tuple[DocHit, ...]
    degraded: tuple[str, ...] = ()
    took_ms: float = 0.0
    trace: Mapping[str, object] = field(default_factory=dict)
    doubt: str | None = None


class DocSearch:
    """Searches the documents of one vault. Belongs to one thread; keeps the vectors in memory between questions."""

    def __init__(self, root: Path, settings: Settings, embedding: Embedding) -> None:
        self._root = root
        self._settings = settings
        self._embedding = embedding
        self.path = state_folder(root) / DOCS_FILE
        self._readers = IndexReader(self.path), IndexReader(self.path)
        self._matrix = VectorMatrix(open_multiply)
        self._postings = Postings()
        self._kept = KeptAnswers()

    def sync(
        self, catalogue: Catalogue, options: SyncOptions | None = None, progress: Progress | None = None
    ) -> SyncReport:
        """Bring the index up to date with all documents.

        Raises:
            LockedError, DiskFullError, DiskFailedError, VaultReadOnlyError
        """
        found = {doc.id: DocFile(doc.folder, doc.rel_path, doc.project) for doc in catalogue.docs}
        parse = partial(chunks.parse_doc, settings=self._settings.docs, max_bytes=self._settings.sync.max_note_bytes)
        return DocsIndex(self._root, found, self._settings, self._embedding, parse).sync(options, progress)

    def search(
        self,
        catalogue: Catalogue,
        query: str,
        projects: frozenset[str],
        owners: frozenset[str],
        limit: int | None,
        depth: Depth,
        helpers: Callable[[], Helpers],
        progress: Progress | None = None,
    ) -> DocSearchResult:
        """Passages that `owners` may see and that answer `query`, from the index, as far as it can be updated."""

        def ask(_notice: str) -> DocSearchResult:
            degraded = self._catch_up(catalogue, progress)
            one, other = (reader.open() for reader in self._readers)
            if one is None or other is None:
                return DocSearchResult(query, (), tuple(degraded))
            with contents.shared_snapshot(one, other) as second:
                sources = Sources(one, second, self._embedding.embedder_of, self._matrix, self._postings, self._kept)
                found = search(
                    sources, query, self._settings.recall, limit=limit or self._settings.docs.limit, projects=projects,
                    owners=owners, depth=depth, helpers=helpers(),
                )  # fmt: skip
            return replace(found, degraded=(*found.degraded, *degraded))

        return retry_after_damage(self.path, ask)

    def _catch_up(self, catalogue: Catalogue, progress: Progress | None) -> list[str]:
        """Update the index for a question that waits; return what it lacks afterwards."""
        budget_s = min(self._settings.recall.embed_budget_s, MAX_EMBED_S)
        options = SyncOptions(embed_budget_s=budget_s, fetch_weights=False, wait_ms=SEARCH_WAIT_MS)
        try:
            report = self.sync(catalogue, options, progress)
        except QuaidError as error:  # another process is at it, or nothing can be written: then there is what there is
            return [f"stale: {error}"]
        if report.pending and self._settings.embedding.provider != "none":
            return [f"pending: {report.pending:,} chunks have no vector yet; finish with: quaid docs sync"]
        return []

    def close(self) -> None:
        for reader in self._readers:
            reader.close()


def search(
    sources: Sources,
    query: str,
    settings: RecallSettings,
    *,
    limit: int,
    projects: frozenset[str] = frozenset(),
    owners: frozenset[str] = frozenset(),
    depth: Depth = "auto",
    helpers: Helpers | None = None,
) -> DocSearchResult:
    """Passages of documents in `sources` (docs.db) that answer `query`; with `projects` of these alone.

    A language model is asked in doubt, where `helpers` has one and `depth` allows it. What is found is data: who shows
    it, disarms it.
    """
    # What is about facts and conversations is left out.
    stages = replace(
        settings.stages, graph=False, provenance=False, contradictions=False, technical=False, neutralise=False
    )
    # That lets through what has no project too; a document always has one.
    options = RecallOptions(max(1, limit) * _SPARE, projects=projects, owners=owners, depth=depth, weights=WEIGHTS)
    found = pipeline.recall(sources, query, replace(settings, stages=stages), options, helpers)
    # A hit names the ordinal of its passage: `docs/recall.md#p3`.
    places = [(hit.path, int(hit.id.rpartition("#p")[2])) for hit in found.hits]
    known = passages.fetch(sources.connection, places)
    seen: Counter[str] = Counter()
    ahead: list[DocHit] = []
    behind: list[DocHit] = []
    for hit, place in zip(found.hits, places, strict=True):
        passage, title = known[place]
        seen[hit.path] += 1
        doc_hit = DocHit(
            hit.path, hit.project or "", title, passage.heading, passage.text, passage.first_line, passage.last_line,
            min(1.0, hit.score), hit.channels, hit.stands_for,
        )  # fmt: skip
        (ahead if seen[hit.path] <= MAX_OF_ONE_DOC else behind).append(doc_hit)
    hits = (*ahead, *behind)[: max(1, limit)]
    return DocSearchResult(query, hits, found.degraded, found.took_ms, found.trace, found.doubt)
