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


CHAT = {
    "name": {"speaker_1": "Emi", "speaker_2": "Elise"},
    "session_1": [
        {"clean_text": "Hey!", "speaker": "Emi", "dia_id": "D1:1"},
        {"clean_text": "I moved to Reno", "speaker": "Elise", "dia_id": "D1:3", "blip_caption": "a desert"},
    ],
    "session_2": [{"clean_text": f"Turn {n}", "speaker": "Emi", "dia_id": f"D1:{n}"} for n in range(4, 8)],
    "session_1_date_time": "29.12.2023, 22:42:04",
    "session_2_date_time": "30.12.2023, 09:00:00",
    "qa": [
        {"question": "Where does Elise live?", "answer": "Reno", "evidence": ["D1:3."], "category": 1},
        {"question": "What were the turns?", "answer": "4 to 6", "evidence": ["D1:4-D1:6; D1:9"], "category": 2},
        {"question": "And who left?", "answer": "nobody", "evidence": [""], "category": 1},
    ],
}


def test_evidence_of_realtalk_is_found_by_its_ids_and_in_ranges(benchmark, tmp_path, monkeypatch):
    data = benchmark("locomo_data")
    monkeypatch.setattr(data, "FOLDER", tmp_path)
    (tmp_path / "realtalk").mkdir()
    (tmp_path / "realtalk" / "Chat_3_Emi_Elise.json").write_text(json.dumps(CHAT), encoding="utf-8")
    (chat,) = data.load_realtalk()
    assert [question.gold for question in data.read_questions(chat)] == [{("D1", 2)}, {("D2", 1), ("D2", 2), ("D2", 3)}]
    (first, lines), _ = data.session_lines(chat)
    assert (chat["sample_id"], first) == ("realtalk-3", "D1")
    assert json.loads(lines[0])["started"] == "2023-12-29T22:42:04"
    assert json.loads(lines[2])["content"] == "I moved to Reno [shares a photo of a desert]"
    assert data.load_realtalk(["realtalk-4"]) == []


def haystack(number: int, kind: str = "knowledge-update") -> dict[str, object]:
    said = [("user", "My sister moved to Lyon last week.", True), ("assistant", "Lyon is lovely.", False),
            ("assistant", "", False), ("user", "What is a good cheese?", False)]  # fmt: skip
    other = [("user", "How do I sort a list?", None), ("assistant", "Call sorted on it.", None)]
    sessions = [
        [
            {"role": role, "content": text, **({} if gold is None else {"has_answer": gold})}
            for role, text, gold in turns
        ]
        for turns in (other, said)
    ]
    return {
        "question_id": f"q{number}" + ("_abs" if kind == "abstention" else ""), "question_type": kind,
        "question": "Where does my sister live?", "answer": "Lyon", "question_date": "2023/05/30 (Tue) 23:40",
        "haystack_session_ids": ["ultrachat_1", "answer_1"], "answer_session_ids": ["answer_1"],
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 10:00"], "haystack_sessions": sessions,
    }  # fmt: skip


def test_longmemeval_is_asked_by_turn_and_by_session(benchmark, tmp_path, monkeypatch):
    bench, rankings = benchmark("longmemeval"), benchmark("rankings")
    monkeypatch.setattr(bench, "FOLDER", tmp_path)
    monkeypatch.setenv("QUAID_EMBEDDING_PROVIDER", "none")
    (tmp_path / "longmemeval").mkdir()
    path = tmp_path / "longmemeval" / "longmemeval_s.json"
    talks = [haystack(1), haystack(2, "abstention"), haystack(3, "temporal-reasoning")]
    path.write_text(json.dumps(talks, indent=2), encoding="utf-8")
    assert bench.find("s") == path
    assert bench.find("m") is None
    read = bench.sample(bench.read_instances(path), None, 1)
    assert [talk["sample_id"] for talk in read] == ["q1", "q3"]
    (one,) = bench.sample(bench.read_instances(path), 1, 1)
    assert one == bench.sample(bench.read_instances(path), 1, 1)[0]

    question = bench.read_question(read[0], "user")
    assert (question.gold, question.asked_at.day) == ({("S2", 1)}, 30)
    bench.ingest(read[0], tmp_path / "vault", "user")
    asked = bench.ask(read[0], "user", tmp_path / "vault", changes=[], is_kept=False)
    assert not (tmp_path / "vault").exists()
    assert asked.pool == 3
    (found,), (sessions,) = asked.rows["hybrid"], asked.rows["sessions"]
    assert (found["R@5"], found["any@5"], found["all@10"], sessions["all@5"]) == (1.0, 1.0, 1.0, 1.0)
    figures = rankings.summarise([asked])
    assert figures["by_category"]["knowledge-update"]["hybrid"]["interval"]["all@10"] == (1.0, 1.0)
    table = benchmark("report").render_longmemeval({"file": path.name, "pools": {"user": figures}})
    assert "| hybrid | 1.000 (1.000 … 1.000) |" in table


def test_longmemeval_is_skipped_where_it_is_missing(benchmark, tmp_path, monkeypatch, capsys):
    bench = benchmark("longmemeval")
    monkeypatch.setattr(bench, "FOLDER", tmp_path)
    monkeypatch.setattr(sys, "argv", ["longmemeval.py", "--size", "m"])
    bench.main()
    out = capsys.readouterr().out
    assert out.startswith("Skipped: longmemeval_m_cleaned.json or longmemeval_m.json is not in ")


def test_a_rival_is_compared_over_whole_conversations(benchmark, tmp_path):
    rankings, report = benchmark("rankings"), benchmark("report")

    def conversation(own: float, other: float) -> object:
        measures = [[dict.fromkeys(rankings.CUTS, value)] * 20 for value in (own, other, own)]
        return rankings.Asked(
            100, ["x"] * 20, dict(zip(("hybrid", "fusion", "sessions"), measures, strict=True)), [1.0]
        )

    figures = rankings.summarise([conversation(0.6, 0.5), conversation(0.8, 0.5), conversation(0.4, 0.5)])
    assert figures["rows"]["hybrid"]["R@10"] == pytest.approx(0.6)
    assert figures["rows"]["fusion"]["interval"]["R@10"] == (0.5, 0.5)
    assert figures["rows"]["fusion"]["ahead"]["R@10"] == pytest.approx((0.1, -0.1, 0.3))
    assert "| fusion | .500 | .500 | .500 | .500 … .500 | +.100 (-.100 … +.300) |" in report.render_held_out(figures)
    page = "<!-- figures: held-out -->\nold\n<!-- end: held-out -->\n"
    assert report.fill_readme(page, tmp_path) == page
    for name, found in {
        "realtalk": figures,
        "beam-held-out": {"pools": {"user": figures}},
        "beam-500k": figures,
    }.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(found), encoding="utf-8")
    filled = report.fill_readme(page, tmp_path)
    assert "| R@10 (95%) | plain fusion | Quaid |" in filled
    assert "| BEAM 15–20, user's messages (60 questions) | .500 (.500 … .500) | .600 (.400 … .800) |" in filled
    assert rankings.interval([[0.0, 1.0] * 30])[0] < 0.5 < rankings.interval([[0.0, 1.0] * 30])[1]


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
        "longmemeval",
        "peers",
        "rankings",
        "bench",
        "precision",
        "projects",
        "report",
        "scale",
    ):
        sys.modules.pop(name, None)


def test_a_reranker_is_recommended_only_where_no_set_falls_and_one_gains(benchmark):
    reranker = benchmark("reranker")

    def rows(off, on):
        made = {"Hit@10": 0.0, "NDCG@10": 0.0, "MRR": 0.0, "ms": 5.0, "read": 1.0}
        return {
            name: [{**made, **dict.fromkeys(reranker.CUTS, value)} for value in values]
            for name, values in (("off", off), ("on", on))
        }

    better = reranker.compare([rows([0.5, 0.4], [0.6, 0.6]), rows([0.2, 0.3], [0.3, 0.5])])
    assert better["R@10"]["gain"] == pytest.approx(0.15)
    assert better["R@10"]["low"] > 0
    worse = reranker.compare([rows([0.5, 0.4], [0.6, 0.2]), rows([0.2, 0.3], [0.2, 0.3])])
    same = reranker.compare([rows([0.5], [0.5]), rows([0.2], [0.2])])
    assert reranker.decide({"one": better, "other": same}).startswith("Recommended: one gains")
    assert reranker.decide({"one": better, "other": worse}).startswith("Not recommended: other R@5, other R@10 falls")
    assert reranker.decide({"one": same}).startswith("Not recommended: no set")
