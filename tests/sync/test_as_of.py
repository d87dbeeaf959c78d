"""The memory as it was: an index of any commit, equal to one built from a checkout of it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from embedding_service import EmbeddingService
from vaults import Vault, dump, refused

from quaid import Memory
from quaid.errors import GitError, RevisionError
from quaid.index import contents as index_contents
from quaid.index import documents, vectors
from quaid.index.sqlite import database
from quaid.place import state_folder
from quaid.sync.as_of import MAX_PAST_INDEXES, PastIndexes

WORDS = ("oat", "milk", "violin", "harbour", "ceramics", "bicycle", "Lisbon", "greenhouse", "choir", "maps")


def past_indexes(memory: Memory) -> PastIndexes:
    return PastIndexes(memory.root, memory.settings, memory.embedding, memory.git)


def open_past(vault: Vault, wanted: str):
    with vault.memory() as memory:
        return past_indexes(memory).open(wanted)


def contents(path: Path) -> tuple[list[str], str, dict[str, str], list[str]]:
    """All that an index says: its dump, its manifest, what it passed over, and what SQLite finds wrong with it."""
    with closing(database.connect_reader(path)) as index:
        found = database.find_inconsistencies(index)
        return dump(index), index_contents.manifest(index), documents.list_passed_over(index), found


def contents_of_checkout(vault: Vault, revision: str, folder: Path) -> tuple[list[str], str, dict[str, str], list[str]]:
    """The same of an index built by `reindex` in a checkout of `revision`."""
    vault.run("worktree", "add", "-q", "--detach", str(folder), revision)
    inside = folder / vault.git("rev-parse", "--show-prefix")
    with Vault(Path(inside)).memory() as memory:
        memory.reindex()
        path = memory.indexer.path
    return contents(path)


def recall_then(vault: Vault, wanted: str, query: str) -> list[str]:
    """What `recall --as-of` answers."""
    with vault.memory() as memory:
        return [hit.text for hit in memory.recall(query, 5, as_of=wanted).hits]


@pytest.mark.parametrize("seed", range(3))
def test_a_past_index_is_the_one_a_checkout_would_have(vault, tmp_path, seed):
    chance = random.Random(seed)
    names = [f"note {n}" for n in range(12)]
    for step in range(6):
        for name in chance.sample(names, 5):
            change_something(vault, chance, name, step)
        vault.save(f"step {step}")
        if chance.random() < 0.5:
            vault.sync()
    vault.write("facts/of-no-commit.md", "Nobody committed this yet.\n")
    for back in range(6):
        expected = contents_of_checkout(vault, f"HEAD~{back}", tmp_path / f"checkout-{back}")
        assert contents(open_past(vault, f"HEAD~{back}").path) == expected


def change_something(vault: Vault, chance: random.Random, name: str, step: int) -> None:
    text = f"{' '.join(chance.sample(WORDS, 4))} in step {step}"
    path = vault.root / f"facts/{name}.md"
    action = chance.choice(("write", "write", "edit", "remove", "move", "link"))
    if action == "write":
        vault.write_fact(name, f"[[Maya]] keeps {text}.\n\n- [[Maya]] prefers [[{chance.choice(WORDS)}]]")
    elif action == "edit" and path.exists():
        path.write_bytes(path.read_bytes() + f"\n{text}\r\n".encode())
    elif action == "remove":
        path.unlink(missing_ok=True)
    elif action == "move" and path.exists():
        path.rename(vault.root / f"{name}.md")
    elif action == "link":
        vault.write(f"episodes/{name}.md", f"---\ntype: episode\n---\n**Maya:** {text} ^t1\n\n[[{name}]]\n")


def test_whatever_is_odd_about_a_file_is_judged_as_in_a_folder(vault, tmp_path):
    vault.write("entities/Maya.md", "---\ntype: person\naliases: [M]\n---\n- likes [[Tea]]\n")
    vault.write("broken.md", "---\nid: [\n---\nIts head cannot be read.\n")
    vault.write("latin.md", "caf\xe9".encode("latin-1"))
    vault.write("crlf.md", b"One line.\r\nAnother.\r\n")
    vault.write("line\nbreak.md", "A name with a line break.\n")
    vault.write("Maya (conflicted copy 2026-01-01).md", "A copy.\n")
    vault.write(".obsidian/hidden.md", "Hidden.\n")
    vault.write("node_modules/package/README.md", "Foreign.\n")
    vault.write("~draft.md", "A draft.\n")
    vault.write("picture.png", b"\x89PNG")
    (vault.root / "linked.md").symlink_to("crlf.md")
    (vault.root / os.fsdecode(b"caf\xe9.md")).write_text("A name that is no UTF-8.\n")
    vault.write("long.md", "# Long\n\n" + "word " * 40_000)
    vault.run("config", "core.autocrlf", "false")
    vault.save()
    vault.run("rm", "-rq", ".")
    vault.run("checkout", "HEAD", "--", "quaid.toml")
    vault.save("all gone")
    then = contents(open_past(vault, "HEAD~1").path)
    assert then == contents_of_checkout(vault, "HEAD~1", tmp_path / "checkout")
    assert {path.split(".")[0] for path in then[2]} == {"Maya (conflicted copy 2026-01-01)", "linked", "caf\\xe9"}


def test_a_vault_in_a_subfolder_is_looked_at_alone(calm, tmp_path):
    outer = Vault(tmp_path / "outer")
    outer.write("README.md", "Not of the vault.\n")
    outer.run("init", "-q", "-b", "main")
    before = outer.save("before there was a vault")
    Memory.create(outer.root / "deep" / "memory")[0].close()
    vault = Vault(outer.root / "deep" / "memory")
    vault.write_fact("one", "Maya keeps a violin.")
    vault.save()
    vault.write_fact("two", "Jon keeps bees.")
    vault.save()
    then = open_past(vault, "HEAD~1")
    assert contents(then.path) == contents_of_checkout(vault, "HEAD~1", tmp_path / "checkout")
    assert "no vault yet" in str(refused(lambda: open_past(vault, before), RevisionError))
    outer.write("elsewhere.md", "Not of the vault either.\n")
    outer.save()
    assert open_past(vault, "HEAD").path == open_past(vault, "HEAD~1").path, "one tree, one index"


def test_a_note_that_is_kept_through_a_filter_is_named_and_not_read(vault):
    vault.run("config", "filter.shout.clean", "tr a-z A-Z")
    vault.run("config", "filter.shout.smudge", "sed 's/^/smudged: /'")
    vault.write(".gitattributes", "secret/** filter=shout\n*.md text eol=crlf\n")
    vault.write("secret/one.md", "the boiler code is four\n")
    vault.write("open.md", "the other code\nis on two lines\n")
    vault.save()
    then = contents(open_past(vault, "HEAD").path)
    assert any("the other code" in line for line in then[0])
    assert not any("BOILER" in line.upper() for line in then[0])
    assert "filter" in then[2]["secret/one.md"]


@pytest.mark.matrix
@pytest.mark.parametrize("state", ["none", "empty", "no database", "torn", "another version", "behind", "read"])
def test_the_present_index_may_be_in_any_state(vault, tmp_path, state):
    for number in range(30):
        vault.write_fact(f"fact-{number}", f"Maya keeps {WORDS[number % 10]} number {number}.")
    vault.save()
    vault.write_fact("fact-1", "Maya gave it away.")
    vault.save()
    index = state_folder(vault.root) / "index.db"
    with vault.memory() as memory:
        memory.sync()
        if state == "read":
            memory.recall("violin")
    damage(index, state)
    if state == "behind":
        vault.write_fact("fact-2", "Maya sold it.")
        vault.save()
    then = contents(open_past(vault, "HEAD~1").path)
    assert then == contents_of_checkout(vault, "HEAD~1", tmp_path / "checkout")
    assert then[3] == []


def damage(index: Path, state: str) -> None:
    if state == "none":
        index.unlink()
    elif state == "empty":
        index.write_bytes(b"")
    elif state == "no database":
        index.write_bytes(b"no database at all" * 1000)
    elif state == "torn":
        data = bytearray(index.read_bytes())
        data[4096 : len(data) // 2] = os.urandom(len(data) // 2 - 4096)
        index.write_bytes(data)
    elif state == "another version":
        connection, _ = database.connect_writer(index)
        connection.execute("PRAGMA user_version = 99")
        connection.close()


def test_recall_answers_as_it_was_known_then(vault):
    vault.write_fact("milk", "Maya takes oat milk in her coffee.")
    vault.save()
    (vault.root / "facts" / "milk.md").unlink()
    vault.write_fact("tea", "Maya drinks tea without milk.")
    vault.save()
    assert recall_then(vault, "HEAD", "what milk does Maya take?") == ["Maya drinks tea without milk."]
    assert recall_then(vault, "HEAD~1", "what milk does Maya take?") == ["Maya takes oat milk in her coffee."]


def test_looking_back_leaves_record_and_present_index_alone(vault):
    vault.write_fact("one", "Maya keeps a violin.")
    vault.save()
    vault.write("of-no-commit.md", "Mine.\n")
    with vault.memory() as memory:
        memory.sync()
        before = vault.notes(), vault.git("status", "--porcelain", "--ignored=no", "-uall"), dump(memory.index())
        past_indexes(memory).open("HEAD~1")
        assert before == (
            vault.notes(), vault.git("status", "--porcelain", "--ignored=no", "-uall"), dump(memory.index()),
        )  # fmt: skip
    assert vault.git("check-ignore", ".quaid/as-of/x.db") == ".quaid/as-of/x.db"


@pytest.fixture
def dated(vault):
    """Commits of 1, 2 (at noon and a minute to midnight) and 4 March 2031, and one of a branch that was merged."""

    def save(text, when):
        vault.write_fact("fact", text)
        vault.run("add", "-A")
        subprocess.run(
            ["git", "-c", "user.name=M", "-c", "user.email=m@x", "commit", "-qm", text], cwd=vault.root, check=True,
            env={**os.environ, "GIT_COMMITTER_DATE": when, "GIT_AUTHOR_DATE": "2001-01-01T00:00:00Z"},
        )  # fmt: skip
        return vault.head()

    made = {"first": save("The first of them.", "2031-03-01T12:00:00Z")}
    vault.run("checkout", "-q", "-b", "side")
    made["side"] = save("One on the side.", "2031-03-03T12:00:00Z")
    vault.run("checkout", "-q", "main")
    made["noon"] = save("The second of them.", "2031-03-02T12:00:00Z")
    made["night"] = save("The third of them.", "2031-03-02T20:59:30-03:00")
    vault.run("merge", "-q", "-s", "ours", "-m", "merge", "side")
    subprocess.run(
        ["git", "-c", "user.name=M", "-c", "user.email=m@x", "commit", "-q", "--amend", "-m", "merge"], cwd=vault.root,
        check=True, env={**os.environ, "GIT_COMMITTER_DATE": "2031-03-04T12:00:00Z"},
    )  # fmt: skip
    made["merge"] = vault.head()
    vault.run("tag", "-a", "-m", "release", "v1", made["noon"])
    return vault, made


@pytest.mark.matrix
@pytest.mark.parametrize(("wanted", "expected"), [
    ("2031-03-01", "first"), ("2031-03-02", "night"),
    ("2031-03-03", "night"),  # the side branch was not known to main before its merge
    ("2031-03-04", "merge"), ("2099-12-31", "merge"), ("2031-03-02T12:00", "noon"), ("2031-03-02 11:59", "first"),
    ("2031-03-02T12:00:00Z", "noon"), ("2031-03-02T13:00+02:00", "first"), ("2031-03-02T23:59:29Z", "noon"),
    ("2031-03-02T23:59Z", "night"), ("HEAD", "merge"), ("HEAD~1", "night"), ("HEAD^2", "side"), ("v1", "noon"),
    ("main~2", "noon"),
])  # fmt: skip
def test_a_day_or_a_revision_is_one_commit(dated, wanted, expected):
    vault, made = dated
    assert open_past(vault, wanted).commit == made[expected]


@pytest.mark.matrix
@pytest.mark.parametrize(("wanted", "reason"), [
    ("2001-01-01", "the history begins later"), ("0001-01-01", "the history begins later"),
    ("1969-07-20", "the history begins later"), ("2031-02-30", "no such day"),
    ("2031-03-01T25:00", "no such day or time"), ("9999-12-31", "no such day"), ("v2", "no such revision"),
    ("", "no such revision"), ("--all", "no such revision"), ("HEAD~99", "no such revision"),
    ("HEAD..v1", "no such revision"), ("HEAD:quaid.toml", "no such revision"), ("deadbeef\0", "no such revision"),
    ("yesterday", "no such revision"),
])  # fmt: skip
def test_what_is_not_there_is_said_in_one_sentence(dated, wanted, reason):
    error = refused(lambda: open_past(dated[0], wanted), RevisionError)
    assert reason in str(error)
    assert repr(wanted) in str(error)
    assert error.exit_code == 1
    assert not (state_folder(dated[0].root) / "as-of").exists()


def test_before_the_first_commit_there_is_no_past(calm, tmp_path):
    vault = Vault(tmp_path)
    vault.write("quaid.toml", "")
    assert "repository" in str(refused(lambda: open_past(vault, "HEAD"), GitError))
    vault.run("init", "-q", "-b", "main")
    for wanted in ("HEAD", "2026-03-01"):
        refused(lambda wanted=wanted: open_past(vault, wanted), RevisionError)


def test_before_anything_was_in_the_folder_there_was_no_vault(calm, tmp_path):
    vault = Vault(tmp_path)
    vault.write("main.c", "int main;\n")
    vault.run("init", "-q", "-b", "main")
    first = vault.save()
    Memory.create(tmp_path)[0].close()
    assert "no vault yet" in str(refused(lambda: open_past(vault, first), RevisionError))


def test_notes_from_before_the_folder_was_adopted_were_known_then(calm, tmp_path):
    vault = Vault(tmp_path)
    vault.write("Boiler.md", "The boiler is from 1998.\n")
    vault.run("init", "-q", "-b", "main")
    first = vault.save()
    Memory.create(tmp_path)[0].close()
    assert recall_then(vault, first, "boiler") == ["The boiler is from 1998."]


def list_vectors(index) -> dict[str, bytes]:
    """Text -> vector of every chunk that has one."""
    row = vectors.active_embedder(index)
    assert row is not None
    rows = index.execute("SELECT chunk_id, text FROM chunks WHERE embedded = 'ready'").fetchall()
    return {text: index.vectors.get(row, [chunk_id]).get(chunk_id) for chunk_id, text in rows}


def test_vectors_come_from_the_present_and_from_the_cache_and_nothing_is_embedded_twice(vault, service):
    for number in range(5):
        vault.write_fact(f"fact-{number}", f"Maya keeps {'a' * number} {WORDS[number]}.")
    vault.save()
    with vault.memory() as memory:
        memory.sync()
        then = list_vectors(memory.index())
    (vault.root / "facts" / "fact-1.md").unlink()
    vault.write_fact("fact-2", "Something else altogether.")
    vault.save()
    with vault.memory() as memory:
        memory.sync()
        asked = len(service.requests)
        past = past_indexes(memory).open("HEAD~1")
    assert (past.degraded, len(service.requests)) == ((), asked)
    with closing(database.connect_reader(past.path)) as index:
        assert list_vectors(index) == then
        assert vectors.count_pending(index) == 0
        assert database.find_inconsistencies(index) == []


def test_what_is_in_no_cache_is_pending_by_name_and_the_next_call_goes_on(vault, service, monkeypatch):
    monkeypatch.setattr("quaid.embed.services.PAUSE_S", 0.0)
    vault.write_fact("one", "Maya keeps a violin.")
    vault.save()
    (vault.root / "facts" / "one.md").unlink()
    vault.save()
    with vault.memory() as memory:
        memory.sync()
        service.stop()
        pasts = past_indexes(memory)
        waiting = pasts.open("HEAD~1")
        assert [sentence.split(":")[0] for sentence in waiting.degraded] == ["pending"]
        assert "1 chunk" in waiting.degraded[0]
        assert pasts.open("HEAD~1").degraded == waiting.degraded
        again = EmbeddingService(service.port)
        whole = pasts.open("HEAD~1")
        again.stop()
        assert (whole.path, whole.degraded) == (waiting.path, ())


def test_another_model_has_a_past_of_its_own(vault, service, monkeypatch):
    vault.write_fact("one", "Maya keeps a violin.")
    vault.save()
    first = open_past(vault, "HEAD")
    monkeypatch.setenv("QUAID_EMBEDDING_MODEL", "two")
    second = open_past(vault, "HEAD")
    monkeypatch.setenv("QUAID_EMBEDDING_PROVIDER", "none")
    third = open_past(vault, "HEAD")
    assert len({first.path, second.path, third.path}) == 3
    assert contents(first.path)[:2] == contents(second.path)[:2] == contents(third.path)[:2]
    assert third.degraded == ()


def test_a_past_is_made_once(vault):
    vault.save()
    with vault.memory() as memory:
        first = past_indexes(memory).open("HEAD")
        made = first.path.stat()
        assert past_indexes(memory).open("HEAD") == first
        pasts = past_indexes(memory)
        assert [pasts.open(first.commit) for _ in range(2)] == [first] * 2
    assert first.path.stat().st_ino == made.st_ino
    assert [path.name for path in first.path.parent.iterdir() if path.suffix != ".db"] == ["lock"]


def test_the_least_recently_asked_go(vault):
    commits = []
    for number in range(MAX_PAST_INDEXES + 2):
        vault.write_fact("one", f"Maya keeps violin number {number}.")
        commits.append(vault.save())
    with vault.memory() as memory:
        pasts = past_indexes(memory)
        paths = [pasts.open(commit).path for commit in commits[:MAX_PAST_INDEXES]]
        pasts.open(commits[0])
        paths += [pasts.open(commit).path for commit in commits[MAX_PAST_INDEXES:]]
        assert {path for path in paths if path.exists()} == {paths[0], *paths[3:]}
        assert contents(pasts.open(commits[1]).path)[3] == []


def test_a_damaged_past_is_made_again(vault):
    vault.save()
    path = open_past(vault, "HEAD").path
    expected = contents(path)
    path.write_bytes(b"no database" * 1000)
    assert contents(open_past(vault, "HEAD").path) == expected


KILLED = """
import os, signal, sys
from quaid import Memory
from quaid.sync.as_of import PastIndexes

def progress(what, done, total):
    if done == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

with Memory.open(sys.argv[1]) as memory:
    PastIndexes(memory.root, memory.settings, memory.embedding, memory.git).open("HEAD", progress)
"""


@pytest.mark.parametrize("place", ["0", "3", "5"])
def test_killed_it_leaves_nothing_that_is_taken_for_a_past(vault, tmp_path, place):
    vault.write_fact("one", "Maya keeps a violin.")
    vault.save()
    done = subprocess.run([sys.executable, "-c", KILLED, str(vault.root), place], check=False)
    assert done.returncode == -signal.SIGKILL
    folder = state_folder(vault.root) / "as-of"
    assert list(folder.glob("*.db")) == []
    assert contents(open_past(vault, "HEAD").path) == contents_of_checkout(vault, "HEAD", tmp_path / "checkout")
    assert {path.suffix for path in folder.iterdir()} == {"", ".db"}


def test_several_at_once_make_one(vault):
    for number in range(200):
        vault.write_fact(f"fact-{number}", f"Maya keeps {WORDS[number % 10]} number {number}.")
    vault.save()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: open_past(vault, "HEAD"), range(4)))
    assert len(set(found)) == 1
    assert contents(found[0].path)[3] == []


def test_readers_keep_a_past_that_is_pruned_or_made_again(vault):
    vault.write_fact("one", "Maya keeps a violin.")
    vault.save()
    past = open_past(vault, "HEAD")
    with closing(database.connect_reader(past.path)) as index:
        past.path.unlink()
        assert documents.count(index) == 5
        open_past(vault, "HEAD")
        assert documents.count(index) == 5


def test_a_folder_that_cannot_be_written_is_named(vault):
    if os.geteuid() == 0:
        (state_folder(vault.root) / "as-of").write_text("in the way")
    else:
        state_folder(vault.root).chmod(0o500)
    vault.save()
    try:
        assert str(state_folder(vault.root)) in str(refused(lambda: open_past(vault, "HEAD")))
    finally:
        state_folder(vault.root).chmod(0o700)
