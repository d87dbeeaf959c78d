"""A text that was planted in thirty places of a vault, its history and its state is nowhere after a purge."""

from __future__ import annotations

import base64
import os
import shutil
import zlib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import apsw
import pytest
from vaults import Vault, refused

from quaid.errors import BadInputError
from quaid.history import rewriting
from quaid.history.purged import FOLDER
from quaid.local.model_usage import ModelRecords
from quaid.place import LOCAL_FILE, state_folder
from quaid.purge import purging
from quaid.purge.purging import PurgeRefusedError
from quaid.vault import transaction

SECRET = "hunter2-swordfish-Ölzeug"
KEPT = "Maya rides the green bicycle to work"


@pytest.fixture
def planted(vault: Vault) -> Vault:
    """A vault that holds the secret wherever a vault can hold something."""
    with vault.memory() as memory:
        memory.remember(KEPT)
    vault.write(
        "episodes/2026/11/20-1402-2f1c9a.md", _note("episode", f"## user\n\nThe password is {SECRET}, and more.")
    )
    vault.write("journal/2026-11-20.md", f"# Journal\n\n- Told of {SECRET}\n")
    vault.write("review/question.md", f"---\ntype: review\ntitle: {SECRET} or not\n---\nWhich one? {SECRET}\n")
    vault.write_fact("secret", f"Maya logs in with {SECRET} every day")
    vault.write("Notes/base64.md", base64.b64encode(f"x {SECRET} y".encode()))
    vault.write("Notes/utf16.txt", f"it is {SECRET}".encode("utf-16"))
    vault.write(f"Notes/{SECRET}.md", "Only its name says it.\n")
    vault.write(f"Notes/folder {SECRET}/note.md", "Only its folder's name says it.\n")
    vault.write("Notes/objects/note.md", f"In a folder that is called like one of git's: {SECRET}\n")
    (vault.root / "Notes/link").symlink_to(f"nowhere/{SECRET}")
    vault.save(f"owner: remember {SECRET}")  # a message
    vault.git("tag", "-a", "-m", f"It was {SECRET}", "told")
    vault.git("notes", "add", "-m", f"note {SECRET}")
    vault.git("branch", "other")
    vault.git("update-ref", "refs/quaid/backup/1", "HEAD")
    vault.git("update-ref", "refs/remotes/origin/main", "HEAD")
    vault.git("remote", "add", "origin", "https://maya:token@example.org/maya/vault.git")
    vault.write("Notes/removed.md", f"was {SECRET}\n")
    vault.save("a note that is removed again")
    vault.git("repack", "-a", "-d", "-q")
    (vault.root / "Notes/removed.md").unlink()
    vault.save("removed it")
    vault.git("commit", "-q", "--amend", "--allow-empty", "-m", f"amended: {SECRET}")
    vault.git("commit", "-q", "--amend", "--allow-empty", "-m", "amended again")  # the reflog alone has the one before
    vault.write("USER.md", f"first {SECRET}\n")
    vault.git("stash", "push", "-q", "-m", f"one {SECRET}")
    vault.write("SOUL.md", "second\n")
    vault.git("stash", "push", "-q", "-m", "two")
    vault.git("worktree", "add", "-q", "-b", "elsewhere", str(vault.root.parent / "elsewhere"))
    dangling = vault.write("Notes/dangling.md", f"dangling {SECRET}\n")
    vault.git("add", str(dangling))
    dangling.write_text("now it says nothing of it\n")
    vault.git("add", str(dangling))
    vault.write("AGENTS.md", f"Staged by Maya: {SECRET}\n")
    vault.git("add", "AGENTS.md")
    vault.write("MEMORY.md", f"Only in the working tree: {SECRET}. Keep this sentence.\n")
    for name in ("COMMIT_EDITMSG", "FETCH_HEAD"):
        (vault.root / ".git" / name).write_text(f"{SECRET}\n")
    _plant_state(vault)
    return vault


def _plant_state(vault: Vault) -> None:
    state = state_folder(vault.root)
    with vault.memory() as memory:
        memory.recall(f"what was {SECRET} again")  # recall log, index, words
    ModelRecords(state / LOCAL_FILE).put("key", SECRET, "2026-11-20", "2026-01-01")
    with closing(apsw.Connection(str(state / LOCAL_FILE))) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS planted (a TEXT, b BLOB)")
        connection.execute("INSERT INTO planted VALUES (?, ?)", (f"x {SECRET}", SECRET.encode()))
    for name in (
        "queue/one.json",
        "quarantine/two.json",
        "trail/s.jsonl",
        "log/worker.log",
        "unfinished/x/change.json",
    ):
        vault.write_state(name, f'{{"text": "{SECRET}"}}\n')
    shutil.copy(state / "index.db", state / "index.db.damaged")
    shutil.copy(state / LOCAL_FILE, state / "local.db.daily")
    vault.write_state("as-of/abc.db", f"old {SECRET}")
    vault.write_state("backup/one.bin", f"\0\1{SECRET}\0")


def _note(kind: str, body: str) -> str:
    return f"---\nid: 01{kind}\ntype: {kind}\n---\n{body}\n"


def find_places(vault: Vault) -> Iterator[str]:
    """Where the secret is, looked for with nothing of what purges it."""
    words = SECRET.split("-", 1)[1]
    forms = [words.encode(), words.encode("utf-16-le"), base64.b64encode(f"x {SECRET} y".encode())[4:24]]
    listed = vault.git("cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)")
    for object_id, kind in (line.split() for line in listed.splitlines()):
        if any(form in vault.run("cat-file", kind, object_id).stdout for form in forms):
            yield f"{kind} {object_id}"
    for folder in (vault.root, state_folder(vault.root), vault.root.parent / "elsewhere"):
        for path in folder.rglob("*"):
            if (
                words in path.name
                or (path.is_symlink() and words in str(path.readlink()))
                or (path.is_file() and any(form in _bytes(path) for form in forms))
            ):
                yield str(path)


def _bytes(path: Path) -> bytes:
    data = path.read_bytes()
    try:
        return data + zlib.decompress(data)  # a loose object
    except zlib.error:
        return data


def _purge(vault: Vault) -> purging.Proof:
    with vault.memory() as memory:
        asked = purging.join(purging.find_text(memory, SECRET), purging.find_interrupted(memory))
        return purging.purge(memory, asked)[1]


def test_nothing_holds_a_purged_text_and_nothing_else_is_lost(planted: Vault) -> None:
    held = list(find_places(planted))
    assert len(held) > 30, held
    before = planted.git("log", "--format=%H", "--reverse").splitlines()
    proof = _purge(planted)
    assert proof.holds, proof.places
    assert list(find_places(planted)) == []
    planted.run("fsck", "--strict")
    # What the owner has staged, changed, stashed and committed is there, without the text.
    assert planted.git("show", ":AGENTS.md") == "Staged by Maya: [purged]"
    assert (planted.root / "MEMORY.md").read_text() == "Only in the working tree: [purged]. Keep this sentence.\n"
    assert len(planted.git("stash", "list").splitlines()) == 2
    assert planted.git("show", "stash@{1}:USER.md") == "first [purged]"
    assert "M  AGENTS.md" in planted.status()
    assert " M MEMORY.md" in planted.status()
    assert planted.git("log", "--format=%H", "--reverse").splitlines()[:2] == before[:2]
    assert len(planted.git("log", "--format=%H").splitlines()) == len(before) + 1  # the list of what was purged
    assert planted.git("for-each-ref", "--format=%(refname)", "refs/remotes") == ""
    assert planted.git("show", "told^{commit}:review/question.md").startswith(
        '---\ntype: review\ntitle: "[purged] or not"'
    )
    assert not (planted.root / "facts/secret.md").exists()
    assert "The password is [purged], and more." in (planted.root / "episodes/2026/11/20-1402-2f1c9a.md").read_text()
    planted.git("-C", str(planted.root.parent / "elsewhere"), "diff", "--exit-code", "HEAD")
    with planted.memory() as memory:
        assert memory.recall("green bicycle").hits[0].text == KEPT
    planted.assert_sound()


STEPS: tuple[tuple[ModuleType, str], ...] = (
    (rewriting, "rewrite"),
    (rewriting, "move_refs"),
    (purging, "clean_tree"),
    (rewriting, "move_index"),
    (rewriting, "clean_git_dir"),
    (rewriting, "prune"),
    (purging, "clean_state"),
    (transaction, "apply"),
    (purging, "prune_cache"),
    (purging, "prove"),
)


@pytest.mark.matrix
@pytest.mark.parametrize(("module", "step"), STEPS, ids=[step for _, step in STEPS])
def test_killed_before_any_step_it_is_completed_by_the_next_run(
    vault: Vault, monkeypatch: pytest.MonkeyPatch, module: ModuleType, step: str
) -> None:
    with vault.memory() as memory:
        memory.remember(f"Maya logs in with {SECRET} every day")
        fact = memory.remember(KEPT)
    vault.write("AGENTS.md", f"Staged by Maya: {SECRET}\n")
    vault.git("add", "AGENTS.md")
    vault.git("stash", "push", "-q", "-m", f"one {SECRET}")
    vault.git("worktree", "add", "-q", "-b", "elsewhere", str(vault.root.parent / "elsewhere"))
    if (child := os.fork()) == 0:
        monkeypatch.setattr(module, step, lambda *_, **__: os._exit(9))
        try:
            _purge(vault)
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert (state_folder(vault.root) / purging.MARK_FILE).exists()
    assert SECRET not in (state_folder(vault.root) / purging.MARK_FILE).read_text()
    assert _purge(vault).holds
    assert list(find_places(vault)) == []
    assert (vault.root / fact.path).exists()
    assert list((vault.root / FOLDER).iterdir())
    assert vault.git("show", "stash@{0}:AGENTS.md") == "Staged by Maya: [purged]"
    assert not (state_folder(vault.root) / purging.MARK_FILE).exists()


def test_a_fact_that_was_forgotten_is_purged_by_its_name_and_so_is_what_others_say_of_it(vault: Vault) -> None:
    with vault.memory() as memory:
        told = memory.remember("Maya hides the spare key under the third stone")
        memory.forget(told.id)
        vault.write("journal/2026-11-20.md", "Maya hides the spare key\nunder the third stone, she said.\n")
        asked = purging.find_note(memory, told.id)
        assert purging.purge(memory, asked)[1].holds
    assert (vault.root / "journal/2026-11-20.md").read_text() == "[purged], she said.\n"
    assert "spare" not in vault.git("log", "--all", "--name-only", "-p")


def test_a_long_fact_goes_from_the_subject_that_cuts_it_off_and_what_is_alike_is_named(vault: Vault) -> None:
    with vault.memory() as memory:
        told = memory.remember(f"Maya keeps the spare key {'to the old harbour office ' * 4}under the stone")
        vault.write(
            "journal/2026-11-20.md", f"Maya: keeps the spare key, {'to the old harbour office ' * 4}under the stone"
        )
        proof = purging.purge(memory, purging.find_note(memory, told.id))[1]
    assert proof.holds
    assert proof.similar == {"journal/2026-11-20.md"}
    assert "spare" not in vault.git("log", "--all", "--format=%B%gs", "--reflog")


def test_a_killed_purge_of_a_note_is_completed_without_its_name(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    with vault.memory() as memory:
        told = memory.remember("Maya hides the spare key under the third stone")
    if (child := os.fork()) == 0:
        monkeypatch.setattr(rewriting, "prune", lambda *_: os._exit(9))
        try:
            with vault.memory() as memory:
                purging.purge(memory, purging.find_note(memory, told.id))
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    with vault.memory() as memory:
        asked = purging.find_interrupted(memory)
        assert asked is not None
        assert asked.texts
        assert purging.purge(memory, asked)[1].holds
    assert "spare" not in vault.git("log", "--all", "--name-only", "-p")


def test_a_regular_expression_purges_all_that_it_finds(vault: Vault) -> None:
    vault.write("journal/a.md", "AB-1234 and AB-9876 and AB-x\n")
    vault.save()
    with vault.memory() as memory:
        asked = purging.find_text(memory, r"AB-\d{4}", is_regex=True)
        assert purging.purge(memory, asked)[1].holds
    assert (vault.root / "journal/a.md").read_text() == "[purged] and [purged] and AB-x\n"


def test_a_look_changes_nothing_and_names_the_owners_work_first(planted: Vault) -> None:
    notes, head = planted.notes(), planted.head()
    with planted.memory() as memory:
        plan, _ = purging.look(memory, purging.find_text(memory, SECRET))
    assert plan.notes == ("facts/secret.md",)
    assert plan.uncommitted == ("AGENTS.md", "MEMORY.md")
    assert plan.remotes == (("origin", "https://example.org/maya/vault.git"),)
    assert plan.commits
    assert not plan.obstacles
    assert (planted.notes(), planted.head()) == (notes, head)


def test_it_refuses_where_it_could_not_be_complete(vault: Vault, tmp_path: Path) -> None:
    vault.write_fact("secret", f"Maya logs in with {SECRET}")
    vault.save()

    def refusal() -> str:
        return str(refused(lambda: _purge(vault), PurgeRefusedError))

    vault.git("worktree", "add", "-q", str(tmp_path / "tree"))
    (tmp_path / "tree" / "new.md").write_text("work\n")
    assert "holds work that is not committed" in refusal()
    vault.git("worktree", "remove", "--force", str(tmp_path / "tree"))
    (vault.root / ".git/objects/info/alternates").write_text(f"{tmp_path}\n")
    assert "borrows objects" in refusal()
    (vault.root / ".git/objects/info/alternates").unlink()
    vault.git("branch", f"about-{SECRET}")
    assert SECRET not in refusal()
    vault.git("branch", "-D", f"about-{SECRET}")
    (vault.root / ".git/shallow").write_text(f"{vault.head()}\n")
    assert "shallow" in refusal()
    (vault.root / ".git/shallow").unlink()
    with vault.memory() as memory, transaction.begin(vault.root, memory.git, 1):
        settings = replace(memory.settings, git=replace(memory.settings.git, wait_s=0.1))
        with vault.memory() as other:
            other.settings = settings
            assert "writing" in str(refused(lambda: purging.purge(other, purging.find_text(other, SECRET))))
    assert vault.git("show", "HEAD:facts/secret.md").endswith(SECRET)


def test_signed_commits_lose_their_signatures_only_when_they_may(vault: Vault) -> None:
    vault.write_fact("secret", f"Maya logs in with {SECRET}")
    vault.save()
    raw = vault.run("cat-file", "commit", "HEAD").stdout.replace(
        b"\n\n", b"\ngpgsig -----BEGIN\n abc\n -----END\n\n", 1
    )
    (vault.root.parent / "raw").write_bytes(raw)
    vault.git("update-ref", "HEAD", vault.git("hash-object", "-t", "commit", "-w", str(vault.root.parent / "raw")))
    assert "--drop-signatures" in str(refused(lambda: _purge(vault), PurgeRefusedError))
    with vault.memory() as memory:
        assert purging.purge(memory, purging.find_text(memory, SECRET), may_drop_signatures=True)[1].holds


def test_two_files_that_would_have_one_name_are_refused_and_stay(vault: Vault) -> None:
    for name in ("AB-1234", "AB-9876"):
        vault.write(f"journal/{name}.md", f"Of {name}.\n")
    vault.save()
    notes, head = vault.notes(), vault.head()
    with vault.memory() as memory:
        asked = purging.find_text(memory, r"AB-\d{4}", is_regex=True)
        said = str(refused(lambda: purging.purge(memory, asked), BadInputError))
    assert "purged.md" in said
    assert (vault.notes(), vault.head()) == (notes, head)


def test_files_without_commits_that_would_have_one_name_are_numbered(vault: Vault) -> None:
    for name in ("AB-1234", "AB-9876"):
        vault.write(f"journal/{name}.md", f"Of {name}.\n")
    with vault.memory() as memory:
        asked = purging.find_text(memory, r"AB-\d{4}", is_regex=True)
        assert purging.purge(memory, asked)[1].holds
    assert {path.name for path in (vault.root / "journal").iterdir()} == {"purged.md", "purged-2.md"}
