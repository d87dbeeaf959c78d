"""The tokens of one night: what each prompt of the janitor takes, asked and answered, on some fifty new facts.

    python tests/benchmarks/janitor_night.py [--old 14] [--new 2] [--json result.json] [--show FOLDER]

Conversation 26 as a real model has extracted it: a night over the first sessions comes before the measured one over the
next. A local service answers each prompt in full, as a real model has where it was asked about the same. Four bytes
are a token.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench import make_parser, save, use_model
from janitor_judge import Judge
from replay import Replay, answers, write_sessions

from quaid import Memory
from quaid.janitor.runner import RunOptions
from quaid.llm.prompts import load_prompt, prompts_folder

BYTES_PER_TOKEN = 4


REASONS = (
    "It is a lasting fact about her that stands alone, and what she said bears it out in so many words.",
    "One is about the camping trip with her family in June, the other about what the children did there.",
    "It is what she wants to do with her life, and somebody may well ask about it in a few months.",
)
"""As long as a real model's: 40 judgements of facts have 21 words in the mean, those of pairs 23."""


class TalkativeJudge(Judge):
    """Gives a reason where the schema lets it, folds what it is given, and finds themes in a journal."""

    def __init__(self) -> None:
        super().__init__()
        self.answers |= {"snippets": self._fold, "journal": self._distil}

    def answer_to(self, body: dict) -> dict:
        answer = super().answer_to(body)
        for number, item in enumerate(item for items in answer.values() if isinstance(items, list) for item in items):
            if isinstance(item, dict) and len(item.get("reason") or "") < len("It is clear and so on."):
                item.update(reason=REASONS[number % len(REASONS)]) if "reason" in item else None
        return answer

    def _fold(self, question: str) -> dict:
        asked = [json.loads(line) for line in question.splitlines() if line.startswith('{"n"')]
        verdicts = [(line["n"], "fold" if line["n"] % 2 else "discard") for line in asked]
        return {"observations": [
            {"n": n, "verdict": verdict, "section": "About", "text": None, "reason": REASONS[n % len(REASONS)]}
            for n, verdict in verdicts
        ]}  # fmt: skip

    def _distil(self, question: str) -> dict:
        return {
            "themes": [
                {
                    "text": "The owner is at their best when they make things with their hands.",
                    "section": None,
                    "entries": [1],
                }
            ]
        }


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--old", type=int, default=14, help="sessions of the nights before")
    parser.add_argument("--new", type=int, default=2, help="sessions of the measured night")
    parser.add_argument("--show", help="write each question and its answer into this folder")
    options = parser.parse_args()
    figures = measure(options.old, options.new, Path(options.show) if options.show else None)
    print(f"{'prompt':<20}{'calls':>7}{'asked':>9}{'answered':>10}{'sum':>9}")
    for name, (calls, asked, answered) in figures.items():
        print(f"{name:<20}{calls:>7}{asked:>9,}{answered:>10,}{asked + answered:>9,}")
    save(options.json, figures)


def measure(old: int, new: int, show: Path | None) -> dict[str, tuple[int, int, int]]:
    """Prompt -> (calls, tokens asked, tokens answered), the sum of all at the end."""
    replay, judge = Replay(answers()), TalkativeJudge()
    use_model()
    with tempfile.TemporaryDirectory() as folder:
        memory, _ = Memory.create(Path(folder) / "vault")
        memory.close()
        sessions = write_sessions(Path(folder) / "talk")
        for days, part in enumerate((sessions[:old], sessions[old : old + new])):
            judge.requests.clear()
            os.environ["QUAID_MODELS_URL"] = replay.url
            with Memory.open(Path(folder) / "vault") as memory:
                learned = sum(len(memory.extract(path).facts) for path in part)
            os.environ["QUAID_MODELS_URL"] = judge.url
            with Memory.open(Path(folder) / "vault") as memory:
                report = memory.janitor.run(RunOptions(), datetime.now(UTC) + timedelta(days=days))
            assert not report.failed, report.failed
    replay.close()
    judge.close()
    print(f"{learned} new facts, {report.notes} notes, {len(report.done)} decisions, {len(report.asked)} questions")
    return count(judge, show)


def count(judge: Judge, show: Path | None) -> dict[str, tuple[int, int, int]]:
    prompts = [load_prompt(path.stem) for path in prompts_folder().glob("*.md")]
    found: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for number, body in enumerate(judge.asked):
        said = json.dumps(body)
        prompt = next(p for p in prompts if json.dumps(p.system[:200])[1:-1] in said)
        question = prompt.system + "".join(turn["content"] for turn in body["messages"])
        answer = json.dumps(judge.answer_to(body), ensure_ascii=False)
        for place, value in enumerate((1, tokens(question), tokens(answer))):
            found[prompt.name][place] += value
        if show is not None:
            show.mkdir(parents=True, exist_ok=True)
            (show / f"{number:02}-{prompt.name}.txt").write_text(f"{question}\n\n=== ANSWER\n\n{answer}\n")
    rows = sorted(found.items(), key=lambda item: -sum(item[1][1:]))
    sums = [sum(row[place] for _, row in rows) for place in range(3)]
    return {name: (row[0], row[1], row[2]) for name, row in (*rows, ("all", sums))}


def tokens(text: str) -> int:
    return len(text.encode()) // BYTES_PER_TOKEN


if __name__ == "__main__":
    main()
