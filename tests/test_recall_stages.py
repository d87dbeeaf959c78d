"""query -> hits, stage by stage: by hand-computed values and over indexes of a few notes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quaid.config import RecallSettings
from quaid.errors import EmbeddingError
from quaid.index import database, documents, graph, vectors
from quaid.index.documents import Candidate, Known
from quaid.index.matrix import VectorMatrix
from quaid.model import Edge
from quaid.recall import channels, diversity, fusion, pipeline, priors
from quaid.recall.diversity import fold, is_same, words_of
from quaid.recall.pipeline import RecallOptions, Sources
from quaid.recall.priors import PriorWeights
from quaid.recall.query import parse
from quaid.vault.notes import parse_note

NOW = datetime(2026, 11, 20, tzinfo=UTC)


# --- query


@pytest.mark.parametrize(("text", "names"), [
    ("Where does Maya Chen work?", {"maya chen", "maya", "chen", "work", "where does maya chen work"}),
    ("Maya's cat", {"maya", "cat", "maya cat"}),
    ("Maya’s cat", {"maya", "cat"}),
    ("is O'Brien at AT&T?", {"o'brien", "at&t"}),
    ("New York City", {"new york city", "new york", "york city"}),
    ("Jean-Luc", {"jean-luc"}),
    ("Straße ÉCOLE", {"strasse école"}),
])  # fmt: skip
def test_every_run_of_words_could_be_a_name(text, names):
    assert names <= set(parse(text).name_keys)


def test_longer_names_come_first_and_stop_words_are_none():
    keys = parse("a b c d e the").name_keys
    assert keys[0] == "a b c d e the"
    assert [len(key.split()) for key in keys[1:]] == sorted((len(key.split()) for key in keys[1:]), reverse=True)
    assert not {"the", "a"} & set(keys)


@pytest.mark.parametrize("text", ["", "   ", "?!", "…", "\0", "***"])
def test_a_question_without_words_finds_nothing(text):
    assert parse(text).words == ()


@settings(max_examples=200)
@given(st.text(st.characters(), max_size=60))
def test_any_text_is_a_question(text):
    query = parse(text)
    query.text.encode()
    assert all(key == key.strip() and key for key in query.name_keys)
    assert len(set(query.name_keys)) == len(query.name_keys)


# --- fusion


def test_min_max_moves_scores_to_0_and_1():
    assert fusion.min_max([(1, 10.0), (2, 6.0), (3, 2.0)]) == {1: 1.0, 2: 0.5, 3: 0.0}
    assert fusion.min_max([(1, 8.0), (2, 4.0)], floor=0.0) == {1: 1.0, 2: 0.5}
    assert fusion.min_max([(1, 3.0), (2, 3.0)]) == {1: 1.0, 2: 1.0}
    assert fusion.min_max([(1, 0.5), (2, -0.5)], floor=0.0) == {1: 1.0, 2: 0.0}
    assert fusion.min_max([]) == {}


def test_convex_weighs_the_two_channels():
    fused = fusion.convex({1: 1.0, 2: 0.5}, {2: 1.0, 3: 0.4}, 0.6)
    assert fused == pytest.approx({1: 0.4, 2: 0.8, 3: 0.24})
    assert fusion.convex({1: 0.7}, {}, 0.6) == {1: 0.7}
    assert fusion.convex({}, {1: 0.7}, 0.6) == {1: 0.7}


def test_reciprocal_rank_counts_places():
    fused = fusion.reciprocal_rank([([(1, 9.0), (2, 8.0)], 0.7), ([(2, 5.0)], 0.3)], 60)
    assert fused[1] == pytest.approx(0.7)
    assert fused[2] == pytest.approx((0.7 / 62 + 0.3 / 61) * 61)
    assert fusion.reciprocal_rank([([(1, 9.0)], 0.7), ([], 0.3)], 60) == {1: pytest.approx(1.0)}
    assert fusion.reciprocal_rank([([], 0.7), ([], 0.3)], 60) == {}


_rankings = st.dictionaries(st.integers(1, 9), st.floats(0, 100), max_size=8).map(
    lambda scores: sorted(scores.items(), key=lambda item: -item[1])
)


@given(_rankings, _rankings, st.floats(0, 1))
def test_fused_scores_stay_in_0_to_1_and_forget_nobody(keyword, vector, weight):
    ids = {i for i, _ in (*keyword, *vector)}
    convex = fusion.convex(fusion.min_max(keyword, floor=0.0), fusion.min_max(vector), weight)
    places = fusion.reciprocal_rank([(vector, weight), (keyword, 1 - weight)], 60)
    assert set(convex) == ids
    assert all(-1e-9 <= score <= 1 + 1e-9 for score in (*convex.values(), *places.values()))
    if keyword and vector:
        assert set(places) == ids


# --- priors


def candidate(chunk_id, text="words", **more):
    given_ = dict.fromkeys(Candidate._fields)
    given_ |= {"chunk_id": chunk_id, "doc_id": chunk_id, "ordinal": 0, "text": text, "path": f"{chunk_id}.md", "id": str(chunk_id),
               "kind": "fact", "title": str(chunk_id)}  # fmt: skip
    return Candidate(**(given_ | more))


def turn(chunk_id, number, speaker="Maya", doc_id=1, text="words"):
    return candidate(chunk_id, text, doc_id=doc_id, turn=number, speaker=speaker, kind="episode")


def apply(scores, candidates, graph_scores=None, entities=(), weights=None):
    weights = weights or PriorWeights(graph=0.2, speaker=0.1, neighbour=0.3, session=0.4)
    return priors.apply(scores, {c.chunk_id: c for c in candidates}, graph_scores or {}, frozenset(entities), weights)


def test_a_fact_gains_by_its_place_in_the_graph():
    assert apply({1: 0.5}, [candidate(1), candidate(2)], {2: 0.5}) == pytest.approx({1: 0.5, 2: 0.1})


def test_the_speaker_who_is_named_gains_when_only_one_is():
    turns = [turn(1, 1, "Maya Chen", doc_id=1), turn(2, 1, "Tom", doc_id=2)]
    plain = apply({1: 0.5, 2: 0.5}, turns)
    named = apply({1: 0.5, 2: 0.5}, turns, entities=["maya"])
    assert named[1] - plain[1] == pytest.approx(0.1 + 0.4 * 0.1)
    assert named[2] == plain[2]
    assert apply({1: 0.5, 2: 0.5}, turns, entities=["maya", "tom"]) == plain


def test_turns_gain_by_their_neighbours_and_their_session():
    turns = [turn(1, 1), turn(2, 2), turn(3, 4), turn(4, 1, doc_id=2)]
    scores = apply({1: 0.2, 2: 0.8, 3: 0.1, 4: 0.4}, turns)
    assert scores == pytest.approx({
        1: 0.2 + 0.3 * 0.8 + 0.4 * 0.8,
        2: 0.8 + 0.3 * 0.2 + 0.4 * 0.8,
        3: 0.1 + 0.0 + 0.4 * 0.8,
        4: 0.4 + 0.0 + 0.4 * 0.4,
    })  # fmt: skip


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_a_turn_of_several_chunks_counts_as_its_best(order):
    pieces = {1: turn(1, 1), 2: turn(2, 1)}
    scores = apply({1: 0.9, 2: 0.1, 3: 0.0}, [*(pieces[i] for i in order), turn(3, 2)])
    assert scores[3] == pytest.approx(0.3 * 0.9 + 0.4 * 0.9)


def test_an_entity_that_is_only_a_name_is_no_answer():
    bare = candidate(1, "Oslo", kind="entity", title="Oslo")
    assert apply({1: 0.5}, [bare], {1: 1.0}, weights=PriorWeights(bare_name=0.2))[1] == pytest.approx(0.1)


# --- diversity


@pytest.mark.parametrize(("one", "other", "same"), [
    ("Maya likes oat milk", "Maya likes oat milk.", True),
    ("Maya likes oat milk", "maya LIKES oat milk", True),
    ("Maya likes oat milk", "Maya likes oat milk in her coffee", False),
    ("Maya has 2 cats", "Maya has 3 cats", False),
    ("Maya manages Tom", "Tom manages Maya", False),
    ("", "", False),
    (" ".join(f"w{n}" for n in range(20)), " ".join(f"w{n}" for n in range(19)) + " other", False),
    ("a " + " ".join("bcdefghijklmnopqrstuvwxyz") + " Maya", "a " + " ".join("bcdefghijklmnopqrstuvwxyz") + " Tom", False),
    ("she will " + " ".join("bcdefghijklmnopqrstuvwxyz"), "she will not " + " ".join("bcdefghijklmnopqrstuvwxyz"), False),
    ("she will " + " ".join("bcdefghijklmnopqrstuvwxyz"), "she will so " + " ".join("bcdefghijklmnopqrstuvwxyz"), True),
])  # fmt: skip
def test_texts_say_the_same_by_their_words(one, other, same):
    assert is_same(words_of(one), words_of(other), 0.95) is same
    assert is_same(words_of(other), words_of(one), 0.95) is same


def test_folding_keeps_the_order_and_counts_what_each_stands_for():
    said = ["Maya likes tea", "Tom likes milk", "maya likes tea.", "Maya likes tea", "Zoe likes rum"]
    folded = fold([candidate(n, text) for n, text in enumerate(said)], 0.95, 10)
    assert [(c.chunk_id, count) for c, count in folded] == [(0, 3), (1, 1), (4, 1)]


def test_further_chunks_of_a_note_are_no_second_voice_but_other_turns_are():
    chunks = [
        candidate(1, "one thing", doc_id=9),
        candidate(2, "another thing", doc_id=9),
        turn(3, 1, text="hi you"),
        turn(4, 2, text="oh well"),
    ]
    assert [c.chunk_id for c, _ in fold(chunks, 0.95, 10)] == [1, 3, 4]


def test_folding_stops_at_the_limit():
    many = [candidate(n, f"fact number {n}") for n in range(20)]
    assert [c.chunk_id for c, _ in fold(many, 0.95, 3)] == [0, 1, 2]
    assert fold([], 0.95, 3) == []


@given(
    st.lists(st.sampled_from(["Maya likes tea", "maya likes tea", "Tom likes tea", "Tea", ""]), max_size=12),
    st.integers(1, 5),
)
def test_folding_counts_every_note_once(texts, limit):
    folded = fold([candidate(n, text) for n, text in enumerate(texts)], 0.95, limit)
    assert len(folded) <= limit
    assert sum(count for _, count in folded) <= len(texts)
    if len(folded) < limit:
        assert sum(count for _, count in folded) == len(texts)


# --- channels and the whole


class ByWords:
    """An embedder in which every word is a direction: cosine is word overlap."""

    fingerprint, dimension, duplicate_similarity = "by-words", 64, 0.95

    def embed(self, texts):
        made = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in zip(made, texts, strict=True):
            for word in text.lower().replace(".", " ").replace(":", " ").split():
                row[sum(map(ord, word)) % self.dimension] += 1
        return made / np.maximum(np.linalg.norm(made, axis=1, keepdims=True), 1e-9)

    def embed_query(self, text):
        return self.embed([text])[0]


NOTES = {
    "facts/a.md": "---\nid: 01a\n---\n[[Maya Chen]] takes oat milk in her coffee.\n\n- [[Maya Chen]] prefers [[Oat milk]]\n",
    "facts/b.md": "---\nid: 01b\nvalid_until: 2026-01-01\n---\nMaya Chen takes cow milk in her coffee.\n",
    "facts/c.md": "---\nid: 01c\nsuperseded_by: '[[a]]'\n---\nMaya Chen takes no milk in her coffee.\n",
    "facts/d.md": "---\nid: 01d\n---\nThe boiler was repaired in March.\n",
    "entities/Maya Chen.md": "---\nid: 01m\ntype: person\naliases: [Maya]\n---\n- works_at [[Acme]]\n",
    "entities/Acme.md": "---\nid: 01n\ntype: organization\n---\n- located_in [[Oslo]]\n",
    "episodes/s1.md": "---\nid: 01e\ntype: episode\nsession: s1\n---\n**Maya**: the heating broke ^t1\n\n**Tom**: call the plumber ^t2\n",
    "own/Trip.md": "# Plans\n\nhike around the fjord\n",
}


@pytest.fixture
def index():
    connection, _ = database.connect_writer(":memory:")
    for path, text in NOTES.items():
        note = parse_note(path, text.encode())
        documents.replace_document(connection, note, Known(1, 1, 1, 1, 1, note.content_hash))
    yield connection
    connection.close()


def embed(connection, embedder):
    row = vectors.use_embedder(connection, embedder.fingerprint, embedder.dimension, {})
    pending = vectors.list_pending(connection, 1000)
    made = embedder.embed([text for _, _, text in pending])
    vectors.insert(
        connection, row, [(i, key, v.astype("<f4").tobytes()) for (i, key, _), v in zip(pending, made, strict=True)]
    )


def ask(connection, text, embedder=None, recall_settings=None, **options):
    sources = Sources(connection, connection, lambda _: embedder, VectorMatrix())
    return pipeline.recall(sources, text, recall_settings or RecallSettings(), RecallOptions(**{"now": NOW, **options}))


def paths(answer):
    return [hit.path for hit in answer.hits]


def test_without_vectors_recall_goes_on_and_says_so(index):
    answer = ask(index, "Who takes oat milk?")
    assert paths(answer)[0] == "facts/a.md"
    assert answer.degraded == ("vectors",)


def test_a_hit_says_why(index):
    embed(index, ByWords())
    answer = ask(index, "Which milk does Maya Chen take in coffee?", ByWords())
    hit = answer.hits[0]
    assert answer.degraded == ()
    assert (hit.id, hit.kind, hit.path, hit.edges) == (
        "01a",
        "fact",
        "facts/a.md",
        (Edge("Maya Chen", "prefers", "Oat milk"),),
    )
    assert set(hit.channels) == {"keyword", "vector", "graph"}
    assert hit.channels["keyword"].rank == 1
    assert hit.via == ("Maya Chen prefers Oat milk",)
    assert answer.trace["entities"] == ["maya", "maya chen"]


def test_what_is_over_is_left_out_unless_asked_for(index):
    assert not {"facts/b.md", "facts/c.md"} & set(paths(ask(index, "milk coffee")))
    everything = ask(index, "milk coffee", superseded=True)
    assert {"facts/b.md", "facts/c.md"} <= set(paths(everything))
    assert {hit.path for hit in everything.hits if hit.superseded} == {"facts/b.md", "facts/c.md"}


def test_a_fact_holds_to_the_end_of_its_last_day(index):
    on_the_day, the_day_after = datetime(2026, 1, 1, 23, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
    assert "facts/b.md" in paths(ask(index, "cow milk", now=on_the_day))
    assert "facts/b.md" not in paths(ask(index, "cow milk", now=the_day_after))


@pytest.mark.parametrize(("question", "kinds", "found"), [
    ("heating plumber", {"turn"}, {("turn", "s1#t1"), ("turn", "s1#t2")}),
    ("fjord hike", {"note"}, {("note", "own/Trip.md")}),
    ("Acme Oslo", {"entity"}, {("entity", "01n"), ("entity", "01m")}),
    ("boiler heating fjord", {"fact"}, {("fact", "01d")}),
])  # fmt: skip
def test_kinds_narrow_the_answer(index, question, kinds, found):
    assert {(hit.kind, hit.id) for hit in ask(index, question, kinds=frozenset(kinds)).hits} == found


def test_the_graph_finds_one_hop_on(index):
    found = channels.entities(index, parse("Where does Maya work?"))
    by_path = {c.path: found.scores.get(c.doc_id) for c in documents.fetch_candidates(index, range(100)).values()}
    assert found.entities == {"maya", "maya chen"}
    assert by_path["entities/Maya Chen.md"] >= 0.5
    assert 0 < by_path["entities/Acme.md"] <= channels.HOP_DECAY
    assert by_path["facts/d.md"] is None
    assert "entities/Acme.md" in paths(ask(index, "Maya"))


def test_an_edge_the_question_speaks_of_is_the_better_reason(index):
    ids = {document.path: document.doc_id for document in documents.find_documents(index, "1")}
    milk = channels.entities(index, parse("What milk does Maya Chen prefer?")).scores
    assert milk[ids["facts/a.md"]] > milk[ids["entities/Maya Chen.md"]]


def test_of_nested_names_only_the_longest_is_meant(index):
    for path in ("entities/York.md", "entities/New York.md"):
        note = parse_note(path, b"---\ntype: place\n---\n")
        documents.replace_document(index, note, Known(1, 1, 1, 1, 1, note.content_hash))
    assert channels.entities(index, parse("a trip to New York")).entities == {"new york"}
    assert set(graph.find_entities(index, ["york", "new york"])) == {"york", "new york"}


@pytest.mark.parametrize("question", ["Maya Chen", "maya", "Maya?", "01a", "own/Trip.md"])
def test_what_is_named_outright_comes_first(index, question):
    hit = ask(index, question).hits[0]
    assert hit.path in {"entities/Maya Chen.md", "facts/a.md", "own/Trip.md"}
    assert hit.score >= 1.0


def test_search_is_words_alone(index):
    embed(index, ByWords())
    answer = ask(index, "milk", ByWords(), keyword_only=True)
    assert paths(answer)[0] == "facts/a.md"
    assert all(set(hit.channels) == {"keyword"} for hit in answer.hits)
    assert answer.degraded == ()


@pytest.mark.parametrize("name", ["keyword", "vector", "graph"])
def test_each_channel_can_be_asked_alone(index, name):
    embed(index, ByWords())
    answer = ask(index, "Maya Chen takes oat milk in her coffee", ByWords(), channels=frozenset({name}))
    assert "facts/a.md" in paths(answer)
    assert all(set(hit.channels) <= {name} for hit in answer.hits)


def test_rank_fusion_can_be_chosen(index):
    embed(index, ByWords())
    chosen = replace(RecallSettings(), fusion="rrf")
    assert paths(ask(index, "oat milk coffee", ByWords(), chosen))[0] == "facts/a.md"


def test_a_model_that_fails_degrades_the_answer_and_no_more(index):
    class Broken(ByWords):
        def embed_query(self, text):
            raise EmbeddingError("no answer")

    embed(index, ByWords())
    answer = ask(index, "oat milk", Broken())
    assert answer.degraded == ("vectors",)
    assert paths(answer)[0] == "facts/a.md"


@pytest.mark.parametrize("question", ["", "   ", "?", "\0", "zzzz qqqq"])
def test_a_question_about_nothing_has_no_answer(index, question):
    assert ask(index, question).hits == ()


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_no_more_hits_than_asked_for_best_first(index, limit):
    hits = ask(index, "Maya milk boiler heating fjord", limit=limit).hits
    assert len(hits) <= limit
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


@settings(max_examples=100, deadline=None)
@given(st.text(st.characters(), max_size=40) | st.text("\"'*^:()-+ Maya%_\\\0", max_size=20))
def test_no_question_fails(text):
    if not _SHARED:
        connection, _ = database.connect_writer(":memory:")
        for path, note_text in NOTES.items():
            note = parse_note(path, note_text.encode())
            documents.replace_document(connection, note, Known(1, 1, 1, 1, 1, note.content_hash))
        embed(connection, ByWords())
        _SHARED.append(connection)
    assert ask(_SHARED[0], text, ByWords()).took_ms >= 0


_SHARED = []


def test_a_pasted_page_is_a_question_too(index):
    assert ask(index, "Maya takes oat milk. " + "lorem ipsum dolor " * 4000).hits


def test_the_order_does_not_depend_on_the_run(index):
    embed(index, ByWords())
    answers = [paths(ask(index, "Maya Chen milk coffee boiler", ByWords())) for _ in range(5)]
    assert answers == [answers[0]] * 5


def test_near_duplicates_are_one_hit_that_stands_for_both(index):
    note = parse_note("facts/z.md", b"Maya Chen takes oat milk in her coffee\n")
    documents.replace_document(index, note, Known(1, 1, 1, 1, 1, note.content_hash))
    hit = next(hit for hit in ask(index, "oat milk coffee").hits if hit.path in {"facts/a.md", "facts/z.md"})
    assert hit.stands_for == 2


def test_words_are_lower_case_and_what_tells_texts_apart_is_kept_in_order():
    words = words_of("Maya has 2 cats, not dogs, in Oslo")
    assert "cats" in words.all
    assert list(words.telling) == ["maya", "2", "not", "oslo"]
    assert diversity.words_of("").all == frozenset()
