"""Recall over several vaults: each conversation of LoCoMo is a vault, and every question is asked of all ten together.

    python tests/benchmarks/several_vaults.py
    python tests/benchmarks/several_vaults.py --keep /tmp/vaults --every 4 --json several.json

R@k is as in locomo.py. *its own vault* asks only the vault that has the answer, which nobody knows beforehand; *one vault
of all* holds the ten conversations in one. The others ask ten vaults, or two (its own and the next), and merge: *by score*
as the vaults score, *merged* as `quaid recall --vault … --vault …` does. *shared names* are the questions about somebody whose
name speaks in several of the conversations: to these several vaults seem to have an answer. The weight of a vault was
chosen on the first five conversations; the last five are held out. Intervals are of the difference of *merged* to the row,
over questions (paired bootstrap, 95%).
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from bench import describe_machine, make_parser, save
from conversations import over_conversations, vault_folder
from locomo import DEPTH, measure
from locomo_data import Question, load, read_questions, session_lines
from rankings import interval

from quaid import Memory
from quaid.config import load_settings
from quaid.model import Recall
from quaid.recall.merging import merge
from quaid.recall.options import RecallOptions
from quaid.settings import RecallSettings

ALL = "all"
HELD_OUT = 5
"""Conversations, the last ones."""
CUTS = ("R@5", "R@10", "R@20")
OPTIONS = RecallOptions(DEPTH, kinds=frozenset({"turn"}), depth="fast", comparable=True)
Answers = Mapping[str, Sequence[Recall]]
"""The answers of each vault to all questions."""
Place = tuple[str, int]


def main() -> None:
    options = _arguments()
    talks = load()
    questions = [question for talk in talks for question in read_questions(talk)][:: options.every]
    with vault_folder(options.keep) as folder:
        work = partial(ask, questions=[question.text for question in questions])
        found = over_conversations(work, talks, ["none"], folder)
        of_all = over_conversations(work, [{"sample_id": ALL}], ["none"], folder, ingest_all)["none", ALL]
    answers = {name: recalls for (_, name), recalls in found.items()}
    names = [str(talk["sample_id"]) for talk in talks]
    following = {name: names[(place + 1) % len(names)] for place, name in enumerate(names)}
    rows = {
        "its own vault": _measured(questions, lambda at, own: _places({own: answers[own][at]})),
        "one vault of all": _measured(questions, lambda at, _: _places_in_all(of_all[at])),
        "ten, by score": _measured(questions, lambda at, _: _by_score(_at(answers, names, at))),
        "ten, merged": _measured(questions, lambda at, _: _merged(_at(answers, names, at))),
        "two, by score": _measured(questions, lambda at, own: _by_score(_at(answers, (own, following[own]), at))),
        "two, merged": _measured(questions, lambda at, own: _merged(_at(answers, (own, following[own]), at))),
    }
    _report(rows, questions, _parts(questions, talks), options.json)


def ask(talk: dict[str, Any], _facts: str, root: Path, *, questions: Sequence[str]) -> list[Recall]:
    """Return what one vault answers to all questions, without what merging does not look at."""
    with Memory(root, load_settings(root)) as memory:
        memory.sync()
        asked = {"kinds": OPTIONS.kinds, "depth": OPTIONS.depth, "comparable": True, "keep": False}
        return [replace(memory.recall(text, DEPTH, **asked), trace={}) for text in questions]


def ingest_all(_talk: dict[str, Any], root: Path, _facts: str) -> None:
    """Make one vault of all conversations: `conv-26-D1` is a session."""
    memory, _ = Memory.create(root)
    with memory, tempfile.TemporaryDirectory() as folder:
        for talk in load():
            for session, lines in session_lines(talk):
                named = {**json.loads(lines[0]), "session": f"{talk['sample_id']}-{session}"}
                transcript = Path(folder) / f"{named['session']}.jsonl"
                transcript.write_text("\n".join([json.dumps(named), *lines[1:]]) + "\n", encoding="utf-8")
                memory.extract(transcript)
        memory.sync()


def _at(answers: Answers, names: Sequence[str], at: int) -> dict[str, Recall]:
    return {name: answers[name][at] for name in names}


def _places(asked: Mapping[str, Recall]) -> list[Place]:
    return [(f"{name}-{hit.session}", hit.turn or 0) for name, answer in asked.items() for hit in answer.hits]


def _places_in_all(answer: Recall) -> list[Place]:
    return [(hit.session or "", hit.turn or 0) for hit in answer.hits]


def _by_score(asked: Mapping[str, Recall]) -> list[Place]:
    hits = sorted(((-hit.score, name, hit) for name, each in asked.items() for hit in each.hits), key=lambda of: of[:2])
    return [(f"{name}-{hit.session}", hit.turn or 0) for _, name, hit in hits]


def _merged(asked: Mapping[str, Recall]) -> list[Place]:
    found = merge(asked, RecallSettings(), OPTIONS)
    return [(f"{hit.vault}-{hit.session}", hit.turn or 0) for hit in found.hits]


def _measured(questions: Sequence[Question], find: Callable[[int, str], list[Place]]) -> list[dict[str, float]]:
    """How the places measure that `find` returns for the n-th question and its conversation."""
    return [
        measure(find(at, each.conversation), {(f"{each.conversation}-{session}", turn) for session, turn in each.gold})
        for at, each in enumerate(questions)
    ]


def _parts(questions: Sequence[Question], talks: Sequence[dict[str, Any]]) -> dict[str, list[int]]:
    """The questions of each part of the table, by their numbers."""
    speakers = Counter(talk["conversation"][who].casefold() for talk in talks for who in ("speaker_a", "speaker_b"))
    shared = {name for name, count in speakers.items() if count > 1}
    held_out = {talk["sample_id"] for talk in talks[-HELD_OUT:]}
    about_shared = [not shared.isdisjoint(re.findall(r"\w+", question.text.casefold())) for question in questions]
    is_held_out = [question.conversation in held_out for question in questions]
    return {
        "all": [*range(len(questions))],
        "chosen on": [at for at, held in enumerate(is_held_out) if not held],
        "held out": [at for at, held in enumerate(is_held_out) if held],
        "held out, shared names": [at for at, held in enumerate(is_held_out) if held and about_shared[at]],
    }


def _difference(merged: Sequence[float], other: Sequence[float]) -> tuple[float, float, float]:
    """The mean of the difference, and its interval."""
    gains = np.array(merged) - np.array(other)
    return float(gains.mean()), *interval([gains])


def _report(
    rows: Mapping[str, Sequence[Mapping[str, float]]],
    questions: Sequence[Question],
    parts: Mapping[str, Sequence[int]],
    path: str | None,
) -> None:
    figures: dict[str, Any] = {"questions": len(questions), "parts": {}}
    print(f"LoCoMo, ten vaults, {len(questions)} questions; {describe_machine()}")
    for part, numbers in parts.items():
        if not numbers:
            continue
        print(
            f"\n{f'{part} ({len(numbers)})':28}" + "".join(f"{name:>8}" for name in CUTS) + "   merged minus this, R@10"
        )
        table = figures["parts"][part] = {}
        for name, found in rows.items():
            scores = {cut: float(np.mean([found[at][cut] for at in numbers])) for cut in CUTS}
            best = rows["two, merged" if name.startswith("two") else "ten, merged"]
            change = _difference([best[at]["R@10"] for at in numbers], [found[at]["R@10"] for at in numbers])
            table[name] = {**scores, "merged minus this": change}
            told = "" if found is best else "   {:+.3f} ({:+.3f} to {:+.3f})".format(*change)
            print(f"  {name:26}" + "".join(f"{scores[cut]:8.3f}" for cut in CUTS) + told)
    save(path, figures)


def _arguments() -> argparse.Namespace:
    parser = make_parser(__doc__, keep=True)
    parser.add_argument("--every", type=int, default=1, help="ask only every n-th question")
    return parser.parse_args()


if __name__ == "__main__":
    main()
