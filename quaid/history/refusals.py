"""Why git would not make a commit, in a sentence with its cause and the setting that ends it."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection
from pathlib import Path

from quaid.errors import CommitRefusedError, GitError
from quaid.history.commit_hook import find_folder, is_ours

HOOKS = ("pre-commit", "prepare-commit-msg", "commit-msg")
"""The hooks of `git commit` that can refuse it."""

_HOOK = re.compile(r"hooks?/([\w-]+)")
_CAUSES = (
    (
        re.compile(r"failed to sign|gpg failed|signing failed|user\.signingkey|secret key|ssh-keygen", re.IGNORECASE),
        "commit.gpgsign is on and it could not be signed",
        "Give git a key (git config user.signingkey KEY), or sign nothing here: {git} config commit.gpgsign false",
    ),
    (
        re.compile(r"would be replaced by (?:CR)?LF", re.IGNORECASE),
        "core.safecrlf is on, and core.autocrlf or an eol in .gitattributes changes the line ends of its files",
        "Let git warn about line ends only: {git} config core.safecrlf warn",
    ),
    (
        re.compile(r"tell me who you are|identity unknown|empty ident|useConfigOnly", re.IGNORECASE),
        "git does not know who commits",
        "Tell it: git config --global user.name NAME, and user.email ADDRESS",
    ),
    (
        re.compile(r"Permission denied|Read-only file system|insufficient permission", re.IGNORECASE),
        "the repository cannot be written",
        "Make {top}/.git writable",
    ),
)  # fmt: skip


def explain_refusal(error: GitError, top: Path) -> GitError:
    """Return the error that names the cause of `error`, which a commit in the work tree `top` has ended with."""
    said = error.said.strip()
    git = f"git -C {shlex.quote(str(top))}"
    named = _HOOK.search(said) if "cannot run" in said or "cannot exec" in said else None
    if named is not None:
        return CommitRefusedError(f"its hook {named[1]} cannot be run", said, "Mend that hook, or remove it")
    for pattern, cause, next_step in _CAUSES:
        if pattern.search(said):
            return CommitRefusedError(cause, said, next_step.format(git=git, top=top))
    if error.doing != "commit":
        return error
    if hooks := _list_hooks(top):
        names = " or ".join(hook.name for hook in hooks)
        where = f"Let the hook pass what Quaid writes, or take it out of {hooks[0].parent}"
        return CommitRefusedError(f"the hook {names} refused it", said, where)
    return CommitRefusedError("it ended with an error", said, f"See whether a commit of your own goes through in {top}")


def explain_ignored(rules: Collection[str]) -> str:
    """Return why git leaves out what the `rules` of its ignore files name; empty where there are none."""
    return f"git ignores it: {', '.join(sorted(set(rules)))}. Take that rule out." if rules else ""


def _list_hooks(top: Path) -> list[Path]:
    """Return the hooks that a commit runs and that can refuse it, wherever the owner keeps them."""
    folder = find_folder(top)
    return [hook for name in HOOKS if os.access(hook := folder / name, os.X_OK) and not is_ours(hook)]
