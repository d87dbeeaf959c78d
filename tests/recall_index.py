"""Indexes of a few notes in memory, an embedder whose cosines are word overlap, and candidates without an index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import apsw
import numpy as np
from hand_written import parse_note

from quaid.index import documents, vectors
from quaid.index.documents import Document, KnownFile, list_days
from quaid.index.sqlite import database
from quaid.index.vectors import VectorMatrix
from quaid.model import Recall
from quaid.recall import pipeline
from quaid.recall.options import WEIGHTS, Profile, RecallOptions
from quaid.recall.rerank import Judge
from quaid.recall.search import Sources
from quaid.settings import RecallSettings

NOW = datetime(2026, 11, 20, tzinfo=UTC)


class ByWords:
    """An embedder in which every word is a direction."""

    fingerprint, dimension, duplicate_similarity, relevant_similarity = "by-words", 64, 0.95, 0.35

    def embed(self, texts):
        made = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in zip(made, texts, strict=True):
            for word in text.lower().replace(".", " ").replace(":", " ").split():
                row[sum(map(ord, word)) % self.dimension] += 1
        return made / np.maximum(np.linalg.norm(made, axis=1, keepdims=True), 1e-9)

    def embed_query(self, text):
        return self.embed([text])[0]

    def warm(self):
        pass


NOTES = {
    "facts/a.md": "---\nid: 01a\n---\n[[Maya Chen]] takes oat milk in her coffee.\n\n- [[Maya Chen]] prefers [[Oat milk]]\n",
    "facts/b.md": "---\nid: 01b\nvalid_until: 2026-01-01\n---\nMaya Chen takes cow milk in her coffee.\n",
    "facts/c.md": "---\nid: 01c\nsuperseded_by: '[[a]]'\n---\nMaya Chen takes no milk in her coffee.\n",
    "facts/d.md": "---\nid: 01d\n---\nThe boiler was repaired in March.\n",
    "entities/Maya Chen.md": "---\nid: 01m\ntype: person\naliases: [Maya]\n---\n- works_at [[Acme]]\n",
    "entities/Acme.md": "---\nid: 01n\ntype: organization\n---\n- located_in [[Oslo]]\n",
    "episodes/s1.md": "---\nid: 01e\ntype: episode\nsession: s1\n---\n**Maya**: the heating broke ^t1\n\n**Tom**: call the plumber ^t2\n",
    "own/Trip.md": "# Plans\n\nhike around the fjord\n",
}


def make_index(notes: Mapping[str, str], embedder: ByWords | None = None) -> apsw.Connection:
    connection = database.make_in_memory()
    for path, text in notes.items():
        put(connection, path, text)
    if embedder is not None:
        embed(connection, embedder)
    return connection


def put(connection: apsw.Connection, path: str, text: str) -> int:
    note = parse_note(path, text.encode())
    return documents.replace_document(connection, note, KnownFile(1, 1, 1, 1, 1, note.content_hash))


def embed(connection: apsw.Connection, embedder: ByWords) -> None:
    row = vectors.use_embedder(connection, embedder.fingerprint, embedder.dimension, {})
    pending = vectors.list_pending(connection, 10**6)
    made = embedder.embed([text for _, _, text in pending])
    vectors.insert(
        connection, row, [(i, key, v.astype("<f4").tobytes()) for (i, key, _), v in zip(pending, made, strict=True)]
    )


def ask(
    connection: apsw.Connection,
    text: str,
    embedder: ByWords | None = None,
    profile: Profile | None = None,
    judge: Judge | None = None,
    matrix: VectorMatrix | None = None,
    settings: RecallSettings | None = None,
    **options: Any,
) -> Recall:
    """The answer of the pipeline alone. `vectors` are asked of `matrix`, a new one unless given."""
    sources = Sources(connection, connection, lambda _: embedder, matrix or VectorMatrix(), judge=judge)
    wanted = RecallOptions(**{"now": NOW, **options})
    if profile is not None and not profile.cut_share and wanted.limit is None and wanted.budget is None:
        wanted = replace(wanted, limit=100)
    return pipeline.recall(sources, text, settings or RecallSettings(), replace(wanted, profile=profile))


def everything(**changed: Any) -> Profile:
    """A ranking of all that is found."""
    return Profile(**{"cut_share": 0.0, **changed})


def without(*features: str, **changed: Any) -> Profile:
    """The default ranking without some features."""
    return Profile({**WEIGHTS, **dict.fromkeys(features, 0.0)}, **changed)


def paths(answer: Recall) -> list[str]:
    return [hit.path for hit in answer.hits]


def ids(answer: Recall) -> set[str]:
    return {hit.id for hit in answer.hits}


def candidate(chunk_id: int, text: str = "words", **more: Any) -> Document:
    """One without an index: a fact of its own unless `more` says otherwise."""
    known: dict[str, Any] = dict.fromkeys(Document._fields)
    known |= {"chunk_id": chunk_id, "doc_id": chunk_id, "ordinal": 0, "text": text, "path": f"{chunk_id}.md",
              "id": str(chunk_id), "kind": "fact", "title": str(chunk_id), "owner": "default", "technical": False,
              "pinned": False, "verified": False, "confirmations": 0}  # fmt: skip
    known |= more
    known["days"] = list_days(known["text"], known["said_at"] or known["created"])
    if known["turn"] is not None:
        known |= {"turn_speaker": known["speaker"], "speaker": None}
    return Document(**known)


def turn(chunk_id: int, number: int, text: str = "words", doc_id: int = 1, **more: Any) -> Document:
    """A turn of the session that is document `doc_id`."""
    known = {"doc_id": doc_id, "turn": number, "ordinal": number - 1, "speaker": "Maya", "kind": "episode",
             "path": f"episodes/s{doc_id}.md", "id": f"e{doc_id}", **more}  # fmt: skip
    return candidate(chunk_id, text, **known)
