"""`quaid log`: commits with their meaning, a run of the janitor as one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from quaid.history.authorship import Authors, Who
from quaid.janitor.vetoes import RUN
from quaid.model import Commit
from quaid.timeline.changes import MaySee, compare, list_blobs, list_spans, read_sides
from quaid.timeline.wording import name_author, tell

if TYPE_CHECKING:
    from quaid.history.vault_history import VaultCommit
    from quaid.vault.layout import Layout

MAX_READ = 300
"""A commit with more files is described by its subject alone."""
Blobs = Callable[[Iterable[str]], Mapping[str, bytes]]


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A commit, its author's role, and its meaning."""

    commit: Commit
    who: Who
    what: str


def hide(commit: Commit) -> LogEntry:
    """Return the entry of a commit that changed only another owner's private notes."""
    hidden = replace(commit, subject="", body="", trailers={}, files=())
    return LogEntry(hidden, "other", "what another owner keeps private")


def list_entries(list_commits: Callable[[int], list[Commit]], limit: int, *, fold: bool) -> list[list[Commit]]:
    """Return the newest `limit` entries, each as its commits; with `fold` all of a night are one, its merge first.
    `list_commits` gives the newest so many commits.
    """
    asked = limit
    while True:
        found = list_commits(asked)
        entries: dict[str, list[Commit]] = {}
        for commit in found:
            runs = commit.trailers.get(RUN, ()) if fold else ()
            entries.setdefault(next(iter(runs), commit.id), []).append(commit)
        if len(entries) >= limit or len(found) < asked:
            return list(entries.values())[:limit]
        asked *= 4


def describe(
    entries: Sequence[Sequence[Commit]],
    logged: Iterable[VaultCommit],
    read_blobs: Blobs,
    authors: Authors,
    place: Layout,
    may_see: MaySee,
) -> list[LogEntry]:
    """Return the entries in words. `logged` are their first commits with what these changed."""
    files = {entry[0].id: set(entry[0].files) for entry in entries}
    spans = {
        one.commit.id: {path: span for path, span in list_spans(one).items() if path in files[one.commit.id]}
        for one in logged
        if len(one.changes) <= MAX_READ
    }
    blobs = read_blobs(list_blobs(*spans.values()))
    described = []
    for entry in entries:
        who = name_author(entry[0], authors)
        changes = compare(*read_sides(spans.get(entry[0].id, {}), blobs), place, may_see)
        described.append(LogEntry(entry[0], who, tell(entry, changes, who)))
    return described
