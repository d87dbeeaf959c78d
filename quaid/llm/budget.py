"""Hard caps: a call is counted at its maximum before it is made, and at its usage afterwards.

So two processes cannot both spend the last of a day, and the running call of a killed process is counted.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from quaid.errors import BudgetExceededError, ModelError, ModelUnavailableError, QuaidError
from quaid.llm.exchange import UsageStore
from quaid.model import ModelUsage, PlannedCall
from quaid.settings import ModelSettings

_RUN = "run"


class UsageInMemory:
    """A UsageStore that ends with its process. Safe to use from several threads."""

    def __init__(self) -> None:
        self._calls: list[tuple[str, ModelUsage]] = []
        self._lock = threading.RLock()

    def reserve(self, call: PlannedCall, day: str, check: Callable[[ModelUsage], None]) -> int:
        with self._lock:
            check(self.spent(day))
            self._calls.append((day, call.most))
            return len(self._calls) - 1

    def settle(self, reservation: int, usage: ModelUsage) -> None:
        with self._lock:
            self._calls[reservation] = (self._calls[reservation][0], usage)

    def spent(self, day: str) -> ModelUsage:
        with self._lock:
            return sum((usage for when, usage in self._calls if when == day), ModelUsage())


class Budget:
    """The caps of one run, of the day and of each call."""

    def __init__(self, settings: ModelSettings, store: UsageStore, *, is_run: bool) -> None:
        self._settings = settings
        self._store = store
        self._run = UsageInMemory()
        self._is_run = is_run

    @property
    def spent(self) -> ModelUsage:
        """The usage of all calls within this budget."""
        return self._run.spent(_RUN)

    def reserve(self, call: PlannedCall, day: str) -> tuple[int, int]:
        """Count `call` at its estimate, and return its numbers in the store of the day and in that of the run.

        Raises:
            BudgetExceededError: a cap would be exceeded; nothing was counted.
            ModelUnavailableError: usage cannot be stored, so that no cap could hold.
        """
        settings, most = self._settings, call.most
        check_run = partial(self._check, "run", 0, settings.max_usd_per_run, most)
        check_day = partial(self._check, "day", settings.max_tokens_per_day, settings.max_usd_per_day, most)
        run_id = self._run.reserve(call, _RUN, check_run if self._is_run else lambda _spent: None)
        try:
            return self._store.reserve(call, day, check_day), run_id
        except QuaidError as error:
            self._run.settle(run_id, ModelUsage())
            if isinstance(error, ModelError):
                raise
            problem = f"The usage of models could not be counted, so none was asked ({error})"
            raise ModelUnavailableError(problem) from error

    def settle(self, reservation: tuple[int, int], usage: ModelUsage) -> None:
        """Count the usage of the call. Where it cannot be stored, the estimate stays counted."""
        day_id, run_id = reservation
        self._run.settle(run_id, usage)
        with suppress(QuaidError):
            self._store.settle(day_id, usage)

    def _check(self, period: str, max_tokens: int, max_usd: float, most: ModelUsage, spent: ModelUsage) -> None:
        _check(f"models.max_tokens_per_{period}", max_tokens, most.tokens, spent.tokens)
        if most.cost_usd is not None:
            _check(f"models.max_usd_per_{period}", max_usd, most.cost_usd, spent.cost_usd or 0.0)


def _check(setting: str, cap: float, more: float, spent: float) -> None:
    if cap and spent + more > cap:
        raise BudgetExceededError(setting, _format(cap), _format(spent), _format(more))


def _format(amount: float) -> str:
    return f"{amount:,} tokens" if isinstance(amount, int) else f"${amount:.4g}"
