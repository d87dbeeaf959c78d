"""Recall in ten languages, no model: is the first hit the fact that answers the question?

    python tests/benchmarks/languages.py                                     # with the embedder of the settings
    python tests/benchmarks/languages.py --model multilingual-e5-small --model all-MiniLM-L6-v2 --json result.json

`languages.tsv` has twelve facts in each language, written for this and not translated from each other, and to each fact
two questions in its language and one in English. Five figures, each hit@1: `alone`, asked in the language of a vault
with the twelve facts of that language; `all`, the same with all 120 facts in one vault; `English`, asked in English of
that vault; `vectors`, the same by vectors alone; `abroad`, asked in English of a vault with the twelve facts.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from bench import describe_machine, make_parser, save
from locomo import CHANNELS

from quaid import Memory
from quaid.capture.facts import NewFact, plan_fact
from quaid.config import load_settings
from quaid.settings import EmbeddingSettings
from quaid.vault import files

DATA = Path(__file__).with_suffix(".tsv")
LANGUAGES = {
    "de": "German", "fr": "French", "es": "Spanish", "pt": "Portuguese", "ru": "Russian", "zh": "Chinese",
    "ja": "Japanese", "ko": "Korean", "ar": "Arabic", "th": "Thai",
}  # fmt: skip
FIGURES = ("alone", "all", "English", "vectors", "abroad")
VECTORS = CHANNELS["vector"]
"""Stages that are left out of `vectors`."""


class Item(NamedTuple):
    """A fact, and what is asked about it."""

    language: str
    fact: str
    question: str
    another: str
    in_english: str


def main() -> None:
    options = _arguments()
    with DATA.open(encoding="utf-8", newline="") as file:
        items = [Item(*row) for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]
    result = {model: measure(items, model) for model in options.model or [EmbeddingSettings().model]}
    print(f"First hit right, {len(items)} facts and {3 * len(items)} questions; {describe_machine()}")
    for model, rows in result.items():
        print(f"{model:24}" + "".join(f"{name:>9}" for name in FIGURES))
        for row, scores in rows.items():
            print(f"  {row:22}" + "".join(f"{scores[name]:9.3f}" for name in FIGURES))
    save(options.json, {"models": result, "facts": len(items)})


def measure(items: Sequence[Item], model: str) -> dict[str, dict[str, float]]:
    """Return the figures of each language, and of all."""
    found: dict[str, dict[str, list[bool]]] = {name: {figure: [] for figure in FIGURES} for name in LANGUAGES.values()}
    with tempfile.TemporaryDirectory() as folder:
        with make_vault(Path(folder) / "all", items, model) as memory:
            for item in items:
                row = found[LANGUAGES[item.language]]
                row["all"] += (is_first(memory, question, item) for question in (item.question, item.another))
                row["English"].append(is_first(memory, item.in_english, item))
            for item in items:
                found[LANGUAGES[item.language]]["vectors"].append(is_first(memory, item.in_english, item, **VECTORS))
        for code, name in LANGUAGES.items():
            own = [item for item in items if item.language == code]
            with make_vault(Path(folder) / code, own, model) as memory:
                found[name]["alone"] = [
                    is_first(memory, q, item) for item in own for q in (item.question, item.another)
                ]
                found[name]["abroad"] = [is_first(memory, item.in_english, item) for item in own]
    rows = {name: {figure: statistics.fmean(right[figure]) for figure in FIGURES} for name, right in found.items()}
    return rows | {"all": {figure: statistics.fmean(row[figure] for row in rows.values()) for figure in FIGURES}}


def make_vault(root: Path, items: Iterable[Item], model: str) -> Memory:
    """Return a new vault with the facts of `items`, indexed with the embedder `model`."""
    Memory.create(root)[0].close()
    for item in items:
        _, edit = plan_fact(NewFact(item.fact), datetime.now(UTC))
        files.write_note(root, edit.rel_path, edit.before, edit.after)
    settings = load_settings(root)
    memory = Memory(root, replace(settings, embedding=replace(settings.embedding, model=model)))
    memory.sync()
    return memory


def is_first(memory: Memory, question: str, item: Item, **options: Any) -> bool:
    hits = memory.recall(question, 1, depth="fast", keep=False, **options).hits
    return bool(hits) and hits[0].text.strip() == item.fact


def _arguments() -> argparse.Namespace:
    parser = make_parser(__doc__)
    parser.add_argument("--model", action="append", help="a setting embedding.model; repeatable")
    return parser.parse_args()


if __name__ == "__main__":
    main()
