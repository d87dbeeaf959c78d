"""Recall on LoCoMo, turn level, no model: every conversation in a vault of its own, every question asked.

    python tests/benchmarks/locomo.py                      # all ten conversations
    python tests/benchmarks/locomo.py --only conv-26 --json result.json
    python tests/benchmarks/locomo.py --set recall.vector_weight=0.4

The protocol is the one in docs/recall.md: a memory is one turn; gold is the evidence of the question, normalised;
R@k is the share of gold turns among the first k turns, averaged over questions. Scope: one store per conversation
(369 to 689 turns). Random and oracle rows show that the harness itself is sound.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from machine import describe_machine

from quaid import Memory
from quaid.config import Settings, parse_value

DATA = Path(os.environ.get("QUAID_DATA", Path(__file__).parents[3] / "shared" / "data")) / "locomo" / "locomo10.json"
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
DEPTH = 20

Turn = tuple[str, int]


@dataclass(frozen=True)
class Question:
    conversation: str
    text: str
    category: int
    gold: frozenset[Turn]


def main() -> None:
    options = _arguments()
    if not DATA.exists():
        sys.exit(f"LoCoMo is not at {DATA}: set QUAID_DATA to the folder that holds locomo/locomo10.json")
    conversations = json.loads(DATA.read_text(encoding="utf-8"))
    chosen = [c for c in conversations if not options.only or c["sample_id"] in options.only]
    results: dict[str, list[dict[str, float]]] = defaultdict(list)
    questions: list[Question] = []
    latencies: list[float] = []
    turns = 0
    for conversation in chosen:
        root = Path(options.keep or tempfile.gettempdir()) / f"quaid-locomo-{conversation['sample_id']}"
        if not (options.keep and root.exists()):
            shutil.rmtree(root, ignore_errors=True)
            _ingest(conversation, root)
        asked = list(read_questions(conversation))
        questions += asked
        with Memory.open(root) as memory:
            memory.settings = _changed(memory.settings, options.set)
            memory.sync()
            pool = _all_turns(conversation)
            turns += len(pool)
            for name, rank in rankers(memory, pool, latencies).items():
                results[name] += [measure(rank(question), question.gold) for question in asked]
        if not options.keep:
            shutil.rmtree(root)
    _report(results, questions, latencies, turns, options)


def rankers(memory: Memory, pool: list[Turn], latencies: list[float]) -> dict[str, Callable[[Question], list[Turn]]]:
    """The rows of the table: each turns a question into turns, best first."""
    chance = random.Random(7)

    def hybrid(question: Question) -> list[Turn]:
        started = time.perf_counter()
        found = _turns(memory.recall(question.text, DEPTH, kinds={"turn"}).hits)
        latencies.append((time.perf_counter() - started) * 1000)
        return found

    return {
        "random": lambda _: chance.sample(pool, DEPTH),
        "keyword": lambda q: _turns(memory.recall(q.text, DEPTH, kinds={"turn"}, channels={"keyword"}).hits),
        "vector": lambda q: _turns(memory.recall(q.text, DEPTH, kinds={"turn"}, channels={"vector"}).hits),
        "fusion": lambda q: _turns(memory.recall(q.text, DEPTH, kinds={"turn"}, channels={"keyword", "vector"}).hits),
        "hybrid": hybrid,
        "oracle": lambda q: sorted(q.gold)[:DEPTH],
    }


def measure(ranked: list[Turn], gold: frozenset[Turn]) -> dict[str, float]:
    """R@5, R@10, R@20, Hit@10, NDCG@10 (binary) and MRR of one answer."""
    found = [turn in gold for turn in ranked]
    gains = sum(1 / math.log2(rank + 1) for rank, hit in enumerate(found[:10], 1) if hit)
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(10, len(gold)) + 1))
    first = next((rank for rank, hit in enumerate(found, 1) if hit), None)
    return {
        **{f"R@{k}": len(set(ranked[:k]) & gold) / len(gold) for k in (5, 10, 20)},
        "Hit@10": float(any(found[:10])),
        "NDCG@10": gains / ideal,
        "MRR": 1 / first if first else 0.0,
    }


def read_questions(conversation: dict[str, Any]) -> Iterable[Question]:
    """Categories 1 to 4 with at least one piece of evidence that exists."""
    pool = set(_all_turns(conversation))
    for row in conversation["qa"]:
        cited = " ".join(row.get("evidence", []))
        gold = frozenset((f"D{s}", int(t)) for s, t in re.findall(r"D:?(\d+):0*(\d+)", cited)) & pool
        if gold and row["category"] in CATEGORIES:
            yield Question(conversation["sample_id"], row["question"], row["category"], frozenset(gold))


def session_lines(conversation: dict[str, Any]) -> Iterable[tuple[str, list[str]]]:
    """Each session as generic JSONL. The annotators' image `query` is left out, as the protocol wants."""
    talk = conversation["conversation"]
    numbers = sorted(int(key.split("_")[1]) for key in talk if re.fullmatch(r"session_\d+", key))
    for number in numbers:
        lines = [json.dumps({"session": f"D{number}", "started": talk[f"session_{number}_date_time"]})]
        for turn in talk[f"session_{number}"]:
            photo = f" [shares a photo of {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            role = "user" if turn["speaker"] == talk["speaker_a"] else "assistant"
            lines.append(json.dumps({"role": role, "speaker": turn["speaker"], "content": turn["text"] + photo}))
        yield f"D{number}", lines


def _ingest(conversation: dict[str, Any], root: Path) -> None:
    memory, _ = Memory.create(root)
    with memory, tempfile.TemporaryDirectory() as folder:
        for session, lines in session_lines(conversation):
            transcript = Path(folder) / f"{session}.jsonl"
            transcript.write_text("\n".join(lines) + "\n", encoding="utf-8")
            memory.extract(transcript)


def _all_turns(conversation: dict[str, Any]) -> list[Turn]:
    return [(session, n) for session, lines in session_lines(conversation) for n in range(1, len(lines))]


def _turns(hits: Iterable[Any]) -> list[Turn]:
    return [(hit.session, hit.turn) for hit in hits]


def _changed(settings: Settings, changes: list[str]) -> Settings:
    for change in changes:
        key, raw = change.split("=", 1)
        section, name = key.split(".")
        settings = replace(settings, **{section: replace(getattr(settings, section), **{name: parse_value(key, raw)})})
    return settings


def _report(
    results: dict[str, list[dict[str, float]]],
    questions: list[Question],
    latencies: list[float],
    turns: int,
    options: argparse.Namespace,
) -> None:
    names = ["R@5", "R@10", "R@20", "Hit@10", "NDCG@10", "MRR"]
    table = {row: {name: statistics.fmean(m[name] for m in found) for name in names} for row, found in results.items()}
    split = {
        label: {
            name: statistics.fmean(
                m[name] for m, q in zip(results["hybrid"], questions, strict=True) if q.category == c
            )
            for name in ("R@5", "R@10", "R@20")
        }
        for c, label in CATEGORIES.items()
        if any(q.category == c for q in questions)
    }
    stores = len({q.conversation for q in questions})
    print(f"LoCoMo, categories 1-4: {len(questions)} questions, {stores} stores, {turns} turns; {describe_machine()}")
    print(f"{'':12}" + "".join(f"{name:>9}" for name in names))
    for row, scores in table.items():
        print(f"{row:12}" + "".join(f"{scores[name]:9.3f}" for name in names))
    print(
        "hybrid by category: "
        + "; ".join(f"{k} {v['R@5']:.3f}/{v['R@10']:.3f}/{v['R@20']:.3f}" for k, v in split.items())
    )
    p50, p95 = statistics.median(latencies), statistics.quantiles(latencies, n=20)[18]
    print(f"recall p50 {p50:.1f} ms, p95 {p95:.1f} ms")
    if options.json:
        result = {"rows": table, "hybrid_by_category": split, "questions": len(questions), "turns": turns,
                  "p50_ms": p50, "p95_ms": p95, "machine": describe_machine()}  # fmt: skip
        Path(options.json).write_text(json.dumps(result, indent=2), encoding="utf-8")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", help="a conversation, e.g. conv-26; repeatable")
    parser.add_argument("--keep", help="folder in which the vaults are kept and found again")
    parser.add_argument("--set", action="append", default=[], help="a setting, e.g. recall.vector_weight=0.4")
    parser.add_argument("--json", help="write the figures to this file")
    return parser.parse_args()


if __name__ == "__main__":
    main()
