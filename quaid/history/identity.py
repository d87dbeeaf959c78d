"""Whose name stands in a commit."""

from __future__ import annotations

import os

from quaid.history.staging import RunGit


def choose_identity(
    run: RunGit, ours: tuple[str, str], author: tuple[str, str] | None, *, may_sign: bool
) -> dict[str, str]:
    """Return the environment with which git commits: as `author` (name, e-mail), by default as Quaid, `ours`."""
    name, email = author or ours
    identity = {"GIT_AUTHOR_NAME": name, "GIT_AUTHOR_EMAIL": email}
    if author is not None and author == find_owner(run):
        return identity | {"GIT_COMMITTER_NAME": name, "GIT_COMMITTER_EMAIL": email}
    # A signature is the committer's: a user who has git sign signs in their own name.
    signs = may_sign and _ask_config(run, "--type=bool", "commit.gpgsign") == "true"
    if not (signs and _ask_config(run, "user.email")):
        identity |= {"GIT_COMMITTER_NAME": ours[0], "GIT_COMMITTER_EMAIL": ours[1]}
    return identity


def find_owner(run: RunGit) -> tuple[str, str] | None:
    """Return the name and e-mail address with which git commits by hand here; None where it has none."""
    name = os.environ.get("GIT_AUTHOR_NAME") or _ask_config(run, "user.name")
    email = os.environ.get("GIT_AUTHOR_EMAIL") or _ask_config(run, "user.email")
    return (name, email) if name and email else None


def _ask_config(run: RunGit, *key: str) -> str:
    return run("read the configuration", "config", "--get", *key, accept=(0, 1))[1].decode().strip()
