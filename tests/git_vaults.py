"""A vault in a real repository, and what Quaid and its owner do there."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from pathlib import Path

from quaid.history.vault_history import History
from quaid.model import Committed, Edit, Message
from quaid.settings import GitSettings

USER = ("-c", "user.name=Maya", "-c", "user.email=maya@example.org", "-c", "maintenance.auto=false")
NOTE = b"---\nid: 01a\ntype: fact\n---\none\ntwo\nthree\nfour\nfive\nsix\nseven\n"
SAY = Message("remember: a fact", "because", (("Quaid-Task", "remember"), ("Quaid-Fact", "01a")))


class Vault:
    """A folder in a real repository, and what Quaid and its owner do there."""

    def __init__(self, root: Path, wait_s: float = 0.15) -> None:
        self.root = root
        self.history = History(root, GitSettings(wait_s=wait_s))

    def run(self, *args: str, check: bool = True, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
        done = subprocess.run(["git", *USER, *args], cwd=self.root, capture_output=True, check=False, input=stdin)
        assert not check or done.returncode == 0, done.stderr.decode()
        return done

    def git(self, *args: str) -> str:
        return self.run("-c", "core.quotePath=false", *args).stdout.decode("utf-8", "surrogateescape")

    def write(self, rel_path: str, data: bytes | None) -> None:
        path = self.root / rel_path
        if data is None:
            path.unlink()
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def read(self, rel_path: str) -> bytes | None:
        path = self.root / rel_path
        return path.read_bytes() if path.is_file() else None

    def save(self, rel_path: str, data: bytes | None) -> None:
        """The owner writes a file and commits it."""
        self.write(rel_path, data)
        self.run("add", "-A", "--", rel_path)
        self.run("commit", "-q", "-m", f"save {rel_path}", "--", rel_path)

    def edit(self, rel_path: str, after: bytes | None) -> Edit:
        """Quaid writes a file and has yet to commit it."""
        before = self.read(rel_path)
        self.write(rel_path, after)
        return Edit(rel_path, before, after)

    def commit(self, rel_path: str, after: bytes | None, message: Message = SAY) -> Committed:
        return self.history.commit([self.edit(rel_path, after)], message)

    def status(self) -> str:
        return self.git("status", "--porcelain", "-uall")

    def head(self) -> str:
        return self.git("rev-parse", "HEAD").strip()

    def show(self, revision_path: str) -> bytes:
        return self.run("cat-file", "blob", revision_path).stdout

    def files(self, revision: str = "HEAD") -> list[str]:
        return [name for name in self.git("show", "--format=", "--name-only", "-z", revision).split("\0") if name]

    def index(self) -> bytes | None:
        path = self.root / self.git("rev-parse", "--git-path", "index").strip()
        return path.read_bytes() if path.exists() else None

    def strays(self) -> list[str]:
        git_dir = Path(self.root, self.git("rev-parse", "--git-dir").strip())
        return [path.name for path in git_dir.glob("quaid-*")]

    def hook(self, name: str, script: str) -> None:
        path = self.root / self.git("rev-parse", "--git-path", f"hooks/{name}").strip()
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\n" + script)
        path.chmod(0o755)

    def assert_sound(self) -> None:
        self.run("fsck", "--strict", "--no-dangling")
        assert self.strays() == []


def ours(data: bytes = NOTE) -> bytes:
    return data.replace(b"two", b"TWO (Quaid)")


def theirs(data: bytes = NOTE) -> bytes:
    return data.replace(b"six", b"SIX (Maya)")


def hold_lock(vault: Vault, release_after_s: float | None = None) -> Path:
    lock = vault.root / ".git/index.lock"
    lock.write_bytes(b"")
    if release_after_s is not None:
        threading.Timer(release_after_s, lock.unlink).start()
    return lock


def conflict(vault: Vault) -> None:
    vault.run("checkout", "-q", "-b", "side")
    vault.save("other.md", NOTE.replace(b"two", b"side"))
    vault.run("checkout", "-q", "main")
    vault.save("other.md", NOTE.replace(b"two", b"main"))


def shim_git(monkeypatch, tmp_path: Path, script: str) -> None:
    """Put a `git` first on the PATH that runs `script` and then, unless it left, the real one as "$real"."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "git").write_text(f'#!/bin/sh\nreal="{shutil.which("git")}"\n{script}\nexec "$real" "$@"\n')
    (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
