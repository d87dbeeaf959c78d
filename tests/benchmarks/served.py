"""Questions of a LoCoMo conversation with its facts, asked of a local index and of PostgreSQL in turn: how many get the same
hits in the same order, the processor time of this process for each and of PostgreSQL, and the statements of a question.
The built-in model makes the vectors.

    python tests/benchmarks/served.py [--conversation conv-26] [--questions 80]
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

os.environ["QUAID_EMBEDDING_PROVIDER"] = "none"
sys.path.insert(0, str(Path(__file__).parents[1]))

import psycopg
from bench import describe_machine
from conversations import vault_of
from locomo_data import load, read_questions
from postgres_server import make_database
from recall_index import NOW, embed, put
from serving import spent_s

from quaid.embed import Embedder, open_embedder, resolve
from quaid.index import vectors
from quaid.index.cache import AnswerCache
from quaid.index.fulltext import Postings
from quaid.index.postgres.connection import Raw
from quaid.index.postgres.server import IndexServer
from quaid.index.postgres.vectors import QuestionVectors
from quaid.index.postgres.words import QuestionWords
from quaid.index.sqlite import database
from quaid.index.vectors import VectorMatrix
from quaid.recall import pipeline
from quaid.recall.options import RecallOptions
from quaid.recall.search import Sources
from quaid.settings import EmbeddingSettings, RecallSettings

OWNER = ("default",)
WARM = 20


sent = [0]
"""The statements so far."""


def counted(method):
    def call(*given):
        sent[0] += 1
        return method(*given)

    return call


def fill(index, root: Path, embedder: Embedder) -> int:
    notes = sorted(root.rglob("*.md"))
    with index.transaction():
        for path in notes:
            put(index, str(path.relative_to(root)), path.read_text(encoding="utf-8"))
        embed(index, embedder)
    vectors.activate_newest(index)
    return len(notes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--conversation", default="conv-26")
    parser.add_argument("--questions", type=int, default=80)
    given = parser.parse_args()
    (talk,) = load([given.conversation])
    embedder = open_embedder(resolve(EmbeddingSettings()))
    owner, address = make_database()
    Raw.ask, Raw.send = counted(Raw.ask), counted(Raw.send)
    server, lite = IndexServer(address, 2), database.make_in_memory()
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"QUAID_CONFIG_DIR": f"{folder}/config", "QUAID_STATE_DIR": f"{folder}/state"}
        root = vault_of(talk, "observation", Path(folder))
        for index in (lite, server.open("v")):
            notes = fill(index, root, embedder)
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
        (folder,) = connection.execute("SHOW data_directory").fetchone()
    postmaster = [int(Path(folder, "postmaster.pid").read_text().split()[0])]
    options, visible = RecallOptions(now=NOW, limit=10), server.open("v", OWNER)
    kept = VectorMatrix(), Postings(), AnswerCache()

    def ask_local(text: str):
        return pipeline.recall(Sources(lite, lite, lambda _: embedder, *kept), text, RecallSettings(), options)

    def ask_served(text: str):
        with visible.snapshot():
            words = QuestionWords()
            own = QuestionVectors(words), words, AnswerCache()
            return pipeline.recall(Sources(visible, visible, lambda _: embedder, *own), text, RecallSettings(), options)

    questions = [question.text for question in read_questions(talk)][: given.questions]
    for text in questions[:WARM]:
        ask_local(text), ask_served(text)
    local = served = same = sent[0] = 0
    database_s = spent_s(postmaster)
    for text in questions:
        started = time.process_time()
        expected = ask_local(text)
        asked = time.process_time()
        found = ask_served(text)
        local, served = local + asked - started, served + time.process_time() - asked
        same += [hit.id for hit in found.hits] == [hit.id for hit in expected.hits]
    database_s = spent_s(postmaster) - database_s
    each = 1000 / len(questions)
    server.close()
    print(describe_machine())
    print(f"{notes} notes: the same hits for {same} of {len(questions)} questions")
    print(f"processor ms: {local * each:.1f} local, {served * each:.1f} and {database_s * each:.1f} of PostgreSQL served,"
          f" {(served + database_s) / local:.2f} times; {sent[0] / len(questions):.1f} statements")  # fmt: skip


if __name__ == "__main__":
    main()
