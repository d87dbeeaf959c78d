"""The journal: one entry a day and trigger, the newest first, and no byte of the owner's touched."""

from __future__ import annotations

from datetime import date, datetime

from hypothesis import example, given
from hypothesis import strategies as st
from matrices import for_each
from vault.test_snippets import FOUR, HALF_PAST_TWO, NEXT_DAY, is_put_into, keys, moments, soup, triggers

from quaid.vault import headings
from quaid.vault.core_notes import add_entry, parse_entries

PATTERN = "Today's conversation revealed a pattern I've been developing around..."
NEW_FILE = f"## 2026-02-12 - Compaction\n\n{PATTERN}\n"


def test_a_new_file_holds_one_heading_and_the_text():
    assert add_entry(None, "Compaction", HALF_PAST_TWO, PATTERN) == NEW_FILE
    (entry,) = parse_entries(NEW_FILE)
    assert (entry.day, entry.trigger, entry.texts) == (date(2026, 2, 12), "Compaction", (PATTERN,))


def test_a_second_one_of_the_day_is_a_further_paragraph_once():
    text = add_entry(
        NEW_FILE, "compaction", FOUR, f"{PATTERN}\n\nAnd another.\nIn two lines.\n\n\nAnd another. In two lines"
    )
    assert text == f"{NEW_FILE}\nAnd another.\nIn two lines.\n"
    assert add_entry(text, "Compaction", FOUR, "and another. in two lines.") == text


def test_the_newest_stands_first_and_an_earlier_day_goes_to_its_place():
    text = None
    for day, trigger in [(12, "Compaction"), (14, "Compaction"), (13, "Compaction"), (13, "Reset"), (1, "Reset")]:
        text = add_entry(text, trigger, datetime(2026, 2, day), f"Day {day}, {trigger}.")  # noqa: DTZ001
    assert [(entry.day.day, entry.trigger) for entry in parse_entries(text)] == [
        (14, "Compaction"),
        (13, "Reset"),
        (13, "Compaction"),
        (12, "Compaction"),
        (1, "Reset"),
    ]
    assert text.startswith("## 2026-02-14 - Compaction\n\nDay 14, Compaction.\n\n## 2026-02-13 - Reset\n\n")
    assert text.endswith("\n\n## 2026-02-01 - Reset\n\nDay 1, Reset.\n")


def test_the_owners_title_comes_first_and_the_notes_behind_stay_behind():
    text = "\ufeff---\r\nx: 1\r\n---\r\n# Journal\r\nintro\r\n## 2026-02-12 - Compaction\r\nOld.\r\n\r\n## Mine\r\n\r\nNotes."
    assert add_entry(text, "Compaction", NEXT_DAY, "New.") == text.replace(
        "intro\r\n", "intro\r\n\r\n## 2026-02-13 - Compaction\r\n\r\nNew.\r\n\r\n"
    )
    assert add_entry(text, "Compaction", datetime(2026, 1, 1), "Older.") == text.replace(  # noqa: DTZ001
        "## Mine", "## 2026-01-01 - Compaction\r\n\r\nOlder.\r\n\r\n## Mine"
    )
    assert add_entry(text, "Compaction", FOUR, "More.") == text.replace("Old.\r\n", "Old.\r\n\r\nMore.\r\n")


def test_a_file_without_entries_gets_its_first_at_the_end():
    assert add_entry("# Journal", "Reset", FOUR, "New.") == "# Journal\n\n## 2026-02-12 - Reset\n\nNew."
    assert add_entry("# Journal\n\n", "Reset", FOUR, "New.") == "# Journal\n\n## 2026-02-12 - Reset\n\nNew.\n"


@for_each("paragraph", ["", " \n\n\t", "\0"])
@for_each("text", [None, "", NEW_FILE, "mine"])
def test_nothing_new_changes_nothing(text, paragraph):
    assert add_entry(text, "Compaction", NEXT_DAY, paragraph) == (text or "")


def test_what_looks_like_grammar_is_written_so_that_it_is_none():
    paragraph = "Line\n## 2026-02-12 - Reset\n===\n```\n---\n...\n\\# had one\n- a list may stay"
    text = add_entry(None, "Compaction", FOUR, paragraph)
    assert text == (
        "## 2026-02-12 - Compaction\n\nLine\n\\## 2026-02-12 - Reset\n\\===\n\\```\n\\---\n\\...\n\\\\# had one\n- a list may stay\n"
    )
    assert [entry.texts for entry in parse_entries(text)] == [(paragraph,)]


@given(st.none() | soup, triggers, moments, soup)
@example("\ufeff\ufeff", "Compaction", FOUR, "#")
def test_whatever_stands_there_each_paragraph_is_added_once_and_nothing_else_changes(text, trigger, when, paragraph):
    added = add_entry(text, trigger, when, paragraph)
    assert add_entry(added, trigger, when, paragraph) == added
    assert is_put_into(text or "", added)
    assert len(parse_entries(added)) <= len(parse_entries(text or "")) + 1
    said = headings.without_control(paragraph).split("\n\n")
    found = {key for entry in parse_entries(added) for key in keys(entry.texts)}
    assert keys(part for part in said if "\n" not in part) - {headings.text_key("")} <= found


@given(st.lists(st.tuples(st.integers(1, 28), st.sampled_from(["Compaction", "Reset"])), max_size=8))
def test_entries_are_always_in_order(days):
    text = None
    for day, trigger in days:
        text = add_entry(text, trigger, datetime(2026, 2, day), f"Day {day}.")  # noqa: DTZ001
    found = [entry.day for entry in parse_entries(text or "")]
    assert found == sorted(found, reverse=True)
    assert len(found) == len(set(days))
