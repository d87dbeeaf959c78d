"""The index of documents, docs.db, and its search by the recall pipeline.

Documents may lie outside the vault and are many times longer than memories: in an index of their own they do not change
the word statistics, the limits and the speed of recall.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from quaid.docs import chunks
from quaid.docs.catalogue import Doc
from quaid.docs.chunks import parse_doc
from quaid.errors import QuaidError
from quaid.index import contents, documents
from quaid.index.cache import AnswerCache
from quaid.index.fulltext import Postings
from quaid.index.sqlite.database import IndexReader
from quaid.index.vectors import VectorMatrix
from quaid.model import Note
from quaid.open_vault import OpenVault
from quaid.place import DOCS_FILE
from quaid.recall import pipeline
from quaid.recall.options import Profile, RecallOptions
from quaid.recall.rerank import Judge
from quaid.recall.search import Sources
from quaid.settings import MAX_NOTE_BYTES, RecallSettings
from quaid.sqlite import DamageRetries
from quaid.sync.derived_index import DerivedIndex, SyncOptions
from quaid.sync.embedding import Embedding
from quaid.vault import files

SEARCH_WAIT_MS = 500
"""The time that a search waits for another process that is indexing."""
MAX_EMBED_S = 1.0
"""A large repository takes twenty seconds to embed, and a search does not wait for that."""
MAX_OF_ONE_DOC = 2
"""The passages of one document that may rank before those of others: a question is often answered in two pages."""
PROFILE = Profile({"own": 1.0, "phrase": 0.3})
"""A passage is scored by its own words and likeness and by a quoted phrase. Its neighbours give no support, and its
length does not count, because it was cut.
"""
_SPARE = 4
"""The candidates per hit, so that hits of several documents can be selected."""


class DocsIndex(DerivedIndex):
    """Keeps docs.db of the vault at `root` equal to `docs`, by id."""

    noun = "documents"

    def __init__(self, root: Path, docs: Mapping[str, Doc], embedding: Embedding) -> None:
        self._docs = docs
        made_with = f"sections {chunks.CHUNK_TOKENS} {chunks.OVERLAP_TOKENS} {MAX_NOTE_BYTES}"
        super().__init__(root, DOCS_FILE, embedding, made_with)

    def list_files(
        self, only: Collection[str] | None, _folders: files.FolderDigests | None = None
    ) -> files.NoteListing:
        listed = files.NoteListing({}, {})
        for doc_id in self._docs if only is None else self._docs.keys() & only:
            found = files.list_some(self._docs[doc_id].folder, [self._docs[doc_id].rel_path])
            listed.notes.update((doc_id, stat) for stat in found.notes.values())
            listed.passed_over.update((files.printable(doc_id), reason) for reason in found.passed_over.values())
        return listed

    def read_file(self, key: str) -> bytes | None:
        """Return as much as is searched, and one more byte that shows that there is more."""
        doc = self._docs[key]
        try:
            return files.read_note(doc.folder, doc.rel_path, MAX_NOTE_BYTES + 1)
        except PermissionError:
            return b""
        except OSError:
            return None

    def parse_file(self, key: str, data: bytes) -> Note:
        return parse_doc(key, self._docs[key].project, data, MAX_NOTE_BYTES)


class DocHit(NamedTuple):
    """A passage of a document as markdown, with the headings above it, outermost first.

    `score` in [0, 1] is that of its best chunk.
    """

    doc: str
    project: str
    title: str
    heading: tuple[str, ...]
    text: str
    first_line: int
    last_line: int
    score: float


@dataclass(frozen=True, slots=True)
class DocSearchResult:
    """The answer to a query, best hit first. `degraded` names the missing channels, `doubt` says why the best hit may
    not be an answer.
    """

    hits: tuple[DocHit, ...]
    degraded: tuple[str, ...] = ()
    took_ms: float = 0.0
    trace: Mapping[str, object] = field(default_factory=dict)
    doubt: str | None = None


class DocSearch:
    """Searches the documents of one vault. Belongs to one thread; caches the vectors in memory between queries."""

    def __init__(self, vault: OpenVault) -> None:
        self._vault = vault
        self._path = vault.state / DOCS_FILE
        self._readers = IndexReader(self._path), IndexReader(self._path)
        self._matrix = VectorMatrix()
        self._postings = Postings()
        self._cache = AnswerCache()

    def index(self, docs: Collection[Doc]) -> DocsIndex:
        """Return the index of `docs`, which must be all documents."""
        return DocsIndex(self._vault.root, {doc.id: doc for doc in docs}, self._vault.embedding)

    def search(self, docs: Collection[Doc], query: str, options: RecallOptions, judge: Judge | None) -> DocSearchResult:
        """Return the passages that answer `query`. `docs` are all documents."""
        retries = DamageRetries(self._path)
        while True:
            with retries:
                degraded = self._update(docs)
                one, other = (reader.open() for reader in self._readers)
                if one is None or other is None:
                    return DocSearchResult((), degraded)
                with contents.shared_snapshot(one, other) as second:
                    cached = self._matrix, self._postings, self._cache
                    sources = Sources(one, second, self._vault.embedding.embedder_of, *cached, judge)
                    found = search(sources, query, self._vault.settings.recall, options)
                return replace(found, degraded=(*found.degraded, *degraded))

    def _update(self, docs: Collection[Doc]) -> tuple[str, ...]:
        """Bring the index up to date within a second. Return what is missing in it."""
        options = SyncOptions(embed_budget_s=MAX_EMBED_S, fetch_weights=False, wait_ms=SEARCH_WAIT_MS)
        try:
            report = self.index(docs).sync(options, self._vault.show_progress)
        except QuaidError as error:  # another process is indexing, or nothing can be written
            return (f"stale: {error}",)
        if report.pending and self._vault.settings.embedding.provider != "none":
            return (f"pending: {report.pending:,} chunks have no vector yet; finish with: quaid docs sync",)
        return ()

    def close(self) -> None:
        for reader in self._readers:
            reader.close()


def search(sources: Sources, query: str, settings: RecallSettings, options: RecallOptions) -> DocSearchResult:
    """Return the passages in `sources` that answer `query`, as untrusted text. `options` have a limit."""
    limit = options.limit or 0
    found = pipeline.recall(sources, query, settings, replace(options, limit=limit * _SPARE, profile=PROFILE))
    # The id of a hit ends in the number of its passage: `docs/recall.md#p3`.
    places = [(hit.path, int(hit.id.rpartition("#p")[2])) for hit in found.hits]
    known = documents.fetch(sources.connection, places)
    count: Counter[str] = Counter()
    ranked: list[tuple[bool, DocHit]] = []
    for hit, place in zip(found.hits, places, strict=True):
        shown, title = known[place]
        count[hit.path] += 1
        lines = shown.first_line, shown.last_line
        doc_hit = DocHit(hit.path, hit.project or "", title, shown.heading, shown.text, *lines, min(1.0, hit.score))
        ranked.append((count[hit.path] > MAX_OF_ONE_DOC, doc_hit))
    hits = [hit for _, hit in sorted(ranked, key=itemgetter(0))][:limit]
    return DocSearchResult(tuple(hits), found.degraded, found.took_ms, found.trace, found.doubt)
