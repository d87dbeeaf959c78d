"""Whether a document is still true: the commit at which it was, and what its sources have become since.

Pure: a log and blobs in, findings out. Who reads them is `docs/checking.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from quaid.docs.changes import ChangeKind, SourceCommit
from quaid.history.source_repository import Log, LoggedCommit, Touch
from quaid.redaction import admit
from quaid.vault.notes import render_time

Status = Literal["fresh", "stale", "no sources", "no history"]
"""`no sources`: nothing says what it is about. `no history`: it, or they, are in no repository that can be read."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What became of one source of a document since it was true, and whether that matters.

    `path` and `old_path` (where it was renamed) are relative to `top`, the repository. `before` and `after` are blobs,
    None where it was not there. `why` says in a few words what decided, `by` who did.
    """

    top: str
    path: str
    old_path: str | None
    kind: ChangeKind
    before: str | None
    after: str | None
    commits: tuple[SourceCommit, ...] = ()
    is_trivial: bool = False
    why: str = ""
    by: Literal["filter", "model"] = "filter"


@dataclass(frozen=True, slots=True)
class Freshness:
    """How true a document is. `true_at` is the commit at which it was last, `since` the first one that made it stale.

    `origin` says where its `sources` are named, `updated` when it was last changed (ISO 8601, UTC). `edited` are
    sources that were changed and not committed yet.
    """

    doc: str
    status: Status
    true_at: SourceCommit | None = None
    since: SourceCommit | None = None
    origin: str = "none"
    sources: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    updated: str | None = None
    edited: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def is_stale(self) -> bool:
        return self.status == "stale"

    @property
    def significant(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if not finding.is_trivial)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of_json(cls, told: Mapping[str, Any]) -> Freshness:
        findings = tuple(
            Finding(**{**finding, "commits": tuple(SourceCommit(**commit) for commit in finding["commits"])})
            for finding in told["findings"]
        )
        commits: Any = {key: SourceCommit(**told[key]) if told[key] else None for key in ("true_at", "since")}
        lists: Any = {key: tuple(told[key]) for key in ("sources", "edited", "problems")}
        return cls(
            told["doc"],
            told["status"],
            origin=told["origin"],
            findings=findings,
            updated=told["updated"],
            **commits,
            **lists,
        )


@dataclass(frozen=True, slots=True)
class Trace:
    """One source followed through the commits since a document was true: where it was `then` and where it is `now`, and
    what touched it, newest first.

    `now` is None where it is gone. `has_old_name` says that the document calls it by a name that it has no longer.
    """

    then: str
    now: str | None
    touches: tuple[tuple[LoggedCommit, Touch], ...]
    has_old_name: bool = False


def commit_of(step: LoggedCommit) -> SourceCommit:
    """A commit as it is kept and told: without what is secret in its subject."""
    when = render_time(datetime.fromtimestamp(step.at, UTC))
    return SourceCommit(step.id, when, step.author, admit(step.subject).text)


def changes_of(log: Log, path: str) -> Iterator[tuple[LoggedCommit, Touch]]:
    """The commits that changed the file now at `path`, newest first, followed through its renames."""
    found: dict[str, tuple[LoggedCommit, Touch]] = {}
    waiting: list[tuple[str, LoggedCommit | None]] = [(path, None)]
    while waiting:
        name, left = waiting.pop()
        came: LoggedCommit | None = None
        for step in log.touching.get(name, ()):
            touch = next((touch for touch in step.touches if touch.path == name), None)
            if touch is None or step.id in found:
                continue
            # What had the name before the file came to it, or has it since the file left it, is another file. On a
            # branch beside, it is this one still.
            if (came and _is_before(log, step, came)) or (left and _is_before(log, left, step)):
                continue
            found[step.id] = step, touch
            if touch.old_path:
                came = step
                waiting.append((touch.old_path, step))
    yield from sorted(found.values(), key=lambda one: log.places[one[0].id])


def _is_before(log: Log, step: LoggedCommit, other: LoggedCommit) -> bool:
    is_older = log.places[step.id] > log.places[other.id]
    return is_older and (not log.has_merges or log.is_ancestor(step.id, other.id))


def newest_of(log: Log, commits: Iterable[str | None]) -> str | None:
    """The newest of those commits that are in the log."""
    return min((commit for commit in commits if commit in log.places), key=lambda c: log.places[c or ""], default=None)


def trace(log: Log, after: Mapping[str, LoggedCommit], path: str, present: Collection[str]) -> Trace | None:
    """The source that a document calls `path`, followed through the commits `after` the one at which the document was
    true; None where none of them touched it.
    """
    last = _last_name(log, after, path, present)
    touches = tuple((step, touch) for step, touch in changes_of(log, last) if step.id in after)
    if not touches:
        return None
    now = last if last in present else None
    then = last
    for _, touch in touches:
        then = touch.old_path if touch.path == then and touch.old_path else then
    return Trace(then, now, touches, has_old_name=now is not None and now != path)


def _last_name(log: Log, after: Mapping[str, LoggedCommit], path: str, present: Collection[str]) -> str:
    """Where the file of that name is now, or was when it was deleted."""
    seen = {path}
    while path not in present:
        steps = (step for step in log.touching.get(path, ()) if step.id in after)
        moves = (touch.path for step in steps for touch in step.touches if touch.old_path == path)
        moved = next((new for new in moves if new not in seen), None)
        if moved is None:
            break
        path = moved
        seen.add(path)
    return path


def draft(traced: Trace, before: str | None, after: str | None, top: str) -> Finding | None:
    """What a traced source became, by its blobs at both ends; None where it is again as it was."""
    if before == after and not traced.has_old_name:
        return None
    commits = tuple(commit_of(step) for step, _ in traced.touches)
    if traced.now is None:
        return Finding(top, traced.then, None, "deleted", before, None, commits)
    if before is None:
        return Finding(top, traced.now, None, "added", None, after, commits)
    old_path = traced.then if traced.then != traced.now else None
    kind: ChangeKind = "renamed" if traced.has_old_name else "modified"
    return Finding(top, traced.now, old_path, kind, before, after, commits)


def why_unchecked(found: Iterable[Freshness]) -> list[str]:
    """Why some of the documents cannot be checked, as sentences, each once."""
    return list(dict.fromkeys(problem for one in found if one.status == "no history" for problem in one.problems))


def first_of(findings: Iterable[Finding]) -> SourceCommit | None:
    """The commit that first made a document stale: the oldest of those that changed what matters."""
    oldest = [finding.commits[-1] for finding in findings if not finding.is_trivial and finding.commits]
    return min(oldest, key=lambda commit: commit.when, default=None)
