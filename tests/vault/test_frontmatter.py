"""The head of a note: read leniently, changed by the byte."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from textwrap import dedent

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from matrices import examples, for_each

from quaid.errors import QuaidError
from quaid.vault import frontmatter
from quaid.vault.frontmatter import FrontmatterBrokenError, body_start, parse, render, set_fields

KEYS = ("id", "status", "confidence", "keywords", "valid from", "my-key", "título", "007", "on")

# What a value may look like in a head, `{i}` being how deep its lines stand.
SCALARS = (
    "plain", "two words", "007", "1.10", "2026-11-20", "2026-11-20T14:30:00Z", "yes", "null", "~", "0.9", "0x1f",
    '"quoted: #1"', "'it''s'", '"a\\tb\\u00e9"', "[[Maya Chen]]", '"[[Maya Chen|Maya]]"', "café 😀", "http://x.org/a#b",
    "a: b", "plain\n  and more", '"two\n  lines"', "!!str 5", "{a: b, c: [d]}", "{}", "-1", "a,b", "x   ",
)  # fmt: skip
LISTS = (
    "[a, b]", "[ a,b , 'c, d']", "[]", "[a,\n  b # why\n  ]", "\n- a\n- b", "\n  - a\n  - b # why", "\n      - 007\n      - '😀'",
    " # heading\n  # more\n  - a\n\n  - b", "\n  - |\n    text\n\n  - z", "\n  -   wide\n  -\n  - x",
)  # fmt: skip
BLOCKS = (
    "|\n  text\n  more",
    ">-\n  a\n\n  b",
    "|+\n  keep\n\n",
    "|2 # why\n   deep",
    "\n  x: 1\n  y: [2]",
    "\n  behind",
    "",
)
COMMENTS = ("", "", "", " # why", "   ", "\t# tab")
BETWEEN = ("", "", "", "# about the next\n", "\n", "  # odd: [\n", "\n\n# two\n")


@st.composite
def heads(draw):
    """(text of a head's inside, its keys) that is good YAML most of the time."""
    keys = draw(st.lists(st.sampled_from(KEYS), unique=True, max_size=6))
    parts = [draw(st.sampled_from(BETWEEN))]
    for key in keys:
        written = draw(st.sampled_from((key, key, f'"{key}"', f"'{key}'")))
        value = draw(st.sampled_from((*SCALARS, *LISTS, *BLOCKS)))
        comment = "" if "\n" in value else draw(st.sampled_from(COMMENTS))
        gap = "" if value[:1] in {"\n", " ", ""} else draw(st.sampled_from((" ", " ", "   ")))
        parts.append(f"{written}:{gap}{value}{comment}\n{draw(st.sampled_from(BETWEEN))}")
    indent = draw(st.sampled_from(("", "", "", "  ")))
    return "".join(f"{indent}{line}\n" if line else "\n" for line in "".join(parts).split("\n")[:-1]), keys


@st.composite
def notes(draw):
    inside, _ = draw(heads())
    body = draw(st.sampled_from(("", "text", "text\n", "\n\n# T 😀\n\nlast  ", "---\nrule\n", "- [ ] x ^t1\n\n\n")))
    closing = draw(st.sampled_from(("---", "---", "...", "---  ")))
    text = f"---\n{inside}{closing}\n{body}"
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    return draw(st.sampled_from(("", "", "\ufeff"))) + text


single = (
    st.sampled_from(
        ("x", "two words", "007", "no", "", " lead", "it's", 'say "hi"', "a: b", "# c", "[x]", "- y", "2026-11-20")
    )
    | st.text(max_size=12)
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.floats(allow_nan=False, allow_infinity=False)
)
values = single | st.lists(
    st.sampled_from(("a", "b", "x, y", "007", "[[L]]", "é😀", "")) | st.text(max_size=6), max_size=4
)


def as_read(value):
    if isinstance(value, bool):
        return str(value).lower()
    return (
        [str(item) for item in value] if isinstance(value, list) else value if isinstance(value, str) else float(value)
    )


def read(value, like):
    return float(value) if isinstance(like, float) and not isinstance(like, bool) else value


@pytest.mark.slow
@settings(max_examples=examples(300))
@given(notes(), st.sampled_from((*KEYS, "new key")), values)
@example("---\n  a: 1\n  id: 2\n---\n", "new key", "x")
@example("---\nkeywords:\n  - a\n# about status\nstatus: x\n---\n", "keywords", ["b"])
@example("---\nkeywords:\n- a\nstatus: x\n---\n", "keywords", "scalar")
@example("---\nkeywords: [a]\n---\n", "keywords", ["a", "x, y"])
@example("---\nkeywords:\n  - |\n    a\n\n  - z\nstatus: x\n---\n", "keywords", ["a\n", "z", "q"])
@example("---\nid: &x 1\nstatus: *x\n---\n", "status", "2")
@example("---\nid: &x 1\nstatus: *x\n---\n", "id", "2")
def test_a_change_changes_its_own_key_and_no_other(text, key, value):
    before = parse(text)
    try:
        changed = set_fields(text, {key: value})
    except FrontmatterBrokenError:
        return
    after = parse(changed)
    expected = as_read(value)
    assert read(after.fields[key], expected) == expected
    assert {k: v for k, v in after.fields.items() if k != key} == {k: v for k, v in before.fields.items() if k != key}
    assert list(after.fields)[: len(before.fields)] == list(before.fields)
    assert after.body == before.body
    assert text[body_start(text) :] == changed[body_start(changed) :]
    assert_other_lines_stay(text, changed, key)


def assert_other_lines_stay(text, changed, key):
    """What differs is one run of lines, and it begins at the changed key (or is one new line at the head's end)."""
    if changed == text:
        return
    old, new = text.split("\n"), changed.split("\n")
    same_start = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    limit = min(len(old), len(new)) - same_start
    same_end = next((i for i in range(limit) if old[-1 - i] != new[-1 - i]), limit)
    gone = old[same_start : len(old) - same_end]
    if key not in parse(text).fields:
        assert gone == []
        assert len(new) - len(old) == 1
        return
    own_key = tuple(f"{mark}{key}{mark}:" for mark in ("", "'", '"'))
    others = tuple(f"{mark}{other}{mark}:" for other in KEYS if other != key for mark in ("", "'", '"'))
    begins = max(i for i in range(min(same_start + 1, len(old))) if old[i].strip(" \ufeff").startswith(own_key))
    between = old[begins + 1 : len(old) - same_end]
    assert not [line for line in between if line.strip().startswith(others)]
    # A comment may only go with a list whose items it stands between.
    assert not between or not between[-1].startswith("#")


@pytest.mark.slow
@settings(max_examples=examples(200))
@given(notes(), st.sampled_from(KEYS))
@example("---\nkeywords:\n  - a\n# about status\nstatus: x\n---\n", "keywords")
@example("---\nid: |\n  x\n\n# about status\nstatus: x\n---\n", "id")
def test_removing_a_key_leaves_every_other_line(text, key):
    before = parse(text)
    try:
        changed = set_fields(text, {key: None})
    except FrontmatterBrokenError:
        return
    after = parse(changed)
    assert after.fields == {k: v for k, v in before.fields.items() if k != key}
    if key not in before.fields:
        assert changed == text
        return
    left = iter(text.split("\n"))
    assert all(line in left for line in changed.split("\n"))  # a subsequence: nothing is new, nothing moved
    comments = [line for line in text.split("\n") if line.startswith("#")]
    assert [line for line in changed.split("\n") if line.startswith("#")] == comments


simple = st.sampled_from(("plain", "two words", "2026-11-20", "a/b", "x-y_z")) | st.from_regex(
    r"[a-z]{1,8}x", fullmatch=True
)


@pytest.mark.slow
@given(notes(), st.sampled_from(KEYS), simple, simple)
def test_set_and_set_back_restores_the_text(text, key, first, second):
    try:
        text = set_fields(text, {key: first})
        there = set_fields(text, {key: second})
    except FrontmatterBrokenError:
        return
    assert set_fields(there, {key: first}) == text


@pytest.mark.slow
@given(notes(), st.sampled_from(KEYS), st.lists(simple, min_size=1, max_size=3), simple)
def test_a_list_keeps_its_style_when_an_item_comes(text, key, items, more):
    try:
        text = set_fields(text, {key: items})
        grown = set_fields(text, {key: [*items, more]})
    except FrontmatterBrokenError:
        return
    assert parse(grown).fields[key] == [*items, more]
    assert set_fields(grown, {key: [*items, more]}) == grown
    assert len(grown) - len(text) <= len(more) + 30


@pytest.mark.parametrize("quote", ["'", '"'])
@given(value=st.from_regex(r"[a-z .'#:]{1,10}", fullmatch=True))
def test_quotes_stay(quote, value):
    changed = set_fields(f"---\nid: {quote}old{quote} # why\n---\n", {"id": value})
    assert changed.startswith(f"---\nid: {quote}")
    assert changed.endswith(f"{quote} # why\n---\n")
    assert parse(changed).fields["id"] == value


def test_the_flow_of_a_change_by_example():
    text = (
        "---\r\n# mine\r\nid: 01a   # never\r\nconfidence: 0.9 # sure\r\nkeywords:\r\n    - oat\r\n    - 007\r\n"
        "\r\ncreated: 2026-11-20\r\nempty:\r\n---\r\nbody"
    )
    changed = set_fields(
        text, {"confidence": 0.91, "keywords": ["oat", "007", "milk"], "empty": True, "confirmations": 1}
    )
    assert changed == (
        "---\r\n# mine\r\nid: 01a   # never\r\nconfidence: 0.91 # sure\r\nkeywords:\r\n    - oat\r\n    - 007\r\n"
        "    - milk\r\n\r\ncreated: 2026-11-20\r\nempty: true\r\nconfirmations: 1\r\n---\r\nbody"
    )


@pytest.mark.parametrize(("text", "changed"), [
    ("body\n", "---\nid: x\n---\nbody\n"),
    ("", "---\nid: x\n---\n"),
    ("\ufeffbody\r\n", "\ufeff---\r\nid: x\r\n---\r\nbody\r\n"),
    ("---\n---\n", "---\nid: x\n---\n"),
    ("---\n# only a comment\n---", "---\n# only a comment\nid: x\n---"),
    ("----\nnot a head\n", "---\nid: x\n---\n----\nnot a head\n"),
])  # fmt: skip
def test_a_note_without_a_head_or_keys_gets_them(text, changed):
    assert set_fields(text, {"id": "x"}) == changed
    assert parse(changed).fields == {"id": "x"}


@for_each("text", [
    "---\nid: 1\n",  # never closed
    "---\nid: [1\n---\n",
    "---\n- a\n- b\n---\n",
    "---\nonly text\n---\n",
    "---\n{id: 1}\n---\n",
    "---\nid: 1\nid: 2\n---\n",
    "---\nid:\t1\n\tx: y\n---\n",
    "---\n{{date}}: x\n---\n",
    "---\nid: &a 1\nstatus: *a\n---\n",  # the key is someone else's anchor
    "---\n<<<<<<< ours\nid: 1\n=======\nid: 2\n>>>>>>> theirs\n---\n",
    "---\nid: " + "[" * 300 + "]" * 300 + "\n---\n",
    "---\nstatus: 1\n--- x\nid: 2\n---\n",
])  # fmt: skip
def test_a_head_that_cannot_be_edited_safely_is_refused(text):
    with pytest.raises(FrontmatterBrokenError) as caught:
        set_fields(text, {"id": "new"})
    assert isinstance(caught.value, QuaidError)
    assert caught.value.problem


def test_text_that_cannot_stand_in_a_file_is_refused():
    with pytest.raises(FrontmatterBrokenError):
        set_fields("---\nid: 1\n---\n", {"id": "half \ud800"})


# --- reading


@pytest.mark.slow
@settings(max_examples=examples(300))
@given(st.text(st.characters(), max_size=80))
def test_parse_never_raises(text):
    for whole in (text, f"---\n{text}", f"---\n{text}\n---\n{text}", f"---\na: {text}\nb: 1\n---\n"):
        head = parse(whole)
        assert isinstance(head.body, str)
        assert all(isinstance(problem, str) for problem in head.problems)
        assert 0 <= body_start(whole) <= len(whole)


@settings(max_examples=examples(200))
@given(
    st.lists(
        st.sampled_from([*":-[]{}&*!|>%@#?,'\"\\ \t\n\r\ufeff\u2028\0a1", "---\n", "\n---\n", "<<: ", "*a", "&a "]),
        max_size=30,
    ).map("".join)
)
def test_parse_bears_everything_that_is_syntax(inside):
    parse(f"---\n{inside}\n---\nbody")
    try:
        changed = set_fields(f"---\n{inside}\n---\nbody", {"key": "v"})
    except FrontmatterBrokenError:
        return
    assert parse(changed).fields["key"] == "v"


@settings(max_examples=examples(100))
@given(st.binary(max_size=60))
def test_parse_bears_any_bytes(data):
    parse("---\n" + data.decode("utf-8", "replace") + "\n---\n")
    parse(data.decode("latin-1"))


PLAIN = st.from_regex(
    r"[A-Za-z0-9_][A-Za-z0-9_]{0,3}(: |:)[A-Za-z0-9][-A-Za-z0-9_ .,;/@()'+:#\u00e9\t]{0,9}", fullmatch=True
)


@given(st.lists(PLAIN, min_size=1, max_size=3))
@example(["a: 2026-11-20T14:30:00Z", "b: x  y", "null: null", "a: 0o7"])
@settings(max_examples=examples(200))
def test_a_head_of_plain_lines_is_read_as_yaml_reads_it(lines):
    head = "".join(f"{line}\n" for line in lines)
    with pytest.MonkeyPatch.context() as patch:
        found = parse(f"---\n{head}---\nbody")
        patch.setattr(frontmatter, "_PLAIN_HEAD", re.compile("(?!)"))
        assert parse(f"---\n{head}---\nbody") == found


def test_scalars_are_read_as_written():
    head = parse("---\na: 007\nb: 1.10\nc: 2026-11-20\non: yes\n2026: x\nn: ~\ne:\nl: [[Maya]]\n---\nbody\n")
    assert head.fields == {
        "a": "007", "b": "1.10", "c": "2026-11-20", "on": "yes", "2026": "x", "n": "~", "e": "", "l": [["Maya"]],
    }  # fmt: skip
    assert head.problems == ()


@pytest.mark.parametrize(("text", "fields", "word"), [
    ("---\nid: 01a\nbad: [\n---\nbody", {"id": "01a", "bad": "["}, "not YAML"),
    ("---\nid: 01a\nstatus: x\n", {"id": "01a", "status": "x"}, "never closed"),
    ("---\nid: 01a\nid: 01b\n---\n", {"id": "01b"}, "more than once"),
    ("---\n- a\n---\n", {}, "not YAML"),
    ("---\nid: 01a   # c\n\tx: [\n---\n", {"id": "01a"}, "not YAML"),
])  # fmt: skip
def test_a_broken_head_leaves_its_flat_lines_and_a_problem(text, fields, word):
    head = parse(text)
    assert head.fields == fields
    assert word in head.problems[0]


# (lines of which one is broken, its line in the note, what they say, what is no property)
BROKEN = [
    ("title: Lease: the flat\naliases: [A, 'b c']", 2, {"title": "Lease: the flat", "aliases": ["A", "b c"]}, ""),
    ("aliases:\n  - A\n  - B\ntitle: Boat: blue", 5, {"aliases": ["A", "B"], "title": "Boat: blue"}, ""),
    ("a: 1\naliases:\n\t- A\n\t- B", 4, {"a": "1", "aliases": ["A", "B"]}, ""),
    ("näher: ja: nein\naliases: [U]", 2, {"näher": "ja: nein", "aliases": ["U"]}, ""),
    ('title: "never closed\naliases: [U]', 2, {"title": "never closed", "aliases": ["U"]}, ""),
    ("title: 'a' and 'b'\naliases: [U]", 2, {"title": "'a' and 'b'", "aliases": ["U"]}, ""),
    ("aliases: [U]\nauthor: @ada # why", 3, {"aliases": ["U"], "author": "@ada"}, ""),
    ("share: %50\naliases: [U]", 2, {"share": "%50", "aliases": ["U"]}, ""),
    ("created: {{date}}\naliases: [U]", 2, {"created": "{{date}}", "aliases": ["U"]}, ""),
    ("rating: *****\naliases:\n- U", 2, {"rating": "*****", "aliases": ["U"]}, ""),
    ("up: [[Home]]\nrelated: [[A]], [[B]]", 3, {"up": [["Home"]], "related": "[[A]], [[B]]"}, ""),
    ("aliases: [A, @b, 'c']\nx: 1", 2, {"aliases": ["A", "@b", "c"], "x": "1"}, ""),
    ("aliases: [A, b\nx: [1]", 2, {"aliases": ["A", "b"], "x": ["1"]}, ""),
    ("aliases:\n  - A\n  - @b\n  - c: d: e\nx: 1", 4, {"aliases": ["A", "@b", {"c": "d: e"}], "x": "1"}, ""),
    ("aliases:\n  - A\ntitle: b: c\n  - D", 4, {"aliases": ["A", "D"], "title": "b: c"}, ""),
    ("aliases:\n- A\n-B\n- C", 4, {"aliases": ["A", "C"]}, "-B\n"),
    ("aliases:\n- A\n@x\n- B\n@y\n- C", 4, {"aliases": ["A", "B", "C"]}, "@x\n@y\n"),
    ("aliases:\n  - A\n]\n  - B\nx: 1", 4, {"aliases": ["A", "B"], "x": "1"}, ""),
    ("title:Lease\nx: 1", 2, {"title": "Lease", "x": "1"}, ""),
    ("a: 1\njust words\nx: [1]", 3, {"a": "1", "x": ["1"]}, "just words\n"),
    ("{{date}}: x\na: 1", 2, {"a": "1"}, "{{date}}: x\n"),
    ("a: &b [p, q]\nc: *b\nd: e: f", 4, {"a": ["p", "q"], "c": ["p", "q"], "d": "e: f"}, ""),
    ("  a: 1\n  b: c: d\n  e: [1]", 3, {"a": "1", "b": "c: d", "e": ["1"]}, ""),
    ("a: bell\x07\nb: [1]", 2, {"a": "bell\x07", "b": ["1"]}, ""),
    ("a: 1\n# why: [\nb: @c\nd:\n  e: [1]", 4, {"a": "1", "b": "@c", "d": {"e": ["1"]}}, ""),
]  # fmt: skip


@for_each("newline", ["\n", "\r\n"])
@for_each(("inside", "line", "fields", "rest"), BROKEN)
def test_a_broken_line_costs_no_other_and_is_named(inside, line, fields, rest, newline):
    head = parse(f"---\n{inside}\n---\nbody\n".replace("\n", newline))
    assert head.fields == fields
    assert head.body == f"{rest}body\n".replace("\n", newline)
    assert f"(line {line})" in head.problems[0]


STRAY = (
    "lease: the flat: in Bergen", "@home", "lease: @home", "lease: {{date}}", "lease: %50", "lease: *****", "lease: `x`",
    'lease: "never closed', "lease: [never, closed", "lease: [[A]], [[B]]", "just words", "<<<<<<< ours", "lease: a\tb: c",
    "{{date}}: x", "lease:no space", "! ! !", "&", "*none", "lease: {a", "lease: 'a' b", "lease: ]", "-no space", "[x", "]",
)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=examples(400))
@given(st.data(), heads(), st.sampled_from(STRAY))
def test_a_broken_line_at_any_place_leaves_every_other_key(data, head, stray):
    inside, _ = head
    whole = parse(f"---\n{inside}---\nbody")
    assume(not whole.problems and inside == dedent(inside))
    lines = inside.splitlines(keepends=True)
    place = data.draw(st.integers(0, len(lines)))
    text = f"---\n{''.join(lines[:place])}{stray}\n{''.join(lines[place:])}---\nbody"
    broken = parse(text)
    assume(broken.problems)  # in a block of text any line is text
    key = interrupted_key(lines, place)
    for name, value in whole.fields.items():
        if name != key or isinstance(value, list):
            assert as_shown(broken.fields[name]) == as_shown(value), text
    with pytest.raises(FrontmatterBrokenError):
        set_fields(text, {"status": "new"})


def as_shown(value):
    return value.rstrip() if isinstance(value, str) else value


def interrupted_key(lines, place):
    """Return the key whose value goes on behind `place`, None where another key or nothing begins there."""
    following = next((line for line in lines[place:] if line.strip() and not line.startswith("#")), "x")
    if not following.startswith((" ", "-", "]", "}")):
        return None
    names = [
        line.partition(":")[0].strip("'\"") for line in lines[:place] if line[:1] not in {" ", "-", "#", "\n", "]"}
    ]
    return names[-1] if names else None


@pytest.mark.parametrize(
    "text", ["---\n\nA rule opens this note.\n", "--- no head\n", "text\n---\nid: 1\n---\n", " ---\nid: 1\n---\n"]
)
def test_what_is_no_head_is_body(text):
    head = parse(text)
    assert head.fields == {}
    assert head.body == text
    assert not head.problems


HOSTILE = [
    "a: " + "[" * 100_000,
    "a:\n" + "- " * 50_000,
    "? " * 50_000,
    "".join(" " * i + "a:\n" for i in range(400)),
    "a: &a [x,x,x,x,x,x,x,x]\n"
    + "".join(f"{b}: &{b} [{','.join([f'*{a}'] * 8)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)),
    "a: &a [*a]",
    "a: x" + " " * 100_000 + "y: [",
    "a: " + '"' + "\\" * 99_999,
    "&a" * 50_000,
    "a: b: " * 20_000,
    "'" * 99_999,
]


@for_each("inside", HOSTILE)
def test_hostile_heads_cost_neither_the_process_nor_its_time(inside):
    text = f"---\n{inside}\n---\nbody"
    started = time.thread_time()
    parse(text)
    with suppress(FrontmatterBrokenError):
        set_fields(text, {"id": "x"})
    assert time.thread_time() - started < 5.0


# --- writing anew


@pytest.mark.slow
@settings(max_examples=examples(300))
@given(st.dictionaries(st.sampled_from(KEYS[:4]), values | st.none(), max_size=4))
@example({"id": "a\u2028b\x85\x7f\ufeff"})
@example({"id": "---"})
@example({"keywords": ["a, b", "c"]})
@example({"confidence": 0.123456789})
def test_what_is_rendered_reads_back(fields):
    text = render(fields)
    head = parse(text + "body\n")
    written = {key: value for key, value in fields.items() if value is not None}
    assert list(head.fields) == list(written)
    for key, value in written.items():
        assert read(head.fields[key], as_read(value)) == as_read(value)
    assert head.body == "body"
    assert not head.problems


@for_each(("value", "written"), [
    ("oat milk", "oat milk"), ("007", '"007"'), ("1.10", '"1.10"'), ("yes", '"yes"'), ("null", '"null"'), ("", '""'),
    ("2026-11-20", "2026-11-20"), ("2026-11-20T14:30:00Z", "2026-11-20T14:30:00Z"), ("[[Maya]]", '"[[Maya]]"'),
    ("a: b", '"a: b"'), ("a #b", '"a #b"'), (" x", '" x"'), ("é", '"é"'), (0.9, "0.9"), (1.0, "1"), (3, "3"),
    (True, "true"), (["a", "b c"], "[a, b c]"), (["a, b"], '["a, b"]'), ([], "[]"), ("12:30", '"12:30"'), ("0x1f", '"0x1f"'),
])  # fmt: skip
def test_a_value_is_quoted_only_where_another_reader_would_mistake_it(value, written):
    assert frontmatter.render({"k": value}) == f"---\nk: {written}\n---\n"
