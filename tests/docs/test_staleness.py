"""What makes a document stale, in real repositories, and what is kept of a check."""

import pytest
from docs_repo import CODE, DOC, statuses
from vaults import refused

from quaid.errors import BadInputError


class TestWhatMakesADocumentStale:
    def test_a_change_of_its_source_and_of_no_other(self, repo, check):
        assert statuses(check()) == {"docs/reach.md": "fresh", "docs/other.md": "fresh"}
        commit = repo.save("src/reach.py", CODE.replace("10", "20"))
        repo.save("src/unrelated.py", "X = 1\n")
        found = check()
        assert statuses(found) == {"docs/reach.md": "stale", "docs/other.md": "fresh"}
        stale = found["docs/reach.md"]
        assert (stale.since.id, stale.since.subject) == (commit, "src/reach.py: changed")
        assert [finding.path for finding in stale.findings] == ["src/reach.py"]
        assert stale.sources == ("src/reach.py", "src/reach.py::reach")
        assert stale.origin == "learned"

    def test_what_is_trivial_does_not(self, repo, check):
        repo.save("src/reach.py", "# The limit.\n" + CODE)
        found = check()["docs/reach.md"]
        assert found.status == "fresh"
        assert found.findings == ()
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
        assert first in [commit.id for commit in stale.findings[0].commits]

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
        assert stale.sources == ("src/far.py", "src/far.py::reach")
        with vault.memory() as memory:
            assert memory.documentation.find(repo.path / "src/far.py")[2] == ["code:docs/reach.md"]
        assert [(f.kind, f.path, f.old_path) for f in stale.findings] == [("renamed", "src/far.py", "src/reach.py")]

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
        assert [finding.path for finding in check()["docs/lib.md"].findings] == ["lib/one.py"]

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
        assert [(finding.kind, finding.path) for finding in stale.findings] == [("added", "src/third.py")]
        repo.remove("src/third.py")
        repo.commit("again as it was")
        assert check()["docs/all.md"].status == "fresh"


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

    def test_a_document_that_does_not_exist_has_a_next_step(self, check):
        assert "quaid docs list" in str(refused(lambda: check("nope.md"), BadInputError))
