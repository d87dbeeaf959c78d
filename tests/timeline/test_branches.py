"""A memory beside the owner's: made, used, compared, merged and deleted, with nothing lost on the way."""

from __future__ import annotations

import atexit
import json
import shutil
import threading
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest
from replay import write_talk
from timelines import HOME, furnished
from vaults import Vault, assert_verified, copy_of, refused, texts, wait_for

from quaid import Memory
from quaid.cli.main import main
from quaid.errors import BadInputError, LockedError, UnsavedWorkError
from quaid.janitor.worktree import janitor_lock
from quaid.place import state_folder

BIKE = "Maya rides a green bicycle"


@cache
def fork():
    """Two branches: `experiment` knows of a bicycle and a move, `main` of a boat. Made once."""
    folder = Path(mkdtemp(prefix="quaid-branches-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    vault = copy_of(furnished(), folder / "vault")
    with vault.memory() as memory:
        branches = memory.timeline.branches
        branches.create("experiment")
        branches.switch("experiment")
        memory.remember(BIKE)
        memory.remember("Maya lives in Porto with Tom", replaces=HOME)
        branches.switch("main")
        memory.remember("Maya has a red boat")
    return vault.root


@pytest.fixture
def forked(calm, tmp_path):
    return copy_of(fork(), tmp_path / "vault")


def test_the_index_follows_a_switch_in_this_process_and_in_others(forked):
    with forked.memory() as memory, forked.memory() as other:
        assert texts(other, "bicycle") == []
        memory.timeline.branches.switch("experiment")
        assert BIKE in texts(memory, "bicycle")
        assert BIKE in texts(other, "bicycle")
        assert_verified(memory)
        other.timeline.branches.switch("main")
        assert texts(memory, "bicycle") == []
        assert "Maya has a red boat" in texts(memory, "boat")


def test_a_watcher_follows_too(forked):
    reports = []
    with forked.memory() as memory, forked.memory() as switching:
        follower = memory.follow(reports.append)
        thread = threading.Thread(target=follower.run)
        thread.start()
        try:
            wait_for((state_folder(forked.root) / "watch.json").exists, "it follows")
            forked.git("switch", "-q", "experiment")  # the owner's own git
            wait_for(lambda: any(report.added for report in reports), "the branch is indexed")
            switching.timeline.branches.switch("main")
        finally:
            follower.stop()
            thread.join()
    with forked.memory() as memory:
        assert texts(memory, "bicycle") == []
        assert_verified(memory)


def test_branches_are_compared_by_facts_and_by_answers(forked, tmp_path, capsys):
    (tmp_path / "q.txt").write_text("Where does Maya live?\n")
    at = ["--vault", str(forked.root), "diff", "main..experiment"]
    assert main([*at, "--recall", str(tmp_path / "q.txt"), "--json"]) == 0
    shape = json.loads(capsys.readouterr().out)
    assert {(change["how"], change["text"]) for change in shape["changes"]} == {
        ("learned", BIKE),
        ("learned", "Maya lives in Porto with Tom"),
        ("superseded", HOME),
        ("forgotten", "Maya has a red boat"),
    }
    assert "Maya lives in Porto with Tom" in [hit["text"] for hit in shape["answers"][0]["gained"]]


def test_a_merge_is_one_commit_of_both_and_is_undone_and_done_again(forked):
    before = forked.notes()
    with forked.memory() as memory:
        merged = memory.timeline.branches.merge("experiment")
        assert forked.git("rev-list", "--parents", "-1", "HEAD").split()[1:] == [
            forked.git("rev-parse", "HEAD^1"),
            forked.git("rev-parse", "experiment"),
        ]
        assert BIKE in texts(memory, "bicycle")
        assert "Maya has a red boat" in texts(memory, "boat")
        assert memory.timeline.branches.merge("experiment").id is None
        assert forked.git("worktree", "list").count("\n") == 0
        together = forked.notes()
        undone = memory.timeline.undo(merged.id)
        assert forked.notes() == before
        memory.timeline.undo(undone.commit)
        assert forked.notes() == together
        assert_verified(memory)
    assert forked.status() == ""


@pytest.mark.slow
def test_what_both_branches_have_made_becomes_one_and_what_clashes_is_asked(forked):
    for branch, home in (("main", "Turin"), ("experiment", "Lyon")):
        forked.git("switch", "-q", branch)
        with forked.memory() as memory:
            memory.link("Zoe Lind", "works_for", f"Atelier {branch}")
            memory.remember(f"Zoe Lind lives in {home}")
    forked.git("switch", "-q", "main")
    with forked.memory() as memory:
        memory.timeline.branches.merge("experiment")
        assert sum("Zoe" in path for path in forked.notes() if path.startswith("entities/")) == 1
        assert any(path.startswith("review/") for path in forked.notes())
        assert_verified(memory)
    assert forked.status() == ""


def test_a_merge_touches_no_uncommitted_work(forked):
    (path,) = (path for path, data in forked.notes().items() if HOME.encode() in data)
    note = forked.root / path
    forked.write("notes/other.md", "Not committed, and not concerned.\n")
    mine = note.read_bytes() + b"\nmine\n"
    note.write_bytes(mine)
    head = forked.head()
    with forked.memory() as memory:
        merge = memory.timeline.branches.merge
        assert path in str(refused(lambda: merge("experiment"), UnsavedWorkError))
        assert (note.read_bytes(), forked.head()) == (mine, head)
        forked.git("checkout", "-q", "--", path)
        assert merge("experiment").id
    assert (forked.root / "notes/other.md").exists()


def test_lines_that_both_have_changed_are_left_to_their_owner(forked):
    for branch in ("experiment", "main"):
        forked.git("switch", "-q", branch)
        forked.write("garden.md", f"The roses are for {branch}.\n")
        forked.save("mine")
    head = forked.head()
    with forked.memory() as memory:
        said = str(refused(lambda: memory.timeline.branches.merge("experiment"), BadInputError))
    assert "git merge experiment" in said
    assert "garden.md" in said
    assert (forked.head(), forked.status(), forked.git("worktree", "list").count("\n")) == (head, "", 0)


def test_what_quaid_does_not_write_is_not_merged(forked):
    forked.git("switch", "-q", "experiment")
    (forked.root / "link.md").symlink_to("USER.md")
    forked.save("a link")
    forked.git("switch", "-q", "main")
    with forked.memory() as memory:
        assert "link.md" in str(refused(lambda: memory.timeline.branches.merge("experiment"), BadInputError))
    assert not (forked.root / "link.md").is_symlink()


def test_a_switch_refuses_while_something_is_not_committed(forked):
    for path, is_staged in (("USER.md", False), ("SOUL.md", True), ("notes/mine.md", False)):
        forked.write(path, "mine\n")
        if is_staged:
            forked.git("add", path)
        with forked.memory() as memory:
            said = str(refused(lambda memory=memory: memory.timeline.branches.switch("experiment"), UnsavedWorkError))
            assert path in said
            assert (forked.root / path).read_text() == "mine\n"
            assert forked.git("branch", "--show-current") == "main"
            forked.git("stash", "push", "-qu")  # the next step that it names
            memory.timeline.branches.switch("experiment")
            memory.timeline.branches.switch("main")
        forked.git("stash", "pop", "-q")
        assert (forked.root / path).read_text() == "mine\n"
        forked.git("reset", "-q", "--hard")
        forked.git("clean", "-qfd", "notes")


def test_a_janitor_keeps_the_branch_that_it_began_on(forked):
    with janitor_lock(forked.root), forked.memory() as memory:
        refused(lambda: memory.timeline.branches.switch("experiment"), LockedError)
    assert forked.git("branch", "--show-current") == "main"


def test_a_conversation_that_waits_for_a_commit_stays_with_the_memory_that_heard_it(vault, tmp_path):
    with vault.memory() as memory:
        memory.timeline.branches.create("experiment")
        path = memory.extract(write_talk(tmp_path / "t.jsonl", "hi", session="s8")).path
        memory.timeline.branches.switch("experiment")
        assert not (vault.root / path).exists()
        memory.timeline.branches.switch("main")
        assert (vault.root / path).exists()
    assert vault.status() == ""


def test_commits_on_no_branch_are_not_left_behind(forked):
    forked.git("switch", "-q", "--detach")
    with forked.memory() as memory:
        branches = memory.timeline.branches
        memory.remember("Ben paints old boats")
        assert "branch create" in str(refused(lambda: branches.switch("experiment"), BadInputError))
        branches.create("kept")
        branches.switch("kept")
        assert "Ben paints old boats" in texts(memory, "boats")


def test_a_deleted_branch_is_kept_as_a_backup(forked):
    with forked.memory() as memory:
        branches = memory.timeline.branches
        tip = branches.find("experiment").id
        assert "--force" in str(refused(lambda: branches.delete("experiment"), BadInputError))
        assert "checked out" in str(refused(lambda: branches.delete("main", force=True), BadInputError))
        backup = branches.delete("experiment", force=True)
        assert [head.name for head in branches.list()] == ["main"]
        assert branches.create("experiment", backup).id == tip
        branches.merge("experiment")
        branches.delete("experiment")


def test_a_name_that_git_would_not_take_is_refused(vault):
    with vault.memory() as memory:
        for name in ("../x", "-d", "a b", "main", "x..y", ""):
            refused(lambda name=name: memory.timeline.branches.create(name), BadInputError)


def test_a_branch_begins_where_it_is_said(vault):
    with vault.memory() as memory:
        assert memory.timeline.branches.create("old/first", "HEAD~2").id == vault.git("rev-parse", "HEAD~2")
        vault.git(
            "branch", "empty", vault.git("commit-tree", "-m", "nothing", "4b825dc642cb6eb9a060e54bf8d69288fbee4904")
        )
        assert "holds no vault" in str(refused(lambda: memory.timeline.branches.switch("empty"), BadInputError))


def test_a_vault_in_a_larger_repository_is_left_to_git(calm, tmp_path):
    work = Vault(tmp_path / "work")
    work.root.mkdir()
    work.git("init", "-q", "-b", "main")
    inner = work.root / "memory"
    with Memory.create(inner)[0] as memory:
        assert str(work.root) in str(refused(lambda: memory.timeline.branches.create("x"), BadInputError))
        assert [head.name for head in memory.timeline.branches.list()] == ["main"]


@pytest.mark.slow
def test_the_command_goes_through_all_of_it(vault, capsys):
    def quaid(*arguments):
        code = main(["--vault", str(vault.root), "branch", *arguments, "--json"])
        return code, json.loads(capsys.readouterr().out)

    assert quaid("create", "work")[0] == 0
    assert quaid("switch", "work")[1]["before"] == "main"
    with vault.memory() as memory:
        memory.remember(BIKE)
    listed = {branch["name"]: branch for branch in quaid()[1]["branches"]}
    assert listed["main"]["behind"] == 1
    assert (listed["work"]["is_current"], listed["work"]["what"]) == (True, f"learned “{BIKE}”")
    assert quaid("switch", "main")[0] == 0
    assert quaid("merge", "work")[1]["into"] == "main"
    assert quaid("delete", "work")[1]["backup"].endswith("-work")
    assert quaid("shout")[0] == 2
    assert quaid("merge")[0] == 2
