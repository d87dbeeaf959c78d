"""Two owners share a vault: no door shows one what the other keeps private, nor that it is there."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from mcp_host import talk
from recall.test_owners import OPEN, SECRET, WORDS, note
from residents import listening, printed
from vaults import Vault, copy_vault

from quaid.cli.main import main
from quaid.errors import NoteNotFoundError
from quaid.memory import Memory
from quaid.resident.call import Call

pytestmark = pytest.mark.usefixtures("calm")

REFERENCES = [
    "01s1", "01s2", "01s3", "01s4", "01s5", "01s7", "facts/s1.md", "s1", "later", "Numbat Brown", "numbat brown",
    "Wombatville", "bilby", "01s7#t1", "talk", "talk#t1", "episodes/talk.md", "own/jon-notes.md", "jon-notes",
]  # fmt: skip
"""Every way to call a private note of Jon's."""
NOWHERE = "nowhere-at-all"

DOORS: dict[str, Callable[[Memory, str], Any]] = {
    "get": lambda memory, ref: memory.get(ref), "history": lambda memory, ref: memory.history(ref),
    "why": lambda memory, ref: memory.why(ref), "forget": lambda memory, ref: memory.forget(ref),
    "restore": lambda memory, ref: memory.restore(ref),
}  # fmt: skip
LISTS: dict[str, Callable[[Memory], Any]] = {
    "log": lambda memory: [asdict(commit) for commit in memory.answers.log(200)],
    "export": lambda memory: list(memory.export()), "context": lambda memory: memory.context(20_000),
    "why of what rests on it": lambda memory: asdict(memory.why("01m2")),
    "why of what it replaced": lambda memory: asdict(memory.why("01m3")),
    "why of what it links to": lambda memory: asdict(memory.why("01em")),
    "history of what it was committed with": lambda memory: [asdict(commit) for commit in memory.history("01m1")],
    "the past": lambda memory: asdict(memory.recall("boiler cabin", as_of="HEAD", owners=memory.owners)),
}  # fmt: skip
COMMANDS = [
    ["status"], ["stats"], ["stats", "--recall"], ["log", "--stat"], ["log", "--json"], ["export"], ["context"],
    ["recall", "wombat boiler fern", "--explain"], ["search", "wombat boiler fern", "--json"], ["why", "01m2"],
    ["why", "01m3"], ["why", "01em", "--json"], ["get", "01m3"],
]  # fmt: skip


@pytest.fixture
def vault(calm: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Vault:
    monkeypatch.setenv("QUAID_EMBEDDING_PROVIDER", "none")
    monkeypatch.setenv("QUAID_MODELS_PROVIDER", "none")
    made = copy_vault(tmp_path / "vault")
    made.write("quaid.toml", 'owner = "maya"\n')
    for path, text in {**OPEN, **SECRET}.items():
        made.write(path, text)
    made.write("MEMORY.md", "---\nowner: maya\n---\n# Memory\n\nThe boiler is old.\n")
    made.write("USER.md", "---\nowner: jon\n---\n# User\n\nThe numbat is shy.\n")
    made.write("review/2026-01-01.md", "---\nowner: jon\n---\n# Is the quokka here?\n\n- [ ] yes\n")
    made.save()
    return made


def refusal(memory: Memory, door: Callable[[Memory, str], Any], reference: str) -> str:
    with pytest.raises(NoteNotFoundError) as refused:
        door(memory, reference)
    return without(str(refused.value), reference)


def without(sentence: str, reference: str) -> str:
    """A refusal but for what was asked."""
    return sentence.replace(repr(reference), "?").replace(repr(reference.partition("#")[0]), "?")


def assert_tells_nothing(told: object) -> None:
    text = told.lower() if isinstance(told, str) else json.dumps(told, default=str).lower()
    for word in (*WORDS, "s1.md", "jon-notes", "01s"):
        assert word not in text, word


@pytest.mark.parametrize("door", DOORS)
def test_a_private_note_of_another_is_refused_as_one_that_is_not_there(vault, door):
    before = vault.notes()
    with vault.memory(owner="maya") as memory:
        expected = refusal(memory, DOORS[door], NOWHERE)
        for reference in REFERENCES:
            assert refusal(memory, DOORS[door], reference) == expected, reference
    assert vault.notes() == before


@pytest.mark.slow
def test_its_owner_goes_through_every_door(vault):
    with vault.memory(owner="jon") as memory:
        for reference in REFERENCES:
            assert memory.get(reference).document.owner == "jon"
            assert memory.history(reference)
            assert memory.why(reference).note.text
        assert len(list(memory.export())) > len(SECRET)
        assert memory.forget("01s1").outcome == "forgotten"
        assert memory.restore("01s1").outcome == "restored"


def test_what_another_has_forgotten_stays_theirs(vault):
    with vault.memory(owner="jon") as memory:
        memory.forget("01s1")
        memory.forget("talk#t1")
    with vault.memory(owner="maya") as memory:
        expected = refusal(memory, DOORS["restore"], NOWHERE)
        for reference in ("01s1", "talk#t1", "facts/s1.md"):
            assert refusal(memory, DOORS["restore"], reference) == expected
        assert_tells_nothing([asdict(commit) for commit in memory.answers.log(50)])
    with vault.memory(owner="jon") as memory:
        assert "wombat" in memory.answers.log(3)[1].subject


@pytest.mark.parametrize("shown", LISTS)
def test_no_list_names_it(vault, shown):
    vault.write("facts/m4.md", note("01m4", "Maya will move in spring.", "maya"))
    with vault.memory(owner="maya") as memory:
        assert_tells_nothing(LISTS[shown](memory))
        assert memory.get("01m4").document.path == "facts/m4.md"


@pytest.mark.matrix
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_prints_it(vault, command, monkeypatch, capsys):
    vault.write("facts/s9.md", note("01s9", "The quokka is not committed.", "jon", more="status: [\n"))
    vault.write("episodes/waiting wombat.md", note("01s10", "**Jon**: hm ^t1", "jon", kind="episode"))
    monkeypatch.setenv("QUAID_OWNER", "maya")
    monkeypatch.chdir(vault.root)
    main(command)
    shown = capsys.readouterr()
    told = f"{shown.out}\n{shown.err}".replace("wombat boiler fern", "")
    assert shown.out
    assert_tells_nothing(told)
    assert "01s9" not in told
    assert "s9.md" not in told


def test_an_ambiguous_reference_names_only_what_may_be_seen(vault):
    vault.write("entities/a.md", note("01same1", "One.", "jon", kind="person", more="aliases: [Twin]\n"))
    vault.write("entities/b.md", note("01same2", "Two.", "maya", kind="person", more="aliases: [Twin]\n"))
    with vault.memory(owner="maya") as memory:
        assert memory.get("Twin").document.id == "01same2"
        assert memory.get("01same").document.id == "01same2"


@pytest.mark.slow
def test_servers_and_their_resources_hide_it(vault, monkeypatch):
    monkeypatch.setenv("QUAID_OWNER", "maya")

    async def body(client: Any) -> None:
        for tool in ("memory_get", "memory_history", "memory_forget", "memory_restore"):
            said = {}
            for reference in (NOWHERE, *REFERENCES):
                result = await client.call_tool(tool, {"ref": reference})
                assert result.is_error, (tool, reference)
                said[reference] = without(result.content[0].text, reference)
            assert len(set(said.values())) == 1, tool
        for address in ("facts/01s1", "facts/01s2", "entities/Numbat%20Brown", "entities/bilby", "core/USER.md"):
            with pytest.raises(Exception, match="No note is called"):
                await client.read_resource(f"memory://{address}")
        recent = await client.read_resource("memory://recent")
        assert_tells_nothing(recent.contents[0].text)
        for tool, arguments in (("memory_stats", {}), ("memory_recall", {"query": "boiler fern plumber"})):
            result = await client.call_tool(tool, arguments)
            assert_tells_nothing([content.text for content in result.content])

    talk(vault.root, body)


def test_what_is_written_takes_no_name_from_it(vault):
    with vault.memory(owner="maya") as memory:
        assert "Numbat" not in memory.remember("The bilby came to dinner yesterday.").text
        done = memory.link("bilby", "likes", "Jon")
        assert done.path == "entities/bilby.md"
        with pytest.raises(Exception, match="is taken"):
            memory.link("Numbat Brown", "likes", "Jon")
    with vault.memory(owner="jon") as memory:
        assert memory.link("Numbat Brown", "likes", "Jon").outcome == "linked"


def test_what_has_become_private_is_not_told_as_it_was(vault):
    vault.write("facts/was.md", note("01was", "The pangolin is in the attic.", "jon", "shared"))
    vault.save()
    vault.write("facts/was.md", note("01was", "The pangolin is in the attic.", "jon"))
    vault.save()
    with vault.memory(owner="maya") as memory:
        assert not memory.recall("pangolin", as_of="HEAD~1").hits
    with vault.memory(owner="jon") as memory:
        assert memory.recall("pangolin", as_of="HEAD~1").hits


def test_who_answers_for_one_owner_does_not_answer_for_another(vault, monkeypatch):
    vault.write("facts/secret.md", note("01secret", "The pangolin is in the attic.", "jon"))
    monkeypatch.setenv("QUAID_OWNER", "jon")
    with listening(vault.root, monkeypatch):
        question = ["search", "pangolin"]
        assert "attic" in printed(vault.root, question)[0]
        assert Call(str(vault.root), [*question, "--owner", "maya"]).ask() is None
        monkeypatch.setenv("QUAID_OWNER", "maya")
        assert Call(str(vault.root), question).ask() is None


def test_an_export_says_what_it_lacks(vault, capsys):
    main(["export", "--vault", str(vault.root)])
    told = capsys.readouterr()
    assert "Notes that others keep private are left out" in told.err
    assert_tells_nothing(told.out)
