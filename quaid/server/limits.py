"""Rates of requests: a bucket of tokens for each caller, per process."""

import threading
import time
from ipaddress import ip_address, ip_network

from quaid.errors import QuaidError

MAX_BUCKETS = 10_000


class TooManyRequestsError(QuaidError):
    """A caller has used up its rate."""

    code = "too_many_requests"

    def __init__(self, wait_s: float) -> None:
        self.wait_s = wait_s
        super().__init__("Too many requests. Try again later.")


class RateLimit:
    """Allows each caller `burst` requests at once and `rate` per second in the long run, in this process."""

    def __init__(self, rate: float, burst: int) -> None:
        self._rate = rate
        self._burst = float(burst)
        self._buckets: dict[str, tuple[float, float]] = {}
        """The least recently used comes first."""
        self._mutex = threading.Lock()

    def take(self, caller: str) -> None:
        """Count one request of `caller`. Raises TooManyRequestsError."""
        now = time.monotonic()
        with self._mutex:
            left, then = self._buckets.pop(caller, (self._burst, now))
            left = min(self._burst, left + (now - then) * self._rate)
            if len(self._buckets) >= MAX_BUCKETS:
                del self._buckets[next(iter(self._buckets))]
            self._buckets[caller] = (left - 1 if left >= 1 else left, now)
        if left < 1:
            raise TooManyRequestsError((1 - left) / self._rate)


def network_of(address: str) -> str:
    """Return the network of one customer: an IPv4 address, a /64 of IPv6. All that is not an address, such as a header
    that no proxy wrote, is one caller.
    """
    try:
        ip = ip_address(address.partition("%")[0])
    except ValueError:
        return ""
    mapped = getattr(ip, "ipv4_mapped", None)
    return str(mapped or (ip if ip.version == 4 else ip_network(f"{ip}/64", strict=False)))
