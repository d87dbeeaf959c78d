"""No refusal sends an agent to a shell: it names tools, or says that the step is the owner's."""

from __future__ import annotations

import re

import pytest
from mcp.shared.exceptions import MCPError
from mcp_host import EVERYTHING, call, refusal, talk
from vaults import Vault

from quaid.mcp.results import ALWAYS, FOR_OWNER, as_tools

COMMAND = re.compile(r"\b(?:quaid|git) (?!keeps\b|has\b)[a-z-]+")
PERIOD = {"date_from": "2027-01-01", "date_to": "2026-01-01"}
FACT = "one two three four"
REFUSED = [
    ("memory_recall", {"query": "x", **PERIOD}), ("memory_recall", {"query": "x", "date_from": "soonish"}),
    ("memory_recall", {"query": "x", "as_of": "no-such-thing"}), ("memory_recall", {"query": "x", "as_of": "1999"}),
    ("memory_recall", {"query": "x", "limit": 0}), ("memory_recall", {"before": "x"}),
    ("memory_search", {"query": ""}), ("memory_search", {"query": "x", **PERIOD}),
    *((name, {"ref": "nothing is called so"}) for name in
      ("memory_get", "memory_history", "memory_forget", "memory_restore")),
    *((name, {"ref": "twins"}) for name in ("memory_get", "memory_history", "memory_forget")),
    ("memory_get", {"ref": "Garden#No such heading"}), ("memory_get", {"ref": "20-1402-2f1c9a#t9"}),
    ("memory_forget", {"ref": "Garden"}), ("memory_forget", {"ref": "Garden#Tomatoes"}),
    ("memory_forget", {"ref": "01held#Why"}),
    ("memory_forget", {"ref": "20-1402-2f1c9a"}),
    ("memory_restore", {"ref": "01replaced"}), ("memory_undo", {"ref": "none"}),
    ("memory_store", {"text": "short"}), ("memory_store", {"text": FACT, "valid_from": "soonish"}),
    ("memory_store", {"text": FACT, "valid_from": "2027-01-01", "valid_until": "2026-01-01"}),
    ("memory_store", {"text": FACT, "replaces": "submarines"}), ("memory_store", {"text": FACT, "replaces": "twins"}),
    ("memory_store", {"text": FACT, "category": "rumour"}), ("memory_note", {"text": " "}),
    ("memory_extract", {}), ("memory_extract", {"session": "none", "answer": {}}),
    ("memory_extract", {"transcript": "\0\0\0"}), ("memory_extract", {"transcript": "User: ^", "turns": [
        {"role": "user", "content": "x"}]}),
    ("memory_extract", {"session": "s1", "answer": {"facts": "none"}}),
    ("memory_create_edge", {"subject": "", "relation": "is", "object": "x"}),
    ("memory_create_edge", {"subject": "A", "relation": "?", "object": "B"}),
    ("memory_create_edge", {"subject": "A", "relation": "knows", "object": "A"}),
    *((f"notes_{name}", {"path": "none.md"}) for name in ("read", "delete")), ("notes_list", {"folder": "x" * 600}),
    ("notes_create", {"path": "../x.md", "text": "x"}), ("notes_edit", {"path": "Garden.md", "old": "R", "new": "r"}),
    ("notes_insert", {"path": "SOUL.md", "line": 0, "text": "x"}), ("notes_rename", {"path": "none", "to": "x"}),
    ("docs_search", {"query": "x", "project": "none"}), ("docs_read", {"ref": "no/such.md"}),
    ("docs_list", {"project": "none"}), ("docs_register", {"path": "/no/such/file.md"}),
    ("project_create", {"name": "!"}), ("project_create", {"name": "x", "source_roots": ["relative"]}),
    ("project_create", {"name": "x", "source_roots": ["/no/such/folder"]}), ("memory_everything", {}),
]  # fmt: skip


def check(said: str) -> str:
    assert not COMMAND.search(said) or said.endswith(FOR_OWNER), said
    assert "yourself." not in said.removesuffix(FOR_OWNER)
    return said


@pytest.fixture
def full(vault: Vault) -> Vault:
    """A vault with something wrong for each refusal."""
    fact = "---\nid: {}\ntype: fact\n{}---\nA fact about {}.\n"
    vault.write("facts/a/twins.md", fact.format("twins1", "", "one twin"))
    vault.write("facts/b/twins.md", fact.format("twins2", "", "another twin"))
    vault.write("facts/replaced.md", fact.format("01replaced", "superseded_by: '[[held]]'\n", "the past"))
    vault.write("Garden.md", "# Garden\n\n## Tomatoes\n\nRed ones.\n")
    vault.write("episodes/2026/11/20-1402-2f1c9a.md", "---\nid: 01episode\ntype: episode\nsession: s1\n"
                "created: 2026-11-20T14:02:00Z\n---\n**Maya** (14:02): I live in Hamburg. ^t1\n")  # fmt: skip
    vault.save()
    vault.write("facts/held.md", fact.format("01held", "", "what git does not have\n\n## Why\n\nBecause"))
    return vault


@pytest.mark.parametrize("surface", ["all", "default"])
def test_every_refusal_advises_tools_or_leaves_it_to_the_owner(full: Vault, surface: str) -> None:
    async def body(client):
        for name, arguments in REFUSED:
            check(await refusal(client, name, **arguments))
        for uri in ("memory://facts/none", "memory://entities/none", "memory://projects/none", "memory://core/none"):
            with pytest.raises(MCPError) as refused:
                await client.read_resource(uri)
            check(str(refused.value))
        for name, arguments in (("remember-session", {"session": "none"}), ("recall", {"topic": " "})):
            with pytest.raises(MCPError) as refused:
                await client.get_prompt(name, arguments)
            check(str(refused.value))
        named = await refusal(client, "memory_get", ref="nothing is called so")
        assert (
            named == "No note is called 'nothing is called so'. Look for it with: memory_recall 'nothing is called so'"
        )

    talk(full.root, body, surface)
    assert {name for name, _ in REFUSED} >= set(EVERYTHING) - {"memory_stats"}


def test_a_vault_that_cannot_be_written_is_the_owners_matter(full: Vault) -> None:
    async def body(client):
        full.write("quaid.toml", "[recall]\nprofile = 'high'\n")
        assert FOR_OWNER in check(await refusal(client, "memory_store", text=FACT))
        full.write("quaid.toml", "not toml at all [")
        check(await refusal(client, "memory_store", text=FACT))
        assert all(COMMAND.search(said) is None or said.endswith(FOR_OWNER)
                   for said in (await call(client, "memory_recall", query="fact"))["degraded"])  # fmt: skip
        full.root.rename(full.root.with_name("away"))
        for name in ("memory_store", "memory_note"):
            assert FOR_OWNER in check(await refusal(client, name, text=FACT))
        assert FOR_OWNER in check(await refusal(client, "memory_recall", query="x"))

    talk(full.root, body)


@pytest.mark.parametrize(
    ("said", "offered", "shown"),
    [
        ("Look for it with: quaid search 'x y'", ALWAYS, "Look for it with: memory_recall 'x y'"),
        ("Bring it back with: quaid restore 7k3qd", {"memory_restore"}, "Bring it back with: memory_restore 7k3qd"),
        ("Bring it back with: quaid restore 7k3qd", ALWAYS, f"Bring it back with: quaid restore 7k3qd. {FOR_OWNER}"),
        ("There are none. See them with: quaid docs list", {"docs_list"}, "There are none. See them with: docs_list"),
        ("git keeps it.", ALWAYS, "git keeps it."),
    ],
)
def test_commands_become_tools(said: str, offered: set[str], shown: str) -> None:
    assert as_tools(said, offered) == shown
