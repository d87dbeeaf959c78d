"""What the prompt for a conversation says besides the conversation: who is known, which projects, what day it is."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from matrices import for_each
from replay import facts_of, write_talk
from vaults import Vault

from quaid.capture import extraction
from quaid.capture.conversation_reader import HostAnswer
from quaid.capture.extraction import read_answer
from quaid.capture.prompt_pieces import Material, NumberedTurn, Piece
from quaid.llm.prompts import load_prompt

MONDAY = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)


def piece_of(*turns, apart=0):
    said = tuple(
        NumberedTurn(n, speaker, text, MONDAY + timedelta(days=apart * (n - 1)))
        for n, (speaker, text) in enumerate(turns, 1)
    )
    return Piece(Material("s1", None, MONDAY, said, (), 0), said)


def only(piece, **fields):
    (fact,) = read_answer(facts_of(fields.pop("text", "Anna met Tom in Oslo."), **fields), piece).facts
    return fact


# Who is known


ANSWER = facts_of("Anna Kowalski works at Acme in Porto.", project="garden", edges=[
    {"subject": "Anna Kowalski", "relation": "works_at", "object": "Acme"}, {"subject": "Anna Kowalski", "relation": "lives_in", "object": "Porto"},
]) | {"names": [{"name": "Anna Kowalski", "kind": "person", "aliases": ["Ania"]}, {"name": "Acme", "kind": "organization"}]}  # fmt: skip


def known_of(vault, memory, *said, session="s2"):
    path = memory.extract(write_talk(vault.root.parent / f"{session}.jsonl", *said, session=session)).path
    text = memory.extractor.build_prompt(path).text
    return text.rpartition("<known>\n")[2].partition("\n</known>")[0].splitlines(), text


def test_the_prompt_names_whom_the_memory_knows_and_the_conversation_may_mean(vault: Vault) -> None:
    with vault.memory() as memory:
        with write_talk(vault.root.parent / "t.jsonl", "Anna Kowalski works at Acme.").open("rb") as stream:
            memory.extract(stream, answer=HostAnswer(ANSWER, "a host"))
        memory.sync()
        lines, _ = known_of(vault, memory, "Anna says hello from ACME.")
        assert lines == [
            "Anna Kowalski (person, also Ania): lives_in Porto; works_at Acme",
            "Acme (organization): Anna Kowalski works_at Acme",
            "projects: garden",
        ] or sorted(lines)[1].startswith("Anna Kowalski (person, also Ania): ")  # fmt: skip
        assert "Porto" not in {line.split(" (")[0] for line in lines}
        assert known_of(vault, memory, "Annabel is nobody.", session="s3")[0] == ["projects: garden"]
        assert known_of(vault, memory, "ania was here.", session="s4")[0][0].startswith("Anna Kowalski")


def test_the_prompt_says_what_day_it_is_and_which_language_to_write(vault: Vault) -> None:
    with vault.memory() as memory:
        lines, text = known_of(vault, memory, "Ich war gestern in Köln.")
    assert lines == ["(none)"]
    assert f"{datetime.now(UTC).date():%B %Y}" in text.rpartition("<session>")[2].partition("</session>")[0]
    assert "in the language of the conversation" in text


def test_the_day_alone_is_in_the_question_so_that_it_is_asked_once_a_day():
    piece = piece_of(("Maya", "Hello there."))
    assert "today: Sunday 22 November 2026\n" in f"{piece.inputs('', '', date(2026, 11, 22))['session']}\n"
    assert load_prompt(extraction.PROMPT).slots == piece.inputs("").keys()


# Who says it


@for_each(("turns", "named", "meant"), [
    (["t1"], "Caroline", "Caroline"), (["t1"], "caroline", "Caroline"), (["t1"], "Melanie", "Caroline"), (["t1", "t2"], "Melanie", "Melanie"),
    (["t2", "t1"], "Tom", "Melanie"), (["t3"], "Maya Chen", "Maya Chen"), (["t3"], None, "User"), (["t1", "t3"], "Maya Chen", "Maya Chen"),
    (["t1"], None, "Caroline"), (["t1"], "User", "Caroline"),
])  # fmt: skip
def test_the_speaker_is_who_said_one_of_the_turns(turns, named, meant):
    piece = piece_of(("Caroline", "I met Anna."), ("Melanie", "So did I."), ("User", "And I as well."))
    assert only(piece, turns=turns, speaker=named).speaker == meant


# What ends


@for_each(("fields", "until"), [
    ({"category": "event", "durability": "contextual"}, None),
    ({"category": "experience", "durability": "mutable"}, None),
    ({"category": "fact", "durability": "immutable"}, None),
    ({"category": "fact", "durability": "contextual", "valid_from": "2023-05-12"}, None),
    ({"category": "fact", "durability": "contextual", "valid_from": "2023-05-20"}, None),
    ({"category": "fact", "durability": "contextual", "valid_from": "2023-05-01"}, "2023-05-12"),
    ({"category": "fact", "durability": "contextual"}, "2023-05-12"),
    ({"category": "decision", "durability": "mutable"}, "2023-05-12"),
    ({"category": "preference", "durability": "contextual"}, "2023-05-12"),
    ({"category": "belief", "durability": "mutable"}, "2023-05-12"),
])  # fmt: skip
def test_states_and_plans_end_and_what_happened_does_not(fields, until):
    assert only(piece_of(("Maya", "Well.")), valid_until="2023-05-12", **fields).valid_until == until


# Days


def test_a_relative_day_counts_from_the_last_cited_turn_that_has_it():
    turns = (("Maya", "I met Anna yesterday."), ("Maya", "And Tom yesterday."))
    text = "Maya met Anna and Tom yesterday."
    assert only(piece_of(*turns), text=text, turns=["t1", "t2"]).text == "Maya met Anna and Tom yesterday (7 May 2023)."
    later = only(piece_of(*turns, apart=3), text=text, turns=["t1", "t2"]).text
    assert later == "Maya met Anna and Tom yesterday (10 May 2023)."


@for_each("text", [
    "Maya trägt die Last von Freitag.", "Maya usa el ago 2022 como fecha.", "माया कल दौड़ी थी।", "Maya ist hier und heult.",
])  # fmt: skip
def test_in_another_language_no_date_is_made_up(text):
    found = read_answer(facts_of(text), piece_of(("Maya", "Well.")))
    assert [fact.text for fact in found.facts] in ([text], [])
