"""Servers of many vaults: how long a question takes by the number of servers, how far the index lags behind a push, what
it costs to ask a remote that has nothing new, and the bytes of a note.

    python tests/benchmarks/serving.py --vaults 50 --notes 100
    python tests/benchmarks/serving.py --vaults 2000 --notes 500      # a million notes: hours and 20 GB
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from served_vaults import GitHost, Postgres, ServerProcess, call_tool, fact, wait_for

from quaid.history.mirrors import Mirror, MirrorLimits
from quaid.server.catalogue import Catalogue
from quaid.server.database import Database
from quaid.server.tokens import Tokens, parse_typed_grants

PEOPLE = (
    "Maya Chen",
    "Bob Ruiz",
    "Aiko Tanaka",
    "Lena Vogel",
    "Tomas Novak",
    "Priya Nair",
    "Omar Haddad",
    "Ines Costa",
)
VERBS = ("met", "called", "wrote to", "visited", "thanked", "hired", "asked", "paid")
THINGS = (
    "the bakery",
    "the bank",
    "the museum",
    "the garage",
    "the library",
    "the clinic",
    "the school",
    "the harbour",
)


def make_notes(count: int, seed: int) -> dict[str, str]:
    dice = random.Random(seed)
    notes: dict[str, str] = {}
    for number in range(count):
        text = f"{dice.choice(PEOPLE)} {dice.choice(VERBS)} {dice.choice(THINGS)} about order {seed}-{number} on day {dice.randrange(365)}"
        notes |= fact(f"n{seed}-{number}", text)
    return notes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vaults", type=int, default=20)
    parser.add_argument("--notes", type=int, default=100)
    parser.add_argument("--servers", default="1,2,3")
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument("--pushes", type=int, default=30)
    parser.add_argument("--stores", type=int, default=20)
    parser.add_argument("--embed", action="store_true", help="with the local embedding model")
    options = parser.parse_args()
    if not options.embed:
        os.environ["QUAID_EMBEDDING_PROVIDER"] = "none"
    folder = Path(tempfile.mkdtemp(prefix="q-bench-"))
    os.environ |= {
        "QUAID_CONFIG_DIR": str(folder / "config"),
        "QUAID_STATE_DIR": str(folder / "state"),
        "XDG_RUNTIME_DIR": str(folder),
    }
    postgres, git = Postgres(folder / "pg"), GitHost(folder / "git")
    address = postgres.make_database("bench")
    database = Database(address, 4)
    database.open()
    servers: list[ServerProcess] = []
    try:
        print(json.dumps(measure(options, folder, git, database, address, servers), indent=1))
    finally:
        for server in servers:
            server.kill()
        database.close()
        git.close()
        postgres.close()


def measure(
    options: argparse.Namespace,
    folder: Path,
    git: GitHost,
    database: Database,
    address: str,
    servers: list[ServerProcess],
) -> dict[str, object]:
    catalogue, empty = Catalogue(database), size_of(database)
    names = [f"v{number}" for number in range(options.vaults)]
    for number, name in enumerate(names):
        catalogue.add(name, git.make(name, make_notes(options.notes, number)))
    minted = Tokens(database)
    tokens = {name: minted.add(f"of-{name}", parse_typed_grants([f"{name}:read,write"]), "maya") for name in names}
    total = options.vaults * options.notes
    report = Report(vaults=options.vaults, notes=total)
    counts = [int(each) for each in options.servers.split(",")]
    servers += [ServerProcess(folder / f"s{each}", address, poll_s=3600.0) for each in range(max(counts))]
    for server in servers:
        server.start(wait=False)
    for server in servers:
        server.wait_until_ready()
    started = time.monotonic()
    wait_for(lambda: catalogue.count()["jobs"] == 0, 36_000)
    report[f"notes indexed a second by {len(servers)} servers"] = round(total / (time.monotonic() - started))
    report["recall ms of one client"] = ask(1, options.questions // 4, tokens, servers[:1])
    for count in counts:
        report[f"recall ms with {count} servers"] = ask(options.clients, options.questions, tokens, servers[:count])
    report["store ms"] = store(options, tokens, servers)
    report["index lag ms after a push"] = push(options, git, catalogue, tokens, servers)
    report["bytes a note"] = weigh(database, folder, total, empty)
    report["no-change poll"] = poll(folder, catalogue)
    return report


class Report(dict[str, object]):
    """Figures by their names. Each is told as soon as it is there: the run of a million notes takes hours."""

    def __setitem__(self, name: str, figure: object) -> None:
        print(f"{name}: {figure}", file=sys.stderr, flush=True)
        super().__setitem__(name, figure)


def ask(clients: int, questions: int, tokens: dict[str, str], servers: list[ServerProcess]) -> dict[str, float]:
    names = list(tokens)

    def one(number: int) -> float:
        dice = random.Random(number)
        question = {"query": f"Whom did {dice.choice(PEOPLE)} ask about {dice.choice(THINGS)}?"}
        started = time.perf_counter()
        name = dice.choice(names)
        answer = call_tool(f"{dice.choice(servers).url}/v/{name}/mcp", tokens[name], "memory_recall", question)
        assert not answer.is_error, answer.body
        return 1000 * (time.perf_counter() - started)

    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(one, range(clients * 5)))
        started, spent = time.monotonic(), spent_s(servers)
        times = list(pool.map(one, range(questions)))
    took_s, cpu_s = time.monotonic() - started, spent_s(servers) - spent
    cpu_ms = round(1000 * cpu_s / questions, 1)
    return {**shares(times), "a second": round(questions / took_s, 1), "CPU ms of servers": cpu_ms}


def spent_s(servers: list[ServerProcess]) -> float:
    """The processor time of the servers and of their git so far, without PostgreSQL's and the git server's."""
    lines = (Path(f"/proc/{server.process.pid}/stat").read_text() for server in servers)
    ticks = (map(int, line.rpartition(")")[2].split()[11:15]) for line in lines)
    return sum(map(sum, ticks)) / os.sysconf("SC_CLK_TCK")


def store(options: argparse.Namespace, tokens: dict[str, str], servers: list[ServerProcess]) -> dict[str, float]:
    """One after the other, each in a vault that its server has written to before."""
    times, spent, names = [], 0.0, list(tokens)
    for number in range(-len(servers), options.stores):
        spent = spent_s(servers) if number == 0 else spent
        started, at = time.perf_counter(), number % len(servers)
        said = f"Tomas Novak paid invoice number {number + 100} in cash"
        answer = servers[at].ask(names[at], tokens[names[at]], "memory_store", text=said)
        assert not answer.is_error, answer.body
        if number >= 0:
            times.append(1000 * (time.perf_counter() - started))
    cpu_ms = 1000 * (spent_s(servers) - spent) / options.stores
    return {**shares(times), "CPU ms of servers and their git": round(cpu_ms)}


def push(
    options: argparse.Namespace,
    git: GitHost,
    catalogue: Catalogue,
    tokens: dict[str, str],
    servers: list[ServerProcess],
) -> dict[str, float]:
    """From the message of a push to the answer that has it, at another server."""
    times, names = [], list(tokens)
    for number in range(options.pushes):
        name, server = names[number % len(names)], servers[number % len(servers)]
        head = git.commit(name, fact(f"p{number}", f"The parcel number {number} arrived at the harbour"))
        started = time.perf_counter()
        server.push_hook(git.address(name))
        wait_for(lambda name=name, head=head: catalogue.find(name).indexed == head, 60)
        times.append(1000 * (time.perf_counter() - started))
        answer = servers[(number + 1) % len(servers)].ask(
            name, tokens[name], "memory_recall", query=f"parcel number {number}"
        )
        assert f"parcel number {number} " in answer.text, answer.body
    return shares(times)


def poll(folder: Path, catalogue: Catalogue) -> dict[str, float]:
    """What it takes this process and git to ask remotes that have nothing new."""
    vaults = catalogue.list_all()[:50]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    times = []
    for vault in vaults:
        mirror = Mirror(folder / "polled" / vault.name, vault.address, vault.branch, MirrorLimits())
        mirror._make()
        started = time.perf_counter()
        mirror.look()
        times.append(1000 * (time.perf_counter() - started))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {**shares(times), "CPU ms of git, both sides": round(1000 * spent / len(vaults), 1)}


def size_of(database: Database) -> int:
    (row,) = database.ask("SELECT pg_database_size(current_database()) AS size")
    return int(row["size"])


def weigh(database: Database, folder: Path, notes: int, empty: int) -> dict[str, int]:
    mirrors = sum(path.lstat().st_size for path in folder.glob("s*/data/vaults/*/mirror.git/**/*"))
    return {"in PostgreSQL": (size_of(database) - empty) // notes, "in mirrors": mirrors // notes}


def shares(times: list[float]) -> dict[str, float]:
    ordered = sorted(times)
    return {"p50": round(statistics.median(ordered), 1), "p95": round(ordered[int(0.95 * (len(ordered) - 1))], 1)}


if __name__ == "__main__":
    main()
