"""Look-ups for plans: the fact that says the same, the note that has a name or a session."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from quaid.capture import entity_note, episode_note
from quaid.capture.entity_names import EntityNames
from quaid.capture.storing import Duplicate, KnownFact, NewFact
from quaid.claims import claim_key, difference, is_same_claim
from quaid.config import person_of
from quaid.errors import EmbeddingError
from quaid.index import documents, fulltext, graph, references, vectors
from quaid.index.documents import Document
from quaid.model import Edge, Kind, name_key, note_name
from quaid.settings import Settings
from quaid.sync.embedding import Embedding
from quaid.vault import files, frontmatter, layout, notes

if TYPE_CHECKING:
    from quaid.index.matrix import VectorMatrix
    from quaid.index.port import EmbedderRow, IndexConnection

SIMILAR_FACTS = 24
"""Nearest chunks that are compared before a new fact is written, turns of conversations among them."""

_EXTRACTED = re.compile(rb"^extracted:", re.MULTILINE)
_HEAD_BYTES = 8192


class NoteFinder:
    """One vault's, asked of a fresh index."""

    def __init__(self, root: Path, settings: Settings, embedding: Embedding, matrix: VectorMatrix) -> None:
        self._root = root
        self._matrix = matrix
        self._settings = settings
        self._layout = layout.Layout.of(settings.vault)
        self._embedding = embedding

    def find_duplicates(self, index: IndexConnection, new: Sequence[NewFact]) -> list[Duplicate]:
        """For each fact the owner's living one that says it already, else an earlier one of `new` that does."""
        if not new:
            return []
        hashes = [notes.text_hash(fact.statement) for fact in new]
        keys = [claim_key(fact.statement) for fact in new]
        found: list[Duplicate] = [
            self._known(
                index, fact, documents.find_by_text(index, text_hash, fact.details.owner, fact.details.valid_until)
            )
            for text_hash, fact in zip(hashes, new, strict=True)
        ]
        with index.snapshot():
            alike = self._find_alike(index, new, found)
        for place in range(len(new)):
            found[place] = found[place] or alike.get(place) or _earlier(place, new, keys, found)
        return found

    def find_entity(self, index: IndexConnection, name: str) -> entity_note.EntityNote | None:
        """The entity note of what is called so, else the owner's own note of it, else the file that has taken the name
        and that `index` does not show.
        """
        for kind in (Kind.ENTITY, Kind.NOTE):
            found = documents.find_documents(
                index,
                "kind = ? AND doc_id IN (SELECT doc_id FROM names WHERE name_key = ? ORDER BY position)",
                (str(kind), name_key(name)),
            )
            for document in found:
                data = files.read_note(self._root, document.path)
                if data is not None:
                    return entity_note.EntityNote(
                        note_name(document.path), document.path, data, is_own=kind is Kind.NOTE
                    )
        path = self._layout.place(layout.entity_path(name))
        data = files.read_note(self._root, path)
        if data is None:
            return None
        kind = self._layout.kind_of(path, frontmatter.parse(data.decode("utf-8", "replace")).fields)
        return entity_note.EntityNote(note_name(path), path, data, is_own=kind is not Kind.ENTITY)

    def entity_names(self, index: IndexConnection, now: datetime, speakers: Iterable[str] = ()) -> EntityNames:
        """The names of all entities that `index` shows, for a plan that is made at `now`."""
        return EntityNames.of(
            graph.entity_names(index),
            lambda name: self.find_entity(index, name),
            now,
            speakers=speakers,
            owner=person_of(self._root, self._settings),
            layout=self._layout,
            find_edges=lambda name: [
                Edge(near.subject, near.relation, near.object) for near in graph.neighbours(index, {name_key(name)})
            ],
        )

    def find_episode(self, index: IndexConnection, session: str) -> episode_note.KeptEpisode | None:
        """The episode note of a session."""
        return next(self._episodes(index, "session = ?", (session,)), None)

    def find_episodes(self, index: IndexConnection, started: str, but: str) -> list[episode_note.KeptEpisode]:
        """The episodes that began at `started`, as frontmatter writes it, all but that of one session."""
        return list(self._episodes(index, "created = ? AND session <> ?", (started, but)))

    def _episodes(
        self, index: IndexConnection, where: str, values: Sequence[str]
    ) -> Iterator[episode_note.KeptEpisode]:
        for document in documents.find_documents(index, f"kind = 'episode' AND {where}", values):
            data = files.read_note(self._root, document.path)
            if data is not None:
                yield episode_note.KeptEpisode(document.path, data)

    def _find_alike(
        self, index: IndexConnection, new: Sequence[NewFact], found: Sequence[Duplicate]
    ) -> dict[int, KnownFact]:
        """Place of a fact without a twin so far -> the known one that says the same, not to the letter."""
        import numpy as np

        nearest: dict[int, set[int]] = {}
        row, embedded = self._embed(index, new)
        for place, fact in enumerate(new):
            if found[place] is None:
                phrase = fulltext.match_any([fulltext.as_phrase(fact.statement)])
                near = fulltext.search(index, phrase, SIMILAR_FACTS)  # what has no vector yet, or never gets one
                if row is not None:
                    near += self._matrix.search(index, row, np.frombuffer(embedded[place], "<f4"), SIMILAR_FACTS)
                nearest[place] = {chunk_id for chunk_id, _ in near}
        chunks = {chunk_id for near in nearest.values() for chunk_id in near}
        owners = {new[place].details.owner for place in nearest}
        known = {row[0]: row[1:] for owner in owners for row in documents.list_repeatable(index, chunks, owner)}
        alike: dict[int, KnownFact] = {}
        for place, chunk_ids in nearest.items():
            fact = new[place]
            for document, text in (known[chunk_id] for chunk_id in sorted(chunk_ids & known.keys())):
                is_same = document.owner == fact.details.owner and is_same_claim(fact.statement, text)
                if is_same and (same := self._known(index, fact, document)):
                    alike[place] = same
                    break
        return alike

    def _embed(self, index: IndexConnection, new: Sequence[NewFact]) -> tuple[EmbedderRow | None, Sequence[bytes]]:
        """The model and the vectors of `new`; None where nothing can be embedded: then only equal words are found."""
        row = vectors.active_embedder(index)
        embedder = self._embedding.embedder_of(row) if row is not None else None
        if embedder is None:
            return None, ()
        try:
            return row, self._embedding.vectors_of(embedder, [fact.statement for fact in new])
        except EmbeddingError:
            return None, ()

    def _known(self, index: IndexConnection, fact: NewFact, document: Document | None) -> KnownFact | None:
        """The note of a fact that says what `fact` does, or of what it was merged into unless that says otherwise."""
        survivor = references.find_survivor(index, document) if document else None
        if survivor is None or (
            survivor != document and difference(fact.statement, documents.text_of(index, survivor.doc_id))
        ):
            return None
        data = files.read_note(self._root, survivor.path)
        return KnownFact(survivor.id, survivor.path, data, survivor.session) if data is not None else None


def _earlier(place: int, new: Sequence[NewFact], keys: Sequence[str], found: Sequence[Duplicate]) -> int | None:
    """The first fact before `place` that says the same and is itself not the same as another."""
    fact = new[place]
    for earlier in range(place):
        other = new[earlier]
        if found[earlier] is not None or other.details.valid_until != fact.details.valid_until:
            continue
        if keys[earlier] == keys[place] and is_same_claim(fact.statement, other.statement):
            return earlier
    return None


def list_waiting(root: Path, connection: IndexConnection) -> tuple[str, ...]:
    """Return the paths of the episodes that no model has drawn facts from, oldest first."""
    episodes = documents.find_documents(connection, "kind = ?", (str(Kind.EPISODE),))
    heads = ((document.path, files.read_note(root, document.path, _HEAD_BYTES) or b"") for document in episodes)
    return tuple(path for path, head in heads if not _EXTRACTED.search(head.partition(b"\n---")[0]))
