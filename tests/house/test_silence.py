"""Nothing leaves unasked: the main job runs where the kernel counts every attempt to reach anybody."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from replay import facts_of, write_claude, write_talk
from vaults import need_weights

PROGRAM = str(Path(__file__).parents[1] / "main_job.py")
ALONE = (
    "ip link set lo up && ip route add local default dev lo && "
    '{ ip -6 route add local ::/0 dev lo 2>/dev/null || true; } && exec "$@"'
)
"""A network of its own, without a way out: whatever address is asked, it is this machine, and the kernel counts."""


def run_alone(*command: str, **environ: str) -> subprocess.CompletedProcess[str]:
    line = ["unshare", "--user", "--map-root-user", "--net", "sh", "-c", ALONE, "sh", *command]
    return subprocess.run(line, capture_output=True, text=True, check=False, timeout=120, env={**os.environ, **environ})


@pytest.fixture(autouse=True)
def _need_namespaces():
    if not (shutil.which("unshare") and shutil.which("ip") and run_alone("true").returncode == 0):
        pytest.skip("needs unshare, ip and a kernel that gives everybody a network namespace")


def test_attempts_to_reach_anybody_are_counted():
    done = run_alone(sys.executable, PROGRAM)
    assert json.loads(done.stdout) == {"ActiveOpens": 1, "OutDatagrams": 1, "Udp6OutDatagrams": 0}, done


def test_the_main_job_reaches_for_nobody(calm, tmp_path, monkeypatch):
    need_weights(monkeypatch)
    from quaid.embed.weights import cache_folder

    home = tmp_path / "home"
    home.mkdir()
    write_talk(tmp_path / "talk.jsonl", "We adopted a quokka called Biscuit.")
    environ = write_claude(tmp_path / "bin", {"s1": facts_of("Maya adopted a quokka called Biscuit.")})
    environ |= {"HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache"), "QUAID_CACHE_DIR": str(cache_folder())}
    done = run_alone(sys.executable, PROGRAM, str(tmp_path), **environ)
    assert done.returncode == 0, done
    assert set(json.loads(done.stdout).values()) == {0}
    # What onnxruntime tells its makers waits in a store first, with an id of the machine beside it.
    assert [path for path in home.rglob("*") if "microsoft" in str(path).lower()] == []
