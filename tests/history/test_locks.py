"""Others at work in the repository are waited for, built upon, or named."""

from __future__ import annotations

import threading
import time

import pytest
from git_vaults import NOTE, SAY, Vault, conflict, hold_lock, ours, theirs
from vaults import PATIENCE_S

from quaid.errors import LockedError
from quaid.history import committing, staging
from quaid.history.vault_history import History
from quaid.model import Committed, Edit
from quaid.settings import GitSettings


def test_a_lock_that_is_released_in_time_is_waited_for(vault):
    patient = Vault(vault.root, wait_s=5)
    hold_lock(vault, release_after_s=0.2)
    assert patient.commit("facts/b.md", NOTE).id


def test_a_lock_that_is_not_released_is_named_and_never_removed(vault):
    lock = hold_lock(vault)
    before = vault.head()
    with pytest.raises(LockedError, match=r"index\.lock"):
        vault.commit("facts/b.md", NOTE)
    assert lock.exists()
    assert vault.head() == before


def test_a_lock_taken_while_git_commits_takes_the_commit_back(vault):
    vault.hook("post-commit", "rm .git/index.lock; touch .git/index.lock")
    before, index = vault.head(), vault.index()
    with pytest.raises(LockedError, match=r"index\.lock"):
        vault.commit("facts/b.md", NOTE)
    assert vault.head() == before
    (vault.root / ".git/index.lock").unlink()
    assert vault.index() == index
    assert vault.status() == "?? facts/b.md\n"
    vault.assert_sound()


def test_the_very_first_commit_can_be_taken_back(empty):
    empty.hook("post-commit", "rm .git/index.lock; touch .git/index.lock")
    with pytest.raises(LockedError):
        empty.commit("facts/b.md", NOTE)
    assert empty.history.state().head is None


def test_a_lock_taken_while_git_commits_and_released_is_waited_for(vault):
    patient = Vault(vault.root, wait_s=5)
    vault.hook(
        "post-commit", "rm .git/index.lock; touch .git/index.lock; (sleep 0.3; rm .git/index.lock) >/dev/null 2>&1 &"
    )
    assert patient.commit("facts/b.md", NOTE).id
    assert vault.status() == ""


@pytest.mark.parametrize("command", [["commit", "-q", "-m", "owner"], ["commit", "-qam", "owner"], ["add", "-A"]])
def test_nobody_commits_between_our_commit_and_the_index_that_follows_it(vault, monkeypatch, command):
    update_users_index, said = staging.update_users_index, []

    def catch_up_while_the_user_commits(*args):
        said.append(vault.run(*command, check=False).stderr.decode())
        update_users_index(*args)

    vault.write("mine.md", b"mine\n")
    vault.run("add", "mine.md")
    monkeypatch.setattr(committing, "update_users_index", catch_up_while_the_user_commits)
    vault.commit("facts/b.md", NOTE)
    assert "index.lock': File exists" in said[0]
    vault.run("commit", "-q", "-m", "owner")
    assert vault.show("HEAD:facts/b.md") == NOTE
    assert vault.status() == ""
    vault.assert_sound()


@pytest.mark.parametrize("has_hook", [False, True])
def test_a_commit_of_the_user_in_the_middle_of_ours_is_built_upon(vault, monkeypatch, has_hook):
    if has_hook:
        vault.hook("post-commit", "true")
    fill = staging.Stage.prepare
    moves = iter([True])

    def fill_while_the_user_commits(self, steps):
        fill(self, steps)
        if next(moves, False):
            vault.save("other.md", theirs())

    monkeypatch.setattr(staging.Stage, "prepare", fill_while_the_user_commits)
    done = vault.commit("facts/a.md", ours())
    assert [commit.subject for commit in vault.history.log(limit=2)] == ["remember: a fact", "save other.md"]
    assert vault.files(done.id) == ["facts/a.md"]
    assert vault.show("HEAD:other.md") == theirs()
    assert vault.status() == ""
    vault.assert_sound()


def test_a_commit_made_while_our_hook_runs_is_built_upon(vault):
    vault.hook(
        "pre-commit",
        "test -e .git/once && exit 0; touch .git/once; unset GIT_INDEX_FILE GIT_DIR; echo x >> other.md; "
        "git -c user.name=M -c user.email=m commit -q --no-verify -m theirs other.md",
    )
    assert vault.commit("facts/a.md", ours()).id
    assert [commit.subject for commit in vault.history.log(limit=2)] == ["remember: a fact", "theirs"]
    assert vault.files() == ["facts/a.md"]
    assert vault.status() == ""


@pytest.mark.parametrize("has_hook", [False, True])
def test_a_branch_switched_to_in_the_middle_of_a_commit_gets_it(vault, monkeypatch, has_hook):
    if has_hook:
        vault.hook("post-commit", "true")
    fill = staging.Stage.prepare
    moves = iter([["-b", "side"], ["--detach"]])

    def fill_while_the_user_switches(self, steps):
        fill(self, steps)
        command = next(moves, None)
        if command:
            vault.run("checkout", "-q", *command)

    monkeypatch.setattr(staging.Stage, "prepare", fill_while_the_user_switches)
    main = vault.head()
    done = vault.commit("facts/a.md", ours())
    assert vault.head() == done.id
    assert vault.git("rev-parse", "main", "side").split() == [main, main]
    assert vault.status() == ""


def test_a_detached_head_moved_at_the_last_moment_is_built_upon(vault):
    vault.run("checkout", "-q", "--detach")
    vault.hook(
        "post-commit",
        "test -e .git/once && exit 0; touch .git/once; unset GIT_INDEX_FILE GIT_DIR; "
        "git update-ref HEAD $(git -c user.name=M -c user.email=m commit-tree -p HEAD -m theirs HEAD^{tree})",
    )
    vault.commit("facts/a.md", ours())
    assert [commit.subject for commit in vault.history.log(limit=2)] == ["remember: a fact", "theirs"]
    assert vault.status() == ""


def test_an_owner_who_commits_without_a_rest_is_locked_out_for_a_moment(vault, monkeypatch):
    fill, refused = staging.Stage.prepare, []

    def fill_while_the_user_commits(self, steps):
        fill(self, steps)
        refused.append(vault.run("commit", "-q", "--allow-empty", "-m", "again", check=False).returncode != 0)

    monkeypatch.setattr(staging.Stage, "prepare", fill_while_the_user_commits)
    assert vault.commit("facts/a.md", ours()).id
    assert refused == [False, False, False, True]
    assert [commit.subject for commit in vault.history.log(limit=2)] == ["remember: a fact", "again"]
    assert vault.status() == ""
    vault.assert_sound()


def test_a_head_that_never_rests_is_given_way_to(vault, monkeypatch):
    fill = staging.Stage.prepare

    def fill_while_somebody_moves_it(self, steps):
        fill(self, steps)
        vault.run("update-ref", "HEAD", vault.git("commit-tree", "-p", "HEAD", "-m", "again", "HEAD^{tree}").strip())

    monkeypatch.setattr(staging.Stage, "prepare", fill_while_somebody_moves_it)
    with pytest.raises(LockedError, match="keep arriving"):
        vault.commit("facts/a.md", ours())
    assert vault.history.log(limit=1)[0].subject == "again"
    assert vault.status() == " M facts/a.md\n"


def test_a_merge_begun_in_the_middle_of_a_commit_is_not_concluded_by_it(vault, monkeypatch):
    vault.run("checkout", "-q", "-b", "side")
    vault.save("other.md", theirs())
    vault.run("checkout", "-q", "main")
    fill = staging.Stage.prepare

    def fill_while_the_user_merges(self, steps):
        fill(self, steps)
        vault.run("merge", "-q", "--no-ff", "--no-commit", "side")

    monkeypatch.setattr(staging.Stage, "prepare", fill_while_the_user_merges)
    before = vault.head()
    with pytest.raises(LockedError, match="merge is in progress"):
        vault.commit("facts/a.md", ours())
    assert vault.head() == before
    assert (vault.root / ".git/MERGE_HEAD").exists()
    assert vault.status() == " M facts/a.md\nM  other.md\n"


def commit_unless_locked(vault: Vault, edit: Edit) -> Committed | None:
    try:
        return vault.history.commit([edit], SAY)
    except LockedError:
        return None


@pytest.mark.slow
def test_commits_of_the_user_at_the_same_time_are_all_kept(vault):
    patient = Vault(vault.root, wait_s=20)
    rounds = 12

    def commit_as_user() -> None:
        for i in range(rounds):
            vault.write(f"mine-{i}.md", b"mine\n")
            for command in (("add", f"mine-{i}.md"), ("commit", "-q", "-m", f"mine {i}", "--", f"mine-{i}.md")):
                while vault.run(*command, check=False).returncode:
                    time.sleep(0.01)
            time.sleep(0.02)

    user = threading.Thread(target=commit_as_user)
    user.start()
    for i in range(rounds):
        edit = patient.edit(f"facts/q-{i}.md", NOTE)
        while commit_unless_locked(patient, edit) is None:
            pass
    user.join()
    assert vault.status() == ""
    seen = {name for commit in patient.history.log(limit=100) for name in commit.files}
    assert {f"facts/q-{i}.md" for i in range(rounds)} | {f"mine-{i}.md" for i in range(rounds)} <= seen
    made = [commit for commit in patient.history.log(limit=100) if not commit.subject.startswith("save")]
    assert all(len(commit.files) == 1 for commit in made)
    assert all(commit.files[0].startswith("facts/q-") == (commit.author == "Quaid") for commit in made)
    assert all(commit.subject.startswith("remember") == (commit.author == "Quaid") for commit in made)
    assert vault.git("log", "--diff-filter=D", "--oneline") == ""
    vault.assert_sound()


@pytest.mark.parametrize(
    ("operation", "command", "next_step"),
    [
        ("merge", ["merge", "side"], "git merge --continue"),
        ("rebase", ["rebase", "side"], "git rebase --continue"),
        ("rebase", ["rebase", "--apply", "side"], "git rebase --continue"),
        ("cherry-pick", ["cherry-pick", "side"], "git cherry-pick --continue"),
        ("revert", ["revert", "--no-edit", "HEAD~1"], "git revert --continue"),
        ("am", ["am"], "git am --continue"),
        ("bisect", ["bisect", "start"], "git bisect reset"),
    ],
)
def test_an_operation_in_progress_is_waited_for_then_named(vault, operation, command, next_step):
    conflict(vault)
    if operation == "revert":
        vault.save("other.md", NOTE.replace(b"two", b"later"))
    patch = vault.run("format-patch", "--stdout", "-1", "side").stdout if operation == "am" else None
    vault.run(*command, check=False, stdin=patch)
    assert vault.history.state().operation == operation
    said: list[str] = []
    with pytest.raises(LockedError, match=next_step):
        vault.history.wait_until_ready(said.append)
    assert len(said) == 1
    assert operation in said[0]
    before = vault.head()
    with pytest.raises(LockedError):
        vault.history.commit([Edit("facts/b.md", None, NOTE)], SAY)
    assert vault.head() == before


def test_waiting_ends_when_the_operation_does(vault):
    patient = History(vault.root, GitSettings(wait_s=300))
    mark = vault.root / ".git/MERGE_HEAD"
    mark.write_text(vault.head())
    threading.Timer(0.2, mark.unlink).start()
    started = time.monotonic()
    patient.wait_until_ready()
    assert 0.1 < time.monotonic() - started < PATIENCE_S
    patient.wait_until_ready(pytest.fail)


def test_a_series_of_picks_between_two_steps_is_in_progress(vault):
    todo = vault.root / ".git/sequencer/todo"
    todo.parent.mkdir()
    todo.write_text("pick 123 x\n")
    assert vault.history.state().operation == "cherry-pick"
    todo.write_text("revert 123 x\n")
    assert vault.history.state().operation == "revert"
