"""The options of a recall: what one question may see and how hard it is tried."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Literal

from quaid.index.cache import AnswerCache
from quaid.index.port import IndexConnection
from quaid.index.scope import EVERYTHING, Scope, compare_time, visible_to
from quaid.text.zones import local_now

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


WEIGHTS: Mapping[str, float] = {
    # The candidate itself: the fused score of its words and its likeness to the question.
    "own": 1.0,
    # The better of the adjacent turns by another speaker, half of it in work with an assistant; of a fact, the best
    # turn that it cites.
    "beside": 0.3,
    # The best turn of its session.
    "session_best": 0.6,
    # The best fact that cites it; a fact is its own.
    "cited": 0.3,
    # The best fact from its session.
    "session_fact": 0.3,
    # It is by, or about, the one person whom the question names, the owner where it says `I` or `my`, the assistant
    # where it asks about earlier answers.
    "speaker": 0.5,
    # Logarithm of its length: `Yes, exactly!` answers little; among people.
    "length": 0.25,
    # It says `I` or `my`: people tell of themselves; among people.
    "first_person": 0.1,
    # Logarithm of the number of chunks that its turn has: the best of many is found good by chance.
    "pieces": -0.3,
    # It ends with a question; among people.
    "asks": -0.15,
    # It has what the question asks for: a time, less a number or a name. As far as it matches otherwise.
    "tells": 0.45,
    # The nearness in the graph to what the question names.
    "graph": 0.17,
    # It speaks of the day that the question names; less, it is from that day or the two after it.
    "dated": 0.5,
    # It has the question's quoted phrase.
    "phrase": 0.1,
    # It says how to answer such questions.
    "instruction": 0.6,
}
"""The default weight of each feature of a candidate. A negative weight counts against it."""
FEATURES = tuple(WEIGHTS)
DEFENDED_BY: Mapping[str, tuple[str, ...]] = {
    "all sets": ("own",),
    "BEAM, LoCoMo, REALTALK": ("session_best", "speaker"),
    "BEAM, LoCoMo": ("beside",),
    "LoCoMo, REALTALK": ("first_person", "asks", "tells", "dated"),
    "LoCoMo with facts": ("cited", "session_fact"),
    "LoCoMo": ("length",),
    "BEAM": ("pieces", "instruction"),
    "none, chosen by hand": ("graph", "phrase"),
}
"""The sets of questions that find less without a feature, and the features (docs/reference/benchmarks.md)."""


@dataclass(frozen=True, slots=True)
class Profile:
    """The formulas of a ranking. A number of 0 switches its stage off; a feature without a weight does not count."""

    weights: Mapping[str, float] = field(default_factory=lambda: WEIGHTS)
    vector_weight: float = 0.6
    """Share of the vector score in the fusion; the rest is keyword."""
    is_by_rank: bool = False
    """Rankings are fused by reciprocal rank, not by their normalised scores."""
    is_by_intent: bool = False
    """The question's intent sets `vector_weight` and raises the types of notes it asks for."""
    is_by_use: bool = False
    """Recency, frequency and confidence count besides relevance, and memories not used for long score less."""
    contiguity: float = 0.0
    """Facts from the sessions of the best hits are added, with this share of the hit's score."""
    mmr_share: float = 0.0
    """Share of relevance in maximal marginal relevance; the rest is dissimilarity to the better hits."""
    spread: float = 0.02
    """The score that the second turn of a session loses where a list is asked for; the fifth loses twice as much."""
    cut_share: float = 0.62
    """Hits under this share of the best score are not shown."""


PROFILES = {
    "default": Profile(),
    "classic": Profile(
        {"own": 1.0, "graph": 0.17, "dated": 0.25, "phrase": 0.1},
        is_by_rank=True,
        is_by_intent=True,
        is_by_use=True,
        contiguity=0.7,
        mmr_share=0.7,
        spread=0.0,
        cut_share=0.0,
    ),
}
"""`classic` is what the systems did that Quaid grew from; docs/explanation/recall.md compares the two."""


@dataclass(frozen=True, slots=True)
class RecallOptions:
    """The options of one question.

    `limit` None depends on the size of the memory. `owners` are the names of the caller, who never sees the private
    notes of others; empty sees all. `of_owners` selects memories of these owners, `but_not` excludes these ids and
    paths. `projects` selects memories of these projects or of no project. `exclude_session` is the current session,
    whose turns the caller still has in its context, except those up to `compacted_at`. `first` and `last` are the first
    and last day or moment at which a memory was made; memories without a date match. `at` selects what was true on that
    day. `budget` is in tokens of the printed answer; `with_neighbours` fetches the neighbours of each hit without a
    budget, for a caller that packs the hits itself. `keyword_only` is `quaid search`. `recent` sorts by date, newest
    first: the hits, or all memories if the question is empty. `comparable` adds the scale that compares the scores with
    those of another vault. `profile` replaces the profile in the settings.
    """

    limit: int | None = None
    kinds: frozenset[str] = frozenset()
    owners: frozenset[str] = frozenset()
    of_owners: frozenset[str] = frozenset()
    but_not: frozenset[str] = frozenset()
    privacies: frozenset[str] = frozenset()
    statuses: frozenset[str] = frozenset()
    projects: frozenset[str] = frozenset()
    exclude_session: str | None = None
    compacted_at: datetime | None = None
    first: date | None = None
    last: date | None = None
    at: date | None = None
    superseded: bool = False
    recent: bool = False
    keyword_only: bool = False
    depth: Depth = "auto"
    budget: int | None = None
    with_neighbours: bool = False
    with_ids: bool = False
    context: bool = False
    comparable: bool = False
    profile: Profile | None = None
    now: datetime | None = None

    @property
    def moment(self) -> datetime:
        """The caller's clock."""
        return self.now or local_now()

    @property
    def day(self) -> str:
        """The day on which the answer must be true, YYYY-MM-DD."""
        return (self.at or self.moment.date()).isoformat()


def scope_of(connection: IndexConnection, options: RecallOptions, cache: AnswerCache) -> Scope:
    """Return what a question with these options may see at all. Kinds are not part of it: what is not shown still
    counts for what is.
    """
    scope = cache.of(connection, visible_to, frozenset(options.owners)) if options.owners else EVERYTHING
    if options.but_not:
        condition = f"NOT ({_among('d.path', 'but_not')} OR {_among('d.id', 'but_not')})"
        scope = scope.narrowed(condition, but_not=json.dumps([*options.but_not]))
    for column, name in (("owner", "of_owners"), ("privacy", "privacies"), ("status", "statuses")):
        if wanted := getattr(options, name):
            scope = scope.narrowed(_among(f"d.{column}", name), **{name: json.dumps([*wanted])})
    if options.projects:
        condition = f"(d.project IS NULL OR {_among('d.project', 'projects')})"
        scope = scope.narrowed(condition, projects=json.dumps([*options.projects]))
    if options.exclude_session is not None:
        if options.compacted_at is None:
            scope = scope.narrowed("d.session IS NOT :session", session=options.exclude_session)
        else:
            # Times of turns are stored to the minute.
            compacted = options.compacted_at.astimezone(UTC).strftime("%Y-%m-%d %H:%M")
            known = "substr(coalesce(datetime(coalesce(c.said_at, d.created)), ''), 1, 16) <= :compacted_at"
            condition = f"(d.session IS NOT :session OR {known})"
            scope = scope.narrowed("", condition, session=options.exclude_session, compacted_at=compacted)
    for name, compared in (("first", ">="), ("last", "<=")):
        if (bound := getattr(options, name)) is not None:
            condition, value = compare_time(_MADE, compared, name, bound)
            scope = scope.narrowed("", condition, **{name: value})
    return scope


def of_kinds(scope: Scope, kinds: frozenset[str]) -> Scope:
    """Return `scope`, and in it only what is shown as one of `kinds`."""
    return scope.narrowed("", f"({' OR '.join(_KIND_CONDITIONS[kind] for kind in sorted(kinds))})")


_MADE = "coalesce(c.said_at, d.created)"


def _among(column: str, name: str) -> str:
    return f"{column} IN (SELECT value FROM json_each(:{name}))"
