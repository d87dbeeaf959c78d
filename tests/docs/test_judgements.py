"""Which changes matter to a document, as a model judges."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import examples
from recall_page import CHANGE, COMMIT, DOC, change, question, say

from quaid.docs.judgements import ask_significance
from quaid.llm.prompts import load_prompt


def test_each_change_gets_a_judgement_and_those_without_are_significant(service):
    many = [change(f"src/{n}.py", b"a = 1\n", b"a = %d\n" % (n + 2), "modified", COMMIT) for n in range(4)]
    says = [(1, False, "A comment."), (2, True, "The limit."), (4, False, "x"), (4, True, "Or not."), (9, False, "?")]
    service.value = {"changes": [dict(zip(("n", "significant", "reason"), one, strict=True)) for one in says]}
    found = ask_significance(service.models("anthropic"), "docs/recall.md", DOC, many)
    assert [significant for significant, _ in found] == [False, True, True, True]
    assert [why for _, why in found[1:]] == ["The limit.", "The model did not judge it.", "Or not."]
    assert load_prompt("docs_significance").instructions in service.asked[0]["system"][0]["text"]
    assert len(service.asked) == 2, "it was sent back once"
    assert "### 2 modified src/1.py\ncommit 3f2a91c3f2 2026-11-20 recall: twice as many hits\n@@" in question(service)
    assert "number 3 is missing" in json.dumps(service.asked[1])


def test_many_changes_are_asked_about_in_several_questions(service):
    big = "\n".join(f"line {n} of it" for n in range(1_000)).encode()
    many = [change(f"{n}.py", None, big + b"%d" % n, "added") for n in range(12)]
    service.value = {"changes": []}
    found = ask_significance(service.models("anthropic"), "d.md", DOC, many)
    assert [significant for significant, _ in found] == [True] * 12
    assert 4 <= len(service.asked) <= 8
    assert ask_significance(service.models("anthropic"), "d.md", DOC, []) == []


@pytest.mark.slow
@settings(max_examples=examples(30), deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries({"n": st.integers(1, 4), "significant": st.booleans(), "reason": st.text(max_size=20)}),
        max_size=5,
    )
)
def test_any_judgements_are_borne(lasting, said):
    found = ask_significance(say(lasting, {"changes": said}), "a.md", DOC, [CHANGE, CHANGE])
    for number, (significant, _) in enumerate(found, 1):
        told = [item["significant"] for item in said if item["n"] == number]
        assert significant == (any(told) or not told)
