"""How the weights of the evidence are found (quaid/recall/features.py), and whether they hold where nobody tuned.

    python tests/benchmarks/learn_weights.py
    python tests/benchmarks/learn_weights.py --keep /tmp/vaults --json weights.json
    python tests/benchmarks/learn_weights.py --without length --l2 0.01

Four sets: LoCoMo, people who talk with each other, alone and with annotated facts that cite the turns; and BEAM, a person
and an assistant, of which a vault keeps the user's messages or both sides. Each question is asked with `kinds={"turn"}`
and the evidence rows that the pipeline itself gathers are kept. The weights are those of a listwise logistic regression:
softmax over the turns among a question's candidates, cross-entropy to the gold turns (uniform over them), every set in
equal parts, plus half of `--l2` times the squared weights of all but a candidate's own score: so what the data do not
defend falls back to plain fusion. The loss is convex, so the start decides nothing. Questions without a gold turn among
the candidates teach nothing and are left out of learning, not of the figures. Source of the loss: Cao et al., Learning
to Rank: From Pairwise Approach to Listwise, ICML 2007.

All rows ask anew, through the whole pipeline. *words*, *vectors* and *fusion* are the channels without any other stage.
*default* has the weights in the code. *elsewhere* has weights learned on the other kind of conversation alone, *held out*
weights learned on both kinds without the conversation that is asked: the fair estimate. Intervals are of the difference
to fusion, over whole conversations (paired bootstrap, 95%).
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import beam_data
import numpy as np
from bench import describe_machine, make_parser, save
from conversations import over_conversations, vault_folder
from locomo import CHANNELS, DEPTH, measure, rank_turns
from locomo_data import Question, Turn, category_of, ingest, load, read_questions
from rankings import interval
from report import SETS

from quaid import Memory
from quaid.config import load_settings
from quaid.recall import candidates
from quaid.recall.options import FEATURES, WEIGHTS, Profile
from quaid.recall.search import Search

KINDS = (("none", "observation"), ("user", "both"))
"""The pools of each kind of conversation."""
BARE_ROWS = {"words": "keyword", "vectors": "vector", "fusion": "fusion"}
CUTS = ("R@5", "R@10", "R@20")
STEPS = 25
LONGEST_STEP = 5.0

Array = np.ndarray[Any, np.dtype[np.float64]]
Learned = dict[str, float]
Job = tuple[str, str]
"""(pool, conversation)."""
Measured = dict[Job, list[dict[str, float]]]


@dataclass(frozen=True)
class Answered:
    """One question: the evidence of each turn among its candidates, whether it is gold, and how the answer measures."""

    question: Question
    rows: Array
    """Turns by kinds of evidence, in the order of `FEATURES`."""
    is_gold: np.ndarray[Any, np.dtype[np.bool_]]
    measured: dict[str, float]


def main() -> None:
    options = _arguments()
    used = [name for name in FEATURES if name not in options.without]
    started = time.perf_counter()
    with vault_folder(options.keep) as folder:
        asked: dict[Job, list[Answered]] = _over_sets(ask, folder, options.only)
        bare = {
            name: _over_sets(partial(ask_bare, channels=channels), folder, options.only)
            for name, channels in BARE_ROWS.items()
        }
        folds = learn_folds(asked, used, options.l2)
        of_kind = [learn_pools(asked, pools, used, options.l2) for pools in KINDS]
        elsewhere = {job: of_kind[1 - kind] for kind, pools in enumerate(KINDS) for job in asked if job[0] in pools}
        rows: dict[str, Measured] = {
            **bare,
            "default": {job: [answered.measured for answered in found] for job, found in asked.items()},
            "elsewhere": _over_sets(partial(ask_with, weights=elsewhere), folder, options.only),
            "held out": _over_sets(partial(ask_with, weights=folds), folder, options.only),
        }
    questions = {job: [answered.question for answered in found] for job, found in asked.items()}
    by_fold = {conversation: weights for (_, conversation), weights in folds.items()}
    figures = {
        "weights": {
            "mean": {name: statistics.fmean(fold[name] for fold in by_fold.values()) for name in FEATURES},
            "in the code": dict(WEIGHTS),
            "LoCoMo alone": of_kind[0],
            "BEAM alone": of_kind[1],
            "folds": by_fold,
        },
        "sets": {pool: _figures_of(pool, rows, questions) for pool in SETS if any(job[0] == pool for job in asked)},
        "coverage": {pool: _coverage(asked, pool) for pool in SETS if any(job[0] == pool for job in asked)},
        "l2": options.l2,
        "without": sorted(options.without),
        "took_s": time.perf_counter() - started,
        "machine": describe_machine(),
    }
    _report(figures)
    save(options.json, figures)


# -- asking ----------------------------------------------------------------------------------------------------------


def _over_sets(work: Any, folder: Path, only: Sequence[str] | None) -> dict[Job, Any]:
    """What `work` finds in every vault of every set."""
    talks = [
        talk
        for talk in beam_data.load()
        if talk["sample_id"] not in beam_data.HELD_OUT and (not only or talk["sample_id"] in only)
    ]
    return {
        **over_conversations(work, load(only), KINDS[0], folder, ingest),
        **over_conversations(work, talks, KINDS[1], folder, beam_data.ingest),
    }


def questions_of(talk: dict[str, Any], pool: str) -> list[Question]:
    return list(beam_data.list_questions(talk, pool) if pool in KINDS[1] else read_questions(talk))


def ask(talk: dict[str, Any], pool: str, root: Path) -> list[Answered]:
    """Every question of a conversation with the weights in the code, and the evidence that the pipeline gathers."""
    answered = []
    with Memory(root, load_settings(root)) as memory, listening() as heard:
        memory.sync()
        for question in questions_of(talk, pool):
            heard.clear()
            measured = measure(_turns(memory, question, WEIGHTS), question.gold)
            # A second pass gathers once more: what it ends with is what is ranked.
            rows, is_gold = _as_arrays(heard[-1], question) if heard else (_NOTHING, _NOTHING[:, 0] > 0)
            answered.append(Answered(question, rows, is_gold, measured))
    return answered


def ask_with(talk: dict[str, Any], pool: str, root: Path, *, weights: Mapping[Job, Learned]) -> list[dict[str, float]]:
    """How the answers measure with the weights meant for this conversation."""
    chosen = weights[pool, talk["sample_id"]]
    with Memory(root, load_settings(root)) as memory:
        return [measure(_turns(memory, each, chosen), each.gold) for each in questions_of(talk, pool)]


def ask_bare(talk: dict[str, Any], pool: str, root: Path, *, channels: str) -> list[dict[str, float]]:
    """How the answers of these channels measure, without any other stage."""
    with Memory(root, load_settings(root)) as memory:
        return [measure(rank_turns(memory, each, **CHANNELS[channels]), each.gold) for each in questions_of(talk, pool)]


@contextmanager
def listening() -> Iterator[list[Search]]:
    """The searches whose candidates were scored while this is open."""
    heard: list[Search] = []
    score = candidates.score_candidates

    def overheard(search: Search) -> None:
        score(search)
        heard.append(search)

    with patch.object(candidates, "score_candidates", overheard):
        yield heard


def _turns(memory: Memory, question: Question, weights: Mapping[str, float]) -> list[Turn]:
    found = memory.recall(question.text, DEPTH, kinds={"turn"}, depth="fast", keep=False, profile=Profile(weights))
    return [(hit.session or "", hit.turn or 0) for hit in found.hits]


_NOTHING: Array = np.zeros((0, len(FEATURES)))


def _as_arrays(search: Search, question: Question) -> tuple[Array, Any]:
    """The evidence of each turn: that of its best chunk, as a turn is found by it."""
    best: dict[Turn, int] = {}
    for chunk_id, candidate in search.candidates.items():
        if candidate.turn is not None:
            place = (candidate.session or "", candidate.turn)
            best[place] = max(best.get(place, chunk_id), chunk_id, key=search.own)
    table = [[search.features[chunk_id].get(name, 0.0) for name in FEATURES] for chunk_id in best.values()]
    return np.array(table).reshape(-1, len(FEATURES)), np.array([place in question.gold for place in best], bool)


# -- learning --------------------------------------------------------------------------------------------------------


def learn_folds(asked: Mapping[Job, list[Answered]], used: Sequence[str], l2: float) -> dict[Job, Learned]:
    """By (pool, conversation), the weights learned without it. The tenth conversation of each kind is left out
    together: neither knows of the other.
    """
    names = [sorted({name for pool, name in asked if pool in pools}) for pools in KINDS]
    folds: dict[Job, Learned] = {}
    for number in range(max(map(len, names))):
        held_out = {each[number % len(each)] for each in names if each}
        rest = {job: found for job, found in asked.items() if job[1] not in held_out} or asked
        learned = learn_pools(rest, list(SETS), used, l2)
        folds |= {job: learned for job in asked if job[1] in held_out}
    return folds


def learn_pools(asked: Mapping[Job, list[Answered]], pools: Sequence[str], used: Sequence[str], l2: float) -> Learned:
    """The weights learned on these pools, each in equal parts."""
    lists, worth = [], []
    for pool in pools:
        found = [each for job, part in asked.items() if job[0] == pool for each in part if each.is_gold.any()]
        lists += found
        worth += [1 / len(found)] * len(found)
    return relative(learn(lists, used, l2, worth)) if lists else dict.fromkeys(FEATURES, 0.0) | {"own": 1.0}


def learn(lists: Sequence[Answered], used: Sequence[str], l2: float, worth: Sequence[float] | None = None) -> Learned:
    """Weights of the least regularised cross-entropy by Newton's method, kinds of evidence that are not `used` at 0.
    `worth` is how much each question counts.
    """
    columns = [FEATURES.index(name) for name in used]
    rows = np.concatenate([answered.rows[:, columns] for answered in lists])
    gold = np.concatenate([answered.is_gold / answered.is_gold.sum() for answered in lists])
    lengths = np.array([len(answered.is_gold) for answered in lists])
    first = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    share = np.array(worth if worth is not None else np.ones(len(lists)))
    share = share / share.sum()
    penalty = np.array([0.0 if name == "own" else l2 for name in used])
    weights = np.zeros(len(used))
    for _ in range(STEPS):
        scores = rows @ weights
        likely = np.exp(scores - np.repeat(np.maximum.reduceat(scores, first), lengths))
        likely /= np.repeat(np.add.reduceat(likely, first), lengths)
        slope = ((likely - gold) * np.repeat(share, lengths)) @ rows + penalty * weights
        expected = np.add.reduceat(rows * likely[:, None], first, axis=0)
        curve = (
            rows.T @ (rows * (likely * np.repeat(share, lengths))[:, None]) - (expected * share[:, None]).T @ expected
        )
        step = np.linalg.solve(curve + np.diag(penalty + 1e-9), slope)
        weights = weights - step * min(1.0, LONGEST_STEP / max(np.abs(step).max(), 1e-9))
    return {**dict.fromkeys(FEATURES, 0.0), **dict(zip(used, map(float, weights), strict=True))}


def relative(weights: Learned) -> Learned:
    """The same ranking with `own` at 1."""
    return {name: weight / weights["own"] for name, weight in weights.items()}


# -- figures ---------------------------------------------------------------------------------------------------------


def _figures_of(pool: str, rows: Mapping[str, Measured], questions: Mapping[Job, list[Question]]) -> dict[str, Any]:
    """One set: each row's recall, its difference to fusion with the interval, and recall at 10 by category."""
    jobs = [job for job in questions if job[0] == pool]
    asked = [question for job in jobs for question in questions[job]]
    labels = [category_of(question) for question in asked]
    at_ten = {name: [np.array([m["R@10"] for m in found[job]]) for job in jobs] for name, found in rows.items()}
    table = {}
    for name, found in rows.items():
        low, high = interval([one - other for one, other in zip(at_ten[name], at_ten["fusion"], strict=True)])
        scores = {cut: statistics.fmean(m[cut] for job in jobs for m in found[job]) for cut in CUTS}
        table[name] = {**scores, "low": low, "high": high}
    flat = {name: np.concatenate(parts) for name, parts in at_ten.items()}
    by_category = {
        label: {name: float(values[np.array(labels) == label].mean()) for name, values in flat.items()}
        for label in sorted(set(labels))
    }
    return {"rows": table, "by_category": by_category, "questions": len(asked)}


def _coverage(asked: Mapping[Job, list[Answered]], pool: str) -> dict[str, float]:
    """What of the gold turns is among the candidates, on average, and how many candidates there are."""
    found = [answered for (kind, _), part in asked.items() if kind == pool for answered in part]
    return {
        "gold": statistics.fmean(answered.is_gold.sum() / len(answered.question.gold) for answered in found),
        "turns": statistics.fmean(len(answered.is_gold) for answered in found),
        "taught": sum(bool(answered.is_gold.any()) for answered in found),
        "questions": len(found),
    }


def _report(figures: Mapping[str, Any]) -> None:
    weights = figures["weights"]
    folds = list(weights["folds"].values())
    print(f"Weights of the evidence, l2 {figures['l2']:g}; {figures['machine']}")
    print(f"{'':15}{'code':>8}{'mean':>8}{'least':>8}{'most':>8}{'LoCoMo':>9}{'BEAM':>8}")
    for name in FEATURES:
        by_fold = [fold[name] for fold in folds]
        print(f"{name:15}{weights['in the code'][name]:8.2f}{weights['mean'][name]:8.2f}{min(by_fold):8.2f}{max(by_fold):8.2f}"
              f"{weights['LoCoMo alone'][name]:9.2f}{weights['BEAM alone'][name]:8.2f}")  # fmt: skip
    for pool, found in figures["sets"].items():
        coverage = figures["coverage"][pool]
        print(f"\n{SETS[pool]}: {found['questions']} questions; {coverage['turns']:.0f} turns a question are candidates and "
              f"hold {coverage['gold']:.3f} of its gold")  # fmt: skip
        for name, row in found["rows"].items():
            versus = "" if name == "fusion" else f"   {row['low']:+.3f} to {row['high']:+.3f} against fusion"
            print(f"{name:12}" + "".join(f"{row[cut]:8.3f}" for cut in CUTS) + versus)
        for label, scores in found["by_category"].items():
            mark = "  <-- under fusion" if scores["default"] < scores["fusion"] - 0.02 else ""
            print(
                f"  {label:26}"
                + " ".join(f"{name} {scores[name]:.3f}" for name in ("fusion", "default", "held out"))
                + mark
            )
    print(f"\ntook {figures['took_s']:.0f} s")


def _arguments() -> argparse.Namespace:
    parser = make_parser(__doc__, keep=True)
    parser.add_argument("--only", action="append", help="a conversation, e.g. conv-26 or beam-3; repeatable")
    parser.add_argument(
        "--without", action="append", default=[], choices=FEATURES, help="evidence left out; repeatable"
    )
    parser.add_argument("--l2", type=float, default=1e-3, help="strength of the regularisation (default 0.001)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
