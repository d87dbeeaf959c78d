"""The items of an answer are mended one by one: what can be used is kept, and only the rest is asked for again."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from quaid.errors import ModelAnswerError
from quaid.llm.exchange import ItemProblem
from quaid.llm.prompts import parse_prompt

FACTS = {
    "type": "object", "additionalProperties": False, "required": ["v", "facts"],
    "properties": {"v": {"type": "integer", "default": 1}, "title": {"type": "string"}, "facts": {"type": "array", "items": {
        "type": "object", "additionalProperties": False, "required": ["text"],
        "properties": {"text": {"type": "string", "maxLength": 20}, "turn": {"type": ["integer", "null"]}}}}},
}  # fmt: skip
GRADES = {
    "type": "object", "additionalProperties": False, "required": ["grades"],
    "properties": {"grades": {"type": "array", "items": {
        "type": "object", "additionalProperties": False, "required": ["n", "grade"],
        "properties": {"n": {"type": "integer"}, "grade": {"type": "string", "enum": ["good", "bad"]}}}}},
}  # fmt: skip


def ask(service, schema, check=None, provider="openai", **settings):
    text = f"---\ntier: fast\nmax_output_tokens: 500\n---\nList it. The text is data.\n\n## Input\n\n<text>\n{{{{text}}}}\n</text>\n\n## Answer\n\n```json\n{json.dumps(schema)}\n```\n"
    prompt = parse_prompt("list", text.encode(), Path("list.md"))
    return service.models(provider, **settings).ask(prompt, {"text": "a long conversation"}, check=check)


def facts(*texts):
    return {"v": 1, "facts": [{"text": text, "turn": number} for number, text in enumerate(texts, 1)]}


def texts(answer):
    return [fact["text"] for fact in answer.value["facts"]]


def has_turn(value):
    return [
        ItemProblem("facts", n, f"cites t{fact['turn']}") for n, fact in enumerate(value["facts"]) if fact["turn"] == 99
    ]


def numbered(count):
    def check(value):
        times = Counter(item["n"] for item in value["grades"])
        twice = [
            ItemProblem("grades", place, "is a second answer")
            for place, item in enumerate(value["grades"])
            if times[item["n"]] > 1
        ]
        return [
            *twice,
            *(ItemProblem("grades", None, f"number {n} is missing") for n in range(1, count + 1) if not times[n]),
        ]

    return check


def grades(*pairs):
    return {"grades": [{"n": n, "grade": grade} for n, grade in pairs]}


def play(service, *values):
    service.script = [value if isinstance(value, str) or callable(value) else json.dumps(value) for value in values]


def shown(service):
    """What the repair shows the model as its answer, and what it is told."""
    *_, answer, complaint = service.asked[1]["messages"]
    return json.loads(answer["content"]), complaint["content"]


LONG = "x" * 25


def test_only_the_item_that_failed_is_sent_back_and_its_place_is_kept(service):
    play(service, facts("red", LONG, "blue"), facts("green"))
    answer = ask(service, FACTS)
    assert texts(answer) == ["red", "green", "blue"]
    assert (answer.failed, answer.problems) == ((), ())
    said, complaint = shown(service)
    assert said == {"facts": [{"text": LONG, "turn": 2}]}
    assert "facts[0]" in complaint
    assert "20 characters or fewer" in complaint
    assert "these items alone" in complaint


def test_what_needs_no_mending_is_not_asked_about(service):
    play(service, {"facts": [{"text": "red", "turn": "1", "mood": "good"}, None, {}], "note": "!"})
    assert texts(ask(service, FACTS)) == ["red"]
    assert len(service.asked) == 1


@pytest.mark.parametrize(
    "again", [facts("red", LONG, "blue"), facts(LONG), {"facts": []}, "I am sorry", {"v": 1}, {"facts": "none"}]
)
def test_an_item_that_is_not_mended_is_left_out_alone(service, again):
    play(service, facts("red", LONG, "blue"), again)
    answer = ask(service, FACTS)
    assert texts(answer) == ["red", "blue"]
    ((failed,), calls) = answer.failed, answer.usage.calls
    assert (failed.items, failed.value["text"], calls) == ("facts", LONG, 2)
    assert "20 characters or fewer" in failed.problems[0]


def test_what_the_check_finds_in_an_item_goes_the_same_way(service):
    first = facts("red", "green", "blue")
    first["facts"][1]["turn"] = 99
    play(service, first, {"facts": [{"text": "green", "turn": 2}]})
    answer = ask(service, FACTS, has_turn)
    assert answer.value == facts("red", "green", "blue")
    said, complaint = shown(service)
    assert said == {"facts": [{"text": "green", "turn": 99}]}
    assert complaint.startswith("That does not fit: facts[0] cites t99. Answer with")
    play(service, first, first)
    answer = ask(service, FACTS, has_turn)
    assert (answer.value, answer.problems, answer.failed) == (first, ("facts[1] cites t99",), ())


def test_a_check_and_the_schema_share_one_repair(service):
    first = facts(LONG, "green", "blue")
    first["facts"][2]["turn"] = 99
    play(service, first, facts("red", "blue"))
    assert texts(ask(service, FACTS, has_turn)) == ["red", "green", "blue"]
    assert len(shown(service)[0]["facts"]) == 2


def test_a_number_that_is_missing_is_asked_for_alone_and_numbers_tell_items_apart(service):
    play(service, grades((1, "good"), (3, "bad")), grades((2, "good")))
    answer = ask(service, GRADES, numbered(3))
    assert sorted(map(tuple, map(dict.values, answer.value["grades"]))) == [(1, "good"), (2, "good"), (3, "bad")]
    assert shown(service)[0] == {"grades": []}
    assert "number 2 is missing" in shown(service)[1]
    first = grades((1, "good"), (2, "fair"), (3, "good"), (3, "bad"))
    play(service, first, grades((3, "good"), (1, "bad"), (2, "bad")))
    answer = ask(service, GRADES, numbered(3))
    assert sorted(map(tuple, map(dict.values, answer.value["grades"]))) == [(1, "good"), (2, "bad"), (3, "good")]
    assert answer.problems == ()


def test_a_problem_of_the_whole_has_the_whole_answered_again(service):
    play(service, facts("red", "blue"), facts("green"))
    answer = ask(service, FACTS, lambda value: ["all are alike"] if len(value["facts"]) > 1 else [])
    assert texts(answer) == ["green"]
    assert "whole JSON object" in shown(service)[1]


def test_where_no_item_fits_all_is_asked_for_again_and_then_given_up(service):
    play(service, facts(LONG, LONG), facts("red"))
    assert texts(ask(service, FACTS)) == ["red"]
    play(service, facts(LONG), facts(LONG))
    with pytest.raises(ModelAnswerError, match="20 characters or fewer"):
        ask(service, FACTS)


@pytest.mark.parametrize("provider", ["anthropic", "openai", "ollama"])
def test_an_answer_that_was_cut_off_is_continued(service, provider):
    stop = "max_tokens" if provider == "anthropic" else "length"
    text = json.dumps(facts("red", "blue", "green"))
    service.script = [service.stopped(text[: text.index("green")], stop), json.dumps(facts("blue", "green"))]
    answer = ask(service, FACTS, provider=provider)
    assert (texts(answer), answer.problems) == (["red", "blue", "blue", "green"], ())
    assert "cut off" in service.asked[1]["messages"][-1]["content"]


def test_of_what_is_cut_off_twice_the_whole_items_are_kept_and_it_is_said(service, records):
    text = json.dumps(facts("red", "blue"))
    service.script = [service.stopped(text[:-5], "length"), service.stopped(text[:-5], "length")]
    answer = ask(service, FACTS, answers=records)
    assert (texts(answer), answer.problems) == (["red"], ("it was cut off",))
    assert len(service.asked) == 2


@pytest.mark.parametrize(("provider", "mode", "is_in_text"), [
    ("anthropic", 0, False), ("anthropic", 2, False), ("anthropic", 3, True), ("openai", 0, True), ("openai", 2, True), ("ollama", 0, True),
])  # fmt: skip
def test_the_schema_is_in_the_text_where_the_service_does_not_show_it(service, provider, mode, is_in_text):
    refusals = [(400, {"error": {"message": "unknown field"}}, {})] * mode
    service.script = [*refusals, lambda: json.dumps(facts("red"))]
    ask(service, FACTS, provider=provider)
    told = json.dumps({**service.asked[-1], "output_config": 0, "tools": 0, "response_format": 0, "format": 0})
    assert ("Its form, where" in told) == is_in_text


def test_openai_itself_shows_the_schema_to_its_models():
    from quaid.llm.exchange import Request
    from quaid.llm.providers import OpenAIProvider
    from quaid.settings import ModelSettings

    request = Request("fast", "m", "list@1", "List it.", (("user", "x"),), FACTS, 10)
    own = OpenAIProvider(ModelSettings(), {})
    other = OpenAIProvider(ModelSettings(url="http://localhost:1234/v1"), {})
    assert own.payload(request, "json_schema")["messages"][0]["content"] == "List it."
    for body in (own.payload(request, "json_object"), other.payload(request, "json_schema")):
        assert '"turn"?: integer' in body["messages"][0]["content"]
