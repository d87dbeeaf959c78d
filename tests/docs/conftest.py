"""What the tests of documentation share: a repository with documents, the check of it, and a model to be asked."""

import pytest
from docs_repo import write_repo
from model_service import Service

from quaid.docs.registry import Project


@pytest.fixture
def repo(tmp_path):
    return write_repo(tmp_path / "code")


@pytest.fixture
def check(vault, repo):
    """Status of each document by its id, `code:` left out."""
    with vault.memory() as memory:
        memory.documentation.create(Project("code", source_roots=(str(repo.path),)))

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
