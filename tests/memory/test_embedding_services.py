"""A vault whose embedding service gives bad vectors or hangs: everything is still found by its words, and reported."""

from __future__ import annotations

from contextlib import closing

import apsw
import pytest
from embedding_service import EmbeddingService
from vaults import Vault

from quaid.index import vectors
from quaid.place import CACHE_FILE, state_folder

BAD = {
    "zero": [0.0] * 48, "nested": [[1.0] * 48], "short": [1.0] * 7, "null": None, "text": "none", "huge": [1e300] * 48,
}  # fmt: skip


@pytest.fixture
def service(monkeypatch, tmp_path):
    running = EmbeddingService()
    monkeypatch.setenv("QUAID_CACHE_DIR", str(tmp_path / "cache"))
    for name, value in running.settings("one").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("quaid.http.FIRST_WAIT_S", 0.02)
    yield running
    running.stop()


@pytest.mark.matrix
@pytest.mark.parametrize("kind", BAD)
def test_a_bad_vector_costs_its_note_alone(vault: Vault, service: EmbeddingService, kind: str) -> None:
    service.bad["porch"] = BAD[kind]
    with vault.memory() as memory:
        for text in ("the lantern is on the porch", "the kettle is in the cellar", "the trumpet is in the attic"):
            memory.remember(text)
        memory.sync()
        for thing in ("kettle", "lantern", "trumpet", "lantern"):  # also from the vectors in memory
            answer = memory.recall(f"where is the {thing}")
            assert thing in answer.hits[0].text
            assert "pending" in answer.degraded
            assert "vectors" not in answer.degraded
        assert vectors.count_pending(memory.index()) == 1
    assert not list(state_folder(vault.root).glob("*.damaged*"))
    service.bad.clear()
    with vault.memory() as memory:  # nothing bad was cached
        assert memory.sync().pending == 0
        assert "pending" not in memory.recall("lantern").degraded


def test_a_bad_row_of_the_cache_is_embedded_again(vault: Vault, service: EmbeddingService) -> None:
    with vault.memory() as memory:
        memory.remember("the lantern is on the porch")
        memory.remember("the kettle is in the cellar")
        memory.sync()
    with closing(apsw.Connection(str(state_folder(vault.root) / CACHE_FILE))) as cache:
        cache.execute("UPDATE vectors SET vector = zeroblob(length(vector))")
        cache.execute("UPDATE vectors SET vector = x'00' WHERE rowid = (SELECT max(rowid) FROM vectors)")
    with vault.memory() as memory:
        assert memory.reindex().pending == 0
        assert memory.recall("lantern").hits[0].text == "the lantern is on the porch"
        assert memory.recall("lantern").degraded == ()


def test_a_service_that_hangs_is_waited_for_once(vault: Vault, service: EmbeddingService, monkeypatch) -> None:
    with vault.memory() as memory:
        memory.remember("the lantern is on the porch")
        memory.sync()
        assert memory.recall("lantern").degraded == ()
    monkeypatch.setattr("quaid.embed.services.QUESTION_WAIT_S", 0.5)
    service.answers.clear()
    asked = len(service.requests)
    for question in ("where is the lantern", "lantern", "porch"):
        with vault.memory() as memory:
            memory.sync()  # nobody waits for it, and it asks for nothing
            answer = memory.recall(question)
        assert answer.hits[0].text == "the lantern is on the porch"
        assert "vectors" in answer.degraded
        assert any("did not answer in 0.5 s" in sentence for sentence in answer.trace["degraded"])
    with vault.memory() as memory:
        memory.remember("the kettle is in the cellar")
        assert memory.recall("kettle").hits[0].text == "the kettle is in the cellar"
    assert len(service.requests) == asked + 1
