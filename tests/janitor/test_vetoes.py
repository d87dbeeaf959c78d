"""What the owner has taken back stays taken back, whatever becomes of the ids of commits; and how a night is undone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from janitor_nights import approve, decide, remember, rewriting, tidying
from vaults import Vault, assert_verified

from quaid.errors import BadInputError
from quaid.model import Edit
from quaid.place import state_folder

SQUASHED = "A quiet evening"
BY_QUAID = ("commit", "-q", "--amend", "--author", "Quaid <quaid@localhost>", "--no-edit")


def two_rewrites(vault):
    """Plans that reword two facts, each in a commit of its own, and the paths of these facts."""
    one, two = remember(vault, "Maya drinks oat milk", "Tom repairs old clocks")
    plans = [rewriting(one, "Maya drinks oat milk every day"), rewriting(two, "Tom repairs clocks", task="task1")]
    return plans, (one, two)


def undo(vault, reference):
    with vault.memory() as memory:
        done = memory.timeline.undo(reference)
        assert_verified(memory)
    return done


def by_quaid(vault, run):
    undo(vault, run)


def by_revert_of_the_night(vault, run):
    vault.git("revert", "--no-edit", "-m", "1", "HEAD")


def by_revert_of_each(vault, run):
    vault.git("revert", "--no-edit", "HEAD^2", "HEAD^2~1")


def by_hand(vault, run):
    before = vault.git("rev-parse", "HEAD^1")
    vault.git("checkout", "-q", before, "--", "facts")
    vault.git("commit", "-qam", "No.")


def nothing(vault):
    return vault


def rebase(vault):
    """Somebody else has pushed meanwhile; merges and ids are gone, and git has swept them up."""
    origin = Vault(vault.root.parent / "origin.git")
    vault.git("clone", "-q", "--bare", "--no-local", str(vault.root), str(origin.root))
    other = Vault(vault.root.parent / "other")
    vault.git("clone", "-q", str(origin.root), str(other.root))
    other.git("reset", "-q", "--hard", other.git("rev-list", "--max-parents=0", "HEAD"))
    other.write("notes/elsewhere.md", "Written on another machine.\n")
    other.save("elsewhere")
    other.git("push", "-qf", "origin", "HEAD")
    vault.git("remote", "add", "origin", str(origin.root))
    vault.git("fetch", "-q")
    vault.git("branch", "-q", "-u", "origin/main")
    known = vault.git("rev-list", "HEAD").splitlines()
    vault.git("pull", "-q", "--rebase")
    assert set(known[:-1]).isdisjoint(vault.git("rev-list", "HEAD").splitlines())
    assert (vault.root / "notes" / "elsewhere.md").exists()
    return collect(vault)


def collect(vault):
    vault.git("reflog", "expire", "--expire=now", "--all")
    vault.git("gc", "-q", "--prune=now")
    return vault


def amend(vault):
    vault.git("commit", "-q", "--amend", "-m", SQUASHED)
    return collect(vault)


def squash(vault):
    """The last commit becomes part of one with other work, also in the notes that it is about."""
    (note,) = [path for path in (vault.root / "facts").rglob("*.md") if "clocks" in path.name]
    note.write_text(note.read_text() + "\nHe has a cellar full of them.\n")
    vault.write("notes/evening.md", "It was quiet.\n")
    return amend_all(vault)


def amend_all(vault):
    vault.git("add", "-A")
    return amend(vault)


def squash_with_all_messages(vault):
    """As `git rebase -i` with squash does it: one message after the other, the ids in it known to nobody."""
    said = vault.git("log", "-1", "--format=%B")
    vault.write("notes/evening.md", "It was quiet.\n")
    vault.git("add", "-A")
    vault.git("commit", "-q", "--amend", "--reset-author", "-m", f"{SQUASHED}\n\n{said}\n\nAnd then I slept.")
    return collect(vault)


def pick(vault):
    """A clone that has the night takes over the commit that takes it back."""
    other = Vault(vault.root.parent / "other")
    vault.git("clone", "-q", "--no-local", str(vault.root), str(other.root))
    other.git("reset", "-q", "--hard", "HEAD~1")
    other.write("notes/elsewhere.md", "Written on another machine.\n")
    other.save("elsewhere")
    other.git("cherry-pick", "-x", "origin/main")
    other.git("remote", "remove", "origin")
    return collect(other)


def assert_vetoed(vault, plans, paths, monkeypatch):
    report = tidying(vault, monkeypatch)(*plans)
    assert (report.vetoed, report.done, report.asked, report.failed) == (2, [], [], {})
    # On other evidence it is another decision.
    again = rewriting(paths[0], "Maya drinks oat milk every day", evidence="new", always_asks=True)
    assert len(tidying(vault, monkeypatch)(again).asked) == 1


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("back", "then"),
    [
        *((by_quaid, then) for then in (rebase, amend, squash_with_all_messages, pick)),
        *((by_revert_of_the_night, then) for then in (rebase, squash, pick)),
        (by_revert_of_each, rebase),
        (by_quaid, nothing),
        (by_hand, nothing),
    ],
)
def test_what_is_taken_back_is_not_done_again_whatever_becomes_of_the_history(vault, tidy, monkeypatch, back, then):
    plans, paths = two_rewrites(vault)
    night = tidy(*plans)
    back(vault, night.run)
    assert "every day" not in (vault.root / paths[0]).read_text()
    assert_vetoed(then(vault), plans, paths, monkeypatch)


@pytest.mark.slow
def test_a_shallow_clone_knows_what_was_taken_back_within_it_and_says_that_it_is_cut_off(vault, tidy, monkeypatch):
    plans, paths = two_rewrites(vault)
    undo(vault, tidy(*plans).run)
    clone = Vault(vault.root.parent / "clone")
    vault.git("clone", "-q", "--depth", "1", f"file://{vault.root}", str(clone.root))
    assert "unshallow" in "".join(tidying(clone, monkeypatch)(*plans).remarks)
    assert_vetoed(clone, plans, paths, monkeypatch)


def test_a_revert_finds_a_note_that_was_renamed_since(vault, tidy):
    (one,) = remember(vault, "Maya drinks oat milk")
    tidy(rewriting(one, "Maya drinks oat milk every day"))
    vault.git("mv", one, "facts/renamed.md")
    vault.save("renamed")
    vault.git("revert", "--no-edit", "HEAD~1^2")
    vault.git("commit", "-q", "--amend", "-m", SQUASHED)
    vault.git("mv", "facts/renamed.md", one)
    vault.save("renamed back")
    assert tidy(rewriting(one, "Maya drinks oat milk every day")).vetoed == 1


def test_other_work_on_the_same_note_takes_nothing_back(vault, tidy):
    plans, (one, two) = two_rewrites(vault)
    tidy(*plans)
    for path, text in ((one, "Maya drinks oat milk every night"), (two, "Tom repairs clocks and bikes")):
        note = vault.root / path
        note.write_text(
            note.read_text().replace("Maya drinks oat milk every day", text).replace("Tom repairs clocks", text)
        )
    vault.save("better")
    assert tidy(*plans).vetoed == 0


@pytest.mark.slow
@pytest.mark.parametrize("how", ["undo", "revert", "by hand"])
def test_a_veto_that_is_taken_back_does_not_stand_after_a_rebase_either(vault, tidy, how):
    (one,) = remember(vault, "Maya drinks oat milk")
    plan = rewriting(one, "Maya drinks oat milk every day")
    done = undo(vault, tidy(plan).run).commit
    if how == "undo":
        undo(vault, done)
    elif how == "revert":
        vault.git("revert", "--no-edit", done)
    else:
        vault.git("checkout", "-q", f"{done}~1", "--", "facts")
        vault.git("commit", "-qm", SQUASHED)
    assert "every day" in (vault.root / one).read_text()
    rebase(vault)
    report = tidy(rewriting(one, "Maya drinks oat milk every morning"))  # the same decision, as its key says
    assert (report.vetoed, len([*report.done, *report.asked])) == (0, 1)


# Undoing


@pytest.mark.slow
def test_nights_that_changed_the_same_note_are_undone_in_any_order(vault, tidy):
    (one,) = remember(vault, "Maya drinks oat milk")
    note = vault.root / one
    note.write_text(note.read_text().rstrip() + "\n\nfirst\n\nsecond\n\nthird\n")
    vault.save("mine")
    before = note.read_bytes()

    def replacing(old, new):
        return lambda context: [decide(context, one, context.read(one).replace(old, new), evidence=new, kind="approve")]

    pairs = [(b"first", b"1st"), (b"second", b"2nd"), (b"third", b"3rd")]
    vault.git(*BY_QUAID)  # lines that its owner wrote are asked about
    runs = [tidy(replacing(old, new)).run for old, new in pairs]
    assert note.read_bytes() == before.replace(b"first", b"1st").replace(b"second", b"2nd").replace(b"third", b"3rd")
    for number in (1, 0, 2):
        undo(vault, runs[number])
    assert note.read_bytes() == before


@pytest.mark.slow
def test_a_night_whose_lines_a_later_one_has_changed_says_which_to_undo_first(vault, tidy):
    (one,) = remember(vault, "Maya drinks oat milk")
    before = (vault.root / one).read_bytes()
    first = tidy(rewriting(one, "Maya drinks oat milk every day"))
    second = tidy(rewriting(one, "Maya drinks tea", evidence="2"))
    with vault.memory() as memory, pytest.raises(BadInputError, match=f"rewrite {one[:20]}.*Undo that first"):
        memory.timeline.undo(first.run)
    undo(vault, second.run)
    undo(vault, first.run)
    assert (vault.root / one).read_bytes() == before


@pytest.mark.parametrize("what", ["the night", "its commit"])
def test_a_line_that_was_changed_since_stays_and_is_named(vault, tidy, what):
    core, (fact,) = "USER.md", remember(vault, "Maya drinks oat milk")
    before = {path: (vault.root / path).read_bytes() for path in (core, fact)}
    lines = "".join(f"- Maya has read book {number}\n" for number in range(33))
    vault.git(*BY_QUAID)

    def fold(context):
        told, settled = context.read(core) + lines.encode(), context.read(fact).replace(b"pending", b"active")
        edits = (Edit(core, context.read(core), told), Edit(fact, context.read(fact), settled))
        return [replace(decide(context, core, told, evidence="fold", kind="approve"), edits=edits)]

    night = tidy(fold)
    note = vault.root / core
    note.write_text(note.read_text().replace("read book 20", "read the twentieth book"))
    vault.save("mine")
    with vault.memory() as memory:
        reference = night.run if what == "the night" else memory.timeline.commits_of(night.run)[0].id
        undone = memory.timeline.undo(reference)
    assert undone.kept == {core: ["- Maya has read the twentieth book"]}
    assert note.read_bytes() == before[core] + b"- Maya has read the twentieth book\n"
    assert (vault.root / fact).read_bytes() == before[fact]


def test_undoing_a_night_takes_its_questions_along(vault, tidy):
    (fact,) = remember(vault, "Maya drinks oat milk")
    (other,) = remember(vault, "Tom sails")
    night = tidy(rewriting(fact, "Maya drinks tea", always_asks=True), rewriting(other, "Tom sails at night"))
    assert [path.name for path in (vault.root / "review").glob("rewrite-*.md")] != []
    undo(vault, night.run)
    assert list((vault.root / "review").glob("rewrite-*.md")) == []
    assert "at night" not in (vault.root / other).read_text()


@pytest.mark.slow
def test_one_decision_of_an_older_night_is_undone_alone(vault, tidy):
    plans, (one, two) = two_rewrites(vault)
    night = tidy(*plans)
    (three,) = remember(vault, "Ana sails at night")
    tidy(rewriting(three, "Ana sails at dawn"))
    rebase(vault)
    with vault.memory() as memory:
        (meant,) = [commit for commit in memory.timeline.commits_of(night.run) if "task1" in commit.subject]
    undo(vault, meant.id)
    assert "every day" in (vault.root / one).read_text()
    assert "old clocks" in (vault.root / two).read_text()
    assert "at dawn" in (vault.root / three).read_text()
    assert tidy(*plans).vetoed == 1


@pytest.mark.slow
def test_a_night_is_undone_after_a_rebase_has_flattened_it(vault, tidy):
    plans, paths = two_rewrites(vault)
    before = {path: (vault.root / path).read_bytes() for path in paths}
    night = tidy(*plans)
    vault.write("notes/mine.md", "Mine.\n")
    vault.save("mine")
    rebase(vault)
    done = undo(vault, night.run)
    assert len(done.commits) == 2
    assert {path: (vault.root / path).read_bytes() for path in paths} == before
    # Losing what only this machine knows costs no veto.
    for name in ("local.db", "local.db-wal", "local.db-shm"):
        (state_folder(vault.root) / name).unlink(missing_ok=True)
    assert tidy(*plans).vetoed == 2


@pytest.mark.slow
def test_small_decisions_of_one_commit_are_taken_back_together(vault, tidy):
    paths = remember(vault, "Maya drinks oat milk", "Tom repairs old clocks")
    for path in paths:
        note = vault.root / path
        note.write_text(note.read_text().replace("status: active", "status: pending"))
    vault.save("mine")
    vault.git(*BY_QUAID)

    def plan(context):
        for path in paths:
            if b"pending" in context.read(path):
                yield decide(context, path, approve, kind="approve", is_minor=True)

    assert len(tidy(plan).done) == 2
    by_hand(vault, "")
    rebase(vault)
    assert tidy(plan).vetoed == 2
