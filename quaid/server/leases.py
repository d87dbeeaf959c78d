"""The lease of a vault: of many servers one at a time brings its index up to date or writes to it.

It saves work, it does not decide: a holder that was cut off for longer than its lease can do no harm, since git takes a
push only on top of what the remote has, and the index says which commit it holds.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from quaid.errors import LockedError, QuaidError
from quaid.server.database import Database

POLL_S = 0.05


class Leases:
    """The leases that this process holds; a thread renews them."""

    def __init__(self, database: Database, server: str, lease_s: float) -> None:
        self._database = database
        self._process = f"{server}/{uuid.uuid4().hex[:12]}"
        self.lease_s = lease_s
        self._held: set[tuple[int, str]] = set()
        self._mutex = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="quaid-leases", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Give back what is still held."""
        self._stop.set()
        with suppress(QuaidError):
            self._database.change("DELETE FROM quaid_server.leases WHERE holder LIKE %s", (f"{self._process}/%",))

    def new_holder(self) -> str:
        """Return a name under which one piece of work holds a lease."""
        return f"{self._process}/{uuid.uuid4().hex[:8]}"

    @contextmanager
    def keeping(self, vault: int, holder: str) -> Iterator[None]:
        """Renew a lease that `holder` has taken, and give it back at the end."""
        key = (vault, holder)
        with self._mutex:
            self._held.add(key)
        try:
            yield
        finally:
            with self._mutex:
                self._held.discard(key)
            with suppress(QuaidError):  # it runs out by itself
                self._database.change("DELETE FROM quaid_server.leases WHERE vault = %s AND holder = %s", key)

    @contextmanager
    def held(self, vault: int, wait_s: float) -> Iterator[None]:
        """Hold the lease of a vault within the block.

        Raises:
            LockedError: others hold it for longer than `wait_s` seconds.
        """
        holder, until = self.new_holder(), time.monotonic() + wait_s
        while not self._take(vault, holder):
            if time.monotonic() >= until:
                raise LockedError("Others keep writing to this vault")
            time.sleep(POLL_S)
        with self.keeping(vault, holder):
            yield

    def _take(self, vault: int, holder: str) -> bool:
        taken = self._database.change(
            "INSERT INTO quaid_server.leases AS lease (vault, holder, expires) "
            "VALUES (%(vault)s, %(holder)s, now() + make_interval(secs => %(lease_s)s)) "
            "ON CONFLICT (vault) DO UPDATE SET holder = excluded.holder, expires = excluded.expires "
            "WHERE lease.expires <= now()",
            {"vault": vault, "holder": holder, "lease_s": self.lease_s},
        )
        return taken == 1

    def _renew(self) -> None:
        while not self._stop.wait(self.lease_s / 3):
            with self._mutex:
                held = list(self._held)
            if held:
                with suppress(Exception):  # it is tried again before the leases run out
                    self._database.change(
                        "UPDATE quaid_server.leases SET expires = now() + make_interval(secs => %s) "
                        "WHERE holder = ANY(%s)",
                        (self.lease_s, [holder for _, holder in held]),
                    )
