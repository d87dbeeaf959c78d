"""The rate of one caller's requests: a bucket of tokens, per process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

MAX_BUCKETS = 10_000


class RateLimit:
    """Lets each caller make `burst` requests at once and `rate` a second in the long run, in this process."""

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._burst = float(burst)
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}
        self._mutex = threading.Lock()

    def wait_s(self, caller: str) -> float:
        """Take one request of `caller`; return 0, or the seconds after which it would be taken."""
        now = self._clock()
        with self._mutex:
            left, then = self._buckets.get(caller, (self._burst, now))
            left = min(self._burst, left + (now - then) * self._rate)
            if left < 1:
                self._buckets[caller] = (left, now)
                return (1 - left) / self._rate
            if len(self._buckets) >= MAX_BUCKETS:
                self._forget_full(now)
            self._buckets[caller] = (left - 1, now)
            return 0.0

    def _forget_full(self, now: float) -> None:
        refill_s = self._burst / self._rate
        self._buckets = {name: (left, then) for name, (left, then) in self._buckets.items() if now - then < refill_s}
