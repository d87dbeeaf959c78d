"""Questions in a file, asked of one revision or of two."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matrices import for_each
from vaults import refused

from quaid.cli.main import main
from quaid.errors import BadInputError
from quaid.place import state_folder
from quaid.recall.evaluation import EvalQuestion, Outcome, list_gained, parse_questions, score

PAGE = """---
tags: [eval]
---
# Coffee

What Maya drinks.

- What milk does Maya take? → [[maya-prefers-oat-milk-7k3qd]], [[20-1402-2f1c9a#^t3]]
* Where does Jon live? -> 01abcd, Acme, Inc
+ What else?
1. [ ] Which way: A -> B? → [[maya|her]]  [[jon]]
```
- not → a question
~~~
```
<!-- - nor → this
- nor this -->

## Bread ##
   12) [x] Who bakes?\r
- → no
"""


def parsed(text, name="q.md"):
    return [(question.text, question.expected, question.group) for question in parse_questions(text, name)]


def test_a_page_of_questions_is_read_as_an_owner_writes_it():
    assert parsed(PAGE.replace("- → no\n", "")) == [
        ("What milk does Maya take?", ("maya-prefers-oat-milk-7k3qd", "20-1402-2f1c9a#^t3"), "Coffee"),
        ("Where does Jon live?", ("01abcd", "Acme", "Inc"), "Coffee"), ("What else?", (), "Coffee"),
        ("Which way: A -> B?", ("maya", "jon"), "Coffee"), ("Who bakes?", (), "Bread"),
    ]  # fmt: skip
    assert parse_questions(PAGE.replace("- → no\n", ""), "q.md")[-1].place == "q.md, line 20"


def test_json_lines_say_the_same():
    text = '{"question": " What milk? ", "expect": ["7k3qd", "[[a#^t3|b]]", "7k3qd"], "group": "Coffee"}\n\n{"question": "What else?"}\n'
    assert parsed(text, "q.jsonl") == [("What milk?", ("7k3qd", "a#^t3"), "Coffee"), ("What else?", (), "")]


@for_each(("name", "text", "said"), [
    ("q.md", PAGE, "q.md, line 21: there is no question before the arrow"),
    ("q.md", "- one\n- two ->\n", "q.md, line 2: nothing is expected after the arrow"),
    ("q.md", "- two → , \n", "q.md, line 1: nothing is expected"),
    ("q.md", "- two → [[half\n", "q.md, line 1: '[[half' is half a link"),
    ("q.md", "- two → half]], [[whole]]\n", "q.md, line 1: 'half]]' is half a link"),
    ("q.md", "No list at all → [[x]]\n", "q.md asks nothing"), ("q.md", "", "q.md asks nothing"),
    ("q.jsonl", "\n", "q.jsonl asks nothing"),
    ("q.jsonl", '{"question": "a"}\n{"question": \n', "q.jsonl, line 2: it is not JSON"),
    ("q.jsonl", "[1]\n", "line 1: it is not a JSON object"), ("q.jsonl", "[" * 100_000, "line 1: it is not JSON"),
    ("q.jsonl", '{"question": ""}', "line 1: there is no question"),
    ("q.jsonl", '{"expect": []}', "line 1: there is no question"),
    ("q.jsonl", '{"question": "a", "expect": "b"}', "line 1: expect is not a list"),
    ("q.jsonl", '{"question": "a", "expect": [""]}', "line 1: expect is not a list"),
    ("q.jsonl", '{"question": "a", "expected": ["b"]}', "line 1: 'expected' is not one of expect, group, question"),
    ("q.jsonl", '{"question": "a", "group": 7}', "line 1: group is not text"),
])  # fmt: skip
def test_what_cannot_be_read_is_named_with_its_line(name, text, said):
    assert said in str(refused(lambda: parse_questions(text, name), BadInputError))


@given(st.text() | st.lists(st.sampled_from(["- a", "→", " -> ", "[[", "]]", "x", "\n", "```", "<!--", "-->", "# h", "---", ",", "\r"])).map("".join))  # fmt: skip
def test_any_text_is_read_or_refused_in_words(text):
    for name in ("q.md", "q.jsonl"):
        try:
            for question in parse_questions(text, name):
                assert question.text.strip()
                assert all(name.strip() for name in question.expected)
        except BadInputError as error:
            assert str(error).startswith(name)  # noqa: PT017


NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9 #^.'-]{0,20}[A-Za-z0-9]", fullmatch=True)
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1).map(lambda text: f"Q {text}?")
GROUPS = st.lists(
    st.tuples(NAMES, st.lists(st.tuples(TEXTS, st.lists(NAMES, max_size=3, unique=True)), max_size=3)), max_size=3
)


@given(GROUPS, st.sampled_from(["→", "->"]), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_what_is_written_is_what_is_read(groups, arrow, newline, linked):
    lines, expected = ["Remarks come first.", ""], []
    for title, questions in groups:
        lines.append(f"## {title}")
        for text, names in questions:
            written = ", ".join(f"[[{name}]]" if linked else name for name in names)
            lines.append(f"- {text} {arrow} {written}" if names else f"- {text}")
            expected.append((text, tuple(names), title))
    lines.append("- The last one?")
    expected.append(("The last one?", (), groups[-1][0] if groups else ""))
    assert parsed(newline.join(lines)) == expected


def outcome(expected, ranks, hits=10):
    return Outcome(EvalQuestion("q", tuple(expected)), tuple(ranks), hits)


def test_the_figures_are_those_of_the_field():
    found = score([outcome("ab", (2, None)), outcome("c", (1,)), outcome("de", (None, None)), outcome("", ())])
    assert (found.questions, found.judged, found.complete, found.expected, found.found) == (4, 3, 1, 5, 2)
    assert found.recall == pytest.approx((0.5 + 1 + 0) / 3)
    assert found.mrr == pytest.approx((0.5 + 1 + 0) / 3)
    assert score([outcome("", ())]).recall is score([]).mrr is None


def test_gained_and_lost_are_named():
    before = [outcome("ab", (1, None)), outcome("cd", (3, 4)), outcome("e", (None,)), outcome("", ())]
    after = [outcome("ab", (None, 1)), outcome("cd", (9, 1)), outcome("e", (None,)), outcome("", ())]
    changed = [list_gained(before, after), list_gained(after, before)]
    assert [[names for _, names in each] for each in changed] == [[["b"]], [["a"]]]


@pytest.fixture
def asked(vault):
    """A vault that lost one answer and gained another, and its page of questions."""
    vault.write_fact("milk-7k3qd", "Maya takes oat milk in her coffee.")
    vault.write_fact("roof-abcde", "Jon keeps bees on the roof.")
    page = vault.write(
        "eval/coffee.md",
        "# Coffee\n\n- What milk does Maya take in her coffee? → [[milk-7k3qd]]\n- Where are the bees of Jon? -> 01roof-abcde\n"
        "- Which tea does Ana drink? → [[tea-fghjk]]\n- What is there about coffee?\n",
    )
    vault.save("before")
    (vault.root / "facts" / "milk-7k3qd.md").unlink()
    vault.write_fact("tea-fghjk", "Ana drinks green tea.")
    vault.save("after")
    return vault, page


def run(vault, capsys, *arguments):
    code = main(["eval", "--vault", str(vault.root), *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_present_is_asked_without_the_page_that_asks(asked, capsys):
    vault, page = asked
    code, out, _ = run(vault, capsys, page, "--json")
    found = json.loads(out)
    assert code == 0
    assert [[(e["answer"], e["after"]) for e in question["expected"]] for question in found["questions"]] == [
        [("milk-7k3qd", None)], [("01roof-abcde", 1)], [("tea-fghjk", 1)], [],
    ]  # fmt: skip
    assert found["questions"][-1]["hits"] == 0, "the page itself is no answer"
    assert (found["after"]["recall"], found["after"]["commit"], found["before"]) == (pytest.approx(2 / 3), None, None)


def test_two_revisions_are_compared_and_a_lost_answer_fails(asked, capsys):
    vault, page = asked
    code, out, err = run(vault, capsys, page, "--before", "HEAD~1", "--json")
    found = json.loads(out)
    assert code == 1
    assert "lost now: 1 expected answer." in err
    lost, gained = found["lost"], found["gained"]
    assert [(one["question"], one["answers"]) for one in lost] == [
        ("What milk does Maya take in her coffee?", ["milk-7k3qd"])
    ]
    assert [one["answers"] for one in gained] == [["tea-fghjk"]]
    assert lost[0]["place"].endswith("coffee.md, line 3")
    assert found["before"]["commit"] == vault.git("rev-parse", "HEAD~1")
    assert found["questions"][0]["expected"] == [{"answer": "milk-7k3qd", "before": 1, "after": None}]
    code, out, err = run(vault, capsys, page, "--before", "HEAD", "--after", "HEAD~1")
    assert code == 1
    assert "Lost\n  tea-fghjk" in out
    assert "Gained\n  milk-7k3qd" in out
    assert "rank 1 -> missing" in out
    code, out, _ = run(vault, capsys, page, "--before", "HEAD~1", "--after", "HEAD~1")
    assert (code, "Lost" in out) == (0, False)


def test_a_replay_leaves_nothing_in_the_books(asked, capsys):
    vault, page = asked
    assert run(vault, capsys, page, "--before", "HEAD~1", "--after", "HEAD")[0] == 1
    before = {path.name for path in state_folder(vault.root).iterdir()}
    run(vault, capsys, page)
    assert "local.db" not in {path.name for path in state_folder(vault.root).iterdir()} - before
    assert vault.status() == ""


def test_finding_nothing_of_what_is_expected_fails(asked, capsys):
    vault, page = asked
    page.write_text("- What milk does Maya take? → [[milk-7k3qd]]\n")
    code, _, err = run(vault, capsys, page)
    assert (code, "Nothing of what is expected was found" in err) == (1, True)
    page.write_text("- What milk does Maya take?\n")
    assert run(vault, capsys, page)[0] == 0


@pytest.mark.parametrize(("arguments", "said"), [
    (["missing.md"], "There is no file missing.md"), (["."], "cannot be read"),
    (["eval/coffee.md", "--before", "nowhere"], "Cannot go back to 'nowhere'"),
    (["eval/coffee.md", "--after", "2001-01-01"], "the history begins later"),
])  # fmt: skip
def test_what_cannot_be_asked_is_said_in_one_sentence(asked, capsys, monkeypatch, arguments, said):
    monkeypatch.chdir(asked[0].root)
    code, out, err = run(asked[0], capsys, *arguments)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert said in err


def test_a_page_that_is_no_text_is_refused(asked, capsys):
    asked[1].write_bytes(b"- caf\xe9\n")
    assert "is not UTF-8" in run(asked[0], capsys, asked[1])[2]
