"""An answer over an unresolved merge says so, at every door; marks that git knows nothing of are text."""

from __future__ import annotations

import json

import pytest
from command_line import quaid
from vaults import Vault, assert_verified

from quaid.agents.prompt_context import build_prompt_context
from quaid.mcp.results import note_result, recall_result

CONFLICT = "<<<<<<< HEAD\nMaya sails on Mondays.\n=======\nMaya sails on Fridays.\n>>>>>>> theirs\n"


WRITTEN = CONFLICT.replace("Maya sails on", "The note says")


def merge(vault: Vault, path: str, text: str = "{}", both: str = "") -> Vault:
    """Begin a merge of two versions of a note, which git cannot end."""
    vault.write(path, text.format("Maya sails.\n") + both)
    vault.save()
    vault.git("switch", "-qc", "theirs")
    vault.write(path, text.format("Maya sails on Fridays.\n") + both)
    vault.save()
    vault.git("switch", "-q", "main")
    vault.write(path, text.format("Maya sails on Mondays.\n") + both)
    vault.save()
    vault.run("merge", "-q", "theirs", check=False)
    return vault


@pytest.fixture
def torn(vault: Vault) -> Vault:
    vault.write_fact("tea", "Maya takes green tea.")
    return merge(vault, "own/Sailing.md")


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


@pytest.mark.parametrize(
    "text", ["A conflict begins with <<<<<<< and ends with >>>>>>>.\n\n=======\n", CONFLICT, f"```\n{CONFLICT}```\n"]
)
@pytest.mark.parametrize("is_committed", [True, False])
def test_marks_that_git_knows_nothing_of_are_text(vault: Vault, text: str, is_committed: bool) -> None:
    path = vault.write("own/Git.md", text)
    if is_committed:
        vault.save()
    with vault.memory() as memory:
        assert "conflict" not in memory.recall("how does a conflict begin?").degraded
        assert "own/Git.md" in {hit.path for hit in memory.search("<<<<<<< Fridays conflict").hits}
        assert_verified(memory)
    asked = ("--vault", str(vault.root))
    assert quaid("conflicts", *asked)[:2] == (0, "No note is in conflict.\n")
    for reference in ("own/Git.md", "Git"):
        code, out, err = quaid("conflicts", "--settle", "ours", reference, *asked)
        assert (code, out) == (1, "")
        assert "own/Git.md is not in conflict" in err
    assert quaid("conflicts", "--settle", "ours", "all", *asked)[0] == 0
    assert path.read_text() == text


def test_marks_that_a_note_shows_stay_when_its_conflict_is_settled(vault: Vault) -> None:
    shown = f"\nThis is how it looks:\n\n```\n{WRITTEN}```\n"
    merge(vault, "own/Git.md", both=shown)
    assert (vault.root / "own/Git.md").read_text().count("<<<<<<<") == 2
    assert quaid("conflicts", "--settle", "ours", "Git", "--vault", str(vault.root))[0] == 0
    assert (vault.root / "own/Git.md").read_text() == "Maya sails on Mondays.\n" + shown


def test_a_conflict_in_code_is_one_when_git_says_so(vault: Vault) -> None:
    merge(vault, "own/Code.md", "```\n{}```\n")
    asked = ("--vault", str(vault.root))
    assert "own/Code.md" in quaid("conflicts", *asked)[1]
    assert quaid("conflicts", "--settle", "theirs", "Code", *asked)[0] == 0
    assert (vault.root / "own/Code.md").read_text() == "```\nMaya sails on Fridays.\n```\n"


def test_what_another_keeps_private_is_not_named(vault: Vault) -> None:
    vault.write(".git/info/attributes", "* merge=text\n")
    merge(vault, "facts/a.md", "---\nid: 01a\ntype: fact\nowner: tom\n---\n{}")
    with vault.memory() as memory:
        assert "conflict" not in memory.recall("sailing").degraded
    with vault.memory(owner="tom") as memory:
        assert "conflict" in memory.recall("sailing").degraded
