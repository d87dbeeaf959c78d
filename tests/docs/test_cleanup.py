"""Documents that have grown, and the cuts that shorten one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from recall_page import BODY, DOC, answer, ask_cleanup

from quaid.docs.updates import describe_growth
from quaid.errors import ModelAnswerError
from quaid.llm.prompts import load_prompt


def test_a_cleanup_takes_what_can_go_and_leaves_the_rest(service):
    edits = answer(
        ("", "The query is parsed, then each channel is asked.", "The query is parsed."),
        ("", "- A question is cut at 500 characters.\n", ""),
    )["edits"]
    update = ask_cleanup(service, edits)
    assert update.after == DOC.replace(", then each channel is asked", "").replace(
        "- A question is cut at 500 characters.\n", ""
    )
    assert (len(update.edits), update.prompt) == (2, load_prompt("docs_cleanup").label)
    assert update.summary.endswith("characters can go.")


def test_a_cleanup_may_find_nothing_to_cut(service):
    assert ask_cleanup(service, []).after == DOC


@pytest.mark.parametrize("edits", [
    (("", "no such words", ""),),
    (("", "as the page on fusion tells", "as everybody knows"),),
    (("", BODY, "# Recall\n"),),
    (("", "10 hits", "hits hits hits"),),
    (("", "gives 10 hits", "gives 99 hits"),),
    (("", "SOURCES: quaid/recall.py", ""),),
    (("", 'recall("tea")\n```\n', ""),),
])  # fmt: skip
def test_a_cleanup_that_shortens_nothing_or_too_much_is_refused(service, edits):
    with pytest.raises(ModelAnswerError):
        ask_cleanup(service, answer(*edits)["edits"])


NOW = datetime(2026, 11, 20, tzinfo=UTC)


def days(*pairs):
    return [((NOW - timedelta(days=ago)).timestamp(), size) for ago, size in pairs]


OFTEN = tuple((n, 60_000) for n in range(12))


@pytest.mark.parametrize(("commits", "found"), [
    (((300, 10_000), (200, 20_000), *OFTEN), "12 times in three months and is 3.0 times"),
    (((100, 30_000), *OFTEN), "12 times in three months and is 2.0 times"),
    (((80, 20_000), *OFTEN), None),
    (((200, 20_000), *OFTEN[1:]), None),
    (((200, 50_000), *OFTEN), None),
    (((200, 2_000), *((n, 19_000) for n in range(12))), None),
    ((), None),
])  # fmt: skip
def test_grown_is_what_is_large_and_much_changed_and_much_larger_than_it_was(commits, found):
    described = describe_growth(days(*commits), NOW.timestamp())
    assert found in described if found else described == ""


def test_no_doc_of_quaids_own_is_bloated_for_being_written():
    for path in sorted((Path(__file__).parents[2] / "docs").rglob("*.md")):
        size = path.stat().st_size
        assert not describe_growth(days(*((n, size * (20 - n) // 20) for n in range(20))), NOW.timestamp()), path
