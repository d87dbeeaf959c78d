"""Fixtures of several files here."""

from __future__ import annotations

import pytest
from vaults import Vault


@pytest.fixture
def filled(vault: Vault) -> Vault:
    """A vault with a memory in it and an index that is up to date."""
    with vault.memory() as memory:
        memory.remember("Maya keeps a quokka in the garden")
        memory.recall("quokka")
    return vault


@pytest.fixture
def hasty(filled: Vault, monkeypatch: pytest.MonkeyPatch) -> Vault:
    monkeypatch.setenv("QUAID_GIT_WAIT_S", "0.2")
    return filled
