"""Two weeks of somebody's life, as a strong and as a middling model understand them.

The middling one says nothing of what a fact replaces, leaves weekdays as they were spoken, takes two proposals of the
assistant for the owner's word, and misses a joke.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from scenarios.playing import RecordedModel, judge, play
from vaults import be_calm

LIFE = Path(__file__).parent / "a-changing-life"


@pytest.mark.slow
@pytest.mark.parametrize(("model", "missing", "believed"), [("strong", 0, 0), ("middling", 2, 2)])
def test_a_changing_life_is_known_as_it_is_now(model, missing, believed, tmp_path, monkeypatch):
    be_calm(monkeypatch)
    monkeypatch.delenv("QUAID_EMBEDDING_PROVIDER", raising=False)
    recorded = RecordedModel(json.loads((LIFE / f"answers-of-a-{model}-model.json").read_text(encoding="utf-8")))
    for name, value in {
        "QUAID_MODELS_PROVIDER": "anthropic", "QUAID_MODELS_URL": recorded.url, "QUAID_MODELS_DEEP": "wise",
        "QUAID_MODELS_FAST": "quick", "ANTHROPIC_API_KEY": "sk-scenario",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    play(LIFE, tmp_path / "vault")
    outcome = judge(LIFE, tmp_path / "vault")
    print(outcome.count())
    recorded.close()
    assert len(outcome.missing) <= missing, outcome
    assert len(outcome.believed) <= believed, outcome
    assert len(outcome.unanswered) <= missing, outcome
    assert outcome.outdated == []
