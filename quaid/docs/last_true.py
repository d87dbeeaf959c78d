"""The commit at which each document was last true: its own last real change, or the one that its owner has noted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from quaid.docs import significance, sources
from quaid.docs.catalogue import Doc
from quaid.docs.changes import SourceCommit
from quaid.docs.file_history import FileChange, changes_of, commit_of, newest_of
from quaid.docs.freshness import SourceFinding
from quaid.docs.source_trees import SourceTree, SourceTrees
from quaid.docs.sources import References
from quaid.errors import GitError
from quaid.history.source_repository import MAX_COMMITS, LoggedCommit, open_repository
from quaid.vault import files, notes

MAX_DOC_BYTES = 2_000_000
"""The bytes of a document that are read."""


@dataclass(slots=True)
class CheckedDoc:
    """One document on its way through a check, and what is found out about it.

    `home` is the repository that a document lies in, None for one of the vault, whose sources have another history.
    `stated` is the commit at which it says, or its registry says, that it was true, `stated_at` when that was, where it
    is one of another repository; `base` the one at which it was, as far as is known, and `at` when that was, in
    seconds since 1970. `beside` are its changes on branches that were merged since: what they knew, it knows. `touches`
    are the commits of each of the `findings`, newest first. `is_in_repository` says that its sources are in one,
    `is_unreadable` that git cannot read that, `is_uncommitted` that it is a document of the vault that waits for a
    commit.
    """

    doc: Doc
    references: References
    home: SourceTree | None
    stated: str | None
    stated_at: float | None = None
    base: str | None = None
    at: float = 0.0
    beside: Sequence[str] = ()
    true_at: SourceCommit | None = None
    updated: str | None = None
    is_in_repository: bool = False
    is_unreadable: bool = False
    is_uncommitted: bool = False
    sources: list[str] = field(default_factory=list)
    findings: list[SourceFinding] = field(default_factory=list)
    touches: list[Sequence[FileChange]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, doc: Doc, trees: SourceTrees) -> CheckedDoc:
        """A document with its references, and nothing found out yet."""
        text = (files.read_note(doc.folder, doc.rel_path, MAX_DOC_BYTES) or b"").decode("utf-8", "replace")
        home = trees.open(doc.file.parent) if not doc.is_in_vault else None
        references = sources.sources_of(doc.rel_path, text, doc.sources)
        stated = sources.true_at_of(text) or doc.true_at
        return cls(doc, references, home, stated, is_in_repository=bool(trees.places(doc)))

    def find_time_stated(self, trees: Sequence[SourceTree]) -> None:
        """Fill in when the commit was made that a document of the vault names: one of these repositories knows it."""
        for tree in trees:
            commit = tree.find(self.stated or "")
            if commit is not None:
                self.stated_at = float(tree.commit(commit).at)
                return
        if trees:
            names = " or ".join(dict.fromkeys(tree.top.name for tree in trees))
            self.problems.append(f"{str(self.stated)[:12]} is not a commit that {names} knows")

    def base_in(self, tree: SourceTree) -> str | None:
        """The commit of a repository, the document's own or another one, at which the document was true."""
        if tree is self.home:
            return self.base
        if tree.log.commits and tree.log.commits[-1].at > self.at:
            tree.read_older()
        stated = tree.log.find(self.stated) if self.stated else None
        if stated is None and self.stated_at:
            stated = tree.log.at(self.stated_at)
        written = tree.log.at(self.at) if self.at else None
        base = newest_of(tree.log, (stated, written))
        if base is not None and self.true_at is None:
            self.true_at = commit_of(tree.commit(base))
        return base

    def unknown_commits(self, tree: SourceTree, base: str) -> Mapping[str, LoggedCommit]:
        """The commits of a repository that the document cannot know of, by their ids: those after its `base`."""
        after = tree.after(base)
        if tree is not self.home or not self.beside:
            return after
        after_beside = [tree.after(commit) for commit in self.beside]
        # What a merge has made of what the document knew on both sides, is not new to it.
        ours = {commit_id: commit for commit_id, commit in after.items() if len(commit.parents) < 2}
        return {id_: commit for id_, commit in ours.items() if all(id_ in others for others in after_beside)}


class _DocHistory(NamedTuple):
    """The commit that a document is as true as, and its changes, newest first."""

    commit: str | None
    changes: Sequence[FileChange]


def find_last_true(root: Path, checked: Sequence[CheckedDoc]) -> None:
    """Fill in when each document was last true. `root` is the vault."""
    for tree in {id(each.home): each.home for each in checked if each.home is not None}.values():
        here = [each for each in checked if each.home is tree]
        try:
            histories = _read_histories(tree, [tree.inside(each.doc.file) for each in here])
        except GitError as error:
            for each in here:
                each.problems.append(str(error))
            continue
        for each, history in zip(here, histories, strict=True):
            _find_base(each, tree, history)
    if in_vault := [each for each in checked if each.doc.is_in_vault]:
        _find_times_in_vault(root, in_vault)


def _find_times_in_vault(root: Path, checked: Sequence[CheckedDoc]) -> None:
    found = open_repository(root)
    times: list[float | None] = [None] * len(checked)
    if found is not None:
        tree = SourceTree(found)
        paths = [tree.inside(each.doc.file) for each in checked]
        tree.log = found.log(MAX_COMMITS, paths)
        times = [tree.commit(commit).at if commit else None for commit, _ in _read_histories(tree, paths)]
        for each, path in zip(checked, paths, strict=True):
            data = files.read_note(each.doc.folder, each.doc.rel_path) if each.references.written else None
            each.is_uncommitted = data is not None and not found.holds(path, data)
    for each, at in zip(checked, times, strict=True):
        each.at = at or _modified_at(each.doc.file)
        each.updated = notes.render_time(datetime.fromtimestamp(each.at, UTC))


def _find_base(checked: CheckedDoc, tree: SourceTree, history: _DocHistory) -> None:
    """Fill in the commit at which a document of a source repository was last true, or why it is not known."""
    stated = tree.find(checked.stated) if checked.stated and checked.references.written else None
    log = tree.log
    if history.commit is not None:
        checked.updated = commit_of(tree.commit(history.commit)).when
    if not checked.references.written:
        return
    if checked.stated and stated is None:
        checked.problems.append(f"{checked.stated[:12]} is not a commit that {tree.top.name} knows")
    base = newest_of(log, (history.commit, stated))
    if base is None and log.commits:
        # Nobody has committed it: it is as new as HEAD. Or its last change is older than what can be read.
        base = log.commits[0].id if log.is_whole else log.commits[-1].id
    if base in tree.repository.boundary:
        checked.problems.append(f"{tree.top.name} is a shallow clone: its history begins at {str(base)[:10]}")
    elif not log.is_whole and base == log.commits[-1].id:
        checked.problems.append(f"{tree.top.name} was looked at from {base[:10]} on: its history is long")
    if base is not None:
        checked.base = base
        checked.true_at = commit_of(tree.commit(base))
        checked.at = float(tree.commit(base).at)
    if log.has_merges and history.changes:
        since_then = tree.after(history.changes[0][0].id)
        checked.beside = [commit.id for commit, _ in history.changes if commit.id in since_then]


def _read_histories(tree: SourceTree, paths: Sequence[str]) -> list[_DocHistory]:
    """Return the newest commit that changed more than the form of each document, by its path in the repository."""
    log = tree.log
    changes = {path: _changes_that_merges_kept(tree, path) for path in paths}
    waiting = {path: iter(found) for path, found in changes.items()}
    found: dict[str, _DocHistory] = {}
    while waiting:
        newest = {path: next(left, None) for path, left in waiting.items()}
        if not log.is_whole and None in newest.values():
            tree.read_older()
            if tree.log is not log:
                return _read_histories(tree, paths)
        touches = [change[1] for change in newest.values() if change]
        blobs = tree.repository.read_blobs([blob for its in touches for blob in (its.before, its.after) if blob])
        for path, change in newest.items():
            if change is None:
                found[path] = _DocHistory(None, changes[path])
                continue
            before, after = (_without_notes(blobs.get(blob or "")) for blob in (change[1].before, change[1].after))
            if before is None or not significance.compare(path, before, after).is_trivial:
                found[path] = _DocHistory(_as_true_as(tree, change, waiting[path]), changes[path])
        waiting = {path: left for path, left in waiting.items() if path not in found}
    return [found[path] for path in paths]


def _changes_that_merges_kept(tree: SourceTree, path: str) -> list[FileChange]:
    """The changes of a document that a merge has not left out, newest first.

    Where it is just what one branch has made of it, nothing of the others is in it.
    """
    changes = [(commit, touch) for commit, touch in changes_of(tree.log, path) if not touch.is_joined]
    now = tree.repository.files.get(path) if tree.log.has_merges else None
    made = next((commit for commit, touch in changes if touch.after == now), None)
    if now is None or made is None:
        return changes
    beside = tree.after(made.id)
    return [(commit, touch) for commit, touch in changes if touch.after == now or commit.id not in beside]


def _as_true_as(tree: SourceTree, change: FileChange, older: Iterator[FileChange]) -> str:
    """The commit that a change makes a document as true as: put back as it was once, it is as true as it was then."""
    commit, touch = change
    same = [past.id for past, its in older if its.after == touch.after]
    beside = tree.after(commit.id) if same and tree.log.has_merges else {}
    return next((past for past in reversed(same) if past not in beside), commit.id)


def _without_notes(data: bytes | None) -> bytes | None:
    """A document without what is noted about it: who writes down its sources has not looked at what it says."""
    if data is None:
        return None
    text = sources.without_statement(data.decode("utf-8", "surrogateescape"))
    return text.encode("utf-8", "surrogateescape")


def _modified_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
