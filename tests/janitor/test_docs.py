"""Nights in which documents of projects are looked at: real repositories and vaults, a model that answers by rule."""

from __future__ import annotations

import atexit
import shutil
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from types import SimpleNamespace

import pytest
from janitor_context import Scripted
from source_repos import SourceRepo, run_git
from vaults import copy_around, copy_vault

from quaid.docs import source_roots
from quaid.docs.registry import Project
from quaid.errors import LockedError
from quaid.janitor.guards import Gate
from quaid.janitor.news import render_docs_news
from quaid.janitor.runner import RunOptions
from quaid.place import state_folder

CODE = 'LIMIT = 10\n\n\ndef reach(query):\n    """What a question reaches."""\n    return query[:LIMIT]\n'
DOC = "# Reach\n\nIt is in `src/reach.py`.\n\n## Limits\n\n- A question reaches 10 hits.\n- It is cut at its end.\n"
DOC += "\n## Why\n\n" + "A question that reaches everything says nothing of what it was about.\n" * 8
EDIT = {"section": "Limits", "find": "reaches 10 hits", "replace": "reaches 20 hits", "reason": "LIMIT is 20."}
UPDATE = {"still_true": False, "summary": "The limit is 20 now.", "edits": [EDIT]}
LATER = datetime.now(UTC) + timedelta(hours=1)
STALENESS = ("docs_staleness",)
UPDATE_40 = {**UPDATE, "edits": [{**EDIT, "replace": EDIT["replace"].replace("20", "40")}]}


@pytest.fixture
def model(monkeypatch):
    made = Scripted(docs_update=UPDATE)
    named = {"PROVIDER": "anthropic", "URL": made.url, "DEEP": "wise", "FAST": "quick"}
    for name, value in named.items():
        monkeypatch.setenv(f"QUAID_MODELS_{name}", value)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")
    yield made
    made.close()


@pytest.fixture
def vault(calm, tmp_path):
    """A vault with the project `code`, whose repository is beside it."""
    vault = copy_around(_beginning() / "vault", tmp_path / "both")
    source_roots.allow([tmp_path / "both" / "code"])
    return vault


@pytest.fixture
def repo(vault, model):
    """The repository of `code`: `docs/reach.md` is stale, `docs/other.md` is not."""
    return SourceRepo(vault.root.with_name("code"))


@cache
def _beginning():
    """Made once: that spares a dozen processes a test."""
    folder = Path(mkdtemp(prefix="quaid-tests-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    repo = SourceRepo(folder / "code")
    repo.write("src/reach.py", CODE)
    repo.write("src/other.py", "OTHER = 1\n")
    repo.write("docs/reach.md", DOC)
    repo.write("docs/other.md", "# Other\n\nAll about `src/other.py`.\n")
    repo.commit("begin")
    repo.write("src/reach.py", CODE.replace("10", "20"))
    repo.commit("reach: twice as many hits", LATER)
    vault = copy_vault(folder / "vault")
    with vault.memory() as memory:
        memory.documentation.create(Project("code", source_roots=(str(repo.path),)))
    registry = vault.root / "projects/code/PROJECT.md"
    registry.write_text(registry.read_text().replace(str(repo.path), "../code"))
    vault.save("the repository is beside the vault")
    return folder


@pytest.fixture
def night(vault, repo):
    """`night(task, …)` runs the janitor, those tasks or all; it gives the report."""

    def run(*tasks, **options):
        before = untouched(repo)
        with vault.memory() as memory:
            report = memory.janitor.run(RunOptions(tasks=tasks, **options))
        assert untouched(repo) == before
        assert vault.status() == ""
        return report

    return run


def run(vault):
    with vault.memory() as memory:
        return memory.janitor.run(RunOptions(tasks=STALENESS))


def untouched(repo):
    """What nobody may change in a source repository: where HEAD is, what is in the index and on the disk."""
    return repo.git("status", "--porcelain=v2", "--branch")


def branches(repo):
    return repo.git("for-each-ref", "--format=%(refname:short)", "refs/heads/quaid").split()


def answer(vault, word):
    with vault.memory() as memory:
        return memory.janitor.answer("all", word)


def questions(vault):
    return sorted((vault.root / "review").glob("*.md"))


def allow(vault, **policies):
    with vault.memory() as memory:
        for kind, policy in policies.items():
            memory.configure(f"janitor.policies.{kind}", policy)


def asked_of(model, tier):
    return [body for body in model.asked if body["model"] == {"deep": "wise", "fast": "quick"}[tier]]


def guide(vault, repo):
    """A document in the vault about `src/reach.py`, which changed since."""
    text = DOC.replace("# Reach", "# Guide")
    vault.write("projects/code/GUIDE.md", f"---\nsources: [src/reach.py]\n---\n{text}")
    vault.save("a guide")
    repo.save("docs/reach.md", DOC.replace("10", "20"), LATER + timedelta(hours=1))
    repo.save("src/reach.py", CODE.replace("10", "30"), LATER + timedelta(hours=2))
    repo.save("docs/reach.md", DOC.replace("10", "30"), LATER + timedelta(hours=3))
    return vault.root / "projects/code/GUIDE.md"


class TestADocumentInASourceRepository:
    @pytest.mark.slow
    def test_is_asked_about_and_becomes_a_branch(self, vault, repo, model, night):
        report = night(*STALENESS)
        (asked,) = report.asked
        assert (asked.kind, asked.subject, asked.edits) == ("update", "update docs/reach.md of code", ())
        assert (branches(repo), report.stale) == ([], ["code:docs/reach.md"])
        (note,) = questions(vault)
        shown = note.read_text()
        assert "# update docs/reach.md of code" in shown
        assert '"reaches 10 hits" becomes "reaches 20 hits": LIMIT is 20.' in shown
        assert "reach: twice as many hits" in shown
        assert "It becomes a branch in its repository" in shown
        calls = len(model.asked)
        assert not night(*STALENESS).changed  # it waits, and nobody is asked again
        assert len(model.asked) == calls

        answer(vault, "yes")
        report = night(*STALENESS)
        assert len(model.asked) == calls
        assert report.answered == ["yes: update docs/reach.md of code"]
        (branch,) = branches(repo)
        assert any(f"git -C {repo.path} merge {branch}" in remark for remark in report.remarks)
        assert repo.git("show", f"{branch}:docs/reach.md") + "\n" == DOC.replace("10", "20")
        assert repo.git("diff", "--name-only", f"main..{branch}") == "docs/reach.md"
        said = repo.git("log", "-1", "--format=%an%n%B", branch)
        assert said.startswith("Quaid\ndocs: update docs/reach.md\n\nThe limit is 20 now.")
        assert "Quaid-Task: docs_staleness" in said
        assert questions(vault) == []

        repo.git("branch", "-D", branch)  # the owner does not want it
        assert not night(*STALENESS).changed
        assert (branches(repo), len(model.asked)) == ([], calls)

        repo.save("src/reach.py", CODE.replace("10", "20") + "\n\nMORE = 2\n", LATER + timedelta(hours=1))
        assert len(night(*STALENESS).asked) == 1  # but its sources are others now

    @pytest.mark.slow
    def test_is_true_once_the_branch_is_merged(self, vault, repo, night):
        allow(vault, update="auto")
        report = night()
        assert [decision.subject for decision in report.done if decision.task == "docs_staleness"] == [
            "update docs/reach.md of code"
        ]
        (branch,) = branches(repo)
        repo.merge(branch, LATER + timedelta(hours=1))
        report = night()
        assert (report.stale, branches(repo)) == ([], [branch])

    @pytest.mark.slow
    def test_a_no_stands(self, vault, repo, model, night):
        night(*STALENESS)
        answer(vault, "no")
        calls = len(model.asked)
        night(*STALENESS)
        assert not night(*STALENESS).changed
        assert (len(model.asked), questions(vault), branches(repo)) == (calls, [], [])
        repo.save("src/reach.py", CODE.replace("10", "40"), LATER + timedelta(hours=1))
        night(*STALENESS)
        assert "reaches 20 hits" in str(asked_of(model, "deep")[-1]["messages"]).partition("<undone_edits>")[2][:900]

    def test_a_repository_that_git_cannot_read_is_a_remark(self, repo, vault, model):
        (repo.path / ".git/HEAD").write_text("garbage\n")
        report = run(vault)
        assert (report.asked, model.asked) == ([], [])
        assert [remark for remark in report.remarks if "could not read HEAD" in remark] == [
            f"git could not read HEAD of {repo.path}: it names no commit"
        ]

    @pytest.mark.slow
    def test_with_work_in_the_way_waits_until_that_is_committed(self, vault, repo, model, night):
        repo.write("docs/reach.md", DOC + "\nNot yet.\n")
        report = night(*STALENESS)
        assert (report.asked, model.asked) == ([], [])
        assert any("code:docs/reach.md was changed and not committed" in remark for remark in report.remarks)
        repo.write("docs/reach.md", DOC)
        assert len(night(*STALENESS).asked) == 1

        repo.write("docs/reach.md", DOC + "\nNot yet.\n")
        answer(vault, "yes")
        report = night(*STALENESS)
        ((_, reason),) = report.held_back
        assert "Commit it first" in reason
        assert (branches(repo), report.answered, len(questions(vault))) == ([], [], 1)
        repo.write("docs/reach.md", DOC)
        night(*STALENESS)
        assert (len(branches(repo)), questions(vault)) == (1, [])

    @pytest.mark.slow
    def test_that_was_rewritten_meanwhile_is_not_what_was_agreed_to(self, vault, repo, night):
        night(*STALENESS)
        answer(vault, "yes")
        repo.save("docs/reach.md", DOC.replace("10", "20"), LATER + timedelta(hours=1))
        report = night(*STALENESS)
        ((_, reason),) = report.held_back
        assert "was changed" in reason
        assert (branches(repo), questions(vault)) == ([], [])

    def test_is_not_asked_about_where_its_owner_has_had_a_branch_made(self, vault, repo, night):
        with vault.memory() as memory:
            (proposal,) = memory.documentation.propose()
            made = memory.documentation.apply(*proposal)
        assert branches(repo) == [made.branch]
        assert not night(*STALENESS).changed

    @pytest.mark.slow
    def test_that_vanished_stops_nothing(self, vault, repo, model, night):
        night(*STALENESS)
        answer(vault, "yes")
        shutil.move(repo.path, f"{repo.path}.away")
        report = run(vault)
        ((_, reason),) = report.held_back
        assert "there is no repository any more" in reason
        assert len(questions(vault)) == 1
        shutil.move(f"{repo.path}.away", repo.path)
        night(*STALENESS)
        assert len(branches(repo)) == 1
        allow(vault, update="auto")
        repo.save("src/reach.py", CODE.replace("10", "40"), LATER + timedelta(hours=1))
        model.answers["docs_update"] = lambda _: shutil.rmtree(repo.path) or UPDATE_40  # while the model thinks
        report = run(vault)
        assert (report.done, len(report.held_back), report.failed) == ([], 1, {})


class TestADocumentInTheVault:
    @pytest.mark.slow
    def test_becomes_a_commit_that_can_be_undone(self, vault, repo, model, night):
        note = guide(vault, repo)
        before = note.read_bytes()
        model.answers["docs_update"] = {**UPDATE, "edits": [{**EDIT, "replace": "reaches 30 hits"}]}
        assert night(*STALENESS).stale == ["projects/code/GUIDE.md"]
        answer(vault, "yes")
        report = night(*STALENESS)
        assert [decision.paths[0] for decision in report.done] == ["projects/code/GUIDE.md"]
        assert "reaches 30 hits" in note.read_text()
        assert f"true_at: {repo.head}" in note.read_text()
        said = vault.git("log", "-1", "--format=%B", "HEAD^2")
        assert said.startswith(
            "janitor(docs_staleness): update projects/code/GUIDE.md\n\nThe limit is 20 now. Stale since"
        )
        assert '- "reaches 10 hits" becomes "reaches 30 hits"' in said
        assert "Quaid-Model: " in said
        assert (report.stale, branches(repo)) == ([], [])

        calls = len(model.asked)
        with vault.memory() as memory:
            memory.timeline.undo(report.run)
        assert note.read_bytes() == before
        report = night(*STALENESS)
        assert (report.asked, report.done, questions(vault)) == ([], [], [])
        assert len(model.asked) == calls

    def test_is_left_alone_while_its_owner_writes_it_and_asked_about_in_any_case(self, vault, repo, model, night):
        allow(vault, update="auto")
        note = guide(vault, repo)
        text = note.read_text()
        note.write_text(text + "\nMore.\n")
        report = run(vault)
        assert (report.asked, asked_of(model, "deep")) == ([], [])
        assert any("GUIDE.md was changed and not committed" in remark for remark in report.remarks)
        note.write_text(text)
        model.answers["docs_update"] = {**UPDATE, "edits": [{**EDIT, "replace": "reaches 30 hits"}]}
        report = night(*STALENESS)
        assert [decision.paths for decision in report.asked] == [("projects/code/GUIDE.md",)]
        assert "you wrote or accepted what it changes" in questions(vault)[0].read_text()


class TestTheModel:
    def test_says_that_it_is_still_true(self, repo, model, night):
        model.answers["docs_update"] = {"still_true": True, "summary": "It names hits, not how many.", "edits": []}
        report = night(*STALENESS)
        assert (report.asked, report.stale) == ([], [])
        assert len(asked_of(model, "deep")) == 1
        calls = len(model.asked)
        assert night(*STALENESS).stale == []
        assert len(model.asked) == calls

    def test_is_not_obeyed_in_everything(self, vault, repo, model, night):
        allow(vault, update="auto")
        model.answers["docs_update"] = {
            **UPDATE,
            "edits": [{**EDIT, "replace": "reaches hits as `reach_far(query)` says"}],
        }
        report = night(*STALENESS)
        assert (report.done, report.asked, branches(repo), report.failed) == ([], [], [], {})
        assert any("Nothing is proposed for docs/reach.md of code" in remark for remark in report.remarks)
        assert report.stale == ["code:docs/reach.md"]
        calls = len(model.asked)
        night(*STALENESS)
        assert len(model.asked) == calls

    @pytest.mark.slow
    def test_is_not_asked_about_more_than_was_allowed(self, vault, repo, model, night, monkeypatch):
        monkeypatch.setattr("quaid.janitor.tasks.docs.MAX_UPDATES", 1)
        repo.save("docs/more.md", DOC.replace("# Reach", "# More"), LATER + timedelta(hours=1))
        repo.save("src/reach.py", CODE.replace("10", "40"), LATER + timedelta(hours=2))
        model.answers["docs_update"] = UPDATE_40
        assert [decision.subject for decision in night(*STALENESS).asked] == ["update docs/more.md of code"]
        assert [decision.subject for decision in night(*STALENESS).asked] == ["update docs/reach.md of code"]

    def test_is_not_there(self, repo, model, night, monkeypatch):
        monkeypatch.setenv("QUAID_MODELS_PROVIDER", "none")
        report = night()
        assert report.stale == ["code:docs/reach.md"]
        assert "Stale documents: code:docs/reach.md. See why with: quaid docs check" in report.remarks
        assert {"docs_staleness", "docs_cleanup"} <= set(report.waiting)
        assert "1 stale" in render_docs_news(report, "summary")
        assert model.asked == []


@pytest.mark.slow
def test_stopped_before_the_merge_the_next_night_finds_the_branch(vault, repo, night, monkeypatch):
    night(*STALENESS)
    answer(vault, "yes")

    def stopped(*_):
        raise LockedError("Somebody is at work")

    with monkeypatch.context() as patch, pytest.raises(LockedError):
        patch.setattr("quaid.janitor.commits.merge_run", stopped)
        night(*STALENESS)
    (branch,) = branches(repo)
    assert len(questions(vault)) == 1
    night(*STALENESS)
    assert (branches(repo), questions(vault)) == ([branch], [])


@pytest.mark.slow
def test_what_is_no_text_or_a_secret_is_not_quoted(vault, repo, model, night):
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9" * 2
    odd = f"- A question reaches 10 hits with {token} \xff.\n".encode("latin-1")
    repo.save(
        "docs/reach.md", DOC.encode().replace(b"- A question reaches 10 hits.\n", odd), LATER + timedelta(hours=1)
    )
    repo.save("src/reach.py", CODE.replace("10", "40"), LATER + timedelta(hours=2))
    model.answers["docs_update"] = lambda said: {
        **UPDATE, "edits": [{**EDIT, "find": f"reaches 10 hits with {token}", "replace": "reaches 40 hits"}]
    }  # fmt: skip
    night(*STALENESS)
    (note,) = questions(vault)
    assert token not in note.read_text(encoding="utf-8")
    answer(vault, "yes")
    night(*STALENESS)
    (branch,) = branches(repo)
    assert b"reaches 40 hits \xff." in run_git(repo.path, "show", f"{branch}:docs/reach.md")
    assert token not in vault.git("log", "-p", "--all")


def test_a_dry_run_makes_no_branch_and_remembers_nothing(vault, repo, night):
    allow(vault, update="auto")
    report = night(*STALENESS, dry_run=True)
    assert ([decision.task for decision in report.done], branches(repo)) == (["docs_staleness"], [])
    night(*STALENESS)
    assert len(branches(repo)) == 1


def test_the_gate_stops_a_branch_too(vault, repo, night, monkeypatch):
    allow(vault, update="auto")
    monkeypatch.setattr(Gate, "find_lost", lambda *_: ["'tea' would no longer find it"])
    with vault.memory() as memory:
        memory.remember("Maya bought a teapot yesterday")  # so that the run has a commit of its own: a date
    assert (night(*STALENESS, "temporal").lost, branches(repo)) == (["'tea' would no longer find it"], [])


def test_what_is_switched_off_does_nothing(vault, repo, model, night):
    for switch in ("systems.projects", "docs.check"):
        with vault.memory() as memory:
            memory.configure(switch, "false")
        report = night()
        assert (report.asked, report.stale, model.asked) == ([], [], [])
        with vault.memory() as memory:
            memory.configure(switch, "true")
    allow(vault, update="off", shorten="off")
    night(*STALENESS, "docs_cleanup")
    assert model.asked == []


PARAGRAPH = "Reaching further is what a question does, and why it does so is told here at some length, number {}. "
SAID = "A question that is said twice is said in vain.\n"


class TestADocumentThatHasGrown:
    @pytest.fixture
    def grown(self, repo):
        """`docs/long.md`: three times what it was half a year ago, changed every week."""
        text = "# Long\n\n" + "".join(PARAGRAPH.format(n) + "\n\n" for n in range(100))
        now = datetime.now(UTC)
        repo.save("docs/long.md", text, now - timedelta(days=200))
        for week in range(14):
            text += f"## Week {week}\n\n{SAID}\n" + "".join(PARAGRAPH.format(f"{week}-{n}") + "\n\n" for n in range(15))
            repo.save("docs/long.md", text, now - timedelta(days=80 - week))
        repo.save("docs/reach.md", DOC.replace("10", "20"), LATER + timedelta(hours=1))
        return text

    @pytest.mark.slow
    def test_is_asked_about_and_shortened_on_a_branch(self, vault, repo, model, night, grown):
        cut = {"section": "Week 3", "find": SAID, "replace": "", "reason": "Week 0 says so."}
        model.answers["docs_cleanup"] = {"edits": [cut]}
        (asked,) = night("docs_cleanup").asked
        assert (asked.kind, asked.subject) == ("shorten", "shorten docs/long.md of code")
        assert "It was changed 14 times in three months and is 3." in asked.why
        assert asked_of(model, "deep") == []
        answer(vault, "yes")
        night("docs_cleanup")
        (branch,) = branches(repo)
        head, _, tail = grown.partition("## Week 3\n\n")
        assert repo.git("show", f"{branch}:docs/long.md") == (head + "## Week 3\n\n" + tail.removeprefix(SAID)).strip()
        assert "docs: shorten docs/long.md" in repo.git("log", "-1", "--format=%B", branch)

    @pytest.mark.slow
    def test_has_nothing_to_lose(self, repo, model, night, grown):
        model.answers["docs_cleanup"] = {"edits": []}
        assert night("docs_cleanup").asked == []
        calls = len(model.asked)
        night("docs_cleanup")
        assert (len(model.asked), branches(repo)) == (calls, [])

    def test_is_brought_up_to_date_first(self, repo, model, night, grown):
        repo.save("docs/long.md", f"{grown}\nSee `src/reach.py`.\n", LATER + timedelta(hours=2))
        repo.save("src/reach.py", CODE.replace("10", "50"), LATER + timedelta(hours=3))
        assert (night("docs_cleanup").asked, model.asked) == ([], [])


def test_new_documents_are_indexed_and_named(vault, repo, night):
    vault.write("projects/kiln/HEAT.md", "# Heat\n\nThe kiln is fired at night.\n")
    vault.save()
    report = night("rag")
    assert any("kiln is a project now" in remark for remark in report.remarks)
    assert any(remark.startswith("New documents: ") for remark in report.remarks)
    with vault.memory() as memory:
        assert memory.documentation.search("kiln fired at night")[0].hits[0].doc == "projects/kiln/HEAT.md"
    assert not any("New documents" in remark for remark in night("rag").remarks)


def test_an_index_that_cannot_be_written_is_a_remark(vault, repo, night, monkeypatch):
    from quaid.errors import DiskFullError

    def full(*_args, **_options):
        raise DiskFullError("docs.db")

    monkeypatch.setattr("quaid.docs.documentation.Documentation.sync", full)
    report = night("rag")
    assert any("could not be indexed" in remark for remark in report.remarks)


def test_news_tell_what_became_of_the_documents(vault, repo, night, monkeypatch):
    monkeypatch.setenv("QUAID_NOTIFICATIONS_CHANNELS", "file")
    report = night(*STALENESS)
    assert render_docs_news(report, "off") == ""
    summary = "Documents: 1 to ask you about, 1 stale. See why with: quaid docs check"
    assert summary in render_docs_news(report, "summary")
    assert summary in (state_folder(vault.root) / "log" / "news.log").read_text()
    assert "Stale:\n- code:docs/reach.md" in render_docs_news(report, "full")
    nothing = SimpleNamespace(done=[], asked=[], held_back=[], stale=[], lost=[])
    assert render_docs_news(nothing, "full") == ""
