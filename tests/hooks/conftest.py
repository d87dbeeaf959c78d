from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def started(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The vaults that a worker would be started for: only the tests that are about workers start one."""
    started: list[Path] = []
    monkeypatch.setattr("quaid.hooks.queue_worker.start_worker", started.append)
    return started


@pytest.fixture
def sockets(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the sockets. Its path is short: the name of a socket may have a hundred bytes."""
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield Path(folder)
