"""A damaged index is rebuilt; rubbish beside it stops nobody."""

from __future__ import annotations

import os
from pathlib import Path

import apsw
import pytest
from vaults import Vault, assert_verified, paths

from quaid.errors import DiskFailedError
from quaid.index.sqlite import database
from quaid.place import state_folder
from quaid.report.bug_report import refusal_of
from quaid.report.status import status_of

pytestmark = pytest.mark.usefixtures("calm")

HEALTHY = "Maya keeps a quokka in the garden"
DAMAGES = {
    "header": lambda path: _overwrite(path, 0, b"\xde\xad\xbe\xef" * 25),
    "middle": lambda path: _overwrite(path, 4096, os.urandom(path.stat().st_size - 8192)),
    "end": lambda path: _overwrite(path, path.stat().st_size - 8192, b"\xff" * 8192),
    "truncated": lambda path: os.truncate(path, path.stat().st_size // 2), "stump": lambda path: os.truncate(path, 50),
    "zero bytes": lambda path: os.truncate(path, 0),
    "a text file": lambda path: path.write_text("this is no database\n" * 500), "gone": lambda path: path.unlink(),
    "a folder's name": lambda path: (path.unlink(), (path.parent / "index.db-wal").write_bytes(b"\x37\x7f\x06\x82" * 999)),
    "from the future": lambda path: _sql(path, "PRAGMA user_version = 99"),
    "from the far future": lambda path: _sql(path, "PRAGMA user_version = 99", "DROP TABLE chunks", "CREATE TABLE x (y)",
        "CREATE TRIGGER t AFTER INSERT ON x BEGIN SELECT missing(); END", "CREATE VIEW v AS SELECT * FROM x"),
    "stripped": lambda path: _sql(path, "DROP TABLE edges"),
    "no UTF-8": lambda path: _sql(path, "UPDATE chunks SET text = CAST(x'71ff6f' AS TEXT)"),
    "emptied": lambda path: _sql(path, "DELETE FROM fulltext", "DELETE FROM names"),
}  # fmt: skip


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("damage", "moment"),
    [(name, "closed") for name in DAMAGES if name != "emptied"]
    + [(name, moment) for name in ("header", "middle", "truncated", "gone") for moment in ("open", "listening")],
)
def test_a_damaged_index_is_built_anew_and_answers(filled, damage, moment):
    path = state_folder(filled.root) / "index.db"
    memory = filled.open()
    for _ in range({"closed": 0, "open": 1, "listening": 3}[moment]):
        memory.recall("quokka")
    if moment == "closed":
        memory.close()
    DAMAGES[damage](path)
    if moment == "closed":
        memory = filled.open()
    with memory:
        assert [hit.text for hit in memory.recall("quokka").hits] == [HEALTHY]
        filled.write("late.md", "Maya bought a lawnmower.")
        assert paths(memory, "lawnmower") == {"late.md"}
        assert memory.remember("Maya sold the lawnmower again").outcome == "created"
        assert memory.get("late.md").text == "Maya bought a lawnmower."
    with filled.memory() as other:
        other.sync()
        assert [hit.text for hit in other.recall("quokka").hits] == [HEALTHY]
        assert_verified(other)


def test_verify_sees_an_index_that_lost_rows_and_reindex_repairs_it(filled):
    DAMAGES["emptied"](state_folder(filled.root) / "index.db")
    with filled.memory() as memory:
        found = memory.verify()
        assert not found.ok
        assert found.differences
        memory.reindex()
        assert_verified(memory)


@pytest.mark.matrix
@pytest.mark.parametrize("name", ["local.db", "pending.json", "watch.json", "lock", "cache.db"])
def test_rubbish_in_the_state_folder_stops_nobody(filled, name):
    filled.write_state(name, b"rubbish {" * 999)
    with filled.memory() as memory:
        assert memory.remember("Maya bought a lawnmower yesterday").outcome == "created"
        assert memory.note("call Maya back") == 1
        assert memory.extract(_turns(filled, "User: hello there")).new_turns == 3  # the note too
        assert status_of(memory).counts
        assert_verified(memory)
    assert filled.status() == ""


def _turns(vault: Vault, text: str) -> Path:
    path = vault.root.parent / "talk.txt"
    path.write_text(text + "\nAssistant: And a good day to you.\n")
    return path


def _overwrite(path: Path, offset: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)


def _sql(path: Path, *statements: str) -> None:
    connection, _ = database.connect_writer(path)
    for statement in statements:
        connection.execute(statement)
    connection.close()


BUGS = [
    apsw.SQLError("no such column: nothing"), apsw.MismatchError("datatype mismatch"),
    apsw.CorruptError("of another file"), UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
    ValueError("a vector is a list of lists"), TypeError("float() argument must be a real number, not None"),
]  # fmt: skip


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: type(bug).__name__)
def test_a_bug_of_our_own_is_raised_as_it_is_and_leaves_a_sound_index_where_it_is(filled, monkeypatch, bug):
    state = state_folder(filled.root)

    def fail(*_: object, **__: object) -> None:
        raise bug

    with filled.memory() as memory:
        memory.recall("quokka")
        before = (state / "index.db").stat().st_ino
        for place, use in {
            "quaid.recall.pipeline.rank": lambda: memory.recall("quokka"),
            "quaid.index.documents.replace_document": memory.sync,
            "quaid.recall.answers.view_note": lambda: memory.get("late.md"),
        }.items():
            filled.write("late.md", f"Maya bought a lawnmower, said {place}.")
            with monkeypatch.context() as patch:
                patch.setattr(place, fail)
                with pytest.raises((type(bug), DiskFailedError)) as raised:
                    use()
            assert type(raised.value) is type(bug) or isinstance(bug, apsw.CorruptError)
            assert refusal_of(bug, filled.root) is None or isinstance(bug, apsw.CorruptError)
        assert [hit.text for hit in memory.recall("quokka").hits] == [HEALTHY]
        assert (state / "index.db").stat().st_ino == before
        assert_verified(memory)
    assert not list(state.glob("*.damaged*"))
