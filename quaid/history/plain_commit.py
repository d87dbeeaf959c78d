"""A commit where nothing of the user's takes part in making it: no hook, no signature.

`git commit` looks at every file of the work tree first, 170 ms of it at 100,000 notes, though what it commits is in the
index already. Where nobody could tell the difference, the tree is written and committed without that.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from quaid.history.git_process import GitCall, quiet_environment
from quaid.history.staging import Stage

RunCall = Callable[[GitCall], tuple[int, bytes]]
_SAMPLE = ".sample"


def is_possible(stage: Stage, run_call: RunCall) -> bool:
    """Return whether there is a commit to build on, no second parent, and neither a hook nor a signature."""
    if stage.base is None or (stage.folder / "MERGE_HEAD").exists():
        return False
    env = quiet_environment(stage.repository.top)  # not `Stage.run`, which takes the hooks away
    args = ("config", "-z", "--get-regexp", r"^(commit\.gpgsign|core\.hookspath)$")
    _, out = run_call(GitCall("read the configuration", args, b"", env, accept=(0, 1)))
    if out:  # whatever it says: it is rare
        return False
    return not any(map(_is_hook, (stage.repository.common_dir / "hooks").glob("*")))


def create(stage: Stage, text: bytes, identity: Mapping[str, str], handle: int, run_call: RunCall) -> str | None:
    """Commit what the stage holds on its base, as `git commit` in its folder would, and return the id; None when it
    holds what the base has. The caller has the user's index locked.

    Raises:
        GitError: git refused, for example because the branch is no longer at the base.
    """
    env = {**quiet_environment(stage.repository.top), **identity, "GIT_DIR": str(stage.folder)}
    tree = stage.run("write a tree", "write-tree", "--missing-ok", index=stage.index)[1].decode().strip()
    if tree == stage.run("read a tree", "rev-parse", f"{stage.base}^{{tree}}")[1].decode().strip():
        return None
    args = ("-c", "i18n.commitEncoding=UTF-8", "commit-tree", "-p", str(stage.base), tree)
    made = run_call(GitCall("commit", args, text, env, handles=(handle,)))[1].decode().strip()
    subject = text.decode().partition("\n")[0]
    moved = ("update-ref", "-m", f"commit: {subject}", "HEAD", made, str(stage.base))
    run_call(GitCall("commit", moved, b"", env, handles=(handle,)))
    return made


def _is_hook(path: Path) -> bool:
    return path.suffix != _SAMPLE and os.access(path, os.X_OK)
