"""The tree of a commit is made as git makes it, from the folders around what changes."""

from __future__ import annotations

from functools import partial

import pytest
from git_vaults import NOTE, SAY, ours, theirs
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from quaid.errors import GitError
from quaid.history import trees
from quaid.history.git_output import Version
from quaid.history.staging import Stage
from quaid.model import Edit

NAMES = st.sampled_from(["a", "a.md", "a-b", "a b", "ä", "b", "B.md", "\udcff"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)


def without_clashes(paths: set[str]) -> set[str]:
    """Those that no other lies in."""
    return {path for path in paths if not any(other.startswith(path + "/") for other in paths)}


@given(before=st.sets(PATHS, max_size=8), after=st.sets(PATHS, min_size=1, max_size=5), data=st.data())
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_tree_is_what_an_index_would_make_of_it(vault, tmp_path_factory, before, after, data):
    def git(*args: str, stdin: bytes) -> str:
        return vault.run(*args, stdin=stdin).stdout.decode().strip()

    blobs = [git("hash-object", "-w", "--stdin", stdin=text) for text in (b"one", b"two")]
    everything = without_clashes(before | after)
    before, after = before & everything, after & everything
    removed = set(data.draw(st.lists(st.sampled_from(sorted(before)))) if before else ())
    changes = {path: Version("100755", blobs[1]) for path in after} | dict.fromkeys(removed)
    assume(changes)

    def write(files: dict[str, Version | None]) -> str:
        vault.git("read-tree", "--empty")
        lines = (f"{version.mode} {version.blob}\t{path}\0" for path, version in files.items() if version)
        git("update-index", "-z", "--index-info", stdin="".join(lines).encode("utf-8", "surrogateescape"))
        return git("write-tree", stdin=b"")

    old: dict[str, Version | None] = {path: Version("100644", blobs[0]) for path in before}
    commit = git("commit-tree", write(old), stdin=b"x")
    run = partial(_run, vault)
    folders = trees.read(run, commit, changes)
    assert {path: folders.find(path) for path in changes} == {path: old.get(path) for path in changes}
    made = trees.write(run, tmp_path_factory.mktemp("trees") / "new", folders.change(changes), commit)
    assert made == write({**old, **changes})


def _run(vault, _doing, *args, stdin=b""):
    return 0, vault.run(*args, stdin=stdin).stdout


def test_a_file_in_the_place_of_a_folder_is_not_taken_out_by_a_note_below_it(vault):
    """Its owner has removed it and committed nothing yet."""
    vault.save("facts/2026", b"a file")
    (vault.root / "facts/2026").unlink()
    edit = vault.edit("facts/2026/b.md", NOTE)
    before = vault.head()
    with pytest.raises(GitError, match="both a file and as a directory"):
        vault.history.commit([edit], SAY)
    assert vault.head() == before


def test_what_was_committed_before_a_filter_was_configured_stays_as_it_is(vault):
    note = NOTE.replace(b"\n", b"\r\n")
    vault.save("facts/crlf.md", note)
    vault.save(".gitattributes", b"*.md text=auto\n")
    changed = note.replace(b"one", b"ONE")
    vault.write("facts/crlf.md", changed)
    assert vault.history.commit([Edit("facts/crlf.md", note, changed)], SAY).id
    assert vault.status() == ""
    vault.assert_sound()


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


def test_what_the_owner_has_staged_is_neither_committed_nor_a_reason_for_git_commit(vault, monkeypatch):
    vault.write("other.md", theirs())
    vault.write("mine.md", theirs())
    vault.run("add", "other.md", "mine.md")
    monkeypatch.setattr(Stage, "plan", lambda *_: pytest.fail("committed by `git commit`"))
    done = vault.commit("facts/a.md", ours())
    assert vault.files(done.id) == ["facts/a.md"]
    assert vault.status() == "A  mine.md\nM  other.md\n"
    vault.assert_sound()
