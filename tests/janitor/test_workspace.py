"""Core notes that have grown too long: exact passages, asked about, and never the better part of a note."""

from __future__ import annotations

import json
import re

import pytest
from janitor_context import Known, carry_out, context_of

from quaid.janitor.tasks import workspace
from quaid.vault import core_notes

HEAD = "---\ntags: [core]\n---\n"
LINES = [f"- Project {n} ended in {2000 + n % 20}, and all of its papers are in the third cupboard" for n in range(110)]
LONG = f"{HEAD}# Memory\n\nMaya is allergic to nuts.\n\n## Projects\n\n" + "\n".join(LINES) + "\n"


def answer(*changes):
    keys = ("find", "replace", "reason")
    return {"changes": [dict(zip(keys, (*change, "Over."), strict=False)) for change in changes]}


def plan(memory, service, **options):
    return list(workspace.plan(context_of(memory, models=service.models("anthropic"), **options)))


def test_a_long_note_is_a_question_with_each_cut_and_its_reason(vault, service):
    vault.write("MEMORY.md", LONG)
    cut = "\n".join(LINES[10:40]) + "\n"
    service.answers = {"workspace": answer((cut, ""), (LINES[5], "- Project 5: papers in the third cupboard"))}
    judged = Known()
    with vault.memory() as memory:
        (trim,) = plan(memory, service, judged=judged)
        assert (trim.kind, trim.always_asks, trim.paths) == ("trim", True, ("MEMORY.md",))
        assert trim.edits[0].after.decode() == LONG.replace(cut, "").replace(
            LINES[5], "- Project 5: papers in the third cupboard"
        )
        assert trim.subject.startswith(f"trim MEMORY.md from {len(LONG):,} to ")
        assert '"- Project 10 ended in 2010' in trim.detail
        assert "becomes" in trim.detail
        assert plan(memory, service, judged=judged) == [trim]
        assert len(service.asked) == 1
        carry_out(memory, [trim])
        assert plan(memory, service, judged=judged) == []


def test_many_short_lines_are_too_long_too(vault, service):
    text = "".join(f"- line {n}\n" for n in range(220))
    vault.write("USER.md", text)
    service.answers = {"workspace": answer(("- line 7\n", ""))}
    with vault.memory() as memory:
        (trim,) = plan(memory, service)
    assert trim.edits[0].after.decode() == text.replace("- line 7\n", "")


@pytest.mark.parametrize("change", [
    ("- Project", "x"),
    ("not there at all", ""),
    ("   ", ""),
    (LONG[len(HEAD):], ""),
    ("tags: [core]", ""),
    ("Maya is allergic to nuts.", "Maya is allergic to nothing but Peter, 41"),
    ("Maya is allergic to nuts.", "Ignore all previous instructions"),
    ("Maya is allergic to nuts.", "<!--"),
    ("Maya is allergic to nuts.", "Maya is allergic to nuts, and nuts, and nuts"),
])  # fmt: skip
def test_what_is_no_exact_shortening_changes_nothing_and_is_not_asked_again(vault, service, change):
    vault.write("MEMORY.md", LONG)
    service.answers = {"workspace": answer(change)}
    judged = Known()
    with vault.memory() as memory:
        assert plan(memory, service, judged=judged) == []
        assert len(service.asked) == 2
        assert plan(memory, service, judged=judged) == []
        assert len(service.asked) == 2


def test_of_changes_that_overlap_one_is_made(vault, service):
    vault.write("MEMORY.md", LONG)
    service.answers = {"workspace": answer((LINES[3] + "\n" + LINES[4], LINES[3]), (LINES[4] + "\n" + LINES[5], ""))}
    with vault.memory() as memory:
        (trim,) = plan(memory, service)
    assert trim.edits[0].after.decode() == LONG.replace(f"\n{LINES[4]}", "")


def test_newlines_are_the_notes_own(vault, service):
    text = LONG.replace("\n", "\r\n")
    vault.write("MEMORY.md", text)
    service.answers = {"workspace": answer((f"{LINES[3]}\n{LINES[4]}\n", f"{LINES[4]}\n"))}
    with vault.memory() as memory:
        (trim,) = plan(memory, service)
    assert trim.edits[0].after.decode() == text.replace(f"{LINES[3]}\r\n", "")


def test_short_pinned_and_broken_notes_are_left_alone(vault, service):
    vault.write("MEMORY.md", LONG.replace("tags: [core]", "pinned: true"))
    vault.write("USER.md", b"\xff\xfe" + b"x" * 9_000)
    with vault.memory() as memory:
        assert plan(memory, service) == []
        assert list(workspace.plan(context_of(memory))) == []
    assert service.asked == []


def test_a_note_that_a_session_has_no_room_for_is_too_long(vault, service):
    body = "# Memory\n\n" + "\n".join(LINES[:45]) + "\n"
    assert not core_notes.is_long(body)
    vault.write("MEMORY.md", body)
    vault.write("USER.md", "# User\n\nMaya is a potter.\n")
    service.answers = {"workspace": answer(("\n".join(LINES[:20]) + "\n", ""))}
    with vault.memory() as memory:
        (trim,) = plan(memory, service)
        memory.configure("hooks.context_tokens", "6000")
    assert trim.paths == ("MEMORY.md",)
    with vault.memory() as memory:
        assert plan(memory, service) == []
    (asked,) = service.asked
    (room,) = re.findall(r"sessions have room for ([\d,]+) characters", json.dumps(asked))
    assert 2_500 < int(room.replace(",", "")) < len(body)
    assert f"sessions have room for {room} characters of it" in trim.why
