"""Corrections in place: a property, a wrong relation, two notes of one person. Each is one commit that can be undone."""

from __future__ import annotations

import re
from html import unescape

import pytest
from matrices import for_each
from web.browsing import find_violations, visit
from web.test_writing import Reader

from quaid.janitor.vetoes import read_vetoes

HEAD = "type: fact\nstatus: active\nowner: default\n"


@pytest.fixture
def kept(vault):
    vault.run("config", "user.name", "Maya")
    vault.run("config", "user.email", "maya@example.org")
    vault.write("entities/Maya Chen.md", "---\nid: 01maya\ntype: person\naliases: [Maya]\n---\n- lives_in [[Lisbon]]\n")
    vault.write("entities/M. Chen.md", "---\nid: 01mchen\ntype: person\naliases: [Em]\n---\n- works_at [[Harbour]]\n")
    vault.write("entities/Jon.md", "---\nid: 01jon\ntype: person\n---\n")
    vault.write(
        "facts/milk.md",
        f"---\nid: 01milk\n{HEAD}confidence: 0.9 # mine\nvalid_from: 2026-03-01\ntags: [food]\n---\n"
        "[[M. Chen|Em]] takes oat milk\n\n- [[M. Chen]] likes [[Jon]]\n- [[M. Chen]] drinks [[Oat milk]]\n",
    )
    vault.write("facts/likes.md", f"---\nid: 01likes\n{HEAD}---\n- [[M. Chen]] likes [[Jon]]\n")
    vault.write("own.md", "---\nfriend: '[[Jon]]'\n---\n# Notes\n\nLunch with [[M. Chen]]\n")
    vault.write(
        "facts/bobs.md", "---\nid: 01bobs\ntype: fact\nowner: bob\nprivacy: private\n---\n[[M. Chen]] is watched\n"
    )
    vault.save("first")
    return vault


@pytest.fixture
def reader(open_client, kept):
    return Reader(open_client(kept), kept)


@for_each(("name", "was", "value", "line"), [
    ("confidence", "0.9", "0.75", "confidence: 0.75 # mine"),
    ("valid_from", "2026-03-01", "2025-12", "valid_from: 2025-12"),
    ("tags", "food", "food\r\ndrink, hot", 'tags: [food, "drink, hot"]'),
    ("project", "", "boat", "project: boat"),
    ("confidence", "0.9", "", None),
    ("pinned", "", "true", "pinned: true"),
    ("mood", "", "good", "mood: good"),
])  # fmt: skip
def test_a_property_is_changed_in_place_by_a_commit_that_one_click_undoes(reader, name, was, value, line):
    before = reader.vault.notes()
    path, said, commit = reader.act("/property/01milk", name=name, was=was, value=value)
    assert (path, said) == ("/memory/01milk", "property_set" if value else "property_removed")
    text = reader.vault.notes()["facts/milk.md"].decode()
    assert line in text.splitlines() if line else f"{name}:" not in text
    assert text.split("---")[2] == before["facts/milk.md"].decode().split("---")[2]
    assert reader.vault.git("log", "-1", "--format=%an").strip() == "Maya"
    reader.act("/undo", commit=commit, back=path)
    assert reader.vault.notes() == before


@for_each(("reference", "name", "was", "value", "why"), [
    ("01milk", "confidence", "0.9", "very", "Confidence should be a number"),
    ("01milk", "confidence", "0.9", "1.5", "from 0 to 1"),
    ("01milk", "valid_from", "2026-03-01", "soonish", "should be a date"),
    ("01milk", "valid_until", "", "2025-01", "before it begins"),
    ("01milk", "status", "active", "great", "Status is one of: pending, approved, active"),
    ("01milk", "type", "fact", "episode", "Type is one of: fact, preference"),
    ("01milk", "id", "01milk", "01other", "the id of a note never changes"),
    ("01milk", "confidence", "0.8", "0.7", "changed since the page was shown: it is 0.9 now"),
    ("01jon", "aliases", "", "Maya", "a name of Maya Chen already"),
])  # fmt: skip
def test_a_value_that_does_not_fit_is_refused_with_one_sentence_and_is_not_lost(
    reader, reference, name, was, value, why
):
    before = reader.vault.notes()
    answer = reader.post(f"/property/{reference}", name=name, was=was, value=value)
    assert answer.status_code == 400
    shown = unescape(re.search(r'<p class="problem" role="alert">([^<]*)</p>', answer.text)[1])
    assert why in shown
    assert shown.endswith("Nothing was changed.")
    assert name in {"id", "status", "type"} or value in answer.text  # a list of choices cannot hold another
    assert reader.vault.notes() == before


def test_a_secret_or_unseen_character_in_a_property_is_in_no_form(reader):
    secret, unseen = "AKIAQYLPMN5HHHFPZAM2", "safe\u202etxt"
    reader.vault.write("own2.md", f'---\nkey: {secret}\nname: "{unseen}"\nmood: good\n---\n# Own\n')
    html = reader.get("/memory/own2.md").text
    assert secret not in html
    assert "\u202e" not in html
    assert 'name="name" value="mood"' in html
    assert 'name="name" value="key"' not in html


def test_another_owners_note_has_no_properties_to_change(reader):
    assert reader.post("/property/01bobs", name="project", was="", value="x").status_code == 404


def test_a_wrong_relation_is_cut_from_every_note_that_states_it_by_one_commit(reader):
    before = reader.vault.notes()
    page = reader.get("/memory/M.%20Chen").text
    assert 'name="relation" value="likes"' in page
    assert 'name="relation" value="likes"' in reader.get("/graph?focus=Jon").text
    back = "/graph?focus=Jon"
    path, said, commit = reader.act("/cut", subject="Em", relation="likes", object="Jon", back=back)
    assert (path, said) == ("/graph", "cut")
    notes = reader.vault.notes()
    assert b"takes oat milk" in notes["facts/milk.md"]
    assert b"drinks [[Oat milk]]" in notes["facts/milk.md"]
    assert b"likes" not in notes["facts/milk.md"]
    assert "facts/likes.md" not in notes  # it stated nothing else
    assert 'value="likes"' not in reader.get("/memory/M.%20Chen").text
    reader.act("/undo", commit=commit, back=path)
    assert reader.vault.notes() == before
    again = reader.post("/cut", subject="Em", relation="hates", object="Jon")
    assert again.status_code == 400
    assert "No note states this relation" in again.text


def test_a_relation_that_a_persons_own_note_states_is_cut_from_it(reader):
    reader.act("/cut", subject="Maya Chen", relation="lives_in", object="Lisbon")
    assert b"Lisbon" not in reader.vault.notes()["entities/Maya Chen.md"]


def test_no_run_reads_a_cut_relation_from_its_fact_again(reader):
    reader.act("/cut", subject="Em", relation="likes", object="Jon")
    reader.act("/cut", subject="Em", relation="drinks", object="Oat milk")
    with reader.vault.memory() as memory:
        vetoes = read_vetoes(memory.git.log_changes(), (), memory.git)
    assert "edges" in {veto.task for veto in vetoes}


def test_two_notes_of_one_person_become_one_and_the_page_shows_it_before(reader):
    before = reader.vault.notes()
    shown = reader.get("/merge/Maya%20Chen?with=Em")
    assert shown.status_code == 200
    for text in ("Harbour", "Lisbon", "takes oat milk", "These are the same person", "M. Chen"):
        assert text in shown.text
    assert "bobs" not in shown.text
    assert reader.vault.notes() == before
    path, said, commit = reader.act("/merge/entities%2FMaya%20Chen.md", **{"with": "entities/M. Chen.md"})
    assert said == "merged"
    notes = reader.vault.notes()
    assert "entities/M. Chen.md" not in notes
    merged = notes["entities/Maya Chen.md"].decode()
    assert all(text in merged for text in ("M. Chen", "Em", "works_at [[Harbour]]", "lives_in [[Lisbon]]"))
    assert b"[[Maya Chen|Em]] takes oat milk" in notes["facts/milk.md"]
    assert notes["own.md"] == before["own.md"]
    assert reader.get("/memory/M.%20Chen").status_code == 200
    assert reader.vault.git("log", "-1", "--format=%an: %s").strip() == "Maya: merge: M. Chen is Maya Chen"
    reader.act("/undo", commit=commit, back=path)
    assert reader.vault.notes() == before


def test_what_cannot_be_merged_is_refused(reader):
    assert "cannot be merged" in reader.get("/merge/Maya%20Chen?with=Maya").text
    assert "no note of a person" in reader.get("/merge/Maya%20Chen?with=01milk").text
    assert reader.post("/merge/Maya%20Chen", **{"with": "01bobs"}).status_code == 404
    swapped = reader.get("/merge/Maya%20Chen?with=Em&name=other").text
    assert "The note stays at" in swapped
    assert 'action="/merge/entities%2FM.%20Chen.md"' in swapped


@pytest.mark.slow
def test_a_property_and_a_relation_are_corrected_in_a_browser_without_javascript(browser, kept):
    with visit(browser, kept, java_script_enabled=False) as site:
        tab = site.open("/memory/01milk")
        tab.get_by_label("confidence: 0.9. Change it").click()
        tab.get_by_label("confidence", exact=True).fill("2")
        with tab.expect_event("response", lambda answer: answer.status == 400):
            tab.locator("details[open] button").click()
        tab.get_by_text("Confidence is a number from 0 to 1. Nothing was changed.").wait_for()
        tab.get_by_label("confidence", exact=True).fill("0.7")
        tab.locator("details[open] button").click()
        tab.get_by_text("The property is changed, as a commit.").wait_for()
        tab.locator("li", has_text="likes").get_by_text("Wrong?").click()
        tab.get_by_role("button", name="Remove the relation").first.click()
        tab.get_by_text("that stated it, in one commit").wait_for()
        tab.get_by_role("button", name="Undo", exact=True).click()
        tab.get_by_text("Undone").first.wait_for()
        site.troubles = [each for each in site.troubles if "400" not in each]
    with visit(browser, kept) as site:
        tab = site.open("/graph?focus=Jon")
        tab.locator("#about").get_by_text("Wrong?").first.click()
        assert find_violations(tab) == []
        tab.get_by_role("button", name="Remove the relation").first.click()
        tab.get_by_text("that stated it, in one commit").wait_for()
        tab = site.open("/memory/Maya%20Chen")
        tab.get_by_text("Merge with another note").click()
        tab.get_by_label("The other note").fill("Em")
        tab.get_by_role("button", name="Show the merged note").click()
        tab.get_by_role("heading", name="The merged note").wait_for()
        assert find_violations(tab) == []
        tab.get_by_role("button", name="These are the same person").click()
        tab.get_by_text("The two notes are one now").wait_for()
        assert find_violations(tab) == []
