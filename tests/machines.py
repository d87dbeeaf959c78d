"""Several machines that share a vault through a bare repository, and a stranger who writes to that repository."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from vaults import OWNER, Vault, copy_vault, trust_vault

from quaid.history.vault_history import History
from quaid.remotes import trusted
from quaid.settings import GitSettings

KAYAK = "Maya bought a blue kayak"


def run_git(folder: Path, *args: str, stdin: bytes | None = None, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(["git", *OWNER, *args], cwd=folder, capture_output=True, check=False, input=stdin, env=env)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode("utf-8", "surrogateescape").strip()


def make_machines(folder: Path, count: int = 2) -> list[Vault]:
    """Clones of one vault, each a machine of its own, beside the bare repository `remote.git`."""
    folder.mkdir(parents=True, exist_ok=True)
    first = copy_vault(folder / "machine0")
    run_git(folder, "init", "-q", "--bare", "-b", "main", "remote.git")
    first.git("remote", "add", "origin", str(folder / "remote.git"))
    first.git("push", "-q", "origin", "main")
    machines = [first]
    for number in range(1, count):
        run_git(folder, "clone", "-q", "remote.git", f"machine{number}")
        (folder / f"machine{number}" / ".git" / "hooks").rename(folder / f"hooks{number}")
        machines.append(Vault(folder / f"machine{number}"))
        trust_vault(machines[-1].root)
    for machine in machines:
        trust_remote(machine)
    return machines


def trust_remote(vault: Vault, *, accepts_settings: bool = False) -> None:
    remote = History(vault.root, GitSettings()).remotes.read("origin")
    trusted.trust(vault.root, remote, accepts_settings=accepts_settings)


def push_tree(folder: Path, entries: Sequence[tuple[str, str, bytes]], message: str = "stranger") -> str:
    """A commit on the remote's branch that adds (mode, path, content) whatever git itself would say to that.

    A path of more than one part needs the trees above it: they are made here too.
    """
    bare = folder / "remote.git"
    head = run_git(bare, "rev-parse", "main")
    tree = run_git(bare, "rev-parse", "main^{tree}")
    for mode, path, content in entries:
        blob = content.decode() if mode == "160000" else _write_blob(bare, content)
        tree = _put(bare, tree, path.split("/"), mode, blob)
    commit = run_git(bare, "commit-tree", tree, "-p", head, "-m", message)
    run_git(bare, "update-ref", "refs/heads/main", commit)
    return commit


def _place(entry: tuple[str, list[str]]) -> bytes:
    """Where an entry of a tree stands: a folder as if its name ended in a slash."""
    name, (_, kind, _) = entry
    return (name + ("/" if kind == "tree" else "")).encode("utf-8", "surrogateescape")


def _write_blob(bare: Path, content: bytes) -> str:
    return run_git(bare, "hash-object", "-w", "--stdin", stdin=content)


def _put(bare: Path, tree: str | None, parts: list[str], mode: str, blob: str) -> str:
    rows = run_git(bare, "ls-tree", "-z", tree).split("\0")[:-1] if tree else []
    entries = {row.partition("\t")[2]: row.partition("\t")[0].split(" ") for row in rows}
    name, *below = parts
    if below:
        known = entries.get(name)
        entries[name] = ["040000", "tree", _put(bare, known[2] if known else None, below, mode, blob)]
    else:
        entries[name] = [mode, "commit" if mode == "160000" else "blob", blob]
    ordered = sorted(entries.items(), key=_place)
    data = b"".join(
        f"{mode.lstrip('0')} {name}".encode("utf-8", "surrogateescape") + b"\0" + bytes.fromhex(blob)
        for name, (mode, _, blob) in ordered
    )
    return run_git(bare, "hash-object", "-t", "tree", "-w", "--stdin", "--literally", stdin=data)
