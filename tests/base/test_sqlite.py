"""Files that several processes begin at the same moment: all wait for each other, none is turned away."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import apsw
import pytest

from quaid.errors import StateDamagedError
from quaid.local.database import open_local, translated
from quaid.sqlite import transaction, use_write_ahead_log

ROOT = Path(__file__).parents[2]
FILES = 40
BEGIN_LOCAL = """
from quaid.local.database import open_local
def begin(path):
    connection = open_local(path, "CREATE TABLE IF NOT EXISTS t (a);")
    connection.execute("INSERT INTO t VALUES (1)")
    connection.close()
"""
BEGIN_CACHE = """
from quaid.embed import EmbeddingCache
def begin(path):
    with EmbeddingCache(path) as cache:
        cache.put_many("model", [(sys.argv[2], b"1234")])
"""
AT_ONCE = """
import time
for number in range(int(sys.argv[3])):
    while time.time() < float(sys.argv[4]) + number * 0.02:
        pass
    begin(Path(sys.argv[1]) / f"{number}.db")
"""


@pytest.mark.parametrize(("begin", "count"), [(BEGIN_LOCAL, "t"), (BEGIN_CACHE, "vectors")])
def test_processes_that_begin_a_file_at_once_wait_for_each_other(tmp_path, begin, count):
    code = f"import sys\nfrom pathlib import Path\n{begin}{AT_ONCE}"
    start = str(time.time() + 0.5)
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path), name, str(FILES), start], cwd=ROOT, stderr=subprocess.PIPE
        )
        for name in "xyz"
    ]
    assert [process.communicate(timeout=60)[1].decode() for process in running] == ["", "", ""]
    for number in range(FILES):
        connection = apsw.Connection(str(tmp_path / f"{number}.db"))
        assert connection.execute(f"SELECT count(*) FROM {count}").get == 3
        connection.close()


def test_whoever_waits_for_a_file_in_vain_is_told(tmp_path):
    path = str(tmp_path / "x.db")
    holder, other = apsw.Connection(path), apsw.Connection(path)
    holder.execute("CREATE TABLE t (a)")
    with transaction(holder):
        with pytest.raises(apsw.BusyError):
            use_write_ahead_log(other, 30)
        holder.execute("INSERT INTO t VALUES (1)")
    assert other.execute("SELECT count(*) FROM t").get == 1
    use_write_ahead_log(other, 30)
    assert other.execute("PRAGMA journal_mode").get == "wal"


def test_a_transaction_that_sqlite_took_back_itself_raises_what_went_wrong(tmp_path):
    connection = open_local(tmp_path / "x.db", "CREATE TABLE t (a)")
    with pytest.raises(ValueError, match="mine"), transaction(connection):
        connection.execute("ROLLBACK")
        raise ValueError("mine")
    connection.close()


@pytest.mark.parametrize("place", range(0, 40_000, 3_701))
def test_a_flipped_bit_is_damage_wherever_it_is(tmp_path, place):
    path = tmp_path / "local.db"

    def opened():
        return open_local(path, "CREATE TABLE IF NOT EXISTS t (a TEXT)")

    connection = opened()
    with transaction(connection):
        connection.executemany("INSERT INTO t VALUES (?)", [("quokka " * 20,) for _ in range(300)])
    connection.close()
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)
    with suppress(StateDamagedError):
        connection = opened()
        with translated(connection):
            found = {row[0] for row in connection.execute("SELECT a FROM t")}
            assert found <= {"quokka " * 20}
        connection.close()
    assert path.with_name("local.db.damaged").read_bytes() == data


def test_files_of_others_are_opened_as_if_quaid_were_not_there(tmp_path):
    code = (
        "import apsw, sys\nbefore = apsw.vfs_names()[0]\nfrom pathlib import Path\n"
        "from quaid.local.database import open_local\nopen_local(Path(sys.argv[1]), '').close()\n"
        "assert apsw.vfs_names()[0] == before, apsw.vfs_names()"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "local.db")], cwd=ROOT, check=True)
