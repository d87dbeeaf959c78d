"""Episode bodies: what is rendered reads back, and what a person did to it is borne."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quaid.capture.cleaning import clean_text
from quaid.errors import BadInputError
from quaid.model import Turn
from quaid.vault.episodes import EpisodeTurn, forget_turn, parse_turns, render_turns

STARTED = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)

PIECES = (
    *"*:^t1 \\\n()`->|#X~.é\u00a0",
    "**X**: ",
    "**X**\\: ",
    "**A B** (13:56): ",
    " ^t5",
    " \\^t5",
    "^t12",
    "\n\n",
    "\n- item",
    "\n```\n",
    "*(forgotten)*",
    "word",
    "[[Maya]]",
)
texts = st.lists(st.sampled_from(PIECES), max_size=14).map("".join).map(clean_text) | st.text().map(clean_text)
speakers = st.text("aZ *\\:()-_.é#^|", min_size=1, max_size=12).map(lambda name: " ".join(name.split())).filter(bool)
moments = st.none() | st.datetimes(
    min_value=STARTED.replace(year=1000, tzinfo=None),
    max_value=STARTED.replace(year=9000, tzinfo=None),
    timezones=st.just(UTC),
).map(lambda at: at.replace(second=0, microsecond=0))
turns = st.builds(Turn, speaker=speakers, text=texts, role=st.just("user"), at=moments)


def said(body, started=STARTED):
    return [(turn.number, turn.speaker, turn.text) for turn in parse_turns(body, started)]


def iso(at):
    return at.strftime("%Y-%m-%dT%H:%M:%SZ") if at else None


@pytest.mark.slow
@given(st.lists(turns, max_size=5), st.integers(1, 5000), moments)
def test_what_is_rendered_reads_back(conversation, first, started):
    body = render_turns(conversation, first, started)
    read = parse_turns(body, started)
    assert [(t.number, t.speaker, t.text, t.said_at) for t in read] == [
        (number, turn.speaker, turn.text, iso(turn.at)) for number, turn in enumerate(conversation, first)
    ]


@given(st.lists(turns, min_size=1, max_size=4))
def test_crlf_changes_nothing(conversation):
    body = render_turns(conversation, 1, STARTED)
    assert said(body.replace("\n", "\r\n")) == said(body)


@given(st.text() | st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_any_body_can_be_read_and_offsets_lie_in_it(body):
    end = 0
    for turn in parse_turns(body):
        assert end <= turn.start <= turn.end <= len(body)
        end = turn.end


@given(st.lists(turns, min_size=1, max_size=5), st.data())
def test_forgetting_a_turn_touches_no_other_byte(conversation, data):
    body = render_turns(conversation, 1, STARTED)
    number = data.draw(st.integers(1, len(conversation)))
    before = parse_turns(body, STARTED)[number - 1]
    forgotten = forget_turn(body, number)
    after = parse_turns(forgotten, STARTED)[number - 1]
    assert (after.text, after.speaker, after.number, after.said_at) == ("", before.speaker, number, before.said_at)
    assert forgotten.startswith(body[: before.start])
    assert forgotten.endswith(body[before.end :])
    assert forget_turn(forgotten, number) == forgotten


def test_the_form_is_the_documented_one():
    conversation = [
        Turn("Caroline", "I went to a LGBTQ support group yesterday and it was so powerful.", at=STARTED),
        Turn("Melanie", "Wow!\n\nSecond paragraph."),
        Turn("Caroline", "Late.", at=STARTED + timedelta(hours=11)),
    ]
    assert render_turns(conversation, 3, STARTED) == (
        "**Caroline** (13:56): I went to a LGBTQ support group yesterday and it was so powerful. ^t3\n"
        "\n"
        "**Melanie**: Wow!\n"
        "\n"
        "Second paragraph. ^t4\n"
        "\n"
        "**Caroline** (2023-05-09 00:56): Late. ^t5\n"
    )


@pytest.mark.parametrize(
    "ending",
    [
        "- one\n- two",
        "1. one\n2. two",
        "> quoted",
        "| a | b |\n| - | - |",
        "```python\nx = 1\n```",
        "# Heading",
        "- one\n  more",
    ],
)
def test_structured_text_stands_on_its_own_and_its_id_too(ending):
    assert render_turns([Turn("Maya", ending)], 1, None) == f"**Maya**:\n\n{ending}\n\n^t1\n"
    assert render_turns([Turn("Maya", f"Look:\n{ending}")], 1, None) == f"**Maya**: Look:\n{ending}\n\n^t1\n"


def test_text_that_looks_like_grammar_is_escaped_so_that_markdown_hides_it():
    body = render_turns([Turn("Maya", "See ^t5\n\n**Status**: done\n**Next**: rest")], 1, None)
    assert body == "**Maya**: See \\^t5\n\n**Status**\\: done\n**Next**: rest ^t1\n"
    assert said(body) == [(1, "Maya", "See ^t5\n\n**Status**: done\n**Next**: rest")]


def test_no_turns_render_to_nothing():
    assert render_turns([], 1, None) == ""
    assert parse_turns("") == []


def test_offsets_are_those_of_the_block():
    body = "# Title\n\n**Maya** (14:02): hi ^t1\n\n**Sam**: yo\r\n\r\n- a\r\n\r\n^t2\r\n"
    blocks = [body[turn.start : turn.end] for turn in parse_turns(body)]
    assert blocks == ["# Title", "**Maya** (14:02): hi ^t1", "**Sam**: yo\r\n\r\n- a\r\n\r\n^t2"]


def test_a_clock_needs_the_day_the_episode_started():
    body = "**Maya** (14:02): hi ^t1\n\n**Sam** (2023-05-09 00:10): late ^t2\n\n**Sam** (laughing): ha ^t3\n\n**Sam** (25:99): ? ^t4\n"
    assert [turn.said_at for turn in parse_turns(body)] == [None, "2023-05-09T00:10:00Z", None, None]
    assert parse_turns(body, STARTED)[0] == EpisodeTurn(1, "Maya", "hi", "2023-05-08T14:02:00Z", 0, 24)
    assert [turn.speaker for turn in parse_turns(body)] == ["Maya", "Sam", "Sam", "Sam"]


def test_text_outside_any_block_stays_searchable():
    body = "# Session\n\n**Maya**: hi ^t1\n\nA remark of mine.\n\nMore of it.\n\n**Sam**: yo ^t2\n\nlast words\n"
    assert said(body) == [
        (None, "", "# Session"),
        (1, "Maya", "hi"),
        (None, "", "A remark of mine.\n\nMore of it."),
        (2, "Sam", "yo"),
        (None, "", "last words"),
    ]


def test_a_turn_without_id_belongs_to_the_next_one():
    assert said("**Maya**: hi\n\n**Sam**: yo ^t2\n\n**Maya**: end") == [
        (2, "Maya", "hi"),
        (2, "Sam", "yo"),
        (None, "Maya", "end"),
    ]


def test_repeated_numbers_and_edited_speakers_are_borne():
    body = "**[[Maya Chen]]**: hi ^t1\n\n**[[Sam|Sammy]]** : no header ^t1\n\nheadless ^t7\n^t8\n"
    assert said(body) == [(1, "Maya Chen", "hi"), (1, "", "**[[Sam|Sammy]]** : no header"), (7, "", "headless")]


def test_an_id_ends_a_turn_even_when_the_blank_line_is_gone():
    assert said("**Maya**: hi ^t1\n**Sam**: yo ^t2  \n") == [(1, "Maya", "hi"), (2, "Sam", "yo")]


def test_forgetting_keeps_speaker_time_id_and_the_rest():
    body = "intro\r\n\r\n**Maya** (14:02): a\r\n\r\n- b\r\n\r\n^t1\r\n\r\n**Sam**: yo ^t2\r\n"
    assert forget_turn(body, 1) == (
        "intro\r\n\r\n**Maya** (14:02): *(forgotten)*\r\n\r\n^t1\r\n\r\n**Sam**: yo ^t2\r\n"
    )
    assert said(forget_turn(body, 2))[-1] == (2, "Sam", "")


def test_a_turn_that_was_lost_its_id_is_forgotten_with_its_number():
    assert forget_turn("**Maya**: secret\n\n**Maya**: too ^t1\n", 1) == (
        "**Maya**: *(forgotten)*\n\n**Maya**: *(forgotten)* ^t1\n"
    )


def test_forgetting_what_is_not_there_is_an_error():
    with pytest.raises(BadInputError, match="No turn is numbered 9"):
        forget_turn("**Maya**: hi ^t1\n", 9)


def test_somebody_who_says_the_marker_of_forgetting_is_not_forgotten():
    body = render_turns([Turn("Maya", "*(forgotten)*")], 1, None)
    assert body == "**Maya**: \\*(forgotten)* ^t1\n"
    assert said(body) == [(1, "Maya", "*(forgotten)*")]


def test_a_nameless_turn_gets_the_name_of_its_role():
    assert render_turns([Turn(" ", "hi"), Turn("", "yo", "assistant")], 1, None) == (
        "**User**: hi ^t1\n\n**Assistant**: yo ^t2\n"
    )
