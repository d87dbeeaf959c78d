from __future__ import annotations

import pytest
from model_service import Service

from quaid.local.model_usage import ModelRecords
from quaid.place import state_folder


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr("quaid.http.FIRST_WAIT_S", 0.02)
    monkeypatch.setattr("quaid.llm.providers.UNDERSTOOD", {})
    monkeypatch.setattr("quaid.llm.providers.WITHOUT_SYSTEM", set())


@pytest.fixture
def service():
    running = Service()
    yield running
    running.close()


@pytest.fixture
def records(tmp_path):
    return ModelRecords(state_folder(tmp_path) / "local.db")
