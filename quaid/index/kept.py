"""What every question asks of an index and only a change of the index changes."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import apsw

Answer = TypeVar("Answer")
MAX_KEPT = 64


class KeptAnswers:
    """Answers of one connection, kept as long as its index stays as it is."""

    def __init__(self) -> None:
        self._connection: apsw.Connection | None = None
        self._version = -1
        self._kept: dict[Hashable, Any] = {}

    def of(self, connection: apsw.Connection, key: Hashable, ask: Callable[[], Answer]) -> Answer:
        """Return what `ask` returns, or what it has returned for `key` before."""
        version = int(connection.pragma("data_version"))
        if connection is not self._connection or version != self._version or len(self._kept) > MAX_KEPT:
            self._connection, self._version, self._kept = connection, version, {}
        if key not in self._kept:
            self._kept[key] = ask()
        answer: Answer = self._kept[key]
        return answer
