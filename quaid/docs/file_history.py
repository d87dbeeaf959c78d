"""Files followed through the commits of a log, under the names that they had. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from quaid.docs.changes import SourceCommit
from quaid.history.source_repository import Log, LoggedCommit, Touch
from quaid.redaction import admit
from quaid.vault.notes import render_time

FileChange = tuple[LoggedCommit, Touch]
"""A commit, and what it did to a file."""


@dataclass(frozen=True, slots=True)
class TracedFile:
    """A source in the commits since a document was true: its path `then` and `now`, and what touched it, newest first.

    `now` is None where it is gone. `has_old_name` says that the document calls it by a name that it has no longer.
    """

    then: str
    now: str | None
    touches: tuple[FileChange, ...]
    has_old_name: bool = False


def commit_of(commit: LoggedCommit) -> SourceCommit:
    """A commit as it is kept and shown: without what is secret in its subject."""
    when = render_time(datetime.fromtimestamp(commit.at, UTC))
    return SourceCommit(commit.id, when, commit.author, admit(commit.subject).text)


def changes_of(log: Log, path: str) -> Iterator[FileChange]:
    """The commits that changed the file now at `path`, newest first, followed through its renames."""
    found: dict[str, FileChange] = {}
    waiting: list[tuple[str, LoggedCommit | None]] = [(path, None)]
    while waiting:
        name, left = waiting.pop()
        came: LoggedCommit | None = None
        for commit in log.touching.get(name, ()):
            touch = next((touch for touch in commit.touches if touch.path == name), None)
            if touch is None or commit.id in found:
                continue
            # What had the name before the file came to it, or has it since the file left it, is another file. On a
            # branch beside, it is this one still.
            if (came and _is_before(log, commit, came)) or (left and _is_before(log, left, commit)):
                continue
            found[commit.id] = commit, touch
            if touch.old_path:
                came = commit
                waiting.append((touch.old_path, commit))
    yield from sorted(found.values(), key=lambda one: log.places[one[0].id])


def _is_before(log: Log, commit: LoggedCommit, other: LoggedCommit) -> bool:
    is_older = log.places[commit.id] > log.places[other.id]
    return is_older and (not log.has_merges or log.is_ancestor(commit.id, other.id))


def newest_of(log: Log, commits: Iterable[str | None]) -> str | None:
    """The newest of those commits that are in the log."""
    return min((commit for commit in commits if commit in log.places), key=lambda c: log.places[c or ""], default=None)


def trace(log: Log, after: Mapping[str, LoggedCommit], path: str, present: Collection[str]) -> TracedFile | None:
    """The source that a document calls `path`, followed through the commits `after` the one at which the document was
    true; None where none of them touched it.
    """
    last = path  # where the file of that name is now, or was when it was deleted
    seen = {path}
    while last not in present:
        commits = (commit for commit in log.touching.get(last, ()) if commit.id in after)
        moves = (touch.path for commit in commits for touch in commit.touches if touch.old_path == last)
        moved = next((new for new in moves if new not in seen), None)
        if moved is None:
            break
        last = moved
        seen.add(last)
    touches = tuple((commit, touch) for commit, touch in changes_of(log, last) if commit.id in after)
    if not touches:
        return None
    then = last
    for _, touch in touches:
        then = touch.old_path if touch.path == then and touch.old_path else then
    now = last if last in present else None
    return TracedFile(then, now, touches, has_old_name=now is not None and now != path)
