"""Two tabs for each action: one acts, another shows it by itself, and a third that has heard of nothing acts as well."""

from __future__ import annotations

import json
import re
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from docs_repo import CODE, write_repo
from model_service import Service
from vaults import copy_vault
from web.browsing import Site, serve, wait_until

from quaid.docs.registry import Project
from quaid.model import Recall
from quaid.recall.records import RecallRecords
from quaid.web import routes
from quaid.web.routes import ACTIONS

FACT = "---\nid: 01{0}\ntype: fact\nstatus: active\nowner: default\n{2}---\n{1}\n"
FACTS = {
    "pin": "Maya takes oat milk in her coffee", "check": "Maya plays the cello on Mondays",
    "gone": "Maya swims in the lake", "back": "Maya owns a red canoe", "doubt": "Maya is allergic to walnuts",
    "edit": "Maya drinks green tea", "leave": "Maya reads the morning paper", "desk": "Maya works at a tall desk",
    "date": "Maya has a dentist called Ines", "one": "Maya bakes rye bread", "two": "Maya bakes corn bread",
    "three": "Maya bakes wheat bread", "first": "Tom keeps two parrots", "next": "Tom keeps three parrots",
    "prompt": "The kiln in the studio reaches 1280 degrees", "undo": "Maya collects stamps",
}  # fmt: skip
RYE = "Select “Maya bakes rye bread”"
GAPS = ("What is the name of Zoe's ferry?", "Where is the spare anchor?", "Who painted the boathouse?")
UPDATED = {
    "still_true": False,
    "summary": "The limit is 20.",
    "edits": [{"section": "Hull", "find": "which is 10", "replace": "which is 20", "reason": "limit=20 in the code"}],
}
MATTERS = {"changes": [{"n": 1, "significant": True, "reason": "the page says 10"}]}
NAMED: set[str] = set()
"""The actions that a test below names."""


def acts(*paths: str):
    """Name the actions that a test tries in two tabs."""
    NAMED.update(paths)
    return pytest.mark.slow


def test_every_action_is_tried_in_two_tabs():
    assert {action.path for action in ACTIONS} == NAMED


def test_every_button_of_the_table_of_memories_is_tried_in_two_tabs():
    template = (Path(routes.__file__).parent / "templates/memories.html").read_text()
    assert set(re.findall(r'name="do" value="([\w-]+)"', template)) == {do for do, _, _ in BULK}


@pytest.fixture(scope="module")
def served(browser, tmp_path_factory, calm):
    """One server of a vault with something for each action, and the tabs of one browser."""
    service, folder = Service(), tmp_path_factory.mktemp("tabs")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"PROVIDER": "openai", "URL": f"{service.url}/v1", "DEEP": "wise", "FAST": "quick"}.items():
            patch.setenv(f"QUAID_MODELS_{name}", value)
        patch.setenv("OPENAI_API_KEY", "sk-x")
        vault, repo = copy_vault(folder / "vault"), write_repo(folder / "code")
        fill(vault, repo)
        with serve(vault) as address:
            site = Site(browser, address)
            site.open().wait_for_timeout(700)  # it listens for all tabs
            plain = browser.new_context(java_script_enabled=False, storage_state=site.context.storage_state())
            plain.set_default_timeout(60_000)
            yield Tabs(site, plain, vault, repo, service)
            plain.close()
            site.context.close()
    service.close()
    assert [each for each in site.troubles if not re.search(r"status of 4\d\d", each)] == []


@pytest.fixture
def tabs(served):
    """The same; the tabs that a test opens are closed after it, as each reloads with every change."""
    yield served
    for page in (*served.site.context.pages[1:], *served.plain.pages):
        page.close()


def fill(vault, repo) -> None:
    vault.run("config", "user.name", "Maya")
    vault.run("config", "user.email", "maya@example.org")
    for name, text in FACTS.items():
        vault.write(f"facts/{name}.md", FACT.format(name, text, "confidence: 0.9\n" if name == "date" else ""))
    vault.write("facts/likes.md", FACT.format("likes", "Jon likes sailing\n\n- [[Jon]] likes [[Sailing]]", ""))
    vault.write("entities/Jon.md", "---\nid: 01jon\ntype: person\n---\n")
    vault.write("entities/Maya Chen.md", "---\nid: 01maya\ntype: person\n---\n")
    vault.write("entities/M. Chen.md", "---\nid: 01mchen\ntype: person\n---\n")
    vault.write("own.md", "# Breakfast\n\nBread and jam.\n")
    vault.write(
        "projects/code/hull.md", "---\nsources: [src/reach.py]\n---\n# Hull\n\n`reach` has a limit, which is 10.\n"
    )
    vault.save("first")
    with vault.memory() as memory:
        memory.documentation.create(Project("code", "The code", source_roots=(str(repo.path),)))
        memory.documentation.confirm("projects/code/hull.md", "code")
        for name in ("first", "next"):
            memory.janitor.dispute(f"01{name}")
        memory.recall("kiln degrees", door="mcp", session="cursor-vscode")
        with closing(RecallRecords(vault.root, memory.settings)) as records:
            for asked in GAPS:
                records.after_recall(Recall(asked, (), (), 7.0), door="cli", depth="auto", now=datetime.now(UTC))
    repo.write("src/reach.py", CODE.replace("10", "20"))
    repo.commit("the limit is doubled", datetime.now(UTC))


class Tabs(SimpleNamespace):
    """`open` gives three tabs at a path: two of one browser, and one that hears of nothing that happens elsewhere."""

    def __init__(self, site, plain, vault, repo, service) -> None:
        super().__init__(site=site, plain=plain, vault=vault, repo=repo, service=service)

    def open(self, path: str):
        return self.site.open(path), self.site.open(path), self.open_stale(path)

    def open_stale(self, path: str):
        stale = self.plain.new_page()
        stale.goto(self.site.base + path)
        return stale

    def text(self, path: str) -> str:
        return (self.vault.root / path).read_text()


def press(tab, name: str, within=None) -> None:
    (within or tab).get_by_role("button", name=name, exact=True).first.click()


def says(tab, text: str) -> None:
    tab.locator("main [role=status], main [role=alert], main .mark").get_by_text(text).first.wait_for()


def holds(tab, text: str) -> None:
    """A field of the page has the text."""
    found = "[...document.querySelectorAll('textarea, input')].some((each) => each.value.includes({}))"
    if tab.context.browser and wait_until(tab, found.format(json.dumps(text)), 5):
        return
    pytest.fail(f"{text!r} is in no field of {tab.url}: {tab.locator('main').inner_text()[:400]}")


@acts("/mark/{reference:path}")
def test_a_mark_is_seen_and_the_same_again_changes_nothing(tabs):
    first, second, stale = tabs.open("/memory/01pin")
    for name, opposite in (
        ("Pin", "Unpin"),
        ("Verify", "Unverify"),
        ("Unpin", "Pin"),
        ("Unverify", "Verify"),
        ("Pin", "Unpin"),
    ):
        press(first, name)
        for tab in (second, first):
            tab.get_by_role("button", name=opposite, exact=True).wait_for()
    head = tabs.vault.head()
    press(stale, "Pin")
    says(stale, "Nothing to change")
    assert tabs.vault.head() == head


@acts("/mark/{reference:path}", "/dispute/{reference:path}", "/forget/{reference:path}")
@pytest.mark.parametrize(
    ("opens", "button"), [("", "Verify"), ("This is wrong …", "Ask whether to forget it"), ("Forget …", "Forget it")]
)
def test_nothing_is_done_to_a_memory_whose_text_is_another_one_than_was_shown(tabs, opens, button):
    _, second, stale = tabs.open("/memory/01check")
    note, now = tabs.vault.root / "facts/check.md", f"Maya plays the viola, {button.lower()}"
    note.write_text(re.sub("Maya plays.*", now, note.read_text()))
    tabs.vault.save("viola")
    second.get_by_text(now).first.wait_for()
    head = tabs.vault.head()
    if opens:
        stale.get_by_text(opens).click()
    press(stale, button)
    says(stale, "has changed since the page was shown")
    assert tabs.vault.head() == head
    stale.get_by_role("link", name="Go back").click()
    stale.get_by_text(now).first.wait_for()


@acts("/forget/{reference:path}", "/restore/{reference:path}")
def test_a_memory_that_is_forgotten_elsewhere_becomes_the_page_of_a_forgotten_one_and_back(tabs):
    first, second, stale = tabs.open("/memory/01gone")
    first.get_by_text("Forget …").click()
    press(first, "Forget it")
    second.get_by_role("button", name="Bring it back").wait_for()
    assert second.get_by_role("button", name="Pin").count() == 0
    assert second.title().startswith("Forgotten")
    stale.get_by_text("Forget …").click()
    press(stale, "Forget it")
    says(stale, "Nothing to change")
    stale.get_by_role("button", name="Bring it back").wait_for()
    press(second, "Bring it back")
    first.get_by_role("button", name="Pin").wait_for()
    assert first.get_by_role("button", name="Bring it back").count() == 0
    press(stale, "Bring it back")
    says(stale, "Nothing to change")
    assert (tabs.vault.root / "facts/gone.md").exists()


@acts("/dispute/{reference:path}", "/undo")
def test_a_reason_that_is_being_written_stays_and_is_not_lost_where_the_question_is_open_already(tabs):
    first, second, stale = tabs.open("/memory/01doubt")
    for tab in (first, second, stale):
        tab.get_by_text("This is wrong").click()
    for tab in (second, stale):
        tab.get_by_label("Why, if you like").fill("she said so")
    press(first, "Ask whether to forget it")
    for tab in (first, second):
        tab.get_by_text("A question about it waits for your answer").wait_for()
    assert second.get_by_label("Why, if you like").input_value() == "she said so"
    press(second, "Ask whether to forget it")
    for tab in (second, stale):
        if tab is stale:
            press(stale, "Ask whether to forget it")
        says(tab, "is open already")
        assert "she said so" in tab.get_by_label("Your text").input_value()
    waiting = int(first.locator("nav .number").inner_text().split()[-1])
    press(first, "Undo")
    first.get_by_text("Undone.").wait_for()
    second.locator("nav .number", has_text=str(waiting - 1)).wait_for()


@acts("/undo")
def test_what_is_undone_elsewhere_is_undone_once(tabs):
    with tabs.vault.memory() as memory:
        commit = memory.forget("01undo", by_owner=True).commit
    first, second, stale = tabs.open(f"/change/{commit}")
    press(first, "Undo this change")
    second.get_by_text("Undone: see the undo").wait_for()
    assert second.get_by_role("button", name="Undo this change").count() == 0
    head = tabs.vault.head()
    press(stale, "Undo this change")
    says(stale, "Nothing to undo")
    assert tabs.vault.head() == head


@acts("/edit/{reference:path}")
def test_an_edit_of_the_same_line_is_shown_next_to_the_other_and_one_of_a_forgotten_note_is_not_lost(tabs):
    first, second, stale = tabs.open("/edit/01edit")
    for tab, word in ((first, "black"), (second, "white"), (stale, "iced")):
        field = tab.get_by_label("The note with")
        field.fill(field.input_value().replace("green", word))
    press(first, "Save")
    says(first, "Saved as a commit.")
    second.get_by_text("The note has changed on disk.").wait_for()
    holds(second, "white tea")
    press(stale, "Save")
    stale.get_by_role("heading", name="Two versions of one note").wait_for()
    assert "iced tea" in stale.get_by_label("Combined version").input_value()
    assert "black tea" in tabs.text("facts/edit.md")
    first.get_by_text("Forget …").click()
    press(first, "Forget it")
    says(first, "Forgotten.")
    for tab, text in ((second, "white tea"), (stale, "iced tea")):
        press(tab, "Save")
        says(tab, "Not saved")
        assert text in tab.locator("textarea[name=text]").input_value()
    assert not (tabs.vault.root / "facts/edit.md").exists()


@acts("/edit/{reference:path}")
def test_a_note_that_was_renamed_becomes_a_page_that_says_so_and_a_form_stays(tabs):
    first, _, _ = tabs.open("/memory/own.md")
    form, _, _ = tabs.open("/edit/own.md")
    form.get_by_label("The note with").fill("# Breakfast\n\nBread, jam and cheese.\n")
    (tabs.vault.root / "own.md").rename(tabs.vault.root / "breakfast-plan.md")
    first.get_by_role("heading", name="Not shown").wait_for()
    assert first.get_by_role("link", name="Edit").count() == 0
    form.get_by_text("The note has changed on disk.").wait_for()
    holds(form, "cheese")
    tabs.vault.save("renamed")


@acts("/commit/{reference:path}")
def test_a_change_is_committed_once_on_each_page_that_offers_it(tabs):
    note = tabs.vault.root / "facts/desk.md"
    note.write_text(note.read_text().replace("tall", "low"))
    first, second, stale = tabs.open("/memory/01desk")
    _, today, _ = tabs.open("/")
    today.get_by_role("link", name="facts/desk.md").wait_for()
    press(first, "Commit this change")
    says(first, "Your change is committed")
    second.get_by_role("button", name="Commit this change").wait_for(state="detached")
    today.get_by_role("link", name="facts/desk.md").wait_for(state="detached")
    head = tabs.vault.head()
    press(stale, "Commit this change")
    says(stale, "Nothing to change")
    assert tabs.vault.head() == head


@acts("/memories/remember")
def test_the_same_sentence_is_remembered_once_and_another_one_that_is_being_written_stays(tabs):
    first, second, stale = tabs.open("/memories?q=bees")
    second.get_by_label("What to remember").fill("Maya has a loom")
    for tab in (first, stale):
        tab.get_by_label("What to remember").fill("Maya keeps bees in the garden")
    press(first, "Remember")
    says(first, "Remembered, as a commit.")
    second.get_by_role("link", name="Maya keeps bees in the garden").wait_for()
    assert second.get_by_label("What to remember").input_value() == "Maya has a loom"
    press(stale, "Remember")
    says(stale, "Already remembered")


BULK = [
    ("pinned", "Pin", ".sign:text('pinned')"), ("verified", "Verify", ".sign:text('verified')"),
    ("project", "Set the project", "select[name=project] option[value=boat]"),
    ("export-md", "Export as Markdown", None), ("export-json", "Export as JSON", None),
    ("forget", "Forget", None),
]  # fmt: skip


@acts("/memories/change")
def test_what_is_done_to_many_is_seen_and_what_has_changed_since_is_left_and_named(tabs):
    stale = {do: tabs.open_stale("/memories?q=bread") for do, _, _ in BULK}
    first, second, _ = tabs.open("/memories?q=bread")
    for do, button, sign in BULK:
        box = second.get_by_label("Select “Maya bakes corn bread”")
        box.check()
        if do.startswith("export"):
            with first.expect_download() as saved:
                first.get_by_label(RYE).check()
                press(first, button)
            assert "rye" in saved.value.path().read_text()
            continue
        second.get_by_label("Project to set").fill("harbour")
        first.get_by_label(RYE).check()
        if do == "project":
            first.get_by_label("Project to set").fill("boat")
        press(first, button)
        says(first, "The selected memories are" if do != "project" else "The project of the selected")
        if sign:
            second.locator(sign).first.wait_for(state="attached")
        else:
            second.get_by_label(RYE).wait_for(state="detached")
        assert box.is_checked()
        assert second.get_by_label("Project to set").input_value() == "harbour"
        second.get_by_text("1 selected").wait_for()
    head = tabs.vault.head()
    for do, button, _ in BULK:
        stale[do].get_by_label(RYE).check()
        press(stale[do], button)
        stale[do].get_by_text("no longer there").wait_for()
    assert tabs.vault.head() == head


@acts("/property/{reference:path}")
def test_a_property_that_changed_elsewhere_is_not_overwritten_and_what_was_typed_stays(tabs):
    first, second, stale = tabs.open("/memory/01date")
    for tab, value in ((first, "0.8"), (second, "0.75"), (stale, "0.7")):
        tab.locator("summary", has_text="0.9").click()
        tab.get_by_label("confidence", exact=True).fill(value)
    press(first, "Save", first.locator("details[open]"))
    says(first, "The property is changed")
    second.locator("summary", has_text="0.8").wait_for()
    assert second.get_by_label("confidence", exact=True).input_value() == "0.75"
    for tab, value in ((second, "0.75"), (stale, "0.7")):
        press(tab, "Save", tab.locator("details[open]"))
        says(tab, "was changed since the page was shown: it is 0.8 now")
        assert tab.get_by_label("confidence", exact=True).input_value() == value
    assert "confidence: 0.8" in tabs.text("facts/date.md")
    first.get_by_text("Add a property").click()
    first.get_by_label("Name", exact=True).fill("project")
    first.get_by_label("Value", exact=True).fill("teeth")
    press(first, "Save", first.locator("details.add"))
    says(first, "The property is changed")
    first.wait_for_timeout(1500)
    assert second.get_by_label("confidence", exact=True).input_value() == "0.75"  # the refusal is still there


@acts("/merge/{reference:path}")
def test_two_notes_are_merged_once(tabs):
    first, second, stale = tabs.open("/merge/Maya%20Chen?with=M.+Chen")
    press(first, "These are the same person")
    says(first, "The two notes are one now")
    second.get_by_role("button", name="These are the same person").wait_for(state="detached")
    head = tabs.vault.head()
    press(stale, "These are the same person")
    says(stale, "No note is called")
    assert tabs.vault.head() == head


@acts("/merge/{reference:path}")
def test_no_other_note_than_the_one_that_was_shown_comes_of_a_merge(tabs):
    for name in ("Ann Lee", "A. Lee"):
        tabs.vault.write(f"entities/{name}.md", f"---\nid: 01{name[0]}{len(name)}lee\ntype: person\n---\n")
    tabs.vault.save("people")
    _, second, stale = tabs.open("/merge/Ann%20Lee?with=A.+Lee")
    note = tabs.vault.root / "entities/A. Lee.md"
    note.write_text(f"{note.read_text()}- lives_in [[Porto]]\n")
    tabs.vault.save("Porto")
    second.locator(".prose", has_text="Porto").wait_for()
    head = tabs.vault.head()
    press(stale, "These are the same person")
    says(stale, "has changed since")
    assert tabs.vault.head() == head


@acts("/cut")
def test_a_relation_is_cut_once(tabs):
    first, second, stale = tabs.open("/memory/Jon")
    for tab in (first, stale):
        tab.get_by_text("Wrong?").first.click()
    press(first, "Remove the relation")
    says(first, "The relation is removed")
    second.get_by_text("Wrong?").wait_for(state="detached")
    press(stale, "Remove the relation")
    says(stale, "No note states this relation any more")


@acts("/review/answer")
def test_a_question_that_is_answered_elsewhere_gives_way_to_the_next_and_is_answered_once(tabs):
    with tabs.vault.memory() as memory:
        key = memory.janitor.open_questions()[0].key
    first, second, stale = tabs.open(f"/review?question={key}")
    _, today, _ = tabs.open(f"/?question={key}")
    second.locator(f"#q-{key} button").last.focus()
    press(first, "Keep it")
    says(first, "")
    for tab in (second, today):
        tab.locator(f"#q-{key}").wait_for(state="detached")
        tab.locator("article.review").wait_for()
    assert second.evaluate("document.activeElement.closest('form') === null")  # no key answers the next by accident
    press(stale, "Forget it")
    says(stale, "This question is not open any more")
    assert (tabs.vault.root / "facts/first.md").exists()
    assert (tabs.vault.root / "facts/next.md").exists()


@acts("/sessions/irrelevant")
def test_a_memory_is_marked_as_not_relevant_once(tabs):
    path = tabs.site.open("/sessions")
    there = path.locator("ul.sessions a").first.get_attribute("href")
    first, second, stale = tabs.open(there)
    first.locator(".irrelevant button").click()
    says(first, "Marked as not relevant")
    second.get_by_text("You marked this as not relevant here.").wait_for()
    head = tabs.vault.head()
    stale.locator(".irrelevant button").click()
    says(stale, "Nothing to change")
    assert tabs.vault.head() == head


@acts("/health/gaps/answer", "/health/gaps/leave-out")
def test_an_answer_that_is_being_written_stays_with_its_question_and_is_not_lost(tabs):
    first, second, stale = tabs.open("/health")

    def form(tab, gap):
        card = tab.locator("#gaps li", has_text=gap)
        if not card.locator("textarea").is_visible():
            card.get_by_text("Answer", exact=True).click()
        return card

    for tab in (second, stale):
        for gap, text in ((GAPS[1], "The spare anchor is in the shed"), (GAPS[2], "Jon painted the boathouse")):
            form(tab, gap).locator("textarea").fill(text)
    press(first, "Dismiss the question", form(first, GAPS[0]))
    says(first, "Dismissed.")
    second.locator("#gaps li", has_text=GAPS[0]).wait_for(state="detached")
    assert form(second, GAPS[1]).locator("textarea").input_value() == "The spare anchor is in the shed"
    assert form(second, GAPS[2]).locator("textarea").input_value() == "Jon painted the boathouse"
    form(first, GAPS[1]).locator("textarea").fill("The spare anchor is under the jetty")
    press(first, "Remember", form(first, GAPS[1]))
    first.get_by_text("Remembered").first.wait_for()
    second.locator("#gaps li", has_text=GAPS[1]).wait_for(state="detached")
    second.get_by_text("was on a part of the page that is gone").wait_for()
    holds(second, "The spare anchor is in the shed")
    press(stale, "Remember", form(stale, GAPS[1]))
    says(stale, "not open any more")
    holds(stale, "The spare anchor is in the shed")
    press(second, "Remember", form(second, GAPS[2]))
    second.get_by_text("Remembered").first.wait_for()
    stale.goto(f"{tabs.site.base}/health")
    assert "in the shed" not in "".join(each.decode() for each in tabs.vault.notes().values() if b"anchor" in each)


@acts("/health/gaps/leave-out")
def test_a_question_is_dismissed_once(tabs):
    asked = "Which buoy is missing?"
    with tabs.vault.memory() as memory, closing(RecallRecords(tabs.vault.root, memory.settings)) as records:
        records.after_recall(Recall(asked, (), (), 7.0), door="cli", depth="auto", now=datetime.now(UTC))
    first, second, stale = tabs.open("/health")
    for tab in (first, stale):
        card = tab.locator("#gaps li", has_text=asked)
        card.get_by_text("Answer", exact=True).click()
        press(tab, "Dismiss the question", card)
        says(tab, "Dismissed.")
    second.locator("#gaps li", has_text=asked).wait_for(state="detached")


@acts("/projects/confirm")
def test_a_document_that_is_confirmed_elsewhere_is_up_to_date_here(tabs):
    first, second, stale = tabs.open("/projects/code/document?id=code:docs/reach.md")
    press(first, "Still true")
    says(first, "Recorded: the document")
    second.get_by_text("Stale since").wait_for(state="detached")
    head = tabs.vault.head()
    press(stale, "Still true")
    stale.locator("main [role=status], main [role=alert]").first.wait_for()
    assert tabs.vault.head() == head


@acts("/projects/propose")
def test_a_proposal_is_applied_once(tabs):
    tabs.service.script = [json.dumps(MATTERS), json.dumps(UPDATED)]
    first, second, stale = tabs.open("/projects/code/document?id=projects/code/hull.md")
    for tab in (first, stale):
        press(tab, "Propose an update")
        tab.get_by_role("button", name="Apply the proposal").wait_for()
    press(first, "Apply the proposal")
    says(first, "The document is updated")
    second.get_by_text("Stale since").wait_for(state="detached")
    head = tabs.vault.head()
    press(stale, "Apply the proposal")
    stale.locator("main [role=status], main [role=alert]").first.wait_for()
    assert tabs.vault.head() == head
    assert "which is 20" in tabs.text("projects/code/hull.md")
