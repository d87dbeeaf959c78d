"""Recall on LoCoMo, no model: every conversation in a vault of its own, every question asked.

    python tests/benchmarks/locomo.py                          # conversations alone
    python tests/benchmarks/locomo.py --facts observation      # with facts that cite their turns
    python tests/benchmarks/locomo.py --facts extraction --only conv-26 --json result.json
    python tests/benchmarks/locomo.py --realtalk               # ten chats of real people, which nothing was chosen on
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
import time
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import peers
from bench import describe_machine, make_parser, save
from conversations import over_conversations, vault_folder
from locomo_data import Question, Turn, all_turns, category_of, load, load_realtalk, read_questions
from rankings import Asked, Rows, print_summary, summarise

from quaid import Memory
from quaid.config import load_settings, parse_value
from quaid.index import graph
from quaid.model import Recall
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
    talks = load_realtalk(options.only) if options.realtalk else load(options.only)
    with vault_folder(options.keep) as folder:
        work = partial(ask, changes=options.set, is_called=options.called)
        asked = over_conversations(work, talks, [options.facts], folder)
    figures = {"machine": describe_machine(), "facts": options.facts, **summarise(asked.values())}
    title = "REALTALK" if options.realtalk else f"LoCoMo, facts: {options.facts}"
    print_summary(figures, f"{title}, categories 1-4", (*METRICS, "shown"))
    save(options.json, figures)


def ask(conversation: dict[str, Any], facts: str, root: Path, *, changes: list[str], is_called: bool) -> Asked:
    """What each way to rank finds for every question of a conversation."""
    asked = list(read_questions(conversation))
    if is_called:
        asked = [question for each in asked if (question := by_nickname(each)) != each]
    return ask_all(root, changed(load_settings(root), changes), asked, all_turns(conversation), facts != "none")


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


def ask_all(root: Path, settings: Settings, asked: list[Question], pool: list[Turn], facts: bool = False) -> Asked:
    """The rows of the table: what each way to rank finds, and other retrievers where they are installed (peers.py)."""
    chance = random.Random(7)
    latencies: list[float] = []
    rows: Rows = {
        "random": [measure(chance.sample(pool, min(DEPTH, len(pool))), question.gold) for question in asked],
        "oracle": [measure(sorted(question.gold)[:DEPTH], question.gold) for question in asked],
    }
    with Memory(root, settings) as memory:
        memory.sync()  # all vectors, as recall waits for only some
    with Memory(root, settings) as memory:
        for name, found in peers.rank(memory, [question.text for question in asked]).items():
            pairs = list(zip(found, asked, strict=True))
            rows[name] = [measure(turns[:DEPTH], question.gold) for turns, question in pairs]
            rows[f"sessions, {name}"] = [measure(sessions_of(turns), sessions_of(q.gold)) for turns, q in pairs]
        for name, channel in CHANNELS.items():
            rows[name] = [measure(rank_turns(memory, question, **channel), question.gold) for question in asked]
    with Memory(root, settings) as memory:
        rows["hybrid"] = [measure(rank_turns(memory, question, latencies), question.gold) for question in asked]
        rows["limit 10"] = [measure_shown(memory, question, 10) for question in asked]
        rows["default limit"] = [measure_shown(memory, question, None) for question in asked]
        rows["sessions"] = [measure(rank_sessions(memory, question), sessions_of(question.gold)) for question in asked]
        if facts:
            cites = cited_turns(memory)
            rows["facts"] = [measure_facts(rank_facts(memory, question), cites, question.gold) for question in asked]
    return Asked(len(pool), [category_of(question) for question in asked], rows, latencies)


def rank_turns(memory: Memory, question: Question, latencies: list[float] | None = None, **options: Any) -> list[Turn]:
    started = time.perf_counter()
    found = _recall(memory, question, DEPTH, **options)
    if latencies is not None:
        latencies.append((time.perf_counter() - started) * 1000)
    return [(hit.session or "", hit.turn or 0) for hit in found.hits]


def measure_shown(memory: Memory, question: Question, limit: int | None) -> dict[str, float]:
    """What of the gold is among all turns that are shown, which is the same at every k."""
    turns = [(hit.session or "", hit.turn or 0) for hit in _recall(memory, question, limit).hits]
    share = len(set(turns) & question.gold) / len(question.gold)
    return {**measure(turns, question.gold), "R@5": share, "R@10": share, "R@20": share}


def rank_sessions(memory: Memory, question: Question) -> list[Turn]:
    """Sessions in the order in which their first turn is found."""
    return sessions_of((hit.session or "", 0) for hit in _recall(memory, question, MOST_TURNS).hits)


def sessions_of(turns: Iterable[Turn]) -> list[Turn]:
    return list(dict.fromkeys((session, 0) for session, _ in turns))


def _recall(memory: Memory, question: Question, limit: int | None, **options: Any) -> Recall:
    when = {"now": question.asked_at} if question.asked_at else {}
    return memory.recall(question.text, limit, kinds={"turn"}, depth="fast", keep=False, **when, **options)


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


def _arguments() -> argparse.Namespace:
    parser = make_parser(__doc__, keep=True)
    parser.add_argument("--realtalk", action="store_true", help="the chats of REALTALK in place of LoCoMo's")
    parser.add_argument("--facts", choices=["none", "observation", "extraction"], default="none")
    parser.add_argument("--called", action="store_true", help="questions with nicknames in place of names")
    parser.add_argument("--only", action="append", help="a conversation, e.g. conv-26 or realtalk-1; repeatable")
    parser.add_argument("--set", action="append", default=[], help="a setting, e.g. recall.profile=classic")
    return parser.parse_args()


if __name__ == "__main__":
    main()
