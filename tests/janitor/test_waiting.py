"""Conversations that were stored while no model was there: the next night that has one learns from them."""

from __future__ import annotations

import pytest
from replay import Replay, facts_of, write_talk
from vaults import assert_verified

from quaid.janitor.runner import RunOptions

pytestmark = pytest.mark.usefixtures("calm")
TOLD = facts_of("Maya lives in Kiel now.")


@pytest.fixture
def waiting(vault, tmp_path):
    """A vault with two conversations that wait."""
    with vault.memory() as memory:
        for day in (1, 2):
            talk = write_talk(
                tmp_path / f"s{day}.jsonl",
                "I live in Kiel now.",
                session=f"s{day}",
                started=f"2026-11-0{day}T14:00:00Z",
            )
            memory.extract(talk, facts=False)
    return vault


def night(vault, monkeypatch, model=None, **options):
    for name, value in (model.environ() if model else {"QUAID_MODELS_PROVIDER": "none"}).items():
        monkeypatch.setenv(name, value)
    with vault.memory() as memory:
        report = memory.janitor.run(RunOptions(**options))
        assert_verified(memory)
        return report, len(memory.list_waiting())


def test_the_next_night_that_has_a_model_learns_from_them(waiting, monkeypatch):
    assert night(waiting, monkeypatch)[1] == 2
    model = Replay({"s1": TOLD, "s2": TOLD})
    report, left = night(waiting, monkeypatch, model)
    assert (left, report.failed) == (0, {})
    assert "Learned 2 facts from 2 conversations that had waited." in report.remarks
    assert report.usage.calls >= 2
    assert model.sessions_asked[:2] == ["s1", "s2"]
    model.requests.clear()
    assert not night(waiting, monkeypatch, model)[0].changed
    assert model.requests == []
    model.close()


def test_a_dry_run_and_the_run_of_another_task_leave_them(waiting, monkeypatch):
    model = Replay({"s1": TOLD, "s2": TOLD})
    assert night(waiting, monkeypatch, model, dry_run=True)[1] == 2
    assert night(waiting, monkeypatch, model, tasks=("temporal",))[1] == 2
    assert night(waiting, monkeypatch, model, tasks=("extract",))[1] == 0
    model.close()


def test_one_whose_answer_cannot_be_used_is_set_aside_and_asked_about_once(waiting, monkeypatch):
    model = Replay({"s1": {"facts": "none"}, "s2": TOLD})
    report, left = night(waiting, monkeypatch, model)
    assert left == 1
    aside = [decision.subject for decision, _ in report.held_back if decision.task == "extract"]
    assert [subject.rpartition("/")[0] for subject in aside] == ["learn from episodes/2026/11"]
    model.requests.clear()
    report, left = night(waiting, monkeypatch, model)
    again = [decision.subject for decision, _ in report.held_back if decision.task == "extract"]
    assert (left, again, model.sessions_asked) == (1, aside, [])
    model.close()


def test_a_model_that_is_down_is_asked_once_and_the_night_goes_on(waiting, monkeypatch):
    model = Replay({})
    model.script = [(401, {"error": {"message": "no such key"}}, {})] * 20
    report, left = night(waiting, monkeypatch, model)
    assert (left, list(report.failed), len(model.asked)) == (2, ["extract"], 1)
    model.close()
