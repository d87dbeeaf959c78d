from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from embedding_service import EmbeddingService, serve


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddingService]:
    """An embedding service, which every vault of the test is set to use."""
    yield from serve(tmp_path / "cache", monkeypatch, "one")
