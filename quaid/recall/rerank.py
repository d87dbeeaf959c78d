"""The judgement of the best candidates: by a language model, a grade for each and the question as a statement (HyDE) in
one call; by a local cross-encoder, a logit for each.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date
from typing import TYPE_CHECKING, Any, NamedTuple

from quaid.embed import open_reranker
from quaid.errors import EmbeddingError, WeightsMissingError
from quaid.recall import scoring
from quaid.recall.search import Search, convex, min_max

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
"""The part of the new score that is the judgement's; the rest is the score from before it."""
MAX_SCORED = 30
"""The best candidates, which a cross-encoder reads."""
SCORING_BUDGET_S = 0.3
"""A recall waits this long for a cross-encoder; candidates that it has not read by then keep their places."""


class Grading(NamedTuple):
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


def score_pairs(search: Search, model: str) -> None:
    """Let a local cross-encoder order the best that may be shown, within its time budget. What it has not read keeps
    its place, and the answer says so. A note whose name is the question stays first.
    """
    called, matched = search.called_chunks(), {chunk_id for chunk_id, _ in search.rankings.get("keyword", ())}
    ranked = [each for each in search.ranked if each.chunk_id not in called]
    best = [each for each in ranked if scoring.reason(each, search, matched)][:MAX_SCORED]
    with search.trace.stage("score_pairs") as noted:
        texts = [f"{each.turn_speaker or ''}: {each.text}".removeprefix(": ")[:MAX_CHARACTERS] for each in best]
        try:
            logits = open_reranker(model).score(search.query.text, texts, SCORING_BUDGET_S)
        except (WeightsMissingError, EmbeddingError) as error:
            search.degraded.append(f"reranker: {error}")
            return
        scored = {each.chunk_id: logit for each, logit in zip(best, logits, strict=True) if logit is not None}
        noted |= {"candidates": len(best), "scored": len(scored)}
    if len(scored) < len(best):
        read = f"{len(scored)} of {len(best)} candidates were read in {1000 * SCORING_BUDGET_S:.0f} ms"
        search.degraded.append(f"reranker: {read}; the others keep their places")
    search.scores |= reorder(search.scores, scored)
    search.ranked.sort(key=lambda each: -search.scores[each.chunk_id])  # equal ones keep their order


def reorder(scores: Mapping[int, float], logits: Mapping[int, float]) -> dict[int, float]:
    """Return the scores of the candidates that have a logit, ordered by both: `0.6 * logit + 0.4 * score`, each moved
    to [0, 1] over these candidates. The best gets the best of their scores, and so on.

    So a model that nobody has calibrated changes the order alone: what is in doubt or too far behind the best stays so.
    Source: Bruch et al., "An Analysis of Fusion Functions for Hybrid Retrieval", TOIS 2023 (`convex`).
    """
    before = {chunk_id: scores[chunk_id] for chunk_id in logits}
    scaled, scaled_logits = (min_max([*each.items()], min(each.values(), default=0.0)) for each in (before, logits))
    fused = convex(scaled, scaled_logits, SHARE)
    order = sorted(before, key=lambda chunk_id: (-fused[chunk_id], -before[chunk_id]))
    return dict(zip(order, sorted(before.values(), reverse=True), strict=True))
