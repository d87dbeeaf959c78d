"""An undo, read from the history, refuses a solution; the next run may propose another one."""

from __future__ import annotations

import pytest
from janitor_context import Scripted
from janitor_facts import DIFFERENT, UPDATE, head_of, judging, keep
from janitor_nights import remember
from vaults import assert_verified

from quaid.janitor.runner import RunOptions
from quaid.model import note_name

OLD, NEW = "Mia's exam is in Harburg in December.", "Mia's exam is in Harburg, in January now."
BOTH = "Mia's exam is in Harburg in December, in January now."


def resolving(vault):
    """How often the deep model was asked about pairs."""
    return sum("<pairs>" in str(body["messages"]) and body["model"] == "wise" for body in vault.service.asked)


def settled(resolution, **more):
    return {"verdict": "update", "resolution": resolution, "reason": "It was moved.", **more}


@pytest.fixture
def tidied(vault, monkeypatch):
    """A vault with a fact and its correction; `night()` runs the janitor with the answers of `service`."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")
    (vault.old,) = remember(vault, OLD)
    (vault.new,) = remember(vault, NEW)
    service = Scripted(compare=judging(lambda a, b: UPDATE))
    for name, value in {"provider": "anthropic", "url": service.url, "deep": "wise", "fast": "quick"}.items():
        monkeypatch.setenv(f"QUAID_MODELS_{name.upper()}", value)

    def night():
        with vault.memory() as memory:
            report = memory.janitor.run(RunOptions())
            assert_verified(memory)
        return report

    vault.night, vault.service = night, service
    yield vault
    service.close()


@pytest.mark.parametrize("how", ["undo", "revert"])
def test_a_merge_that_was_undone_may_be_followed_by_a_replacement(tidied, how):
    tidied.service.answers["resolve"] = judging(lambda a, b: settled("merge", merged_text=BOTH))
    (merge,) = tidied.night().done
    assert merge.kind == "merge"
    if how == "undo":
        with tidied.memory() as memory:
            memory.timeline.undo(tidied.head())
    else:
        tidied.git("revert", "--no-edit", "-m", "1", tidied.head())
    assert "superseded_by" not in head_of(tidied, tidied.old)
    assert tidied.night().done == []  # the model proposes the same once more, and then no more
    asked = resolving(tidied)
    tidied.service.answers["resolve"] = judging(lambda a, b: settled("keep_b"))
    assert tidied.night().done == []
    assert resolving(tidied) == asked


def test_the_model_sees_what_was_undone_and_proposes_another_solution(tidied):
    tidied.service.answers["resolve"] = judging(lambda a, b: settled("merge", merged_text=BOTH))
    tidied.night()
    with tidied.memory() as memory:
        memory.timeline.undo(tidied.head())
    tidied.service.answers["resolve"] = judging(lambda a, b: settled("keep_b"))
    (decision,) = tidied.night().done
    assert BOTH in tidied.service.asked[-1]["messages"][-1]["content"]
    assert decision.kind == "correct"
    assert head_of(tidied, tidied.old)["superseded_by"] == f"[[{note_name(tidied.new)}]]"
    assert not tidied.night().changed


def test_an_undone_merge_of_what_seemed_the_same_may_become_an_update(tidied):
    remember(tidied, "The book club meets at Tom's flat.", "The book club meets at Tom's new flat.")
    tidied.service.answers["compare"] = judging(
        lambda a, b: keep("a" if "new" in a else "b") if "Tom" in a and "Tom" in b else DIFFERENT
    )
    (merge,) = tidied.night().done
    assert (merge.task, merge.kind) == ("compare", "merge")
    with tidied.memory() as memory:
        memory.timeline.undo(tidied.head())
    tidied.service.answers |= {
        "compare": judging(lambda a, b: UPDATE if "Tom" in a and "Tom" in b else DIFFERENT),
        "resolve": judging(lambda a, b: settled("keep_b")),
    }
    (decision,) = tidied.night().done
    assert (decision.task, decision.kind) == ("resolve", "correct")


def test_after_a_no_nothing_else_is_proposed_for_the_pair(tidied, monkeypatch):
    monkeypatch.setenv("QUAID_JANITOR_POLICIES_SUPERSEDE", "ask")
    tidied.service.answers["resolve"] = judging(lambda a, b: settled("keep_b"))
    assert len(tidied.night().asked) == 1
    with tidied.memory() as memory:
        memory.janitor.answer("all", "no")
        memory.janitor.carry_out_answers()
    tidied.service.answers["resolve"] = judging(lambda a, b: settled("merge", merged_text=BOTH))
    asked = resolving(tidied)
    assert not tidied.night().changed
    assert resolving(tidied) == asked


def test_a_different_pair_is_none_of_it(tidied):
    tidied.service.answers["compare"] = judging(lambda a, b: DIFFERENT)
    assert tidied.night().done == []
