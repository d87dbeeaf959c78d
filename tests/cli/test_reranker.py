"""The reranker on the command line: fetched when asked for, set, checked, and named where it is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import quaid
from cross_encoder import write_matcher

from quaid import Memory

pytestmark = pytest.mark.usefixtures("calm")


@pytest.fixture
def vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("QUAID_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("QUAID_EMBEDDING_PROVIDER", "none")
    monkeypatch.setattr("quaid.recall.rerank.SCORING_BUDGET_S", 600.0)
    root = tmp_path / "vault"
    Memory.create(root)[0].close()
    for name, text in (("milk", "Maya likes milk in her coffee."), ("oat", "Oat is what Maya likes in coffee.")):
        (root / "facts").mkdir(exist_ok=True)
        (root / "facts" / f"{name}.md").write_text(f"---\nid: {name}\n---\n{text}\n")
    return root


def answer(vault: Path) -> dict:
    _, out, _ = quaid("--vault", str(vault), "recall", "What milk does Maya likes in her coffee?", "--json")
    return json.loads(out)


def test_a_reranker_is_set_by_one_command_and_orders_the_hits(vault: Path, tmp_path: Path) -> None:
    assert next(hit["id"] for hit in answer(vault)["hits"]) == "milk"
    folder = write_matcher(tmp_path / "model", {"oat": 9.0})
    code, _, err = quaid("--vault", str(vault), "config", "recall.reranker", str(folder))
    assert code == 0, err
    assert next(hit["id"] for hit in answer(vault)["hits"]) == "oat"
    quaid("--vault", str(vault), "config", "recall.reranker", "")
    assert next(hit["id"] for hit in answer(vault)["hits"]) == "milk"


def test_a_vault_cannot_name_a_reranker(vault: Path) -> None:
    (vault / "quaid.toml").write_text('[recall]\nreranker = "/somewhere"\n')
    assert answer(vault)["degraded"] == ["vectors"]


def test_without_its_weights_recall_answers_and_says_how_to_get_them(
    vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUAID_RECALL_RERANKER", "ms-marco-MiniLM-L6-v2")
    found = answer(vault)
    assert next(hit["id"] for hit in found["hits"]) == "milk"
    assert found["degraded"] == ["vectors", "reranker"]
    code, out, _ = quaid("--vault", str(vault), "doctor")
    assert code == 1
    assert "The weights of ms-marco-MiniLM-L6-v2 are missing" in out


def test_it_is_fetched_by_its_name_alone(vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr("quaid.cli.init.fetch_weights", lambda settings, *_, **__: asked.append(settings))
    monkeypatch.setattr("quaid.cli.init.open_reranker", lambda _: None)
    _, _, err = quaid("--vault", str(vault), "doctor", "--fetch", "reranker")
    assert [settings.model for settings in asked] == ["ettin-reranker-17m-v1"]
    assert "quaid config recall.reranker ettin-reranker-17m-v1" in err
    code, _, err = quaid("--vault", str(vault), "doctor", "--fetch", "other")
    assert code == 2
    assert "quaid doctor --fetch reranker" in err
