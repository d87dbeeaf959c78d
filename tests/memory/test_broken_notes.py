"""Notes that cannot be read as meant are reported and stay searchable; the others are as before."""

from __future__ import annotations

import os
import resource
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from vaults import FACT, Vault, assert_verified, copy_vault, paths, refused, texts

from quaid import Memory
from quaid.errors import NoteBrokenError, VaultReadOnlyError
from quaid.index import documents
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
    "facts/tabs.md": (b"---\nid: u3\ntype: fact\n\tstatus: active\n---\nMaya likes capybaras.\n", "capybaras", "not YAML"),
    "facts/on-key.md": (b"---\nid: u4\ntype: fact\non: 2026-11-20\nno: yes\n---\nMaya likes dingos.\n", "dingos", None),
    "facts/twice.md": (b"---\nid: u5\ntype: fact\ntype: belief\n---\nMaya likes echidnas.\n", "echidnas", "more than once"),
    "facts/nested.md": (b"---\nid: u6\ntype: fact\nsource: {who: {what: 1}}\n---\nMaya likes ferrets.\n", "ferrets", "source should be one value"),
    "facts/laughs.md": (b"---\n" + LAUGHS.encode() + b"---\nMaya likes geckos.\n", "geckos", None),
    "facts/loop.md": (b"---\nid: u8\na: &a [*a, *a]\n---\nMaya likes hedgehogs.\n", "hedgehogs", None),
    "facts/deep.md": (b"---\na: " + b"[" * 5000 + b"]" * 5000 + b"\n---\nMaya likes ibexes.\n", "ibexes", None),
    "facts/surrogate.md": (b'---\nid: "\\ud800"\nspeaker: "x\\udfffy"\n---\nMaya likes jackals.\n', "jackals", None),
    "facts/dates.md": (b"---\nid: u9\nconfidence: high\ncreated: tomorrow\n---\nMaya likes koalas.\n", "koalas", "should be a number"),
    "facts/infinite.md": (b"---\nid: u10\nconfidence: .inf\nconfirmations: 1e999\n---\nMaya likes lemurs.\n", "lemurs", None),
    "facts/nan.md": (b"---\nid: u11\nconfidence: nan\nconfirmations: nan\n---\nMaya likes meerkats.\n", "meerkats", None),
    "facts/scalar-head.md": (b"---\njust words\n---\nMaya likes narwhals.\n", "narwhals", "not YAML"),
    "conflict.md": (b"# Plan\n\n<<<<<<< HEAD\nThe ocelot stays.\n=======\nThe pangolin stays.\n>>>>>>> other\n", "ocelot pangolin", "merge conflict"),
    "conflict-head.md": (b"---\n<<<<<<< HEAD\nid: c1\n=======\nid: c2\n>>>>>>> other\n---\nMaya met a quoll.\n", "quoll", "merge conflict"),
    "facts/same-id-1.md": (FACT.format(id="same", text="Maya likes rabbits.").encode(), "rabbits", None),
    "facts/same-id-2.md": (FACT.format(id="same", text="Maya likes salamanders.").encode(), "salamanders", "has the same id as"),
    "empty.md": (b"", None, None), "white.md": (b" \n\t\n", None, None), "only-head.md": (b"---\n---", None, None),
    "open-head.md": (b"---", None, None), "binary.md": (bytes(range(256)) * 64 + b"\0" * 4000, None, "not text"),
    "latin.md": ("Maya likes tapirs — d\xe9j\xe0 vu".encode("cp1252"), "tapirs", "not UTF-8"),
    "utf16.md": ("Maya likes uakaris.\n".encode("utf-16"), "uakaris", "UTF-16"),
    "nul.md": (b"Maya likes\0 voles and a long sentence about them follows here so that it stays text.", "voles", "NUL"),
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
}  # fmt: skip


@pytest.fixture(scope="module")
def sick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    """One vault with every broken note at once, and a healthy one among them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QUAID_EMBEDDING_PROVIDER", "none")
        patch.setenv("QUAID_VAULT_HAND_WRITTEN", "managed")
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


@pytest.mark.slow
def test_broken_notes_do_not_stop_the_others(sick: Memory) -> None:
    assert "healthy.md" in paths(sick, "quokka")
    assert "nobody" not in " ".join(texts(sick, "Maya likes nobody"))
    assert_verified(sick)
    problems = dict(documents.list_problems(sick.index()))
    odd = [said for path, said in problems.items() if path.startswith("not-utf8")]
    assert ["not UTF-8" in said for said in odd] == [True, True]
    assert {path for path, said in problems.items() if "sync tool" in said} <= set(SICK)
    assert "with problems" in " ".join(item.what for item in status_of(sick).attention)


def test_a_broken_head_is_refused_rather_than_edited(vault: Vault) -> None:
    vault.write("facts/broken.md", SICK["facts/twice.md"][0].replace(b"type: belief", b"confidence: 1\nconfidence: 2"))
    with vault.memory() as memory:
        before = vault.notes()
        refused(lambda: memory.remember("Maya likes echidnas."), NoteBrokenError)
        assert vault.notes() == before
        assert_verified(memory)


@pytest.mark.slow
def test_fifty_megabytes_of_text_cost_seconds_and_little_memory(vault: Vault) -> None:
    vault.write("huge.md", b"The needle is early. " + b"Lorem ipsum dolor sit amet, consectetur.\n" * 1_250_000)
    vault.write("healthy.md", HEALTHY)
    started = time.thread_time()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with vault.memory() as memory:
        assert paths(memory, "needle") == {"huge.md"}
        assert paths(memory, "quokka") == {"healthy.md"}
        assert "only its first 2 MB" in dict(documents.list_problems(memory.index()))["huge.md"]
    assert time.thread_time() - started < 10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 250_000


@pytest.mark.matrix
@pytest.mark.parametrize("piece", ["\n", "\r\n", " \n"])
def test_blank_lines_cost_no_memory(piece: str) -> None:
    from hand_written import parse_note

    data = f"above{piece * (200_000 // len(piece))}    below".encode()
    tracemalloc.start()
    note = parse_note("note.md", data)
    _now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 * len(data)
    assert "above" in str(note)
    assert "below" in str(note)


NAMES = [
    "CON", "con.txt", "a:b", "x/y", "../../etc/passwd", "Acme Inc.", "x" * 300, "🦘" * 100, "🦘", ".hidden", "~tilde", "#hash",
    "C#", "a|b", "a^b", "What?", "tab\there", "NUL", "a [b] c", "-dash", 'quo"te', "ends in space ", "\u202eright", "a\\b",
]  # fmt: skip


@pytest.mark.slow
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


def test_a_pipe_or_a_folder_that_is_called_like_a_note_blocks_nobody(vault: Vault) -> None:
    os.mkfifo(vault.root / "pipe.md")
    vault.write("folder.md/inner.md", HEALTHY)
    with vault.memory() as memory:
        for _ in range(3):
            assert paths(memory, "quokka") == {"folder.md/inner.md"}
        assert "pipe.md" in dict(documents.list_problems(memory.index()))
        assert_verified(memory)
