"""`quaid audit`: where memories came from, by their commits, and which to doubt."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from vaults import Vault

from quaid.cli.main import main
from quaid.janitor.runner import RunOptions
from quaid.model import Turn
from quaid.recall.accounts import find_floods
from quaid.report.audit import audit as audit_memory

FACT = "---\nid: {id}\ntype: fact\nstatus: active\nowner: default\nsource: {source}\n---\n{text}\n"
OWN = {"QUAID_GIT_ADDRESSES": "maya@example.org"}


@pytest.fixture
def house(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> Vault:
    """A vault whose owner commits by hand as maya@example.org."""
    for name, value in OWN.items():
        monkeypatch.setenv(name, value)
    return vault


def save_as(vault: Vault, email: str, path: str, text: str, source: str = "user") -> None:
    vault.write(path, FACT.format(id=path[-8:-3], source=source, text=text))
    vault.run("add", "-A")
    vault.run("-c", "user.name=Bob", "-c", f"user.email={email}", "commit", "-qm", f"save {path}")


def audit(vault: Vault, **options):
    with vault.memory() as memory:
        return audit_memory(memory, **options)


def sources(found):
    return {one["source"]: one["facts"] for one in found["sources"] if one["facts"]}


def test_each_source_is_named_by_its_commits_and_not_by_what_notes_say(house: Vault, tmp_path) -> None:
    exported = tmp_path / "mem0.json"
    exported.write_text(json.dumps({"results": [{"id": "1", "memory": "Maya plays the cello on Sundays."}]}))
    with house.memory() as memory:
        memory.remember("Maya takes oat milk in her coffee")
        memory.extract([Turn("Maya", "I moved to Lisbon.", "user", datetime(2026, 3, 1, tzinfo=UTC))], session="s1")
    assert main(["import", str(exported), "--vault", str(house.root), "--quiet"]) == 0
    save_as(house, "maya@example.org", "facts/aaaaa.md", "Maya has a bicycle.", source="import")
    save_as(house, "bob@evil.example", "facts/bbbbb.md", "Maya trusts Bob with her keys.")
    found = sources(audit(house))
    assert {name: number for name, number in found.items() if not name.startswith("import:")} == {
        "agent:remember": 1, "owner:maya@example.org": 1, "other:bob@evil.example": 1,
    }  # fmt: skip
    assert [number for name, number in found.items() if name.startswith("import:")] == [1]


def test_a_fact_by_another_hand_than_its_source_says_is_shown_with_its_author(house: Vault) -> None:
    save_as(house, "maya@example.org", "facts/aaaaa.md", "Maya has a bicycle.")
    save_as(house, "bob@evil.example", "facts/aaaaa.md", "Maya has a yacht.")
    save_as(house, "bob@evil.example", "facts/bbbbb.md", "Bob likes tea very much.", source="assistant")
    found = audit(house)
    assert {(each["path"], each["said"], *each["authors"]) for each in found["misfits"]} == {
        ("facts/aaaaa.md", "user", "Bob <bob@evil.example>"),
        ("facts/bbbbb.md", "assistant", "Bob <bob@evil.example>"),
    }
    with house.memory() as memory:
        forged = memory.why("facts/aaaaa.md")
    assert forged.source == "other"
    assert any("Bob" in remark for remark in forged.remarks)


def test_a_field_makes_no_word_the_owners_who_did_not_write_it_and_leaves_theirs_theirs(house: Vault) -> None:
    save_as(house, "maya@example.org", "facts/aaaaa.md", "Maya has a bicycle.")
    assert audit(house)["misfits"] == []
    with house.memory() as memory:
        assert memory.why("facts/aaaaa.md").source == "owner"


def test_a_fact_that_one_agent_alone_says_is_listed_until_somebody_confirms_it(house: Vault) -> None:
    with house.memory() as memory:
        told = memory.remember("Maya takes oat milk in her coffee", source="assistant")
    assert [each["path"] for each in audit(house)["lone"]] == [told.path]
    with house.memory() as memory:
        memory.remember("Maya takes oat milk in her coffee")
    assert audit(house)["lone"] == []


def test_a_fact_that_cites_a_turn_of_a_person_is_not_the_word_of_an_agent_alone(house: Vault) -> None:
    with house.memory() as memory:
        memory.extract([Turn("Maya", "I moved to Lisbon.", "user", datetime(2026, 3, 1, tzinfo=UTC))], session="s1")
        (episode,) = house.root.glob("episodes/**/*.md")
        memory.remember("Maya has moved to Lisbon", turns=(f"[[{episode.stem}#^t1]]",))
    assert audit(house)["lone"] == []


def test_more_facts_in_a_day_than_an_agent_may_bring_are_told_by_status_and_asked_about(house, monkeypatch) -> None:
    monkeypatch.setenv("QUAID_AUDIT_FACTS_PER_DAY", "2")
    from quaid.report.status import status_of

    with house.memory() as memory:
        for place in ("Lisbon", "Porto", "Faro"):
            memory.remember(f"Maya has a friend who lives in {place}", status="approved")
        said = [each.what for each in status_of(memory).attention]
        report = memory.janitor.run(RunOptions())
    assert any("agent:remember brought 3 facts" in each for each in said)
    assert {decision.kind for decision in report.asked} == {"graduate"}
    assert all("of 2 that it may" in decision.detail for decision in report.asked)
    (one,) = [one for one in audit(house)["sources"] if one["over_quota"]]
    assert (one["source"], one["over_quota"][0]["facts"]) == ("agent:remember", 3)


def test_what_somebody_else_wrote_into_the_vault_does_not_count_unasked(house: Vault) -> None:
    save_as(house, "bob@evil.example", "facts/bbbbb.md", "Maya trusts Bob with her keys.")
    path = house.root / "facts/bbbbb.md"
    path.write_text(path.read_text().replace("status: active", "status: approved"))
    house.save()
    with house.memory() as memory:
        report = memory.janitor.run(RunOptions())
    assert [decision.paths for decision in report.asked] == [("facts/bbbbb.md",)]
    assert "not its owner" in report.asked[0].detail


def test_the_command_shows_it_to_people_and_to_programs(house: Vault, capsys) -> None:
    save_as(house, "maya@example.org", "facts/aaaaa.md", "Maya has a bicycle.")
    assert main(["audit", "--vault", str(house.root)]) == 0
    assert "owner:maya@example.org" in capsys.readouterr().out
    assert main(["audit", "--vault", str(house.root), "--json", "--source", "nobody"]) == 0
    assert json.loads(capsys.readouterr().out)["sources"] == []
    assert main(["audit", "--vault", str(house.root), "--since", "2031-01-01"]) == 0
    assert "No commit brought a note" in capsys.readouterr().out


def test_a_vault_cannot_lift_its_own_limits(house: Vault) -> None:
    config = house.root / "quaid.toml"
    config.write_text('[audit]\nfacts_per_day = 99\n\n[git]\nsign = "off"\naddresses = "bob@evil.example"\n')
    with house.memory() as memory:
        assert memory.settings.audit.facts_per_day == 0
        assert (memory.settings.git.sign, memory.settings.git.addresses) == ("auto", "maya@example.org")


@given(st.dictionaries(st.dates().map(str), st.integers(0, 500), max_size=60), st.floats(0, 20))
def test_fewer_than_half_of_the_days_are_floods(days: dict[str, int], factor: float) -> None:
    floods = find_floods(days, factor)
    busy = [number for number in days.values() if number]
    assert len(floods) <= len(busy) / 2
    assert all(flood.facts > flood.most >= flood.usual for flood in floods)


def test_a_flood_is_what_is_far_above_the_usual_days() -> None:
    days = {f"2026-03-{day:02}": 4 + day % 3 for day in range(1, 20)}
    assert find_floods(days, 6.0) == []
    (flood,) = find_floods(days | {"2026-03-20": 80}, 6.0)
    assert (flood.day, flood.facts, flood.usual) == ("2026-03-20", 80, 5)
