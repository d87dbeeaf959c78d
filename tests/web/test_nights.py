"""Nights and changes: the diary, each decision with its reason and diff, and an undo of one or of all."""

from __future__ import annotations

import re
import shutil

import pytest
from janitor_pages import CAT, CAT_TOLD, LEARNED, fill, model, night, reading
from vaults import be_calm, copy_of, copy_vault
from web.browsing import NARROW, find_violations, is_wide_enough, start_browser, visit

from quaid.cli.main import main as quaid
from quaid.place import LOCAL_FILE, state_folder
from quaid.recall.visibility import SEVERAL_OWNERS
from quaid.web.pages import history


@pytest.fixture(scope="module")
def tidied(tmp_path_factory):
    """A vault after one night, whose run is `vault.run_name`."""
    with pytest.MonkeyPatch.context() as patch:
        be_calm(patch)
        vault, service = copy_vault(tmp_path_factory.mktemp("tidied") / "vault"), model()
        fill(vault)
        vault.run_name = night(vault, service, patch).run
        service.close()
    return vault


@pytest.fixture(scope="module")
def reader(tidied):
    """A browser on a vault that nobody changes."""
    with pytest.MonkeyPatch.context() as patch:
        be_calm(patch)
        with reading(tidied) as found:
            yield found


@pytest.fixture
def own(calm, tidied, tmp_path):
    """A copy of the vault that its owner may change."""
    vault = copy_of(tidied.root, tmp_path / "vault")
    vault.run_name = tidied.run_name
    return vault


def find(vault, subject):
    """The commit of the night with `subject`."""
    return vault.git("log", "-1", "--format=%H", "--fixed-strings", f"--grep={subject}", "HEAD^2")


@pytest.mark.slow
def test_the_diary_tells_what_each_night_decided(reader, tidied):
    page = reader.get("/nights")
    assert f'href="/nights/{tidied.run_name}"' in page
    assert "Approved 3 facts, reworded 1" in page
    assert "asked 3 questions" in page
    assert "wise-20260101" in page


def test_a_night_shows_each_decision_with_reason_diff_and_who_decided(reader, tidied):
    page = reader.get(f"/nights/{tidied.run_name}")
    assert "It says whose cat it is." in page
    assert "<ins>Maya</ins> has <del>that</del><ins>a</ins> cat" in page
    assert "model wise-20260101" in page
    assert re.search(r"prompt review@\w+", page)
    assert page.count('action="/undo"') == 3  # two commits of decisions, and the night
    for text in LEARNED:
        assert text in page


def test_what_another_owner_keeps_private_is_in_no_night_and_no_change(reader, tidied):
    merge, asked = tidied.head(), find(tidied, "questions for you")
    first = tidied.git("log", "-1", "--format=%H", "--grep=extract: ")
    names = [path.name for path in (tidied.root / "review").glob("*.md") if "Bob" in path.read_text()]
    for path in ("/nights", f"/nights/{tidied.run_name}", f"/change/{merge}", f"/change/{asked}", f"/change/{first}"):
        page = reader.get(path)
        for told in ("Bob", "hidden.md", "hiddentoo", "01hidden", *names, "4 questions", "asks 4"):
            assert told not in page, (path, told)
    assert SEVERAL_OWNERS[1:] in reader.get(f"/change/{asked}")


def test_a_commit_of_nothing_but_what_is_private_says_no_more(own):
    note = own.root / "facts/hidden.md"
    note.write_text(note.read_text().replace("stone", "mat"))
    commit = own.save("Bob has moved his key")
    with reading(own) as reader:
        page = reader.get(f"/change/{commit}")
        assert "What another owner keeps private" in page
        for told in ("Bob", "hidden.md", "mat", "Maya", 'action="/undo"'):
            assert told not in page.split("<main")[1], told
        assert "Bob" not in reader.post("/undo", 404, commit=commit)


def test_what_was_private_then_is_not_shown_though_it_is_shared_now(own):
    note = own.root / "facts/hidden.md"
    note.write_text(note.read_text().replace("privacy: private", "privacy: shared").replace("stone", "mat"))
    commit = own.save("shared")
    with reading(own) as reader:
        page = reader.get(f"/change/{commit}")
        assert "stone" not in page


def test_a_night_of_another_machine_is_known_from_the_history(own):
    (state_folder(own.root) / LOCAL_FILE).unlink()
    with reading(own) as reader:
        page = reader.get("/nights")
        assert f'href="/nights/{own.run_name}"' in page
        assert "4 decisions" in page
        assert "asked 3 questions" in page
        assert "run on another machine" in page
        assert "It says whose cat it is." in reader.get(f"/nights/{own.run_name}")


def test_a_night_that_only_this_machine_knows_is_shown_too(own, tmp_path):
    own.git("reset", "-q", "--hard", "HEAD^1")
    with reading(own) as reader:
        assert f'href="/nights/{own.run_name}"' in reader.get("/nights")
        assert "This night has changed nothing." in reader.get(f"/nights/{own.run_name}")


def test_a_night_has_asked_what_its_commit_says_though_the_facts_are_gone(own):
    (own.root / "facts/diet.md").unlink()
    own.save("Tom's diet is over")
    with reading(own) as reader:
        assert "asked 3 questions" in reader.get("/nights")
        assert "3 questions</a>" in reader.get(f"/nights/{own.run_name}")


def test_a_night_that_was_stopped_says_why(own, monkeypatch):
    with own.memory() as memory:
        runs = memory.janitor._runs
        runs.finish(memory.janitor.runs(1)[0]._replace(outcome="stopped", problem="'cat' would no longer find x"))
    with reading(own) as reader:
        for path in ("/nights", f"/nights/{own.run_name}"):
            page = reader.get(path)
            assert "was stopped, and nothing was merged" in page
            assert "would no longer find x" in page


@pytest.mark.parametrize("name", ["nothing", "0" * 26, "%2e%2e", "a$b", ".*"])
def test_an_unknown_night_or_change_is_one_sentence(reader, name):
    for path in (f"/nights/{name}", f"/change/{name}"):
        page = reader.get(path, 404)
        (sentence,) = re.findall(r'role="alert">([^<]*)<', page)
        assert "No run and no commit is called" in sentence


def test_a_change_is_told_in_words_with_its_trailers_and_neighbours(reader, tidied):
    first = tidied.git("log", "-1", "--format=%H", "--grep=extract: ")
    page = reader.get(f"/change/{tidied.head()}")
    (before,) = re.findall(r'rel="prev" href="/change/(\w+)"', page)
    assert f'rel="next" href="/change/{tidied.head()}"' in reader.get(f"/change/{before}")
    assert f'href="/nights/{tidied.run_name}"' in page
    assert 'rel="next" href="/change/' in reader.get(f"/change/{first}")
    page = reader.get(f"/change/{find(tidied, 'rewrite')[:12]}")
    assert re.search("<h1[^>]*>Rewrite", page)
    assert "<dt>task</dt>" in page
    assert "review@" in page


def test_an_undo_says_beforehand_what_stays(own):
    commit = find(own, "rewrite")
    note = own.root / "facts/learned3.md"
    note.write_text(note.read_text().replace(CAT_TOLD, "Maya has a cat called Biscuit, a tabby."))
    own.save("a tabby")
    head = own.head()
    with reading(own) as reader:
        page = reader.get(f"/change/{commit}")
        assert "Later changes stay as they are" in page
        assert "a tabby" in page
        assert own.head() == head
        page = reader.get(f"/change/{head}")  # the owner's own commit
        assert 'action="/undo"' in page


@pytest.mark.slow
def test_one_decision_is_taken_back_and_marked(own):
    commit = find(own, "rewrite")
    with reading(own) as reader:
        there = reader.post("/undo", commit=commit)
        undo = own.head()
        assert there == f"/change/{undo}?said=undone"
        assert "The undo is a commit" in reader.get(there)
        assert CAT in (own.root / "facts/learned3.md").read_text()
        for path in (f"/change/{commit}", f"/nights/{own.run_name}"):
            assert f'Undone: <a href="/change/{undo}">' in reader.get(path)
        assert "All its decisions" not in reader.get(f"/nights/{own.run_name}")
        reader.post("/undo", commit=undo)  # which brings it back
        assert "Undone: " not in reader.get(f"/nights/{own.run_name}")
        assert CAT_TOLD in (own.root / "facts/learned3.md").read_text()


def test_undoing_the_undo_of_a_night_brings_back_its_questions_too(own):
    before = own.notes()
    assert any(path.startswith("review/") for path in before)
    with reading(own) as reader:
        reader.post("/undo", commit=own.run_name)
        assert not any(path.startswith("review/") for path in own.notes())
        reader.post("/undo", commit=own.head())
        assert own.notes() == before
        reader.post("/undo", commit=own.head())
        assert not any(path.startswith("review/") for path in own.notes())


@pytest.mark.matrix
@pytest.mark.parametrize(
    "back", ["//evil.example/", "/\\evil.example", "http://evil.example/", "evil", "/a\nb", "javascript:x"]
)
def test_an_undo_leads_to_our_own_pages_only(own, back):
    with reading(own) as reader:
        there = reader.post("/undo", commit=find(own, "rewrite"), back=back)
        assert there == f"/change/{own.head()}?said=undone"


def test_long_nights_and_changes_are_paged(reader, tidied, monkeypatch):
    monkeypatch.setattr(history, "MAX_COMMITS", 1)
    monkeypatch.setattr(history, "MAX_FILES", 3)
    first = reader.get(f"/nights/{tidied.run_name}")
    assert 'rel="next" href="?page=2"' in first
    assert "Approved 3" in reader.get(f"/nights/{tidied.run_name}?page=2")
    paths = [
        path
        for page in (1, 2, 3)
        for path in re.findall(r'<h3 class="path">(.*?)</h3>', reader.get(f"/change/{tidied.head()}?page={page}"))
    ]
    assert len(paths) == len(set(paths)) == 7
    monkeypatch.setattr(history, "MAX_NIGHTS", 1)
    assert 'rel="next"' not in reader.get("/nights")


def test_without_a_night_it_says_so(calm, tmp_path):
    vault = copy_vault(tmp_path / "vault")
    with reading(vault) as reader:
        assert "The janitor has not run yet." in reader.get("/nights")
        assert "has made the vault itself" in reader.get(f"/change/{vault.head()}")
    shutil.rmtree(vault.root / ".git")
    vault.run("init", "-q")
    assert quaid(["trust", str(vault.root)]) == 0  # it is another one now
    with reading(vault) as reader:
        assert "The janitor has not run yet." in reader.get("/nights")
        reader.get("/review")


@pytest.mark.slow
def test_a_night_is_undone_from_its_page(own):
    before = own.git("rev-parse", "HEAD^1")
    with start_browser() as browser, visit(browser, own, viewport=NARROW) as site:
        tab = site.open("/nights")
        tab.locator(".row a").first.click()
        assert find_violations(tab) == []
        tab.get_by_role("button", name="Undo this night").click()
        tab.get_by_text("Every decision of this run has been undone.").wait_for()
        assert is_wide_enough(tab)
    assert own.git("log", "-1", "--format=%s").startswith("undo: ")
    assert own.git("diff", "--name-only", before, "HEAD", "--", "facts") == ""
