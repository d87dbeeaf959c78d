"""What happened stays true, states end."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from matrices import for_each

from quaid.text.endings import find_last_day, is_over, tell_days


def fact(text: str, **fields: str) -> SimpleNamespace:
    known = {"type": "fact", "durability": "contextual", "created": "2026-04-20T10:00:00Z", "valid_from": None}
    return SimpleNamespace(**{"text": text, "valid_until": None, **known, **fields})


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
    assert find_last_day(happened) is None
    assert not is_over(happened, "2026-12-24")


@for_each(
    "state",
    [
        fact("Maya is on leave.", valid_until="2026-05-03"),
        fact("Maya is on leave until 3 May.", valid_until="2026-05-03"),
        fact("Maya is on leave until the 3rd of May 2026.", valid_until="2026-05-03"),
        fact("The discount code is valid through 3 May 2026.", valid_until="2026-05-03"),
        fact("Tom works at Acme.", durability="mutable", valid_from="2024-01-01", valid_until="2026-05-03"),
        fact("Tom is ill today.", valid_until="2026-04-20"),
        fact("Tom is in Porto this week.", valid_until="2026-04-26"),
        fact("Decided on 2 March to freeze the API.", type="decision", valid_until="2026-05-03"),
    ],
)
def test_a_state_ends_the_day_after_its_last(state):
    last = state.valid_until
    assert find_last_day(state) == last
    assert not is_over(state, last)
    assert is_over(state, "2026-12-24")


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
        (fact("Tom works at Acme.", valid_from="2024-01-01", valid_until="2026-05-03"),
         ["since 2024-01-01", "until 2026-05-03"]),
        (fact("Tom works at Acme."), []),
    ],
)  # fmt: skip
def test_the_days_of_a_fact_are_told_as_what_they_are(told, days):
    assert tell_days(told) == days
