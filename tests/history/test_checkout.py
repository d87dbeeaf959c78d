"""What git knows of a file is recorded, and nothing that a foreign repository configures is run."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st
from vaults import OWNER, calm  # noqa: F401 - a fixture

from quaid.history import source_repository
from quaid.history.source_repository import find_checkout


def git(top, *args):
    subprocess.run(["git", *OWNER, *args], cwd=top, check=True, capture_output=True)


@pytest.fixture
def house(calm, tmp_path):  # noqa: F811
    """A repository with docs/lease.md in it."""
    top = tmp_path / "house"
    (top / "docs").mkdir(parents=True)
    git(top, "init", "-q", "-b", "trunk")
    put(top, "Rent: 900\n")
    git(top, "add", ".")
    git(top, "commit", "-qm", "lease")
    return top


def put(top, text):
    (top / "docs/lease.md").write_bytes(text.encode())


def find(top, name="docs/lease.md"):
    path = top / name
    return find_checkout(path, path.read_bytes())


def head(top):
    return subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=top, check=True, capture_output=True, text=True
    ).stdout.strip()


def test_a_committed_file_is_named_by_repository_branch_and_commit(house):
    first = head(house)
    git(house, "commit", "-qm", "another", "--allow-empty")
    assert find(house) == source_repository.Checkout("house", "docs/lease.md", "trunk", first, is_changed=False)


def test_a_change_is_seen_and_line_ends_are_none(house):
    put(house, "Rent: 950\n")
    assert find(house).is_changed
    put(house, "Rent: 900\r\n")
    assert not find(house).is_changed


def test_an_untracked_file_has_no_commit(house):
    (house / "new [1].md").write_text("new\n")
    found = find(house, "new [1].md")
    assert (found.commit, found.is_changed, found.repository) == (None, True, "house")


def test_a_file_in_no_repository_has_no_origin(calm, tmp_path):  # noqa: F811
    (tmp_path / "a.md").write_text("words\n")
    assert find(tmp_path, "a.md") is None


def test_a_repository_without_a_commit_is_borne(calm, tmp_path):  # noqa: F811
    git(tmp_path, "init", "-q", "-b", "trunk")
    (tmp_path / "a.md").write_text("words\n")
    assert find(tmp_path, "a.md") == source_repository.Checkout(tmp_path.name, "a.md", "trunk", None, is_changed=True)


def test_a_link_is_followed_to_where_the_file_is(house, tmp_path):
    link = tmp_path / "link.md"
    link.symlink_to(house / "docs/lease.md")
    assert find_checkout(link, link.read_bytes()).path == "docs/lease.md"


def test_a_file_that_lfs_keeps_is_not_taken_for_changed(house):
    import hashlib

    data = b"%PDF-1.4 a large file"
    pointer = (
        f"version https://git-lfs.github.com/spec/v1\noid sha256:{hashlib.sha256(data).hexdigest()}\nsize {len(data)}\n"
    )
    (house / "big.pdf").write_text(pointer)
    git(house, "add", ".")
    git(house, "commit", "-qm", "big")
    (house / "big.pdf").write_bytes(data)
    assert not find(house, "big.pdf").is_changed


def test_nothing_of_the_repositorys_own_is_run(house, tmp_path):
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\ncat\n")
    trap.chmod(0o755)
    for key in (
        "core.fsmonitor",
        "filter.trap.clean",
        "filter.trap.smudge",
        "filter.trap.process",
        "diff.trap.textconv",
    ):
        git(house, "config", key, str(trap))
    git(house, "config", "filter.trap.required", "true")
    (house / ".gitattributes").write_text("*.md filter=trap diff=trap\n")
    put(house, "Rent: 950\n")
    assert find(house).is_changed
    assert not (tmp_path / "sprung").exists()


def test_a_broken_repository_is_named_and_no_more(house):
    (house / ".git" / "HEAD").write_text("nonsense\n")
    found = find(house)
    assert (found.repository, found.commit) == ("house", None)


@pytest.mark.parametrize(("url", "name"), [
    ("https://maya:t0ken@github.com/maya/house.git", "github.com/maya/house"),
    ("https://t0ken@GitHub.com:443/maya/house?key=t0ken#t0ken", "github.com/maya/house"),
    ("ssh://git@example.org:2222/maya/house.git/", "example.org/maya/house"),
    ("https://maya:t0ken@t0ken@example.org/maya/house", "example.org/maya/house"),
    ("https://maya:t0ken/t0ken@example.org/maya/house", "house"),
    ("git@github.com:maya/house.git", "github.com/maya/house"),
    ("github.com:maya/house", "github.com/maya/house"),
    ("/srv/git/house.git", "house"),
    ("../house", "house"),
    ("file:///srv/house", "house"),
    ("C:\\house", "house"),
    ("ext::sh -c 't0ken'", "house"),
])  # fmt: skip
def test_a_remote_is_named_without_who_may_reach_it(house, url, name):
    git(house, "config", "remote.other.url", "https://example.org/other")
    git(house, "config", "remote.origin.url", url)
    found = find(house)
    if name == "house":
        assert found.repository in {"house", "example.org/other"}
    else:
        assert found.repository == name
    assert "t0ken" not in found.repository


@given(st.text(st.sampled_from("ab@:/.?#%[]\\ -"), max_size=30))
def test_no_remote_leaks_what_stands_before_an_at_sign(path):
    found = source_repository.find_remote_name(f"remote.origin.url https://maya:t0ken@host{path}\n")
    assert "t0ken" not in (found or "")
