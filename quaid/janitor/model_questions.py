"""Questions to a model about many things at once: in batches, numbered, and answered by number."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from quaid.janitor.model_text import read_change
from quaid.janitor.vetoes import MAX_EXAMPLES
from quaid.llm.batches import batches
from quaid.llm.exchange import ItemProblem

if TYPE_CHECKING:
    from quaid.janitor.task_context import TaskContext
    from quaid.llm.exchange import Answer, Check

T = TypeVar("T")


def ask(context: TaskContext, name: str, inputs: Mapping[str, str], check: Check) -> Answer:
    """The answer of the model, which is there, to the prompt `name`, which is told the day as well.

    Raises:
        ModelError: as `Models.ask`.
    """
    assert context.models is not None
    told = {"today": f"{context.now:%A %Y-%m-%d}", **inputs}
    return context.models.ask(context.models.prompt(name), told, check=check)


def in_batches(
    context: TaskContext,
    name: str,
    items: Sequence[T],
    tokens_of: Callable[[T], int],
    *,
    input_limit: int,
    output_per_item: int = 0,
) -> Iterator[list[T]]:
    """`items` in batches that fit one question each with the prompt `name`, limits in tokens as for `batches`; progress
    is shown. No batches where there is no model.
    """
    if context.models is None or not items:
        return
    prompt = context.models.prompt(name)
    done = 0
    for batch in batches(
        items,
        tokens_of=tokens_of,
        input_limit=input_limit,
        output_per_item=output_per_item,
        output_limit=prompt.max_output_tokens,
    ):
        if context.progress is not None:
            context.progress(f"Judging ({name})", done, len(items))
        yield batch
        done += len(batch)


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
