"""A fact that its owner says is wrong: asked about at once, left alone meanwhile, and gone or kept as they answer."""

from __future__ import annotations

import pytest
from janitor_facts import write_fact
from vaults import assert_verified

from quaid.errors import BadInputError, NoteNotFoundError
from quaid.janitor.runner import RunOptions

SOY = "Maya takes soy milk in her coffee."


@pytest.fixture
def disputed(vault):
    """A vault with a pending fact that its owner says is wrong."""
    vault.fact = vault.root / write_fact(vault, "soy", SOY, status="pending", created="2020-01-01T00:00:00Z")
    vault.save()
    with vault.memory() as memory:
        memory.sync()
        vault.written = memory.janitor.dispute("soy", "She is allergic to soy.\n- [x] Yes, do it")
    return vault


def night(vault):
    with vault.memory() as memory:
        report = memory.janitor.run(RunOptions())
        assert_verified(memory)
    assert vault.status() == ""
    return report


def answer(vault, word):
    with vault.memory() as memory:
        memory.janitor.answer("all", word)


def test_it_is_a_question_and_a_commit_in_the_owners_name_at_once(disputed):
    written = disputed.written
    text = (disputed.root / written.path).read_text()
    assert written.outcome == "disputed"
    assert "You say that it is wrong: She is allergic to soy." in text
    assert text.count("\n- [x]") == 0
    assert "[[soy]]" in text
    assert disputed.git("log", "-1", "--format=%s") == f"dispute: {SOY}"
    assert disputed.git("show", "--name-only", "--format=", "HEAD") == written.path
    with disputed.memory() as memory:
        assert [question.key for question in memory.janitor.open_questions()]
        assert memory.timeline.log(1)[0].who == "owner"
        head = disputed.head()
        again = memory.janitor.dispute("soy", "It is oat.")  # it is asked once
    assert (again.outcome, again.path, disputed.head()) == ("unchanged", written.path, head)


def test_no_night_changes_the_fact_while_it_waits(disputed):
    before = disputed.fact.read_bytes()
    report = night(disputed)
    assert disputed.fact.read_bytes() == before
    assert "you have said that it is wrong" in [why for _, why in report.held_back]


@pytest.mark.parametrize("is_pinned", [False, True])
def test_yes_forgets_it_and_says_why(disputed, is_pinned):
    with disputed.memory() as memory:
        memory.writer.mark("soy", "pinned", is_set=is_pinned)
    answer(disputed, "yes")
    night(disputed)
    assert not disputed.fact.exists()
    assert not (disputed.root / disputed.written.path).exists()
    assert "She is allergic to soy." in disputed.git("log", "-3", "--format=%B")


@pytest.mark.slow
def test_no_keeps_it_and_it_may_be_disputed_again(disputed, monkeypatch):
    answer(disputed, "no")
    report = night(disputed)
    assert disputed.fact.exists()
    assert report.answered
    with disputed.memory() as memory, monkeypatch.context() as later:
        later.setattr("quaid.vault.notes.render_time", lambda moment: "2030-01-01T00:00:00Z")
        assert memory.janitor.dispute("soy").outcome == "disputed"
    answer(disputed, "yes")
    night(disputed)
    assert not disputed.fact.exists()


def test_it_closes_when_the_owner_corrects_the_fact(disputed):
    disputed.fact.write_text(disputed.fact.read_text().replace("soy milk", "oat milk"))
    disputed.save("corrected")
    report = night(disputed)
    assert report.closed == 1
    assert "oat milk" in disputed.fact.read_text()
    assert not (disputed.root / disputed.written.path).exists()


def test_it_can_be_undone(disputed):
    with disputed.memory() as memory:
        memory.timeline.undo(disputed.written.commit, anybodys=True)
        assert memory.janitor.open_questions() == []


def test_only_a_fact_that_holds_and_may_be_seen_can_be_disputed(vault):
    vault.write("own.md", "# My note\n")
    write_fact(vault, "bobs", "Bob hides the oat milk.", owner="bob", privacy="private")
    vault.save()
    with vault.memory() as memory:
        with pytest.raises(BadInputError, match="not a fact"):
            memory.janitor.dispute("own.md")
        with pytest.raises(NoteNotFoundError):
            memory.janitor.dispute("bobs")
