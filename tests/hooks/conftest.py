from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from residents import listening
from vaults import Vault


@pytest.fixture(autouse=True)
def started(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The vaults that a worker would be started for: only the tests that are about workers start one."""
    started: list[Path] = []
    monkeypatch.setattr("quaid.hooks.entry.start_worker", started.append)
    return started


@pytest.fixture
def answering(home: Vault, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process that has the memory open."""
    with listening(home.root, monkeypatch):
        yield
