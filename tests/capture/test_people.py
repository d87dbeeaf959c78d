"""The user's own settings say who speakers are, and to whom belongs what they state."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from quaid import Memory
from quaid.capture.conversation_reader import HostAnswer
from quaid.capture.other_names import Person, read_people
from quaid.config import load_settings
from quaid.vault import frontmatter

RULES = "mchen, jsonl:u2 = Maya Chen; tom87 = Tom Reed (tom); other:* = Nobody; no rule"


def test_rules_are_read_and_what_is_none_is_left_out():
    maya, tom = Person("Maya Chen"), Person("Tom Reed", "tom")
    assert read_people(RULES) == {"mchen": maya, "jsonl:u2": maya, "tom87": tom, "other:*": Person("Nobody")}
    assert read_people("") == {}


@pytest.fixture
def memory(tmp_path):
    root = tmp_path / "vault"
    Memory.create(root)[0].close()
    settings = load_settings(root)
    with Memory(root, replace(settings, capture=replace(settings.capture, people=RULES))) as memory:
        yield memory


def extract(memory, folder, session, *turns, fact="", said=""):
    lines = [{"session": session, "started": "2026-11-02T10:00:00Z"}]
    lines += [{"role": "user", "speaker": speaker, "content": text} for speaker, text in turns]
    path = folder / f"{session}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    about = {"category": "fact", "confidence": 0.9, "source": "user", "durability": "mutable", "turns": [said]}
    answer = HostAnswer({"v": 1, "facts": [{"text": fact, **about}]}, "tests") if fact else None
    return memory.extract(path, answer=answer)


def head_of(memory, path):
    return frontmatter.parse((memory.root / path).read_text()).fields


def test_a_speaker_has_the_persons_name_and_a_new_reading_adds_nothing(memory, tmp_path):
    turns = [("mchen", "I moved to Porto last year."), ("u2", "It is warm here."), ("Anna", "Nice to read that.")]
    for new in (3, 0):
        done = extract(memory, tmp_path, "one", *turns)
        assert done.new_turns == new
    assert head_of(memory, done.path)["speakers"] == ["Maya Chen", "Anna"]


def test_what_a_person_states_belongs_to_the_owner_that_is_named(memory, tmp_path):
    done = extract(memory, tmp_path, "two", ("tom87", "I play the cello."), fact="Tom Reed plays the cello.", said="t1")
    assert head_of(memory, done.path)["owner"] == "tom"
    (fact,) = done.facts
    head = head_of(memory, fact.path)
    assert (head["owner"], head["speaker"]) == ("tom", "Tom Reed")
    assert memory.recall("Who plays the cello?", depth="fast", keep=False).hits == ()


def test_of_two_owners_each_fact_has_its_own(memory, tmp_path):
    turns = ("tom87", "I play the cello."), ("mchen", "I play chess.")
    done = extract(memory, tmp_path, "three", *turns, fact="Maya Chen plays chess.", said="t2")
    assert "owner" not in head_of(memory, done.path)
    assert head_of(memory, done.facts[0].path)["owner"] == "default"


def test_no_vault_can_set_who_speakers_are(memory):
    config = memory.root / "quaid.toml"
    config.write_text('[capture]\npeople = "x = Y"\n')
    assert load_settings(memory.root, environ={}).capture.people == ""
