"""JSON with and without comments, and TOML: one value is edited, and nothing else moves."""

from __future__ import annotations

import json
import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from json_texts import KEYS, OBJECTS, VALUES, comments_of, json_texts
from matrices import for_each

from quaid.agents.config_text import edit, is_same, read

settings.register_profile("config_text", max_examples=25, deadline=None)
settings.load_profile("config_text")


class TestReading:
    @given(json_texts())
    def test_all_ways_of_writing_mean_the_same(self, written):
        text, value = written
        assert is_same(read(text, "jsonc"), value)

    @for_each(("text", "syntax", "problem"), [
        ("{", "jsonc", "line 1 column 2"),
        ('{"a": 1\n "b": 2}', "jsonc", "line 2 column 2"),
        ("{} /* ", "jsonc", "line 1 column 4"),
        ("{a: 1}", "jsonc", "line 1 column 2"),
        ("[" * 100_000, "jsonc", "nested too deep"),
        ('{"a": 1,}', "json", "plain JSON only"),
        ('{"a": 1} // b', "json", "plain JSON only"),
        ('{"a": 1, /* b */}', "comments", "plain JSON only"),
        ("a = ", "toml", "Invalid value"),
    ])  # fmt: skip
    def test_what_a_host_cannot_read_is_refused_with_its_place(self, text, syntax, problem):
        with pytest.raises(ValueError, match=problem):
            read(text, syntax)

    @for_each(("text", "syntax"), [
        ('\ufeff{"a": 1}', "json"), ('{"a": 1} // b', "comments"), ('{"a": 1, /* b */}', "jsonc"),
    ])  # fmt: skip
    def test_what_a_host_can_read_is_read(self, text, syntax):
        assert read(text, syntax) == {"a": 1}

    @given(st.text(alphabet="{}[]:,\"'/*\\ \n1ae", max_size=20))
    def test_no_text_does_worse_than_being_refused(self, text):
        try:
            value = read(text, "jsonc")
        except ValueError:
            return
        if isinstance(value, dict):
            assert read(edit(text, "jsonc", ["quaid"], 1), "jsonc") == {**value, "quaid": 1}


class TestEditing:
    @given(json_texts(), KEYS, VALUES.filter(lambda value: value is not None))
    def test_setting_a_key_changes_that_key_only(self, written, key, value):
        text, before = written
        after = edit(text, "jsonc", [key], value)
        assert is_same(read(after, "jsonc"), {**before, key: value})
        if key not in before:
            assert comments_of(after) == comments_of(text)
            assert _is_within(text, after)
            removed = edit(after, "jsonc", [key], None)
            assert is_same(read(removed, "jsonc"), before)
            assert comments_of(removed) == comments_of(text)
            if before:
                assert removed == text

    @given(json_texts(), st.data())
    def test_removing_takes_that_key_only(self, written, data):
        text, before = written
        if before:
            key = data.draw(st.sampled_from(list(before)))
            after = edit(text, "jsonc", [key], None)
            assert is_same(read(after, "jsonc"), {name: item for name, item in before.items() if name != key})
            assert _is_within(after, text)

    @given(json_texts(st.fixed_dictionaries({"a": st.lists(VALUES, min_size=1, max_size=4)})), st.data())
    def test_a_list_grows_at_its_end_and_loses_any_item(self, written, data):
        text, before = written
        grown = edit(text, "jsonc", ["a", len(before["a"])], {"b": 1})
        assert is_same(read(grown, "jsonc"), {"a": [*before["a"], {"b": 1}]})
        assert edit(grown, "jsonc", ["a", len(before["a"])], None) == text
        position = data.draw(st.integers(0, len(before["a"]) - 1))
        after = edit(text, "jsonc", ["a", position], None)
        assert is_same(read(after, "jsonc"), {"a": before["a"][:position] + before["a"][position + 1 :]})

    @given(OBJECTS, st.sampled_from(["  ", "    ", "\t"]), st.sampled_from(["\n", "\r\n"]))
    def test_indentation_and_line_ends_are_the_files_own(self, before, unit, newline):
        before = {"first": {"x": 1}, **before}
        before.pop("new", None)
        text = json.dumps(before, indent=unit).replace("\n", newline)
        after = edit(text, "json", ["new"], {"deep": {"er": 1}})
        assert after == json.dumps({**before, "new": {"deep": {"er": 1}}}, indent=unit).replace("\n", newline)

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
        ('{\n  "s": {\n    "a": 1, // one\n  },\n}', '{\n  "s": {\n    "a": 1, // one\n    "q": 1,\n  },\n}'),
        ('{\n  "s": {\n    // none yet\n  }\n}', '{\n  "s": {\n    // none yet\n    "q": 1\n  }\n}'),
        ('{"s": null}', '{"s": {"q": 1}}'),
        ('{ "s": 1, "s": {"a": 2} }', '{ "s": 1, "s": {"a": 2, "q": 1} }'),
    ])  # fmt: skip
    def test_what_is_added_looks_like_what_is_there(self, text, expected):
        assert edit(text, "jsonc", ["s", "q"], 1) == expected

    @for_each(("text", "expected"), [
        ('{"s": {"q": 1}}', '{"s": {}}'),
        ('{"s": {"q": 1, "a": 2}}', '{"s": {"a": 2}}'),
        ('{"s": {"a": 2, "q": 1}}', '{"s": {"a": 2}}'),
        ('{"s": {\n  "a": 2, // two\n  "q": 1 }}', '{"s": {\n  "a": 2 // two\n }}'),
        ('{"s": {\n  "a": 2,\n  "q": 1, // mine\n  "b": 3\n}}', '{"s": {\n  "a": 2,\n  // mine\n  "b": 3\n}}'),
        ('{"s": {"q": 1, "a": 2, "q": 3}}', '{"s": {"a": 2}}'),
        ('{"s": {"a": 2}}', '{"s": {"a": 2}}'),
        ("// nothing", "// nothing"),
    ])  # fmt: skip
    def test_what_is_removed_leaves_no_gap(self, text, expected):
        assert edit(text, "jsonc", ["s", "q"], None) == expected

    @for_each("text", [
        "", "a = 1", "# mine\r\n[other]\r\nx = 1 # one\r\n", "[s.other]\ncommand = 'x'\n# c\n",
        "s = {other = {command = 'x'}} # one line\n", "s.other.command = 'x'\n", "[s]\n  other = {command = 'x'}\n[z]\ny = 1\n",
    ])  # fmt: skip
    def test_toml_keeps_its_comments_and_values(self, text):
        before = tomllib.loads(text)
        after = edit(text, "toml", ["s", "q"], {"command": "x", "args": ["mcp"]})
        assert tomllib.loads(after)["s"].pop("q") == {"command": "x", "args": ["mcp"]}
        changed = edit(after, "toml", ["s", "q", "command"], "y")
        assert tomllib.loads(changed)["s"]["q"]["command"] == "y"
        removed = edit(changed, "toml", ["s", "q"] if "s" in before else ["s"], None)
        assert tomllib.loads(removed) == before
        assert _is_within(text, after)
        assert _is_within(text, removed)


def _is_within(part, whole):
    """Whether all characters of `part` that are no space are in `whole`, in their order."""
    rest = iter(whole)
    return all(char in rest for char in part if not char.isspace())
