"""Each kind of change that Quaid can make is undone, later edits on top stay, and the undo is undone."""

from __future__ import annotations

import json

import pytest
from extraction_runs import ANSWER, SAID
from janitor_nights import approve, decide, remember, rewriting, tidying
from replay import Replay, write_talk
from timelines import HOME, MILK
from vaults import Vault, assert_verified, refused

from quaid.capture.writer import WritePlan, WriteResult
from quaid.cli.main import main
from quaid.docs.registry import Project
from quaid.errors import BadInputError
from quaid.model import Edit, Message
from quaid.vault.notes import parse_fact

MINE = b"\n# the owner's own line\n"


def find(vault, words):
    (path,) = (path for path, data in vault.notes().items() if path.startswith("facts/") and words.encode() in data)
    return path


def does(call):
    def act(vault, tmp_path, monkeypatch):
        with vault.memory() as memory:
            call(memory)

    return act


def extracts(vault, tmp_path, monkeypatch):
    service = Replay({"s1": ANSWER})
    for name, value in service.environ().items():
        monkeypatch.setenv(name, value)
    with vault.memory() as memory:
        assert len(memory.extract(write_talk(tmp_path / "t.jsonl", *SAID)).facts) == 2
    service.close()


def restores_what_was_replaced(memory):
    old = memory.remember("Maya lives in Porto with Tom", replaces=HOME).replaced
    memory.restore(old)


def imports(vault, tmp_path, monkeypatch):
    export = tmp_path / "mem0.json"
    export.write_text(json.dumps({"results": [{"id": "a1", "memory": "Ana plays the cello", "user_id": "default"}]}))
    with vault.memory() as memory:
        assert memory.import_from(export).commit


def has_a_night(vault, tmp_path, monkeypatch):
    plans = [rewriting(find(vault, MILK), "Maya drinks oat milk"), rewriting(find(vault, HOME), "Maya has a home")]
    assert len(tidying(vault, monkeypatch)(*plans).done) == 2


def decides(vault, tmp_path, monkeypatch):
    has_a_night(vault, tmp_path, monkeypatch)
    return vault.git("rev-parse", "HEAD^2")


def answering(answer):
    def act(vault, tmp_path, monkeypatch):
        tidying(vault, monkeypatch)(rewriting(find(vault, MILK), "Maya drinks oat milk", always_asks=True))
        with vault.memory() as memory:
            assert memory.janitor.answer("all", answer)

    return act


def undoes(memory):
    memory.forget(MILK)
    memory.timeline.undo()


def updates_a_doc(memory):
    path = "projects/boat/GUIDE.md"
    data = (memory.root / path).read_bytes()
    message = Message(f"docs: update {path}", "", (("Quaid-Task", "docs_update"),))
    edit = Edit(path, data, data.replace(b"red sail", b"blue sail"))
    memory.writer.write("docs", lambda: WritePlan(WriteResult(path, path, "set"), (edit,), message))


KINDS = {
    "remember": does(lambda memory: memory.remember("Ana plays the cello in town")),
    "confirm": does(lambda memory: memory.remember(MILK)),
    "replace": does(lambda memory: memory.remember("Maya lives in Porto with Tom", replaces=HOME)),
    "extract": extracts,
    "forget": does(lambda memory: memory.forget(MILK)),
    "forget a turn": does(lambda memory: memory.forget("s9#t3")),
    "restore": does(lambda memory: memory.restore(memory.forget(MILK).id)),
    "restore a turn": does(lambda memory: (memory.forget("s9#t3"), memory.restore("s9#t3"))),
    "restore what was replaced": does(restores_what_was_replaced),
    "link": does(lambda memory: memory.link("Maya", "knows", "Ana")),
    "import": imports,
    "a night": has_a_night,
    "one decision": decides,
    "accept": answering("yes"),
    "reject": answering("no"),
    "docs update": does(updates_a_doc),
    "project": does(lambda memory: memory.documentation.create(Project("kiln"))),
    "configure": does(lambda memory: memory.configure("recall.depth", "fast")),
    "undo": does(undoes),
}


@pytest.mark.matrix
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_change_is_undone_and_later_edits_stay(vault, tmp_path, monkeypatch, kind):
    start = vault.head()
    commit = KINDS[kind](vault, tmp_path, monkeypatch) or vault.head()
    assert commit != start
    after = vault.notes()
    changed = vault.git("diff", "-z", "--name-only", "--no-renames", f"{commit}^", commit).strip("\0").split("\0")
    before = {path: content_at(vault, f"{commit}^", path) for path in changed}
    edited = [path for path in changed if before[path] is not None and path in after]
    for path in edited:
        (vault.root / path).write_bytes(after[path] + MINE)
    vault.write("notes/later.md", "Later, and by hand.\n")
    vault.save("mine")

    def expected(side):
        return {path: data + MINE * (path in edited) for path in changed if (data := side.get(path)) is not None}

    def present():
        return {path: data for path, data in vault.notes().items() if path in changed}

    with vault.memory() as memory:
        undone = memory.timeline.undo(commit)
        assert undone.commit is not None
        assert undone.changes
        assert (undone.kept, undone.left) == ({}, ())
        assert present() == expected(before)
        memory.timeline.undo(undone.commit)
        assert present() == expected(after)
        if kind in {"extract", "a night"}:
            assert_verified(memory)
    assert (vault.root / "notes/later.md").exists()
    assert vault.status() == ""


def content_at(vault, revision, path):
    shown = vault.run("show", f"{revision}:{path}", check=False)
    return shown.stdout if shown.returncode == 0 else None


def test_the_last_change_is_undone_and_then_the_one_before(vault):
    with vault.memory() as memory:
        memory.remember("Ana plays the cello in town")
        memory.forget(MILK)
        vault.write("notes/mine.md", "By hand.\n")
        vault.save("mine")
        assert [memory.timeline.undo().changes[0].text for _ in range(2)] == [MILK, "Ana plays the cello in town"]
        newest = memory.timeline.log(1)[0]
        assert (newest.who, newest.what) == ("owner", "took back: remember: Ana plays the cello in town")
        again = memory.timeline.undo(newest.commit.id)
        assert [(change.how, change.text) for change in again.changes] == [("learned", "Ana plays the cello in town")]


@pytest.mark.slow
def test_a_night_is_a_change_like_any_other_to_the_last_one(vault, tmp_path, monkeypatch):
    has_a_night(vault, tmp_path, monkeypatch)
    with vault.memory() as memory:
        assert len(memory.timeline.undo("last night").commits) == 2
        assert [commit.subject for commit in memory.timeline.undo().commits] == ["remember: Tom sails at night"]


def test_a_dry_run_says_what_would_be_done_and_does_nothing(vault):
    with vault.memory() as memory:
        commit = memory.forget(MILK).commit
        now = vault.notes()
        meant = memory.timeline.undo(commit, dry_run=True)
        assert (meant.commit, vault.head(), vault.notes()) == (None, commit, now)
        assert [(change.how, change.text) for change in meant.changes] == [("learned", MILK)]
        assert memory.timeline.undo(commit).changes == meant.changes


def test_a_fact_that_a_night_has_approved_goes_with_what_taught_it(vault, monkeypatch):
    with vault.memory() as memory:
        learned = memory.remember("Ana plays the cello in town")
    tidying(vault, monkeypatch)(lambda context: [decide(context, learned.path, approve, kind="approve")])
    with vault.memory() as memory:
        assert memory.timeline.undo(learned.commit).kept == {}
        assert not (vault.root / learned.path).exists()


def test_a_fact_that_was_changed_since_stays_and_the_next_step_is_said(vault):
    with vault.memory() as memory:
        for how in ("edited", "said again", "not committed"):
            text = f"Ana plays the cello {how}"
            learned = memory.remember(text)
            note = vault.root / learned.path
            if how == "said again":
                memory.remember(text)
            else:
                note.write_bytes(note.read_bytes() + MINE)
            if how == "edited":
                vault.save("mine")
            now = note.read_bytes()
            said = str(refused(lambda learned=learned: memory.timeline.undo(learned.commit), BadInputError))
            assert f"quaid forget {learned.path}" in said
            assert ("quaid undo" in said) == (how != "not committed")
            assert note.read_bytes() == now


def test_a_note_is_found_where_its_owner_has_moved_it(vault):
    with vault.memory() as memory:
        replaced = memory.remember("Maya lives in Porto with Tom", replaces=HOME)
        old = find(vault, HOME)
        vault.git("mv", old, "facts/home.md")
        vault.save("moved")
        memory.timeline.undo(replaced.commit)
        assert b"superseded_by" not in (vault.root / "facts/home.md").read_bytes()
        assert not (vault.root / replaced.path).exists()
        assert not (vault.root / old).exists()


def test_what_is_not_quaids_is_undone_only_when_that_is_said(vault):
    vault.write("USER.md", "# Maya\n\nShe likes tea.\n")
    mine = vault.save("tea")
    with vault.memory() as memory:
        assert "--any" in str(refused(lambda: memory.timeline.undo(mine), BadInputError))
        assert "like tea" not in (vault.root / "USER.md").read_text()
        memory.timeline.undo(mine, anybodys=True)
    assert "tea" not in (vault.root / "USER.md").read_text()
    assert vault.git("log", "-1", "--format=%s") == "undo: tea"


def test_the_vault_itself_a_commit_of_another_branch_and_a_cut_history_are_refused(vault, tmp_path):
    first = vault.git("rev-list", "--max-parents=0", "HEAD")
    vault.git("checkout", "-q", "-b", "other", first)
    vault.write("elsewhere.md", "Elsewhere.\n")
    elsewhere = vault.save("elsewhere")
    vault.git("checkout", "-q", "main")
    with vault.memory() as memory:
        assert "made the vault itself" in str(refused(lambda: memory.timeline.undo(first, anybodys=True)))
        assert "No run and no commit" in str(refused(lambda: memory.timeline.undo(elsewhere, anybodys=True)))
        assert "No run and no commit" in str(refused(lambda: memory.timeline.undo("nonsense")))
    clone = Vault(tmp_path / "clone")
    vault.git("clone", "-q", "--depth", "1", f"file://{vault.root}", str(clone.root))
    with clone.memory() as memory:
        assert "--unshallow" in str(refused(lambda: memory.timeline.undo("HEAD", anybodys=True)))


def test_of_many_notes_those_that_were_changed_stay_and_are_named(vault, capsys):
    one, two = remember(vault, "Ana plays the cello in town", "Ben paints old boats")
    commit = vault.head()
    note = vault.root / one
    note.write_bytes(note.read_bytes() + MINE)
    vault.save("mine")
    assert main(["--vault", str(vault.root), "undo", commit]) == 0
    told = capsys.readouterr()
    assert "the whole note" in told.out
    assert "- Ben paints old boats" in told.out
    assert "Take that back with: quaid undo" in told.err
    assert note.exists()
    assert not (vault.root / two).exists()


def test_uncommitted_work_of_the_owner_is_neither_lost_nor_committed(vault):
    with vault.memory() as memory:
        confirmed = memory.remember(MILK)
        note = vault.root / confirmed.path
        note.write_bytes(note.read_bytes() + MINE)
        memory.timeline.undo(confirmed.commit)
    assert note.read_bytes().endswith(MINE)
    assert MINE.strip() not in vault.run("show", f"HEAD:{confirmed.path}").stdout
    assert b"confirmations" not in note.read_bytes()


def test_one_approval_of_a_shared_commit_is_undone_alone(vault, monkeypatch):
    paths = remember(vault, "Ana plays the cello", "Tom repairs old clocks", "Lea sails at night")

    def plan(context):
        for path in paths:
            if b"status: active" in context.read(path):
                fact = parse_fact(path, context.read(path))
                yield decide(context, path, approve, kind="approve", is_minor=True, facts=(fact.id,), why="It is true.")

    tidy = tidying(vault, monkeypatch)
    assert len(tidy(plan).done) == 3
    shared = vault.git("log", "-1", "--format=%B", "HEAD^2")
    assert shared.count("It is true.") == 1
    assert shared.splitlines()[4:7] == [f"- {path}" for path in paths]
    with vault.memory() as memory:
        undone = memory.timeline.undo(paths[1].rsplit("/", 1)[1])
        assert len(undone.commits) == 1
        assert "status: active" in (vault.root / paths[1]).read_text()
        assert all(b"status: approved" in (vault.root / path).read_bytes() for path in (paths[0], paths[2]))
        assert memory.timeline.undo(undone.commit).commit, "the undo is undone as well"
        memory.timeline.undo(paths[1])
    report = tidy(plan)
    assert (report.done, report.vetoed) == ([], 1)
    with vault.memory() as memory:
        memory.timeline.undo(paths[0])
    assert tidy(plan).vetoed == 2, "each of them is a veto of its own"
    with vault.memory() as memory:
        assert_verified(memory)
