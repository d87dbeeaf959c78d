"""What machines put around words is taken out of them, and times are read in one way or not at all."""

from __future__ import annotations

from datetime import UTC

from hypothesis import given
from hypothesis import strategies as st
from matrices import for_each
from transcript_reading import utc

from quaid.capture.cleaning import clean_text
from quaid.capture.transcripts.parsing import parse_timestamp

# Cleaning


@for_each(("written", "expected"), [
    ("a<quaid-memory n=3>\nsecret\n\nmore</quaid-memory>b", "ab"),
    ("<quaid-memory>never closed\nstill it\n\nmine", "mine"),
    ("a <QUAID-MEMORY>x", "a"),
    ("[MEMORY] Maya likes tea\n  since 2020\n\tand on\nmine", "mine"),
    ("I read [MEMORY] somewhere", "I read [MEMORY] somewhere"),
    ("a\n<system-reminder>\nx\n</system-reminder>\nb", "a\n\nb"),
    ("a <system-reminder> is a tag", "a <system-reminder> is a tag"),
    ("my key is <private>hunter<private>2</private>3</private>.", "my key is ."),
    ("a <private>never closed", "a"),
    ("<quaid-memory>open\n\nuser\n\n<quaid-memory>x</quaid-memory> more", "user\n\n more"),
    ("a\r\nb\rc\u2028d", "a\nb\nc\nd"),
    ("\n \n  stray  \nb\t\n\n", "stray\nb"),
    ("  - a\n  - b", "  - a\n  - b"),
    ("    code", "    code"),
    ("a\0b\x07\tc\x9f", "ab\tc"),
    ("a\ud800b", "a\ufffdb"),
    ("```py\nx", "```py\nx\n```"),
    ("~~~~\nx\n~~~", "~~~~\nx\n~~~\n~~~~"),
    ("```\nx\n```", "```\nx\n```"),
    ("```inline``` code", "```inline``` code"),
    ("a\n\n\nb", "a\n\n\nb"),
    ("a\n\n\n\nb", "a\n\nb"),
    ("see " + "iVBORw0KGgo" * 40 + "== ok", "see [data] ok"),
    ("A" * 400, "A" * 400),
    ("-" * 500, "-" * 500),
    ("<system-reminder>a</system-reminder>" * 3, ""),
])  # fmt: skip
def test_cleaning_leaves_what_was_said(written, expected):
    assert clean_text(written) == expected


FRAGMENTS = (
    "<quaid-memory>", "</quaid-memory>", "<private>", "</private>", "<system-reminder>", "</system-reminder>",
    "<pri", "vate>", "[MEMORY] x", "[MEM", "ORY]", "```", "~~~~", "\n", "\n\n", " ", "\t", "\r", "\0", "\ud800",
    "word", "A" * 250, "=",
)  # fmt: skip


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=25).map("".join) | st.text())
def test_cleaning_twice_is_cleaning_once(text):
    cleaned = clean_text(text)
    assert clean_text(cleaned) == cleaned
    cleaned.encode()
    assert set(cleaned).isdisjoint("\0\r\x07")


# Times


@for_each(("written", "expected"), [
    ("2026-11-20T23:01:56.731Z", utc(2026, 11, 20, 23, 1, 56, 731000)),
    ("2026-11-20T23:01:56+02:00", utc(2026, 11, 20, 21, 1, 56)),
    ("2026-11-20 14:02", utc(2026, 11, 20, 14, 2)),
    ("2026-11-20", utc(2026, 11, 20)),
    ("1:56 pm on 8 May, 2023", utc(2023, 5, 8, 13, 56)),
    ("12:09 am on 13 September, 2023", utc(2023, 9, 13, 0, 9)),
    ("May 8, 2023 1:56 p.m.", utc(2023, 5, 8, 13, 56)),
    ("8 May 2023", utc(2023, 5, 8)),
    ("20/11/2026, 14:02", utc(2026, 11, 20, 14, 2)),
    ("11/20/26, 2:02\u202fPM", utc(2026, 11, 20, 14, 2)),
    ("20.11.2026 14:02", utc(2026, 11, 20, 14, 2)),
    ("Fri, 20 Nov 2026 14:02:11 +0100", utc(2026, 11, 20, 13, 2, 11)),
    (1795215715, utc(2026, 11, 20, 23, 1, 55)),
    (1795215715610, utc(2026, 11, 20, 23, 1, 55, 610000)),
    ("1795215715", utc(2026, 11, 20, 23, 1, 55)),
    (0, utc(1970, 1, 1)),
    ("3/4/2026", None),
    ("yesterday", None),
    ("14:02", None),
    ("0001-01-01T00:00:00+14:00", None),
    (float("nan"), None),
    (10**400, None),
    (True, None),
    (None, None),
    ([], None),
])  # fmt: skip
def test_times_are_read_with_their_zone_or_without_one_or_not_at_all(written, expected):
    moment = parse_timestamp(written)
    assert (moment and (moment if moment.tzinfo else moment.replace(tzinfo=UTC))) == expected


@given(st.text() | st.floats() | st.integers())
def test_no_time_is_an_error(value):
    moment = parse_timestamp(value)
    assert moment is None or moment.tzinfo is UTC
