"""git as a process, and its output as data. The inherited GIT_* variables are removed, messages are English, and what
git prints when it refuses becomes one of Quaid's errors. Paths may hold bytes that are not UTF-8.

What runs git raises GitError when git refuses, GitMissingError where it is not installed and DiskFullError where it
has no room: docstrings of this package name other errors only.
"""

import hashlib
import io
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, NamedTuple

from quaid.errors import DiskFullError, GitError, GitMissingError, LockedError, QuaidError
from quaid.history import steering
from quaid.history.repository import (
    POLL_S,
    REFTABLE_BRANCH,
    Repository,
    RepositoryState,
    describe_lock,
    read_state,
)

WITH_HOOKS = (
    "--literal-pathspecs",
    *("-c", "core.fsmonitor=false", "-c", "core.quotePath=false"),
    *("-c", "log.showSignature=false", "-c", "log.mailmap=false", "-c", "log.follow=false"),
    *("-c", "diff.submodule=short", "-c", f"diff.orderFile={os.devnull}", "-c", "submodule.recurse=false"),
)
QUIET = (*WITH_HOOKS, "-c", f"core.hooksPath={os.devnull}", "-c", "advice.graftFileDeprecated=false")
"""With these, and in a `quiet_environment`, git runs nothing that the repository configures: what it may run besides
are the filters of files that it reads or writes (revisions.py), and programs that turn files into text
(`--no-textconv`).
"""
SUBMODULE = "160000"
"""The mode of an entry that is another repository."""
PROGRESS = re.compile(r"(Counting objects|Receiving objects|Resolving deltas|Writing objects): +\d+% \((\d+)/(\d+)\)")
_FOLDER = "40000"
_DISK_FULL = re.compile(r"No space left on device|Out of diskspace")
_LEFT_OUT = re.compile(r"lazy fetching disabled|from promisor remote")
_LOCK_HELD = re.compile(r"Unable to create '(.+\.lock)': File exists")
# Git exports GIT_DIR, GIT_INDEX_FILE, GIT_WORK_TREE and more to the hooks it runs, and Quaid is run from hooks: passed
# on, they would turn every call here towards the repository of that hook (https://github.com/pre-commit/pre-commit/issues/300).
# Only what says how to reach, trust or trace, never what says where, is let through.
_KEPT_VARIABLES = re.compile(
    r"GIT_(EXEC_PATH|SSH|SSH_COMMAND|SSH_VARIANT|SSL_.*|ASKPASS|TERMINAL_PROMPT|ALLOW_PROTOCOL|HTTP_.*|PROXY_.*|TRACE.*"
    r"|CONFIG_GLOBAL|CONFIG_SYSTEM|CONFIG_NOSYSTEM|CONFIG_COUNT|CONFIG_KEY_\d+|CONFIG_VALUE_\d+)"
)


class Version(NamedTuple):
    """One file as a tree or an index has it."""

    mode: str
    blob: str

    @property
    def is_folder(self) -> bool:
        return self.mode == _FOLDER


Progress = Callable[[str, int, int], None]
"""Called with (what is being done, done, total)."""
Changes = Mapping[str, tuple[Version | None, Version | None]]
"""Path -> (old, new) of the files that differ between two trees; None is no file."""


class GitObject(NamedTuple):
    """An object: its id, `blob`, `tree`, `commit` or `tag`, and its content. `kind` is empty if it does not exist."""

    id: str
    kind: str
    data: bytes


class LeftOutError(GitError):
    """A partial clone has left out what git was to read, and Quaid fetches nothing unasked."""

    def __init__(self, doing: str) -> None:
        step = "Fetch all of them with: git fetch --refetch --no-filter"
        super().__init__(doing, f"this partial clone has left out old versions. {step}")


class Git:
    """Runs git in the work tree of one repository, without anything that the repository configures.

    `wait_s` is how long a call is repeated while another program holds the lock that it needs; `env` is added to git's
    environment.
    """

    def __init__(self, repository: Repository, wait_s: float = 0.0, env: Mapping[str, str] | None = None) -> None:
        self.repository = repository
        self.wait_s = wait_s
        self._env = env or {}

    def run(
        self,
        doing: str,
        *args: str,
        stdin: bytes = b"",
        index: Path | None = None,
        env: Mapping[str, str] | None = None,
        accept: Collection[int] = (0,),
        handles: Sequence[int] = (),
    ) -> tuple[int, bytes]:
        """Return git's exit code and stdout. `index` is used instead of the user's; `env` is added. The process
        inherits `handles`.

        Raises:
            GitError, DiskFullError: the exit code is none of `accept`.
            LockedError: another git held a lock for longer than `wait_s`.
        """
        config, environment = [*QUIET], self._environment()
        if index is not None:
            environment["GIT_INDEX_FILE"] = str(index)
            # Half of a split index would be in the user's git directory, where the commit does not look.
            config += ["-c", "core.splitIndex=false"]
        return self.run_as_is(doing, [*config, *args], stdin, {**environment, **(env or {})}, accept, handles)

    def run_as_is(
        self,
        doing: str,
        args: Sequence[str],
        stdin: bytes,
        env: Mapping[str, str],
        accept: Collection[int] = (0,),
        handles: Sequence[int] = (),
    ) -> tuple[int, bytes]:
        """Run git as `run` does, with what the repository configures, such as its hooks."""
        steering.check(self.repository)
        until = time.monotonic() + self.wait_s
        while True:
            code, out, stderr = execute(["-C", str(self.repository.top), *args], stdin, env, handles)
            if code in accept:
                return code, out
            held = _LOCK_HELD.search(stderr)
            if held is None:
                raise explain(doing, stderr, self.repository.top)
            if time.monotonic() >= until:
                raise LockedError(*describe_lock(held[1]))
            time.sleep(POLL_S)

    def read(self, doing: str, *args: str, stdin: bytes = b"", index: Path | None = None) -> bytes:
        """Return git's stdout; raises as `run`."""
        return self.run(doing, *args, stdin=stdin, index=index)[1]

    def read_text(
        self,
        doing: str,
        *args: str,
        stdin: bytes = b"",
        index: Path | None = None,
        env: Mapping[str, str] | None = None,
        accept: Collection[int] = (0,),
    ) -> str:
        """Return git's stdout as text without white space around it; raises as `run`."""
        out = self.run(doing, *args, stdin=stdin, index=index, env=env, accept=accept)[1]
        return out.decode("utf-8", "surrogateescape").strip()

    def query(self, *args: str) -> bytes | None:
        """Return git's stdout; None where it refuses."""
        steering.check(self.repository)
        top = self.repository.top
        code, out, _ = execute(["-C", str(top), *QUIET, *args], b"", self._environment())
        return None if code else out

    def read_state(self) -> RepositoryState:
        """Return branch, commit and the operation in progress; without a process where the refs are files."""
        try:
            state = read_state(self.repository)
        except OSError as error:
            raise GitError("read HEAD", str(error)) from error
        if state.branch != REFTABLE_BRANCH:
            return state
        head = self.read_text("read HEAD", "rev-parse", "-q", "--verify", "HEAD", accept=(0, 1)) or None
        branch = self.read_text("read HEAD", "symbolic-ref", "-q", "--short", "HEAD", accept=(0, 1)) or None
        return replace(state, branch=branch, head=head, detached=branch is None)

    def resolve(self, revision: str) -> str | None:
        """Return the id of the commit that `revision` names; None if there is none."""
        args = ("rev-parse", "-q", "--verify", "--end-of-options", revision.replace("\0", "") + "^{commit}")
        code, output = self.run("read a revision", *args, accept=(0, 1, 128))
        name = "" if code else output.decode().split()[-1]  # git 2.30 prints --end-of-options back
        return name if re.fullmatch("[0-9a-f]+", name) else None  # a range such as `HEAD..v1` ends with ^ and a name

    def is_ancestor(self, older: str, newer: str) -> bool:
        """Return whether `newer` contains `older`; False where git does not have one of them."""
        args = ("merge-base", "--is-ancestor", older, newer)
        return self.run("compare commits", *args, accept=(0, 1, 128))[0] == 0

    def diff_trees(self, old: str, new: str, *paths: str) -> Changes:
        """Return the files that differ between two trees or commits. A rename is a removal and an addition."""
        args = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", old, new, "--", *paths)
        return dict(parse_raw(self.read("compare trees", *args)))

    def list_tree(self, tree: str, *paths: str) -> dict[str, Version]:
        """Return the files of a tree or commit, or those of `paths`."""
        args = ("ls-tree", "-r", "-z", "--full-tree", tree, "--", *paths)
        found: dict[str, Version] = {}
        for line in split_items(self.read("list the files", *args)):
            head, _, path = line.partition("\t")
            mode, _, blob = head.split(" ")
            found[path] = Version(mode, blob)
        return found

    def read_blobs(self, ids: Iterable[str]) -> dict[str, bytes]:
        """Return the content of each object that exists, by id."""
        lines = "".join(f"{each}\n" for each in dict.fromkeys(ids)).encode()
        out = self.read("read old files", "cat-file", "--batch", stdin=lines) if lines else b""
        return {found.id: found.data for found in read_objects(io.BytesIO(out)) if found.kind}

    def read_sizes(self, ids: Iterable[str]) -> dict[str, int]:
        """Return the bytes of each blob that exists, without reading it."""
        lines = "".join(f"{each}\n" for each in dict.fromkeys(ids)).encode()
        if not lines:
            return {}
        out = self.read("read sizes", "cat-file", "--batch-check=%(objectname) %(objectsize)", stdin=lines)
        rows = (line.split(" ") for line in out.decode().splitlines())
        return {blob: int(size) for blob, size in rows if size.isdigit()}

    def store(self, data: bytes, path: str | None = None) -> str:
        """Write a blob and return its id. `path` is the file whose filters and line ends apply."""
        how = "--no-filters" if path is None else f"--path={path}"
        return self.read_text("store a note", "hash-object", "-w", "--stdin", how, stdin=data)

    def write_tree(self, tree: str, versions: Mapping[str, Version | None]) -> str:
        """Return `tree` with these versions of files, None for no file."""
        lines = [
            f"{new.mode} {new.blob}\t{path}" if new else f"0 {'0' * len(tree)}\t{path}"
            for path, new in versions.items()
        ]
        with tempfile.TemporaryDirectory(prefix="quaid-tree-") as folder:
            index = Path(folder) / "index"
            self.run("read a tree", "read-tree", tree, index=index)
            self.run("change a tree", "update-index", "-z", "--index-info", stdin=join_items(lines), index=index)
            # In a partial clone, files that nothing here is about may be missing.
            return self.read_text("write a tree", "write-tree", "--missing-ok", index=index)

    def commit_tree(
        self, tree: str, parents: Iterable[str], text: bytes, identity: Mapping[str, str], *options: str
    ) -> str:
        """Write a commit with the message `text` by `identity`, variables of git's. No branch moves."""
        named = [word for parent in parents for word in ("-p", parent)]
        args = ("-c", "i18n.commitEncoding=UTF-8", "commit-tree", *options, *named, tree)
        return self.read_text("commit", *args, stdin=text, env=identity)

    def merge_text(self, current: bytes, old: bytes, new: bytes, *options: str) -> bytes | None:
        """Return `current` with the change from `old` to `new` made to it; None if they collide."""
        with tempfile.TemporaryDirectory(prefix="quaid-merge-") as folder:
            paths = [Path(folder) / name for name in ("current", "old", "new")]
            for path, data in zip(paths, (current, old, new), strict=True):
                path.write_bytes(data)
            args = ("merge-file", "-p", "--quiet", *options, *map(str, paths))
            # Any other code counts conflicts, or says that a side is binary.
            code, merged = self.run("merge a note", *args, accept=range(256))
        return merged if code == 0 else None

    def is_set(self, key: str) -> bool:
        """Return whether a setting is on."""
        return (self.query("config", "--type=bool", "--get", key) or b"").strip() == b"true"

    def list_changed(self, *paths: str, config: Sequence[str] = ()) -> list[str]:
        """Return "XY path" for each file that differs from HEAD or is untracked, as `git status --porcelain` does."""
        args = ("status", "--porcelain", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=all")
        return split_items(self.read("look for changes", *config, *args, "--", *paths))

    @contextmanager
    def stream(self, *args: str, env: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
        """Yield a git process that is read while it runs; it ends with the block. `env` is added."""
        steering.check(self.repository)
        top = self.repository.top
        process = _start(["-C", str(top), *QUIET, *args], {**self._environment(), **(env or {})})
        assert process.stdin is not None
        assert process.stderr is not None
        try:
            yield process
            with suppress(BrokenPipeError):
                process.stdin.close()
            stderr = process.stderr.read().decode("utf-8", "replace")
            if process.wait():
                raise explain(f"run {args[0]}", stderr, top)
        finally:
            if process.poll() is None:
                process.kill()
            for stream in (process.stdin, process.stdout, process.stderr):
                with suppress(OSError, AttributeError):
                    stream.close()  # type: ignore[union-attr]
            process.wait()

    @contextmanager
    def reading(self, env: Mapping[str, str] | None = None) -> "Iterator[ObjectReader]":
        """Yield a reader of objects; `env` is added to git's environment."""
        with self.stream("cat-file", "--batch", env=env) as process:
            yield ObjectReader(process)

    def iterate_objects(self, folder: Path | None = None) -> Iterator[GitObject]:
        """Yield every object of the repository, or of another object `folder`, in their order on the disk: also those
        that no branch reaches.

        Raises:
            GitError: one cannot be read, though git may have another copy of it.
        """
        store = folder or self.repository.common_dir / "objects"
        args = ("cat-file", "--batch-all-objects", "--batch", "--buffer", "--unordered")
        errors: list[bytes] = []
        with self.stream(*args, env={"GIT_OBJECT_DIRECTORY": str(store)}) as process:
            assert process.stdout is not None
            assert process.stdin is not None
            # Read meanwhile: git, which may have an error for each object, would wait until somebody does.
            listener = threading.Thread(target=errors.extend, args=(process.stderr,), daemon=True)
            listener.start()
            for found in read_objects(process.stdout):
                if found.kind:
                    yield found
                else:
                    errors.append(f"{found.id} is damaged".encode())
            process.stdin.close()
            listener.join()
            if damage := [line for line in errors if not line.startswith((b"warning:", b"hint:"))]:
                step = "Repair it, or delete its file if nothing needs it: git fsck --full says what does"
                raise GitError(
                    f"read all objects of {store}", f"{damage[0].decode('utf-8', 'replace').strip()}. {step}"
                )

    def _environment(self) -> dict[str, str]:
        repository = self.repository
        environment = quiet_environment(repository.top)
        if repository.top == repository.git_dir:  # a bare repository has no work tree
            del environment["GIT_WORK_TREE"]
            environment["GIT_DIR"] = str(repository.git_dir)
        return {**environment, **self._env}


class ObjectReader:
    """Reads objects one at a time. Made by `Git.reading`."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin, self._stdout = process.stdin, process.stdout

    def find(self, name: str) -> GitObject | None:
        """Return the object that an id or an expression such as `HEAD:path` names; None if it does not exist."""
        with suppress(BrokenPipeError):  # `Git.stream` says why
            self._stdin.write(name.encode("utf-8", "surrogateescape") + b"\n")
            self._stdin.flush()
        found = next(read_objects(self._stdout), None)
        return found if found and found.kind else None

    def read(self, object_id: str) -> GitObject:
        """Return the object with this id. Raises KeyError: there is none."""
        found = self.find(object_id)
        if found is None:
            raise KeyError(object_id)
        return found


def quiet_environment(top: Path) -> dict[str, str]:
    """Return the environment that goes with `QUIET` for the work tree at `top`."""
    return {
        "GIT_OPTIONAL_LOCKS": "0",  # a mere status must not hold a lock that the user's rebase stumbles over
        "GIT_WORK_TREE": str(top),  # core.worktree may name any folder
        # What a clone left out would be fetched in the midst of anything, by a command that its config names. Before
        # git 2.45 only the second one helps.
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
        # Both have another history read than the one that the commits' ids vouch for.
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_GRAFT_FILE": os.devnull,
    }


def execute(
    args: Sequence[str], stdin: bytes, env: Mapping[str, str], handles: Sequence[int] = ()
) -> tuple[int, bytes, str]:
    """Run git to its end and return exit code, stdout and stderr."""
    process = _start(args, env, handles)
    out, err = process.communicate(stdin)
    return process.returncode, out, err.decode("utf-8", "replace")


def execute_in_time(
    args: Sequence[str],
    env: Mapping[str, str],
    timeout_s: float,
    progress: Progress | None = None,
    max_file_bytes: int | None = None,
) -> tuple[int, bytes, str]:
    """Run git as `execute` does, in a session of its own: it has no terminal to ask at, and can be ended with all that
    it has started. A file that git writes may have `max_file_bytes`, where the system limits that (Linux).

    Raises:
        TimeoutError: it took longer than `timeout_s`, and was ended.
    """
    process = _start(args, env, own_session=True)
    if max_file_bytes is not None:
        import resource

        if prlimit := getattr(resource, "prlimit", None):
            with suppress(ProcessLookupError, PermissionError):  # of the process, and of all that it will start
                prlimit(process.pid, resource.RLIMIT_FSIZE, (max_file_bytes, max_file_bytes))
    parts: list[str] = []
    stderr, process.stderr = process.stderr, None  # which `communicate` would read as well

    def listen() -> None:
        while part := stderr.read1(4096).decode("utf-8", "replace"):  # type: ignore[union-attr]
            parts.append(part)
            if progress is not None and (found := PROGRESS.findall(part)):
                progress(found[-1][0], int(found[-1][1]), int(found[-1][2]))

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    out = None
    try:
        out, _ = process.communicate(timeout=timeout_s)
        listener.join(1.0)
    except subprocess.TimeoutExpired:
        raise TimeoutError from None
    finally:
        if out is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return process.returncode, out, "".join(parts)


def _start(
    args: Sequence[str], env: Mapping[str, str], handles: Sequence[int] = (), *, own_session: bool = False
) -> subprocess.Popen[bytes]:
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or _KEPT_VARIABLES.fullmatch(name)
    }
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    environment = {**inherited, "LC_ALL": "C", "LANGUAGE": "C", **env}
    try:
        return subprocess.Popen(
            ["git", *args], env=environment, pass_fds=tuple(handles), start_new_session=own_session, **pipes
        )
    except (FileNotFoundError, NotADirectoryError) as error:
        raise GitMissingError from error


def explain(doing: str, stderr: str, top: Path) -> QuaidError:
    """Return the error for what git printed when it refused."""
    if _LEFT_OUT.search(stderr):
        return LeftOutError(doing)
    return DiskFullError(top) if _DISK_FULL.search(stderr) else GitError(doing, stderr)


def split_items(out: bytes) -> list[str]:
    """Return the items of output made with -z; empty ones are left out."""
    return [item.decode("utf-8", "surrogateescape") for item in out.split(b"\0") if item]


def join_items(items: Iterable[str]) -> bytes:
    """Return the input for commands with -z."""
    return b"".join(item.encode("utf-8", "surrogateescape") + b"\0" for item in items)


def split_log(out: bytes, count: int) -> Iterator[tuple[list[str], list[str]]]:
    """Yield (`count` fields, all that follows them) of each commit that `git log -z` prints in a format that begins
    with a slash as a separate field. No path and no line of --raw is a slash, so the next one begins the next commit.
    """
    items = out.decode("utf-8", "surrogateescape").split("\0")
    place = 0
    while place < len(items) and items[place] == "/":
        start = place + 1 + count
        end = next((i for i in range(start, len(items)) if items[i] == "/"), len(items))
        yield items[place + 1 : start], items[start:end]
        place = end


def parse_raw(out: bytes) -> Iterator[tuple[str, tuple[Version | None, Version | None]]]:
    """Yield (path, (old, new)) of each change in git's raw diff format with -z."""
    fields = iter(split_items(out))
    for head in fields:
        old_mode, new_mode, old, new, _ = head.lstrip("\n:").split(" ")
        before, after = (
            None if mode == "000000" else Version(mode, blob) for mode, blob in ((old_mode, old), (new_mode, new))
        )
        yield next(fields), (before, after)


def read_objects(stream: IO[bytes]) -> Iterator[GitObject]:
    """Yield each object that `git cat-file --batch` prints."""
    while words := (line := stream.readline()).split():
        if line.endswith(b" missing\n") or len(words) != 3:
            yield GitObject(words[0].decode("utf-8", "replace"), "", b"")
            continue
        data = stream.read(int(words[2]))
        stream.read(1)
        yield GitObject(words[0].decode(), words[1].decode(), data)


def parse_tree_object(tree: GitObject) -> Iterator[tuple[bytes, Version]]:
    """Yield (name, version) of each entry of a tree: "mode name", a zero and the bytes of the id, one after another."""
    entries = re.findall(rb"(\d+) ([^\0]+)\0(.{%d})" % (len(tree.id) // 2), tree.data, re.DOTALL)
    return ((name, Version(mode.decode(), blob.hex())) for mode, name, blob in entries)


def hash_blob(data: bytes, like: str) -> str:
    """Return the id of a blob of `data` as it is, no filter applied, in the hash that the id `like` is of."""
    algorithm = hashlib.sha256 if len(like) == 64 else hashlib.sha1
    return algorithm(b"blob %d\0" % len(data) + data).hexdigest()
