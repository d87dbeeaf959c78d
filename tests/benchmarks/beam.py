"""Recall on BEAM, no model: conversations of a person with an assistant, each in a vault of its own.

    python tests/benchmarks/beam.py                       # both pools
    python tests/benchmarks/beam.py --pool user --json result.json
    python tests/benchmarks/beam.py --held-out            # conversations 15 to 20
    python tests/benchmarks/beam.py --size 500K           # longer ones, which nothing was chosen on either
    python tests/benchmarks/beam.py --set recall.profile=classic --keep /tmp/vaults

A memory is a message; a hit on any chunk of it counts once, at its best rank. Gold are the messages that a question's
answer was written from; R@k is the share of them among the first k, averaged over questions. Pool `user` keeps only the
user's messages, so some gold is out of reach; pool `both` keeps all. *default limit* is what is found where no number
of hits is asked for, against *limit 10*.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import beam_data
from bench import describe_machine, make_parser, save
from conversations import over_conversations, vault_folder
from locomo import METRICS, ask_all, changed
from rankings import Asked, print_summary, summarise

from quaid.config import load_settings

POOLS = ("user", "both")


def main() -> None:
    options = _arguments()
    talks = [
        talk
        for talk in beam_data.load(options.size)
        if (not options.only or talk["sample_id"] in options.only)
        and (not options.held_out or talk["sample_id"] in beam_data.HELD_OUT)
    ]
    with vault_folder(options.keep) as folder:
        work = partial(ask, changes=options.set)
        asked = over_conversations(work, talks, options.pool or POOLS, folder, beam_data.ingest)
    figures: dict[str, Any] = {"machine": describe_machine(), "pools": {}}
    for pool in options.pool or POOLS:
        found = summarise(each for job, each in asked.items() if job[0] == pool)
        figures["pools"][pool] = found
        print_summary({**found, "machine": figures["machine"]}, f"BEAM, pool {pool}", (*METRICS, "shown"))
    save(options.json, figures)


def ask(talk: dict[str, Any], pool: str, root: Path, *, changes: list[str]) -> Asked:
    """What each way to rank finds for every question of a conversation."""
    questions = list(beam_data.list_questions(talk, pool))
    return ask_all(root, changed(load_settings(root), changes), questions, beam_data.all_turns(talk, pool))


def _arguments() -> argparse.Namespace:
    parser = make_parser(__doc__, keep=True)
    parser.add_argument("--pool", choices=POOLS, action="append", help="this pool alone; repeatable")
    parser.add_argument("--size", default=beam_data.SIZE, help="tokens of a conversation, e.g. 500K (default 100K)")
    parser.add_argument("--held-out", action="store_true", help="conversations 15 to 20, which nothing was chosen on")
    parser.add_argument("--only", action="append", help="a conversation, e.g. beam-3; repeatable")
    parser.add_argument("--set", action="append", default=[], help="a setting, e.g. recall.profile=classic")
    return parser.parse_args()


if __name__ == "__main__":
    main()
