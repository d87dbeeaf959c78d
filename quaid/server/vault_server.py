"""A server of many vaults: the façade of this room. Any server of one database answers for any vault."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from quaid.errors import QuaidError
from quaid.history.mirrors import MirrorLimits
from quaid.resident.worker import Job
from quaid.server import writing
from quaid.server.catalogue import Catalogue, ServedVault, VaultUnknownError
from quaid.server.configuration import ServerConfig
from quaid.server.database import Database, DatabaseUnreachableError
from quaid.server.folders import VaultFolders
from quaid.server.indexes import Indexes
from quaid.server.leases import Leases
from quaid.server.limits import RateLimit, network_of
from quaid.server.metrics import Labels, Metrics
from quaid.server.oauth import AccessTokens
from quaid.server.tokens import MAX_KNOWN, PREFIX, Caller, Tokens, digest_of
from quaid.server.upkeep import Upkeep
from quaid.server.writing import WriteCall

if TYPE_CHECKING:
    from quaid.capture.writer import WriteResult

T = TypeVar("T")
CONNECTIONS = 6
"""To the tables of this room, for short statements; those to the index come on top."""
LOOKUPS = 2
"""Tokens that are looked up in the database at the same time."""


class ScopeMissingError(QuaidError):
    """The caller may read a vault and wants more."""

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
        limits = MirrorLimits(config.git_timeout_s, config.max_repository_bytes, config.max_files, config.plain_hosts)
        self._folders = VaultFolders(config.place, config.mirrors_place, limits)
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
        """End what is being done, within `stop_s` seconds, and give back all leases."""
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

    # -- who asks ------------------------------------------------------------------------------------------------

    async def identify(self, token: str, address: str) -> Caller | None:
        """Return the caller with this token, None if it is not valid here. With a token that was not accepted before,
        the request counts against the rate of the address that it comes from.

        Raises:
            TooManyRequestsError
            DatabaseUnreachableError, KeysUnreachableError: nobody can tell.
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
        """Refuse what is not granted. A vault that may not be read is refused as one that is not there, unseen.

        Raises:
            VaultUnknownError, ScopeMissingError
        """
        if not caller.may(vault, "read"):
            raise VaultUnknownError
        if not caller.may(vault, scope):
            raise ScopeMissingError(vault, scope)

    # -- asking and writing --------------------------------------------------------------------------------------

    def read(self, caller: Caller, name: str, job: Job[T]) -> Future[T]:
        """Run `job` with a vault in a worker thread, and return its future result.

        Raises:
            VaultUnknownError: it may not be asked. The future: NotIndexedError, DatabaseUnreachableError
        """
        self.check_scope(caller, name, "read")

        def answer() -> T:
            vault = self.catalogue.find(name)
            return self._indexes.ask(self._folders.of(vault), vault, caller, job)

        return self._reading.submit(answer)

    async def write(
        self, caller: Caller, name: str, key: str, job: Job[WriteResult], scope: str = "write"
    ) -> WriteResult:
        """Return the answer of `job` when the vault's remote has its commit. `key` names the call: repeated, it is
        not stored twice. A call that is cut off by its client is carried out.

        Raises:
            VaultUnknownError, ScopeMissingError, DatabaseUnreachableError: nothing was stored.
            as `writing.write`
        """
        self.check_scope(caller, name, scope)
        call = WriteCall(caller, key)
        future = self._writing.submit(self._write, name, call, job)
        return await asyncio.shield(asyncio.wrap_future(future))

    def _write(self, name: str, call: WriteCall, job: Job[WriteResult]) -> WriteResult:
        outcome, wait_s = "refused", self.config.write_s
        try:
            vault = self.catalogue.find(name)
            folder = self._folders.of(vault)
            # In the order of upkeep.py, which has the lease when it comes to the folder.
            with folder.in_line(wait_s), self._leases.held(vault.vault, wait_s), folder.alone(wait_s):
                stored = writing.write(folder, vault, call, job)
                outcome = "stored"
                if stored.attempts:
                    self.metrics.observe("quaid_write_attempts", stored.attempts)
                self._show(vault)
        except writing.OutcomeUnknownError:
            outcome = "unknown"
            raise
        else:
            return stored.written
        finally:
            self.metrics.count("quaid_writes_total", outcome=outcome)

    def _show(self, vault: ServedVault) -> None:
        """Bring the index to what was pushed, so that its writer reads it. What fails here is left to a worker: the
        write is stored.
        """
        folder = self._folders.of(vault)
        try:
            head = folder.mirror.fetch()
            if head is not None:
                config = self._indexes.bring_to(folder, vault, head)
                self.catalogue.note_indexed(vault.vault, head, config)
        except Exception:  # noqa: BLE001 - whatever it is, the remote has the commit
            with suppress(QuaidError):
                self._upkeep.queue(vault, "written")

    # -- news and figures ----------------------------------------------------------------------------------------

    def hear_of_push(self, addresses: Sequence[str]) -> int:
        """Have the vaults at these addresses brought up to date; return their number."""
        vaults = self.catalogue.find_by_address(addresses)
        for vault in vaults:
            self._upkeep.queue(vault, "push")
        return len(vaults)

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
