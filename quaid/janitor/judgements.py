"""What a model says about two facts: asked in batches, checked, and kept so that it is asked once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from quaid.errors import ModelAnswerError
from quaid.janitor import wording
from quaid.janitor.vetoes import MAX_EXAMPLES
from quaid.llm.batches import batches
from quaid.llm.prices import estimate_tokens
from quaid.vault import markdown

if TYPE_CHECKING:
    from quaid.janitor.pairs import Pair
    from quaid.janitor.task_context import TaskContext

INPUT_LIMIT = 8_000
"""Tokens of pairs in one question: a model that reads too much at once judges carelessly."""
MAX_ALIKE = 10
"""A batch of so many pairs that are all called duplicates is the answer of a model that does not look."""
_OUTPUT_PER_PAIR = 160
_MIN_WORDS = 3
_MAX_REASON_CHARACTERS = 300

Problem = Callable[["Pair", "Judgement"], str | None]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a model says of two facts.

    `says` is the judgement in one word. `keep` is what becomes of the two: `a`, `b`, `merge` or `both`; `text` is the
    wording of a merge. The days (ISO) say since when and until when each holds, as far as they were given.
    """

    says: str
    keep: str = ""
    text: str | None = None
    reason: str = ""
    a_from: str | None = None
    a_until: str | None = None
    b_from: str | None = None
    b_until: str | None = None
    model: str | None = None
    prompt: str | None = None

    def render(self) -> str:
        """The judgement, and behind it what is not empty as JSON: what `parse_judgement` reads."""
        told = {key: value for key, value in asdict(self).items() if value and key != "says"}
        return f"{self.says} {json.dumps(told, ensure_ascii=False)}" if self.keep else self.says


def parse_judgement(kept: str) -> Judgement | None:
    """What `render` made; None where that cannot be read any more, so that it is asked again."""
    says, _, told = kept.partition(" ")
    try:
        return Judgement(says, **json.loads(told)) if told else Judgement(says)
    except (ValueError, TypeError):
        return None


def judge(
    context: TaskContext, task: str, pairs: Sequence[Pair], problem: Problem, most: int
) -> Iterator[tuple[Pair, Judgement]]:
    """The judgement of each of `pairs`: first those that are known, then a model's, batch by batch, for `most` pairs at
    most. Pairs without a judgement are left out. `problem` says why a judgement cannot be used; one that stays unusable
    after it was sent back counts as `unclear`.

    Raises:
        ModelError: as `Models.ask`. What was judged before that is kept.
    """
    keys = {pair.key(task): pair for pair in pairs}
    kept = {key: parse_judgement(judgement) for key, judgement in context.judgements.known(list(keys)).items()}
    known = {key: judgement for key, judgement in kept.items() if judgement is not None}
    yield from ((keys[key], judgement) for key, judgement in known.items())
    new = [pair for key, pair in keys.items() if key not in known][:most]
    if context.models is None or not new:
        return
    prompt = context.models.prompt(task)
    made = batches(
        new,
        tokens_of=lambda pair: estimate_tokens(_line(1, pair)),
        input_limit=INPUT_LIMIT,
        output_per_item=_OUTPUT_PER_PAIR,
        output_limit=prompt.max_output_tokens,
    )
    done = 0
    for batch in made:
        if context.progress is not None:
            context.progress(f"Judging ({task})", done, len(new))
        judgements = _ask(context, task, batch, problem)
        context.judgements.add(task, {pair.key(task): judgement.render() for pair, judgement in judgements.items()})
        yield from judgements.items()
        done += len(batch)


def _ask(context: TaskContext, task: str, batch: Sequence[Pair], problem: Problem) -> dict[Pair, Judgement]:
    assert context.models is not None
    prompt = context.models.prompt(task)

    def check(value: Mapping[str, Any]) -> list[str]:
        return [*_misnumbered(value["pairs"], len(batch)), *_careless(value["pairs"]), *(
            f"pair {n}: {wrong}"
            for n, judgement in _read(value["pairs"], len(batch)).items()
            if (wrong := problem(batch[n - 1], judgement)) is not None
        )]  # fmt: skip

    inputs = {
        "pairs": "\n".join(_line(n, pair) for n, pair in enumerate(batch, 1)),
        "vetoes": "\n".join(json.dumps(veto.subject, ensure_ascii=False) for veto in context.vetoes[:MAX_EXAMPLES]),
    }
    answer = context.models.ask(prompt, inputs, check=check)
    if _careless(answer.value["pairs"]):
        raise ModelAnswerError(
            answer.model, answer.prompt, _careless(answer.value["pairs"])[0], json.dumps(answer.value)
        )
    judgements: dict[Pair, Judgement] = {}
    for n, judgement in _read(answer.value["pairs"], len(batch)).items():
        pair = batch[n - 1]
        usable = problem(pair, judgement) is None
        judgements[pair] = (
            replace(judgement, model=answer.model, prompt=answer.prompt) if usable else Judgement("unclear")
        )
    return judgements


def merged_text_problem(pair: Pair, text: str | None) -> str | None:
    """Why `text` cannot take the place of both: it is no plain sentence, or not what both say."""
    if not text:
        return "merged_text is missing"
    if len(text.split()) < _MIN_WORDS or markdown.plain(text) != text or "[[" in text:
        return "merged_text must be one plain sentence"
    found = wording.problem_of(text, (pair.a.text, pair.b.text))
    return f"merged_text is not what both say: {found}" if found else None


def _read(given: Sequence[Mapping[str, Any]], count: int) -> dict[int, Judgement]:
    """Judgements by number. A number that nobody gave counts for nothing, one that comes twice neither."""
    numbers = [item["n"] for item in given]
    return {
        item["n"]: Judgement(
            item["verdict"],
            (item.get("keep") or item.get("resolution") or "").removeprefix("keep_"),
            " ".join((item.get("merged_text") or "").split()) or None,
            " ".join(item["reason"].split())[:_MAX_REASON_CHARACTERS],
            *((item.get(day) or None) for day in ("a_from", "a_until", "b_from", "b_until")),
        )
        for item in given
        if item["n"] <= count and numbers.count(item["n"]) == 1
    }


def _misnumbered(given: Sequence[Mapping[str, Any]], count: int) -> list[str]:
    numbers = sorted(item["n"] for item in given)
    return [] if numbers == list(range(1, count + 1)) else [f"each of the pairs 1 to {count} must be judged once"]


def _careless(given: Sequence[Mapping[str, Any]]) -> list[str]:
    says = {item["verdict"] for item in given}
    if len(given) >= MAX_ALIKE and says == {"duplicate"}:
        return [f"all {len(given)} pairs are called duplicates"]
    return []


def _line(number: int, pair: Pair) -> str:
    """One line of JSON: no text can end its own line and begin a pair that is none."""
    return json.dumps({"n": number, "a": _shown(pair.a), "b": _shown(pair.b)}, ensure_ascii=False)


def _shown(fact: Any) -> dict[str, str]:
    told = {"text": fact.text, "said": (fact.created or "")[:10], "from": fact.valid_from, "until": fact.valid_until}
    return {key: value for key, value in told.items() if value}
