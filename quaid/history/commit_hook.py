"""git's pre-commit hook that asks Quaid whether a commit brings a new secret: set up on request, removed on request.

A hook of the owner's is never changed: they are told the line that calls Quaid from it. Quaid's own commits do not ask
it: what agents bring has passed the gate of `redaction` before, and what `quaid edit` saves is its owner's.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from quaid.errors import GitError, QuaidError
from quaid.history import vault_guard
from quaid.history.git_process import execute, quiet_environment
from quaid.history.repository import find_repository

COMMAND = "pre-commit"
BY_QUAID = "QUAID_COMMITS"
"""The variable that is set where Quaid itself has `git commit` run."""
REFUSED = 10
"""The exit code for a new secret: a Python that is broken leaves with 1, and that must not refuse."""
_PLACE = "@COMMAND@"

Holder = Literal["nobody", "quaid", "owner", "owner calling quaid"]


class HookTakenError(QuaidError):
    """The pre-commit hook is the owner's own; `line` has it call Quaid."""

    code = "hook_taken"

    def __init__(self, path: object, line: str = "") -> None:
        step = f"Add this line near its beginning: {line}" if line else "Take the line that calls Quaid out of it."
        super().__init__(f"{path} is your own hook, which Quaid never changes. {step}")


@dataclass(frozen=True, slots=True)
class CommitHook:
    """The pre-commit hook of a repository: where git looks for it, whose it is, and the command it runs if Quaid's."""

    path: Path
    holder: Holder
    command: str = ""

    def runs(self, command: Sequence[str]) -> bool:
        """Return whether it is Quaid's, and git can have it run `command`."""
        return self.command == shlex.join(command) and os.access(self.path, os.X_OK)


def find(root: Path) -> CommitHook:
    """Return the hook that git runs in the repository of the vault at `root`, which need not be there.

    Raises:
        GitError: there is no repository, or its configuration cannot be read.
    """
    repository = find_repository(root)
    if repository is None:
        raise GitError(
            "find its hooks", f"{root} is in no repository. Make one with: git init {shlex.quote(str(root))}"
        )
    folder = find_folder(repository.top)
    path = folder / "pre-commit"
    text = path.read_text("utf-8", "replace") if path.exists() else ""
    if (ours := _form().fullmatch(text)) and not path.is_symlink():
        return CommitHook(path, "quaid", ours["command"])
    if text:
        calls = re.search(rf"^(?!\s*#).*quaid'? {COMMAND}", text, re.MULTILINE)
        return CommitHook(path, "owner calling quaid" if calls else "owner")
    # A folder that the owner has chosen may serve other repositories too.
    is_chosen = folder.resolve() != repository.common_dir / "hooks"
    return CommitHook(path, "owner" if is_chosen or folder.is_symlink() or path.is_symlink() else "nobody")


def find_folder(top: Path) -> Path:
    """Return the folder that git takes its hooks from in the work tree `top`, which need not be there.

    Raises:
        GitError: the configuration cannot be read.
    """
    # Not by `ask`, which takes the owner's hooks away.
    command = ("-C", str(top), "rev-parse", "--git-path", "hooks")
    code, out, said = execute(command, b"", quiet_environment(top))
    if code:
        raise GitError("find its hooks", said)
    return top / os.fsdecode(out).rstrip("\n")


def install(root: Path, command: Sequence[str], *, dry_run: bool = False) -> tuple[Path, bool]:
    """Have git ask `command` before each commit in the repository of `root`; the hook, and whether it changed.

    Raises:
        GitError: there is no repository.
        HookTakenError: the hook is the owner's, and does not call Quaid.
    """
    hook = find(root)
    wanted = shlex.join(command)
    if hook.holder == "owner":
        raise HookTakenError(hook.path, f"{wanted} {COMMAND}; test $? -ne {REFUSED} || exit 1")
    if hook.holder == "owner calling quaid" or hook.runs(command):
        return hook.path, False
    if not dry_run:
        hook.path.parent.mkdir(exist_ok=True)
        draft = hook.path.with_name("pre-commit.quaid.sample")  # git runs none of that name, if it is left behind
        draft.write_text(_template().replace(_PLACE, wanted), "utf-8")
        draft.chmod(0o755)
        draft.replace(hook.path)
        vault_guard.accept(root)
    return hook.path, True


def uninstall(root: Path, *, dry_run: bool = False) -> tuple[Path, bool]:
    """Remove the hook that Quaid set up in the repository of `root`; where it was, and whether it was. Raises
    as `install`.
    """
    hook = find(root)
    if hook.holder == "owner calling quaid":
        raise HookTakenError(hook.path)
    if hook.holder == "quaid" and not dry_run:
        hook.path.unlink()
        vault_guard.accept(root)
    return hook.path, hook.holder == "quaid"


def is_ours(path: Path) -> bool:
    """Return whether the hook at `path` is as Quaid has written it, and so changes nothing of a commit of Quaid's."""
    try:
        return path.name == "pre-commit" and _form().fullmatch(path.read_text("utf-8", "replace")) is not None
    except OSError:
        return False


@cache
def _template() -> str:
    package = Path(__file__).parents[1]
    packaged = package / "data" / "hooks"
    return ((packaged if packaged.is_dir() else package.parent / "hooks") / "git" / "pre-commit").read_text("utf-8")


def _form() -> re.Pattern[str]:
    return re.compile(re.escape(_template()).replace(re.escape(_PLACE), "(?P<command>[^\n]+)"))
