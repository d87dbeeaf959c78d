"""Answers of the index, cached until it changes."""

from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar, TypeVarTuple

from quaid.index.port import IndexConnection
from quaid.index.reading import Reading, Steps, read
from quaid.index.scope import Scope, list_chunks

Args = TypeVarTuple("Args")
Answer = TypeVar("Answer")
MAX_CACHED = 64


class Moment:
    """One state of one index, as one connection sees it."""

    def __init__(self) -> None:
        self._connection: IndexConnection | None = None
        self._version = (-1, -1)

    def is_of(self, connection: IndexConnection) -> bool:
        """Return whether the index behind `connection` is as it was when `move_to` was called."""
        return connection is self._connection and connection.version() == self._version

    def move_to(self, connection: IndexConnection) -> None:
        self._connection, self._version = connection, connection.version()


class AnswerCache:
    """Answers of one index, cached per connection until the index changes."""

    def __init__(self) -> None:
        self._moment = Moment()
        self._answers: dict[Hashable, Any] = {}

    def of(
        self, connection: IndexConnection, query: Callable[[IndexConnection, *Args], Answer], *args: *Args
    ) -> Answer:
        """Return `query(connection, *args)`, cached."""
        self._follow(connection)
        key = query, args
        if key not in self._answers:
            self._answers[key] = query(connection, *args)
        answer: Answer = self._answers[key]
        return answer

    def read(
        self, connection: IndexConnection, known: Iterable[tuple[Reading[..., Any], tuple[Any, ...]]],
        *others: Steps[Any],
    ) -> list[Any]:  # fmt: skip
        """Return the answers of `others`, read at once with those of `known`, to be cached, that are not yet."""
        self._follow(connection)
        missing = [each for each in known if each not in self._answers]
        answers = read(connection, *others, *(reading.steps(*args) for reading, args in missing))
        self._answers.update(zip(missing, answers[len(others) :], strict=True))
        return answers[: len(others)]

    def _follow(self, connection: IndexConnection) -> None:
        """Forget what is not of the present state of the index, and all where it is too much."""
        if len(self._answers) > MAX_CACHED or not self._moment.is_of(connection):
            self._moment.move_to(connection)
            self._answers.clear()

    def chunks_in(self, connection: IndexConnection, scope: Scope) -> frozenset[int] | None:
        """Return the chunk_ids in `scope`, or None for all. A query for each chunk found, whether it is in scope, takes
        several times as long as the search.
        """
        return None if scope.is_open else self.of(connection, list_chunks, scope)
