"""Writers on many vaults while servers are killed, the database is restarted, a remote rejects pushes and a repository is
poisoned. Nothing acknowledged may be lost, nothing may be stored twice, no answer may hold a note of another vault, and
every index must equal a rebuilt one at the end.

    python tests/torture/serving.py                         # a minute
    python tests/torture/serving.py --seconds 300 --probes 10000    # what is left of the probes comes after the kills
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from served_vaults import GitHost, Postgres, ServerProcess, call_tool, fact, run_git, wait_for

from quaid.errors import QuaidError
from quaid.history.mirrors import Mirror, MirrorLimits
from quaid.index import contents
from quaid.index.postgres.server import IndexServer
from quaid.server.catalogue import Catalogue
from quaid.server.database import Database
from quaid.server.tokens import Tokens, parse_typed_grants
from quaid.server.vaults import index_commit
from quaid.settings import Settings

MAX_SCORE = 4.0
"""Standard errors: chance reaches it once in 16,000 runs."""


class Ground:
    """Vaults that each have a word of their own, servers, and what was acknowledged."""

    def __init__(self, folder: Path, vaults: int, servers: int) -> None:
        self.folder = folder
        self.postgres = Postgres(folder / "pg")
        self.address = self.postgres.make_database("torture")
        self.git = GitHost(folder / "git")
        self.database = Database(self.address, 4)
        self.database.open()
        self.catalogue, tokens = Catalogue(self.database), Tokens(self.database)
        self.names = [f"vault{number:02}" for number in range(vaults)]
        self.tokens = {
            name: tokens.add(f"of-{name}", parse_typed_grants([f"{name}:read,write"]), "default") for name in self.names
        }
        for name in self.names:
            self.catalogue.add(name, self.git.make(name, fact("first", f"The {word(name)} notebook belongs here")))
        self.servers = [
            ServerProcess(folder / f"s{number}", self.address, poll_s=2.0, lease_s=3.0, git_timeout_s=20.0)
            for number in range(servers)
        ]
        for server in self.servers:
            server.start(wait=False)
        for server in self.servers:
            server.wait_until_ready()
        wait_for(lambda: all(vault.indexed for vault in self.catalogue.list_all()), 300)
        self.stop = threading.Event()
        self.acknowledged: dict[str, list[str]] = {name: [] for name in self.names}
        self.unanswered: dict[str, list[str]] = {name: [] for name in self.names}
        self.outcomes: Counter[str] = Counter()
        self.leaks: list[str] = []
        self.times: dict[str, list[float]] = {"not granted": [], "not there": []}
        self.mutex = threading.Lock()

    def url(self, name: str, dice: random.Random) -> str:
        return f"{dice.choice(self.servers).url}/v/{name}/mcp"

    # -- what goes on at the same time --------------------------------------------------------------------------

    def write(self, number: int) -> None:
        dice, count = random.Random(number), 0
        while not self.stop.is_set():
            name = dice.choice(self.names)
            text = f"Runner {number} of {word(name)} passed post {count} at noon"
            count += 1
            is_stored = False
            for attempt in range(20):
                answer = call_tool(
                    self.url(name, dice), self.tokens[name], "memory_store", {"text": text}, f"{number}-{count}"
                )
                outcome = answer.shape.get("outcome") or f"status {answer.status}"
                with self.mutex:
                    self.outcomes[f"{outcome} at {'first' if attempt == 0 else 'another'} try"] += 1
                if answer.shape.get("outcome") in {"created", "known"}:
                    is_stored = True
                    break
                if self.stop.wait(0.3):
                    break
            with self.mutex:
                (self.acknowledged if is_stored else self.unanswered)[name].append(text)

    def probe(self, number: int, probes: int) -> None:
        dice = random.Random(1000 + number)
        done = 0
        while not self.stop.is_set() or done < probes:
            if done >= probes:
                return
            done += 1
            mine, other = dice.sample(self.names, 2)
            query = {"query": f"Which runner of {word(other)} passed post 1, and the {word(mine)} notebook?"}
            tool = dice.choice(("memory_recall", "memory_search"))
            body = call_tool(self.url(mine, dice), self.tokens[mine], tool, query).body.decode()
            with self.mutex:
                self.outcomes["probes"] += 1
            # The question itself may be told back.
            body = body.replace(query["query"], "")
            for name in self.names:
                if name != mine and word(name) in body:
                    self.leaks.append(f"{word(name)} in an answer of {mine}")
            asked_for = [("not granted", other), ("not there", "nothing")]
            for kind, asked in dice.sample(asked_for, 2):
                started = time.perf_counter()
                answer = call_tool(self.url(asked, dice), self.tokens[mine], "memory_recall", {"query": "x"})
                if answer.status:
                    self.times[kind].append(time.perf_counter() - started)
                if answer.status not in {0, 404, 503}:
                    self.leaks.append(f"{kind}: {answer.status}")

    def kill(self, every_s: float) -> None:
        dice = random.Random(7)
        while not self.stop.wait(every_s):
            server = dice.choice(self.servers)
            server.kill()
            server.start(wait=False)
            self.outcomes["kills"] += 1

    def disturb(self, seconds: float) -> None:
        """A remote that rejects, a database that goes away, a repository that hurts."""
        bad = self.git.folder / "bad.git"
        run_git(self.git.folder, "init", "-q", "--bare", "--template=", "-b", "main", str(bad))
        (bad / "refs" / "heads").mkdir(parents=True, exist_ok=True)
        (bad / "refs" / "heads" / "main").write_text("0123456789012345678901234567890123456789\n")
        self.catalogue.add("bad", self.git.address("bad"))
        self.stop.wait(seconds * 0.2)
        self.git.reject_pushes(self.names[0], "not now")
        self.stop.wait(seconds * 0.2)
        self.git.reject_pushes(self.names[0], None)
        self.postgres.restart()
        self.outcomes["restarts of the database"] += 1
        self.git.commit(self.names[1], fact("pushed", f"Another machine of {word(self.names[1])} pushed this"))

    # -- what must hold -------------------------------------------------------------------------------------------

    def settle(self) -> None:
        for server in self.servers:
            server.wait_until_ready()
        for name in self.names:
            self.catalogue.queue(self.catalogue.find(name).vault, "end")
        wait_for(lambda: all(self.catalogue.find(name).indexed == self.git.head(name) for name in self.names), 120)

    def find_faults(self) -> list[str]:
        faults = [*self.leaks]
        for name in self.names:
            lines = Counter(
                run_git(self.git.folder / f"{name}.git", "grep", "-h", "^Runner", "main").splitlines()
                if self.acknowledged[name] or self.unanswered[name]
                else []
            )
            faults += [f"lost in {name}: {text}" for text in self.acknowledged[name] if not lines[text]]
            faults += [f"{count} times in {name}: {text}" for text, count in lines.items() if count > 1]
            faults += [f"of another vault in {name}: {text}" for text in lines if word(name) not in text]
        faults += self.compare_indexes()
        if abs(score := compare_ranks(*self.times.values())) > MAX_SCORE:
            faults.append(f"a vault that is not granted is known by its time: z = {score:.1f}")
        bad = self.catalogue.find("bad")
        if not bad.failures:
            faults.append("the poisoned repository did not fail")
        return faults

    def compare_indexes(self) -> list[str]:
        """Every index against one that is made from the repository alone."""
        faults, indexes = [], IndexServer(self.address, 4)
        for name in self.names:
            vault = self.catalogue.find(name)
            mirror = Mirror(self.folder / "check" / name, vault.address, vault.branch, MirrorLimits())
            head = mirror.fetch()
            fresh = indexes.open(f"check-{name}")
            index_commit(fresh, mirror.folder, head, Settings())
            kept = indexes.open(vault.key)
            if list(contents.dump(kept)) != list(contents.dump(fresh)):
                faults.append(f"the index of {name} is not what a rebuilt one is")
        indexes.close()
        return faults

    def close(self) -> None:
        for server in self.servers:
            if server.process is not None and server.process.poll() is None:
                server.kill()
        self.database.close()
        self.git.close()
        self.postgres.close()


def compare_ranks(one: list[float], other: list[float]) -> float:
    """Return z of the test of Mann and Whitney (1947): how many standard errors the ranks of `one` among both lie from
    those of an equal distribution.
    """
    ranked = sorted([(took, True) for took in one] + [(took, False) for took in other])
    ranks = sum(rank for rank, (_, is_one) in enumerate(ranked, 1) if is_one)
    many, more = len(one), len(other)
    u = ranks - many * (many + 1) / 2
    return (u - many * more / 2) / math.sqrt(many * more * (many + more + 1) / 12)


def word(name: str) -> str:
    """A word that only this vault has."""
    return "zyx" + "".join(chr(ord("b") + int(digit)) for digit in name.removeprefix("vault"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--writers", type=int, default=50)
    parser.add_argument("--vaults", type=int, default=20)
    parser.add_argument("--servers", type=int, default=3)
    parser.add_argument("--probes", type=int, default=600)
    parser.add_argument("--kill-every", type=float, default=5.0)
    options = parser.parse_args()
    os.environ.setdefault("QUAID_EMBEDDING_PROVIDER", "none")
    folder = Path(tempfile.mkdtemp(prefix="q-serving-"))
    os.environ |= {
        "QUAID_CONFIG_DIR": str(folder / "config"),
        "QUAID_STATE_DIR": str(folder / "state"),
        "XDG_RUNTIME_DIR": str(folder),
    }
    ground = Ground(folder, options.vaults, options.servers)
    try:
        report = run(ground, options)
    finally:
        ground.stop.set()
        ground.close()
    print(json.dumps(report, indent=1))
    return 1 if report["faults"] else 0


def run(ground: Ground, options: argparse.Namespace) -> dict[str, object]:
    started = time.monotonic()
    jobs: list[Callable[[], object]] = [
        *(lambda number=number: ground.write(number) for number in range(options.writers)),
        *(lambda number=number: ground.probe(number, options.probes // 3) for number in range(3)),
        lambda: ground.kill(options.kill_every),
        lambda: ground.disturb(options.seconds),
    ]
    with ThreadPoolExecutor(len(jobs)) as pool:
        futures = [pool.submit(job) for job in jobs]
        ground.stop.wait(options.seconds)
        ground.stop.set()
        problems = [repr(error) for future in futures if (error := future.exception()) is not None]
    try:
        ground.settle()
    except (AssertionError, QuaidError) as error:
        problems.append(f"it did not settle: {error}")
    medians = {kind: round(1000 * statistics.median(times), 2) for kind, times in ground.times.items() if times}
    return {
        "seconds": round(time.monotonic() - started),
        "acknowledged": sum(map(len, ground.acknowledged.values())),
        "unanswered": sum(map(len, ground.unanswered.values())),
        "outcomes": dict(ground.outcomes.most_common()),
        "median ms of a vault that is": medians,
        "probes": ground.outcomes["probes"],
        "z of their ranks": round(compare_ranks(*ground.times.values()), 2),
        "faults": [*problems, *ground.find_faults()],
    }


if __name__ == "__main__":
    sys.exit(main())
