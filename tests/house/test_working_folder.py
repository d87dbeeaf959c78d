"""Where a command is called from decides what it is about, never what runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from vaults import wait_for

QUAID = str(Path(sys.executable).with_name("quaid"))
PROGRAMS = ("git", "env", "claude", "timeout", "notify-send", "python", "python3", "crontab", "systemctl")
MODULES = ("apsw", "tomllib", "filelock", "numpy", "httpx", "quaid_hooks", "typer", "git", "yaml")
TALK = {"type": "user", "message": {"role": "user", "content": "We adopted a quokka called Biscuit."}}


@pytest.fixture
def foreign(tmp_path):
    """A folder of somebody else, with programs and modules of the names that Quaid looks for."""
    folder = tmp_path / "foreign"
    (folder / "bin").mkdir(parents=True)
    for name in PROGRAMS:
        for path in (folder / name, folder / "bin" / name):
            path.write_text(f"#!/bin/sh\necho {name} >>{tmp_path}/ran\nexit 1\n")
            path.chmod(0o755)
    for name in MODULES:
        (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write({name!r})\nraise SystemExit")
    return folder


@pytest.mark.matrix
@pytest.mark.parametrize("before", ["", ".", "bin", "./bin"])
def test_relative_search_paths_find_nothing_in_the_working_folder(foreign, tmp_path, vault, before):
    environ = {
        **os.environ,
        "QUAID_HOME": str(vault.root),
        "PATH": f"{before}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": f"{before}{os.pathsep}",
        "DISPLAY": ":0",
        "QUAID_NOTIFICATIONS_CHANNELS": "desktop",
    }
    talk = tmp_path / "talk.jsonl"
    talk.write_text(json.dumps(TALK))
    event = {"session_id": "s1", "transcript_path": str(talk), "cwd": str(foreign), "reason": "exit"}

    def run(*arguments, **options):
        command = [QUAID, *arguments]
        done = subprocess.run(command, cwd=foreign, env=environ, capture_output=True, text=True, check=False, **options)
        assert done.returncode == 0, done
        return done.stdout

    run("remember", "Maya takes oat milk.")
    assert "oat milk" in run("recall", "which milk does Maya take?")
    run("hook", "session-end", input=json.dumps(event))
    wait_for(lambda: list(vault.root.glob("episodes/**/*.md")) or not list_queue(vault), "the worker")
    run("status")
    assert not (tmp_path / "ran").exists()


def list_queue(vault):
    from quaid.local import queue
    from quaid.place import state_folder

    return list(queue.waiting(state_folder(vault.root)))


@pytest.mark.slow
def test_an_empty_search_path_is_the_system_s(foreign, tmp_path, vault):
    environ = {**os.environ, "PATH": "", "QUAID_HOME": str(vault.root)}
    done = subprocess.run(
        [QUAID, "remember", "Maya takes oat milk."], cwd=foreign, env=environ, capture_output=True, check=False
    )
    assert done.returncode == 0, done
    assert not (tmp_path / "ran").exists()


@pytest.mark.slow
def test_a_working_folder_that_is_gone_stops_no_command(tmp_path, vault):
    (tmp_path / "gone").mkdir()
    script = f"cd {tmp_path}/gone && rmdir {tmp_path}/gone && exec {QUAID} --vault {vault.root} status"
    environ = {**os.environ, "PATH": f".{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["/bin/sh", "-c", script], env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done
