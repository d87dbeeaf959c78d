"""Play a scenario: conversations over some days, nights between them, and what is known, believed and answered after them.

A scenario is a folder with a transcript of each session, `expected.json`, and files of answers that a model gave. The model
is a local service that repeats these answers; all else is Quaid's own work.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any

from janitor_context import Scripted
from janitor_facts import answer_pairs, pairs_in

from quaid import Memory
from quaid.janitor.runner import RunOptions
from quaid.vault import frontmatter

BUDGET = 1500
"""Tokens that an answer may have."""
_RELATED = r"^(\d+)\. (.*) \((?:said|until) [^()]*\)$"
"""A fact that the model is shown as one that it may replace."""
_LINK = re.compile(r"\[\[(?:[^\]|]*\|)?([^\]]*)\]\]")


@dataclass
class Outcome:
    """What a scenario led to. `missing`: facts that nothing in the memory states now; `believed`: what is not so, and is
    held for true; `unanswered`: questions without their answer in the budget; `outdated`: questions to which the first
    hit gives an old value.
    """

    missing: list[str] = field(default_factory=list)
    believed: list[str] = field(default_factory=list)
    unanswered: list[str] = field(default_factory=list)
    outdated: list[str] = field(default_factory=list)
    questions_open: int = 0

    def count(self) -> str:
        parts = ("missing", "believed", "unanswered", "outdated")
        return ", ".join(f"{len(getattr(self, name))} {name}" for name in parts) + f", {self.questions_open} open"


class RecordedModel(Scripted):
    """Repeats `answers`: the facts of each session, verdicts about pairs of texts, and rejections with their reasons."""

    def __init__(self, answers: dict[str, Any]) -> None:
        super().__init__(extract=self._extract, compare=self._compare, resolve=self._resolve, review=self._review)
        self._recorded = answers

    def _extract(self, question: str) -> dict[str, Any]:
        session = re.search(r"^id: (\S+)$", question, re.MULTILINE)
        assert session is not None
        answer = json.loads(json.dumps(self._recorded["sessions"][session[1]]))
        shown = {text: n for n, text in re.findall(_RELATED, question, re.MULTILINE)}
        for fact in answer["facts"]:
            for name in fact.keys() & {"replaces", "confirms"}:
                text = fact.pop(name)
                fact.update({name: shown[text]} if text in shown else {})
        return answer

    def _verdict(self, a: str, b: str) -> str | None:
        found = [how for *pair, how in self._recorded["pairs"] if {a, b} == set(pair)]
        return found[0] if found else None

    def _compare(self, question: str) -> dict[str, Any]:
        judged = []
        for n, a, b in pairs_in(question):
            verdict = self._verdict(a, b)
            judged.append({"n": n, "verdict": verdict or "different"} | ({"reason": _WHY} if verdict else {}))
        return answer_pairs(judged)

    def _resolve(self, question: str) -> dict[str, Any]:
        pairs = []
        for n, a, b in pairs_in(question):
            later = next(pair[1] for pair in self._recorded["pairs"] if {a, b} == set(pair[:2]))
            keep = {"resolution": "keep_a" if a == later else "keep_b", "reason": _WHY}
            verdict = "update" if self._verdict(a, b) == "update" else "contradiction"
            pairs.append({"n": n, "verdict": verdict, **keep})
        return {"pairs": pairs}

    def _review(self, question: str) -> dict[str, Any]:
        approved, verdicts = [], []
        for line in _list_lines(question):
            if why := self._recorded["reject"].get(line["text"]):
                verdicts.append({"n": line["n"], "verdict": "reject", "reason": why})
            else:
                approved.append(line["n"])
        return {"approve": approved, "verdicts": verdicts}


_WHY = "Lena stated the other one later."


def _list_lines(question: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in question.splitlines() if line.startswith('{"n"')]


def play(folder: Path, root: Path) -> None:
    """Create the vault at `root` and live through the scenario in `folder`; a model is set in the environment."""
    expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    Memory.create(root, expected["owner"])[0].close()
    with Memory.open(root) as memory:
        for path in sorted(folder.glob("*.jsonl")):
            memory.extract(path)
            if night := expected["nights"].get(path.stem):
                memory.janitor.run(RunOptions(), datetime.fromisoformat(night))


def judge(folder: Path, root: Path) -> Outcome:
    """Return what the memory at `root` knows of what `folder` expects, before any question is answered."""
    expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    asked = datetime.fromisoformat(expected["asked"])
    outcome = Outcome()
    with Memory.open(root) as memory:
        texts = list_believed(root, asked.date())
        outcome.missing = [known for known in expected["known"] if not _match(known, texts)]
        outcome.believed = [text for wrong in expected["not_so"] for text in texts if re.search(wrong, text)]
        outcome.questions_open = len(memory.janitor.open_questions())
        for each in expected["questions"]:
            at = {"at": date.fromisoformat(each["at"])} if "at" in each else {}
            hits = memory.recall(each["question"], budget=BUDGET, now=asked, **at).hits
            if not _match(each["answer"], [hit.text for hit in hits]):
                outcome.unanswered.append(each["question"])
            if "old" in each and hits and _match(each["old"], [hits[0].text]):
                outcome.outdated.append(each["question"])
    return outcome


def list_believed(root: Path, day: date) -> list[str]:
    """Return the texts of the facts that hold on `day`, and that no open question would replace or reject."""
    doubted = {
        link.strip("[]")
        for path in root.glob("review/*.md")
        for link in frontmatter.parse(path.read_text(encoding="utf-8")).fields.get("replaces", ())
    }
    found = []
    for path in sorted(root.glob("facts/**/*.md")):
        note = frontmatter.parse(path.read_text(encoding="utf-8"))
        head = note.fields
        ends = head.get("valid_until")
        is_over = "superseded_by" in head or head.get("status") not in {"pending", "approved", "active"}
        if not is_over and path.stem not in doubted and (ends is None or str(ends) >= day.isoformat()):
            found.append(_LINK.sub(r"\1", note.body.strip().splitlines()[0]))
    return found


def _match(pattern: str, texts: Sequence[str]) -> bool:
    return any(re.search(pattern, text) for text in texts)
