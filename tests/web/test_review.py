"""Review: one question at a time, answers as commits, and nothing of what another owner keeps private."""

from __future__ import annotations

import re
from dataclasses import fields
from datetime import UTC, datetime

import pytest
from janitor_facts import write_fact
from janitor_pages import (
    ALLERGY,
    BREAKFAST,
    CAT,
    CAT_TOLD,
    HELLO,
    fill,
    keys_of,
    model,
    night,
    reading,
)
from vaults import be_calm, copy_of, copy_vault
from web.browsing import find_violations, start_browser, visit

from quaid.janitor.questions import Question, question_path, render_question
from quaid.janitor.runner import RunOptions
from quaid.local.runs import Decision, Decisions, evidence_key
from quaid.model import Edit
from quaid.place import LOCAL_FILE, state_folder
from quaid.settings import PolicySettings
from quaid.sync.freshness import IndexFreshness
from quaid.web.outcomes import describe_outcomes, message_key
from quaid.web.routes import MESSAGES


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


def read_cards(reader):
    """The card of each open question by its key, in their order, as `Skip` leads through them."""
    cards, address = {}, "/review"
    while keys := keys_of(page := reader.get(address)):
        if keys[0] in cards:
            break
        assert f"{len(cards) + 1} of " in page
        cards[keys[0]] = re.search(r"<article.*?</article>", page, re.DOTALL)[0]
        following = re.search(r'href="(/review\?question=\w+)" data-key="j"', page)
        if not following:
            break
        address = following[1]
    return cards


def find_card(reader, text):
    """The card with `text` in it."""
    (card,) = [card for card in read_cards(reader).values() if text in plain(card)]
    return card


def plain(card):
    """A card without the marks of differing words."""
    return re.sub(r"</?mark>", "", card)


def answer(reader, text, given, **more):
    """Answer the question with `text`; the address that it leads to."""
    (key,) = keys_of(find_card(reader, text))
    return reader.post("/review/answer", key=key, answer=given, **more)


def list_buttons(card):
    return re.findall(r'name="answer" value="(\w+)" data-key="(\d)"[^>]*>([^<]*?) <kbd', card)


@pytest.mark.slow
def test_both_texts_are_next_to_each_other_with_the_words_that_differ_marked(owner):
    marked = find_card(owner[0], ALLERGY)
    assert "Anna <mark>" in marked
    card = plain(marked)
    first, second = re.findall(r'<section class="side".*?</section>', card, re.DOTALL)
    assert ALLERGY in first
    assert BREAKFAST in second
    for known in (
        "stated by</dt><dd>Maya",
        "confidence</dt><dd>0.90",
        "confirmed</dt><dd>2 times",
        "used</dt><dd>never",
    ):
        assert known in first
    assert "Careful with the sauce, Anna is allergic to peanuts." in first
    assert 'href="/memory/episodes%2F2026%2F10%2F20-1402-2f1c9a.md#b-t3"' in second
    assert list_buttons(card) == [
        ("a", "1", "A is true"), ("b", "2", "B is true"), ("both", "3", "Both are true"), ("neither", "4", "Forget both"),
    ]  # fmt: skip
    assert "nothing shows which one is" in card.split("Why am I asked?")[1]


def test_a_button_names_its_outcome(owner):
    card = find_card(owner[0], HELLO)
    assert "would be forgotten" in card
    assert "Nothing to remember." in card
    assert list_buttons(card) == [("yes", "1", "Forget it"), ("no", "2", "Keep it")]
    because = card.split("Why am I asked?")[1]
    assert "Asked because" in because
    assert HELLO in because


def test_a_new_wording_is_next_to_the_old_one(calm, tmp_path, monkeypatch):
    vault, service = copy_vault(tmp_path / "vault"), model()
    monkeypatch.setenv("QUAID_JANITOR_POLICIES_REWRITE", "ask")
    fill(vault)
    night(vault, service, monkeypatch)
    service.close()
    with reading(vault) as reader:
        cards = [plain(card) for card in read_cards(reader).values()]
        (reworded,) = [card for card in cards if "Use this wording?" in card]
        assert list_buttons(reworded) == [("yes", "1", "Use the new wording"), ("no", "2", "Keep the old wording")]
        assert re.search(f"{re.escape(CAT)}.*New wording.*{re.escape(CAT_TOLD)}", reworded, re.DOTALL)


def test_every_kind_of_decision_has_a_card(calm, tmp_path):
    vault = copy_vault(tmp_path / "vault")
    old = write_fact(vault, "old", "Maya drinks soy milk", speaker="Maya")
    new = write_fact(vault, "new", "Maya drinks oat milk", speaker="Tom", valid_from="2026-03-01")
    vault.write("USER.md", "# User\n\n- one\n")
    before = {path: (vault.root / path).read_bytes() for path in (old, new, "USER.md")}
    active = b"status: active"
    afters = {
        old: {
            "reject": None, "forget": None, "rewrite": before[old].replace(b"soy", b"almond"), "approve": before[old],
            "supersede": before[old].replace(active, active + b"\nsuperseded_by: new"),
            "date": before[old].replace(active, active + b"\nvalid_from: 2026-01-01"),
            "link": before[old] + b"\n- [[Maya]] likes [[Soy]]\n",
        },
        "USER.md": dict.fromkeys(("promote", "fold", "trim", "update", "shorten", "unknown"), b"# User\n"),
    }  # fmt: skip
    waiting, keys = Decisions(state_folder(vault.root) / LOCAL_FILE), {}
    for path, changes in afters.items():
        for kind, after in changes.items():
            key, edits = evidence_key(kind), (Edit(path, before[path], after),)
            facts = ("01new", "01old") if kind == "supersede" else ()
            decision = Decision("task", kind, key, edits, f"{kind} it", "A reason.", facts, always_asks=True)
            waiting.put(decision, "2026-11-20")
            vault.write(question_path(kind, key), render_question(decision, datetime.now(UTC), before).decode())
            keys[kind] = key
    with reading(vault) as reader:
        cards = {kind: reader.get(f"/review?question={key}") for kind, key in keys.items()}
    for kind, card in cards.items():
        assert "A reason." in card
        assert len(list_buttons(card)) == 2
        assert ("<ins>" in card or "<del>" in card) == (kind != "approve")
    assert re.findall(r'class="fate">(.*?)<', cards["supersede"]) == ["would be replaced", "stays"]
    assert "unknown it" in cards["unknown"]


def test_no_kind_of_question_is_answered_by_accept_or_refuse():
    kinds = [each.name for each in fields(PolicySettings)] + [
        "date",
        "link",
        "pin",
        "correct",
        "keep_both",
        "dispute",
        "x",
    ]
    for kind in kinds:
        words = describe_outcomes(Question("review/x.md", b"", "task", kind, "0" * 16, "title", (), (), "", None))
        assert len(set(words["choices"].values())) == len(words["choices"])
        for given, label in words["choices"].items():
            assert not re.search(r"(?i)accept|refuse|yes|\bno\b", label)
            assert MESSAGES[message_key(Question("", b"", "", kind, "", "", (), (), "", None), given)]


def test_a_question_about_what_another_owner_keeps_private_is_nowhere(owner):
    reader, vault = owner
    (hidden,) = [path for path in (vault.root / "review").glob("*.md") if "Bob" in path.read_text()]
    key = re.search(r"key: (\w+)", hidden.read_text())[1]
    for path in ("/review", "/ask", f"/review?question={key}", "/nights", "/ask?q=who+has+hidden+the+spare+key"):
        page = reader.get(path)
        assert "Bob" not in page
        assert hidden.name not in page
        assert re.search(r"waiting: </span>(\d+)", page)[1] == "3"
    assert "Bob" not in reader.get(f"/memory/review%2F{hidden.name}", 404)
    with vault.memory(owner="bob") as memory:
        assert memory.get(f"review/{hidden.name}").document.owner == "bob"
    assert "not open any more" in reader.post("/review/answer", 400, key=key, answer="a")
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
    keys = list(read_cards(reader))
    there = answer(reader, ALLERGY, "b", following=keys[1])
    assert there == f"/review?question={keys[1]}&said=answered-conflict-b&commit={vault.head()}"
    assert "B is true: A is marked as replaced." in reader.get(there)
    assert "superseded_by" in (vault.root / "facts/allergy.md").read_text()
    answer(reader, HELLO, "yes")
    assert not (vault.root / "facts/learned4.md").exists()
    assert "status: pending" in note.read_text()  # nothing else is decided
    assert vault.status() == ""
    assert len(read_cards(reader)) == len(keys) - 2
    assert 'id="answered"' not in reader.get("/review")
    told = reader.post("/undo", commit=there.split("commit=")[1].split("#")[0], back="/review", reopens="1")
    assert told == f"/review?said=undone&commit={vault.head()}"
    assert "superseded_by" not in (vault.root / "facts/allergy.md").read_text()
    assert not (vault.root / "facts/learned4.md").exists()


@pytest.mark.parametrize(
    ("text", "given", "other"), [(HELLO, "yes", "no"), (HELLO, "no", "yes"), (ALLERGY, "both", "a")]
)
def test_an_undone_answer_is_an_open_question_again(owner, text, given, other):
    reader, vault = owner
    before = vault.notes()
    for each in (given, given, other):
        there = answer(reader, text, each)
        assert "said=answered" in there
        reader.post("/undo", commit=there.split("commit=")[1], back="/review", reopens="1")
        assert vault.notes() == before
    with vault.memory() as memory:  # and no veto is left
        assert not memory.janitor.run(RunOptions()).asked
    assert len(read_cards(reader)) == 3


def test_a_refusal_is_a_veto_that_the_history_keeps(owner):
    reader, vault = owner
    answer(reader, HELLO, "no")
    assert "Quaid-Veto: review" in vault.git("log", "-3", "--format=%B", "HEAD^2")
    assert (vault.root / "facts/learned4.md").exists()


def test_one_question_is_shown_at_a_time_and_skipped_without_an_answer(owner):
    reader, vault = owner
    first, second, third = read_cards(reader)
    page = reader.get(f"/review?question={second}")
    assert keys_of(page) == [second]
    assert "2 of 3" in page
    assert f'href="/review?question={first}" data-key="k"' in page
    assert f'href="/review?question={third}" data-key="j"' in page
    assert f'href="/review?question={first}" data-key="j"' in reader.get(f"/review?question={third}")
    assert vault.status() == ""


def test_a_question_that_was_closed_leads_to_the_first_open_one(owner):
    first = next(iter(read_cards(owner[0])))
    for asked in ("0123456789abcdef", "nonsense,<script>"):
        page = owner[0].get(f"/review?question={asked}")
        assert keys_of(page) == [first]
        assert "not open any more" in page


@pytest.mark.parametrize(("back", "there"), [("/", "/"), ("//evil.example/", "/review"), ("", "/review")])
def test_an_answer_returns_to_the_page_that_it_was_given_on(owner, back, there):
    assert answer(owner[0], HELLO, "no", back=back).startswith(f"{there}?said=answered-reject-no&commit=")


def test_what_was_ticked_in_an_editor_is_answered_and_not_asked(owner):
    reader, vault = owner
    (path,) = [path for path in (vault.root / "review").glob("*.md") if HELLO in path.read_text()]
    path.write_text(path.read_text().replace("- [ ] Yes", "- [x] Yes"))
    page = reader.get("/review")
    assert HELLO not in page.split('id="answered"')[0]
    answered = page.split('id="answered"')[1]
    assert "<b>Forget it</b>" in answered


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
    assert len(read_cards(reader)) == 2


def test_one_of_two_notes_that_is_gone_is_said_and_cannot_be_chosen(owner):
    reader, vault = owner
    (vault.root / "facts/allergy.md").unlink()
    card = find_card(reader, BREAKFAST)
    assert "the next run closes this question" in card
    assert 'name="answer"' not in card


@pytest.mark.parametrize("form", [{"key": "0" * 16, "answer": "yes"}, {}, {"answer": "yes"}])
def test_an_answer_to_nothing_is_one_sentence(owner, form):
    reader, vault = owner
    head = vault.head()
    assert "This question is not open any more." in reader.post("/review/answer", 400, **form)
    (key,) = keys_of(find_card(reader, HELLO))
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
        assert re.search(r"waiting: </span>(\d+)", page)[1] == "3"


def test_a_hostile_question_is_only_read(owner):
    reader, vault = owner
    (path,) = [path for path in (vault.root / "review").glob("*.md") if HELLO in path.read_text()]
    said = "<script>alert(1)</script> AKIAQYLPMN5HHHFPZAM2 \u202etxt.exe ![x](http://evil.example/x.png)"
    path.write_text(
        path.read_text().replace("# reject", f"# reject {said}").replace("Nothing to", f"{said}\n\nNothing to")
    )
    key = re.search(r"key: (\w+)", path.read_text())[1]
    text = reader.client.get(f"/review?question={key}").text
    assert "<script>alert" not in text
    assert "AKIA" not in text
    assert "\u202e" not in text
    assert '<img src="http' not in text


def test_without_questions_it_says_so(calm, tmp_path):
    with reading(copy_vault(tmp_path / "vault")) as reader:
        page = reader.get("/review")
        assert "No question is open." in page
        assert "waiting: " not in page


@pytest.mark.slow
def test_by_the_keyboard_alone(calm, asked, tmp_path):
    vault = copy_of(asked.root, tmp_path / "vault")
    with start_browser() as browser, visit(browser, vault) as site:
        tab = site.open("/review")
        keys = keys_of(tab.content())

        def press(key, place):
            """Press a key; then the question at `place` is shown."""
            tab.keyboard.press(key)
            tab.get_by_text(f"{place} of ", exact=False).first.wait_for()
            return keys_of(tab.content())

        second = press("j", 2)
        third = press("j", 3)
        assert press("k", 2) == second
        assert vault.git("log", "-1", "--format=%s").startswith("janitor: ")
        assert len({*keys, *second, *third}) == 3
        tab.keyboard.press("2")
        tab.get_by_role("status").wait_for()
        subject = vault.git("log", "-4", "--format=%s")
        assert "review: no to 1 question" in subject or "review: b to 1 question" in subject
        assert "2 of 2" in tab.content()
        assert find_violations(tab) == []
        tab.get_by_label("Keys").uncheck()
        tab.keyboard.press("k")
        tab.keyboard.press("1")
        tab.wait_for_timeout(300)
        assert "2 of 2" in tab.content()


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
