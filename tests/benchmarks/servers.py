"""Ten MCP servers on one large vault: how soon each is there, how long a recall takes, and whether they grow.

    python tests/benchmarks/servers.py [--notes 10000] [--servers 10] [--calls 1000] [--keep FOLDER] [--json result.json]

The vault is the one of scale.py (FOLDER/quaid-scale-NOTES, made where it is missing), copied. Each server is a process of
its own, spoken to as a host does. One call in fifty stores a fact, so that all the others have to take it in.
"""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import statistics
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench import describe_machine, make_parser, print_figures, save
from scale import PEOPLE, PLACES, THINGS, generate

from quaid import Memory
from quaid.trust import trust

STORE_EVERY = 50
WARM_CALLS = 5


def main() -> None:
    parser = make_parser(__doc__, keep=True)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--servers", type=int, default=10)
    parser.add_argument("--calls", type=int, default=1_000)
    options = parser.parse_args()
    print(describe_machine())
    figures = measure(options.notes, options.servers, options.calls, options.keep)
    print_figures(figures)
    save(options.json, {"figures": figures})


class Server:
    """One `quaid mcp`, and its host."""

    def __init__(self, root: Path) -> None:
        started = time.perf_counter()
        self._process = subprocess.Popen(
            ["quaid", "mcp", "--vault", str(root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._number = 0
        about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self._ask("initialize", about)
        self.start_s = time.perf_counter() - started
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def call(self, name: str, **arguments: object) -> tuple[float, dict]:
        """(milliseconds, what was answered)"""
        started = time.perf_counter()
        answer = self._ask("tools/call", {"name": name, "arguments": arguments})
        return (time.perf_counter() - started) * 1000, answer

    @property
    def memory_mb(self) -> float:
        """What of the physical memory is its own."""
        status = Path(f"/proc/{self._process.pid}/status")
        if not status.exists():
            out = subprocess.run(["ps", "-o", "rss=", "-p", str(self._process.pid)], capture_output=True, check=True)
            return int(out.stdout) / 1024
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(lines["RssAnon"].split()[0]) / 1024

    @property
    def cpu_ms(self) -> float:
        """Processor time it has taken; nan where the system does not tell."""
        stat = Path(f"/proc/{self._process.pid}/stat")
        if not stat.exists():
            return math.nan
        fields = stat.read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")

    def close(self) -> float:
        """How long it takes to be gone, in seconds, after its stdin has ended."""
        started = time.perf_counter()
        self._process.stdin.close()
        assert self._process.wait(10) == 0
        return time.perf_counter() - started

    def _ask(self, method: str, params: dict) -> dict:
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        while (message := json.loads(self._process.stdout.readline())).get("id") != self._number:
            pass
        return message["result"]

    def _send(self, message: dict) -> None:
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()


def measure(notes: int, count: int, calls: int, keep: str | None) -> dict[str, float]:
    source = Path(keep or tempfile.gettempdir()) / f"quaid-scale-{notes}"
    if not source.exists():
        generate(source, notes)
        with Memory.open(source) as memory:
            memory.sync()
    folder = Path(tempfile.mkdtemp())
    root = Path(shutil.copytree(source, folder / "vault", symlinks=True))
    trust(root)
    with Memory.open(root) as memory:
        memory.sync()
    try:
        return run(root, count, calls)
    finally:
        shutil.rmtree(folder)


def run(root: Path, count: int, calls: int) -> dict[str, float]:
    chance = random.Random(5)
    servers = [start(root, chance) for _ in range(count)]
    first = servers[0]
    calm = contention()
    cpu = first.cpu_ms
    alone = [first.call("memory_recall", query=question(chance))[0] for _ in range(calls // 10)]
    cpu = (first.cpu_ms - cpu) / len(alone)
    before = [server.memory_mb for server in servers]
    in_turn = [one_call(servers[number % count], chance) for number in range(calls)]
    between = [server.memory_mb for server in servers]
    with ThreadPoolExecutor(count) as hosts:
        chances = [random.Random(number) for number in range(count)]
        shares = hosts.map(lambda place: [one_call(servers[place], chances[place]) for _ in range(calls // count)],
                           range(count))  # fmt: skip
        at_once = [call for share in shares for call in share]
    after = [server.memory_mb for server in servers]
    closed = [server.close() for server in servers]
    errors = [problem for _, _, problem in (*in_turn, *at_once) if problem]
    assert not errors, errors
    with Memory.open(root) as memory:
        assert memory.verify().ok
    found = {"servers": float(count), "start p50, s": statistics.median(server.start_s for server in servers)}
    found["start worst, s"] = max(server.start_s for server in servers)
    found["wall clock to processor time of this machine meanwhile"] = (calm + contention()) / 2
    found["recall, one server, processor ms"] = cpu
    found |= percentiles("recall, one server, ms", alone)
    found |= percentiles("recall, servers in turn, ms", [took for name, took, _ in in_turn if name == "memory_recall"])
    found |= percentiles("recall, all at once, ms", [took for name, took, _ in at_once if name == "memory_recall"])
    found |= percentiles("store, all at once, ms", [took for name, took, _ in at_once if name == "memory_store"])
    found["memory of a server at first, MB"] = statistics.median(before)
    found[f"memory after {calls:,} calls in turn, MB"] = statistics.median(between)
    found[f"memory after {2 * calls:,} calls, MB"] = statistics.median(after)
    found["gone after, s"] = max(closed)
    return found | {"calls": float(len(alone) + 2 * calls), "errors": 0.0}


def start(root: Path, chance: random.Random) -> Server:
    """One that has loaded all it will need."""
    server = Server(root)
    for _ in range(WARM_CALLS):
        server.call("memory_recall", query=question(chance))
    server.call("memory_store", text=f"{chance.choice(PEOPLE)} keeps {chance.randint(1, 10**9)} stamps.")
    return server


def contention() -> float:
    """How much longer anything takes than it would alone: 1 on a machine that does nothing else."""
    wall, cpu = time.perf_counter(), time.process_time()
    while time.process_time() - cpu < 0.3:
        pass
    return (time.perf_counter() - wall) / (time.process_time() - cpu)


def one_call(server: Server, chance: random.Random) -> tuple[str, float, str]:
    """The tool, how long it took in ms, and what went wrong."""
    if chance.randrange(STORE_EVERY) == 0:
        text = f"{chance.choice(PEOPLE)} keeps {chance.choice(THINGS)} number {chance.randint(1, 10**9)}."
        name, (took, answer) = "memory_store", server.call("memory_store", text=text)
    else:
        name, (took, answer) = "memory_recall", server.call("memory_recall", query=question(chance))
    if answer.get("isError"):
        return name, took, answer["content"][0]["text"]
    found = answer["structuredContent"]
    return name, took, "" if found.get("memories", True) else "nothing was found"


def question(chance: random.Random) -> str:
    return f"What did {chance.choice(PEOPLE)} do with {chance.choice(THINGS)} in {chance.choice(PLACES)}?"


def percentiles(name: str, took: list[float]) -> dict[str, float]:
    ordered = sorted(took)
    what, unit = name.rsplit(", ", 1)
    return {f"{what} p50, {unit}": statistics.median(ordered), f"{what} p95, {unit}": ordered[int(0.95 * len(ordered))]}


if __name__ == "__main__":
    main()
