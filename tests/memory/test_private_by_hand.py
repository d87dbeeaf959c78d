"""A note that somebody wrote by hand, calls private and calls another's: no door shows it, or that it is there."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from mcp_host import talk
from residents import listening
from vaults import Vault, copy_vault

from quaid.cli.main import main
from quaid.docs.registry import Project
from quaid.errors import BadInputError, NoteNotFoundError
from quaid.mcp.resources import _read_file
from quaid.report.status import status_of
from quaid.resident.call import Call

HIDDEN = {
    "people/wombat.md": "---\nOwner: Jon\nPrivacy: Private\naliases: [quokka]\n---\n# Numbat\n\nThe dunnart sleeps by the boiler. [[Bilby]]\n",
    "people/quoll.md": "---\nowner: '[[Jon]]'\nx: [\nprivacy: hidden\n---\nThe quoll sleeps by the boiler.\n",
    "journal/potoroo.md": "**Owner:** Jon\n**Privacy:** private\n\nThe potoroo sleeps by the boiler.\n",
    "projects/house/bandicoot.md": "---\nowner: Jon\nprivacy: [private]\n---\n# Bandicoot\n\nThe bandicoot sleeps by the boiler.\n",
    "USER.md": "---\nowner: Jon\nprivacy: yes\n---\n# User\n\nThe echidna sleeps by the boiler.\n",
}
WORDS = ("wombat", "quokka", "numbat", "dunnart", "bilby", "quoll", "potoroo", "bandicoot", "echidna")
COMMANDS = [
    ["status"], ["stats"], ["stats", "--recall"], ["log", "--stat"], ["log", "--json"], ["export"], ["context"],
    ["recall", "boiler sleeps", "--explain"], ["search", "boiler", "--json"], ["docs", "search", "boiler"],
    ["docs", "list"], ["docs", "check"], ["project", "list"], ["doctor"], ["recall", "boiler", "--as-of", "HEAD"],
    ["diff", "HEAD~1..HEAD"], ["audit"], ["context", "--json"], ["status", "--json"], ["stats", "--json"],
]  # fmt: skip


@pytest.fixture
def vault(calm: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Vault:
    monkeypatch.delenv("QUAID_VAULT_HAND_WRITTEN")
    made = copy_vault(tmp_path / "vault")
    made.write("quaid.toml", 'owner = "maya"\n')
    made.write("plan.md", "The boiler is old.\n")
    made.save()
    with made.memory(owner="maya") as memory:
        memory.documentation.create(Project("house"))
    for path, text in HIDDEN.items():
        made.write(path, text)
    made.save("boiler")
    return made


def assert_tells_nothing(told: object) -> None:
    text = told.lower() if isinstance(told, str) else json.dumps(told, default=str).lower()
    for word in WORDS:
        assert word not in text, (word, text)


@pytest.mark.matrix
@pytest.mark.parametrize("owner", ["carol", "maya"])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_prints_it(vault, command, owner, monkeypatch, capsys):
    monkeypatch.setenv("QUAID_OWNER", owner)
    monkeypatch.chdir(vault.root)
    main(command)
    told = "".join(capsys.readouterr())
    assert told
    if owner == "maya" and command[0] == "status":  # which may hide her own notes from her
        assert "5 notes stated as private to 'Jon', and so hidden from 'maya'" in told.replace("\n", " ")
        assert all(path in told for path in HIDDEN)
        assert "write owner: maya there" in told
    else:
        assert_tells_nothing(told)


def test_each_lookup_refuses_it_as_what_is_not_there(vault):
    with vault.memory(owner="carol") as memory:
        for reference in ("people/wombat.md", "wombat", "quokka", "numbat", "quoll", "journal/potoroo.md", "potoroo"):
            for look in (memory.get, memory.history, memory.why):
                with pytest.raises(NoteNotFoundError):
                    look(reference)
        with pytest.raises(NoteNotFoundError):
            _read_file(memory, "USER.md")
        for reference in ("projects/house/bandicoot.md", "bandicoot", "Bandicoot"):
            with pytest.raises(BadInputError):
                memory.documentation.read(reference)
        assert not memory.documentation.search("bandicoot boiler")[0].hits
        assert_tells_nothing([asdict(commit) for commit in memory.answers.log(50)])
        assert_tells_nothing(memory.context(20_000))
        assert_tells_nothing(list(memory.export()))


def test_whose_it_is_sees_it(vault):
    with vault.memory(owner="Jon") as memory:
        found = {hit.path for hit in memory.search("boiler", 20).hits}
        assert found >= {path for path in HIDDEN if path != "USER.md"}
        assert memory.documentation.search("bandicoot boiler")[0].hits
        assert "bandicoot" in memory.documentation.read("bandicoot")[1]
        assert memory.get("quokka").document.path == "people/wombat.md"


def test_status_names_it_to_the_vaults_own_owner_until_somebody_of_that_name_is_known(vault):
    def told(owner: str) -> str:
        with vault.memory(owner=owner) as memory:
            return " ".join(f"{each.what} {each.paths}" for each in status_of(memory).attention)

    assert "people/wombat.md" in told("maya")
    assert "people/wombat.md" not in told("carol")
    assert "people/wombat.md" not in told("Jon")
    assert "people/wombat.md" in told("jon")  # whose name may be spelled otherwise
    with vault.memory(owner="Jon") as memory:
        memory.remember("The kettle is new")
    assert "people/wombat.md" not in told("maya")


def test_one_owner_loses_nothing(vault, monkeypatch):
    monkeypatch.setenv("QUAID_OWNER_NAME", "Jon")  # so she is called
    with vault.memory(owner="maya") as memory:
        assert {hit.path for hit in memory.search("boiler", 20).hits} >= {path for path in HIDDEN if path != "USER.md"}
        assert not [each for each in status_of(memory).attention if "stated as private" in each.what]


@pytest.fixture
def shown(vault: Vault) -> Vault:
    vault.write("people/tom.md", "Tom knows the pangolin of the boiler.\n")
    vault.save()
    with vault.memory(owner="maya") as memory:
        assert memory.search("pangolin").hits
    vault.write("people/tom.md", "---\nowner: Tom\nprivacy: private\n---\nTom knows the pangolin of the boiler.\n")
    return vault


def test_what_becomes_private_is_hidden_at_once(shown):
    with shown.memory(owner="maya") as memory:
        assert not memory.search("pangolin").hits
        assert not memory.recall("pangolin", as_of="HEAD").hits
        with pytest.raises(NoteNotFoundError):
            memory.get("people/tom.md")
        assert memory.verify().ok


def test_what_is_removed_and_not_committed_is_not_named(vault):
    with vault.memory(owner="carol") as memory:
        memory.sync()
        (vault.root / "people/quoll.md").unlink()
        assert_tells_nothing(asdict(status_of(memory)))


def test_a_process_that_answers_for_its_owner_does_not_answer_others(vault, monkeypatch):
    monkeypatch.setenv("QUAID_OWNER", "Jon")
    with listening(vault.root, monkeypatch):
        monkeypatch.setenv("QUAID_OWNER", "carol")
        assert Call(str(vault.root), ["search", "dunnart"]).ask() is None


def test_tools_and_resources_hide_it(vault, monkeypatch):
    monkeypatch.setenv("QUAID_OWNER", "carol")

    async def body(client: Any) -> None:
        for tool, arguments in (
            ("memory_recall", {"query": "boiler sleeps"}), ("memory_search", {"query": "boiler"}), ("memory_stats", {}),
            ("docs_search", {"query": "boiler sleeps"}), ("docs_list", {}), ("projects_list", {}),
        ):  # fmt: skip
            said = await client.call_tool(tool, arguments)
            assert_tells_nothing([content.text for content in said.content])
        for tool in ("memory_get", "memory_history", "memory_forget"):
            for reference in ("people/wombat.md", "quokka", "quoll"):
                assert (await client.call_tool(tool, {"ref": reference})).is_error
        assert (await client.call_tool("docs_read", {"doc": "projects/house/bandicoot.md"})).is_error
        with pytest.raises(Exception, match="No note is called"):
            await client.read_resource("memory://core/USER.md")
        assert_tells_nothing((await client.read_resource("memory://recent")).contents[0].text)

    talk(vault.root, body)
