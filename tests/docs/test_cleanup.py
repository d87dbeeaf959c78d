"""Documents that have grown, and the cuts that shorten one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from recall_page import BODY, DOC, answer

from quaid.docs.updates import ask_cleanup
from quaid.janitor.project_docs import is_bloated, measure_churn
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


def test_churn_is_counted_from_commits():
    assert measure_churn([], NOW) == (0, 0, None)
    assert measure_churn(days((300, 10), (200, 20), (10, 50), (0, 60)), NOW) == (2, 60, 3)
    assert measure_churn(days((100, 10), (10, 50)), NOW) == (1, 50, 5)
    assert measure_churn(days((80, 10), (10, 50)), NOW) == (2, 50, None)


@pytest.mark.parametrize(("churn", "bloated"), [
    ((20, 60_000, 3), True),
    ((20, 60_000, 1.2), False),
    ((20, 6_000, 3), False),
    ((5, 60_000, 3), False),
    ((20, 60_000, None), False),
])  # fmt: skip
def test_bloated_is_what_is_large_and_much_changed_and_much_grown(churn, bloated):
    assert is_bloated(*churn) is bloated


def test_no_doc_of_quaids_own_is_bloated_for_being_written():
    for path in sorted((Path(__file__).parents[2] / "docs").rglob("*.md")):
        size = path.stat().st_size
        assert not is_bloated(*measure_churn(days(*((n, size * (20 - n) // 20) for n in range(20))), NOW)), path
