"""A model in recall: asked when, what its judgement changes, and what becomes of one that fails."""

from __future__ import annotations

import time
from collections.abc import Mapping

import pytest
from recall_index import ByWords, ask, everything, ids, make_index
from vaults import PATIENCE_S, Vault

from quaid.errors import EmbeddingError, ModelTimeoutError
from quaid.index.documents import Document
from quaid.model import Recall
from quaid.recall.rerank import MAX_JUDGED, RERANK_BUDGET_S, Grading

NOTES = {
    "facts/milk.md": "---\nid: milk\n---\nMaya takes oat milk in her coffee.\n",
    "facts/cow.md": "---\nid: cow\n---\nMaya sold the cow and its milk.\n",
    "facts/tea.md": "---\nid: tea\n---\nMaya takes her tea without milk or sugar.\n",
    "facts/boat.md": "---\nid: boat\n---\nHelga sails the red dinghy across the fjord.\n",
}
QUESTION = "Which milk does Maya take?"


class Judge:
    """Grades by a word of the text; keeps what it was given."""

    def __init__(self, grades: Mapping[str, int] | None = None, statement: str = "nothing of the kind") -> None:
        self.grades, self.statement = grades or {}, statement
        self.asked: list[tuple[str, list[Document], float]] = []

    def is_ready(self):
        return True

    def judge(self, query, memories, budget_s):
        self.asked.append((query, list(memories), budget_s))
        texts = [memory.text for memory in memories]
        graded = {n: grade for n, text in enumerate(texts) for word, grade in self.grades.items() if word in text}
        return Grading(self.statement, graded)


class Never(Judge):
    def judge(self, query, texts, budget_s):
        raise AssertionError("nobody was to be asked")


class NeverOpened(Never):
    def is_ready(self):
        raise AssertionError("no model was to be opened")


@pytest.fixture
def index():
    connection = make_index(NOTES, ByWords())
    yield connection
    connection.close()


def judged(index, judge, question=QUESTION, profile=None, embedder=None, **options) -> Recall:
    return ask(index, question, embedder or ByWords(), profile or everything(), judge, **{"depth": "deep", **options})


def order(answer: Recall) -> list[str]:
    return [hit.id for hit in answer.hits]


def rerank(answer: Recall):
    return next((stage for stage in answer.trace["stages"] if stage["stage"] == "rerank"), None)


def test_fast_never_asks_nor_opens_a_model(index):
    for question in (QUESTION, "zzz"):
        assert rerank(ask(index, question, ByWords(), everything(), NeverOpened(), depth="fast")) is None
        assert rerank(ask(index, question, ByWords(), everything(), NeverOpened(), keyword_only=True)) is None


def test_auto_asks_only_in_doubt(index, monkeypatch):
    monkeypatch.setattr("quaid.recall.scoring.THRESHOLD", 0.0)
    sure = judged(index, Never(), depth="auto")
    assert sure.doubt is None
    judge = Judge()
    monkeypatch.setattr("quaid.recall.scoring.THRESHOLD", 5.0)
    assert judged(index, judge, depth="auto").doubt
    assert len(judge.asked) == 1


def test_without_a_model_deep_is_an_answer_like_any_other(index):
    answer = judged(index, None)
    assert rerank(answer) is None
    assert answer.degraded == ()
    assert order(answer)


def test_the_judge_is_given_the_question_the_best_and_the_budget(index):
    judge = Judge()
    judged(index, judge)
    ((query, memories, budget_s),) = judge.asked
    assert (query, budget_s) == (QUESTION, RERANK_BUDGET_S)
    assert memories[0].text == "Maya takes oat milk in her coffee."
    assert len(memories) <= MAX_JUDGED


def test_at_depth_deep_what_the_graph_led_to_is_judged_however_far_behind_it_is():
    notes = {f"facts/n{n}.md": f"---\nid: n{n}\n---\nMaya takes milk number {n} in her coffee.\n" for n in range(40)}
    edges = "\n- [[Maya]] spouse_of [[Tom]]\n"
    notes["facts/tom.md"] = f"---\nid: tom\nconfidence: 0.9\n---\nMaya is married to Tom.\n{edges}"
    notes["facts/sail.md"] = "---\nid: sail\nconfidence: 0.9\n---\nTom sails.\n\n- [[Tom]] owns [[Dinghy]]\n"
    notes["facts/rumour.md"] = "---\nid: rumour\nconfidence: 0.2\n---\nTom swims.\n\n- [[Tom]] owns [[Fins]]\n"
    judge, quick = Judge(), Judge()
    judged(make_index(notes, ByWords()), judge, "What milk does Maya take in her coffee?")
    ((_, memories, _),) = judge.asked
    found = [memory.id for memory in memories]
    assert len(found) > MAX_JUDGED
    assert found.index("sail") < found.index("rumour")
    judged(make_index(notes, ByWords()), quick, "What milk does Maya take in her coffee?", depth="auto")
    assert all(len(memories) <= MAX_JUDGED for _, memories, _ in quick.asked)


def test_the_grades_decide_the_order(index):
    grades = {"oat": 0, "cow": 5, "tea": 2, "dinghy": 0}
    answer = judged(index, Judge(grades))
    assert order(judged(index, None))[0] == "milk"
    assert order(answer)[:2] == ["cow", "tea"]
    assert [hit.score for hit in answer.hits] == sorted((hit.score for hit in answer.hits), reverse=True)
    assert rerank(answer)["grades"] == 4


def test_a_judge_without_a_grade_changes_nothing(index):
    before, after = judged(index, None), judged(index, Judge({}))
    assert order(after) == order(before)
    assert after.hits[0].score == pytest.approx(before.hits[0].score, abs=0.1)  # the statement counts


def test_the_statement_finds_what_the_question_did_not(monkeypatch):
    notes = {f"facts/n{n}.md": f"---\nid: n{n}\n---\nMaya number {n} takes milk with her tea.\n" for n in range(6)}
    index = make_index({**notes, **NOTES}, ByWords())
    monkeypatch.setattr("quaid.recall.retrieval.MAX_RANKED", 3)
    judge = Judge({"Maya": 0}, "Helga sails the red dinghy across the fjord.")
    assert "boat" not in ids(judged(index, None))
    answer = judged(index, judge)
    assert order(answer)[0] == "boat"
    assert "hyde" in next(hit for hit in answer.hits if hit.id == "boat").channels
    assert rerank(answer)["statement"] == judge.statement


def test_a_model_that_fails_leaves_the_order_and_is_named(index):
    class Late(Judge):
        def judge(self, query, texts, budget_s):
            raise ModelTimeoutError("quick", budget_s)

    answer = judged(index, Late())
    assert answer.degraded == ("model",)
    assert order(answer) == order(judged(index, None))
    assert rerank(answer)["problem"]


def test_an_embedder_that_fails_at_the_statement_is_named_and_the_grades_count(index):
    class Tired(ByWords):
        def embed_query(self, text):
            if text == "nothing of the kind":
                raise EmbeddingError("no answer")
            return super().embed_query(text)

    answer = judged(index, Judge({"oat": 0, "cow": 5, "tea": 2}), embedder=Tired())
    assert answer.degraded == ("vectors",)
    assert order(answer)[0] == "cow"


@pytest.fixture
def service(model_service, monkeypatch):
    model_service.value = {"statement": "s", "grades": []}
    url = f"{model_service.url}/v1"
    for name, value in {"PROVIDER": "openai", "URL": url, "FAST": "quick", "DEEP": "wise"}.items():
        monkeypatch.setenv(f"QUAID_MODELS_{name}", value)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    return model_service


@pytest.fixture
def filled(vault: Vault, service, monkeypatch) -> Vault:
    monkeypatch.setenv("QUAID_MODELS_PROVIDER", "openai")  # a vault begins without a model
    for path, text in NOTES.items():
        vault.write(path, text)
    return vault


def grade_by_id(service, **grades: int) -> None:
    """What the service answers: grades by a word of each memory."""
    import json

    def answer():
        text = service.asked[-1]["messages"][1]["content"]
        lines = text.partition("<memories>\n")[2].removesuffix("\n</memories>").splitlines()
        given = [json.loads(line) for line in lines]
        graded = [next((grade for word, grade in grades.items() if word in m["text"]), None) for m in given]
        return json.dumps({"statement": "Maya takes a certain milk.", "grades": graded})

    service.script = [answer]


def test_a_real_judgement_reorders(filled, service):
    with filled.memory() as memory:
        assert order(memory.recall(QUESTION, depth="fast"))[0] == "milk"
        assert service.asked == []
        grade_by_id(service, oat=0, cow=5, tea=1)
        answer = memory.recall(QUESTION, depth="deep")
        assert answer.degraded == ("vectors",)
        assert order(answer)[0] == "cow"
    assert len(service.asked) == 1


@pytest.mark.parametrize("trouble", ["slow", "broken", "gone"])
def test_a_slow_or_broken_service_costs_no_more_than_its_budget(filled, service, monkeypatch, trouble):
    monkeypatch.setattr("quaid.recall.pipeline.RERANK_BUDGET_S", 0.3)
    if trouble == "slow":
        service.delay_s = 300.0
    elif trouble == "broken":
        service.script = [(500, {"error": {"message": "no"}}, {})] * 20
    else:
        service.close()
    with filled.memory() as memory:
        memory.sync()
        before = order(memory.recall(QUESTION, depth="fast", keep=False))
        started = time.monotonic()
        answer = memory.recall(QUESTION, depth="deep")
        assert time.monotonic() - started < PATIENCE_S
        assert order(answer) == before
        assert set(answer.degraded) == {"vectors", "model"}
        assert rerank(answer)["problem"]
