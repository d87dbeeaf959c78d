"""A year of nights: 2,000 facts, a model that answers by rule, and an owner who edits, asks and answers every day.

    python tests/benchmarks/nights.py [--nights 365] [--facts 2000] [--json result.json]

What must hold is checked as it goes: what is pinned, verified or was used lately is there, a second run of a night does
nothing, and at the end the index equals one built from nothing.
"""

from __future__ import annotations

import json
import random
import shutil
import statistics
import subprocess
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench import commit_all, describe_machine, make_parser, print_figures, save, timed, use_model
from janitor_context import Scripted
from janitor_facts import pairs_in
from scale import PEOPLE, question, statement

from quaid import Memory
from quaid.capture.facts import NewFact, plan_fact
from quaid.janitor.runner import RunOptions
from quaid.model import Message
from quaid.vault import transaction

BEGIN = datetime(2026, 11, 22, 3, 30, tzinfo=UTC)
LEARNED_A_DAY = 3
ASKED_A_DAY = 5
MARKED = 40


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--nights", type=int, default=365)
    parser.add_argument("--facts", type=int, default=2000)
    options = parser.parse_args()
    print(describe_machine())
    figures = live(options.nights, options.facts)
    print_figures(figures)
    save(options.json, {"figures": figures})


def live(nights: int, count: int) -> dict[str, float]:
    folder = Path(tempfile.mkdtemp())
    root = folder / "vault"
    chance = random.Random(7)
    kept = generate(root, count, chance)
    model = Scripted(review=answer_review, compare=answer_pairs)
    use_model(model.url)
    took: list[float] = []
    used: dict[str, int] = {}
    sums = dict.fromkeys(("decided", "asked", "held back", "answered", "empty nights"), 0)
    try:
        for night in range(nights):
            with Memory.open(root) as memory:
                _day(memory, root, night, chance, used)
                now = BEGIN + timedelta(days=night)
                report, took_s = timed(lambda memory=memory, now=now: memory.janitor.run(RunOptions(), now))
                took.append(took_s)
                assert not report.failed, report.failed
                assert not report.lost, report.lost
                sums["decided"] += len(report.done)
                sums["asked"] += len(report.asked)
                sums["held back"] += len(report.held_back)
                sums["answered"] += len(report.answered)
                sums["empty nights"] += not report.changed
                if night % 15 == 0:
                    again = memory.janitor.run(RunOptions(), BEGIN + timedelta(days=night))
                    assert not again.changed, [decision.subject for decision in (*again.done, *again.asked)]
                    _check(memory, root, kept, used, night)
            if night % 30 == 0:
                print(f"night {night}: {took[-1]:.1f} s, {_size_mb(root):.1f} MB", flush=True)
        with Memory.open(root) as memory:
            _check(memory, root, kept, used, nights)
            assert memory.verify().ok
            facts = memory.index().execute("SELECT count(*) FROM documents WHERE kind = 'fact'").fetchone()
    finally:
        model.close()
    figures = {
        "nights": float(nights),
        "facts at the end": float(facts[0]),
        "a night, median s": statistics.median(took),
        "the longest, s": max(took),
        **{name: float(number) for name, number in sums.items()},
        "repository, MB": _size_mb(root),
        "repository after git gc, MB": _packed_mb(root),
    }
    shutil.rmtree(folder)
    return figures


def generate(root: Path, count: int, chance: random.Random) -> list[str]:
    """`count` facts that Quaid has written; the paths of those that are pinned or verified."""
    memory, _ = Memory.create(root)
    kept, changes = [], []
    with memory:
        for number in range(count):
            now = BEGIN - timedelta(days=400) + timedelta(hours=4 * number)
            speaker, text = chance.choice(PEOPLE), f"{statement(chance, number)}."
            _, edit = plan_fact(NewFact(text, speaker=speaker, pinned=number % 100 == 0), now)
            if number % 100 == 50:
                after = (edit.after or b"").replace(b"status: active", b"status: active\nverified: true", 1)
                edit = type(edit)(edit.rel_path, None, after)
            if number % 50 == 0:
                kept.append(edit.rel_path)
            changes.append(edit)
        with transaction.begin(root, memory.git, 5):
            transaction.apply(
                root, transaction.VaultChange("facts", tuple(changes), Message("import: facts")), memory.git
            )
        memory.sync()
    return kept


def _day(memory: Memory, root: Path, night: int, chance: random.Random, used: dict[str, int]) -> None:
    """What an owner does: says something new, asks, edits a note, answers what waits."""
    for number in range(LEARNED_A_DAY):
        memory.remember(f"{statement(chance, 100_000 + night * 10 + number)}.", status="pending")
    for _ in range(ASKED_A_DAY):
        for hit in memory.recall(question(chance), 3, depth="fast").hits:
            used[hit.path] = night
    path = chance.choice(sorted((root / "facts").rglob("*.md")))
    path.write_text(path.read_text(encoding="utf-8") + f"\nA remark of day {night}.\n", encoding="utf-8")
    commit_all(root, f"day {night}")
    for open_question in memory.janitor.open_questions():
        if chance.random() < 0.3:
            memory.janitor.answer(open_question.rel_path, chance.choice(["yes", "no"]))


def _check(memory: Memory, root: Path, kept: list[str], used: dict[str, int], night: int) -> None:
    gone = [path for path in kept if not (root / path).exists()]
    assert not gone, f"pinned or verified, and gone: {gone}"
    lately = [path for path, when in used.items() if night - when < 30 and path.startswith("facts/")]
    lost = [path for path in lately if not (root / path).exists() and not _is_answered(memory, path)]
    assert not lost, f"used lately, and gone: {lost}"
    assert subprocess.run(["git", "status", "--porcelain"], cwd=root, capture_output=True, check=True).stdout == b""


def _is_answered(memory: Memory, path: str) -> bool:
    """Whether the owner has agreed that it goes."""
    return any("janitor" in commit.subject for commit in memory.git.log(paths=(path,), limit=1))


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


def _size_mb(root: Path) -> float:
    return sum(path.stat().st_size for path in (root / ".git").rglob("*") if path.is_file()) / 1e6


def _packed_mb(root: Path) -> float:
    subprocess.run(["git", "gc", "-q"], cwd=root, check=True)
    return _size_mb(root)


if __name__ == "__main__":
    main()
