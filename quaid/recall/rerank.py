"""A model's judgement of the best candidates: a grade for each, and the question as a statement (HyDE), in one call."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from quaid.llm import Models

PROMPT = "rerank"
MAX_JUDGED = 20
"""Candidates that are given to the model; those behind them keep their scores."""
MAX_CHARACTERS = 1200
"""The characters of each candidate that are read: a turn says what it says at its beginning."""
BEST_GRADE = 5
SHARE = 0.6
_LOSING_GRADE = 1
_PROMISING_SCORE = 0.65


@dataclass(frozen=True, slots=True)
class Grading:
    """A model's judgement of candidates."""

    statement: str
    """The question worded as the memory that would answer it (HyDE, Gao et al. 2022)."""
    grades: Mapping[int, int]
    """Index of the candidate -> grade, 0 (nothing to do with it) to 5 (answers it). A candidate may have none."""


class Judge(Protocol):
    """A model, or a test, that judges candidates."""

    def judge(self, query: str, texts: Sequence[str], budget_s: float) -> Grading:
        """Return the judgement of `texts` as answers to `query`, in `budget_s` seconds at most, all in all.

        Raises:
            ModelError: no judgement came in that time; the ranking stands as it is.
        """


class ModelJudge:
    """The fast tier as a judge. The first 20 texts are judged. Safe to use from several threads."""

    def __init__(self, models: Models) -> None:
        self._models = models

    def judge(self, query: str, texts: Sequence[str], budget_s: float) -> Grading:
        """Return as `Judge.judge`. The same question about the same texts is asked once while `Models` keeps answers.

        Raises:
            ModelError: one of its children, as for `Models.ask`.
        """
        judged = texts[:MAX_JUDGED]
        # As lines of JSON: no text can end its own line and begin another candidate.
        lines = (
            json.dumps({"n": number, "text": text[:MAX_CHARACTERS]}, ensure_ascii=False)
            for number, text in enumerate(judged, 1)
        )
        inputs = {"question": query, "memories": "\n".join(lines)}
        answer = self._models.ask(self._models.prompt(PROMPT), inputs, deadline_s=budget_s)
        statement = " ".join(str(answer.value["statement"]).split())
        grades: dict[int, int] = {}
        for item in answer.value["grades"]:
            index = item["n"] - 1
            if index < len(judged):  # a candidate graded twice has its lower grade
                grades[index] = min(item["grade"], grades.get(index, BEST_GRADE))
        return Grading(statement or query, grades)


def blend(score: float, grade: int, share: float = SHARE) -> float:
    """Return `share * grade / 5 + (1 - share) * score`."""
    return share * grade / BEST_GRADE + (1 - share) * score


def misleading(grades: Mapping[int, int], scores: Sequence[float]) -> tuple[int, ...]:
    """Return the indices of candidates that looked right (score from .65) and are not (grade 0 or 1).

    `scores` are those before blending. Each of them loses storage strength, so that it misleads less the next time
    (competitive inhibition).
    """
    return tuple(
        index for index, grade in sorted(grades.items()) if grade <= _LOSING_GRADE and scores[index] >= _PROMISING_SCORE
    )
