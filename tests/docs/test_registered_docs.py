"""Documents that the registry names, followed through their renames."""

import pytest
from docs_repo import CODE
from source_repos import SourceRepo
from vaults import refused

from quaid.docs.registry import Project
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

    @pytest.mark.slow
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
        repo.rename("guide/second.md", "docs/third.md")
        repo.commit("third")
        with vault.memory() as memory:
            documentation = memory.documentation
            catalogue = documentation.catalogue()
            doc = documentation.doc("docs/third.md")
            assert (doc.registered_as, doc.sources) == ("docs/plain.md", ("src/reach.py",))
            assert catalogue.missing == (("code", "docs/gone.md"),)
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
            memory.documentation.create(Project("both", source_roots=roots))
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
            memory.documentation.create(Project("part", source_roots=(str(repo.path / "part"),)))
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
