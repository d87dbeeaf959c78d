from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from embedding_service import EmbeddingService


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddingService]:
    """An embedding service, which every vault of the test is set to use."""
    running = EmbeddingService()
    monkeypatch.setenv("QUAID_CACHE_DIR", str(tmp_path / "cache"))
    for name, value in running.settings("one").items():
        monkeypatch.setenv(name, value)
    yield running
    running.stop()
