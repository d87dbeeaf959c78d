"""What the tests of documentation share: a repository with documents, the check of it, and a model to be asked."""

import pytest
from docs_repo import CODE, DOC
from model_service import Service
from source_repos import SourceRepo

from quaid.docs.registrar import NewProject


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


@pytest.fixture
def service():
    made = Service()
    yield made
    made.close()


@pytest.fixture(scope="module")
def lasting():
    made = Service()
    yield made
    made.close()
