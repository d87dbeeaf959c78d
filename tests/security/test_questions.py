"""What one owner of a vault asks says what they keep private: it is told to no other."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from command_line import quaid
from vaults import Vault

sys.path.insert(0, str(Path(__file__).parents[1] / "guarantees"))
from measures import open_page

from quaid.place import LOCAL_FILE, state_folder

ASKED = "Where did I hide the wombatring?"


@pytest.mark.parametrize(
    ("asks", "looks", "is_told"), [("jon", "maya", False), ("maya", "jon", False), ("maya", "maya", True)]
)
def test_a_question_that_found_nothing_is_told_to_nobody_else(
    vault: Vault, monkeypatch: pytest.MonkeyPatch, asks: str, looks: str, is_told: bool
) -> None:
    vault.write("quaid.toml", 'owner = "maya"\n[recall]\ngaps = "text"\n')
    vault.save()
    monkeypatch.setenv("QUAID_OWNER", asks)
    assert quaid("--vault", str(vault.root), "recall", ASKED)[0] == 0
    kept = b"".join(path.read_bytes() for path in state_folder(vault.root).glob(f"{LOCAL_FILE}*"))
    assert (b"wombatring" in kept) is (asks == "maya")
    monkeypatch.setenv("QUAID_OWNER", looks)
    told = [
        quaid("--vault", str(vault.root), *command)[1]
        for command in (["stats", "--gaps"], ["stats", "--recall"], ["recall", "--last"])
    ]
    with open_page(vault.root) as client:
        told += [client.get(path).text for path in ("/health", "/", "/review")]
    assert ["wombatring" in text for text in told] == [is_told, False, is_told, is_told, False, False]
