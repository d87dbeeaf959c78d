"""What speaks for a candidate: turns, the facts that cite them and their sessions lend to each other."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recall_index import NOW, ByWords, ask, candidate, embed, everything, make_index, put, turn, without

from quaid.index import documents, references
from quaid.index.documents import TurnChunks, list_turns
from quaid.index.scope import EVERYTHING
from quaid.recall.features import contributions, normalise, score_candidates
from quaid.recall.options import Profile, RecallOptions
from quaid.recall.query import parse
from quaid.recall.search import Reader, Search, Talk
from quaid.recall.trace import RecallTrace

QUERY = parse("boiler", NOW)


def pool(*candidates, words=None, likeness=None, beside=(), size=0, **more):
    """`beside` are turns that stand in the sessions without being candidates; `size` is that of each session."""
    known = {c.chunk_id: c for c in candidates}
    words, likeness = words or {}, likeness or {}
    fused = {i: 0.5 * likeness.get(i, 0.0) + 0.5 * words.get(i, 0.0) for i in {*words, *likeness}}
    talks = more.pop("talks", None) or talks_of([*candidates, *beside], size)
    found = {"candidates": known, "fused": fused, "talks": talks, **more}
    return Search(None, Profile(), RecallOptions(), RecallTrace(), QUERY, Reader(None, EVERYTHING), **found)


def talks_of(candidates, size=0):
    turns: dict[int, dict[int, TurnChunks]] = {}
    for c in sorted(candidates):
        if c.turn is not None:
            said = turns.setdefault(c.doc_id, {})
            first = said[c.turn].first if c.turn in said else c.chunk_id
            said[c.turn] = TurnChunks(c.turn, c.turn_speaker, first, c.chunk_id)
    return {doc_id: Talk.of(list(said.values()), size) for doc_id, said in turns.items()}


def between(number, text="words", names=("Maya", "Tom"), **more):
    """A turn of two who take turns."""
    return turn(number, number, text, speaker=names[number % 2], **more)


def rows(made, query=QUERY):
    made.query = query
    score_candidates(made)
    return made.features


def scores(made, query=QUERY):
    rows(made, query)
    return made.relevance


def test_a_fact_lends_to_the_turn_it_cites_and_to_its_session():
    turns = [turn(1, 1), turn(2, 2), turn(9, 1, doc_id=2)]
    alone = scores(pool(*turns, candidate(5), words={5: 0.9}))
    lent = scores(pool(*turns, candidate(5), words={5: 0.9}, cites={5: [2]}))
    assert lent[2] > alone[2]
    assert lent[1] > alone[1]
    assert lent[9] == pytest.approx(alone[9])


def test_citations_of_what_may_not_be_seen_lend_nothing():
    """The turns a fact cites may be another's private ones: they are no candidates."""
    known = candidate(5)
    assert scores(pool(known, words={5: 0.7}, cites={5: [41, 42]})) == scores(pool(known, words={5: 0.7}))


def test_turns_gain_by_what_another_said_beside_them():
    found = rows(pool(*map(between, range(1, 6)), words={2: 0.8}))
    gained = [found[n]["beside"] > 0 for n in range(1, 6)]
    assert gained == [True, False, True, False, False]
    alone = rows(pool(*(turn(n, n) for n in range(1, 6)), words={2: 0.8}))
    assert not any(row["beside"] for row in alone.values())


AMONG = {"length", "asks", "first_person"}


@pytest.mark.parametrize(("names", "size", "is_among_people"), [
    (("Maya", "Tom"), 600, True), (("Maya", "Tom"), 6_000, False),  # letters rather than remarks
    (("User", "Assistant"), 600, False), (("Maya", "Assistant"), 600, False), (("User", "User"), 600, False),
])  # fmt: skip
def test_what_tells_something_among_people_tells_it_nowhere_else(names, size, is_among_people):
    said = [between(n, "Is it well? I hope so?", names) for n in (1, 2, 3, 4)]
    found = rows(pool(*said, words={2: 0.5}, size=size))
    told = max(found[3][name] for name in AMONG)
    assert (told > 0.4) if is_among_people else (told < 0.05)


@settings(max_examples=50)
@given(st.floats(0.3, 1), st.floats(0.3, 1))
def test_what_has_no_company_is_at_no_disadvantage_to_turns(words, likeness):
    """A note of its own against a turn that says the same in a session that says nothing else."""
    text = "the boiler of the cabin was repaired in the end"
    both = {"words": {1: words, 2: words}, "likeness": {1: likeness, 2: likeness}}
    found = scores(pool(candidate(1, text), turn(2, 1, text, doc_id=2), **both))
    assert found[1] >= found[2] - 1e-9


def test_what_the_one_named_person_said_is_raised():
    turns = [turn(1, 1, speaker="Maya Chen"), turn(2, 2, speaker="Tom")]
    named = rows(pool(*turns), parse("What did Maya say?", NOW))
    assert "speaker" in named[1]
    assert "speaker" not in named[2]
    for question in ("What did they say?", "What did Maya tell Tom?"):
        assert not any("speaker" in row for row in rows(pool(*turns), parse(question, NOW)).values())
    mine = rows(pool(*turns), parse("What did I say?", NOW, ["Tom"]))
    assert "speaker" in mine[2]
    assert "speaker" not in mine[1]


def test_a_fact_about_the_person_counts_as_theirs():
    made = pool(turn(1, 1, speaker="Maya"), candidate(2, "Maya likes tea"), candidate(3, "Tom likes tea"))
    found = rows(made, parse("Maya's tea", NOW))
    assert [("speaker" in found[n]) for n in (1, 2, 3)] == [True, True, False]


def test_dates_phrases_and_times_speak_for_what_has_them():
    made = pool(
        candidate(1, "we met", created="2026-03-10"),
        candidate(2, "she lived there", valid_from="2026-01-01", valid_until="2026-12-31"),
        candidate(3, "She said never again, yesterday", created="2025-03-10"),
    )
    found = rows(made, parse('When did she say "never again" in March 2026?', NOW))
    assert [("dated" in found[n]) for n in (1, 2, 3)] == [True, True, False]
    assert [("phrase" in found[n]) for n in (1, 2, 3)] == [False, False, True]
    assert [("tells" in found[n]) for n in (1, 2, 3)] == [False, True, True]


@pytest.mark.parametrize(("question", "telling"), [
    ("How many cats has she?", [True, False, False]),
    ("Where did she stay?", [False, True, False]),
    ("When did she go?", [False, False, True]),
    ("What does she like?", [False, False, False]),
])  # fmt: skip
def test_what_has_the_kind_of_thing_that_is_asked_gains(question, telling):
    texts = ("there are three of them", "it was in Turku by the sea", "that was last week")
    made = pool(*(candidate(n, text) for n, text in enumerate(texts, 1)), words={1: 1.0, 2: 1.0, 3: 1.0})
    found = rows(made, parse(question, NOW))
    assert [("tells" in found[n]) for n in (1, 2, 3)] == telling


def test_a_time_alone_is_no_answer():
    made = pool(candidate(1, "we met last week"), candidate(2, "the rent is due by the third"), words={2: 1.0})
    found = scores(made, parse("By when must we pay the rent?", NOW))
    assert found[1] == 0


def test_what_was_told_in_the_days_after_counts_for_the_day():
    days = {1: "2026-03-09", 2: "2026-03-10", 3: "2026-03-12", 4: "2026-03-13"}
    made = pool(*(candidate(n, "we sailed", created=day) for n, day in days.items()),
                candidate(5, "we sailed yesterday", created="2026-03-11"))  # fmt: skip
    found = rows(made, parse("What did they do on 10 March 2026?", NOW))
    assert [found[n].get("dated", 0.0) > 0 for n in days] == [False, True, True, False]
    assert found[5]["dated"] == 1.0


def test_the_assistants_words_answer_what_it_is_asked_about_itself():
    turns = [turn(1, 1, speaker="User"), turn(2, 2, speaker="Assistant")]
    asked = rows(pool(*turns), parse("What did you recommend for my boiler?", NOW, ["User"]))
    assert [("speaker" in asked[n]) for n in (1, 2)] == [False, True]
    planned = rows(pool(*turns), parse("What can I do for my boiler?", NOW, ["User"]))
    assert [("speaker" in planned[n]) for n in (1, 2)] == [True, False]


@pytest.mark.parametrize(("text", "asked"), [("Ｑｕａｉｄ の設計", "«quaid»"), ("قرأت كِتَابَ الطبخ", "«كتاب الطبخ»")])
def test_a_phrase_is_found_in_whatever_form_it_is_written(text, asked):
    assert rows(pool(candidate(1, text)), parse(asked, NOW))[1]["phrase"] == 1.0


@settings(max_examples=50)
@given(st.dictionaries(st.integers(1, 8), st.floats(0, 1)), st.dictionaries(st.integers(1, 8), st.floats(0, 1)))
def test_relevance_is_no_less_than_none_and_little_more_than_all(words, likeness):
    made = pool(
        *(turn(n, n) for n in range(1, 6)), *(candidate(n) for n in (6, 7, 8)), words=words, likeness=likeness,
        cites={6: [2], 7: [2, 4]},
    )  # fmt: skip
    assert all(0 <= score <= 1.5 for score in scores(made).values())


@settings(max_examples=50)
@given(st.floats(0, 0.8), st.floats(0.05, 0.2), st.sampled_from(["words", "likeness"]))
def test_what_says_more_of_what_is_asked_scores_more(value, more, kind):
    facts = [candidate(1), candidate(2)]
    found = scores(pool(*facts, **{kind: {1: value, 2: value + more}}))
    assert found[2] > found[1]


def test_what_each_kind_adds_comes_to_the_score():
    made = pool(turn(1, 1), turn(2, 2, "why?"), candidate(3), words={2: 0.5, 3: 0.9}, likeness={1: 0.3}, cites={3: [2]})
    for chunk_id, row in rows(made).items():
        added = contributions(row, normalise(made.profile.weights))
        assert sum(added.values()) == pytest.approx(made.relevance[chunk_id], abs=0.001)


def episode(name: str, *said: str) -> tuple[str, str]:
    body = "\n\n".join(f"**{'Tom' if n % 2 else 'Maya'}**: {text} ^t{n}" for n, text in enumerate(said, 1) if text)
    return f"episodes/{name}.md", f"---\nid: {name}\ntype: episode\nsession: {name}\n---\n{body}\n"


def found_evidence(index, question):
    return {hit.id: hit.evidence for hit in ask(index, question, ByWords(), everything()).hits}


def test_neighbours_are_those_of_the_session_after_it_was_indexed_again():
    one = episode("one", "the kettle", "the boiler", "the stove")
    two = episode("two", "the attic", "the cellar")
    index = make_index(dict([one, two]), ByWords())
    for path, text in (one, two, one):  # renumbered at the end of the index each time
        put(index, path, text)
        embed(index, ByWords())
        said = found_evidence(index, "boiler")
        beside = {note_id for note_id, kinds in said.items() if kinds.get("beside", 0) > 0.05}
        assert {"one#t1", "one#t3"} <= beside
        assert not {note_id for note_id in said if note_id.startswith("two") and said[note_id].get("beside", 0)}
    doc_id = references.resolve_one(index, "one").document.doc_id
    chunks = [each for (each,) in index.execute("SELECT chunk_id FROM chunks WHERE doc_id = ?", (doc_id,))]
    ((_, turns),) = list_turns(index, chunks).values()
    assert [each.number for each in turns] == [1, 2, 3]


def test_what_was_forgotten_leaves_its_neighbours_side_by_side():
    path, text = episode("one", "the kettle", "the boiler", "the attic", "the stove")
    forgotten = text.replace("the boiler", "*(forgotten)*").replace("the attic", "*(forgotten)*")
    index = make_index({path: forgotten})
    said = found_evidence(index, "kettle")
    assert not {"one#t2", "one#t3"} & said.keys()
    assert said["one#t4"]["beside"] > 0


def test_a_long_turn_of_several_chunks_is_one_hit():
    long = " ".join(f"word{n} about the boiler and the cellar of the old house by the lake." for n in range(120))
    path, text = episode("one", "the kettle", long, "the stove")
    index = make_index({path: text}, ByWords())
    answer = ask(index, "boiler of the old house", ByWords(), everything())
    ids = [hit.id for hit in answer.hits]
    assert sorted(ids) == ["one#t1", "one#t2", "one#t3"]
    assert len([1 for c in documents.fetch_candidates(index, range(99)).values() if c.turn == 2]) > 1


def test_what_has_no_word_of_the_question_is_found_by_its_company():
    path, text = episode("one", "It is a wreck, honestly.", "Mine broke down as well.", "Oh no.", "Well.", "Bye.")
    fact = "---\nid: fact\nturns: ['[[one#^t1]]']\n---\nThe boiler of the cabin needs a repair.\n"
    index = make_index({path: text, "facts/fact.md": fact, "facts/else.md": "---\nid: else\n---\nThe cat sleeps.\n"})
    by_fact = {hit.id: hit for hit in ask(index, "boiler repair", profile=everything()).hits}
    assert {"fact", "one#t1"} <= set(by_fact)
    assert "keyword" not in by_fact["one#t1"].channels
    by_turn = {hit.id: hit for hit in ask(index, "wreck", profile=everything()).hits}
    assert {"one#t1", "one#t2", "fact"} == set(by_turn)
    assert by_turn["fact"].score > 0
    alone = without("beside", "session_best", "session_fact", "cited", cut_share=0.0)
    assert {hit.id for hit in ask(index, "wreck", profile=alone).hits} == {"one#t1"}
