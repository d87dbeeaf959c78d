"""Do two texts say the same, contradict each other, differ in a number, a date, a name or a negation?"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matrices import for_each
from replay import needs

from quaid.claims import (
    Reading,
    claim_key,
    difference,
    find_lost_detail,
    find_lost_words,
    is_about_others,
    is_same_claim,
    normal_form,
    problem_of,
)

# --- how a text is read


def test_a_text_is_read_once_for_all_questions():
    text = Reading("Maya has 2 cats, not dogs, in Oslo. The rent of Tom’s flat isn't 1,200 since 5 May.")
    assert {"maya", "cats", "tom", "isn't", "flat"} <= text.words
    assert text.numbers == (("2", "cat"), ("1200", "since"), ("5", "may"))
    assert text.capitalised == (("maya", True), ("oslo", False), ("tom", False), ("may", False))
    assert text.negations == 2
    assert Reading("").words == frozenset()


@pytest.mark.parametrize(("text", "beginning"), [
    ("Tea! Rum? Oslo.", ["tea", "rum", "oslo"]), ("She met J. K. Rowling at U.S. Steel", ["she"]), ("Run Node.js at 10:30 AM", ["run"]),
])  # fmt: skip
def test_a_sentence_begins_behind_the_end_of_another(text, beginning):
    assert [word for word, begins in Reading(text).capitalised if begins] == beginning


# --- two statements are one only if they say the same

HERE = Path(__file__).with_name("claim_pairs.tsv")


def list_pairs(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


@pytest.mark.parametrize("name", ["the pairs here", "the reported pairs"])
def test_different_statements_are_never_one_and_equal_ones_always(name):
    pairs = list_pairs(HERE if name == "the pairs here" else needs("cases") / "claim_pairs.tsv")
    said = [(pair["expected"], pair["first"], pair["second"]) for pair in pairs]
    assert [row for row in said if is_same_claim(*row[1:]) is not (row[0] == "same")] == []
    assert [row for row in said if is_same_claim(*row[:0:-1]) is not (row[0] == "same")] == []
    assert {"same", "different"} == {row[0] for row in said}


@for_each(("text", "form"), [
    ("The tests don't run,  can't run and won't run.", "tests do not run, can not run and will not run"),
    ("She's 21. Tom's twenty-one, it’s 1,200", "she is 21. Tom's 21, it is 1200"),
    ("Five million, two thousand and six two-bedroom flats", "5000000, 2000 and 6 2-bedroom flats"),
    ("US wins! Ines' flat", "US wins! Ines' flat"),
    ("Ines has an allergy to bees.", "ines is allergy bee"),
    ("Hundreds came", "hundreds came"),
    ("cannot", "can not"),
    (". ", ""),
    ("", ""),
])  # fmt: skip
def test_the_form_in_which_statements_are_compared(text, form):
    assert normal_form(text) == form


_SAID = st.text(max_size=40) | st.lists(
    st.sampled_from(
        [
            "the",
            "The",
            "I'm",
            "don't",
            "two",
            "2",
            "hundred",
            "1,200",
            "Tom",
            "tom",
            "US",
            ".",
            ",",
            "!",
            "is",
            "allergic",
            "to",
            "bees",
        ]
    ),
    max_size=6,
).map(" ".join)


@given(_SAID, _SAID)
def test_sameness_is_symmetric_holds_of_itself_and_has_one_key(one, other):
    assert is_same_claim(one, one)
    assert is_same_claim(one, other) is is_same_claim(other, one)
    assert not is_same_claim(one, other) or claim_key(one) == claim_key(other)


# --- words that would be lost


@for_each(("kept", "dropped", "lost"), [
    ("Maya has two cats.", "Maya has 2 cats", []),
    ("Maya likes to study trains.", "She studied the train.", []),
    ("Maya likes tea.", "Maya likes tea. She travels to Lima.", ["travels", "lima"]),
    ("Maya swam on 3 May 2026.", "Maya swam in May 2026.", []),  # dates are compared as dates
    ("Maya likes tea.", "Maya never likes tea.", ["never"]),
    ("Maya mag Tee.", "Maya mag den Tee sehr und reist nach Lima.", ["reist", "lima"]),
    ("我喜欢茶", "我喜欢茶。我去利马。", ["我去", "去利", "利马"]),
    ("", "", []),
])  # fmt: skip
def test_content_words_that_only_the_dropped_has_are_lost(kept, dropped, lost):
    assert find_lost_words(kept, dropped) == lost


# --- each says what the other does not


@for_each(("one", "other", "what"), [
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
