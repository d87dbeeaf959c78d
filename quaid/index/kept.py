"""What every question asks of an index and only a change of the index changes."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from quaid.index.port import IndexConnection
from quaid.index.scope import Scope

Answer = TypeVar("Answer")
MAX_KEPT = 64


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


class KeptAnswers:
    """Answers of one connection, kept as long as its index stays as it is."""

    def __init__(self) -> None:
        self._moment = Moment()
        self._kept: dict[Hashable, Any] = {}

    def of(self, connection: IndexConnection, key: Hashable, ask: Callable[[], Answer]) -> Answer:
        """Return what `ask` returns, or what it has returned for `key` before."""
        if len(self._kept) > MAX_KEPT or not self._moment.is_of(connection):
            self._moment.move_to(connection)
            self._kept.clear()
        if key not in self._kept:
            self._kept[key] = ask()
        answer: Answer = self._kept[key]
        return answer

    def chunks_in(self, connection: IndexConnection, scope: Scope) -> frozenset[int] | None:
        """Return the chunk_ids in `scope`; None for all. To ask SQLite for each chunk that was found whether it is in
        scope takes several times as long as finding it.
        """
        return None if scope.is_open else self.of(connection, scope.key, lambda: scope.list_chunks(connection))
