"""Projects: what is known at once, what a check finds, and how a document becomes true again."""

from __future__ import annotations

import json
import re
from urllib.parse import quote

import pytest
from docs_repo import CODE, DOC, write_repo
from model_service import Service
from web.browsing import find_violations, start_browser, visit
from web.conftest import let_in
from web.test_pages import Tags

from quaid.docs.registry import Project

UPDATED = {
    "still_true": False,
    "summary": "The limit is 20.",
    "edits": [{"section": "Reach", "find": "which is 10", "replace": "which is 20", "reason": "limit=20 in the code"}],
}
STILL_TRUE = {"still_true": True, "summary": "It names no number.", "edits": []}
MATTERS = {"changes": [{"n": 1, "significant": True, "reason": "the page says 10"}]}
ID = "code:docs/reach.md"
PAGE = f"/projects/code/document?id={ID}"


@pytest.fixture
def repo(tmp_path):
    return write_repo(tmp_path / "code", [("CHANGELOG.md", "# Changelog\n")])


@pytest.fixture
def stale(vault, repo):
    """A vault with a project, of which one document was left behind by a hostile commit."""
    with vault.memory() as memory:
        memory.documentation.create(Project("code", "The <code>", source_roots=(str(repo.path),)))
    repo.write("src/reach.py", CODE.replace("10", "20"))
    repo.commit("<script>alert(1)</script> the limit \u202eis doubled AKIAIOSFODNN7EXAMPLE")
    return vault


@pytest.fixture
def client(stale):
    with let_in(stale) as client:
        yield client


@pytest.fixture
def service(monkeypatch):
    """A model's service; what it answers next is in its `script`."""
    made = Service()
    for name, value in {"PROVIDER": "openai", "URL": f"{made.url}/v1", "DEEP": "wise", "FAST": "quick"}.items():
        monkeypatch.setenv(f"QUAID_MODELS_{name}", value)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    yield made
    made.close()


def post(client, path: str, **form: str):
    form = {"project": "code", "id": ID, **form, "form_token": "form"}
    return client.post(path, data=form, headers={"origin": str(client.base_url)}, follow_redirects=False)


def test_without_projects_it_says_how_to_make_one(vault):
    with let_in(vault) as client:
        page = client.get("/projects").text
    assert "There are no projects." in page
    assert "quaid project create NAME --root PATH" in page


def test_what_is_known_is_shown_and_a_check_finds_what_is_new(client):
    assert "Not checked on this machine yet" in client.get("/projects").text
    before = client.get("/projects/code").text
    assert "docs/reach.md" not in before
    (link,) = [each for each in Tags(before).named("a") if each.get("hx-get")]
    checked = client.get(link["href"]).text
    assert "<b>1 stale</b>" in checked
    assert checked.index("docs/reach.md") < checked.index("docs/other.md")
    assert "1 record, such as" in checked
    known = client.get("/projects/code").text
    assert "<b>1 stale</b>" in known
    assert "at the last check" in known
    assert "1 of 2 documents up to date" in client.get("/projects").text


def test_hostile_names_and_commits_are_only_read(client):
    client.get("/projects/code/check")
    for path in ("/projects", "/projects/code", PAGE):
        page = client.get(path).text
        assert "<script>alert" not in page
        assert "\u202e" not in page
        assert "AKIAIOSFODNN7EXAMPLE" not in page
        assert "<h1>The <code>" not in page
    assert "&lt;script&gt;alert(1)" in client.get(PAGE).text


def test_a_document_tells_what_changed_of_its_sources(client):
    page = client.get(PAGE).text
    assert "Stale since" in page
    assert "<del>def reach(limit=10):\n</del><ins>def reach(limit=20):\n</ins>" in page
    assert "src/reach.py" in page
    assert "Propose an update" not in page  # there is no model


def test_files_whose_names_are_not_text_break_no_page(client, stale, repo):
    for folder in (repo.path / "docs", repo.path / "src", stale.root / "projects" / "code"):
        (folder / "a\udcff b.md").write_text("# Odd\n\nAbout `src/other.py`.\n")
    repo.write("docs/all.md", "# All\n<!-- SOURCES: src -->\n")
    repo.commit("odd")
    assert client.get("/projects/code/check").status_code == 200
    assert "a\\udcff b.md" in client.get("/projects/code/document?id=code:docs/all.md").text
    assert client.get("/projects").status_code == 200


@pytest.mark.matrix
@pytest.mark.parametrize(
    "path",
    [
        "/projects/none",
        "/projects/none/check",
        "/projects/code/document?id=code:none.md",
        "/projects/code/document",
        "/projects/code/document?id=%00",
    ],
)
def test_what_is_not_there_is_one_sentence(client, path):
    answer = client.get(path)
    assert answer.status_code == 400
    assert re.search(r'role="alert">There is no [^<\n]+<', answer.text)


@pytest.mark.slow
def test_still_true_is_a_commit(client, stale, repo):
    stale.run("config", "user.name", "Maya")
    stale.run("config", "user.email", "maya@example.org")
    done = post(client, "/projects/confirm")
    place = f"/projects/code/document?id={quote(ID, safe='')}"
    assert (done.status_code, done.headers["location"]) == (303, f"{place}&said=doc_confirmed&commit={stale.head()}")
    assert f'name="commit" value="{stale.head()}"' in client.get(done.headers["location"]).text
    assert f'name="back" value="{place}"' in client.get(done.headers["location"]).text
    assert stale.git("log", "-1", "--format=%an: %s") == f"Maya: docs: {ID} is true at {repo.head[:10]}"
    assert "Recorded: the document" in client.get(done.headers["location"]).text
    assert "stale</b>" not in client.get("/projects/code/check").text


@pytest.mark.slow
def test_what_a_project_of_another_owner_holds_is_on_no_page(client, stale):
    secret = "---\nowner: bob\nprivacy: private\nsources: [src/reach.py]\n---\n# Bobs hull\n"
    stale.write("projects/code/hull.md", secret)
    stale.write(
        "projects/yacht/PROJECT.md", "---\ntype: project\nlabel: Yacht\nowner: bob\nprivacy: private\n---\n# Yacht\n"
    )
    stale.save()
    total = len(Tags(client.get("/projects/code/check").text).named("a"))
    for path in ("/projects", "/projects/code", "/projects/code/check", "/projects/yacht", "/health/checks"):
        page = client.get(path).text
        assert "hull" not in page, path
        assert "Yacht" not in page, path
    assert client.get("/projects/code/document?id=projects/code/hull.md").status_code == 400
    assert post(client, "/projects/confirm", id="projects/code/hull.md").status_code == 400
    stale.write("projects/code/hull.md", secret.replace("bob", "default"))
    stale.save()
    assert len(Tags(client.get("/projects/code/check").text).named("a")) == total + 1


@pytest.mark.slow
@pytest.mark.parametrize("is_kept", [True, False])
def test_a_proposal_is_shown_before_it_becomes_a_branch(client, stale, repo, service, monkeypatch, is_kept):
    if not is_kept:
        stale.write("quaid.toml", (stale.root / "quaid.toml").read_text() + "\n[models]\ncache_days = 0\n")
        monkeypatch.setenv("QUAID_MODELS_CACHE_DAYS", "0")
    page = client.get(PAGE).text
    assert "to wise (openai)" in page
    assert re.search(r"up to [\d,]+ tokens", page)
    asked = [request for request in service.requests if request[1]]
    assert asked == []  # looking costs nothing
    service.script = [json.dumps(MATTERS), json.dumps(UPDATED)]
    proposal = post(client, "/projects/propose")
    assert proposal.status_code == 200
    assert "which is <del>10</del><ins>20</ins>" in proposal.text
    assert "limit=20 in the code" in proposal.text
    assert repo.git("branch", "--list", "quaid/*") == ""
    shown = re.search(r'name="shown" value="(\w+)"', proposal.text)[1]
    service.script = [json.dumps(UPDATED | {"summary": "Another."})] if not is_kept else []
    done = post(client, "/projects/propose", shown=shown)
    assert done.status_code == 200
    branch = repo.git("branch", "--list", "quaid/*").strip()
    assert f"merge {branch}" in done.text
    assert "which is 20" in repo.git("show", f"{branch}:docs/reach.md")
    assert repo.read("docs/reach.md") == DOC


def test_another_proposal_than_the_one_shown_changes_nothing(client, repo, service):
    service.script = [json.dumps(MATTERS), json.dumps(UPDATED)]
    done = post(client, "/projects/propose", shown="0" * 64)
    assert done.status_code == 409
    assert "has changed since you saw it" in done.text
    assert repo.git("branch", "--list", "quaid/*") == ""


def test_what_the_model_finds_true_is_told(client, service):
    service.script = [json.dumps(MATTERS), json.dumps(STILL_TRUE)]
    done = post(client, "/projects/propose")
    assert done.headers["location"] == f"{PAGE}&said=doc_still_true"
    assert "Nothing to change" in client.get(done.headers["location"]).text


def test_a_model_that_fails_is_one_sentence(client, service):
    service.script = [json.dumps(MATTERS), *[(500, "broken", {})] * 9]
    done = post(client, "/projects/propose")
    assert done.status_code in {400, 409}
    assert re.search(r'role="alert">[^<\n]{10,}<', done.text)


@pytest.mark.slow
def test_a_check_runs_in_the_page_and_a_document_is_confirmed_with_the_keyboard(stale):
    with start_browser() as browser, visit(browser, stale, color_scheme="dark") as site:
        tab = site.open("/projects/code")
        tab.get_by_role("link", name="Check now").focus()
        tab.keyboard.press("Enter")
        tab.get_by_text("Checked just now.").wait_for()
        assert tab.url.endswith("/projects/code")
        assert find_violations(tab) == []
        tab.get_by_role("link", name="docs/reach.md").click()
        tab.get_by_role("button", name="Still true").focus()
        assert find_violations(tab) == []
        tab.keyboard.press("Enter")
        tab.get_by_text("Recorded: the document").wait_for()
