"""In which commit and file a blob first came, for the blobs that somebody asks about."""

from __future__ import annotations

from collections.abc import Collection

from quaid.history.git_output import parse_raw, split_log
from quaid.history.git_process import ask, explain
from quaid.history.repository import Repository


def find_first_commits(repository: Repository, blobs: Collection[str]) -> dict[str, tuple[str, str]]:
    """Blob -> (commit, path) of the oldest commit that a ref or a reflog reaches and that brought it; those that were
    never committed are left out.

    Raises:
        GitError: git refused.
    """
    if not blobs:
        return {}
    args = ("log", "--all", "--reflog", "--reverse", "-m", "--root", "--raw", "--no-abbrev", "--no-renames", "-z")
    code, out, stderr = ask(repository, [*args, "--format=/%x00%H%x00"])
    if code:
        raise explain("read the history", stderr, repository.top)
    found: dict[str, tuple[str, str]] = {}
    for (commit,), changes in split_log(out, 1):
        raw = "\0".join(changes).encode("utf-8", "surrogateescape")
        for path, _, after in parse_raw(raw.strip(b"\0\n") + b"\0") if raw.strip(b"\0\n") else ():
            if after is not None and after.blob in blobs:
                found.setdefault(after.blob, (commit, path))
    return found
