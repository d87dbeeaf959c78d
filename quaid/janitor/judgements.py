"""Judgements: what a model says about facts, above all about two; checked, and kept so that it is asked once."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Self, TypeVar

from quaid.claims import find_lost_words, problem_of
from quaid.janitor.model_questions import ask, by_number, judge_all, list_refused, number_problems, numbered_lines
from quaid.janitor.model_text import MAX_REASON_CHARACTERS, CarelessAnswerError, statement_problem, without_empty
from quaid.llm.exchange import ItemProblem
from quaid.llm.prices import estimate_tokens

if TYPE_CHECKING:
    from quaid.janitor.pairs import Pair
    from quaid.janitor.task_context import TaskContext

INPUT_LIMIT = 8_000
"""Tokens of pairs in one question: a model that reads too much at once judges carelessly."""
MAX_ALIKE = 10
"""A model that calls this many pairs of a batch the same, all of them, has not compared them."""
_ALL_SAME = "all {} pairs are called the same"
_OUTPUT_PER_PAIR = 60
"""Most pairs take two tokens, a merge with its text a hundred and more."""

Problem = Callable[["Pair", "Judgement"], str | None]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class JsonJudgement:
    """A judgement stored as JSON."""

    def render(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def parse(cls, kept: str) -> Self | None:
        """The stored judgement; None where it cannot be read any more, so that the model judges again."""
        try:
            return cls(**json.loads(kept))
        except (ValueError, TypeError):
            return None


@dataclass(frozen=True, slots=True)
class Judgement(JsonJudgement):
    """A model's judgement of two facts.

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
        """What is not empty as JSON, which `parse` reads: most judgements come to one word."""
        return json.dumps(without_empty(asdict(self)) if self.keep else {"says": self.says}, ensure_ascii=False)


def known_judgements(context: TaskContext, keys: Collection[str], parse: Callable[[str], T | None]) -> dict[str, T]:
    """The judgements that are kept under `keys` and that `parse` can read."""
    known = context.judgements.known(keys)
    return {key: judgement for key, text in known.items() if (judgement := parse(text)) is not None}


def judge(
    context: TaskContext, prompt: str, pairs: Sequence[Pair], problem: Problem, most: int
) -> Iterator[tuple[Pair, Judgement]]:
    """The judgement of each of `pairs`: first those that are known, then a model's, batch by batch, for `most` pairs at
    most. Pairs without a judgement are left out. `problem` says why a judgement cannot be used; one that stays unusable
    after it was sent back counts as `unclear`.
    """
    keys = {pair.key(prompt): pair for pair in pairs}
    known = known_judgements(context, list(keys), Judgement.parse)
    yield from ((keys[key], judgement) for key, judgement in known.items())
    new = [key for key in keys if key not in known][:most]
    for judgements in judge_all(
        context,
        prompt,
        {key: keys[key] for key in new},
        lambda batch: _ask(context, prompt, _by_first(batch), problem),
        lambda pair: estimate_tokens(numbered_lines([_shown(pair)])),
        lambda pair: f"{pair.a.text} / {pair.b.text}",
        input_limit=INPUT_LIMIT,
        output_per_item=_OUTPUT_PER_PAIR,
    ):
        context.judgements.add(prompt, {pair.key(prompt): judgement.render() for pair, judgement in judgements.items()})
        yield from judgements.items()


def _by_first(pairs: Sequence[Pair]) -> list[Pair]:
    """`pairs` with those of one fact behind each other."""
    places = {pair.a.id: place for place, pair in reversed(list(enumerate(pairs)))}
    return sorted(pairs, key=lambda pair: places[pair.a.id])


def show_pairs(pairs: Sequence[Pair]) -> str:
    """A line of JSON for each fact that is the first of a pair, with the others beside it, so that it is told once.
    These are numbered from 1, in the order of `pairs`.
    """
    lines: dict[str, dict[str, Any]] = {}
    for n, pair in enumerate(pairs, 1):
        shown = _shown(pair)
        lines.setdefault(pair.a.id, {"a": shown["a"], "b": []})["b"].append({"n": n, **shown["b"]})
    return "\n".join(json.dumps(line, ensure_ascii=False) for line in lines.values())


def _ask(context: TaskContext, prompt: str, batch: Sequence[Pair], problem: Problem) -> dict[Pair, Judgement]:
    def check(value: Mapping[str, Any]) -> list[str | ItemProblem]:
        given = _list_items(value)
        problems = number_problems(value, "pairs", len(batch), bare="different")
        problems += [_ALL_SAME.format(len(given))] if _is_careless(given) else []
        places = {item["n"]: place for place, item in enumerate(value["pairs"])}
        judged = ((pair, item["n"], _judgement(item)) for pair, item in by_number(given, batch))
        found = ((places.get(n), problem(pair, it) or lost_words_problem(pair, it)) for pair, n, it in judged)
        return [*problems, *(ItemProblem("pairs", place, wrong) for place, wrong in found if wrong is not None)]

    answer = ask(context, prompt, {"pairs": show_pairs(batch), "vetoes": list_refused(context)}, check)
    given = _list_items(answer.value)
    if _is_careless(given):
        reason = _ALL_SAME.format(len(given))
        raise CarelessAnswerError(answer.model, answer.prompt, reason, json.dumps(answer.value))
    judgements: dict[Pair, Judgement] = {}
    for pair, item in by_number(given, batch):
        judgement = replace(_judgement(item), model=answer.model, prompt=answer.prompt)
        judgements[pair] = judgement if problem(pair, judgement) is None else Judgement("unclear")
    return judgements


def _list_items(value: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The judgements in an answer, those that it gives as bare numbers too."""
    return [*value["pairs"], *({"n": n, "verdict": "different"} for n in value.get("different", ()))]


def merged_text_problem(pair: Pair, text: str | None) -> str | None:
    """Return why `text` cannot replace both: it is not a plain sentence, or not what both say."""
    if not text:
        return "merged_text is missing"
    if statement_problem(text, f"{pair.a.text} {pair.b.text}"):
        return "merged_text must be one plain sentence"
    found = problem_of(text, (pair.a.text, pair.b.text))
    return f"merged_text is not what both say: {found}" if found else None


def lost_words_problem(pair: Pair, judgement: Judgement) -> str | None:
    """Return why a merge should be worded again. One that still loses words becomes a question to the owner."""
    is_merge = judgement.says == "same" or judgement.keep == "merge"
    merged = {"merge": judgement.text, "a": pair.a.text, "b": pair.b.text}.get(judgement.keep) if is_merge else None
    lost = [word for fact in (pair.a, pair.b) for word in find_lost_words(merged or fact.text, fact.text)]
    return f"it leaves out {', '.join(lost)}: merge them in one sentence with these words" if lost else None


def _judgement(item: Mapping[str, Any]) -> Judgement:
    return Judgement(
        item["verdict"],
        (item.get("keep") or item.get("resolution") or "").removeprefix("keep_"),
        " ".join((item.get("merged_text") or "").split()) or None,
        " ".join((item.get("reason") or "").split())[:MAX_REASON_CHARACTERS],
        *((item.get(day) or None) for day in ("a_from", "a_until", "b_from", "b_until")),
    )


def _is_careless(given: Sequence[Mapping[str, Any]]) -> bool:
    return len(given) >= MAX_ALIKE and {item["verdict"] for item in given} == {"same"}


def _shown(pair: Pair) -> dict[str, dict[str, str]]:
    shown = {}
    for name, fact in (("a", pair.a), ("b", pair.b)):
        said = (fact.created or "")[:10]
        since = fact.valid_from if fact.valid_from != said else None
        shown[name] = without_empty({"text": fact.text, "said": said, "from": since, "until": fact.valid_until})
    return shown
