"""Recall in 24 languages, no model: is the first hit the fact that answers the question?

    python tests/benchmarks/languages.py                                     # with the embedder of the settings
    python tests/benchmarks/languages.py --model multilingual-e5-small --model all-MiniLM-L6-v2 --json result.json

`languages.tsv` has twelve or six facts in each language, written for this and not translated from each other. To each
fact it has two questions in its language, one in English, and in six languages a third one, `reworded`, which has hardly
a word of the fact. Six figures, each hit@1: `alone`, asked in the language of a vault with the facts of that language;
`reworded`, the same with the third questions; `abroad`, asked in English of that vault; `all`, asked in the language of a
vault with all facts of the languages that have twelve; `English`, asked in English of that vault; `vectors`, the same by
vectors alone. Facts that are `held out` were written before anything was measured, and nothing was tuned on them.
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
    "ja": "Japanese", "ko": "Korean", "ar": "Arabic", "th": "Thai", "tr": "Turkish", "pl": "Polish", "sv": "Swedish",
    "hi": "Hindi", "vi": "Vietnamese", "el": "Greek", "it": "Italian", "nl": "Dutch", "cs": "Czech", "fi": "Finnish",
    "hu": "Hungarian", "uk": "Ukrainian", "fa": "Persian", "id": "Indonesian",
}  # fmt: skip
FIGURES = ("alone", "reworded", "abroad", "all", "English", "vectors")
MANY = 12
"""The facts of a language that is in the vault of all."""
VECTORS: Any = CHANNELS["vector"]
"""Stages that are left out of `vectors`."""


class Item(NamedTuple):
    """A fact, and what is asked about it."""

    language: str
    fact: str
    question: str
    another: str
    in_english: str
    reworded: str
    part: str
    """`seen` or `held out`."""


def main() -> None:
    options = _arguments()
    with DATA.open(encoding="utf-8", newline="") as file:
        items = [Item(*row) for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]
    result = {
        model: measure(items, model, show_misses=options.misses)
        for model in options.model or [EmbeddingSettings().model]
    }
    print(f"First hit right, {len(items)} facts; {describe_machine()}")
    for model, rows in result.items():
        print(f"{model:24}" + "".join(f"{name:>9}" for name in FIGURES))
        for row, scores in rows.items():
            print(f"  {row:22}" + "".join(f"{scores[name]:9.3f}" if name in scores else 9 * " " for name in FIGURES))
    save(options.json, {"models": result, "facts": len(items)})


def measure(items: Sequence[Item], model: str, *, show_misses: bool = False) -> dict[str, dict[str, float]]:
    """Return the figures of each language, of what is seen and what is held out, and of all."""
    asked: dict[str, dict[str, list[bool]]] = {}

    def ask(memory: Memory, figure: str, item: Item, questions: Iterable[str], **options: Any) -> None:
        for question in questions:
            is_right = is_first(memory, question, item, **options)
            for row in (LANGUAGES[item.language], item.part, "all"):
                asked.setdefault(row, {name: [] for name in FIGURES})[figure].append(is_right)
            if show_misses and not is_right and item.part == "seen":
                print(f"{figure}\t{question}\t{item.fact}")

    by_language = {code: [item for item in items if item.language == code] for code in LANGUAGES}
    together = [item for own in by_language.values() if len(own) >= MANY for item in own]
    with tempfile.TemporaryDirectory() as folder:
        with make_vault(Path(folder) / "all", together, model) as memory:
            for item in together:
                ask(memory, "all", item, (item.question, item.another))
                ask(memory, "English", item, (item.in_english,))
                ask(memory, "vectors", item, (item.in_english,), **VECTORS)
        for code, own in by_language.items():
            with make_vault(Path(folder) / code, own, model) as memory:
                for item in own:
                    ask(memory, "alone", item, (item.question, item.another))
                    ask(memory, "reworded", item, filter(None, (item.reworded,)))
                    ask(memory, "abroad", item, (item.in_english,))
    order = (*LANGUAGES.values(), "seen", "held out", "all")
    return {row: {figure: statistics.fmean(found) for figure, found in asked[row].items() if found} for row in order}


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
    parser.add_argument("--misses", action="store_true", help="print the seen questions whose first hit is wrong")
    return parser.parse_args()


if __name__ == "__main__":
    main()
