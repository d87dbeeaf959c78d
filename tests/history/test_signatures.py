"""Signatures: whom the user trusts is written in their own config, and a repository has no say in it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from git_vaults import NOTE, Vault

from quaid.history.authorship import Authors, Ranking, find_signed, is_signing

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not here")
MAYA = "maya@example.org"


@pytest.fixture
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two keys, and a git config of the user's that trusts and signs with `maya`'s."""
    folder = tmp_path / "keys"
    folder.mkdir()
    for name in ("maya", "mallory"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(folder / name)], check=True
        )
    public = (folder / "maya.pub").read_text()
    (folder / "signers").write_text(f"{MAYA} {public}")
    (folder / "all").write_text(f"{MAYA} {public}{MAYA} {(folder / 'mallory.pub').read_text()}")
    config = folder / "gitconfig"
    config.write_text(f'[commit]\n\tgpgsign = true\n[gpg "ssh"]\n\tallowedSignersFile = {folder}/signers\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    return folder


def sign(vault: Vault, path: str, data: bytes, key: Path | None) -> str:
    vault.write(path, data)
    vault.run("add", "-A")
    how = ("-c", "gpg.format=ssh", "-c", f"user.signingKey={key}") if key else ("-c", "commit.gpgsign=false")
    vault.run(*how, "commit", "-qm", f"save {path}")
    return vault.head()


def test_only_a_signature_by_a_key_that_the_user_trusts_is_good(vault: Vault, keys: Path) -> None:
    good = sign(vault, "a.md", NOTE, keys / "maya")
    unknown = sign(vault, "b.md", NOTE, keys / "mallory")
    none = sign(vault, "c.md", NOTE, None)
    assert find_signed(vault.history.runner, [good, unknown, none]) == {good}


def test_a_repository_makes_no_key_trusted_and_runs_no_program(vault: Vault, keys: Path, tmp_path: Path) -> None:
    unknown = sign(vault, "b.md", NOTE, keys / "mallory")
    program = tmp_path / "yes"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\necho 'Good \"git\" signature for maya'\n")
    program.chmod(0o755)
    for name, value in {
        "gpg.ssh.allowedSignersFile": keys / "all", "gpg.ssh.program": program, "gpg.program": program,
        "gpg.openpgp.program": program, "gpg.format": "ssh", "commit.gpgsign": "false",
    }.items():  # fmt: skip
        vault.run("config", name, str(value))
    assert find_signed(vault.history.runner, [unknown]) == frozenset()
    assert not (tmp_path / "ran").exists()
    assert is_signing()


def test_without_a_list_of_signers_nothing_is_trusted(vault: Vault, keys: Path, monkeypatch) -> None:
    good = sign(vault, "a.md", NOTE, keys / "maya")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    assert find_signed(vault.history.runner, [good]) == frozenset()
    assert not is_signing()


def test_what_the_owner_has_signed_outranks_what_they_have_not(vault: Vault, keys: Path) -> None:
    sign(vault, "signed.md", NOTE, keys / "maya")
    sign(vault, "forged.md", NOTE, None)
    sign(vault, "changed.md", NOTE, keys / "maya")
    sign(vault, "changed.md", NOTE.replace(b"six", b"SIX"), keys / "mallory")
    base, authors = vault.head(), Authors("quaid@localhost", [MAYA])
    ranking = Ranking(vault.history, authors, base, is_on=True)
    assert ranking.outranks("signed.md", "forged.md")
    assert ranking.outranks("signed.md", "changed.md")
    assert not ranking.outranks("forged.md", "signed.md")
    assert not ranking.outranks("changed.md", "forged.md")
    assert not Ranking(vault.history, authors, base, is_on=False).outranks("signed.md", "forged.md")


def test_a_signature_of_what_an_agent_wrote_makes_it_no_word_of_the_owners(vault: Vault, keys: Path) -> None:
    sign(vault, "signed.md", NOTE, keys / "maya")
    vault.run("config", "gpg.format", "ssh")
    vault.run("config", "user.signingKey", str(keys / "maya"))
    vault.run("config", "user.email", MAYA)
    vault.commit("agent.md", NOTE)
    assert vault.git("log", "-1", "--format=%ae %ce").strip() == f"quaid@localhost {MAYA}"
    ranking = Ranking(vault.history, Authors("quaid@localhost", [MAYA]), vault.head(), is_on=True)
    assert ranking.outranks("signed.md", "agent.md")
    assert not ranking.outranks("agent.md", "signed.md")
