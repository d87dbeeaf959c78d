"""How much of the evidence a reader gets in a budget of tokens: the text that `quaid recall --budget` prints.

    python tests/benchmarks/evidence.py                              # LoCoMo, conversations alone
    python tests/benchmarks/evidence.py --facts observation          # with facts that cite their turns
    python tests/benchmarks/evidence.py --beam                       # BEAM, both sides of each conversation
    python tests/benchmarks/evidence.py --before ../main --json result.json

A question is held when every gold turn of it stands, word for word and whole, within the first `--tokens` tokens of what
is printed: lines, dates, names and marks are counted. `--before` asks the checkout at that path the same questions over
the same vaults and counts its text the same way; `--ask` is the budget that is asked for there, if it is another.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import beam_data
from conversations import over_conversations, vault_folder
from locomo_data import category_of, load, read_questions, session_lines
from machine import describe_machine

CHARACTERS_PER_TOKEN = 4
_ADDED = re.compile(r"\(= [^()]*\)")
_CAPTION = re.compile(r"(?:an? (?:photo|picture|image|photograph|photography|screenshot) of )+")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Asked:
    """A question, what was printed for it, and how many of its gold turns stand in that."""

    category: str
    gold: int
    found: int
    printed: int
    shown: int


def main() -> None:
    options = _arguments()
    found = measure(options)
    rows = {"after" if options.before else "held": summarise(found)}
    if options.before:
        rows = {"before": summarise(_of_checkout(options)), **rows}
    _report(rows, options)
    if options.raw:
        Path(options.raw).write_text(json.dumps([asdict(asked) for asked in found]), encoding="utf-8")


def measure(options: argparse.Namespace) -> list[Asked]:
    """All questions of the conversations that were asked for."""
    with vault_folder(options.keep) as folder:
        if options.beam:
            talks = [talk for talk in beam_data.load() if not options.only or talk["sample_id"] in options.only]
            work = partial(_ask_beam, tokens=options.tokens, budget=options.ask or options.tokens)
            by_talk: Mapping[Any, list[Asked]] = over_conversations(work, talks, ["none"], folder, beam_data.ingest)
        else:
            talks = [talk for talk in load(None) if not options.only or talk["sample_id"] in options.only]
            work = partial(_ask_locomo, tokens=options.tokens, budget=options.ask or options.tokens)
            by_talk = over_conversations(work, talks, [options.facts], folder)
    return [asked for found in by_talk.values() for asked in found]


def _ask_locomo(talk: dict[str, Any], _facts: str, root: Path, *, tokens: int, budget: int) -> list[Asked]:
    texts = {
        (session, number): str(json.loads(line)["content"])
        for session, lines in session_lines(talk)
        for number, line in enumerate(lines[1:], 1)
    }
    questions = [
        (question.text, category_of(question), [texts[turn] for turn in question.gold])
        for question in read_questions(talk)
    ]
    return list(_ask(root, questions, tokens, budget))


def _ask_beam(talk: dict[str, Any], _facts: str, root: Path, *, tokens: int, budget: int) -> list[Asked]:
    return list(_ask(root, list(beam_data.read_questions(talk)), tokens, budget))


def _ask(root: Path, questions: list[tuple[str, str, list[str]]], tokens: int, budget: int) -> Iterator[Asked]:
    from quaid import Memory
    from quaid.cli.recall import render_answer
    from quaid.config import load_settings

    with Memory(root, load_settings(root)) as memory:
        memory.sync()
        for text, category, gold in questions:
            answer = memory.recall(text, budget=budget, depth="fast", keep=False)
            printed = render_answer(answer, explain=False)
            held = _words(printed[: tokens * CHARACTERS_PER_TOKEN])
            found = sum(_words(turn) in held for turn in gold)
            yield Asked(category, len(gold), found, -(-len(printed) // CHARACTERS_PER_TOKEN), len(answer.hits))


def _words(text: str) -> str:
    """The words of a text, without what is added to it and without the stammer of captions of photos."""
    words = " ".join(_WORD.findall(_ADDED.sub("", text).lower()))
    return f" {_CAPTION.sub('a photo of ', words)} "


def summarise(found: list[Asked]) -> dict[str, dict[str, float]]:
    """By category and in all: the share of questions whose gold is held, the share of gold turns, tokens printed."""
    groups: dict[str, list[Asked]] = defaultdict(list)
    for asked in found:
        groups[asked.category].append(asked)
    return {
        name: {
            "questions": len(group),
            "held": statistics.fmean(asked.found == asked.gold for asked in group),
            "turns": statistics.fmean(asked.found / asked.gold for asked in group),
            "printed": statistics.fmean(asked.printed for asked in group),
            "most": max(asked.printed for asked in group),
            "shown": statistics.fmean(asked.shown for asked in group),
        }
        for name, group in [*sorted(groups.items()), ("all", found)]
    }


def _of_checkout(options: argparse.Namespace) -> list[Asked]:
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder) / "raw.json"
        command = [sys.executable, __file__, "--raw", str(raw), "--tokens", str(options.tokens)]
        command += ["--facts", options.facts, *(["--beam"] if options.beam else [])]
        command += [word for name in options.only or () for word in ("--only", name)]
        command += [
            word for name in ("keep", "ask") if (given := getattr(options, name)) for word in (f"--{name}", str(given))
        ]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": options.before})
        return [Asked(**row) for row in json.loads(raw.read_text(encoding="utf-8"))]


def _report(rows: dict[str, dict[str, dict[str, float]]], options: argparse.Namespace) -> None:
    what = "BEAM" if options.beam else f"LoCoMo, categories 1-4, facts: {options.facts}"
    print(f"{what}; gold turns whole within {options.tokens} printed tokens; {describe_machine()}")
    figures = ("held", "turns", "printed", "most", "shown")
    print(f"{'':34}{'questions':>10}" + "".join(f"{name:>10}" for name in figures))
    for row, groups in rows.items():
        for name, group in groups.items():
            numbers = (
                f"{group[figure]:>10.3f}" if group[figure] <= 1 else f"{group[figure]:>10.0f}" for figure in figures
            )
            print(f"{row + ', ' + name:34}{group['questions']:>10}" + "".join(numbers))
    if options.json:
        shape = {"what": what, "tokens": options.tokens, "rows": rows, "machine": describe_machine()}
        Path(options.json).write_text(json.dumps(shape, indent=2), encoding="utf-8")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--beam", action="store_true", help="ask BEAM's questions in place of LoCoMo's")
    parser.add_argument("--facts", choices=["none", "observation", "extraction"], default="none")
    parser.add_argument("--only", action="append", help="a conversation, e.g. conv-26; repeatable")
    parser.add_argument("--tokens", type=int, default=1_500, help="how much of the printed text is read")
    parser.add_argument("--ask", type=int, help="the budget that recall is asked for, by default --tokens")
    parser.add_argument("--before", help="a checkout of Quaid to compare with")
    parser.add_argument("--keep", help="folder in which the vaults are kept and found again")
    parser.add_argument("--json", help="write the figures to this file")
    parser.add_argument("--raw", help="write what became of each question to this file")
    return parser.parse_args()


if __name__ == "__main__":
    main()
