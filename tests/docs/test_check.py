"""Which documents their sources have left behind, in real repositories."""

import os
import shutil
import subprocess
from datetime import UTC, datetime, timedelta

import pytest
from source_repos import SourceRepo
from vaults import refused

from quaid.docs.registrar import NewProject
from quaid.docs.source_roots import allow
from quaid.errors import BadInputError, QuaidError

CODE = "def reach(limit=10):\n    return limit * 2\n"
DOC = "# Reach\n\n`reach` doubles its limit, which is 10. See [the code](../src/reach.py).\n"


@pytest.fixture
def repo(tmp_path):
    found = SourceRepo(tmp_path / "code")
    found.write("src/reach.py", CODE)
    found.write("src/other.py", "OTHER = 1\n")
    found.write("docs/reach.md", DOC)
    found.write("docs/other.md", "# Other\n\nAll about `src/other.py`.\n")
    found.commit("begin")
    return found


@pytest.fixture
def check(vault, repo):
    """Status of each document by its id, `code:` left out."""
    with vault.memory() as memory:
        memory.documentation.create(NewProject("code", source_roots=(str(repo.path),)))

    def run(*references):
        with vault.memory() as memory:
            found = memory.documentation.check(references)
        return {doc.id.removeprefix("code:"): freshness for doc, freshness in found if "PROJECT" not in doc.id}

    return run


def statuses(found):
    return {doc: freshness.status for doc, freshness in found.items()}


class TestWhatMakesADocumentStale:
    def test_a_change_of_its_source_and_of_no_other(self, repo, check):
        assert statuses(check()) == {"docs/reach.md": "fresh", "docs/other.md": "fresh"}
        commit = repo.save("src/reach.py", CODE.replace("10", "20"))
        repo.save("src/unrelated.py", "X = 1\n")
        found = check()
        assert statuses(found) == {"docs/reach.md": "stale", "docs/other.md": "fresh"}
        stale = found["docs/reach.md"]
        assert (stale.since.id, stale.since.subject) == (commit, "src/reach.py: changed")
        assert [finding.path for finding in stale.significant] == ["src/reach.py"]
        assert stale.sources == ("src/reach.py",)
        assert stale.origin == "learned"

    def test_what_is_trivial_does_not(self, repo, check):
        repo.save("src/reach.py", "# The limit.\n" + CODE)
        found = check()["docs/reach.md"]
        assert found.status == "fresh"
        assert [finding.is_trivial for finding in found.findings] == [True]
        assert found.since is None

    def test_what_was_taken_back_does_not(self, repo, check):
        repo.save("src/reach.py", CODE.replace("10", "20"))
        repo.save("src/reach.py", CODE)
        assert check()["docs/reach.md"].findings == ()

    def test_the_first_commit_that_mattered_is_named(self, repo, check):
        repo.save("src/reach.py", f"# comment\n{CODE}")
        first = repo.save("src/reach.py", CODE.replace("10", "20"))
        repo.save("src/reach.py", CODE.replace("10", "30"))
        stale = check()["docs/reach.md"]
        assert stale.is_stale
        assert first in [commit.id for commit in stale.significant[0].commits]

    def test_a_comment_before_it_is_not_named_as_the_first(self, repo, check):
        repo.save("src/reach.py", f"# comment\n{CODE}")
        first = repo.save("src/reach.py", f"# comment\n{CODE}".replace("10", "20"))
        repo.save("src/reach.py", CODE.replace("10", "20"))
        assert check()["docs/reach.md"].since.id == first

    def test_who_notes_its_sources_has_not_looked_at_it(self, repo, check):
        repo.save("src/reach.py", CODE.replace("10", "20"))
        repo.save("docs/reach.md", DOC.replace("# Reach\n", "# Reach\n\n<!-- SOURCES: src/reach.py -->\n"))
        assert check()["docs/reach.md"].is_stale

    def test_a_change_of_the_document_makes_it_true_again(self, repo, check):
        repo.save("src/reach.py", CODE.replace("10", "20"))
        assert check()["docs/reach.md"].is_stale
        commit = repo.save("docs/reach.md", DOC.replace("10", "20"))
        found = check()["docs/reach.md"]
        assert found.status == "fresh"
        assert found.true_at.id == commit

    def test_a_change_of_its_form_does_not(self, repo, check):
        repo.save("src/reach.py", CODE.replace("10", "20"))
        repo.save("docs/reach.md", DOC.replace("limit, which", "limit,\nwhich") + "\n\n")
        assert check()["docs/reach.md"].is_stale

    def test_a_document_that_is_put_back_is_as_true_as_it_was(self, repo, check):
        repo.write("src/reach.py", CODE.replace("10", "20"))
        repo.save("docs/reach.md", DOC.replace("10", "20"))
        assert check()["docs/reach.md"].status == "fresh"
        repo.git("revert", "--no-commit", "HEAD")
        repo.write("src/reach.py", CODE.replace("10", "20"))
        repo.commit("the document was wrong")
        assert check()["docs/reach.md"].is_stale

    def test_both_in_one_commit_leave_it_true(self, repo, check):
        repo.write("src/reach.py", CODE.replace("10", "20"))
        repo.save("docs/reach.md", DOC.replace("10", "20"))
        assert check()["docs/reach.md"].status == "fresh"


class TestFilesThatMove:
    def test_a_deleted_source(self, repo, check):
        repo.remove("src/reach.py")
        repo.commit("gone")
        stale = check()["docs/reach.md"]
        assert stale.is_stale
        assert [(finding.kind, finding.path) for finding in stale.findings] == [("deleted", "src/reach.py")]

    def test_a_renamed_source_that_the_document_calls_by_its_old_name(self, repo, vault, check):
        repo.save("src/reach.py", f"# Why it is so.\n{CODE}")
        repo.rename("src/reach.py", "src/far.py")
        renamed = repo.commit("rename")
        stale = check()["docs/reach.md"]
        assert stale.since.id == renamed  # what changed before it was a comment
        assert stale.sources == ("src/far.py",)
        with vault.memory() as memory:
            assert memory.documentation.find(repo.path / "src/far.py").docs == ("code:docs/reach.md",)
        assert [(f.kind, f.path, f.old_path, f.is_trivial) for f in stale.findings] == [
            ("renamed", "src/far.py", "src/reach.py", False)
        ]

    def test_a_source_that_was_renamed_and_deleted_then(self, repo, check):
        repo.rename("src/reach.py", "src/far.py")
        repo.commit("rename")
        repo.remove("src/far.py")
        repo.commit("gone")
        stale = check()["docs/reach.md"]
        assert [(f.kind, f.path) for f in stale.findings] == [("deleted", "src/reach.py")]

    def test_a_source_that_was_gone_before_the_document_was_changed(self, repo, check):
        repo.write("docs/reach.md", "# Reach\n\n<!-- SOURCES: src/reach.py -->\n\nIt is far.\n")
        repo.remove("src/reach.py")
        repo.commit("gone")
        assert check()["docs/reach.md"].problems == ("its source src/reach.py is not a file there",)

    def test_a_folder_that_was_a_file_once(self, repo, check):
        repo.save("lib", "a file\n")
        repo.remove("lib")
        repo.save("lib/one.py", CODE)
        repo.save("docs/lib.md", "# Lib\n\n<!-- SOURCES: lib -->\n")
        repo.save("lib/one.py", CODE.replace("10", "20"))
        assert [finding.path for finding in check()["docs/lib.md"].significant] == ["lib/one.py"]

    def test_a_rename_that_the_document_follows(self, repo, check):
        repo.rename("src/reach.py", "src/far.py")
        repo.write("docs/reach.md", DOC.replace("src/reach.py", "src/far.py"))
        repo.commit("rename")
        assert check()["docs/reach.md"].status == "fresh"
        repo.save("src/far.py", CODE.replace("10", "20"))
        assert check()["docs/reach.md"].is_stale

    def test_a_renamed_document_keeps_its_history(self, repo, check):
        repo.save("src/reach.py", CODE.replace("10", "20"))
        repo.rename("docs/reach.md", "docs/far.md")
        repo.commit("docs: another name")
        assert check()["docs/far.md"].is_stale

    def test_a_folder_as_source_sees_new_files(self, repo, check):
        repo.save("docs/all.md", "<!-- SOURCES: src/ -->\n# All of it\n")
        assert check()["docs/all.md"].status == "fresh"
        repo.save("src/third.py", "def third():\n    return 3\n")
        stale = check()["docs/all.md"]
        assert [(finding.kind, finding.path) for finding in stale.significant] == [("added", "src/third.py")]
        repo.remove("src/third.py")
        repo.commit("again as it was")
        assert check()["docs/all.md"].status == "fresh"


class TestHistories:
    def test_a_side_branch_that_was_merged(self, repo, check):
        repo.branch("side")
        repo.switch("side")
        repo.save("src/reach.py", CODE.replace("10", "20"))
        repo.switch("main")
        repo.save("docs/reach.md", DOC + "\nMore words about it.\n")
        assert check()["docs/reach.md"].status == "fresh"
        repo.merge("side")
        assert check()["docs/reach.md"].is_stale

    def test_what_a_merged_change_of_the_document_knew_it_knows(self, repo, check):
        repo.branch("side")
        repo.switch("side")
        repo.write("src/reach.py", CODE.replace("10", "20"))
        repo.save("docs/reach.md", DOC + "\nOn the side it is 20.\n")
        repo.switch("main")
        repo.save("docs/reach.md", DOC.replace("# Reach", "# Reach, far"))
        repo.merge("side")
        assert check()["docs/reach.md"].status == "fresh"
        repo.save("src/reach.py", CODE.replace("10", "30"))
        assert check()["docs/reach.md"].is_stale

    def test_what_a_merge_alone_has_changed(self, repo, check):
        repo.branch("side")
        repo.save("src/main.py", "MAIN = 1\n")
        repo.switch("side")
        repo.save("src/side.py", "SIDE = 1\n")
        repo.switch("main")
        repo.git("merge", "-q", "--no-ff", "--no-commit", "side")
        merge = repo.save("src/reach.py", CODE.replace("10", "20"))
        found = check()
        assert statuses(found) == {"docs/reach.md": "stale", "docs/other.md": "fresh"}
        assert found["docs/reach.md"].since.id == merge

    def test_a_change_beside_a_rename(self, repo, check):
        repo.branch("side")
        repo.rename("src/reach.py", "src/far.py")
        repo.write("docs/reach.md", DOC.replace("reach.py", "far.py"))
        repo.commit("rename")
        repo.switch("side")
        change = repo.save("src/reach.py", CODE.replace("10", "20"))
        repo.switch("main")
        repo.merge("side")
        stale = check()["docs/reach.md"]
        assert (stale.status, stale.since.id) == ("stale", change)
        assert [(f.kind, f.path, f.old_path) for f in stale.findings] == [("modified", "src/far.py", None)]

    def test_a_document_that_was_renamed_beside_its_change(self, repo, check):
        repo.branch("side")
        repo.rename("docs/reach.md", "docs/far.md")
        repo.commit("rename")
        repo.switch("side")
        repo.write("src/reach.py", CODE.replace("10", "20"))
        repo.save("docs/reach.md", DOC.replace("10", "20"))
        repo.switch("main")
        repo.merge("side")
        assert check()["docs/far.md"].status == "fresh"

    def test_a_change_of_the_document_that_a_merge_left_out(self, repo, check):
        repo.branch("side")
        repo.save("docs/reach.md", DOC.replace("# Reach", "# Reach, far"))
        repo.switch("side")
        repo.write("src/reach.py", CODE.replace("10", "20"))
        repo.save("docs/reach.md", DOC.replace("# Reach", "# Reach of 20"))
        repo.switch("main")
        repo.git("merge", "-q", "--no-ff", "-X", "ours", "-m", "merge", "side")
        assert check()["docs/reach.md"].is_stale

    def test_a_change_of_the_document_that_was_picked_from_a_branch(self, repo, check):
        repo.branch("side")
        repo.switch("side")
        repo.save("docs/reach.md", DOC.replace("10", "20"))
        repo.switch("main")
        repo.save("src/reach.py", CODE.replace("10", "20"))
        repo.save("docs/reach.md", DOC.replace("10", "20"))
        repo.merge("side")
        assert check()["docs/reach.md"].status == "fresh"

    def test_clocks_that_are_wrong(self, repo, check):
        late, early = (datetime(year, 1, 1, tzinfo=UTC) for year in (2038, 2001))
        repo.save("src/more.py", "MORE = 1\n", when=late)
        repo.branch("side")
        repo.save("src/reach.py", CODE.replace("10", "20"), when=early)
        repo.save("docs/reach.md", DOC.replace("10", "20"), when=early)
        repo.switch("side")
        repo.save("src/third.py", "THIRD = 1\n", when=late)
        repo.switch("main")
        repo.merge("side", when=early)
        assert check()["docs/reach.md"].status == "fresh"
        subprocess.run(
            ["git", "-C", str(repo.path), "commit", "-q", "--allow-empty", "-m", "later than dates go"], check=True,
            env=os.environ | {"GIT_COMMITTER_DATE": "@999999999999 +0000", "GIT_COMMITTER_NAME": "a",
                              "GIT_COMMITTER_EMAIL": "a@b", "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b"},
        )  # fmt: skip
        repo.save("docs/new.md", DOC)
        repo.git("checkout", "-q", "HEAD~1")
        assert check()["docs/reach.md"].status == "fresh"
        repo.write("docs/new.md", DOC)  # as new as that commit
        assert check()["docs/new.md"].true_at.when == "9999-12-31T23:59:59Z"

    @pytest.mark.parametrize("head", ["", "garbage\n", f"{'0' * 39}1\n"])
    def test_a_repository_that_cannot_be_read_stops_no_other(self, repo, vault, check, tmp_path, head):
        broken = SourceRepo(tmp_path / "broken")
        broken.write("src/one.py", CODE)
        broken.write("docs/one.md", "# One\n\n<!-- SOURCES: src/one.py -->\n")
        broken.save("docs/two.md", "# Two\n\nSee `src/one.py`.\n")
        with vault.memory() as memory:
            memory.documentation.create(NewProject("broken", source_roots=(str(broken.path),)))
        (broken.path / ".git/HEAD").write_text(head)
        repo.save("src/reach.py", CODE.replace("10", "20"))
        found = check()
        assert found["docs/reach.md"].is_stale
        for path in ("broken:docs/one.md", "broken:docs/two.md"):
            assert found[path].status == "no history"
            assert "could not" in found[path].problems[0]

    def test_a_head_that_is_no_commit_is_not_noted(self, repo, vault, check):
        (repo.path / ".git/HEAD").write_text("garbage\n")
        with vault.memory() as memory:
            assert "could not" in str(refused(lambda: memory.documentation.confirm("docs/reach.md"), QuaidError))

    def test_a_partial_clone_is_not_called_true_where_it_cannot_be_read(self, repo, vault, check, tmp_path):
        repo.save("src/reach.py", CODE.replace("10", "20"))
        repo.git("config", "uploadpack.allowFilter", "true")
        repo.git("clone", "-q", "--filter=blob:none", repo.path.as_uri(), str(tmp_path / "partial"))
        repo.path.rename(tmp_path / "away")
        with vault.memory() as memory:
            memory.documentation.create(NewProject("partial", source_roots=(str(tmp_path / "partial"),)))
        found = check()["partial:docs/reach.md"]
        assert found.status == "no history"
        assert "could not" in found.problems[0]

    def test_a_shallow_clone_says_so(self, repo, vault, tmp_path):
        repo.save("src/reach.py", CODE.replace("10", "20"))
        repo.save("src/reach.py", CODE.replace("10", "30"))
        shallow = repo.shallow_clone(tmp_path / "shallow", 2)
        with vault.memory() as memory:
            memory.documentation.create(NewProject("s", source_roots=(str(shallow.path),)))
            found = {doc.rel_path: freshness for doc, freshness in memory.documentation.check(project="s")}
        assert found["docs/reach.md"].is_stale
        assert "shallow clone" in found["docs/reach.md"].problems[0]

    def test_a_monorepo_has_projects_in_its_folders(self, repo, vault):
        for name in ("one", "two"):
            repo.write(f"packages/{name}/lib/run.py", CODE)
            repo.write(f"packages/{name}/README.md", "# Run\n\nSee `lib/run.py`.\n")
        repo.commit("packages")
        with vault.memory() as memory:
            for name in ("one", "two"):
                memory.documentation.create(NewProject(name, source_roots=(str(repo.path / "packages" / name),)))
            repo.save("packages/one/lib/run.py", CODE.replace("10", "20"))
            found = {doc.id: freshness.status for doc, freshness in memory.documentation.check()}
            owner = memory.documentation.find(repo.path / "packages/two/lib/run.py")
            assert memory.documentation.find(repo.path / "packages/two/run.py").docs == ()
        assert found["one:README.md"] == "stale"
        assert found["two:README.md"] == "fresh"
        assert (owner.project.name, owner.path, owner.docs) == ("two", "lib/run.py", ("two:README.md",))

    def test_a_source_in_a_submodule(self, repo, check, tmp_path):
        library = SourceRepo(tmp_path / "library")
        library.save("lib/fast.py", CODE)
        inside = repo.submodule(library, "vendored")
        repo.save("docs/fast.md", "# Fast\n\n<!-- SOURCES: ../vendored/lib/fast.py -->\n")
        assert check()["docs/fast.md"].status == "fresh"
        inside.save("lib/fast.py", CODE.replace("10", "20"), when=None)
        subprocess.run(["git", "-C", str(inside.path), "commit", "-q", "--amend", "--no-edit", "--date=now"], check=True,
                       env=os.environ | {"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b", "GIT_AUTHOR_NAME": "a",
                                         "GIT_AUTHOR_EMAIL": "a@b"})  # fmt: skip
        repo.commit("library: newer")
        stale = check()["docs/fast.md"]
        assert [finding.path for finding in stale.significant] == ["lib/fast.py"]
        assert stale.problems == ()
        inside.git("checkout", "-q", "HEAD~1")
        assert check()["docs/fast.md"].status == "fresh"  # the submodule moved, and nothing else did

    def test_a_file_of_another_worktree_belongs_to_the_project(self, repo, vault, check, tmp_path):
        other = repo.worktree(tmp_path / "beside", "work")
        with vault.memory() as memory:
            owner = memory.documentation.find(other.path / "src/reach.py")
        assert (owner.project.name, owner.path) == ("code", "src/reach.py")

    def test_a_repository_that_vanished(self, repo, vault, check):
        check()
        shutil.rmtree(repo.path)
        with vault.memory() as memory:
            catalogue = memory.documentation.catalogue()
            found = memory.documentation.check()
        assert catalogue.absent == (("code", str(repo.path)),)
        assert [doc.id for doc, _ in found] == ["projects/code/PROJECT.md"]

    def test_a_folder_without_git_is_listed_and_cannot_be_checked(self, vault, tmp_path):
        folder = tmp_path / "plain"
        (folder / "docs").mkdir(parents=True)
        (folder / "docs/a.md").write_text("# A\n\nSee `a.py`.\n")
        (folder / "a.py").write_text("A = 1\n")
        with vault.memory() as memory:
            memory.documentation.create(NewProject("plain", source_roots=(str(folder),)))
            found = {doc.id: freshness.status for doc, freshness in memory.documentation.check()}
            (folder / "docs/a.md").write_text("# A\n\n<!-- SOURCES: a.py -->\n")
            again = {doc.id: freshness.status for doc, freshness in memory.documentation.check()}
        assert (found["plain:docs/a.md"], again["plain:docs/a.md"]) == ("no sources", "no history")

    def test_odd_names_and_subjects_are_read(self, repo, check):
        repo.git("config", "log.showRoot", "false")
        for name in ("src/\x1ea.py", "src/two\nlines.py", "src/ü ß.py", os.fsdecode(b"src/\xff.py")):
            repo.write(name, "X = 1\n")
        repo.save("docs/odd.md", "<!-- SOURCES: src/ -->\n# Odd\n")
        assert check()["docs/odd.md"].status == "fresh"
        for name in ("src/\x1ea.py", "src/two\nlines.py", "src/ü ß.py", os.fsdecode(b"src/\xff.py")):
            repo.write(name, "X = 2\n")
        repo.commit("\x1e\x1fodd\x1e")
        stale = check()["docs/odd.md"]
        assert len(stale.significant) == 4
        assert statuses(check())["docs/reach.md"] == "fresh"
        before = statuses(check())
        repo.save(os.fsdecode(b"docs/\xff.md"), DOC)
        assert statuses(check()) == before  # a name that cannot be written down is none of a document

    def test_nothing_that_the_repository_configures_is_run(self, repo, check, tmp_path):
        mark = tmp_path / "ran"
        script = tmp_path / "evil.sh"
        script.write_text(f"#!/bin/sh\ntouch {mark}\ncat\n")
        script.chmod(0o755)
        for key in ("core.fsmonitor", "diff.evil.textconv", "filter.evil.clean", "filter.evil.smudge", "diff.external"):
            repo.git("config", key, str(script))
        repo.write(".gitattributes", "*.py diff=evil\n")
        repo.commit("attributes")
        repo.save("src/reach.py", CODE.replace("10", "20"))
        mark.unlink(missing_ok=True)
        assert check()["docs/reach.md"].is_stale
        assert not mark.exists()


class TestTheVaultsOwnDocuments:
    def test_a_guide_in_the_vault_about_source_code(self, repo, vault, check):
        vault.write("projects/code/GUIDE.md", "---\nsources: [src/reach.py]\n---\n# Guide\n\nIt doubles 10.\n")
        vault.save()
        guide = "projects/code/GUIDE.md"
        found = check()[guide]
        assert (found.status, found.origin) == ("fresh", "frontmatter")
        # The repository's clock is in the past: only what is newer than the guide can make it stale.
        repo.write("src/reach.py", CODE.replace("10", "20"))
        repo.git("add", "-A")
        subprocess.run(
            ["git", "-C", str(repo.path), "commit", "-qm", "later"], check=True,
            env=os.environ | {"GIT_COMMITTER_DATE": "2099-01-01T00:00:00Z", "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b",
                              "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"},
        )  # fmt: skip
        assert check()[guide].is_stale
        with vault.memory() as memory:
            memory.documentation.confirm(guide)
        assert check()[guide].status == "fresh"
        assert f"true_at: {repo.head}" in (vault.root / guide).read_text()

    def test_a_project_that_is_archived_while_its_guide_is_confirmed(self, repo, vault, check, monkeypatch):
        vault.write("projects/code/GUIDE.md", "---\nsources: [src/reach.py]\n---\n# Guide\n\nIt doubles 10.\n")
        vault.save()
        with vault.memory() as memory:
            documentation = memory.documentation
            found = documentation.doc("GUIDE")
            monkeypatch.setattr(documentation, "doc", lambda *_: found)
            documentation.registrar.set_state("code", "archived")
            documentation.confirm("GUIDE")
        assert f"true_at: {repo.head}" in (vault.root / "projects/code/GUIDE.md").read_text()

    def test_a_change_of_it_that_is_committed_later(self, repo, vault, check):
        guide = "projects/code/GUIDE.md"
        text = "---\nsources: [src/reach.py]\n---\n# Guide\n\nIt doubles 10.\n"
        vault.write(guide, text)
        vault.save()
        repo.write("src/reach.py", CODE.replace("10", "20"))
        repo.commit("later", when=datetime.now(UTC) + timedelta(days=1))
        vault.write(guide, text.replace("10", "20"))
        assert check()[guide].is_stale
        vault.run("add", "-A")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("GIT_COMMITTER_DATE", (datetime.now(UTC) + timedelta(days=2)).isoformat())
            vault.run("commit", "-qm", "guide")
        assert check()[guide].status == "fresh"

    def test_one_about_two_repositories_is_confirmed_for_both(self, repo, vault, check, tmp_path):
        other = SourceRepo(tmp_path / "other")
        other.save("lib/two.py", CODE)
        path = vault.root / "projects/code/PROJECT.md"
        path.write_text(path.read_text().replace(f"{repo.path}]", f"{repo.path}, {other.path}]"))
        allow([other.path])
        guide = "projects/code/GUIDE.md"
        vault.write(guide, "---\nsources: [src/reach.py, lib/two.py]\n---\n# Guide\n\nBoth.\n")
        vault.save()
        other.save("lib/two.py", CODE.replace("10", "20"), when=datetime.now(UTC) + timedelta(days=1))
        assert [finding.path for finding in check()[guide].significant] == ["lib/two.py"]
        with vault.memory() as memory:
            memory.documentation.confirm(guide)
        assert (check()[guide].status, check()[guide].problems) == ("fresh", ())
        text = (vault.root / guide).read_text()
        vault.write(guide, text.replace(other.head, "1234567"))
        assert check()[guide].problems == ("1234567 is not a commit that code or other knows",)


class TestRegisteredDocuments:
    def test_sources_that_the_registry_names(self, repo, vault, check):
        repo.save("docs/plain.md", "# Plain\n\nNo word of code.\n")
        assert check()["docs/plain.md"].status == "no sources"
        with vault.memory() as memory:
            memory.documentation.register(repo.path / "docs/plain.md", None, ("src/reach.py", "src/*.toml"))
        project = (vault.root / "projects/code/PROJECT.md").read_text()
        assert "docs/plain.md <- src/reach.py, src/*.toml" in project
        found = check()["docs/plain.md"]
        assert (found.origin, found.sources) == ("registered", ("src/reach.py",))
        assert found.problems == ("its source src/*.toml is not a file there",)
        repo.save("src/reach.py", CODE.replace("10", "20"))
        assert check()["docs/plain.md"].is_stale
        with vault.memory() as memory:
            memory.documentation.confirm("docs/plain.md")
        assert check()["docs/plain.md"].status == "fresh"
        repo.save("src/reach.py", CODE.replace("10", "30"))
        assert check()["docs/plain.md"].is_stale
        vault.assert_sound()

    def test_a_file_of_nobodys(self, repo, vault, check, tmp_path):
        lost = tmp_path / "lost.md"
        lost.write_text("# Lost\n")
        with vault.memory() as memory:
            assert "belongs to no project" in str(
                refused(lambda: memory.documentation.register(lost, None), BadInputError)
            )
            wrong = refused(lambda: memory.documentation.register(lost, "code"), BadInputError)
        assert "is not a file in the home or the source roots of code" in str(wrong)

    def test_a_registered_document_that_is_gone_is_named(self, repo, vault, check):
        with vault.memory() as memory:
            memory.documentation.register(repo.path / "docs/reach.md", "code")
        repo.remove("docs/reach.md")
        with vault.memory() as memory:
            assert memory.documentation.catalogue().missing == (("code", "docs/reach.md"),)

    def test_a_registered_document_is_followed_through_its_renames(self, repo, vault, check):
        repo.save("docs/plain.md", "# Plain\n\nNo word of code, in lines\nthat are long enough to be known again.\n")
        repo.save("docs/gone.md", "# Gone\n")
        with vault.memory() as memory:
            memory.documentation.register(repo.path / "docs/plain.md", None, ("src/reach.py",))
            memory.documentation.register(repo.path / "docs/gone.md", None, ("src/other.py",))
        repo.remove("docs/gone.md")
        for old, new in (("docs/plain.md", "docs/first.md"), ("docs/first.md", "guide/second.md")):
            repo.rename(old, new)
            repo.commit(f"{old} is {new}")
        repo.rename("guide/second.md", "docs/third.md")  # and this is not committed yet
        with vault.memory() as memory:
            documentation = memory.documentation
            catalogue = documentation.catalogue()
            doc = documentation.doc("docs/third.md")
            assert (doc.registered_as, doc.sources) == ("docs/plain.md", ("src/reach.py",))
            assert catalogue.missing == (("code", "docs/gone.md"),)
        repo.commit("third")
        repo.save("src/reach.py", CODE.replace("10", "20"))
        assert check()["docs/third.md"].is_stale
        with vault.memory() as memory:
            memory.documentation.register(repo.path / "docs/third.md", None)
            (entry, _) = memory.documentation.project("code").registered
            assert (entry.path, entry.sources) == ("docs/third.md", ("src/reach.py",))
            assert memory.documentation.doc("docs/third.md").registered_as is None
        repo.rename("docs/third.md", "docs/fourth.md")
        repo.commit("fourth")
        with vault.memory() as memory:
            memory.documentation.confirm("docs/fourth.md")
            (entry, _) = memory.documentation.project("code").registered
            assert (entry.path, entry.sources, entry.true_at) == ("docs/fourth.md", ("src/reach.py",), repo.head)
        assert check()["docs/fourth.md"].status == "fresh"
        vault.assert_sound()

    def test_a_name_on_the_way_that_is_registered_as_well_does_not_stop_it(self, repo, vault, check):
        repo.save("docs/a.md", "# A\n\nThe same words stand here\nand there, and they are many.\n")
        with vault.memory() as memory:
            memory.documentation.register(repo.path / "docs/a.md", None, ("src/reach.py",))
        repo.rename("docs/a.md", "docs/b.md")
        repo.commit("b")
        project = vault.root / "projects/code/PROJECT.md"
        project.write_text(project.read_text().replace("documents: [", "documents: [docs/b.md, "))
        repo.rename("docs/b.md", "docs/c.md")
        repo.commit("c")
        with vault.memory() as memory:
            assert memory.documentation.catalogue().missing == ()
            assert memory.documentation.doc("docs/c.md").sources == ("src/reach.py",)

    def test_a_rename_to_what_is_registered_already_is_not_followed(self, repo, vault, check):
        repo.save("docs/a.md", "# A\n\nThe same words stand here\nand there, and they are many.\n")
        with vault.memory() as memory:
            memory.documentation.register(repo.path / "docs/a.md", None, ("src/reach.py",))
        repo.rename("docs/a.md", "docs/b.md")
        repo.commit("b")
        project = vault.root / "projects/code/PROJECT.md"
        text = project.read_text()
        project.write_text(text.replace("documents:", 'documents: ["docs/b.md <- src/other.py"]\nolder:'))
        project.write_text(
            project.read_text().replace('docs/b.md <- src/other.py"]', 'docs/b.md <- src/other.py", docs/a.md]')
        )
        with vault.memory() as memory:
            catalogue = memory.documentation.catalogue()
            assert memory.documentation.doc("docs/b.md").sources == ("src/other.py",)
        assert catalogue.missing == (("code", "docs/a.md"),)

    def test_one_of_several_roots_and_of_a_part_of_a_repository(self, repo, vault, tmp_path):
        other = SourceRepo(tmp_path / "web")
        other.save("docs/page.md", "# Page\n\nIn the other repository\nwith a line more.\n")
        repo.save("part/guide/a.md", "# A\n\nIn a part of the repository\nwith a line more.\n")
        roots = (str(repo.path / "part"), str(other.path))
        with vault.memory() as memory:
            memory.documentation.create(NewProject("both", source_roots=roots))
            memory.documentation.register(repo.path / "part/guide/a.md", "both")
            memory.documentation.register(other.path / "docs/page.md", "both")
        repo.rename("part/guide/a.md", "part/guide/b.md")
        repo.commit("b")
        other.rename("docs/page.md", "docs/side.md")
        other.commit("side")
        with vault.memory() as memory:
            catalogue = memory.documentation.catalogue()
        assert catalogue.missing == ()
        assert {doc.id: doc.registered_as for doc in catalogue.docs if doc.registered_as} == {
            "both:part/guide/b.md": "part/guide/a.md",
            "both:web/docs/side.md": "web/docs/page.md",
        }

    def test_a_document_that_left_its_place_is_not_followed(self, repo, vault, tmp_path):
        repo.save("part/a.md", "# A\n\nIn a part of the repository\nwith a line more.\n")
        with vault.memory() as memory:
            memory.documentation.create(NewProject("part", source_roots=(str(repo.path / "part"),)))
            memory.documentation.register(repo.path / "part/a.md", "part")
        repo.rename("part/a.md", "elsewhere/a.md")
        repo.commit("out")
        with vault.memory() as memory:
            assert memory.documentation.catalogue().missing == (("part", "a.md"),)

    def test_odd_lines_of_the_registry_are_named(self, repo, vault, check):
        path = vault.root / "projects/code/PROJECT.md"
        path.write_text(
            path.read_text().replace("state: active", 'documents: ["a\\0b.md", "a\\nb.md <- src"]\nstate: active')
        )
        with vault.memory() as memory:
            assert memory.documentation.catalogue().missing == (("code", "a\0b.md"), ("code", "a\nb.md"))
        assert check()["docs/reach.md"].status == "fresh"

    def test_an_entry_cannot_lead_out_of_its_place(self, repo, vault, check, tmp_path):
        (tmp_path / "secret.md").write_text("# Secret\n")
        (repo.path / "link.md").symlink_to(tmp_path / "secret.md")
        project = vault.root / "projects/code/PROJECT.md"
        project.write_text(
            project.read_text().replace("state: active", "state: active\ndocuments: [../secret.md, link.md]")
        )
        with vault.memory() as memory:
            catalogue = memory.documentation.catalogue()
        assert not [doc for doc in catalogue.docs if "secret" in doc.rel_path or "link" in doc.rel_path]
        assert {path for _, path in catalogue.missing} == {"../secret.md", "link.md"}


class TestWhatIsKept:
    def test_nothing_is_read_again_while_nothing_changes(self, repo, check, monkeypatch):
        before = check()
        from quaid.history.source_repository import SourceRepository

        monkeypatch.setattr(SourceRepository, "log", lambda *_: pytest.fail("a history was read"))
        assert check() == before

    def test_without_local_db_it_looks_each_time(self, repo, check, monkeypatch):
        from quaid.errors import VaultReadOnlyError

        def refuse(*_, **__):
            raise VaultReadOnlyError("here", "no permission")

        repo.save("src/reach.py", CODE.replace("10", "20"))
        monkeypatch.setattr("quaid.local.database.open_local", refuse)
        assert check()["docs/reach.md"].is_stale

    def test_a_source_that_was_edited_and_not_committed(self, repo, vault, check):
        repo.write("src/reach.py", CODE.replace("10", "20"))
        with vault.memory() as memory:
            found = memory.documentation.follow([str(repo.path / "src/reach.py"), "/nowhere/x.py", "relative.py"])
        assert [(doc.id, freshness.edited) for doc, freshness in found] == [("code:docs/reach.md", ("src/reach.py",))]
        assert check()["docs/reach.md"].edited == ("src/reach.py",)
        repo.commit("there it is")
        assert (check()["docs/reach.md"].edited, check()["docs/reach.md"].status) == ((), "stale")

    def test_a_document_that_does_not_exist_has_a_next_step(self, check):
        assert "quaid docs list" in str(refused(lambda: check("nope.md"), BadInputError))
