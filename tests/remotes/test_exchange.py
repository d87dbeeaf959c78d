"""Machines that push and pull: nothing of either is lost, and what their owner has not committed stays theirs."""

from __future__ import annotations

import json
import os
import re
import shlex
from datetime import UTC, datetime, timedelta

import pytest
from machines import KAYAK, make_machines, publish, pull, push, remember, run_git, share, trust_remotes
from matrices import for_each
from vaults import assert_verified, trust_vault

from quaid.cli.background import run_exchange
from quaid.errors import BadInputError, GitError, LockedError, QuaidError
from quaid.history.addresses import complete, protocol_of
from quaid.history.remotes import BACKUPS, LEASE, RemoteRefusedError, Remotes, RemoteUnreachableError
from quaid.history.vault_history import History
from quaid.model import Edit, Message
from quaid.place import state_folder
from quaid.remotes import contact, exchange, trusted
from quaid.remotes.exchange import list_states
from quaid.remotes.incoming import IncomingRefusedError
from quaid.remotes.lease import LASTS
from quaid.settings import GitSettings, Settings
from quaid.vault import transaction
from quaid.vault.layout import temporary_name

pytestmark = pytest.mark.usefixtures("calm")
LINES = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"


@pytest.fixture
def folder(tmp_path):
    return tmp_path


@pytest.fixture
def pair(folder):
    return make_machines(folder)


def facts(vault):
    return {path for path in vault.notes() if path.startswith("facts/")}


# -- there and back ------------------------------------------------------------------------------------------------


def test_what_one_machine_learned_the_other_recalls(pair):
    one, other = pair
    remember(one, KAYAK)
    assert push(one).commits == 1
    pulled = pull(other)
    assert (pulled.commits, pulled.merged, pulled.removed, pulled.conflicts) == (1, False, 0, ())
    with other.memory() as memory:
        assert memory.search("kayak").hits[0].text.startswith(KAYAK)
    assert one.head() == other.head()
    assert (other.status(), pull(other).commit, push(other).commits) == ("", None, 0)


def test_both_learn_and_neither_is_forced(pair):
    one, other = pair
    remember(one, KAYAK)
    remember(other, "Jon sold the harbour office in Lisbon")
    push(other)
    before = one.head()
    done = push(one)
    assert [pulled.merged for pulled in done.pulled] == [True]
    assert one.git("rev-parse", done.pulled[0].backup) == before
    pull(other)
    assert one.head() == other.head()
    assert len(facts(one)) == 2
    assert facts(one) == facts(other)
    assert one.status() == other.status() == ""
    one.assert_sound()


def test_a_push_that_others_were_quicker_than_is_done_again(pair, folder, monkeypatch):
    one, bare = pair[0], folder / "remote.git"
    remember(one, KAYAK)
    pushes, real = [], Remotes.push

    def rushed(self, *args):
        pushes.append(args)
        if len(pushes) < 4:
            made = run_git(bare, "commit-tree", "main^{tree}", "-p", "main", "-m", "quicker")
            run_git(bare, "update-ref", "refs/heads/main", made)
        return real(self, *args)

    monkeypatch.setattr(Remotes, "push", rushed)
    monkeypatch.setattr(exchange, "PAUSE_S", 0.001)
    done = push(one)
    assert (len(pushes), len(done.pulled)) == (4, 3)
    monkeypatch.setattr(exchange, "PUSH_ATTEMPTS", 1)
    pushes.clear()
    remember(one, "Jon sold the harbour office in Lisbon")
    with pytest.raises(LockedError, match="Others keep pushing"):
        push(one)


def test_the_first_push_fills_an_empty_repository(vault, tmp_path):
    run_git(tmp_path, "init", "-q", "--bare", "-b", "main", "empty.git")
    with vault.memory() as memory:
        memory.remotes.add(str(tmp_path / "empty.git"))
        assert memory.remotes.pull().commit is None
        assert memory.remotes.push().commits == 1
        assert [(state.ahead, state.behind, state.trust) for state in list_states(memory)] == [(0, 0, "yes")]
        with pytest.raises(BadInputError, match="already"):
            memory.remotes.add(str(tmp_path / "empty.git"))
        memory.remotes.remove("origin")
        with pytest.raises(BadInputError, match="no remote"):
            memory.remotes.push()
    assert vault.git("for-each-ref", "refs/quaid/fetched", "refs/quaid/merged", "refs/remotes") == ""


def test_vaults_that_have_nothing_in_common_are_left_alone(vault, tmp_path):
    run_git(tmp_path, "init", "-q", "-b", "main", "other")
    run_git(tmp_path / "other", "commit", "-q", "--allow-empty", "-m", "another")
    with vault.memory() as memory:
        memory.remotes.add(str(tmp_path / "other"))
        head = vault.head()
        for call in (memory.remotes.pull, memory.remotes.push):
            with pytest.raises(QuaidError, match="no commit in common"):
                call()
    assert (vault.head(), vault.status()) == (head, "")


def test_a_vault_in_a_larger_repository_is_not_sent(tmp_path):
    outer = make_machines(tmp_path)[0].root
    (outer / "inner").mkdir()
    (outer / "inner" / "quaid.toml").write_text("")
    trust_vault(outer / "inner")
    from quaid import Memory

    with Memory.open(outer / "inner") as memory, pytest.raises(BadInputError, match="part of the repository"):
        memory.remotes.push("origin")


# -- what their owner has not committed ----------------------------------------------------------------------------


def test_uncommitted_work_elsewhere_in_a_note_stays_uncommitted(pair):
    one, other = pair
    for machine in pair:
        machine.write("garden.md", LINES)
    publish(one)
    (other.root / "garden.md").unlink()
    pull(other)
    other.write("garden.md", LINES.replace("six", "SIX"))
    other.write("mine.md", "not committed\n")
    publish(one, "garden.md", LINES.replace("two", "TWO"))
    pull(other)
    assert (other.root / "garden.md").read_text() == LINES.replace("two", "TWO").replace("six", "SIX")
    assert other.status() == "M garden.md\n?? mine.md"
    assert other.git("show", "HEAD:garden.md") + "\n" == LINES.replace("two", "TWO")


@pytest.mark.parametrize("theirs", [LINES.replace("two", "TWO"), None], ids=["changed", "removed"])
def test_uncommitted_work_in_the_way_stops_a_pull_that_changes_nothing(pair, theirs):
    one, other = pair
    publish(one, "garden.md", LINES)
    pull(other)
    other.write("garden.md", LINES.replace("two", "zwei"))
    if theirs is None:
        (one.root / "garden.md").unlink()
    else:
        one.write("garden.md", theirs)
    publish(one, "another.md", "also\n")
    head, notes = other.head(), other.notes()
    with pytest.raises(QuaidError, match=r"garden\.md has changes of yours"):
        pull(other)
    assert (other.head(), other.notes(), other.status()) == (head, notes, "M garden.md")
    other.save()  # the next step that it names
    pull(other)
    assert "zwei" in (other.root / "garden.md").read_text()


def test_a_file_that_was_never_committed_is_not_overwritten(pair):
    one, other = pair
    publish(one, "garden.md", LINES)
    other.write("garden.md", "my own\n")
    with pytest.raises(QuaidError, match="not committed here"):
        pull(other)
    assert (other.root / "garden.md").read_text() == "my own\n"


def test_staged_work_in_the_way_stops_a_pull_and_elsewhere_stays_staged(pair):
    one, other = pair
    publish(one, "garden.md", LINES)
    pull(other)
    other.write("elsewhere.md", "staged\n")
    other.git("add", "elsewhere.md")
    remember(one, KAYAK)
    share(one, other)
    assert other.status() == "A  elsewhere.md"
    other.write("garden.md", LINES.replace("two", "zwei"))
    other.git("add", "garden.md")
    publish(one, "garden.md", LINES.replace("six", "SIX"))
    head, notes = other.head(), other.notes()
    with pytest.raises(QuaidError, match=r"You have staged garden\.md"):
        pull(other)
    assert (other.head(), other.notes()) == (head, notes)
    other.git("commit", "-q", "-m", "mine")
    pull(other)
    assert (other.root / "garden.md").read_text() == LINES.replace("two", "zwei").replace("six", "SIX")


def test_a_merge_of_the_owners_in_progress_is_waited_for(pair, monkeypatch):
    one, other = pair
    remember(one, KAYAK)
    push(one)
    monkeypatch.setenv("QUAID_GIT_WAIT_S", "0.1")
    (other.root / ".git" / "MERGE_HEAD").write_text(other.head())
    with pytest.raises(LockedError, match="A merge is in progress"):
        pull(other)
    (other.root / ".git" / "MERGE_HEAD").unlink()
    assert pull(other).commits == 1


def test_a_conversation_that_waits_for_the_next_commit_is_merged(pair):
    one, other = pair
    publish(one, "episodes/talk.md", "ours and theirs\n")
    edit = Edit("episodes/talk.md", None, b"theirs alone\n")
    with transaction.begin(other.root, History(other.root, GitSettings()), 1):
        transaction.apply(
            other.root,
            transaction.VaultChange("talk", (edit,), Message("a talk"), travels=True),
            History(other.root, GitSettings()),
        )
    assert pull(other).merged
    assert other.status() == ""
    text = (other.root / "episodes/talk.md").read_text()
    assert "ours and theirs" in text
    assert "theirs alone" in text


def test_a_remote_is_reached_by_ssh_without_a_question(pair, folder, monkeypatch):
    one, other = pair
    (folder / "ssh").write_text('#!/bin/sh\n(: </dev/tty) 2>/dev/null && exit 9\nshift\neval "exec $1"\n')
    (folder / "ssh").chmod(0o755)
    monkeypatch.setenv("GIT_SSH_COMMAND", str(folder / "ssh"))
    monkeypatch.setenv("GIT_SSH_VARIANT", "simple")
    one.git("remote", "set-url", "origin", f"maya@host:{folder}/remote.git")
    with one.memory() as memory:
        assert memory.remotes.trust("origin").shown == f"maya@host:{folder}/remote.git"
    remember(one, KAYAK)
    assert push(one).commits == 1
    assert pull(other).commits == 1


def test_line_ends_and_modes_are_as_git_would_have_them(pair):
    one, other = pair
    trust_remotes(pair, own=True)
    one.write("run.sh", "#!/bin/sh\n").chmod(0o755)
    publish(one, "odd name\u00e4.md", "x\n")
    pull(other)
    assert other.status() == ""
    assert os.access(other.root / "run.sh", os.X_OK)
    (one.root / "run.sh").chmod(0o644)
    publish(one)
    pull(other)
    assert other.status() == ""
    assert not os.access(other.root / "run.sh", os.X_OK)


# -- what one removed and the other changed ------------------------------------------------------------------------


def test_what_was_forgotten_does_not_come_back_because_it_was_edited_elsewhere(pair):
    one, other = pair
    path = remember(one, KAYAK).path
    share(one, other)
    with one.memory() as memory:
        memory.forget(path)
    push(one)
    other.write(path, (other.root / path).read_text().replace("blue", "light blue"))
    other.save()
    done = push(other)
    assert done.pulled[0].removed == 1
    pull(one)
    assert one.head() == other.head()
    assert facts(one) == facts(other) == set()


def test_a_note_of_the_owners_that_was_removed_here_and_edited_there_stays(pair):
    one, other = pair
    publish(one, "garden.md", LINES)
    pull(other)
    (one.root / "garden.md").unlink()
    publish(one)
    publish(other, "garden.md", LINES.replace("two", "TWO"))
    pull(one)
    assert (one.root / "garden.md").read_text() == LINES.replace("two", "TWO")


def test_a_note_that_both_renamed_is_one(pair):
    one, other = pair
    path = remember(one, KAYAK).path
    share(one, other)
    for machine, name in ((one, "facts/b.md"), (other, "facts/a.md")):
        (machine.root / path).rename(machine.root / name)
        machine.save()
        push(machine)
    pull(one)
    assert facts(one) == facts(other) == {"facts/a.md"}


@pytest.mark.parametrize("is_rewritten", [False, True], ids=["edited", "rewritten"])
@pytest.mark.matrix
@pytest.mark.parametrize("name", ["facts/b.md", None], ids=["both renamed", "one renamed"])
def test_a_note_that_was_renamed_keeps_what_both_have_written_in_it(pair, name, is_rewritten):
    one, other = pair
    path = remember(one, KAYAK).path
    share(one, other)
    more = "".join(f"In week {week} it was seen on another lake.\n" for week in range(40 if is_rewritten else 1))
    for machine, to, text in ((one, "facts/a.md", f"{more}It has a hull.\n"), (other, name, "It has two seats.\n")):
        written = machine.root / path
        machine.write(path, f"{written.read_text().rstrip()}\n\n{text}")
        written.rename(machine.root / (to or path))
        machine.save()
        push(machine)
    pull(one)
    (kept,) = facts(one)
    assert "It has a hull." in one.notes()[kept].decode()
    assert "It has two seats." in one.notes()[kept].decode()
    pull(other)
    assert one.notes() == other.notes()


def test_what_a_killed_write_left_and_its_owner_committed_stops_nobody(pair):
    one, other = pair
    one.write(f"facts/{temporary_name('a.md')}", b"half a fa")
    one.git("add", "--force", "--all")
    publish(one)
    assert pull(other).commits == 1


def test_a_picture_that_both_changed_is_kept_twice(pair):
    one, other = pair
    for machine, data in ((one, b"\0one"), (other, b"\0two")):
        machine.write("map.png", data)
        machine.save()
    push(one)
    share(other, one)
    kept = {path: data for path, data in one.notes().items() if path.startswith("map")}
    assert set(kept.values()) == {b"\0one", b"\0two"}
    assert other.notes() == one.notes()


def test_what_two_machines_state_against_each_other_is_asked_about(pair):
    one, other = pair
    for machine, place in ((one, "Lisbon"), (other, "Berlin")):
        with machine.memory() as memory:
            memory.link("Maya", "lives_in", place)
            memory.remember(f"Maya lives in {place}")
    push(one)
    push(other)
    assert [path for path in other.notes() if path.startswith("review/conflict")]
    pull(one)
    assert one.head() == other.head()


# -- too many removals, another history ----------------------------------------------------------------------------


def test_a_pull_that_removes_many_notes_has_to_be_meant(pair):
    one, other = pair
    for number in range(30):
        one.write(f"notes/{number}.md", f"note {number}\n")
    publish(one)
    pull(other)
    for number in range(20):
        (one.root / f"notes/{number}.md").unlink()
    publish(one)
    notes = other.notes()
    with pytest.raises(IncomingRefusedError, match=r"removes or empties 20 of \d+ notes.*--accept-removals"):
        pull(other)
    assert other.notes() == notes
    assert pull(other, accept_removals=True).removed == 20
    assert other.head() == one.head()


@pytest.mark.parametrize("edited", [0, 3, 30])
def test_many_notes_may_move(pair, edited):
    one, other = pair
    for number in range(30):
        one.write(f"notes/{number}.md", f"note {number}\n")
    publish(one)
    pull(other)
    (one.root / "notes").rename(one.root / "archive")
    for number in range(edited):
        one.write(f"archive/{number}.md", f"{number}: written anew\n")
    publish(one)
    assert pull(other).removed == 0
    with other.memory() as memory:
        assert not [sentence for sentence in memory.recall("note").degraded if "removals" in sentence]
        assert_verified(memory)


def test_a_history_that_was_rewritten_is_not_merged(pair, folder):
    one, other = pair
    remember(one, KAYAK)
    share(one, other)
    bare = folder / "remote.git"
    new = run_git(bare, "commit-tree", "main^{tree}", "-m", "purged")
    run_git(bare, "update-ref", "refs/heads/main", new)
    head = other.head()
    with pytest.raises(QuaidError, match="git rebase --autostash --onto") as refusal:
        pull(other)
    with pytest.raises(QuaidError, match="was rewritten since"):
        push(other)
    assert other.head() == head
    assert run_git(bare, "rev-parse", "main") == new
    other.write("garden.md", LINES)
    follow(other, refusal.value)
    assert pull(other).commit is None
    assert (other.head(), other.status()) == (new, "?? garden.md")


def follow(vault, refusal):
    """Run the command of git at the end of a refusal."""
    done = vault.run(*shlex.split(re.search(r"git ([^:]+?)(?:\.|$)", str(refusal))[1]))
    assert done.returncode == 0


def test_a_rewritten_history_is_noticed_by_the_first_pull_of_a_clone(pair, folder):
    """A clone has what it was cloned from, whatever git fetched since."""
    one, other = pair
    push(one)
    with other.memory() as memory:
        memory.remotes.trust("origin")
    bare = folder / "remote.git"
    run_git(bare, "update-ref", "refs/heads/main", run_git(bare, "commit-tree", "main^{tree}", "-m", "rewritten"))
    with pytest.raises(QuaidError, match="was rewritten since"):
        pull(one)
    other.git("fetch", "-q")
    with pytest.raises(QuaidError, match="was rewritten since"):
        push(other)


def test_what_was_taken_out_of_the_own_history_is_not_merged_back(pair):
    one, _ = pair
    remember(one, KAYAK)
    push(one)
    run_git(one.root, "reset", "-q", "--hard", "HEAD~1")
    head = one.head()
    for call in (pull, push):
        with pytest.raises(QuaidError, match="git merge origin/main"):
            call(one)
    assert one.head() == head
    run_git(one.root, "merge", "-q", "origin/main")
    assert push(one).commits == 0


def test_a_remote_that_was_set_back_is_brought_on_again(pair, folder):
    one, _ = pair
    remember(one, KAYAK)
    push(one)
    run_git(folder / "remote.git", "update-ref", "refs/heads/main", "main^")
    assert pull(one).commit is None
    assert push(one).commits == 1


def test_few_backups_are_kept(pair, monkeypatch):
    one, other = pair
    monkeypatch.setattr("quaid.history.remotes.MAX_BACKUPS", 1)
    for number in range(2):
        run_git(one.root, "commit", "-q", "--allow-empty", "-m", f"one {number}")
        run_git(other.root, "commit", "-q", "--allow-empty", "-m", f"other {number}")
        push(one)
        assert push(other).pulled[0].merged
        pull(one)
    assert len(other.git("for-each-ref", "--format=%(refname)", BACKUPS).splitlines()) == 1


# -- where notes go ------------------------------------------------------------------------------------------------


def test_nothing_goes_to_a_remote_that_was_not_named(pair):
    one, _ = pair
    trusted.forget(one.root, "origin")
    for call in (push, pull):
        with pytest.raises(QuaidError, match="quaid remote trust origin"):
            call(one)
    with one.memory() as memory:
        assert list_states(memory)[0].trust == "no"


@pytest.mark.parametrize(
    "key", ["remote.origin.url", "remote.origin.pushurl", "url./elsewhere/.insteadOf", "url./elsewhere/.pushInsteadOf"]
)
def test_a_remote_that_is_elsewhere_than_it_was_is_asked_for_again(pair, key):
    one, _ = pair
    one.git("config", key, "../" if key.startswith("url.") else "/elsewhere.git")
    for call in (push, pull):
        with pytest.raises(QuaidError, match="confirm it with: quaid remote trust origin"):
            call(one)
    with one.memory() as memory:
        assert list_states(memory)[0].trust == "changed"


@for_each("address", ["ext::sh -c 'touch pwned'", "-oProxyCommand=touch pwned", "git://host/x", "fd::17",
                                     "transport::x", "ftp://host/x", "--upload-pack=touch", "host", "", "a\nb:c"])  # fmt: skip
def test_only_plain_protocols_are_spoken(address):
    with pytest.raises(BadInputError, match="is not an address"):
        protocol_of(complete(address))


@for_each(
    ("address", "protocol"),
    [("https://host/x.git", "https"), ("ssh://maya@host:22/x", "ssh"), ("maya@host:x.git", "ssh"), ("host:x", "ssh"),
     ("/srv/x.git", "file"), ("./x.git", "file"), ("~/x", "file"), ("http://host/x", "http"),
     ("file:///srv/x", "file")],
)  # fmt: skip
def test_the_protocol_of_an_address(address, protocol):
    assert protocol_of(complete(address)) == protocol


def test_an_address_in_git_config_is_no_less_looked_at(pair):
    one, _ = pair
    one.git("config", "protocol.ext.allow", "always")
    one.git("remote", "set-url", "origin", "ext::sh -c 'touch pwned'")
    for call in (push, pull):
        with pytest.raises(BadInputError, match="is not an address"):
            call(one)
    assert not (one.root / "pwned").exists()


def test_a_password_is_never_shown(vault):
    with vault.memory() as memory:
        remote = memory.remotes.add("https://maya:s3cret@127.0.0.1:9/memory.git")
        assert "s3cret" not in remote.shown
        with pytest.raises(RemoteUnreachableError) as caught:
            memory.remotes.push()
    assert "s3cret" not in str(caught.value)
    from quaid.config import user_config_path

    assert "s3cret" not in user_config_path().read_text()


def test_the_setting_offline_keeps_everything_here(vault, monkeypatch):
    monkeypatch.setenv("QUAID_OFFLINE", "true")
    with vault.memory() as memory:
        memory.remotes.add("https://127.0.0.1:9/memory.git")
        with pytest.raises(RemoteUnreachableError, match="offline is on"):
            memory.remotes.push()


def test_a_vault_cannot_have_itself_sent(vault):
    vault.write("quaid.toml", '[git]\nsync = "auto"\nname = "Q"\n')
    with vault.open() as memory:
        assert (memory.settings.git.sync, memory.settings.git.name) == ("off", "Q")
        assert any("git.sync" in remark for remark in memory.remarks)


# -- a remote that does not answer ---------------------------------------------------------------------------------


def test_offline_is_remembered_since_when(pair, folder, monkeypatch):
    one, _ = pair
    (folder / "remote.git").rename(folder / "away")
    monkeypatch.setenv("QUAID_GIT_SYNC", "auto")
    monkeypatch.setattr(contact, "start_detached", lambda *_: pytest.fail("an offline remote is asked at once"))
    with pytest.raises(RemoteUnreachableError, match="could not be reached"):
        push(one)
    with one.memory() as memory:
        memory.remember(KAYAK)
        memory.remotes.exchange()
        since = list_states(memory)[0].offline_since
        memory.remotes.exchange()
        state = list_states(memory)[0]
    assert since
    assert (state.offline_since, state.ahead, state.problem) == (since, 1, "")
    (folder / "away").rename(folder / "remote.git")
    with one.memory() as memory:
        memory.remotes.exchange()
        state = list_states(memory)[0]
    assert (state.offline_since, state.ahead, state.behind) == ("", 0, 0)


def test_a_remote_that_hangs_is_given_up(pair, folder, monkeypatch, tmp_path):
    one, _ = pair
    monkeypatch.setenv("QUAID_GIT_TIMEOUT_S", "0.3")
    (folder / "remote.git" / "HEAD").unlink()
    os.mkfifo(folder / "remote.git" / "HEAD")
    with pytest.raises(RemoteUnreachableError):
        pull(one)


def test_a_push_that_the_other_side_forbids_says_so(pair, folder):
    one, _ = pair
    run_git(folder / "remote.git", "config", "receive.denyUpdates", "true")
    run_git(folder / "remote.git", "config", "transfer.hideRefs", "refs/heads/main")
    remember(one, KAYAK)
    with pytest.raises(RemoteRefusedError, match="deny updating a hidden ref"):
        push(one)


def test_the_owners_hook_sees_what_is_pushed(pair):
    one, _ = pair
    hooks = one.root / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    (hooks / "pre-push").write_text("#!/bin/sh\necho no secrets >&2; exit 1\n")
    (hooks / "pre-push").chmod(0o755)
    remember(one, KAYAK)
    with pytest.raises(GitError, match="failed to push"):
        push(one)


# -- by itself -----------------------------------------------------------------------------------------------------


def test_an_exchange_is_due_after_a_write_and_after_a_while(pair, monkeypatch):
    one, _ = pair
    monkeypatch.setenv("QUAID_GIT_SYNC", "auto")
    monkeypatch.setattr(contact, "start_detached", lambda *_: None)
    with one.memory() as memory:
        memory.remotes.exchange()
        settings = memory.settings
        now = datetime.fromisoformat(list_states(memory)[0].reached)
        later, much_later = now + timedelta(seconds=30), now + timedelta(minutes=11)
        assert [contact.is_due(one.root, settings, at) for at in (now, later, much_later)] == [False, False, True]
        memory.remember(KAYAK)
        assert [contact.is_due(one.root, settings, at) for at in (now, later)] == [False, True]
        assert not contact.is_due(one.root, Settings(), later)  # off
    assert contact.schedule_exchange(one.root, Settings()) is False


@pytest.mark.slow
def test_the_background_program_pulls_and_pushes(pair, monkeypatch):
    one, other = pair
    remember(one, KAYAK)
    push(one)
    remember(other, "Jon sold the harbour office in Lisbon")
    monkeypatch.setenv("QUAID_GIT_SYNC", "auto")
    monkeypatch.setattr(contact, "PAUSE", timedelta())
    monkeypatch.setattr(contact, "start_detached", lambda *_: pytest.fail("there is nothing left to do"))
    run_exchange(other.root)
    monkeypatch.setenv("QUAID_GIT_SYNC", "off")
    pull(one)
    assert one.head() == other.head()
    assert len(facts(one)) == 2


def test_a_command_leaves_an_exchange_behind_when_one_is_due(pair, monkeypatch):
    one, _ = pair
    started = []
    monkeypatch.setattr(contact, "start_detached", lambda *given: started.append(given[:2]))
    remember(one, KAYAK)
    assert started == []
    monkeypatch.setenv("QUAID_GIT_SYNC", "auto")
    remember(one, "Jon sold the harbour office in Lisbon")
    assert started == [("quaid.cli.background", [str(one.root), "exchange"])]


def test_ask_only_looks(pair, monkeypatch):
    one, other = pair
    remember(one, KAYAK)
    push(one)
    remember(other, "Jon sold the harbour office in Lisbon")
    head = other.head()
    monkeypatch.setenv("QUAID_GIT_SYNC", "ask")
    with other.memory() as memory:
        memory.remotes.exchange()
        state = list_states(memory)[0]
    assert (state.ahead, state.behind, other.head()) == (1, 1, head)


# -- who tidies ----------------------------------------------------------------------------------------------------


def hold(vault, now, **how):
    with vault.memory() as memory:
        memory.remotes.hold_lease(now, **how)


def test_one_machine_tidies_until_its_lease_is_over(pair, monkeypatch):
    one, other = pair
    monkeypatch.setenv("QUAID_GIT_SYNC", "auto")
    monkeypatch.setattr(contact, "start_detached", lambda *_: None)
    now = datetime.now(UTC)
    hold(one, now)
    hold(one, now + timedelta(hours=1))
    with pytest.raises(QuaidError, match=r"runs on .* until .*--take-over"):
        hold(other, now + timedelta(hours=2))
    with other.memory() as memory, pytest.raises(QuaidError, match="--take-over"):
        from quaid.janitor.runner import RunOptions

        memory.janitor.run(RunOptions())
    hold(other, now + timedelta(hours=2), take_over=True)
    with pytest.raises(QuaidError, match="--take-over"):
        hold(one, now + timedelta(hours=3))
    hold(one, now + timedelta(hours=4) + LASTS)
    with one.memory() as memory:
        assert list_states(memory)[0].trust == "yes"


def test_an_offline_machine_goes_by_what_it_knows(pair, folder, monkeypatch):
    one, other = pair
    monkeypatch.setenv("QUAID_GIT_SYNC", "auto")
    monkeypatch.setattr(contact, "start_detached", lambda *_: None)
    now = datetime.now(UTC)
    hold(one, now)
    with pytest.raises(QuaidError, match="--take-over"):
        hold(other, now)
    (folder / "remote.git").rename(folder / "away")
    with pytest.raises(QuaidError, match="--take-over"):
        hold(other, now + timedelta(hours=1))
    hold(one, now + timedelta(hours=1))
    hold(other, now + LASTS + timedelta(hours=2))
    (folder / "away").rename(folder / "remote.git")
    push(other)
    with pytest.raises(QuaidError, match="--take-over"):
        hold(one, now + LASTS + timedelta(hours=3))


@pytest.mark.parametrize("said", [b"", b"{", b"[]", b'{"holder": 1}', b"x" * 5000, b'{"holder": "x", "name": "\x1b[2J", "until": "2999-01-01T00:00:00+00:00"}'])  # fmt: skip
def test_a_lease_that_nobody_gave_counts_for_nothing(pair, folder, said, monkeypatch):
    one, _ = pair
    monkeypatch.setenv("QUAID_GIT_SYNC", "auto")
    monkeypatch.setattr(contact, "start_detached", lambda *_: None)
    bare = folder / "remote.git"
    made = run_git(bare, "commit-tree", "main^{tree}", stdin=said)
    run_git(bare, "update-ref", LEASE, made)
    hold(one, datetime.now(UTC))
    with one.memory() as memory:
        memory.remotes.pull()
        state = list_states(memory)[0]
    assert "\x1b" not in state.janitor
    assert state.janitor == os.uname().nodename


def test_a_vault_without_a_remote_needs_no_lease(vault):
    hold(vault, datetime.now(UTC))
    assert vault.git("for-each-ref", "refs/quaid") == ""


def test_what_is_remembered_of_a_remote_may_be_lost_or_damaged(pair):
    one, _ = pair
    push(one)
    for text in ("", "[", "[]", '{"remotes": 3}', '{"remotes": {"origin": []}}'):
        (state_folder(one.root) / "remotes.json").write_text(text)
        with one.memory() as memory:
            assert list_states(memory)[0].offline_since == ""
            memory.remotes.pull()
    assert json.loads((state_folder(one.root) / "remotes.json").read_text())["remotes"]["origin"]["reached"]


def test_a_folder_in_the_place_of_a_file_is_pulled(pair):
    one, other = pair
    for path, gone in (("box.md", ""), ("box.md/inner.md", "box.md")):
        if gone:
            one.git("rm", "-q", gone)
        one.write(path, f"instead of {gone}\n")
        one.save()
        share(one, other)
        assert (other.head(), other.notes(), other.status()) == (one.head(), one.notes(), "")
