"""Merges of two machines' branches: what each side had added since they parted."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from quaid.history import repository as repositories
from quaid.history.git_output import split_items
from quaid.history.git_process import ask
from quaid.history.repository import Repository

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
    known = [f"^{since}"] if since and _ask(repository, "cat-file", "-e", f"{since}^{{commit}}") is not None else []
    span = ("--merges", f"-n{MAX_MERGES}", "HEAD", *known) if known else ("--no-walk", "--merges", "HEAD")
    listed = _ask(repository, "rev-list", "--parents", *span, "--") or ""
    parents = [line.split() for line in reversed(listed.splitlines())]
    merges = (_read(repository, *line) for line in parents if len(line) == 3)
    return [merge for merge in merges if merge is not None]


def _read(repository: Repository, commit: str, ours: str, theirs: str) -> Merge | None:
    base = (_ask(repository, "merge-base", ours, theirs) or "").strip()
    if not base or base in (ours, theirs):  # a night of the janitor's
        return None
    sides = []
    for side in (ours, theirs):
        told = _ask(repository, "diff-tree", "-r", "-z", "--no-renames", "--name-status", base, side) or ""
        items = split_items(told.encode("utf-8", "surrogateescape"))
        changes = zip(items[1::2], items[::2], strict=False)
        sides.append({repository.to_vault(path): how for path, how in changes if repository.is_in_vault(path)})
    added = [{path for path, how in side.items() if how == "A"} for side in sides]
    both = sides[0].keys() & sides[1].keys()
    return Merge(commit, frozenset(added[0] - both), frozenset(added[1] - both), frozenset(both))


def _ask(repository: Repository, *args: str) -> str | None:
    """What git says; None where it refuses."""
    code, out, _ = ask(repository, args)
    return out.decode("utf-8", "surrogateescape") if code == 0 else None
