"""The commit at which each document was last true: its own last real change, or the one that its owner has noted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from quaid.docs import significance, sources, staleness
from quaid.docs.cases import Case
from quaid.docs.trees import Tree
from quaid.errors import GitError
from quaid.history.source_repository import MAX_COMMITS, LoggedCommit, Touch
from quaid.history.vault_history import History
from quaid.vault import files, notes


class _Life(NamedTuple):
    """What the history tells of a document: the commit that it is as true as, and its changes, newest first."""

    commit: str | None
    changes: Sequence[tuple[LoggedCommit, Touch]]


def find_last_true(root: Path, cases: Sequence[Case]) -> None:
    """Fill in when each document was last true. `root` is the vault."""
    own = [case for case in cases if case.home is not None]
    for tree in {id(case.home): case.home for case in own}.values():
        assert tree is not None
        here = [case for case in own if case.home is tree]
        try:
            lives = _read_lives(tree, [tree.inside(case.doc.file) for case in here])
        except GitError as error:
            for case in here:
                case.problems.append(str(error))
            continue
        for case, life in zip(here, lives, strict=True):
            _settle(case, tree, life)
    if in_vault := [case for case in cases if case.doc.is_in_vault]:
        _find_times(root, in_vault)


def _find_times(root: Path, cases: Sequence[Case]) -> None:
    """When each document of the vault itself was last changed."""
    found = History.open_source(root)
    times: list[float | None] = [None] * len(cases)
    if found is not None:
        tree = Tree(found)
        paths = [tree.inside(case.doc.file) for case in cases]
        tree.log = found.log(MAX_COMMITS, paths)
        commits = [life.commit for life in _read_lives(tree, paths)]
        times = [tree.log.commits[tree.log.places[commit]].at if commit else None for commit in commits]
        for case, path in zip(cases, paths, strict=True):
            data = files.read_note(case.doc.folder, case.doc.rel_path) if case.said.references else None
            case.is_uncommitted = data is not None and not found.holds(path, data)
    for case, at in zip(cases, times, strict=True):
        case.at = at or _mtime(case.doc.file)
        case.updated = notes.render_time(datetime.fromtimestamp(case.at, UTC))


def _settle(case: Case, tree: Tree, life: _Life) -> None:
    stated = tree.find(case.stated) if case.stated and case.said.references else None
    log = tree.log
    if life.commit is not None:
        case.updated = staleness.commit_of(log.commits[log.places[life.commit]]).when
    if not case.said.references:
        return
    if case.stated and stated is None:
        case.problems.append(f"{case.stated[:12]} is no commit that {tree.top.name} knows")
    case.base = staleness.newest_of(log, (life.commit, stated))
    if case.base is None and log.commits:
        # Nobody has committed it: it is as new as HEAD. Or its last change is older than what can be read.
        case.base = log.commits[0].id if log.is_whole else log.commits[-1].id
    if case.base in tree.repository.boundary:
        case.problems.append(f"{tree.top.name} is a shallow clone: its history begins at {str(case.base)[:10]}")
    elif not log.is_whole and case.base == log.commits[-1].id:
        case.problems.append(f"{tree.top.name} was looked at from {case.base[:10]} on: its history is long")
    if case.base is not None:
        case.true_at = staleness.commit_of(log.commits[log.places[case.base]])
        case.at = float(log.commits[log.places[case.base]].at)
    if log.has_merges and life.changes:
        since_then = tree.after(life.changes[0][0].id)
        case.beside = [step.id for step, _ in life.changes if step.id in since_then]


def _read_lives(tree: Tree, paths: Sequence[str]) -> list[_Life]:
    """Of each document, by its path in the repository, the newest commit that changed more than its form."""
    log = tree.log
    changes = {path: _changes_that_are_left(tree, path) for path in paths}
    waiting = {path: iter(found) for path, found in changes.items()}
    found: dict[str, _Life] = {}
    while waiting:
        newest = {path: next(left, None) for path, left in waiting.items()}
        if not log.is_whole and None in newest.values():
            tree.look_further()
            if tree.log is not log:
                return _read_lives(tree, paths)
        pairs = [blob for change in newest.values() if change for blob in (change[1].before, change[1].after) if blob]
        blobs = tree.repository.read_blobs(pairs)
        for path, change in newest.items():
            if change is None:
                found[path] = _Life(None, changes[path])
            elif _is_real(path, *(blobs.get(blob or "") for blob in (change[1].before, change[1].after))):
                found[path] = _Life(_as_true_as(tree, change, waiting[path]), changes[path])
        waiting = {path: left for path, left in waiting.items() if path not in found}
    return [found[path] for path in paths]


def _changes_that_are_left(tree: Tree, path: str) -> list[tuple[LoggedCommit, Touch]]:
    """The changes of a document that a merge has not left out, newest first.

    Where it is just what one branch has made of it, nothing of the others is in it.
    """
    changes = [(step, touch) for step, touch in staleness.changes_of(tree.log, path) if not touch.is_joined]
    now = tree.repository.files.get(path) if tree.log.has_merges else None
    made = next((step for step, touch in changes if touch.after == now), None)
    if now is None or made is None:
        return changes
    beside = tree.after(made.id)
    return [(step, touch) for step, touch in changes if touch.after == now or step.id not in beside]


def _is_real(path: str, before: bytes | None, after: bytes | None) -> bool:
    return before is None or not significance.judge(path, _body(before), _body(after)).is_trivial


def _as_true_as(tree: Tree, change: tuple[LoggedCommit, Touch], older: Iterator[tuple[LoggedCommit, Touch]]) -> str:
    """Put back as it was once, a document is as true as it was then."""
    step, touch = change
    same = [past.id for past, its in older if its.after == touch.after]
    beside = tree.after(step.id) if same and tree.log.has_merges else {}
    return next((past for past in reversed(same) if past not in beside), step.id)


def _body(data: bytes | None) -> bytes | None:
    """A document without what is noted about it: who writes down its sources has not looked at what it says."""
    if data is None:
        return None
    text = sources.without_statement(data.decode("utf-8", "surrogateescape"))
    return text.encode("utf-8", "surrogateescape")


def _mtime(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
