"""How long taking in a conversation takes, the model's own time left aside: sessions that yield 20 facts each.

    python tests/benchmarks/extraction.py --notes 10000 [--json result.json] [--keep FOLDER]

The model is a service on this machine that answers at once, in the format of Anthropic's Messages.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import statistics
import tempfile
from pathlib import Path

from bench import describe_machine, make_parser, print_figures, quaid, save, timed
from replay import Replay
from scale import PEOPLE, PLACES, THINGS, scale_vault, statement

from quaid import Memory

FACTS = 20
RUNS = 9


def main() -> None:
    parser = make_parser(__doc__, keep=True)
    parser.add_argument("--notes", type=int, default=10_000)
    options = parser.parse_args()
    print(describe_machine())
    figures = measure(options.notes, options.keep or "")
    print_figures(figures, 3)
    save(options.json, {"figures": figures})


def measure(notes: int, keep: str) -> dict[str, float]:
    root = scale_vault(Path(keep or tempfile.mkdtemp()), notes)
    chance = random.Random()
    with Memory.open(root) as memory:
        memory.sync()
    folder = Path(tempfile.mkdtemp())
    sessions = [_session(folder, chance) for _ in range(2 * RUNS + 1)]
    service = Replay(dict(answer for _, answer in sessions))
    os.environ.update(service.environ("anthropic"))
    try:
        whole = [_process(root, path) for path, _ in sessions[:RUNS]]
        with Memory.open(root) as memory:
            memory.extract(sessions[-1][0])
            inside = [_inside(memory, path) for path, _ in sessions[RUNS : 2 * RUNS]]
        again = [_process(root, path) for path, _ in sessions[:RUNS]]
    finally:
        service.close()
        shutil.rmtree(folder)
        if not keep:
            shutil.rmtree(root)
    return {
        "`quaid extract`, 20 facts, whole process, s (<= 1.5)": statistics.median(whole),
        "the slowest of them, s": max(whole),
        "Memory.extract in a running process, s": statistics.median(inside),
        "`quaid extract` of a session that is known, s": statistics.median(again),
    }


def _session(folder: Path, chance: random.Random) -> tuple[Path, tuple[str, dict]]:
    """A transcript of 40 turns, and what the model answers."""
    name = f"bench-{chance.randrange(1 << 40):x}"
    told = [statement(chance, chance.randrange(1 << 30)) for _ in range(FACTS)]
    lines = [{"session": name, "started": f"2026-11-20T{chance.randrange(24):02}:{chance.randrange(60):02}:00Z"}]
    for text in told:
        lines.append({"role": "user", "speaker": "Maya", "content": f"Did I tell you? {text}."})
        lines.append({"role": "assistant", "content": "I did not know that. Tell me more about it, if you like."})
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    facts = [
        {
            "text": f"{text}.",
            "category": "event",
            "confidence": 0.9,
            "speaker": "Maya",
            "source": "user",
            "durability": "immutable",
            "privacy": "private",
            "keywords": ["entry", "note"],
            "valid_from": "2026-11-20",
            "valid_until": None,
            "project": None,
            "turns": [f"t{2 * number + 1}"],
            "edges": [
                {"subject": chance.choice(PEOPLE), "relation": "knows", "object": chance.choice(PEOPLE)},
                {"subject": chance.choice(THINGS), "relation": "located_in", "object": chance.choice(PLACES)},
            ],
        }
        for number, text in enumerate(told)
    ]
    snippets = {"USER.md": [f"Likes to tell about {chance.choice(THINGS)} ({name})"]}
    journal = {"SOUL.md": f"A talk about {chance.choice(PLACES)}, {name}."}
    return path, (name, {"v": 1, "facts": facts, "snippets": snippets, "journal": journal})


def _process(root: Path, path: Path) -> float:
    printed, took = timed(lambda: quaid("extract", str(path), "--vault", str(root), "--json"))
    assert json.loads(printed)["waiting"] is False
    return took


def _inside(memory: Memory, path: Path) -> float:
    done, took = timed(lambda: memory.extract(path))
    assert len(done.facts) == FACTS
    return took


if __name__ == "__main__":
    main()
