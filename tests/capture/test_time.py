"""Days are the speaker's days, and a fact was stated when the last turn that it cites was spoken."""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime, timedelta

import pytest
from extraction_runs import quaid
from replay import Replay, facts_of, needs
from vaults import Vault

from quaid.capture.prompt_pieces import first_piece, read_material
from quaid.model import Turn
from quaid.text.endings import tell_days
from quaid.text.zones import localise, order_key
from quaid.vault import frontmatter

pytestmark = pytest.mark.usefixtures("calm", "quick")

UTC_NIGHT = datetime(2026, 11, 22, 1, 30, tzinfo=UTC)
LOS_ANGELES = "America/Los_Angeles"


@pytest.fixture
def zone(monkeypatch):
    """Set the zone of the machine."""

    def put(name: str) -> None:
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield put
    os.environ["TZ"] = "UTC"
    time.tzset()


@pytest.fixture
def model(monkeypatch):
    """Return a function that sets what the model answers about each session."""
    services = []

    def answer(found: dict[str, dict]) -> Replay:
        services.append(Replay(found))
        for name, value in services[-1].environ().items():
            monkeypatch.setenv(name, value)
        return services[-1]

    yield answer
    for service in services:
        service.close()


def stated(text: str, *turns: str, **fields) -> dict:
    """Return the answer of a model with one fact that rests on `turns`."""
    found = facts_of(text, **fields)
    found["facts"][0]["turns"] = list(turns)
    return found


def facts(vault: Vault) -> dict[str, dict]:
    """Return the frontmatter of each fact by its text."""
    notes = [data.decode() for name, data in vault.notes().items() if name.startswith("facts/")]
    return {text.split("---\n", 2)[2].strip().splitlines()[0]: dict(frontmatter.parse(text).fields) for text in notes}


def episode(vault: Vault) -> str:
    (text,) = [data.decode() for name, data in vault.notes().items() if name.startswith("episodes/")]
    return text


# The zone of a moment


@pytest.mark.parametrize(
    ("machine", "given", "setting", "local"),
    [
        (LOS_ANGELES, "2026-11-22T01:30:00Z", "", "2026-11-21T17:30:00-08:00"),
        (LOS_ANGELES, "2026-07-22T01:30:00Z", "", "2026-07-21T18:30:00-07:00"),
        (LOS_ANGELES, "2026-11-22T01:30:00+01:00", "Asia/Tokyo", "2026-11-22T01:30:00+01:00"),
        (LOS_ANGELES, "2026-11-22T01:30:00", "", "2026-11-22T01:30:00-08:00"),
        (LOS_ANGELES, "2026-11-22T01:30:00Z", "Asia/Tokyo", "2026-11-21T17:30:00-08:00"),
        ("UTC", "2026-11-22T01:30:00Z", "Asia/Tokyo", "2026-11-22T10:30:00+09:00"),
        ("UTC", "2026-11-22T01:30:00", "Asia/Tokyo", "2026-11-22T01:30:00+09:00"),
        ("UTC", "2026-11-22T01:30:00Z", "", "2026-11-22T01:30:00+00:00"),
        ("Europe/London", "2026-11-22T01:30:00Z", "Asia/Tokyo", "2026-11-22T01:30:00+00:00"),
        ("Europe/Berlin", "2026-10-25T00:30:00Z", "", "2026-10-25T02:30:00+02:00"),
        ("Europe/Berlin", "2026-10-25T01:30:00Z", "", "2026-10-25T02:30:00+01:00"),
    ],
)
def test_a_moment_has_its_own_offset_else_the_machines_else_that_of_the_setting(zone, machine, given, setting, local):
    zone(machine)
    assert localise(datetime.fromisoformat(given), setting).isoformat() == local


def test_moments_of_all_offsets_are_in_one_order():
    earlier, later = "2026-11-22T10:00:00+09:00", "2026-11-22T02:00:00Z"
    assert order_key(earlier) < order_key(later) < order_key("2026-11-21T19:00:00-08:00")
    assert [order_key(text) for text in ("2026-11-20", "", None)] == ["2026-11-20", "", ""]


# Conversations


def test_yesterday_is_counted_from_the_evening_of_the_speaker(vault, capsys, zone, model):
    zone(LOS_ANGELES)
    model({"la": stated("Maya sold the old bike yesterday.", "t1")})
    quaid(capsys, vault, "extract", needs("cases/time/la.jsonl"))
    ((text, head),) = facts(vault).items()
    assert text == "Maya sold the old bike yesterday (20 November 2026)."
    assert head["created"] == "2026-11-21T17:30:00-08:00"
    assert "**User** (17:30): I sold the old bike yesterday" in episode(vault)
    inputs = first_piece(read_material(episode(vault), everything=True)).inputs("Maya")
    assert "date: Saturday 21 November 2026" in inputs["session"]
    assert inputs["conversation"].startswith("[t1] User (2026-11-21 17:30): I sold")


def test_an_explicit_offset_counts_on_every_machine(vault, capsys, zone, tmp_path, model):
    zone(LOS_ANGELES)
    talk = tmp_path / "talk.jsonl"
    talk.write_text(
        '{"session": "s1", "started": "2026-11-21T23:20:00Z"}\n'
        '{"role": "user", "content": "I sold the bike yesterday.", "timestamp": "2026-11-22T00:20:00+01:00"}\n'
    )
    model({"s1": stated("Maya sold the bike yesterday.", "t1")})
    quaid(capsys, vault, "extract", talk)
    assert list(facts(vault)) == ["Maya sold the bike yesterday (21 November 2026)."]
    assert "started: 2026-11-22T00:20:00+01:00" in episode(vault)
    assert "**User** (00:20): I sold" in episode(vault)


def test_turns_of_several_zones_have_each_their_own_day(vault, capsys, zone, tmp_path, model):
    talk = tmp_path / "talk.jsonl"
    talk.write_text(
        '{"session": "s1", "started": "2026-11-21T22:00:00-08:00"}\n'
        '{"role": "user", "speaker": "Ana", "content": "I paid today.", "timestamp": "2026-11-21T22:00:00-08:00"}\n'
        '{"role": "user", "speaker": "Kei", "content": "I left today.", "timestamp": "2026-11-22T15:10:00+09:00"}\n'
    )
    found = stated("Ana paid the rent today.", "t1")
    found["facts"] += stated("Kei left the house today.", "t2")["facts"]
    model({"s1": found})
    quaid(capsys, vault, "extract", talk)
    assert set(facts(vault)) == {
        "Ana paid the rent today (21 November 2026).",
        "Kei left the house today (22 November 2026).",
    }
    assert "**Kei** (2026-11-22 15:10 +09:00): I left today." in episode(vault)
    with vault.open() as memory:
        days = {hit.speaker: hit.created for hit in memory.recall("today", kinds={"turn"}).hits}
    assert days == {"Ana": "2026-11-21T22:00:00-08:00", "Kei": "2026-11-22T15:10:00+09:00"}


def test_a_transcript_of_claude_code_is_in_the_zone_of_its_machine(vault, capsys, zone, tmp_path):
    zone(LOS_ANGELES)
    entry = {
        "type": "user", "uuid": "u1", "parentUuid": None, "sessionId": "s1", "cwd": "/boat",
        "timestamp": "2026-11-22T01:30:00.123Z", "message": {"role": "user", "content": "I bought a helmet today."},
    }  # fmt: skip
    path = tmp_path / "s1.jsonl"
    path.write_text(json.dumps(entry) + "\n")
    quaid(capsys, vault, "extract", path)
    with vault.open() as memory:
        (hit,) = memory.recall("helmet", kinds={"turn"}).hits
        assert hit.created == "2026-11-21T17:30:00-08:00"
    assert "2026-11-21" in quaid(capsys, vault, "recall", "helmet")[1]


def test_a_vault_that_moves_to_another_zone_keeps_the_days_of_its_turns(vault, zone):
    turns = [Turn("Maya", "I bought a helmet today.", "user", UTC_NIGHT)]
    zone(LOS_ANGELES)
    with vault.open() as memory:
        memory.extract(turns, session="s1")
    zone("Asia/Tokyo")
    turns.append(Turn("Maya", "The helmet is too small.", "user", UTC_NIGHT + timedelta(hours=1)))
    with vault.open() as memory:
        assert memory.extract(turns, session="s1").new_turns == 1
        hits = memory.recall("helmet", kinds={"turn"}).hits
    assert {hit.created for hit in hits} == {"2026-11-21T17:30:00-08:00", "2026-11-22T11:30:00+09:00"}
    assert "**Maya** (2026-11-22 11:30 +09:00): The helmet is too small." in episode(vault)


def test_what_replaces_a_fact_begins_on_the_day_of_its_speaker(vault, zone):
    zone(LOS_ANGELES)
    with vault.open() as memory:
        old = memory.remember("The spare key is with Tom")
        new = memory.remember("The spare key is with Ines", replaces=old.id, created=UTC_NIGHT)
    head = frontmatter.parse((vault.root / new.path).read_text()).fields
    assert (head["valid_from"], head["created"]) == ("2026-11-21", "2026-11-21T17:30:00-08:00")
    assert frontmatter.parse((vault.root / old.path).read_text()).fields.get("valid_until") == "2026-11-21"


def test_a_fork_is_found_in_another_zone(vault, zone):
    shared = [Turn("Maya", "I bought a helmet.", "user", UTC_NIGHT), Turn("Assistant", "Good.", "assistant", UTC_NIGHT)]
    with vault.open() as memory:
        memory.extract(shared, session="s1")
    zone(LOS_ANGELES)
    fork = [*shared, Turn("Maya", "It is red.", "user", UTC_NIGHT + timedelta(hours=1))]
    with vault.open() as memory:
        assert memory.extract(fork, session="s2").new_turns == 1


def test_the_setting_counts_on_a_machine_in_utc(vault, capsys, model):
    quaid(capsys, vault, "config", "timezone", LOS_ANGELES)
    model({"la": stated("Maya sold the old bike yesterday.", "t1")})
    quaid(capsys, vault, "extract", needs("cases/time/la.jsonl"))
    assert list(facts(vault)) == ["Maya sold the old bike yesterday (20 November 2026)."]
    assert "must be a time zone such as Europe/Berlin" in quaid(capsys, vault, "config", "timezone", "Berlin")[2]


# When a fact was stated


def test_a_fact_was_stated_when_its_last_turn_was_spoken(vault, capsys, model):
    found = stated("Maya had a flu shot today.", "t1")
    found["facts"] += stated("Maya ordered a new boiler this morning.", "t3")["facts"]
    model({"q3": found})
    quaid(capsys, vault, "extract", needs("cases/time/q3.jsonl"))
    assert {text: head["created"] for text, head in facts(vault).items()} == {
        "Maya had a flu shot today (10 November 2026).": "2026-11-10T10:00:00Z",
        "Maya ordered a new boiler this morning (14 November 2026).": "2026-11-14T10:05:00Z",
    }


def test_a_relative_day_is_counted_from_the_turn_that_has_it(vault, capsys, model):
    model({"q3": stated("Maya had a flu shot today and ordered a boiler.", "t1", "t3")})
    quaid(capsys, vault, "extract", needs("cases/time/q3.jsonl"))
    ((text, head),) = facts(vault).items()
    assert text == "Maya had a flu shot today (10 November 2026) and ordered a boiler."
    assert head["created"] == "2026-11-14T10:05:00Z"


def test_of_two_facts_of_one_minute_the_later_has_the_later_id(vault, model):
    at = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
    found = stated("The budget is 640 euros.", "t3")
    found["facts"] += stated("The budget is 600 euros.", "t1")["facts"]
    model({"s1": found})
    with vault.open() as memory:
        words = ("The budget is 600 euros.", "Noted.", "Make it 640, please.")
        memory.extract(
            [Turn("Maya" if n != 1 else "Assistant", text, "user", at) for n, text in enumerate(words)], session="s1"
        )
    heads = facts(vault)
    assert heads["The budget is 640 euros."]["id"] > heads["The budget is 600 euros."]["id"]


@pytest.mark.parametrize(("session", "day"), [("p1", "2026-11-10"), ("p2", "2026-11-20")])
def test_each_session_is_of_its_day(vault, capsys, model, session, day):
    model({session: stated("The exam is in room B12.", "t1")})
    quaid(capsys, vault, "extract", needs(f"cases/time/{session}.jsonl"))
    ((_, head),) = facts(vault).items()
    assert head["created"] == f"{day}T10:00:00Z"


# A year is a year


@pytest.mark.parametrize(
    ("given", "stored", "shown"), [("1993", "1993", "since 1993"), ("1993-05", "1993-05", "since 1993-05")]
)
def test_a_year_alone_is_no_first_of_january(vault, capsys, model, given, stored, shown):
    model({"p1": stated("Maya lives in Oslo.", "t1", valid_from=given)})
    quaid(capsys, vault, "extract", needs("cases/time/p1.jsonl"))
    ((_, head),) = facts(vault).items()
    assert head["valid_from"] == stored
    with vault.open() as memory:
        (fact,) = memory.recall("Where does Maya live?", kinds={"fact"}).hits
        assert fact.valid_from == stored
        assert memory.recall("Where does Maya live?", at=datetime(1994, 1, 1).date()).hits  # noqa: DTZ001
        assert tell_days(memory.get(head["id"]).document) == [shown]


def test_a_year_as_an_end_is_its_last_day(vault, capsys, model):
    model({"p1": stated("Maya lives in Oslo.", "t1", valid_until="2031")})
    quaid(capsys, vault, "extract", needs("cases/time/p1.jsonl"))
    ((_, head),) = facts(vault).items()
    assert head["valid_until"] == "2031-12-31"
