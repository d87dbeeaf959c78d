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
from quaid.history.mirrors import Mirror, MirrorLimits
from quaid.place import config_folder

pytest.importorskip("psycopg_pool", reason="psycopg is not installed")

from quaid.server.catalogue import Catalogue, VaultUnknownError
from quaid.server.database import Database, install
from quaid.server.tokens import KNOWN_S, Caller, Tokens, parse_grants, parse_typed_grants
from quaid.server.upkeep import Leases


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


@pytest.mark.slow
def test_each_job_is_taken_once_however_many_take(catalogue: Catalogue) -> None:
    add(catalogue, 20)
    with ThreadPoolExecutor(6) as pool:
        taken = list(pool.map(lambda number: catalogue.take(f"h{number}", 30), range(40)))
    names = [job[0].name for job in taken if job is not None]
    assert sorted(names) == sorted(f"v{number}" for number in range(20))


def test_a_push_during_the_job_is_not_lost(catalogue: Catalogue, database: Database) -> None:
    add(catalogue, 1)
    vault, asked, _ = catalogue.take("one", 30)
    catalogue.queue(vault.vault, "push")
    catalogue.note_indexed(vault.vault, "c0ffee", "", asked)
    database.change("DELETE FROM quaid_server.leases")
    again, asked, _ = catalogue.take("two", 30)
    catalogue.note_indexed(again.vault, "c0ffee", "", asked)
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
        catalogue.fail(catalogue.take("one", 30)[0].vault, "https://maya:secret@git.example.org is broken")
        (row,) = database.ask("SELECT extract(epoch FROM due - now())::float8 AS pause FROM quaid_server.jobs")
        pauses.append(round(row["pause"]))
    assert pauses == [2, 4, 8]
    assert "secret" not in catalogue.find("v0").problem
    catalogue.add("other", "https://git.example.org/other.git")
    assert catalogue.take("two", 30)[0].name == "other"


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
    dead = others.held(vault, 5)
    dead.__enter__()  # its process is killed: nobody renews
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


def test_a_name_that_could_be_a_path_is_refused(catalogue: Catalogue) -> None:
    for name in ("../x", "A", "", "a/b", "x" * 64):
        with pytest.raises(BadInputError):
            catalogue.add(name, "https://git.example.org/x.git")
    with pytest.raises(VaultUnknownError):
        catalogue.find("x")


@pytest.mark.parametrize(
    ("remote", "said"),
    [
        ("ext::sh -c true", "is not an address"), ("git://git.example.org/x.git", "is not an address"),
        ("ssh://-oProxyCommand=touch%20x/x.git", "is not an address"), ("-x:y", "is not an address"),
        ("ssh://-o@host/x.git", "is not an address"), ("ssh://%2DoProxyCommand=x/y", "is not an address"),
        ("maya@-oProxyCommand=x:y", "is not an address"), ("https:///x.git", "is not an address"),
        ("https://git.example.org/x.git\n", "is not an address"), ("https://git.example.org/\ud800", "is not an address"),
        ("http://git.example.org/x.git", "over http"), ("HTTP://git.example.org/x.git", "over http"),
        ("http://127.0.0.1@git.example.org/x.git", "over http"), ("http://localhost.example.org/x.git", "over http"),
        ("file:///srv/x.git", "is a folder"), ("/srv/x.git", "is a folder"), ("./x.git", "is a folder"),
        ("https://bot:hunter2@git.example.org/x.git", "password or a token"),
        ("https://ghp_hunter2@git.example.org/x.git", "password or a token"),
        ("ssh://git:hunter2@git.example.org/x.git", "password or a token"),
    ],
)  # fmt: skip
def test_an_address_that_runs_something_or_shows_something_is_refused(
    catalogue: Catalogue, tmp_path: Path, remote: str, said: str
) -> None:
    with pytest.raises(BadInputError, match=said) as refused:
        catalogue.add("x", remote)
    assert "hunter2" not in str(refused.value)
    assert catalogue.list_all() == []
    # One that got into the database otherwise is not handed to git.
    for touch in (Mirror.look, Mirror.fetch):
        with pytest.raises(BadInputError, match=said):
            touch(Mirror(tmp_path / "mirror.git", remote, "main", MirrorLimits()))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("remote", ["https://git.example.org/x.git", "ssh://git@git.example.org:22/x.git",
                                     "git@git.example.org:x.git", "http://127.0.0.1:3000/x.git", "http://[::1]/x.git",
                                     "https://git.example.org:8443/~maya/x.git", "http://git:8080/x.git"])  # fmt: skip
def test_an_address_that_servers_reach_safely_is_taken(database: Database, remote: str) -> None:
    database.change("DELETE FROM quaid_server.vaults")
    assert Catalogue(database, "git, other").add("x", remote).address == remote


@pytest.mark.parametrize(
    "branch",
    ["-x", "--upload-pack=touch x", "", "HEAD", "a b", "a..b", "a:b", "a*", "^a", "a~1", "@{-1}", "a.lock", "/a",
     "a\0b", "a\nb", "\ud800", "refs/heads/../x"],
)  # fmt: skip
def test_a_branch_that_git_does_not_take_for_one_is_refused(catalogue: Catalogue, tmp_path: Path, branch: str) -> None:
    with pytest.raises(BadInputError, match="is not a name for a branch"):
        catalogue.add("x", "https://git.example.org/x.git", branch)
    with pytest.raises(BadInputError, match="is not a name for a branch"):
        Mirror(tmp_path / "mirror.git", "https://git.example.org/x.git", branch, MirrorLimits()).fetch()
    assert list(tmp_path.iterdir()) == []


def test_a_token_sees_private_notes_of_an_owner_that_it_was_given_and_of_nobody_who_is_called_like_it(
    database: Database,
) -> None:
    tokens, grants = Tokens(database), parse_typed_grants(["team:read"])
    for name in ("default", "Default", "DEFAULT"):
        with pytest.raises(BadInputError, match="each vault calls its own owner"):
            tokens.add(name, grants)
    for owner in ("a\nb", "\ud800", "a\0", " default", "x" * 300):
        with pytest.raises(BadInputError, match="is not a name for an owner"):
            tokens.add("given", grants, owner)
    assert tokens.find(tokens.add("bob", grants)).owner == "token bob"
    assert tokens.find(tokens.add("ci-2", grants, "default")).owner == "default"


def test_a_server_does_not_start_where_its_user_would_own_every_vault(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUAID_CONFIG_DIR", str(tmp_path / "config"))
    config = tmp_path / "server.toml"
    config.write_text(f'database = "{address}"\naddress = "https://memory.example.org"\n')
    config_folder().mkdir(parents=True, exist_ok=True)
    (config_folder() / "config.toml").write_text('owner = "bob"\n')
    code, _, said = quaid("serve", "--config", str(config))
    assert code != 0
    assert "the owner of every vault that is served" in said


def test_made_up_tokens_take_no_room(database: Database) -> None:
    tokens = Tokens(database)
    assert [tokens.find(f"quaid_{number}") for number in range(50)] == [None] * 50
    assert not tokens._known


def test_a_token_is_known_by_its_hash_until_it_is_taken_back_or_expires(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    assert tokens.find(token) is not None
    monkeypatch.setattr("quaid.server.tokens.time.monotonic", lambda: time.time() + KNOWN_S)
    assert tokens.find(token) is None
    with pytest.raises(BadInputError):
        parse_typed_grants(["team:everything"])


def test_scopes_of_oauth_grant_what_they_name_and_nothing_else() -> None:
    grants = parse_grants(
        ["quaid:team:read", "quaid:me:write", "quaid:*:read", "openid", "quaid:team:root", "quaid:../x:read"]
    )
    caller = Caller("c", "o", grants)
    assert caller.list_readable() == ["me", "team"]
    assert not caller.may("team", "write")
