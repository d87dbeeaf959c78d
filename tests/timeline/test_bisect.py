"""The commit at which an answer was lost or gained."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from timelines import HOME, MILK

from quaid.cli.main import main
from quaid.place import AS_OF_DIR, state_folder
from quaid.timeline.timeline import Bisection


class Answers(Bisection):
    """The answers at commits, without a vault."""

    def __init__(self, states):
        self._commits, self._states, self.answers = [str(number) for number in range(len(states))], states, {}

    def has(self, number):
        return self.answers.setdefault(number, self._states[number])


@settings(max_examples=40)
@given(st.lists(st.booleans(), min_size=1, max_size=60))
def test_what_is_found_is_a_turn_towards_how_it_is_now(states):
    bisection = Answers(states)
    found = bisection.find_turn()
    if found is None:
        assert states[0] == states[-1]
    else:
        assert states[found] == states[-1] != states[found - 1]
    assert len(bisection.answers) <= 12 + 2 * len(states).bit_length()


@settings(max_examples=40)
@given(st.integers(2, 300), st.data())
def test_one_turn_is_always_found(length, data):
    turn = data.draw(st.integers(1, length - 1))
    assert Answers([number >= turn for number in range(length)]).find_turn() == turn


@pytest.fixture
def gone(vault):
    """The fact was there for a while; the commits that brought and took it."""
    with vault.memory() as memory:
        taken = memory.forget(MILK).commit
        memory.remember("Ana plays the cello in town")
        moved = memory.remember("Maya lives in Porto with Tom", replaces=HOME)
        memory.remember("Ben paints old boats")
    return taken, moved


@pytest.mark.slow
def test_the_commit_that_lost_or_gained_an_answer_is_found(vault, gone, capsys):
    lost, gained = gone[0], gone[1].commit
    with vault.memory() as memory:
        is_there, _, _, view = memory.timeline.bisect("What milk does Maya take?", "oat milk")
        assert (is_there, view.commit.id, view.what) == (False, lost, f"forgot “{MILK}”")
        assert [change.how for change in view.changes] == ["forgotten"]
        is_there, _, _, view = memory.timeline.bisect("Where does Maya live?", gone[1].id, limit=3)
        assert (is_there, view.commit.id) == (True, gained)
        is_there, _, _, view = memory.timeline.bisect("What milk does Maya take?", "oat milk", f"HEAD~5..{lost}^")
        assert (is_there, view) == (True, None)
        # The indexes of the past that it made are gone.
        assert list((state_folder(vault.root) / AS_OF_DIR).glob("*.db")) == []
        assert vault.status() == ""

    at = ["--vault", str(vault.root), "bisect", "--query", "What milk does Maya take?", "--expect"]
    assert main([*at, "oat milk", "--json"]) == 0
    shape = json.loads(capsys.readouterr().out)
    assert (shape["is_there"], shape["commit"]["id"], shape["changes"][0]["how"]) == (False, gone[0], "forgotten")
    assert main([*at, "dragons"]) == 1
    assert "never" in capsys.readouterr().out
