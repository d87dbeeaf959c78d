"""Do two texts say the same, contradict each other, differ in a number, a date, a name or a negation?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quaid.claims import (
    Reading,
    difference,
    find_lost_detail,
    find_same,
    is_about_others,
    is_near_copy,
    is_same_claim,
    problem_of,
)

LONG = "a " + " ".join("bcdefghijklmnopqrstuvwxyz")


def is_same(one: str, other: str) -> bool:
    return is_same_claim(Reading(one), Reading(other))


# --- how a text is read


def test_a_text_is_read_once_for_all_questions():
    text = Reading("Maya has 2 cats, not dogs, in Oslo. The rent of Tom’s flat isn't 1,200 since 5 May.")
    assert {"maya", "cats", "tom", "isn't", "flat"} <= text.words
    assert text.numbers == (("2", "cat"), ("1200", "since"), ("5", "may"))
    assert text.capitalised == (("maya", True), ("oslo", False), ("tom", False), ("may", False))
    assert (text.negations, text.telling) == (2, ["may"])
    assert Reading("").words == frozenset()


@pytest.mark.parametrize(("text", "beginning"), [
    ("Tea! Rum? Oslo.", ["tea", "rum", "oslo"]), ("She met J. K. Rowling at U.S. Steel", ["she"]), ("Run Node.js at 10:30 AM", ["run"]),
])  # fmt: skip
def test_a_sentence_begins_behind_the_end_of_another(text, beginning):
    assert [word for word, begins in Reading(text).capitalised if begins] == beginning


# --- all that tells look-alikes apart is equal


@pytest.mark.parametrize(("one", "other", "same"), [
    # wording, order and case
    ("Maya likes oat milk", "Maya likes oat milk.", True),
    ("Maya likes oat milk", "maya likes Oat milk", True),
    ("Maya takes oat milk in her coffee", "In her coffee, Maya takes oat milk", True),
    ("Maya enjoys oat milk", "Maya likes oat milk", True),
    ("The user prefers tea", "User prefers tea", True),
    # numbers
    ("Maya has 2 cats", "Maya has 3 cats", False),
    ("Maya has two cats", "Maya has three cats", False),
    ("Maya has two cats", "Maya has 2 cats", True),
    ("Maya has two cats and three dogs", "Maya has three cats and two dogs", False),
    ("Maya ran 5 km in 30 minutes", "Maya ran 30 km in 5 minutes", False),
    ("The rent is 1,200 euros", "The rent is 1.200 euros", False),
    # dates and times
    ("The trip is on 2026-11-20", "The trip is on 2026-11-21", False),
    ("The trip is on 5 May", "The trip is on 5 June", False),
    ("The trip is on May 5", "The trip is on 5 May", True),
    ("Maya runs on Monday", "Maya runs on Friday", False),
    ("The call is at 5 pm", "The call is at 5 am", False),
    ("The call is at 5pm", "The call is at 5am", False),
    ("Maya moved before the wedding", "Maya moved after the wedding", False),
    # names
    ("Maya lives in Oslo", "Maya lives in Bergen", False),
    ("Maya lives in Oslo", "Tom lives in Oslo", False),
    ("Maya manages Tom", "Tom manages Maya", False),
    ("Maya's sister is Zoe", "Zoe's sister is Maya", False),
    ("Maya lives with her mother", "Maya lives with her father", False),
    ("Tom called. Maya answered.", "Maya called. Tom answered.", False),
    ("Vitamin C helps Maya", "Vitamin D helps Maya", False),
    ("Maya likes Luna's collar", "Maya likes the collar of Luna", True),
    # negation
    ("Maya eats meat", "Maya does not eat meat", False),
    ("Maya eats meat", "Maya never eats meat", False),
    ("Maya doesn't eat meat", "Maya does not eat meat", True),
    ("Maya doesn’t eat meat", "Maya doesn't eat meat", True),
    ("Maya mustn't eat meat", "Maya must eat meat", False),
    ("Maya likes running", "Maya dislikes running", False),
    ("Maya works at Acme", "Maya stopped working at Acme", False),
    ("Maya is always late", "Maya is rarely late", False),
    ("Ich mag den Tee", "Ich mag keinen Tee", False),
    # other alphabets
    ("我对花生过敏", "我对虾过敏", False),
    ("我对花生过敏。", "我对花生过敏", True),
    ("Я люблю чай", "Я люблю кофе", False),
    ("أنا أحب الشاي", "أنا لا أحب الشاي", False),
])  # fmt: skip
def test_look_alikes_are_told_apart(one, other, same):
    assert is_same(one, other) is same
    assert is_same(other, one) is same


@given(st.text(max_size=40), st.text(max_size=40))
def test_sameness_is_symmetric_and_holds_of_itself(one, other):
    assert is_same(one, one)
    assert is_same(one, other) is is_same(other, one)


def test_the_most_similar_fact_that_makes_the_same_claim_is_found():
    similar = [
        ("far", "Maya likes oat milk", 0.8),
        ("near", "Maya likes oat milk a lot", 0.97),
        ("other", "Maya likes 2 oat milks", 0.99),
    ]
    assert find_same("Maya likes oat milk", similar, 0.9) == "near"
    assert find_same("Maya likes oat milk", similar, 0.98) is None
    assert find_same("Maya likes oat milk", [], 0.9) is None
    assert find_same("Maya likes oat milk", similar, 0.97) == "near"


# --- near copies


@pytest.mark.parametrize(("one", "other", "same"), [
    ("Maya likes oat milk", "Maya likes oat milk.", True),
    ("Maya likes oat milk", "maya LIKES oat milk", True),
    ("Maya likes oat milk", "Maya likes oat milk in her coffee", False),
    ("Maya has 2 cats", "Maya has 3 cats", False),
    ("Maya manages Tom", "Tom manages Maya", False),
    ("", "", False),
    (" ".join(f"w{n}" for n in range(20)), " ".join(f"w{n}" for n in range(19)) + " other", False),
    (f"{LONG} Maya", f"{LONG} Tom", False),
    (f"she will {LONG}", f"she will not {LONG}", False),
    (f"she will {LONG}", f"she won't {LONG}", False),
    (f"she will {LONG}", f"she will so {LONG}", True),
])  # fmt: skip
def test_texts_say_the_same_by_their_words(one, other, same):
    assert is_near_copy(Reading(one), Reading(other), 0.95) is same
    assert is_near_copy(Reading(other), Reading(one), 0.95) is same


# --- each says what the other does not


@pytest.mark.parametrize(("one", "other", "what"), [
    ("Maya swam on 3 May 2026.", "Maya swam on 10 May 2026.", "dates"),
    ("Maya swam on Friday 11 August 2023.", "Maya swam on Friday 18 August 2023.", "dates"),
    ("Maya swam on 3 May.", "Maya swam on 3 May 2023.", None),
    ("Maya swam in June 2023.", "Maya swam on 10 June 2023.", None),
    ("Maya swam a few weeks before 15 July 2023.", "Maya swam in the week before 3 July 2023 (26 June-2 July).", None),
    ("Maya swam in 2022.", "Maya swam.", None),
    ("Maya has 2 cats and 3 dogs.", "Maya has 3 cats and 2 dogs.", "numbers"),
    ("Maya has two cats.", "Maya has 2 cats called Rex and Bo.", None),
    ("The rent is 1,000 euros.", "The rent is 1000 euros a month.", None),
    ("The train leaves at 10:30.", "The train leaves at 10:40.", "numbers"),
    ("Version 1.2.3 broke the build.", "Version 1.2.4 broke the build.", "numbers"),
    ("Maya met Ana in Oslo.", "Maya met Ana in Bergen.", "names"),
    ("Maya met Ana.", "Maya met Ana in Bergen.", None),
    ("Maya manages Tom.", "Tom manages Maya.", "names"),
    ("Maya likes tea.", "Tom likes tea.", "names"),
    ("Painting calms Maya.", "Drawing calms Maya.", None),  # for a model to say
    ("Maya met Ana in Beijing.", "Maya met Ana in Nanjing.", "names"),
    ("J. K. Rowling wrote to Maya.", "Maya wrote to J. K. Rowling.", "names"),
    ("Maya lives in the U.S. now.", "Maya lives in the US.", None),
    ("Maya takes the left seat.", "Maya takes the right seat.", "words"),
    ("Maya eats meat.", "Maya doesn’t eat meat.", "negation"),
    ("", "", None),
])  # fmt: skip
def test_what_tells_two_statements_apart(one, other, what):
    assert difference(one, other) == difference(other, one) == what


@pytest.mark.parametrize(("statement", "wrong"), [
    ("Maya has two cats, Rex and Bo, since May 2023.", False),
    ("Maya has 2 cats, Rex and Bo, since 3 May 2023.", False),
    ("Maya has two cats, Rex and Bo.", True),  # no date
    ("Maya has two cats since 3 May 2023, one of them Rex.", True),  # Bo
    ("Maya has three cats, Rex and Bo, two of them since 3 May 2023.", True),
    ("Maya has two cats, Rex and Bo, from Oslo, since 3 May 2023.", True),
    ("Maya has not two cats, Rex and Bo, since 3 May 2023.", True),
])  # fmt: skip
def test_a_new_wording_loses_and_adds_nothing(statement, wrong):
    sources = ("Maya has two cats since 3 May 2023.", "Maya has cats called Rex and Bo.")
    assert (problem_of(statement, sources) is not None) == wrong


@pytest.mark.parametrize(("one", "other", "others"), [
    ("Maya likes tea.", "Tom likes tea.", True),
    ("Maya likes tea.", "Tom met Maya.", False),
    ("It's raining.", "Tom likes tea.", False),  # names nobody
    ("Rain is wet.", "Tom likes the rain.", False),
])  # fmt: skip
def test_who_is_named_tells_what_two_texts_are_about(one, other, others):
    assert is_about_others(one, other) is is_about_others(other, one) is others


@pytest.mark.parametrize(("kept", "dropped", "lost"), [
    ("Maya has two cats.", "Maya has 2 cats.", None),
    ("Maya has cats.", "Maya has 2 cats.", "2"),
    ("Maya has cats.", "Maya has one of the cats.", None),
    ("Maya swims.", "Maya swam on 3 May 2026.", None),  # dates are looked at apart
    ("Maya swims.", "Maya swims in Oslo.", "oslo"),
    ("Maya swims in Oslo.", "Maya swims.", None),
])  # fmt: skip
def test_a_number_or_a_name_that_only_the_dropped_has_is_lost(kept, dropped, lost):
    assert find_lost_detail(kept, dropped) == lost
