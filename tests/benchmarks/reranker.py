"""What a local reranker gains, and what it costs: BEAM and LoCoMo with it and without, and milliseconds.

    python tests/benchmarks/reranker.py                                  # the one that Quaid proposes
    python tests/benchmarks/reranker.py --model ms-marco-MiniLM-L6-v2 --keep /tmp/vaults --json reranker.json
    python tests/benchmarks/reranker.py --model /path/to/folder --set-of "BEAM user" --only beam-3 --budget-ms 60000
    python tests/benchmarks/reranker.py --random                         # no weights: milliseconds alone

Each set is asked twice, the first time as it is by default. R@k is as in beam.py and locomo.py. The interval of each
difference is of 95%, paired, where whole conversations are drawn anew. The reranker is recommended only where no set's
R@5 or R@10 falls, and the interval of one set's R@10 is above zero. `read` is the share of the questions whose candidates
were all read in time: below 1 the figures are those of this machine, and `--budget-ms` gives it more time.

`--random` builds a BERT of the size of ms-marco-MiniLM-L6-v2 (22.7 million weights) from random numbers, with the
tokenizer of all-MiniLM-L6-v2, and scores candidates of the length of a turn, a message and a full chunk.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import beam_data
import numpy as np
from bench import describe_machine, make_parser, p95, save
from conversations import over_conversations, vault_folder
from locomo import DEPTH, changed, measure
from locomo_data import load as load_locomo
from locomo_data import read_questions
from rankings import interval

from quaid import Memory
from quaid.config import load_settings
from quaid.embed import open_reranker
from quaid.embed.weights import RERANKER, cache_folder
from quaid.errors import EmbeddingError, WeightsMissingError
from quaid.recall import rerank

CUTS = ("R@5", "R@10", "R@20")
SETS = ("BEAM user", "BEAM both", "LoCoMo", "LoCoMo with facts")
LEAST = 0.0005
"""A smaller loss is rounding."""
Rows = dict[str, list[dict[str, float]]]


def main() -> None:
    options = _arguments()
    if options.random:
        figures = {"machine": describe_machine(), "random": measure_random()}
        _report_random(figures)
        save(options.json, figures)
        return
    try:
        open_reranker(options.model)
    except (WeightsMissingError, EmbeddingError) as error:
        sys.exit(f"Nothing was measured. {error}")
    sets: dict[str, dict[str, Rows]] = {}
    with vault_folder(options.keep) as folder:
        for name in options.set_of or SETS:
            sets[name] = ask_set(name, options, folder)
    figures = {"machine": describe_machine(), "model": options.model, "budget_ms": options.budget_ms, "sets": {}}
    for name, rows in sets.items():
        if rows:
            figures["sets"][name] = compare(list(rows.values()))
    figures["verdict"] = decide(figures["sets"])
    _report(figures)
    save(options.json, figures)


def ask_set(name: str, options: argparse.Namespace, folder: Path) -> dict[str, Rows]:
    """What is found with the reranker and without, by conversation."""
    is_beam = name.startswith("BEAM")
    talks = beam_data.load() if is_beam else load_locomo(None)
    kind = name.removeprefix("BEAM ") if is_beam else "observation" if name.endswith("facts") else "none"
    chosen = [talk for talk in talks if not options.only or talk["sample_id"] in options.only]
    work = partial(ask, model=options.model, budget_ms=options.budget_ms, is_beam=is_beam)
    asked = over_conversations(work, chosen, [kind], folder, *([beam_data.ingest] if is_beam else []))
    return {talk: rows for (_, talk), rows in asked.items()}


def ask(talk: dict[str, Any], kind: str, root: Path, *, model: str, budget_ms: float, is_beam: bool) -> Rows:
    """The figures of each question of a conversation without the reranker (`off`) and with it (`on`)."""
    rerank.SCORING_BUDGET_S = budget_ms / 1000
    questions = list(beam_data.list_questions(talk, kind)) if is_beam else list(read_questions(talk))
    rows: Rows = {"off": [], "on": []}
    for row, setting in (("off", ""), ("on", model)):
        settings = changed(load_settings(root), [f"recall.reranker={setting}"])
        with Memory(root, settings) as memory:
            memory.sync()
            memory.recall("warm", keep=False)
            for question in questions:
                began = time.perf_counter()
                found = memory.recall(question.text, DEPTH, kinds={"turn"}, depth="fast", keep=False)
                took_ms = (time.perf_counter() - began) * 1000
                ranked = [(hit.session or "", hit.turn or 0) for hit in found.hits]
                read = float("reranker" not in found.degraded)
                rows[row].append({**measure(ranked, question.gold), "ms": took_ms, "read": read})
    return rows


def compare(conversations: Sequence[Rows]) -> dict[str, Any]:
    """The means of a set, and each difference with its interval."""
    both: Rows = defaultdict(list)
    for rows in conversations:
        for name, found in rows.items():
            both[name] += found
    figures: dict[str, Any] = {"questions": len(both["off"]), "conversations": len(conversations)}
    for cut in CUTS:
        pairs = [zip(rows["off"], rows["on"], strict=True) for rows in conversations]
        low, high = interval([np.array([on[cut] - off[cut] for off, on in pair]) for pair in pairs])
        off, on = (statistics.fmean(m[cut] for m in both[name]) for name in ("off", "on"))
        figures[cut] = {"off": off, "on": on, "gain": on - off, "low": low, "high": high}
    for name in ("off", "on"):
        took = [m["ms"] for m in both[name]]
        figures[f"ms {name}"] = {"p50": statistics.median(took), "p95": p95(took)}
    figures["read"] = statistics.fmean(m["read"] for m in both["on"])
    return figures


def decide(sets: Mapping[str, Mapping[str, Any]]) -> str:
    """Whether the reranker is recommended, in a sentence."""
    falls = [f"{name} {cut}" for name, found in sets.items() for cut in CUTS[:2] if found[cut]["gain"] < -LEAST]
    gains = [name for name, found in sets.items() if found["R@10"]["low"] > 0]
    if falls:
        return f"Not recommended: {', '.join(falls)} falls."
    if not gains:
        return "Not recommended: no set's R@10 gains more than chance."
    return f"Recommended: {', '.join(gains)} gains, and no set falls."


# -- milliseconds without weights -------------------------------------------------------------------------------------

HIDDEN, LAYERS, HEADS, WIDE, POSITIONS = 384, 6, 12, 1536, 512
SPOKEN = "and then we went to the market where Tom bought oat milk for the coffee that Maya likes so much"
LENGTHS = {"turn": 30, "message": 90, "chunk": 200}
"""Words of a candidate."""


def write_random(folder: Path) -> Path:
    """A cross-encoder of random weights; `folder` with it."""
    from safetensors.numpy import save_file

    tokenizer = cache_folder() / "models" / "all-MiniLM-L6-v2" / "source" / "tokenizer.json"
    if not tokenizer.exists():
        sys.exit("The tokenizer of all-MiniLM-L6-v2 is not in the cache folder: quaid doctor --fetch")
    (folder / "tokenizer.json").write_bytes(tokenizer.read_bytes())
    words = len(json.loads(tokenizer.read_text(encoding="utf-8"))["model"]["vocab"])
    random = np.random.default_rng(7)
    shapes = {"embeddings.word_embeddings.weight": (words, HIDDEN), "classifier.weight": (1, HIDDEN)}
    shapes |= {"embeddings.position_embeddings.weight": (POSITIONS, HIDDEN)}
    shapes |= {"embeddings.token_type_embeddings.weight": (2, HIDDEN), "pooler.dense.weight": (HIDDEN, HIDDEN)}
    for layer in range(LAYERS):
        prefix = f"encoder.layer.{layer}"
        for part in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
            shapes[f"{prefix}.{part}.weight"] = (HIDDEN, HIDDEN)
        shapes[f"{prefix}.intermediate.dense.weight"] = (WIDE, HIDDEN)
        shapes[f"{prefix}.output.dense.weight"] = (HIDDEN, WIDE)
        for part in ("attention.output", "output"):
            shapes[f"{prefix}.{part}.LayerNorm.weight"] = shapes[f"{prefix}.{part}.LayerNorm.bias"] = (HIDDEN,)
    shapes |= {"embeddings.LayerNorm.weight": (HIDDEN,), "embeddings.LayerNorm.bias": (HIDDEN,)}
    shapes |= {
        name.replace(".weight", ".bias"): shape[:1]
        for name, shape in shapes.items()
        if len(shape) == 2 and not name.startswith("embeddings.")
    }
    weights = {name: random.normal(0, 0.05, shape).astype("f4") for name, shape in shapes.items()}
    save_file(weights, folder / "model.safetensors")
    config = {"model_type": "bert", "architectures": ["BertForSequenceClassification"], "hidden_size": HIDDEN,
              "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "max_position_embeddings": POSITIONS}  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def measure_random(counts: Sequence[int] = (20, 30, 50), times: int = 7) -> dict[str, Any]:
    """Milliseconds on the clock and of the processor for candidates of each length and number, and to open the model."""
    from quaid.embed.convert import convert
    from quaid.embed.local import open_build
    from quaid.embed.weights import Build

    question = "Which milk does Maya take in her coffee when she works from home?"
    spoken = SPOKEN.split()
    with tempfile.TemporaryDirectory() as made:
        source = write_random(Path(made))
        build = Build(source / "build", convert(source, source / "build", "int8"))
        reranker = open_build(build)
        began = time.perf_counter()
        reranker.score(question, ["a"] * 9, 600.0)
        figures: dict[str, Any] = {"open": ((time.perf_counter() - began) * 1000, 0.0)}
        for kind, length in LENGTHS.items():
            texts = [" ".join((spoken * 20)[start : start + length]) for start in range(max(counts))]
            for count in counts:
                took, worked = [], []
                for _ in range(times):
                    began, before = time.perf_counter(), time.process_time()
                    reranker.score(question, texts[:count], 600.0)
                    took.append((time.perf_counter() - began) * 1000)
                    worked.append((time.process_time() - before) * 1000)
                figures[f"{kind}, {count}"] = (statistics.median(took), statistics.median(worked))
    return figures


def _report_random(figures: Mapping[str, Any]) -> None:
    print(f"A cross-encoder of random weights, MiniLM-L6, int8; {figures['machine']}")
    for name, (took, worked) in figures["random"].items():
        print(f"{name:16}{took:9.1f} ms{worked:9.1f} ms of the processor")


def _report(figures: Mapping[str, Any]) -> None:
    print(f"Reranker {figures['model']}, {figures['budget_ms']:g} ms; {figures['machine']}")
    for name, found in figures["sets"].items():
        print(f"{name}: {found['questions']} questions of {found['conversations']} conversations")
        for cut in CUTS:
            each = found[cut]
            print(f"  {cut:5} {each['off']:.3f} -> {each['on']:.3f}  {each['gain']:+.3f} "
                  f"({each['low']:+.3f} to {each['high']:+.3f})")  # fmt: skip
        off, on = found["ms off"], found["ms on"]
        print(f"  p50 {off['p50']:.0f} -> {on['p50']:.0f} ms, p95 {off['p95']:.0f} -> {on['p95']:.0f} ms; "
              f"read {found['read']:.2f}")  # fmt: skip
    print(figures["verdict"])


def _arguments() -> argparse.Namespace:
    parser = make_parser(__doc__, keep=True)
    parser.add_argument("--model", default=RERANKER, help="a built-in name or a folder")
    parser.add_argument("--set-of", choices=SETS, action="append", help="this set alone; repeatable")
    parser.add_argument("--only", action="append", help="a conversation, e.g. beam-3; repeatable")
    budget_ms = 1000 * rerank.SCORING_BUDGET_S
    parser.add_argument("--budget-ms", type=float, default=budget_ms, help=f"for one question; {budget_ms:g}")
    parser.add_argument("--random", action="store_true", help="milliseconds of a model of random weights")
    return parser.parse_args()


if __name__ == "__main__":
    main()
