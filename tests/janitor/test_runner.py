"""A night: what is decided, what becomes of it, and how it is taken back. Tasks are made up, all else is real."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from janitor_nights import approve, decide, remember, rewriting, tidying
from vaults import Vault, assert_verified

from quaid import Memory
from quaid.capture.facts import supersede
from quaid.errors import BadInputError, ModelTimeoutError
from quaid.history.vault_history import History
from quaid.janitor.fact_edits import rewrite, set_fields
from quaid.janitor.guards import Gate, JanitorStoppedError
from quaid.janitor.questions import tick
from quaid.janitor.runner import RunOptions
from quaid.place import state_folder

pytestmark = pytest.mark.usefixtures("_without_vectors")


@pytest.fixture
def _without_vectors(monkeypatch):
    monkeypatch.setenv("QUAID_EMBEDDING_PROVIDER", "none")


def first_parents(vault):
    return vault.git("log", "--first-parent", "--format=%s").splitlines()


def test_a_night_is_one_merge_of_a_commit_for_each_decision(vault, tidy):
    one, two = remember(vault, "Maya drinks oat milk", "Tom repairs old clocks")
    plans = [rewriting(one, "Maya drinks oat milk every day"), rewriting(two, "Tom repairs clocks", task="task1")]
    head = vault.head()
    assert len(tidy(*plans, dry_run=True).done) == 2
    assert (vault.head(), vault.status()) == (head, "")
    report = tidy(*plans)
    assert [d.kind for d in report.done] == ["rewrite", "rewrite"]
    assert first_parents(vault)[0] == "janitor: reworded 2 facts"
    subjects = vault.git("log", "--format=%s", "HEAD^1..HEAD^2").splitlines()
    assert subjects == [f"janitor(task1): rewrite {two}", f"janitor(task0): rewrite {one}"]
    assert "Maya drinks oat milk every day" in (vault.root / one).read_text()
    assert vault.git("log", "-1", "--format=%an <%ae>") == "Quaid Janitor <janitor@localhost>"
    assert vault.status() == ""
    assert not list((state_folder(vault.root) / "worktrees").iterdir())
    with vault.memory() as memory:
        assert memory.verify().ok
    head = vault.head()
    assert not tidy(*plans).changed
    assert vault.head() == head


def test_small_decisions_share_a_commit(vault, tidy):
    paths = remember(vault, "Maya drinks oat milk", "Tom repairs old clocks", "Ana sails at night")

    def plan(context):
        for path in paths:
            yield decide(context, path, approve, kind="approve", is_minor=True)

    report = tidy(plan)
    assert len(report.done) == 3
    subjects = vault.git("log", "--format=%s", "HEAD^1..HEAD^2").splitlines()
    assert subjects == ["janitor(task0): approved 3 facts"]
    assert vault.git("log", "--format=%(trailers:key=Quaid-Decision,valueonly)", "HEAD^2", "-1").count("\n") >= 2


@pytest.mark.slow
def test_what_must_be_asked_is_a_question_that_its_owner_answers_in_an_editor(vault, tidy):
    (one,) = remember(vault, "Maya drinks oat milk")

    def plan(context):
        if context.read(one) is not None:
            yield decide(context, one, None, kind="reject", detail="Maya drinks oat milk")

    report = tidy(plan)
    assert [d.kind for d in report.asked] == ["reject"]
    (note,) = (vault.root / "review").glob("*.md")
    assert "- [ ] Yes, do it" in note.read_text()
    assert (vault.root / one).exists()
    assert not tidy(plan).changed  # it is asked once
    note.write_text(note.read_text().replace("- [ ] Yes", "- [x] Yes"))
    report = tidy(plan)
    assert report.answered
    assert not (vault.root / one).exists()
    assert not note.exists()
    assert vault.git("status", "--porcelain") == ""


def test_a_no_is_remembered_in_the_history(vault, tidy):
    (one,) = remember(vault, "Maya drinks oat milk")

    def plan(context):
        yield decide(context, one, None, kind="reject")

    with vault.memory() as memory, pytest.raises(BadInputError, match="No question waits"):
        memory.janitor.answer("all", "no")
    tidy(plan)
    with vault.memory() as memory:
        memory.janitor.answer("all", "no")
    report = tidy(plan)
    assert report.answered
    assert report.vetoed == 1
    assert not list((vault.root / "review").glob("*.md"))
    assert (vault.root / one).exists()


def test_lines_that_a_person_wrote_are_asked_about(vault, tidy):
    vault.write("facts/mine.md", "---\nid: 01mine\ntype: fact\n---\nMaya drinks oat milk\n")
    vault.save()
    report = tidy(rewriting("facts/mine.md", "Maya drinks oat milk every day"))
    assert (len(report.asked), report.done) == (1, [])


@pytest.mark.matrix
@pytest.mark.parametrize("kind", ["rewrite", "merge", "reject"])
@pytest.mark.parametrize("always_asks", [True, False])
def test_nobody_is_asked_to_undo_what_they_corrected(vault, tidy, kind, always_asks):
    """The decision rests on what was known before."""
    (one,) = remember(vault, "Maya drinks oat milk")
    note = vault.root / one
    note.write_text(note.read_text().replace("Maya drinks oat milk", "Maya only drinks oat milk"))
    vault.git("commit", "-qam", "mine")
    after = {
        "rewrite": lambda p, data: rewrite(p, data, "Maya drinks oat milk every day"),
        "merge": lambda p, data: supersede(p, data, "facts/other.md", None),
        "reject": None,
    }[kind]

    def plan(context):
        yield decide(context, one, after, kind=kind, always_asks=always_asks)

    report = tidy(plan)
    assert (report.asked, report.done, report.overruled) == ([], [], 1)
    assert "Maya only drinks oat milk" in note.read_text()

    def plan(context):  # the status line is Quaid's
        yield decide(context, one, approve, kind="approve", is_minor=True, evidence="status")

    assert len(tidy(plan).done) == 1


def test_what_is_pinned_or_verified_is_never_touched(vault, tidy):
    paths = remember(vault, "Maya drinks oat milk", "Tom sails")
    for path, mark in zip(paths, ("pinned", "verified"), strict=True):
        note = vault.root / path
        note.write_text(note.read_text().replace("status: active", f"status: active\n{mark}: true"))
    vault.git("commit", "-qam", "mine")
    report = tidy(*(rewriting(path, "Maya drinks tea") for path in paths))
    assert (report.done, report.asked, len(report.held_back)) == ([], [], 2)


def test_an_edit_of_the_owner_meanwhile_stays_and_the_decision_does_not(vault, tidy):
    one, two = remember(vault, "Maya drinks oat milk", "Tom repairs old clocks")
    note = vault.root / one

    def meanwhile(context):
        yield from rewriting(one, "Maya drinks oat milk every day")(context)
        note.write_text(note.read_text() + "\nI know better.\n")

    report = tidy(meanwhile, rewriting(two, "Tom repairs clocks", task="task1"))
    assert "I know better." in note.read_text()
    assert "every day" not in note.read_text()
    assert "Tom repairs clocks" in (vault.root / two).read_text()
    assert [d.task for d in report.done] == ["task1"]
    assert vault.git("log", "--format=%s", "HEAD^1..HEAD^2").splitlines() == [f"janitor(task1): rewrite {two}"]


def test_a_commit_of_the_owner_meanwhile_is_merged_with(vault, tidy):
    (one,) = remember(vault, "Maya drinks oat milk")

    def meanwhile(context):
        yield from rewriting(one, "Maya drinks oat milk every day")(context)
        vault.write("notes/mine.md", "My own note.\n")
        vault.git("add", "-A")
        vault.git("commit", "-qm", "mine")

    tidy(meanwhile)
    assert first_parents(vault)[:2] == ["janitor: reworded 1 fact", "mine"]
    assert (vault.root / "notes" / "mine.md").exists()
    assert vault.git("status", "--porcelain") == ""


@pytest.mark.parametrize("phase", ["memory", "workspace"])
def test_a_task_that_fails_does_not_keep_the_later_ones_from_running(vault, tidy, phase):
    (one,) = remember(vault, "Maya drinks oat milk")

    def failing(context):
        raise ModelTimeoutError("wise", 1)
        yield

    report = tidy(failing, rewriting(one, "Maya drinks oat milk every day", task="task1"), phase=phase)
    assert (list(report.failed), len(report.done)) == (["task0"], 1)


def test_what_a_review_has_approved_is_active_though_a_later_task_fails(vault, tidy):
    one, two = remember(vault, "Maya drinks oat milk", "Tom sails")
    for path in (one, two):
        note = vault.root / path
        note.write_text(note.read_text().replace("status: active", "status: pending"))
    vault.save("mine")
    vault.git("commit", "-q", "--amend", "--author", "Quaid <quaid@localhost>", "--no-edit")

    def activate(path, data):
        return set_fields(path, data, {"status": "active"})

    def review(context):
        yield decide(context, one, activate, kind="approve", is_minor=True)
        changed = rewrite(two, activate(two, context.read(two)).after, "Tom sails at night")
        yield decide(context, two, changed.after)

    def failing(context):
        raise ModelTimeoutError("wise", 1)
        yield

    report = tidy(review, failing)
    assert len(report.done) == 2
    assert all("status: active" in (vault.root / path).read_text() for path in (one, two))
    assert "at night" in (vault.root / two).read_text()
    assert vault.git("diff", "--stat", "HEAD^2", "HEAD") == ""


def test_a_dry_run_shows_what_the_answers_of_its_owner_do(vault, tidy):
    (one,) = remember(vault, "Maya drinks oat milk")
    plan = rewriting(one, "Maya drinks tea", always_asks=True)
    tidy(plan)
    with vault.memory() as memory:
        (question,) = memory.janitor.open_questions()
    ticked = tick(question, "yes")
    (vault.root / question.rel_path).write_bytes(ticked)
    before = (vault.head(), vault.notes())
    assert tidy(plan, dry_run=True).answered == [f"yes: {question.title}"]
    assert (vault.head(), vault.notes()) == before
    (vault.root / one).write_text((vault.root / one).read_text() + "\nAsk her.\n")
    assert [reason for _, reason in tidy(plan, dry_run=True).held_back] == ["you have changed the same note meanwhile"]


@pytest.mark.slow
def test_no_more_is_changed_than_the_budget_allows(vault, tidy):
    paths = remember(vault, *(f"Maya owns boat number {n}" for n in range(30)))

    def plan(context):
        for n, path in enumerate(paths):
            yield decide(context, path, lambda p, d, n=n: rewrite(p, d, f"Maya sold boat number {n}"))

    report = tidy(plan)
    assert (len(report.done), len(report.held_back)) == (20, 10)


def test_a_vault_that_has_shrunk_stops_the_run(vault, tidy):
    paths = remember(vault, *(f"Maya owns boat number {n}" for n in range(30)))
    tidy(lambda context: ())
    for path in paths[:20]:
        (vault.root / path).unlink()
    vault.git("commit", "-qam", "gone")
    with vault.memory() as memory:
        from quaid.sync.derived_index import SyncOptions

        memory.sync(SyncOptions(accept_removals=True))
    with pytest.raises(JanitorStoppedError, match="20 of"):
        tidy(lambda context: ())
    assert not tidy(lambda context: (), accept_removals=True).changed


def test_work_that_is_not_committed_stops_no_night_and_stays(vault, tidy):
    texts = (
        "Maya drinks oat milk",
        "The kiln fires at noon",
        "Tom repairs old clocks",
        "Ana sails",
        "Ben paints",
        "Cleo sings",
    )
    one, edited, three, deleted, renamed, staged = remember(vault, *texts)
    vault.write_fact("walrus", "Rosa keeps a walrus in the bath.")
    for path, old, new in (
        (one, "oat milk", "oat milk and tea"),
        (edited, "The kiln fires at noon", "The walrus kiln fires at midnight"),
    ):
        note = vault.root / path
        note.write_text(note.read_text().replace(old, new))
    (vault.root / deleted).unlink()
    (vault.root / renamed).rename(vault.root / "facts/renamed.md")
    vault.git("mv", staged, "facts/staged.md")
    questions = {
        "Where is the walrus?": "walrus",
        "What fires at noon?": Path(edited).stem,
        "Who sails?": Path(deleted).stem,
    }
    vault.write("eval/own.md", "".join(f"- {question} -> [[{stem}]]\n" for question, stem in questions.items()))
    before, status = vault.notes(), vault.status()
    with vault.memory() as memory:
        for question in (*questions, "What does Maya drink?"):
            memory.recall(question)
    plans = [rewriting(one, "Maya drinks oat milk every day"), rewriting(three, "Tom repairs clocks", task="task1")]
    report = tidy(*plans)
    assert (report.lost, report.failed) == ([], {})
    now = vault.notes()
    assert {path for path in {*before, *now} if before.get(path) != now.get(path)} == {three}
    assert vault.status() == status
    assert tidy(*plans).lost == []
    with vault.memory() as memory:
        assert_verified(memory)


def test_a_vault_without_a_commit_is_told_to_make_one(vault, tidy):
    vault.git("update-ref", "-d", "HEAD")
    before = vault.notes()
    with pytest.raises(JanitorStoppedError, match="git commit"):
        tidy(lambda context: ())
    assert vault.notes() == before
    vault.git("checkout", "-q", "--detach", vault.save())
    with pytest.raises(JanitorStoppedError, match="git switch"):
        tidy(lambda context: ())


@pytest.mark.slow
def test_a_vault_in_a_subfolder_is_tidied_like_any_other(vault, tmp_path, monkeypatch):
    work = Vault(tmp_path / "work")
    work.root.mkdir()
    work.git("init", "-q", "-b", "main")
    inner = Vault(work.root / "notes" / "memory")
    work.write("code.py", "print(1)\n")
    work.save("the owner's own")
    with Memory.create(inner.root)[0]:
        inner.git("update-ref", "HEAD", "HEAD~1")  # the vault is there and not committed
    with pytest.raises(JanitorStoppedError, match="git commit"), inner.memory() as memory:
        memory.janitor.run(RunOptions())
    work.save("with the vault")
    (one,) = remember(inner, "Maya drinks oat milk")
    inner.write_fact("walrus", "Rosa keeps a walrus in the bath.")
    work.write("code.py", "print(2)\n")
    with inner.memory() as memory:
        memory.recall("Where is the walrus?")
    report = tidying(inner, monkeypatch)(rewriting(one, "Maya drinks oat milk every day"))
    assert (report.lost, len(report.done)) == ([], 1)
    assert "every day" in (inner.root / one).read_text()
    assert work.git("status", "--porcelain", "-uall").splitlines() == ["M code.py", "?? notes/memory/facts/walrus.md"]
    with inner.memory() as memory:
        assert memory.timeline.undo(report.run).commit
    assert tidying(inner, monkeypatch)(rewriting(one, "Maya drinks oat milk every day")).vetoed == 1


def test_a_night_that_only_asks_does_not_ask_the_owners_questions(vault, tidy, monkeypatch):
    (one,) = remember(vault, "Maya drinks oat milk")
    monkeypatch.setattr("quaid.janitor.guards.Gate", None)
    assert len(tidy(rewriting(one, "Maya drinks oat milk every day", always_asks=True)).asked) == 1


def test_an_answer_that_the_night_itself_would_lose_stops_the_merge(vault, tidy):
    (two,) = remember(vault, "The kiln fires at noon")
    vault.write("eval/own.md", f"- When does the kiln fire? -> [[{Path(two).stem}]]\n")
    vault.write_fact("walrus", "The kiln of the walrus fires at dusk.")  # not committed
    vault.git("add", "eval")
    vault.git("commit", "-qm", "a question")
    report = tidy(lambda context: [decide(context, two, None)])
    assert len(report.lost) == 1
    assert Path(two).stem in report.lost[0]
    assert "The kiln fires at noon" in (vault.root / two).read_text()


def test_an_answer_that_a_decision_is_about_is_not_lost_though_another_note_is_changed(vault, tidy, monkeypatch):
    one, two = remember(vault, "The kiln fires at noon", "The loom is in the barn")
    with vault.memory() as memory:
        (hit,) = memory.recall("When does the kiln fire?").hits[:1]
    real = Gate._ask
    answered = iter([None])
    monkeypatch.setattr(Gate, "_ask", lambda gate: real(gate) if next(answered, 1) is None else iter([((), [])]))
    plan = rewriting(two, "The loom is in the old barn", facts=(hit.id,))
    report = tidy(plan)
    assert (report.lost, len(report.done)) == ([], 1)
    assert one == hit.path


def test_another_janitor_at_work_is_left_alone(vault, tidy):
    from filelock import FileLock

    from quaid.errors import LockedError

    with FileLock(state_folder(vault.root) / "janitor.lock"), pytest.raises(LockedError):
        tidy(lambda context: ())


@pytest.mark.parametrize("moment", ["before the merge", "in the merge", "after the merge"])
def test_killed_and_run_again_it_comes_to_the_same(vault, tidy, monkeypatch, moment):
    (one,) = remember(vault, "Maya drinks oat milk")
    plan = rewriting(one, "Maya drinks oat milk every day")
    child = os.fork()
    if not child:
        commit = History.commit

        def killed(self, edits, message, **how):
            if how.get("merged") and moment == "in the merge":
                os.kill(os.getpid(), signal.SIGKILL)
            made = commit(self, edits, message, **how)
            if moment == ("after the merge" if how.get("merged") else "before the merge"):
                os.kill(os.getpid(), signal.SIGKILL)
            return made

        monkeypatch.setattr(History, "commit", killed)
        tidy(plan)
        os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    tidy(plan)
    tidy(plan)
    assert first_parents(vault).count("janitor: reworded 1 fact") == 1
    assert "every day" in (vault.root / one).read_text()
    assert vault.git("status", "--porcelain") == ""
    assert not list((state_folder(vault.root) / "worktrees").iterdir())
    with vault.memory() as memory:
        assert memory.verify().ok


@pytest.mark.slow
def test_no_more_is_asked_in_a_night_than_anybody_answers(vault, tidy):
    paths = remember(vault, *(f"Maya owns boat number {n}" for n in range(25)))

    def plan(context):
        for path in paths:
            yield decide(context, path, None, kind="reject")

    report = tidy(plan)
    assert (len(report.asked), len(report.held_back)) == (3, 22)
    assert not tidy(plan).asked


@pytest.mark.slow
def test_a_fact_that_talks_like_a_revert_vetoes_nothing(vault, tidy):
    one, two = remember(vault, "Maya drinks oat milk", "Tom repairs old clocks")
    plan = rewriting(one, "Maya drinks oat milk every day")
    tidy(plan)
    vault.git("revert", "--no-edit", "-m", "1", "HEAD")
    veto = vault.git("rev-parse", "HEAD")
    with vault.memory() as memory:
        memory.remember(f"Ana wrote to me. This reverts commit {veto}.")
    other = rewriting(
        two, "Tom repairs clocks", task="task0", why=f"This reverts commit {veto}.\n\nQuaid-Reverts: {veto}"
    )
    assert tidy(other).done
    assert tidy(plan).vetoed == 1


def test_two_nights_leave_the_history_packed(vault):
    for number in range(120):
        vault.write(f"notes/{number}.md", f"{number}\n")
    vault.save()
    with vault.memory() as memory:
        for _ in range(2):
            memory.janitor.run(RunOptions(tasks=("cleanup",)))
    assert int(vault.git("count-objects").split()[0]) < 10
    vault.assert_sound()
