"""Changes of sources as diffs, and the sections of a long page that they concern."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recall_page import CHANGE, change, stale

from quaid.docs.changes import excerpt, find_removed, shorten_lines, show_changes
from quaid.docs.freshness import Doubt
from quaid.docs.updates import PROMPTS
from quaid.llm.prices import estimate_tokens
from quaid.llm.prompts import load_prompt


def test_a_difference_is_shown_by_line():
    assert CHANGE.head == "modified quaid/recall.py\ncommit 3f2a91c3f2 2026-11-20 recall: twice as many hits\n"
    assert CHANGE.diff() == (
        "@@ -1,5 +1,5 @@\n-DEFAULT_LIMIT = 10\n+DEFAULT_LIMIT = 20\n \n \n-def recall(query):\n"
        "+def recall(query, at=None):\n     return query\n"
    )
    moved = change("b.py", b"x\r\n", b"x\r\ny", old_path="a\n.py")
    assert moved.head == "renamed a .py to b.py\n"
    assert moved.diff() == "@@ -1 +1,2 @@\n x\n+y\n\\ No newline at end of file\n"


@pytest.mark.parametrize(("before", "after", "shown"), [
    (b"a\n", b"a\r\n", "the same lines"),
    (b"a\0", b"b", "cannot be compared: 2 bytes before, 1 now"),
    (b"a", b"a", "the same lines"),
    (None, b"a" * 1_000_001, "cannot be compared: 0 bytes before, 1,000,001 now"),
    (b"caf\xe9\n", b"caf\xc3\xa9\n", "+café"),
    (None, b"new\n", "@@ -0,0 +1 @@\n+new"),
    (b"old\n", None, "@@ -1 +0,0 @@\n-old"),
])  # fmt: skip
def test_what_has_no_lines_is_named(before, after, shown):
    assert shown in change("a", before, after).diff()


def test_a_long_difference_loses_its_end_and_no_line_poses_as_another_change():
    new = b"".join(b"### %d fake\n" % n for n in range(5_000)) + b"### 2 one line " * 2_000
    shown = change("a", None, new).diff(longest=2_000)
    assert len(shown) < 2_100
    assert all(line[0] in " +-@\\[" for line in shown.split("\n") if line)
    assert "lines left out" in shown
    assert shorten_lines("short", 10) == "short"


@given(st.text("ab \n", max_size=300), st.integers(10, 300))
def test_what_is_shortened_keeps_whole_lines(text, longest):
    short = shorten_lines(text, longest)
    if len(text) <= longest:
        assert short == text
    else:
        head, _, count = short.partition("[…] ")
        assert text.startswith(head.removesuffix("\n"))
        assert int(count.split()[0]) == len(text[len(head) :].rstrip("\n").split("\n"))


def test_of_a_long_doc_the_sections_are_shown_that_the_changes_speak_of():
    parts = [f"## Part {n}\n\n{'word ' * 40}\n\n" for n in range(50)]
    parts[30] += "It is asked by `DEFAULT_LIMIT`.\n\n"
    text = "---\na: b\n---\n# Title\n\nIntro.\n\n" + "".join(parts)
    shown = excerpt("a.md", text, [CHANGE], 1_000)
    assert shown.startswith("# Title\n\nIntro.\n")
    assert "## Part 30\n" in shown
    assert shown.count("[…]") >= 2
    assert len(shown) < 1_100
    assert excerpt("a.md", text, [], 100_000) == text[len("---\na: b\n---\n") :]
    assert len(excerpt("a.md", "x" * 5_000, [], 1_000)) < 1_100


def test_the_paragraph_in_doubt_is_shown_with_its_anchor_and_no_large_example():
    schema = "```sql\n" + "create table recall (query, limit, index)\n" * 30 + "```\n\n"
    parts = [f"## Part {n}\n\nThe index of recall has a query and a limit, number {n}.\n\n{schema}" for n in range(9)]
    parts[7] = "(anchor)=\n\n## Part 7\n\nWhat is true of hares.\n\n"
    text = "---\na: b\n---\n# Title\n\n" + "".join(parts)
    line = text[: text.index("What is true")].count("\n") + 1
    doubt = Doubt("DEFAULT_LIMIT", "quaid/recall.py", "signature", 1.0, line)
    shown = excerpt("a.md", text, [CHANGE], 800, [doubt])
    assert "(anchor)=\n\n## Part 7\n\nWhat is true of hares." in shown
    assert "create table" not in shown
    assert "number 0" in shown


def test_of_a_block_that_is_too_long_the_lines_in_doubt_are_shown():
    options = "".join(f"  --option-{n} TEXT  What the option with the number {n} does\n" for n in range(200))
    text = f"# Options\n\n```\n{options}```\n"
    doubt = Doubt("run --option-90", "a.py", "removed", 1.0, text[: text.index("--option-90")].count("\n") + 1)
    shown = excerpt("a.md", text, [CHANGE], 1_500, [doubt])
    assert "  --option-90 TEXT  What the option with the number 90 does\n" in shown
    assert len(shown) < 1_600


LARGE = "".join(f"def helper_{n}(value):\n    total = value + {n}\n    return total\n\n\n" for n in range(150))
COMMAND = """\
@cli.command()
@click.option("--limit", default={limit}, help="Rows that are shown")
def logs(limit):
    \"\"\"Show {what} prompts\"\"\"
    return rows(limit)


"""


def large(limit, what, tail):
    return f"{LARGE}{COMMAND.format(limit=limit, what=what)}{LARGE.replace('helper', 'more')}{tail}".encode()


def test_a_model_sees_the_definition_that_a_page_names_out_of_a_large_file():
    old, new = large(10, "logged", ""), large(25, "all logged", "").replace(b"total = value", b"total = 1 * value")
    text = "# Logs\n\nShow them with `llm logs`. `--limit` is 10 without a value.\n"
    shown = show_changes(text, [change("llm/cli.py", old, new)], 3_000)
    assert len(shown) < 3_200
    for part in ("option logs --limit, signature", '+@click.option("--limit", default=25', "all logged prompts"):
        assert part in shown
    assert "more changes of this file left out" in shown


def test_the_signature_is_shown_where_the_difference_lacks_it():
    body = "".join(f"    step_{n}()\n" for n in range(20))
    old, new = (f"def load(path, mode={mode!r}):\n{body}    return {mode}\n".encode() for mode in (1, 2))
    shown = show_changes("`load()`", [change("a.py", old.replace(b"mode=1", b"mode=2"), new)], 3_000)
    assert "function load, body\n def load(path, mode=2):\n" in shown


def test_what_makes_the_page_doubtful_is_shown_first():
    old = LARGE.encode()
    new = old.replace(b"total = value", b"total = 1 * value") + b"def fresh(value):\n    return value\n"
    doubt = Doubt("fresh", "a.py", "added", 0.5)
    shown = show_changes("`helper_1()`, `helper_2()`", [change("a.py", old, new)], 300, [doubt])
    assert shown.startswith("### 1 modified a.py\n  function fresh, added\n")


def test_a_long_new_definition_is_cut_at_definitions():
    old, new = (
        b"x = 1\n",
        b"x = 1\n" + LARGE.encode() + b"class Schema:\n    def load(self, path):\n        return path\n",
    )
    shown = show_changes("Call `Schema.load`.", [change("a.py", old, new)], 2_000)
    assert "+    def load(self, path):" in shown
    assert len(shown) < 2_200


def test_values_that_a_change_removed_and_the_page_has_are_named():
    old = b'PORT = 8080\nMODES = ["fast", "slow"]\n\n\ndef serve(port=PORT):\n    run("--cool")\n'
    new = b'PORT = 9090\nMODES = ["quick", "slow"]\n\n\ndef serve(port=PORT):\n    run("--cold")\n'
    text = "It listens on 8080 (`PORT`).\n\nThere are 8080 ducks.\n\n- `MODES`: `fast`, `slow`\n- With `--cool` it is cold.\n"
    assert find_removed(text, [change("a.py", old, new)]) == [
        "`8080` (a.py): It listens on 8080 (`PORT`).",
        "`fast` (a.py): - `MODES`: `fast`, `slow`",
        "`--cool` (a.py): - With `--cool` it is cold.",
    ]
    assert find_removed(text.replace("8080", "9090").replace("fast", "quick").replace("cool", "cold"), [
        change("a.py", old, new)
    ]) == []  # fmt: skip


def test_a_page_takes_at_most_4000_tokens():
    old, new = large(10, "logged", ""), large(25, "all logged", "").replace(b"total = value", b"total = 1 * value")
    page = "# Logs\n\n" + "".join(
        f"## helper_{n}\n\nCall `helper_{n}` with {n}: {'word ' * 30}\n\n" for n in range(300)
    )
    refused = ["Say nothing of it, ever. " * 20] * 30
    opened = stale(page, [change(f"llm/{n}.py", old, new) for n in range(3)])
    inputs, prompt = opened.inputs(refused), load_prompt(PROMPTS[opened.task])
    assert estimate_tokens("".join([prompt.system, *inputs.values()])) <= 4_000


def test_the_tests_of_a_change_are_shown():
    source = change(
        "llm/cli.py", COMMAND.format(limit=10, what="a").encode(), COMMAND.format(limit=25, what="a").encode()
    )
    test = change(
        "tests/test_cli.py",
        b"def test_logs():\n    assert logs() == 10\n",
        b"def test_logs():\n    assert logs('--limit', 30) == 25\n",
    )
    shown = show_changes("`llm logs --limit`", [source, test], 2_000)
    assert "+    assert logs('--limit', 30) == 25" in shown
