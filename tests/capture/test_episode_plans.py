"""Every turn of a conversation is kept exactly once, whatever became of the transcript and of the note."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import examples, for_each

from quaid.capture.episode_note import (
    StoredEpisode,
    candidate_sessions,
    continues,
    find_fork,
    plan_episode,
    shared_start,
)
from quaid.model import Conversation, Edit, Turn
from quaid.vault import episodes, frontmatter
from quaid.vault.frontmatter import FrontmatterBrokenError

NOW = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
STARTED = datetime(2026, 11, 20, 14, 2, tzinfo=UTC)


def talk(*texts, session="2f1c9a", **more):
    """Maya and Tom in turns, a minute apart."""
    turns = tuple(
        Turn(("Maya", "Tom")[i % 2], text, "user", STARTED + timedelta(minutes=i)) for i, text in enumerate(texts)
    )
    return Conversation(turns, session, started=STARTED, **more)


class Plan(NamedTuple):
    rel_path: str
    edit: Edit | None
    new_turns: int


def keep(conversation, kept=None, own=(), session="2f1c9a", fork=None):
    plan = Plan(*plan_episode(session, conversation, kept, NOW, own, fork=fork))
    return plan, StoredEpisode(plan.rel_path, plan.edit.after) if plan.edit else kept


def edited(kept, old, new):
    assert old in kept.data.decode()
    return StoredEpisode(kept.rel_path, kept.data.decode().replace(old, new).encode())


def said(kept):
    return [(turn.number, turn.text) for turn in episodes.parse_turns(head(kept).body)]


def texts(kept):
    return [text for _, text in said(kept)]


def head(kept):
    return frontmatter.parse(kept.data.decode())


def test_a_new_conversation_is_a_note_of_its_turns():
    plan, kept = keep(talk("hi", "yo", "how are you?", project="house"))
    assert (plan.rel_path, plan.new_turns) == ("episodes/2026/11/20-1402-2f1c9a.md", 3)
    assert plan.edit.before is None
    assert said(kept) == [(1, "hi"), (2, "yo"), (3, "how are you?")]
    fields = head(kept).fields
    assert (fields["type"], fields["session"], fields["project"], fields["speakers"]) == (
        "episode", "2f1c9a", "house", ["Maya", "Tom"],
    )  # fmt: skip
    assert (fields["started"], fields["ended"]) == ("2026-11-20T14:02:00Z", "2026-11-20T14:04:00Z")
    assert "extracted" not in fields


def test_a_grown_conversation_adds_only_its_new_turns():
    _, kept = keep(talk("hi", "yo"))
    plan, grown = keep(talk("hi", "yo", "and", "so on"), kept)
    assert plan.new_turns == 2
    assert said(grown) == [(1, "hi"), (2, "yo"), (3, "and"), (4, "so on")]
    assert grown.data.startswith(kept.data[: kept.data.index(b"ended")])
    assert head(kept).body.strip() in head(grown).body
    assert head(grown).fields["ended"] == "2026-11-20T14:05:00Z"
    assert plan.edit.before == kept.data


@settings(max_examples=examples(100))
@given(
    st.lists(
        st.sampled_from(["hi", "ok", "**Tom**: no ^t1", "- a\n- b", "x ^t3", "*(forgotten)*", "```\ncode\n```"]),
        min_size=1,
        max_size=8,
    ),
    st.data(),
)
def test_however_it_grows_every_turn_is_kept_once_in_its_place(spoken, data):
    kept, place = None, 0
    while place < len(spoken):
        place = data.draw(st.integers(place + 1, len(spoken)))
        _, kept = keep(talk(*spoken[:place]), kept)
    assert said(kept) == list(enumerate(spoken, 1))
    assert keep(talk(*spoken), kept)[0].edit is None


def test_an_earlier_state_brings_nothing_new():
    _, kept = keep(talk("hi", "yo", "and", "so on"))
    for length in (1, 2, 3):
        assert keep(talk(*["hi", "yo", "and"][:length]), kept)[0].edit is None


def test_a_conversation_that_was_rewound_is_followed_from_where_it_parts():
    _, kept = keep(talk("hi", "yo", "left", "ok"))
    plan, kept = keep(talk("hi", "yo", "right", "fine", "more"), kept)
    assert texts(kept) == ["hi", "yo", "left", "ok", "right", "fine", "more"]
    plan, kept = keep(talk("hi", "yo", "right", "fine", "more", "end"), kept)
    assert said(kept)[-1] == (8, "end")
    assert plan.new_turns == 1


def test_after_a_rewind_words_said_before_are_kept_again():
    _, kept = keep(talk("ok", "sure", "why", "because"))
    _, kept = keep(talk("ok", "sure", "ok", "thanks"), kept)
    assert texts(kept) == ["ok", "sure", "why", "because", "ok", "thanks"]


@pytest.mark.parametrize("more", [(), ("new",), ("new", "newer")])
@pytest.mark.parametrize("last", [("ok",), ()])
def test_what_the_owner_edited_stays_edited(last, more):
    _, kept = keep(talk("hi", "my pin is 1234", *last))
    kept = edited(kept, "my pin is 1234", "my pin is secret")
    plan, grown = keep(talk("hi", "my pin is 1234", *last, *more), kept)
    assert texts(grown or kept) == ["hi", "my pin is secret", *last, *more]
    assert plan.new_turns == len(more)


def forget(kept, number):
    start = frontmatter.body_start(kept.data.decode())
    text = kept.data.decode()
    return StoredEpisode(kept.rel_path, (text[:start] + episodes.forget_turn(text[start:], number)).encode())


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_forgotten_turn_stays_forgotten(number):
    spoken = ["hi", "yo", "bye"]
    _, kept = keep(talk(*spoken))
    kept = forget(kept, number)
    left = ["" if i == number else text for i, text in enumerate(spoken, 1)]
    assert keep(talk(*spoken), kept)[0].edit is None
    assert keep(talk(*spoken[:number]), kept)[0].edit is None
    _, grown = keep(talk(*spoken, "again"), kept)
    assert texts(grown) == [*left, "again"]
    _, rewound = keep(talk(*spoken[:2], "other"), forget(keep(talk(*spoken))[1], min(number, 2)))
    assert spoken[min(number, 2) - 1] not in texts(rewound)
    assert texts(rewound)[-1] == "other"


def test_a_turn_the_owner_took_out_whole_does_not_come_back_when_it_grows():
    _, kept = keep(talk("hi", "yo", "bye"))
    kept = edited(kept, "**Tom** (14:03): yo ^t2\n\n", "")
    _, grown = keep(talk("hi", "yo", "bye", "again"), kept)
    assert said(grown) == [(1, "hi"), (3, "bye"), (4, "again")]


def test_text_the_owner_added_is_left_where_it_is():
    _, kept = keep(talk("hi", "yo"))
    kept = StoredEpisode(
        kept.rel_path,
        kept.data.replace(b"---\n**Maya**", b"---\nMy own words.\n\n**Maya**", 1) + b"\nA last line of mine.\n",
    )
    _, grown = keep(talk("hi", "yo", "new"), kept)
    text = grown.data.decode()
    assert text.index("My own words.") < text.index("hi ^t1")
    assert "A last line of mine." in text
    assert text.rstrip().endswith("new ^t3")


def test_notes_to_self_follow_the_new_turns():
    plan, kept = keep(talk("hi", "yo"), own=["call Maya back"])
    assert said(kept) == [(1, "hi"), (2, "yo"), (3, "call Maya back")]
    assert plan.new_turns == 3
    plan, kept = keep(talk("hi", "yo", "new"), kept, own=["another"])
    assert said(kept)[3:] == [(4, "new"), (5, "another")]
    assert head(kept).fields["speakers"] == ["Maya", "Tom", "Note to self"]
    assert keep(talk("hi", "yo", "new"), kept)[0].edit is None


@pytest.mark.parametrize("ending", ["", "\r\n", "\r\n\r\n"])
def test_a_note_with_windows_newlines_keeps_them(ending):
    _, kept = keep(talk("hi", "two\nlines"))
    kept = StoredEpisode(
        kept.rel_path, kept.data.decode().rstrip("\n").replace("\n", "\r\n").encode() + ending.encode()
    )
    _, grown = keep(talk("hi", "two\nlines", "three\nmore"), kept)
    assert b"\n" not in grown.data.replace(b"\r\n", b"")
    assert b"\r\n\r\n\r\n" not in grown.data
    assert texts(grown) == ["hi", "two\nlines", "three\nmore"]


def test_unknown_keys_and_comments_of_the_head_stay():
    _, kept = keep(talk("hi"))
    kept = edited(kept, "type: episode\n", "type: episode # mine\nmood: good\n")
    _, grown = keep(talk("hi", "yo"), kept)
    assert b"type: episode # mine\nmood: good\n" in grown.data


@pytest.mark.parametrize("data", [b"---\ntype: episode\n", b"---\nsession: [\n---\n**Maya**: hi ^t1\n"])
def test_a_broken_note_is_not_grown_by_guesses(data):
    with pytest.raises(FrontmatterBrokenError):
        keep(talk("hi", "yo"), StoredEpisode("episodes/x.md", data))


@pytest.mark.parametrize("count", ["", "²", "-1", "x", "9" * 5000])
def test_a_spoilt_count_is_made_good_from_the_turns(count):
    _, kept = keep(talk("hi", "yo"))
    kept = edited(kept, "turn_count: 2", f"turn_count: {count}")
    _, grown = keep(talk("hi", "yo", "new"), kept)
    assert texts(grown) == ["hi", "yo", "new"]


def test_an_episode_written_by_hand_grows_too():
    kept = StoredEpisode("episodes/x.md", b"---\ntype: episode\nsession: 2f1c9a\n---\n**Maya**: hi ^t7\n")
    plan, grown = keep(talk("hi", "yo"), kept)
    assert said(grown) == [(7, "hi"), (8, "yo")]
    assert plan.rel_path == "episodes/x.md"


def test_a_conversation_without_times_begins_now():
    plan, kept = keep(Conversation((Turn("Maya", "hi"),), "s"))
    assert plan.rel_path.startswith("episodes/2026/11/21-0900-")
    assert "ended" not in head(kept).fields


# --- transcripts without a session


def test_sessions_of_anonymous_transcripts_come_from_the_first_turn():
    first, again = (
        list(islice(candidate_sessions(talk(*spoken, session=None)), 3)) for spoken in (["hi"], ["hi", "yo"])
    )
    assert first == again
    assert len(set(first)) == 3
    assert first[1:] == [f"{first[0]}-2", f"{first[0]}-3"]
    assert next(candidate_sessions(talk("hello", session=None))) != first[0]


@for_each(("spoken", "is_it"), [
    ("hi yo bye", True), ("hi yo bye more", True), ("hi yo", True), ("hi", True),
    ("hi other", False), ("hi other talk", False), ("hi other talk here", False),
])  # fmt: skip
def test_an_anonymous_transcript_continues_only_its_own_episode_edited_or_not(spoken, is_it):
    _, kept = keep(talk("hi", "yo", "bye", session=None))
    assert continues(kept, talk(*spoken.split(), session=None)) is is_it
    for changed in (edited(kept, ": yo", ": (removed)"), forget(kept, 3)):
        assert continues(changed, talk("hi", "yo", "bye", "more", session=None))


# --- sessions that leave another one, and repeat it


def leave(kept, conversation, own=()):
    """`conversation`, of another session, kept as a fork."""
    return keep(conversation, session="77aa00", own=own, fork=find_fork(kept, conversation))


@pytest.mark.parametrize(("spoken", "shared"), [
    (["hi", "yo", "left", "ok"], 4), (["hi", "yo", "left", "ok", "more"], 4), (["hi", "yo", "right"], 2),
    (["hi", "yo"], 2), (["hi", "other"], 1), (["other", "yo", "left", "ok"], 0), ([], 0),
])  # fmt: skip
def test_what_a_fork_repeats_is_counted_from_the_start(spoken, shared):
    _, kept = keep(talk("hi", "yo", "left", "ok"))
    assert shared_start(kept, talk(*spoken)) == shared
    fork = find_fork(kept, talk(*spoken))
    assert fork is None if shared < 2 else (fork.parent, fork.turns, fork.number) == (kept.rel_path, shared, shared)


def test_the_same_words_at_another_time_or_by_another_are_no_fork():
    _, kept = keep(talk("hi", "yo"))
    later = Conversation(tuple(Turn(turn.speaker, turn.text, "user", NOW) for turn in talk("hi", "yo").turns), "x")
    others = Conversation(tuple(Turn("Ann", turn.text, "user", turn.at) for turn in talk("hi", "yo").turns), "x")
    assert shared_start(kept, later) == shared_start(kept, others) == 0


def test_of_a_fork_only_what_follows_is_written():
    _, parent = keep(talk("hi", "yo", "left", "ok"))
    plan, kept = leave(parent, talk("hi", "yo", "right", "fine", session="77aa00"))
    assert plan.new_turns == 2
    assert said(kept) == [(3, "right"), (4, "fine")]
    fields = head(kept).fields
    assert fields["continues"] == "[[20-1402-2f1c9a#^t2]]"
    assert fields["started"] == head(parent).fields["started"]
    assert (fields["turn_count"], fields["inherited"], fields["speakers"]) == ("4", "2", ["Maya", "Tom"])


@settings(max_examples=examples(60))
@given(st.integers(2, 5), st.lists(st.sampled_from(["ok", "why", "because"]), min_size=1, max_size=5), st.data())
def test_however_a_fork_grows_every_turn_after_it_is_kept_once(shared, spoken, data):
    _, parent = keep(talk("one", "two", "three", "four", "five"))
    whole = ["one", "two", "three", "four", "five"][:shared] + spoken
    kept, place = None, shared
    while place < len(whole):
        place = data.draw(st.integers(place + 1, len(whole)))
        conversation = talk(*whole[:place])
        _, kept = leave(parent, conversation) if kept is None else keep(conversation, kept, session="77aa00")
    first = shared_start(parent, talk(*whole)) + 1
    assert said(kept) == list(enumerate(whole[first - 1 :], first))
    assert keep(talk(*whole), kept)[0].edit is None


def test_a_fork_that_is_empty_label_new_is_not_written_until_it_does():
    _, parent = keep(talk("hi", "yo"))
    plan, kept = leave(parent, talk("hi", "yo"))
    assert (plan.edit, plan.new_turns, kept) == (None, 0, None)
    plan, kept = leave(parent, talk("hi", "yo"), own=["mine"])
    assert said(kept) == [(3, "mine")]
    _, kept = keep(talk("hi", "yo", "new"), kept)
    assert said(kept) == [(3, "mine"), (4, "new")]


def test_a_fork_that_was_rewound_does_not_bring_back_what_it_repeats():
    _, parent = keep(talk("hi", "yo", "left", "ok"))
    _, kept = leave(parent, talk("hi", "yo", "right", "fine"))
    assert keep(talk("hi"), kept)[0].edit is None
    assert keep(talk("hi", "yo"), kept)[0].edit is None
    _, kept = keep(talk("hi", "yo", "right", "other", "end"), kept)
    assert said(kept) == [(3, "right"), (4, "fine"), (5, "other"), (6, "end")]


def test_a_fork_of_a_fork_continues_that_one():
    _, parent = keep(talk("hi", "yo", "left"), own=["a note of mine"])
    _, second = leave(parent, talk("hi", "yo", "left", "b", "c"))
    assert head(second).fields["continues"] == "[[20-1402-2f1c9a#^t3]]"
    third = talk("hi", "yo", "left", "b", "d")
    assert (shared_start(parent, third), shared_start(second, third)) == (3, 4)
    fork = find_fork(second, third)
    assert (fork.turns, fork.number) == (4, 4)


def test_a_forgotten_turn_stays_forgotten_in_a_fork_and_an_edited_one_ends_what_is_shared():
    _, parent = keep(talk("hi", "my pin is 1234", "ok"))
    assert shared_start(forget(parent, 2), talk("hi", "my pin is 1234", "ok", "new")) == 3
    assert shared_start(edited(parent, "1234", "9"), talk("hi", "my pin is 1234", "ok")) == 1
