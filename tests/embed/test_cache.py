"""The embedding cache: what is put is got, by many at once, and damage costs only time."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import closing

import pytest

from quaid.embed.cache import EmbeddingCache
from quaid.errors import QuaidError

VECTOR = bytes(range(256)) * 6


def test_vectors_come_back_by_fingerprint_and_key(tmp_path):
    with closing(EmbeddingCache(tmp_path / "sub" / "cache.db")) as cache:
        cache.put_many("model/a", [("k1", VECTOR), ("k2", b"2222")])
        cache.put_many("model/b", [("k1", b"bbbb")])
        assert cache.get_many("model/a", ["k1", "k2", "k3"]) == {"k1": VECTOR, "k2": b"2222"}
        assert cache.get_many("model/b", ["k1", "k2"]) == {"k1": b"bbbb"}
        assert cache.get_many("model/c", ["k1"]) == {}


def test_what_is_put_again_is_replaced_and_outlives_the_connection(tmp_path):
    path = tmp_path / "cache.db"
    with closing(EmbeddingCache(path)) as cache:
        cache.put_many("m", [("k", b"old!")])
        cache.put_many("m", [("k", b"new!")])
    assert EmbeddingCache(path).get_many("m", ["k"]) == {"k": b"new!"}


def test_ten_thousand_keys_are_asked_for_at_once(tmp_path):
    cache = EmbeddingCache(tmp_path / "cache.db")
    keys = [f"{i:064x}" for i in range(10_000)]
    cache.put_many("m", ((key, b"abcd") for key in keys))
    assert len(cache.get_many("m", keys)) == 10_000


def test_reading_creates_no_file(tmp_path):
    assert EmbeddingCache(tmp_path / "cache.db").get_many("m", ["k"]) == {}
    assert EmbeddingCache(tmp_path / "cache.db").get_many("m", []) == {}
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("damage", [b"this is no database" * 400, b"", b"SQLite format 3\0" + b"\xff" * 9000])
def test_a_damaged_file_is_set_aside_and_begun_anew(tmp_path, damage):
    path = tmp_path / "cache.db"
    path.write_bytes(damage)
    cache = EmbeddingCache(path)
    assert cache.get_many("m", ["k"]) == {}
    cache.put_many("m", [("k", VECTOR)])
    assert cache.get_many("m", ["k"]) == {"k": VECTOR}
    assert (tmp_path / "cache.db.damaged").exists() == bool(damage)


def test_damage_in_the_middle_of_the_file_is_survived(tmp_path):
    path = tmp_path / "cache.db"
    with closing(EmbeddingCache(path)) as cache:
        cache.put_many("m", [(f"k{i}", VECTOR) for i in range(400)])
    content = bytearray(path.read_bytes())
    content[8192:] = b"\xee" * (len(content) - 8192)
    path.write_bytes(content)
    cache = EmbeddingCache(path)
    cache.get_many("m", [f"k{i}" for i in range(400)])
    cache.put_many("m", [("k", VECTOR)])
    assert cache.get_many("m", ["k"]) == {"k": VECTOR}


def test_writing_the_first_time_into_a_damaged_file_keeps_the_vectors(tmp_path):
    path = tmp_path / "cache.db"
    path.write_bytes(b"rubbish" * 2000)
    cache = EmbeddingCache(path)
    cache.put_many("m", [("k", VECTOR)])
    assert cache.get_many("m", ["k"]) == {"k": VECTOR}


def test_a_file_of_another_version_is_set_aside(tmp_path):
    import apsw

    path = tmp_path / "cache.db"
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE vectors (something TEXT); PRAGMA user_version = 99")
    connection.close()
    cache = EmbeddingCache(path)
    cache.put_many("m", [("k", VECTOR)])
    assert cache.get_many("m", ["k"]) == {"k": VECTOR}


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("in the way")
    cache = EmbeddingCache(tmp_path / "file" / "cache.db")
    assert cache.get_many("m", ["k"]) == {}
    with pytest.raises(QuaidError, match="file"):
        cache.put_many("m", [("k", VECTOR)])


def test_processes_write_at_once_and_nothing_is_lost(tmp_path):
    path = tmp_path / "cache.db"
    code = (
        "import sys; from pathlib import Path; from quaid.embed.cache import EmbeddingCache\n"
        "cache = EmbeddingCache(Path(sys.argv[1])); who = sys.argv[2]\n"
        "for i in range(40): cache.put_many('m', [(f'{who}-{i}-{j}', b'abcd') for j in range(5)])\n"
        "assert len(cache.get_many('m', [f'{who}-{i}-0' for i in range(40)])) == 40\n"
    )
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(part for part in sys.path if part)}
    workers = [
        subprocess.Popen([sys.executable, "-c", code, str(path), str(who)], env=environ, stderr=subprocess.PIPE)
        for who in range(4)
    ]
    assert [(worker.communicate()[1], worker.returncode) for worker in workers] == [(b"", 0)] * 4
    keys = [f"{who}-{i}-{j}" for who in range(4) for i in range(40) for j in range(5)]
    assert len(EmbeddingCache(path).get_many("m", keys)) == 800


def test_threads_share_one_cache(tmp_path):
    cache = EmbeddingCache(tmp_path / "cache.db")
    failures = []

    def work(who):
        try:
            for i in range(30):
                cache.put_many("m", [(f"{who}-{i}", b"abcd")])
                assert cache.get_many("m", [f"{who}-{i}"])
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(who,)) for who in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
