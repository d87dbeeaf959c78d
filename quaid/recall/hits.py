"""Render the selected candidates as hits, with the reasons for their rank and with their neighbours."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from quaid.index import documents, graph
from quaid.index.documents import Document
from quaid.local.claimed import OTHER_PERSON
from quaid.model import ChannelRank, Edge, Hit, Kind, Neighbour, is_owner_label, name_key, note_name
from quaid.recall.candidates import hit_id, hit_kind
from quaid.recall.contradictions import AHEAD, BEHIND, LATER, RIVALS, SILENT
from quaid.recall.features import contributions, normalise
from quaid.recall.search import Chosen, Search
from quaid.recall.successors import REPLACES, Related, relate_successors
from quaid.redaction import admit
from quaid.text.endings import is_coming, is_over, is_true_on
from quaid.text.quoting import neutralise, on_one_line, shorten

EXPANDED = "second_pass"
"""The channel of what only the second pass has found."""
SOURCES = {"user": "owner", "assistant": "agent", "tool": "tool", "import": "import", OTHER_PERSON: OTHER_PERSON}
"""Whose word a note is, by its `source`, unless its speaker is another person."""
_BY_KIND = {Kind.EPISODE: "conversation", Kind.JOURNAL: "agent", Kind.SNIPPET: "agent"}
_OF_ROW = [each.name for each in fields(Hit) if each.name in Document._fields]
TURNS = 2
"""Pieces of a conversation that are fetched on either side of a turn."""
SECTIONS = 3
"""Pieces of a note that are fetched on either side of a section."""
MAX_MARKS, MAX_QUOTED = 3, 80
"""Of a memory, the other memories that its marks quote, and the characters of each."""
MOST = 25
"""The number of best hits that get neighbours: the budget has no room for more."""


def render(search: Search, chosen: Sequence[Chosen], related: Related) -> tuple[Hit, ...]:
    """Return the answer, best first. `text` is without secrets, and disarmed where that is on: what is recalled is
    data.
    """
    connection, day = search.connection, search.options.day
    candidates = [candidate for candidate, _, _ in chosen]
    ranks, shares = _rank_in_channels(search, candidates), normalise(search.profile.weights)
    owner_keys = search.sources.cache.of(connection, graph.with_aliases, search.sources.owner_names, search.scope)
    headings = list_headings(search, candidates)
    neighbours: Mapping[int, tuple[Neighbour, ...]] = {}
    if search.options.with_neighbours or search.options.budget is not None:
        neighbours = list_neighbours(search, candidates)
    hits = []
    for candidate, score, count in chosen:
        others = related.get(candidate.chunk_id, {}).values()
        ids = {hit_id(other): word for word, other in others if other is not None}
        of_row: dict[str, Any] = {name: getattr(candidate, name) for name in _OF_ROW}
        of_row |= {
            "id": hit_id(candidate),
            "kind": hit_kind(candidate),
            "text": _show(candidate.text),
            "speaker": candidate.turn_speaker or candidate.speaker,
            "created": candidate.said_at or candidate.created,
        }
        hits.append(
            Hit(
                **of_row,
                score=round(min(1.0, max(0.0, score)), 4),
                provenance=_BY_KIND.get(Kind(candidate.kind))
                or whose_word(candidate.source, candidate.speaker, owner_keys),
                superseded=is_over(candidate, day),
                edges=tuple(
                    Edge(subject, relation, target)
                    for _, relation, _, subject, target in search.reader.ends.get(candidate.doc_id, ())
                    if relation is not None
                ),
                channels=ranks[candidate.chunk_id],
                stands_for=count,
                via=search.via.get(candidate.doc_id, ()),
                contradicts=tuple(
                    hit_id(other)
                    for word, other in others
                    if word in RIVALS and other and all(is_true_on(each, day) for each in (candidate, other))
                ),
                later_than=tuple(other for other, word in ids.items() if word in {LATER, REPLACES}),
                earlier_than=tuple(other for other, word in ids.items() if word in AHEAD - {BEHIND}),
                marks=tuple(_list_marks(candidate, others, day)),
                evidence=contributions(search.features.get(candidate.chunk_id, {}), shares),
                heading=headings[candidate.chunk_id],
                beside=neighbours.get(candidate.chunk_id, ()),
            )
        )
    return tuple(hits)


def _list_marks(candidate: Document, others: Collection[tuple[str, Document | None]], day: str) -> Iterator[str]:
    """Yield what a reader must know of a memory, in words: whether it is true, what replaces or contradicts it."""
    if is_over(candidate, day):
        yield "no longer true"
    elif is_coming(candidate, day):
        yield "not true yet"
    for word, other in [each for each in others if each[0] not in SILENT][:MAX_MARKS]:
        if other is None:
            yield on_one_line(admit(word).text)
        else:
            quoted = shorten(on_one_line(admit(other.text).text), MAX_QUOTED)
            since = (other.valid_from or other.said_at or other.created or "")[:10]
            yield " ".join(filter(None, (word, since, f"“{quoted}”")))


def whose_word(source: str | None, speaker: str | None, owner_keys: Collection[str]) -> str:
    """Return the origin of a note with this source and speaker. A note without a source is the owner's. A speaker with
    none of the names in `owner_keys` is another person.
    """
    word = SOURCES.get(source or "", "owner")
    is_other = speaker and not is_owner_label(speaker) and name_key(speaker) not in owner_keys
    return OTHER_PERSON if word == "owner" and is_other else word


def _show(text: str) -> str:
    return neutralise(admit(text).text)


def _rank_in_channels(search: Search, candidates: Sequence[Document]) -> dict[int, dict[str, ChannelRank]]:
    """Return the rank and score of each candidate in each channel that found it, by chunk_id."""
    ranks: dict[int, dict[str, ChannelRank]] = {candidate.chunk_id: {} for candidate in candidates}
    for name, ranking in search.rankings.items():
        for rank, (chunk_id, score) in enumerate(ranking, 1):
            if chunk_id in ranks:
                ranks[chunk_id][name] = ChannelRank(rank, round(score, 4))
    for chunk_id in ranks.keys() & search.second_pass:
        ranks[chunk_id][EXPANDED] = ChannelRank(0, 0.0)
    for candidate in candidates:
        if (nearness := search.graph.get(candidate.doc_id)) is not None:
            rank = 1 + sum(other > nearness for other in search.graph.values())
            ranks[candidate.chunk_id]["graph"] = ChannelRank(rank, round(nearness, 4))
    return ranks


def list_neighbours(search: Search, candidates: Sequence[Document]) -> dict[int, tuple[Neighbour, ...]]:
    """Return the visible neighbours of the best `candidates`, by chunk_id, in the order of their notes."""
    connection = search.connection
    facts = {each.doc_id: each.chunk_id for each in candidates if each.kind == Kind.FACT}
    others = [each.chunk_id for each in candidates if each.kind != Kind.FACT][:MOST]
    cited = {(chunk_id, turn) for doc_id, chunk_id in facts.items() for turn in search.reader.cited.get(doc_id, ())}
    pairs = [*documents.list_adjacent(connection, others, TURNS, SECTIONS), *sorted(cited)]
    pieces = search.reader.fetch({chunk_id for _, chunk_id in pairs})
    related = Related()
    relate_successors(search, pieces.values(), related)  # what is out of date explains nothing
    for chunk_id in pieces.keys() & {each for each, others in related.items() if REPLACES not in dict(others.values())}:
        del pieces[chunk_id]
    headings = list_headings(search, pieces.values())
    found: dict[int, list[Neighbour]] = {}
    for owner, chunk_id in pairs:
        if (piece := pieces.get(chunk_id)) is not None:
            neighbour = Neighbour(
                path=piece.path,
                ordinal=piece.ordinal,
                text=_show(piece.text),
                turn=piece.turn,
                speaker=piece.turn_speaker,
                created=piece.said_at or piece.created,
                heading=headings[chunk_id],
                cited=(owner, chunk_id) in cited,
            )
            found.setdefault(owner, []).append(neighbour)
    return {owner: tuple(sorted(near, key=lambda each: (each.path, each.ordinal))) for owner, near in found.items()}


def list_headings(search: Search, candidates: Collection[Document]) -> dict[int, str]:
    """Return what is written over each of `candidates`, by chunk_id: `Title > Heading` of a section, the name of an
    entity, the title of a conversation that has one.
    """
    headings: dict[int, str] = {}
    for each in candidates:
        if each.kind in {Kind.FACT, Kind.REVIEW}:
            headings[each.chunk_id] = ""
        elif each.kind == Kind.ENTITY:
            headings[each.chunk_id] = each.title
        elif each.turn is not None:
            headings[each.chunk_id] = "" if each.title == note_name(each.path) else each.title
        else:
            headings[each.chunk_id] = search.reader.texts.get(each.chunk_id, ("", ""))[0] or each.title
    return headings
