"""Recall on BEAM, no model: conversations of a person with an assistant, each in a vault of its own.

    python tests/benchmarks/beam.py                       # both pools
    python tests/benchmarks/beam.py --pool user --json result.json
    python tests/benchmarks/beam.py --set recall.profile=classic --keep /tmp/vaults

A memory is a message; a hit on any chunk of it counts once, at its best rank. Gold are the messages that a question's
answer was written from; R@k is the share of them among the first k, averaged over questions. Pool `user` keeps only the
user's messages, so some gold is out of reach; pool `both` keeps all. *default limit* is what is found where no number
of hits is asked for, against *limit 10*.
"""

from __future__ import annotations

import argparse
import statistics
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import beam_data
from bench import describe_machine, make_parser, save
from conversations import over_conversations, vault_folder
from locomo import METRICS, ask_all, changed

from quaid.config import load_settings

POOLS = ("user", "both")
CUTS = ("R@5", "R@10", "R@20")
Rows = dict[str, list[dict[str, float]]]


def main() -> None:
    options = _arguments()
    talks = [talk for talk in beam_data.load() if not options.only or talk["sample_id"] in options.only]
    with vault_folder(options.keep) as folder:
        work = partial(ask, changes=options.set)
        asked = over_conversations(work, talks, options.pool or POOLS, folder, beam_data.ingest)
    figures = {"machine": describe_machine(), "pools": {}}
    for pool in options.pool or POOLS:
        figures["pools"][pool] = _summarise({job: found for job, found in asked.items() if job[0] == pool})
    _report(figures)
    save(options.json, figures)


def ask(talk: dict[str, Any], pool: str, root: Path, *, changes: list[str]) -> tuple[list[str], Rows, list[float]]:
    """The category of each question of a conversation, what each way to rank finds, and how long recall took in ms."""
    questions = list(beam_data.list_questions(talk, pool))
    latencies: list[float] = []
    settings = changed(load_settings(root), changes)
    rows = ask_all(root, settings, questions, beam_data.all_turns(talk, pool), latencies, facts=False)
    return [str(question.category) for question in questions], rows, latencies


def _summarise(asked: dict[Any, tuple[list[str], Rows, list[float]]]) -> dict[str, Any]:
    rows: Rows = defaultdict(list)
    categories = [category for names, _, _ in asked.values() for category in names]
    latencies = [taken for _, _, took in asked.values() for taken in took]
    for _, found, _ in asked.values():
        for name, measured in found.items():
            rows[name] += measured
    by_category = {
        category: {
            row: statistics.fmean(m["R@10"] for m, c in zip(rows[row], categories, strict=True) if c == category)
            for row in ("fusion", "hybrid")
        }
        for category in sorted(set(categories))
    }
    return {
        "rows": {name: {cut: statistics.fmean(m[cut] for m in found) for cut in (*METRICS, "shown")}
                 for name, found in rows.items()},
        "by_category": by_category,
        "questions": len(categories),
        "p50_ms": statistics.median(latencies),
        "p95_ms": statistics.quantiles(latencies, n=20)[18],
    }  # fmt: skip


def _report(figures: dict[str, Any]) -> None:
    for pool, found in figures["pools"].items():
        print(f"BEAM, pool {pool}: {found['questions']} questions; {figures['machine']}")
        print(f"{'':24}" + "".join(f"{name:>9}" for name in (*METRICS, "shown")))
        for row, scores in found["rows"].items():
            print(f"{row:24}" + "".join(f"{scores[name]:9.3f}" for name in METRICS) + f"{scores['shown']:9.1f}")
        for category, scores in found["by_category"].items():
            print(f"  R@10, {category:24} fusion {scores['fusion']:.3f}  hybrid {scores['hybrid']:.3f}")
        print(f"recall p50 {found['p50_ms']:.1f} ms, p95 {found['p95_ms']:.1f} ms")


def _arguments() -> argparse.Namespace:
    parser = make_parser(__doc__, keep=True)
    parser.add_argument("--pool", choices=POOLS, action="append", help="this pool alone; repeatable")
    parser.add_argument("--only", action="append", help="a conversation, e.g. beam-3; repeatable")
    parser.add_argument("--set", action="append", default=[], help="a setting, e.g. recall.profile=classic")
    return parser.parse_args()


if __name__ == "__main__":
    main()
