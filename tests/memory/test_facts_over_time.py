"""Two facts about one state: the later is first and says so, whatever their words have in common."""

from __future__ import annotations

import json
import re

import pytest
from vaults import Vault

from quaid.cli.main import main
from quaid.recall.blocks import pack

pytestmark = pytest.mark.usefixtures("calm")


@pytest.mark.parametrize(("old", "new", "question"), [
    ("Lives in Porto", "moved to Ghent in May", "Where do I live?"),
    ("I work at Acme as a designer", "I work for Beta Industries now", "Where do I work?"),
    ("Tom is married to Anna", "Tom married Zoe in June", "Who is Tom married to?"),
    ("My mother was born on 4 April 1960", "My mother was born on 14 April 1960", "When was my mother born?"),
])  # fmt: skip
def test_the_later_is_first_and_says_so(vault: Vault, old: str, new: str, question: str) -> None:
    with vault.memory() as memory:
        first, second = memory.remember(old), memory.remember(new)
        hits = memory.recall(question).hits
    assert [hit.text for hit in hits[:2]] == [new, old]
    assert (hits[0].later_than, hits[0].earlier_than) == ((first.id,), ())
    assert (hits[1].later_than, hits[1].earlier_than) == ((), (second.id,))
    assert hits[0].score >= hits[1].score
    block = pack(hits, 500).text
    assert re.search(rf"later than \S+ “{old}”", block)
    assert re.search(rf"earlier than \S+ “{new}”", block)


def test_text_and_json_say_which_is_later(vault: Vault, capsys: pytest.CaptureFixture[str]) -> None:
    with vault.memory() as memory:
        first = memory.remember("Lives in Porto")
        memory.remember("moved to Ghent in May")
    _make_older(vault, first.path)
    assert main(["recall", "where do I live?", "--vault", str(vault.root), "--json"]) == 0
    hits = json.loads(capsys.readouterr().out)["hits"]
    assert [hit["later_than"] for hit in hits[:2]] == [[first.id], []]
    assert hits[1]["earlier_than"] == [hits[0]["id"]]
    assert main(["recall", "where do I live?", "--vault", str(vault.root)]) == 0
    assert "later than 2025-11-01 “Lives in Porto”" in capsys.readouterr().out


def test_what_the_owner_tells_has_the_edges_that_it_states(vault: Vault) -> None:
    vault.write("entities/Maya Chen.md", "---\nid: 01m\ntype: person\naliases: [Maya]\n---\n")
    with vault.memory() as memory:
        memory.configure("owner_name", "Maya Chen")
    with vault.memory() as memory:
        told = [memory.remember("I moved to Ghent in May"), memory.remember("Maya works at Acme")]
        notes = [(vault.root / each.path).read_text() for each in told]
        asked_at_night = [memory.remember(text) for text in ("I used to live in Porto", "The kiln moved to Postgres")]
        asked_at_night.append(memory.remember("I live in Porto", source="assistant"))
        silent = [(vault.root / each.path).read_text() for each in asked_at_night]
    assert "- [[Maya Chen]] moved_to [[Ghent]]\n" in notes[0]
    assert "valid_from: " in notes[0]
    assert "- [[Maya Chen]] works_at [[Acme]]\n" in notes[1]
    assert all("\n- " not in note for note in silent)


def test_facts_that_go_together_stay_as_they_were(vault: Vault) -> None:
    with vault.memory() as memory:
        memory.remember("Tom lives in Porto")
        memory.remember("Tom works at Acme in Porto")
        hits = memory.recall("Porto").hits
    assert all(hit.contradicts == hit.later_than == hit.earlier_than == () for hit in hits)


def _make_older(vault: Vault, path: str) -> None:
    """Date a fact a year back, as if it had been told then."""
    note = vault.root / path
    lines = note.read_text().splitlines(keepends=True)
    note.write_text(
        "".join("created: 2025-11-01T10:00:00Z\n" if line.startswith("created:") else line for line in lines)
    )
