"""A change of another repository, on a branch of its own: everything else there stays, and nothing of it is run."""

from __future__ import annotations

import os
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st
from vaults import OWNER, calm  # noqa: F401 - a fixture

from quaid.docs.changes import hunks, make_patch
from quaid.errors import LockedError, ProposalError
from quaid.history.git import Git
from quaid.history.proposal import name_branch, propose_branch

DOC = "docs/recall.md"
BEFORE = b"# Recall\n\nThe limit is 10.\n\nThe end.\n"
AFTER = BEFORE.replace(b"10", b"20")


def run(top, *args, check=True, stdin=None):
    done = subprocess.run(["git", *OWNER, *args], cwd=top, check=False, capture_output=True, input=stdin)
    assert not check or done.returncode == 0, done.stderr.decode()
    return done


def git(top, *args):
    return run(top, *args).stdout.decode().strip()


def put(top, name, data):
    path = top / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def make(top, *init):
    top.mkdir()
    git(top, "init", "-q", "-b", "main", *init)
    put(top, DOC, BEFORE)
    put(top, "code.py", b"limit = 10\n")
    git(top, "add", ".")
    git(top, "commit", "-qm", "begin")
    return top


@pytest.fixture
def house(calm, tmp_path):  # noqa: F811
    return make(tmp_path / "house")


def propose(top, before=BEFORE, after=AFTER, path=DOC, branch="quaid/docs/x"):
    return propose_branch(top, branch, path, before, after, "docs: the limit\n\nBecause.\n")


def seen(top):
    """All that a proposal must leave alone."""
    refs = [line for line in git(top, "for-each-ref").splitlines() if "refs/heads/quaid/" not in line]
    index = git(top, "ls-files", "-s", "-v"), git(top, "rev-parse", "HEAD"), (top / ".git").stat().st_mode
    disk = {p: p.read_bytes() for p in top.rglob("*") if p.is_file() and ".git" not in p.parts}
    return refs, index, git(top, "status", "--porcelain"), disk


def refused(top, match, **how):
    known = seen(top)
    with pytest.raises(ProposalError, match=match) as caught:
        propose(top, **how)
    assert "nothing was changed" in str(caught.value)
    assert seen(top) == known


def test_a_branch_has_the_change_and_nothing_else_has_it(house):
    put(house, "code.py", b"limit = 20\n")
    put(house, "staged.py", b"x\n")
    git(house, "add", "staged.py")
    known = seen(house)
    head = git(house, "rev-parse", "HEAD")
    made = propose(house / "docs")
    assert made.branch == "quaid/docs/x"
    assert seen(house) == known
    assert git(house, "diff", "--name-status", "main", made.branch) == f"M\t{DOC}"
    assert run(house, "cat-file", "blob", f"{made.commit}:{DOC}").stdout == AFTER
    assert git(house, "log", "-1", "--format=%an <%ae> %cn|%P|%B", made.branch) == (
        f"Quaid <quaid@localhost> Quaid|{head}|docs: the limit\n\nBecause."
    )
    git(house, "stash", "-q")
    git(house, "merge", "-q", "--no-edit", made.branch)
    assert (house / DOC).read_bytes() == AFTER


def test_the_same_again_finds_its_branch_and_another_is_refused(house):
    made = propose(house)
    assert propose(house) == made
    refused(house, "holds something else", after=BEFORE.replace(b"10", b"30"))
    git(house, "commit", "-qm", "more", "--allow-empty")
    assert propose(house).commit == made.commit
    git(house, "checkout", "-q", made.branch)
    git(house, "commit", "-qm", "theirs", "--allow-empty")
    git(house, "checkout", "-q", "main")
    refused(house, "holds something else")
    git(house, "merge", "-q", made.branch)
    refused(house, "all of the change already", before=AFTER)


def test_names_of_branches_are_plain_and_tell_contents_apart():
    name = name_branch("docs/Récall – notes.md", b"x")
    assert name.startswith("quaid/docs/r-call-notes-md-")
    assert name == name_branch("docs/Récall – notes.md", b"x") != name_branch("docs/Récall – notes.md", b"y")
    assert name_branch("日本", b"").startswith("quaid/docs/doc-")
    assert len(name_branch("x" * 300, b"")) < 90


def test_work_that_is_not_committed_is_not_passed_by(house):
    put(house, DOC, BEFORE + b"mine\n")
    refused(house, "holds what HEAD does not")
    git(house, "add", DOC)
    refused(house, "staged and not committed")
    put(house, DOC, BEFORE)
    refused(house, "staged and not committed")
    git(house, "reset", "-q", "--hard")
    (house / DOC).unlink()
    refused(house, "holds what HEAD does not")


def test_what_was_planned_on_something_else_is_refused(house):
    refused(house, "planned on", before=b"something else\n")
    put(house, "new.md", b"x\n")
    refused(house, "is not committed", path="new.md", before=b"x\n")


@pytest.mark.parametrize("name", ["a b.md", "-x.md", "é/日本.md", 'q"\\.md', "tab\there.md"])
def test_any_name_will_do_and_the_mode_is_kept(house, name):
    put(house, name, BEFORE)
    (house / name).chmod(0o755)
    git(house, "add", ".")
    git(house, "commit", "-qm", "name")
    made = propose(house, path=name)
    (line,) = run(house, "diff", "--raw", "-z", "main", made.branch).stdout.decode().split("\0")[:1]
    assert line.startswith(":100755 100755")


def test_a_folder_without_repository_or_commit_is_refused(calm, tmp_path):  # noqa: F811
    with pytest.raises(ProposalError, match="no work tree"):
        propose(tmp_path)
    git(tmp_path, "init", "-q")
    with pytest.raises(ProposalError, match="no commit yet"):
        propose(tmp_path)


def test_in_the_midst_of_a_merge_nothing_is_made(house):
    (house / ".git/MERGE_HEAD").write_text(git(house, "rev-parse", "HEAD") + "\n")
    with pytest.raises(LockedError, match="merge is in progress"):
        propose(house)


@pytest.mark.parametrize("name", ["quaid", "quaid/docs", "quaid/docs/x/y"])
def test_a_branch_in_the_way_of_the_name_is_named(house, name):
    git(house, "branch", name)
    refused(house, f"the branch {name} is in the way of one called quaid/docs/x")
    git(house, "branch", "-m", name, "elsewhere")
    assert propose(house).branch == "quaid/docs/x"


def test_of_two_that_make_the_same_branch_at_once_both_have_it(house, monkeypatch):
    query, looks = Git.query, []

    def look(self, *args, **options):
        """As it is before the other one has made it, the first time."""
        looks.extend(["looked"] if "for-each-ref" in args else [])
        return b"" if looks == ["looked"] and "for-each-ref" in args else query(self, *args, **options)

    made = propose(house)
    monkeypatch.setattr(Git, "query", look)
    assert propose(house) == made
    assert len(looks) == 2


def test_bare_repositories_have_no_files_and_their_worktrees_do(house, tmp_path):
    layout = tmp_path / "layout"
    git(tmp_path, "clone", "-q", "--bare", str(house), str(layout / ".git"))
    with pytest.raises(ProposalError, match="bare"):
        propose(layout)
    git(layout, "worktree", "add", "-q", "--detach", str(tmp_path / "tree"))
    made = propose(tmp_path / "tree")
    assert git(layout, "rev-parse", made.branch) == made.commit
    assert git(tmp_path / "tree", "status", "--porcelain") == ""


def test_a_detached_head_a_submodule_and_sha256_will_do(house, tmp_path):
    git(house, "checkout", "-q", "--detach")
    assert propose(house).branch == "quaid/docs/x"
    outer = make(tmp_path / "outer")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(house), "sub")
    git(outer, "commit", "-qm", "sub")
    made = propose(outer / "sub" / "docs", branch="quaid/docs/y")
    assert git(outer / "sub", "rev-parse", made.branch) == made.commit
    refused(outer, "another repository", path=f"sub/{DOC}")
    assert len(propose(make(tmp_path / "long", "--object-format=sha256")).commit) == 64


@pytest.mark.parametrize("cone", ["--cone", "--sparse-index"])
def test_a_file_that_a_sparse_checkout_leaves_out_will_do(house, cone):
    put(house, "other/a.md", b"x\n")
    git(house, "add", ".")
    git(house, "commit", "-qm", "other")
    git(house, "sparse-checkout", "set", cone, "other")
    assert not (house / DOC).exists()
    known = seen(house)
    made = propose(house)
    assert seen(house) == known
    assert git(house, "diff", "--name-only", "main", made.branch) == DOC


def test_links_and_split_indexes(house):
    (house / "link.md").symlink_to(DOC)
    (house / "linked").symlink_to("docs")
    git(house, "add", ".")
    git(house, "commit", "-qm", "link")
    refused(house, "symbolic link", path="link.md")
    refused(house, "symbolic link", path="linked/recall.md")
    git(house, "config", "core.splitIndex", "true")
    git(house, "update-index", "--split-index")
    known = sorted((house / ".git").iterdir())
    propose(house)
    assert sorted((house / ".git").iterdir()) == known


@pytest.mark.parametrize(("kept", "disk", "auto"), [
    (BEFORE, BEFORE.replace(b"\n", b"\r\n"), "true"),
    (BEFORE.replace(b"\n", b"\r\n"), BEFORE.replace(b"\n", b"\r\n"), "false"),
    (BEFORE.replace(b"\n", b"\r\n"), BEFORE, "false"),
    (BEFORE.replace(b".\n", b".\r\n"), BEFORE.replace(b".\n", b".\r\n"), "false"),
])  # fmt: skip
def test_line_ends_in_the_commit_are_those_that_git_keeps(house, kept, disk, auto):
    put(house, DOC, kept)
    git(house, "add", ".")
    git(house, "commit", "-q", "--allow-empty", "-m", "ends")
    git(house, "config", "core.autocrlf", auto)
    put(house, DOC, disk)
    made = propose(house, disk, disk.replace(b"10.", b"20.\r\nMore." if b"\r" in disk else b"20.\nMore."))
    changed = run(house, "cat-file", "blob", f"{made.commit}:{DOC}").stdout
    assert changed == kept.replace(b"10.", b"20.\r\nMore." if b".\r" in kept else b"20.\nMore.")


def test_mixed_line_ends_that_were_read_as_one_kind_are_refused(house):
    put(house, DOC, BEFORE.replace(b".\n", b".\r\n"))
    git(house, "commit", "-qam", "mixed")
    refused(house, "planned on")


def test_nothing_that_the_repository_configures_is_run(house, tmp_path):
    mark = tmp_path / "mark"
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\necho $0 $@ >> '{mark}'\ncat\n")
    script.chmod(0o755)
    put(house, ".gitattributes", b"*.md filter=mark diff=mark\n")
    git(house, "add", ".")
    git(house, "commit", "-qm", "attributes")
    hooks = (
        "pre-commit",
        "post-commit",
        "commit-msg",
        "prepare-commit-msg",
        "reference-transaction",
        "post-index-change",
    )
    for hook in hooks:
        (house / ".git/hooks" / hook).write_text(script.read_text())
        (house / ".git/hooks" / hook).chmod(0o755)
    settings = ("filter.mark.clean", "filter.mark.smudge", "diff.mark.textconv", "core.fsmonitor", "gpg.program",
                "core.editor", "core.sshCommand", "core.pager", "credential.helper")  # fmt: skip
    for key in settings:
        git(house, "config", key, str(script))
    git(house, "config", "commit.gpgsign", "true")
    git(house, "config", "log.showSignature", "true")
    os.utime(house / DOC, (1, 1))  # git would have to read it again
    mark.unlink(missing_ok=True)
    made = propose(house)
    assert propose(house).commit == made.commit
    assert not mark.exists()


texts = st.lists(st.sampled_from(["a", "b", "", "c c", "d\r", "é", "-- x", "@@ -1 +1 @@", "\\ No"]), max_size=30).map(
    "\n".join
)


@pytest.mark.parametrize("name", ["a.md", "a b.md", "-x.md", "é/日本.md", 'q"\\.md', "tab\there.md"])
def test_a_patch_is_taken_by_git(calm, tmp_path, name):  # noqa: F811
    top = make(tmp_path / "house")
    put(top, name, BEFORE * 9 + b"no newline")
    put(top, "crlf.md", BEFORE.replace(b"\n", b"\r\n"))
    git(top, "add", ".")
    git(top, "commit", "-qm", "files")
    files = {
        name: (BEFORE * 9 + b"no newline", b"new\n" + BEFORE * 9 + b"still no newline"),
        "crlf.md": (BEFORE.replace(b"\n", b"\r\n"), AFTER.replace(b"\n", b"\r\n")),
        DOC: (BEFORE, AFTER.rstrip()),
        "code.py": (b"limit = 10\n", b"limit = 10\n"),
    }
    patch = "".join(make_patch(path, old.decode(), new.decode()) for path, (old, new) in files.items())
    assert "code.py" not in patch
    run(top, "apply", "--index", stdin=patch.encode("utf-8", "surrogateescape"))
    assert {path: (top / path).read_bytes() for path in files} == {path: after for path, (_, after) in files.items()}


def test_nothing_changed_is_no_patch():
    assert make_patch("a.md", "x", "x") == ""


@given(texts, texts)
def test_hunks_hold_all_that_is_needed_to_get_from_one_to_the_other(before, after):
    old, new = [], []
    for line in hunks(before, after, context=10_000):
        if line.startswith("@@ -"):
            continue
        text = line[1:].removesuffix("\n\\ No newline at end of file\n")
        old += [text] if line[0] in " -" else []
        new += [text] if line[0] in " +" else []
    assert ("".join(old), "".join(new)) == ((before, after) if before != after else ("", ""))
