"""What the owner answers is done at once: by a command, an agent, or a box ticked in an editor."""

from __future__ import annotations

import threading

import pytest
from command_line import quaid
from janitor_facts import head_of
from janitor_nights import decide, remember
from vaults import wait_for

from quaid.capture.facts import supersede
from quaid.janitor import runner
from quaid.place import state_folder
from quaid.sync.watcher import read_heartbeat

OLD, NEW = "The deposit is 600 euros.", "The deposit is 620 euros."


@pytest.fixture
def asked(vault, tidy, monkeypatch):
    """(the vault, the old fact, the question that would replace it)"""
    monkeypatch.chdir(vault.root)
    tasks = runner.TASKS
    old, new = remember(vault, OLD, NEW)

    def plan(context):
        if b"superseded_by" not in context.read(old):
            after = supersede(old, context.read(old), new, None).after
            yield decide(context, old, after, kind="supersede", task="resolve", always_asks=True)

    assert len(tidy(plan).asked) == 1
    monkeypatch.setattr(runner, "TASKS", tasks)
    (question,) = (vault.root / "review").glob("*.md")
    return vault, old, question


def test_an_accepted_question_is_carried_out_at_once_and_by_no_model(asked):
    vault, old, question = asked
    code, shown, notices = quaid("janitor", "accept", question.stem)
    assert (code, "next run" in notices) == (0, False), shown
    assert "superseded_by" in head_of(vault, old)
    assert not question.exists()
    assert vault.status() == ""


@pytest.mark.parametrize("answer", ["accept", "reject"])
def test_where_git_has_no_owner_the_answer_is_theirs_and_what_it_does_the_janitors(asked, monkeypatch, answer):
    vault, _, question = asked
    for part in ("name", "email"):
        vault.git("config", f"user.{part}", "")
        monkeypatch.delenv(f"GIT_AUTHOR_{part.upper()}", raising=False)
    assert quaid("janitor", answer, question.stem)[0] == 0
    with vault.memory() as memory:
        assert memory.git.owner() is None
        answered, decided = memory.timeline.tell(vault.git("rev-parse", "HEAD^1"), vault.git("rev-parse", "HEAD^2"))
    assert (answered.who, decided.who) == ("owner", "janitor")


def test_a_rejected_question_is_closed_at_once(asked):
    vault, old, question = asked
    assert quaid("janitor", "reject", question.stem)[0] == 0
    assert not question.exists()
    assert "superseded_by" not in head_of(vault, old)
    # Of this solution and of any other: an undo would be of this one alone.
    assert vault.git("log", "-1", "--format=%B", "HEAD^2").count("Quaid-Veto: resolve") == 2


def test_a_box_that_was_ticked_in_an_editor_acts_at_the_next_command(asked):
    vault, old, question = asked
    question.write_text(question.read_text().replace("- [ ] Yes", "- [x] Yes"))
    assert quaid("status")[0] == 0
    assert "superseded_by" in head_of(vault, old)
    assert not question.exists()
    head = vault.head()
    assert quaid("status")[0] == 0
    assert vault.head() == head


def test_a_box_that_was_ticked_acts_at_the_next_sync_of_a_watcher(asked):
    vault, old, question = asked
    followers = []

    def watch():
        with vault.memory() as memory:
            followers.append(memory.follow(lambda _: None))
            followers[0].run()

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        wait_for(lambda: getattr(read_heartbeat(state_folder(vault.root)), "last_sync", None), "the first sync")
        question.write_text(question.read_text().replace("- [ ] Yes", "- [x] Yes"))
        wait_for(lambda: not question.exists(), "the answer")
    finally:
        followers[0].stop()
        thread.join(20)
    assert "superseded_by" in head_of(vault, old)


def test_what_cannot_be_carried_out_is_tried_once_and_not_at_every_command(asked, monkeypatch):
    vault, old, question = asked
    (vault.root / old).write_text((vault.root / old).read_text().replace(OLD, "There is no deposit at all."))
    vault.save()
    (vault.root / old).write_text("---\nid: [broken\n---\n")
    vault.save()
    question.write_text(question.read_text().replace("- [ ] Yes", "- [x] Yes"))
    with vault.memory() as memory:
        memory.carry_out_ticks()
    calls = []
    monkeypatch.setattr("quaid.janitor.janitor.run_tasks", lambda *_: calls.append(1))
    with vault.memory() as memory:
        memory.carry_out_ticks()
    assert calls == []


def test_a_run_in_progress_or_a_rebase_leaves_the_answer_to_the_next_run(asked):
    vault, _, question = asked
    (vault.root / ".git" / "MERGE_HEAD").write_text(vault.head())
    question.write_text(question.read_text().replace("- [ ] Yes", "- [x] Yes"))
    with vault.memory() as memory:
        memory.carry_out_ticks()
    assert question.exists()
    (vault.root / ".git" / "MERGE_HEAD").unlink()
    with vault.memory() as memory:
        memory.carry_out_ticks()
    assert not question.exists()


def test_no_run_is_recorded_for_an_answer(asked):
    """`quaid status` says when no run has succeeded for two days: an answer is none."""
    vault, _, question = asked
    with vault.memory() as memory:
        before = memory.janitor.runs(10)
        memory.janitor.answer(question.stem, "yes")
        memory.janitor.carry_out_answers()
        assert memory.janitor.runs(10) == before


def test_a_correction_that_is_overruled_is_reported_once(vault, tidy):
    (path,) = remember(vault, OLD)
    note = vault.root / path
    note.write_text(note.read_text().replace("600", "640"))
    vault.save("owner")

    def plan(context):
        data = context.read(path)
        yield decide(context, path, data.replace(b"640", b"600"), evidence=1)

    assert [tidy(plan).overruled, tidy(plan).overruled] == [1, 0]
