"""The freshness of a document: the result of a check, and its description in words."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

ChangeKind = Literal["added", "modified", "renamed", "deleted"]
Status = Literal["fresh", "stale", "no sources", "no history"]
"""`no sources`: it describes no file. `no history`: it, or its sources, are in no repository that can be read."""
State = Literal["fresh", "edited", "stale", "no sources", "no history"]
"""A status, or `edited`: it is not stale, but its sources have uncommitted changes."""
WORDS: Mapping[State, str] = {
    "fresh": "true",
    "edited": "sources edited, not committed",
    "stale": "stale",
    "no sources": "names no sources",
    "no history": "cannot be checked",
}
"""The states as they are shown."""


@dataclass(frozen=True, slots=True)
class SourceCommit:
    """A commit that changed a source; `when` is ISO 8601, UTC."""

    id: str
    when: str
    author: str
    subject: str


@dataclass(frozen=True, slots=True)
class SourceFinding:
    """The change of one source of a document since the document was true, and whether it matters.

    `path` and `old_path` (of a renamed one) are relative to `top`, the repository. `before` and `after` are blobs, None
    if there was no file. `why` is the reason of the verdict in a few words, `by` its author.
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
    """The result of a check: a document was true at `true_at`, and `since` is the first commit that made it stale.

    `origin` is where its `sources` are named, `updated` the time of its last change (ISO 8601, UTC). `edited` are
    sources with uncommitted changes.
    """

    doc: str
    status: Status
    true_at: SourceCommit | None = None
    since: SourceCommit | None = None
    origin: str = "none"
    sources: tuple[str, ...] = ()
    findings: tuple[SourceFinding, ...] = ()
    updated: str | None = None
    edited: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def is_stale(self) -> bool:
        return self.status == "stale"

    @property
    def state(self) -> State:
        return "edited" if self.edited and not self.is_stale else self.status

    @property
    def significant(self) -> tuple[SourceFinding, ...]:
        return tuple(finding for finding in self.findings if not finding.is_trivial)

    @classmethod
    def parse(cls, text: str) -> Freshness:
        """Read a stored result. Raises what JSON and a missing field raise."""
        shape: dict[str, Any] = json.loads(text)
        for key in ("true_at", "since"):
            shape[key] = SourceCommit(**shape[key]) if shape[key] else None
        for finding in shape["findings"]:
            finding["commits"] = tuple(SourceCommit(**commit) for commit in finding["commits"])
        shape["findings"] = tuple(SourceFinding(**finding) for finding in shape["findings"])
        return cls(**shape | {key: tuple(shape[key]) for key in ("sources", "edited", "problems")})


def first_commit_of(findings: Iterable[SourceFinding]) -> SourceCommit | None:
    """Return the oldest commit that changed what matters."""
    oldest = [finding.commits[-1] for finding in findings if not finding.is_trivial and finding.commits]
    return min(oldest, key=lambda commit: commit.when, default=None)


def why_unchecked(found: Iterable[Freshness]) -> list[str]:
    """Return sentences on why documents cannot be checked, each once."""
    return list(dict.fromkeys(problem for one in found if one.status == "no history" for problem in one.problems))


def describe(freshness: Freshness) -> str:
    """Describe the freshness of a document in a few words."""
    if freshness.is_stale and freshness.since:
        changed = _count_sources(len(freshness.significant))
        when = f"{freshness.since.id[:10]} of {freshness.since.when[:10]}"
        return f"stale since {when}: {changed}, {freshness.since.subject}"
    if freshness.edited:
        return f"{_count_sources(len(freshness.edited))} edited and not committed"
    if freshness.problems and (freshness.status != "fresh" or not freshness.sources):
        return freshness.problems[0]
    if freshness.status == "fresh" and freshness.true_at:
        return f"true at {freshness.true_at.id[:10]}, {_count_sources(len(freshness.sources))}"
    return "names no sources" if freshness.status == "no sources" else "its sources are in no repository"


def _count_sources(number: int) -> str:
    return f"{number:,} {'source' if number == 1 else 'sources'}"
