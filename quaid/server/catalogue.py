"""The catalogue of served vaults and the queue of pending index updates.

A worker takes a job and the lease of its vault in one statement, and skips jobs that others are taking.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg.errors import UniqueViolation

from quaid.errors import BadInputError, QuaidError
from quaid.history.addresses import complete, hide_password, hide_passwords
from quaid.history.mirrors import check_source
from quaid.server.database import Database, Row

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
MAX_PROBLEM = 400
FIRST_PAUSE_S = 2.0
"""After the first failure of a vault; it doubles each time, up to `MAX_PAUSE_S`."""
MAX_PAUSE_S = 3600.0


class VaultUnknownError(QuaidError):
    """No vault of this name is served to this caller. It does not say whether there is one."""

    code = "vault_unknown"

    def __init__(self) -> None:
        super().__init__("There is no such vault here, or it is not yours to read.")


@dataclass(frozen=True, slots=True)
class ServedVault:
    """A vault of the catalogue. `head` is the last known commit of its remote, `indexed` that of its index, with
    `config` as its quaid.toml; `failures` counts those in a row, `problem` is the last one.
    """

    vault: int
    name: str
    address: str
    branch: str
    head: str | None = None
    indexed: str | None = None
    config: str = ""
    failures: int = 0
    problem: str = ""

    @property
    def shown_address(self) -> str:
        """The address of its remote for people, without a password."""
        return hide_password(self.address)

    @property
    def key(self) -> str:
        """The key of its index, different from that of an earlier vault with the same name."""
        return f"{self.vault}-{self.name}"

    @classmethod
    def of(cls, row: Row) -> "ServedVault":
        return cls(**{name: row[name] for name in cls.__slots__})


Job = tuple[ServedVault, int, datetime]
"""A vault whose index is to be updated, how often that was requested, and since when."""


class Catalogue:
    """The tables `vaults` and `jobs`."""

    def __init__(self, database: Database, plain_hosts: str = "") -> None:
        self._database = database
        self._plain_hosts = plain_hosts

    # -- vaults --------------------------------------------------------------------------------------------------

    def add(self, name: str, address: str, branch: str = "main") -> ServedVault:
        """Add the vault at `address`. BadInputError: the name, address or branch is not valid, or the name is taken."""
        if not NAME.fullmatch(name):
            raise BadInputError(f"{name!r} is not a name for a vault. Give small letters, digits and hyphens.")
        address = complete(address)
        check_source(address, branch, self._plain_hosts)
        try:
            (row,) = self._database.ask(
                "INSERT INTO quaid_server.vaults (name, address, branch) VALUES (%s, %s, %s) RETURNING *",
                (name, address, branch),
            )
        except UniqueViolation as error:
            raise BadInputError(f"There is a vault {name} already. See it with: quaid serve status") from error
        self.queue(row["vault"], "added")
        return ServedVault.of(row)

    def remove(self, name: str) -> ServedVault:
        """Remove a vault from the catalogue and return it; its repository stays. BadInputError: there is none."""
        rows = self._database.ask("DELETE FROM quaid_server.vaults WHERE name = %s RETURNING *", (name,))
        if not rows:
            raise BadInputError(f"There is no vault {name!r}. See them with: quaid serve status")
        return ServedVault.of(rows[0])

    def find(self, name: str) -> ServedVault:
        """Return the vault with this name. Raises VaultUnknownError."""
        rows = self._database.ask("SELECT * FROM quaid_server.vaults WHERE name = %s", (name,))
        if not rows:
            raise VaultUnknownError
        return ServedVault.of(rows[0])

    def find_by_address(self, addresses: Sequence[str]) -> list[ServedVault]:
        """Return the vaults whose remote is at one of `addresses`."""
        found = self._database.ask("SELECT * FROM quaid_server.vaults WHERE address = ANY(%s)", (list(addresses),))
        return [ServedVault.of(row) for row in found]

    def list_all(self) -> list[ServedVault]:
        """Return the vaults, those with a problem first."""
        rows = self._database.ask("SELECT * FROM quaid_server.vaults ORDER BY failures = 0, name LIMIT 1000")
        return [ServedVault.of(row) for row in rows]

    # -- freshness -----------------------------------------------------------------------------------------------

    def take_due(self, limit: int, poll_s: float) -> list[ServedVault]:
        """Return vaults whose remotes are to be polled now; other servers get others. Each is due again after `poll_s`
        seconds, plus or minus a fifth, so that a thousand vaults are not polled at once.
        """
        rows = self._database.ask(
            "UPDATE quaid_server.vaults SET poll_at = now() + make_interval(secs => %s * (0.8 + 0.4 * random())) "
            "WHERE vault IN (SELECT vault FROM quaid_server.vaults WHERE poll_at <= now() ORDER BY poll_at LIMIT %s "
            "FOR UPDATE SKIP LOCKED) RETURNING *",
            (poll_s, limit),
        )
        return [ServedVault.of(row) for row in rows]

    def queue(self, vault: int, reason: str) -> None:
        """Queue an index update. The pause after a failure stays."""
        self._database.change(
            "INSERT INTO quaid_server.jobs (vault, reason) VALUES (%s, %s) "
            "ON CONFLICT (vault) DO UPDATE SET asked = jobs.asked + 1",
            (vault, reason),
        )

    def take(self, holder: str, lease_s: float) -> Job | None:
        """Return a job that is due, whose vault `holder` has a lease of then; None if there is none."""
        rows = self._database.ask(
            "WITH next AS (SELECT vault FROM quaid_server.jobs AS job WHERE due <= now() AND NOT EXISTS "
            "(SELECT 1 FROM quaid_server.leases AS lease WHERE lease.vault = job.vault AND expires > now()) "
            "ORDER BY due LIMIT 1 FOR UPDATE OF job SKIP LOCKED), "
            "held AS (INSERT INTO quaid_server.leases AS lease (vault, holder, expires) "
            "SELECT vault, %(holder)s, now() + make_interval(secs => %(lease_s)s) FROM next "
            "ON CONFLICT (vault) DO UPDATE SET holder = excluded.holder, expires = excluded.expires "
            "WHERE lease.expires <= now() RETURNING vault) "
            "SELECT vaults.*, asked, queued_at FROM held JOIN quaid_server.jobs USING (vault) "
            "JOIN quaid_server.vaults USING (vault)",
            {"holder": holder, "lease_s": lease_s},
        )
        if not rows:
            return None
        return ServedVault.of(rows[0]), rows[0]["asked"], rows[0]["queued_at"]

    def note_indexed(self, vault: int, commit: str, config: str, asked: int | None = None) -> None:
        """Record that the index contains `commit` of the remote. With `asked` a job is done; an update that was
        requested meanwhile stays in the queue.
        """
        self._database.change(
            "WITH done AS (DELETE FROM quaid_server.jobs WHERE vault = %(vault)s AND asked = %(asked)s::bigint) "
            "UPDATE quaid_server.vaults SET head = %(commit)s, indexed = %(commit)s, indexed_at = now(), "
            "config = %(config)s, failures = 0, problem = '' WHERE vault = %(vault)s",
            {"vault": vault, "commit": commit, "config": config, "asked": asked},
        )

    def fail(self, vault: int, problem: str) -> None:
        """Postpone the job of a vault: the more often it has failed, the longer."""
        self._database.change(
            "WITH failed AS (UPDATE quaid_server.vaults SET failures = failures + 1, problem = %(problem)s "
            "WHERE vault = %(vault)s RETURNING vault, failures) "
            "UPDATE quaid_server.jobs SET due = now() + make_interval(secs => least(%(most)s, %(first)s * "
            "power(2, least(failures, 20) - 1))) FROM failed WHERE jobs.vault = failed.vault",
            {
                "vault": vault,
                "problem": hide_passwords(problem)[:MAX_PROBLEM],
                "most": MAX_PAUSE_S,
                "first": FIRST_PAUSE_S,
            },
        )

    def count(self) -> Row:
        """Count `vaults`, those `failing` and `behind`, and `jobs`; `oldest_s` is the age of the oldest due job."""
        (row,) = self._database.ask(
            "SELECT count(*) AS vaults, count(*) FILTER (WHERE failures > 0) AS failing, "
            "count(*) FILTER (WHERE indexed IS DISTINCT FROM head) AS behind, "
            "(SELECT count(*) FROM quaid_server.jobs) AS jobs, "
            "(SELECT coalesce(extract(epoch FROM now() - min(queued_at)), 0)::float8 FROM quaid_server.jobs "
            "WHERE due <= now()) AS oldest_s FROM quaid_server.vaults"
        )
        return row
