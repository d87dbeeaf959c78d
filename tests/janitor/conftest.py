"""What many tests of the janitor begin with."""

from __future__ import annotations

import pytest
from janitor_context import Scripted
from janitor_nights import tidying


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr("quaid.http.FIRST_WAIT_S", 0.02)
    monkeypatch.setattr("quaid.llm.providers.UNDERSTOOD", {})


@pytest.fixture
def scripted():
    """Make services that answer as told; they are closed at the end."""
    made = []

    def make(**answers):
        made.append(Scripted(**answers))
        return made[-1]

    yield make
    for service in made:
        service.close()


@pytest.fixture
def service(scripted):
    """A service whose `answers` a test fills in."""
    return scripted()


@pytest.fixture
def tidy(vault, monkeypatch):
    """`tidy(plan, …)` runs a night in which the tasks plan so; it gives the report."""
    return tidying(vault, monkeypatch)
