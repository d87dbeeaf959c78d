"""What a careless answer says is read as it can only be meant; what cannot be used spoils nothing beside it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matrices import for_each

from quaid.llm.answers import find_answer
from quaid.llm.drafts import fit
from quaid.llm.prompts import load_prompt
from quaid.llm.schema import coerce, violations, without_limits

ITEM = {
    "type": "object", "additionalProperties": False, "required": ["text", "kind", "turns"],
    "properties": {
        "text": {"type": "string", "maxLength": 30},
        "kind": {"type": "string", "enum": ["user", "assistant"], "default": "user"},
        "turns": {"type": "array", "items": {"type": "string", "maxLength": 9}},
        "sure": {"type": "number", "minimum": 0, "maximum": 1},
        "until": {"type": ["string", "null"]},
        "joined": {"type": "array", "maxItems": 2, "items": {
            "type": "object", "additionalProperties": False, "required": ["of"], "properties": {"of": {"type": "string"}}}},
    },
}  # fmt: skip
SCHEMA = {
    "type": "object", "additionalProperties": False, "required": ["v", "notes"],
    "properties": {"v": {"type": "integer", "default": 1}, "notes": {"type": "array", "items": ITEM},
                   "done": {"type": "boolean"}},
}  # fmt: skip
NOTE = {"text": "red door", "kind": "user", "turns": ["t1"]}


def read(value):
    """The items of an answer that fit, and why the others do not."""
    fitted = fit(value, SCHEMA)
    assert fitted.broken == ()
    items = fitted.items["notes"]
    assert all(violations(item.value, ITEM) == [] for item in items if item.fits)
    return [item.value for item in items if item.fits], [item.problems for item in items if not item.fits]


@for_each(("change", "meant"), [
    ({"sure": "0.95"}, {"sure": 0.95}), ({"sure": "95%"}, {"sure": 0.95}), ({"sure": "0,95"}, {"sure": 0.95}), ({"sure": ["0.5"]}, {"sure": 0.5}),
    ({"sure": "high"}, {}), ({"sure": 95}, {}), ({"sure": None}, {}), ({"sure": True}, {}),
    ({"status": "active", "pinned": True}, {}), ({"Turns": ["t9"]}, {}), ({"kind": "User"}, {}), ({"kind": "users"}, {}),
    ({"kind": "ASSISTANT"}, {"kind": "assistant"}), ({"kind": "assistants"}, {"kind": "assistant"}), ({"kind": "assistance"}, {}), ({"kind": "gossip"}, {}), ({"kind": None}, {}), ({"kind": 3}, {}),
    ({"turns": "t3"}, {"turns": ["t3"]}), ({"turns": [3, 4.0]}, {"turns": ["3", "4"]}), ({"turns": 3}, {"turns": ["3"]}),
    ({"turns": '["t3"]'}, {"turns": ["t3"]}), ({"turns": None}, {"turns": []}), ({"turns": ["t1", None, {"a": 1}]}, {}),
    ({"until": "null"}, {"until": None}), ({"until": 2023}, {"until": "2023"}), ({"text": 5}, {"text": "5"}),
    ({"text": "half \ud83d"}, {"text": "half \ufffd"}), ({"joined": {"of": "x"}}, {"joined": [{"of": "x"}]}),
    ({"joined": [["x"], {"of": "y", "z": 1}, {"o": 1}]}, {"joined": [{"of": "y"}]}), ({"joined": ["x", 5]}, {"joined": [{"of": "x"}, {"of": "5"}]}), ({"joined": [{"of": "x"}] * 3}, {"joined": [{"of": "x"}] * 2}),
])  # fmt: skip
def test_what_can_only_be_meant_one_way_is_read_so(change, meant):
    kept, failed = read({"v": 1, "notes": [NOTE | change]})
    assert (kept, failed) == ([NOTE | meant], [])


@pytest.mark.parametrize(("item", "problem"), [
    ("Maya has a door", "must be object"), (7, "must be object"), ({"kind": "user", "turns": []}, "'text' is a required property"),
    ({**NOTE, "text": "x" * 31}, "30 characters or fewer"), ({**NOTE, "text": None}, "text must be string"), ({**NOTE, "text": ["a", "b"]}, "must be string"),
    ({**NOTE, "turns": {"t": 1}}, "turns must be array"),
])  # fmt: skip
def test_an_item_that_does_not_fit_does_not_spoil_the_others(item, problem):
    kept, ((found,),) = read({"v": 1, "notes": [NOTE, item, NOTE]})
    assert kept == [NOTE, NOTE]
    assert problem in found


@pytest.mark.parametrize("value", [
    {"notes": [NOTE]}, {"v": "1", "notes": [NOTE]}, {"v": "one", "notes": NOTE}, [NOTE], {"v": None, "notes": [NOTE, None, {}]},
    {"NOTES": [NOTE], "comment": "Here you are"}, {"notes": json.dumps([NOTE]), "done": "maybe"},
])  # fmt: skip
def test_the_answer_itself_is_read_in_many_forms(value):
    fitted = fit(value, SCHEMA)
    assert (fitted.rest, fitted.broken) == ({"v": 1}, ())
    assert [item.value for item in fitted.items["notes"]] == [NOTE]


@pytest.mark.parametrize("value", [None, [], {}, {"v": 1}, {"v": 1, "notes": "none"}, {"v": 1, "notes": 5}])
def test_what_has_no_list_where_one_must_be_cannot_be_used(value):
    assert bool(fit(value, SCHEMA).broken) != (value == [])


@for_each(("value", "kind", "meant"), [
    ("3", "integer", 3), (3.0, "integer", 3), ("3.5", "integer", 3.5), ("1,000", "number", "1,000"), ("t3", "integer", "t3"),
    ("true", "boolean", True), ("No", "boolean", False), (1, "boolean", 1), ("maybe", "boolean", "maybe"), (True, "number", True),
    (True, "string", True), (float("inf"), "string", float("inf")), (10**400, "string", 10**400),
])  # fmt: skip
def test_what_is_not_certain_stays_as_it_is(value, kind, meant):
    read = coerce(value, {"type": kind})
    assert (read, type(read)) == (meant, type(meant))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.sampled_from(["notes", "text", "0.5", "null", "[", "{}"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["v", "notes", "text", "turns", "kind", "joined", "x"]), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(json_values)
def test_whatever_comes_what_is_kept_fits(value):
    fitted = fit(value, SCHEMA)
    kept = {name: [item.value for item in items if item.fits] for name, items in fitted.items.items()}
    assert fitted.broken or violations({**fitted.rest, **kept}, SCHEMA) == []


@given(json_values)
def test_what_fits_is_not_changed(value):
    if violations(value, ITEM) == []:
        assert coerce(value, ITEM) == value


def test_a_default_is_for_us_alone():
    assert "default" not in json.dumps(without_limits(SCHEMA))


# Careless JSON


WHOLE = {"v": 1, "notes": [NOTE, {**NOTE, "text": "blue door"}]}
TEXT = json.dumps(WHOLE)


@for_each("text", [
    TEXT, f"Here is what I found:\n```json\n{TEXT}\n```\nAnything else?", TEXT.replace("}]", "},]"), TEXT.replace("]}", "],}"),
    TEXT[:-1], TEXT[:-2], f"<think>[{{ no</think>{TEXT}", f"{{a}} {TEXT}",
])  # fmt: skip
def test_careless_json_is_read(text):
    assert find_answer(text) == (WHOLE, False)


def test_what_strings_should_not_hold_is_kept_in_them():
    text = '{"notes": [{"text": "she said "hi", and\nleft\t.", "kind": None, "sure": True}]}'
    assert find_answer(text)[0] == {"notes": [{"text": 'she said "hi", and\nleft\t.', "kind": None, "sure": True}]}


def test_a_list_of_items_is_an_answer():
    assert find_answer(f"Sure: {json.dumps([NOTE])}")[0] == [NOTE]
    assert find_answer("See [t1].")[0] is None


@for_each("cut", range(1, len(TEXT)))
def test_of_what_was_cut_off_the_whole_items_are_read(cut):
    value, is_cut = find_answer(TEXT[:cut])
    items = (value or {}).get("notes", [])
    assert items == WHOLE["notes"][: len(items)]
    assert len(items) == (TEXT[:cut].count("}"))
    # Where only the last brackets are missing, nothing is.
    if value is not None and not TEXT[:cut].endswith(("}", "]")):
        assert is_cut


def test_a_field_of_an_item_that_was_cut_off_is_not_taken_for_the_item():
    assert find_answer('{"notes": [{"text": "a", "joined": [{"of": "x"}, {"of": "y')[0] is None


@pytest.mark.parametrize("name", ["extract", "review", "compare", "rerank", "docs_update"])
def test_the_prompts_have_schemas_that_can_be_read_so(name):
    assert isinstance(fit({}, load_prompt(name).schema).broken, tuple)
