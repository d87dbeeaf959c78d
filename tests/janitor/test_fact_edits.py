"""What is done to one fact changes what it means to, and not a byte beside it."""

from __future__ import annotations

import pytest
from hand_written import parse_note
from hypothesis import assume, given
from hypothesis import strategies as st
from matrices import for_each

from quaid.janitor.fact_edits import rewrite, set_fields, statement_span
from quaid.vault import frontmatter
from quaid.vault.frontmatter import FrontmatterBrokenError

PATH = "facts/one.md"
HEAD = "---\nid: 01one # mine\nstatus: pending\nodd: [1,  2]\n---\n"
NEW = "Maya takes oat milk in her coffee."

AROUND = [
    "# A heading",
    "- [[Maya]] prefers [[Oat milk]]",
    "%% my own\n\nnote %%",
    "<!-- hidden -->",
    "- prefers [[Tea]]",
]
SAID = [
    "She takes it.",
    "She takes it,\nevery day.",
    "- She takes it.",
    "> She takes it.",
    "1. She takes it.",
    "She\u2028takes it: caf\u00e9 %% aside %%",
]


# --- the status


@for_each("status", ["approved", "active"])
@for_each("head", [HEAD, HEAD.replace("\n", "\r\n"), "\ufeff" + HEAD, HEAD.replace("pending", '"pending"')])
def test_only_the_status_changes(status, head):
    data = f"{head}{NEW}".encode()
    edit = set_fields(PATH, data, {"status": status})
    assert (edit.rel_path, edit.before) == (PATH, data)
    assert edit.after == data.replace(b"pending", status.encode())


def test_a_note_without_a_head_gets_one_for_its_status_only():
    active = "---\nstatus: active\n---\n"
    assert set_fields(PATH, b"Maya likes tea.\n", {"status": "active"}).after == f"{active}Maya likes tea.\n".encode()
    assert reworded("\ufeffShe takes it.\n", head="") == f"\ufeff{NEW}\n"
    assert reworded("\ufeffShe takes it.\n", head="", changes={"status": "active"}) == f"\ufeff{active}{NEW}\n"


@for_each("data", [b"---\nstatus: pending\nid: [\n---\nx", b"---\nstatus: pending\nx", b"---\nstatus: caf\xe9\n---\n"])
def test_what_cannot_be_edited_safely_is_refused(data):
    with pytest.raises((FrontmatterBrokenError, UnicodeDecodeError)):
        set_fields(PATH, data, {"status": "active"})
    with pytest.raises((FrontmatterBrokenError, UnicodeDecodeError)):
        rewrite(PATH, data, NEW, {"status": "approved"})


# --- rewrite


def reworded(body, head=HEAD, changes=None):
    edit = rewrite(PATH, f"{head}{body}".encode(), NEW, changes)
    return edit.after.decode()


@for_each(
    ("body", "after"),
    [
        ("She takes it.", NEW),
        ("She takes it.\n", f"{NEW}\n"),
        ("\nShe takes it,\nevery day.\n", f"\n{NEW}\n"),
        ("She takes it.\n\nMy own words.\n", f"{NEW}\n\nMy own words.\n"),
        ("She takes it.\n \t\nMy own words.\n", f"{NEW}\n \t\nMy own words.\n"),
        ("She takes it.\n- [[Maya]] prefers [[Oat milk]]\n", f"{NEW}\n- [[Maya]] prefers [[Oat milk]]\n"),
        ("She takes it. ^b1\n", f"{NEW} ^b1\n"),
        ("She takes it.\n^b1\n", f"{NEW}\n^b1\n"),
        ("# Coffee\n\nShe takes it.\n", f"# Coffee\n\n{NEW}\n"),
        ("# Coffee\nShe takes it.\n## More\n", f"# Coffee\n{NEW}\n## More\n"),
        ("%% ask her\n\nagain %%\n\nShe takes it. %% sure? %%\n", f"%% ask her\n\nagain %%\n\n{NEW} %% sure? %%\n"),
        ("- [[Maya]] prefers [[Oat milk]]\n", f"{NEW}\n\n- [[Maya]] prefers [[Oat milk]]\n"),
        ("\n- [[Maya]] prefers [[Oat milk]]\n", f"\n{NEW}\n\n- [[Maya]] prefers [[Oat milk]]\n"),
        ("- She takes it.\n", f"- {NEW}\n"),
        ("", f"{NEW}\n"),
        ("\n", f"\n{NEW}\n"),
    ],
)
@for_each("newline", ["\n", "\r\n"])
def test_the_statement_changes_and_what_stands_around_it_stays(body, after, newline):
    body, after, head = (text.replace("\n", newline) for text in (body, after, HEAD))
    assert reworded(body, head) == f"{head}{after}"
    assert reworded(body, head, {"status": "approved"}) == f"{head}{after}".replace("pending", "approved")


def test_citations_in_the_words_that_go_are_kept_in_the_head():
    body = "She takes it ([[20-1402-2f1c9a#^t3]], [[20-1402-2f1c9a#^t5|there]]).\n\nSee [[20-1402-2f1c9a#^t9]].\n"
    head = HEAD.replace("odd:", 'turns: ["[[20-1402-2f1c9a#^t3]]"]\nodd:')
    before, after = (parse_note(PATH, text.encode()) for text in (f"{head}{body}", reworded(body, head)))
    assert set(after.citations) == set(before.citations)
    assert frontmatter.parse(reworded(body)).fields["turns"] == ["[[20-1402-2f1c9a#^t3]]", "[[20-1402-2f1c9a#^t5]]"]


@given(
    st.lists(st.sampled_from(AROUND), max_size=3),
    st.sampled_from(SAID),
    st.lists(st.sampled_from([*AROUND, *SAID]), max_size=3),
    st.booleans(),
)
def test_a_rewording_reads_back_between_what_was_there(before, said, behind, is_tight):
    assume(not is_tight or all(block not in SAID for block in behind))
    gap = "\n" if is_tight else "\n\n"
    body = gap.join([*before, said, *behind]) + "\n"
    start, end = statement_span(body)
    assert body[start:end].split("%%")[0].strip() in said
    after = reworded(body)
    assert after == f"{HEAD}{body[:start]}{NEW}{body[end:]}"
    was, now = parse_note(PATH, f"{HEAD}{body}".encode()), parse_note(PATH, after.encode())
    assert NEW in now.text
    assert (now.edges, now.links, now.id) == (was.edges, was.links, was.id)
    assert after.count("She takes it") == body.count("She takes it") - ("She takes it" in said)


@given(st.text(max_size=200))
def test_any_body_has_a_place_for_its_statement(body):
    start, end = statement_span(body)
    assert 0 <= start <= end <= len(body)
    edit = rewrite(PATH, f"{HEAD}{body}".encode("utf-8", "replace"), NEW)
    assert NEW in edit.after.decode()
