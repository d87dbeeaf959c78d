"""A server of many vaults: the façade of this package. Any server of one database answers for any vault."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from quaid.capture.writer import WriteResult
from quaid.errors import QuaidError
from quaid.resident.worker import Job
from quaid.server import writing
from quaid.server.catalogue import Catalogue, VaultUnknownError
from quaid.server.configuration import ServerConfig
from quaid.server.database import Database, DatabaseUnreachableError
from quaid.server.limits import RateLimit, network_of
from quaid.server.log import Labels, Metrics
from quaid.server.oauth import AccessTokens
from quaid.server.tokens import MAX_KNOWN, PREFIX, Caller, Tokens, digest_of
from quaid.server.upkeep import Leases, Upkeep
from quaid.server.vaults import Indexes, VaultFolders, holding

T = TypeVar("T")
CONNECTIONS = 6
"""To the tables of this package, for short statements; those to the index come on top."""
LOOKUPS = 2
"""Tokens that are looked up in the database at the same time."""


class ScopeMissingError(QuaidError):
    """The caller may read a vault, but not more."""

    code = "insufficient_scope"

    def __init__(self, vault: str, scope: str) -> None:
        self.scope = f"quaid:{vault}:{scope}"
        super().__init__(f"The token has no scope {self.scope}. Ask whoever runs the server for it.")


class VaultServer:
    """Answers for the vaults of one database."""

    def __init__(self, config: ServerConfig) -> None:
        self.config = config
        self.database = Database(config.database, CONNECTIONS)
        self.catalogue = Catalogue(self.database, config.plain_hosts)
        self.metrics = Metrics()
        self.limit = RateLimit(config.rate, config.burst)
        self._strangers = RateLimit(config.rate, config.burst)
        self.tokens = Tokens(self.database)
        self._accepted: dict[bytes, None] = {}
        self._looking_up = ThreadPoolExecutor(LOOKUPS, thread_name_prefix="quaid-tokens")
        self._access_tokens = AccessTokens(config.issuers, config.address)
        self._leases = Leases(self.database, config.identity, config.lease_s)
        mirrors = Path(config.mirrors).expanduser().absolute() if config.mirrors else config.place
        self._folders = VaultFolders(config.place, mirrors, config)
        # A question reads through two connections.
        self._indexes = Indexes(config.database, 2 * config.readers + config.workers + config.writers)
        self._upkeep = Upkeep(config, self.catalogue, self._leases, self._folders, self._indexes, self.metrics)
        self._reading = ThreadPoolExecutor(config.readers, thread_name_prefix="quaid-reading")
        self._writing = ThreadPoolExecutor(config.writers, thread_name_prefix="quaid-writing")
        self.is_stopping = False

    def start(self) -> None:
        """Connect to the database and begin to work. Raises DatabaseUnreachableError."""
        self.database.open()
        self._indexes.open()
        self._leases.start()
        self._upkeep.start()

    def close(self) -> None:
        """End the current work, within `stop_s` seconds, and release all leases."""
        self.is_stopping = True
        self._upkeep.close(self.config.stop_s)
        self._looking_up.shutdown(wait=False, cancel_futures=True)
        self._reading.shutdown(wait=True, cancel_futures=True)
        self._writing.shutdown(wait=True, cancel_futures=True)
        self._leases.close()
        self._indexes.close()
        self.database.close()

    def is_ready(self) -> bool:
        """Return whether a request would be answered."""
        try:
            self.database.ask("SELECT 1")
        except DatabaseUnreachableError:
            return False
        return not self.is_stopping

    async def identify(self, token: str, address: str) -> Caller | None:
        """Return the caller with this token, None if it is not valid here. A token that was not accepted before counts
        against the rate of the address that the request comes from.

        Raises:
            TooManyRequestsError
            QuaidError: the token cannot be checked.
        """
        digest = digest_of(token)
        if digest not in self._accepted:
            self._strangers.take(network_of(address))
        if token.startswith(PREFIX):
            loop = asyncio.get_running_loop()
            caller = await loop.run_in_executor(self._looking_up, self.tokens.find, token)
        else:
            caller = await self._access_tokens.find(token)
        self._accepted.pop(digest, None)
        if caller is not None:
            if len(self._accepted) >= MAX_KNOWN:
                del self._accepted[next(iter(self._accepted))]
            self._accepted[digest] = None
        return caller

    def check_scope(self, caller: Caller, vault: str, scope: str) -> None:
        """Refuse what is not granted. A vault that the caller may not read is refused like one that does not exist.

        Raises:
            VaultUnknownError, ScopeMissingError
        """
        if not caller.may(vault, "read"):
            raise VaultUnknownError
        if not caller.may(vault, scope):
            raise ScopeMissingError(vault, scope)

    def read(self, caller: Caller, name: str, job: Job[T]) -> Future[T]:
        """Run `job` with a vault in a worker thread, and return its future result.

        Raises:
            VaultUnknownError: the caller may not read it. The future: QuaidError, as it is not indexed
        """
        self.check_scope(caller, name, "read")

        def read() -> T:
            vault = self.catalogue.find(name)
            with self._indexes.memory(self._folders.of(vault), vault, caller) as memory:
                return job(memory)

        return self._reading.submit(read)

    async def write(
        self, caller: Caller, name: str, key: str, job: Job[WriteResult], scope: str = "write"
    ) -> WriteResult:
        """Return the result of `job` once the vault's remote has its commit. A call that is repeated with the same
        `key` is not stored twice. A call whose client disconnects is carried out.

        Raises:
            VaultUnknownError, ScopeMissingError, DatabaseUnreachableError: nothing was stored.
            as `writing.write`
        """
        self.check_scope(caller, name, scope)
        future = self._writing.submit(self._write, caller, name, key, job)
        return await asyncio.shield(asyncio.wrap_future(future))

    def _write(self, caller: Caller, name: str, key: str, job: Job[WriteResult]) -> WriteResult:
        outcome, wait_s = "refused", self.config.write_s
        try:
            vault = self.catalogue.find(name)
            folder = self._folders.of(vault)
            # In the same order as upkeep.py, which has the lease before it opens the folder.
            with holding(folder.line, wait_s), self._leases.held(vault.vault, wait_s), folder.alone(wait_s):
                written, attempts = writing.write(folder, vault, caller, key, job)
                outcome = "stored"
                if attempts:
                    self.metrics.observe("quaid_write_attempts", attempts)
                try:  # index what was pushed, so that its writer can read it
                    head = folder.mirror.fetch()
                    if head is not None:
                        config = self._indexes.update(folder, vault, head)
                        self.catalogue.note_indexed(vault.vault, head, config)
                except Exception:  # noqa: BLE001 - whatever it is, the remote has the commit, and a worker indexes it
                    with suppress(QuaidError):
                        self._upkeep.queue(vault, "written")
        except writing.OutcomeUnknownError:
            outcome = "unknown"
            raise
        finally:
            self.metrics.count("quaid_writes_total", outcome=outcome)
        return written

    def update_pushed(self, addresses: Sequence[str]) -> None:
        """Queue the vaults whose remotes are at these addresses."""
        for vault in self.catalogue.find_by_address(addresses):
            self._upkeep.queue(vault, "push")

    def gauges(self) -> dict[tuple[str, Labels], float]:
        """Return the figures that all servers share. Raises DatabaseUnreachableError."""
        counted = self.catalogue.count()
        figures: dict[tuple[str, Labels], float] = {
            ("quaid_vaults", (("state", state),)): float(counted[key])
            for state, key in (("all", "vaults"), ("failing", "failing"), ("behind", "behind"))
        }
        figures["quaid_jobs_waiting", ()] = float(counted["jobs"])
        figures["quaid_oldest_job_seconds", ()] = float(counted["oldest_s"])
        return figures
