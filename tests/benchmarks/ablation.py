"""What each stage of recall is worth: every one that is on taken away, every one that is off added, one at a time.

    python tests/benchmarks/ablation.py --keep /tmp/vaults --json ablation.json
    python tests/benchmarks/ablation.py --only conv-26 --stage spread --stage mmr

Two sets, no language model. LoCoMo with annotated facts that cite their turns: turns at R@5, R@10 and R@20, those of the
multi-hop questions at R@10, sessions and facts at R@10, asked on the day after the conversation's last session.
PrecisionMemBench: precision and recall as the benchmark scores them (precision.py).

Every figure is a difference to the default settings over the same questions. A star marks one of at least `LEAST` whose
99% interval leaves out zero: paired bootstrap, on LoCoMo of whole conversations, for questions of one conversation are
alike; on PrecisionMemBench, and of a single conversation, of questions. The verdict is on the stage being *on*, whichever
way the default has it, by the figures with a star: it helps if all of them are better for it, hurts if all are worse,
and trades if some are either. Without a star it is unclear where some difference is `LEAST` or more, and else there is
no difference. With some 30 stages and eight figures two or three stars are luck.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from bench import describe_machine, make_parser, save
from conversations import over_conversations, vault_folder
from locomo import DEPTH, MOST_TURNS, measure, measure_facts
from locomo_data import Question, Turn, load, read_questions
from precision import DATA, Bench, Case, judge, read_case

from quaid import Memory
from quaid.config import load_settings
from quaid.model import Hit
from quaid.recall.options import FEATURES, PROFILES, WEIGHTS, Profile

FACTS = "observation"
LEAST = 0.003
RESAMPLES = 4000
CONFIDENCE = 0.99
DEFAULT = "default"
LOCOMO = ("R@5", "R@10", "R@20", "multi-hop", "sessions", "facts")
PRECISION = ("precision", "recall")
FIGURES = (*LOCOMO, *PRECISION)
MULTI_HOP = 1
OTHERS: dict[str, dict[str, Any]] = {
    "rank fusion": {"is_by_rank": True},
    "by intent": {"is_by_intent": True},
    "by use": {"is_by_use": True},
    "contiguity": {"contiguity": 0.7},
    "mmr": {"mmr_share": 0.7},
    "spread": {"spread": 0.0},
    "cut": {"cut_share": 0.0},
}
"""What else a profile may change, off by default but for the last two."""

Figures = np.ndarray[Any, np.dtype[np.float64]]
"""Questions by figures; NaN where a figure does not count."""
Answers = list[tuple[str, ...]]


@dataclass(frozen=True)
class Outcome:
    """How one set does under one variant."""

    figures: Figures
    answers: Answers


@dataclass(frozen=True)
class Change:
    """What a variant does to one figure: the difference to the default, and the interval it lies in."""

    difference: float
    low: float
    high: float

    @property
    def is_real(self) -> bool:
        return abs(self.difference) >= LEAST and (self.low > 0 or self.high < 0)


def main() -> None:
    options = _arguments()
    started = time.perf_counter()
    wanted = options.stage or [*FEATURES, *OTHERS, "classic"]
    variants = {DEFAULT: Profile(), **{name: toggled(name) for name in wanted}}
    conversations = load(options.only)
    with vault_folder(options.keep) as folder:
        by_talk = over_conversations(partial(ask_locomo, variants=variants), conversations, [FACTS], folder)
    locomo = {name: [found[name] for found in by_talk.values()] for name in variants}
    precision = ask_precision(variants)
    rows = {name: _row(name, locomo, precision) for name in wanted}
    means = _means([outcome.figures for outcome in locomo[DEFAULT]], precision[DEFAULT].figures)
    figures = {
        "default": means,
        "stages": rows,
        "questions": {
            "locomo": sum(len(outcome.figures) for outcome in locomo[DEFAULT]),
            "conversations": len(conversations),
            "precision": len(precision[DEFAULT].figures),
        },
        "facts": FACTS,
        "least": LEAST,
        "confidence": CONFIDENCE,
        "took_s": time.perf_counter() - started,
        "machine": describe_machine(),
    }
    _report(figures)
    save(options.json, figures)


def toggled(name: str) -> Profile:
    """The default profile without a feature, or with another stage switched over."""
    if name in PROFILES:
        return PROFILES[name]
    return Profile(**OTHERS[name]) if name in OTHERS else Profile({**WEIGHTS, name: 0.0})


# -- LoCoMo ----------------------------------------------------------------------------------------------------------


def ask_locomo(
    conversation: dict[str, Any], facts: str, root: Path, *, variants: Mapping[str, Profile]
) -> dict[str, Outcome]:
    """Every question of a conversation under every variant."""
    questions = list(read_questions(conversation))
    outcomes = {}
    for name, profile in variants.items():
        PROFILES["default"] = profile
        with Memory(root, load_settings(root)) as memory:
            memory.sync()
            outcomes[name] = _ask_questions(memory, questions)
    return outcomes


def _ask_questions(memory: Memory, questions: Sequence[Question]) -> Outcome:
    cites, now = _cites(memory), _day_after(memory)

    def ask(question: Question, limit: int, kind: str) -> tuple[Hit, ...]:
        return memory.recall(question.text, limit, kinds={kind}, depth="fast", keep=False, now=now).hits

    figures, answers = [], []
    for question in questions:
        turns = [(hit.session or "", hit.turn or 0) for hit in ask(question, DEPTH, "turn")]
        sessions = list(dict.fromkeys((hit.session or "", 0) for hit in ask(question, MOST_TURNS, "turn")))
        facts = [hit.id for hit in ask(question, DEPTH, "fact")]
        found = measure(turns, question.gold)
        figures.append([
            *(found[cut] for cut in ("R@5", "R@10", "R@20")),
            found["R@10"] if question.category == MULTI_HOP else np.nan,
            measure(sessions, {(session, 0) for session, _ in question.gold})["R@10"],
            measure_facts(facts, cites, question.gold)["R@10"],
        ])  # fmt: skip
        answers.append((*map(str, turns), "", *map(str, sessions), "", *facts))
    return Outcome(np.array(figures, float).reshape(-1, len(LOCOMO)), answers)


def _cites(memory: Memory) -> dict[str, set[Turn]]:
    """The turns each fact cites, by its id."""
    cites: dict[str, set[Turn]] = {}
    for fact, session, turn in memory.index().execute(
        "SELECT f.id, e.session, c.turn FROM citations c JOIN documents f USING (doc_id) "
        "JOIN names n ON n.name_key = lower(c.episode) AND n.position = 0 JOIN documents e ON e.doc_id = n.doc_id"
    ):
        cites.setdefault(fact, set()).add((session, turn))
    return cites


def _day_after(memory: Memory) -> datetime:
    """The day after the last session: what is recent is so then."""
    (last,) = next(memory.index().execute("SELECT max(said_at) FROM chunks"))
    return datetime.fromisoformat(last).astimezone(UTC) + timedelta(days=1)


# -- PrecisionMemBench -----------------------------------------------------------------------------------------------


def ask_precision(variants: Mapping[str, Profile]) -> dict[str, Outcome]:
    """The 77 single questions under every variant, in one vault."""
    beliefs, rows = (
        json.loads((DATA / name).read_text(encoding="utf-8")) for name in ("beliefs.seed.json", "retrieval.cases.json")
    )
    cases = [read_case(row) for row in rows]
    outcomes = {}
    with tempfile.TemporaryDirectory(prefix="quaid-ablation-") as folder:
        bench = Bench(Path(folder) / "single", beliefs, [])
        settings = bench.memory.settings
        for name, profile in variants.items():
            PROFILES["default"] = profile
            bench.memory.close()
            bench.memory = Memory(bench.memory.root, settings)
            outcomes[name] = _judge_all(bench, cases)
        bench.memory.close()
    return outcomes


def _judge_all(bench: Bench, cases: Sequence[Case]) -> Outcome:
    results = [judge(bench, case, lambda case: bench.recall(case, depth="fast")) for case in cases]
    scores = [result.scores["theirs"] for result in results]
    figures = [[np.nan if value is None else value for value in (score.precision, score.recall)] for score in scores]
    return Outcome(np.array(figures, float), [result.context.found for result in results])


# -- differences -----------------------------------------------------------------------------------------------------


def _row(name: str, locomo: Mapping[str, list[Outcome]], precision: Mapping[str, Outcome]) -> dict[str, Any]:
    """One stage: what toggling it does."""
    was_on = name in FEATURES or name in {"spread", "cut"}
    pairs = [*zip(locomo[DEFAULT], locomo[name], strict=True), (precision[DEFAULT], precision[name])]
    answers = sum(
        one != other for base, variant in pairs for one, other in zip(base.answers, variant.answers, strict=True)
    )
    changes = {
        **compare([o.figures for o in locomo[DEFAULT]], [o.figures for o in locomo[name]], LOCOMO),
        **compare([precision[DEFAULT].figures], [precision[name].figures], PRECISION),
    }
    agreeing = [
        float(np.nanmean(variant.figures[:, 1] - base.figures[:, 1]))
        for base, variant in zip(locomo[DEFAULT], locomo[name], strict=True)
    ]
    return {
        "toggled": "on -> off" if was_on else "off -> on",
        "answers_changed": answers,
        "changes": {figure: asdict(change) for figure, change in changes.items()},
        "conversations": {"up": sum(v > 1e-9 for v in agreeing), "down": sum(v < -1e-9 for v in agreeing)},
        "verdict": verdict(changes, was_on=was_on) if answers else "changes no answer",
        **({} if answers else {"why": ""}),
    }


def verdict(changes: Mapping[str, Change], *, was_on: bool) -> str:
    """What the stage does when it is on."""
    gains = [change.difference * (-1 if was_on else 1) for change in changes.values() if change.is_real]
    if not gains:
        return "unclear" if any(abs(change.difference) >= LEAST for change in changes.values()) else "no difference"
    if min(gains) > 0:
        return "helps"
    return "hurts" if max(gains) < 0 else "trades"


def compare(base: Sequence[Figures], variant: Sequence[Figures], names: Sequence[str]) -> dict[str, Change]:
    """The change of each figure with its interval. `base` and `variant` are groups of the same questions."""
    counts = _resamples(tuple(len(group) for group in base))
    one, other = np.concatenate(base), np.concatenate(variant)
    changes = {}
    for column, name in enumerate(names):
        difference = _mean(other[:, column]) - _mean(one[:, column])
        drawn = _resampled_means(other[:, column], counts) - _resampled_means(one[:, column], counts)
        tail = 50 * (1 - CONFIDENCE)
        low, high = np.nanpercentile(drawn, [tail, 100 - tail])
        changes[name] = Change(difference, float(low), float(high))
    return changes


@cache
def _resamples(sizes: tuple[int, ...]) -> Figures:
    """How often each question is drawn, resamples by questions: whole groups, or questions where there is one group."""
    units, repeats = (len(sizes), sizes) if len(sizes) > 1 else (sizes[0], (1,) * sizes[0])
    drawn = np.random.default_rng(7).multinomial(units, np.full(units, 1 / units), RESAMPLES)
    return np.repeat(drawn, repeats, axis=1).astype(np.float64)


def _resampled_means(values: Figures, counts: Figures) -> Figures:
    counted = ~np.isnan(values)
    means: Figures = counts @ np.where(counted, values, 0.0) / np.maximum(counts @ counted, 1)
    return means


def _mean(values: Figures) -> float:
    return float(np.nanmean(values)) if (~np.isnan(values)).any() else float("nan")


# -- report ----------------------------------------------------------------------------------------------------------


def _means(locomo: Sequence[Figures], precision: Figures) -> dict[str, float]:
    both = [(np.concatenate(locomo), LOCOMO), (precision, PRECISION)]
    return {name: _mean(values[:, column]) for values, names in both for column, name in enumerate(names)}


def _report(figures: Mapping[str, Any]) -> None:
    asked = figures["questions"]
    print(f"Stages one at a time; LoCoMo with facts ({FACTS}), {asked['locomo']} questions of {asked['conversations']} "
          f"conversations, and PrecisionMemBench, {asked['precision']} questions; {figures['machine']}")  # fmt: skip
    print(f"{'':32}" + "".join(f"{name:>11}" for name in FIGURES) + "   verdict on its being on")
    print(f"{'default':32}" + "".join(f"{figures['default'][name]:10.3f} " for name in FIGURES))
    for name, row in sorted(figures["stages"].items(), key=lambda item: item[1]["verdict"] == "changes no answer"):
        if not row["answers_changed"]:
            print(f"{name:16}{row['toggled']:16}changes no answer" + (f": {row['why']}" if row["why"] else ""))
            continue
        changes = {figure: Change(**row["changes"][figure]) for figure in FIGURES}
        cells = "".join(f"{change.difference:+10.3f}{'*' if change.is_real else ' '}" for change in changes.values())
        print(f"{name:16}{row['toggled']:16}{cells}   {row['verdict']}")
    print(f"* at least {LEAST:g} and the {CONFIDENCE:.0%} interval leaves out zero; took {figures['took_s']:.0f} s")


def _arguments() -> argparse.Namespace:
    parser = make_parser(__doc__, keep=True)
    parser.add_argument("--only", action="append", help="a conversation, e.g. conv-26; repeatable")
    stages = [*FEATURES, *OTHERS, "classic"]
    parser.add_argument("--stage", action="append", choices=stages, help="this stage alone; repeatable")
    return parser.parse_args()


if __name__ == "__main__":
    main()
