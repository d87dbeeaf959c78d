"""Hard caps: a call is counted at its maximum before it is made, and at its usage afterwards.

So two processes cannot both spend the last of a day, and the running call of a killed process is counted.
"""

import threading
from contextlib import suppress

from quaid.errors import ModelError, ModelUnavailableError, QuaidError
from quaid.llm.exchange import UsageStore
from quaid.model import ModelUsage, PlannedCall, SpendingCap
from quaid.settings import ModelSettings


class UsageInMemory:
    """A UsageStore that ends with its process. Safe to use from several threads."""

    def __init__(self) -> None:
        self._calls: list[tuple[str, ModelUsage]] = []
        self._lock = threading.RLock()

    def reserve(self, call: PlannedCall, day: str, cap: SpendingCap | None = None) -> int:
        with self._lock:
            if cap is not None:
                cap.check(call.most, self.spent(day))
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
        self._day_cap = SpendingCap("day", settings.max_tokens_per_day, settings.max_usd_per_day)
        self._run_cap = SpendingCap("run", 0, settings.max_usd_per_run) if is_run else None
        self._store = store
        self._run = UsageInMemory()

    @property
    def spent(self) -> ModelUsage:
        """The usage of all calls within this budget."""
        return self._run.spent("")

    def reserve(self, call: PlannedCall, day: str) -> tuple[int, int]:
        """Count `call` at its estimate, and return its numbers in the store of the day and in that of the run.

        Raises:
            BudgetExceededError: a cap would be exceeded; nothing was counted.
            ModelUnavailableError: usage cannot be stored, so that no cap could hold.
        """
        run_id = self._run.reserve(call, "", self._run_cap)
        try:
            return self._store.reserve(call, day, self._day_cap), run_id
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
