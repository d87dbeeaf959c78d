"""A clock that was set back is noticed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from vaults import Vault

from quaid.report.status import status_of


def complaints(vault: Vault) -> list[str]:
    with vault.open() as memory:
        return [result.what for result in status_of(memory).attention if "clock" in result.what]


def test_status_reports_a_clock_that_is_behind_the_newest_commit(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    vault.write("Plan.md", "Sail to Porto.\n")
    vault.save()
    assert complaints(vault) == []
    monkeypatch.setenv("GIT_COMMITTER_DATE", (datetime.now(UTC) + timedelta(days=2)).isoformat())
    vault.write("Plan.md", "Sail to Lisbon.\n")
    vault.save()
    (complaint,) = complaints(vault)
    assert complaint.startswith("The clock of this machine is behind the newest change, of ")
