"""One night in a large vault: how long the worktree, and how long the whole run takes beside the model's own time.

    python tests/benchmarks/night.py [--notes 10000] [--pending 200] [--keep FOLDER] [--json result.json]

The vault is the one of scale.py (FOLDER/quaid-scale-NOTES, made where it is missing), copied. A local service answers
at once, by rule.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench import describe_machine, make_parser, print_figures, save, timed, use_model
from janitor_context import Scripted
from janitor_facts import pairs_in
from scale import PEOPLE, scale_vault, statement

from quaid import Memory
from quaid.capture.facts import NewFact, plan_fact
from quaid.janitor.runner import RunOptions
from quaid.janitor.worktree import open_worktree
from quaid.model import Message
from quaid.trust import trust
from quaid.vault import transaction


def main() -> None:
    parser = make_parser(__doc__, keep=True)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--pending", type=int, default=200)
    options = parser.parse_args()
    print(describe_machine())
    figures = measure(options.notes, options.pending, options.keep)
    print_figures(figures)
    save(options.json, {"figures": figures})


def measure(notes: int, pending: int, keep: str | None) -> dict[str, float]:
    source = scale_vault(Path(keep or tempfile.gettempdir()), notes)
    folder = Path(tempfile.mkdtemp())
    root = Path(shutil.copytree(source, folder / "vault", symlinks=True))
    trust(root)
    subprocess.run(["git", "status", "--porcelain"], cwd=root, capture_output=True, check=True)  # reads each file anew
    model = Scripted(review=answer_review, compare=answer_pairs)
    use_model(model.url)
    try:
        with Memory.open(root) as memory:
            learn(memory, root, pending)
            memory.sync()
            head = memory.git.state().head
            started = time.perf_counter()
            with open_worktree(memory, "measured", head):
                bench_s = time.perf_counter() - started
            now = datetime.now(UTC)
            first, first_s = timed(lambda: memory.janitor.run(RunOptions(), now))
            second, second_s = timed(lambda: memory.janitor.run(RunOptions(), now + timedelta(minutes=1)))
            assert not first.failed, first.failed
            assert not first.lost, first.lost
            assert memory.verify().ok
            count = memory.index().execute("SELECT count(*) FROM documents").fetchone()[0]
    finally:
        model.close()
        shutil.rmtree(folder)
    return {
        "notes": float(count), "pending": float(pending), "worktree, s": bench_s, "the night, s": first_s,
        "done": float(len(first.done)), "asked": float(len(first.asked)), "held back": float(len(first.held_back)),
        "calls of a model": float(first.usage.calls), "once more, s": second_s, "done once more": float(len(second.done)),
    }  # fmt: skip


def learn(memory: Memory, root: Path, count: int) -> None:
    """`count` new facts, as an extraction writes them."""
    chance = random.Random(11)
    now = datetime.now(UTC) - timedelta(days=1)
    told = [f"{statement(chance, 500_000 + number)}." for number in range(count)]
    planned = [plan_fact(NewFact(text, speaker=chance.choice(PEOPLE), status="pending"), now)[1] for text in told]
    with transaction.begin(root, memory.git, 5):
        transaction.apply(root, transaction.VaultChange("facts", tuple(planned), Message("extract: facts")), memory.git)


def answer_review(question: str) -> dict:
    lines = [json.loads(line) for line in question.splitlines() if line.startswith('{"n"')]
    verdicts = [
        {
            "n": line["n"],
            "verdict": "reject" if line["n"] % 3 == 0 else "approve",
            "rewrite": None,
            "reason": "By rule.",
        }
        for line in lines
    ]
    return {"approve": [], "verdicts": verdicts}


def answer_pairs(question: str) -> dict:
    """All pairs are different."""
    return {"different": [n for n, _, _ in pairs_in(question)], "pairs": []}


if __name__ == "__main__":
    main()
