"""What one machine purged does not come back from another, whichever way its old history travels."""

from __future__ import annotations

import os
import re
import subprocess

import pytest
from machines import KAYAK, make_machines, publish, pull, push, remember, run_git, share, trust_remotes
from served_vaults import GitHost
from vaults import Vault, trust_vault

from quaid.history import rewriting
from quaid.history.mirrors import Mirror, MirrorLimits
from quaid.history.purged import FOLDER, PurgedError
from quaid.purge import purging
from quaid.remotes.exchange import list_states

pytestmark = pytest.mark.usefixtures("calm")
HERE = "Your history here"
THERE = "origin"
SECRET = "hunter2-swordfish-oilskin"
EPISODE = "episodes/2026/11/20-1402-2f1c9a.md"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "Maya")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "maya@example.org")
    return tmp_path


@pytest.fixture
def host(folder):
    served = GitHost(folder)
    yield served
    served.close()


@pytest.fixture
def pair(folder):
    """Two machines that have the secret in a fact, an episode, a file's name and a message; one has purged it."""
    one, other = make_machines(folder)
    with one.memory() as memory:
        memory.remember(f"Maya logs in with {SECRET} every day")
    one.write(EPISODE, f"---\ntype: episode\nsession: 2f1c9a\n---\nThe password is {SECRET}, and more.\n")
    one.write(f"Notes/{SECRET}.md", "Only its name says it.\n")
    one.save(f"owner: remember {SECRET}")
    share(one, other)
    return one, other


def purge(vault):
    with vault.memory() as memory:
        assert purging.purge(memory, purging.find_text(memory, SECRET))[1].holds


def refuse(vault, whose):
    """Return the refusal of pull, push and the exchange in the background, which change nothing."""
    before = (vault.head(), vault.notes(), vault.status())
    for call in (pull, push):
        with pytest.raises(
            PurgedError, match=f"{whose} has what was purged .*: nothing was pulled or pushed"
        ) as refusal:
            call(vault)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QUAID_GIT_SYNC", "auto")
        with vault.memory() as memory:
            memory.remotes.exchange()
            assert "what was purged" in list_states(memory)[0].problem
    assert (vault.head(), vault.notes(), vault.status()) == before
    return str(refusal.value)


def follow(vault, refusal):
    """Run the commands of git that a refusal names."""
    command = re.search(r": (git .*?)(?:\. |$)", refusal)[1]
    done = subprocess.run(command, shell=True, cwd=vault.root, capture_output=True, check=False)
    assert done.returncode == 0, (command, done.stderr)


def holds(folder, *revisions):
    """Return whether a history has the secret in a file, a name or a message."""
    log = run_git(folder, "log", "-p", "-m", "--format=%B", *(revisions or ("--all",)))
    names = run_git(folder, "rev-list", "--objects", *(revisions or ("--all",)))
    return SECRET in log + names


def purge_and_push(one):
    """Purge on one machine, and replace the history of the remote as the refusal of its push says."""
    purge(one)
    refusal = refuse(one, THERE)
    assert not holds(one.root)
    follow(one, refusal)
    assert pull(one).commit is None


def test_the_machine_that_purged_replaces_the_history_of_the_remote(pair, folder):
    one, _ = pair
    purge_and_push(one)
    assert not holds(folder / "remote.git")
    remember(one, KAYAK)
    assert push(one).commits == 1


def test_a_machine_that_has_the_old_history_merges_nothing_and_loses_nothing(pair, folder):
    one, other = pair
    purge_and_push(one)
    remember(other, KAYAK)
    other.write("garden.md", "not committed\n")
    refusal = refuse(other, HERE)
    assert not holds(folder / "remote.git")
    follow(other, refusal)
    assert push(other).commits == 1
    assert other.status() == "?? garden.md"
    assert not holds(other.root, "HEAD")
    assert not holds(folder / "remote.git")
    pull(one)
    with one.memory() as memory:
        assert memory.search("kayak").hits


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_note_of_the_owner_that_had_the_text_is_not_moved_by_a_merge(pair, folder, is_committed):
    """A merge of the two versions would write the text into a file that no list knows."""
    one, other = pair
    purge_and_push(one)
    other.write(EPISODE, (other.root / EPISODE).read_text() + "And what the other machine added.\n")
    if is_committed:
        other.save()
    refusal = refuse(other, HERE)
    assert "git rebase" not in refusal
    purge(other)
    pull(other)
    push(other)
    assert "what the other machine added" in (other.root / EPISODE).read_text()
    assert not holds(folder / "remote.git")


def test_the_same_purge_on_the_other_machine_makes_the_same_history(pair, folder):
    one, other = pair
    purge_and_push(one)
    remember(other, KAYAK)
    other.write("garden.md", "not committed\n")
    refuse(other, HERE)
    purge(other)
    assert push(other).commits == 3
    pull(one)
    assert one.head() == other.head()
    assert other.status() == "?? garden.md"
    assert not holds(one.root)
    assert not holds(other.root)
    assert not holds(folder / "remote.git")


def pollute(vault, how):
    """What the owner of an old clone may do with plain git, on the day after the purge."""
    remember(vault, KAYAK)
    if how == "merge":
        vault.git("pull", "-q", "--no-rebase", "--no-edit", "origin", "main")
        vault.git("push", "-q", "origin", "main")
    else:
        vault.git("push", "-q", "--force", "origin", "main")


@pytest.mark.parametrize("how", ["merge", "force"])
def test_an_old_history_that_git_pushed_is_refused_and_what_is_new_in_it_can_be_kept(pair, folder, how):
    one, other = pair
    purge_and_push(one)
    pollute(other, how)
    assert holds(folder / "remote.git", "main")
    remember(one, "Jon sold the harbour office in Lisbon")
    refusal = refuse(one, THERE)
    purge(one)
    follow(one, refusal)
    assert not holds(folder / "remote.git", "main")
    assert not holds(one.root)
    with one.memory() as memory:
        assert memory.search("kayak").hits
    assert pull(one).commit is None
    refuse(other, HERE)


def test_a_merge_by_hand_is_not_pushed(pair, folder):
    one, other = pair
    purge_and_push(one)
    remember(other, KAYAK)
    other.git("pull", "-q", "--no-rebase", "--no-edit", "origin", "main")
    refusal = refuse(other, HERE)
    assert "quaid clone" in refusal
    assert not holds(folder / "remote.git", "main")
    purge(other)
    push(other)
    assert not holds(folder / "remote.git", "main")


def test_a_clone_that_fetched_and_merged_nothing_is_refused(pair, folder):
    one, other = pair
    purge_and_push(one)
    other.git("fetch", "-q")
    assert "rebase --autostash" in refuse(other, HERE)
    with other.memory() as memory, pytest.raises(PurgedError, match=HERE):
        memory.remotes.trust("origin")


def test_a_shallow_clone_is_refused_and_moves_its_own_commits(pair, folder):
    one, _ = pair
    run_git(folder, "clone", "-q", "--depth", "1", f"file://{folder}/remote.git", "shallow")
    shallow = Vault(folder / "shallow")
    shallow.git("remote", "set-url", "origin", "../remote.git")
    trust_vault(shallow.root)
    trust_remotes([one, shallow])
    purge_and_push(one)
    remember(shallow, KAYAK)
    refusal = refuse(shallow, HERE)
    follow(shallow, refusal)
    assert push(shallow).commits == 1
    assert not holds(folder / "remote.git", "main")


def test_another_branch_with_the_old_history_is_refused(pair, folder):
    one, other = pair
    other.git("switch", "-q", "-c", "other")
    other.git("push", "-q", "origin", "other")
    purge_and_push(one)
    one.git("switch", "-q", "-c", "other")
    refuse(one, THERE)
    other.git("switch", "-q", "main")
    refuse(other, HERE)


def test_a_purge_before_there_was_a_remote_counts(pair, folder):
    one, _ = pair
    with one.memory() as memory:
        memory.remotes.remove("origin")
    purge(one)
    with one.memory() as memory:
        memory.remotes.add(str(folder / "remote.git"))
    refuse(one, THERE)
    one.git("pull", "-q", "--no-rebase", "--no-edit", "../machine1", "main")  # by hand
    refuse(one, HERE)
    run_git(folder, "init", "-q", "--bare", "-b", "main", "empty.git")
    with one.memory() as memory:
        memory.remotes.add(str(folder / "empty.git"), "empty")
        with pytest.raises(PurgedError, match=HERE):
            memory.remotes.push("empty")
    assert run_git(folder / "empty.git", "for-each-ref") == ""
    purge(one)
    with one.memory() as memory:
        memory.remotes.push("empty")
    assert not holds(folder / "empty.git")


def test_removing_the_list_does_not_welcome_the_text(pair, folder):
    one, other = pair
    run_git(folder, "clone", "-q", "remote.git", "old")
    purge_and_push(one)
    follow(other, refuse(other, HERE))
    pull(other)  # it knows of the purge
    for machine in (one, other):
        machine.git("rm", "-q", "-r", FOLDER)
        machine.git("commit", "-q", "-m", "no lists")
    old = Vault(folder / "old")
    old.git("push", "-q", "--force", "origin", "main")
    for machine in (one, other):
        refuse(machine, THERE)


def test_lists_of_two_machines_are_joined_by_a_merge(pair):
    one, other = pair
    purge_and_push(one)
    purge(other)
    remember(other, KAYAK)
    with other.memory() as memory:
        assert purging.purge(memory, purging.find_text(memory, "blue kayak"))[1].holds
    pull(other)
    share(other, one)
    assert one.notes() == other.notes()
    assert len(list((one.root / FOLDER).iterdir())) > 1


def write_list(vault, *ids, before=b""):
    vault.write(f"{FOLDER}/0000.txt", before + b"".join(each.encode() + b"\n" for each in ids))


def test_a_forged_list_of_what_all_have_does_nothing(pair):
    one, other = pair
    with_all = one.git("rev-list", "--objects", "--all").split()
    write_list(other, *(each for each in with_all if len(each) == 40), before=b"\xff\0<<<<<<< junk\n" + b"0" * 500_000)
    publish(other)
    remember(one, KAYAK)
    share(one, other)
    remember(other, "Jon sold the harbour office in Lisbon")
    share(other, one)
    assert one.head() == other.head()


def test_a_forged_list_of_what_is_to_come_blocks_until_it_is_disowned(pair):
    one, other = pair
    empty = one.run("hash-object", "--stdin").stdout.decode().strip()
    write_list(other, empty)
    publish(other)
    pull(one)
    one.write("empty.md", "")
    one.save()
    refusal = refuse(one, HERE)
    object_id = re.search(r"quaid purge --disown ([0-9a-f]+)$", refusal)[1]
    with one.memory() as memory:
        memory.git.purges.disown(object_id)
    assert push(one).commits == 1


def test_a_huge_list_is_not_read(pair):
    one, other = pair
    write_list(other, *(f"{number:040x}" for number in range(30_000)))
    publish(other)
    pull(one)
    remember(one, KAYAK)
    assert push(one).commits == 1


def test_after_a_killed_purge_nothing_old_is_pushed(pair, monkeypatch):
    one, _ = pair
    remember(one, f"Jon knows {SECRET} too")
    if (child := os.fork()) == 0:
        monkeypatch.setattr(rewriting, "move_refs", lambda *_: os._exit(9))
        try:
            purge(one)
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    with pytest.raises(PurgedError, match=HERE):
        push(one)
    purge_and_push(one)


def test_a_server_takes_no_history_with_what_was_purged(pair, folder, host):
    one, other = pair
    mirror = Mirror(folder / "mirror.git", host.address("remote"), "main", MirrorLimits())
    mirror.fetch()
    purge_and_push(one)
    assert mirror.fetch() == one.head()
    pollute(other, "force")
    for _ in range(2):
        with pytest.raises(PurgedError, match="main has what was purged"):
            mirror.fetch()
    assert mirror.head() == one.head()
    one.git("push", "-q", "--force", "origin", "main")
    remember(one, KAYAK)
    push(one)
    assert mirror.fetch() == one.head()


def test_who_removes_a_forged_list_ends_what_it_stops_on_a_server(pair, folder, host):
    one, _ = pair
    mirror = Mirror(folder / "mirror.git", host.address("remote"), "main", MirrorLimits())
    write_list(one, one.run("hash-object", "--stdin").stdout.decode().strip())
    one.save()
    one.git("push", "-q", "origin", "main")
    mirror.fetch()
    one.write("empty.md", "")
    one.save()
    one.git("push", "-q", "origin", "main")
    with pytest.raises(PurgedError):
        mirror.fetch()
    one.git("rm", "-q", "-r", FOLDER)
    one.git("commit", "-q", "-m", "that list was forged")
    one.git("push", "-q", "origin", "main")
    assert mirror.fetch() == one.head()
