"""JSON in all its dialects: read as it is meant, edited so that nothing else moves."""

from __future__ import annotations

import json
import math
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from json5_texts import KEYS, OBJECTS, VALUES, json5_texts
from matrices import for_each

from quaid.agents import json_edit

settings.register_profile("json_edit", max_examples=int(os.environ.get("JSONC_EXAMPLES", "25")), deadline=None)
settings.load_profile("json_edit")


def comments_of(text):
    return [piece[0] for piece in json_edit.tokens(text) if piece.lastgroup == "comment"]


def put(text, path, value):
    """The text with the value at `path`; missing objects are made."""
    plain = json_edit.read(text)
    found = plain
    for key in path[:-1]:
        if found.get(key) is None:
            found[key] = {}
        found = found[key]
    found[path[-1]] = value
    return json_edit.update(text, plain)


def append(text, path, value):
    plain = json_edit.read(text)
    found = plain
    for key in path:
        found = found[key]
    found.append(value)
    return json_edit.update(text, plain)


def drop(text, path):
    plain = json_edit.read(text)
    found = plain
    for key in path[:-1]:
        found = found.get(key, {})
    if isinstance(found, list) or path[-1] in found:
        del found[path[-1]]
    return json_edit.update(text, plain)


class TestReading:
    @given(VALUES, st.sampled_from([None, 0, 2, "\t"]), st.booleans())
    def test_json_is_read_as_json_reads_it(self, value, indent, ascii_only):
        text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
        assert json_edit.is_same(json_edit.read(text), json.loads(text))

    @given(json5_texts())
    def test_all_ways_of_writing_say_the_same(self, written):
        text, value = written
        assert json_edit.is_same(json_edit.read(text), value)

    def test_what_only_json5_can_say(self):
        assert json_edit.read("{$b: 5, 'e': 'as is', ü: 1e3, d: -Infinity,}") == {
            "$b": 5, "e": "as is", "ü": 1000.0, "d": -math.inf,
        }  # fmt: skip

    @pytest.mark.parametrize("text", ["{a: 0xff}", "{a: .5}", "{a: 'it\\'s'}", "{\\u0067: 1}"])
    def test_what_of_json5_nobody_writes_is_refused(self, text):
        with pytest.raises(json_edit.JsonError):
            json_edit.read(text)

    def test_of_a_key_given_twice_the_last_counts(self):
        assert json_edit.read('{"a": 1, "a": 2}') == {"a": 2}

    @for_each(("text", "problem"), [
        ("{", "line 1, column 2: the end is missing"),
        ('{"a": 1}\n}', "line 2, column 1: something is left after the end"),
        ('{"a": 1\n "b": 2}', "line 2, column 2: a comma is missing"),
        ('{"a" 1}', "line 1, column 6: a colon is missing"),
        ('{"a": }', "line 1, column 7: a value is missing before }"),
        ("[1,,2]", "line 1, column 4: a value is missing before ,"),
        ("{,}", "line 1, column 2: a name is missing"),
        ("{1a: 2}", "line 1, column 2: a name is missing"),
        ('{"a": "b\n"}', "line 1, column 7: a string or a comment does not end here"),
        ("{} /* ", "line 1, column 4: a string or a comment does not end here"),
        ("{a: b}", "line 1, column 5: a value is missing before b"),
        ("[" * 5000, "line 1, column 101: nested too deep"),
    ])  # fmt: skip
    def test_a_broken_text_is_refused_with_its_place(self, text, problem):
        with pytest.raises(json_edit.JsonError) as caught:
            json_edit.read(text)
        assert str(caught.value) == problem

    @given(st.text(alphabet="{}[]:,\"'/*\\ \n1ae", max_size=20))
    def test_no_text_does_worse_than_being_refused(self, text):
        try:
            put(text, ["quaid"], 1)
        except json_edit.JsonError:
            assert text.strip()
        except TypeError:
            assert not isinstance(json_edit.read(text), dict)

    @for_each(("text", "dialect", "fine"), [
        ('\ufeff{"a": 1}', "json", True),
        ('{"a": 1,}', "json", False),
        ('{"a": 1} // b', "json", False),
        ('{"a": 1} // b', "comments", True),
        ('{"a": "// no comment"}', "json", True),
        ('{"a": 1, /* b */}', "comments", False),
        ("{a: 1}", "comments", False),
        ("{a: 1,}", "json5", True),
        ("", "json", True),
    ])  # fmt: skip
    def test_a_dialect_is_what_its_host_can_read(self, text, dialect, fine):
        if fine:
            json_edit.check(text, dialect)
        else:
            with pytest.raises(json_edit.JsonError, match="plain JSON only"):
                json_edit.check(text, dialect)


class TestEditing:
    @given(json5_texts(), KEYS, VALUES)
    def test_putting_a_key_is_what_it_says_and_no_more(self, written, key, value):
        text, before = written
        after = put(text, [key], value)
        assert json_edit.is_same(json_edit.read(after), {**before, key: value})
        if key not in before:
            assert comments_of(after) == comments_of(text)
            assert _is_within(text, after)

    @given(json5_texts(), VALUES.filter(bool))
    def test_what_was_put_comes_out_again(self, written, value):
        text, before = written
        if "new" in before:
            return
        after = drop(put(text, ["new"], value), ["new"])
        assert json_edit.is_same(json_edit.read(after), before)
        assert comments_of(after) == comments_of(text)
        if before:
            assert after == text

    @given(json5_texts(), st.data())
    def test_dropping_takes_that_key_only(self, written, data):
        text, before = written
        if not before:
            return
        key = data.draw(st.sampled_from(list(before)))
        after = drop(text, [key])
        assert json_edit.is_same(json_edit.read(after), {name: item for name, item in before.items() if name != key})
        assert _is_within(after, text)

    @given(
        json5_texts(st.fixed_dictionaries({"a": st.fixed_dictionaries({"list": st.lists(VALUES, max_size=3)})})), VALUES
    )
    def test_a_list_grows_and_shrinks_at_its_end(self, written, value):
        text, before = written
        grown = append(text, ["a", "list"], value)
        assert json_edit.is_same(json_edit.read(grown), {"a": {"list": [*before["a"]["list"], value]}})
        shrunk = drop(grown, ["a", "list", len(before["a"]["list"])])
        assert json_edit.is_same(json_edit.read(shrunk), before)
        if before["a"]["list"]:
            assert shrunk == text

    @given(json5_texts(st.fixed_dictionaries({"a": st.lists(VALUES, min_size=1, max_size=4)})), st.data())
    def test_any_place_of_a_list_can_be_taken_out(self, written, data):
        text, before = written
        position = data.draw(st.integers(0, len(before["a"]) - 1))
        after = drop(text, ["a", position])
        assert json_edit.is_same(json_edit.read(after), {"a": before["a"][:position] + before["a"][position + 1 :]})

    @given(OBJECTS, st.sampled_from(["  ", "    ", "\t"]), st.sampled_from(["\n", "\r\n"]), VALUES.filter(bool))
    def test_indentation_and_line_ends_are_the_files_own(self, before, unit, newline, value):
        before = {"first": {"x": 1}, **before}
        before.pop("new", None)
        after_value = {**before, "new": {"deep": {"er": 1}}}
        text = json.dumps(before, indent=unit).replace("\n", newline)
        after = put(text, ["new"], {"deep": {"er": 1}})
        assert after == json.dumps(after_value, indent=unit).replace("\n", newline)

    @for_each(("text", "expected"), [
        ("", '{\n  "s": {\n    "q": 1\n  }\n}\n'),
        ("\ufeff", '\ufeff{\n  "s": {\n    "q": 1\n  }\n}\n'),
        ("// mine", '// mine\n{\n  "s": {\n    "q": 1\n  }\n}\n'),
        ("{}", '{\n  "s": {\n    "q": 1\n  }\n}'),
        ("{\r\n}\r\n", '{\r\n  "s": {\r\n    "q": 1\r\n  }\r\n}\r\n'),
        ('{"a":1}', '{"a":1, "s": {"q": 1}}'),
        ('{"s":{}}', '{"s":{"q": 1}}'),
        ('{\n\t"s": {},\n}', '{\n\t"s": {\n\t\t"q": 1\n\t},\n}'),
        ('{\n  "s": { "a": 1 } // one\n}', '{\n  "s": { "a": 1, "q": 1 } // one\n}'),
        ('{\n  "s": {\n    "a": 1 // one\n    // two\n  }\n}', '{\n  "s": {\n    "a": 1, // one\n    "q": 1\n    // two\n  }\n}'),
        ("{\n  s: {\n    a: 1, // one\n  },\n}", '{\n  s: {\n    a: 1, // one\n    "q": 1,\n  },\n}'),
        ('{\n  "s": {\n    // none yet\n  }\n}', '{\n  "s": {\n    // none yet\n    "q": 1\n  }\n}'),
        ('{"s": null}', '{"s": {"q": 1}}'),
        ('{ "s": 1, "s": {"a": 2} }', '{ "s": 1, "s": {"a": 2, "q": 1} }'),
    ])  # fmt: skip
    def test_what_is_added_looks_like_what_is_there(self, text, expected):
        assert put(text, ["s", "q"], 1) == expected

    @for_each(("text", "expected"), [
        ('{"s": {"q": 1}}', '{"s": {}}'),
        ('{"s": {"q": 1, "a": 2}}', '{"s": {"a": 2}}'),
        ('{"s": {"a": 2, "q": 1}}', '{"s": {"a": 2}}'),
        ('{"s": {\n  "a": 2, // two\n  "q": 1 }}', '{"s": {\n  "a": 2 // two\n   }}'),
        ('{"s": {\n  "a": 2,\n  "q": 1, // mine\n  "b": 3\n}}', '{"s": {\n  "a": 2,\n  // mine\n  "b": 3\n}}'),
        ('{"s": {"q": 1, "a": 2, "q": 3}}', '{"s": {"a": 2}}'),
        ('{"s": {"a": 2}}', '{"s": {"a": 2}}'),
        ("// nothing", "// nothing"),
    ])  # fmt: skip
    def test_what_is_taken_out_leaves_no_gap(self, text, expected):
        assert drop(text, ["s", "q"]) == expected


def _is_within(part, whole):
    """Whether all characters of `part` that are no space stand in `whole`, in their order."""
    rest = iter(whole)
    return all(char in rest for char in part if not char.isspace())
