"""Questions to a model about many things at once: in batches, numbered, and answered by number."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from quaid.errors import BudgetExceededError, ModelAnswerError, ModelError, ModelRefusedError
from quaid.janitor.decision import SET_ASIDE, Decision
from quaid.janitor.model_text import CarelessAnswerError, quote, read_change
from quaid.janitor.vetoes import MAX_EXAMPLES
from quaid.llm.batches import batches
from quaid.llm.exchange import ItemProblem
from quaid.local.runs import evidence_key

if TYPE_CHECKING:
    from quaid.janitor.task_context import TaskContext
    from quaid.llm.exchange import Answer, Check

T = TypeVar("T")
R = TypeVar("R")
MAX_UNUSABLE = 20
"""After so many answers that cannot be used, and none that can, the model is the cause and not an item."""
MAX_NAME = 200
"""The characters of a text by which its owner recognises what was set aside."""


def ask(context: TaskContext, name: str, inputs: Mapping[str, str], check: Check) -> Answer:
    """The answer of the model, which is there, to the prompt `name`, which is told the day as well.

    Raises:
        ModelError: as `Models.ask`.
    """
    assert context.models is not None
    told = {"today": f"{context.now:%A %Y-%m-%d}", **inputs}
    return context.models.ask(context.models.prompt(name), told, check=check)


def judge_all(
    context: TaskContext,
    name: str,
    items: Mapping[str, T],
    judge: Callable[[list[T]], R],
    tokens_of: Callable[[T], int],
    name_of: Callable[[T], str],
    *,
    input_limit: int,
    output_per_item: int = 0,
) -> Iterator[R]:
    """Yield what `judge` returns for `items`, by the key of their evidence, in batches that fit one question each with
    the prompt `name`, limits in tokens as for `batches`. Nothing is yielded where there is no model.

    A batch that the model refuses, or whose answer cannot be used, is split until the item that causes it is alone. An
    item that fails twice alone is set aside: it is held back under its name, and not asked about again before its
    evidence, the model or the prompt changes. What exceeds a limit is split as well, and what remains of it is left for
    a later run. Other trouble ends the questions of the task. No ModelError is raised, the report has it: what was
    judged is still carried out.
    """
    models = context.models
    if models is None or not items:
        return
    tried: set[str] = set()
    failed: dict[str, str] = {}
    marks: dict[str, str] = {}
    left: list[str] = []
    is_able, unusable = False, 0
    last: ModelError | None = None
    trouble: ModelError | None = None
    try:
        prompt, asked = models.prompt(name), models.describe()
        model = asked.deep if prompt.tier == "deep" else asked.fast
        marks = {key: evidence_key(SET_ASIDE, model, prompt.label, key) for key in items}
        known = context.judgements.known(list(marks.values()))  # what an earlier run has set aside, each with why
        failed = {key: known[mark] for key, mark in marks.items() if mark in known}
        left = [key for key in items if key not in failed]
        waiting = deque(
            batches(
                left,
                tokens_of=lambda key: tokens_of(items[key]),
                input_limit=input_limit,
                output_per_item=output_per_item,
                output_limit=prompt.max_output_tokens,
            )
        )
        while waiting:
            if context.progress is not None:
                context.progress(f"Judging ({name})", len(left) - sum(map(len, waiting)), len(left))
            batch = waiting.popleft()
            try:
                found = judge([items[key] for key in batch])
            except (ModelRefusedError, ModelAnswerError, BudgetExceededError) as error:
                is_able = is_able or isinstance(error, ModelRefusedError)
                unusable += isinstance(error, ModelAnswerError)
                if isinstance(error, CarelessAnswerError) or (unusable == MAX_UNUSABLE and not is_able):
                    raise
                last, again = error, _split(batch, tried)
                waiting += again  # behind the others: what can be judged is, whatever ends the questions later
                if not again and isinstance(error, BudgetExceededError):
                    trouble = error
                elif not again:
                    failed[batch[0]] = str(error)
                continue
            is_able = True
            yield found
    except ModelError as error:
        trouble = error
    if not is_able and len(left) > 1:  # nothing shows that the model answers about other items
        failed = {key: problem for key, problem in failed.items() if key not in tried}
        trouble = trouble or last
    context.judgements.add(name, {marks[key]: problem for key, problem in failed.items()})
    context.report.held_back += [
        (Decision(name, SET_ASIDE, key, (), f"judge {quote(name_of(items[key]), MAX_NAME)}", ""), problem)
        for key, problem in failed.items()
    ]
    context.report.failed |= {name: str(trouble)} if trouble is not None else {}


def _split(batch: list[str], tried: set[str]) -> list[list[str]]:
    """Return what is to be asked instead of a batch that failed: its halves, once more what is alone, then nothing."""
    half = len(batch) // 2
    again = [batch[:half], batch[half:]] if half else [batch] if batch[0] not in tried else []
    tried.update(() if half else batch)
    return again


def set_aside_keys(context: TaskContext) -> set[str]:
    """Return the keys of what was set aside in this run, by any task."""
    return {decision.key for decision, _ in context.report.held_back if decision.kind == SET_ASIDE}


def numbered_lines(items: Iterable[Mapping[str, Any]]) -> str:
    """A line of JSON each, numbered from 1: no text can end its own line and begin another one."""
    return "\n".join(json.dumps({"n": n, **item}, ensure_ascii=False) for n, item in enumerate(items, 1))


def number_problems(
    value: Mapping[str, Any], items: str, count: int, *, bare: str = "", all_wanted: bool = True
) -> list[str | ItemProblem]:
    """Problems of the numbers `n` that the list `items` of an answer is about, of those from 1 to `count`. Those in the
    list `bare` are answered without more. Numbers that there are not are none: nothing is read of them.
    """
    times = Counter([*(item["n"] for item in value[items]), *value.get(bare, ())])
    problems: list[str | ItemProblem] = [
        ItemProblem(items, place, f"is one of {times[item['n']]} answers about number {item['n']}: give one")
        for place, item in enumerate(value[items])
        if times[item["n"]] > 1 and item["n"] <= count
    ]
    missing = [n for n in range(1, count + 1) if n not in times] if all_wanted else []
    return [*problems, *(ItemProblem(items, None, f"number {n} is missing") for n in missing)]


def by_number(given: Sequence[Mapping[str, Any]], asked: Sequence[T]) -> list[tuple[T, Mapping[str, Any]]]:
    """Pairs of what was asked about and its answer, in the order of the answers. Numbers that were not asked
    about, or are answered twice, are left out.
    """
    count = Counter(item["n"] for item in given)
    return [(asked[item["n"] - 1], item) for item in given if item["n"] <= len(asked) and count[item["n"]] == 1]


def list_refused(context: TaskContext, if_none: str = "(nothing so far)") -> str:
    """Decisions of this task that the owner did not want, for its prompt: what each would have done, and where it is
    known, the facts before and after.
    """
    newest = context.vetoes[:MAX_EXAMPLES]
    lines = [{"change": veto.subject} if not (change := read_change(veto.body)) else change for veto in newest]
    return "\n".join(json.dumps(line, ensure_ascii=False) for line in lines) or if_none
