"""Several machines that share a vault through a bare repository, and a stranger who writes to that repository."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from vaults import OWNER, Vault, copy_vault, trust_vault

from quaid.capture.writer import WriteResult
from quaid.remotes.exchange import PushDone
from quaid.remotes.pulling import Pulled
from quaid.user_config import user_config_path

KAYAK = "Maya bought a blue kayak"


def run_git(folder: Path, *args: str, stdin: bytes | None = None, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(["git", *OWNER, *args], cwd=folder, capture_output=True, check=False, input=stdin, env=env)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode("utf-8", "surrogateescape").strip()


def make_machines(folder: Path, count: int = 2) -> list[Vault]:
    """Clones of one vault, each a machine of its own, beside the bare repository `remote.git`."""
    shutil.copytree(_template(count), folder, symlinks=True, dirs_exist_ok=True)
    machines = [Vault(folder / f"machine{number}") for number in range(count)]
    for machine in machines:
        trust_vault(machine.root)
    trust_remotes(machines)
    return machines


@cache
def _template(count: int) -> Path:
    """What `make_machines` copies, made once: the remote lies beside its clones, so they find it wherever they are."""
    folder = Path(mkdtemp(prefix="quaid-machines-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    first = copy_vault(folder / "machine0")
    run_git(folder, "init", "-q", "--bare", "-b", "main", "remote.git")
    first.git("remote", "add", "origin", "../remote.git")
    first.git("push", "-q", "-u", "origin", "main")
    for number in range(1, count):
        run_git(folder, "clone", "-q", "remote.git", f"machine{number}")
        run_git(folder / f"machine{number}", "remote", "set-url", "origin", "../remote.git")
    for hooks in folder.glob("**/hooks"):
        shutil.rmtree(hooks)
    return folder


def trust_remotes(machines: Sequence[Vault], *, own: bool | None = None) -> None:
    """What `quaid remote trust origin` does on each machine, without the care for a file that its user edits."""
    path = user_config_path()
    head = path.read_text(encoding="utf-8").partition("\n[trust.remotes.")[0].rstrip()
    tables = [
        f'[trust.remotes."{os.path.realpath(machine.root)}".origin]\naddress = "../remote.git"\nsteering = ""\n'
        f"{'' if own is None else f'own = {str(own).lower()}'}\n"
        for machine in machines
    ]
    path.write_text("\n\n".join([head, *tables]), encoding="utf-8")


def push(vault: Vault) -> PushDone:
    with vault.memory() as memory:
        return memory.remotes.push()


def pull(vault: Vault, **how: Any) -> Pulled:
    with vault.memory() as memory:
        return memory.remotes.pull(**how)


def share(vault: Vault, other: Vault) -> Pulled:
    """Push from one machine and pull on the other."""
    push(vault)
    return pull(other)


def publish(vault: Vault, path: str = "", text: str | bytes = "") -> None:
    """Write a file, if one is named, commit all that the owner has changed, and push."""
    if path:
        vault.write(path, text)
    vault.save()
    push(vault)


def remember(vault: Vault, text: str) -> WriteResult:
    with vault.memory() as memory:
        return memory.remember(text)


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
