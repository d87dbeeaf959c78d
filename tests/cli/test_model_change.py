"""A change of the embedding model: proposed, made in the background, and answers never missing meanwhile."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest
from command_line import quaid
from embed_tiny import write_tiny_model, write_tokenizer
from vaults import wait_for

from quaid import Memory
from quaid.cli.background import run_embedding
from quaid.embed import Embedder, fetch_weights
from quaid.index import vectors
from quaid.index.port import EmbedderRow
from quaid.local import locks
from quaid.place import state_folder
from quaid.settings import EmbeddingSettings
from quaid.sync.embedding import MARKER

pytestmark = pytest.mark.usefixtures("calm")
NOTES = 600


def write_static_model(folder: Path) -> Path:
    from safetensors.numpy import save_file

    folder.mkdir()
    write_tokenizer(folder / "tokenizer.json")
    save_file({"embeddings": np.random.default_rng(5).normal(size=(30, 8)).astype("f4")}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({"model_type": "model2vec", "hidden_dim": 8}))
    return folder


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Three small models, ready: that of `auto`, the quick one and another."""
    monkeypatch.setenv("QUAID_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("QUAID_EMBEDDING_PROVIDER", "local")
    found = {
        "usual": str(write_tiny_model(tmp_path / "usual", seed=7)),
        "other": str(write_tiny_model(tmp_path / "other", seed=8)),
        "quick": str(write_static_model(tmp_path / "quick")),
    }
    for folder in found.values():
        fetch_weights(EmbeddingSettings(model=folder))
    monkeypatch.setattr("quaid.embed.ENGLISH_MODEL", found["usual"])
    monkeypatch.setattr("quaid.embed.QUICK_MODEL", found["quick"])
    return found


@pytest.fixture
def large(tmp_path: Path, models: dict[str, str]) -> Path:
    """A vault with more notes than are embedded in one batch."""
    root = tmp_path / "vault"
    Memory.create(root)[0].close()
    for number in range(NOTES):
        (root / f"note {number}.md").write_text(f"Note {number} tells of tea and kiln {number * 7}.\n")
    return root


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The vaults that were left to a process in the background, of which none is started."""
    found: list[Path] = []
    monkeypatch.setattr("quaid.sync.embedding.leave_embedding", found.append)
    return found


def sets(memory: Memory) -> list[tuple[int, bool, int]]:
    """Dimension, whether it answers, and size of each set of vectors."""
    index = memory.index()
    return [
        (row.dimension, row.active, len(vectors.list_after(index, row, 0))) for row in vectors.list_embedders(index)
    ]


def channels(memory: Memory, question: str) -> tuple[set[str], tuple[str, ...]]:
    answer = memory.recall(question)
    return {channel for hit in answer.hits for channel in hit.channels}, answer.degraded


@pytest.mark.slow
def test_the_old_vectors_answer_until_the_new_ones_are_whole(
    large: Path, models: dict[str, str], left: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory.open(large) as memory:
        memory.sync()
        total = sets(memory)[0][2]
        assert sets(memory) == [(32, True, total)]
    monkeypatch.setenv("QUAID_EMBEDDING_MODEL", models["other"])
    (large / "new.md").write_text("Rex the dog sleeps all day long.\n")
    with Memory.open(large) as memory:
        found, degraded = channels(memory, "rex the dog")
        assert "vector" in found
        assert degraded == ()
        assert sets(memory) == [(32, True, total + 1), (32, False, 0)]
    assert set(left) == {large}
    run_embedding(large)
    with Memory.open(large) as memory:
        assert sets(memory) == [(32, True, total + 1)]
        assert "other" in str(vectors.active_embedder(memory.index()).settings["model"])


@pytest.mark.slow
def test_a_change_that_is_taken_back_leaves_the_old_vectors_whole(
    large: Path, models: dict[str, str], left: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory.open(large) as memory:
        memory.sync()
        before = sets(memory)
    monkeypatch.setenv("QUAID_EMBEDDING_MODEL", models["other"])
    with Memory.open(large) as memory:
        (large / "new.md").write_text("Maya likes tea.\n")
        memory.recall("tea")
        assert len(sets(memory)) == 2
    monkeypatch.setenv("QUAID_EMBEDDING_MODEL", models["usual"])
    with Memory.open(large) as memory:
        (large / "new.md").unlink()
        assert memory.sync().embedded == 0
        assert sets(memory) == before


@pytest.mark.slow
def test_a_large_vault_answers_with_quick_vectors_first(
    large: Path, left: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quaid.sync.embedding.MANY", NOTES // 2)
    with Memory.open(large) as memory:
        found, _ = channels(memory, "maya likes tea")
        assert "vector" in found
        rows = sets(memory)
        total = rows[0][2]
        assert rows == [(8, True, total), (32, False, 0)]
        assert total >= NOTES
    assert left
    out = quaid("--vault", str(large), "status")[1]
    assert "quick answers until all are" in out
    run_embedding(large)
    with Memory.open(large) as memory:
        assert sets(memory) == [(32, True, total)]
        memory.reindex()  # the cache has the vectors: nothing is gained by quick ones
        assert sets(memory) == [(32, True, total)]


@pytest.mark.slow
def test_a_small_vault_has_no_use_for_quick_vectors(large: Path, left: list[Path]) -> None:
    with Memory.open(large) as memory:
        memory.sync()
        assert [dimension for dimension, _, _ in sets(memory)] == [32]
    assert left == []


@pytest.mark.slow
def test_a_process_that_is_killed_half_way_leaves_the_old_set_and_goes_on(
    large: Path, models: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory.open(large) as memory:
        memory.sync()
        whole = sets(memory)
    monkeypatch.setenv("QUAID_EMBEDDING_MODEL", models["other"])
    child = os.fork()
    if child == 0:
        from quaid.sync import embedding

        real = embedding.Embedding._fill_batch
        monkeypatch.setattr(
            embedding.Embedding,
            "_fill_batch",
            lambda *args: real(*args) and os.kill(os.getpid(), signal.SIGKILL),
        )
        run_embedding(large)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    (state_folder(large) / MARKER).touch()
    with Memory.open(large) as memory:  # opening it starts the process again
        assert "vector" in channels(memory, "tea")[0]
        wait_for(lambda: not (state_folder(large) / MARKER).exists(), "the end of the embedding")
        wait_for(lambda: not locks.is_held(state_folder(large) / locks.EMBEDDING_LOCK), "the end of the process")
        memory.recall("tea")
        assert sets(memory) == whole
        assert "other" in str(vectors.active_embedder(memory.index()).settings["model"])


@pytest.mark.slow
@pytest.mark.parametrize(("share", "is_proposed"), [(0.05, False), (0.2, True)])
def test_another_model_is_proposed_from_a_tenth_of_other_languages_on(
    tmp_path: Path, models: dict[str, str], share: float, is_proposed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "vault"
    Memory.create(root)[0].close()
    for number in range(60):
        is_german = number < 60 * share
        text = f"Das ist die Notiz {number}." if is_german else f"This is the note {number}, and it is the best."
        (root / f"{number}.md").write_text(f"{text}\n")
    step = "quaid config embedding.model multilingual-e5-small"
    assert (step in quaid("--vault", str(root), "status")[1]) is is_proposed
    assert (step in quaid("--vault", str(root), "doctor")[1]) is is_proposed
    monkeypatch.setenv("QUAID_EMBEDDING_MODEL", models["other"])
    assert step not in quaid("--vault", str(root), "status")[1]


@pytest.mark.slow
def test_a_question_that_is_being_answered_when_the_sets_change_places_is_answered(
    large: Path, models: dict[str, str], left: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory.open(large) as memory:
        memory.sync()
    monkeypatch.setenv("QUAID_EMBEDDING_MODEL", models["other"])
    changed: list[EmbedderRow] = []

    with Memory.open(large) as memory:
        real = memory.embedding.embedder_of

        def overtaken(row: EmbedderRow) -> Embedder | None:
            if not changed:
                changed.append(row)
                run_embedding(large)  # on a connection of its own
            return real(row)

        memory.recall("kiln", keyword_only=True)
        monkeypatch.setattr(memory.embedding, "embedder_of", overtaken)
        assert channels(memory, "tea")[0] == {"keyword", "vector"}
        assert channels(memory, "tea")[0] == {"keyword", "vector"}
        assert vectors.active_embedder(memory.index()).fingerprint != changed[0].fingerprint
    assert not list(state_folder(large).glob("*.damaged"))
