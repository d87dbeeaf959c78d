"""Which folder `quaid init` makes a vault when none is named: the working folder if it can be meant."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from quaid.errors import BadInputError, VaultExistsError
from quaid.place import find_vault
from quaid.vault import layout

MAX_ENTRIES = 2_000
"""Entries of a folder that are looked at before it counts as one without notes."""
_CODE = frozenset(
    """
    pyproject.toml setup.py requirements.txt package.json tsconfig.json deno.json Cargo.toml go.mod pom.xml build.gradle
    build.gradle.kts Makefile CMakeLists.txt meson.build Gemfile composer.json mix.exs Package.swift pubspec.yaml
    stack.yaml build.sbt flake.nix Dockerfile BUILD.bazel WORKSPACE
    """.split()  # noqa: SIM905 - a word list reads best as words
)
_OF_PROJECTS = frozenset(
    {"readme.md", "changelog.md", "contributing.md", "license.md", "security.md", "code_of_conduct.md"}
)
"""Markdown that is about the folder it lies in, no note of somebody."""


class VaultChoice(NamedTuple):
    """The folder, and why it is not the working folder; empty where nobody would wonder."""

    root: Path
    remark: str = ""


def choose_folder(named: Path | None) -> VaultChoice:
    """Return the folder `named` on the command line, else `$QUAID_HOME`, else the working folder if it is empty or has
    notes, else `~/quaid`.

    Raises:
        VaultExistsError: it lies in a vault.
        BadInputError: it holds the home folder or is a bare repository, or the working folder is gone.
    """
    home, here = Path.home(), _working_folder()
    chosen = named or os.environ.get("QUAID_HOME")
    if chosen:
        root = Path(os.path.normpath(here / Path(chosen).expanduser()))
        if home.is_relative_to(root):
            raise BadInputError(
                f"{root} holds your whole home folder, and all of it would be read. Name a folder in it: "
                "quaid init ~/quaid"
            )
        if _is_bare(root):
            raise BadInputError(f"{root} is a bare git repository. Clone it, then make the clone a vault.")
        problem = ""
    else:
        root = home / "quaid" if home.is_relative_to(here) else here
        problem = _why_not(root) if root == here else ""
    around = find_vault(root)
    if around is not None and around != home:
        raise VaultExistsError(around)
    if not problem:
        return VaultChoice(root)
    advice = "" if _is_bare(here) else " To make it one: quaid init ."
    return VaultChoice(home / "quaid", f"{here} {problem}, so it is not the vault.{advice}")


def _working_folder() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise BadInputError("The working folder is gone. Go to another one with cd and try again.") from None


def _why_not(folder: Path) -> str:
    """Return why nobody can have meant `folder`; empty where they can."""
    names = {entry.name for entry in islice(os.scandir(folder), MAX_ENTRIES)}
    if ".obsidian" in names or not names - {".git"}:
        return ""
    if _is_bare(folder):
        return "is a bare git repository"
    if code := sorted(names & _CODE):
        return f"looks like code ({code[0]})"
    return "" if _has_notes(folder) else "has no notes"


def _is_bare(folder: Path) -> bool:
    """Return whether `folder` is what git keeps of a repository, without its files."""
    return (folder / "HEAD").is_file() and (folder / "objects").is_dir() and (folder / "refs").is_dir()


def _has_notes(folder: Path) -> bool:
    left = MAX_ENTRIES
    for _, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not layout.skips_folder(name))
        if any(layout.is_note_name(name) and name.lower() not in _OF_PROJECTS for name in files):
            return True
        left -= len(folders) + len(files)
        if left < 0:
            break
    return False
