"""The background work of a server: the leases of vaults, workers that index pushes, and the poll of remotes."""

import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

from quaid.errors import LockedError, QuaidError
from quaid.server import log
from quaid.server.catalogue import Catalogue, ServedVault
from quaid.server.configuration import ServerConfig
from quaid.server.database import Database, DatabaseUnreachableError
from quaid.server.log import Metrics
from quaid.server.vaults import Indexes, VaultFolders

LEASE_POLL_S = 0.05


class Leases:
    """The leases that this process holds; a thread renews them."""

    def __init__(self, database: Database, server: str, lease_s: float) -> None:
        self._database = database
        self._process = f"{server}/{uuid.uuid4().hex[:12]}"
        self.lease_s = lease_s
        self._held: set[tuple[int, str]] = set()
        self._mutex = threading.Lock()
        self._stop = threading.Event()

    def start(self) -> None:
        def renew() -> None:
            while not self._stop.wait(self.lease_s / 3):
                with self._mutex:
                    held = [holder for _, holder in self._held]
                if held:
                    with suppress(Exception):  # it is repeated before the leases expire
                        self._database.change(
                            "UPDATE quaid_server.leases SET expires = now() + make_interval(secs => %s) "
                            "WHERE holder = ANY(%s)",
                            (self.lease_s, held),
                        )

        threading.Thread(target=renew, name="quaid-leases", daemon=True).start()

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
        taking = (
            "INSERT INTO quaid_server.leases AS lease (vault, holder, expires) "
            "VALUES (%s, %s, now() + make_interval(secs => %s)) "
            "ON CONFLICT (vault) DO UPDATE SET holder = excluded.holder, expires = excluded.expires "
            "WHERE lease.expires <= now()"
        )
        while not self._database.change(taking, (vault, holder, self.lease_s)):
            if time.monotonic() >= until:
                raise LockedError("Others keep writing to this vault")
            time.sleep(LEASE_POLL_S)
        with self.keeping(vault, holder):
            yield


IDLE_S = 0.25
"""The interval at which a worker checks for jobs that another server has queued; its own server wakes it."""
POLL_BATCH = 16


class Upkeep:
    """The threads that update the indexes."""

    def __init__(
        self,
        config: ServerConfig,
        catalogue: Catalogue,
        leases: Leases,
        folders: VaultFolders,
        indexes: Indexes,
        metrics: Metrics,
    ) -> None:
        self._config = config
        self._catalogue = catalogue
        self._leases = leases
        self._folders = folders
        self._indexes = indexes
        self._metrics = metrics
        self._stop = threading.Event()
        self._wake = threading.Semaphore(0)
        loops = [*[self._work] * config.workers, self._poll]
        self._threads = [threading.Thread(target=loop, name="quaid-upkeep", daemon=True) for loop in loops]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def close(self, within_s: float) -> None:
        """Accept no more jobs, and wait for the current ones."""
        self._stop.set()
        for _ in self._threads:
            self._wake.release()
        until = time.monotonic() + within_s
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def queue(self, vault: ServedVault, reason: str) -> None:
        """Queue a vault for an update, by this server or another. Raises DatabaseUnreachableError."""
        self._catalogue.queue(vault.vault, reason)
        self._wake.release()

    def _work(self) -> None:
        while not self._stop.is_set():
            try:
                holder = self._leases.new_holder()
                job = self._catalogue.take(holder, self._leases.lease_s)
                if job is not None:
                    with self._leases.keeping(job[0].vault, holder):
                        self._update(*job)
                    continue
            except Exception as error:  # noqa: BLE001 - whatever it is, the worker goes on
                log.write_line("upkeep_failed", problem=getattr(error, "code", type(error).__name__))
            self._wake.acquire(timeout=IDLE_S)

    def _update(self, vault: ServedVault, asked: int, queued_at: datetime) -> None:
        started, folder = time.perf_counter(), self._folders.of(vault)
        try:
            with folder.alone(self._config.write_s):
                head = folder.mirror.fetch()
                if head is None:
                    problem = f"The repository has no branch {vault.branch}."
                    raise QuaidError(problem, code="branch_missing")  # noqa: TRY301 - reported like any other failure
                config = self._indexes.update(folder, vault, head)
                self._catalogue.note_indexed(vault.vault, head, config, asked)
                folder.mirror.maintain()
        except DatabaseUnreachableError:
            raise  # the job stays as it is, and the lease expires
        except Exception as error:  # noqa: BLE001 - a repository that is made to break us stops only itself
            self._metrics.count("quaid_jobs_total", outcome="failed")
            self._catalogue.fail(vault.vault, str(error) if isinstance(error, QuaidError) else type(error).__name__)
            code, failures = getattr(error, "code", type(error).__name__), vault.failures + 1
            log.write_line("index_failed", vault=vault.name, problem=code, failures=failures, ms=_ms(started))
            return
        lag_s = (datetime.now(UTC) - queued_at).total_seconds()
        self._metrics.count("quaid_jobs_total", outcome="done")
        self._metrics.observe("quaid_index_lag_seconds", lag_s)
        log.write_line("indexed", vault=vault.name, commit=head, ms=_ms(started), lag_ms=round(lag_s * 1000))

    def _poll(self) -> None:
        with ThreadPoolExecutor(4, thread_name_prefix="quaid-poll") as pool:
            while not self._stop.is_set():
                try:
                    due = self._catalogue.take_due(POLL_BATCH, self._config.poll_s)
                    list(pool.map(self._check, due))
                except Exception as error:  # noqa: BLE001 - the poll goes on
                    log.write_line("poll_failed", problem=getattr(error, "code", type(error).__name__))
                    due = []
                if not due:
                    self._stop.wait(min(1.0, self._config.poll_s / 4))

    def _check(self, vault: ServedVault) -> None:
        """Queue a vault if its remote has another commit than its index."""
        started = time.perf_counter()
        try:
            outcome = "same" if self._folders.of(vault).mirror.look() == vault.indexed else "news"
            if outcome == "news":
                self.queue(vault, "poll")
        except DatabaseUnreachableError:
            return
        except QuaidError:
            outcome = "failed"
        self._metrics.count("quaid_polls_total", outcome=outcome)
        self._metrics.observe("quaid_poll_seconds", time.perf_counter() - started)


def _ms(started: float) -> int:
    return round((time.perf_counter() - started) * 1000)
