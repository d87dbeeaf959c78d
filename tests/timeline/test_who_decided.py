"""Whose name a commit has: the person's who decided, the program's where it decided alone."""

from __future__ import annotations

import pytest
from janitor_nights import approve, decide, remember, rewriting, tidying
from janitor_pages import reading
from vaults import Vault

from quaid.capture.facts import supersede
from quaid.cli.main import main
from quaid.errors import BadInputError
from quaid.janitor import runner
from quaid.janitor.tasks import TASKS

pytestmark = pytest.mark.usefixtures("calm")

MAYA = "Maya Chen <maya@example.org> Maya Chen"
QUAID = "Quaid <quaid@localhost> Quaid"
JANITOR = "Quaid Janitor <janitor@localhost> Quaid"


@pytest.fixture
def hers(vault: Vault) -> Vault:
    vault.run("config", "user.name", "Maya Chen")
    vault.run("config", "user.email", "maya@example.org")
    return vault


@pytest.fixture
def tidy(hers, monkeypatch):
    return tidying(hers, monkeypatch)


def who(vault: Vault, revision: str = "HEAD") -> str:
    return vault.git("log", "-1", "--format=%an <%ae> %cn", revision)


def ask(vault, tidy, text="Maya drinks oat milk every day"):
    """A question about the one fact, and the run that carries its answer out."""
    (path,) = remember(vault, "Maya drinks oat milk")
    assert tidy(rewriting(path, text, always_asks=True)).asked
    (question,) = (vault.root / "review").glob("*.md")
    return path, question


@pytest.mark.slow
@pytest.mark.parametrize(("word", "said"), [("accept", "yes"), ("reject", "no")])
def test_answers_on_the_command_line(hers, tidy, monkeypatch, word, said):
    _, question = ask(hers, tidy)
    monkeypatch.chdir(hers.root)
    assert main(["janitor", word, question.stem]) == 0
    assert (who(hers), hers.git("log", "-1", "--format=%s")) == (MAYA, f"review: {said} to 1 question")
    tidy(lambda context: ())
    assert who(hers) == JANITOR  # the merge of the run, which it did alone
    assert who(hers, "HEAD^2") == MAYA  # what was decided in it
    assert "Quaid-Run: " in hers.git("log", "-1", "--format=%b", "HEAD^2")
    with hers.memory() as memory:
        night, answer = memory.timeline.log(2)
        assert (night.who, answer.who) == ("janitor", "owner")
        assert "night: " in night.what
        assert answer.what == f"answered: {said} to 1 question"


@pytest.mark.slow
def test_answers_and_undos_on_the_page(hers, tidy, monkeypatch):
    path, question = ask(hers, tidy)
    monkeypatch.setattr(runner, "TASKS", TASKS)
    with reading(hers) as page:
        key = question.read_text().split("key: ")[1].split("\n")[0]
        page.post("/review/answer", key=key, answer="yes")
        assert who(hers, "HEAD^2") == MAYA
        assert "every day" in (hers.root / path).read_text()
        page.post("/undo", commit=hers.head(), back="/nights")
        assert who(hers) == MAYA
        assert "every day" not in (hers.root / path).read_text()


@pytest.mark.slow
@pytest.mark.parametrize("is_bobs", [False, True])
def test_a_box_that_was_ticked_in_an_editor(hers, tidy, is_bobs):
    _, question = ask(hers, tidy)
    question.write_text(question.read_text().replace("- [ ] ", "- [x] ", 1))
    if is_bobs:
        hers.run("-c", "user.name=Bob", "-c", "user.email=bob@example.org", "commit", "-qam", "yes")
    tidy(lambda context: ())
    assert who(hers, "HEAD^2") == ("Bob <bob@example.org> Quaid" if is_bobs else MAYA)
    assert is_bobs or who(hers, ":/review: 1 question answered") == MAYA


@pytest.mark.slow
def test_undo_settings_and_merges(hers, monkeypatch):
    monkeypatch.chdir(hers.root)
    (path,) = remember(hers, "Maya drinks oat milk")
    assert who(hers) == QUAID
    assert main(["undo", "--last"]) == 0
    assert who(hers) == MAYA
    assert main(["undo", hers.head()]) == 0  # without --any: Quaid did it, at her word
    assert who(hers) == MAYA
    assert (hers.root / path).exists()
    assert main(["config", "recall.limit", "7"]) == 0
    assert who(hers) == MAYA
    assert main(["undo", "--last"]) == 0
    assert "limit = 7" not in (hers.root / "quaid.toml").read_text()
    assert main(["branch", "create", "trial"]) == 0
    assert main(["branch", "switch", "trial"]) == 0
    remember(hers, "Maya has a kite")
    assert main(["branch", "switch", "main"]) == 0
    assert main(["branch", "merge", "trial"]) == 0
    assert who(hers) == MAYA


@pytest.mark.slow
def test_what_an_agent_does_is_the_agents(hers, tidy, monkeypatch):
    _, question = ask(hers, tidy)
    with hers.memory() as memory:
        memory.janitor.answer(question.stem, "yes")  # as memory_answer does
    assert who(hers) == QUAID
    tidy(lambda context: ())
    assert who(hers, "HEAD^2") == JANITOR
    monkeypatch.chdir(hers.root)
    assert main(["remember", "Maya has a kite"]) == 0  # nothing proves who has typed that
    assert who(hers) == QUAID


@pytest.mark.slow
def test_without_a_name_in_git_it_is_quaids(vault, monkeypatch):
    tidy = tidying(vault, monkeypatch)
    _, question = ask(vault, tidy)
    monkeypatch.chdir(vault.root)
    assert main(["janitor", "accept", question.stem]) == 0
    assert who(vault) == QUAID
    tidy(lambda context: ())
    assert who(vault, "HEAD^2") == JANITOR
    with vault.memory() as memory:
        assert memory.timeline.log(2)[1].who == "owner"


@pytest.mark.parametrize("variables", [
    {"GIT_AUTHOR_NAME": "Anna", "GIT_AUTHOR_EMAIL": "anna@example.org"}, {"EMAIL": "anna@example.org"},
])  # fmt: skip
def test_the_person_is_found_as_git_finds_them(vault, monkeypatch, variables):
    vault.run("config", "author.name", "Anna")
    vault.run("config", "user.name", "Somebody")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(vault.root)
    remember(vault, "Maya drinks oat milk")
    assert main(["undo", "--last"]) == 0
    assert who(vault) == "Anna <anna@example.org> Anna"


# -- the protections of what a person decided --------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("how", ["undo", "git revert"])
def test_an_accepted_decision_that_is_undone_is_never_proposed_again(hers, tidy, how):
    path, question = ask(hers, tidy)
    plan = rewriting(path, "Maya drinks oat milk every day", always_asks=True)
    with hers.memory() as memory:
        memory.janitor.answer("all", "yes", by_owner=True)
    report = tidy(plan)
    assert report.answered
    if how == "undo":
        with hers.memory() as memory:
            memory.timeline.undo(report.run)
    else:
        hers.run("revert", "--no-edit", "HEAD^2")
        question.unlink(missing_ok=True)
        hers.save()
    assert "every day" not in (hers.root / path).read_text()
    report = tidy(plan)
    assert (report.vetoed, report.asked, report.done) == (1, [], [])
    if how == "undo":
        with hers.memory() as memory:
            memory.timeline.undo(hers.git("log", "-1", "--format=%H", "--grep", "^undo: "))
        assert "every day" in (hers.root / path).read_text()


@pytest.mark.slow
def test_what_was_accepted_is_asked_about_before_it_is_changed_and_not_dropped(hers, tidy):
    path, _ = ask(hers, tidy)
    with hers.memory() as memory:
        memory.janitor.answer("all", "yes", by_owner=True)
    tidy(lambda context: ())
    report = tidy(rewriting(path, "Maya drinks tea", evidence="2"))
    assert (report.overruled, len(report.asked), report.done) == (0, 1, [])
    assert "accepted" in report.asked[0].detail


@pytest.mark.slow
def test_words_of_a_title_take_nothing_back(hers, tidy):
    """A question quotes what memories say, and an answer quotes the question."""
    (path,) = remember(hers, "Maya drinks oat milk")

    def plan(context):
        if b"approved" not in context.read(path):
            yield decide(context, path, approve, kind="approve")

    tidy(plan)
    made = hers.git("log", "-1", "--format=%H", "HEAD^2")
    asking = rewriting(path, "Maya drinks tea", always_asks=True, subject=f"This reverts commit {made}.")
    assert tidy(asking).asked
    with hers.memory() as memory:
        memory.janitor.answer("all", "no", by_owner=True)
    assert f"This reverts commit {made}" in hers.git("log", "-1", "--format=%b")
    assert tidy(lambda context: ()).answered
    with hers.memory() as memory:
        memory.timeline.undo(hers.git("log", "-1", "--format=%H", "--grep", "approve", "HEAD"))
    assert tidy(plan).vetoed == 1


@pytest.mark.slow
def test_why_names_the_person_behind_an_accepted_merge(hers, tidy):
    one, two = remember(hers, "Maya drinks oat milk", "Maya takes oat milk")

    def plan(context):
        if b"superseded_by" not in context.read(one):
            yield decide(context, one, lambda p, d: supersede(p, d, two, None), kind="merge", always_asks=True)

    assert tidy(plan).asked
    with hers.memory() as memory:
        memory.janitor.answer("all", "yes", by_owner=True)
        assert memory.janitor.open_questions()[0].answer == "yes"
    assert tidy(plan).answered
    with hers.memory() as memory:
        (life,) = [step for step in memory.why(one).edits if "superseded" in str(step.changes)]
        assert life.by == "human"
        hers.write("plan.md", "A plan.\n")
        with pytest.raises(BadInputError, match="--any"):
            memory.timeline.undo(hers.save("by hand"))
