"""One way to write a commit: stage its content in a private index, write the tree and the commit, move the branch,
and have the user's index follow. `git commit` makes it only where the user has hooks or signs.

Killed between the move of the branch and the update of the user's index, a process leaves the user with an index that
would undo that commit with the next one. The folder it leaves behind proves the case: it names the commit, or the tree
of its index is the commit's. The next writer finishes it.
"""

import os
import re
import shlex
import shutil
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from quaid.errors import CommitRefusedError, GitError, QuaidError, name_first
from quaid.history.authorship import choose_identity
from quaid.history.commit_folder import CommitFolder, is_abandoned, list_abandoned, open_folder
from quaid.history.commit_hook import BY_QUAID, find_folder, is_ours
from quaid.history.git import Changes, Git, parse_raw
from quaid.history.messages import render
from quaid.history.repository import read_state
from quaid.history.staging import EXECUTABLE, NEW_FILE, REGULAR, CommitPart, Stage, diff_index, update_users_index
from quaid.model import Committed, Edit, Message
from quaid.vault import files, transaction

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
)
_MADE = "made"
_ADOPTED = "adopted"
_GUARD_REFUSED = "guard-refused"
_MAX_ID = 100
_COMMIT_MADE = re.compile(r"^\[\S++.*? ([0-9a-f]{4,64})\] ")


class HeadMovedError(Exception):
    """Somebody committed or switched branches while Quaid made a commit."""


class NotAheadError(GitError):
    """The branch has moved on since."""

    def __init__(self) -> None:
        super().__init__("move the branch", "it has commits that the other one has not. Try again")


def commit(
    git: Git,
    edits: Mapping[str, Edit],
    message: Message,
    identity: tuple[tuple[str, str], tuple[str, str] | None],
    merged: str | None = None,
    *,
    locks_first: bool = False,
) -> Committed:
    """Commit the files of `edits`, by git's paths, as far as they can be separated from the user's own work.

    `identity` is Quaid's (name, e-mail) and the author's, if that is another. The user's index is locked only once git
    has read what it commits, or from the beginning if `locks_first`.

    Raises:
        HeadMovedError: nothing was committed; try again.
        GitError, LockedError: nothing was committed.
    """
    repository = git.repository
    with open_folder(repository, git.read_state().head) as folder:
        if locks_first:
            folder.lock_index(git.wait_s)
        stage = Stage(git, folder)
        stage.prepare(edits)
        left, refused = (tuple(map(repository.to_vault, paths)) for paths in (stage.left, stage.ignored))
        rules = ", ".join(sorted(set(stage.ignored.values())))
        refusal = f"git ignores it: {rules}. Take that rule out." if rules else ""
        if not stage.parts or not stage.has_changes():
            return Committed(None, left, refused, refusal)
        text = render(message).encode("utf-8", "replace")
        hooks = (repository.common_dir / "hooks").glob("*")
        has_hook = any(path.suffix != ".sample" and os.access(path, os.X_OK) and not is_ours(path) for path in hooks)
        # A setting about hooks or signatures is rare, whatever it says.
        if has_hook or not stage.settings.keys().isdisjoint({"commit.gpgsign", "core.hookspath"}):
            signs = stage.settings.get("commit.gpgsign", "false").lower() in {"true", "yes", "on", "1"}
            committer = signs and bool(stage.settings.get("user.email"))
            made = commit_by_git(stage, text, choose_identity(git, *identity, signs=committer), merged)
            commit_id = follow_commit(stage, made, text)
        else:
            environment = choose_identity(git, *identity, signs=False)
            parents = filter(None, (stage.base, merged))
            commit_id = git.commit_tree(stage.tree, parents, text, environment)
            move_branch(stage, commit_id, text, environment)
            follow_branch(stage, commit_id, None)
        return Committed(commit_id, left, refused, refusal)


def move_branch(stage: Stage, commit_id: str, text: bytes, identity: Mapping[str, str]) -> None:
    """Move the user's branch to the commit, with the index locked.

    Raises:
        HeadMovedError: it is no longer where it was.
    """
    if not stage.folder.try_lock_index() or _has_moved(stage):
        raise HeadMovedError
    (stage.folder.path / _MADE).write_text(f"{commit_id}\n", encoding="ascii")  # to be finished after a kill
    old = stage.base or "0" * len(commit_id)
    args = ("update-ref", "-m", _describe(text), "HEAD", commit_id, old)
    try:
        # The process keeps the folder in use, should it outlive us.
        stage.git.run("commit", *args, env=identity, handles=(stage.folder.handle,))
    except GitError as error:
        if _has_moved(stage):
            raise HeadMovedError from error
        raise


def commit_by_git(stage: Stage, text: bytes, identity: Mapping[str, str], merged: str | None) -> str:
    """Commit what is staged by `git commit`, for the user's hooks or signature. Return the id, which may be short.

    git takes for parent whatever HEAD is when it starts, and our tree is built on `base`. So the editor, which runs
    later, locks the user's index and checks that HEAD is still `base`; from there on git refuses if it moves.

    Raises:
        HeadMovedError: somebody else was first.
        GitError: git, a hook or the signing program refused.
    """
    folder = stage.folder
    if merged is not None:
        (folder.path / "MERGE_HEAD").write_text(f"{merged}\n", encoding="ascii")
        (folder.path / "MERGE_MODE").write_text("no-ff", encoding="ascii")  # though it is ahead of HEAD
    # The user's own language again, for the hooks; an empty value counts as none.
    locale = {name: os.environ.get(name, "") for name in ("LC_ALL", "LANGUAGE")}
    env = {**locale, **identity, "GIT_EDITOR": _guard_command(stage), BY_QUAID: "1"}
    env |= {"GIT_DIR": str(folder.path), "GIT_WORK_TREE": str(folder.repository.top)}
    settings = (
        # The message is committed byte for byte; a daemon or a collection begun here would outlive its folder.
        *("commit.template=", "core.commentChar=#", "i18n.commitEncoding=UTF-8"),
        *("core.fsmonitor=false", "maintenance.auto=false"),
    )
    config = [word for setting in settings for word in ("-c", setting)]
    args = [*config, "commit", "--edit", "--cleanup=verbatim", "--no-status", "--no-verbose", "--file=-"]
    try:
        _, out = stage.git.run_as_is("commit", args, text, env, handles=(folder.handle,))
    except GitError as error:
        if (folder.path / _GUARD_REFUSED).exists() or _has_moved(stage):
            raise HeadMovedError from error
        raise
    found = _COMMIT_MADE.match(out.decode("utf-8", "replace"))
    return found[1] if found else str(read_state(replace(folder.repository, git_dir=folder.path)).head)


def follow_commit(stage: Stage, made: str, text: bytes) -> str:
    """Make HEAD and the user's index follow a commit of `git commit`; return its whole id.

    It was made with a private HEAD. If that names a branch, the branch has moved and the user's HEAD with it, all but
    its reflog; a detached one has yet to move.

    Raises:
        HeadMovedError: a detached HEAD is somewhere else by now.
    """
    commit_id, changes = read_changes(stage.git, made)
    is_detached = not (stage.folder.path / "HEAD").read_bytes().startswith(b"ref:")
    if is_detached and not _update_ref(stage.git, _describe(text), "HEAD", commit_id, stage.base or commit_id):
        raise HeadMovedError
    follow_branch(stage, commit_id, changes)
    if not is_detached:
        # Last, with the lock still ours: a git of the user's that has read the old index finds it locked, and gives up.
        _update_ref(stage.git, _describe(text), "HEAD", commit_id, commit_id)
    return commit_id


def follow_branch(stage: Stage, commit_id: str, changes: Changes | None) -> None:
    """Make the user's index follow the commit that HEAD is at, or take it back and raise.

    The lock of the index, taken before the commit, is waited for should somebody have removed it since. Where the
    private index is the user's with nothing but the commit added, it takes its place.
    """
    try:
        stage.folder.lock_index(stage.git.wait_s)
        if changes is None and stage.is_simple and stage.folder.has_original_index():
            stage.folder.index.replace(stage.folder.repository.git_dir / "index")
        else:
            changes = read_changes(stage.git, commit_id)[1] if changes is None else changes
            update_users_index(stage, changes, stage.parts)
    except BaseException:
        # An index that lags behind HEAD would undo the commit with the user's next one. Seconds old and known to
        # nobody, it goes, unless somebody has built on it already.
        target = ("HEAD", stage.base, commit_id) if stage.base else ("-d", "HEAD", commit_id)
        if _update_ref(stage.git, "quaid: the index was locked, commit taken back", *target):
            raise


def read_changes(git: Git, commit_id: str) -> tuple[str, Changes]:
    """Return a commit's whole id, and what it changed; a merge's against its first parent."""
    shape = ("--root", "-m", "-r", "-z", "--no-renames", "--no-abbrev", "--format=%H")
    whole_id, _, out = git.read("read a commit", "diff-tree", *shape, f"{commit_id}^{{commit}}").partition(b"\0")
    out = out.split(whole_id + b"\0", 1)[0]
    return whole_id.decode(), dict(parse_raw(out))


def adopt(git: Git, commit_id: str, edits: Mapping[str, Edit]) -> None:
    """Move the user's branch and index on to a commit that was made elsewhere and has all that the branch has. `edits`
    are the files that were written already, by git's paths.

    Raises:
        NotAheadError, QuaidError: nothing was moved.
        LockedError: somebody else has the index locked for longer than `git.wait_s`.
    """
    with open_folder(git.repository, git.read_state().head) as folder:
        stage = Stage(git, folder)
        if stage.base is None or not git.is_ancestor(stage.base, commit_id):
            raise NotAheadError
        changes = git.diff_trees(stage.base, commit_id)
        (folder.path / _ADOPTED).write_text(commit_id, encoding="ascii")
        folder.lock_index(git.wait_s)  # from here on nobody stages anything
        staged = diff_index(git, stage.base)
        if in_the_way := [path for path in staged if path in changes and staged[path][1] != changes[path][1]]:
            raise QuaidError(
                f"You have staged {name_first(in_the_way)}, which the remote has changed too: nothing was changed. "
                "Commit it with git commit, then try again.",
                code="staged_work",
            )
        for path, (old, new) in changes.items():
            if new is None or new.mode not in REGULAR or (old is None and new.mode == NEW_FILE):
                continue
            with suppress(OSError):
                mode = (git.repository.top / path).lstat().st_mode
                wanted = mode | 0o111 if new.mode == EXECUTABLE else mode & ~0o111
                if stat.S_ISREG(mode) and wanted != mode and (old is None or old.mode != new.mode):
                    (git.repository.top / path).chmod(wanted & 0o7777)
        if not _update_ref(git, "quaid: pulled", "HEAD", commit_id, stage.base):
            raise NotAheadError
        modes = {path: new.mode for path, (_, new) in changes.items() if new}
        stage.parts = [CommitPart(path, edit, modes.get(path, NEW_FILE)) for path, edit in edits.items()]
        follow_branch(stage, commit_id, changes)


def recover(git: Git, root: Path) -> None:
    """Finish what killed processes left half done, and delete what nobody needs any more. A folder that cannot be
    finished is set aside in the state of the vault at `root`.

    Raises:
        LockedError: somebody else has the user's index locked for longer than `git.wait_s`.
    """
    for folder in list_abandoned(git.repository):
        try:
            folder.unlock_refs()
            if folder.is_named and git.read_state().head != folder.base and files.is_file_in(folder.path, "index"):
                _finish(Stage(git, folder))
        except GitError as error:
            reason = f"A commit that a killed process began could not be finished: {error}"
            transaction.set_aside(root, reason, leftover=folder.path)
        folder.unlock_index()
        shutil.rmtree(folder.path, ignore_errors=True)
    if is_abandoned(git.repository):  # its folder is gone already
        git.repository.index_lock.unlink(missing_ok=True)


def _finish(stage: Stage) -> None:
    """Make the user's index follow the commit that was made in a folder, or the branch was moved to, if it was."""
    git, folder = stage.git, stage.folder
    if adopted := _read_id(folder, _ADOPTED):
        if stage.base is not None and git.is_ancestor(adopted, "HEAD"):
            folder.lock_index(git.wait_s)
            update_users_index(stage, git.diff_trees(stage.base, adopted), ())
        return
    since = ["--ancestry-path", f"{stage.base}..HEAD"] if stage.base else ["HEAD"]
    args = ("rev-list", "--first-parent", "--reverse", "--format=%T", *since)
    code, out = git.run("look for a commit", *args, accept=(0, 128))
    # "commit <id>" and "<tree>" for each: the first of them is the one made on our base.
    words = out.decode().split()
    if code or len(words) < 3:
        return
    made = _read_id(folder, _MADE)
    if not made:
        folder.index.with_name("index.lock").unlink(missing_ok=True)
        is_same = git.read_text("write a tree", "write-tree", index=folder.index) == words[2]
        made = words[1] if is_same else ""
    if made == words[1]:
        folder.lock_index(git.wait_s)
        update_users_index(stage, read_changes(git, made)[1], ())


def _read_id(folder: CommitFolder, name: str) -> str:
    return (files.read_note(folder.path, name, _MAX_ID) or b"").decode("ascii", "replace").strip()


def _guard_command(stage: Stage) -> str:
    """Return a shell command, in the place of the editor, that locks the user's index. It refuses if somebody else has
    locked it, HEAD moved, a merge or the like began, or its maker is dead.
    """
    folder, git_dir = stage.folder, stage.folder.repository.git_dir
    heads = [f"$(cat {shlex.quote(str(place / 'HEAD'))})" for place in (folder.path, git_dir)]
    tests = [f'"{heads[0]}" = "{heads[1]}"', f'"$(git rev-parse -q --verify HEAD)" = "{stage.base or ""}"']
    names = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply")
    tests += [f"! -e {shlex.quote(str(git_dir / name))}" for name in names]
    guard = " && ".join([f"kill -0 {os.getpid()}", folder.lock_command(), *(f"test {test}" for test in tests)])
    # git appends the message's file name; the comment sign takes it away.
    return f"{{ {guard}; }} || {{ touch {shlex.quote(str(folder.path / _GUARD_REFUSED))}; false; }} #"


def _has_moved(stage: Stage) -> bool:
    state = stage.git.read_state()
    names = [(place / "HEAD").read_bytes() for place in (stage.folder.path, stage.folder.repository.git_dir)]
    return state.head != stage.base or state.operation is not None or names[0] != names[1]


def _describe(text: bytes) -> str:
    """Return what the reflog says of a commit with this message."""
    return f"commit: {text.decode().partition(chr(10))[0]}"


def _update_ref(git: Git, why: str, *target: str) -> bool:
    """Return whether a ref was moved, or deleted: it was where it should be."""
    return git.run("move HEAD", "update-ref", "-m", why, *target, accept=(0, 1, 128))[0] == 0


def explain_refusal(error: GitError, top: Path) -> GitError:
    """Return the error that names the cause of `error`, which a commit in the work tree `top` has ended with."""
    reason = error.said.strip()
    git = f"git -C {shlex.quote(str(top))}"
    named = _HOOK.search(reason) if "cannot run" in reason or "cannot exec" in reason else None
    if named is not None:
        return CommitRefusedError(f"its hook {named[1]} cannot be run", reason, "Mend that hook, or remove it")
    for pattern, cause, next_step in _CAUSES:
        if pattern.search(reason):
            return CommitRefusedError(cause, reason, next_step.format(git=git, top=top))
    if error.doing != "commit":
        return error
    folder = find_folder(top)
    if names := [name for name in HOOKS if os.access(folder / name, os.X_OK) and not is_ours(folder / name)]:
        where = f"Let the hook pass what Quaid writes, or take it out of {folder}"
        return CommitRefusedError(f"the hook {' or '.join(names)} refused it", reason, where)
    step = f"See whether a commit of your own goes through in {top}"
    return CommitRefusedError("it ended with an error", reason, step)
