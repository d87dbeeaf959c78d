"""Updates of a memory through nights, counted as HaluMem does: how many are omitted, and how many are wrong.

    python tests/benchmarks/updates.py [--json result.json]

Lives through the scenario `a-changing-life` with the answers of two models, and through conversation 26 of LoCoMo with
those that a model gave about its sessions and about its pairs of facts, a night after every session. An update is
omitted if what it replaces is still held for true, and wrong if what replaces it is replaced or rejected itself; that
its own end has come does not count.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

from bench import describe_machine, make_parser, save, use_model

sys.path.insert(0, str(Path(__file__).parents[1]))

from replay import DATA, answers, write_sessions
from scenarios.playing import RecordedModel, list_believed, play

from quaid import Memory
from quaid.janitor.runner import RunOptions

LIFE = Path(__file__).parents[1] / "scenarios" / "a-changing-life"


def main() -> None:
    options = make_parser(__doc__).parse_args()
    print(describe_machine())
    expected = json.loads((LIFE / "expected.json").read_text(encoding="utf-8"))
    found = {}
    with tempfile.TemporaryDirectory(prefix="quaid-updates-") as folder:
        for name in ("strong", "middling"):
            recorded = json.loads((LIFE / f"answers-of-a-{name}-model.json").read_text(encoding="utf-8"))
            root = Path(folder) / name
            _set_model(recorded)
            play(LIFE, root)
            found[name] = show(f"a changing life, {name} model", count(root, expected["asked"], recorded["pairs"]))
        recorded = read_conversation()
        last = live_sessions(Path(folder), recorded)
        found["conv-26"] = show("conversation 26", count(Path(folder) / "conv-26", last, recorded["pairs"]))
    save(options.json, found)


def show(name: str, figures: dict[str, Any]) -> dict[str, Any]:
    omitted, wrong = figures["omitted"], figures["wrong"]
    print(f"{name}: {figures['updates']} updates, {len(omitted)} omitted, {len(wrong)} wrong", flush=True)
    for what, texts in (("omitted", omitted), ("wrong", wrong)):
        print("".join(f"  {what}: {text}\n" for text in texts), end="", flush=True)
    return figures


def read_conversation() -> dict[str, Any]:
    """Return what a model has answered about conversation 26: its sessions, and (older, newer, how) of its updates."""
    judged = json.loads((DATA / "extraction/conv-26/janitor/contradictions.json").read_text(encoding="utf-8"))
    pairs = [
        (each["a"]["text"], each["b"]["text"], "update")[:: -1 if each["resolution"] == "keep_a" else 1]
        for each in judged
        if each["verdict"] == "update" and each["resolution"] in {"keep_a", "keep_b"}
    ]
    return {"sessions": answers(), "pairs": pairs, "reject": {}}


def live_sessions(folder: Path, recorded: dict[str, Any]) -> str:
    """Learn from each session of conversation 26, with a night after it, and return the moment of the last one."""
    _set_model(recorded)
    Memory.create(folder / "conv-26")[0].close()
    night = datetime.now().astimezone()
    for number, path in enumerate(write_sessions(folder / "talk")):
        night = datetime.now().astimezone() + timedelta(days=number)
        with Memory.open(folder / "conv-26") as memory:
            memory.extract(path)
            memory.janitor.run(RunOptions(), night)
    return night.isoformat()


def count(root: Path, moment: str, pairs: Sequence[Sequence[str]]) -> dict[str, Any]:
    now, ever = (
        {text.rstrip(".") for text in list_believed(root, day)}
        for day in (datetime.fromisoformat(moment).date(), date.min)
    )
    olds = {old.rstrip(".") for old, *_ in pairs}
    omitted = sorted(olds & now)
    wrong = sorted({new.rstrip(".") for _, new, _ in pairs} - olds - ever)
    return {"updates": len(pairs), "omitted": omitted, "wrong": wrong}


def _set_model(recorded: dict[str, Any]) -> None:
    os.environ.pop("QUAID_MODELS_URL", None)
    use_model(RecordedModel(recorded).url)


if __name__ == "__main__":
    main()
