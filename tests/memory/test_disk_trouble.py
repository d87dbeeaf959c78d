"""A disk that is read-only, closed or full refuses a write in a sentence, and is still read."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from vaults import Vault, copy_of, mounted, paths, refused

from quaid import Memory
from quaid.errors import DiskFullError

pytestmark = pytest.mark.usefixtures("calm")


def test_a_read_only_vault_is_read_and_refuses_to_be_written(filled, tmp_path):
    with mounted(tmp_path / "readonly", "--bind", str(filled.root)) as folder:
        if subprocess.run(["mount", "-o", "remount,ro,bind", str(folder)], capture_output=True, check=False).returncode:
            pytest.skip("needs the right to mount read-only")
        before = filled.notes()
        with Vault(folder).memory() as memory:
            for _ in range(3):
                assert len(memory.recall("quokka").hits) == 1
            filled.write("late.md", "Maya bought a lawnmower.")
            assert "late.md" in paths(memory, "quokka lawnmower")
            for write in (
                lambda: memory.remember("Maya bought a lawnmower yesterday"),
                lambda: memory.link("Maya", "works_at", "Acme"),
                lambda: memory.forget("quokka"),
                lambda: memory.extract(_turns(filled, "User: hello there")),
            ):
                refused(write)
        (filled.root / "late.md").unlink()
        assert filled.notes() == before
    filled.assert_sound()


def test_a_full_disk_refuses_to_be_written_and_is_still_read(filled, tmp_path, monkeypatch):
    with mounted(tmp_path / "small", "-t", "tmpfs", "-o", "size=6m", "tmpfs") as folder:
        root = folder / "vault"
        monkeypatch.setenv("QUAID_STATE_DIR", str(folder / "state"))
        small = copy_of(filled.root, root)
        before = small.notes()
        with Memory.open(root) as memory:
            assert len(memory.recall("quokka").hits) == 1
            (folder / "filler").write_bytes(b"")
            with pytest.raises(OSError, match="No space"), (folder / "filler").open("wb", buffering=0) as filler:
                for size in (65536, 4096, 1):
                    while True:
                        try:
                            filler.write(b"x" * size)
                        except OSError:
                            if size == 1:
                                raise
                            break
            for write in (
                lambda: memory.remember("Maya bought a lawnmower yesterday"),
                lambda: memory.link("Maya", "works_at", "Acme"),
                lambda: memory.extract(_turns(filled, "User: hello there")),
                lambda: memory.note("call Maya back"),
            ):
                refused(write, DiskFullError)
            assert small.notes() == before
            assert len(memory.recall("quokka").hits) == 1
        with Memory.open(root) as memory:
            assert len(memory.recall("quokka").hits) == 1
        (folder / "filler").unlink()
        with Memory.open(root) as memory:
            assert memory.remember("Maya bought a lawnmower yesterday").outcome == "created"
        assert small.status() == ""
        small.assert_sound()


def _turns(vault: Vault, text: str) -> Path:
    path = vault.root.parent / "talk.txt"
    path.write_text(text + "\nAssistant: And a good day to you.\n")
    return path
