"""git's pre-commit hook that has Quaid check whether a commit brings a new secret, and what that commit brings.

A hook of the owner's is never changed: they are shown the line that calls Quaid from it. Quaid's own commits do not
run the check: what agents bring was redacted before, and what `quaid edit` saves is its owner's.
"""

import os
import re
import shlex
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from quaid.errors import GitError, QuaidError
from quaid.history import vault_guard
from quaid.history.git import SUBMODULE, Changes, Git, execute, parse_raw, quiet_environment
from quaid.history.repository import Repository, find_repository
from quaid.place import data_folder

COMMAND = "pre-commit"
BY_QUAID = "QUAID_COMMITS"
"""The variable that is set where Quaid itself has `git commit` run."""
REFUSED = 10
"""The exit code for a new secret: a Python that is broken leaves with 1, and that must not refuse."""
_PLACE = "@COMMAND@"
_HANDED_ON = ("GIT_DIR", "GIT_INDEX_FILE")
"""What git passes to its hook: `git commit FILE` has a separate index, and a work tree need not have a .git."""

Holder = Literal["nobody", "quaid", "owner", "owner calling quaid"]


class HookTakenError(QuaidError):
    """The pre-commit hook is the owner's own; `line` has it call Quaid."""

    code = "hook_taken"

    def __init__(self, path: object, line: str = "") -> None:
        step = f"Add this line near its beginning: {line}" if line else "Take the line that calls Quaid out of it."
        super().__init__(f"{path} is your own hook, which Quaid never changes. {step}")


class CommitHook(NamedTuple):
    """The pre-commit hook of a repository: where git looks for it, whose it is, and the command it runs if Quaid's."""

    path: Path
    holder: Holder
    command: str = ""

    def runs(self, command: Sequence[str]) -> bool:
        """Return whether it is Quaid's, and git can have it run `command`."""
        return self.command == shlex.join(command) and os.access(self.path, os.X_OK)


def find(root: Path) -> CommitHook:
    """Return the hook that git runs in the repository of the vault at `root`, which need not be there."""
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
    """Return the folder that git takes its hooks from in the work tree `top`, which need not be there."""
    # Not by `ask`, which takes the owner's hooks away.
    command = ("-C", str(top), "rev-parse", "--git-path", "hooks")
    code, out, stderr = execute(command, b"", quiet_environment(top))
    if code:
        raise GitError("find its hooks", stderr)
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
    with suppress(OSError):
        return path.name == "pre-commit" and _form().fullmatch(path.read_text("utf-8", "replace")) is not None
    return False


@cache
def _template() -> str:
    return (data_folder("hooks") / "git/pre-commit").read_text("utf-8")


def _form() -> re.Pattern[str]:
    return re.compile(re.escape(_template()).replace(re.escape(_PLACE), "(?P<command>[^\n]+)"))


def read_next_commit(folder: Path) -> tuple[Git, dict[str, str], frozenset[str]]:
    """Read what `git commit` is about to commit in the work tree `folder`, as its pre-commit hook sees it.

    Returns:
        Git with the index of that commit; the blob of each path that no parent has so; the blobs of the parents in
        their place. A merge has several parents.
    """
    env = {name: os.path.abspath(folder / os.environ[name]) for name in _HANDED_ON if name in os.environ}  # noqa: PTH100
    git_dir = Path(env["GIT_DIR"]) if "GIT_DIR" in env else None
    repository = Repository(folder, git_dir, git_dir, "") if git_dir else find_repository(folder)
    if repository is None:
        raise GitError("read what is staged", f"{folder} is in no repository")
    git = Git(repository, env=env)
    parents = ["HEAD"]
    with suppress(FileNotFoundError):
        parents += (repository.git_dir / "MERGE_HEAD").read_text("ascii").split()
    doing = "read what is staged"
    if git.run(doing, "rev-parse", "--quiet", "--verify", "HEAD", accept=(0, 1))[0]:
        parents = [git.read_text(doing, "hash-object", "-t", "tree", "--stdin")]  # the empty one
    compared: list[Changes] = []
    for parent in parents:
        changes = parse_raw(git.read(doing, "diff-index", "--cached", "--raw", "-z", "--no-renames", parent))
        compared.append({path: each for path, each in changes if each[1] is None or each[1].mode != SUBMODULE})
    added = {
        path: new.blob for path, (_, new) in compared[0].items() if new and all(path in other for other in compared)
    }
    return git, added, frozenset(old.blob for changes in compared for old, _ in changes.values() if old)
