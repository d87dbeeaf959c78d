"""A year of a memory whose owner's life changes: days of conversation, nights, and questions that are answered now and then.

    python tests/benchmarks/year.py [--days 365] [--facts 5] [--json result.json]
    python tests/benchmarks/year.py --days 86 --facts 19

The life and the stand-in for a model are in life.py. Both lives come to some 1,600 facts: a year with five new facts a
day, and twelve dense weeks with nineteen. Every day is a conversation, two nights of three the janitor runs, every
second day Maya answers one question, and one day of twenty has no model. What must hold is checked as it goes: what is
pinned, verified or was used lately is there, and at the end the index equals a rebuilt one.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import life
from bench import commit_all, describe_machine, make_parser, processor_s, save, use_model

from quaid import Memory
from quaid.janitor.questions import Answer, Question
from quaid.janitor.runner import RunOptions

BEGIN = datetime(2025, 11, 17, tzinfo=UTC)
SHOWN_ON = (0, 20, 42, 62, 86, 120, 160, 200, 240, 280, 320, 360)
NIGHTS = 0.62
WITHOUT_MODEL = 20
"""One day of so many has no model."""
ASKED_A_DAY = 3
PINNED = (
    "The passport of Maya lies in the blue drawer of the desk.",
    "Maya's emergency contact is Ida Brandt.",
    "The insurance of the flat ends on 30 September 2027.",
)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--facts", type=int, default=5, help="told a day")
    parser.add_argument("--keep", help="keep the vault in this folder")
    options = parser.parse_args()
    print(describe_machine(), flush=True)
    began = processor_s()
    with tempfile.TemporaryDirectory(prefix="quaid-year-") as folder:
        rows = Year(Path(options.keep or folder), options.facts).live(options.days)
    save(options.json, {"days": options.days, "rows": rows, "processor, s": processor_s() - began})
    print(f"\nprocessor time: {processor_s() - began:,.0f} s")
    print(print_table(rows))


def print_table(rows: list[dict[str, Any]]) -> str:
    """Return the rows as a table of markdown, a column for each day."""
    lines = [f"| day | {' | '.join(str(row['day']) for row in rows)} |", f"|---|{'--:|' * len(rows)}"]
    lines += [f"| {name} | {' | '.join(str(row[name]) for row in rows)} |" for name in rows[0] if name != "day"]
    return "\n".join(lines)


class Year:
    """A vault, its owner's days and its nights."""

    def __init__(self, folder: Path, facts: int) -> None:
        self._facts = facts
        self._folder = folder
        self._root = folder / "vault"
        self._chance = random.Random(7)
        self._model = life.StandIn()
        self._closed = self._nights = 0
        self._used: dict[str, int] = {}
        self._since: dict[str, float] = Counter()
        self._kept: list[str] = []

    def live(self, days: int) -> list[dict[str, Any]]:
        """Return a row of figures for each day of SHOWN_ON and the last one."""
        shown = sorted({*(day for day in SHOWN_ON if day <= days), days})
        memory, _ = Memory.create(self._root, life.NAMES)
        with memory:
            self._kept = [memory.remember(text, pinned=True).path for text in PINNED]
        rows = []
        try:
            for day in range(days + 1):
                self._live_day(day)
                if day in shown or self._chance.random() < NIGHTS:
                    self._sleep(day)
                if day in shown:
                    rows.append(self._measure(day))
                    print(json.dumps(rows[-1]), flush=True)
            with Memory.open(self._root) as memory:
                assert memory.verify().ok
        finally:
            self._model.close()
        return rows

    # -- a day ---------------------------------------------------------------------------------------------------

    def _live_day(self, day: int) -> None:
        use_model(self._model.url)
        has_model = day % WITHOUT_MODEL != WITHOUT_MODEL - 3
        talk = write_talk(self._folder / f"day-{day}.jsonl", day, life.live_day(day, self._facts, self._chance))
        with Memory.open(self._root) as memory:
            done = memory.extract(talk, facts=has_model)
            assert done.problem is None, done.problem
            for question, _ in self._chance.sample(life.questions_on(day), ASKED_A_DAY):
                for hit in memory.recall(question, 3, depth="fast", now=_clock(day, 19)).hits:
                    self._used[hit.path] = day
            if day % 2:
                for asked in memory.janitor.open_questions()[:1]:
                    memory.janitor.answer(asked.rel_path, decide(asked, day))
        if day % 3 == 2:
            self._edit(day)

    def _edit(self, day: int) -> None:
        path = self._chance.choice(sorted((self._root / "facts").rglob("*.md")))
        path.write_text(path.read_text(encoding="utf-8") + f"\nA remark of day {day}.\n", encoding="utf-8")
        commit_all(self._root, f"day {day}")

    # -- a night -------------------------------------------------------------------------------------------------

    def _sleep(self, day: int) -> None:
        self._model.spent, began = life.Spent(), processor_s()
        with Memory.open(self._root) as memory:
            report = memory.janitor.run(RunOptions(), _clock(day, 27))
        assert not report.failed, report.failed
        assert not report.lost, report.lost
        self._nights += 1
        self._closed += report.closed
        self._since["nights"] += 1
        self._since["tokens"] += sum(self._model.spent.tokens.values())
        self._since["processor"] += processor_s() - began
        self._since.update({f"tokens of {name}": tokens for name, tokens in self._model.spent.tokens.items()})
        self._check(day)

    def _check(self, day: int) -> None:
        gone = [path for path in self._kept if not (self._root / path).exists()]
        assert not gone, f"pinned or verified, and gone: {gone}"
        lately = [path for path, when in self._used.items() if day - when < 30 and path.startswith("facts/")]
        with Memory.open(self._root) as memory:
            lost = [path for path in lately if not (self._root / path).exists() and not _is_decided(memory, path)]
        assert not lost, f"used lately, and gone: {lost}"
        left = subprocess.run(["git", "status", "--porcelain"], cwd=self._root, capture_output=True, check=True).stdout
        assert left == b"", left

    # -- the figures ---------------------------------------------------------------------------------------------

    def _measure(self, day: int) -> dict[str, Any]:
        began = processor_s()
        with Memory.open(self._root) as memory:
            again = memory.janitor.run(RunOptions(), _clock(day, 27, minutes=5))
        idle_s = processor_s() - began
        with Memory.open(self._root) as memory:
            facts = memory.index().execute(
                "SELECT count(*) FROM documents WHERE kind = 'fact' AND status = 'active' AND superseded_by IS NULL"
            )
            answers = {
                question: [
                    hit.text for hit in memory.recall(question, 10, depth="fast", keep=False, now=_clock(day, 32)).hits
                ]
                for question, _ in life.questions_on(day)
            }
            user = (self._root / "USER.md").read_text(encoding="utf-8")
            session = memory.context()
            since, self._since = self._since, Counter()
            count = max(1, since["nights"])
            row = {
                "day": day,
                "nights": self._nights,
                "active facts": facts.fetchone()[0],
                "conversations that wait": len(memory.list_waiting()),
                "questions open": len(memory.janitor.open_questions()),
                "questions closed by themselves": self._closed,
                "USER.md, bytes": len(user.encode()),
                "of 8 values: old one above the new one": sum(
                    puts_old_first(answers[value.question], now, old) for value, now, old in life.current(day)
                ),
                "of 8 values: old one in USER.md": sum(
                    any(one in user for one in old) for _, _, old in life.current(day)
                ),
                f"of {len(life.LASTING)} lasting things: in a session's context": sum(
                    word in session for word in life.LASTING
                ),
                "right answer first": self._count_right(day, answers),
                "packs": len(list((self._root / ".git/objects/pack").glob("*.pack"))),
                "tokens a night": round(since["tokens"] / count),
                "processor time of a night, s": round(since["processor"] / count, 1),
                "of an idle night, s": round(idle_s, 1),
                "idle night changed something": again.changed,
            }
        parts = {name.removeprefix("tokens of "): round(n / count) for name, n in since.items() if "of" in name}
        print(f"day {day}: {parts}; {Counter(f'{q.task} {q.kind}' for q in self._open())}", flush=True)
        return row

    def _open(self) -> list[Question]:
        with Memory.open(self._root) as memory:
            return memory.janitor.open_questions()

    def _count_right(self, day: int, answers: Mapping[str, list[str]]) -> str:
        asked = life.questions_on(day)
        wrong = [question for question, named in asked if not any(named in text for text in answers[question][:1])]
        print(f"day {day}: not first: {wrong}", flush=True)
        return f"{len(asked) - len(wrong)}/{len(asked)}"


def write_talk(path: Path, day: int, told: list[str]) -> Path:
    """The day's conversation as JSONL, a turn a minute."""
    lines: list[dict[str, Any]] = [{"session": f"day-{day}", "started": _clock(day, 9).isoformat()}]
    for place, text in enumerate(told):
        at = _clock(day, 9, minutes=2 * place)
        lines.append({"role": "user", "speaker": life.OWNER, "content": text, "timestamp": at.isoformat()})
        answer = {"role": "assistant", "speaker": "Assistant", "content": life.reply(day, place)}
        lines.append({**answer, "timestamp": (at + timedelta(minutes=1)).isoformat()})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def decide(question: Question, day: int) -> Answer:
    """Return what Maya answers: what is out of date is not written, and what holds now is true."""
    text = question.data.decode("utf-8", "replace")
    now = {value.name: holds for value, holds, _ in life.current(day)}

    def is_true(line: str) -> bool | None:
        found = life.read_value(line)
        return None if found is None else now[found[0].name] == found[1]

    if "both" in question.answers:
        boxes = re.findall(r"^- \[[ xX]\] ([ab]): (.*?) \(\[\[", text, re.MULTILINE)
        true = [box for box, line in boxes if is_true(line)]
        return true[0] if len(true) == 1 else "both"
    quoted = [is_true(line) for line in re.findall(r'"([^"]+)"', question.title)]
    if question.kind == "reject":
        return "yes" if life.is_trivia(question.title) else "no"
    if question.kind == "supersede":
        return "no" if quoted[1:] == [False] else "yes"
    if question.kind in {"promote", "fold"}:
        added = re.findall(r"^- (.*)$", text, re.MULTILINE)
        return "no" if any(is_true(line) is False for line in added) else "yes"
    return "yes"


def puts_old_first(texts: list[str], now: str, old: set[str]) -> bool:
    """Return whether an old value is shown above the one that holds."""
    right = next((place for place, text in enumerate(texts) if now in text), len(texts))
    wrong = next((place for place, text in enumerate(texts) if any(one in text for one in old)), len(texts))
    return wrong < right


def _is_decided(memory: Memory, path: str) -> bool:
    """Whether the janitor has removed it, as the owner has agreed or because another fact says the same."""
    return any("janitor" in commit.subject for commit in memory.git.log(paths=(path,), limit=1))


def _clock(day: int, hour: int, minutes: int = 0) -> datetime:
    return BEGIN + timedelta(days=day, hours=hour, minutes=minutes)


if __name__ == "__main__":
    main()
