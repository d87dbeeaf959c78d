"""Docs in a folder of their own, the vault whose docs.db has them, and what is asked of it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
from vaults import dump

from quaid.docs import search
from quaid.docs.catalogue import Doc
from quaid.docs.search import DocSearchResult, DocsIndex
from quaid.index.sqlite import database
from quaid.index.vectors import VectorMatrix
from quaid.recall.options import RecallOptions
from quaid.recall.rerank import Judge
from quaid.recall.search import Sources
from quaid.settings import EmbeddingSettings, RecallSettings, Settings
from quaid.sqlite import connect
from quaid.sync.derived_index import SyncOptions, SyncReport
from quaid.sync.embedding import Embedding, Progress


class Docs:
    """A source repository's folder, docs that are registered from it, and the index of them."""

    def __init__(self, root: Path, embedding: EmbeddingSettings | None = None, **changed: Any) -> None:
        self.folder = root / "source"
        self.vault = root / "vault"
        for folder in (self.folder, self.vault):
            folder.mkdir(parents=True, exist_ok=True)
        self.settings = replace(Settings(), embedding=embedding or EmbeddingSettings(provider="none"), **changed)
        self.embedding = Embedding(self.vault, self.settings.embedding)
        self.files: dict[str, Doc] = {}
        self.parsed: list[str] = []
        self.index = self._index(self.files)

    def write(self, rel_path: str, text: str | bytes, project: str = "boat") -> str:
        """Write and register; the doc's id."""
        path = self.folder / rel_path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        doc_id = f"{project}:{rel_path}"
        self.files[doc_id] = Doc(doc_id, project, self.folder, rel_path)
        return doc_id

    def sync(self, progress: Progress | None = None, **options: Any) -> SyncReport:
        self.parsed.clear()
        return self.index.sync(SyncOptions(**options), progress)

    def dumped(self) -> list[str]:
        with closing(database.connect_reader(self.index.path)) as reader:
            return dump(reader)

    def rebuilt(self, files: Mapping[str, Doc] | None = None) -> list[str]:
        with closing(self._index(self.files if files is None else files).rebuild_in_memory()) as made:
            return dump(made)

    def assert_sound(self) -> None:
        """The index equals one built from nothing, and is whole."""
        assert self.dumped() == self.rebuilt()
        with closing(database.connect_reader(self.index.path)) as reader:
            assert database.find_inconsistencies(reader) == []

    def ask(
        self,
        query: str,
        *projects: str,
        limit: int = 5,
        settings: RecallSettings | None = None,
        judge: Judge | None = None,
        **options: Any,
    ) -> DocSearchResult:
        with closing(database.connect_reader(self.index.path)) as reader:
            sources = Sources(reader, reader, self.embedding.embedder_of, VectorMatrix(), judge=judge)
            asked = RecallOptions(projects=frozenset(projects), limit=limit, **options)
            return search.search(sources, query, settings or self.settings.recall, asked)

    def rows(self, sql: str) -> list[Any]:
        with closing(connect(self.index.path, apsw.SQLITE_OPEN_READWRITE)) as connection:
            return connection.execute(sql).fetchall()

    def _index(self, files: Mapping[str, Doc]) -> DocsIndex:
        return _RecordingIndex(self.parsed, self.vault, files, self.embedding)


class _RecordingIndex(DocsIndex):
    """Records the ids of the documents that it parses."""

    def __init__(self, parsed: list[str], *args: Any) -> None:
        super().__init__(*args)
        self._parsed = parsed

    def parse_file(self, key: str, data: bytes) -> Any:
        self._parsed.append(key)
        return super().parse_file(key, data)
