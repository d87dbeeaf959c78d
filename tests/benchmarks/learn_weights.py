"""How the weights of the evidence are found (quaid/recall/candidates.py): learned on nine conversations, held to the tenth.

    python tests/benchmarks/learn_weights.py
    python tests/benchmarks/learn_weights.py --keep /tmp/vaults --json weights.json
    python tests/benchmarks/learn_weights.py --without words_before --l2 0.01

Each LoCoMo question is asked with `kinds={"turn"}` and the evidence rows that the pipeline itself gathers are kept: of
conversations alone and of conversations with annotated facts that cite them, in equal parts. The weights are those of a
listwise logistic regression: softmax over the turns among a question's candidates, cross-entropy to the gold turns
(uniform over them), plus half of `--l2` times the squared weights; Adam on the full batch. The loss is convex, so the
start decides nothing. Questions without a gold turn among the candidates teach nothing and are left out of learning,
not of the figures. Source of the loss: Cao et al., Learning to Rank: From Pairwise Approach to Listwise, ICML 2007.

*held out* asks each conversation anew, through the whole pipeline with the default stages, with the weights learned on
the other nine; *in the code* asks it with the weights as they are; *mean* with the mean of all folds, which has seen
every question and is no estimate.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from conversations import over_conversations, vault_folder
from locomo import DEPTH, by_category, measure
from locomo_data import Question, Turn, load, read_questions
from machine import describe_machine

from quaid import Memory
from quaid.config import load_settings
from quaid.recall import candidates
from quaid.recall.features import Features, Pool
from quaid.recall.options import FEATURES, Weights

FACTS = ("none", "observation")
STEPS = 600
STEP = 0.1
CUTS = ("R@5", "R@10", "R@20")

Array = np.ndarray[Any, np.dtype[np.float32]]
Learned = dict[str, float]
Asked = dict[tuple[str, str], "list[Answered]"]
"""By (facts, conversation)."""


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
    conversations = load(options.only)
    started = time.perf_counter()
    with vault_folder(options.keep) as folder:
        asked: Asked = over_conversations(ask, conversations, FACTS, folder)
        folds = learn_folds(asked, used, options.l2)
        mean = {name: statistics.fmean(fold[name] for fold in folds.values()) for name in FEATURES}
        held_out = over_conversations(partial(ask_with, weights=folds), conversations, FACTS, folder)
        at_mean = over_conversations(
            partial(ask_with, weights=dict.fromkeys(folds, mean)), conversations, FACTS, folder
        )
    rankings = {
        "in the code": {job: [answered.measured for answered in found] for job, found in asked.items()},
        "held out": held_out,
        "mean": at_mean,
    }
    questions = {job: [answered.question for answered in found] for job, found in asked.items()}
    figures = {
        "weights": {"mean": mean, "in the code": _in_code(), "folds": folds},
        "held_out": {
            facts: {name: score(found, questions, facts) for name, found in rankings.items()} for facts in FACTS
        },
        "coverage": {facts: _coverage(asked, facts) for facts in FACTS},
        "l2": options.l2,
        "without": sorted(options.without),
        "took_s": time.perf_counter() - started,
        "machine": describe_machine(),
    }
    _report(figures, sum(len(found) for found in questions.values()))
    if options.json:
        Path(options.json).write_text(json.dumps(figures, indent=2), encoding="utf-8")


# -- asking ----------------------------------------------------------------------------------------------------------


def ask(conversation: dict[str, Any], facts: str, root: Path) -> list[Answered]:
    """Every question of a conversation with the weights in the code, and the evidence that the pipeline gathers."""
    answered = []
    with Memory(root, load_settings(root)) as memory, listening() as heard:
        memory.sync()
        for question in read_questions(conversation):
            heard.clear()
            measured = measure(_turns(memory, question, Weights()), question.gold)
            # A second pass gathers once more: what it ends with is what is ranked.
            rows, is_gold = _as_arrays(*heard[-1], question) if heard else (_NOTHING, _NOTHING[:, 0] > 0)
            answered.append(Answered(question, rows, is_gold, measured))
    return answered


def ask_with(
    conversation: dict[str, Any], facts: str, root: Path, *, weights: Mapping[str, Learned]
) -> list[dict[str, float]]:
    """How the answers measure with the weights meant for this conversation."""
    chosen = Weights(**weights[conversation["sample_id"]])
    with Memory(root, load_settings(root)) as memory:
        return [measure(_turns(memory, question, chosen), question.gold) for question in read_questions(conversation)]


@contextmanager
def listening() -> Iterator[list[tuple[Pool, Mapping[int, Features]]]]:
    """What the pipeline weighs while this is open: each pool with the evidence for its candidates."""
    heard: list[tuple[Pool, Mapping[int, Features]]] = []
    score_pool = candidates.score_pool

    def overheard(pool: Pool, *others: Any) -> tuple[dict[int, float], dict[int, Features]]:
        scores, rows = score_pool(pool, *others)
        heard.append((pool, rows))
        return scores, rows

    with patch.object(candidates, "score_pool", overheard):
        yield heard


def _turns(memory: Memory, question: Question, weights: Weights) -> list[Turn]:
    found = memory.recall(question.text, DEPTH, kinds={"turn"}, depth="fast", keep=False, weights=weights)
    return [(hit.session or "", hit.turn or 0) for hit in found.hits]


_NOTHING: Array = np.zeros((0, len(FEATURES)), np.float32)


def _as_arrays(pool: Pool, rows: Mapping[int, Features], question: Question) -> tuple[Array, Any]:
    turns = [candidate for candidate in pool.candidates.values() if candidate.turn is not None]
    table = np.array([[rows[turn.chunk_id].get(name, 0.0) for name in FEATURES] for turn in turns], np.float32)
    is_gold = np.array([(turn.session, turn.turn) in question.gold for turn in turns], bool)
    return table.reshape(-1, len(FEATURES)), is_gold


# -- learning --------------------------------------------------------------------------------------------------------


def learn_folds(asked: Asked, used: Sequence[str], l2: float) -> dict[str, Learned]:
    """By conversation, the weights learned on all others. A single conversation is learned on itself."""
    names = sorted({conversation for _, conversation in asked})
    folds = {}
    for held_out in names:
        lists = [
            answered
            for (_, conversation), found in asked.items()
            if conversation != held_out or len(names) == 1
            for answered in found
            if answered.is_gold.any()
        ]
        folds[held_out] = relative(learn(lists, used, l2))
    return folds


def learn(lists: Sequence[Answered], used: Sequence[str], l2: float) -> Learned:
    """Weights of the least regularised cross-entropy, kinds of evidence that are not `used` at 0."""
    columns = [FEATURES.index(name) for name in used]
    rows = np.concatenate([answered.rows[:, columns] for answered in lists])
    gold = np.concatenate([answered.is_gold / answered.is_gold.sum() for answered in lists]).astype(np.float32)
    lengths = [len(answered.is_gold) for answered in lists]
    first = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    weights = _adam(partial(_gradient, rows, gold, first, np.array(lengths), l2), len(used))
    return {**dict.fromkeys(FEATURES, 0.0), **dict(zip(used, map(float, weights), strict=True))}


def _gradient(rows: Array, gold: Array, first: Any, lengths: Any, l2: float, weights: Array) -> Array:
    scores = rows @ weights
    likely = np.exp(scores - np.repeat(np.maximum.reduceat(scores, first), lengths))
    likely /= np.repeat(np.add.reduceat(likely, first), lengths)
    gradient: Array = (likely - gold) @ rows / len(lengths) + l2 * weights
    return gradient


def _adam(gradient: Callable[[Array], Array], count: int) -> Array:
    """Kingma and Ba, ICLR 2015; the step falls to nothing along half a cosine, so that the end is still."""
    weights, mean, square = (np.zeros(count, np.float32) for _ in range(3))
    for step in range(1, STEPS + 1):
        slope = gradient(weights)
        mean = 0.9 * mean + 0.1 * slope
        square = 0.999 * square + 0.001 * slope**2
        size = STEP * (1 + np.cos(np.pi * step / STEPS)) / 2
        weights = weights - size * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
    return weights


def relative(weights: Learned) -> Learned:
    """The same ranking with `own` at 1."""
    return {name: weight / weights["own"] for name, weight in weights.items()}


# -- figures ---------------------------------------------------------------------------------------------------------


def score(
    found: Mapping[tuple[str, str], list[dict[str, float]]],
    questions: Mapping[tuple[str, str], list[Question]],
    facts: str,
) -> dict[str, dict[str, float]]:
    jobs = [job for job in found if job[0] == facts]
    measured = [row for job in jobs for row in found[job]]
    asked = [question for job in jobs for question in questions[job]]
    overall = {name: statistics.fmean(row[name] for row in measured) for name in CUTS}
    return {"all": overall, **by_category(measured, asked)}


def _coverage(asked: Asked, facts: str) -> dict[str, float]:
    """What of the gold turns is among the candidates, on average, and how many candidates there are."""
    found = [answered for (kind, _), part in asked.items() if kind == facts for answered in part]
    return {
        "gold": statistics.fmean(answered.is_gold.sum() / len(answered.question.gold) for answered in found),
        "turns": statistics.fmean(len(answered.is_gold) for answered in found),
        "taught": sum(bool(answered.is_gold.any()) for answered in found),
        "questions": len(found),
    }


def _in_code() -> Learned:
    return {item.name: getattr(Weights(), item.name) for item in fields(Weights)}


def _report(figures: Mapping[str, Any], questions: int) -> None:
    weights = figures["weights"]
    folds = weights["folds"]
    print(f"Weights from LoCoMo, {questions} answers, {len(folds)} folds, l2 {figures['l2']:g}; {figures['machine']}")
    print(f"{'':15}{'code':>8}{'mean':>8}{'sd':>7}  " + "".join(f"{name.removeprefix('conv-'):>7}" for name in folds))
    for name in FEATURES:
        by_fold = [fold[name] for fold in folds.values()]
        deviation = statistics.stdev(by_fold) if len(by_fold) > 1 else 0.0
        print(f"{name:15}{weights['in the code'][name]:8.2f}{weights['mean'][name]:8.2f}{deviation:7.2f}  "
              + "".join(f"{value:7.2f}" for value in by_fold))  # fmt: skip
    for facts, rows in figures["held_out"].items():
        coverage = figures["coverage"][facts]
        print(f"\nfacts: {facts}; {coverage['turns']:.0f} turns a question are candidates and hold {coverage['gold']:.3f} "
              f"of its gold; {coverage['taught']} of {coverage['questions']} questions teach")  # fmt: skip
        print(f"{'R@5 R@10 R@20':15}" + "".join(f"{label:>21}" for label in rows["in the code"]))
        for name, scores in rows.items():
            cells = "".join(f"{' '.join(f'{part[cut]:.3f}' for cut in CUTS):>21}" for part in scores.values())
            print(f"{name:15}{cells}")
    print(f"\ntook {figures['took_s']:.0f} s")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", help="a conversation, e.g. conv-26; repeatable")
    parser.add_argument(
        "--without", action="append", default=[], choices=FEATURES, help="evidence left out; repeatable"
    )
    parser.add_argument("--l2", type=float, default=1e-3, help="strength of the regularisation (default 0.001)")
    parser.add_argument("--keep", help="folder in which the vaults are kept and found again")
    parser.add_argument("--json", help="write the figures to this file")
    return parser.parse_args()


if __name__ == "__main__":
    main()
