"""Quaid's own repository as a project: its pages know what they are about, and one is brought up to date and put back."""

import shutil
import subprocess
from pathlib import Path

import pytest
from janitor_context import Scripted
from source_repos import SourceRepo

from quaid.docs.registry import Project
from quaid.history.proposal import Proposed

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PARTS = (
    *("quaid", "docs", "examples", "prompts", "vault-template", "hooks", "packaging", "tests/benchmarks"),
    *("README.md", "CONTRIBUTING.md", "plugin.json", "mcp.json", "server.json"),
)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A copy of this checkout with a history of its own."""
    folder = tmp_path_factory.mktemp("quaid") / "quaid"
    listed = subprocess.run(["git", "ls-files", "-z", *PARTS], cwd=ROOT, capture_output=True, text=True, check=False)
    names = [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]
    if not names:
        pytest.skip("not in a checkout: there is no history to look at")
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, folder / name)
    repo = SourceRepo(folder)
    repo.commit("as it is")
    return repo


@pytest.fixture
def repo(checkout, tmp_path):
    return checkout.clone(tmp_path / "code")


@pytest.fixture
def home(vault, repo):
    with vault.memory() as memory:
        memory.documentation.create(Project("quaid", source_roots=(str(repo.path),)))
    return vault


@pytest.fixture
def replaying(monkeypatch):
    """Makes a model at the wire that answers what it is told to."""
    made = []

    def make(**answers):
        service = Scripted(**answers)
        made.append(service)
        named = {"provider": "anthropic", "url": service.url, "fast": "quick", "deep": "wise"}
        for name, value in named.items():
            monkeypatch.setenv(f"QUAID_MODELS_{name.upper()}", value)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
        return service

    yield make
    for service in made:
        service.close()


def check(home):
    with home.memory() as memory:
        return {doc.id.removeprefix("quaid:"): freshness for doc, freshness in memory.documentation.check()}


def test_the_pages_know_their_sources(home):
    found = check(home)
    assert [(doc, freshness.problems) for doc, freshness in found.items() if freshness.problems] == []
    about = {doc for doc, freshness in found.items() if freshness.sources}
    assert about >= {
        "docs/explanation/recall.md",
        "docs/explanation/janitor.md",
        "docs/reference/commands.md",
        "docs/reference/mcp.md",
        "docs/explanation/capture.md",
        "docs/how-to/install.md",
    }
    assert all(found[doc].status == "fresh" for doc in about)


def test_a_change_makes_the_right_pages_stale_and_no_others(repo, home):
    before = check(home)
    changed = "quaid/janitor/guards.py"
    repo.edit(changed, "MAX_QUESTIONS = 50\n", "MAX_QUESTIONS = 30\nMOST_NIGHTS = 3\n")
    commit = repo.commit("janitor: three nights at most")
    found = check(home)
    stale = {doc for doc, freshness in found.items() if freshness.is_stale}
    assert stale == {doc for doc, freshness in before.items() if changed in freshness.sources}
    assert "docs/explanation/janitor.md" in stale
    assert not stale & {
        "docs/explanation/recall.md",
        "docs/reference/mcp.md",
        "docs/explanation/capture.md",
        "docs/how-to/install.md",
    }
    assert {found[doc].since.id for doc in stale} == {commit}


def test_a_comment_or_a_blank_line_makes_none_stale(repo, home):
    for path in ("quaid/janitor/guards.py", "quaid/recall/pipeline.py", "quaid/cli/app.py"):
        repo.write(path, repo.read(path) + "\n\n# A remark.\n")
    repo.commit("remarks")
    assert not [doc for doc, freshness in check(home).items() if freshness.is_stale]


def test_a_model_updates_one_on_a_branch_and_the_merge_can_be_taken_back(repo, home, replaying):
    line = next(line for line in repo.read("docs/explanation/janitor.md").splitlines() if line.startswith("# "))
    repo.edit("quaid/janitor/guards.py", "MAX_QUESTIONS = 50\n", "MAX_QUESTIONS = 30\nMOST_NIGHTS = 3\n")
    repo.commit("janitor: three nights at most")
    head, status = repo.head, repo.git("status", "--porcelain")
    edit = {
        "section": "",
        "find": line,
        "replace": f"{line}\n\nAt most three nights (`MOST_NIGHTS`) are kept.",
        "reason": "MOST_NIGHTS is new.",
    }
    answers = {
        "docs_update": {"still_true": False, "summary": "Three nights are kept.", "edits": [edit]},
    }
    replaying(**answers)
    with home.memory() as memory:
        (proposal,) = list(memory.documentation.propose(["docs/explanation/janitor.md"]))
        assert not isinstance(proposal, str)
        done = memory.documentation.apply(*proposal)
    assert isinstance(done, Proposed)
    assert (repo.head, repo.git("status", "--porcelain")) == (head, status)
    assert repo.git("diff", "--stat", f"{head}..{done.branch}").startswith("docs/explanation/janitor.md | 2 ++")
    repo.merge(done.branch)
    assert not check(home)["docs/explanation/janitor.md"].is_stale
    repo.git("revert", "-m", "1", "--no-edit", "HEAD")
    assert check(home)["docs/explanation/janitor.md"].is_stale
