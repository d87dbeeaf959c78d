"""A vault that was unpacked rather than cloned: its `.git` was written by a stranger, and reading it runs nothing."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from vaults import Vault

from quaid.cli.main import main

NOTE = "facts/pool.md"
READING = (
    ("status",),
    ("doctor",),
    ("why", NOTE),
    ("recall", "pool", "--as-of", "HEAD~1"),
    ("log",),
    ("sync",),
    ("janitor", "show", "HEAD"),
    ("janitor", "list"),
    ("docs", "check"),
)
HOOKS = (
    "post-index-change", "reference-transaction", "post-checkout", "pre-auto-gc", "pre-commit", "commit-msg",
    "prepare-commit-msg", "post-commit", "post-merge", "pre-push", "fsmonitor-watchman", "post-rewrite",
)  # fmt: skip


def set_keys(*keys: str, value: str = "{trap}") -> Callable[[Vault, Path], None]:
    def plant(vault: Vault, trap: Path) -> None:
        for key in keys:
            vault.run("config", "--add", key, value.format(trap=trap))

    return plant


def attributes(line: str, *keys: str) -> Callable[[Vault, Path], None]:
    def plant(vault: Vault, trap: Path) -> None:
        vault.write(".git/info/attributes", f"{line}\n")
        vault.write(".gitattributes", f"{line}\n")
        set_keys(*keys)(vault, trap)

    return plant


def plant_hooks(vault: Vault, trap: Path) -> None:
    for name in HOOKS:
        hook = vault.write(f".git/hooks/{name}", trap.read_bytes())
        hook.chmod(0o755)


def plant_hooks_elsewhere(vault: Vault, trap: Path) -> None:
    for name in HOOKS:
        vault.write(f".odd/{name}", trap.read_bytes()).chmod(0o755)
    vault.run("config", "core.hooksPath", str(vault.root / ".odd"))


def plant_include(vault: Vault, trap: Path) -> None:
    vault.write(".git/more", f'[core]\n\tfsmonitor = {trap}\n[filter "more"]\n\tclean = {trap}\n\tsmudge = {trap}\n')
    vault.write(".git/info/attributes", "*.md filter=more\n")
    vault.run("config", "include.path", "more")


def plant_promisor(url: str, *keys: str) -> Callable[[Vault, Path], None]:
    """A partial clone whose objects are gone: git would fetch them in the midst of a read."""

    def plant(vault: Vault, trap: Path) -> None:
        vault.run("config", "core.repositoryFormatVersion", "1")
        vault.run("config", "extensions.partialClone", "origin")
        vault.run("config", "remote.origin.promisor", "true")
        vault.run("config", "remote.origin.url", url.format(trap=trap))
        vault.run("config", "remote.origin.partialCloneFilter", "blob:none")
        set_keys(*keys)(vault, trap)
        for blob in {vault.git("rev-parse", f"HEAD~1:{NOTE}"), vault.git("rev-parse", "HEAD~2^{tree}")}:
            (vault.root / ".git" / "objects" / blob[:2] / blob[2:]).unlink()

    return plant


def plant_submodule(vault: Vault, trap: Path) -> None:
    inner = Vault(vault.root / "inner")
    inner.write("note.md", "Inside.\n")
    inner.run("init", "-q")
    inner.save()
    vault.run("add", "inner")
    vault.run("commit", "-qm", "a submodule")
    inner.write("note.md", "Changed.\n")
    inner.run("config", "core.fsmonitor", str(trap))
    inner.run("config", "diff.external", str(trap))
    vault.run("config", "diff.submodule", "diff")
    vault.run("config", "status.submoduleSummary", "true")
    vault.run("config", "submodule.recurse", "true")


def plant_worktree_settings(vault: Vault, trap: Path) -> None:
    vault.run("config", "core.repositoryFormatVersion", "1")
    vault.run("config", "extensions.worktreeConfig", "true")
    vault.write(".git/config.worktree", f"[core]\n\tfsmonitor = {trap}\n")


CONFIGURATIONS: dict[str, Callable[[Vault, Path], None]] = {
    "a monitor": set_keys("core.fsmonitor"),
    "a monitor of an included file": plant_include,
    "a monitor of the work tree's own settings": plant_worktree_settings,
    "a clean filter": attributes("*.md filter=a", "filter.a.clean"),
    "a smudge filter": attributes("*.md filter=a", "filter.a.smudge"),
    "a filter process": attributes("*.md filter=a", "filter.a.process"),
    "a required filter": attributes("*.md filter=a.b", "filter.a.b.clean", "filter.a.b.smudge"),
    "a filter with a sign in its name": attributes("*.md filter=a=b", "filter.a=b.clean", "filter.a=b.smudge"),
    "textconv": attributes("*.md diff=a", "diff.a.textconv"),
    "textconv that is kept": attributes("*.md diff=a", "diff.a.textconv", "diff.a.cachetextconv"),
    "a diff driver": attributes("*.md diff=a", "diff.a.command"),
    "an external diff": set_keys("diff.external"),
    "a merge driver": attributes("*.md merge=a", "merge.a.driver"),
    "hooks": plant_hooks,
    "hooks elsewhere": plant_hooks_elsewhere,
    "a pager": set_keys("core.pager", "pager.log", "pager.show", "pager.status", "pager.diff", "pager.config"),
    "an editor": set_keys("core.editor", "sequence.editor"),
    "aliases": set_keys(
        *(f"alias.{name}" for name in ("status", "log", "show", "ls-files", "cat-file", "rev-parse", "config")),
        value="!{trap}",
    ),
    "a program that looks at signatures": set_keys("gpg.program", "gpg.ssh.program", "gpg.x509.program"),
    "programs for the network": set_keys("core.sshCommand", "core.gitProxy", "core.askPass", "credential.helper"),
    "a promisor that is a command": plant_promisor("ext::{trap}", "protocol.ext.allow"),
    "a promisor by ssh": plant_promisor("ssh://example.org/house", "core.sshCommand"),
    "a promisor with a program of its own": plant_promisor("/nowhere", "remote.origin.uploadpack"),
    "a promisor through a helper": plant_promisor("house", "remote.origin.vcs"),
    "a promisor through a proxy": plant_promisor("git://example.org/house", "core.gitProxy"),
    "a submodule": plant_submodule,
    "programs for other commands": set_keys(
        "core.alternateRefsCommand", "uploadpack.packObjectsHook", "interactive.diffFilter", "gc.recentObjectsHook",
        "trailer.a.command", "trailer.a.cmd", "difftool.a.cmd", "web.browser", "sendemail.sendmailCmd",
    ),
}  # fmt: skip


@pytest.fixture
def unpacked(vault: Vault) -> Vault:
    """Three commits, a note that is changed and not committed, and a document."""
    vault.write_fact("pool", "The pool is heated.")
    vault.write("projects/house/PROJECT.md", "---\ntype: project\nlabel: House\n---\n# House\n")
    vault.write("projects/house/GUIDE.md", "# Guide\n\nHow the pool is heated.\n")
    vault.save("first")
    vault.write_fact("pool", "The pool is cold.")
    vault.save("second")
    vault.write_fact("jon", "Jon swims in the pool.")
    vault.save("third")
    return vault


def spring(vault: Vault, tmp_path: Path, plant: Callable[[Vault, Path], None]) -> list[str]:
    """The reading commands after which the trap had been sprung."""
    mark = tmp_path / "sprung"
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {mark}\nexit 1\n")
    trap.chmod(0o755)
    plant(vault, trap)
    for key in ("commit.gpgSign", "log.showSignature", "filter.a.b.required", "filter.a.required"):
        vault.run("config", key, "true")
    vault.write_fact("pool", "The pool is green.")
    mark.unlink(missing_ok=True)
    sprung = []
    for command in READING:
        os.utime(vault.root / "facts" / "jon.md")  # git would have to read it again
        assert main(["--vault", str(vault.root), *command]) in (0, 1), command
        if mark.exists():
            sprung.append(" ".join(command))
            mark.unlink()
    return sprung


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_reading_runs_nothing_that_the_repository_configures(unpacked, tmp_path, configuration):
    assert spring(unpacked, tmp_path, CONFIGURATIONS[configuration]) == []


def test_another_work_tree_is_not_looked_at(unpacked, tmp_path):
    elsewhere = Vault(tmp_path / "elsewhere")
    elsewhere.write("diary.md", "Private.\n")
    unpacked.write("facts/new.md", "New.\n")
    unpacked.run("config", "core.worktree", str(elsewhere.root))
    with unpacked.memory() as memory:
        assert memory.git.uncommitted() == ["facts/new.md"]


@pytest.mark.parametrize("how", ["replaced", "grafted"])
def test_the_history_is_the_one_that_the_commits_vouch_for(unpacked, how):
    first, newest = unpacked.git("rev-list", "--reverse", "HEAD").split()[1], unpacked.head()
    true = [commit.id for commit in unpacked.open().git.log()]
    if how == "replaced":
        unpacked.run("replace", "--graft", newest, first)
    else:
        unpacked.write(".git/info/grafts", f"{newest} {first}\n")
    assert len(unpacked.git("log", "--format=%h").split()) < len(true)
    with unpacked.memory() as memory:
        assert [commit.id for commit in memory.git.log()] == true


def test_an_encrypted_vault_stays_encrypted(unpacked):
    """A write does run the owner's filters: without them it would commit in clear what they keep secret."""
    unpacked.run("config", "filter.secret.clean", "tr a-z n-za-m")
    unpacked.run("config", "filter.secret.smudge", "tr a-z n-za-m")
    unpacked.write(".gitattributes", "facts/** filter=secret\n")
    with unpacked.memory() as memory:
        made = memory.remember("Maya keeps a violin in the attic.")
        found = memory.recall("violin", as_of="HEAD")
    assert "ivbyva" in unpacked.git("cat-file", "blob", f"HEAD:{made.path}")
    assert made.path not in {hit.path for hit in found.hits}
