"""Snippets: one section a day and trigger, nothing twice, and no byte of the owner's touched."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from matrices import for_each

from quaid.errors import BadInputError
from quaid.model import CORE_FILES
from quaid.vault import headings, layout
from quaid.vault.core_notes import add_observations, parse_observations

HALF_PAST_TWO = datetime(2026, 2, 12, 14, 30)  # noqa: DTZ001
FOUR = datetime(2026, 2, 12, 16, 0)  # noqa: DTZ001
NEXT_DAY = datetime(2026, 2, 13, 9, 5)  # noqa: DTZ001
NEW_FILE = """## Compaction - 2026-02-12 14:30

- Prefers to work in focused 2-hour blocks
- Gets frustrated when interrupted mid-thought
"""
PIECES = (
    *"#-*+>`~\\[] .\r\n\t1)=é\ufeff\0\u2028\ud800",
    "\n\n",
    "\r\n",
    "## Compaction - 2026-02-12 14:30",
    "\n## Compaction - 2026-02-12 09:00\n\n- word\n",
    "## 2026-02-12 - Compaction",
    "\n# Mine\n",
    "\n```\n",
    "\n~~~~ x\n",
    "\n---\n",
    "...",
    "- word",
    "1. ",
    "[x] ",
    "word",
    "  indented",
    "<!--",
    "%%",
)
soup = st.lists(st.sampled_from(PIECES), max_size=14).map("".join) | st.text(max_size=20)
moments = st.sampled_from([HALF_PAST_TWO, FOUR, NEXT_DAY])
triggers = st.sampled_from(["Compaction", "Reset", " compaction ", "", "a - 2026-02-12 14:30", "x #"]) | soup


def is_put_into(before, after):
    """`after` is `before` with one block somewhere in it."""
    start = next(
        (i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after))
    )
    return after.endswith(before[start:]) and after.startswith(before[:start])


def keys(bullets):
    return {headings.text_key(bullet) for bullet in bullets}


def test_a_new_file_holds_one_heading_and_the_text():
    bullets = ["Prefers to work in focused 2-hour blocks", "Gets frustrated when interrupted mid-thought"]
    assert add_observations(None, "Compaction", HALF_PAST_TWO, bullets) == NEW_FILE
    (section,) = parse_observations(NEW_FILE)
    assert (section.trigger, section.when, section.texts) == ("Compaction", HALF_PAST_TWO, tuple(bullets))
    assert NEW_FILE[section.start : section.end] == NEW_FILE


def test_what_is_learned_later_that_day_joins_the_section():
    text = add_observations(
        NEW_FILE, "Compaction", FOUR, ["prefers to work in focused 2-hour  blocks.", "Drinks oat milk"]
    )
    assert text == NEW_FILE + "- Drinks oat milk\n"


@pytest.mark.parametrize(("trigger", "when"), [("Reset", HALF_PAST_TWO), ("Compaction", NEXT_DAY)])
def test_another_trigger_or_day_is_a_section_of_its_own_at_the_end(trigger, when):
    text = add_observations(NEW_FILE, trigger, when, ["Prefers to work in focused 2-hour blocks"])
    assert text == f"{NEW_FILE}\n## {trigger} - {when:%Y-%m-%d %H:%M}\n\n- Prefers to work in focused 2-hour blocks\n"


@for_each("text", [None, "", NEW_FILE, "my own\r\nwords", "\ufeff"])
@for_each("bullets", [[], [""], [" \n\0"]])
def test_nothing_new_changes_nothing(text, bullets):
    assert add_observations(text, "Compaction", FOUR, bullets) == (text or "")


def test_an_earlier_section_of_the_day_is_joined_where_it_stands():
    text = add_observations(NEW_FILE + "\n## Reset - 2026-02-13 08:00\n\n- Later\n", "compaction", FOUR, ["New"])
    assert text == NEW_FILE + "- New\n\n## Reset - 2026-02-13 08:00\n\n- Later\n"


def test_the_owners_words_around_the_list_stay_where_they_are():
    text = (
        "\ufeff---\r\ntags: [x]\r\n---\r\n# Mine\r\n\r\nintro\r\n## Compaction - 2026-02-12 14:30\r\nSaid:\r\n* One\r\n  goes on\r\n"
        "\r\n    and on\r\n\r\nA remark.\r\n- not this one\r\n\r\nEnd.\r\n### deeper\r\n\r\n## Mine too\r\n- other"
    )
    assert parse_observations(text)[0].texts == ("One goes on and on", "not this one")
    added = add_observations(text, "Compaction", FOUR, ["one goes on  and on", "New", "Newer"])
    assert added == text.replace("- not this one\r\n", "- not this one\r\n- New\r\n- Newer\r\n")
    assert (
        add_observations(text, "Reset", NEXT_DAY, ["New"]) == f"{text}\r\n\r\n## Reset - 2026-02-13 09:05\r\n\r\n- New"
    )


@pytest.mark.parametrize(("text", "after"), [
    ("## Compaction - 2026-02-12 14:30", "\n\n- New"),
    ("## Compaction - 2026-02-12 14:30\n", "\n- New\n"),
    ("## Compaction - 2026-02-12 14:30\n\nwords\n\n\n", None),
    ("## Compaction - 2026-02-12 14:30\n\n- One", "\n- New"),
])  # fmt: skip
def test_a_section_without_a_list_or_a_last_newline_is_joined_too(text, after):
    added = add_observations(text, "Compaction", FOUR, ["New"])
    assert added == (text + after if after else text.replace("words\n", "words\n\n- New\n"))


def test_a_heading_in_a_fence_or_with_no_real_date_is_none_of_ours():
    text = "```\n## Compaction - 2026-02-12 14:30\n```\n\n## Compaction - 2026-02-31 14:30\n\n- x\n"
    assert parse_observations(text) == []
    assert add_observations(text, "Compaction", FOUR, ["New"]) == f"{text}\n## Compaction - 2026-02-12 16:00\n\n- New\n"


def test_a_fence_that_is_never_closed_hides_nothing():
    text = "````\n" + NEW_FILE + "```\n"
    assert len(parse_observations(text)) == 1


def test_two_devices_sections_of_one_day_count_as_one():
    text = NEW_FILE + "\n## Compaction - 2026-02-12 15:00\n\n- Other device\n"
    assert add_observations(text, "Compaction", FOUR, ["Prefers to work in focused 2-hour blocks"]) == text
    assert add_observations(text, "Compaction", FOUR, ["New"]) == text + "- New\n"


@for_each(("bullet", "written"), [
    ("## Reset - 2026-02-12 14:30", r"\## Reset - 2026-02-12 14:30"),
    ("- nested", r"\- nested"),
    ("3. third", r"3\. third"),
    ("[ ] to do", r"\[ ] to do"),
    ("```python", r"\```python"),
    ("---", r"\---"),
    (r"\# had one", r"\\# had one"),
    ("#hashtag of hers", "#hashtag of hers"),
    ("two\n\nlines\0", "two lines"),
])  # fmt: skip
def test_what_looks_like_grammar_is_written_so_that_it_is_none(bullet, written):
    text = add_observations(None, "Compaction", FOUR, [bullet])
    assert text == f"## Compaction - 2026-02-12 16:00\n\n- {written}\n"
    assert parse_observations(text)[0].texts == (headings.one_line(bullet),)


@given(st.none() | soup, triggers, moments, st.lists(soup, max_size=4))
@example("---\n", "Compaction", FOUR, ["..."])
@example("\ufeff", "Compaction", FOUR, ["#"])
@example("## Compaction - 2026-02-12 14:30\r\n\r\n- a", "Compaction", FOUR, ["b"])
def test_whatever_stands_there_each_bullet_is_added_once_and_nothing_else_changes(text, trigger, when, bullets):
    added = add_observations(text, trigger, when, bullets)
    assert add_observations(added, trigger, when, bullets) == added
    assert is_put_into(text or "", added)
    found = {key for section in parse_observations(added) for key in keys(section.texts)}
    assert keys(filter(headings.one_line, bullets)) - {headings.text_key("")} <= found
    assert len(parse_observations(added)) <= len(parse_observations(text or "")) + 1


@given(soup)
def test_any_text_can_be_read(text):
    for section in parse_observations(text):
        assert text[section.start : section.end].lstrip(" ").startswith("##")


def test_the_files_are_those_of_the_core_notes_only():
    assert [layout.side_path(name, "snippets") for name in CORE_FILES][:2] == [
        "snippets/SOUL.snippets.md",
        "snippets/USER.snippets.md",
    ]
    assert layout.side_path("SOUL.md", "journal") == "journal/SOUL.journal.md"
    for name in ("soul.md", "../SOUL.md", "notes.md", ""):
        with pytest.raises(BadInputError, match="not a core note"):
            layout.side_path(name, "journal")
