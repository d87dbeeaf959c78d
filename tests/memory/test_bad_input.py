"""Bad input ends in a clear sentence: nothing lost, nothing half-written, the other notes as before."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import threading
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from vaults import FACT, Vault, assert_verified, copy_of, copy_vault, mounted, paths, refused, texts

from quaid import Memory
from quaid.errors import (
    BadInputError,
    ConfigError,
    DiskFullError,
    GitError,
    LockedError,
    NoteBrokenError,
    VaultNotFoundError,
    VaultReadOnlyError,
)
from quaid.index import database, documents
from quaid.place import state_folder
from quaid.report.status import status_of

pytestmark = pytest.mark.usefixtures("calm")

HEALTHY = "Maya keeps a quokka in the garden"
LAUGHS = "a: &a [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join(['*' + chr(97 + i)] * 10)}]\n" for i in range(12)
)
# path -> (bytes, a word that must still find the note or None, what status says about it or None)
SICK: dict[str, tuple[bytes, str | None, str | None]] = {
    "facts/unterminated.md": (b"---\nid: u1\ntype: fact\nMaya likes aardvarks.\n", "aardvarks", "never closed"),
    "facts/not-yaml.md": (b"---\nid: [u2\ntype: {fact\n---\nMaya likes badgers.\n", "badgers", "not YAML"),
    "facts/tabs.md": (
        b"---\nid: u3\ntype: fact\n\tstatus: active\n---\nMaya likes capybaras.\n",
        "capybaras",
        "not YAML",
    ),
    "facts/on-key.md": (b"---\nid: u4\ntype: fact\non: 2026-11-20\nno: yes\n---\nMaya likes dingos.\n", "dingos", None),
    "facts/twice.md": (
        b"---\nid: u5\ntype: fact\ntype: belief\n---\nMaya likes echidnas.\n",
        "echidnas",
        "more than once",
    ),
    "facts/nested.md": (
        b"---\nid: u6\ntype: fact\nsource: {who: {what: 1}}\n---\nMaya likes ferrets.\n",
        "ferrets",
        "source should be one value",
    ),
    "facts/laughs.md": (b"---\n" + LAUGHS.encode() + b"---\nMaya likes geckos.\n", "geckos", None),
    "facts/loop.md": (b"---\nid: u8\na: &a [*a, *a]\n---\nMaya likes hedgehogs.\n", "hedgehogs", None),
    "facts/deep.md": (b"---\na: " + b"[" * 5000 + b"]" * 5000 + b"\n---\nMaya likes ibexes.\n", "ibexes", None),
    "facts/surrogate.md": (b'---\nid: "\\ud800"\nspeaker: "x\\udfffy"\n---\nMaya likes jackals.\n', "jackals", None),
    "facts/dates.md": (
        b"---\nid: u9\nconfidence: high\ncreated: tomorrow\n---\nMaya likes koalas.\n",
        "koalas",
        "should be a number",
    ),
    "facts/infinite.md": (
        b"---\nid: u10\nconfidence: .inf\nconfirmations: 1e999\n---\nMaya likes lemurs.\n",
        "lemurs",
        None,
    ),
    "facts/nan.md": (
        b"---\nid: u11\nconfidence: nan\nconfirmations: nan\n---\nMaya likes meerkats.\n",
        "meerkats",
        None,
    ),
    "facts/scalar-head.md": (b"---\njust words\n---\nMaya likes narwhals.\n", "narwhals", "not YAML"),
    "conflict.md": (
        b"# Plan\n\n<<<<<<< HEAD\nThe ocelot stays.\n=======\nThe pangolin stays.\n>>>>>>> other\n",
        "ocelot pangolin",
        "merge conflict",
    ),
    "conflict-head.md": (
        b"---\n<<<<<<< HEAD\nid: c1\n=======\nid: c2\n>>>>>>> other\n---\nMaya met a quoll.\n",
        "quoll",
        "merge conflict",
    ),
    "facts/same-id-1.md": (FACT.format(id="same", text="Maya likes rabbits.").encode(), "rabbits", None),
    "facts/same-id-2.md": (
        FACT.format(id="same", text="Maya likes salamanders.").encode(),
        "salamanders",
        "has the same id as",
    ),
    "empty.md": (b"", None, None),
    "white.md": (b" \n\t\n", None, None),
    "only-head.md": (b"---\n---", None, None),
    "open-head.md": (b"---", None, None),
    "binary.md": (bytes(range(256)) * 64 + b"\0" * 4000, None, "not text"),
    "latin.md": ("Maya likes tapirs — d\xe9j\xe0 vu".encode("cp1252"), "tapirs", "not UTF-8"),
    "utf16.md": ("Maya likes uakaris.\n".encode("utf-16"), "uakaris", "UTF-16"),
    "nul.md": (
        b"Maya likes\0 voles and a long sentence about them follows here so that it stays text.",
        "voles",
        "NUL",
    ),
    "bom.md": (b"\xef\xbb\xbf---\r\ntitle: Marks\r\n---\r\nMaya likes wombats.\r\n", "wombats", None),
    "names/\u00e9t\u00e9.md": (b"Maya likes xerus composed.\n", "xerus", None),
    "names/e\u0301te\u0301.md": (b"Maya likes xerus decomposed.\n", "xerus", None),
    "names/Case.md": (b"Maya likes yaks upper.\n", "yaks", None),
    "names/case.md": (b"Maya likes yaks lower.\n", "yaks", None),
    "names/new\nline.md": (b"Maya likes zebras.\n", "zebras", None),
    "names/quo\"te's.md": (b"Maya likes zebus.\n", "zebus", None),
    "-dash.md": (b"Maya likes zorillas.\n", "zorillas", None),
    "a (conflicted copy 2026-11-20).md": (b"Maya likes nobody.\n", None, "sync tool"),
    "b.sync-conflict-20261120-101010-ABCDEFG.md": (b"Maya likes nobody.\n", None, "sync tool"),
}


@pytest.fixture(scope="module")
def sick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    """One vault with every broken note at once, and a healthy one among them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QUAID_EMBEDDING_PROVIDER", "none")
        sick_vault = copy_vault(tmp_path_factory.mktemp("sick") / "vault")
        for rel_path, (data, _, _) in SICK.items():
            sick_vault.write(rel_path, data)
        sick_vault.write("healthy.md", HEALTHY)
        (sick_vault.root / os.fsdecode(b"not-utf8-\xff.md")).write_bytes(b"Maya likes nobody.\n")
        sick_vault.write(os.fsdecode(b"not-utf8-\xff/plain.md"), b"Maya likes nobody.\n")
        with sick_vault.memory() as memory:
            yield memory


@pytest.mark.parametrize("rel_path", SICK)
def test_a_broken_note_is_reported_and_stays_searchable(sick: Memory, rel_path: str) -> None:
    data, words, problem = SICK[rel_path]
    said = [sentence for path, sentence in documents.list_problems(sick.index()) if path == rel_path]
    assert problem is None or any(problem in sentence for sentence in said), said
    for word in (words or "").split():
        assert rel_path in paths(sick, word), word
    assert (sick.root / rel_path).read_bytes() == data


def test_broken_notes_do_not_stop_the_others(sick: Memory) -> None:
    assert "healthy.md" in paths(sick, "quokka")
    assert "nobody" not in " ".join(texts(sick, "Maya likes nobody"))
    assert_verified(sick)
    problems = dict(documents.list_problems(sick.index()))
    odd = [said for path, said in problems.items() if path.startswith("not-utf8")]
    assert ["not UTF-8" in said for said in odd] == [True, True]
    assert {path for path, said in problems.items() if "sync tool" in said} <= set(SICK)
    assert "could not be read as meant" in " ".join(item.what for item in status_of(sick).attention)


def test_a_broken_head_is_refused_rather_than_edited(vault: Vault) -> None:
    vault.write("facts/broken.md", SICK["facts/twice.md"][0].replace(b"type: belief", b"confidence: 1\nconfidence: 2"))
    with vault.memory() as memory:
        before = vault.notes()
        refused(lambda: memory.remember("Maya likes echidnas."), NoteBrokenError)
        assert vault.notes() == before
        assert_verified(memory)


def test_two_notes_with_one_id_are_ambiguous_by_id_and_clear_by_path(vault: Vault) -> None:
    for name in ("one", "two"):
        vault.write(f"facts/{name}.md", FACT.format(id="same", text=f"Maya likes number {name}."))
    vault.save()
    with vault.memory() as memory:
        assert "facts/one.md" in str(refused(lambda: memory.forget("same")))
        assert memory.forget("facts/two.md").outcome == "forgotten"
        assert paths(memory, "number") == {"facts/one.md"}


def test_fifty_megabytes_of_text_cost_seconds_and_little_memory(vault: Vault) -> None:
    vault.write("huge.md", b"The needle is early. " + b"Lorem ipsum dolor sit amet, consectetur.\n" * 1_250_000)
    vault.write("healthy.md", HEALTHY)
    started = time.monotonic()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with vault.memory() as memory:
        assert paths(memory, "needle") == {"huge.md"}
        assert paths(memory, "quokka") == {"healthy.md"}
        assert "only its first 2 MB" in dict(documents.list_problems(memory.index()))["huge.md"]
    assert time.monotonic() - started < 10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 250_000


@pytest.mark.parametrize("piece", ["\n", "\r\n", " \n"])
def test_blank_lines_cost_no_memory(piece: str) -> None:
    from quaid.vault.notes import parse_note

    data = f"above{piece * (200_000 // len(piece))}    below".encode()
    tracemalloc.start()
    note = parse_note("note.md", data)
    _now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 * len(data)
    assert "above" in str(note)
    assert "below" in str(note)


@pytest.mark.parametrize(
    "piece",
    ["*a ", "`", "``a", "[[", "[", "](", "%%", "<!--", "> ", ">", "- ", "==a ", "_a ", "~~~", "\\", "|a", "a|\n", "^t1\n",
     "**a", "- a [[", "<<<<<<< ", "a" * 997 + "-", "\u0301", "<a ", "[a]: ", "&#", "\t", "1. "],
)  # fmt: skip
def test_no_markup_makes_reading_a_note_slow(piece: str) -> None:
    from quaid.vault.notes import parse_note

    data = (piece * (100_000 // len(piece))).encode()
    for rel_path in ("note.md", "facts/a.md", "entities/a.md", "episodes/a.md"):
        started = time.monotonic()
        parse_note(rel_path, data)
        assert time.monotonic() - started < 1.5, rel_path


NAMES = [
    "CON", "con.txt", "a:b", "x/y", "../../etc/passwd", "Acme Inc.", "x" * 300, "🦘" * 100, "🦘", ".hidden", "~tilde", "#hash",
    "C#", "a|b", "a^b", "What?", "tab\there", "NUL", "a [b] c", "-dash", 'quo"te', "ends in space ", "\u202eright", "a\\b",
]  # fmt: skip


def test_any_name_can_be_linked_and_found(vault: Vault) -> None:
    with vault.memory() as memory:
        for name in NAMES:
            made = memory.link("Maya", "works_at", name)
            again = memory.link("Maya", "works_at", name)
            assert (made.outcome, again.outcome) == ("linked", "known"), name
            assert memory.link(name, "located_in", "Oslo").outcome == "linked", name
            kept = memory.get(" ".join(name.split())).document
            assert kept.kind == "entity", name
            assert kept.path.startswith("entities/"), name
            assert kept.path.count("/") == 1, name
            assert any("Oslo" in hit.text for hit in memory.recall(f"Where is {name} located?", 50).hits), name
        assert vault.status() == ""
        assert_verified(memory)


def test_names_that_differ_only_in_what_files_refuse_stay_apart(vault: Vault) -> None:
    with vault.memory() as memory:
        for name in ("C", "C#", "a:b", "a/b", "x" * 299, "x" * 300, ".NET", "NET"):
            assert memory.link("Maya", "uses", name).outcome == "linked", name
        for name in ("C", "C#", "a:b", "a/b", "x" * 299, "x" * 300, ".NET", "NET"):
            assert memory.get(name).document.kind == "entity", name
        assert len(list((vault.root / "entities").iterdir())) == 9


def test_links_out_of_the_vault_are_neither_followed_nor_read(vault: Vault, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("The password is swordfish.\n")
    (vault.root / "linked.md").symlink_to(outside / "secret.md")
    (vault.root / "folder").symlink_to(outside, target_is_directory=True)
    (vault.root / "entities").symlink_to(outside, target_is_directory=True)
    (vault.root / "dangling.md").symlink_to(tmp_path / "nowhere.md")
    with vault.memory() as memory:
        for _ in range(4):
            assert paths(memory, "password swordfish") == set()
        problems = dict(documents.list_problems(memory.index()))
        assert "symbolic link" in problems["linked.md"]
        assert "symbolic link" in problems["dangling.md"]
        refused(lambda: memory.link("Maya", "works_at", "Acme"), VaultReadOnlyError)
        assert_verified(memory)
    assert [path.name for path in outside.iterdir()] == ["secret.md"]


def test_a_note_swapped_for_a_link_is_forgotten_by_the_index(vault: Vault, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("The password is swordfish.\n")
    note = vault.write("swap.md", "Maya planted a dogwood.\n")
    with vault.memory() as memory:
        for _ in range(3):  # from the second on, a listener vouches
            assert paths(memory, "dogwood") == {"swap.md"}
        note.unlink()
        note.symlink_to(tmp_path / "secret.md")
        assert paths(memory, "dogwood swordfish") == set()
        assert "swap.md" in dict(documents.list_problems(memory.index()))
        assert_verified(memory)


def test_a_conflict_copy_that_appears_while_listening_is_reported_not_indexed(vault: Vault) -> None:
    with vault.memory() as memory:
        for _ in range(3):
            texts(memory, "anything")
        vault.write("plan.sync-conflict-20261120-101010-ABCDEFG.md", "Maya planted a redwood.\n")
        assert paths(memory, "redwood") == set()
        assert "plan.sync-conflict-20261120-101010-ABCDEFG.md" in dict(documents.list_problems(memory.index()))
        assert_verified(memory)


def test_a_pipe_or_a_folder_that_is_called_like_a_note_blocks_nobody(vault: Vault) -> None:
    os.mkfifo(vault.root / "pipe.md")
    vault.write("folder.md/inner.md", HEALTHY)
    with vault.memory() as memory:
        for _ in range(3):
            assert paths(memory, "quokka") == {"folder.md/inner.md"}
        assert "pipe.md" in dict(documents.list_problems(memory.index()))
        assert_verified(memory)


# -- the disk ------------------------------------------------------------------------------------------------------


@pytest.fixture
def filled(vault: Vault) -> Vault:
    """A vault with a memory in it and an index that is in step."""
    with vault.memory() as memory:
        memory.remember("Maya keeps a quokka in the garden")
        memory.recall("quokka")
    return vault


def test_a_read_only_vault_is_read_and_refuses_to_be_written(filled: Vault, tmp_path: Path) -> None:
    with mounted(tmp_path / "readonly", "--bind", str(filled.root)) as folder:
        if subprocess.run(["mount", "-o", "remount,ro,bind", str(folder)], capture_output=True, check=False).returncode:
            pytest.skip("needs the right to mount read-only")
        before = filled.notes()
        with Vault(folder).memory() as memory:
            for _ in range(3):
                assert len(memory.recall("quokka").hits) == 1
            filled.write("late.md", "Maya bought a lawnmower.")
            assert "late.md" in paths(memory, "quokka lawnmower")
            for write in (
                lambda: memory.remember("Maya bought a lawnmower yesterday"),
                lambda: memory.link("Maya", "works_at", "Acme"),
                lambda: memory.forget("quokka"),
                lambda: memory.extract(_turns(filled, "User: hello there")),
            ):
                refused(write)
        (filled.root / "late.md").unlink()
        assert filled.notes() == before
    filled.assert_sound()


def test_a_folder_without_permission_refuses_to_be_written(filled: Vault) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    (filled.root / "facts").chmod(0o500)
    try:
        with filled.memory() as memory:
            refused(lambda: memory.remember("Maya bought a lawnmower yesterday"), VaultReadOnlyError)
    finally:
        (filled.root / "facts").chmod(0o700)
    filled.assert_sound()


def test_a_full_disk_refuses_to_be_written_and_is_still_read(
    filled: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mounted(tmp_path / "small", "-t", "tmpfs", "-o", "size=6m", "tmpfs") as folder:
        root = folder / "vault"
        monkeypatch.setenv("QUAID_STATE_DIR", str(folder / "state"))
        small = copy_of(filled.root, root)
        before = small.notes()
        with Memory.open(root) as memory:
            assert len(memory.recall("quokka").hits) == 1
            (folder / "filler").write_bytes(b"")
            with pytest.raises(OSError, match="No space"), (folder / "filler").open("wb", buffering=0) as filler:
                for size in (65536, 4096, 1):
                    while True:
                        try:
                            filler.write(b"x" * size)
                        except OSError:
                            if size == 1:
                                raise
                            break
            for write in (
                lambda: memory.remember("Maya bought a lawnmower yesterday"),
                lambda: memory.link("Maya", "works_at", "Acme"),
                lambda: memory.extract(_turns(filled, "User: hello there")),
                lambda: memory.note("call Maya back"),
            ):
                refused(write, DiskFullError)
            assert small.notes() == before
            assert len(memory.recall("quokka").hits) == 1
        with Memory.open(root) as memory:
            assert len(memory.recall("quokka").hits) == 1
        (folder / "filler").unlink()
        with Memory.open(root) as memory:
            assert memory.remember("Maya bought a lawnmower yesterday").outcome == "created"
        assert small.status() == ""
        small.assert_sound()


# -- git -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def hasty(filled: Vault, monkeypatch: pytest.MonkeyPatch) -> Vault:
    monkeypatch.setenv("QUAID_GIT_WAIT_S", "0.2")
    return filled


def test_a_git_lock_of_another_program_stops_a_write_with_75(hasty: Vault) -> None:
    before = hasty.notes()
    lock = hasty.write(".git/index.lock", b"")
    with hasty.memory() as memory:
        for write in (
            lambda: memory.remember("Maya bought a lawnmower yesterday"),
            lambda: memory.link("A", "knows", "B"),
        ):
            assert refused(write, LockedError).exit_code == 75
        assert len(memory.recall("quokka").hits) == 1
    assert hasty.notes() == before
    assert lock.exists()
    lock.unlink()
    assert hasty.status() == ""
    hasty.assert_sound()


def test_a_vault_that_another_quaid_writes_stops_a_write_with_75(hasty: Vault) -> None:
    from quaid.vault import transaction

    with hasty.memory() as memory, transaction.begin(hasty.root, memory.git, 1.0):
        caught: list[LockedError] = []

        def write() -> None:
            with hasty.memory() as other:
                caught.append(refused(lambda: other.remember("Maya bought a lawnmower"), LockedError))  # type: ignore[arg-type]

        thread = threading.Thread(target=write)
        thread.start()
        thread.join(10)
        assert caught[0].exit_code == 75
        assert len(memory.recall("quokka").hits) == 1


def test_a_rebase_in_progress_is_waited_for_and_named(filled: Vault) -> None:
    mark = filled.root / ".git" / "rebase-merge"
    mark.mkdir()
    said: list[str] = []

    def end(text: str) -> None:
        said.append(text)
        mark.rmdir()

    with filled.memory() as memory:
        memory.report_to(None, end)
        assert memory.remember("Maya bought a lawnmower yesterday").commit
    assert "rebase" in said[0]
    filled.assert_sound()


def test_a_rebase_that_does_not_end_stops_a_write_and_names_the_way_out(hasty: Vault) -> None:
    before = hasty.notes()
    (hasty.root / ".git" / "rebase-merge").mkdir()
    with hasty.memory() as memory:
        assert "git rebase --continue" in str(refused(lambda: memory.remember("Maya bought a lawnmower"), LockedError))
    assert hasty.notes() == before


def test_a_hook_that_fails_takes_the_files_back(filled: Vault) -> None:
    hook = filled.write(".git/hooks/pre-commit", "#!/bin/sh\necho 'no secrets please' >&2\nexit 1\n")
    hook.chmod(0o755)
    before, head = filled.notes(), filled.head()
    turns = _turns(filled, "User: hello there\nAssistant: hello to you")
    with filled.memory() as memory:
        fact = memory.recall("quokka").hits[0].id
        for write in (
            lambda: memory.remember("Maya bought a lawnmower yesterday"),
            lambda: memory.remember("Maya keeps a quokka in the garden"),
            lambda: memory.link("Maya", "works_at", "Acme"),
            lambda: memory.extract(turns),
            lambda: memory.forget(fact),
        ):
            assert "no secrets please" in str(refused(write, GitError))
            assert (filled.notes(), filled.head(), filled.status()) == (before, head, "")
    hook.unlink()
    filled.assert_sound()


def test_a_vault_without_a_repository_is_read_and_says_why_it_is_not_written(filled: Vault) -> None:
    shutil.rmtree(filled.root / ".git")
    with filled.memory() as memory:
        assert len(memory.recall("quokka").hits) == 1
        assert "git init" in str(refused(lambda: memory.remember("Maya bought a lawnmower"), GitError))
        assert_verified(memory)


@pytest.mark.parametrize("place", ["subfolder", "with_submodule", "detached"])
def test_a_vault_anywhere_in_git_takes_a_memory_and_nothing_else(tmp_path: Path, place: str) -> None:
    outer = Vault(tmp_path / "outer")
    outer.root.mkdir()
    outer.git("init", "-q", "-b", "main")
    outer.write("README.md", "The owner's own.\n")
    outer.save()
    root = outer.root / "memory" if place == "subfolder" else outer.root
    Memory.create(root)[0].close()
    if place == "with_submodule":
        inner = Vault(tmp_path / "inner")
        inner.root.mkdir()
        inner.git("init", "-q", "-b", "main")
        inner.write("inner.md", "The submodule mentions a kookaburra.\n")
        inner.save()
        outer.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.root), "library")
        outer.save()
    if place == "detached":
        outer.git("checkout", "-q", "--detach")
    outer.write("work.txt", "not yet committed\n")
    with Memory.open(root) as memory:
        made = memory.remember("Maya keeps a quokka in the garden")
        memory.link("Maya", "works_at", "Acme")
        memory.forget(made.id)
        memory.restore(made.id)
        assert len(memory.recall("quokka").hits) == 1
        assert place != "with_submodule" or paths(memory, "kookaburra") == {"library/inner.md"}
        assert_verified(memory)
    assert outer.status() == "?? work.txt"
    assert outer.git("log", "-1", "--format=%an <%ae>") == "Quaid <quaid@localhost>"
    outer.run("fsck", "--strict", "--no-dangling")


# -- the index -----------------------------------------------------------------------------------------------------

DAMAGES = {
    "header": lambda path: _overwrite(path, 0, b"\xde\xad\xbe\xef" * 25),
    "middle": lambda path: _overwrite(path, 4096, os.urandom(path.stat().st_size - 8192)),
    "end": lambda path: _overwrite(path, path.stat().st_size - 8192, b"\xff" * 8192),
    "truncated": lambda path: os.truncate(path, path.stat().st_size // 2),
    "stump": lambda path: os.truncate(path, 50),
    "zero bytes": lambda path: os.truncate(path, 0),
    "a text file": lambda path: path.write_text("this is no database\n" * 500),
    "gone": lambda path: path.unlink(),
    "a folder's name": lambda path: (path.unlink(), (path.parent / "index.db-wal").write_bytes(b"\x37\x7f\x06\x82" * 999)),
    "from the future": lambda path: _sql(path, "PRAGMA user_version = 99"),
    "from the far future": lambda path: _sql(path, "PRAGMA user_version = 99", "DROP TABLE chunks", "CREATE TABLE x (y)",
                                             "CREATE TRIGGER t AFTER INSERT ON x BEGIN SELECT missing(); END",
                                             "CREATE VIEW v AS SELECT * FROM x"),
    "stripped": lambda path: _sql(path, "DROP TABLE edges"),
    "emptied": lambda path: _sql(path, "DELETE FROM fulltext", "DELETE FROM names"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("damage", "moment"),
    [(name, "closed") for name in DAMAGES if name != "emptied"]
    + [(name, moment) for name in ("header", "middle", "truncated", "gone") for moment in ("open", "listening")],
)
def test_a_damaged_index_is_built_anew_and_answers(filled: Vault, damage: str, moment: str) -> None:
    path = state_folder(filled.root) / "index.db"
    memory = filled.open()
    for _ in range({"closed": 0, "open": 1, "listening": 3}[moment]):
        memory.recall("quokka")
    if moment == "closed":
        memory.close()
    DAMAGES[damage](path)
    if moment == "closed":
        memory = filled.open()
    with memory:
        assert [hit.text for hit in memory.recall("quokka").hits] == [HEALTHY]
        filled.write("late.md", "Maya bought a lawnmower.")
        assert paths(memory, "lawnmower") == {"late.md"}
        assert memory.remember("Maya sold the lawnmower again").outcome == "created"
        assert memory.get("late.md").text == "Maya bought a lawnmower."
    with filled.memory() as other:
        other.sync()
        assert [hit.text for hit in other.recall("quokka").hits] == [HEALTHY]
        assert_verified(other)


def test_verify_sees_an_index_that_lost_rows_and_reindex_repairs_it(filled: Vault) -> None:
    DAMAGES["emptied"](state_folder(filled.root) / "index.db")
    with filled.memory() as memory:
        found = memory.verify()
        assert not found.ok
        assert found.differences
        memory.reindex()
        assert_verified(memory)


@pytest.mark.parametrize("name", ["local.db", "pending.json", "watch.json", "lock", "cache.db"])
def test_rubbish_in_the_state_folder_stops_nobody(filled: Vault, name: str) -> None:
    filled.write_state(name, b"rubbish {" * 999)
    with filled.memory() as memory:
        assert memory.remember("Maya bought a lawnmower yesterday").outcome == "created"
        assert memory.note("call Maya back") == 1
        assert memory.extract(_turns(filled, "User: hello there")).new_turns == 3  # the note too
        assert status_of(memory).counts
        assert_verified(memory)
    assert filled.status() == ""


# -- transcripts, settings, folders --------------------------------------------------------------------------------


def test_the_half_written_last_line_of_a_transcript_is_taken_when_it_is_whole(vault: Vault, tmp_path: Path) -> None:
    whole = (
        b'{"session": "s1", "started": "2026-11-20T14:00:00Z"}\n{"role": "user", "content": "We adopted a quokka."}\n'
    )
    rest = b'{"role": "assistant", "content": "What is its name, then?"}\n'
    path = tmp_path / "talk.jsonl"
    path.write_bytes(whole + rest[:30])
    with vault.memory() as memory:
        first = memory.extract(path)
        assert (first.new_turns, first.skipped) == (1, {"unreadable line": 1})
        path.write_bytes(whole + rest)
        assert memory.extract(path).new_turns == 1
        assert memory.extract(path).new_turns == 0
        assert texts(memory, "name") == ["What is its name, then?"]


@pytest.mark.parametrize("data", [b"", b"\n\n", b"\0" * 500, bytes(range(128, 256)) * 9, b'{"a": 1}\n'])
def test_what_is_no_transcript_is_refused(vault: Vault, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "talk").write_bytes(data)
    with vault.memory() as memory:
        refused(lambda: memory.extract(tmp_path / "talk"), BadInputError)
        refused(lambda: memory.extract(tmp_path / "absent"), BadInputError)
        refused(lambda: memory.extract(tmp_path), BadInputError)
    assert vault.status() == ""


def test_a_vanished_vault_is_not_an_empty_one(filled: Vault, tmp_path: Path) -> None:
    with filled.memory() as memory, filled.memory() as listening:
        for _ in range(3):
            listening.recall("quokka")
        filled.root.rename(tmp_path / "elsewhere")
        for one in (memory, listening):
            refused(lambda one=one: one.recall("quokka"), VaultNotFoundError)
            refused(lambda one=one: one.remember("Maya bought a lawnmower"), VaultNotFoundError)
        filled.root.mkdir()  # the empty place a disk is mounted at
        for one in (memory, listening):
            refused(lambda one=one: one.recall("quokka"), VaultNotFoundError)
            refused(lambda one=one: one.remember("Maya bought a lawnmower"), VaultNotFoundError)
        assert list(filled.root.iterdir()) == []
        filled.root.rmdir()
        (tmp_path / "elsewhere").rename(filled.root)
        for one in (memory, listening):
            assert len(one.recall("quokka").hits) == 1
    refused(lambda: Memory.open(tmp_path / "elsewhere"), VaultNotFoundError)


@pytest.mark.parametrize(
    "text", ["wrong = 1\n", "[recall]\nlimits = 3\n", "[recall\n", "[recall]\nlimit = 'ten'\n", "\xff\xfe"]
)
def test_settings_that_are_not_settings_are_named_by_what_is_read_and_refused_by_what_is_written(
    filled: Vault, text: str
) -> None:
    filled.write("quaid.toml", text.encode("latin-1"))
    before = filled.head()
    with filled.memory(owner="maya") as memory:
        assert memory.recall("quokka").hits == ()  # whether maya is the owner's name is not known
    with filled.memory() as memory:
        answer = memory.recall("quokka")
        assert [hit.text for hit in answer.hits] == [HEALTHY]
        assert "config" in answer.degraded
        assert "quaid.toml" in str(answer.trace["degraded"])
        assert any("quaid.toml" in one.what for one in status_of(memory).attention)
        assert "quaid.toml" in str(refused(lambda: memory.remember("Maya sold the lawnmower"), ConfigError))
        assert "quaid.toml" in str(refused(lambda: memory.janitor, ConfigError))
    assert filled.head() == before


def test_a_clone_of_an_adopted_vault_stays_clean_when_it_is_read(tmp_path: Path) -> None:
    owner = Vault(tmp_path / "owner")
    owner.write("Garden.md", HEALTHY)
    owner.git("init", "-q", "-b", "main")
    Memory.create(owner.root)[0].close()
    owner.save()
    owner.git("clone", "-q", str(owner.root), str(tmp_path / "clone"))
    clone = Vault(tmp_path / "clone")
    with clone.memory() as memory:
        assert paths(memory, "quokka") == {"Garden.md"}
    assert clone.status() == ""


def _turns(vault: Vault, text: str) -> Path:
    path = vault.root.parent / "talk.txt"
    path.write_text(text + "\nAssistant: And a good day to you.\n")
    return path


def _overwrite(path: Path, offset: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)


def _sql(path: Path, *statements: str) -> None:
    connection, _ = database.connect_writer(path)
    for statement in statements:
        connection.execute(statement)
    connection.close()
