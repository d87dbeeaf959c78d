"""Review: questions as cards, answers as commits, and nothing of what another owner keeps private."""

from __future__ import annotations

import re

import pytest
from janitor_pages import ALLERGY, BREAKFAST, HELLO, card_of, fill, keys_of, model, night, reading
from vaults import be_calm, copy_of, copy_vault
from web.browsing import find_violations, start_browser, visit

from quaid.sync.freshness import IndexFreshness
from quaid.web.pages import review


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """A vault after a night that asks four questions, one of them about what Bob keeps private."""
    with pytest.MonkeyPatch.context() as patch:
        be_calm(patch)
        vault, service = copy_vault(tmp_path_factory.mktemp("asked") / "vault"), model()
        fill(vault)
        report = night(vault, service, patch)
        service.close()
        assert len(report.asked) == 4
    return vault


@pytest.fixture
def owner(calm, asked, tmp_path):
    """(the owner's browser, their vault): a copy that they may change."""
    vault = copy_of(asked.root, tmp_path / "vault")
    with reading(vault) as reader:
        yield reader, vault


def answer(reader, text, given, **more):
    """Answer the question with `text`; the address that it leads to."""
    (key,) = keys_of(card_of(reader.get("/review"), text))
    return reader.post("/review/answer", key=key, answer=given, **more)


@pytest.mark.slow
def test_both_sides_stand_beside_each_other_with_what_speaks_for_them(owner):
    card = card_of(owner[0].get("/review"), ALLERGY)
    first, second = re.findall(r'<section class="side".*?</section>', card, re.DOTALL)
    assert ALLERGY in first
    assert BREAKFAST in second
    for known in (
        "said by</dt><dd>Maya",
        "confidence</dt><dd>0.90",
        "said again</dt><dd>2 times",
        "used</dt><dd>never",
    ):
        assert known in first
    assert "Careful with the sauce, Anna is allergic to peanuts." in first
    assert 'href="/memory/episodes%2F2026%2F10%2F20-1402-2f1c9a.md#b-t3"' in second
    assert re.findall(r'name="answer" value="(\w+)" data-key="(\w)"', card) == [
        ("a", "a"), ("b", "b"), ("both", "o"), ("neither", "n"),
    ]  # fmt: skip


def test_a_question_with_yes_or_no_says_what_an_acceptance_does(owner):
    card = card_of(owner[0].get("/review"), HELLO)
    assert "would go" in card
    assert "Nothing to remember." in card
    assert HELLO in card.split("File by file")[1]
    assert re.findall(r'name="answer" value="(\w+)" data-key="(\w)"', card) == [("yes", "a"), ("no", "r")]


def test_a_question_about_what_another_owner_keeps_private_is_nowhere(owner):
    reader, vault = owner
    (hidden,) = [path for path in (vault.root / "review").glob("*.md") if "Bob" in path.read_text()]
    key = re.search(r"key: (\w+)", hidden.read_text())[1]
    for path in ("/review", "/ask", f"/review?later={key}", "/nights", "/ask?q=who+has+hidden+the+spare+key"):
        page = reader.get(path)
        assert "Bob" not in page
        assert hidden.name not in page
        assert re.search(r"open questions: </span>(\d+)", page)[1] == "3"
    assert "Bob" not in reader.get(f"/memory/review%2F{hidden.name}", 404)
    with vault.memory(owner="bob") as memory:
        assert memory.get(f"review/{hidden.name}").document.owner == "bob"
    assert "not asked any more" in reader.post("/review/answer", 400, key=key, answer="a")
    # Gone from the disk, or from the history too, it is as private as it was.
    (vault.root / "facts/hidden.md").unlink()
    assert "Bob" not in reader.get("/review")
    vault.save("gone")
    assert "Bob" not in reader.get("/review")


def test_an_answer_is_carried_out_at_once_and_one_click_takes_it_back(owner):
    reader, vault = owner
    vault.write_fact("learned9", "Maya has a sailing licence")
    note = vault.root / "facts/learned9.md"
    note.write_text(note.read_text().replace("active", "pending"))
    vault.save("pending")
    keys = keys_of(reader.get("/review"))
    there = answer(reader, ALLERGY, "b", following=keys[1])
    assert there == f"/review?said=answered&commit={vault.head()}#q-{keys[1]}"
    assert "superseded_by" in (vault.root / "facts/allergy.md").read_text()
    answer(reader, HELLO, "yes")
    assert not (vault.root / "facts/learned4.md").exists()
    assert "status: pending" in note.read_text()  # nothing else is decided
    assert vault.status() == ""
    page = reader.get("/review")
    assert len(keys_of(page)) == len(keys) - 2
    assert 'id="answered"' not in page
    told = reader.post("/undo", commit=there.split("commit=")[1].split("#")[0], back="/review")
    assert told == f"/review?said=undone&commit={vault.head()}"
    assert "superseded_by" not in (vault.root / "facts/allergy.md").read_text()
    assert not (vault.root / "facts/learned4.md").exists()


def test_a_refusal_is_a_veto_that_the_history_keeps(owner):
    reader, vault = owner
    answer(reader, HELLO, "no")
    assert "Quaid-Veto: review" in vault.git("log", "-3", "--format=%B", "HEAD^2")
    assert (vault.root / "facts/learned4.md").exists()


def test_later_puts_a_question_behind_the_others_for_this_visit(owner):
    reader, vault = owner
    first, second, third = keys_of(reader.get("/review"))
    page = reader.get(f"/review?later={first}")
    assert keys_of(page) == [second, third, first]
    assert "for this visit only" in page
    later = f"{first},{second}"
    assert f'name="later" value="{later}"' in page
    assert keys_of(reader.get(f"/review?later={later}")) == [third, first, second]
    assert answer(reader, HELLO, "no", later=first) == f"/review?later={first}&said=answered&commit={vault.head()}"
    assert keys_of(reader.get("/review?later=nonsense,%3Cscript%3E")) == [first, second]
    assert vault.status() == ""


def test_what_was_ticked_in_an_editor_is_answered_and_not_asked(owner):
    reader, vault = owner
    (path,) = [path for path in (vault.root / "review").glob("*.md") if HELLO in path.read_text()]
    path.write_text(path.read_text().replace("- [ ] Yes", "- [x] Yes"))
    page = reader.get("/review")
    assert HELLO not in page.split('id="answered"')[0]
    answered = page.split('id="answered"')[1]
    assert "<b>Accept</b>" in answered


@pytest.mark.parametrize(
    "broken",
    [
        lambda text: text.replace("key: ", "key: no"),
        lambda text: text.split("- [ ]", maxsplit=1)[0],
        lambda text: f"<<<<<<< ours\n{text}=======\n{text}>>>>>>> theirs\n",
        lambda text: "",
    ],
)
def test_a_question_that_is_broken_is_not_asked(owner, broken):
    reader, vault = owner
    (path,) = [path for path in (vault.root / "review").glob("*.md") if HELLO in path.read_text()]
    path.write_text(broken(path.read_text()))
    assert len(keys_of(reader.get("/review"))) == 2


def test_one_of_two_notes_that_is_gone_is_said_and_cannot_be_chosen(owner):
    reader, vault = owner
    (vault.root / "facts/allergy.md").unlink()
    card = card_of(reader.get("/review"), BREAKFAST)
    assert "the next night closes this question" in card
    assert 'name="answer"' not in card


@pytest.mark.parametrize("form", [{"key": "0" * 16, "answer": "yes"}, {}, {"answer": "yes"}])
def test_an_answer_to_nothing_is_one_sentence(owner, form):
    reader, vault = owner
    head = vault.head()
    assert "This question is not asked any more." in reader.post("/review/answer", 400, **form)
    (key,) = keys_of(card_of(reader.get("/review"), HELLO))
    assert "takes one of: yes, no" in reader.post("/review/answer", 400, key=key, answer="both")
    assert vault.head() == head


def test_a_page_that_refuses_counts_the_open_questions_too(owner):
    reader, _ = owner
    form = {"before": "bm90IHRoZSBub3Rl", "text": "x"}
    refused = (
        reader.get("/nowhere", 404),
        reader.get("/memory/nowhere", 404),
        reader.post("/review/answer", 400),
        reader.post("/edit/facts%2Fallergy.md", 409, **form),
    )
    for page in refused:
        assert re.search(r"open questions: </span>(\d+)", page)[1] == "3"


def test_a_hostile_question_is_only_read(owner):
    reader, vault = owner
    (path,) = [path for path in (vault.root / "review").glob("*.md") if HELLO in path.read_text()]
    said = "<script>alert(1)</script> AKIAQYLPMN5HHHFPZAM2 \u202etxt.exe ![x](http://evil.example/x.png)"
    path.write_text(
        path.read_text().replace("# reject", f"# reject {said}").replace("Nothing to", f"{said}\n\nNothing to")
    )
    text = reader.client.get("/review").text
    assert "<script>alert" not in text
    assert "AKIA" not in text
    assert "\u202e" not in text
    assert '<img src="http' not in text


def test_without_questions_it_says_so(calm, tmp_path):
    with reading(copy_vault(tmp_path / "vault")) as reader:
        page = reader.get("/review")
        assert "No question is open." in page
        assert "open questions" not in page


def test_more_questions_than_fit_come_up_as_others_are_answered(owner, monkeypatch):
    monkeypatch.setattr(review, "MAX_CARDS", 2)
    page = owner[0].get("/review")
    assert len(keys_of(page)) == 2
    assert "1 more" in page


@pytest.mark.slow
def test_by_the_keyboard_alone(calm, asked, tmp_path):
    vault = copy_of(asked.root, tmp_path / "vault")
    with start_browser() as browser, visit(browser, vault) as site:
        tab = site.open("/review")
        first, second, third = keys_of(tab.content())

        def press(keys, key):
            """Press `keys` one after the other; then the question `key` has the focus."""
            for each in keys:
                tab.keyboard.press(each)
            tab.locator(f"#q-{key}:focus").wait_for()

        tab.keyboard.press("a")  # nothing is in focus, so nothing is answered
        press("j", first)
        press("jjj", third)
        press("k", second)
        assert vault.git("log", "-1", "--format=%s").startswith("janitor: ")
        press("l", third)
        tab.get_by_text("What you put off").wait_for()
        assert keys_of(tab.content()) == [first, third, second]
        press("r", second)
        assert "review: no to 1 question" in vault.git("log", "-3", "--format=%s")
        tab.get_by_role("status").get_by_text("Your answer is carried out").wait_for()
        assert keys_of(tab.content()) == [first, second]
        press("a", first)
        assert "review: a to 1 question" in vault.git("log", "-4", "--format=%s")
        assert find_violations(tab) == []
        tab.keyboard.press("?")
        tab.locator("#keys-on:focus").wait_for()
        tab.keyboard.press("Space")
        tab.keyboard.press("j")
        tab.locator("#keys-on:focus").wait_for()


def test_a_question_has_an_address_however_many_wait(owner, monkeypatch):
    monkeypatch.setattr(review, "MAX_CARDS", 1)
    (first,) = keys_of(owner[0].get("/review"))
    for key in keys_of(owner[0].get(f"/review?later={first}")):
        assert key != first
        assert keys_of(owner[0].get(f"/review?question={key}")) == [key]
        assert keys_of(owner[0].get(f"/review?later={key}&question={key}")) == [key]


@pytest.mark.parametrize("path", ["/", "/memory/facts%2Fallergy.md", "/review", "/health"])
def test_a_page_looks_at_the_files_once(owner, monkeypatch, path):
    """Its count of questions and what it shows are of one moment."""
    owner[0].client.get("/ask")  # by now the first page is made
    ensured = []
    changed = IndexFreshness._changed
    monkeypatch.setattr(IndexFreshness, "_changed", lambda self: ensured.append(path) or changed(self))
    owner[0].client.get(path)
    assert ensured == [path]
    ensured.clear()
    owner[1].write_fact("later", "Maya drinks green tea")
    assert "green tea" in owner[0].client.get("/ask").text
    assert ensured == [path]
