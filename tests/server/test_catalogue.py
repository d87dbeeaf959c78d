"""The queue, the leases and the tokens that servers share."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from command_line import quaid

from quaid.errors import BadInputError, LockedError

pytest.importorskip("psycopg_pool", reason="psycopg is not installed")

from quaid.server.catalogue import Catalogue, VaultUnknownError
from quaid.server.database import Database, install
from quaid.server.leases import Leases
from quaid.server.tokens import Caller, Tokens, parse_grants, parse_typed_grants


@pytest.fixture(scope="module")
def database(address: str) -> Iterator[Database]:
    opened = Database(address, 8)
    opened.open()
    yield opened
    opened.close()


@pytest.fixture
def catalogue(database: Database) -> Catalogue:
    database.change("DELETE FROM quaid_server.vaults")
    return Catalogue(database)


def add(catalogue: Catalogue, count: int) -> None:
    for number in range(count):
        catalogue.add(f"v{number}", f"https://git.example.org/v{number}.git")


def test_each_job_is_taken_once_however_many_take(catalogue: Catalogue) -> None:
    add(catalogue, 20)
    with ThreadPoolExecutor(6) as pool:
        taken = list(pool.map(lambda number: catalogue.take(f"h{number}", 30), range(40)))
    names = [job.vault.name for job in taken if job is not None]
    assert sorted(names) == sorted(f"v{number}" for number in range(20))


def test_a_push_during_the_job_is_not_lost(catalogue: Catalogue, database: Database) -> None:
    add(catalogue, 1)
    job = catalogue.take("one", 30)
    catalogue.queue(job.vault.vault, "push")
    catalogue.finish(job, "c0ffee", "")
    database.change("DELETE FROM quaid_server.leases")
    again = catalogue.take("two", 30)
    assert again is not None
    catalogue.finish(again, "c0ffee", "")
    database.change("DELETE FROM quaid_server.leases")
    assert catalogue.take("three", 30) is None
    assert catalogue.find("v0").indexed == "c0ffee"


def test_a_vault_that_fails_waits_longer_each_time_and_no_other_waits_for_it(
    catalogue: Catalogue, database: Database
) -> None:
    add(catalogue, 1)
    pauses = []
    for _ in range(3):
        database.change("UPDATE quaid_server.jobs SET due = now()")
        database.change("DELETE FROM quaid_server.leases")
        catalogue.fail(catalogue.take("one", 30), "https://maya:secret@git.example.org is broken")
        (row,) = database.ask("SELECT extract(epoch FROM due - now())::float8 AS pause FROM quaid_server.jobs")
        pauses.append(round(row["pause"]))
    assert pauses == [2, 4, 8]
    assert "secret" not in catalogue.find("v0").problem
    catalogue.add("other", "https://git.example.org/other.git")
    assert catalogue.take("two", 30).vault.name == "other"


def test_a_lease_has_one_holder_and_outlives_no_dead_one(catalogue: Catalogue, database: Database) -> None:
    add(catalogue, 1)
    vault = catalogue.find("v0").vault
    leases, others = Leases(database, "a", 0.6), Leases(database, "b", 0.6)
    leases.start()
    order: list[str] = []

    def hold() -> None:
        with leases.held(vault, 5):
            order.append("first")
            time.sleep(1.2)  # longer than the lease: it is renewed
            order.append("first still")

    thread = threading.Thread(target=hold)
    thread.start()
    time.sleep(0.2)
    with pytest.raises(LockedError), others.held(vault, 0.2):
        pass
    with others.held(vault, 5):
        order.append("second")
    thread.join()
    assert order == ["first", "first still", "second"]
    assert others._take(vault, "dead")  # its process is killed: nobody renews
    started = time.monotonic()
    with leases.held(vault, 5):
        assert time.monotonic() - started > 0.3
    leases.close()


def test_the_role_of_servers_is_a_plain_one(address: str, tmp_path: Path) -> None:
    owner = address.replace("quaid_server:@", "postgres:@")
    for role in (owner, address.replace("quaid_server:@", "nobody_there:@")):
        with pytest.raises(BadInputError, match="is missing, or is more than a plain one"):
            install(owner, role)
    config = tmp_path / "server.toml"
    config.write_text(f'database = "{address}"\naddress = "https://memory.example.org"\n')
    code, out, said = quaid("serve", "setup", owner, "--config", str(config))
    assert (code, "Ready" in out) == (0, True), said
    assert quaid("serve", "setup", "--config", str(config))[0] == 2


def test_a_push_is_heard_of_whatever_password_the_address_has(catalogue: Catalogue) -> None:
    catalogue.add("secret", "https://bot:token@git.example.org/secret.git")
    found = catalogue.find_by_address(["https://git.example.org/secret.git", "https://git.example.org/other.git"])
    assert [vault.name for vault in found] == ["secret"]


def test_a_name_that_could_be_a_path_is_refused(catalogue: Catalogue) -> None:
    for name in ("../x", "A", "", "a/b", "x" * 64):
        with pytest.raises(BadInputError):
            catalogue.add(name, "https://git.example.org/x.git")
    with pytest.raises(BadInputError):
        catalogue.add("x", "ext::sh -c true")
    with pytest.raises(VaultUnknownError):
        catalogue.find("x")


def test_a_token_is_known_by_its_hash_until_it_is_taken_back_or_expires(database: Database) -> None:
    tokens = Tokens(database)
    token = tokens.add("ci", parse_typed_grants(["team:read,write", "me:admin"]), "maya")
    old = tokens.add("old", parse_typed_grants(["team:read"]), expires=datetime.now(UTC) - timedelta(seconds=1))
    (row,) = database.ask("SELECT * FROM quaid_server.tokens WHERE name = 'ci'")
    assert token not in str(row)
    caller = tokens.find(token)
    assert (caller.client, caller.owner) == ("ci", "maya")
    assert caller.may("team", "write")
    assert caller.may("me", "review")
    assert not caller.may("team", "review")
    assert not caller.may("other", "read")
    assert tokens.find(old) is None
    assert tokens.find(token + "x") is None
    tokens.remove("ci")
    assert Tokens(database).find(token) is None
    with pytest.raises(BadInputError):
        parse_typed_grants(["team:everything"])


def test_scopes_of_oauth_grant_what_they_name_and_nothing_else() -> None:
    grants = parse_grants(
        ["quaid:team:read", "quaid:me:write", "quaid:*:read", "openid", "quaid:team:root", "quaid:../x:read"]
    )
    caller = Caller("c", "o", grants)
    assert caller.list_readable() == ["me", "team"]
    assert not caller.may("team", "write")
