"""Three machines that change one vault at the same time, at random, and are killed: the command in tests/benchmarks."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("calm")


def test_a_team_ends_at_one_memory_and_loses_nothing(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
    team = importlib.import_module("team")
    figures, problems = team.work(tmp_path, machines=3, changes=5, seed=4)
    assert problems == []
    assert figures["statements that must be there"] > 5
