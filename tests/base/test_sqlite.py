"""Files that several processes begin at the same moment: all wait for each other, none is turned away."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from quaid.errors import StateDamagedError
from quaid.local.database import open_local, translated
from quaid.sqlite import DamageRetries, transaction, use_write_ahead_log

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
from contextlib import closing
from quaid.embed.cache import EmbeddingCache
def begin(path):
    with closing(EmbeddingCache(path)) as cache:
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


@pytest.mark.parametrize(
    "bug",
    [
        lambda connection: connection.execute("SELECT * FROM nowhere"),
        lambda connection: connection.execute("SELECT nothing FROM t"),
        lambda connection: connection.execute("INSERT INTO t VALUES (1, 2, 3)"),
        lambda connection: connection.execute("INSERT INTO t VALUES (NULL)"),
        lambda _: b"\xff".decode(),
        lambda _: int([]),
    ],
)
def test_a_bug_of_our_own_is_raised_as_it_is_and_sets_no_sound_file_aside(tmp_path, bug):
    path = tmp_path / "local.db"
    connection = open_local(path, "CREATE TABLE IF NOT EXISTS t (a TEXT NOT NULL)")
    connection.execute("INSERT INTO t VALUES ('quokka')")
    with pytest.raises((apsw.Error, UnicodeDecodeError, TypeError)), translated(connection):
        bug(connection)
    with pytest.raises((apsw.Error, UnicodeDecodeError, TypeError)), DamageRetries(path):
        bug(connection)
    assert connection.execute("SELECT a FROM t").get == "quokka"
    connection.close()
    assert not list(tmp_path.glob("*.damaged*"))


@pytest.mark.parametrize("page", range(1, 11))
@pytest.mark.parametrize("content", [bytes(4096), b"\xff" * 4096])
def test_a_page_that_was_overwritten_is_damage_wherever_it_is(tmp_path, page, content):
    path = tmp_path / "local.db"
    rows = {(f"{number:03}" + " quokka" * 18,) for number in range(300)}
    with closing(open_local(path, "CREATE TABLE IF NOT EXISTS t (a TEXT)")) as connection, transaction(connection):
        connection.executemany("INSERT INTO t VALUES (?)", sorted(rows))
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096 * page)
        file.write(content)
    with pytest.raises(StateDamagedError), closing(open_local(path)) as connection, translated(connection):
        connection.execute("SELECT a FROM t").fetchall()
    assert path.with_name("local.db.damaged").stat().st_size == size


class TestDailyCopy:
    SCHEMA = "CREATE TABLE IF NOT EXISTS t (a TEXT)"

    def open(self, path):
        return closing(open_local(path, self.SCHEMA))

    def fill(self, path, text):
        with self.open(path) as connection:
            connection.execute("INSERT INTO t VALUES (?)", (text,))

    def make_old(self, path, days=2):
        then = time.time() - days * 86_400
        os.utime(path.with_name("local.db.daily"), (then, then))

    def read(self, path):
        with self.open(path) as connection:
            return [row[0] for row in connection.execute("SELECT a FROM t")]

    def test_a_damaged_file_is_replaced_by_its_copy_of_the_day_and_that_is_reported(self, tmp_path, caplog):
        path = tmp_path / "local.db"
        self.fill(path, "first")
        self.make_old(path)
        self.fill(path, "second")  # after the copy of this day was made
        copy = path.with_name("local.db.daily")
        assert stat.S_IMODE(copy.stat().st_mode) == 0o600
        path.write_bytes(b"rubbish" * 999)
        for suffix in ("-wal", "-shm"):
            path.with_name(f"local.db{suffix}").unlink(missing_ok=True)
        day = time.strftime("%Y-%m-%d", time.gmtime(copy.stat().st_mtime))
        with self.open(path) as connection:
            notice = connection.notice
        assert notice == f"local.db was damaged and is preserved as local.db.damaged; its copy of {day} takes its place"
        assert [record.getMessage() for record in caplog.records] == [
            f"quaid: {notice}.".replace("damaged", "damaged (file is not a database)", 1)
        ]
        assert copy.exists()  # made again from what was restored
        assert self.read(path) == ["first"]

    def test_it_is_made_once_a_day_and_reads_the_whole_file(self, tmp_path):
        path = tmp_path / "local.db"
        self.fill(path, "first")
        inode = path.with_name("local.db.daily").stat().st_ino
        self.fill(path, "second")
        assert path.with_name("local.db.daily").stat().st_ino == inode
        for days in (2, -2):  # a clock that was wrong
            self.make_old(path, days)
            self.fill(path, f"after {days}")
            assert path.with_name("local.db.daily").stat().st_mtime == pytest.approx(time.time(), abs=3600)
        for number in range(40):
            self.fill(path, f"{number} " * 500)
        with path.open("r+b") as file:
            file.seek(5 * 4096)
            file.write(bytes(4096))
        self.make_old(path)
        assert self.read(path) == ["first", "second", "after 2"]  # as when it was copied last
        assert path.with_name("local.db.damaged").exists()

    @pytest.mark.parametrize("size", [0, 1, 99, 100, 4096])
    def test_a_file_that_was_cut_short_is_replaced_too(self, tmp_path, size):
        path = tmp_path / "local.db"
        self.fill(path, "first")
        self.make_old(path)
        self.fill(path, "second")
        os.truncate(path, size)
        for suffix in ("-wal", "-shm"):
            path.with_name(f"local.db{suffix}").unlink(missing_ok=True)
        with self.open(path) as connection:
            assert connection.notice
        assert self.read(path) == ["first"]
        assert path.with_name("local.db.damaged").stat().st_size == size

    @pytest.mark.parametrize("content", [b"rubbish" * 999, b"", b"SQLite format 3\0" + b"\xff" * 9000])
    def test_a_copy_that_is_damaged_as_well_is_no_obstacle(self, tmp_path, content):
        path = tmp_path / "local.db"
        self.fill(path, "first")
        path.write_bytes(b"rubbish" * 999)
        path.with_name("local.db.daily").write_bytes(content)
        assert self.read(path) == []
        self.fill(path, "new")
        assert self.read(path) == ["new"]

    def test_what_a_killed_process_left_and_a_disk_without_room_stop_nobody(self, tmp_path, monkeypatch):
        path = tmp_path / "local.db"
        path.with_name("local.db.daily.tmp").write_bytes(b"half a copy")
        self.fill(path, "first")
        assert not path.with_name("local.db.daily.tmp").exists()
        self.make_old(path)
        monkeypatch.setattr("os.open", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        assert self.read(path) == ["first"]
