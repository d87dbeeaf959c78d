"""The commit at which an answer was lost or gained."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from timelines import HOME, MILK

from quaid.cli.main import main
from quaid.place import AS_OF_DIR, state_folder
from quaid.timeline.bisect import find_turn


@settings(max_examples=40)
@given(st.lists(st.booleans(), min_size=1, max_size=60), st.sets(st.integers(0, 59), max_size=3))
def test_what_is_found_is_a_turn_towards_how_it_is_now(states, hints):
    commits = [str(number) for number in range(len(states))]
    asked = []

    def has(commit):
        asked.append(commit)
        return states[int(commit)]

    found = find_turn(commits, [str(hint) for hint in hints], has)
    if found is None:
        assert states[0] == states[-1]
    else:
        commit, is_there = found
        assert is_there == states[-1]
        assert states[int(commit)] == states[-1] != states[int(commit) - 1]
    assert len(asked) <= 12 + 2 * len(states).bit_length()


@settings(max_examples=40)
@given(st.integers(2, 300), st.data())
def test_one_turn_is_always_found(length, data):
    turn = data.draw(st.integers(1, length - 1))
    commits = [str(number) for number in range(length)]
    assert find_turn(commits, [], lambda commit: int(commit) >= turn) == (str(turn), True)


@pytest.fixture
def gone(vault):
    """The fact was there for a while; the commits that brought and took it."""
    with vault.memory() as memory:
        taken = memory.forget(MILK).commit
        memory.remember("Ana plays the cello in town")
        moved = memory.remember("Maya lives in Porto with Tom", replaces=HOME)
        memory.remember("Ben paints old boats")
    return taken, moved


def test_the_commit_that_lost_or_gained_an_answer_is_found(vault, gone, capsys):
    lost, gained = gone[0], gone[1].commit
    with vault.memory() as memory:
        turn = memory.timeline.bisect("What milk does Maya take?", "oat milk")
        assert (turn.is_there, turn.entry.commit.id) == (False, lost)
        assert turn.entry.what == f"forgot “{MILK}”"
        assert [change.how for change in turn.changes] == ["forgotten"]
        turn = memory.timeline.bisect("Where does Maya live?", gone[1].id, limit=3)
        assert (turn.is_there, turn.entry.commit.id) == (True, gained)
        turn = memory.timeline.bisect("What milk does Maya take?", "oat milk", f"HEAD~5..{lost}^")
        assert (turn.is_there, turn.entry) == (True, None)
        # The indexes of the past that it made are gone.
        assert list((state_folder(vault.root) / AS_OF_DIR).glob("*.db")) == []
        assert vault.status() == ""

    at = ["--vault", str(vault.root), "bisect", "--query", "What milk does Maya take?", "--expect"]
    assert main([*at, "oat milk", "--json"]) == 0
    shape = json.loads(capsys.readouterr().out)
    assert (shape["is_there"], shape["commit"]["id"], shape["changes"][0]["how"]) == (False, gone[0], "forgotten")
    assert main([*at, "dragons"]) == 1
    assert "never" in capsys.readouterr().out
