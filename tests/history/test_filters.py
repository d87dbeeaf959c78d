"""Line ends, filters, modes and links: git's own ways with files are kept."""

from __future__ import annotations

import subprocess

from git_vaults import NOTE, SAY, Vault, ours, theirs

from quaid.model import Edit


def test_line_ends_follow_the_users_settings(vault):
    vault.run("config", "core.autocrlf", "true")
    crlf = NOTE.replace(b"\n", b"\r\n")
    assert vault.commit("facts/new.md", crlf).id
    assert vault.show("HEAD:facts/new.md") == NOTE
    assert vault.commit("facts/new.md", ours(crlf)).left == ()
    assert vault.git("show", "--format=", "--numstat").split()[:2] == ["1", "1"]
    vault.write("facts/new.md", theirs(ours(crlf)))
    assert vault.commit("facts/new.md", theirs(ours(crlf)).replace(b"four", b"FOUR")).left == ()
    assert vault.show("HEAD:facts/new.md") == ours().replace(b"four", b"FOUR")
    assert vault.status() == " M facts/new.md\n"
    assert vault.history.read_at("HEAD", "facts/new.md") == ours(crlf).replace(b"four", b"FOUR")


def test_a_note_committed_with_crlf_keeps_it_under_text_auto(vault):
    crlf = NOTE.replace(b"\n", b"\r\n")
    vault.save("facts/crlf.md", crlf)
    vault.save(".gitattributes", b"* text=auto\n")
    assert vault.commit("facts/crlf.md", ours(crlf)).left == ()
    assert vault.show("HEAD:facts/crlf.md") == ours(crlf)
    vault.write("facts/crlf.md", theirs(ours(crlf)))
    vault.run("add", "facts/crlf.md")
    vault.write("facts/crlf.md", ours(crlf))
    assert vault.commit("facts/crlf.md", ours(crlf).replace(b"four", b"FOUR")).left == ()
    assert vault.show("HEAD:facts/crlf.md") == ours(crlf).replace(b"four", b"FOUR")


def test_what_was_committed_before_a_filter_was_configured_stays_as_it_is(vault):
    note = NOTE.replace(b"\n", b"\r\n")
    vault.save("facts/crlf.md", note)
    vault.save(".gitattributes", b"*.md text=auto\n")
    changed = note.replace(b"one", b"ONE")
    vault.write("facts/crlf.md", changed)
    assert vault.history.commit([Edit("facts/crlf.md", note, changed)], SAY).id
    assert vault.status() == ""
    vault.assert_sound()


def test_clean_filters_are_applied(vault):
    vault.run("config", "filter.upper.clean", "tr a-z A-Z")
    vault.run("config", "filter.upper.smudge", "tr A-Z a-z")
    vault.save(".gitattributes", b"secret/* filter=upper\n")
    assert vault.commit("secret/a.md", b"one\ntwo\nthree\nfour\nfive\n").id
    assert vault.commit("secret/a.md", b"one\n2\nthree\nfour\nfive\n").left == ()
    assert vault.show("HEAD:secret/a.md") == b"ONE\n2\nTHREE\nFOUR\nFIVE\n"
    assert vault.history.read_at("HEAD", "secret/a.md") == b"one\n2\nthree\nfour\nfive\n"
    vault.write("secret/a.md", b"one\n2\nthree\nfour\n5\n")
    assert vault.commit("secret/a.md", b"1\n2\nthree\nfour\n5\n").left == ()
    assert vault.show("HEAD:secret/a.md") == b"1\n2\nTHREE\nFOUR\nFIVE\n"
    vault.write("secret/a.md", b"1\n2\nthree\nfour\nfive\n")
    assert vault.status() == ""
    assert vault.commit("secret/a.md", None).left == ()


def test_the_executable_bit_is_the_users(vault):
    path = vault.root / "facts/a.md"
    path.chmod(0o755)
    vault.save("facts/a.md", theirs())
    path.chmod(0o644)
    vault.write("other.md", NOTE)
    (vault.root / "other.md").chmod(0o755)
    vault.history.commit([vault.edit("facts/a.md", ours()), vault.edit("other.md", ours())], SAY)
    tree = vault.git("ls-tree", "-r", "HEAD")
    assert tree.startswith("100755")
    assert "100644" in tree.splitlines()[1]
    assert vault.git("diff", "--summary") == (
        " mode change 100755 => 100644 facts/a.md\n mode change 100644 => 100755 other.md\n"
    )


def test_nothing_is_committed_through_a_symbolic_link(vault, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (vault.root / "linked").symlink_to(outside)
    (outside / "target.md").write_bytes(NOTE)
    (vault.root / "link.md").symlink_to(outside / "target.md")
    vault.run("add", "link.md", "linked")
    vault.run("commit", "-qm", "links")
    edits = [vault.edit("linked/a.md", NOTE), vault.edit("link.md", ours()), vault.edit("facts/b.md", NOTE)]
    assert vault.history.commit(edits, SAY).left == ("linked/a.md", "link.md")
    assert vault.files() == ["facts/b.md"]
    assert vault.status() == ""


def test_a_sparse_checkout_stays_sparse(vault):
    vault.save("far/away.md", NOTE)
    vault.save("far/note.md", NOTE)
    vault.run("sparse-checkout", "set", "--no-cone", "/facts/", "/new/")
    assert not (vault.root / "far/away.md").exists()
    assert vault.commit("facts/a.md", ours()).left == ()
    assert vault.commit("elsewhere/b.md", NOTE).left == ()
    assert vault.files() == ["elsewhere/b.md"]
    assert vault.status() == ""
    assert vault.git("ls-files", "-t", "far").split() == ["S", "far/away.md", "S", "far/note.md"]
    vault.write("far/note.md", NOTE)
    assert vault.commit("far/note.md", ours()).left == ()
    assert vault.show("HEAD:far/note.md") == ours()
    assert vault.status() == ""


def test_a_note_assumed_unchanged_is_committed_all_the_same(vault):
    vault.run("update-index", "--assume-unchanged", "facts/a.md")
    assert vault.commit("facts/a.md", ours()).left == ()
    assert vault.show("HEAD:facts/a.md") == ours()
    assert vault.status() == ""


def test_a_split_index_and_one_of_version_4_are_understood(vault):
    vault.run("config", "core.splitIndex", "true")
    vault.run("update-index", "--split-index")
    assert vault.commit("facts/b.md", NOTE).left == ()
    vault.run("update-index", "--no-split-index", "--index-version", "4")
    assert vault.commit("facts/c.md", NOTE).left == ()
    assert vault.status() == ""
    vault.assert_sound()


def test_a_repository_of_sha256_works_like_any_other(tmp_path):
    root = tmp_path / "vault"
    subprocess.run(["git", "init", "-q", "-b", "main", "--object-format=sha256", str(root)], check=True)
    vault = Vault(root)
    assert len(vault.commit("a.md", NOTE).id) == 64
    vault.write("a.md", theirs())
    assert vault.commit("a.md", ours(theirs())).left == ()
    vault.run("checkout", "-q", ".")
    assert vault.commit("a.md", None).left == ()
    assert vault.status() == ""
