"""A commit holds what Quaid changed; what the owner has staged or not stays as it is."""

from __future__ import annotations

import os
import random

import pytest
from git_vaults import NOTE, SAY, ours, theirs

from quaid.errors import GitError
from quaid.history.git import Git
from quaid.model import Committed, Edit


def test_a_new_note_is_one_commit_and_leaves_nothing_behind(vault):
    base = vault.head()
    done = vault.commit("facts/2026/11/b.md", b"new\n")
    assert done == Committed(vault.head(), ())
    assert vault.git("rev-parse", "HEAD^").strip() == base
    assert vault.files() == ["facts/2026/11/b.md"]
    assert vault.status() == ""
    vault.assert_sound()


def test_an_edit_a_removal_and_a_rename_are_committed_as_such(vault):
    edits = [vault.edit("facts/a.md", None), vault.edit("facts/b.md", NOTE), vault.edit("other.md", ours())]
    assert vault.history.commit(edits, SAY).left == ()
    assert vault.git("show", "--format=", "--name-status", "-M").split() == [
        "R100", "facts/a.md", "facts/b.md", "M", "other.md",
    ]  # fmt: skip
    assert vault.status() == ""
    vault.assert_sound()


def test_git_remembers_the_files_it_read_and_need_not_read_them_again(vault):
    vault.status()
    vault.history.commit([vault.edit("facts/b.md", b"new\n"), vault.edit("facts/a.md", ours())], SAY)
    assert vault.git("diff-files") == ""


def test_a_change_within_the_second_of_the_last_git_add_is_still_seen(vault):
    vault.git("config", "core.trustctime", "false")
    path, second = vault.root / "other.md", (1_700_000_000, 1_700_000_000)
    os.utime(path, second)
    vault.git("add", "--renormalize", ".")
    path.write_bytes(path.read_bytes().swapcase())  # as long as before, and git keeps whole seconds
    for changed in (path, vault.root / ".git" / "index"):
        os.utime(changed, second)
    vault.commit("facts/b.md", b"new\n")
    assert vault.status() == " M other.md\n"


def test_hundreds_of_notes_fit_in_one_commit(vault):
    edits = [vault.edit(f"facts/n{i}.md", b"%d\n" % i) for i in range(300)]
    assert vault.history.commit(edits, SAY).left == ()
    assert len(vault.files()) == 300
    assert vault.status() == ""


def test_the_first_commit_of_a_repository(empty):
    done = empty.commit("facts/a.md", NOTE)
    assert done.id == empty.head()
    assert empty.git("log", "--format=%s %P").strip() == "remember: a fact"
    assert empty.status() == ""
    empty.assert_sound()


def test_the_first_commit_leaves_out_what_the_user_has_staged(empty):
    empty.write("mine.md", b"mine\n")
    empty.run("add", "mine.md")
    empty.commit("facts/a.md", NOTE)
    assert empty.files() == ["facts/a.md"]
    assert empty.status() == "A  mine.md\n"


def test_a_change_that_head_has_already_makes_no_commit(vault):
    before, index = vault.head(), vault.index()
    assert vault.history.commit([Edit("facts/a.md", ours(), NOTE)], SAY) == Committed(None, ())
    assert vault.history.commit([], SAY) == Committed(None, ())
    assert (vault.head(), vault.index()) == (before, index)
    vault.assert_sound()


def test_the_users_other_work_stays_as_it_is(vault):
    vault.write("staged.md", b"staged\n")
    vault.run("add", "staged.md")
    vault.write("other.md", ours())
    vault.run("add", "other.md")
    vault.write("other.md", theirs(ours()))
    vault.write("untracked.md", b"untracked\n")
    vault.write("intended.md", b"intended\n")
    vault.run("add", "-N", "intended.md")
    before = [vault.status(), vault.git("diff"), vault.git("diff", "--cached")]
    vault.commit("facts/a.md", ours())
    assert vault.files() == ["facts/a.md"]
    assert [vault.status(), vault.git("diff"), vault.git("diff", "--cached")] == before
    vault.assert_sound()


NAMES = (
    "with space.md", "\"quotes' and\\slash.md", "Zoë Müller.md", "🙂.md", "-leading.md", "--help", "two\nlines.md",
    "tab\t.md", "*.md", "[a].md", ":(top)x.md", "a;b$(c).md", "#x.md", "!x.md", " ", "\n",
)  # fmt: skip


@pytest.mark.slow
def test_any_file_name_can_be_made_edited_logged_and_removed(vault):
    paths = sorted(f"facts/{name}" for name in NAMES)
    vault.write("facts/staged.md", b"x")
    vault.run("add", "facts/staged.md")
    for after in (NOTE, ours(), None):
        done = vault.history.commit([vault.edit(path, after) for path in paths], SAY)
        assert done.left == ()
        assert sorted(vault.files()) == paths
        assert sorted(vault.history.log(limit=1)[0].files) == paths
        assert [vault.history.read_at("HEAD", path) for path in paths] == [after] * len(paths)
    assert vault.status() == "A  facts/staged.md\n"
    assert [len(vault.history.log(paths=[path])) for path in paths] == [3] * len(paths)


def test_a_file_in_the_place_of_a_folder_is_not_taken_out_by_a_note_below_it(vault):
    """Its owner has removed it and committed nothing yet."""
    vault.save("facts/2026", b"a file")
    (vault.root / "facts/2026").unlink()
    edit = vault.edit("facts/2026/b.md", NOTE)
    before = vault.head()
    with pytest.raises(GitError, match="both a file and as a directory"):
        vault.history.commit([edit], SAY)
    assert vault.head() == before


def test_the_last_note_of_a_folder_takes_it_along(vault):
    vault.save("facts/2026/11/b.md", NOTE)
    (vault.root / "facts/2026/11/b.md").unlink()
    assert vault.history.commit([Edit("facts/2026/11/b.md", NOTE, None)], SAY).id
    assert "facts/2026" not in vault.git("ls-tree", "-r", "-t", "--name-only", "HEAD").split()
    assert vault.status() == ""
    vault.assert_sound()


@pytest.mark.parametrize("name", ['"quoted".md', "two\nlines.md", "with space.md"])
def test_a_note_may_have_any_name(vault, name):
    assert vault.commit(f"facts/{name}", NOTE).id
    assert vault.show(f"HEAD:facts/{name}") == NOTE
    assert vault.status() == ""


def test_a_leading_dash_at_the_top_is_a_file_not_an_option(vault):
    assert vault.commit("-x.md", NOTE).id
    vault.write("-x.md", theirs())
    assert vault.commit("-x.md", ours(theirs())).left == ()
    assert vault.show("HEAD:-x.md") == ours()


HALF = NOTE.replace(b"seven", b"SEVEN (staged)")
WHOLE = HALF.replace(b"id: 01a", b"id: 01b")
TWO = NOTE.replace(b"two", b"2 (Maya)")


def change(data):
    return data.replace(b"four", b"FOUR (Quaid)")


@pytest.mark.parametrize(
    ("staged", "disk", "status"),
    [(None, theirs(), " M"), (theirs(), theirs(), "M "), (HALF, WHOLE, "MM"), (theirs(), NOTE, "MM")],
    ids=["unstaged", "staged", "both", "undone on disk"],
)
def test_the_users_changes_in_the_same_note_stay_staged_or_not(vault, staged, disk, status):
    if staged:
        vault.write("facts/a.md", staged)
        vault.run("add", "facts/a.md")
    vault.write("facts/a.md", disk)
    assert vault.commit("facts/a.md", change(disk)).left == ()
    assert vault.show("HEAD:facts/a.md") == change(NOTE)
    assert vault.show(":facts/a.md") == change(staged or NOTE)
    assert vault.read("facts/a.md") == change(disk)
    assert vault.status() == f"{status} facts/a.md\n"
    vault.assert_sound()


@pytest.mark.parametrize(("staged", "disk"), [(None, TWO), (TWO, NOTE)], ids=["unstaged", "staged"])
def test_changes_of_the_same_line_cannot_be_told_apart_and_are_left(vault, staged, disk):
    if staged:
        vault.write("facts/a.md", staged)
        vault.run("add", "facts/a.md")
    vault.write("facts/a.md", disk)
    before, index = vault.head(), vault.index()
    assert vault.commit("facts/a.md", ours()) == Committed(None, ("facts/a.md",))
    assert (vault.head(), vault.index()) == (before, index)
    vault.assert_sound()


def test_what_can_be_committed_is_while_the_rest_is_left(vault):
    vault.write("untracked.md", NOTE)
    edits = [vault.edit("untracked.md", ours()), vault.edit("facts/a.md", ours())]
    done = vault.history.commit(edits, SAY)
    assert done.left == ("untracked.md",)
    assert vault.files() == ["facts/a.md"]
    assert vault.status() == "?? untracked.md\n"


def test_notes_git_does_not_have_are_left(vault):
    vault.write("untracked.md", NOTE)
    vault.write("gone.md", NOTE)
    vault.write("added.md", NOTE)
    vault.write("intended.md", b"")
    vault.run("add", "added.md")
    vault.run("add", "-N", "intended.md")
    changed = ("untracked", "added", "intended")
    edits = [vault.edit("gone.md", None), *(vault.edit(f"{name}.md", ours()) for name in changed)]
    before = vault.git("diff", "--cached")
    assert vault.history.commit(edits, SAY) == Committed(None, tuple(edit.rel_path for edit in edits))
    assert vault.git("diff", "--cached") == before


def test_a_note_the_user_is_deleting_is_left(vault):
    vault.run("rm", "-q", "--cached", "facts/a.md")
    vault.write("other.md", None)
    edits = [vault.edit("facts/a.md", ours()), vault.edit("other.md", ours())]
    assert vault.history.commit(edits, SAY) == Committed(None, ("facts/a.md", "other.md"))
    assert vault.status() == "D  facts/a.md\n M other.md\n?? facts/a.md\n"


def test_removing_a_note_with_changes_of_the_user_is_left(vault):
    vault.write("facts/a.md", theirs())
    vault.write("other.md", theirs())
    vault.run("add", "other.md")
    vault.write("other.md", NOTE)
    edits = [vault.edit("facts/a.md", None), vault.edit("other.md", None)]
    assert vault.history.commit(edits, SAY) == Committed(None, ("facts/a.md", "other.md"))


def test_ignored_notes_are_left_unless_they_are_tracked(vault):
    vault.save(".gitignore", b"facts/\n")
    edits = [vault.edit("facts/new.md", NOTE), vault.edit("facts/a.md", ours())]
    done = vault.history.commit(edits, SAY)
    assert done.left == ("facts/new.md",)
    assert done.refusal.endswith("Take that rule out.")
    assert vault.files() == ["facts/a.md"]


def test_a_note_with_unresolved_conflicts_is_left(vault):
    vault.write("facts/a.md", theirs())
    vault.run("stash", "-q")
    vault.save("facts/a.md", NOTE.replace(b"six", b"6"))
    vault.run("stash", "apply", "-q", check=False)
    assert "UU facts/a.md" in vault.status()
    edits = [vault.edit("facts/a.md", ours(vault.read("facts/a.md"))), vault.edit("facts/b.md", NOTE)]
    assert vault.history.commit(edits, SAY).left == ("facts/a.md",)
    assert vault.files() == ["facts/b.md"]
    assert vault.status() == "UU facts/a.md\n"


def test_somebody_saving_over_the_note_meanwhile_is_not_committed(vault, monkeypatch):
    run = Git.run

    def save_first(self, doing, *args, **options):
        if args[0] == "add":
            vault.write("facts/a.md", theirs(ours()))
        return run(self, doing, *args, **options)

    monkeypatch.setattr(Git, "run", save_first)
    assert vault.commit("facts/a.md", ours()).left == ()
    assert vault.show("HEAD:facts/a.md") == ours()
    assert vault.show(":facts/a.md") == ours()
    assert vault.status() == " M facts/a.md\n"


def change_line(rng: random.Random, data: bytes, lines: range, word: bytes) -> bytes:
    parts = data.split(b"\n")
    number = rng.choice(lines)
    parts[number] = word + b" %d" % rng.randrange(1000)
    return b"\n".join(parts)


@pytest.mark.matrix
@pytest.mark.parametrize("seed", range(12))
def test_a_commit_of_ours_leaves_any_state_of_the_user_intact(empty, seed):
    """Line 10 and 20 of each note are Quaid's, lines 0-8 are staged by the user, 12-18 and 22-28 are not."""
    rng = random.Random(seed)
    vault = empty
    note = b"".join(b"line %d\n" % i for i in range(30))
    names = [f"n{i} ü.md" for i in range(6)]
    for name in names:
        vault.write(name, note)
    vault.run("add", "-A")
    vault.run("commit", "-qm", "start")
    for name in rng.sample(names, 4):
        if rng.random() < 0.6:
            vault.write(name, change_line(rng, vault.read(name), range(9), b"staged"))
            vault.run("add", name)
        if rng.random() < 0.6:
            vault.write(name, change_line(rng, vault.read(name), range(12, 19), b"unstaged"))
    vault.write("untracked.md", b"untracked\n")
    if rng.random() < 0.5:
        vault.write("added.md", b"added\n")
        vault.run("add", "added.md")
    if rng.random() < 0.5:
        vault.run("rm", "-qf", names[5])
    chosen = [name for name in rng.sample(names, rng.randint(1, 3)) if vault.read(name) is not None]
    rest = [name for name in names if name not in chosen]
    index = {name: vault.run("cat-file", "blob", f":{name}", check=False).stdout for name in names}
    disk = {name: vault.read(name) for name in names}
    before = [vault.git(*command, "--", "added.md", *rest) for command in (("diff",), ("diff", "--cached"))]

    ours_of = lambda data: data.replace(b"line 10\n", b"quaid 10\n").replace(b"line 20\n", b"quaid 20\n")  # noqa: E731
    edits = [vault.edit(name, ours_of(disk[name])) for name in chosen] + [vault.edit("new.md", b"new\n")]
    done = vault.history.commit(edits, SAY)

    assert done.left == ()
    assert sorted(vault.files()) == sorted([*chosen, "new.md"])
    assert before == [vault.git(*command, "--", "added.md", *rest) for command in (("diff",), ("diff", "--cached"))]
    for name in chosen:
        assert vault.show(f"HEAD:{name}") == ours_of(note)
        assert vault.show(f":{name}") == ours_of(index[name])
        assert vault.read(name) == ours_of(disk[name])
    assert vault.read("untracked.md") == b"untracked\n"
    vault.assert_sound()
