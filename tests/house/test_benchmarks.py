"""The benchmarks' own arithmetic: weights are learned right, noise is told from effect, figures land on the page."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(autouse=True)
def on_path(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))


@pytest.fixture
def benchmark():
    return importlib.import_module


def test_learned_weights_are_where_the_loss_is_least(benchmark):
    learning = benchmark("learn_weights")
    chance = np.random.default_rng(3)
    lists = []
    for _ in range(60):
        rows = chance.random((12, len(learning.FEATURES)), np.float32)
        is_gold = np.zeros(12, bool)
        is_gold[np.argsort(-(3 * rows[:, 0] + 6 * rows[:, 1] + chance.gumbel(size=12)))[:2]] = True
        lists.append(learning.Answered(None, rows, is_gold, {}))
    used = learning.FEATURES[:3]

    def loss(weights):
        losses = []
        for answered in lists:
            scores = answered.rows[:, :3] @ weights
            losses.append(np.log(np.exp(scores).sum()) - scores[answered.is_gold].mean())
        return np.mean(losses) + 0.005 * (weights[1:] @ weights[1:])  # a candidate's own score is free

    learned = learning.learn(lists, used, 0.01)
    weights = np.array([learned[name] for name in used])
    slope = [(loss(weights + step) - loss(weights - step)) / 0.02 for step in np.eye(3) * 0.01]
    assert np.abs(slope).max() < 1e-3
    assert learned[used[1]] > learned[used[0]] > abs(learned[used[2]])
    assert all(learned[name] == 0.0 for name in learning.FEATURES[3:])
    assert learning.relative(learned)["own"] == 1.0


def test_noise_is_no_difference_and_a_steady_loss_is_one(benchmark):
    ablation = benchmark("ablation")
    chance = np.random.default_rng(5)
    base = [chance.random((150, 1)) for _ in range(10)]
    noisy = [group + chance.normal(0, 0.2, group.shape) for group in base]
    worse = [group - 0.01 for group in base]
    assert not ablation.compare(base, noisy, ["R@10"])["R@10"].is_real
    change = ablation.compare(base, worse, ["R@10"])
    assert change["R@10"].difference == pytest.approx(-0.01)
    assert change["R@10"].is_real
    assert ablation.verdict(change, was_on=True) == "helps"
    assert ablation.verdict(change, was_on=False) == "hurts"
    assert ablation.verdict({"R@10": ablation.Change(0.02, -0.01, 0.05)}, was_on=True) == "unclear"
    assert ablation.verdict({"R@10": ablation.Change(0.002, 0.001, 0.003)}, was_on=True) == "no difference"


def test_one_conversation_does_not_speak_for_ten(benchmark):
    """A gain of a single conversation is an effect among its questions, and none among conversations."""
    ablation = benchmark("ablation")
    base = [np.zeros((50, 1)) for _ in range(10)]
    variant = [np.full((50, 1), 0.5), *base[1:]]
    assert not ablation.compare(base, variant, ["R@10"])["R@10"].is_real
    assert ablation.compare([np.concatenate(base)], [np.concatenate(variant)], ["R@10"])["R@10"].is_real


def test_what_does_not_count_is_left_out_of_the_mean(benchmark):
    ablation = benchmark("ablation")
    base, variant = np.array([[1.0], [np.nan], [0.0]]), np.array([[1.0], [1.0], [np.nan]])
    assert ablation.compare([base], [variant], ["precision"])["precision"].difference == pytest.approx(0.5)


def test_figures_land_in_their_block_and_nowhere_else(benchmark, tmp_path):
    report = benchmark("report")
    page = "Before\n<!-- figures: scale -->\nold\n<!-- end: scale -->\nbetween\n<!-- figures: as-of -->\nkept\n<!-- end: as-of -->\n"
    figures = {"machine": "a machine", "notes": {"1000": {"recall p50, ms": 5.04}, "10000": {"recall p50, ms": 12.3}}}
    (tmp_path / "scale.json").write_text(json.dumps(figures), encoding="utf-8")
    filled, missing = report.fill(page, tmp_path)
    assert missing == ["as-of"]
    assert "old" not in filled
    assert "kept" in filled
    assert "| recall p50, ms | 5 | 12 | <= 10 |" in filled
    assert filled.startswith("Before\n<!-- figures: scale -->\n*")
    assert report.fill(filled, tmp_path)[0] == filled


def test_the_page_has_a_block_for_every_benchmark(benchmark):
    report = benchmark("report")
    page = report.PAGE.read_text(encoding="utf-8")
    script = (FOLDER / "all.sh").read_text(encoding="utf-8")
    for name, command in report.MADE.items():
        assert f"<!-- figures: {name} -->" in page
        assert f"<!-- end: {name} -->" in page
        assert command.split()[0] in script
    assert set(report.RENDERERS) == set(report.MADE)


QUESTION = ("Which boats has Maya sailed?", "multi-hop", ["a red ketch", "the Heron"], "the Heron and a ketch")


def test_what_is_printed_beyond_the_budget_is_not_read(benchmark):
    answers = benchmark("answers")
    question = answers.Question(*QUESTION)
    text = "* Maya: a red (= 2023) ketch\n" + "x " * 20 + "\n* Maya: the Heron"
    whole, half = (answers.score(question, "conv-44", answers.RECALL, budget, text) for budget in (50, 12))
    assert (whole.found, whole.gold, whole.told, whole.printed) == (2, 2, 1.0, 22)
    assert (half.found, half.told) == (1, 0.5)
    assert whole.groups == ("multi-hop", answers.LISTING, answers.HELD_OUT)
    assert answers.score(question, "conv-26", answers.RECALL, 50, text).groups == ("multi-hop", answers.LISTING)
    table = answers.summarise([whole, half])[answers.RECALL]
    assert [table[budget][answers.ALL]["held"] for budget in ("50", "12")] == [1.0, 0.0]


def test_only_whole_sessions_are_read_but_of_one_that_is_too_long(benchmark):
    fill = benchmark("answers").fill
    assert fill(["a" * 10, "b" * 10, "c" * 10], 6) == "a" * 10 + "\n\n" + "b" * 10
    assert fill(["a" * 100, "b"], 6) == "a" * 24


def test_a_change_is_of_whole_conversations(benchmark):
    answers = benchmark("answers")
    reads = [answers.score(answers.Question(str(n), "x", ["yes"], ""), f"c{n % 4}", answers.RECALL, 9, text)
             for n in range(40) for text in ["yes" if n % 2 else "no"]]  # fmt: skip
    better = [answers.replace(read, found=1) for read in reads]
    assert answers.compare(reads, better, 9)["difference"] == 0.5
    assert answers.compare(reads, reads, 9) == {"difference": 0.0, "low": 0.0, "high": 0.0}


def test_a_model_answers_from_what_was_read_and_another_judges_that(benchmark):
    from model_service import Service

    answers = benchmark("answers")
    service = Service()
    try:
        service.script = [json.dumps({"answer": "the Heron"}), json.dumps({"right": True})]
        read = answers.score(answers.Question(*QUESTION), "conv-44", answers.RECALL, 50, "* Maya: the Heron", keep=True)
        judged = answers.judge(service.models("ollama"), read)
    finally:
        service.close()
    assert judged.right
    asked, told = ([message["content"] for message in body["messages"]][-1] for body in service.asked)
    assert [body["model"] for body in service.asked] == ["quick", "wise"]
    assert "* Maya: the Heron" in asked
    assert "a ketch" not in asked
    assert "the Heron and a ketch" in told
    assert "<answer>\nthe Heron\n</answer>" in told
    assert answers.summarise([judged])[answers.RECALL]["50"][answers.ALL]["right"] == 1.0


def test_what_is_called_stale_is_held_against_what_is(benchmark, tmp_path):
    projects = benchmark("projects")
    (tmp_path / "a.py").write_text("a = 1\n")

    def doc(path, verdict, what="logic"):
        causes = [] if verdict == "current" else [("c0", "a.py", what)]
        return projects.DocTruth(path, "guide", "learned", ["a.py", "gone.py"], "base", verdict, causes)

    verdicts = {
        "both.md": "stale",
        "missed.md": "stale",
        "wrong.md": "current",
        "fine.md": "current",
        "moved.md": "arguable",
    }
    truth = projects.Generated(
        tmp_path, 1, [], {path: doc(path, verdict) for path, verdict in verdicts.items()}, [], []
    )
    row = {"sources": ["a.py"], "true_at": {"id": "base"}, "changes": []}
    called = dict.fromkeys(verdicts, "fresh") | dict.fromkeys(("both.md", "wrong.md", "moved.md"), "stale")
    checked = {path: row | {"status": status} for path, status in called.items()}
    checked["wrong.md"] = checked["wrong.md"] | {"sources": ["a.py", "b.py"], "true_at": None}
    checked["moved.md"] = checked["moved.md"] | {
        "sources": ["a.py", "new.py"],
        "changes": [{"kind": "renamed", "path": "new.py"}],
    }
    checked["node_modules/x.md"] = row | {"status": "no sources"}
    figures, counts = projects.score_staleness(checked, truth)
    assert (figures["stale, precision"], figures["stale, recall"], figures["docs that are none"]) == (0.5, 0.5, 1.0)
    assert counts["stale, missed"] == {"guide": 1, "learned": 1, "logic": 1}
    assert counts["arguable"] == {"called stale": 1, "called fresh": 0}
    assert projects.score_sources(checked, truth) == {
        "sources, precision": 5 / 6,
        "sources, recall": 1.0,
        "true at the right commit": 0.8,
    }
    assert projects.score_search("search", [["b", "b", "a"], ["a"]], ["a", "a"]) == {
        "search R@1": 0.5,
        "search R@5": 1.0,
    }


def teardown_module():
    for name in (
        "ablation",
        "answers",
        "beam_data",
        "conversations",
        "learn_weights",
        "locomo",
        "locomo_data",
        "bench",
        "precision",
        "projects",
        "report",
        "scale",
    ):
        sys.modules.pop(name, None)
