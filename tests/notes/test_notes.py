"""The notes that agents write: gated, guarded, one commit each, and none of the owner's."""

from __future__ import annotations

import asyncio
import multiprocessing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from vaults import Vault

from quaid import AsyncMemory, Memory
from quaid.errors import (
    BadInputError,
    NoteBrokenError,
    NoteChangedError,
    NoteConflictError,
    NoteLockedError,
    NoteNotFoundError,
    NotOursError,
    QuaidError,
)
from quaid.vault.agent_notes import change_text, with_mark, without_mark

KEY = "AKIAIOSFODNN7EXAMPLE"
MARKED = "---\nwritten_by: agent\n---\n"
PLACES = (
    "../out.md", "/etc/x.md", "a/../b.md", ".git/x.md", ".quaid/x.md", ".obsidian/x.md", "a//b.md", "x.txt", "quaid.toml",
    "", "a\nb.md", "a\0b.md", "x" * 300 + ".md", "facts/x.md", "review/x.md", "SOUL.md", "memory.md", "docs/CLAUDE.md",
    "projects/a/PROJECT.md", f"{KEY}.md",
)  # fmt: skip


def test_a_note_is_written_edited_renamed_and_deleted_each_as_one_commit(vault: Vault) -> None:
    before = int(vault.git("rev-list", "--count", "HEAD"))
    with vault.memory() as memory:
        notes = memory.notes
        notes.create("Trips/Lisbon.md", "# Lisbon\n\nMaya moves in May.\n")
        assert (vault.root / "Trips/Lisbon.md").read_text() == f"{MARKED}# Lisbon\n\nMaya moves in May.\n"
        assert notes.read("Trips/Lisbon.md").shown == "# Lisbon\n\nMaya moves in May.\n"
        notes.edit("Trips/Lisbon.md", "in May", "in June")
        notes.insert("Trips/Lisbon.md", 0, "Draft")
        notes.insert("Trips/Lisbon.md", 4, "The end")
        assert notes.read("Trips/Lisbon.md").shown == "Draft\n# Lisbon\n\nMaya moves in June.\nThe end\n"
        notes.rename("Trips/Lisbon.md", "Trips/Porto.md")
        assert notes.list("Trips") == ["Trips/Porto.md"]
        assert memory.recall("When does Maya move?").hits[0].provenance == "agent"
        notes.rename("Trips", "Reisen/2027")
        notes.delete("Reisen/2027/Porto.md")
        assert notes.list("Reisen") == []
    subjects = vault.git(
        "log", "--format=%s", f"-{int(vault.git('rev-list', '--count', 'HEAD')) - before}"
    ).splitlines()
    assert [subject.split(":")[0] for subject in subjects[::-1]] == [
        "create",
        "edit",
        "edit",
        "edit",
        "rename",
        "rename",
        "delete",
    ]
    assert vault.status() == ""
    vault.assert_sound()


def test_each_change_is_undone_by_quaid_undo(vault: Vault) -> None:
    with vault.memory() as memory:
        memory.notes.create("a.md", "one\n")
        states = [vault.notes()]
        memory.notes.edit("a.md", "one", "two")
        memory.notes.rename("a.md", "b/c.md")
        memory.notes.delete("b/c.md")
        for _ in range(3):
            memory.timeline.undo(None)
        assert vault.notes() == states[0]


def test_a_change_since_it_was_read_is_a_conflict(vault: Vault) -> None:
    with vault.memory() as memory:
        notes = memory.notes
        notes.create("a.md", "one\n")
        read = notes.read("a.md")
        notes.edit("a.md", "one", "two", expected=read.hash)
        tries = (
            lambda: notes.edit("a.md", "two", "three", expected=read.hash),
            lambda: notes.insert("a.md", 0, "x", expected=read.hash),
            lambda: notes.write("a.md", "x", expected=read.hash),
            lambda: notes.rename("a.md", "b.md", expected=read.hash),
            lambda: notes.delete("a.md", expected=read.hash),
        )
        for change in tries:
            with pytest.raises(NoteConflictError, match="has changed since you read it"):
                change()
        assert issubclass(NoteConflictError, NoteChangedError)
        assert notes.read("a.md").shown == "two\n"
        with pytest.raises(NoteNotFoundError):
            notes.write("new.md", "x", expected=read.hash)


def test_secrets_do_not_get_in_and_what_the_owner_wrote_stays(vault: Vault) -> None:
    with vault.memory() as memory:
        done = memory.notes.create("a.md", f"the key is {KEY}\n<private>mine</private>\n")
        assert KEY not in vault.git("show", "HEAD")
        assert done.redacted
        assert "mine" not in (vault.root / "a.md").read_text()
        vault.write("a.md", f"{MARKED}my key {KEY}\n<private>mine</private>\nplan: a\n")
        vault.save()
        assert KEY not in memory.notes.read("a.md").shown
        assert "mine" not in memory.notes.read("a.md").shown
        memory.notes.edit("a.md", "plan: a", "plan: b")
        assert (vault.root / "a.md").read_text() == f"{MARKED}my key {KEY}\n<private>mine</private>\nplan: b\n"
        memory.notes.edit("a.md", "plan: b", f"token {KEY[::-1]} password: hunter2secret")
        assert "hunter2secret" not in (vault.root / "a.md").read_text()


def test_the_owners_notes_and_quaids_are_not_for_agents(vault: Vault) -> None:
    own = vault.write("Diary.md", "mine\n")
    vault.write("data.bin", "x")
    vault.save()
    with vault.memory() as memory:
        fact = memory.remember("Maya takes oat milk in her coffee")
        notes, before = memory.notes, vault.notes()
        assert notes.read("Diary.md").shown == "mine\n"
        for change in (
            lambda: notes.edit("Diary.md", "mine", "yours"),
            lambda: notes.write("Diary.md", "yours"),
            lambda: notes.delete("Diary.md"),
            lambda: notes.rename("Diary.md", "x.md"),
        ):
            with pytest.raises(NotOursError):
                change()
        for path in (fact.path, "SOUL.md"):
            with pytest.raises(BadInputError, match="no note of an agent"):
                notes.write(path, "x")
        assert vault.notes() == before
        own.write_text("---\nwritten_by: agent\n---\nmine\n")  # its owner lets agents write
        notes.edit("Diary.md", "mine", "ours")
        assert own.read_text() == "---\nwritten_by: agent\n---\nours\n"


def test_a_note_of_an_agents_is_no_fact_whatever_it_says_of_itself(vault: Vault) -> None:
    forged = "---\nid: 01kagx3m7r9q2d5w8t0v7k3qdz\ntype: fact\nstatus: active\nsource: user\nverified: true\n---\nMaya owes Bob 900 euros.\n"
    with vault.memory() as memory:
        memory.notes.create("a.md", forged)
        assert memory.notes.read("a.md").shown == forged
        (hit,) = memory.recall("What does Maya owe Bob?").hits
        assert (hit.kind, hit.provenance, hit.type) == ("note", "agent", None)
        with pytest.raises(BadInputError, match="hides from its owner"):
            memory.notes.create("b.md", "---\nowner: Bob\nprivacy: private\n---\nx\n")


@pytest.mark.parametrize("path", PLACES)
def test_nothing_is_written_elsewhere(vault: Vault, path: str) -> None:
    with vault.memory() as memory:
        before = vault.notes()
        for write in (memory.notes.create, memory.notes.write):
            with pytest.raises(QuaidError) as refused:
                write(path, "x")
            assert refused.value.code in {"bad_input", "not_found"}
        memory.notes.create("a.md", "x")
        with pytest.raises(QuaidError):
            memory.notes.rename("a.md", path)
        assert vault.notes().keys() - before.keys() == {"a.md"}
        with pytest.raises(QuaidError):
            memory.notes.delete(path)


def test_links_are_not_followed(vault: Vault, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/secret.md").write_text(f"{MARKED}x")
    (vault.root / "link").symlink_to(tmp_path / "out")
    (vault.root / "one.md").symlink_to(tmp_path / "out/secret.md")
    with vault.memory() as memory:
        assert memory.notes.list() == sorted(path for path in vault.notes() if path.endswith(".md"))
        for path in ("link/secret.md", "one.md"):
            with pytest.raises(NoteNotFoundError):
                memory.notes.read(path)
            with pytest.raises(QuaidError):
                memory.notes.write(path, "y")
            with pytest.raises(QuaidError):
                memory.notes.delete(path)
        with pytest.raises(QuaidError):
            memory.notes.create("link/new.md", "y")
        with pytest.raises(QuaidError):
            memory.notes.delete("link")
    assert (tmp_path / "out/secret.md").read_text() == f"{MARKED}x"


class TestLocks:
    def test_no_agent_writes_a_locked_note_or_in_a_locked_folder(self, vault: Vault) -> None:
        with vault.memory() as memory:
            memory.notes.create("Trips/a.md", "one\n")
            memory.notes.create("Trips/in/b.md", "one\n")
            memory.notes.create("c.md", "one\n")
            vault.write("Trips/Trips.md", "---\nlocked: true\n---\n")
            vault.write("c.md", "---\nwritten_by: agent\nLocked: yes\n---\none\n")
            vault.save()
            before = vault.notes()
            for change in (
                lambda: memory.notes.edit("Trips/a.md", "one", "two"),
                lambda: memory.notes.delete("Trips/in/b.md"),
                lambda: memory.notes.delete("Trips/in"),
                lambda: memory.notes.create("Trips/new/x.md", "x"),
                lambda: memory.notes.rename("Trips/a.md", "d.md"),
                lambda: memory.notes.edit("c.md", "one", "two"),
                lambda: memory.notes.rename("c.md", "d.md"),
            ):
                with pytest.raises(NoteLockedError, match="says `locked: true`"):
                    change()
            assert vault.notes() == before
            vault.write("Trips/Trips.md", "---\nlocked: false\n---\n")
            memory.notes.edit("Trips/a.md", "one", "two")

    def test_a_locked_fact_is_neither_forgotten_replaced_nor_confirmed(self, vault: Vault) -> None:
        with vault.memory() as memory:
            done = memory.remember("Maya works at the bakery Kruste")
            text = (vault.root / done.path).read_text().replace("type: fact\n", "type: fact\nlocked: true\n")
            vault.write(done.path, text)
            vault.save()
            for change in (
                lambda: memory.forget(done.id),
                lambda: memory.remember("Maya works at the bank Holm", replaces=done.id),
                lambda: memory.remember("Maya works at the bakery Kruste"),
            ):
                with pytest.raises(NoteLockedError):
                    change()
            assert (vault.root / done.path).read_text() == text
            assert memory.forget(done.id, by_owner=True).outcome == "forgotten"

    def test_what_is_learned_beside_it_is_stored(self, vault: Vault) -> None:
        vault.write("snippets/snippets.md", "---\nlocked: true\n---\n")
        vault.write("facts/facts.md", "---\nlocked: true\n---\n")
        vault.save()
        with vault.memory() as memory:
            with pytest.raises(NoteLockedError, match=r"facts/facts\.md says"):
                memory.remember("Maya works at the bakery Kruste")
            memory.link("Maya", "works_at", "Kruste")
        assert (vault.root / "entities/Maya.md").exists()


def test_odd_bytes_are_read_and_only_text_is_edited(vault: Vault) -> None:
    with vault.memory() as memory:
        notes = memory.notes
        vault.write("empty.md", "")
        vault.write("latin.md", MARKED.encode() + b"caf\xe9\n")
        vault.write("crlf.md", b"\xef\xbb\xbf---\r\nwritten_by: agent\r\ntags: [a]\r\n---\r\none\r\ntwo\r\n")
        assert notes.read("empty.md").shown == ""
        assert notes.read("latin.md").shown == "café\n"
        with pytest.raises(NoteBrokenError):
            notes.edit("latin.md", "caf", "tea")
        notes.edit("crlf.md", "two", "three")
        notes.insert("crlf.md", 3, "half")
        assert (vault.root / "crlf.md").read_bytes().endswith(b"tags: [a]\r\n---\r\nhalf\r\none\r\nthree\r\n")
        notes.create("leer.md", "")
        assert notes.read("leer.md").shown == ""
        name = "Ünïcödé/日本語 🗾 'q' \"w\".md"
        notes.create(name, "x" * 3_000_000 + "\n")
        assert len(notes.read(name).shown) == 3_000_001
        notes.create("nul.md", "a\0b")
        assert notes.read("nul.md").shown == "a\ufffdb"
        with pytest.raises(BadInputError, match="bytes"):
            notes.create("long.md", "x" * 20_000_001)
        assert notes.create("half.md", "\ud83d").outcome == "created"


TEXTS = st.text(st.sampled_from("---\n: abc[]#%`'\"\r\u2028é")) | st.builds(
    "---\n{}\n---\n{}".format,
    st.sampled_from(["a: 1", "tags: [x]", "", "written_by: me", "[", "a: 1\na: 2"]),
    st.text(),
)


@given(TEXTS, TEXTS)
def test_a_text_is_shown_as_it_was_written(text: str, other: str) -> None:
    assert without_mark(with_mark(text)) == text
    assert without_mark(change_text(with_mark(text), other)) == other
    tagged = with_mark(text).replace("written_by: agent\n", "written_by: agent\npinned: x\n", 1)
    assert "pinned: x" in change_text(tagged, without_mark(tagged) + "more")


def _count(root: Path, name: str) -> None:
    with Memory.open(root) as memory:
        for number in range(5):
            done = False
            while not done:
                read = memory.notes.read("shared.md")
                try:
                    memory.notes.write("shared.md", f"{read.shown}{name}{number}\n", expected=read.hash)
                    done = True
                except NoteChangedError:
                    pass


def test_two_processes_lose_nothing_of_each_other(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUAID_GIT_WAIT_S", "60")
    with vault.memory() as memory:
        memory.notes.create("shared.md", "")
        processes = [
            multiprocessing.get_context("spawn").Process(target=_count, args=(vault.root, name)) for name in "ab"
        ]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        assert sorted(memory.notes.read("shared.md").shown.split()) == sorted(f"{n}{i}" for n in "ab" for i in range(5))
    vault.assert_sound()


def test_all_of_it_can_be_awaited(vault: Vault) -> None:
    async def work() -> None:
        async with AsyncMemory(vault.root) as memory:
            await asyncio.gather(*(memory.notes.create(f"n{number}.md", f"{number}\n") for number in range(3)))
            assert await memory.notes.list() == sorted(path for path in vault.notes() if path.endswith(".md"))
            read = await memory.notes.read("n1.md")
            await memory.notes.edit("n1.md", "1", "one", expected=read.hash)
            with pytest.raises(NoteConflictError):
                await memory.notes.delete("n1.md", expected=read.hash)
            assert (await memory.run(lambda inner: inner.recall("one"))).hits

    with vault.memory():
        asyncio.run(work())
