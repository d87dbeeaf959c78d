"""An extraction under way is seen by others, whoever does it, and ends with its process."""

import os
import signal
import subprocess
import sys

import pytest

from quaid.local.locks import extracting, is_extracting

HOLD = "import sys, pathlib\nfrom quaid.local.locks import extracting\nwith extracting(pathlib.Path(sys.argv[1])):\n    print(1, flush=True)\n    sys.stdin.read()"


@pytest.mark.parametrize("is_killed", [True, False])
def test_that_of_another_process_counts_until_it_ends(tmp_path, is_killed):
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        assert is_extracting(tmp_path)
        os.kill(process.pid, signal.SIGKILL) if is_killed else process.stdin.close()
        process.wait()
        assert not is_extracting(tmp_path)


def test_several_may_be_under_way_and_each_counts(tmp_path):
    assert not is_extracting(tmp_path / "none")
    with extracting(tmp_path):
        with extracting(tmp_path):
            assert is_extracting(tmp_path)
        assert is_extracting(tmp_path)
    assert not is_extracting(tmp_path)
