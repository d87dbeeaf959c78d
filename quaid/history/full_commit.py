"""A commit by `git commit`, where the user's hooks or signature take part, or a merge, or work of theirs in a note."""

from __future__ import annotations

import re
from collections.abc import Mapping

from quaid.history.commit_hook import BY_QUAID
from quaid.history.git_process import GitCall, RunCall, user_locale
from quaid.history.staging import Stage, guard_command

_COMMIT_MADE = re.compile(r"^\[\S++.*? ([0-9a-f]{4,64})\] ")


def create(stage: Stage, text: bytes, identity: Mapping[str, str], handle: int, run_call: RunCall) -> str | None:
    """Commit what the stage holds and return the id as git says it, short; None when it does not say it.

    git takes for parent whatever HEAD is when it starts, and our tree is built on `base`. So the editor, which runs
    later, locks the user's index and checks that HEAD is still `base`; from there on git refuses if it moves. `handle`
    keeps the stage's folder in use while git runs.

    Raises:
        GitError: git, a hook, the signing program or our guard refused, or there was nothing to commit.
    """
    env = {**user_locale(), **identity, "GIT_EDITOR": guard_command(stage), BY_QUAID: "1"}
    env |= {"GIT_DIR": str(stage.folder), "GIT_WORK_TREE": str(stage.repository.top)}
    settings = (
        # The message is committed byte for byte; a daemon or a collection begun here would outlive its folder.
        *("commit.template=", "core.commentChar=#", "i18n.commitEncoding=UTF-8"),
        *("core.fsmonitor=false", "maintenance.auto=false"),
    )
    config = [word for setting in settings for word in ("-c", setting)]
    args = [*config, "commit", "--edit", "--cleanup=verbatim", "--no-status", "--no-verbose", "--file=-"]
    _, out = run_call(GitCall("commit", args, text, env, handles=(handle,)))
    found = _COMMIT_MADE.match(out.decode("utf-8", "replace"))
    return found[1] if found else None
