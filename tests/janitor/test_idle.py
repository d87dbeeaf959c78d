"""A night in which there was nothing to do leaves no trace in the history."""

from __future__ import annotations

import pytest
from vaults import Vault

from quaid.janitor.janitor import RunOptions


@pytest.mark.slow
@pytest.mark.parametrize("is_recalled", [False, True])
def test_an_idle_night_makes_no_commit(vault: Vault, *, is_recalled: bool) -> None:
    vault.write_fact("milk", "Maya takes oat milk in her coffee.")
    vault.save()
    with vault.memory() as memory:
        memory.recall("milk")
        memory.janitor.run(RunOptions())
        before = vault.head()
        if is_recalled:
            memory.recall("oat milk")
        memory.janitor.run(RunOptions())
        assert vault.head() == before
