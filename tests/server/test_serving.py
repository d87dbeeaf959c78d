"""`quaid serve` as it runs: two processes, one database, repositories behind git's own HTTP server."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass

import pytest
from command_line import quaid
from served_vaults import Answer, GitHost, ServerProcess, call_tool, fact, get, id_of, post, run_git, wait_for
from vaults import PATIENCE_S

pytest.importorskip("psycopg_pool", reason="psycopg is not installed")

from quaid.server.catalogue import Catalogue, ServedVault
from quaid.server.database import Database
from quaid.server.tokens import METRICS, Tokens, parse_typed_grants

TEAM = {
    **fact("oat", "Maya Chen drinks oat milk in her coffee"),
    **fact("diary", "Bob hides the diary under the piano", owner="bob", privacy="private"),
    "notes/cellar.md": "---\nOwner: bob\nx: [\nPrivacy: Hidden\n---\n# Cellar\n\nThe wombat sleeps in the cellar.\n",
}


@dataclass
class House:
    """Two servers of one database that share a folder of mirrors, its catalogue, and who may do what."""

    servers: list[ServerProcess]
    git: GitHost
    database: Database
    catalogue: Catalogue
    tokens: dict[str, str]

    def add(self, name: str, notes: dict[str, str]) -> str:
        address = self.git.make(name, notes)
        self.catalogue.add(name, address)
        wait_for(lambda: self.find(name).indexed)
        return address

    def find(self, name: str) -> ServedVault:
        return self.catalogue.find(name)

    def ask(
        self, tool: str, *, vault: str = "team", who: str = "maya", at: int = 0, key: str = "", **arguments: object
    ) -> Answer:
        return self.servers[at].ask(vault, self.tokens[who], tool, key, **arguments)


@pytest.fixture(scope="module")
def house(address: str, git: GitHost, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    database = Database(address, 2)
    database.open()
    tokens = Tokens(database)
    every = parse_typed_grants([f"{name}:read,write" for name in ("team", "me", "race", "strict", "gone", "late")])
    made = {
        "maya": tokens.add("maya-laptop", every, "maya"),
        "bob": tokens.add("bob-laptop", parse_typed_grants(["team:read"]), "bob"),
        "figures": tokens.add("prometheus", {METRICS: frozenset({"read"})}),
    }
    folder = tmp_path_factory.mktemp("servers")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QUAID_EMBEDDING_PROVIDER", "none")
        servers = [
            ServerProcess(
                folder / f"s{number}",
                address,
                mirrors=str(folder / "mirrors"),
                poll_s=1.0,
                lease_s=2.0,
                git_timeout_s=5.0,
            )
            for number in range(2)
        ]
        try:
            for server in servers:
                server.start(wait=False)
            for server in servers:
                server.wait_until_ready()
            house = House(servers, git, database, Catalogue(database), made)
            house.add("team", TEAM)
            yield house
        finally:
            for server in servers:
                if server.process is not None and server.process.poll() is None:
                    server.kill()
    database.close()


def test_what_one_server_stores_is_a_commit_of_the_remote_and_any_server_recalls_it(house: House) -> None:
    stored = house.ask("memory_store", text="Maya Chen moves to Lisbon on 3 May 2027")
    assert stored.shape["outcome"] == "created", stored.body
    head = run_git(house.git.folder / "team.git", "log", "-1", "--format=%H %B", "main")
    assert stored.shape["commit"] in head
    assert "Quaid-Client: maya-laptop" in head
    for at in range(2):
        assert house.ask("memory_recall", at=at, query="Where does Maya Chen move to, Lisbon?").texts == [
            "Maya Chen moves to Lisbon on 3 May 2027"
        ]
        assert "Lisbon" in house.ask("memory_get", at=at, ref=stored.shape["id"]).text
    history = house.ask("memory_history", at=1, ref=stored.shape["id"])
    assert [each["commit"] for each in history.shape["changes"]] == [stored.shape["commit"][:10]]


def test_private_notes_of_others_are_in_no_answer(house: House) -> None:
    wanted = {"query": "Where does Bob hide the diary, under the piano?"}
    assert "piano" in house.ask("memory_recall", who="bob", **wanted).text
    for tool, arguments in (
        ("memory_recall", wanted), ("memory_search", {"query": "piano"}), ("memory_get", {"ref": id_of("diary")}),
        ("memory_history", {"ref": id_of("diary")}), ("memory_recall", {}),
    ):  # fmt: skip
        answer = house.ask(tool, **arguments)
        assert b"piano" not in answer.body.replace(b"under the piano?", b"")
        assert b"hides" not in answer.body


def test_what_another_has_written_by_hand_and_calls_private_is_in_no_answer(house: House) -> None:
    wanted = {"query": "Who sleeps there, a wombat?"}
    assert "cellar" in house.ask("memory_recall", who="bob", **wanted).text
    for tool, arguments in (
        ("memory_recall", wanted), ("memory_search", {"query": "wombat sleeps"}), ("memory_recall", {}),
        ("memory_get", {"ref": "notes/cellar.md"}), ("memory_get", {"ref": "Cellar"}),
        ("memory_history", {"ref": "notes/cellar.md"}),
    ):  # fmt: skip
        answer = house.ask(tool, **arguments)
        for word in (b"sleeps in", b"cellar.md"):
            assert word not in answer.body.replace(b"'notes/cellar.md'", b""), (tool, answer.body)


def test_a_commit_has_the_name_of_the_callers_owner(house: House) -> None:
    stored = house.ask("memory_store", text="Maya Chen learns the oboe")
    bare = house.git.folder / "team.git"
    head = run_git(bare, "log", "-1", "--format=%an <%ae> %cn", stored.shape["commit"])
    assert head.strip() == "maya (Quaid) <quaid@localhost> maya (Quaid)"


def test_a_vault_that_is_not_granted_is_answered_as_one_that_is_not_there(house: House) -> None:
    house.add("secret", fact("s", "The launch is on Friday"))
    answers = [house.ask("memory_recall", vault=name, query="launch") for name in ("secret", "nothing", "Secret", "..")]
    assert {answer.status for answer in answers} == {404}
    assert len({answer.body for answer in answers}) == 1


@pytest.mark.slow
def test_all_vaults_that_a_token_may_read_are_asked_as_one(house: House) -> None:
    house.add("one", fact("one", "The spare key hangs behind the garden door"))
    house.add("two", fact("two", "The spare key of the car hangs in the kitchen"))
    house.add("three", fact("three", "The spare key of the safe hangs in the attic"))
    token = Tokens(house.database).add("several", parse_typed_grants(["one:read", "two:read"]))
    url = f"{house.servers[0].url}/mcp"
    found = call_tool(url, token, "memory_recall", {"query": "Where does the spare key hang?"})
    assert {vault for each in found.shape["memories"] for vault in each["vaults"]} == {"one", "two"}, found.body
    assert "attic" not in found.text
    only = call_tool(url, token, "memory_recall", {"query": "Where does the spare key hang?", "vaults": ["two"]})
    assert [each["vaults"] for each in only.shape["memories"]] == [["two"]]
    refused = call_tool(url, token, "memory_recall", {"query": "key", "vaults": ["three"]})
    unknown = call_tool(url, token, "memory_recall", {"query": "key", "vaults": ["nothing"]})
    assert refused.text == unknown.text.replace("nothing", "three")
    assert call_tool(url, token, "memory_store", {"text": "Nothing is written to all of them"}).is_error
    assert call_tool(url, house.tokens["figures"], "memory_recall", {"query": "key"}).status == 404


def test_who_asks_must_have_a_token_and_the_scope(house: House) -> None:
    url = f"{house.servers[0].url}/v/team/mcp"
    for headers in (
        {},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer quaid_x"},
        {"Authorization": f"Basic {house.tokens['maya']}"},
    ):
        status, _, said = post(url, b"{}", headers)
        assert status == 401
        (metadata,) = (
            part.split('"')[1] for part in said["www-authenticate"].split(", ") if part.startswith("resource_metadata")
        )
        assert json.loads(get(metadata)[1])["resource"] == house.servers[0].url
    refused = house.ask("memory_store", who="bob", text="Bob may not store this sentence here")
    assert refused.status == 403
    assert 'scope="quaid:team:write"' in refused.headers["www-authenticate"]
    assert (
        post(url, b"{}", {"Authorization": f"Bearer {house.tokens['maya']}", "Origin": "https://evil.example"})[0]
        == 403
    )
    assert post(url, b"x" * (5 * 2**20), {"Authorization": f"Bearer {house.tokens['maya']}"})[0] == 413
    assert house.ask("memory_note", text="a tool that is not offered here").is_error


def test_a_push_is_heard_of_and_recalled_within_seconds(house: House) -> None:
    address = house.git.address("team")
    house.git.commit("team", fact("kayak", "Maya Chen bought a blue kayak"))
    assert (
        post(
            f"{house.servers[0].url}/hooks/push",
            json.dumps({"repository": {"clone_url": address}}).encode(),
            {"X-Hub-Signature-256": "sha256=00"},
        )[0]
        == 401
    )
    assert house.servers[0].push_hook(address) == 202
    assert house.servers[0].push_hook("https://git.example.org/unknown.git") == 202
    wait_for(lambda: "blue kayak" in house.ask("memory_recall", at=1, query="blue kayak").text)


def test_a_push_that_nobody_tells_of_is_found_by_asking(house: House) -> None:
    house.git.commit("team", fact("piano", "Maya Chen sold the grand piano"))
    wait_for(lambda: "grand piano" in house.ask("memory_recall", at=1, query="grand piano").text)


@pytest.mark.slow
def test_writers_at_two_servers_lose_nothing(house: House) -> None:
    house.add("race", fact("r", "The race begins here"))
    said = [f"Runner number {number} wears shirt {number}" for number in range(8)]

    def store(number: int) -> Answer:
        if number == 3:  # another machine pushes meanwhile
            house.git.commit("race", fact("x", "Another machine pushed this"))
        return house.ask("memory_store", vault="race", at=number % 2, text=said[number])

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(store, range(8)))
    assert [answer.shape.get("outcome") for answer in answers] == ["created"] * 8, [answer.body for answer in answers]
    text = house.git.read("race")
    assert [line for line in said if text.count(line) != 1] == []
    assert "Another machine pushed this" in text
    folder = house.servers[0].folder.parent
    assert {path.relative_to(folder).parts[0] for path in folder.rglob("mirror.git")} == {"mirrors"}


@pytest.mark.slow
def test_a_call_that_is_repeated_under_its_key_is_stored_once(house: House) -> None:
    told = {"text": "Maya Chen plays the cello on Tuesdays"}
    first = house.ask("memory_store", key="call-1", **told)
    commits = house.git.head("team")
    again = house.ask("memory_store", key="call-1", at=1, **told)
    assert (again.shape["outcome"], again.shape["id"], again.shape["commit"]) == (
        "known",
        first.shape["id"],
        first.shape["commit"],
    )
    assert house.git.head("team") == commits
    assert house.ask("memory_store", key="call-2", **told).shape["outcome"] == "confirmed"


@pytest.mark.slow
def test_who_reviews_answers_the_questions_of_the_janitor(house: House) -> None:
    question = (
        "---\ntype: review\ntask: compare\nkind: merge\nkey: 3f0c9a1b2c3d4e5f\nprivacy: shared\n---\n"
        "# merge two facts about the cello\n\n- [ ] Yes, do it\n- [ ] No, and do not ask again\n"
    )
    house.add("asked", {**fact("a", "Maya Chen owns a cello"), "review/merge-3f0c9a1b.md": question})
    tokens = Tokens(house.database)
    house.tokens["reviewer"] = tokens.add("reviewer", parse_typed_grants(["asked:review"]), "default")
    house.tokens["reader"] = tokens.add("reader", parse_typed_grants(["asked:read"]))
    (found,) = house.ask("memory_questions", vault="asked", who="reviewer").shape["questions"]
    assert found["question"] == "merge two facts about the cello"
    assert house.ask("memory_questions", vault="asked", who="reader").status == 403
    assert house.ask("memory_store", vault="asked", who="reviewer", text="A reviewer stores nothing here").status == 403
    answered = house.ask("memory_answer", vault="asked", who="reviewer", ref=found["id"], answer="no")
    assert answered.shape["outcome"] == "edited", answered.body
    left = house.git.read("asked")  # the answer acts at once: the question goes, and the fact stays
    assert "merge two facts" not in left
    assert "Maya Chen owns a cello" in left


@pytest.mark.slow
def test_a_remote_that_rejects_a_push_has_nothing_stored(house: House) -> None:
    house.add("strict", fact("s", "The rules are strict here"))
    house.git.reject_pushes("strict", "no pushes on Fridays")
    refused = house.ask("memory_store", vault="strict", text="Maya Chen baked a walnut bread")
    assert refused.is_error
    assert "Nothing was stored" in refused.text
    assert "walnut" not in house.ask("memory_recall", vault="strict", query="walnut bread").text
    house.git.reject_pushes("strict", None)
    assert house.ask("memory_store", vault="strict", text="Maya Chen baked a rye bread").shape["outcome"] == "created"
    assert "walnut" not in house.git.read("strict")


@pytest.mark.slow
def test_a_poisoned_repository_stops_only_itself(house: House) -> None:
    bomb = house.git.folder / "bomb.git"
    run_git(house.git.folder, "init", "-q", "--bare", "--template=", "-b", "main", str(bomb))
    blob = run_git(bomb, "hash-object", "-w", "--stdin", stdin=b"x")
    tree = run_git(bomb, "mktree", stdin="".join(f"100644 blob {blob}\tf{n}\n" for n in range(10)).encode())
    for _ in range(8):
        tree = run_git(bomb, "mktree", stdin="".join(f"040000 tree {tree}\td{n}\n" for n in range(10)).encode())
    commit = run_git(bomb, "commit-tree", "-m", "x", tree)
    run_git(bomb, "update-ref", "refs/heads/main", commit)
    with closing(socket.socket()) as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(8)
        house.catalogue.add("bomb", house.git.address("bomb"))
        house.catalogue.add("silent", f"http://127.0.0.1:{silent.getsockname()[1]}/x.git")
        house.catalogue.add("absent", house.git.address("absent"))
        started = time.monotonic()
        house.add("late", fact("l", "A vault that comes after poisoned ones"))
        assert time.monotonic() - started < PATIENCE_S
        wait_for(lambda: all(house.find(name).failures for name in ("bomb", "silent", "absent")), 30)
    assert "more than 200,000 files" in house.find("bomb").problem
    assert not house.ask("memory_recall", vault="late", query="poisoned ones").is_error
    for name in ("bomb", "silent", "absent"):
        house.catalogue.remove(name)


@pytest.mark.slow
def test_a_killed_server_is_missed_by_nobody(house: House) -> None:
    house.add("gone", fact("g", "Somebody is gone"))
    threads = [
        threading.Thread(
            target=house.ask,
            args=("memory_store",),
            kwargs={"vault": "gone", "text": f"Maya Chen counts to {n} slowly"},
        )
        for n in range(3)
    ]
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    house.servers[0].kill()
    for thread in threads:
        thread.join()
    stored = house.ask("memory_store", vault="gone", at=1, text="Maya Chen counts to ninety slowly")
    assert stored.shape["outcome"] == "created", stored.body
    house.servers[0].start()
    assert (
        house.ask("memory_store", vault="gone", text="Maya Chen counts to a hundred slowly").shape["outcome"]
        == "created"
    )
    text = house.git.read("gone")
    assert "ninety" in text
    assert "hundred" in text


@pytest.mark.slow
def test_a_server_that_is_stopped_ends_what_it_does(house: House) -> None:
    answers: list[Answer] = []
    thread = threading.Thread(
        target=lambda: answers.append(house.ask("memory_store", text="Maya Chen closes the door behind her"))
    )
    thread.start()
    time.sleep(0.2)
    assert house.servers[0].stop() == 0
    thread.join()
    assert answers[0].status in {0, 200}
    assert (answers[0].status == 200) == ("closes the door" in house.git.read("team"))
    held = house.database.ask("SELECT holder FROM quaid_server.leases WHERE holder LIKE 's0/%%'")
    assert held == []
    house.servers[0].start()


def test_figures_and_log_tell_what_happened_and_nothing_of_what_was_said(house: House) -> None:
    server = house.servers[0]
    house.ask("memory_recall", query="a question about zebras")
    assert get(f"{server.url}/metrics")[0] == 401
    assert get(f"{server.url}/metrics", {"Authorization": f"Bearer {house.tokens['maya']}"})[0] == 401
    status, figures, _ = get(f"{server.url}/metrics", {"Authorization": f"Bearer {house.tokens['figures']}"})
    assert status == 200
    assert b'quaid_tool_seconds_count{outcome="done",tool="memory_recall"}' in figures
    assert b"team" not in figures
    said = post(
        f"{server.url}/v/team/mcp",
        b"{}",
        {"Authorization": f"Bearer {house.tokens['maya']}", "X-Request-Id": "given-1"},
    )[2]
    assert said["x-request-id"] == "given-1"
    wait_for(lambda: '"request": "given-1"' in server.read_log())  # a line follows its answer
    log = server.read_log()
    for word in ("zebra", "Lisbon", "oat milk", house.tokens["maya"], "door"):
        assert word not in log
    assert get(f"{server.url}/healthz")[0] == 200


@pytest.mark.slow
def test_what_the_command_line_adds_is_served(house: House) -> None:
    config = house.servers[0].config

    def run(*args: str) -> str:
        code, out, said = quaid("serve", *args, "--config", str(config))
        assert code == 0, said
        return out

    address = house.git.make("mine", fact("m", "A vault that the operator added"))
    assert "Added" in run("vault", "add", "mine", address)
    token = run("token", "add", "me", "--grant", "mine:read").strip()
    wait_for(lambda: house.find("mine").indexed)
    assert "operator" in house.servers[1].ask("mine", token, "memory_recall", query="operator").text
    assert "mine" in run("status")
    assert quaid("serve", "vault", "add", "mine", address, "--config", str(config))[0] == 1
    assert "not a grant" in quaid("serve", "token", "add", "x", "--grant", "mine:all", "--config", str(config))[2]
    assert quaid("serve", "dance", "--config", str(config))[0] == 2
    assert "me" in run("token", "list")
    assert token not in run("token", "list")
    run("token", "remove", "me")
    run("vault", "remove", "mine")
