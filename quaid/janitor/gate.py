"""The gate on recall: the owner's own questions, asked before and after a run. A lost answer stops the merge."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from quaid.model import Hit
from quaid.open_vault import OpenVault
from quaid.recall.answers import Answers
from quaid.recall.evaluation import EvalQuestion, find_expected, list_targets, parse_questions
from quaid.recall.options import RecallOptions
from quaid.recall.records import RecallRecords
from quaid.vault import files

if TYPE_CHECKING:
    from quaid.settings import Settings

MAX_QUESTIONS = 50
"""The number of recent questions that are asked again."""
CHECKED_HITS = 3
"""The best answers to a question from the log that must still be found …"""
DEPTH = 10
"""… among this many."""


class _Answered(NamedTuple):
    """The answer to one question; `found` is what of the expected is among the hits."""

    question: EvalQuestion
    hits: tuple[Hit, ...]
    found: frozenset[str]


class Gate:
    """The answers of a worktree to the owner's questions when the gate is made, to compare with those at the end."""

    def __init__(self, root: Path, worktree: Path, settings: Settings) -> None:
        self._questions = list_questions(root, settings)
        self._worktree = worktree
        self._settings = settings
        self._before = self._ask()

    def find_lost(self, touched: Collection[str]) -> list[str]:
        """Return a sentence for each answer that is lost by now. Hits of logged questions in the notes `touched` do not
        count, as a decision is about them.
        """
        lost: list[str] = []
        for before, now in zip(self._before, self._ask(), strict=True):
            question, left = before.question, {hit.id for hit in now.hits}
            lost += [
                f"{question.text!r} ({question.place}) would no longer find {reference}"
                for reference in question.expected
                if reference in before.found - now.found
            ]
            if not question.place:
                lost += [
                    f"{question.text!r} would no longer find {hit.id}: {hit.text[:80]}"
                    for hit in before.hits[:CHECKED_HITS]
                    if hit.id not in left and hit.path not in touched
                ]
        return lost

    def _ask(self) -> list[_Answered]:
        """Query the worktree, not the owner's files, which may have uncommitted work."""
        answers = []
        with closing(OpenVault(self._worktree, self._settings)) as vault, closing(Answers(vault)) as answering:
            for question in self._questions:
                hits = answering.recall(question.text, RecallOptions(limit=DEPTH, depth="fast"), keep=False).hits
                found = (
                    reference
                    for reference in question.expected
                    if find_expected(hits, reference, list_targets(vault.index(), reference)) is not None
                )
                answers.append(_Answered(question, hits, frozenset(found)))
        return answers


def list_questions(root: Path, settings: Settings) -> list[EvalQuestion]:
    """Return the latest questions of the log, and those of the pages in eval/ with what each must find."""
    with RecallRecords(root, settings) as books:
        found = [EvalQuestion(text) for text in books.questions(MAX_QUESTIONS)]
    for page in sorted((root / "eval").glob("*.md")):
        data = files.read_note(page.parent, page.name) or b""
        found += parse_questions(data.decode("utf-8", "replace"), page.name)
    return found
