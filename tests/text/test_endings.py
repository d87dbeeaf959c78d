"""What happened stays true, states end."""

from __future__ import annotations

from datetime import date, timedelta
from types import SimpleNamespace

import pytest
from matrices import for_each

from quaid.text.endings import find_end, is_coming, is_over, is_true_on, list_days, tell_days


def fact(text: str, **fields: str) -> SimpleNamespace:
    known = {"type": "fact", "durability": "contextual", "created": "2026-04-20T10:00:00Z", "valid_from": None}
    known |= {"valid_until": None, "superseded_by": None}
    return SimpleNamespace(**{"text": text, **known, **fields})


@for_each(
    "happened",
    [
        fact("The book club met at Anna's.", type="event", valid_until="2026-05-12"),
        fact("Tom hiked around the lake.", type="experience", valid_until="2026-05-12"),
        fact("The book club met at Anna's.", durability="immutable", valid_until="2026-05-12"),
        fact("The book club met at Anna's.", valid_from="2026-05-12", valid_until="2026-05-12T23:00:00Z"),
        fact("Maya will visit Porto on 3 May.", valid_until="2026-05-03"),
        fact("Maya has a dentist appointment on 2026-05-03.", valid_until="2026-05-03"),
        fact("The release is planned for May 3rd, 2026.", valid_until="2026-05-03"),
        fact("The launch was moved to 3 May.", valid_until="2026-05-03"),
        fact("The lease ends on 3 May.", valid_until="2026-05-03"),
        fact("Maya flies to Porto tomorrow.", valid_until="2026-04-21"),
        fact("Maya is going to Porto in May.", valid_until="2026-05-31"),
    ],
)
def test_what_happened_or_was_to_happen_on_a_day_never_ends(happened):
    assert find_end(happened) is None
    assert not is_over(happened, "2026-12-24")


@for_each(
    ("state", "end"),
    [
        (fact("Maya is on leave.", valid_until="2026-05-03"), "2026-05-03"),
        (fact("Maya is on leave until 3 May.", valid_until="2026-05-03"), "2026-05-03"),
        (fact("Maya is on leave until the 3rd of May 2026.", valid_until="2026-05-03"), "2026-05-03"),
        (fact("Tom works at Acme.", durability="mutable", valid_from="2024-01-01", valid_until="2026-05-03"), "2026-05-03"),
        (fact("Decided on 2 March to freeze the API.", type="decision", valid_until="2026-05-03"), "2026-05-03"),
        # The text includes the day.
        (fact("The discount code is valid through 3 May 2026.", valid_until="2026-05-03"), "2026-05-04"),
        (fact("Tom is ill today.", valid_until="2026-04-20"), "2026-04-21"),
        (fact("Tom is in Porto this week.", valid_until="2026-04-26"), "2026-04-27"),
        (fact("Maya is on leave until June 2026.", valid_until="2026-06-30"), "2026-07-01"),
        (fact("Maya is on leave until the end of June.", valid_until="2026-06-30"), "2026-07-01"),
    ],
)  # fmt: skip
def test_a_state_holds_until_the_day_of_its_end(state, end):
    assert find_end(state) == end
    before = (date.fromisoformat(end) - timedelta(days=1)).isoformat()
    assert not is_over(state, before)
    assert is_over(state, end)


@for_each(("state", "day", "replaced_on", "is_true"), [
    (fact("Tom works at Acme."), "2020-01-01", None, True),
    (fact("Tom works at Acme.", valid_from="2020-06-01"), "2020-05-31", None, False),
    (fact("Tom works at Acme.", valid_from="2020-06-01T10:00:00Z"), "2020-06-01", None, True),
    (fact("Tom works at Acme.", valid_until="2020-06-30"), "2020-06-29", None, True),
    (fact("Tom works at Acme.", valid_until="2020-06-30"), "2020-06-30", None, False),
    (fact("Tom works at Acme.", superseded_by="b"), "2020-06-01", "2020-06-01", False),
    (fact("Tom works at Acme.", superseded_by="b"), "2020-05-31", "2020-06-01", True),
    (fact("Tom works at Acme.", superseded_by="b"), "2020-05-31", None, False),  # nobody knows when
    (fact("Tom works at Acme.", superseded_by="b", valid_until="2030-01-01"), "2026-01-01", None, False),
    (fact("Tom works at Acme.", superseded_by="b", valid_until="2020-03-31"), "2020-05-01", "2020-06-01", False),
    (fact("Tom was born.", valid_until="2020-06-02", durability="immutable", superseded_by="b"), "2021-01-01",
     "2020-09-01", False),
])  # fmt: skip
def test_true_on_a_day_is_begun_and_neither_over_nor_replaced(state, day, replaced_on, is_true):
    assert is_true_on(state, day, replaced_on) is is_true


def test_a_state_that_has_not_begun_is_coming_and_what_happens_then_is_known_now():
    assert is_coming(fact("Maya lives in Porto.", valid_from="2030-01-01"), "2026-11-20")
    assert not is_coming(fact("Maya lives in Porto.", valid_from="2026-11-20"), "2026-11-20")
    assert not is_coming(fact("The exam.", type="event", valid_from="2030-01-01"), "2026-11-20")


@pytest.mark.parametrize("until", ["", "soon", "9999-12-31", "2026-05"])
def test_odd_ends_do_no_harm(until):
    assert not is_over(fact("Maya will visit Porto on 3 May.", valid_until=until), "2026-04-21")


@for_each(
    ("told", "days"),
    [
        (fact("The book club met.", type="event", valid_until="2026-05-12"), ["on 2026-05-12"]),
        (fact("The book club met.", type="event", valid_from="2026-05-12"), ["on 2026-05-12"]),
        (fact("Maya camped.", type="experience", valid_from="2026-05-12", valid_until="2026-05-14T10:00:00Z"),
         ["between 2026-05-12 and 2026-05-14"]),
        (fact("Maya is away.", valid_from="2026-05-12", valid_until="2026-05-12T23:00:00Z"), ["on 2026-05-12"]),
        (fact("Maya will visit Porto on 3 May.", valid_until="2026-05-03"), ["on 2026-05-03"]),
        (fact("Maya was born.", durability="immutable", valid_until="1990-05-03"), ["on 1990-05-03"]),
        (fact("Maya is on leave until 3 May.", valid_until="2026-05-03"), ["until 2026-05-03"]),
        (fact("Tom works at Acme.", valid_from="2024-01-01"), ["since 2024-01-01"]),
        (fact("Tom works at Acme.", valid_from="2030-01-01"), ["from 2030-01-01"]),
        (fact("Tom works at Acme.", valid_from="2024-01-01", valid_until="2026-05-03"),
         ["since 2024-01-01", "until 2026-05-03"]),
        (fact("Tom works at Acme."), []),
    ],
)  # fmt: skip
def test_the_days_of_a_fact_are_told_as_what_they_are(told, days):
    assert tell_days(told) == days


@for_each("lasting", [
    fact("Maya lives in Ghent.", valid_from="2026-05-02", valid_until="2026-05-06"),
    fact("Maya is on leave through 6 May.", valid_from="2026-05-02", valid_until="2026-05-06"),
    fact("Maya is on leave until 6 May.", valid_from="2026-05-02", valid_until="2026-05-06"),
    fact("Maya lives in Porto.", valid_from="2026-05-04"),
])  # fmt: skip
def test_the_days_of_a_state_are_those_on_which_it_is_true(lasting):
    first, last = list_days(lasting)
    for day in (f"2026-05-{number:02}" for number in range(1, 10)):
        assert (first <= day <= last) is is_true_on(lasting, day), day


def test_what_happened_has_its_day_and_an_open_beginning_that_of_the_statement():
    assert list_days(fact("Tom hiked.", type="event", valid_from="2026-05-12")) == ("2026-05-12", "2026-05-12")
    assert list_days(fact("Maya is on leave until 6 May.", valid_until="2026-05-06")) == ("2026-04-20", "2026-05-05")
    assert list_days(fact("Maya lived there until 1 March.", valid_until="2026-03-01")) == ("2026-02-28", "2026-02-28")
