"""After any sequence of events the index equals one built from nothing, and a recall finds what is on disk (law 1)."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import apsw
import pytest
from vaults import FACT, Vault, assert_verified, copy_vault, dump, paths, rebuilt_dump

from quaid import Memory
from quaid.errors import QuaidError
from quaid.index.sqlite.connection import SqliteIndex, enable_vectors
from quaid.place import state_folder
from quaid.sync import derived_index
from quaid.sync.derived_index import SyncOptions

pytestmark = pytest.mark.usefixtures("calm")

STEPS = 36
SCRIPTS = (
    "", "我们用Python3开发。", "ﾐｿは猫です", "ฉันแพ้ถั่ว", "ខ្ញុំមិនស៊ីសាច់", "ང་ཤ་མི་ཟ།", "ကျွန်တော်", "김치를 먹는다", "Ｍｉｓｏ🥜",
)  # fmt: skip
FOLDERS = ("", "facts", "episodes/2026/11", "notes", "notes/deep.er", "entities", "v1.2")


class Life:
    """A vault's life: whatever may happen to its files, at random. Each note says one word that no other says."""

    def __init__(self, vault: Vault, clone: Vault, seed: int) -> None:
        self.vault, self.clone = vault, clone
        self.random = random.Random(seed)
        self.words = 0
        self.branches = ["main"]

    def word(self) -> str:
        self.words += 1
        return f"w{self.words:05}x"

    def notes(self) -> list[Path]:
        found = (path for path in self.vault.root.rglob("*.md") if ".git" not in path.parts and path.is_file())
        return sorted(path for path in found if path.name not in {"SOUL.md", "USER.md", "MEMORY.md", "AGENTS.md"})

    def pick(self) -> Path:
        return self.random.choice(self.notes() or [self.write()])

    def write(self) -> Path:
        folder = self.random.choice(FOLDERS)
        name = f"{folder}/n{self.words}" if folder else f"n{self.words}"
        text = self.text(name)
        return self.vault.write(f"{name}.md", text)

    def text(self, name: str) -> str:
        word, also = self.word(), self.random.choice(SCRIPTS)
        if name.startswith("episodes"):
            said = (
                f"**{self.random.choice(['Maya', 'Tom'])}**: Here is {self.word()} ^t{n}"
                for n in range(1, self.random.randint(1, 5))
            )
            return (
                f"---\ntype: episode\nsession: {word}\n---\n**Maya**: Here is {word} {also} ^t9\n\n"
                + "\n\n".join(said)
                + "\n"
            )
        if name.startswith("facts"):
            return FACT.format(
                id=f"01{word}", text=f"Maya said {word} {also} on [[Monday]].\n\n- [[Maya]] said [[{word}]]"
            )
        return f"---\ntype: {self.random.choice(['person', 'note', 'belief'])}\naliases: [a{word}]\n---\n# About\n\nHere is {word}. {also}\n\n- knows [[{word}]]\n"

    def edit(self) -> None:
        path = self.pick()
        path.write_text(self.text(path.relative_to(self.vault.root).as_posix()))

    def edit_unseen(self) -> None:
        """In place, with the size and the times that the note had."""
        path = self.pick()
        before = path.stat()
        text = path.read_text()
        word = next(
            (part for part in text.replace(".", " ").split() if part.startswith("w") and part.endswith("x")), ""
        )
        with path.open("r+") as file:
            file.write(text.replace(word, self.word()) if word else text)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    def save_by_rename(self) -> None:
        path = self.pick()
        draft = path.with_name(".draft~")
        draft.write_text(self.text(path.relative_to(self.vault.root).as_posix()))
        os.utime(draft, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
        draft.replace(path)

    def rename(self) -> None:
        path = self.pick()
        path.rename(path.with_name(f"r{self.word()}.md"))

    def rename_case(self) -> None:
        path = self.pick()
        path.rename(path.with_name(path.name.swapcase().replace(".MD", ".md")))

    def swap(self) -> None:
        one, other = self.pick(), self.pick()
        if one != other:
            draft = one.with_name("swap.tmp")
            one.rename(draft)
            other.rename(one)
            draft.rename(other)

    def move_folder(self) -> None:
        folders = [path for path in self.vault.root.iterdir() if path.is_dir() and not path.name.startswith(".")]
        if folders:
            folder = self.random.choice(folders)
            target = self.vault.root / self.random.choice(["moved", f"v{self.words}.0", "facts", "entities"])
            if not target.exists():
                folder.rename(target)

    def remove_folder(self) -> None:
        folders = [path for path in self.vault.root.iterdir() if path.is_dir() and not path.name.startswith(".")]
        small = [folder for folder in folders if len(list(folder.rglob("*.md"))) < 8]
        if small:
            shutil.rmtree(self.random.choice(small))

    def delete(self) -> None:
        self.pick().unlink()

    def touch(self) -> None:
        path = self.pick()
        os.utime(path, ns=(1, self.random.choice([1, 10**18, 4 * 10**18])))

    def link_away(self) -> None:
        path = self.pick()
        path.unlink()
        path.symlink_to(self.vault.root / "USER.md")

    def conflict_copy(self) -> None:
        path = self.pick()
        path.with_name(f"{path.stem} (conflicted copy {self.word()}).md").write_text(f"Here is {self.word()}.\n")

    def commit(self) -> None:
        self.vault.save()

    def branch(self) -> None:
        self.vault.save()
        if self.random.random() < 0.5 or len(self.branches) == 1:
            self.branches.append(f"b{self.words}")
            self.vault.git("checkout", "-q", "-b", self.branches[-1])
            self.edit()
            self.delete()
            self.vault.save()
        self.vault.git("checkout", "-q", self.random.choice(self.branches))

    def pull(self) -> None:
        self.vault.save()
        self.clone.git("fetch", "-q", str(self.vault.root), "HEAD")
        self.clone.git("reset", "-q", "--hard", "FETCH_HEAD")
        self.clone.write(f"notes/pulled{self.words}.md", f"Here is {self.word()}.\n")
        self.clone.save("elsewhere")
        self.write()
        self.vault.save()
        self.vault.git("pull", "-q", "--no-rebase", "--no-edit", str(self.clone.root), "HEAD")

    def conflict(self) -> None:
        """A merge that stops half-way, seen by a recall, and given up."""
        self.vault.save()
        name = self.pick().relative_to(self.vault.root).as_posix()
        self.clone.git("fetch", "-q", str(self.vault.root), "HEAD")
        self.clone.git("reset", "-q", "--hard", "FETCH_HEAD")
        self.clone.write(name, f"Here is {self.word()} from afar.\n")
        self.clone.save("elsewhere")
        self.vault.write(name, f"Here is {self.word()} from here.\n")
        self.vault.save()
        self.vault.run("pull", "-q", "--no-rebase", "--no-edit", str(self.clone.root), "HEAD", check=False)
        check(self.vault, None)
        self.vault.run("merge", "--abort", check=False)

    def revert(self) -> None:
        self.vault.save()
        if self.vault.run("revert", "--no-edit", "HEAD", check=False).returncode:
            self.vault.run("revert", "--abort", check=False)

    def crash(self) -> None:
        """A sync that dies half-way."""
        for _ in range(3):
            self.write()
        left = [self.random.randrange(3)]

        def die(_what: str, _done: int, _total: int) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt

        with self.vault.memory() as memory, suppress(KeyboardInterrupt):
            memory.indexer.sync(SyncOptions(rebuild=self.random.random() < 0.3), die)

    def remember(self) -> None:
        with self.vault.memory() as memory, suppress(QuaidError):  # a note may have become a link
            made = memory.remember(f"Maya remembers {self.word()} well")
            memory.link("Maya", "knows", self.word())
            if self.random.random() < 0.5:
                memory.forget(made.id)
                memory.restore(made.id)
            if self.random.random() < 0.3:
                memory.forget(made.id)

    def events(self) -> list[Callable[[], object]]:
        often = [self.write, self.edit, self.edit_unseen, self.save_by_rename, self.rename, self.delete]
        return often * 2 + [
            self.rename_case, self.swap, self.move_folder, self.remove_folder, self.touch, self.link_away,
            self.conflict_copy, self.commit, self.branch, self.pull, self.conflict, self.revert, self.crash, self.remember,
        ]  # fmt: skip


def words_on_disk(vault: Vault) -> dict[str, set[str]]:
    """Each word of this test -> the notes that say it."""
    found: dict[str, set[str]] = {}
    for path, data in vault.notes().items():
        if path.endswith(".md") and "conflicted copy" not in path.lower():
            said = data.decode().replace("[[", " ").replace("]]", " ").replace(".", " ").split()
            for word in {*said, Path(path).stem.lower()}:
                if word.startswith("w") and word.endswith("x") and word[1:-1].isdigit():
                    found.setdefault(word, set()).add(path)
    return found


def check(vault: Vault, listening: Memory | None, words: tuple[str, ...] = ()) -> None:
    memory = listening or vault.open()
    try:
        on_disk = words_on_disk(vault)
        for word in words:
            assert paths(memory, word, keyword_only=True) == on_disk.get(word, set()), word
        assert dump(memory.index()) == rebuilt_dump(memory)
        assert memory.verify().ok
    finally:
        if listening is None:
            memory.close()


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "many"), [(0, derived_index.MANY), (1, derived_index.MANY), (2, 0), (3, 0)])
def test_after_any_events_the_index_equals_one_built_from_nothing(tmp_path, monkeypatch, seed, many):
    monkeypatch.setattr(derived_index, "MANY", many)  # of a large vault the folders have digests
    vault, clone = copy_vault(tmp_path / "vault"), copy_vault(tmp_path / "clone")
    life = Life(vault, clone, seed)
    for _ in range(6):
        life.write()
    told: list[str] = []
    with vault.memory() as listening:
        for step in range(STEPS):
            event = life.random.choice(life.events())
            before, first = set(words_on_disk(vault)), life.words
            event()
            told.append(event.__name__)
            changed = before ^ set(words_on_disk(vault)) | {f"w{n:05}x" for n in range(first + 1, life.words + 1)}
            try:
                check(vault, listening if step % 3 else None, tuple(sorted(changed))[:5])
            except (AssertionError, QuaidError) as error:
                error.add_note(f"seed {seed}, after {told}")
                raise
    vault.run("fsck", "--strict", "--no-dangling")


def test_words_that_are_missing_or_left_over_are_seen(vault):
    """The comparison above can fail."""
    vault.write("episodes/2026/11/one.md", "---\ntype: episode\nsession: one\n---\n**Maya**: Here is w00001x ^t1\n")
    vault.sync()
    for change in (
        "INSERT INTO fulltext (rowid, text, context, keywords) SELECT max(chunk_id), 'gone', '', '' FROM chunks",
        "DELETE FROM fulltext WHERE rowid = (SELECT max(chunk_id) FROM chunks)",
    ):
        with vault.memory() as memory, closing(SqliteIndex(str(state_folder(vault.root) / "index.db"))) as other:
            enable_vectors(other)
            with suppress(apsw.ConstraintError):
                other.execute(change)
            assert dump(memory.index()) != rebuilt_dump(memory), change
            memory.reindex()
            assert_verified(memory)


def test_a_note_dated_in_the_future_does_not_keep_every_read_busy(vault):
    path = vault.write("future.md", "Here is a message from 2096.\n")
    os.utime(path, ns=(4 * 10**18, 4 * 10**18))
    with vault.memory() as memory:
        memory.sync()
        os.utime(vault.root / "USER.md")
        index = memory.index()

        def is_settled() -> bool:
            memory.indexer.sync()
            return memory.indexer.is_fresh(index)

        from vaults import wait_for

        wait_for(is_settled, "a fresh index", within_s=3)


def _fill(vault: Vault, count: int = 300) -> None:
    for number in range(count):
        vault.write(f"notes/n{number}.md", f"Here is w{number:05}x and what Maya did on day {number}.\n")


def test_text_that_was_embedded_once_is_not_embedded_again(vault, service):
    _fill(vault, 20)
    with vault.memory() as memory:
        memory.sync()
        asked = len(service.requests)
        (vault.root / "notes").rename(vault.root / "moved")
        memory.sync()
        memory.reindex()
        assert len(service.requests) == asked
        assert_verified(memory)
