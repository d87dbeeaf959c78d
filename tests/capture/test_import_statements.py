"""What a note that somebody keeps as memory states, line by line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matrices import for_each

from quaid.capture.importers.import_content import LeftOut
from quaid.capture.importers.markdown_memories import MAX_STATEMENT_CHARS, is_empty_label, read_statements

MEMORY = """# Long-Term Memory

## About the User
- Name: Max
- **Timezone:** America/New_York
- **What to call them:**
- _(Ask them when you meet.)_

## Pets
- Biscuit, a beagle
  - adopted in 2019 from the shelter
- Tom:
  - is a cat that hates water

### Ghost
He was adopted in 2020.

## People
- **Alice** — Collaborator on Project X, prefers async comms

## Key Decisions
- 2026-03-15: Chose Gemini embeddings for cost/quality balance
- [ ] Call the plumber about the sink
- [x] Shipped version two

## Reference
```python
print("this is not a memory")
```
| host | port |
|------|------|
> Somebody else said this once.
- [Deploy guide](deploy.md) — how to deploy
- https://example.org/a/b
- Is the kiln insured against fire?

Max lives in Leipzig with two cats.
"""


def read(text):
    left_out = LeftOut()
    return [statement.text for statement in read_statements(text, left_out)], left_out


def test_each_statement_of_a_memory_file_stands_alone():
    texts, _ = read(MEMORY)
    assert texts == [
        "About the User: Name: Max",
        "About the User: Timezone: America/New_York",
        "Pets: Biscuit, a beagle",
        "Pets, Biscuit, a beagle: adopted in 2019 from the shelter",
        "Pets, Tom: is a cat that hates water",
        "Pets, Ghost: He was adopted in 2020.",
        "People: Alice — Collaborator on Project X, prefers async comms",
        "Key Decisions: Chose Gemini embeddings for cost/quality balance",
        "Key Decisions: Call the plumber about the sink",
        "Key Decisions: Shipped version two",
        "Max lives in Leipzig with two cats.",
    ]


def test_what_states_nothing_is_left_out_and_counted():
    _, left_out = read(MEMORY)
    assert left_out == {
        "empty lines of a form": 2, "labels of what stands below them": 1, "blocks of code": 1, "rows of tables": 2,
        "quoted lines": 1, "links": 2, "questions": 1,
    }  # fmt: skip


def test_a_task_and_a_date_in_front_are_told_apart_from_the_statement():
    left_out = LeftOut()
    dated, task, done = (s for s in read_statements(MEMORY, left_out) if "Key Decisions" in s.labels)
    assert (dated.day, dated.box) == ("2026-03-15", None)
    assert (task.day, task.box, done.box) == (None, "open", "done")


@for_each(("line", "text"), [
    ("- Maya *really* likes [[Oat milk|oat milk]] in `coffee`", "Maya really likes oat milk in coffee"),
    ("* Maya likes tea\n  and scones on Sundays", "Maya likes tea and scones on Sundays"),
    ("- 14:30 - Met Alice at the kiln supplier", "House: Met Alice at the kiln supplier"),
    ("- **09:15**: Tom called about the lease", "Tom called about the lease"),
    ("1. The lease ends in May", "The lease ends in May"),
    ("24. Dezember: Essen bei Oma", "House: 24. Dezember: Essen bei Oma"),
    ("1. Mai: Essen bei Oma", "House: 1. Mai: Essen bei Oma"),
    ("1582. Das Jahr der Reform", "House: 1582. Das Jahr der Reform"),
    ("- rent: 900 euros", "House: rent: 900 euros"),
    ("- Die Miete kommt zum Ersten", "House: Die Miete kommt zum Ersten"),
    ("Rooms:\n\n- the blue one with two beds", "House, Rooms: the blue one with two beds"),
    ("<!-- a remark\n- Maya likes tea\n-->\n- The house has a garden", "The house has a garden"),
])  # fmt: skip
def test_a_line_becomes(line, text):
    assert read(f"# House\n\n{line}\n")[0] == [text]


def test_a_long_paragraph_becomes_several_statements():
    texts, _ = read("# Lease\n\n" + "The lease of the studio ends in May and Maya wants to stay. " * 40)
    assert len(texts) > 3
    assert all(len(text) <= MAX_STATEMENT_CHARS * 1.3 for text in texts)


@pytest.mark.parametrize("heading", ["Memory", "MEMORY.md", "Long-Term Memory", "Notes", "Daily log", "2026-03-01"])
def test_a_heading_that_is_empty_label(heading):
    assert is_empty_label(heading)


@pytest.mark.parametrize("heading", ["Pets", "Villa Atmata", "Lessons learned", "Notes on kilns", "Maya"])
def test_a_heading_that_says_something(heading):
    assert not is_empty_label(heading)


@given(st.text(alphabet=st.sampled_from("aB1 -*#>|`~:[]()_\t\n=.?!é\u2028"), max_size=200))
def test_any_text_is_read(text):
    for statement in read_statements(text, LeftOut()):
        assert len(statement.text.split()) >= 1
        assert "\n" not in statement.text


def test_hostile_notes_take_no_more_time_than_their_size():
    for text in (
        "- " * 50_000,
        "a\n" * 100_000,
        "    " * 20_000 + "- a",
        "[" * 50_000,
        "*" * 100_000,
        "- a\n  - b\n" * 9_000,
    ):
        read(text)


def test_lines_of_any_script_state_something():
    body = "# 关于我\n\n- 我对花生过敏\n- 喜欢喝绿茶\n- 工作：\n  - 在腾讯做工程师\n- 你喜欢什么？\n- 电话：\n- Я люблю чай\n"
    left_out = LeftOut()
    assert [statement.text for statement in read_statements(body, left_out)] == [
        "我对花生过敏", "关于我: 喜欢喝绿茶", "关于我, 工作: 在腾讯做工程师", "Я люблю чай",
    ]  # fmt: skip
    assert left_out == {"labels of what stands below them": 1, "questions": 1, "empty lines of a form": 1}
