"""Documents that have grown, and the cuts that shorten one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from recall_page import BODY, DOC, answer

from quaid.docs.updates import ask_cleanup
from quaid.janitor.project_docs import find_growth
from quaid.llm.prompts import load_prompt


def test_a_cleanup_takes_what_can_go_and_leaves_the_rest(service):
    edits = answer(
        ("", "The query is parsed, then each channel is asked.", "The query is parsed."),
        ("", "- A question is cut at 500 characters.\n", ""),
        ("", "no such words", ""),
        ("", "as the page on fusion tells", "as everybody knows"),
    )["edits"]
    service.value = {"edits": edits}
    update = ask_cleanup(service.models("anthropic"), "docs/recall.md", DOC)
    assert update.after == DOC.replace(", then each channel is asked", "").replace(
        "- A question is cut at 500 characters.\n", ""
    )
    assert (len(update.edits), update.prompt) == (2, load_prompt("docs_cleanup").label)
    assert update.summary.endswith("characters can go")


@pytest.mark.parametrize("edits", [
    (),
    (("", BODY, "# Recall\n"),),
    (("", "10 hits", "hits hits hits"),),
    (("", "gives 10 hits", "gives 99 hits"),),
    (("", "SOURCES: quaid/recall.py", ""),),
    (("", 'recall("tea")\n```\n', ""),),
])  # fmt: skip
def test_a_cleanup_that_shortens_nothing_or_too_much_is_none(service, edits):
    service.value = {"edits": answer(*edits)["edits"]}
    assert ask_cleanup(service.models("anthropic"), "docs/recall.md", DOC) is None


NOW = datetime(2026, 11, 20, tzinfo=UTC)


def days(*pairs):
    return [(NOW - timedelta(days=ago), size) for ago, size in pairs]


OFTEN = tuple((n, 60_000) for n in range(12))


@pytest.mark.parametrize(("commits", "found"), [
    (((300, 10_000), (200, 20_000), *OFTEN), (12, 3)),
    (((100, 30_000), *OFTEN), (12, 2)),
    (((80, 20_000), *OFTEN), None),
    (((200, 20_000), *OFTEN[1:]), None),
    (((200, 50_000), *OFTEN), None),
    (((200, 2_000), *((n, 19_000) for n in range(12))), None),
    ((), None),
])  # fmt: skip
def test_grown_is_what_is_large_and_much_changed_and_much_larger_than_it_was(commits, found):
    assert find_growth(days(*commits), NOW) == found


def test_no_doc_of_quaids_own_is_bloated_for_being_written():
    for path in sorted((Path(__file__).parents[2] / "docs").rglob("*.md")):
        size = path.stat().st_size
        assert find_growth(days(*((n, size * (20 - n) // 20) for n in range(20))), NOW) is None, path
