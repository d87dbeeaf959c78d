"""The freshness of a document: the result of a check, and its description in words."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from quaid.docs.doubts import CERTAIN, MOST_FLAGGED
from quaid.errors import count

ChangeKind = Literal["added", "modified", "renamed", "deleted"]
Status = Literal["fresh", "stale", "moved", "no sources", "no history", "record"]
"""`moved`: its sources changed, and nothing certain that it names. `no sources`: nothing is known of what it describes.
`no history`: it, or its sources, are in no repository that can be read. `record`: it describes how something was.
"""
WORDS: Mapping[Status, str] = {
    "fresh": "true",
    "stale": "stale",
    "moved": "sources moved",
    "no sources": "unknown",
    "no history": "cannot be checked",
    "record": "a record, not checked",
}
"""The states as they are shown."""
UNKNOWN: Mapping[str, str] = {
    "no sources": "unknown: it names nothing that is known",
    "record": "a record of how it was, not checked",
}
PARTS: Mapping[str, str] = {
    "added": "is new",
    "removed": "is gone",
    "renamed": "has another name",
    "signature": "changed",
    "help": "has another help text",
    "body": "works differently",
}
"""What changed of a symbol, as it is shown."""
_MIN_STALE = 3
"""Documents that may be stale however few a project has."""


@dataclass(frozen=True, slots=True)
class SourceCommit:
    """A commit that changed a source; `when` is ISO 8601, UTC."""

    id: str
    when: str
    author: str
    subject: str


@dataclass(frozen=True, slots=True)
class Doubt:
    """A changed symbol that a document names: `part` is what changed of it, `line` of the document (from 1, 0 where it
    has none) has the `sentence` in doubt, and `commit` changed the symbol.
    """

    symbol: str
    path: str
    part: str
    weight: float
    line: int = 0
    sentence: str = ""
    commit: SourceCommit | None = None


@dataclass(frozen=True, slots=True)
class SourceFinding:
    """A change of one source of a document since the document was true, and `why` it matters in a few words.

    `path` and `old_path` (of a renamed one) are relative to `top`, the repository. `before` and `after` are blobs, None
    if there was no file.
    """

    top: str
    path: str
    old_path: str | None
    before: str | None
    after: str | None
    commits: tuple[SourceCommit, ...] = ()
    why: str = ""

    @property
    def kind(self) -> ChangeKind:
        """What happened to the file."""
        if self.old_path:
            return "renamed"
        return "deleted" if self.after is None else "modified" if self.before else "added"


@dataclass(frozen=True, slots=True)
class Freshness:
    """The result of a check: a document was true at `true_at`, and `since` is the first commit that made it stale.

    `origin` is where its `sources` are named: files, and symbols as `path::name`. `certainty` is how sure it is that it
    is out of date, for its `doubts`. `updated` is the time of its last change (ISO 8601, UTC).
    """

    doc: str
    status: Status
    true_at: SourceCommit | None = None
    since: SourceCommit | None = None
    origin: str = "none"
    sources: tuple[str, ...] = ()
    findings: tuple[SourceFinding, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    certainty: float = 0.0
    updated: str | None = None
    problems: tuple[str, ...] = ()

    @property
    def is_stale(self) -> bool:
        return self.status == "stale"

    def describes(self, path: str) -> bool:
        """Return whether a file, or a symbol of it, is among the sources."""
        return any(source.partition("::")[0] == path for source in self.sources)

    @property
    def evidence(self) -> str:
        """The key of a model's verdict: the document and the changes of its sources."""
        parts = ((f.kind, f.path, f.old_path, f.before, f.after) for f in self.findings)
        joined = repr(("docs", self.doc, *parts))
        return hashlib.sha256(joined.encode("utf-8", "surrogateescape")).hexdigest()[:16]

    @classmethod
    def parse(cls, text: str) -> Freshness:
        """Read a stored result. Raises what JSON and a missing field raise."""
        shape: dict[str, Any] = json.loads(text)
        for key in ("true_at", "since"):
            shape[key] = SourceCommit(**shape[key]) if shape[key] else None
        for finding in shape["findings"]:
            finding["commits"] = tuple(SourceCommit(**commit) for commit in finding["commits"])
        for doubt in shape["doubts"]:
            doubt["commit"] = SourceCommit(**doubt["commit"]) if doubt["commit"] else None
        shape["doubts"] = tuple(Doubt(**doubt) for doubt in shape["doubts"])
        shape["findings"] = tuple(SourceFinding(**finding) for finding in shape["findings"])
        return cls(**shape | {key: tuple(shape[key]) for key in ("sources", "problems")})


def rank(found: Sequence[Freshness]) -> list[Freshness]:
    """Return the results of one project, stale by guessed symbols only the most certain of them: of the others the
    sources moved.
    """
    guessed = [one for one in found if one.origin in {"learned", "none"} and one.certainty >= CERTAIN]
    places = max(_MIN_STALE, round(MOST_FLAGGED * len(found)))
    first = {one.doc for one in sorted(guessed, key=lambda one: -one.certainty)[:places]}
    ranked = {one.doc: replace(one, status="stale" if one.doc in first else "moved") for one in guessed}
    return [ranked.get(one.doc, one) for one in found]


def describe(freshness: Freshness) -> str:
    """Describe the freshness of a document in a few words."""
    if freshness.is_stale and freshness.since:
        when = f"{freshness.since.id[:10]} of {freshness.since.when[:10]}"
        return f"stale since {when}: {describe_doubts(freshness)}, {freshness.since.subject}"
    if freshness.problems and (freshness.status != "fresh" or not freshness.sources):
        return freshness.problems[0]
    if freshness.status == "moved":
        return f"sources moved: {', '.join(finding.path for finding in freshness.findings[:3])}"
    if freshness.status == "fresh" and freshness.true_at:
        return f"true at {freshness.true_at.id[:10]}, {count(len(freshness.sources), 'source')}"
    return UNKNOWN.get(freshness.status, "its sources are in no repository")


def describe_doubts(freshness: Freshness) -> str:
    """Return the most certain doubts: `logs_list --count changed, and 2 more`."""
    first = freshness.doubts[0] if freshness.doubts else None
    if first is None:
        return f"changed with {count(len(freshness.findings), 'source')}"
    more = len(freshness.doubts) - 1
    return f"{first.symbol} {PARTS.get(first.part, first.part)}{f', and {more} more' if more else ''}"
