"""Fixtures of the tests of recall."""

from __future__ import annotations

import pytest
from model_service import Service
from recall_index import NOTES, make_index


@pytest.fixture
def index():
    """An index of a few notes, without vectors."""
    connection = make_index(NOTES)
    yield connection
    connection.close()


@pytest.fixture
def model_service(monkeypatch):
    """A model service that is not waited for when it fails."""
    monkeypatch.setattr("quaid.http.FIRST_WAIT_S", 0.02)
    monkeypatch.setattr("quaid.llm.providers.UNDERSTOOD", {})
    running = Service()
    yield running
    running.close()
