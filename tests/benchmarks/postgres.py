"""How fast and how large an index of many vaults in PostgreSQL is.

    python tests/benchmarks/postgres.py --vaults 20 --notes 100
    python tests/benchmarks/postgres.py --vaults 200 --notes 500 --json result.json

Every vault has a bare repository of its own notes; vectors are those of an embedder whose cosines are word overlap, so
that what is measured is the database. Each question is asked as a server would: of a handle that was just opened, and
once more of one that is kept.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

from bench import describe_machine
from scale import PEOPLE, PLACES, THINGS, VERBS

sys.path.insert(0, str(Path(__file__).parents[1]))

from postgres_server import make_database
from recall_index import NOW

from quaid.index import documents, vectors
from quaid.index.postgres.server import IndexServer
from quaid.index.vectors import VectorMatrix
from quaid.recall import pipeline
from quaid.recall.options import RecallOptions
from quaid.recall.search import Sources
from quaid.server.vaults import index_commit
from quaid.settings import RecallSettings, Settings

DIMENSION = 384


class ByWords:
    """An embedder in which every word is a direction, of the dimension of the built-in model."""

    fingerprint, dimension, duplicate_similarity, relevant_similarity = "by-words", DIMENSION, 0.95, 0.35

    def embed(self, texts):
        import numpy as np

        made = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in zip(made, texts, strict=True):
            for word in text.lower().split():
                row[zlib.crc32(word.encode()) % self.dimension] += 1
        return made / np.maximum(np.linalg.norm(made, axis=1, keepdims=True), 1e-9)

    def embed_query(self, text):
        return self.embed([text])[0]


def make_repository(folder: Path, notes: int, seed: int) -> None:
    """A bare repository with one commit of facts, each with an edge, and a note about each of some people."""
    shuffled = random.Random(seed)
    people = shuffled.sample(PEOPLE, min(20, len(PEOPLE)))
    files = {"quaid.toml": ""}
    for number in range(notes):
        who, verb, thing, place = (shuffled.choice(of) for of in (people, VERBS, THINGS, PLACES))
        files[f"facts/{number}.md"] = (
            f"---\nid: 01{seed}x{number}\ntype: fact\nstatus: active\ncreated: 2026-{1 + number % 12:02}-01T00:00:00Z\n---\n"
            f"[[{who}]] {verb} {thing} near {place}, the {number}th time.\n\n- [[{who}]] likes [[{thing}]]\n"
        )
    lines = ["commit refs/heads/main", "committer A <a@example.org> 1790000000 +0000", "data 1", "x"]
    for path, text in files.items():
        lines += [f"M 644 inline {path}", f"data {len(text.encode())}", text]
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", folder], check=True)
    stream = ("\n".join(lines) + "\n").encode()
    subprocess.run(["git", "-C", folder, "fast-import", "--quiet"], input=stream, check=True)


def embed_all(index, embedder) -> None:
    with index.transaction():
        row = vectors.use_embedder(index, embedder.fingerprint, embedder.dimension, {})
        pending = vectors.list_pending(index, 10**6)
        made = embedder.embed([text for _, _, text in pending])
        items = [(i, key, v.astype("<f4").tobytes()) for (i, key, _), v in zip(pending, made, strict=True)]
        vectors.insert(index, row, items)


def ask(index, second, question: str, kept: Sources | None = None) -> tuple[float, Sources]:
    """Answer one question; return the milliseconds it took, and what to ask the next one of."""
    embedder = ByWords()
    sources = kept or Sources(index, second, lambda _: embedder, VectorMatrix())
    started = time.perf_counter()
    with index.snapshot():
        pipeline.recall(sources, question, RecallSettings(), RecallOptions(now=NOW))
    return (time.perf_counter() - started) * 1000, sources


def quantiles(values: list[float]) -> tuple[float, float]:
    return statistics.median(values), statistics.quantiles(values, n=20)[-1]


def measure(vaults: int, notes: int, questions: int) -> dict[str, float]:
    import psycopg

    owner, address = make_database()
    server, shuffled = IndexServer(address), random.Random(1)
    taken, embedded, edited = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(vaults):
            repository = Path(folder, f"{number}.git")
            make_repository(repository, notes, number)
            index = server.open(f"vault {number}")
            started = time.perf_counter()
            index_commit(index, repository, "main", Settings())
            taken.append(time.perf_counter() - started)
            started = time.perf_counter()
            embed_all(index, ByWords())
            embedded.append(time.perf_counter() - started)
            started = time.perf_counter()
            index_commit(index, repository, "main", Settings())
            edited.append((time.perf_counter() - started) * 1000)
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute("ANALYZE")
        size = connection.execute("SELECT pg_database_size(current_database())").fetchone()
    assert documents.count(server.open("vault 0")) == notes
    first, again = [], []
    for _ in range(questions):
        name = f"vault {shuffled.randrange(vaults)}"
        asked = f"what does {shuffled.choice(PEOPLE)} do near {shuffled.choice(PLACES)} with {shuffled.choice(THINGS)}?"
        index, second = server.open(name), server.open(name)
        took, sources = ask(index, second, asked)
        first.append(took)
        ask(index, second, "sourdough", sources)
        again.append(ask(index, second, asked, sources)[0])
    server.close()
    return {
        "indexing, notes/s": vaults * notes / sum(taken), "vectors, chunks/s": vaults * notes / sum(embedded),
        "no-change commit, ms": statistics.median(edited), "bytes per note": size[0] / (vaults * notes),
        "recall p50, ms": quantiles(first)[0], "recall p95, ms": quantiles(first)[1],
        "recall of a kept handle p50, ms": quantiles(again)[0], "recall of a kept handle p95, ms": quantiles(again)[1],
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vaults", type=int, default=20)
    parser.add_argument("--notes", type=int, default=100)
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--json", help="write the figures to this file")
    given = parser.parse_args()
    found = measure(given.vaults, given.notes, given.questions)
    print(describe_machine())
    print(f"{given.vaults} vaults of {given.notes} notes")
    for name, value in found.items():
        print(f"{name:36} {value:>12,.1f}")
    if given.json:
        Path(given.json).write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
