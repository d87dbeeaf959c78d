"""What plans need to know of the memory as it is: which fact says the same, which note has a name or a session."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from quaid.capture import episode, linking
from quaid.capture.storing import KnownFact, NewFact, Same
from quaid.claims import Reading, find_same, is_same_claim
from quaid.errors import EmbeddingError
from quaid.index import database, documents, vectors
from quaid.index.documents import Document
from quaid.model import Kind, name_key, note_name
from quaid.settings import Settings
from quaid.sync.embedding import Embedding
from quaid.vault import files, layout, markdown, notes

if TYPE_CHECKING:
    import apsw

SIMILAR_FACTS = 8
"""So many nearest facts are compared before a new one is written."""

_EXTRACTED = re.compile(rb"^extracted:", re.MULTILINE)
_HEAD_BYTES = 8192


class Lookups:
    """One vault's, asked of a fresh index."""

    def __init__(self, root: Path, settings: Settings, embedding: Embedding) -> None:
        self._root = root
        self._settings = settings
        self._embedding = embedding

    def find_same(self, index: apsw.Connection, new: Sequence[NewFact]) -> list[Same]:
        """For each fact the owner's living one that says it already, else an earlier one of `new` that does."""
        if not new:
            return []
        hashes = [notes.text_hash(markdown.plain(fact.statement)) for fact in new]
        found: list[Same] = [
            self._known(documents.find_by_text(index, text_hash, fact.details.owner, fact.details.valid_until))
            for text_hash, fact in zip(hashes, new, strict=True)
        ]
        likeness = _Likeness.of(index, new, self._settings, self._embedding)
        alike = self._find_alike(index, new, found, likeness) if likeness else {}
        for place in range(len(new)):
            found[place] = found[place] or alike.get(place) or _earlier(place, new, hashes, found, likeness)
        return found

    def find_entity(self, index: apsw.Connection, name: str) -> linking.EntityNote | None:
        """The note of what is called so, else the file that has taken the name and that `index` does not show."""
        found = documents.find_documents(
            index,
            "kind = 'entity' AND doc_id IN (SELECT doc_id FROM names WHERE name_key = ? ORDER BY position)",
            (name_key(name),),
        )
        for document in found:
            data = files.read_note(self._root, document.path)
            if data is not None:
                return linking.EntityNote(note_name(document.path), document.path, data)
        path = layout.entity_path(name)
        data = files.read_note(self._root, path)
        return linking.EntityNote(note_name(path), path, data) if data is not None else None

    def find_episode(self, index: apsw.Connection, session: str) -> episode.KeptEpisode | None:
        """The episode note of a session."""
        return next(self._episodes(index, "session = ?", (session,)), None)

    def find_episodes(self, index: apsw.Connection, started: str, but: str) -> list[episode.KeptEpisode]:
        """The episodes that began at `started`, as frontmatter writes it, all but that of one session."""
        return list(self._episodes(index, "created = ? AND session <> ?", (started, but)))

    def _episodes(self, index: apsw.Connection, where: str, values: Sequence[str]) -> Iterator[episode.KeptEpisode]:
        for document in documents.find_documents(index, f"kind = 'episode' AND {where}", values):
            data = files.read_note(self._root, document.path)
            if data is not None:
                yield episode.KeptEpisode(document.path, data)

    def _find_alike(
        self, index: apsw.Connection, new: Sequence[NewFact], found: Sequence[Same], likeness: _Likeness
    ) -> dict[int, KnownFact]:
        """Place of a fact without a twin so far -> the known one that says the same in other words."""
        nearest = {
            place: dict(vectors.search(index, likeness.row, likeness.vectors[place], SIMILAR_FACTS))
            for place in range(len(new))
            if found[place] is None
        }
        chunks = {chunk_id for near in nearest.values() for chunk_id in near}
        owners = {new[place].details.owner for place in nearest}
        living = [row for owner in owners for row in documents.living_facts(index, chunks, owner)]
        alike: dict[int, KnownFact] = {}
        for place, near in nearest.items():
            fact = new[place]
            candidates = [
                (document, text, near[chunk_id])
                for chunk_id, document, text in living
                if chunk_id in near and document.owner == fact.details.owner
            ]
            known = self._known(find_same(fact.statement, candidates, likeness.threshold))
            if known is not None:
                alike[place] = known
        return alike

    def _known(self, document: Document | None) -> KnownFact | None:
        data = files.read_note(self._root, document.path) if document else None
        return KnownFact(document.id, document.path, data, document.session) if document and data is not None else None


@dataclass(frozen=True, slots=True)
class _Likeness:
    """The vectors of new facts, and from which cosine on two facts may say the same."""

    row: vectors.EmbedderRow
    vectors: Sequence[bytes]
    threshold: float

    @classmethod
    def of(
        cls, index: apsw.Connection, new: Sequence[NewFact], settings: Settings, embedding: Embedding
    ) -> _Likeness | None:
        """None where nothing can be embedded: then only equal words are found."""
        row = vectors.active_embedder(index)
        embedder = embedding.embedder_of(row) if row is not None else None
        if row is None or embedder is None:
            return None
        try:
            found = embedding.vectors_of(embedder, [markdown.plain(fact.statement) for fact in new])
        except EmbeddingError:
            return None
        database.enable_vectors(index)
        return cls(row, found, settings.embedding.duplicate_similarity or embedder.duplicate_similarity)

    def before(self, place: int) -> list[float]:
        """The cosines of a fact with all that stand before it."""
        import numpy as np

        matrix = np.frombuffer(b"".join(self.vectors[: place + 1]), dtype="<f4").reshape(place + 1, -1)
        return [float(cosine) for cosine in matrix[:place] @ matrix[place]]


def _earlier(
    place: int, new: Sequence[NewFact], hashes: Sequence[str], found: Sequence[Same], likeness: _Likeness | None
) -> int | None:
    """The first fact before `place` that says the same and is itself not the same as another."""
    fact = new[place]
    cosines = likeness.before(place) if likeness else [0.0] * place
    for earlier in range(place):
        other = new[earlier]
        if found[earlier] is not None or other.details.valid_until != fact.details.valid_until:
            continue
        is_like = likeness is not None and cosines[earlier] >= likeness.threshold
        if hashes[earlier] == hashes[place] or (
            is_like and is_same_claim(Reading(fact.statement), Reading(other.statement))
        ):
            return earlier
    return None


def list_waiting(root: Path, connection: apsw.Connection) -> tuple[str, ...]:
    """Return the paths of the episodes that no model has drawn facts from, oldest first."""
    episodes = documents.find_documents(connection, "kind = ?", (str(Kind.EPISODE),))
    return tuple(document.path for document in episodes if not _is_extracted(root, document.path))


def _is_extracted(root: Path, path: str) -> bool:
    head = files.read_note(root, path, _HEAD_BYTES) or b""
    return _EXTRACTED.search(head.partition(b"\n---")[0]) is not None
