"""Servers of many vaults: how long a question takes by the number of servers, how far the index lags behind a push, what
it costs to ask a remote that has nothing new, and the bytes of a note. Processor time is that of the servers with their
git, and of PostgreSQL. Some vaults are cloned and asked where they are, each from a SQLite file of its own.

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
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from served_vaults import GitHost, Postgres, ServerProcess, call_tool, fact, wait_for

from quaid import Memory
from quaid.history.mirrors import Mirror, MirrorLimits
from quaid.server.catalogue import Catalogue
from quaid.server.database import Database
from quaid.server.tokens import Tokens, parse_typed_grants
from quaid.trust import trust

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
    addresses = {name: git.make(name, make_notes(options.notes, number)) for number, name in enumerate(names)}
    minted = Tokens(database)
    tokens = {name: minted.add(f"of-{name}", parse_typed_grants([f"{name}:read,write"]), "maya") for name in names}
    total = options.vaults * options.notes
    report = Report(vaults=options.vaults, notes=total)
    postmaster = int((folder / "pg/postmaster.pid").read_text().split()[0])
    counts = [int(each) for each in options.servers.split(",")]
    servers += [ServerProcess(folder / f"s{each}", address, poll_s=3600.0) for each in range(max(counts))]
    for server in servers:
        server.start(wait=False)
    for server in servers:
        server.wait_until_ready()
    started, spent, of_database = time.monotonic(), spent_s(pids(servers)), spent_s([postmaster])
    for name, address in addresses.items():
        catalogue.add(name, address)
    wait_for(lambda: catalogue.count()["jobs"] == 0, 36_000)
    report[f"notes indexed a second by {len(servers)} servers"] = round(total / (time.monotonic() - started))
    report["CPU ms of servers and their git for a note"] = round(1000 * (spent_s(pids(servers)) - spent) / total, 2)
    report["CPU ms of PostgreSQL for a note"] = round(1000 * (spent_s([postmaster]) - of_database) / total, 2)
    report["recall ms of one client"] = ask(1, options.questions // 4, tokens, servers[:1], postmaster)
    for count in counts:
        asked = ask(options.clients, options.questions, tokens, servers[:count], postmaster)
        report[f"recall ms with {count} servers"] = asked
    report["recall ms of a clone"] = ask_clones(options, folder, git, names)
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


def make_question(dice: random.Random) -> str:
    return f"Whom did {dice.choice(PEOPLE)} ask about {dice.choice(THINGS)}?"


def ask(
    clients: int, questions: int, tokens: dict[str, str], servers: list[ServerProcess], postmaster: int
) -> dict[str, float]:
    names = list(tokens)

    def one(number: int) -> float:
        dice = random.Random(number)
        question = {"query": make_question(dice)}
        started = time.perf_counter()
        name = dice.choice(names)
        answer = call_tool(f"{dice.choice(servers).url}/v/{name}/mcp", tokens[name], "memory_recall", question)
        assert not answer.is_error, answer.body
        return 1000 * (time.perf_counter() - started)

    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(one, range(clients * 5)))
        started, spent, of_database = time.monotonic(), spent_s(pids(servers)), spent_s([postmaster])
        times = list(pool.map(one, range(questions)))
    took_s, cpu_s = time.monotonic() - started, spent_s(pids(servers)) - spent
    return {
        **shares(times), "a second": round(questions / took_s, 1), "CPU ms of servers": round(1000 * cpu_s / questions, 1),
        "CPU ms of PostgreSQL": round(1000 * (spent_s([postmaster]) - of_database) / questions, 1),
    }  # fmt: skip


def ask_clones(options: argparse.Namespace, folder: Path, git: GitHost, names: list[str]) -> dict[str, float]:
    """Ask clones of at most 20 vaults in turn: open, as a server of few vaults has them, and opened for one question."""
    roots = [folder / "clones" / name for name in names[:20]]
    for root in roots:
        subprocess.run(["git", "clone", "-q", git.address(root.name), root], check=True)
        trust(root)
    memories = [Memory.open(root) for root in roots]
    for memory in memories:
        memory.sync()
        memory.recall(make_question(random.Random(0)))
    dice, times, spent = random.Random(1), [], time.process_time()
    for number in range(options.questions):
        started = time.perf_counter()
        memories[number % len(memories)].recall(make_question(dice))
        times.append(1000 * (time.perf_counter() - started))
    cpu_ms = 1000 * (time.process_time() - spent) / options.questions
    for memory in memories:
        memory.close()
    spent = time.process_time()
    for root in roots:
        with Memory.open(root) as memory:
            memory.recall(make_question(dice))
    opened = 1000 * (time.process_time() - spent) / len(roots)
    return {**shares(times), "CPU ms": round(cpu_ms, 1), "CPU ms where it is opened first": round(opened, 1)}


def pids(servers: list[ServerProcess]) -> list[int]:
    return [server.process.pid for server in servers]


def spent_s(parents: Collection[int]) -> float:
    """The processor time of these processes and of their children so far."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            if not {int(path.parent.name), int(fields[1])}.isdisjoint(parents):
                ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def store(options: argparse.Namespace, tokens: dict[str, str], servers: list[ServerProcess]) -> dict[str, float]:
    """One after the other, each in a vault that its server has written to before."""
    times, spent, names = [], 0.0, list(tokens)
    for number in range(-len(servers), options.stores):
        spent = spent_s(pids(servers)) if number == 0 else spent
        started, at = time.perf_counter(), number % len(servers)
        said = f"Tomas Novak paid invoice number {number + 100} in cash"
        answer = servers[at].ask(names[at], tokens[names[at]], "memory_store", text=said)
        assert not answer.is_error, answer.body
        if number >= 0:
            times.append(1000 * (time.perf_counter() - started))
    cpu_ms = 1000 * (spent_s(pids(servers)) - spent) / options.stores
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
