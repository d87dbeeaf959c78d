from __future__ import annotations

import os
import shutil
import subprocess

import pytest
from git_vaults import NOTE, Vault


@pytest.fixture(autouse=True)
def no_identity(monkeypatch, tmp_path):
    """A machine on which git has never been told who its user is."""
    for name in list(os.environ):
        if name.startswith("GIT_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_EDITOR", "false")


@pytest.fixture
def empty(tmp_path):
    """A repository without a commit."""
    root = tmp_path / "vault"
    root.mkdir()
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=root, check=True)
    return Vault(root)


@pytest.fixture(scope="session")
def template(tmp_path_factory):
    """A repository with two notes, made once and copied for each test."""
    root = tmp_path_factory.mktemp("template") / "vault"
    subprocess.run(["git", "init", "-q", "-b", "main", str(root)], check=True)
    made = Vault(root)
    made.save("facts/a.md", NOTE)
    made.save("other.md", NOTE)
    return root


@pytest.fixture
def vault(template, tmp_path):
    return Vault(shutil.copytree(template, tmp_path / "vault"))
