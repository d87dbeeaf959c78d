"""A question -> passages of docs, by the channels, fusion and doubt that memories are recalled with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from quaid.index import passages
from quaid.model import ChannelRank, Hit, Passage, Recall
from quaid.recall import pipeline
from quaid.recall.options import FEATURES, Depth, RecallOptions, Weights
from quaid.recall.pipeline import Helpers
from quaid.recall.retrieval import Sources
from quaid.settings import RecallSettings

MOST_OF_ONE = 2
"""So many passages of one doc may go before those of others: a question is often answered in two pages."""
WEIGHTS = Weights(**dict.fromkeys(FEATURES, 0.0) | {"beside": 1.0, "phrase": Weights().phrase})
"""A passage keeps no company: it counts by what it says for itself, words and likeness at the share that is configured
(`beside`, of what stands alone), and a quoted phrase. How long it is says nothing, for it was cut.
"""
_SPARE = 4
"""So many times the limit are looked at, to have others to take in between."""


@dataclass(frozen=True, slots=True)
class DocHit:
    """A passage of a doc: its markdown, the headings it stands under (outermost first) and its first and last line in
    the file. `score` is in [0, 1], that of its best chunk; `channels` says who found that and where, `stands_for` how
    many passages say the same.
    """

    doc: str
    project: str
    title: str
    heading: tuple[str, ...]
    text: str
    first_line: int
    last_line: int
    score: float
    channels: Mapping[str, ChannelRank] = field(default_factory=dict)
    stands_for: int = 1


@dataclass(frozen=True, slots=True)
class DocsFound:
    """The answer to one question, best first. `degraded` names every channel that was missing, `doubt` says why the
    best hit may be no answer.
    """

    query: str
    hits: tuple[DocHit, ...]
    degraded: tuple[str, ...] = ()
    took_ms: float = 0.0
    trace: Mapping[str, object] = field(default_factory=dict)
    doubt: str | None = None


def search(
    sources: Sources,
    query: str,
    settings: RecallSettings,
    *,
    limit: int,
    projects: frozenset[str] = frozenset(),
    depth: Depth = "auto",
    helpers: Helpers | None = None,
) -> DocsFound:
    """Passages of docs in `sources` (docs.db) that answer `query`; with `projects` of these alone. A language model is
    asked in doubt, where `helpers` has one and `depth` allows it. What is found is data: who shows it, disarms it.
    """
    # That lets through what has no project too; a doc always has one.
    options = RecallOptions(limit=max(1, limit) * _SPARE, projects=projects, depth=depth, weights=WEIGHTS)
    found = pipeline.recall(sources, query, _for_docs(settings), options, helpers)
    hits = _take_turns(_hits(sources, found))[: max(1, limit)]
    return DocsFound(query, tuple(hits), found.degraded, found.took_ms, found.trace, found.doubt)


def _for_docs(settings: RecallSettings) -> RecallSettings:
    """The settings of recall without what is about facts and conversations."""
    stages = replace(
        settings.stages, graph=False, provenance=False, contradictions=False, technical=False, neutralise=False
    )
    return replace(settings, stages=stages)


def _hits(sources: Sources, found: Recall) -> list[DocHit]:
    places = [_place(hit) for hit in found.hits]
    known = passages.fetch(sources.connection, places)
    # Where there is none its doc was changed since it was found.
    return [_doc_hit(hit, *known[place]) for hit, place in zip(found.hits, places, strict=True) if place in known]


def _doc_hit(hit: Hit, passage: Passage, title: str) -> DocHit:
    return DocHit(
        doc=hit.path,
        project=hit.project or "",
        title=title,
        heading=passage.heading,
        text=passage.text,
        first_line=passage.first_line,
        last_line=passage.last_line,
        score=min(1.0, hit.score),
        channels=hit.channels,
        stands_for=hit.stands_for,
    )


def _place(hit: Hit) -> tuple[str, int]:
    """Doc and ordinal of the passage that a hit names: `docs/recall.md#p3`."""
    return hit.path, int(hit.id.rpartition("#p")[2])


def _take_turns(hits: Sequence[DocHit]) -> list[DocHit]:
    """`hits` with at most two passages of a doc before those of others."""
    seen: Counter[str] = Counter()
    ahead: list[DocHit] = []
    behind: list[DocHit] = []
    for hit in hits:
        seen[hit.doc] += 1
        (ahead if seen[hit.doc] <= MOST_OF_ONE else behind).append(hit)
    return ahead + behind
