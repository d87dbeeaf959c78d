"""What one question may see and how hard it is tried: the options of a recall."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Literal

from quaid.index.scope import EVERYTHING, Scope, visible_to
from quaid.recall.evidence import Weights

if TYPE_CHECKING:
    import apsw

Depth = Literal["fast", "auto", "deep"]
_KIND_CONDITIONS = {
    "fact": "d.kind = 'fact'",
    "turn": "d.kind = 'episode' AND c.turn IS NOT NULL",
    "entity": "d.kind = 'entity'",
    "note": "(d.kind IN ('note', 'core', 'review') OR d.kind = 'episode' AND c.turn IS NULL)",
    "snippet": "d.kind = 'snippet'",
    "journal": "d.kind = 'journal'",
    "doc": "d.kind = 'doc'",
}
KINDS = tuple(_KIND_CONDITIONS)
"""Kinds of hits."""


@dataclass(frozen=True, slots=True)
class RecallOptions:
    """What one question may see.

    `limit` None means by the size of the memory. `owners` are the names of the one who asks: private notes of others
    are never seen, empty sees all. `projects` leaves what belongs to one of them or to no project. `exclude_session`
    is the one that is going on, whose turns the asker still has before it; what was said up to `compacted_at` it has no
    longer. `first` and `last` are the days between which a memory was made; what has no date is in. `at` asks what was
    true on that day. `budget` is in tokens. `keyword_only` is `quaid search`.
    """

    limit: int | None = None
    kinds: frozenset[str] = frozenset()
    owners: frozenset[str] = frozenset()
    privacies: frozenset[str] = frozenset()
    statuses: frozenset[str] = frozenset()
    projects: frozenset[str] = frozenset()
    exclude_session: str | None = None
    compacted_at: datetime | None = None
    first: date | None = None
    last: date | None = None
    at: date | None = None
    superseded: bool = False
    keyword_only: bool = False
    depth: Depth = "auto"
    budget: int | None = None
    context: bool = False
    weights: Weights = field(default_factory=Weights)
    now: datetime | None = None


def scope_of(connection: apsw.Connection, options: RecallOptions) -> Scope:
    """What a question with these options may see at all. Kinds are not part of it: what is not shown still speaks for
    what is.
    """
    scope = visible_to(connection, options.owners) if options.owners else EVERYTHING
    if options.privacies:
        scope = scope.narrowed(_among("d.privacy", "privacies"), privacies=json.dumps([*options.privacies]))
    if options.statuses:
        scope = scope.narrowed(_among("d.status", "statuses"), statuses=json.dumps([*options.statuses]))
    if options.projects:
        condition = f"(d.project IS NULL OR {_among('d.project', 'projects')})"
        scope = scope.narrowed(condition, projects=json.dumps([*options.projects]))
    if options.exclude_session is not None:
        scope = _without_session(scope, options.exclude_session, options.compacted_at)
    if options.first is not None:
        scope = scope.narrowed("", f"coalesce({_DAY}, :first) >= :first", first=options.first.isoformat())
    if options.last is not None:
        scope = scope.narrowed("", f"coalesce({_DAY}, :last) <= :last", last=options.last.isoformat())
    return scope


def of_kinds(scope: Scope, kinds: frozenset[str]) -> Scope:
    """`scope`, and in it only what is shown as one of `kinds`."""
    return scope.narrowed("", f"({' OR '.join(_KIND_CONDITIONS[kind] for kind in sorted(kinds))})")


_DAY = "substr(coalesce(c.said_at, d.created), 1, 10)"


def _among(column: str, name: str) -> str:
    return f"{column} IN (SELECT value FROM json_each(:{name}))"


def _without_session(scope: Scope, session: str, compacted_at: datetime | None) -> Scope:
    if compacted_at is None:
        return scope.narrowed("d.session IS NOT :session", session=session)
    # Times are kept to the minute, in UTC.
    gate = compacted_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M")
    condition = "(d.session IS NOT :session OR substr(coalesce(c.said_at, d.created, ''), 1, 16) <= :compacted_at)"
    return scope.narrowed("", condition, session=session, compacted_at=gate)
