"""Nights over a growing vault whose owner works meanwhile, takes back, pulls and loses power.

    python tests/torture/nights.py --nights 60 --seed 1

Between two nights the owner writes, edits, renames and deletes notes, commits or does not, undoes nights and single
decisions, reverts by git, pulls with a rebase, and has git sweep up; a night may be killed at any step. What must hold
is checked after each: nothing pinned or written by the owner is lost, what was taken back is not done again, a second
run does nothing, the index equals one built from nothing, and no report in the queue is gone. Prints a table, and the
figures as a line of JSON; the exit code is 1 when anything broke.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]

from hand_written import parse_note
from vaults import Vault

from quaid import Memory
from quaid.errors import BadInputError, QuaidError
from quaid.history import vault_history
from quaid.janitor import runner
from quaid.janitor.fact_edits import rewrite, set_fields
from quaid.janitor.runner import RunOptions
from quaid.local import queue
from quaid.local.runs import Decision, evidence_key
from quaid.place import state_folder
from quaid.vault import files

FACT = "---\nid: 01{name}\ntype: fact\nstatus: {status}\nowner: default\n{marks}---\n{text}\n"
QUIET = {
    "QUAID_EMBEDDING_PROVIDER": "none",
    "QUAID_MODELS_PROVIDER": "none",
    "QUAID_NOTIFICATIONS_CHANNELS": "",
    "QUAID_VAULT_HAND_WRITTEN": "managed",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}
LATEST_KILL = 60
"""A night is killed at one of so many steps, counted in calls of git and writes of notes."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nights", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="quaid-nights-"))
    os.environ.update(QUIET, QUAID_CONFIG_DIR=str(folder / "config"), QUAID_STATE_DIR=str(folder / "state"))
    began = time.monotonic()
    try:
        with Memory.create(folder / "vault")[0]:
            pass
        year = Year(Vault(folder / "vault"), random.Random(options.seed))
        year.live(options.nights)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for name, count in year.counts.items():
        print(f"{name:<32}{count:8}")
    for sentence in year.broken:
        print(f"BROKEN  {sentence}")
    took_s = round(time.monotonic() - began, 1)
    figures = {"nights": options.nights, "seed": options.seed, "took_s": took_s, **year.counts}
    print(json.dumps({**figures, "broken": year.broken}))
    return 1 if year.broken else 0


class Year:
    """One vault through many nights. `counts` are what was tried, `broken` what did not hold."""

    def __init__(self, vault: Vault, chance: random.Random) -> None:
        self.vault = vault
        self.chance = chance
        self.counts: Counter[str] = Counter()
        self.broken: list[str] = []
        self._runs: list[str] = []
        self._remarks: set[str] = set()
        self._pinned: dict[str, bytes] = {}
        self._vetoed: dict[str, bytes] = {}
        self._decided: set[str] = set()
        self._reports: set[bytes] = set()
        self._names = 0
        self._night = 0
        self._origin = vault.root.parent / "origin.git"

    def live(self, nights: int) -> None:
        """So many nights, each with a day before it."""
        tasks, runner.TASKS = runner.TASKS, _tasks()
        try:
            self.vault.save("the beginning")
            self.vault.git("clone", "-q", "--bare", "--no-local", str(self.vault.root), str(self._origin))
            self.vault.git("remote", "add", "origin", str(self._origin))
            for self._night in range(nights):
                self._day()
                self._sleep()
                if self._night % 5 == 4 or self._night == nights - 1:
                    self._check_index()
        finally:
            runner.TASKS = tasks

    # -- the day -----------------------------------------------------------------------------------------------------

    def _day(self) -> None:
        for _ in range(self.chance.randint(2, 5)):
            self._learn()
        acts: list[Callable[[], None]] = [
            self._remark,
            self._rename,
            self._delete,
            self._undo,
            self._undo,
            self._revert,
        ]
        for act in self.chance.sample([*acts, self._pull, self._report], 4):
            self.counts[act.__name__.strip("_")] += 1
            act()
        if self.chance.random() < 0.3:
            with self.vault.memory() as memory:
                memory.recall("What is the boat like?")
                memory.remember(f"Maya saw whale number {self._night} from the harbour.")

    def _learn(self) -> None:
        self._names += 1
        name = f"n{self._names}"
        is_pinned = self.chance.random() < 0.1
        marks = "pinned: true\n" if is_pinned else ""
        status = self.chance.choice(["pending", "active"])
        text = f"Boat number {self._names} is {self.chance.choice(['an old', 'a new'])} one."
        path = self.vault.write(f"facts/{name}.md", FACT.format(name=name, status=status, marks=marks, text=text))
        if is_pinned:
            self._pinned[f"facts/{name}.md"] = path.read_bytes()
        if self.chance.random() < 0.8:
            # Quaid's own, so that its lines may be reworded without asking.
            self.vault.git("add", f"facts/{name}.md")
            self.vault.git("commit", "-qm", name, "--author", "Quaid <quaid@localhost>", "--", f"facts/{name}.md")

    def _some(self) -> Path | None:
        found = [
            path for path in sorted((self.vault.root / "facts").glob("n*.md")) if self._path(path) not in self._pinned
        ]
        return self.chance.choice(found) if found else None

    def _path(self, path: Path) -> str:
        return path.relative_to(self.vault.root).as_posix()

    def _touched(self, path: Path) -> None:
        """The owner has worked on it, so no veto is expected of it; perhaps the work is committed."""
        self._vetoed.pop(self._path(path), None)
        if self.chance.random() < 0.5:
            self.vault.save("the owner's day")

    def _remark(self) -> None:
        path = self._some()
        if path is not None:
            remark = f"A remark of day {self._night}."
            path.write_text(f"{path.read_text()}\n{remark}\n")
            self._remarks.add(remark)
            self._touched(path)

    def _rename(self) -> None:
        path = self._some()
        if path is not None:
            self._names += 1
            path.rename(path.with_name(f"n{self._names}.md"))
            self._touched(path)

    def _delete(self) -> None:
        path = self._some()
        if path is not None:
            said = path.read_text()
            self._remarks = {remark for remark in self._remarks if remark not in said}
            path.unlink()
            self._touched(path)

    def _undo(self) -> None:
        """A night or one decision, however old."""
        if not self._runs:
            return
        run = self.chance.choice(self._runs)
        with self.vault.memory() as memory:
            try:
                commits = memory.timeline.commits_of(run)
                reference = run if self.chance.random() < 0.5 else self.chance.choice(commits).id
                before = self.vault.notes()
                memory.timeline.undo(reference)
            except BadInputError:
                self.counts["undo refused"] += 1
                return
        self._took_back(before)

    def _revert(self) -> None:
        """The newest decision, by plain git, with a message that says nothing."""
        newest = self.vault.git("log", "--format=%H", "--no-merges", "--grep=^Quaid-Decision: ", "-1")
        before = self.vault.notes()
        if not newest or self.vault.run("revert", "--no-commit", newest, check=False).returncode:
            self.vault.run("revert", "--abort", check=False)
            return
        if self.vault.run("commit", "-qm", "No, thanks.", check=False).returncode:  # it was taken back already
            self.vault.run("revert", "--quit", check=False)
        self._took_back(before)

    def _took_back(self, before: dict[str, bytes]) -> None:
        for path, data in self.vault.notes().items():
            if path.startswith("facts/") and before.get(path) != data:
                again = {decision.key for decision in _decide(path, data)}
                if again <= self._decided:
                    self._vetoed[path] = data

    def _pull(self) -> None:
        """Another machine has pushed; ids change, merges are gone, and git sweeps up."""
        other = Vault(self.vault.root.parent / "other")
        shutil.rmtree(other.root, ignore_errors=True)
        self.vault.git("clone", "-q", str(self._origin), str(other.root))
        other.write(f"notes/elsewhere-{self._night}.md", "Written on another machine.\n")
        other.save("elsewhere")
        other.git("push", "-q", "origin", "HEAD")
        pulled = self.vault.run("pull", "-q", "--rebase", "--autostash", "origin", "main", check=False)
        if pulled.returncode:
            self.counts["pull in conflict"] += 1
            self.vault.run("rebase", "--abort", check=False)
            return
        if self.chance.random() < 0.5:
            self.vault.git("push", "-q", "origin", "HEAD:main")
        self.vault.git("reflog", "expire", "--expire=now", "--all")
        self.vault.git("gc", "-q", "--prune=now")

    def _report(self) -> None:
        """A hook leaves a report in the queue: a whole one, or one that a kill has cut."""
        state = state_folder(self.vault.root)
        queue.put(state, queue.QueuedItem(f"s{self._night}", "/nowhere", "now", "session", float(self._night)))
        whole = next(path for path in (state / "queue").glob("*.json") if f'"s{self._night}"' in path.read_text())
        if self.chance.random() < 0.5:
            whole.write_bytes(whole.read_bytes()[:-20] + f"{self._night}".encode())
        self._reports.add(whole.read_bytes())

    # -- the night ---------------------------------------------------------------------------------------------------

    def _sleep(self) -> None:
        before = self.vault.notes()
        if self.chance.random() < 0.4:
            self._killed(self.chance.randint(1, LATEST_KILL))
        report = self._tidy()
        if report is None:
            return
        self.counts["decided"] += len(report.done)
        self.counts["vetoed"] += report.vetoed
        if report.failed or report.lost:
            self._broke(f"failed {report.failed}, lost {report.lost}")
        if self.chance.random() < 0.3:
            again = self._tidy()
            if again is not None and again.changed:
                did = [decision.subject for decision in (*again.done, *again.asked)]
                self._broke(f"a second run did {did}, {again.answered}")
        self._check_notes(before)
        self._check_queue()

    def _tidy(self) -> Any:
        try:
            with self.vault.memory() as memory:
                report = memory.janitor.run(RunOptions(accept_removals=True))
        except QuaidError as error:
            self._broke(f"no night: {error}")
            return None
        self._decided.update(decision.key for decision in report.done)
        if report.commit is not None:
            self._runs.append(report.run)
        return report

    def _killed(self, step: int) -> None:
        child = os.fork()
        if not child:
            try:
                _kill_at(step)
                with self.vault.memory() as memory:
                    memory.janitor.run(RunOptions(accept_removals=True))
            finally:  # what the parent would clean up is not this process's
                os._exit(0)
        _, status = os.waitpid(child, 0)
        self.counts["killed" if os.WIFSIGNALED(status) else "not killed"] += 1
        named = self.vault.git("log", "--format=%(trailers:key=Quaid-Run,valueonly)", "-5").split()
        self._runs += [run for run in dict.fromkeys(named) if run not in self._runs]

    # -- what must hold ----------------------------------------------------------------------------------------------

    def _check_notes(self, before: dict[str, bytes]) -> None:
        now = self.vault.notes()
        gone = [path for path in before if path not in now and not path.startswith("review/")]
        if gone:
            self._broke(f"notes are gone: {gone}")
        text = b"\n".join(data for path, data in now.items() if path.endswith(".md"))
        for remark in sorted(self._remarks):
            if remark.encode() not in text:
                self._broke(f"what the owner wrote is gone: {remark}")
        for path, data in self._pinned.items():
            if now.get(path) != data:
                self._broke(f"a pinned note was changed: {path}")
        for path, data in self._vetoed.items():
            if before.get(path) == data and now.get(path) != data:
                self._broke(f"what was taken back was done again: {path}")

    def _check_queue(self) -> None:
        state = state_folder(self.vault.root)
        queue.waiting(state)
        queue.failed(state)
        if self.chance.random() < 0.5:
            queue.set_aside(state)
        kept = {path.read_bytes() for path in (state / "queue").rglob("*.json")}
        if not self._reports <= kept:
            self._broke(f"reports are gone from the queue: {self._reports - kept}")

    def _check_index(self) -> None:
        with self.vault.memory() as memory:
            found = memory.verify()
        if not found.ok:
            self._broke(f"the index is not the files': {found.differences[:3]}")
        if self.vault.strays():
            self._broke(f"left behind: {self.vault.strays()}")
        self.vault.run("fsck", "--strict", "--no-dangling")

    def _broke(self, sentence: str) -> None:
        self.broken.append(f"night {self._night}: {sentence}")


def _tasks() -> tuple[Any, ...]:
    """Tasks that decide by rule: what is pending is approved, what is old is called ancient."""
    fields = {"needs_model": False, "module": "made_up", "switch": "memory"}
    return tuple(SimpleNamespace(name=name, plan=_plan(name), **fields) for name in ("wording", "approving"))


def _decide(path: str, data: bytes) -> Iterator[Decision]:
    """What is to be done about a note; the evidence is its text."""
    text = parse_note(path, data).text
    if " an old " in text:
        edit = rewrite(path, data, text.replace(" an old ", " an ancient "))
        yield Decision(
            "wording", "rewrite", evidence_key("wording", path, text), (edit,), f"rewrite {path}", "It is ancient."
        )
    if b"status: pending" in data:
        edit, key = set_fields(path, data, {"status": "active"}), evidence_key("approving", path, text)
        yield Decision("approving", "approve", key, (edit,), f"approve {path}", "", is_minor=True)


def _plan(task: str) -> Callable[[Any], Iterator[Decision]]:
    def plan(context: Any) -> Iterator[Decision]:
        for (path,) in context.index.execute("SELECT path FROM documents WHERE kind = 'fact' ORDER BY path").fetchall():
            data = context.read(path)
            yield from (made for made in _decide(path, data) if made.task == task) if data is not None else ()

    return plan


def _kill_at(step: int) -> None:
    """From here on each call of git and each write of a note is a step, and this process does not survive that one."""
    left = [step]

    def counting(call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **named: Any) -> Any:
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*args, **named)

        return counted

    vault_history.run_once = counting(vault_history.run_once)
    files.write_note = counting(files.write_note)


if __name__ == "__main__":
    sys.exit(main())
