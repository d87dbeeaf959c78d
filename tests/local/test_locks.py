"""An extraction under way can be waited for, whoever does it, and ends with its process."""

import os
import signal
import subprocess
import sys

import pytest

from quaid.local.locks import extracting, is_extracting, wait_for_extractions

HOLD = "import sys, pathlib\nfrom quaid.local.locks import extracting\nwith extracting(pathlib.Path(sys.argv[1])):\n    print(1, flush=True)\n    sys.stdin.read()"


@pytest.fixture
def holder(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        yield process
        process.kill()


def test_nothing_is_under_way_in_a_fresh_vault(tmp_path):
    assert not is_extracting(tmp_path / "none")
    assert wait_for_extractions(tmp_path, 0)


def test_several_may_be_under_way_and_each_counts(tmp_path):
    with extracting(tmp_path):
        with extracting(tmp_path):
            assert is_extracting(tmp_path)
        assert is_extracting(tmp_path)
    assert not is_extracting(tmp_path)


def test_that_of_another_process_is_waited_for(tmp_path, holder):
    pauses = []
    assert not wait_for_extractions(tmp_path, 0.05, pauses.append)
    assert pauses

    def pause(_):
        holder.stdin.close()
        holder.wait()

    assert wait_for_extractions(tmp_path, 10, pause)


def test_a_killed_one_holds_nobody_up(tmp_path, holder):
    assert is_extracting(tmp_path)
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    assert not is_extracting(tmp_path)
