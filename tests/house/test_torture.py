"""The harnesses of tests/torture in short: the same functions, a few rounds of each."""

from __future__ import annotations

import importlib
import random
import sys
from pathlib import Path

import pytest
from vaults import Vault

FOLDER = Path(__file__).parents[1] / "torture"
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("calm")]


@pytest.fixture
def harness(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module


@pytest.mark.skipif(sys.platform != "linux", reason="needs read leases")
@pytest.mark.parametrize("name", ["truncate_pause_write", "open_pause_write", "map_memory"])
def test_no_save_is_lost_in_a_crowd(harness, vault: Vault, name: str) -> None:
    crowd = harness("crowd")
    with vault.memory() as memory:
        memory.link("Person 0", "knows", "Maya")
    figures = crowd.aim(vault.root, name, (0.2,))
    assert (figures["saves"], figures["saves lost"], figures["refused"]) == (1, 0, 0)


@pytest.mark.parametrize("pause_s", [0.0, 0.02])
def test_no_commit_of_the_owner_undoes_one_of_quaid(harness, vault: Vault, pause_s: float) -> None:
    figures = harness("races").race(vault.root, 20.0, lambda: pause_s, writes=4)
    assert (figures["writes"], figures["reverted"], figures["facts lost"], figures["staged"]) == (4, 0, 0, 0)


def test_no_kill_loses_what_was_acknowledged_or_blocks_what_follows(harness, vault: Vault) -> None:
    figures = harness("kills").kill_often(vault.root, 60.0, random.Random(7), kills=4)
    assert (figures["kills"], figures["facts lost"], figures["reverted"], figures["blocked"]) == (4, 0, 0, 0)
    vault.run("fsck", "--strict", "--no-dangling")
    assert [name for name in vault.strays() if not name.startswith((".quaid/", "cookie-"))] == []
