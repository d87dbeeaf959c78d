"""When a document was last true: branches, merges, clocks, clones, and documents of the vault."""

import os
import shutil
import subprocess
from datetime import UTC, datetime, timedelta

import pytest
from docs_repo import CODE, DOC, statuses
from source_repos import SourceRepo
from vaults import refused

from quaid.docs.registry import Project
from quaid.docs.source_roots import allow
from quaid.errors import QuaidError


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
        repo.save("src/reach.py", CODE.replace("10", "20"))
        repo.switch("main")
        repo.merge("side")
        stale = check()["docs/reach.md"]
        assert stale.status == "stale"
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
            memory.documentation.create(Project("broken", source_roots=(str(broken.path),)))
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
            memory.documentation.create(Project("partial", source_roots=(str(tmp_path / "partial"),)))
        found = check()["partial:docs/reach.md"]
        assert found.status == "no history"
        assert "is a partial clone" in found.problems[0]

    def test_a_shallow_clone_says_so(self, repo, vault, tmp_path):
        repo.save("src/reach.py", CODE.replace("10", "20"))
        repo.save("src/reach.py", CODE.replace("10", "30"))
        shallow = repo.shallow_clone(tmp_path / "shallow", 2)
        with vault.memory() as memory:
            memory.documentation.create(Project("s", source_roots=(str(shallow.path),)))
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
                memory.documentation.create(Project(name, source_roots=(str(repo.path / "packages" / name),)))
            repo.save("packages/one/lib/run.py", CODE.replace("10", "20"))
            found = {doc.id: freshness.status for doc, freshness in memory.documentation.check()}
            project, *rest = memory.documentation.find(repo.path / "packages/two/lib/run.py")
            assert memory.documentation.find(repo.path / "packages/two/run.py")[2] == []
        assert found["one:README.md"] == "stale"
        assert found["two:README.md"] == "fresh"
        assert (project.name, *rest) == ("two", "lib/run.py", ["two:README.md"])

    def test_a_file_of_another_worktree_belongs_to_the_project(self, repo, vault, check, tmp_path):
        other = repo.worktree(tmp_path / "beside", "work")
        with vault.memory() as memory:
            project, path, _ = memory.documentation.find(other.path / "src/reach.py")
        assert (project.name, path) == ("code", "src/reach.py")

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
            memory.documentation.create(Project("plain", source_roots=(str(folder),)))
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
        assert len(stale.findings) == 4
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

    @pytest.mark.slow
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
        assert [finding.path for finding in check()[guide].findings] == ["lib/two.py"]
        with vault.memory() as memory:
            memory.documentation.confirm(guide)
        assert (check()[guide].status, check()[guide].problems) == ("fresh", ())
        text = (vault.root / guide).read_text()
        vault.write(guide, text.replace(other.head, "1234567"))
        assert check()[guide].problems == ("1234567 is not a commit that code or other knows",)
