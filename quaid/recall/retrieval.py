"""A query -> what the channels find: keyword, vector and exact name concurrently, then the graph."""

import math
import re
import threading
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from quaid.embed.weights import KNOWN_MODELS, is_english_only
from quaid.errors import EmbeddingError
from quaid.index import documents, fulltext, graph, listing, vectors
from quaid.index.documents import list_speakers
from quaid.index.known import find_entities
from quaid.index.port import IndexConnection
from quaid.index.references import target_of
from quaid.index.scope import Scope
from quaid.model import name_key
from quaid.recall.intent import asks_of_own_past
from quaid.recall.options import of_kinds
from quaid.recall.query import Query, list_shared_words
from quaid.recall.search import MAX_COMPLETED, ROLES, Ranking, Reader, Search
from quaid.text.language import ENGLISH, language
from quaid.text.stop_words import read_lists
from quaid.text.words import find_words

WIDTH = 5
DEPTH = 2
HOP_DECAY = 0.7
"""The part of a score that is left after one hop."""
ABOUT = 0.5
"""Score of a document that is merely about a named entity."""
START = 0.5
"""Score of an entity that the question does not name, but its best finds are about."""
MAX_ENTITIES = 8
MAX_WIDTH = 64
"""The width of the search when the beam has found nothing."""

_WHO_IS = (
    r"(?i)¿?(?:(?:and )?(?:who(?:['’]s| is| was)|tell me about|what do you know about)|(?:und )?wer ist|erzähl mir von|"  # noqa: RUF001
    r"qui est|c['’]est qui|qui[eé]n es|chi è|quem é|wie is|vem är|hvem er|kim jest|кто так(?:ой|ая)|кто это)"  # noqa: RUF001
    r" (.+)|(.+)(?:是谁|是誰|って誰|は誰(?:ですか)?)"
)
"""A question about all that is known of somebody or something."""
_ENDINGS = ("ing", "ed", "es", "s", "e")
_MIN_STEM = 3

_TRIGGERS = read_lists("relation_words.txt")
"""The words in a question that refer to a relation. A relation that is not listed has only its own words."""


def stem(word: str) -> str:
    """Return what is compared of a word in lower case: without its ending, so that `worked` is `work`."""
    ends = (ending for ending in _ENDINGS if word.endswith(ending) and len(word) - len(ending) >= _MIN_STEM)
    return word.removesuffix(next(ends, ""))


def stems(words: Collection[str]) -> frozenset[str]:
    return frozenset(map(stem, words))


_STEMS = {relation: stems(words.split()) for relation, words in _TRIGGERS.items()}


def means(relation: str, asked: Collection[str], words: str = "") -> bool:
    """Return whether one of the stems `asked` triggers `relation`, for which the vault has these `words`."""
    known = _STEMS.get(relation, frozenset()) | stems(words.split())
    return not known.isdisjoint(asked) or any(
        stem(part) in asked for part in relation.split("_") if len(part) >= _MIN_STEM
    )


def find_named(reader: Reader, query: Query) -> frozenset[str]:
    """Return the keys of the entities a question names, with all their aliases; the owner where it says `my`."""
    named = reader.find_entities([*query.name_keys, *query.owner_keys])
    longest: list[str] = []
    for key in sorted(named.keys() - {*query.owner_keys}, key=lambda key: (-len(key), key)):
        # Where `new york city` is found, the `york` inside it is not another entity.
        if not any(f" {key} " in f" {longer} " for longer in longest):
            longest.append(key)
    owner = named.keys() & {*query.owner_keys}
    return frozenset(alias for key in (*longest[:MAX_ENTITIES], *owner) for alias in named[key])


class GraphWalk:
    """A walk over the graph from `named`, the keys of what the question names, and from `topics`, the keys of what the
    best notes are about.

    It sets `scores`, the nearness in (0, 1] of each document that it leads to, by doc_id, and `via`, the edges that
    were walked to a document. It goes breadth first when the beam finds nothing.
    """

    def __init__(
        self,
        connection: IndexConnection,
        words: Collection[str],
        named: frozenset[str],
        topics: Iterable[str],
        scope: Scope,
        *,
        width: int = WIDTH,
        depth: int = DEPTH,
        relation_words: Mapping[str, str] | None = None,
    ) -> None:
        self._connection, self._scope, self._named = connection, scope, named
        self._asked = stems(words)
        self._words = relation_words or {}
        self.scores = dict.fromkeys(graph.documents_about(connection, named, scope), ABOUT) if named else {}
        self.via: dict[int, tuple[str, ...]] = {}
        start = dict.fromkeys(named, 1.0)
        for key in topics:
            start.setdefault(key, START)
        self._seen = set(start)
        self._paths: dict[str, tuple[str, ...]] = {}
        """The edges that led to each entity."""
        if start and not self._run(start, width, depth) and width < MAX_WIDTH:
            self._run(start, MAX_WIDTH, depth)

    def _run(self, start: Mapping[str, float], width: int, depth: int) -> bool:
        """Walk `depth` hops; return whether any edge led anywhere."""
        frontier = dict(sorted(start.items(), key=lambda item: (-item[1], item[0]))[: max(width, MAX_ENTITIES)])
        is_found = False
        for _ in range(depth):
            steps = graph.neighbours(self._connection, frontier, self._scope) if frontier else ()
            if not steps:
                break
            is_found = True
            reached = self._score(steps, frontier)
            best = sorted(reached.items(), key=lambda item: (-item[1], item[0]))[:width]
            self._seen.update(reached)
            frontier = {key: score * HOP_DECAY for key, score in best}
        return is_found

    def _score(self, steps: Sequence[graph.Neighbour], frontier: Mapping[str, float]) -> dict[str, float]:
        """Raise the documents that say the steps; return the new entities with the score of the best way to them."""
        fan = Counter(step.from_key for step in steps)
        reached: dict[str, float] = {}
        paths: dict[str, tuple[str, ...]] = {}
        for step in steps:
            score = frontier[step.from_key] * self._promise(step, fan[step.from_key])
            path = (*self._paths.get(step.from_key, ()), f"{step.subject} {step.relation} {step.object}")
            if step.doc_id not in self.via or score > self.scores[step.doc_id]:
                self.via[step.doc_id] = path
            self.scores[step.doc_id] = max(score, self.scores.get(step.doc_id, 0.0))
            if step.to_key not in self._seen and score > reached.get(step.to_key, 0.0):
                reached[step.to_key] = score
                paths[step.to_key] = path
        self._paths.update(paths)
        return reached

    def _promise(self, step: graph.Neighbour, fan: int) -> float:
        """Return how much a step promises, in (0, 1]: half for being an edge, the rest where the question means it.

        Both ends named is certain; a trigger word of the relation counts more than a word of the other end; an entity
        with many edges says less by each (selectivity).
        """
        if step.to_key in self._named:
            return 1.0
        other = stems(fulltext.terms(step.to_key))
        named = len(other & self._asked) / max(len(other), 1)
        triggered = 1.0 if means(step.relation, self._asked, self._words.get(step.relation, "")) else 0.0
        selective = 1.0 / (1.0 + math.log2(fan) / 4) if fan > 1 else 1.0
        return 0.5 * selective + 0.3 * triggered + 0.2 * named


MAX_FUSED = 120
"""Chunks of the fused ranking that are looked at closely; on LoCoMo more find no more (docs/explanation/recall.md)."""
MAX_RANKED = 400
"""The number of candidates from each channel."""
ANYONE = "someone"
"""Replaces a speaker in the question that is embedded."""
ACROSS_LANGUAGES = 0.8
"""The part of the least relevant cosine that is enough in another language: .20 for multilingual-e5-small. 98 % of the
answers reach that, and no more of the other texts than reach .25 in one language (docs/explanation/recall.md)."""
UNSTEMMED = 0.5
"""The part of their weight that words have in a language which the index has no stems of: it knows those of English."""
_MANY_TEXTS = 10
"""Texts whose language is that of all."""


Views = Sequence[frozenset[int] | None]
"""Sets of chunks to search, one after the other; None is all chunks."""


def retrieve(search: Search, vector: Any = None) -> None:
    """Search words and vectors concurrently, then an exact name. `vector` is the question's, where it is known from an
    earlier call: then the rankings are replaced, and the cosines added.
    """
    query, options = search.query, search.options
    if not query.words:
        return
    views = [search.visible]
    if options.kinds:  # searched separately too, as the others might fill the ranking
        views.append(search.sources.cache.chunks_in(search.connection, of_kinds(search.scope, options.kinds)))
    with _searching_words(search, views):
        if not options.keyword_only:
            with search.trace.stage("vector") as noted:
                _search_vectors(search, views, vector)
                noted["found"] = len(search.rankings.get("vector", ()))
    # In one order, whichever channel was done first.
    search.rankings = dict(sorted(search.rankings.items()))
    before = dict(search.cosines)
    _compare(search, is_new=vector is None)
    if search.embedded is not None and _is_in_another_language(search):
        search.relevant_similarity *= 1.0 if is_english_only(search.embedded[0].settings) else ACROSS_LANGUAGES
        # Is anything found by its meaning? An English model finds nothing so in Russian.
        if any(cosine >= search.relevant_similarity for _, cosine in search.rankings.get("vector", ())):
            _search_words(search, views, list_shared_words(query))
            search.cosines = before
            _compare(search, is_new=vector is None)
    if not options.keyword_only:
        with search.trace.stage("exact") as noted:
            if query.name_keys:
                search.exact = _find_called(search)
            noted["found"] = len(search.exact)


def _compare(search: Search, *, is_new: bool) -> None:
    """Give a cosine to what has none yet, for a new question estimate that of unlike texts, and fuse what was found."""
    if search.embedded is not None:
        with search.trace.stage("cosines"):
            complete_cosines(search)
            if is_new:
                row, embedded = search.embedded
                sample = search.sources.vectors.compare_newest(search.connection, row, embedded)
                # A few texts may all be like the question: of a known model it is known what unlike ones have.
                has_floor = len(sample) < vectors.SAMPLE and (
                    row.settings.get("model") in KNOWN_MODELS or search.without_vector()
                )
                search.unlike = min(sample + [0.0] * bool(has_floor), default=0.0)
    search.fuse()


def list_best(search: Search) -> tuple[list[int], list[int]]:
    """Return the chunks to look at closely, best first, and those behind them that so large a limit shows too: of all,
    and of the kinds asked for.
    """
    ranked, kinds = [*search.fused], search.options.kinds
    limit = max(MAX_FUSED, 4 * (search.options.limit or 0))
    best, rest = ranked[:MAX_FUSED], ranked[MAX_FUSED:limit]
    if kinds:
        narrow = search.sources.cache.chunks_in(search.connection, of_kinds(search.scope, kinds)) or frozenset()
        of_kind = [chunk_id for chunk_id in ranked if chunk_id in narrow]
        best, rest = [*dict.fromkeys([*best, *of_kind[:MAX_FUSED]])], [*rest, *of_kind[MAX_FUSED:limit]]
    return best, rest


def find_instructions(search: Search) -> set[int]:
    """Return the standing instructions in scope, none where the question is about what was, and not what to do."""
    if not search.profile.weights.get("instruction") or asks_of_own_past(search.query.text):
        return set()
    return {*search.sources.cache.of(search.connection, listing.list_instructions, search.scope)}


def list_called(query: Query) -> list[str]:
    """Return what a note may be called whose name is the whole question, as a link or not."""
    text = target_of(query.text)
    return [*dict.fromkeys((text, text.strip(" ?!.\"'“”")))]


def _find_called(search: Search) -> frozenset[int]:
    """Return the documents whose id, path, name, title or alias is the whole question."""
    if search.reader.refers:
        for name in list_called(search.query):
            if called := documents.find_by_reference(search.connection, name, search.scope):
                return frozenset(document.doc_id for document in called)
    asked = re.fullmatch(_WHO_IS, search.query.text.strip(" ?!.\n\uff1f。"))
    named = find_entities(search.connection, (asked[1] or asked[2]).strip(), search.scope) if asked else ()
    return frozenset(document.doc_id for document in named)


def search_graph(search: Search, best: Collection[int]) -> None:
    """Search the graph from what the question names and from what the documents `best` are about."""
    with search.trace.stage("graph") as noted:
        connection, asked = search.connection, search.query.words
        words = search.sources.cache.of(connection, graph.relation_words)
        ends = [end for doc_id in best for end in search.reader.ends.get(doc_id, ())]
        topics = [key for subject, _, target, *_ in ends for key in (subject, target) if key]
        walk = GraphWalk(connection, asked, search.named, topics, search.scope, relation_words=words)
        search.graph, search.via = walk.scores, walk.via
        noted |= {"found": len(search.graph), "named": sorted(search.named)}


def complete_cosines(search: Search, more: Collection[int] = ()) -> None:
    """Give the best of what only another channel found, and the chunks `more`, a cosine too."""
    if search.embedded is None:
        return
    search.cosines |= dict(search.rankings.get("vector", ()))
    best = search.rankings.get("keyword", ())[:MAX_COMPLETED]
    others = {chunk_id for chunk_id, _ in best}.union(more) - search.cosines.keys()
    search.cosines |= search.sources.vectors.cosines(search.connection, *search.embedded, others)


def search_statement(search: Search, statement: str) -> None:
    """Find what is like `statement`, the answer a model imagined (HyDE), and raise the cosines of what is.

    Raises:
        EmbeddingError
    """
    sources, row = search.sources, search.embedded[0] if search.embedded else None
    embedder = sources.embedder_of(row) if row else None
    if row is None or embedder is None:
        return
    vector = embedder.embed_query(statement)
    ranking = sources.vectors.search(search.connection, row, vector, MAX_RANKED, search.visible)
    computed = sources.vectors.cosines(search.connection, row, vector, search.cosines.keys())
    for chunk_id, cosine in [*ranking, *computed.items()]:
        search.cosines[chunk_id] = max(cosine, search.cosines.get(chunk_id, -1.0))
    search.rankings["hyde"] = ranking


def _is_in_another_language(search: Search) -> bool:
    """Return whether the best keyword matches, without any the best by vectors, are in another language and share at
    most one word with the question. Such a word is only spelled alike, and the answer has none of the words: only its
    meaning finds it.
    """
    query, best = search.query, (search.rankings.get("keyword") or search.rankings.get("vector", ()))[:_MANY_TEXTS]
    # With all that is looked at next, as most often nothing else is read then.
    ahead = [*list_best(search)[0], *find_instructions(search)]
    read = search.reader.fetch([*ahead, *(chunk_id for chunk_id, _ in best)])
    texts = [read[chunk_id].text for chunk_id, _ in best if chunk_id in read]
    if not query.language or query.language in map(language, texts):  # most often the first is in it
        return False
    is_foreign = 2 * [*map(language, texts)].count(None) <= len(texts) > 0
    return is_foreign and all(len(set(query.words).intersection(find_words(text))) < 2 for text in texts)


def _search_words(search: Search, views: Views, words: Sequence[str]) -> None:
    sources = search.sources
    with search.trace.stage("keyword") as noted:
        rankings = [sources.words.search(sources.second, words, MAX_RANKED, allowed) for allowed in views]
        search.rankings["keyword"] = ranking = _merge(rankings)
        noted |= {"found": len(ranking), "words": list(words)}


def _search_vectors(search: Search, views: Views, vector: Any) -> None:
    connection, sources = search.connection, search.sources
    row = next((each for each in sources.cache.of(connection, vectors.list_embedders) if each.active), None)
    embedder = sources.embedder_of(row) if row is not None else None
    if row is None or embedder is None:
        search.degraded.append("vectors")
        return
    if vector is None:
        try:
            vector = embedder.embed_query(_replace_names(search))
        except EmbeddingError as error:
            search.degraded.append(f"vectors: searched by words and graph only. {error}")
            return
        if search.query.language not in ENGLISH and not is_english_only(row.settings):
            share = 1 - search.profile.vector_weight
            search.profile = replace(search.profile, vector_weight=1 - UNSTEMMED * share)
    found = [sources.vectors.search(connection, row, vector, MAX_RANKED, allowed) for allowed in views]
    search.rankings["vector"] = _merge(found)
    search.embedded = row, vector
    search.relevant_similarity = embedder.relevant_similarity


def _replace_names(search: Search) -> str:
    """Return the question, in English with `someone` for each speaker that it names. With a name, the model prefers the
    turns addressed to that speaker to the turns by that speaker; the `speaker` feature distinguishes them better.
    """
    text = search.query.text
    if not search.profile.weights.get("speaker"):
        return text
    speakers = search.sources.cache.of(search.connection, list_speakers, search.scope)
    keys = frozenset().union(*search.called(frozenset(map(name_key, speakers))).values())
    names = {part for key in keys for part in key.split()} - ROLES
    named = names.intersection(search.query.words)
    if not named or search.query.language not in ENGLISH:
        return text
    unnamed = re.sub(r"[^\W_]+", lambda word: ANYONE if name_key(word[0]) in named else word[0], text)
    return unnamed.replace(f"{ANYONE} {ANYONE}", ANYONE)


def _merge(rankings: Sequence[Ranking]) -> Ranking:
    """Return what is in any of `rankings`, best first."""
    if len(rankings) == 1:
        return rankings[0]
    scores = {chunk_id: score for ranking in rankings for chunk_id, score in ranking}
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))


@contextmanager
def _searching_words(search: Search, views: Views) -> Iterator[None]:
    """Search the words of the question while the body runs: SQLite and the model both work outside of Python's lock."""
    sources, words = search.sources, search.query.words
    if sources.words.is_joined and not search.options.keyword_only:
        sources.words.awaited = words
        yield
        _search_words(search, views, words)
        return
    if search.options.keyword_only or sources.words.is_quick(sources.second, words):
        _search_words(search, views, words)  # a thread would take longer
        yield
        return
    failed: list[BaseException] = []

    def run() -> None:
        try:
            _search_words(search, views, words)
        except BaseException as error:  # noqa: BLE001 - raised again below, in the thread that asked
            failed.append(error)

    thread = threading.Thread(target=run, name="quaid-words")
    thread.start()
    try:
        yield
    finally:
        thread.join()
    if failed:
        raise failed[0]
