"""Extractions by several processes, and by such as are killed: nothing is lost, nothing learned twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from extraction_runs import assert_waits, folders, meanwhile, picture, subjects
from replay import write_talk
from vaults import Vault, assert_verified, copy_of, wait_for

from quaid.place import state_folder

pytestmark = pytest.mark.usefixtures("calm", "quick")


def start(vault, *arguments, **options):
    command = [sys.executable, "-m", "quaid.cli.main", "--vault", str(vault.root), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


@pytest.mark.slow
def test_two_processes_learn_from_two_sessions_at_once(vault, service, talk, tmp_path):
    other = write_talk(tmp_path / "u.jsonl", "Tom bakes bread.", session="s2")
    both = threading.Barrier(2)
    service.script = [meanwhile(service, lambda: both.wait(30)) for _ in range(2)]
    running = [start(vault, "extract", path) for path in (talk, other)]
    for process in running:
        out, err = process.communicate(timeout=60)
        assert (process.returncode, err.decode()) == (0, f"The vault is {vault.root}\n"), out
    assert sorted(subjects(vault)) == ["extract: 1 fact from session s2", "extract: 2 facts from session s1"]
    assert vault.status() == ""
    vault.assert_sound()


def kill_while_it_thinks(service, begin):
    """Start a process and end it the hard way once the model was asked."""
    go_on = threading.Event()
    service.script = [meanwhile(service, lambda: go_on.wait(30))]
    process = begin()
    wait_for(lambda: service.asked, "the model to be asked")
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    go_on.set()


@pytest.mark.slow
def test_killed_while_the_model_thinks_and_run_again(vault, service, talk, untroubled):
    kill_while_it_thinks(service, lambda: start(vault, "extract", talk))
    assert folders(vault) == set()
    with vault.memory() as memory:
        assert len(memory.extract(talk).facts) == 2
    assert picture(vault) == untroubled
    assert subjects(vault) == ["extract: 2 facts from session s1"]
    vault.assert_sound()


@pytest.mark.slow
def test_killed_while_the_model_thinks_about_a_stream(vault, service, talk, untroubled):
    with talk.open("rb") as stream:
        kill_while_it_thinks(service, lambda: start(vault, "extract", "-", stdin=stream))
    assert_waits(vault)
    with vault.memory() as memory:
        (done,) = memory.extract_waiting()
    assert len(done.facts) == 2
    assert picture(vault) == untroubled


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_at_any_step_of_writing_and_run_again(vault, service, talk, tmp_path):
    with vault.memory() as memory:
        memory.note("the quokka is a rescue")
        memory.extract(talk, dry_run=True)
    service.close()  # what was answered is known by now
    whole = tmp_path / "whole"
    steps = run_killed(vault, whole, talk, 0)
    expected = picture(Vault(whole))
    assert "the quokka is a rescue" in "".join(expected.values())
    assert steps > 30
    for step in sorted({*range(5, steps, steps // 8), steps - 1, steps}):
        copy = tmp_path / f"step{step}"
        run_killed(vault, copy, talk, step)
        is_unfinished = (state_folder(copy) / "pending.json").exists()
        with Vault(copy).memory() as memory:
            done = memory.extract(talk)
            assert done.problem is None, step
            assert len(done.facts) == 2 or not is_unfinished, step
            assert memory.note("one") == 1, step
            assert_verified(memory)
        assert picture(Vault(copy)) == expected, step
        assert subjects(Vault(copy)) == ["extract: 2 facts from session s1"], step
        assert (Vault(copy).strays(), Vault(copy).status()) == ([], ""), step


def run_killed(vault: Vault, root: Path, talk: Path, deadly: int) -> int:
    """Extract in a forked process on a copy of `vault`, killed at step `deadly`; how many steps it took."""
    copy_of(vault.root, root)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        taken = 0

        def step() -> None:
            nonlocal taken
            taken += 1
            if taken == deadly:
                os.kill(os.getpid(), signal.SIGKILL)

        def stepping(function):
            def call(*args, **options):
                step()
                done = function(*args, **options)
                step()
                return done

            return call

        try:
            for name in ("replace", "rename", "link", "unlink", "fsync"):
                setattr(os, name, stepping(getattr(os, name)))
            with Vault(root).memory() as memory:
                assert memory.extract(talk).problem is None
            os.write(writing, str(taken).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    told = os.read(reading, 20)
    os.close(reading)
    return int(told or 0)
