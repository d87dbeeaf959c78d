"""A served vault as one caller sees it: the part of `Memory` that reading tools use, over the shared index and the
history of the mirror. It has no files and records no questions.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from quaid.config import own_names
from quaid.embed.runtime import open_multiply
from quaid.errors import BadInputError, NoteNotFoundError
from quaid.index import contents, vectors
from quaid.index.kept import KeptAnswers
from quaid.index.matrix import VectorMatrix
from quaid.index.port import IndexConnection
from quaid.index.postgres.server import IndexServer
from quaid.index.postings import Postings
from quaid.index.views import NoteView, view_note
from quaid.model import Commit, Recall
from quaid.recall import pipeline
from quaid.recall.answers import list_owner_names, with_source
from quaid.recall.options import RecallOptions
from quaid.recall.pipeline import Helpers
from quaid.recall.retrieval import Sources
from quaid.recall.visibility import VisibleCommits, see_parts
from quaid.server.folders import VaultFolder
from quaid.settings import Settings
from quaid.sync.commits import COMMIT
from quaid.sync.embedding import Embedding
from quaid.vault.layout import Layout


class ServedMemory:
    """A served vault; it belongs to one thread. `root` contains the vault's quaid.toml and nothing else."""

    def __init__(
        self, root: Path, settings: Settings, folder: VaultFolder, server: IndexServer, key: str, embedding: Embedding
    ) -> None:
        self.root = root
        self.settings = settings
        self.remarks: tuple[str, ...] = ()
        self._folder = folder
        self._embedding = embedding
        self._owners = own_names(root, settings)
        self._helpers = Helpers(owner_names=list_owner_names(root, settings, self._owners))
        self._whole = server.open(key)
        self._visible, self._second = (server.open(key, self._owners) for _ in range(2))
        self._matrix = VectorMatrix(open_multiply)
        self._postings = Postings()
        self._cache = KeptAnswers()

    def recall(self, query: str, limit: int | None = None, *, as_of: str | None = None, **options: Any) -> Recall:
        """Return the memories that answer `query`, best first. `options` are the fields of `RecallOptions`; options
        about the record of an answer are ignored.

        Raises:
            BadInputError: `as_of` is given.
        """
        if as_of is not None:
            raise BadInputError("A server does not answer as of the past. Ask where the vault is cloned.")
        fields = {name: value for name, value in options.items() if name not in {"door", "keep", "session"}}
        wanted = RecallOptions(limit=limit, owners=self._owners, **fields)
        recall, visible = self.settings.recall, self._visible
        with contents.shared_snapshot(visible, self._second) as second:
            sources = Sources(visible, second, self._embedding.embedder_of, self._matrix, self._postings, self._cache)
            if wanted.recent and not query.strip():
                answer = pipeline.list_newest(sources, recall, wanted, self._helpers)
            else:
                answer = pipeline.recall(sources, query, recall, wanted, self._helpers)
            waiting = self._cache.of(visible, "pending", partial(vectors.count_missing, visible))
        if wanted.recent:
            answer = replace(answer, hits=tuple(sorted(answer.hits, key=lambda hit: hit.created or "", reverse=True)))
        is_embedded = not wanted.keyword_only and self.settings.embedding.provider != "none"
        if waiting and is_embedded and self._embedding.embedder() is not None:
            answer = replace(answer, degraded=(*answer.degraded, "pending"))
        return answer

    def search(self, query: str, limit: int | None = None, **options: Any) -> Recall:
        """Keywords only: no model, no graph."""
        return self.recall(query, limit, keyword_only=True, **options)

    def get(self, reference: str) -> NoteView:
        """Return the referenced note, turn or section; NoteNotFoundError, AmbiguousReferenceError."""
        with self._visible.snapshot():
            view = view_note(self._visible, reference)
            commit = contents.get_meta(self._visible, COMMIT) or ""
        data = self._read(commit, view.document.path)
        if data is None:
            raise NoteNotFoundError(reference)
        return with_source(view, data)

    def history(self, reference: str, limit: int = 20) -> list[Commit]:
        """Return the commits that touched a note, newest first, across renames."""
        document = self.get(reference).document
        git = self._folder.mirror.open_history(self.settings.git)
        life = git.note_history(document.path, None if document.id == document.path else document.id)
        visible = VisibleCommits(self._whole, self._visible, git, self._owners, Layout.of(self.settings.vault))
        return see_parts((revision.commit for revision in life[:limit]), git, visible.of)

    def warm(self) -> None:
        """Load the embedding model, once for all vaults."""
        self._embedding.warm()

    def index(self) -> IndexConnection:
        """Return the index without the private notes of others."""
        return self._visible

    def _read(self, commit: str, path: str) -> bytes | None:
        """Return a file of the vault. Another server may have indexed a commit that is not here yet."""
        mirror = self._folder.mirror
        if mirror.resolve(commit) is None:
            mirror.fetch()
        return mirror.read(commit, path)
