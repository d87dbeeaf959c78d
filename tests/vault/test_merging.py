"""Three versions of a note become one: nothing is lost, whoever merges, and in whatever order."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import examples, for_each
from merged_notes import LINES, SENTENCES_OF_LINES, SORTS, change, find_lost, list_statements

from quaid.vault import frontmatter, merging
from quaid.vault.merging import MAX_BYTES, merge_note, merge_sequences

SEEDS = st.integers(0, 10**9)
ITEMS = st.lists(st.sampled_from("abcdefgh"), max_size=7, unique=True)
FACT = "facts/2026/11/maya-takes-oat-milk-k3qdz.md"
HEAD = "id: 01kagx3m7r9q2d5w8t0v7k3qdz\ntype: fact\nstatus: active\nconfidence: 0.9\n"


def note(head: str = "", body: str = "Maya takes oat milk.\n", start: str = HEAD) -> bytes:
    return f"---\n{start}{head}---\n{body}".encode()


def merged(base: bytes, ours: bytes, theirs: bytes, path: str = FACT) -> str:
    both = merge_note(base, ours, theirs, path), merge_note(base, theirs, ours, path)
    assert both[0] is not None
    assert both[0] == both[1]
    return both[0].decode()


def head_of(text: str) -> dict[str, object]:
    return dict(frontmatter.parse(text).fields)


@given(SEEDS)
@settings(max_examples=examples(150), deadline=None)
def test_both_orders_give_one_note_that_has_all_that_either_side_says(seed: int) -> None:
    rng = Random(seed)
    sort = SORTS[rng.choice(list(SORTS))]
    base = sort.make(rng) if rng.random() < 0.75 else ""
    ours, theirs = change(rng, sort, base), change(rng, sort, base)
    text = merged(base.encode(), ours.encode(), theirs.encode(), sort.path)
    assert find_lost(base, ours, theirs, text) == set()
    assert merged(base.encode(), ours.encode(), base.encode(), sort.path) == ours
    assert merged(base.encode(), ours.encode(), ours.encode(), sort.path) == ours
    assert merged(ours.encode(), ours.encode(), text.encode(), sort.path) == text  # merged again


@pytest.mark.slow
@given(SEEDS, st.sampled_from([LINES, SENTENCES_OF_LINES, None]))
@settings(max_examples=examples(150), deadline=None)
def test_three_machines_agree_in_whatever_order_they_meet(seed: int, kinds: tuple[str, ...] | None) -> None:
    rng = Random(seed)
    sort = SORTS[rng.choice(list(SORTS))]
    base = sort.make(rng) if rng.random() < 0.75 else ""
    one, two, three = (change(rng, sort, base, *([kinds] if kinds else [])) for _ in range(3))

    def merge(left: str, right: str) -> str:
        return merged(base.encode(), left.encode(), right.encode(), sort.path)

    if len({base, one, two, three, merge(one, two), merge(two, three), merge(one, three)}) < 7:
        return  # git does not ask about equal files; two equal counts are one
    left, right = merge(merge(one, two), three), merge(one, merge(two, three))
    assert list_statements(left) == list_statements(right)
    if kinds:  # a line that one has removed and another reworded comes back in either of two places
        assert left == right


@given(ITEMS, ITEMS, ITEMS, ITEMS)
def test_lists_are_merged_as_sets_in_an_order_of_their_own(base, one, two, three) -> None:
    def merge(left, right):
        return merge_sequences(base, left, right)

    assert merge(one, two) == merge(two, one)
    assert set(merge(one, two)) == (set(base) & set(one) & set(two)) | (set(one) - set(base)) | (set(two) - set(base))
    assert set(merge(merge(one, two), three)) == set(merge(one, merge(two, three)))
    assert merge(one, base) == one


def test_what_was_counted_on_both_sides_is_added_and_what_was_cited_is_joined() -> None:
    base = note("confirmations: 2\nturns: [a]\n")
    ours = note('confirmations: 3\nturns: [a, "b, c"]\n').replace(b"0.9", b"0.91")
    theirs = note("confirmations: 5\nturns: [a, d]\nkeywords: [milk]\n").replace(b"0.9", b"0.94")
    assert head_of(merged(base, ours, theirs)) == {
        **head_of(base.decode()), "confirmations": "6", "confidence": "0.94", "turns": ["a", "b, c", "d"],
        "keywords": ["milk"],
    }  # fmt: skip


def test_a_count_that_one_side_lowered_does_not_undo_what_the_other_counted() -> None:
    assert "confirmations: 4" in merged(*(note(f"confirmations: {n}\n") for n in (3, 1, 4)))
    assert "confirmations: 1" in merged(*(note(f"confirmations: {n}\n") for n in (3, 1, 2)))


def test_equal_counts_of_two_machines_are_two_counts() -> None:
    ours, theirs = note("confirmations: 3\nturns: [b]\n"), note("confirmations: 3\nturns: [c]\n")
    assert "confirmations: 4" in merged(note("confirmations: 2\n"), ours, theirs)


def test_the_later_value_wins_and_the_other_stays_in_the_body() -> None:
    base = note("speaker: Maya\nupdated: 2026-11-01\n")
    ours = note("speaker: Zoe\nupdated: 2026-11-02\n")
    theirs = note("speaker: Ada\nupdated: 2026-11-03\n")
    text = merged(base, ours, theirs)
    assert head_of(text)["speaker"] == "Ada"
    assert head_of(text)["updated"] == "2026-11-03"
    assert text.endswith("Maya takes oat milk.\n\n%%merged: speaker: Zoe%%\n")


@pytest.mark.parametrize(("ours", "theirs"), [
    ("updated: 2026-11-02\nmodified: 2026-11-09\n", "updated: 2026-11-05\n"),
    ("updated: 2026-11-09\nmodified: 2026-11-02\n", "modified: 2026-11-05\n"),
    ("updated: 2026-11-09\n", "updated: 2026-11-02\nmodified: 2026-11-05\n"),
    ("modified: 2026-11-03\n", "updated: 2026-11-01\nmodified: 2026-10-30\n"),  # the base has that day already
    ("modified: 2026-11-03\n", ""),
])  # fmt: skip
def test_a_side_is_as_late_as_the_latest_that_it_says_of_itself(ours: str, theirs: str) -> None:
    base = note("speaker: Maya\nupdated: 2026-11-01\n")
    text = merged(base, note(f"speaker: Ada\n{ours}"), note(f"speaker: Zoe\n{theirs}"))
    assert head_of(text)["speaker"] == "Ada"


@pytest.mark.parametrize(("key", "base", "ours", "theirs", "kept"), [
    ("status", "pending", "active", "superseded", "superseded"),
    ("status", "pending", "forgotten", "active", "forgotten"),
    ("privacy", "shared", "public", "private", "private"),
    ("created", "2026-11-20", "2026-11-19", "2026-11-21", "2026-11-19"),
    ("ended", "2026-11-20", "2026-11-22", "2026-11-21", "2026-11-22"),
    ("superseded_by", "", '"[[b]]"', "", "[[b]]"),
])  # fmt: skip
def test_some_values_have_an_order_of_their_own(key, base, ours, theirs, kept) -> None:
    start = "id: 01kagx3m7r9q2d5w8t0v7k3qdz\ntype: fact\nconfidence: 0.9\n"
    texts = [note(f"{key}: {value}\n" if value else "", start=start) for value in (base, ours, theirs)]
    text = merged(*texts)
    assert head_of(text)[key] == kept
    assert "%%merged" not in text


def test_a_value_that_one_has_removed_and_the_other_changed_stays_changed() -> None:
    text = merged(note("speaker: Maya\ntags: [a]\n"), note("tags: [a, b]\n"), note("speaker: Ada\ntags: c\n"))
    assert head_of(text)["speaker"] == "Ada"
    assert sorted(head_of(text)["tags"]) == ["b", "c"]


def test_a_list_that_holds_more_than_words_is_left_to_the_comparison_of_lines() -> None:
    base, ours, theirs = (note(f"tags: [{items}]\n") for items in ("a", "a, {b: c}", "a, d"))
    assert merge_note(base, ours, theirs, FACT) is None


def test_what_one_side_has_superseded_is_not_active_again() -> None:
    text = merged(note(), note('superseded_by: "[[other]]"\n'), note("confirmations: 1\n"))
    assert head_of(text)["superseded_by"] == "[[other]]"


def test_comments_quotes_and_unknown_keys_stay_as_they_are() -> None:
    base = note("mood:   'good'   # mine\n\n# a remark\nowner: default\n")
    ours = base.replace(b"'good'", b"'better'")
    theirs = base.replace(b"default\n", b"default\ntags:\n  - home\n")
    assert merged(base, ours, theirs) == theirs.decode().replace("'good'", "'better'")


def test_two_statements_that_cannot_both_be_true_are_both_kept_and_marked() -> None:
    edge = "\n- [[Maya]] likes [[Oat milk]]\n"
    text = merged(
        note(body=f"Maya was born on 4 April.\n{edge}"),
        note(body=f"Maya was born on 14 April.\n{edge}"),
        note(body=f"Maya was born on 5 April.\n{edge}- [[Maya]] likes [[Tea]]\n"),
    )
    assert head_of(text)["disputed"] == ["Maya was born on 14 April.", "Maya was born on 5 April."]
    assert text.endswith(f"Maya was born on 14 April.\nMaya was born on 5 April.\n{edge}- [[Maya]] likes [[Tea]]\n")


def test_a_sentence_that_both_wrote_otherwise_in_case_alone_is_one() -> None:
    texts = (note(body=f"Maya sails. {said}\n") for said in ("Old.", "She Rows. New.", "She rows. Newer."))
    assert "Maya sails. She rows. New. Newer.\n" in merged(*texts)


def test_a_turn_that_one_side_forgot_stays_forgotten_and_one_that_was_restored_is_there() -> None:
    head = "type: episode\nsession: 2f1c9a\nturn_count: 1\n"
    path = "episodes/2026/11/20-1402-2f1c9a.md"
    base = note(body="**Maya**: I sail. ^t1\n", start=head)
    forgotten = note(body="**Maya**: *(forgotten)* ^t1\n", start=head)
    edited = note(body="**Maya**: I sail on Mondays. ^t1\n\n**Maya**: And I row. ^t2\n", start=head)
    text = merged(base, forgotten, edited, path)
    assert "sail" not in text
    assert text.count("^t1") == 1
    assert "And I row. ^t2" in text
    assert "I sail on Mondays. ^t1" in merged(forgotten, forgotten + b"\n**Maya**: Hm. ^t2\n", edited, path)


def test_the_last_turn_goes_with_the_count_of_turns() -> None:
    path = "episodes/2026/11/20-1402-2f1c9a.md"
    texts = [note(f"turn_count: {n}\nlast_turn: {h}\n", "", "type: episode\nsession: 2f1c9a\n") for n, h in ((2, "hb"), (9, "ha"), (4, "hz"))]  # fmt: skip
    head = head_of(merged(*texts, path))
    assert (head["turn_count"], head["last_turn"]) == ("9", "ha")


def test_a_box_that_one_side_has_ticked_is_ticked() -> None:
    head = "type: review\ntask: compare\nkind: merge\nkey: 3f0c9a1b2c3d4e5f\n"
    ours, theirs = (note(f"created: 2026-11-{day}\n", f"# q\n\n- [{tick}] Yes, do it\n- [ ] No\n", head) for day, tick in ((20, " "), (21, "x")))  # fmt: skip
    text = merged(b"", ours, theirs, "review/merge-3f0c9a1b.md")
    assert text.endswith("# q\n\n- [x] Yes, do it\n- [ ] No\n")
    assert "created: 2026-11-20" in text


def test_the_newest_entry_of_a_journal_stays_on_top() -> None:
    base = "## 2026-02-10 - Reset\n\nOld.\n"
    ours, theirs = (f"## 2026-02-{day} - Reset\n\nNew {day}.\n\n{base}" for day in (12, 14))
    text = merged(base.encode(), ours.encode(), theirs.encode(), "journal/SOUL.journal.md")
    assert [line for line in text.splitlines() if line.startswith("##")] == [
        "## 2026-02-14 - Reset", "## 2026-02-12 - Reset", "## 2026-02-10 - Reset",
    ]  # fmt: skip


def test_windows_line_ends_and_a_byte_order_mark_stay() -> None:
    base = "\ufeff" + note(body="One.\n\nTwo.\n").decode().replace("\n", "\r\n")
    ours, theirs = base.replace("One.", "One more."), base.replace("0.9", "0.95")
    assert merged(*(text.encode() for text in (base, ours, theirs))) == theirs.replace("One.", "One more.")


@for_each("hostile", [
    b"\0\x01binary", b"\xff\xfe\x00", note("type: twice\n"), b"---\nid: [broken\n---\ntext\n", b"---\nid: never closed\n",
    note("a: &x [1]\nb: *x\nc: {d: {e: f}}\n").replace(b"status", b"? [complex]\n: status"),
    b"x" * (MAX_BYTES + 1), b"<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n", b"a\tb\n", b"- " * 5000 + b"\n",
    b"---\n" + b"a: " + b"[" * 5000 + b"\n---\n", b"plain text of the owner\n",
])  # fmt: skip
def test_what_cannot_be_parted_is_left_to_the_comparison_of_lines(hostile: bytes) -> None:
    for path in (FACT, "image.png"):
        assert merge_note(note(), note("confirmations: 1\n"), hostile, path) is None
        assert merge_note(b"", hostile, note(), path) is None
        assert merge_note(note(), hostile, hostile, path) == hostile


@given(st.binary(max_size=200), st.binary(max_size=200), st.binary(max_size=200))
def test_no_bytes_stop_a_merge(base: bytes, ours: bytes, theirs: bytes) -> None:
    for frame in (b"", b"---\nid: 01x\ntype: fact\n---\n"):
        first = merge_note(frame + base, frame + ours, frame + theirs, FACT)
        assert first == merge_note(frame + base, frame + theirs, frame + ours, FACT)


def test_the_marks_of_a_conflict_are_taken_out() -> None:
    marked = (
        b"a\n<<<<<<< ours\nb\n||||||| base\nx\n=======\nc\n>>>>>>> theirs\nd\n<<<<<<<<< o\n=========\ne\n>>>>>>>>> t\n"
    )
    assert len(merging.find_conflicts(marked)) == 2
    assert merging.choose_side(marked, "ours") == b"a\nb\nd\n"
    assert merging.choose_side(marked, "theirs") == b"a\nc\nd\ne\n"
    assert merging.choose_side(marked, "both") == b"a\nb\nc\nd\ne\n"
    assert not merging.find_conflicts(b"a\n=======\n")


def test_marks_that_a_side_wrote_are_text() -> None:
    written = b"```\n<<<<<<< mine\na\n=======\nb\n>>>>>>> yours\n```\n"
    marked = written + b"<<<<<<< ours\nb\n=======\nc\n>>>>>>> theirs\n"
    assert len(merging.find_conflicts(marked, written, b"")) == 1
    assert merging.choose_side(marked, "theirs", b"", written) == written + b"c\n"
