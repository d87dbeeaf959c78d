"""Fixtures of the tests that extract."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from extraction_runs import ANSWER, SAID, picture
from replay import Replay, facts_of, write_talk
from vaults import copy_vault


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr("quaid.http.FIRST_WAIT_S", 0.02)
    monkeypatch.setattr("quaid.llm.providers.UNDERSTOOD", {})


@pytest.fixture
def service(monkeypatch) -> Iterator[Replay]:
    """A model that learns two facts from session s1, and other things from others."""
    replay = Replay(
        {"s1": ANSWER, "s2": facts_of("Tom bakes bread every day."), "s3": facts_of("Maya plays the flute.")}
    )
    for name, value in replay.environ().items():
        monkeypatch.setenv(name, value)
    yield replay
    replay.close()


@pytest.fixture
def talk(tmp_path) -> Path:
    return write_talk(tmp_path / "t.jsonl", *SAID)


@pytest.fixture
def untroubled(service, talk, tmp_path) -> dict[str, str]:
    """The notes as they are when nothing goes wrong."""
    other = copy_vault(tmp_path / "untroubled")
    with other.memory() as memory:
        memory.extract(talk)
    service.requests.clear()
    return picture(other)
