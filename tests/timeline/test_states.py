"""Two states of the memory compared: facts, word by word, and answers."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import examples
from timelines import HOME, MILK
from vaults import refused

from quaid.cli.history import render_words
from quaid.cli.main import main
from quaid.errors import BadInputError, RevisionError, UsageError
from quaid.timeline.changes import compare, diff_words
from quaid.timeline.states import read_questions
from quaid.vault.layout import Layout

PLACE = Layout(is_managed=True)
FACT = "---\nid: {id}\ntype: fact\nstatus: active\n{more}---\n{text}\n"


def fact(text, note_id="01a", more=""):
    return FACT.format(id=note_id, text=text, more=more).encode()


def compared(before, after):
    found = compare(before, after, PLACE)
    return [(change.how, change.kind, change.text, change.was) for change in found]


def test_what_files_mean():
    before = {
        "facts/a.md": fact("Maya takes oat milk", "01a"),
        "facts/b.md": fact("Maya lives in Lisbon", "01b"),
        "facts/c.md": fact("Tom sails", "01c"),
        "facts/d.md": fact("Ana paints", "01d", "superseded_by: '[[e]]'\n"),
        "facts/g.md": fact("Ben moved", "01g"),
        "entities/Maya.md": b"---\ntype: person\n---\n- works_at [[Acme]]\n",
        "USER.md": b"# Maya\n",
        "quaid.toml": b"a = 1\n",
    }
    after = {
        "facts/a.md": fact("Maya takes soy milk", "01a"),
        "facts/b.md": fact("Maya lives in Lisbon", "01b", "superseded_by: '[[f]]'\n"),
        "facts/d.md": fact("Ana paints", "01d"),
        "facts/f.md": fact("Maya lives in Porto", "01f"),
        "facts/h.md": fact("Ben moved", "01g"),
        "entities/Maya.md": b"---\ntype: person\n---\n- works_at [[Globex]]\n",
        "USER.md": b"# Maya\n\nlikes tea\n",
        "quaid.toml": b"a = 2\n",
    }
    assert compared(before, after) == [
        ("changed", "core", "USER.md", None),
        ("changed", "entity", "Maya", None),
        ("changed", "fact", "Maya takes soy milk", "Maya takes oat milk"),
        ("superseded", "fact", "Maya lives in Lisbon", None),
        ("forgotten", "fact", "Tom sails", None),
        ("restored", "fact", "Ana paints", None),
        ("learned", "fact", "Maya lives in Porto", None),
        ("moved", "fact", "Ben moved", None),
        ("changed", "file", "quaid.toml", None),
    ]


@settings(max_examples=examples(50))
@given(st.text("ab \n", max_size=20), st.text("ab \n", max_size=20))
def test_a_word_diff_has_both_texts(before, after):
    marked = list(diff_words(before, after))
    assert " ".join(text for how, text in marked if how in "=-").split() == before.split()
    assert " ".join(text for how, text in marked if how in "=+").split() == after.split()


def test_a_word_diff_is_read_like_gits():
    assert render_words("Maya takes oat milk", "Maya takes soy milk") == "Maya takes [-oat-] {+soy+} milk"


def test_days_are_whole_and_what_was_before_the_beginning_is_nothing(vault):
    today = datetime.now(UTC)
    with vault.memory() as memory:
        diff = memory.timeline.diff
        before, _, changes = diff("yesterday..")
        everything = [change.path for change in changes]
        assert before is None
        assert "quaid.toml" in everything
        assert [change.path for change in diff(f"{today:%Y-%m-%d}..{today:%Y-%m-%d}")[2]] == everything
        tomorrow = f"{today + timedelta(days=1):%Y-%m-%d}"
        assert diff(f"{tomorrow}..")[2] == ()
        assert diff("HEAD..")[2] == ()
        memory.remember("Ana plays the cello in town")
        (learned,) = diff("HEAD^")[2]
        assert (learned.how, learned.text) == ("learned", "Ana plays the cello in town")
        assert [change.how for change in diff("HEAD..HEAD^")[2]] == ["forgotten"]
        refused(lambda: diff("HEAD...HEAD^"), UsageError)
        refused(lambda: diff("nowhere..HEAD"), RevisionError)


def test_what_is_not_committed_counts_as_now(vault):
    vault.write("USER.md", "# Maya\n\nlikes tea\n")
    vault.write("notes/new.md", "new\n")
    (path,) = (path for path, data in vault.notes().items() if MILK.encode() in data)
    (vault.root / path).unlink()
    with vault.memory() as memory:
        found = {change.path: change.how for change in memory.timeline.diff("HEAD")[2]}
        assert found == {"USER.md": "changed", "notes/new.md": "added", path: "forgotten"}
        assert memory.timeline.diff("HEAD^..HEAD")[2][0].path == "projects/boat/GUIDE.md"


def test_answers_gained_and_lost(vault, tmp_path, capsys):
    start = vault.head()
    with vault.memory() as memory:
        memory.remember("Maya lives in Porto with Tom", replaces=HOME)
        memory.forget(MILK)
    questions = tmp_path / "q.txt"
    questions.write_text(
        f"Where does Maya live?\n\nWhat milk does Maya take? → {MILK.lower().replace(' ', '-')}\nWho sails?\n"
    )
    assert (
        main(["--vault", str(vault.root), "diff", f"{start}..", "--recall", str(questions), "--json", "-n", "3"]) == 0
    )
    shape = json.loads(capsys.readouterr().out)
    lives, milk, sails = shape["answers"]
    assert "Maya lives in Porto with Tom" in [hit["text"] for hit in lives["gained"]]
    assert MILK in [hit["text"] for hit in milk["lost"]]
    assert (sails["gained"], sails["lost"]) == ([], [])
    assert {change["how"] for change in shape["changes"]} == {"learned", "superseded", "forgotten"}
    assert main(["--vault", str(vault.root), "diff", f"{start}..", "--recall", str(tmp_path / "none.txt")]) == 1
    assert "There is no file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "text", "asked"),
    [
        ("q.txt", "What?\n- Who?\n# Group\nWhere? → 7k3qd\n", ["What?", "Who?", "Where?"]),
        ("q.md", "Some prose.\n\n- What?\n", ["What?"]),
        ("q.jsonl", '{"question": "What?"}\n', ["What?"]),
    ],
)
def test_questions_are_read_a_line_each_or_as_eval_reads_them(tmp_path, name, text, asked):
    (tmp_path / name).write_text(text)
    assert [question.text for question in read_questions(tmp_path / name)] == asked


def test_a_file_without_a_question_is_refused(tmp_path):
    (tmp_path / "q.txt").write_text("\n\n")
    refused(lambda: read_questions(tmp_path / "q.txt"), BadInputError)
