"""Other retrievers on the texts and vectors of a vault's index, each where its package is installed.

None of them is a dependency of Quaid: `pip install bm25s chromadb lancedb` into a virtual environment that has Quaid.
*bm25* is bm25s as it comes. *chromadb* ranks by vectors alone (HNSW, cosine). *LanceDB hybrid* fuses its full-text search
and its vectors by its own reciprocal rank fusion. A text is a chunk of a turn with its day and speaker, as Quaid embeds
it; a turn is found by its best chunk.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
from locomo_data import Turn

from quaid import Memory
from quaid.embed import open_embedder
from quaid.index import vectors

CHUNKS = 100
"""Chunks that are asked for; the best turns are among them."""

Vectors = np.ndarray[Any, np.dtype[np.float32]]
Retriever = Callable[[list[str], Vectors, list[str], Vectors], list[list[int]]]
"""(texts, their vectors, queries, their vectors) -> for each query the places of the texts that it finds, best first."""


def rank(memory: Memory, queries: Sequence[str]) -> dict[str, list[list[Turn]]]:
    """By retriever that is installed, the turns that it finds for each query, best first."""
    installed = {name: retrieve for name, (package, retrieve) in RETRIEVERS.items() if find_spec(package)}
    embedder = open_embedder(memory.settings.embedding)
    if not installed or not queries or embedder is None:
        return {}
    turns, texts, matrix = _read_chunks(memory)
    asked = np.stack([embedder.embed_query(query) for query in queries])
    return {
        name: [
            [*dict.fromkeys(turns[place] for place in found)] for found in retrieve(texts, matrix, [*queries], asked)
        ]
        for name, retrieve in installed.items()
    }


def _read_chunks(memory: Memory) -> tuple[list[Turn], list[str], Vectors]:
    """The turn, the embedded text and the vector of each chunk of a conversation."""
    index = memory.index()
    row = vectors.active_embedder(index)
    assert row is not None
    text = "CASE context WHEN '' THEN text ELSE context || ': ' || text END"
    chunks = index.execute(
        f"SELECT chunk_id, session, turn, {text} FROM chunks JOIN documents USING (doc_id) WHERE turn IS NOT NULL "
        "ORDER BY chunk_id"
    ).fetchall()
    stored = index.vectors.get(row, [chunk[0] for chunk in chunks])
    matrix = np.stack([np.frombuffer(stored[chunk[0]], np.float32) for chunk in chunks])
    return [(chunk[1], chunk[2]) for chunk in chunks], [chunk[3] for chunk in chunks], matrix


def _ask_bm25(texts: list[str], matrix: Vectors, queries: list[str], asked: Vectors) -> list[list[int]]:
    import bm25s

    retriever = bm25s.BM25()
    retriever.index(bm25s.tokenize(texts, show_progress=False), show_progress=False)
    tokens = bm25s.tokenize(queries, show_progress=False)
    places, scores = retriever.retrieve(tokens, k=min(CHUNKS, len(texts)), show_progress=False)
    return [
        [int(place) for place, score in zip(*row, strict=True) if score > 0] for row in zip(places, scores, strict=True)
    ]


def _ask_chroma(texts: list[str], matrix: Vectors, queries: list[str], asked: Vectors) -> list[list[int]]:
    import chromadb

    client = chromadb.EphemeralClient(chromadb.Settings(anonymized_telemetry=False))
    turns: Any = client.create_collection("turns", configuration={"hnsw": {"space": "cosine"}}, embedding_function=None)
    size = client.get_max_batch_size()
    for start in range(0, len(texts), size):
        end = min(start + size, len(texts))
        turns.add(ids=[str(place) for place in range(start, end)], embeddings=matrix[start:end])
    found = turns.query(query_embeddings=asked, n_results=min(CHUNKS, len(texts)), include=[])
    client.delete_collection("turns")
    return [[int(place) for place in places] for places in found["ids"]]


def _ask_lance(texts: list[str], matrix: Vectors, queries: list[str], asked: Vectors) -> list[list[int]]:
    import lancedb
    from lancedb.rerankers import RRFReranker

    with tempfile.TemporaryDirectory() as folder:
        rows = [{"place": n, "text": text, "vector": matrix[n]} for n, text in enumerate(texts)]
        table: Any = lancedb.connect(folder).create_table("turns", rows)
        table.create_fts_index("text")
        fusion = RRFReranker()
        return [
            [row["place"] for row in table.search(query_type="hybrid").vector(vector).text(query).rerank(fusion)
             .limit(CHUNKS).to_list()]
            for query, vector in zip(queries, asked, strict=True)
        ]  # fmt: skip


RETRIEVERS: dict[str, tuple[str, Retriever]] = {
    "bm25": ("bm25s", _ask_bm25),
    "chromadb": ("chromadb", _ask_chroma),
    "LanceDB hybrid": ("lancedb", _ask_lance),
}
"""Each with its package."""
