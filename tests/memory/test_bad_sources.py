"""Transcripts, settings and folders that are not what they should be end in a clear sentence."""

from __future__ import annotations

import pytest
from vaults import Vault, paths, refused, texts

from quaid import Memory
from quaid.errors import BadInputError, ConfigError, VaultNotFoundError
from quaid.janitor.runner import RunOptions
from quaid.report.status import status_of

pytestmark = pytest.mark.usefixtures("calm")

HEALTHY = "Maya keeps a quokka in the garden"


def test_the_half_written_last_line_of_a_transcript_is_taken_when_it_is_whole(vault, tmp_path):
    whole = (
        b'{"session": "s1", "started": "2026-11-20T14:00:00Z"}\n{"role": "user", "content": "We adopted a quokka."}\n'
    )
    rest = b'{"role": "assistant", "content": "What is its name, then?"}\n'
    path = tmp_path / "talk.jsonl"
    path.write_bytes(whole + rest[:30])
    with vault.memory() as memory:
        first = memory.extract(path)
        assert (first.new_turns, first.skipped) == (1, {"unreadable line": 1})
        path.write_bytes(whole + rest)
        assert memory.extract(path).new_turns == 1
        assert memory.extract(path).new_turns == 0
        assert texts(memory, "name") == ["What is its name, then?"]


@pytest.mark.parametrize("data", [b"", b"\n\n", b"\0" * 500, bytes(range(128, 256)) * 9, b'{"a": 1}\n'])
def test_what_is_no_transcript_is_refused(vault, tmp_path, data):
    (tmp_path / "talk").write_bytes(data)
    with vault.memory() as memory:
        refused(lambda: memory.extract(tmp_path / "talk"), BadInputError)
        refused(lambda: memory.extract(tmp_path / "absent"), BadInputError)
        refused(lambda: memory.extract(tmp_path), BadInputError)
    assert vault.status() == ""


def test_a_vanished_vault_is_not_an_empty_one(filled, tmp_path):
    with filled.memory() as memory, filled.memory() as listening:
        for _ in range(3):
            listening.recall("quokka")
        filled.root.rename(tmp_path / "elsewhere")
        for one in (memory, listening):
            refused(lambda one=one: one.recall("quokka"), VaultNotFoundError)
            refused(lambda one=one: one.remember("Maya bought a lawnmower"), VaultNotFoundError)
        filled.root.mkdir()  # the empty place a disk is mounted at
        for one in (memory, listening):
            refused(lambda one=one: one.recall("quokka"), VaultNotFoundError)
            refused(lambda one=one: one.remember("Maya bought a lawnmower"), VaultNotFoundError)
        assert list(filled.root.iterdir()) == []
        filled.root.rmdir()
        (tmp_path / "elsewhere").rename(filled.root)
        for one in (memory, listening):
            assert len(one.recall("quokka").hits) == 1
    refused(lambda: Memory.open(tmp_path / "elsewhere"), VaultNotFoundError)


@pytest.mark.parametrize(
    "text", ["wrong = 1\n", "[recall]\nlimits = 3\n", "[recall\n", "[recall]\nlimit = 'ten'\n", "\xff\xfe"]
)
def test_settings_that_are_not_settings_are_named_by_what_is_read_and_refused_by_what_is_written(filled, text):
    filled.write("quaid.toml", text.encode("latin-1"))
    before = filled.head()
    with filled.memory(owner="maya") as memory:
        assert memory.recall("quokka").hits == ()  # whether maya is the owner's name is not known
    with filled.memory() as memory:
        answer = memory.recall("quokka")
        assert [hit.text for hit in answer.hits] == [HEALTHY]
        assert "config" in answer.degraded
        assert "quaid.toml" in str(answer.trace["degraded"])
        assert any("quaid.toml" in one.what for one in status_of(memory).attention)
        assert "quaid.toml" in str(refused(lambda: memory.remember("Maya sold the lawnmower"), ConfigError))
        assert "quaid.toml" in str(refused(lambda: memory.janitor.run(RunOptions()), ConfigError))
    assert filled.head() == before


def test_a_clone_of_an_adopted_vault_stays_clean_when_it_is_read(tmp_path):
    owner = Vault(tmp_path / "owner")
    owner.write("Garden.md", HEALTHY)
    owner.git("init", "-q", "-b", "main")
    Memory.create(owner.root)[0].close()
    owner.save()
    owner.git("clone", "-q", str(owner.root), str(tmp_path / "clone"))
    clone = Vault(tmp_path / "clone")
    with clone.memory() as memory:
        assert paths(memory, "quokka") == {"Garden.md"}
    assert clone.status() == ""
