"""The repositories that other tests are made on are what they say."""

from __future__ import annotations

import ast

import pytest
from source_repos import BEGINNING, Generated, SourceRepo, generate


def test_a_repository_is_the_same_each_time(tmp_path):
    heads = []
    for name in ("one", "two"):
        repo = SourceRepo(tmp_path / name)
        repo.save("a.py", "x = 1\n")
        repo.edit("a.py", "1", "2")
        heads.append(repo.commit("x is two"))
    assert heads[0] == heads[1]
    assert repo.git("log", "--format=%aI %cI", "--reverse").splitlines()[0] == " ".join([BEGINNING.isoformat()] * 2)


def test_branches_merges_renames_and_removals(tmp_path):
    repo = SourceRepo(tmp_path / "repo")
    repo.write("lib/a.py", "a = 1\n")
    first = repo.save("b.py", "b = 1\n")
    repo.branch("side")
    repo.rename("lib/a.py", "lib/deep/a.py")
    repo.remove("b.py")
    repo.commit("moved")
    repo.switch("side")
    repo.save("c.py", "c = 1\n")
    repo.switch("main")
    merged = repo.merge("side")
    assert repo.head == merged
    assert repo.git("rev-list", "--count", f"{first}..") == "3"
    assert repo.git("ls-files").split() == ["c.py", "lib/deep/a.py"]


def test_work_trees_submodules_and_clones(tmp_path):
    repo, other = SourceRepo(tmp_path / "repo"), SourceRepo(tmp_path / "other")
    repo.save("a.py", "a = 1\n")
    other.save("z.py", "z = 1\n")
    inside = repo.submodule(other, "third/other")
    repo.commit("third/other: taken in")
    assert inside.head == other.head
    assert repo.git("ls-files", "-s", "third/other").startswith("160000")
    beside = repo.worktree(tmp_path / "beside", "work")
    beside.save("a.py", "a = 2\n")
    assert repo.git("rev-parse", "work") == beside.head != repo.head
    shallow = repo.shallow_clone(tmp_path / "shallow", depth=1)
    assert (shallow.head, shallow.git("rev-list", "--count", "HEAD")) == (repo.head, "1")
    assert repo.clone(tmp_path / "whole").git("rev-list", "--count", "HEAD") == "2"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return generate(tmp_path_factory.mktemp("made") / "repo", files=150, commits=240, docs=8)


@pytest.mark.slow
def test_a_generated_repository_is_sound(made):
    made.repo.git("fsck", "--strict")
    assert made.repo.git("status", "--porcelain") == ""
    assert len(made.repo.git("ls-files").split()) == made.files
    assert made.repo.git("rev-list", "HEAD").split()[0] == made.commits[-1].id
    assert sorted(made.repo.git("rev-list", "HEAD").split()) == sorted(commit.id for commit in made.commits)
    assert {"logic", "comment", "format", "rename", "delete", "code and docs", "docs", "merge"} <= set(made.kinds)
    for path in made.path.rglob("*.py"):
        ast.parse(path.read_text())


@pytest.mark.slow
def test_a_commit_did_what_it_says(made):
    for commit in made.commits[1:]:
        if commit.kind != "merge":
            seen = made.repo.git("diff-tree", "-r", "--no-renames", "--name-only", f"{commit.id}^", commit.id)
            assert set(seen.splitlines()) == set(commit.what), commit


def test_the_truth_is_what_git_says(made):
    formatted = {commit.id for commit in made.commits if commit.kind == "docs format"}
    assert {"stale", "current"} <= set(made.verdicts)
    for doc in made.docs.values():
        changes = made.repo.git("log", "--format=%H", "--", doc.path).split()
        assert next(change for change in changes if change not in formatted) == doc.changed_in
        differs = (
            made.repo.git("diff", "--name-only", doc.changed_in, "HEAD", "--", *doc.sources) if doc.sources else ""
        )
        assert differs or doc.verdict == "current"
        assert bool(doc.causes) == (doc.verdict != "current")
        for commit, path, _ in doc.causes:
            assert path in made.repo.git("show", "--name-only", "--no-renames", "--format=", commit).splitlines()


def test_a_doc_names_its_sources_and_answers_its_questions(made):
    for doc in made.docs.values():
        text = made.repo.read(doc.path)
        assert all(source.rstrip("/").rpartition("/")[2] in text for source in doc.sources), doc
        assert (text.startswith("---\n"), text.startswith("<!-- SOURCES")) == (
            doc.manner == "frontmatter",
            doc.manner == "comment",
        )
    assert {path for _, path in made.questions} <= set(made.docs)
    assert len({question for question, _ in made.questions}) == len(made.questions) == len(made.hard_questions) > 8


def test_a_generated_repository_is_the_same_each_time_and_can_be_loaded(made, tmp_path):
    again = generate(tmp_path / "again", files=150, commits=240, docs=8)
    assert again.repo.head == made.repo.head
    assert Generated.load(made.path) == made
