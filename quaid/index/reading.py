"""Readings: what is asked of an index alone, or at once with others in one statement."""

import json
import re
from collections.abc import Callable, Generator, Mapping
from functools import lru_cache
from typing import Any, Generic, ParamSpec, TypeVar

from quaid.index.port import IndexConnection

Asked = ParamSpec("Asked")
Answer = TypeVar("Answer")
Query = tuple[str, Mapping[str, Any]]
Steps = Generator[Query | list[Query], list[Any], Answer]
Making = Callable[Asked, Steps[Answer]]
GIVEN = "given"
"""The parameter of a reading of chunks, a list of their ids in JSON, which those that are read together have in common.
They find the chunks in a table of this name.
"""
_GIVEN = (
    "WITH given AS MATERIALIZED (SELECT chunk_id, doc_id, turn FROM chunks "
    f"WHERE chunk_id IN (SELECT CAST(value AS INTEGER) FROM json_each(:{GIVEN}))) "
)


def query(statement: str, values: Mapping[str, Any] = {}) -> Query:
    """Return a step of a reading: SELECT with plain columns, so an order or a union is in a query that it is from."""
    return statement, values


class Reading(Generic[Asked, Answer]):
    """A function of an index. Its steps yield a query or several, are sent the rows, and return the answer."""

    def __init__(self, steps: Making[Asked, Answer]) -> None:
        self.steps = steps

    def __call__(self, connection: IndexConnection, *args: Asked.args, **options: Asked.kwargs) -> Answer:
        answer: Answer = read(connection, self.steps(*args, **options))[0]
        return answer


def read(connection: IndexConnection, *begun: Steps[Any]) -> list[Any]:
    """Return the answers of readings that have begun, all asked in one statement."""
    asked: list[Query] = []
    places: dict[int, slice | int] = {}
    answers: list[Any] = [None] * len(begun)
    for place, steps in enumerate(begun):
        try:
            step = next(steps)
        except StopIteration as done:  # it asks nothing
            answers[place] = done.value
            continue
        places[place] = slice(len(asked), len(asked) + len(step)) if isinstance(step, list) else len(asked)
        asked += step if isinstance(step, list) else [step]
    if not asked:
        return answers
    statement = _combine(tuple((each, tuple(values)) for each, values in asked))
    values = {
        name if name == GIVEN else f"{name}_{at}": value
        for at, (_, given) in enumerate(asked)
        for name, value in given.items()
    }
    rows = [json.loads(each or "[]") for each in next(connection.execute(statement, values))]
    for place, at in places.items():
        try:
            begun[place].send(rows[at])
        except StopIteration as done:
            answers[place] = done.value
    return answers


@lru_cache(maxsize=256)
def _combine(parts: tuple[tuple[str, tuple[str, ...]], ...]) -> str:
    """Return a statement whose one row has the rows of each part as JSON; the names of parameters get its number."""
    columns = []
    for at, (statement, names) in enumerate(parts):
        wanted, source = statement.removeprefix("SELECT ").split(" FROM ", 1)
        for name in names:
            source = source if name == GIVEN else re.sub(rf":{name}\b", f":{name}_{at}", source)
        columns.append(f"(SELECT CAST(json_group_array(json_array({wanted})) AS TEXT) FROM {source})")
    is_of_chunks = any(GIVEN in names for _, names in parts)
    return f"{_GIVEN if is_of_chunks else ''}SELECT {', '.join(columns)}"
