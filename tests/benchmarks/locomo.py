"""Recall on LoCoMo, no model: every conversation in a vault of its own, every question asked.

    python tests/benchmarks/locomo.py                          # conversations alone
    python tests/benchmarks/locomo.py --facts observation      # with facts that cite their turns
    python tests/benchmarks/locomo.py --facts extraction --only conv-26 --json result.json
    python tests/benchmarks/locomo.py --set recall.profile=classic
    python tests/benchmarks/locomo.py --called                 # only questions that name somebody by what others call them

The protocol is the one in docs/explanation/recall.md: a memory is one turn; gold is the evidence of the question, normalised;
R@k is the share of gold turns among the first k turns, averaged over questions. Scope: one store per conversation
(369 to 689 turns). Random and oracle rows show that the harness itself is sound. At session level what is ranked are the
sessions of the hits, at fact level the facts, and a fact stands for the turns it cites.
"""

from __future__ import annotations

import argparse
import math
import random
import re
import shutil
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench import describe_machine, make_parser, save
from locomo_data import CATEGORIES, Question, Turn, all_turns, has_facts, ingest, load, read_questions

from quaid import Memory
from quaid.config import load_settings, parse_value
from quaid.index import graph
from quaid.recall.options import Profile
from quaid.settings import Settings

DEPTH = 20
MOST_TURNS = 100
"""Turns that are asked for when their sessions are ranked."""
BARE = Profile({"own": 1.0}, spread=0.0, cut_share=0.0)
CHANNELS = {
    "keyword": {"keyword_only": True},
    "vector": {"profile": replace(BARE, vector_weight=1.0)},
    "fusion": {"profile": BARE},
}
METRICS = ("R@5", "R@10", "R@20", "Hit@10", "NDCG@10", "MRR")


def main() -> None:
    options = _arguments()
    results: dict[str, list[dict[str, float]]] = defaultdict(list)
    questions: list[Question] = []
    latencies: list[float] = []
    turns = 0
    for conversation in load(options.only):
        if not has_facts(conversation, options.facts):
            continue
        root = Path(options.keep or tempfile.gettempdir()) / f"quaid-locomo-{options.facts}-{conversation['sample_id']}"
        if not (options.keep and root.exists()):
            shutil.rmtree(root, ignore_errors=True)
            ingest(conversation, root, options.facts)
        asked = list(read_questions(conversation))
        if options.called:
            asked = [question for each in asked if (question := by_nickname(each)) != each]
        questions += asked
        pool = all_turns(conversation)
        turns += len(pool)
        settings = changed(load_settings(root), options.set)
        for name, found in ask_all(root, settings, asked, pool, latencies, options.facts != "none").items():
            results[name] += found
        if not options.keep:
            shutil.rmtree(root)
    _report(results, questions, latencies, turns, options)


NICKNAMES = {
    "conv-26": {"Melanie": "Mel", "Caroline": "Caro"}, "conv-42": {"Joanna": "Jo"}, "conv-48": {"Deborah": "Deb"},
    "conv-49": {"Evan": "Ev"}, "conv-50": {"Calvin": "Cal"},
}  # fmt: skip
"""What the speakers call each other, by conversation."""


def by_nickname(question: Question) -> Question:
    """The question with what others call a person in place of the name that the transcript has."""
    text = question.text
    for name, nickname in NICKNAMES.get(question.conversation, {}).items():
        text = re.sub(rf"\b{name}\b", nickname, text)
    return replace(question, text=text)


def ask_all(
    root: Path, settings: Settings, asked: list[Question], pool: list[Turn], latencies: list[float], facts: bool
) -> dict[str, list[dict[str, float]]]:
    """The rows of the table: what each way to rank finds."""
    chance = random.Random(7)
    rows: dict[str, list[dict[str, float]]] = {
        "random": [measure(chance.sample(pool, DEPTH), question.gold) for question in asked],
        "oracle": [measure(sorted(question.gold)[:DEPTH], question.gold) for question in asked],
    }
    with Memory(root, settings) as memory:
        memory.sync()  # all vectors, as recall waits for only some
    with Memory(root, settings) as memory:
        for name, channel in CHANNELS.items():
            rows[name] = [measure(rank_turns(memory, question, **channel), question.gold) for question in asked]
    with Memory(root, settings) as memory:
        rows["hybrid"] = [measure(rank_turns(memory, question, latencies), question.gold) for question in asked]
        rows["limit 10"] = [measure_shown(memory, question, 10) for question in asked]
        rows["default limit"] = [measure_shown(memory, question, None) for question in asked]
        rows["sessions"] = [measure(rank_sessions(memory, q), {(s, 0) for s, _ in q.gold}) for q in asked]
        if facts:
            cites = cited_turns(memory)
            rows["facts"] = [measure_facts(rank_facts(memory, question), cites, question.gold) for question in asked]
    return rows


def rank_turns(memory: Memory, question: Question, latencies: list[float] | None = None, **options: Any) -> list[Turn]:
    started = time.perf_counter()
    found = memory.recall(question.text, DEPTH, kinds={"turn"}, depth="fast", keep=False, **options)
    if latencies is not None:
        latencies.append((time.perf_counter() - started) * 1000)
    return [(hit.session or "", hit.turn or 0) for hit in found.hits]


def measure_shown(memory: Memory, question: Question, limit: int | None) -> dict[str, float]:
    """What of the gold is among all turns that are shown, which is the same at every k."""
    found = memory.recall(question.text, limit, kinds={"turn"}, depth="fast", keep=False).hits
    turns = [(hit.session or "", hit.turn or 0) for hit in found]
    share = len(set(turns) & question.gold) / len(question.gold)
    return {**measure(turns, question.gold), "R@5": share, "R@10": share, "R@20": share}


def rank_sessions(memory: Memory, question: Question) -> list[Turn]:
    """Sessions in the order in which their first turn is found."""
    found = memory.recall(question.text, MOST_TURNS, kinds={"turn"}, depth="fast", keep=False)
    return list(dict.fromkeys((hit.session or "", 0) for hit in found.hits))


def rank_facts(memory: Memory, question: Question) -> list[str]:
    return [hit.id for hit in memory.recall(question.text, DEPTH, kinds={"fact"}, depth="fast", keep=False).hits]


def measure(ranked: list[Turn], gold: Iterable[Turn]) -> dict[str, float]:
    """R@5, R@10, R@20, Hit@10, NDCG@10 (binary) and MRR of one answer."""
    gold = set(gold)
    found = [turn in gold for turn in ranked]
    gains = sum(1 / math.log2(rank + 1) for rank, hit in enumerate(found[:10], 1) if hit)
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(10, len(gold)) + 1))
    first = next((rank for rank, hit in enumerate(found, 1) if hit), None)
    return {
        **{f"R@{k}": len(set(ranked[:k]) & gold) / len(gold) for k in (5, 10, 20)},
        "Hit@10": float(any(found[:10])),
        "NDCG@10": gains / ideal,
        "MRR": 1 / first if first else 0.0,
        "shown": float(len(ranked)),
    }


def measure_facts(ranked: list[str], cites: dict[str, set[Turn]], gold: frozenset[Turn]) -> dict[str, float]:
    """The same of facts: the first k facts find the turns that they cite."""
    found = [not cites.get(fact, set()).isdisjoint(gold) for fact in ranked]
    first = next((rank for rank, hit in enumerate(found, 1) if hit), None)
    gains = sum(1 / math.log2(rank + 1) for rank, hit in enumerate(found[:10], 1) if hit)
    right = sum(not turns.isdisjoint(gold) for turns in cites.values())
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(10, right) + 1))
    return {
        **{
            f"R@{k}": len(gold.intersection(*[set().union(*(cites.get(f, set()) for f in ranked[:k]))])) / len(gold)
            for k in (5, 10, 20)
        },
        "Hit@10": float(any(found[:10])),
        "NDCG@10": gains / ideal if ideal else 0.0,
        "MRR": 1 / first if first else 0.0,
        "shown": float(len(ranked)),
    }


def changed(settings: Any, changes: list[str]) -> Any:
    """Settings with each `section.name=value` set."""
    for change in changes:
        key, raw = change.split("=", 1)
        settings = _with(settings, key.split("."), parse_value(key, raw))
    return settings


def _with(node: Any, path: list[str], value: object) -> Any:
    first, *rest = path
    return replace(node, **{first: _with(getattr(node, first), rest, value) if rest else value})


def cited_turns(memory: Memory) -> dict[str, set[Turn]]:
    """The turns each fact cites, by its id."""
    index = memory.index()
    ids = dict(index.execute("SELECT doc_id, id FROM documents WHERE kind = 'fact'"))
    turns = {
        chunk_id: (session, turn)
        for chunk_id, session, turn in index.execute(
            "SELECT chunk_id, session, turn FROM chunks JOIN documents USING (doc_id) WHERE turn IS NOT NULL"
        )
    }
    cites: dict[str, set[Turn]] = {}
    for doc_id, chunk_id in graph.cited_turns(index, list(ids)):
        cites.setdefault(ids[doc_id], set()).add(turns[chunk_id])
    return cites


def by_category(found: list[dict[str, float]], questions: list[Question]) -> dict[str, dict[str, float]]:
    return {
        label: {
            name: statistics.fmean(m[name] for m, q in zip(found, questions, strict=True) if q.category == category)
            for name in ("R@5", "R@10", "R@20")
        }
        for category, label in CATEGORIES.items()
        if any(q.category == category for q in questions)
    }


def _report(
    results: dict[str, list[dict[str, float]]],
    questions: list[Question],
    latencies: list[float],
    turns: int,
    options: argparse.Namespace,
) -> None:
    shown = [
        "random",
        "keyword",
        "vector",
        "fusion",
        "hybrid",
        "limit 10",
        "default limit",
        "sessions",
        "facts",
        "oracle",
    ]
    table = {
        row: {name: statistics.fmean(m[name] for m in results[row]) for name in (*METRICS, "shown")}
        for row in shown
        if row in results and (row != "facts" or results[row])
    }
    split: Callable[[str], dict[str, dict[str, float]]] = lambda row: by_category(results[row], questions)  # noqa: E731
    stores = len({question.conversation for question in questions})
    print(
        f"LoCoMo, categories 1-4, facts: {options.facts}: {len(questions)} questions, {stores} stores, {turns} turns; "
        f"{describe_machine()}"
    )
    print(f"{'':12}" + "".join(f"{name:>9}" for name in (*METRICS, "shown")))
    for row, scores in table.items():
        print(f"{row:12}" + "".join(f"{scores[name]:9.3f}" for name in METRICS) + f"{scores['shown']:9.1f}")
    for label, scores in split("hybrid").items():
        print(f"  hybrid, {label:12}" + "".join(f"{scores[name]:9.3f}" for name in ("R@5", "R@10", "R@20")))
    p50, p95 = statistics.median(latencies), statistics.quantiles(latencies, n=20)[18]
    print(f"recall p50 {p50:.1f} ms, p95 {p95:.1f} ms")
    save(options.json, {
        "facts": options.facts, "rows": table, "hybrid_by_category": split("hybrid"), "turns": turns,
        "questions": len(questions), "p50_ms": p50, "p95_ms": p95,
    })  # fmt: skip


def _arguments() -> argparse.Namespace:
    parser = make_parser(__doc__, keep=True)
    parser.add_argument("--facts", choices=["none", "observation", "extraction"], default="none")
    parser.add_argument("--called", action="store_true", help="questions with nicknames in place of names")
    parser.add_argument("--only", action="append", help="a conversation, e.g. conv-26; repeatable")
    parser.add_argument("--set", action="append", default=[], help="a setting, e.g. recall.profile=classic")
    return parser.parse_args()


if __name__ == "__main__":
    main()
