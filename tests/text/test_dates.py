"""A date in a question is a window as wide as it was meant; what only looks like one is left alone."""

from __future__ import annotations

import subprocess
import sys
import time
from datetime import UTC, date, datetime, timedelta, timezone
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matrices import for_each

from quaid.errors import UsageError
from quaid.text.dates import find_dates, find_day_in_name, parse_bound, parse_day, parse_period, read_date, read_period

FRIDAY = datetime(2026, 11, 20, 14, 30)  # noqa: DTZ001 - the asker's clock
ROOT = Path(__file__).parents[2]


def windows(text, now=FRIDAY):
    return [(mention.start.isoformat(), mention.end.isoformat()) for mention in find_dates(text, now)]


@for_each(
    ("text", "start", "end"),
    [
        ("on 2023-05-08T10:00", "2023-05-08", "2023-05-08"),
        ("2023-05", "2023-05-01", "2023-05-31"),
        ("8 May 2023", "2023-05-08", "2023-05-08"),
        ("on 25 February, 2022", "2022-02-25", "2022-02-25"),
        ("MAY 8TH, 2023", "2023-05-08", "2023-05-08"),
        ("the 8th of may", "2026-05-08", "2026-05-08"),
        ("met on Dec. 24", "2025-12-24", "2025-12-24"),
        ("8-10 May 2023", "2023-05-08", "2023-05-10"),
        ("May 8-10, 2023", "2023-05-08", "2023-05-10"),
        ("25/12/2022", "2022-12-25", "2022-12-25"),
        ("8.5.2023", "2023-05-08", "2023-05-08"),
        ("in May 2023", "2023-05-01", "2023-05-31"),
        ("in mid-August 2023", "2023-08-01", "2023-08-31"),
        ("in the beginning of February 2024", "2024-02-01", "2024-02-29"),
        ("in may", "2026-05-01", "2026-05-31"),
        ("last March", "2026-03-01", "2026-03-31"),
        ("last November", "2025-11-01", "2025-11-30"),
        ("in November", "2026-11-01", "2026-11-30"),
        ("december trip", "2025-12-01", "2025-12-31"),
        ("next March", "2027-03-01", "2027-03-31"),
        ("in 2022", "2022-01-01", "2022-12-31"),
        ("trip to Rome 2022", "2022-01-01", "2022-12-31"),
        ("in the 1990s", "1990-01-01", "1999-12-31"),
        ("the 90s", "1990-01-01", "1999-12-31"),
        ("summer 2022", "2022-06-01", "2022-08-31"),
        ("winter of 2023", "2023-12-01", "2024-02-29"),
        ("last summer", "2026-06-01", "2026-08-31"),
        ("Q3 2025", "2025-07-01", "2025-09-30"),
        ("2025-Q4", "2025-10-01", "2025-12-31"),
        ("in Q4", "2026-10-01", "2026-12-31"),
        ("third quarter of 2024", "2024-07-01", "2024-09-30"),
        ("yesterday", "2026-11-19", "2026-11-19"),
        ("last night", "2026-11-19", "2026-11-19"),
        ("the day before yesterday", "2026-11-18", "2026-11-18"),
        ("tomorrow", "2026-11-21", "2026-11-21"),
        ("this week", "2026-11-16", "2026-11-22"),
        ("last week", "2026-11-09", "2026-11-15"),
        ("last weekend", "2026-11-14", "2026-11-15"),
        ("next month", "2026-12-01", "2026-12-31"),
        ("this year", "2026-01-01", "2026-12-31"),
        ("last quarter", "2026-07-01", "2026-09-30"),
        ("the past week", "2026-11-14", "2026-11-20"),
        ("this past weekend", "2026-11-14", "2026-11-15"),
        ("the coming weekend", "2026-11-21", "2026-11-22"),
        ("this past summer", "2026-06-01", "2026-08-31"),
        ("this past November", "2025-11-01", "2025-11-30"),
        ("in spring", "2026-03-01", "2026-05-31"),
        ("during the winter", "2025-12-01", "2026-02-28"),
        ("the week before last", "2026-11-02", "2026-11-08"),
        ("the month after next", "2027-01-01", "2027-01-31"),
        ("next Tuesday", "2026-11-24", "2026-11-24"),
        ("this coming Tuesday", "2026-11-24", "2026-11-24"),
        ("on Tuesday of last week", "2026-11-10", "2026-11-10"),
        ("next week on Thursday", "2026-11-26", "2026-11-26"),
        ("yesterday morning", "2026-11-19", "2026-11-19"),
        ("tomorrow evening", "2026-11-21", "2026-11-21"),
        ("in the last 3 weeks", "2026-10-31", "2026-11-20"),
        ("two weeks ago", "2026-11-02", "2026-11-08"),
        ("3 months ago", "2026-08-01", "2026-08-31"),
        ("a year ago", "2025-01-01", "2025-12-31"),
        ("a couple of days ago", "2026-11-18", "2026-11-18"),
        ("a few days ago", "2026-11-15", "2026-11-18"),
        ("on Monday", "2026-11-16", "2026-11-16"),
        ("on Friday", "2026-11-20", "2026-11-20"),
        ("last Friday", "2026-11-13", "2026-11-13"),
        ("next Friday", "2026-11-27", "2026-11-27"),
        ("this sunday", "2026-11-22", "2026-11-22"),
        ("before June 2023", "0001-01-01", "2023-05-31"),
        ("before the end of 2022", "0001-01-01", "2021-12-31"),
        ("after 8 May 2023", "2023-05-09", "9999-12-31"),
        ("since last March", "2026-03-01", "9999-12-31"),
        ("until 2020", "0001-01-01", "2020-12-31"),
        ("as of 1 February, 2023", "0001-01-01", "2023-02-01"),
        ("by 7 November, 2022", "0001-01-01", "2022-11-07"),
        ("between May and July 2023", "2023-05-01", "2023-07-31"),
        ("from November to January 2023", "2022-11-01", "2023-01-31"),
        ("from 2020 to 2022", "2020-01-01", "2022-12-31"),
        ("between 3 May 2023 and yesterday", "2023-05-03", "2026-11-19"),
        ("on the Monday before July 24, 2023", "2023-07-17", "2023-07-17"),
        ("the week of 23 August, 2023", "2023-08-21", "2023-08-27"),
        ("last week before 23 January, 2023", "2023-01-16", "2023-01-22"),
        ("two days before 5 July 2023", "2023-07-03", "2023-07-03"),
        ("the weekend after 5 July 2023", "2023-07-15", "2023-07-16"),
    ],
)
def test_a_date_is_as_wide_as_it_was_meant(text, start, end):
    assert windows(text) == [(start, end)]


@for_each(
    "text",
    [
        "what may I do",
        "May I go?",
        "this may be wrong",
        "the 5 may be wrong",
        "we march on",
        "where does April live",
        "what did June say to August",
        "who sat in the sun",
        "wait a second",
        "Friday Harbor",
        "on Friday Harbor",
        "every Monday",
        "the spring of the mattress and the fall of Rome",
        "in the fall of Rome",
        "the last year of school",
        "the last two weeks of term",
        "years ago",
        "1984 by Orwell",
        "a 1909-S VDB penny",
        "2000 people came",
        "won by 2000 people",
        "$2020 and v2023.1 and 555-2023-11",
        "Cyberpunk 2077",
        "08/05/2023",
        "how long ago",
        "ſunday on ſunday and on Frıday",
        "last but not least",
        "400 decades ago",
        "",
    ],
)
def test_what_only_looks_like_a_date_is_none(text):
    assert windows(text) == []


def test_each_date_says_where_it_stands():
    text = "Did Maya move before June 2023 or on 8 May 2022?"
    mentions = find_dates(text, FRIDAY)
    assert [mention.text for mention in mentions] == ["before June 2023", "8 May 2022"]
    assert [text[slice(*mention.span)] for mention in mentions] == ["before June 2023", "8 May 2022"]


def test_an_impossible_day_still_has_its_month():
    assert windows("31 February 2023") == [("2023-02-01", "2023-02-28")]


PIECES = (
    "8 ", "31", "may ", "March", " 2023", "2026", "-05", "-08", "last ", "next ", "this ", "the ", "week", "weekend ", "year ",
    "decade", " ago", "999 ", "a few ", "days ", "before ", "after ", "since ", "between ", " and ", "from ", " to ", "on ",
    "Monday", "Fri", "summer ", "Q3 ", "of ", "in ", "yesterday", "the 90s", ".", ",", " ", "\n", "/", "–", "ſunday", "Kelvin",
)  # fmt: skip
texts = st.lists(st.sampled_from(PIECES), max_size=15).map("".join) | st.text()
clocks = st.datetimes(min_value=datetime(1, 1, 1), max_value=datetime(9999, 12, 31))  # noqa: DTZ001


@given(texts, clocks)
def test_any_text_at_any_time_has_windows_in_order(text, now):
    mentions = find_dates(text, now)
    assert mentions == find_dates(text, now)
    places = [mention.span for mention in mentions]
    assert places == sorted(places)
    assert all(left[1] <= right[0] for left, right in pairwise(places))
    for mention in mentions:
        assert mention.start <= mention.end
        assert mention.text == text[slice(*mention.span)]


@for_each("piece", [*PIECES, "8 May 2023 ", "before the ", "a couple of ", "last week before "])
def test_many_dates_take_no_time(piece):
    text = piece * (20_000 // len(piece))
    started = time.thread_time()
    find_dates(text, FRIDAY)
    assert time.thread_time() - started < 10.0


@for_each(
    ("text", "first", "last"),
    [
        ("2026", date(2026, 1, 1), date(2026, 12, 31)),
        ("1984", date(1984, 1, 1), date(1984, 12, 31)),
        ("2026-03", date(2026, 3, 1), date(2026, 3, 31)),
        (" 2026-03-01 ", date(2026, 3, 1), date(2026, 3, 1)),
        ("last March", date(2026, 3, 1), date(2026, 3, 31)),
        ("march", date(2026, 3, 1), date(2026, 3, 31)),
        ("in May 2023", date(2023, 5, 1), date(2023, 5, 31)),
        ("monday", date(2026, 11, 16), date(2026, 11, 16)),
        ("yesterday", date(2026, 11, 19), date(2026, 11, 19)),
        ("two weeks ago", date(2026, 11, 2), date(2026, 11, 8)),
    ],
)
def test_an_option_is_a_day_at_either_end(text, first, last):
    assert parse_day(text, FRIDAY, end=False) == first
    assert parse_day(text, FRIDAY, end=True) == last


def test_a_typed_moment_is_one_in_the_zone_it_names_or_the_readers():
    now = datetime(2026, 11, 20, 23, 30, tzinfo=timezone(timedelta(hours=2)))
    assert parse_bound("2026-11-20 10:00", now, end=True) == datetime(2026, 11, 20, 8, tzinfo=UTC)
    assert parse_bound("2026-11-20T10:00:00Z", now, end=False) == datetime(2026, 11, 20, 10, tzinfo=UTC)
    assert parse_bound("now", now, end=True) == now
    assert parse_day("2026-11-20T23:30Z", now, end=True) == date(2026, 11, 21)
    with pytest.raises(UsageError, match=r"--from 2026-11-20 12:00.* is after --to 2026-11-20 08:00"):
        parse_period(("--from", "--to"), "2026-11-20T12:00Z", "2026-11-20T08:00Z", now)
    assert parse_period(("--from", "--to"), "2026-11-20T12:00Z", "2026-11-20", now)[1] == date(2026, 11, 20)


@for_each(
    "text", ["", "soon", "2026-13", "2026-02-30", "maybe March 2023", "2026-03-01 or so", "before May", "x" * 10_000]
)
def test_what_is_no_date_is_refused_with_a_way_to_write_it(text):
    with pytest.raises(UsageError, match=r"is not a date Quaid can read\. Write it as 2026-03-01") as refusal:
        parse_day(text, FRIDAY, end=False)
    assert len(str(refusal.value)) < 250


def test_a_question_without_a_date_loads_no_date_library():
    code = (
        "import sys, datetime; from quaid.text.dates import find_dates;"
        "now = datetime.datetime(2026, 11, 20); find_dates('what does Maya like to drink this time, 3 or 20 of them?', now);"
        "before = [name for name in sys.modules if name.startswith('dateutil') or name.endswith('date_patterns')];"
        "found = find_dates('last March', now); print(before, len(found), 'dateutil' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "[] 1 True"


@for_each(
    ("name", "day"),
    [
        ("2026-03-14", "2026-03-14"),
        ("2026-03-14 Standup", "2026-03-14"),
        ("2026-03-14-moving-to-ghent", "2026-03-14"),
        ("Call with Tom 2026-03-14", "2026-03-14"),
        ("2026_03_14", "2026-03-14"),
        ("2026.03.14", "2026-03-14"),
        ("20260314", "2026-03-14"),
        ("202603141200 Entropy", "2026-03-14"),
        ("20260314T120059", "2026-03-14"),
        ("14 Mar 2026", "2026-03-14"),
        ("2026年3月14日", "2026-03-14"),
        ("2026년 3월 14일", "2026-03-14"),
        ("March 14, 2026", "2026-03-14"),
        ("2026-W11", None),
        ("2026-03", None),
        ("March", None),
        ("May we", None),
        ("Friday 13th", None),
        ("2026-03-14 to 2026-03-20", None),
        ("20261399", None),
        ("ISBN 9783161484100", None),
        ("call 0612345678", None),
        ("Nineteen 1984", None),
    ],
)
def test_the_name_of_a_file_may_give_a_day(name, day):
    assert find_day_in_name(name) == day


# --- dates that somebody has written into a property


@for_each("written", [
    "2026-03-14", "2026-3-14", "2026/03/14", "2026.03.14", "20260314", "202603141015", "14.03.2026", "14.3.2026", "14/03/2026",
    "March 14, 2026", "Mar 14th, 2026", "14 Mar 2026", "14. März 2026", "Samstag, 14. März 2026 um 10:15 Uhr", "14 mars 2026",
    "Saturday 14th of March 2026, 10:15", "Saturday, March 14th 2026, 10:15:00 am", "Sat, 14 Mar 2026 10:00:00 +0100",
    "Sat Mar 14 2026 10:00:00 GMT+0100 (CET)", "2026年3月14日", "[[2026-03-14]]", "[[daily/2026-03-14|Saturday]]",
    "[[Mar 14th, 2026]]", "[2026-03-14]",
])  # fmt: skip
def test_a_written_day_is_read_in_the_forms_of_many_programs(written):
    assert read_date(written) == "2026-03-14"


@for_each(("written", "moment"), [
    ("2026-03-14 10:00:00 +0100", "2026-03-14T10:00:00+0100"),
    ("2026/03/14 20:46:25", "2026-03-14T20:46:25"),
    ("2026-03-14T10:00 +01", "2026-03-14T10:00+01"),
    ("2026-03-14 9:05", "2026-03-14T09:05"),
    ("2026-03-14T10:00:00.000+01:00", "2026-03-14T10:00:00.000+01:00"),
    ("9999-12-31T23:59:59-12:00", "9999-12-31T23:59:59-12:00"),
    ("1773484800", "2026-03-14T10:40:00Z"),
    ("1773484800000", "2026-03-14T10:40:00Z"),
])  # fmt: skip
def test_a_written_moment_keeps_its_time_and_zone(written, moment):
    assert read_date(written) == moment


@for_each("written", [
    "03/04/2026", "12", "2026", "2026-03", "March 2026", "2026-W11", "1900-02-29", "2026-02-30", "Feb 30, 2026", "2026-13-45",
    "2026-03-14T24:00:00", "2026-03-14T10:00:60Z", "yesterday", "{{date}}", "sometime March 14, 2026 or so",
    "2026-03-14 to 2026-03-16", "before March 14, 2026", "99999999999", "²", "", "[]", "[[", "0000-01-01",
])  # fmt: skip
def test_what_states_no_one_day_is_not_read_as_one(written):
    assert read_date(written) is None


@given(st.text(max_size=40))
def test_any_text_may_stand_where_a_date_should(written):
    day = read_date(written)
    assert day is None or datetime.fromisoformat(day)


def test_on_its_last_day_a_season_is_this_one_and_on_its_first_not_the_next():
    last_day, first_day = datetime(2026, 8, 31, 12), datetime(2026, 6, 1, 12)  # noqa: DTZ001
    assert windows("last summer", last_day) == [("2025-06-01", "2025-08-31")]
    assert windows("this summer", last_day) == [("2026-06-01", "2026-08-31")]
    assert windows("next summer", first_day) == [("2027-06-01", "2027-08-31")]


def test_a_date_that_is_another_day_elsewhere_is_none():
    assert [windows(text) for text in ("12/5/2022", "5/12/2022", "1/2/2022")] == [[], [], []]
    assert windows("12/12/2022") == [("2022-12-12", "2022-12-12")]
    assert windows("13/12/2022") == [("2022-12-13", "2022-12-13")]


@for_each(
    ("day", "past", "coming"),
    [(16, "14", "21"), (20, "14", "21"), (21, "14", "28"), (22, "14", "28"), (23, "21", "28")],
)
def test_a_past_weekend_is_over_and_a_coming_one_has_not_begun(day, past, coming):
    now = datetime(2026, 11, day, 12)  # noqa: DTZ001
    assert [windows(text, now)[0][0][-2:] for text in ("past weekend", "coming weekend")] == [past, coming]


def test_next_friday_is_not_the_one_of_this_week():
    wednesday = datetime(2026, 11, 18, 12)  # noqa: DTZ001
    assert windows("next Friday", wednesday) == [("2026-11-27", "2026-11-27")]
    assert windows("this Friday", wednesday) == windows("coming Friday", wednesday) == [("2026-11-20", "2026-11-20")]


@for_each(
    ("written", "first", "last"),
    [
        ("1993", "1993", "1993-12-31"),
        ("2024-02", "2024-02", "2024-02-29"),
        (" 9999 ", "9999", "9999-12-31"),
        ("2023-05-07", "2023-05-07", "2023-05-07"),
        ("0000", None, None),
        ("2023-13", None, None),
        ("soon", None, None),
    ],
)
def test_a_year_or_a_month_alone_is_a_period(written, first, last):
    assert (read_period(written), read_period(written, end=True)) == (first, last)


def test_next_november_is_never_the_one_that_is_now():
    assert windows("next November") == [("2027-11-01", "2027-11-30")]
    assert windows("next December") == [("2026-12-01", "2026-12-31")]
