"""How long an agent waits for each hook: whole processes, in a large vault.

    python tests/benchmarks/hooks.py [--notes 10000] [--runs 15] [--keep FOLDER] [--json result.json]

The vault is the one of scale.py (FOLDER/quaid-scale-NOTES, made where it is missing), copied. A prompt is answered twice:
by the hook alone, by words and graph, and by the resident, with the embedding model loaded.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench import describe_machine, make_parser, save, timed
from resident import resident
from scale import scale_vault

from quaid import Memory
from quaid.local import queue
from quaid.place import state_folder
from quaid.trust import trust

QUESTIONS = (
    "What does Maya drink in the morning?",
    "Where does Tom live now?",
    "Which kiln has the studio in Bristol?",
)


def main() -> None:
    parser = make_parser(__doc__, keep=True)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=15)
    options = parser.parse_args()
    print(describe_machine())
    figures = measure(options.notes, options.runs, options.keep)
    print(f"{'ms, whole process':<28}{'median':>8}{'worst':>8}")
    for name, (median, worst) in figures.items():
        print(f"{name:<28}{median:>8.0f}{worst:>8.0f}")
    save(options.json, {"figures": figures})


def measure(notes: int, runs: int, keep: str | None) -> dict[str, tuple[float, float]]:
    source = scale_vault(Path(keep or tempfile.gettempdir()), notes)
    folder = Path(tempfile.mkdtemp())
    root = Path(shutil.copytree(source, folder / "vault", symlinks=True))
    trust(root)
    os.environ |= {"QUAID_HOME": str(root), "QUAID_HOOKS_EXTRACT": "false", "QUAID_HOOKS_RECALL": "on"}
    os.environ |= {"CLAUDE_CONFIG_DIR": str(folder), "QUAID_RESIDENT": "off"}
    transcript = folder / "projects/-x/t.jsonl"
    transcript.parent.mkdir(parents=True)
    transcript.write_text("{}\n")
    given = {"transcript_path": str(transcript)}
    try:
        with Memory.open(root) as memory:
            memory.sync()
            memory.recall("anything at all")
        (root / "USER.md").write_text("# User\n\nMaya is a potter.\n")
        figures = {
            "python -c pass": times(runs, lambda _: spawn([sys.executable, "-c", "pass"], {})),
            "stop": times(runs, lambda _: hook("stop", given)),
            "post-tool-use": times(
                runs, lambda _: hook("post-tool-use", {"tool_name": "Edit", "tool_input": {"file_path": "/x"}})
            ),
            "session-end": times(runs, lambda _: hook("session-end", given)),
            "session-start, alone": times(runs, lambda _: begin(root)),
            "prompt: ok": times(runs, lambda _: hook("user-prompt-submit", {"prompt": "ok"})),
            "prompt, alone": times(runs, prompt),
        }
        with resident(root):
            figures["session-start, resident"] = times(runs, lambda _: begin(root))
            figures["prompt: ok, resident"] = times(runs, lambda _: hook("user-prompt-submit", {"prompt": "ok"}))
            figures["prompt, resident"] = times(runs, prompt)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return figures


def times(runs: int, call: Callable[[int], object]) -> tuple[float, float]:
    """(median, worst) in milliseconds; the first call is not counted."""
    taken = [1000 * timed(lambda n=number: call(n))[1] for number in range(runs + 1)]
    return statistics.median(taken[1:]), max(taken[1:])


def begin(root: Path) -> None:
    while queue.is_any(state_folder(root)):  # the worker of the one before is no part of it
        time.sleep(0.05)
    hook("session-start", {"source": "startup"})


def prompt(number: int) -> None:
    hook("user-prompt-submit", {"prompt": QUESTIONS[number % len(QUESTIONS)], "session_id": f"p{time.time_ns()}"})


def hook(event: str, given: dict[str, object]) -> None:
    spawn([sys.executable, "-m", "quaid", "hook", event], {"session_id": "s1", "cwd": "/", **given})


def spawn(command: list[str], given: dict[str, object]) -> None:
    subprocess.run(command, input=json.dumps(given).encode(), capture_output=True, check=True)


if __name__ == "__main__":
    main()
