"""What a commit makes of the folders around its notes, and of their names."""

from __future__ import annotations

import pytest
from git_vaults import NOTE, SAY, ours, theirs

from quaid.errors import GitError
from quaid.model import Edit


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


def test_what_the_owner_has_staged_is_not_committed(vault):
    vault.write("other.md", theirs())
    vault.write("mine.md", theirs())
    vault.run("add", "other.md", "mine.md")
    done = vault.commit("facts/a.md", ours())
    assert vault.files(done.id) == ["facts/a.md"]
    assert vault.status() == "A  mine.md\nM  other.md\n"
    vault.assert_sound()
