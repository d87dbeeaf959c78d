"""Whose word a memory is, and whom `I` and `my` mean, in a vault that knows its owner's name and in one that does not."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from recall_index import candidate
from vaults import Vault

from quaid.model import OWNER_LABELS
from quaid.recall.features import tells_of_owner
from quaid.recall.query import parse

pytestmark = pytest.mark.usefixtures("calm")

FACTS = {
    "f1": "Jonas works at Siemens", "f2": "Anna works at Bosch", "f3": "User works at Acme as a welder",
    "f4": "Jonas has a dog called Rex", "f5": "My dog is called Biscuit",
    "f6": "The user table of the shop works with three columns",
}  # fmt: skip
MAYA = "---\nid: 01maya\ntype: person\naliases: [Maya, mchen]\n---\n"


@pytest.fixture
def talk(vault: Vault) -> Vault:
    for name, text in FACTS.items():
        vault.write_fact(name, text)
    return vault


def first(vault: Vault, question: str) -> str:
    with vault.memory() as memory:
        return memory.recall(question, keep=False).hits[0].text


@pytest.mark.parametrize("settings", ["", 'owner_name = "Maya Chen"\n', 'owner = "maya"\nowner_name = "Maya"\n'])
def test_i_means_whom_transcripts_call_user(talk: Vault, settings: str) -> None:
    talk.write("quaid.toml", settings)
    assert first(talk, "Where do I work?") == FACTS["f3"]
    assert first(talk, "What is my dog called?") == FACTS["f5"]


def test_a_question_about_somebody_else_is_not_about_the_owner(talk: Vault) -> None:
    talk.write("quaid.toml", 'owner_name = "Maya Chen"\n')
    assert first(talk, "Where does Jonas work?") == FACTS["f1"]
    assert first(talk, "Where does Anna work?") == FACTS["f2"]
    assert first(talk, "What is the dog of Jonas called?") == FACTS["f4"]


def test_i_means_the_owner_by_name_and_alias(vault: Vault) -> None:
    vault.write("quaid.toml", 'owner_name = "Maya Chen"\n')
    vault.write("entities/Maya Chen.md", MAYA)
    vault.write_fact("g1", "Jonas lives in Munich")
    vault.write_fact("g2", "mchen lives in Oslo")
    assert first(vault, "Where do I live?") == "mchen lives in Oslo"


def test_the_name_of_the_owner_does_not_outweigh_the_words_of_the_question(vault: Vault) -> None:
    vault.write("quaid.toml", 'owner_name = "Maya Chen"\n')
    vault.write("entities/Maya Chen.md", MAYA)
    vault.write_fact("g1", "I work at Acme")
    for number in range(30):
        vault.write(f"own/{number}.md", f"Garden {number} in Maya's street with chen trees")
    assert first(vault, "Where do I work?") == "I work at Acme"


@pytest.mark.parametrize("theirs", ["I hate cilantro", "My sister hates cilantro"])
def test_another_speakers_i_is_not_the_owner(vault: Vault, theirs: str) -> None:
    vault.write("quaid.toml", 'owner_name = "Maya Chen"\n')
    vault.write("entities/Maya Chen.md", MAYA)
    head = "---\nid: 01{}\ntype: fact\nsource: user\nspeaker: {}\n---\n"
    vault.write("facts/tom.md", head.format("tom", "Tom") + theirs)
    vault.write("facts/maya.md", head.format("own", "Maya") + theirs.replace("cilantro", "olives"))
    with vault.memory() as memory:
        mine, his = memory.recall("What do I hate? What does my sister hate?", keep=False).hits
    assert (mine.path, his.path) == ("facts/maya.md", "facts/tom.md")
    assert "speaker" in mine.evidence
    assert "speaker" not in his.evidence
    assert his.score < mine.score - 0.1


@pytest.mark.parametrize(("speaker", "settings", "whose"), [
    ("", "", "owner"), ("User", "", "owner"), ("human", "", "owner"), ("Caroline", "", "other"),
    ("Caroline", 'owner_name = "Maya Chen"\n', "other"), ("Maya Chen", 'owner_name = "Maya Chen"\n', "owner"),
    ("maya", 'owner_name = "Maya Chen"\n', "owner"), ("mchen", 'owner_name = "Maya Chen"\n', "owner"),
    ("Maya Brown", 'owner_name = "Maya Chen"\n', "other"), ("maya", 'owner = "maya"\n', "owner"),
])  # fmt: skip
def test_whose_word_a_fact_is(vault: Vault, speaker: str, settings: str, whose: str) -> None:
    vault.write("quaid.toml", settings)
    vault.write("entities/Maya Chen.md", MAYA)
    said = f"speaker: {speaker}\n" if speaker else ""
    vault.write("facts/f.md", f"---\nid: 01f\ntype: fact\nsource: user\n{said}---\nThe kiln is fired at night.\n")
    with vault.memory() as memory:
        (hit,) = memory.recall("when is the kiln fired?", keep=False).hits
        assert hit.provenance == whose
        assert memory.why("01f").source == whose


def test_what_an_assistant_said_stays_the_agents(vault: Vault) -> None:
    text = "---\nid: 01f\ntype: fact\nsource: assistant\nspeaker: Claude\n---\nThe kiln is fired at night.\n"
    vault.write("facts/f.md", text)
    with vault.memory() as memory:
        assert memory.recall("kiln", keep=False).hits[0].provenance == "agent"


@pytest.mark.parametrize("own", ["No soporto el cilantro, me sabe a jabón.", "Ich trinke nie Kaffee.", "我不喝绿茶。"])
def test_the_first_person_counts_in_one_language_or_in_none(own: str) -> None:
    question = parse("What tastes like soap to me, and what do I drink?", datetime.now(UTC), sorted(OWNER_LABELS))
    assert tells_of_owner(candidate(1, "Soap is what coriander tastes like to me"), question)
    assert tells_of_owner(candidate(2, "User does not drink coffee"), question)
    assert not tells_of_owner(candidate(3, own), question)


@pytest.mark.parametrize("question", ["¿Qué me recomendó el dentista?", "Chi i gatti ha nutrito per me ieri?"])
def test_words_of_another_language_do_not_mean_the_owner(question: str) -> None:
    assert not parse(question, datetime.now(UTC), ["Maya"]).owner_keys


OF_ONE_OWNER = (
    "Maya Chen and Jon move to Turku on 12 December 2026.", "Maya Chen lives at Linnankatu 4 in Helsinki.",
    "The removal van comes at seven.", *(f"Maya Chen visited the museum of {place} on {day} March 2026." for day, place in
    enumerate(["Oslo", "Bergen", "Malmö", "Lund", "Aarhus", "Odense", "Narva", "Tartu", "Vilnius", "Riga", "Gdynia", "Kiel", "Ghent", "Lyon", "Nice", "Turin"], 1)),
    *(f"Maya Chen would like to have a {thing}." for thing in ["boat", "kiln", "loom", "drum", "harp", "lathe", "forge", "cello"]),
)  # fmt: skip


@pytest.mark.parametrize(("question", "answer"), [
    ("on which day do we move?", 0), ("where do I live?", 1), ("when does the removal van come to us?", 2),
])  # fmt: skip
def test_in_a_vault_of_one_owner_what_is_asked_comes_first_and_not_all_about_the_owner(
    vault: Vault, question: str, answer: int
) -> None:
    vault.write("quaid.toml", 'owner_name = "Maya Chen"\n')
    for number, text in enumerate(OF_ONE_OWNER):
        vault.write_fact(f"o{number}", text)
    with vault.memory() as memory:
        hits = memory.recall(question, keep=False).hits
    assert hits[0].text == OF_ONE_OWNER[answer]
    assert sum(hit.score >= 1.0 for hit in hits) <= 1
