"""Documents that the registry names."""

import pytest
from docs_repo import CODE
from vaults import refused

from quaid.errors import BadInputError


class TestRegisteredDocuments:
    @pytest.mark.slow
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
        assert "is not a document of code" in str(wrong)

    def test_a_registered_document_that_is_gone_is_named(self, repo, vault, check):
        with vault.memory() as memory:
            memory.documentation.register(repo.path / "docs/reach.md", "code")
        repo.remove("docs/reach.md")
        with vault.memory() as memory:
            assert memory.documentation.catalogue().missing == (("code", "docs/reach.md"),)

    def test_a_registered_document_that_was_renamed_is_named_and_its_line_can_be_changed(self, repo, vault, check):
        repo.save("docs/plain.md", "# Plain\n\nNo word of code.\n")
        with vault.memory() as memory:
            memory.documentation.register(repo.path / "docs/plain.md", None, ("src/reach.py",))
        repo.rename("docs/plain.md", "docs/first.md")
        repo.commit("plain is first")
        with vault.memory() as memory:
            (remark,) = memory.documentation.catalogue().remarks
        assert "docs/plain.md is registered and no longer exists" in remark
        assert "write its new name" in remark
        project = vault.root / "projects/code/PROJECT.md"
        project.write_text(project.read_text().replace("docs/plain.md", "docs/first.md"))
        found = check()["docs/first.md"]
        assert (found.origin, found.sources) == ("registered", ("src/reach.py",))

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
