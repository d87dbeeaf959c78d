"""What a caller's check finds wrong with an answer that fits, and what the errors keep of one that does not."""

from __future__ import annotations

import json
import time

import pytest
from model_service import RED, colour
from vaults import PATIENCE_S

from quaid.errors import ModelAnswerError, ModelRefusedError

BLUE = {"colour": "blue", "sure": 1}
GREY = {"colour": "grey", "sure": 0}


def is_sure(value):
    return [] if value["sure"] >= 3 else [f"sure is {value['sure']}, the text is clear", "the door is not named"]


def ask(models, check=is_sure, **options):
    return models.ask(colour(), {"text": "a red door"}, check=check, **options)


def play(service, *values):
    service.script = [
        value if isinstance(value, str | tuple) or callable(value) else json.dumps(value) for value in values
    ]


def test_what_the_check_finds_is_sent_back_once(service):
    play(service, BLUE)
    answer = ask(service.models("openai"))
    assert (answer.value, answer.problems, answer.usage.calls) == (RED, (), 2)
    complaint = service.asked[1]["messages"][-1]["content"]
    assert complaint.startswith("That does not fit: sure is 1, the text is clear; the door is not named. Answer again")
    assert json.loads(service.asked[1]["messages"][-2]["content"]) == BLUE


def test_what_is_wrong_twice_is_given_with_its_problems(service):
    play(service, BLUE, GREY)
    models = service.models("openai")
    answer = ask(models)
    assert (answer.value, len(service.asked), answer.usage.calls) == (GREY, 2, 2)
    assert answer.problems == ("sure is 0, the text is clear", "the door is not named")
    assert models.spent == answer.usage


@pytest.mark.parametrize("worse", [
    "I am sorry", '{"colour": "red"}', (503, "overloaded", {"x-should-retry": "false"}), (401, {"error": "key"}, {}), (200, "<html>", {}),
    lambda: (200, {"choices": [{"finish_reason": "length", "message": {"content": "{"}}]}, {}),
    lambda: (200, {"choices": [{"finish_reason": "content_filter", "message": {"content": ""}}]}, {}),
])  # fmt: skip
def test_a_repair_that_fails_leaves_the_first_answer(service, worse):
    play(service, BLUE, worse)
    answer = ask(service.models("openai"))
    assert (answer.value, len(answer.problems), len(service.asked)) == (BLUE, 2, 2)


def test_a_repair_that_comes_late_leaves_the_first_answer(service):
    play(service, BLUE, lambda: time.sleep(300) or json.dumps(RED))
    began = time.monotonic()
    answer = ask(service.models("openai"), deadline_s=0.6)
    assert (answer.value, len(answer.problems)) == (BLUE, 2)
    assert time.monotonic() - began < PATIENCE_S


def test_a_repair_beyond_the_budget_leaves_the_first_answer(service):
    play(service, BLUE)
    answer = ask(service.models("openai", max_tokens_per_day=800))
    assert (answer.value, len(answer.problems), len(service.asked)) == (BLUE, 2, 1)


def test_only_what_is_without_fault_is_kept(service, records):
    models = service.models("openai", answers=records)
    play(service, BLUE, BLUE, BLUE, RED)
    assert ask(models).problems
    assert (ask(models).value, ask(models).usage.calls, len(service.asked)) == (RED, 0, 4)


def test_a_kept_answer_is_checked_too(service, records):
    models = service.models("openai", answers=records)
    play(service, BLUE)
    assert ask(models, check=None).value == BLUE
    answer = ask(models)
    assert answer.value == RED
    assert answer.usage.calls


def test_a_hundred_problems_are_given_and_twenty_sent_back(service):
    play(service, BLUE, BLUE)
    answer = ask(service.models("openai"), check=lambda _: [f"fact {number} is odd" for number in range(100)])
    assert len(answer.problems) == 100
    assert "fact 19 is odd. Answer" in service.asked[1]["messages"][-1]["content"]


def test_a_check_that_breaks_is_not_hidden(service):
    def broken(value):
        raise KeyError("turn")

    with pytest.raises(KeyError):
        ask(service.models("openai"), check=broken)


def test_what_does_not_fit_is_kept_in_the_error_with_its_repair(service):
    play(service, "red, I think", '{"colour": "red"}')
    with pytest.raises(ModelAnswerError) as caught:
        ask(service.models("openai"))
    assert caught.value.raw == 'red, I think\n\n---\n\n{"colour": "red"}'
    assert "'sure' is a required property" in str(caught.value)


@pytest.mark.parametrize("provider", ["anthropic", "openai", "ollama"])
def test_what_was_cut_off_is_no_answer_and_is_kept_in_the_error(service, provider):
    for text in ('{"colour": "re', json.dumps(RED)):
        service.requests.clear()
        service.script = [service.stopped(text, "max_tokens" if provider == "anthropic" else "length")]
        with pytest.raises(ModelAnswerError, match="cut off") as caught:
            ask(service.models(provider))
        assert (caught.value.raw, len(service.requests)) == (text, 1)


def test_the_words_of_a_refusal_are_kept_in_the_error(service):
    choice = {"finish_reason": "stop", "message": {"content": None, "refusal": "I can't help with doors"}}
    service.script = [(200, {"choices": [choice]}, {}), service.stopped("Not this one", "refusal")]
    for provider, words in (("openai", "I can't help with doors"), ("anthropic", "Not this one")):
        with pytest.raises(ModelRefusedError) as caught:
            ask(service.models(provider))
        assert caught.value.raw.endswith(words)
