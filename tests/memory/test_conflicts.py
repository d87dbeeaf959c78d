"""An answer over the marks of a merge conflict says so, at every door."""

from __future__ import annotations

import json

import pytest
from vaults import Vault

from quaid.agents.prompt_context import build_prompt_context
from quaid.mcp.results import note_result, recall_result

CONFLICT = "<<<<<<< HEAD\nMaya sails on Mondays.\n=======\nMaya sails on Fridays.\n>>>>>>> theirs\n"


@pytest.fixture
def torn(vault: Vault) -> Vault:
    vault.write("own/Sailing.md", CONFLICT)
    vault.write_fact("tea", "Maya takes green tea.")
    vault.save()
    return vault


def test_the_answer_names_the_note_whatever_was_asked(torn: Vault) -> None:
    with torn.memory() as memory:
        for answer in (memory.recall("when does Maya sail?"), memory.recall("tea"), memory.search("sails")):
            assert "conflict" in answer.degraded
            (said,) = [line for line in answer.trace["degraded"] if line.startswith("conflict:")]
            assert "own/Sailing.md" in said
        told = memory.recall("when does Maya sail?")
        assert "own/Sailing.md" in json.dumps(recall_result(told).structured_content["degraded"])
        assert "sails on Fridays" in str(note_result(memory.get("Sailing")).structured_content["text"])
        hooked = build_prompt_context(memory.root, memory.settings, memory.recall, "When does Maya sail?", "")
        assert "own/Sailing.md holds" in hooked.text or "in own/Sailing.md" in hooked.text


def test_it_is_said_of_the_past_too_and_no_longer_once_it_is_resolved(torn: Vault) -> None:
    then = torn.head()
    torn.write("own/Sailing.md", "Maya sails on Mondays.\n")
    torn.save()
    with torn.memory() as memory:
        assert "conflict" not in memory.recall("when does Maya sail?").degraded
        assert "conflict" in memory.recall("when does Maya sail?", as_of=then).degraded


def test_marks_that_are_none_are_not_reported(vault: Vault) -> None:
    vault.write("own/Git.md", "A conflict begins with <<<<<<< and ends with >>>>>>>.\n\n=======\n")
    with vault.memory() as memory:
        assert "conflict" not in memory.recall("how does a conflict begin?").degraded


def test_what_another_keeps_private_is_not_named(vault: Vault) -> None:
    vault.write("facts/a.md", f"---\nid: 01a\ntype: fact\nowner: tom\n---\n{CONFLICT}")
    with vault.memory() as memory:
        assert "conflict" not in memory.recall("sailing").degraded
    with vault.memory(owner="tom") as memory:
        assert "conflict" in memory.recall("sailing").degraded
