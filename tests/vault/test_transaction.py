"""A list of edits is applied all or none, as one commit; what a kill leaves behind is finished by the next writer."""

from __future__ import annotations

import base64
import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from memory_history import MemoryHistory

from quaid.errors import DiskFullError, GitError, LockedError, NoteChangedError
from quaid.history.vault_history import History
from quaid.model import Edit, Message
from quaid.place import state_folder
from quaid.settings import GitSettings
from quaid.vault import files, layout, transaction
from quaid.vault.transaction import VaultChange, apply, begin, list_uncommitted, needs_recovery

OLD, NEW = b"---\nid: 1\n---\nold\n", b"---\nid: 1\n---\nnew\n"
CHANGED, ADDED, GONE = Edit("a.md", OLD, NEW), Edit("facts/b.md", None, NEW), Edit("c.md", OLD, None)
ALL = (CHANGED, ADDED, GONE)


def recover(root, history):
    with begin(root, history, 0.5) as finished:
        return finished


class Vault:
    def __init__(self, root):
        self.root = root
        self.history = History(root, GitSettings(wait_s=0.5))

    def git(self, *args):
        return subprocess.run(["git", *args], cwd=self.root, capture_output=True, check=True, text=True).stdout.strip()

    def change(self, *planned, key="call"):
        return VaultChange(
            key, planned or ALL, Message("remember: it", "because", (("Quaid-Fact", "1"),)), answer="told"
        )

    def data(self):
        return {path: files.read_note(self.root, path) for path in ("a.md", "facts/b.md", "c.md")}

    def head(self):
        return {path: self.history.read_at("HEAD", path) for path in ("a.md", "facts/b.md", "c.md")}

    def commits(self):
        return int(self.git("rev-list", "--count", "HEAD"))

    def assert_tidy(self):
        assert not needs_recovery(self.root)
        assert not any(layout.is_temporary_name(path.name) for path in files.walk_files(self.root))
        assert self.git("status", "--porcelain") == ""


class LightVault(Vault):
    """One whose history is in memory."""

    def __init__(self, root):
        self.root = root
        self.history = MemoryHistory(root)

    def git(self, *args):
        assert args == ("status", "--porcelain")
        return "" if self.data() == self.head() else "changed"

    def commits(self):
        return len(self.history.trees)


BEFORE = {"a.md": OLD, "facts/b.md": None, "c.md": OLD}
AFTER = {"a.md": NEW, "facts/b.md": NEW, "c.md": None}


@pytest.fixture
def vault(calm, tmp_path):
    subprocess.run(["git", "init", "-q", "-b", "main", str(tmp_path)], check=True)
    made = Vault(tmp_path)
    state_folder(tmp_path).mkdir(parents=True)
    (tmp_path / "a.md").write_bytes(OLD)
    (tmp_path / "c.md").write_bytes(OLD)
    made.git("add", "-A")
    made.git("-c", "user.name=Maya", "-c", "user.email=m@x.org", "commit", "-qm", "begin")
    return made


@pytest.fixture
def light(calm, tmp_path):
    made = LightVault(tmp_path)
    state_folder(tmp_path).mkdir(parents=True)
    (tmp_path / ".git/config").touch()
    for path in ("a.md", "c.md"):
        (tmp_path / path).write_bytes(OLD)
    made.history.commit([Edit("a.md", None, OLD), Edit("c.md", None, OLD)], Message("begin"))
    return made


def test_all_edits_are_one_commit(vault):
    committed = apply(vault.root, vault.change(), vault.history)
    assert vault.data() == vault.head() == AFTER
    assert vault.commits() == 2
    assert committed.id == vault.git("rev-parse", "HEAD")
    assert vault.git("log", "-1", "--format=%s %(trailers:key=Quaid-Fact,valueonly)") == "remember: it 1"
    vault.assert_tidy()


@pytest.mark.parametrize("path", ["a.md", "facts/b.md", "c.md"])
def test_one_note_that_changed_stops_them_all(light, path):
    (light.root / "facts").mkdir()
    (light.root / path).write_bytes(b"theirs")
    there = light.data()
    with pytest.raises(NoteChangedError):
        apply(light.root, light.change(), light.history)
    assert light.data() == there
    assert light.commits() == 1
    assert not needs_recovery(light.root)


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_a_write_that_fails_takes_the_earlier_ones_back(light, monkeypatch, failing):
    real, calls = files.write_note, []

    def write(root, rel_path, before, after):
        calls.append(rel_path)
        if len(calls) == failing + 1:
            raise DiskFullError(rel_path)
        real(root, rel_path, before, after)

    monkeypatch.setattr(transaction.files, "write_note", write)
    with pytest.raises(DiskFullError):
        apply(light.root, light.change(), light.history)
    assert light.data() == light.head() == BEFORE
    light.assert_tidy()


@pytest.mark.parametrize(
    "error", [GitError("commit", "a hook said no"), LockedError("Another git is at work"), KeyboardInterrupt()]
)
def test_a_commit_that_fails_takes_every_write_back(vault, monkeypatch, error):
    def commit(*_args, **_options):
        raise error

    monkeypatch.setattr(vault.history, "commit", commit)
    with pytest.raises(type(error)):
        apply(vault.root, vault.change(), vault.history)
    monkeypatch.undo()
    assert vault.data() == vault.head() == BEFORE
    assert not (vault.root / "facts").exists()
    vault.assert_tidy()


def test_a_hook_that_refuses_leaves_everything_as_it_was(vault):
    hook = vault.root / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    with pytest.raises(GitError):
        apply(vault.root, vault.change(), vault.history)
    assert vault.data() == vault.head() == BEFORE
    vault.assert_tidy()


def test_what_somebody_saved_meanwhile_is_not_rolled_back(light, monkeypatch):
    def commit(*_args, **_options):
        (light.root / "a.md").write_bytes(b"theirs")
        raise GitError("commit", "no")

    monkeypatch.setattr(light.history, "commit", commit)
    with pytest.raises(GitError):
        apply(light.root, light.change(), light.history)
    assert light.data() == {**BEFORE, "a.md": b"theirs"}


def test_the_owners_uncommitted_work_stays_out(vault):
    (vault.root / "mine.md").write_text("staged")
    vault.git("add", "mine.md")
    (vault.root / "loose.md").write_text("untracked")
    apply(vault.root, vault.change(), vault.history)
    assert vault.git("status", "--porcelain") == "A  mine.md\n?? loose.md"


# --- recovery


class KilledError(BaseException):
    """The process is gone: nothing after it runs, no roll-back either."""


def keep_intention(monkeypatch):
    real = Path.unlink
    monkeypatch.setattr(
        Path, "unlink", lambda self, **options: self.name == transaction.PENDING_FILE or real(self, **options)
    )


def kill_after(vault, monkeypatch, writes, *, committed=False):
    """Leave the vault as a process does that is killed after so many writes, or after the commit."""
    real_write, real_commit, done = files.write_note, vault.history.commit, []

    def write(root, rel_path, before, after):
        if len(done) >= writes:  # nor is anything rolled back
            raise KilledError
        done.append(rel_path)
        real_write(root, rel_path, before, after)

    def commit(*args, **options):
        if committed:
            real_commit(*args, **options)
        done.extend(range(writes))
        raise KilledError

    with monkeypatch.context() as killed, pytest.raises(KilledError):
        killed.setattr(transaction.files, "write_note", write)
        killed.setattr(vault.history, "commit", commit)
        keep_intention(killed)
        apply(vault.root, vault.change(), vault.history)


@pytest.mark.parametrize("writes", [0, 1, 2, 3])
def test_recovery_finishes_what_was_begun(light, monkeypatch, writes):
    kill_after(light, monkeypatch, writes)
    assert needs_recovery(light.root)
    done = recover(light.root, light.history)
    assert (done.key, done.answer) == ("call", "told")
    assert light.data() == light.head() == AFTER
    assert light.commits() == 2
    light.assert_tidy()
    assert recover(light.root, light.history) is None


def test_recovery_after_the_commit_makes_no_other(light, monkeypatch):
    kill_after(light, monkeypatch, 3, committed=True)
    assert recover(light.root, light.history).key == "call"
    assert light.data() == light.head() == AFTER
    assert light.commits() == 2
    light.assert_tidy()


def test_recovery_leaves_what_was_rewritten_since(light, monkeypatch):
    kill_after(light, monkeypatch, 1)
    (light.root / "a.md").write_bytes(b"theirs")
    recover(light.root, light.history)
    assert light.data() == {**AFTER, "a.md": b"theirs"}
    assert light.head() == {**AFTER, "a.md": OLD}
    assert not needs_recovery(light.root)


def test_recovery_tidies_half_written_files(light, monkeypatch):
    kill_after(light, monkeypatch, 2)
    (light.root / layout.temporary_name("a.md")).write_bytes(b"hal")
    (light.root / ".mine.tmp").write_bytes(b"mine")
    recover(light.root, light.history)
    assert [path.name for path in light.root.glob(".*.tmp")] == [".mine.tmp"]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"key": "x"}', "null"])
def test_an_unreadable_intention_is_set_aside(light, content):
    (state_folder(light.root) / transaction.PENDING_FILE).write_text(content)
    assert recover(light.root, light.history) is None
    assert not needs_recovery(light.root)
    apply(light.root, light.change(), light.history)
    assert light.data() == AFTER


def pending(vault):
    return state_folder(vault.root) / transaction.PENDING_FILE


def only_unfinished(vault):
    ((folder, reason),) = transaction.list_unfinished(vault.root)
    return folder, reason


def refuse_commits(vault, words):
    hook = vault.root / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\necho {words} >&2\nexit 1\n")
    hook.chmod(0o755)
    return hook


def test_what_a_hook_refuses_to_finish_is_undone_kept_and_named(vault, monkeypatch):
    kill_after(vault, monkeypatch, 2)
    hook = refuse_commits(vault, "not today")
    assert recover(vault.root, vault.history) is None
    assert vault.data() == vault.head() == BEFORE
    folder, reason = only_unfinished(vault)
    assert "remember: it" in reason
    assert "not today" in reason
    assert (folder / "files/facts/b.md").read_bytes() == NEW
    assert (folder / transaction.PENDING_FILE).exists()
    modes = {path: path.stat().st_mode & 0o777 for path in (folder, *folder.rglob("*"))}
    assert all(mode == (0o700 if path.is_dir() else 0o600) for path, mode in modes.items()), modes
    hook.unlink()
    apply(vault.root, vault.change(), vault.history)
    assert vault.data() == AFTER
    vault.assert_tidy()


def test_a_merge_whose_other_side_was_pruned_is_finished_as_a_commit(vault, monkeypatch):
    kill_after(vault, monkeypatch, 1)
    data = json.loads(pending(vault).read_text())
    pending(vault).write_text(json.dumps({**data, "merged": "0123456789" * 4}))
    assert recover(vault.root, vault.history).key == "call"
    assert vault.data() == vault.head() == AFTER
    assert list(transaction.list_unfinished(vault.root)) == []


@pytest.mark.parametrize(
    ("standing", "error"), [("a file", None), ("nothing", LockedError), ("nothing", DiskFullError)]
)
def test_only_what_will_never_go_through_is_set_aside(vault, monkeypatch, standing, error):
    kill_after(vault, monkeypatch, 0)
    if error is None:
        (vault.root / "facts").write_text("where a folder must be")
        assert recover(vault.root, vault.history) is None
        assert (only_unfinished(vault)[0] / "files/facts/b.md").read_bytes() == NEW
        assert vault.data()["a.md"] == OLD
        return

    def refuse(*_args, **_options):
        raise error("busy")

    monkeypatch.setattr(vault.history, "commit", refuse)
    with pytest.raises(error):
        recover(vault.root, vault.history)
    monkeypatch.undo()
    assert recover(vault.root, vault.history).key == "call"
    assert vault.head() == AFTER


HOSTILE = [
    ".git/config", ".git/hooks/pre-commit", "../outside.md", "/tmp/outside.md", "facts/../../outside.md", ".quaid/x.md",
    "facts/.git/config", "facts//a.md", "./a.md", "", "a\0.md", 7, None, "linked/a.md", "\ud800.md",
]  # fmt: skip


@pytest.mark.parametrize("path", HOSTILE)
def test_a_hostile_intention_writes_nothing_and_is_kept(light, tmp_path_factory, path):
    outside = tmp_path_factory.mktemp("outside")
    (light.root / "linked").symlink_to(outside)
    config = (light.root / ".git/config").read_bytes()
    before = base64.b64encode(config).decode() if path == ".git/config" else None
    data = {"key": "k", "subject": "s", "body": "", "trailers": [], "author": None, "answer": "", "merged": None}
    pending(light).write_text(json.dumps({**data, "edits": [[path, before, base64.b64encode(b"hostile").decode()]]}))
    assert recover(light.root, light.history) is None
    assert (light.root / ".git/config").read_bytes() == config
    assert list(outside.iterdir()) == []
    assert light.commits() == 1
    assert not needs_recovery(light.root)
    assert (only_unfinished(light)[0] / transaction.PENDING_FILE).exists()
    kept = [file for file in only_unfinished(light)[0].rglob("*") if file.is_file()]
    assert all(file.resolve().is_relative_to(state_folder(light.root)) for file in kept)


@pytest.mark.parametrize(("key", "value"), [
    ("merged", "x\ny"), ("author", ["a\0", "b"]), ("subject", None), ("trailers", [["one"]]), ("edits", [["a.md", "!", "!"]]),
])  # fmt: skip
def test_an_intention_with_anything_else_odd_is_kept_and_not_followed(light, key, value):
    data = {"key": "k", "subject": "s", "body": "", "trailers": [], "author": None, "answer": "", "merged": None}
    pending(light).write_text(json.dumps({**data, "edits": [], key: value}))
    assert recover(light.root, light.history) is None
    assert only_unfinished(light)[1]
    assert light.commits() == 1


def test_an_intention_that_is_a_link_is_not_read(light, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "pending.json"
    elsewhere.write_text("{}")
    pending(light).symlink_to(elsewhere)
    assert recover(light.root, light.history) is None
    assert elsewhere.read_text() == "{}"
    assert not needs_recovery(light.root)


def test_a_text_in_a_leftover_that_nobody_else_has_is_kept(light, monkeypatch):
    kill_after(light, monkeypatch, 2)
    (light.root / layout.temporary_name("a.md")).write_bytes(b"what an editor wrote into the old file")
    (light.root / layout.temporary_name("a.md")).write_bytes(OLD)
    assert recover(light.root, light.history).key == "call"
    kept = [file.read_bytes() for file in only_unfinished(light)[0].glob("a.md.*.tmp")]
    assert kept == [b"what an editor wrote into the old file"]
    light.assert_tidy()


def test_recovery_works_in_a_repository_without_a_commit(calm, tmp_path, monkeypatch):
    subprocess.run(["git", "init", "-q", "-b", "main", str(tmp_path)], check=True)
    state_folder(tmp_path).mkdir(parents=True)
    made = Vault(tmp_path)
    kill_after_change = made.change(ADDED)
    with monkeypatch.context() as killed, pytest.raises(KilledError):
        killed.setattr(transaction.files, "write_note", lambda *_: (_ for _ in ()).throw(KilledError))
        keep_intention(killed)
        apply(tmp_path, kill_after_change, made.history)
    assert recover(tmp_path, made.history).key == "call"
    assert made.history.read_at("HEAD", "facts/b.md") == NEW


# --- the lock


def test_only_one_writer_at_a_time(light):
    with (
        begin(light.root, light.history, 0.1),
        pytest.raises(LockedError, match="Another Quaid is writing"),
        begin(light.root, light.history, 0.1),
    ):
        pass
    with begin(light.root, light.history, 0.1):
        pass


def test_the_lock_is_free_again_after_a_failure(light):
    with pytest.raises(GitError), begin(light.root, light.history, 0.1):
        raise GitError("commit", "no")
    with begin(light.root, light.history, 0.1):
        pass


# -- what git refuses to commit --------------------------------------------------------------------------------------


def refuse(vault):
    hook = vault.root / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\necho no thanks >&2\nexit 1\n")
    hook.chmod(0o755)
    return hook


def waiting(vault):
    return [each.change.edits for each in list_uncommitted(vault.root)]


def test_a_change_that_stays_waits_for_the_next_write(vault):
    hook = refuse(vault)
    change = replace(vault.change(), stays=True)
    committed = apply(vault.root, change, vault.history)
    assert (committed.id, committed.left) == (None, ("a.md", "facts/b.md", "c.md"))
    assert "no thanks" in committed.refusal
    assert (vault.data(), vault.head()) == (AFTER, BEFORE)
    assert not needs_recovery(vault.root)
    recover(vault.root, vault.history)
    assert waiting(vault) == [ALL]
    hook.unlink()
    recover(vault.root, vault.history)
    assert vault.head() == AFTER
    assert waiting(vault) == []
    vault.assert_tidy()


def test_since_when_it_waits_is_kept_however_often_git_refuses(vault):
    refuse(vault)
    apply(vault.root, replace(vault.change(), stays=True), vault.history)
    (first,) = list_uncommitted(vault.root)
    for _ in range(3):
        recover(vault.root, vault.history)
    assert list_uncommitted(vault.root) == [first]


def test_a_kill_before_or_after_it_was_kept_loses_nothing(vault):
    hook = refuse(vault)
    change = replace(vault.change(), stays=True)
    for edit in ALL:
        files.write_note(vault.root, edit.rel_path, edit.before, edit.after)
    transaction.write_intent(vault.root, change)
    assert recover(vault.root, vault.history) == change
    assert (waiting(vault), needs_recovery(vault.root)) == ([ALL], False)
    transaction.write_intent(vault.root, change)
    recover(vault.root, vault.history)
    assert waiting(vault) == [ALL]
    hook.unlink()
    transaction.write_intent(vault.root, change)
    recover(vault.root, vault.history)
    assert (vault.data(), vault.head(), waiting(vault), vault.commits()) == (AFTER, AFTER, [], 2)
    vault.assert_tidy()


def test_a_change_rests_on_one_that_waits(vault):
    hook = refuse(vault)
    then = Edit("facts/b.md", NEW, NEW + b"more\n")
    for key, edit in (("first", ADDED), ("second", then)):
        apply(vault.root, replace(vault.change(edit, key=key), stays=True), vault.history)
    recover(vault.root, vault.history)
    assert waiting(vault) == [(ADDED,), (then,)]
    hook.unlink()
    recover(vault.root, vault.history)
    assert (waiting(vault), vault.commits()) == ([], 3)
    assert vault.head()["facts/b.md"] == then.after
    vault.assert_tidy()


def test_a_damaged_record_is_set_aside(vault):
    refuse(vault)
    apply(vault.root, replace(vault.change(), stays=True), vault.history)
    (record,) = list_uncommitted(vault.root)
    record.path.write_text("{}")
    assert list_uncommitted(vault.root) == []
    assert "waited for a commit" in next(iter(transaction.list_unfinished(vault.root)))[1]
