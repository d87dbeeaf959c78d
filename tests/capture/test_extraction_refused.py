"""What a model refuses to read of a conversation costs that, and neither the rest nor what is said later."""

from __future__ import annotations

import json

import pytest
from extraction_runs import put_aside, quaid
from replay import Replay, facts_of, write_talk
from vaults import assert_verified

from quaid.vault import frontmatter

pytestmark = pytest.mark.usefixtures("calm", "quick")
CRIME = "Tom read a crime novel in which the butler uses cyanide."
SAID = ("I adopted a quokka, Biscuit.", "How lovely!", CRIME, "Which one?", "Ana plays the cello.", "Since when?")


class Squeamish(Replay):
    how = ("", "refusal")

    def wrap(self, path, body, text, stop=None):
        text, stop = self.how if "cyanide" in json.dumps(body["messages"]) else (text, stop)
        return super().wrap(path, body, text, stop)


@pytest.fixture
def squeamish(monkeypatch):
    replay = Squeamish({"s1": facts_of("Maya has a quokka, Biscuit.")})
    for name, value in replay.environ().items():
        monkeypatch.setenv(name, value)
    yield replay
    replay.close()


def test_a_turn_that_is_refused_costs_that_turn(vault, squeamish, tmp_path, capsys):
    talk = write_talk(tmp_path / "t.jsonl", *SAID)
    with vault.memory() as memory:
        done = memory.extract(talk)
        assert_verified(memory)
    assert (done.problem, done.waiting, len(done.facts)) == (None, False, 1)
    (left,) = [left for left in done.left_out if left.text.startswith("turns")]
    assert left.text == "turns 3 to 3"
    assert "stop_reason refusal" in left.reason
    assert any("turns 3 to 3" in found.problem for found in put_aside(vault))
    squeamish.requests.clear()
    talk = write_talk(tmp_path / "t.jsonl", *SAID, "Lee keeps four bees.", "Where?")
    code, _, err = quaid(capsys, vault, "extract", talk)
    assert (code, "cyanide" in err) == (0, False)
    (episode,) = (vault.root / "episodes").rglob("*.md")
    assert frontmatter.parse(episode.read_text()).fields["extracted_turns"] in {8, "8"}


def test_a_window_that_is_answered_in_prose_costs_that_window(vault, squeamish, tmp_path, monkeypatch):
    monkeypatch.setattr("quaid.capture.extraction.PIECE_TOKENS", 500)
    squeamish.how = ("I'm sorry, I can't help with that.", None)
    filler = [
        f"I walked to the place number {n} and met {n} cats there, all of them grey and sleepy." * 3 for n in range(12)
    ]
    with vault.memory() as memory:
        done = memory.extract(write_talk(tmp_path / "t.jsonl", *SAID[:2], *filler, CRIME))
        assert_verified(memory)
    assert (done.problem, done.waiting) == (None, False)
    assert len(done.facts) == 1
    assert [left.text for left in done.left_out if left.text.startswith("turns")] != []


def test_a_conversation_of_which_nothing_is_answered_waits(vault, squeamish, tmp_path):
    with vault.memory() as memory:
        done = memory.extract(write_talk(tmp_path / "t.jsonl", *(f"{CRIME} Number {n}." for n in range(40))))
    assert (done.problem.code, done.waiting) == ("model_refused", True)
    assert "stop_reason refusal" in str(done.problem)
    assert len(squeamish.asked) <= 20
