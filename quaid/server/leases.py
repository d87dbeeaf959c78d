"""The lease of a vault: one server at a time updates its index or writes to it.

It saves work, it is no lock: a holder that was cut off for longer than its lease can do no harm, because git accepts a
push only on top of the remote's commit, and the index records its commit.
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
        """Release all leases."""
        self._stop.set()
        with suppress(QuaidError):
            self._database.change("DELETE FROM quaid_server.leases WHERE holder LIKE %s", (f"{self._process}/%",))

    def new_holder(self) -> str:
        """Return the name of a new holder."""
        return f"{self._process}/{uuid.uuid4().hex[:8]}"

    @contextmanager
    def keeping(self, vault: int, holder: str) -> Iterator[None]:
        """Renew a lease that `holder` has taken, and release it at the end."""
        key = (vault, holder)
        with self._mutex:
            self._held.add(key)
        try:
            yield
        finally:
            with self._mutex:
                self._held.discard(key)
            with suppress(QuaidError):  # it expires
                self._database.change("DELETE FROM quaid_server.leases WHERE vault = %s AND holder = %s", key)

    @contextmanager
    def held(self, vault: int, wait_s: float) -> Iterator[None]:
        """Hold the lease of a vault. LockedError: another holder has it for longer than `wait_s` seconds."""
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
                with suppress(Exception):  # it is repeated before the leases expire
                    self._database.change(
                        "UPDATE quaid_server.leases SET expires = now() + make_interval(secs => %s) "
                        "WHERE holder = ANY(%s)",
                        (self.lease_s, [holder for _, holder in held]),
                    )
