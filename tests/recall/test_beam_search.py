"""The graph channel: which way the beam goes, how far, and what it costs where everything is linked to one thing."""

from __future__ import annotations

import time
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import examples, for_each
from recall_index import NOTES, NOW, make_index, put

from quaid.index import documents, graph, references
from quaid.index.scope import EVERYTHING
from quaid.recall import retrieval
from quaid.recall.query import parse
from quaid.recall.retrieval import means, stems
from quaid.recall.search import Reader


def said(*edges: str) -> dict[str, str]:
    """A fact for each `subject relation object`."""
    lines = (edge.split(" ") for edge in edges)
    return {f"facts/f{n}.md": f"---\nid: f{n}\n---\nsaid\n\n- [[{s}]] {relation} [[{o}]]\n"
            for n, (s, relation, o) in enumerate(lines)}  # fmt: skip


def walk(notes, question, named=None, best=(), owner=(), **options):
    """What is found with ids for doc_ids: (scores, via, hops, entities)."""
    index = notes if hasattr(notes, "execute") else make_index(notes)
    query = parse(question, NOW, owner)
    found_named = retrieval.find_named(Reader(index, EVERYTHING), query) if named is None else frozenset(named)
    starts = [references.resolve_one(index, name).document.doc_id for name in best]
    among = (index.execute("SELECT chunk_id FROM chunks WHERE doc_id = ?", (doc_id,)).get for doc_id in starts)
    ends = graph.list_ties(index, [*among], EVERYTHING)[0].values()
    topics = [key for each in ends for subject, _, target, *_ in each for key in (subject, target) if key]
    finds = retrieval.GraphWalk(index, query.words, found_named, topics, EVERYTHING, **options)
    names = {document.doc_id: document.id for document in documents.find_documents(index, "true")}
    return (
        {names[doc_id]: score for doc_id, score in finds.scores.items()},
        {names[doc_id]: path for doc_id, path in finds.via.items()},
        {names[doc_id]: len(path) for doc_id, path in finds.via.items()},
        found_named,
    )


def test_edges_are_walked_in_both_directions():
    scores, via, hops, _ = walk(said("Ann knows Ben"), "Ben")
    assert (scores["f0"] >= retrieval.ABOUT, via, hops) == (True, {"f0": ("Ann knows Ben",)}, {"f0": 1})
    assert walk(said("Ann knows Ben"), "Ann")[1:3] == (via, hops)


def test_two_hops_and_no_more_each_worth_less():
    notes = said("Ann knows Ben", "Ben knows Cy", "Cy knows Dee", "Dee knows Eli")
    scores, via, hops, _ = walk(notes, "Ann")
    assert hops == {"f0": 1, "f1": 2}
    assert scores["f1"] <= retrieval.HOP_DECAY * scores["f0"]
    assert via["f1"] == ("Ann knows Ben", "Ben knows Cy")
    assert set(walk(notes, "Ann", depth=1)[0]) == {"f0"}
    deep = walk(notes, "Ann", depth=4)[0]
    assert list(deep) == ["f0", "f1", "f2", "f3"]
    assert sorted(deep.values(), reverse=True) == list(deep.values())


def test_only_the_most_promising_are_walked_on_from():
    first = [f"Ann knows P{n}" for n in range(6)]
    notes = said(*first, "Ann works_at Acme", *(f"P{n} knows Q{n}" for n in range(6)), "Acme located_in Oslo")
    one = walk(notes, "Where is the office Ann works at?", width=1)[1]
    two_hops = [path for path in one.values() if len(path) == 2]
    assert two_hops == [("Ann works_at Acme", "Acme located_in Oslo")]
    assert sum(len(path) == 2 for path in walk(notes, "Ann", width=3)[1].values()) == 3
    assert sum(len(path) == 2 for path in walk(notes, "Ann", width=64)[1].values()) == 7


def test_a_relation_that_the_question_means_is_the_better_way_and_both_ends_named_are_certain():
    notes = said("Ann knows Ben", "Ann works_at Acme", "Ann has_pet Rex")
    for question, best in (("What job has Ann?", "f1"), ("Has Ann a dog?", "f2"), ("Whom did Ann meet?", "f0")):
        scores = walk(notes, question)[0]
        assert max(scores, key=scores.__getitem__) == best, question
    assert walk(notes, "Do Ann and Ben know each other?")[0]["f0"] == 1.0


def test_an_entity_with_many_edges_says_less_by_each():
    """Told by the things two hops on, which have no other reason to be found."""
    few = walk(said("Ann likes X0", "X0 likes Y"), "Ann")[0]["f1"]
    many = walk(said(*(f"Ann likes X{n}" for n in range(30)), "X0 likes Y"), "Ann", width=64)[0]["f30"]
    assert 0 < many < few


def test_what_the_best_finds_are_about_is_a_start_too_and_a_weaker_one():
    notes = said("Ann knows Ben", "Ben knows Cy")
    scores, _, _, entities = walk(notes, "zzz", best=["f0"])
    assert entities == frozenset()
    assert set(scores) == {"f0", "f1"}
    assert scores["f1"] < walk(notes, "Ben")[0]["f1"]


def test_cycles_end():
    notes = said("Ann knows Ben", "Ben knows Cy", "Cy knows Ann", "Ann knows Ann")
    scores, via, _, _ = walk(notes, "Ann", depth=9)
    assert set(scores) == {"f0", "f1", "f2", "f3"}
    assert max(map(len, via.values())) <= 2


def test_nothing_named_and_nothing_found_leads_nowhere():
    assert walk(said("Ann knows Ben"), "zzz") == ({}, {}, {}, frozenset())
    assert walk({}, "Ann") == ({}, {}, {}, frozenset())


def test_all_names_of_an_entity_mean_it():
    index = make_index(NOTES)
    assert retrieval.find_named(Reader(index, EVERYTHING), parse("Where does Maya work?", NOW)) == {"maya", "maya chen"}
    scores, _, hops, _ = walk(index, "Where does Maya work?")
    assert scores["01m"] >= retrieval.ABOUT
    assert hops["01n"] == 2
    assert 0 < scores["01n"] <= retrieval.HOP_DECAY
    assert "01d" not in scores


def test_of_nested_names_only_the_longest_is_meant():
    index = make_index(NOTES)
    for path in ("entities/York.md", "entities/New York.md"):
        put(index, path, "---\ntype: place\n---\n")
    assert retrieval.find_named(Reader(index, EVERYTHING), parse("a trip to New York", NOW)) == {"new york"}
    assert set(graph.find_entities(index, ["york", "new york"])) == {"york", "new york"}


def test_the_owner_is_named_by_my():
    notes = {"entities/Maya Chen.md": "---\nid: me\ntype: person\n---\n- sibling_of [[Jo]]\n"}
    scores, via, _, entities = walk(notes, "Who is my sister?", owner=["Maya Chen"])
    assert entities == {"maya chen"}
    assert via["me"] == ("Maya Chen sibling_of Jo",)
    assert walk(notes, "Who is my sister?")[0] == {}
    assert scores["me"] > retrieval.ABOUT


@for_each(("relation", "question", "is_meant"), [
    ("works_at", "what is her job", True), ("works_at", "who works there", True), ("works_at", "where does she live", False),
    ("spouse_of", "who is his wife", True), ("parent_of", "her children", True), ("has_pet", "a dog", True),
    ("repairs_bikes", "who repaired it", True), ("repairs_bikes", "two bikes", True), ("is_at", "is at", False),
    ("works_at", "worked", True), ("works_at", "working", True), ("lives_in", "lived", True), ("owns", "owned", True),
])  # fmt: skip
def test_a_relation_is_meant_by_its_words(relation, question, is_meant):
    assert means(relation, stems(question.split())) is is_meant


def test_ten_thousand_edges_at_one_entity_stay_quick_and_hide_none():
    lines = [f"- knows [[P{n}]]" for n in range(10_000)]
    notes = {"entities/Hub.md": "---\nid: hub\ntype: person\n---\n" + "\n".join(lines) + "\n"}
    index = make_index({**notes, **said(*(f"P{n} knows Q{n}" for n in range(200)))})
    started = time.thread_time()
    scores, _, hops, _ = walk(index, "Whom does Hub know?")
    assert time.thread_time() - started < 10.0
    assert "hub" in scores
    assert max(hops.values()) == 2
    put(index, "facts/zoe.md", "---\nid: zoe\n---\nsaid\n\n- [[Hub]] likes [[Zoe]]\n")
    assert walk(index, "Does Hub like Zoe?")[0]["zoe"] == 1.0


_names = st.sampled_from("abcdefgh")
_edges = st.lists(st.tuples(_names, st.sampled_from(["knows", "likes"]), _names).map(" ".join), max_size=14)


@settings(max_examples=examples(60), deadline=None)
@given(_edges, st.lists(_names, max_size=3), st.integers(1, 3), st.integers(0, 3))
def test_any_graph_is_walked_by_real_edges_only(edges, named, width, depth):
    known = {edge.replace("_", " ") for edge in edges}
    scores, via, hops, _ = walk(said(*edges), " ".join(named), named=named, width=width, depth=depth)
    assert all(0 < score <= 1 for score in scores.values())
    for note_id, path in via.items():
        assert set(path) <= known
        assert path[-1] == edges[int(note_id[1:])]
        assert 1 <= len(path) <= depth
        assert len(path) == hops[note_id] or scores[note_id] >= retrieval.ABOUT
        for one, other in pairwise(path):
            assert set(one.split()) & set(other.split())
