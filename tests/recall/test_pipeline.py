"""query -> hits as a whole, over indexes of a few notes: channels, cut, contradictions, budget, and stages that are off."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recall_index import NOTES, ByWords, ask, embed, everything, ids, make_index, paths, put, without

from quaid.index.vectors import VectorMatrix
from quaid.model import Edge
from quaid.recall.cutoff import tokens
from quaid.recall.options import PROFILES, Profile


def test_without_vectors_recall_goes_on_and_says_so(index):
    answer = ask(index, "Who takes oat milk?")
    assert paths(answer)[0] == "facts/a.md"
    assert answer.degraded == ("vectors",)


def test_a_hit_says_why(index):
    embed(index, ByWords())
    answer = ask(index, "Which milk does Maya Chen take in coffee?", ByWords())
    hit = answer.hits[0]
    assert answer.degraded == ()
    assert (hit.id, hit.kind, hit.path) == ("01a", "fact", "facts/a.md")
    assert hit.edges == (Edge("Maya Chen", "prefers", "Oat milk"),)
    assert set(hit.channels) == {"keyword", "vector", "graph"}
    assert hit.channels["keyword"].rank == 1
    assert hit.evidence["own"] > 0
    assert answer.trace["entities"] == ["maya", "maya chen"]
    assert answer.doubt is None


def test_search_is_words_alone(index):
    embed(index, ByWords())
    answer = ask(index, "milk", ByWords(), keyword_only=True)
    assert paths(answer)[0] == "facts/a.md"
    assert all(set(hit.channels) == {"keyword"} for hit in answer.hits)
    assert answer.degraded == ()


def test_the_graph_finds_what_has_no_word_of_the_question(index):
    quiet = everything()
    with_graph = ask(index, "Where is Maya employed?", profile=quiet)
    assert {"entities/Maya Chen.md", "entities/Acme.md"} <= set(paths(with_graph))
    acme = next(hit for hit in with_graph.hits if hit.path == "entities/Acme.md")
    assert acme.via[-1] == "Acme located_in Oslo"
    assert set(acme.channels) == {"graph"}
    alone = ask(index, "Where is Maya employed?", profile=without("graph", cut_share=0.0))
    assert "entities/Acme.md" not in paths(alone)
    assert alone.trace["entities"] == []


def test_rank_fusion_can_be_chosen(index):
    embed(index, ByWords())
    chosen = Profile(is_by_rank=True)
    assert paths(ask(index, "oat milk coffee", ByWords(), chosen))[0] == "facts/a.md"


@pytest.mark.parametrize("question", ["Maya Chen", "maya", "Maya?", "01a", "own/Trip.md"])
def test_what_is_named_outright_comes_first(index, question):
    hit = ask(index, question).hits[0]
    assert hit.path in {"entities/Maya Chen.md", "facts/a.md", "own/Trip.md"}
    assert hit.score >= 1.0


def test_an_entity_that_is_only_a_name_is_no_answer(index):
    put(index, "entities/Bare.md", "---\nid: 01bare\ntype: person\n---\n")
    put(index, "facts/bare.md", "---\nid: 01f\n---\n[[Bare]] plays the cello.\n\n- [[Bare]] plays [[Cello]]\n")
    hits = ask(index, "What instrument has Bare?", profile=everything()).hits
    assert hits[0].id == "01f"


@pytest.mark.parametrize("question", ["", "   ", "?", "\0", "zzzz qqqq"])
def test_a_question_about_nothing_has_no_answer(index, question):
    answer = ask(index, question)
    assert answer.hits == ()
    assert answer.doubt == "nothing was found"


def test_an_answer_of_nothing_that_the_question_has_is_in_doubt(index):
    class FarFromAll(ByWords):
        relevant_similarity = 2.0

        def embed_query(self, text):
            return super().embed_query("milk")

    embed(index, FarFromAll())
    answer = ask(index, "zzzz qqqq", FarFromAll())
    assert answer.trace["candidates"] > 0
    assert (answer.hits, answer.doubt) == ((), "nothing was found")


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_no_more_hits_than_asked_for_best_first(index, limit):
    hits = ask(index, "Maya milk boiler heating fjord", limit=limit).hits
    assert len(hits) <= limit
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


_SHARED = []


@settings(max_examples=100, deadline=None)
@given(st.text(st.characters(), max_size=40) | st.text("\"'*^:()-+ Maya%_\\\0", max_size=20))
def test_no_question_fails(text):
    if not _SHARED:
        _SHARED.append(make_index(NOTES, ByWords()))
    assert ask(_SHARED[0], text, ByWords()).took_ms >= 0


def test_vec0_and_the_matrix_answer_alike(index):
    embed(index, ByWords())
    matrix = VectorMatrix()
    answers = [ask(index, "oat milk in the coffee", ByWords(), everything(), matrix=matrix) for _ in range(3)]
    shown = [[(hit.id, round(hit.score, 3)) for hit in answer.hits] for answer in answers]
    assert shown[0] == shown[1] == shown[2]


def test_what_is_beside_the_point_is_not_shown_and_said_so(index):
    embed(index, ByWords())
    answer = ask(index, "Maya takes oat milk in her coffee", ByWords())
    assert "facts/d.md" not in paths(answer)
    cut = [entry["id"] for entry in answer.trace["cut"]]
    assert "01d" in cut
    assert not set(cut) & ids(answer)
    assert "facts/d.md" in paths(ask(index, "Maya takes oat milk in her coffee", ByWords(), everything()))


def test_where_several_things_are_asked_for_a_turn_counts_by_what_stands_beside_it():
    said = [
        ("Jon", "Which dances did you learn?"), ("Maya", "Rumba and tango."), ("Jon", "Splendid."), ("Maya", "A bus."),
    ]  # fmt: skip
    body = "\n\n".join(f"**{who}**: {text} ^t{number}" for number, (who, text) in enumerate(said, 1))
    index = make_index({"episodes/a.md": f"---\ntype: episode\nsession: a\n---\n{body}\n"})
    profile = Profile(cut_share=0.2)
    assert ids(ask(index, "Did anybody learn dances?", profile=profile)) == {"a#t1"}
    assert ids(ask(index, "Which dances did anybody learn?", profile=profile)) == {"a#t1", "a#t2"}
    alone = without(*COMPANY, cut_share=0.2)
    assert ids(ask(index, "Which dances did anybody learn?", profile=alone)) == {"a#t1"}


def test_near_duplicates_are_one_hit_that_stands_for_both(index):
    put(index, "facts/z.md", "Maya Chen takes oat milk in her coffee\n")
    hit = next(hit for hit in ask(index, "oat milk coffee").hits if hit.path in {"facts/a.md", "facts/z.md"})
    assert hit.stands_for == 2


def test_turns_of_one_session_are_taken_apart():
    body = "\n\n".join(f"**Maya**: the boiler rattles again number {n} ^t{n}" for n in range(1, 9))
    notes = {f"episodes/{name}.md": f"---\ntype: episode\nsession: {name}\n---\n{body if name == 'a' else '**Maya**: the boiler rattles again and again ^t1'}\n"
             for name in ("a", "b")}  # fmt: skip
    index = make_index(notes)

    def place(strength: float) -> int:
        chosen = everything(spread=strength)
        return [hit.path for hit in ask(index, "how often the boiler rattles", profile=chosen).hits].index(
            "episodes/b.md"
        )

    assert place(0.5) <= 1 <= place(0.0)


@pytest.mark.parametrize("question", ["boiler", "What does Maya think of the boiler?"])
def test_the_first_of_a_large_limit_are_those_of_a_small_one(question):
    homes = ("Oslo", "Turku", "Leeds")
    notes = {f"facts/{n:03}.md": f"---\nid: f{n:03}\ncreated: 2026-01-{n % 28 + 1:02}\n---\nThe boiler of house {n}"
             f" costs {n * 7 % 90} euros and Maya knows it{' well' * (n % 9)}.\n\n- [[Maya]] lives_in [[{homes[n % 3]}]]\n"
             for n in range(300)}  # fmt: skip
    index = make_index(notes, ByWords())
    many = [hit.id for hit in ask(index, question, ByWords(), limit=50).hits]
    assert len(many) == 50
    for limit in (1, 10, 25):
        assert [hit.id for hit in ask(index, question, ByWords(), limit=limit).hits] == many[:limit]
    assert len(ask(index, question, ByWords(), limit=200).hits) > 120


def test_a_standing_instruction_is_found_where_its_subject_is_asked():
    lines = [
        "Always give prices with tax when I ask about the cost of boilers.",
        *(f"The boiler costs {n}." for n in range(30)),
    ]
    body = "\n\n".join(f"**User**: {line} ^t{n}" for n, line in enumerate(lines, 1))
    index = make_index({"episodes/a.md": f"---\ntype: episode\nsession: a\n---\n{body}\n"}, ByWords())

    def gained(question: str) -> set[str]:
        hits = ask(index, question, ByWords(), limit=40).hits
        return {hit.id for hit in hits if "instruction" in hit.evidence}

    assert gained("What about the cost of boilers?") == {"a#t1"}
    assert gained("What did I say about the cost of boilers?") == set()
    assert gained("Where is the cat?") == set()


LIVES = {
    "facts/oslo.md": "---\nid: oslo\n---\nMaya has a flat in the old town.\n\n- [[Maya]] lives_in [[Oslo]]\n",
    "facts/turku.md": "---\nid: turku\nvalid_from: 2026-05-01\n---\nShe moved over the sea.\n\n- [[Maya]] lives_in [[Turku]]\n",
    "facts/leeds.md": "---\nid: leeds\nvalid_until: 2019-12-31\n---\nA terrace in the north.\n\n- [[Maya]] lives_in [[Leeds]]\n",
}  # fmt: skip


def test_a_fact_is_followed_by_the_one_that_contradicts_it_on_the_day():
    index = make_index(LIVES)
    answer = ask(index, "flat in the old town", profile=without("graph"))
    assert {hit.id: hit.contradicts for hit in answer.hits} == {"oslo": ("turku",), "turku": ("oslo",)}
    assert answer.hits[0].id == "oslo"
    for day, found in (("2025-01-01", {"oslo"}), ("2019-01-01", {"oslo", "leeds"})):
        at = date.fromisoformat(day)
        assert ids(ask(index, "flat in the old town", profile=without("graph"), at=at)) == found
    assert len(ask(index, "flat in the old town", profile=without("graph"), limit=1).hits) == 1


@pytest.mark.parametrize("budget", [0, 5, 12, 40, 400, 4000])
def test_an_answer_keeps_to_its_budget(budget):
    notes = {
        f"own/n{n}.md": f"# Boiler {n}\n\n" + f"The boiler number {n} was repaired by the plumber. " * 5
        for n in range(8)
    }
    body = "\n\n".join(f"**Maya**: the boiler rattles again number {n} ^t{n}" for n in range(1, 9))
    index = make_index({**notes, "episodes/a.md": f"---\ntype: episode\nsession: a\n---\n{body}\n"})
    plain = ask(index, "boiler plumber", profile=everything())
    answer = ask(index, "boiler plumber", profile=everything(), budget=budget)
    assert tokens(answer.text) <= budget
    known = [hit.id for hit in plain.hits]
    assert [hit.id for hit in answer.hits if hit.id in known] == [
        id_ for id_ in known if id_ in {h.id for h in answer.hits}
    ]
    assert answer.hits or budget <= 40


COMPANY = ("beside", "session_best", "session_fact")
QUESTION = 'When did Maya Chen say "the heating broke" to me in March?'


@pytest.mark.parametrize("name", [*PROFILES])
def test_each_profile_answers_and_says_what_its_stages_did(index, name):
    embed(index, ByWords())
    answer = ask(index, QUESTION, ByWords(), replace(PROFILES[name], cut_share=0.0))
    assert {"s1#t1", "01m"} <= ids(answer)
    traced = {stage["stage"] for stage in answer.trace["stages"]}
    assert answer.trace["took_ms"].keys() == traced
    assert {"query", "keyword", "vector", "graph", "exact", "evidence", "score", "choose", "answer"} <= traced


@pytest.mark.parametrize("feature", ["beside", "session_best", "speaker", "graph", "length", "phrase", "cited"])
def test_a_feature_without_weight_brings_no_evidence(index, feature):
    embed(index, ByWords())
    for profile in (everything(), without(feature, cut_share=0.0)):
        seen = {kind for hit in ask(index, QUESTION, ByWords(), profile).hits for kind in hit.evidence}
        assert (feature in seen) is (profile == everything())


def test_contiguity_takes_in_facts_from_the_sessions_of_the_best_hits():
    notes = {
        "facts/a.md": "---\nid: a\nsession: s9\n---\nMaya repaired the boiler.\n",
        "facts/b.md": "---\nid: b\nsession: s9\n---\nThe cat was fed.\n",
    }
    index = make_index(notes)
    assert ids(ask(index, "boiler", profile=Profile(contiguity=0.7))) == {"a", "b"}


def test_a_small_memory_shows_ten_hits_where_ten_matched():
    index = make_index({f"facts/{n}.md": f"---\nid: f{n}\n---\nThe boiler number {n} leaks.\n" for n in range(12)})
    assert len(ask(index, "boiler leaks").hits) == 10
