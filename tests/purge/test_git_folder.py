"""Nothing below `.git` keeps a purged text, whatever wrote it there; what the proof cannot read, it does not vouch for."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import signal
import subprocess
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType

import pytest
from vaults import Vault, refused

from quaid.errors import GitError, LockedError
from quaid.history import rewriting
from quaid.purge import holders, purging
from quaid.purge.purging import PurgeRefusedError

SECRET = "hunter2-swordfish-Ölzeug"
FORMS = (SECRET.encode(), SECRET.encode("utf-16-le"), b"swordfish-\xc3\x96l")
"""The last one is what a delta adds to a base that has the beginning."""
BASE = "".join(f"line {number}: {os.urandom(12).hex()}\n" for number in range(200)) + "It was hunter2-\n"
TEXTS = (
    *("COMMIT_EDITMSG", ".COMMIT_EDITMSG.swp", "COMMIT_EDITMSG~", "MERGE_MSG", "SQUASH_MSG", "TAG_EDITMSG"),
    *("NOTES_EDITMSG", "FETCH_HEAD", "description", "gitk.cache", "packed-refs.new", "ADD_EDIT.patch", "stray"),
    *("info/exclude", "info/refs", "info/stray.txt", "hooks/post-x.sample", "branches/old", "remotes/old", "svn/.meta"),
    *("logs/refs/heads/gone", "logs/stray", "lost-found/other/1234", "rr-cache/12/preimage", "rr-cache/12/thisimage"),
    *("worktrees/elsewhere/COMMIT_EDITMSG", "worktrees/elsewhere/logs/HEAD", "worktrees/elsewhere/stray"),
    *("objects/12/stray", "objects/pack/stray.txt", "objects/info/commit-graphs/stray", "objects/info/packs"),
)
"""Files below .git into which git, an editor or a person may have written the text as it is."""
LOOSE = (
    *("objects/12/34", "objects/12/tmp_obj_abcdef", "objects/tmp_objdir-incoming-abc/12/" + "3" * 38),
    *("objects/incoming-abc/12/" + "4" * 38, "objects/tmp_objdir-bulk-fsync-abc/12/" + "5" * 38),
)
PACKS = (
    *("objects/pack/.tmp-12-pack-34.pack", "objects/pack/tmp_pack_abcdef", "objects/pack/stray.pack"),
    *("objects/incoming-abc/pack/tmp_pack_abcdef", "objects/tmp_objdir-incoming-abc/pack/pack-12.pack"),
    *("objects/tmp_pack_abcdef", "objects/pack/pack-34.pack (conflicted copy)"),
)
Planter = Callable[[Vault], Path]


def find_residue(root: Path) -> Iterator[str]:
    """Where the text is below `root`: each file as it is, each zlib stream in it, and all that git can read."""
    for folder, _, names in os.walk(root):
        for path in (Path(folder, name) for name in names):
            data = path.read_bytes() if path.is_file() else b""
            found = [path.name.encode(), data]
            for start in re.finditer(rb"\x78[\x01\x5e\x9c\xda]", data):
                with suppress(zlib.error):
                    stream, view = zlib.decompressobj(), memoryview(data)[start.start() :]
                    found.append(b"")
                    while view and not stream.eof:
                        found[-1] += stream.decompress(view[:9000])
                        view = view[9000:]
            if any(form in each for form in FORMS for each in found):
                yield str(path)
    vault = Vault(root)
    listed = vault.git("cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)")
    for name, kind in (line.split() for line in listed.splitlines()):
        if any(form in vault.run("cat-file", kind, name).stdout for form in FORMS):
            yield f"{kind} {name}"


def make_pack(vault: Vault, target: Path) -> Path:
    """Write a pack in which the text is a delta to a file that has its beginning, and its index."""
    ids = [
        vault.git("hash-object", "-w", str(vault.write(f".git/draft{number}", text)))
        for number, text in enumerate((BASE + "more\n" * 20, BASE.replace("hunter2-", SECRET)))
    ]
    for draft in (vault.root / ".git").glob("draft*"):
        draft.unlink()
    (vault.root / ".git/ids").write_text("".join(f"{each}\n" for each in ids))
    prefix = vault.root / ".git/made"
    name = vault.git("-c", f"alias.made=!git pack-objects -q '{prefix}' < .git/ids", "made")
    (vault.root / ".git/ids").unlink()
    assert "chain length = 1" in vault.git("verify-pack", "-v", f"{prefix}-{name}.idx")
    target.parent.mkdir(parents=True, exist_ok=True)
    for each in (prefix.with_name(f"made-{name}{ending}") for ending in (".pack", ".idx", ".rev")):
        if each.exists():
            each.replace(target.with_suffix(each.suffix) if each.suffix != ".pack" else target)
    return target


@pytest.fixture
def vault_of_maya(vault: Vault) -> Vault:
    """A vault whose history holds the text, with a second worktree."""
    with vault.memory() as memory:
        memory.remember("Maya rides the green bicycle to work")
        memory.remember(f"Maya logs in with {SECRET} every day")
    vault.git("worktree", "add", "-q", "-b", "elsewhere", str(vault.root.parent / "elsewhere"))
    return vault


def purge(vault: Vault) -> purging.Proof:
    with vault.memory() as memory:
        asked = purging.join(purging.find_text(memory, SECRET), purging.find_interrupted(memory))
        return purging.purge(memory, asked)[1]


@pytest.mark.slow
def test_what_git_editors_and_killed_processes_left_below_git_is_gone(vault_of_maya: Vault) -> None:
    git = vault_of_maya.root / ".git"
    vault_of_maya.git("config", "core.untrackedCache", "true")
    vault_of_maya.write(f"Notes/untracked {SECRET}.md", "x\n")
    vault_of_maya.git("update-index", "--split-index")
    vault_of_maya.write(f"Notes/{SECRET}.md", "staged, and known to the shared index\n")
    vault_of_maya.git("add", "-A")
    vault_of_maya.git("update-index", "--split-index", "--index-version", "4")
    vault_of_maya.status()
    for name in TEXTS:
        path = vault_of_maya.write(f".git/{name}", f"of old: {SECRET}\n")
    (git / "objects/pack/named").write_bytes(SECRET.encode("utf-16-le"))
    for name in LOOSE:
        vault_of_maya.write(f".git/{name}", zlib.compress(f"blob 9\0{SECRET}".encode()))
    pack = make_pack(vault_of_maya, git / "objects/pack/pack-12.pack")  # git reads it, by an unusual name
    for name in PACKS:
        vault_of_maya.write(f".git/{name}", pack.read_bytes())
    vault_of_maya.write(".git/objects/pack/tmp_pack_cut", pack.read_bytes()[:-100])
    shutil.copy(git / "index", git / "next-index-123.lock")
    shutil.copy(git / "index", git / "index.stash.123")
    held = list(find_residue(vault_of_maya.root))
    assert len(held) > len(TEXTS) + len(LOOSE) + len(PACKS), held
    assert path.exists()
    proof = purge(vault_of_maya)
    assert proof.holds, proof.places
    assert list(find_residue(vault_of_maya.root)) == []
    assert {path.suffix for path in (git / "objects").rglob("*") if path.is_file()} <= {".pack", ".idx", ".rev", ""}
    assert "Notes/untracked purged.md" in vault_of_maya.git("ls-files")
    vault_of_maya.assert_sound()


def _write_loose(vault: Vault) -> Path:
    return vault.write(".git/backup/12/34", zlib.compress(f"blob 9\0{SECRET}".encode()))


def _write_cut_loose(vault: Vault) -> Path:
    return vault.write(".git/backup/12/34", zlib.compress(f"blob 9\0{os.urandom(99).hex()}".encode())[:40])


def _write_gzip(vault: Vault) -> Path:
    return vault.write(".git/old.log.gz", gzip.compress(b"x") + gzip.compress(SECRET.encode()))


def _write_tar(vault: Vault) -> Path:
    name = vault.git("hash-object", "-w", str(vault.write(".git/x", f"of old: {SECRET}\n")))
    (vault.root / ".git/x").unlink()
    vault.git("-c", f"alias.tar=!tar cf .git/backup.tar .git/objects/{name[:2]}", "tar")
    return vault.root / ".git/backup.tar"


def _write_zip(vault: Vault) -> Path:
    with zipfile.ZipFile(vault.root / ".git/backup.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("note.md", f"{SECRET} " * 9)
    return vault.root / ".git/backup.zip"


def _write_zstandard(vault: Vault) -> Path:
    return vault.write(".git/backup.zst", b"\x28\xb5\x2f\xfd" + os.urandom(40))


def _write_pack_elsewhere(vault: Vault) -> Path:
    path = make_pack(vault, vault.root / ".git/backup/one.pack")
    path.with_suffix(".idx").unlink()
    return path


def _write_pack_in_worktree(vault: Vault) -> Path:
    (vault.root / "Notes").mkdir()
    return _write_pack_elsewhere(vault).replace(vault.root / "Notes/one.pack")


def _write_object_folder(vault: Vault) -> Path:
    make_pack(vault, vault.root / ".git/backup/pack/one.pack")
    return vault.root / ".git/backup"


def _write_damaged_object_folder(vault: Vault) -> Path:
    path = make_pack(vault, vault.root / ".git/backup/pack/one.pack")
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:-900])
    return vault.root / ".git/backup"


def _write_bundle(vault: Vault) -> Path:
    vault.git("bundle", "create", "-q", ".git/all.bundle", "--all")
    return vault.root / ".git/all.bundle"


def _write_bundle_in_worktree(vault: Vault) -> Path:
    (vault.root / "Notes").mkdir()
    vault.git("bundle", "create", "-q", "Notes/all.bundle", "--all")
    return vault.root / "Notes/all.bundle"


def _write_index(vault: Vault) -> Path:
    vault.write(f"Notes/{SECRET[:9]}.md", "staged\n")
    vault.write(f"Notes/{SECRET}.md", "staged\n")
    vault.git("add", "-A")
    vault.git("update-index", "--index-version", "4")
    return Path(shutil.copy(vault.root / ".git/index", vault.root / ".git/index.backup"))


def _write_nested(vault: Vault) -> Path:
    vault.git("clone", "-q", "--no-local", str(vault.root), "Notes/clone")
    return vault.root / "Notes/clone/.git/objects"


def _write_nested_loose(vault: Vault) -> Path:
    nested = Vault(vault.root / "Notes/clone")
    nested.root.mkdir(parents=True)
    nested.git("init", "-q")
    nested.write("x.md", f"{SECRET}\n")
    nested.save()
    name = nested.git("rev-parse", "HEAD:x.md")
    return nested.root / ".git/objects" / name[:2] / name[2:]


def _write_nested_borrower(vault: Vault) -> Path:
    """A clone without objects of its own: they are in a folder outside the vault."""
    away = vault.root.parent / "away"
    vault.git("clone", "-q", "--no-local", "--bare", str(vault.root), str(away))
    vault.git("clone", "-q", "--shared", str(away), "Notes/clone")
    make_pack(Vault(vault.root / "Notes/clone"), vault.root / "Notes/clone/.git/objects/pack/pack-1.pack")
    return vault.root / "Notes/clone/.git/objects"


def _write_nested_bare(vault: Vault) -> Path:
    vault.git("clone", "-q", "--no-local", "--bare", str(vault.root), "Notes/clone.git")
    return vault.root / "Notes/clone.git/objects"


def _name_empty_folder(vault: Vault) -> Path:
    (vault.root / ".git/refs/heads" / SECRET).mkdir()
    return vault.root / ".git/refs/heads"


def _link_file(vault: Vault) -> Path:
    (vault.root.parent / "linked").write_text(f"{SECRET}\n")
    (vault.root / ".git/info/link").symlink_to(vault.root.parent / "linked")
    return vault.root / ".git/info/link"


def _link_to_nothing(vault: Vault) -> Path:
    (vault.root / ".git/info/link").symlink_to(f"nowhere/{SECRET}")
    return vault.root / ".git/info/link"


def _write_in_other_worktree(vault: Vault) -> Path:
    vault.write("../elsewhere/.gitignore", "*.pack\n")
    vault.git("-C", "../elsewhere", "add", ".gitignore")
    vault.git("-C", "../elsewhere", "commit", "-qm", "packs are not tracked")
    return _write_pack_elsewhere(vault).replace(vault.root.parent / "elsewhere/one.pack")


NAMED: tuple[Planter, ...] = (
    *(_write_loose, _write_cut_loose, _write_gzip, _write_tar, _write_zip, _write_zstandard, _write_pack_elsewhere),
    *(_write_pack_in_worktree, _write_object_folder, _write_bundle, _write_bundle_in_worktree, _write_index),
    *(_write_nested, _write_nested_loose, _write_nested_borrower, _write_nested_bare, _name_empty_folder, _link_file),
    _write_in_other_worktree,
    _write_damaged_object_folder,
    _link_to_nothing,
)


@pytest.mark.matrix
@pytest.mark.parametrize("plant", NAMED, ids=[each.__name__.removeprefix("_") for each in NAMED])
def test_what_is_not_quaids_to_change_is_named_and_stays(vault_of_maya: Vault, plant: Planter) -> None:
    path = plant(vault_of_maya)
    proof = purge(vault_of_maya)
    assert any(str(path) in place for place in proof.places), (path, proof.places)
    assert os.path.lexists(path)
    vault_of_maya.run("fsck", "--strict", "--no-dangling")
    if path.is_dir():
        shutil.rmtree(path.parent if path.name == "objects" else path)
    else:
        path.unlink()
    for nested in ("clone", "clone.git"):  # as the sentence says: what is named is taken away
        shutil.rmtree(vault_of_maya.root / "Notes" / nested, ignore_errors=True)
    for rest in (vault_of_maya.root / ".git/backup").glob("*.pack"):
        rest.unlink()
    assert (again := purge(vault_of_maya)).holds, again.places
    assert list(find_residue(vault_of_maya.root)) == []


STEPS = (
    *((rewriting, name) for name in ("move_refs", "move_index", "clean_git_dir", "prune")),
    *((purging, name) for name in ("clean_tree", "clean_state")),
)


@pytest.mark.matrix
@pytest.mark.parametrize(("module", "step"), STEPS, ids=[step for _, step in STEPS])
def test_the_proof_relies_on_no_step_of_the_cleaning(
    vault_of_maya: Vault, monkeypatch: pytest.MonkeyPatch, module: ModuleType, step: str
) -> None:
    _write_index(vault_of_maya).unlink()  # only the names of the index have the text there, shortened
    vault_of_maya.write_state("log/worker.log", SECRET)
    vault_of_maya.write(".git/info/stray", SECRET)
    with monkeypatch.context() as patch:
        patch.setattr(module, step, lambda *_: None)
        places = purge(vault_of_maya).places
    assert places
    if step == "move_index":
        assert str(vault_of_maya.root / ".git/index") in places
    assert purge(vault_of_maya).holds


def _cut_object(vault: Vault) -> Path:
    name = vault.git("hash-object", "-w", str(vault.write(".git/x", os.urandom(200))))
    (vault.root / ".git/x").unlink()
    path = vault.root / ".git/objects" / name[:2] / name[2:]
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:60])
    return path


def _empty_object(vault: Vault) -> Path:
    path = _cut_object(vault)
    path.write_bytes(b"")
    return path


def _break_pack(vault: Vault) -> Path:
    path = make_pack(vault, vault.root / ".git/objects/pack/pack-1.pack")
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:-900] + os.urandom(900))
    return path


def _empty_object_of_many(vault: Vault) -> Path:
    """git reads on after it, and has more to say than a pipe holds."""
    for number in range(4):
        vault.write(f"scan{number}.md", os.urandom(100_000))
    vault.save()
    return _empty_object(vault)


def _cut_pack_of_many(vault: Vault) -> Path:
    """git has every object elsewhere too, and says of each that the pack is damaged: more than a pipe holds."""
    names = [str(vault.write(f".git/many/{number}", f"object {number}\n")) for number in range(1200)]
    (vault.root / ".git/ids").write_text(vault.git("hash-object", "-w", *names) + "\n")
    prefix = vault.root / ".git/objects/pack/pack"
    name = vault.git("-c", f"alias.made=!git pack-objects -q '{prefix}' < .git/ids", "made")
    shutil.rmtree(vault.root / ".git/many")
    (vault.root / ".git/ids").unlink()
    path = prefix.with_name(f"pack-{name}.pack")
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:-900])
    return path


@pytest.mark.matrix
@pytest.mark.parametrize("damage", [_cut_object, _empty_object, _break_pack, _empty_object_of_many, _cut_pack_of_many])
def test_a_damaged_object_is_named_before_anything_changes_and_gone_it_is_no_obstacle(
    vault_of_maya: Vault, damage: Planter
) -> None:
    path, head = damage(vault_of_maya), vault_of_maya.head()
    said = str(refused(lambda: purge(vault_of_maya), GitError))
    assert str(vault_of_maya.root / ".git/objects") in said
    assert "git fsck" in said
    assert vault_of_maya.head() == head
    path.unlink()
    assert purge(vault_of_maya).holds


def _lock_file(vault: Vault) -> Path:
    return vault.write(".git/info/locked", SECRET)


def _lock_git_folder(vault: Vault) -> Path:
    return vault.write(".git/rr-cache/12/preimage", SECRET).parent


def _lock_object_folder(vault: Vault) -> Path:
    return vault.write(".git/objects/tmp_objdir-incoming-abc/12/34", SECRET).parent


def _lock_folder(vault: Vault) -> Path:
    vault.write(".gitignore", "/hidden/\n")
    return vault.write("hidden/note.md", SECRET).parent


def _lock_state(vault: Vault) -> Path:
    return vault.write_state("log/old/worker.log", SECRET).parent


@pytest.mark.skipif(os.geteuid() == 0 and not shutil.which("setpriv"), reason="root may read anything")
@pytest.mark.matrix
@pytest.mark.parametrize("lock", [_lock_file, _lock_git_folder, _lock_object_folder, _lock_folder, _lock_state])
def test_what_may_not_be_read_is_named_and_nothing_counts_as_proved(vault_of_maya: Vault, lock: Planter) -> None:
    path = lock(vault_of_maya)
    path.chmod(0)
    command = ["quaid", "--vault", str(vault_of_maya.root), "purge", "--text", SECRET, "--yes"]
    if os.geteuid() == 0:  # root may read anything, unless it gives that up
        command = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", *command]
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, check=False, text=True)
        assert (done.returncode, str(path) in done.stderr) == (1, True), done
        assert "Proved" not in done.stdout
    path.chmod(0o700)
    assert (proof := purge(vault_of_maya)).holds, proof.places
    assert list(find_residue(vault_of_maya.root)) == []


def test_a_git_at_work_is_named_and_where_none_can_be_seen_its_drafts_are(
    vault_of_maya: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = vault_of_maya.head()
    with subprocess.Popen(["git", "cat-file", "--batch"], cwd=vault_of_maya.root, stdin=subprocess.PIPE) as reader:
        said = str(refused(lambda: purge(vault_of_maya), LockedError))
        assert f"Process {reader.pid} (git) is at work" in said
        assert reader.stdin is not None
        reader.stdin.close()
    monkeypatch.setattr(holders, "_PROCESSES", vault_of_maya.root / "no such folder")
    draft = vault_of_maya.write(".git/objects/incoming-abc/pack/tmp_pack_12", SECRET)
    assert str(draft) in str(refused(lambda: purge(vault_of_maya), LockedError))
    assert vault_of_maya.head() == head
    draft.unlink()
    assert purge(vault_of_maya).holds


def test_folders_that_are_elsewhere_are_refused(vault_of_maya: Vault) -> None:
    git, away = vault_of_maya.root / ".git", vault_of_maya.root.parent / "away"
    (git / "logs").rename(away)
    (git / "logs").symlink_to(away)
    assert f"{git / 'logs'} is a link" in str(refused(lambda: purge(vault_of_maya), PurgeRefusedError))
    (git / "logs").unlink()
    away.rename(git / "logs")
    vault_of_maya.git("worktree", "lock", "../elsewhere")
    (vault_of_maya.root.parent / "elsewhere").rename(away)
    assert "locked worktree" in str(refused(lambda: purge(vault_of_maya), PurgeRefusedError))
    away.rename(vault_of_maya.root.parent / "elsewhere")
    assert purge(vault_of_maya).holds


@pytest.mark.matrix
@pytest.mark.parametrize("done", range(1, 6))
def test_killed_between_two_deletions_it_is_completed_by_the_next_run(
    vault_of_maya: Vault, monkeypatch: pytest.MonkeyPatch, done: int
) -> None:
    vault_of_maya.git("repack", "-q", "-a", "-d", "--write-midx", "--write-bitmap-index")
    vault_of_maya.git("commit-graph", "write", "--reachable")
    make_pack(vault_of_maya, vault_of_maya.root / ".git/objects/pack/pack-12.pack")
    left = iter(range(done))
    unlink, rmtree = Path.unlink, shutil.rmtree

    def count(path: Path | str) -> None:
        if "objects" in Path(path).parts and next(left, None) is None:
            os._exit(9)

    if (child := os.fork()) == 0:
        monkeypatch.setattr(Path, "unlink", lambda path, **kinds: (count(path), unlink(path, **kinds)))
        monkeypatch.setattr(shutil, "rmtree", lambda path, **kinds: (count(path), rmtree(path, **kinds)))
        try:
            purge(vault_of_maya)
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    vault_of_maya.run("fsck", "--strict", "--no-dangling")
    proof = purge(vault_of_maya)
    assert proof.holds, proof.places
    assert list(find_residue(vault_of_maya.root)) == []
    vault_of_maya.assert_sound()


ATTEMPTS = int(os.environ.get("QUAID_STRESS_S", "1"))
"""How often a git is killed that has left something."""
MAX_ATTEMPTS = 20 * ATTEMPTS
KILLED = {
    "repack": ("repack", "-a", "-d", "-f"),
    "gc": ("gc", "--quiet", "--prune=now"),
    "fetch": ("fetch", "-q", "../away", "main:other"),
    "push": ("-C", "../away", "push", "-q", "../vault", "main:pushed"),
}


@pytest.mark.matrix
@pytest.mark.parametrize("name", KILLED)
def test_nothing_is_left_of_a_git_that_was_killed_while_it_wrote(vault_of_maya: Vault, name: str) -> None:
    """It is killed as soon as a file of its own is seen next to the objects, and a little later each time."""
    away = Vault(vault_of_maya.root.parent / "away")
    vault_of_maya.git("clone", "-q", "--no-local", str(vault_of_maya.root), str(away.root))
    objects, killed = vault_of_maya.root / ".git/objects", 0
    for each in (away, vault_of_maya):
        each.git("config", "transfer.unpackLimit", "1")
    for attempt in range(MAX_ATTEMPTS):
        if killed >= ATTEMPTS:
            break
        for each in (away, vault_of_maya):
            each.write(f"scan{attempt}.md", f"{SECRET} {attempt}\n".encode() + os.urandom(800_000))
            each.save(f"scan {attempt}: {SECRET}")
        with subprocess.Popen(
            ["git", *KILLED[name]], cwd=vault_of_maya.root, start_new_session=True, stderr=subprocess.DEVNULL
        ) as running:
            while running.poll() is None and not find_drafts(objects):
                time.sleep(0.001)
            time.sleep(0.01 * (attempt % 4))
            if running.poll() is None:
                os.killpg(running.pid, signal.SIGKILL)
        drafts = find_drafts(objects)
        killed += bool(drafts)
        proof = purge_when_alone(vault_of_maya)
        assert proof.holds, (drafts, proof.places)
        assert list(find_residue(vault_of_maya.root)) == []
        assert find_drafts(objects) == []
        vault_of_maya.run("fsck", "--strict", "--no-dangling")
    assert killed >= ATTEMPTS


def find_drafts(objects: Path) -> list[Path]:
    return [path for path in objects.rglob("*") if path.name.startswith(("tmp_", ".tmp-", "incoming-"))]


def purge_when_alone(vault: Vault) -> purging.Proof:
    """Purge once the children of what was killed have ended too."""
    while True:
        try:
            return purge(vault)
        except LockedError:
            time.sleep(0.05)
