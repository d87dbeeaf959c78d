"""A memory goes before a prompt for its own evidence: words of the prompt, likeness, a question within it."""

from __future__ import annotations

import pytest
from matrices import for_each

from quaid.agents.prompt_context import question_in
from quaid.agents.prompt_evidence import AskedWords, find_asked, put_facts_first, without_far, without_weaker
from quaid.model import ChannelRank, Hit, Neighbour, Scale


def hit(text, likeness=None, **more):
    channels = {} if likeness is None else {"vector": ChannelRank(1, likeness)}
    return Hit(text, "fact", text, 0.9, "facts/a.md", channels=channels, **more)


@for_each(("prompt", "text", "likeness"), [
    ("who's my boss again?", "Hanna's boss is Priya Raman.", None),
    ("who's my boss again?", "Hanna's boss is Priya Raman.", 0.31),
    ("what time is our standup?", "The stand-up of the team is at 9:15.", 0.65),
    ("安娜的生日是哪天？", "安娜的生日是五月十二日。", None),
    ("Когда день рождения Анны?", "День рождения Анны двенадцатого мая.", None),
    ("Before I go on with the parser of the imports: what is my boss called? I put her into the list.",
     "The boss is called Priya.", None),
    ("add the new strings to the ARB files", "Larder is translated into Polish with ARB files.", None),
    ("ok, now write the commit message please", "Hanna wants each commit message in the imperative.", None),
    ("what do we run migrations with?", "The migrations of tollgate are run with goose.", None),
])  # fmt: skip
def test_what_the_prompt_asks_is_enough(prompt, text, likeness):
    assert AskedWords(prompt).weigh(hit(text, likeness)).is_enough


@pytest.mark.parametrize(("prompt", "text", "likeness"), [
    ("make the header sticky", "tollgate answers 429 with a Retry-After header.", 0.17),
    ("why is my regex greedy", "Hanna's bicycle was stolen.", 0.16),
    ("please run the linter and fix all warnings", "Larder warns three days before.", None),
    ("run the tests", "The load tests of tollgate run every night.", None),
    ("can you write a Dockerfile for this", "Hanna writes the failing test first.", None),
    ("write unit tests for the parser", "Hanna writes the failing test first.", 0.3),
    ("sort the list, did we ever do that? no", "They ever dance.", None),
])  # fmt: skip
def test_a_word_that_is_there_by_chance_is_not(prompt, text, likeness):
    assert not AskedWords(prompt).weigh(hit(text, likeness)).is_enough


def test_what_a_photo_shows_is_no_evidence():
    sky, lake = AskedWords("why is the sky blue"), AskedWords("which lake did we see")
    assert not sky.weigh(hit("Look! [shares a photo of a blue sky]", 0.2, turn=1)).is_enough
    assert lake.weigh(hit("We saw the lake at last. [shares a photo]", 0.5, turn=1)).is_enough


def test_it_does_not_matter_what_else_was_found():
    asked = AskedWords("what am I allergic to?")
    assert asked.weigh(hit("Hanna is allergic to walnuts.", 0.4)).is_enough
    assert not asked.weigh(hit("Hanna drinks black coffee.", 0.41)).is_enough


def test_the_heading_and_the_speaker_are_words_of_a_memory():
    asked = AskedWords("What is the Wi-Fi password of Grandma?")
    assert asked.weigh(hit("It is on the fridge.", heading="Wi-Fi password", speaker="Grandma")).share == 1.0


def test_evidence_says_what_it_is():
    asked = AskedWords("which router does tollgate use?")
    assert str(asked.weigh(hit("tollgate is written with the chi router", 0.7))) == "1.10 (words 0.67, likeness 0.70)"
    assert str(asked.weigh(hit("the router of the flat"))) == "0.33 (words 0.33), under 0.5"


def test_a_prompt_without_words_has_no_share():
    assert AskedWords("???").weigh(hit("Hanna is allergic to walnuts.", 0.1)).share == 0.0


def test_what_is_new_says_more_than_what_was_given():
    asked = AskedWords("Where is my bike, and what colour is it?")
    hits = [hit("The bike is in the cellar."), hit("The bike is red in colour."), hit("A bike has two wheels.")]
    evidence = {each.id: asked.weigh(each) for each in hits}
    assert without_weaker(hits[1:], hits[:1], evidence) == [hits[1]]
    assert without_weaker(hits, [], evidence) == hits


def turn(text, number=2, speaker="User", **more):
    place = {"path": "episodes/e.md", "session": "e", "turn": number, "ordinal": number}
    return Hit(f"e#t{number}", "turn", text, 0.9, speaker=speaker, **place, **more)


def test_a_past_question_is_no_evidence_and_one_after_a_statement_takes_none_away():
    asked = AskedWords("Where is my bike?")
    assert not asked.weigh(turn("Where is my bike?")).is_enough
    assert not asked.weigh(turn("Good. Can you tell me where my bike is?")).is_enough
    assert asked.weigh(turn("The bike is in the cellar. Shall I fetch it?")).is_enough
    assert asked.weigh(
        turn("I'd put my bike into the cellar last week because of the snow, but it is wet there, isn't it?")
    ).is_enough


def test_an_answer_has_the_words_of_its_question():
    before = Neighbour("episodes/e.md", 1, "Where in Japan are you going?", 1, "Assistant")
    answer = turn("Kanazawa, from 5 to 19 March.", beside=(before,))
    assert AskedWords("When am I in Japan?").weigh(answer).is_enough
    assert find_asked(answer) == before
    assert find_asked(turn("Kanazawa.", beside=(Neighbour("episodes/e.md", 1, "Japan?", 1, "User"),))) is None


def test_a_word_counts_as_it_is_rare():
    scale = Scale(embedder="e", chunks=500, matches={"happy": 200, "otter": 1})
    asked = AskedWords("happy otter?", scale)
    common, rare = (asked.weigh(hit(f"{word} end", 0.1)) for word in ("happy", "otter"))
    assert common.share < 0.2 < 0.8 < rare.share


def test_a_related_word_counts_less_than_the_word():
    asked = AskedWords("What is my address?")
    shares = [
        asked.weigh(hit(text)).share for text in ("Hanna lives in Linz.", "The address is Linz 4.", "Hanna swims.")
    ]
    assert shares == [0.7, 1.0, 0.0]


def test_advice_counts_less_than_what_the_owner_states():
    asked = AskedWords("add a column to the table")
    own, advice = (asked.weigh(turn("A table has one more column.", speaker=who)) for who in ("User", "Assistant"))
    assert advice.weight < own.weight


def test_a_fact_goes_in_the_place_of_the_turn_that_it_cites():
    asked = AskedWords("Where is the bike of Hanna?")
    cited = Neighbour("episodes/e.md", 2, "", 2, "User", cited=True)
    said = turn("The bike of Hanna is in the cellar now.")
    for text, shown in (("Hanna's bike is in the cellar.", "fact"), ("Hanna has a cellar.", "turn")):
        fact = hit(text, beside=(cited,))
        evidence = {each.id: asked.weigh(each) for each in (said, fact)}
        (left,) = put_facts_first([said, fact], evidence)
        assert left.kind == shown
        assert evidence[left.id].is_enough


def test_what_is_far_behind_the_best_is_left_out():
    asked = AskedWords("Where is my red bike?")
    hits = [hit("The red bike is in the cellar.", 0.6), hit("A bike has wheels.", 0.3), hit("Hanna bikes.", 0.3)]
    hits.append(hit("The red bike is new.", 0.5))
    left = without_far(hits, {each.id: asked.weigh(each) for each in hits})
    assert left == [*hits[:2], hits[3]]  # the first of recall stay


def test_a_long_turn_is_cut_to_what_the_prompt_asks():
    text = (
        "We talked about the weather of the last week for hours. " * 5
        + "The bike is in the cellar. "
        + "It rained. " * 30
    )
    shown = AskedWords("Where is my bike?").excerpt(text)
    assert "The bike is in the cellar." in shown
    assert len(shown) < 250
    assert AskedWords("Where is my bike?").excerpt("In the cellar.") == "In the cellar."


@pytest.mark.parametrize("pasted", [
    "```python\ncoffee = milk()\n```",
    'Traceback (most recent call last):\n  File "/app/coffee.py", line 2, in <module>\nValueError: no milk',
    "TypeError: undefined is not coffee\n    at Milk (src/coffee.tsx:24:19)",
    "error[E0502]: cannot borrow\n --> src/main.rs:6:5",
    "https://coffee.example/milk",
])  # fmt: skip
def test_what_is_pasted_is_not_asked(pasted):
    asked = question_in(f"why does this happen to the kettle\n{pasted}\n")
    assert asked is not None
    assert "kettle" in asked
    assert "milk" not in asked.lower()
    assert "coffee" not in asked.lower()


def test_a_prompt_that_is_all_pasted_asks_nothing():
    assert question_in("```\nx = 1\n```") is None
    assert question_in('Traceback (most recent call last):\n  File "a.py", line 2, in run\nValueError: bad') is None
