"""Recall on LongMemEval, no model: every question has a haystack of sessions with an assistant, which is a vault.

    python tests/benchmarks/longmemeval.py                            # LongMemEval-S, both sides of each conversation
    python tests/benchmarks/longmemeval.py --questions 60 --seed 1    # a sample of the questions
    python tests/benchmarks/longmemeval.py --size m --pool user --keep /tmp/vaults

The data is not part of Quaid (Wu et al., ICLR 2025, https://github.com/xiaowu0162/LongMemEval): QUAID_DATA/longmemeval/
holds longmemeval_s_cleaned.json, longmemeval_m_cleaned.json (or their first release, without `_cleaned`) or
longmemeval_oracle.json, which has no haystack and shows only that the reader works. Where it is missing the benchmark
is skipped.

A memory is a message: with pool `user` only the user's, as in the paper's own retrieval. Gold are the messages that are
marked `has_answer`; gold sessions are those that have one. Abstentions (`_abs`) are left out, and questions without gold
in the pool. Questions are asked on their `question_date`. R@k is the mean share of the gold among the first k; *any* and
*all* are the shares of questions with some and with all of it there (the paper's recall_any and recall_all). S has some
500 messages in 50 sessions a question, M some 5,000 in 500.
"""

from __future__ import annotations

import argparse
import heapq
import json
import random
import re
import shutil
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from bench import describe_machine, make_parser, save
from conversations import over_conversations, vault_folder
from locomo import ask_all, changed
from locomo_data import FOLDER, Question, Turn
from rankings import Asked, print_summary, summarise

from quaid import Memory
from quaid.config import load_settings

FILES = {
    "s": ("longmemeval_s_cleaned.json", "longmemeval_s.json"),
    "m": ("longmemeval_m_cleaned.json", "longmemeval_m.json"),
    "oracle": ("longmemeval_oracle.json",),
}
POOLS = ("user", "both")
SHARES = ("any@5", "all@5", "any@10", "all@10")
_SEPARATOR = re.compile(r"[\s,\[]*")


def main() -> None:
    options = _arguments()
    path = find(options.size)
    if path is None:
        names = " or ".join(FILES[options.size])
        print(
            f"Skipped: {names} is not in {FOLDER / 'longmemeval'}; set QUAID_DATA to the folder that holds longmemeval/"
        )
        return
    pools = options.pool or ["both"]
    talks = sample(read_instances(path), options.questions, options.seed)
    figures: dict[str, Any] = {"machine": describe_machine(), "file": path.name, "seed": options.seed, "pools": {}}
    with vault_folder(options.keep) as folder:
        for pool in pools:
            asked = [talk for talk in talks if read_question(talk, pool).gold]
            work = partial(ask, changes=options.set, is_kept=bool(options.keep))
            found = summarise(over_conversations(work, asked, [pool], folder, ingest).values())
            found["left_out"] = len(talks) - len(asked)
            figures["pools"][pool] = found
            title = f"{path.stem}, pool {pool}, {found['turns'] / found['conversations']:.0f} memories a question"
            print_summary({**found, "machine": figures["machine"]}, title, ("R@5", "R@10", *SHARES), ("R@10", *SHARES))
            print(f"{found['left_out']} questions have no gold in this pool")
    save(options.json, figures)


def find(size: str) -> Path | None:
    paths = (FOLDER / "longmemeval" / name for name in FILES[size])
    return next((path for path in paths if path.exists()), None)


def read_instances(path: Path) -> Iterator[dict[str, Any]]:
    """The questions but for abstentions, one at a time: all of M as objects take more memory than most machines have."""
    text = path.read_text(encoding="utf-8")
    decoder = json.JSONDecoder()
    place = _SEPARATOR.match(text).end()  # type: ignore[union-attr]
    while text[place] != "]":
        instance, place = decoder.raw_decode(text, place)
        place = _SEPARATOR.match(text, place).end()  # type: ignore[union-attr]
        if not instance["question_id"].endswith("_abs"):
            yield {**instance, "sample_id": instance["question_id"]}


def sample(instances: Iterator[dict[str, Any]], count: int | None, seed: int) -> list[dict[str, Any]]:
    """So many of the instances, the same for the same seed; without a count all."""
    if count is None:
        return list(instances)
    return heapq.nsmallest(count, instances, key=lambda each: random.Random(f"{seed} {each['question_id']}").random())


def ask(talk: dict[str, Any], pool: str, root: Path, *, changes: list[str], is_kept: bool) -> Asked:
    """What each way to rank finds for the question of a haystack."""
    turns = [(name, place) for name, _, kept in _sessions(talk, pool) for place in range(1, len(kept) + 1)]
    asked = ask_all(root, changed(load_settings(root), changes), [read_question(talk, pool)], turns)
    for found in asked.rows.values():
        for measured in found:
            for k in (5, 10):
                measured[f"any@{k}"] = float(measured[f"R@{k}"] > 0)
                measured[f"all@{k}"] = float(measured[f"R@{k}"] == 1)
    if not is_kept:
        shutil.rmtree(root)
    return asked


def read_question(talk: dict[str, Any], pool: str) -> Question:
    gold: set[Turn] = {
        (name, place)
        for name, _, kept in _sessions(talk, pool)
        for place, message in enumerate(kept, 1)
        if message.get("has_answer")
    }
    asked_at = _read_date(talk["question_date"])
    return Question(talk["sample_id"], talk["question"], talk["question_type"], frozenset(gold), asked_at)


def ingest(talk: dict[str, Any], root: Path, pool: str) -> None:
    """A vault with the sessions of the haystack: with pool `user` only the user's messages."""
    memory, _ = Memory.create(root)
    with memory, tempfile.TemporaryDirectory() as folder:
        for name, started, kept in _sessions(talk, pool):
            lines = [{"session": name, "started": started.isoformat()}]
            lines += [{"role": message["role"], "content": message["content"]} for message in kept]
            transcript = Path(folder) / f"{name}.jsonl"
            transcript.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
            memory.extract(transcript)
        memory.sync()


def _sessions(talk: dict[str, Any], pool: str) -> Iterator[tuple[str, datetime, list[dict[str, Any]]]]:
    """The name, the start and the messages in the pool of each session that has any."""
    haystack = zip(talk["haystack_dates"], talk["haystack_sessions"], strict=True)
    for number, (started, messages) in enumerate(haystack, 1):
        kept = [each for each in messages if each["content"].strip() and (pool != "user" or each["role"] == "user")]
        if kept:
            yield f"S{number}", _read_date(started), kept


def _read_date(text: str) -> datetime:
    """`2023/05/20 (Sat) 02:21`."""
    return datetime.strptime(re.sub(r"\(\w+\) ", "", text), "%Y/%m/%d %H:%M").replace(tzinfo=UTC)


def _arguments() -> argparse.Namespace:
    parser = make_parser(__doc__, keep=True)
    parser.add_argument("--size", choices=FILES, default="s", help="which file of the set (default s)")
    parser.add_argument("--pool", choices=POOLS, action="append", help="whose messages (default both); repeatable")
    parser.add_argument("--questions", type=int, help="ask a sample of so many questions")
    parser.add_argument("--seed", type=int, default=1, help="which sample (default 1)")
    parser.add_argument("--set", action="append", default=[], help="a setting, e.g. recall.profile=classic")
    return parser.parse_args()


if __name__ == "__main__":
    main()
