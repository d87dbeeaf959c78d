"""Real vaults in temporary repositories, and what their owner does to them behind Quaid's back."""

from __future__ import annotations

import atexit
import fcntl
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import apsw
import pytest

from quaid import Memory
from quaid.errors import QuaidError, VaultNotFoundError
from quaid.history import vault_guard
from quaid.history.steering import SteeringChangedError
from quaid.index import contents
from quaid.place import state_folder, state_home
from quaid.settings import EmbeddingSettings
from quaid.sync.derived_index import verify
from quaid.trust import trusted_vaults
from quaid.user_config import user_config_path

KEPT_VARIABLES = {"QUAID_RESIDENT", "QUAID_STRESS_S", "QUAID_CACHE_DIR", "QUAID_CONFIG_DIR", "QUAID_STATE_DIR"}
OWNER = ("-c", "user.name=Maya", "-c", "user.email=maya@example.org", "-c", "core.quotePath=false")
FACT = "---\nid: {id}\ntype: fact\nstatus: active\nowner: default\n---\n{text}\n"
DEADLINE_S = 60.0
PATIENCE_S = 60.0
"""More than anything takes on a busy machine, and less than the wait that a test provokes."""


class Vault:
    """A vault's folder, its owner's git and editor."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def open(self, **options: Any) -> Memory:
        if os.path.realpath(self.root) not in trusted_vaults():
            trust_vault(self.root)
        self.accept()
        return Memory.open(self.root, **options)

    def accept(self) -> None:
        """What the owner configures in git by hand they know of: `quaid trust` was called after it."""
        with suppress(VaultNotFoundError):
            try:
                vault_guard.check(self.root)
            except SteeringChangedError:
                vault_guard.accept(self.root)

    @contextmanager
    def memory(self, **options: Any) -> Iterator[Memory]:
        with self.open(**options) as memory:
            yield memory

    def sync(self) -> None:
        """Bring the index up to date."""
        with self.memory() as memory:
            memory.sync()

    def run(self, *args: str, check: bool = True) -> subprocess.CompletedProcess[bytes]:
        done = subprocess.run(["git", *OWNER, *args], cwd=self.root, capture_output=True, check=False)
        assert not check or done.returncode == 0, done.stderr.decode()
        return done

    def git(self, *args: str) -> str:
        return self.run(*args).stdout.decode("utf-8", "surrogateescape").strip()

    def write(self, rel_path: str, data: str | bytes) -> Path:
        return _write(self.root / rel_path, data)

    def write_state(self, rel_path: str, data: str | bytes) -> Path:
        return _write(state_folder(self.root) / rel_path, data)

    def write_fact(self, name: str, text: str) -> Path:
        return self.write(f"facts/{name}.md", FACT.format(id=f"01{name}", text=text))

    def save(self, message: str = "owner") -> str:
        """The owner commits all there is."""
        self.run("add", "-A")
        self.run("commit", "-q", "--allow-empty", "-m", message)
        return self.head()

    def head(self) -> str:
        return self.git("rev-parse", "HEAD")

    def status(self) -> str:
        return self.git("status", "--porcelain", "-uall")

    def notes(self) -> dict[str, bytes]:
        """Every file of the vault but git's and the derived state."""
        skipped = {".git", ".quaid"}
        found = (path for path in self.root.rglob("*") if path.is_file() and not path.is_symlink())
        parts = {path.relative_to(self.root).as_posix(): path for path in found}
        return {name: path.read_bytes() for name, path in parts.items() if name.split("/")[0] not in skipped}

    def strays(self) -> list[str]:
        """What only a killed or careless write leaves behind."""
        names = [path.relative_to(self.root).as_posix() for path in self.root.rglob("*") if path.name.endswith(".tmp")]
        names += [path.name for path in state_folder(self.root).glob("pending*")]
        return names + [path.name for path in state_folder(self.root).glob("cookie-*")]

    def assert_sound(self) -> None:
        """git is whole, nothing half-written lies about, and the index is what the files say."""
        self.run("fsck", "--strict", "--no-dangling")
        assert self.strays() == []
        with self.memory() as memory:
            assert_verified(memory)


def _write(path: Path, data: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def assert_verified(memory: Memory) -> None:
    """The index equals one rebuilt from nothing, row for row."""
    found = memory.verify()
    assert found.ok, found.differences
    assert dump(memory.index()) == rebuilt_dump(memory)
    assert verify(memory.indexer, memory.index()).manifest == found.manifest


def dump(index: apsw.Connection) -> list[str]:
    """All the index holds, the words in its full-text tables included, without row numbers."""
    if index.filename:  # a reader may not even make a temporary table
        with closing(apsw.Connection(index.filename, flags=apsw.SQLITE_OPEN_READONLY)) as own:
            return sorted([*contents.dump(own), *list_words(own)])
    return sorted([*contents.dump(index), *list_words(index)])


def list_words(index: apsw.Connection) -> Iterator[str]:
    """Each word at its place in the chunks, and how often the vocabulary counts it."""
    named = dict(index.execute("SELECT chunk_id, path || ' ' || ordinal FROM chunks JOIN documents USING (doc_id)"))
    for term, row, column, offset in index.execute("SELECT term, doc, col, offset FROM occurrences"):
        yield f"fulltext {term} {named[row]} {column} {offset}"
    for term, documents, times in index.execute("SELECT term, doc, cnt FROM vocabulary"):
        yield f"vocabulary {term} {documents} {times}"


def rebuilt_dump(memory: Memory) -> list[str]:
    rebuilt = memory.indexer.rebuild_in_memory()
    try:
        return dump(rebuilt)
    finally:
        rebuilt.close()


def texts(memory: Memory, query: str, **options: Any) -> list[str]:
    return [hit.text for hit in memory.recall(query, 50, **options).hits]


def paths(memory: Memory, query: str, **options: Any) -> set[str]:
    return {hit.path for hit in memory.recall(query, 50, **options).hits}


def wait_for(condition: Callable[[], object], what: str, within_s: float = DEADLINE_S) -> float:
    """Until `condition` holds; how long that took. Fails after `within_s` seconds."""
    started = time.monotonic()
    while not condition():
        assert time.monotonic() - started < within_s, f"waited {within_s:g} s in vain: {what}"
        time.sleep(0.01)
    return time.monotonic() - started


def refused(call: Callable[[], object], kind: type[QuaidError] = QuaidError) -> QuaidError:
    """The refusal of `call`, in words."""
    with pytest.raises(kind) as caught:
        call()
    assert len(str(caught.value).split()) >= 4, caught.value
    return caught.value


@pytest.fixture
def calm(monkeypatch: pytest.MonkeyPatch) -> None:
    be_calm(monkeypatch)


def be_calm(monkeypatch: pytest.MonkeyPatch) -> None:
    """No model, no settings of this machine's user, no identity in git, nothing on the desktop."""
    for name in list(os.environ):
        if name.startswith(("GIT_", "QUAID_")) and name not in KEPT_VARIABLES:
            monkeypatch.delenv(name)
    for name, value in {
        "QUAID_EMBEDDING_PROVIDER": "none",
        "QUAID_MODELS_PROVIDER": "none",
        "QUAID_NOTIFICATIONS_CHANNELS": "",
        "QUAID_VAULT_HAND_WRITTEN": "managed",  # tests write Quaid's notes by hand, with ids that can be read
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        # Each commit, fetch and push of git's would else start processes that find nothing to tidy.
        "GIT_CONFIG_COUNT": "2",
        "GIT_CONFIG_KEY_0": "maintenance.auto",
        "GIT_CONFIG_VALUE_0": "false",
        "GIT_CONFIG_KEY_1": "receive.autogc",
        "GIT_CONFIG_VALUE_1": "false",
        "PYTHONPATH": str(Path(__file__).parents[1]),
    }.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def vault(calm: None, tmp_path: Path) -> Vault:
    """A new vault as `quaid init` makes it."""
    return copy_vault(tmp_path / "vault")


def copy_vault(root: Path) -> Vault:
    """A copy of one vault made once: that spares three git processes a test."""
    return copy_of(_fresh_vault(), root)


def copy_of(vault: Path, root: Path) -> Vault:
    """A copy of a vault with its state, trusted as well."""
    shutil.copytree(vault, root, symlinks=True)
    return _adopt(vault, root)


def copy_around(vault: Path, folder: Path) -> Vault:
    """A copy of the folder that `vault` lies in, as `folder`, with the vault's state."""
    shutil.copytree(vault.parent, folder, symlinks=True)
    return _adopt(vault, folder / vault.name)


def _adopt(vault: Path, root: Path) -> Vault:
    if state_folder(vault).exists():
        shutil.copytree(state_folder(vault), state_folder(root), symlinks=True)
    trust_vault(root)
    return Vault(root)


def trust_vault(root: Path) -> None:
    """What `quaid trust` does, without the care for a file that its user edits: it is done some thousand times."""
    path = user_config_path()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (path.parent / "lock").open("w") as lock:  # some tests work in several processes
        fcntl.flock(lock, fcntl.LOCK_EX)
        vaults = [*(vault for vault in trusted_vaults() if Path(vault).exists()), os.path.realpath(root)]
        draft = path.with_suffix(".draft")
        draft.write_text(f"[trust]\nvaults = {json.dumps(vaults)}\n", encoding="utf-8")
        draft.replace(path)


@cache
def _fresh_vault() -> Path:
    folder = Path(mkdtemp(prefix="quaid-tests-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    root = folder / "vault"
    Memory.create(root)[0].close()
    shutil.rmtree(root / ".git" / "hooks", ignore_errors=True)
    return root


@contextmanager
def mounted(path: Path, *arguments: str) -> Iterator[Path]:
    """Something mounted at `path` for a while, where that is allowed."""
    path.mkdir(parents=True, exist_ok=True)
    done = (
        subprocess.run(["mount", *arguments, str(path)], capture_output=True, check=False)
        if shutil.which("mount")
        else None
    )
    if done is None or done.returncode:
        pytest.skip("needs the right to mount")
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", str(path)], capture_output=True, check=False)


@contextmanager
def read_only_state(monkeypatch: pytest.MonkeyPatch, path: Path) -> Iterator[None]:
    """The state of all vaults on a disk that takes no writes."""
    with mounted(path, "--bind", str(state_home())) as view:
        subprocess.run(["mount", "-o", "remount,ro,bind", str(view)], check=True)
        monkeypatch.setenv("QUAID_STATE_DIR", str(view))
        yield


@cache
def has_weights() -> bool:
    from quaid.embed import open_embedder

    try:
        return open_embedder(EmbeddingSettings()) is not None
    except QuaidError:
        return False


def need_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    if not has_weights():
        pytest.skip("needs the weights of all-MiniLM-L6-v2; fetch them with: quaid doctor --fetch")
    monkeypatch.delenv("QUAID_EMBEDDING_PROVIDER")
