"""A conversation taken into a folder that has notes of its own: Quaid's files lie apart, and no own note changes."""

from __future__ import annotations

from pathlib import Path

import pytest
from extraction_runs import SAID
from replay import write_talk
from vaults import Vault, assert_verified, trust_vault

from quaid import Memory
from quaid.model import Kind

pytestmark = pytest.mark.usefixtures("calm", "quick")
OWN = {
    "journal/SOUL.md": "I was tired.\n", "people/Maya.md": "---\ntype: person\n---\nMy friend.\n",
    "Biscuit.md": "---\naliases: [Bis]\n---\nA quokka?\n",
}  # fmt: skip


def test_a_conversation_leaves_own_notes_as_they_are(service, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("QUAID_VAULT_HAND_WRITTEN")
    vault = Vault(tmp_path / "vault")
    for path, text in OWN.items():
        vault.write(path, text)
    Memory.create(vault.root)[0].close()
    trust_vault(vault.root)
    vault.save()
    first = write_talk(tmp_path / "t.jsonl", *SAID)
    with vault.memory() as memory:
        memory.extract(first)
        assert dict(memory.index().execute("SELECT kind, count(*) FROM documents GROUP BY kind")) == {
            Kind.FACT: 2, Kind.EPISODE: 1, Kind.SNIPPET: 1, Kind.JOURNAL: 1, Kind.NOTE: 3,
        }  # fmt: skip
        for kind in ("fact", "turn"):
            assert memory.recall("Where does Biscuit sleep?", kinds={kind}).hits
        assert_verified(memory)
        write_talk(tmp_path / "t.jsonl", *SAID, "It likes leaves.")
        memory.extract(first)
        assert_verified(memory)
        memory.remember("Maya plays the flute.")
    assert vault.status() == ""
    found = vault.notes()
    assert {path: found[path].decode() for path in OWN} == OWN
    assert {path.split("/")[0] for path in found.keys() - OWN} == {"quaid", "quaid.toml", "Facts.base"}
    facts = [data.decode() for path, data in found.items() if path.startswith("quaid/facts/")]
    assert any("[[Maya]] has_pet [[Biscuit]]" in text for text in facts)
    assert len([path for path in found if path.startswith("quaid/episodes/")]) == 1
