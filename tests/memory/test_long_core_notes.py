"""A core note that a session has no room for is named before its owner wonders."""

from __future__ import annotations

import pytest
from vaults import Vault

from quaid.report.checks import check_core_notes
from quaid.report.status import status_of

pytestmark = pytest.mark.usefixtures("calm")


def test_status_and_doctor_name_a_core_note_that_does_not_fit_and_by_how_much(vault: Vault) -> None:
    vault.write("MEMORY.md", "# Memory\n\n" + "- Maya learned one thing more.\n" * 400)
    with vault.memory() as memory:
        (item,) = [each for each in status_of(memory).attention if "MEMORY.md" in each.what]
        found = next(check_core_notes(memory))
    assert "characters of it are left out" in item.what
    assert found == item
    wanted = item.next_step.rpartition(" ")[2]
    with vault.memory() as memory:
        memory.configure("hooks.context_tokens", wanted)
    with vault.memory() as memory:
        assert not list(check_core_notes(memory))
        assert not [item for item in status_of(memory).attention if "MEMORY.md" in item.what]
