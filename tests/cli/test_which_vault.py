"""A write names the vault that it went to where that is not the one around the working folder; a read does not."""

from __future__ import annotations

import json

import pytest
from command_line import quaid
from vaults import Vault

WRITES = (
    ["remember", "Maya keeps a spare key in the shed"], ["link", "Maya", "works_at", "Acme"], ["note", "call back"],
    ["forget", "01milk"], ["restore", "01milk"], ["edit", "01milk"], ["extract", "talk.txt"], ["import", "notes"],
    ["undo", "--last"],
)  # fmt: skip


@pytest.mark.slow
def test_every_write_says_where(vault: Vault, tmp_path, monkeypatch) -> None:
    vault.write_fact("milk", "Maya takes oat milk in her coffee.")
    vault.save()
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "notes").mkdir(parents=True)
    (elsewhere / "notes/a.md").write_text("# Biscuit\n\nBiscuit is a quokka.\n")
    (elsewhere / "talk.txt").write_text("Maya: We adopted a quokka.\nJon: How lovely!\n")
    monkeypatch.setenv("EDITOR", "true")
    monkeypatch.setenv("QUAID_HOME", str(vault.root))
    monkeypatch.chdir(elsewhere)
    said = f"The vault is {vault.root.resolve()}\n"
    for line in WRITES:
        code, out, err = quaid(*line, "--json")
        assert (code, said in err) == (0, True), (line, err)
        assert json.loads(out)["v"] == 1
    for line in (["recall", "milk"], ["list"], ["get", "01milk"], ["note", "-q", "call"]):
        assert said not in quaid(*line)[2]
    monkeypatch.chdir(vault.root)
    assert said not in quaid("remember", "Maya keeps a second key at work")[2]
