"""Merges of two machines' branches: what each side had added since they parted."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from quaid.history import repository as repositories
from quaid.history.git import Git, split_items

MAX_MERGES = 50
"""Merges that are looked at, the newest first: more come together only where nobody has looked for months."""


class Merge(NamedTuple):
    """A merge commit. `ours` and `theirs` are the paths in the vault of the notes that each side alone has added;
    `both` are those that both have added or changed.
    """

    commit: str
    ours: frozenset[str]
    theirs: frozenset[str]
    both: frozenset[str]


def list_merges(root: Path, since: str | None) -> list[Merge]:
    """The merges that HEAD has and the commit `since` has not, oldest first; without `since` HEAD, if it is one.

    Nothing where git cannot tell: a shallow clone, no commit yet.
    """
    repository = repositories.find_repository(root)
    if repository is None:
        return []
    git = Git(repository)
    known = [f"^{since}"] if since and git.resolve(since) else []
    span = ("--merges", f"-n{MAX_MERGES}", "HEAD", *known) if known else ("--no-walk", "--merges", "HEAD")
    listed = git.query("rev-list", "--parents", *span, "--") or b""
    parents = [line.split() for line in reversed(listed.decode().splitlines())]
    merges = (_read(git, *line) for line in parents if len(line) == 3)
    return [merge for merge in merges if merge is not None]


def _read(git: Git, commit: str, ours: str, theirs: str) -> Merge | None:
    repository = git.repository
    base = (git.query("merge-base", ours, theirs) or b"").decode().strip()
    if not base or base in (ours, theirs):  # a night of the janitor's
        return None
    sides = []
    for side in (ours, theirs):
        items = split_items(git.query("diff-tree", "-r", "-z", "--no-renames", "--name-status", base, side) or b"")
        changes = zip(items[1::2], items[::2], strict=False)
        sides.append({repository.to_vault(path): how for path, how in changes if repository.is_in_vault(path)})
    added = [{path for path, how in side.items() if how == "A"} for side in sides]
    both = sides[0].keys() & sides[1].keys()
    return Merge(commit, frozenset(added[0] - both), frozenset(added[1] - both), frozenset(both))
