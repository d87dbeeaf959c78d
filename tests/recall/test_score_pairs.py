"""A local cross-encoder in recall: what it orders, what it leaves, and what becomes of one that is missing or slow."""

from __future__ import annotations

import pytest
from cross_encoder import write_matcher
from hypothesis import example, given
from hypothesis import strategies as st
from recall_index import ByWords, ask, everything, make_index

from quaid.embed import fetch_weights
from quaid.model import Recall
from quaid.recall import rerank
from quaid.recall.rerank import reorder
from quaid.settings import EmbeddingSettings, RecallSettings

NOTES = {
    "facts/milk.md": "---\nid: milk\n---\nMaya likes milk in her coffee.\n",
    "facts/oat.md": "---\nid: oat\n---\nOat is what Maya likes in coffee.\n",
    "facts/tea.md": "---\nid: tea\n---\nMaya likes tea and milk all day long.\n",
    "facts/dog.md": "---\nid: dog\n---\nThe dog sleeps.\n",
    "entities/Maya.md": "---\nid: maya\ntype: person\n---\nThe mother of Rex.\n",
}
QUESTION = "What milk does Maya likes in her coffee?"


@pytest.fixture
def model(tmp_path, monkeypatch):
    """A cross-encoder for which `oat` is the answer."""
    monkeypatch.setenv("QUAID_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr("quaid.recall.rerank.SCORING_BUDGET_S", 600.0)
    folder = write_matcher(tmp_path / "model", {"oat": 9.0, "dog": -9.0})
    fetch_weights(EmbeddingSettings(model=str(folder)))
    return str(folder)


@pytest.fixture
def index():
    connection = make_index(NOTES, ByWords())
    yield connection
    connection.close()


def asked(index, model="", question=QUESTION, **options) -> Recall:
    settings = RecallSettings(reranker=model)
    return ask(index, question, ByWords(), everything(), settings=settings, **{"depth": "fast", **options})


def order(answer: Recall) -> list[str]:
    return [hit.id for hit in answer.hits]


def test_it_is_off_unless_it_is_set(index, model):
    assert order(asked(index))[0] == "milk"
    assert "score_pairs" not in asked(index).trace["took_ms"]
    assert "score_pairs" not in asked(index, model, keyword_only=True).trace["took_ms"]


def test_it_orders_the_hits_and_changes_no_score_but_their_places(index, model):
    before, after = asked(index), asked(index, model)
    assert order(after)[0] == "oat"
    assert sorted(order(after)) == sorted(order(before))
    assert [hit.score for hit in after.hits] == pytest.approx([hit.score for hit in before.hits])
    assert after.degraded == before.degraded
    assert after.doubt == before.doubt


def test_what_has_nothing_to_do_with_the_question_is_not_shown_for_it(index, tmp_path, model):
    folder = write_matcher(tmp_path / "dogs", {"dog": 9.0, "oat": 3.0})
    fetch_weights(EmbeddingSettings(model=str(folder)))
    before = ask(index, QUESTION, ByWords())
    after = ask(index, QUESTION, ByWords(), settings=RecallSettings(reranker=str(folder)))
    assert len(after.hits) == len(before.hits)
    assert order(after)[0] == "oat"
    assert "dog" not in order(after)


def test_a_note_whose_name_is_the_question_stays_first(index, model):
    assert order(asked(index, model, "Maya"))[0] == "maya"


def test_what_is_not_read_in_time_keeps_its_place_and_the_answer_says_so(index, model, monkeypatch):
    monkeypatch.setattr("quaid.recall.rerank.SCORING_BUDGET_S", -0.001)
    answer = asked(index, model)
    assert order(answer) == order(asked(index))
    assert answer.degraded == ("reranker",)
    (sentence,) = answer.trace["degraded"]
    assert sentence.startswith("reranker: 0 of ")


def test_candidates_behind_those_that_it_reads_keep_their_places(index, model, monkeypatch):
    monkeypatch.setattr("quaid.recall.rerank.MAX_SCORED", 1)
    assert order(asked(index, model)) == order(asked(index))


def test_a_missing_one_costs_the_order_alone_and_is_named(index, tmp_path, monkeypatch):
    monkeypatch.setenv("QUAID_CACHE_DIR", str(tmp_path / "none"))
    answer = asked(index, "ms-marco-MiniLM-L6-v2")
    assert order(answer) == order(asked(index))
    assert answer.degraded == ("reranker",)
    assert "quaid doctor --fetch" in answer.trace["degraded"][0]


def test_it_reads_who_has_spoken(tmp_path, model):
    talk = "---\nid: s\ntype: episode\nsession: s\n---\n**Tom**: milk in my coffee ^t1\n\n**Rex**: milk in my tea ^t2\n"
    folder = write_matcher(tmp_path / "names", {"rex": 9.0})
    fetch_weights(EmbeddingSettings(model=str(folder)))
    index, question = make_index({"episodes/s.md": talk}, ByWords()), "milk in my coffee"
    assert [hit.turn for hit in asked(index, "", question).hits][:2] == [1, 2]
    assert [hit.turn for hit in asked(index, str(folder), question).hits][:2] == [2, 1]


def test_the_formula_is_a_mean_of_both_scaled_over_the_candidates():
    # Scaled scores 1, .5, 0 and logits 0, 1, .8: the means are .4, .8 and .48.
    scores = {1: 0.9, 2: 0.8, 3: 0.7, 4: 0.1}
    assert reorder(scores, {1: -5.0, 2: 5.0, 3: 3.0}) == {2: 0.9, 3: 0.8, 1: 0.7}
    assert reorder(scores, {}) == {}
    assert rerank.SHARE == 0.6


@given(st.dictionaries(st.integers(0, 9), st.tuples(st.floats(0, 2), st.floats(-20, 20)), max_size=9))
@example({0: (0.0, 0.0), 1: (1.0, -1.0), 2: (1e-35, 1e-100)})  # rounded, the first and the last are equal
def test_the_scores_stay_and_one_that_is_better_by_both_is_not_behind(given_pairs):
    scores = {each: score for each, (score, _) in given_pairs.items()}
    logits = {each: logit for each, (_, logit) in given_pairs.items()}
    found = reorder(scores, logits)
    assert sorted(found.values()) == sorted(scores.values())
    for one, (score, logit) in given_pairs.items():
        for other, (less, lower) in given_pairs.items():
            assert not (score > less and logit > lower) or found[one] >= found[other]
