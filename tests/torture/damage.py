"""Damages every database of a vault's state folder, cold and under an open server, and runs every command after it.

    python tests/torture/damage.py --rounds 40 --seed 1

No command may end in a bug report or be killed, no answer may be wrong, and the second time each command is run all
must be well. Prints a table, and the figures as a line of JSON; the exit code is 1 when anything broke.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]

import apsw
from embedding_service import EmbeddingService

from quaid import Memory
from quaid.cli.main import main as run_command
from quaid.place import state_folder
from quaid.sqlite import connect

DATABASES = ("index.db", "docs.db", "local.db", "cache.db")
FACTS = [f"Maya's quokka number {number} lives in Perth{number}." for number in range(30)]
OTHERS = ("Maya sold the lawnmower again", "Boat", "The rudder")
COMMANDS: dict[str, tuple[str, ...]] = {
    "recall": ("recall", "--json", "quokka number 7"),
    "search": ("search", "--json", "quokka"),
    "docs search": ("docs", "search", "--json", "rudder"),
    "get": ("get", "--json", "facts/f7.md"),
    "status": ("status", "--json"),
    "stats": ("stats", "--json"),
    "doctor": ("doctor", "--json"),
    "context": ("context",),
    "note": ("note", "call Maya back"),
    "remember": ("remember", "Maya sold the lawnmower again"),
    "janitor": ("janitor", "run"),
    "sync": ("sync", "--json"),
    "verify": ("verify", "--json"),
}
ALLOWED = {0, 1, 75}
SHORT = [("docs.db", "page", ""), ("local.db", "newer", "")]


def make_vault(folder: Path, service: dict[str, str]) -> Path:
    """A vault with facts, a project with a document, vectors, and something in each database."""
    os.environ.update(
        {
            "QUAID_CONFIG_DIR": str(folder / "config"), "QUAID_STATE_DIR": str(folder / "state"),
            "QUAID_CACHE_DIR": str(folder / "cache"),
            "QUAID_MODELS_PROVIDER": "none", "QUAID_NOTIFICATIONS_CHANNELS": "", "GIT_CONFIG_GLOBAL": os.devnull,
        }
        | {f"QUAID_EMBEDDING_{key.upper()}": str(value) for key, value in service.items()}
    )  # fmt: skip
    root = folder / "vault"
    Memory.create(root)[0].close()
    for number, text in enumerate(FACTS):
        note = f"---\nid: 01f{number}\ntype: fact\nstatus: active\nowner: default\n---\n{text}\n"
        path = root / f"facts/f{number}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(note)
    home = root / "projects" / "boat"
    home.mkdir(parents=True)
    (home / "PROJECT.md").write_text("---\nname: boat\n---\n# Boat\n")
    (home / "guide.md").write_text("# Guide\n\n" + "\n\n".join(f"## Part {n}\n\nThe rudder {n}." for n in range(20)))
    subprocess.run(["git", "add", "-A"], cwd=root, check=True)
    subprocess.run(["git", *_OWNER, "commit", "-qm", "owner"], cwd=root, check=True)
    for name in ("sync", "docs search", "recall", "note", "remember"):
        assert run(root, COMMANDS[name])[0] == 0, name
    return root


@contextmanager
def serving_embeddings() -> Iterator[dict[str, str]]:
    """The settings of a service in a process of its own: who forks had better have no threads."""
    told, tell = os.pipe()
    pid = os.fork()
    if not pid:
        service = EmbeddingService()
        os.write(tell, json.dumps(service.settings("one")).encode())
        signal.pause()
    try:
        yield json.loads(os.read(told, 65_536))
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


_OWNER = ("-c", "user.name=Maya", "-c", "user.email=maya@example.org")


def run(root: Path, arguments: tuple[str, ...], within_s: float = 120) -> tuple[int, str, str]:
    """(exit code, output, remarks) of one command in a process of its own; minus the signal when it was killed."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        pid = os.fork()
        if not pid:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
            sys.dont_write_bytecode = True  # a limit on the size of files would cut it
            code = 99
            with suppress(BaseException):
                code = run_command([*arguments, "--vault", str(root)])
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)
        code = _wait(pid, within_s)
        out.seek(0)
        err.seek(0)
        return code, out.read().decode(errors="replace"), err.read().decode(errors="replace")


def _wait(pid: int, within_s: float) -> int:
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.003)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return -999


class Server:
    """A process that keeps the memory open and answers, a line for a line."""

    def __init__(self, root: Path) -> None:
        asked, self._ask = os.pipe()
        self._answer, answered = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            os.close(self._ask)
            _serve(root, os.fdopen(asked), os.fdopen(answered, "w", buffering=1))
        os.close(asked)
        os.close(answered)
        self._answers = os.fdopen(self._answer)

    def ask(self, what: str) -> dict[str, Any] | None:
        """The answer; None when the process is gone."""
        with suppress(BrokenPipeError):
            os.write(self._ask, f"{what}\n".encode())
        line = self._answers.readline() if select.select([self._answers], [], [], 120)[0] else ""
        return json.loads(line) if line else None

    def stop(self) -> int:
        os.close(self._ask)
        code = _wait(self.pid, 30)
        self._answers.close()
        return code


def _serve(root: Path, questions: Any, answers: Any) -> None:
    from quaid.errors import QuaidError
    from quaid.report.bug_report import refusal_of
    from quaid.report.status import status_of

    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    with Memory.open(root) as memory:
        for line in questions:
            told: dict[str, Any] = {}
            try:
                if line.strip() == "recall":
                    told["texts"] = [hit.text for hit in memory.recall("quokka number 7").hits]
                elif line.strip() == "docs":
                    told["docs"] = len(memory.documentation.search("rudder")[0].hits)
                else:
                    status_of(memory)
            except QuaidError as error:
                told["refused"] = str(error)
            except Exception as error:  # as the doors do
                refusal = refusal_of(error, root)
                told["refused" if refusal else "bug"] = str(refusal or repr(error))
            print(json.dumps(told), file=answers)
    os._exit(0)


# -- what is done to a file ----------------------------------------------------------------------------------------


def _page(path: Path, chance: random.Random) -> None:
    start = 4096 * chance.randrange(max(1, path.stat().st_size // 4096))
    with path.open("r+b") as file:
        file.seek(start)
        file.write(chance.choice((bytes(4096), chance.randbytes(4096))))


def _cut(path: Path, chance: random.Random) -> None:
    os.truncate(path, chance.choice((0, 1, 99, 4096, chance.randrange(path.stat().st_size + 1))))


def _gone(path: Path, _: random.Random) -> None:
    path.unlink()


def _in_place(make: Callable[[Path, random.Random], object]) -> Callable[[Path, random.Random], None]:
    def harm(path: Path, chance: random.Random) -> None:
        path.unlink()
        make(path, chance)

    return harm


def _folder(path: Path, chance: random.Random) -> None:
    path.mkdir()
    if chance.random() < 0.5:
        (path / "inside").write_text("something")


def _link(path: Path, chance: random.Random) -> None:
    target = path.parent / "elsewhere"
    if chance.random() < 0.7:
        shutil.copy(next(each for each in path.parent.glob("*.db") if each.is_file()), target)
    path.symlink_to(target)


def _foreign(path: Path, _: random.Random) -> None:
    with apsw.Connection(str(path)) as connection:
        connection.execute("CREATE TABLE uses (stranger); CREATE TABLE meta (a, b); INSERT INTO meta VALUES (1, 2)")
    connection.close()


def _swapped(path: Path, chance: random.Random) -> None:
    others = [each for each in path.parent.glob("*.db") if each.is_file()]
    shutil.copy(chance.choice(others), path)


def _newer(path: Path, chance: random.Random) -> None:
    with suppress(apsw.Error):
        connection = connect(path, apsw.SQLITE_OPEN_READWRITE)
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE sql LIKE 'CREATE TABLE%'")]
        for table in tables:
            with suppress(apsw.Error):
                connection.execute(f'ALTER TABLE "{table}" ADD COLUMN from_the_future TEXT')
        connection.execute("PRAGMA user_version = 99" if chance.random() < 0.5 else "SELECT 1")
        connection.close()


HARMS: dict[str, Callable[[Path, random.Random], None]] = {
    "page": _page,
    "cut": _cut,
    "gone": _gone,
    "folder": _in_place(_folder),
    "link": _in_place(_link),
    "pipe": _in_place(lambda path, _: os.mkfifo(path)),
    "text": lambda path, chance: path.write_text("this is no database\n" * chance.randrange(1, 900)),
    "foreign": _in_place(_foreign),
    "swapped": _in_place(_swapped),
    "newer": _newer,
    "unreadable": lambda path, _: path.chmod(0),
}


def harm(state: Path, name: str, how: str, chance: random.Random, beside: str = "") -> bool:
    """Whether the file was there to be harmed."""
    path = state / f"{name}{beside}"
    if not path.is_file():
        return False
    HARMS[how](path, chance)
    return True


# -- a round -------------------------------------------------------------------------------------------------------


def check(name: str, code: int, out: str, *, healed: bool) -> str | None:
    """What is wrong with how a command ended; None when nothing is."""
    if code < 0:
        return f"killed ({code})"
    if code not in (ALLOWED if not healed else {0, 1} if name == "doctor" else {0}):
        return f"exit {code}"
    if code == 0 and name in {"recall", "search"}:
        texts = [hit["text"] for hit in json.loads(out)["hits"]]
        if wrong := [text for text in texts if text not in FACTS and not text.startswith(OTHERS)]:
            return f"wrong answer {wrong}"
        if name == "recall" and FACTS[7] not in texts:
            return "answer missing"
    if code == 0 and name == "docs search" and healed and not json.loads(out)["hits"]:
        return "answer missing"
    return None


def play(root: Path, database: str, how: str, beside: str, chance: random.Random, names: tuple[str, ...]) -> list[str]:
    """One harm, before all commands and under an open server; what broke, in words."""
    broke: list[str] = []
    server = Server(root)
    for _ in range(3):
        server.ask("recall")
    server.ask("docs")
    server.ask("status")
    if harm(state_folder(root), database, how, chance, beside):
        for what in chance.sample(("recall", "docs", "status"), 3):
            told = server.ask(what)
            if told is None or "bug" in told:
                broke.append(f"server {what}: {told}")
                break
            if what == "recall" and FACTS[7] not in told.get("texts", [FACTS[7]]):
                broke.append(f"server recall: {told}")
    code = server.stop()
    if code:
        broke.append(f"server killed ({code})")
    harm(state_folder(root), database, how, chance, beside)
    order = list(names)
    chance.shuffle(order)
    for healed in (False, True):
        for name in order:
            code, out, err = run(root, COMMANDS[name])
            problem = check(name, code, out, healed=healed)
            if problem:
                broke.append(f"{name}{' again' if healed else ''}: {problem}: {err.strip()[-300:]}")
    return broke


def figures_of(
    harness: str, seed: int, tried: Counter[str], broken: dict[str, list[str]], took_s: float
) -> dict[str, Any]:
    """What a run of a harness comes to."""
    return {
        "harness": harness, "seed": seed, "rounds": sum(tried.values()), "tried": dict(tried),
        "broke": {what: len(found) for what, found in broken.items()}, "took_s": round(took_s, 1), "details": broken,
    }  # fmt: skip


def torture(
    rounds: int, seed: int, *, plan: list[tuple[str, str, str]] | None = None, names: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Play `rounds` random rounds, or those of `plan`; the figures."""
    chance = random.Random(seed)
    started = time.monotonic()
    tried: Counter[str] = Counter()
    broken: dict[str, list[str]] = {}
    folder = Path(tempfile.mkdtemp(prefix="quaid-torture-"))
    environment = dict(os.environ)
    services = ExitStack()
    try:
        root = make_vault(folder, services.enter_context(serving_embeddings()))
        state = state_folder(root)
        for each, kept_as in ((root, "vault"), (state, "state")):
            shutil.copytree(each, folder / "whole" / kept_as, symlinks=True)
        for number in range(len(plan) if plan else rounds):
            beside = chance.choice(("", "", "-wal", "-shm"))
            database, how, beside = (
                plan[number] if plan else (chance.choice(DATABASES), chance.choice([*HARMS]), beside)
            )
            for each, kept_as in ((root, "vault"), (state, "state")):
                shutil.rmtree(each, ignore_errors=True)
                shutil.copytree(folder / "whole" / kept_as, each, symlinks=True)
            what = f"{how} {database}{beside}"
            tried[how] += 1
            found = play(
                root,
                database,
                how,
                beside,
                chance,
                names or ("recall", *chance.sample(tuple(COMMANDS)[1:], 5)),
            )
            if found:
                broken.setdefault(what, []).extend(found)
                print(f"round {number}, {what}: " + "\n  ".join(found), file=sys.stderr)
    finally:
        services.close()
        os.environ.clear()
        os.environ.update(environment)
        shutil.rmtree(folder, ignore_errors=True)
    return figures_of("damage", seed, tried, broken, time.monotonic() - started)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--short", action="store_true", help="the form that the suite runs")
    given = parser.parse_args()
    short = {"plan": SHORT, "names": ("docs search", "status")} if given.short else {}
    figures = torture(given.rounds, given.seed, **short)
    for how, number in sorted(figures["tried"].items()):
        failed = sum(n for what, n in figures["broke"].items() if what.split()[0] == how)
        print(f"{how:<12} tried {number:>4}   broke {failed:>4}")
    del figures["details"]
    print(json.dumps(figures))
    return 1 if figures["broke"] else 0


if __name__ == "__main__":
    sys.exit(main())
