"""Kill it anywhere, run it again, same answer: every write is stopped at its n-th step, for every n (law 10).

By default a tenth of the steps is tried, all of them with `pytest -m ''`.

A step is what changes something outside of the process: before and after a rename, a link, an fsync, an unlink and the
start of a git process, the beginning, the middle and the end of a transaction. How many there are is found out, not
written down.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import apsw
import pytest
from matrices import tenth
from vaults import Vault, assert_verified, copy_around, copy_vault

from quaid import Memory
from quaid.place import state_folder
from quaid.remotes import trusted
from quaid.remotes.trusted import Trusted

pytestmark = [pytest.mark.usefixtures("calm"), pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")]

SHARED_MEMORY = Path("/dev/shm")
THOROUGH_EVERY = 5
"""At so many steps also each row is compared and git's objects are checked one by one, which takes as long as all else."""
TALK = """\
{"session": "s1", "started": "2026-11-20T14:00:00Z"}
{"role": "user", "content": "We adopted a quokka.", "timestamp": "2026-11-20T14:00:00Z"}
{"role": "assistant", "content": "What is its name, then?", "timestamp": "2026-11-20T14:01:00Z"}
"""
GROWN = TALK + '{"role": "user", "content": "Its name is Biscuit.", "timestamp": "2026-11-20T14:02:00Z"}\n'


@dataclass(frozen=True)
class Operation:
    """What is done in a vault before, and the call that is killed."""

    prepare: Callable[[Vault, Memory], object]
    call: Callable[[Vault, Memory], object]


def _nothing(_vault: Vault, _memory: Memory) -> None:
    """The vault as it is."""


def _kayak(_vault: Vault, memory: Memory) -> object:
    return memory.remember("Maya bought a blue kayak")


def _talk(vault: Vault, memory: Memory) -> object:
    return memory.extract(_transcript(vault, TALK))


def _forgotten_kayak(vault: Vault, memory: Memory) -> None:
    vault.write_fact("kayak", "Maya bought a blue kayak.")
    vault.save()
    memory.forget("01kayak")


def _forgotten_turn(vault: Vault, memory: Memory) -> None:
    _talk(vault, memory)
    memory.forget(_turn(vault, 1))


def _edited(vault: Vault, memory: Memory) -> None:
    _forgotten_kayak(vault, memory)
    memory.sync()
    vault.write("Garden.md", "# Roses\n\nThey need water.\n\n# Oaks\n\nThey need time.\n")
    vault.write_fact("canoe", "Maya sold her canoe.")
    (vault.root / "USER.md").unlink()


def _ahead(vault: Vault, _memory: Memory) -> None:
    """The remote has a fact more, an edit and a removal; the vault a fact that the remote has not."""
    vault.write("Garden.md", "# Roses\n\nThey need water.\n")
    vault.write_fact("canoe", "Maya sold her canoe.")
    vault.save()
    bare = vault.root.parent / "remote.git"
    vault.git("clone", "-q", "--bare", str(vault.root), str(bare))
    vault.git("remote", "add", "origin", "../remote.git")
    begun = vault.head()
    vault.write("Garden.md", "# Roses\n\nThey need much water.\n")
    vault.write_fact("kayak", "Maya bought a blue kayak.")
    (vault.root / "facts/canoe.md").unlink()
    vault.save("elsewhere")
    vault.git("push", "-q", "origin", "HEAD:main")
    vault.git("reset", "-q", "--hard", begun)
    vault.write_fact("tent", "Maya bought a tent.")
    vault.save("here")
    vault.write("USER.md", "I write this and have not committed it.\n")


def _pull(_vault: Vault, memory: Memory) -> object:
    # Which remotes are trusted is a list of the user's that all these vaults share.
    with patch.object(trusted, "check", return_value=Trusted("", own=True)):
        return memory.remotes.pull()


OPERATIONS = {
    "pull": Operation(_ahead, _pull),
    "remember, new": Operation(_nothing, _kayak),
    "remember, again": Operation(_kayak, _kayak),
    "link": Operation(_nothing, lambda _, memory: memory.link("Maya", "works_at", "Acme")),
    "extract, new": Operation(lambda _, memory: memory.note("call Maya back"), _talk),
    "extract, grown": Operation(_talk, lambda vault, memory: memory.extract(_transcript(vault, GROWN))),
    "forget": Operation(
        lambda vault, _: (vault.write_fact("kayak", "Maya bought a blue kayak."), vault.save()),
        lambda _, memory: memory.forget("01kayak"),
    ),
    "forget a turn": Operation(_talk, lambda vault, memory: memory.forget(_turn(vault, 1))),
    "restore": Operation(_forgotten_kayak, lambda _, memory: memory.restore("01kayak")),
    "restore a turn": Operation(_forgotten_turn, lambda vault, memory: memory.restore(_turn(vault, 1))),
    "sync": Operation(_edited, lambda _, memory: memory.sync()),
    "reindex": Operation(_edited, lambda _, memory: memory.reindex()),
}


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(min(4, (os.cpu_count() or 1) + 1), get_context("fork")) as executor:
        yield executor


@pytest.fixture(scope="module")
def workshop() -> Iterator[Path]:
    """A folder in memory where there is a disk in memory."""
    shared = str(SHARED_MEMORY) if os.access(SHARED_MEMORY, os.W_OK) else None
    with TemporaryDirectory(prefix="quaid-crash-", dir=shared, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.mark.matrix
@pytest.mark.parametrize("name", OPERATIONS)
def test_killed_at_any_step_and_run_again_the_answer_is_the_same(
    pool: ProcessPoolExecutor, workshop: Path, name: str
) -> None:
    prepared = copy_vault(workshop / name / "prepared" / "vault")
    with prepared.memory() as memory:
        memory.sync()
        OPERATIONS[name].prepare(prepared, memory)
    expected, steps = pool.submit(run_whole, name, workshop).result()
    assert steps >= 5
    numbers = tenth(range(1, steps + 1), at_least=4)
    killed = list(pool.map(is_killed_and_recovers, repeat(name), numbers, repeat(expected), repeat(workshop)))
    assert sum(killed) >= 0.75 * len(numbers)  # a run may find one thing less to do than the one that was counted


def run_whole(name: str, workshop: Path) -> tuple[object, int]:
    """What an uninterrupted run leaves, and its steps."""
    with _copied(workshop / name, "whole") as vault:
        reading, writing = os.pipe()
        if not (child := os.fork()):
            _run_child(name, vault, lambda steps: os.write(writing, str(steps).encode()))
        os.waitpid(child, 0)
        return _picture(vault), int(os.read(reading, 20))


def is_killed_and_recovers(name: str, step: int, expected: object, workshop: Path) -> bool:
    """Kill the call at `step`, run it again, and hold what is left against `expected`."""
    with _copied(workshop / name, f"step{step}") as vault:
        if not (child := os.fork()):
            _run_child(name, vault, lambda _: None, step)
        _, status = os.waitpid(child, 0)
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        is_done = not (state_folder(vault.root) / "pending.json").exists() and _log(vault) == expected[1]  # type: ignore[index]
        with vault.memory() as memory:
            if not is_done or name in {"sync", "reindex"}:
                OPERATIONS[name].call(vault, memory)
            memory.sync()
            assert memory.verify().ok, f"step {step} of {name}"
            if step % THOROUGH_EVERY == 0:
                assert_verified(memory)
        assert _picture(vault) == expected, f"step {step} of {name}"
        _assert_tidy(vault, f"step {step} of {name}", thoroughly=step % THOROUGH_EVERY == 0)
        return killed


@contextmanager
def _copied(folder: Path, name: str) -> Iterator[Vault]:
    """The prepared vault again, with what lies beside it."""
    try:
        yield copy_around(folder / "prepared" / "vault", folder / name)
    finally:
        shutil.rmtree(folder / name, ignore_errors=True)


def _run_child(name: str, vault: Vault, done: Callable[[int], object], step: int = 0) -> None:
    """Make the call in this forked process, which does not live to see the end of it when `step` comes."""
    try:
        count = _count_steps(step)
        with vault.memory() as memory:
            OPERATIONS[name].call(vault, memory)
        done(count())
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def _count_steps(deadly: int) -> Callable[[], int]:
    """Count the steps from now on; the process is killed at step `deadly`."""
    from quaid.history import git

    taken, run_git = [0], git.execute

    def step() -> None:
        taken[0] += 1
        if taken[0] == deadly:
            os.kill(os.getpid(), signal.SIGKILL)

    def stepping(function: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **options: object) -> object:
            step()
            done = function(*args, **options)
            if function is run_git and {"commit", "add", "update-ref"}.intersection(args[0]):
                step()  # a git that was started outlives us
            return done

        return call

    for name in ("replace", "rename", "link", "unlink", "remove", "fsync"):
        setattr(os, name, stepping(getattr(os, name)))
    git.execute = stepping(run_git)

    def trace(_cursor: object, sql: str, _bindings: object) -> bool:
        if sql.startswith(("BEGIN", "COMMIT", "INSERT INTO documents", "DELETE FROM documents")):
            step()
        return True

    apsw.connection_hooks.append(lambda connection: connection.set_exec_trace(trace))
    return lambda: taken[0]


def _picture(vault: Vault) -> tuple[dict[str, str], list[str], str]:
    """Notes and commits, with ids and times of day taken out, and what git calls uncommitted."""
    notes = {_plain(path): _plain(data.decode()) for path, data in vault.notes().items()}
    return notes, _log(vault), vault.status()


def _log(vault: Vault) -> list[str]:
    return [_plain(line) for line in vault.git("log", "--format=%an %s%n%b").splitlines() if line]


def _plain(text: str) -> str:
    text = re.sub(r"\b01[0-9a-z]{24}\b", "ID", text)
    text = re.sub(r"-[0-9a-z]{5}\.md$", "-ID.md", text)
    text = re.sub(r"(\*\*Note to self\*\*) \([^)]*\)", r"\1 NOW", text)  # to the minute, and minutes end
    return re.sub(r"\b20\d\d-(?!11-20)\d\d-\d\dT[\d:]+Z", "NOW", text)


def _assert_tidy(vault: Vault, when: str, *, thoroughly: bool) -> None:
    assert vault.strays() == [], when
    if thoroughly:
        vault.run("fsck", "--strict", "--no-dangling")
    if list((vault.root / ".git").glob("quaid-*")):
        with vault.memory() as memory:  # it may be kept for one run more, while a git may still be reading it
            memory.remember("One more thing is written afterwards")
        assert list((vault.root / ".git").glob("quaid-*")) == [], when


def _transcript(vault: Vault, text: str) -> Path:
    path = vault.root.parent / "talk.jsonl"
    path.write_text(text)
    return path


def _turn(vault: Vault, number: int) -> str:
    return f"{next((vault.root / 'episodes').rglob('*.md')).stem}#t{number}"
