"""A team: one bare repository, three clones, hundreds of changes each at random, pushes and pulls in random order, kills.

    python tests/benchmarks/team.py [--changes 300] [--machines 3] [--seed 1] [--json result.json]

The machines work at the same time, each change in a process of its own, of which some are killed in the middle. When
all have exchanged what they have, they must be at one commit, with one tree and one index manifest; nothing that was
acknowledged may be lost, and nothing forgotten may be back. Exits 1 if that does not hold. Times are processor time.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench import describe_machine, make_parser, print_figures, processor_s
from bench import save as save_figures

from quaid import Memory
from quaid.errors import QuaidError
from quaid.janitor.runner import RunOptions
from quaid.model import Turn
from quaid.remotes import exchange
from quaid.remotes.pulling import Pulled, has_markers
from quaid.trust import trust

KILLED = 0.1
"""The share of changes and exchanges that are killed, within `KILL_WITHIN_S`."""
KILL_WITHIN_S = 0.4
EXCHANGED = 0.25
"""The chance of a push or a pull after each change."""
WEIGHTS = {
    "remember": 30, "confirm": 10, "edit a fact": 12, "edit a note": 14, "forget": 10, "rename": 6, "link": 8,
    "converse": 7, "night": 3,
}  # fmt: skip
SHARED = tuple(f"Everybody knows that the {thing} opens at nine" for thing in ("library", "market", "archive", "mill"))
PEOPLE = ("Maya Chen", "Jon Ortiz", "Ana Weber", "Noor Haddad")
NOTES = 4
TALKS = 6
TOKEN = re.compile(r"\bzq\d+x\d+y\d+")
BEGIN = datetime(2026, 11, 20, 14, tzinfo=UTC)
OWNER = ("-c", "user.name=Maya", "-c", "user.email=maya@example.org", "-c", "commit.gpgsign=false")


@dataclass
class Journal:
    """What one machine did: what must be there in the end (token -> id of its fact, empty for a note), what was
    forgotten for certain and what perhaps, and the figures.
    """

    kept: dict[str, str] = field(default_factory=dict)
    forgotten: set[str] = field(default_factory=set)
    perhaps: set[str] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--changes", type=int, default=300, help="for each machine")
    parser.add_argument("--machines", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="leave the clones where they are")
    options = parser.parse_args()
    print(describe_machine())
    folder = Path(tempfile.mkdtemp(prefix="quaid-team-"))
    os.environ |= {
        "QUAID_CONFIG_DIR": str(folder / "config"), "QUAID_STATE_DIR": str(folder / "state"), "QUAID_RESIDENT": "off",
        "QUAID_EMBEDDING_PROVIDER": "none", "QUAID_MODELS_PROVIDER": "none", "QUAID_NOTIFICATIONS_CHANNELS": "",
    }  # fmt: skip
    try:
        figures, problems = work(folder, options.machines, options.changes, options.seed)
    finally:
        print(folder) if options.keep else shutil.rmtree(folder, ignore_errors=True)
    print_figures(figures, 1)
    for problem in problems:
        print(f"PROBLEM: {problem}")
    save_figures(options.json, {"figures": figures, "problems": problems})
    sys.exit(1 if problems else 0)


def work(folder: Path, machines: int, changes: int, seed: int) -> tuple[dict[str, float], list[str]]:
    """Let the machines live in `folder`; the figures, and a sentence for each thing that does not hold."""
    started, before = time.monotonic(), processor_s()
    roots = make_clones(folder, machines)
    journals = list(live_all(folder, roots, changes, seed))
    rounds = exchange_all(roots)
    whole = Journal()
    for journal in journals:
        whole.kept |= journal.kept
        whole.forgotten |= journal.forgotten
        whole.perhaps |= journal.perhaps
        whole.counts += journal.counts
        whole.problems += journal.problems
    problems = [*whole.problems, *compare(roots), *check(roots[0], whole)]
    figures = dict(sorted(whole.counts.items())) | {
        "rounds until all were equal": rounds,
        "statements that must be there": len(whole.kept),
        "facts that must not be there": len(whole.forgotten),
        "commits": int(git(roots[0], "rev-list", "--count", "HEAD")),
        "notes with conflict markers": len(list_marked(roots[0])),
        "processor time, s": processor_s() - before,
        "time, s": time.monotonic() - started,
    }
    return {name: float(value) for name, value in figures.items()}, problems


def make_clones(folder: Path, count: int) -> list[Path]:
    first = folder / "machine0"
    Memory.create(first)[0].close()
    for number in range(NOTES):
        (first / f"note{number}.md").write_text("".join(f"line {line} of note {number}\n" for line in range(20)))
    save(first, "notes")
    bare = folder / "remote.git"
    git(folder, "init", "-q", "--bare", "-b", "main", str(bare))
    with Memory.open(first) as memory:
        memory.remotes.add(str(bare))
        memory.remotes.push()
    roots = [first, *(folder / f"machine{number}" for number in range(1, count))]
    for root in roots[1:]:
        git(folder, "clone", "-q", str(bare), str(root))
        trust(root)
        with Memory.open(root) as memory:
            memory.remotes.trust("origin")
    return roots


def live_all(folder: Path, roots: list[Path], changes: int, seed: int) -> Iterator[Journal]:
    """Every machine in a process of its own, at the same time."""
    children = {}
    for number, root in enumerate(roots):
        told = folder / f"journal{number}.json"
        if not (child := os.fork()):
            code = 1
            with suppress(BaseException):
                journal = Machine(root, number, random.Random(seed * 1000 + number)).live(changes)
                told.write_text(json.dumps({**vars(journal), "forgotten": sorted(journal.forgotten), "perhaps": sorted(journal.perhaps)}))  # fmt: skip
                code = 0
            os._exit(code)
        children[child] = told
    for child, told in children.items():
        os.waitpid(child, 0)
        if not told.exists():
            yield Journal(problems=[f"{told.name} was not written: the machine died"])
            continue
        said = json.loads(told.read_text())
        yield Journal(said["kept"], set(said["forgotten"]), set(said["perhaps"]), Counter(said["counts"]), said["problems"])  # fmt: skip


class Machine:
    """One clone and who works there."""

    def __init__(self, root: Path, number: int, chance: random.Random) -> None:
        self.root = root
        self.number = number
        self.chance = chance
        self.journal = Journal()
        self.done = 0
        self.heard = [0] * TALKS

    def live(self, changes: int) -> Journal:
        for _ in range(changes):
            self.done += 1
            kind = self.chance.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
            getattr(self, kind.replace(" ", "_"))()
            if self.chance.random() < EXCHANGED:
                self.exchange()
        return self.journal

    # -- the changes ---------------------------------------------------------------------------------------------

    def remember(self) -> None:
        token = self.token()
        told = self.attempt("remember", lambda memory: memory.remember(f"{self.person()} keeps {token} in a box").id)
        if told:
            self.journal.kept[token] = told

    def confirm(self) -> None:
        text = self.chance.choice(SHARED)
        self.attempt("confirm", lambda memory: memory.remember(text).id)

    def edit_a_fact(self) -> None:
        """By hand, in an editor."""
        if path := self.choose("facts"):
            token, note_id = self.token(), id_of(path)
            path.write_text(f"{path.read_text().rstrip()}\n\nIt was seen with {token}.\n")
            self.saved("edit a fact", token, note_id)

    def edit_a_note(self) -> None:
        path = self.root / f"note{self.chance.randrange(NOTES)}.md"
        lines, token = path.read_text().splitlines(keepends=True), self.token()
        lines.insert(self.chance.randrange(len(lines) + 1), f"{self.person()} wrote {token}\n")
        path.write_text("".join(lines))
        self.saved("edit a note", token, "")

    def forget(self) -> None:
        if path := self.choose("facts"):
            note_id = id_of(path)
            # A statement that two machines disputed has become a fact of its own.
            self.journal.perhaps |= {note_id, *TOKEN.findall(path.read_text())}
            if self.attempt("forget", lambda memory: memory.forget(note_id).outcome) == "forgotten":
                self.journal.forgotten.add(note_id)

    def rename(self) -> None:
        if path := self.choose("facts"):
            path.rename(path.with_name(f"{self.chance.choice('abcdef')}{path.name[-40:]}"))
            self.saved("rename", "", "")

    def link(self) -> None:
        one, other = self.chance.sample(PEOPLE, 2)
        self.attempt("link", lambda memory: memory.link(one, "knows", other).outcome)

    def converse(self) -> None:
        """A conversation that other machines have, too: each time one has heard more of it."""
        number = self.chance.randrange(TALKS)
        self.heard[number] += 1
        tokens = [f"zqtalk{number}x{turn}y" for turn in range(self.heard[number])]
        turns = [
            Turn("user", f"What about {token}?", at=BEGIN + timedelta(minutes=i)) for i, token in enumerate(tokens)
        ]
        if self.attempt("converse", lambda memory: str(memory.extract(turns, session=f"talk{number}"))):
            self.journal.kept |= dict.fromkeys(tokens, "")

    def night(self) -> None:
        self.attempt("night", lambda memory: memory.janitor.run(RunOptions()).run)

    def exchange(self) -> None:
        if self.chance.random() < 0.5:
            self.attempt("pull", lambda memory: describe(memory.remotes.pull()))
        else:
            self.attempt("push", lambda memory: describe(*memory.remotes.push().pulled))

    # -- how -----------------------------------------------------------------------------------------------------

    def attempt(self, what: str, job: Callable[[Memory], Any]) -> Any:
        """Do it in a process that may be killed; what it told, None if it could not."""
        reading, writing = os.pipe()
        is_killed = self.chance.random() < KILLED
        if not (child := os.fork()):
            self._answer(writing, job)
        os.close(writing)
        if is_killed:
            time.sleep(self.chance.random() * KILL_WITHIN_S)
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        with os.fdopen(reading, "rb") as pipe:
            data = pipe.read()
        os.waitpid(child, 0)
        if not data:
            self.journal.counts["killed"] += 1
            return None
        told = json.loads(data)
        self.journal.counts[f"{what}{'' if 'done' in told else ', refused'}"] += 1
        if "bug" in told:
            self.journal.problems.append(f"machine {self.number}, {what}: {told['bug']}")
        if "refused" in told and what in {"pull", "push"} and told["code"] != "locked":
            self.journal.problems.append(f"machine {self.number}, {what}: {told['refused']}")
        done = told.get("done")
        if isinstance(done, dict):
            self.journal.counts.update(done)
        return done

    def _answer(self, writing: int, job: Callable[[Memory], Any]) -> None:
        try:
            with Memory.open(self.root) as memory:
                told: dict[str, Any] = {"done": job(memory)}
        except QuaidError as error:
            told = {"refused": str(error), "code": error.code}
        except BaseException as error:
            told = {"bug": repr(error)}
        os.write(writing, json.dumps(told).encode())
        os._exit(0)

    def saved(self, what: str, token: str, note_id: str) -> None:
        """The owner commits all there is, when no killed write of Quaid's is in the way."""
        for _ in range(50):
            if save(self.root, what):
                self.journal.counts[what] += 1
                if token:
                    self.journal.kept[token] = note_id
                return
            self.attempt("look", lambda memory: memory.git.recover())
            time.sleep(0.2)
        self.journal.problems.append(f"machine {self.number}: its owner could not commit")

    def choose(self, folder: str) -> Path | None:
        found = sorted(path for path in (self.root / folder).rglob("*.md") if not path.name.startswith("."))
        return self.chance.choice(found) if found else None

    def token(self) -> str:
        return f"zq{self.number}x{self.done}y{self.chance.randrange(10**6)}"

    def person(self) -> str:
        return self.chance.choice(PEOPLE)


def describe(*pulled: Pulled) -> dict[str, int]:
    """The figures of pulls."""
    return {
        "merges": sum(each.merged for each in pulled),
        "retries of a push": len(pulled),
        "conflicts": sum(len(each.conflicts) for each in pulled),
    }


def exchange_all(roots: list[Path], most: int = 20) -> int:
    """Push and pull until all are at one commit; how many rounds that took."""
    exchange.PAUSE_S = 0.0
    for number in range(1, most + 1):
        for root in roots:
            with Memory.open(root) as memory:
                memory.git.recover()
                memory.remotes.push()
        for root in roots:
            with Memory.open(root) as memory:
                memory.remotes.pull()
        if len({git(root, "rev-parse", "HEAD") for root in roots}) == 1:
            return number
    return most


def compare(roots: list[Path]) -> Iterator[str]:
    """What is not the same everywhere."""
    for what, revision in (("commit", "HEAD"), ("tree", "HEAD^{tree}")):
        found = {git(root, "rev-parse", revision) for root in roots}
        if len(found) > 1:
            yield f"{len(found)} machines have another {what}"
    manifests = set()
    for root in roots:
        with Memory.open(root) as memory:
            memory.sync()
            verified = memory.verify()
            manifests.add(verified.manifest)
            if not verified.ok:
                yield f"the index of {root.name} is not what its notes say"
        if status := git(root, "status", "--porcelain"):
            yield f"{root.name} has uncommitted files: {status[:200]}"
    if len(manifests) > 1:
        yield "the manifests differ"


def check(root: Path, whole: Journal) -> Iterator[str]:
    """What was acknowledged and is not there, and what was forgotten and is."""
    texts = {path: path.read_text(errors="replace") for path in root.rglob("*.md") if ".git" not in path.parts}
    everything = "\n".join(texts.values())
    for token, note_id in whole.kept.items():
        if token not in everything and whole.perhaps.isdisjoint({token, note_id}):
            yield f"{token} of {note_id or 'a note'} is lost"
    there = {id_of(path) for path in texts if "facts" in path.parts}
    yield from (f"{note_id} was forgotten and is back" for note_id in whole.forgotten & there)


def list_marked(root: Path) -> list[str]:
    paths = (path for path in root.rglob("*.md") if ".git" not in path.parts)
    return [path.name for path in paths if has_markers(path.read_bytes())]


def id_of(path: Path) -> str:
    return next((line[4:].strip() for line in path.read_text(errors="replace").splitlines() if line[:4] == "id: "), "")


def save(root: Path, message: str) -> bool:
    """The owner commits all there is; False if git would not."""
    added = subprocess.run(["git", *OWNER, "add", "-A"], cwd=root, capture_output=True, check=False)
    args = ["git", *OWNER, "commit", "-q", "--allow-empty", "-m", f"owner: {message}"]
    return added.returncode == 0 and subprocess.run(args, cwd=root, capture_output=True, check=False).returncode == 0


def git(folder: Path, *args: str) -> str:
    done = subprocess.run(["git", *OWNER, *args], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


if __name__ == "__main__":
    main()
