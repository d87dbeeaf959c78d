"""A model's judgement of the best candidates: a grade for each, and the question as a statement (HyDE), in one call."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from quaid.llm import Models

PROMPT = "rerank"
MOST_JUDGED = 20
"""Candidates that are given to the model; those behind them keep their scores."""
MOST_CHARACTERS = 1200
"""Of each candidate: a turn says what it says at its beginning, and reading costs time."""
BEST_GRADE = 5
SHARE = 0.6
_LOSING_GRADE = 1
_PROMISING_SCORE = 0.65


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a model thinks of candidates."""

    statement: str
    """The question worded as the memory that would answer it (HyDE, Gao et al. 2022)."""
    grades: Mapping[int, int]
    """Index of the candidate -> grade, 0 (nothing to do with it) to 5 (answers it). A candidate may have none."""


class Judge(Protocol):
    """Whoever judges candidates."""

    def judge(self, query: str, texts: Sequence[str], budget_s: float) -> Judgement:
        """What it thinks of `texts` as answers to `query`, in `budget_s` seconds at most, all in all.

        Raises:
            ModelError: no judgement was to be had in that time; the ranking stands as it is.
        """


class ModelJudge:
    """The fast tier as a judge. The first 20 texts are judged. Safe to use from several threads."""

    def __init__(self, models: Models) -> None:
        self._models = models

    def judge(self, query: str, texts: Sequence[str], budget_s: float) -> Judgement:
        """As `Judge.judge`. The same question about the same texts is asked once, as long as `Models` keeps answers.

        Raises:
            ModelError: one of its children, as for `Models.ask`.
        """
        judged = texts[:MOST_JUDGED]
        lines = (_line(number, text) for number, text in enumerate(judged, 1))
        inputs = {"question": query, "memories": "\n".join(lines)}
        answer = self._models.ask(self._models.prompt(PROMPT), inputs, deadline_s=budget_s)
        statement = " ".join(str(answer.value["statement"]).split())
        return Judgement(statement or query, _grades(answer.value["grades"], len(judged)))


def blend(score: float, grade: int, share: float = SHARE) -> float:
    """`share * grade / 5 + (1 - share) * score` (Quaid for OpenClaw's reranker)."""
    return share * grade / BEST_GRADE + (1 - share) * score


def losers(grades: Mapping[int, int], scores: Sequence[float]) -> tuple[int, ...]:
    """Competitive inhibition: indices of candidates that looked right (score from .65) and are not (grade 0 or 1).

    `scores` are those before blending. Each loser loses storage strength, so that it misleads less the next time.
    """
    return tuple(
        index for index, grade in sorted(grades.items()) if grade <= _LOSING_GRADE and scores[index] >= _PROMISING_SCORE
    )


def _line(number: int, text: str) -> str:
    """One line of JSON: no text can end its own line and begin a candidate that is none."""
    return json.dumps({"n": number, "text": text[:MOST_CHARACTERS]}, ensure_ascii=False)


def _grades(given: Sequence[Mapping[str, int]], judged: int) -> dict[int, int]:
    """Grades by index. A candidate graded twice has its lower grade, a number that nobody gave counts for nothing."""
    grades: dict[int, int] = {}
    for item in given:
        index = item["n"] - 1
        if index < judged:
            grades[index] = min(item["grade"], grades.get(index, BEST_GRADE))
    return grades
