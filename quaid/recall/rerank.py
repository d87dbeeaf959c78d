"""A model's judgement of the best candidates: a grade for each, and the question as a statement (HyDE), in one call."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quaid.index.documents import Document
    from quaid.llm import Models
    from quaid.open_vault import OpenVault

PROMPT = "rerank"
MAX_JUDGED = 20
"""The best candidates, which are given to the model; those behind them keep their scores."""
MAX_REACHED = 10
"""At depth deep, so many more that the graph led to: twice the width of its beam."""
MAX_CHARACTERS = 1200
"""The characters of each candidate that are read: a turn says what it says at its beginning."""
BEST_GRADE = 5
RERANK_BUDGET_S = 2.5
"""A recall waits this long for the model's grades in total; late ones are dropped."""
SHARE = 0.6


@dataclass(frozen=True, slots=True)
class Grading:
    """A model's judgement of candidates."""

    statement: str
    """The question worded as the memory that would answer it (HyDE, Gao et al. 2022)."""
    grades: Mapping[int, int]
    """Index of the candidate -> grade, 0 (nothing to do with it) to 5 (answers it). A candidate may have none."""


def as_line(number: int, candidate: Document) -> str:
    """Return what a judge reads of a candidate, as the `number`th line of JSON: no text can end its own line and begin
    another candidate. The day is that on which it was stated or became true.
    """
    day = (candidate.valid_from or candidate.said_at or candidate.created or "")[:10]
    with suppress(ValueError):  # a month, or what somebody has written by hand
        day = f"{date.fromisoformat(day):%a %Y-%m-%d}"
    speaker, text = candidate.turn_speaker or candidate.speaker, candidate.text[:MAX_CHARACTERS]
    fields = {"n": number, "speaker": speaker, "date": day or None, "text": text}
    return json.dumps({name: value for name, value in fields.items() if value is not None}, ensure_ascii=False)


class Judge:
    """The fast tier of a vault's models as a judge. No provider is looked for before a question needs it."""

    def __init__(self, vault: OpenVault) -> None:
        self._vault = vault

    def is_ready(self) -> bool:
        """Return whether there is a model to call. Raises `model_refusal` of the vault, where that is set."""
        if self._vault.model_refusal is not None:
            raise self._vault.model_refusal
        return self._vault.models.describe().provider is not None

    def judge(self, query: str, memories: Sequence[Document], budget_s: float) -> Grading:
        """Return what `judge_memories` does."""
        models = self._vault.models
        # A cached answer would store the question, in other words.
        is_stored = self._vault.settings.recall.log == "text"
        return judge_memories(models if is_stored else models.without_answers(), query, memories, budget_s)


def judge_memories(models: Models, query: str, memories: Sequence[Document], budget_s: float) -> Grading:
    """Return the judgement of the first 30 of `memories`. The same question about the same memories is asked once while
    `models` caches answers.

    The grades come in the order of the memories. If their number is wrong, none can be assigned: the model is asked
    once more if there is time, and otherwise none counts.

    Raises:
        ModelError: one of its children, as for `Models.ask`.
    """
    judged = memories[: MAX_JUDGED + MAX_REACHED]

    def check(value: Mapping[str, Any]) -> list[str]:
        given = len(value["grades"])
        return [f"there are {given} grades for {len(judged)} memories"] if given != len(judged) else []

    lines = (as_line(number, memory) for number, memory in enumerate(judged, 1))
    inputs = {"question": query, "memories": "\n".join(lines)}
    answer = models.ask(models.prompt(PROMPT), inputs, check=check, deadline_s=budget_s)
    statement = " ".join(str(answer.value["statement"]).split())
    given = () if answer.problems else answer.value["grades"]
    return Grading(statement or query, {n: grade for n, grade in enumerate(given) if grade is not None})


def blend(score: float, grade: int) -> float:
    """Return `0.6 * grade / 5 + 0.4 * score`."""
    return SHARE * grade / BEST_GRADE + (1 - SHARE) * score
