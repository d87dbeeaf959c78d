"""A person's page: the portrait by theme, relations, changes, other voices, open questions, doubts, and all facts."""

from __future__ import annotations

import re
from html import unescape

import pytest
from janitor_facts import write_fact
from vaults import be_calm, copy_vault
from web.browsing import NARROW, find_violations, is_wide_enough, start_browser, visit
from web.conftest import let_in

INES = "/memory/Ines%20Chen"


def write_people(vault):
    """Ines with facts of several themes, a change of home, a contradiction, and the words of others about her."""
    for name, kind in (("Maya Chen", "person"), ("Ines Chen", "person"), ("Porto", "place"), ("Biscuit", "pet")):
        vault.write(f"entities/{name}.md", f"---\nid: 01e{name.split()[0].lower()}\ntype: {kind}\n---\n")
    vault.write("quaid.toml", 'owner_name = "Maya Chen"\n')
    write_fact(
        vault, "sister", "[[Ines Chen]] is the sister of [[Maya Chen]]", "- [[Ines Chen]] sibling_of [[Maya Chen]]"
    )
    write_fact(vault, "allergy", "[[Ines Chen]] is allergic to walnuts", type="fact", source="user")
    write_fact(vault, "kayak", "[[Ines Chen]] prefers a blue kayak", type="preference")
    write_fact(
        vault, "lisbon", "[[Ines Chen]] lives in Lisbon", "- [[Ines Chen]] lives_in [[Lisbon]]",
        superseded_by="porto", valid_until="2026-05-01",
    )  # fmt: skip
    write_fact(
        vault,
        "porto",
        "[[Ines Chen]] lives in [[Porto]]",
        "- [[Ines Chen]] lives_in [[Porto]]",
        valid_from="2026-05-01",
    )
    write_fact(vault, "oslo", "[[Ines Chen]] lives in Oslo", "- [[Ines Chen]] lives_in [[Oslo]]", confidence=0.4)
    write_fact(vault, "works", "[[Ines Chen]] works at Acme", "- [[Ines Chen]] works_at [[Acme]]", speaker="Tom")
    write_fact(
        vault, "trip", "[[Ines Chen]] sails to Madeira", type="event", valid_from="2026-02-03", speaker="Ines Chen"
    )
    write_fact(vault, "secret", "[[Ines Chen]] owes Bob money", owner="bob", privacy="private")
    vault.write(
        "review/dispute-0123abcd.md",
        "---\ntype: review\ntask: dispute\nkind: dispute\nkey: 0123abcd0123abcd\ncreated: 2026-11-20T03:30:00Z\n"
        'about: ["[[allergy]]"]\n---\n# forget "Ines Chen is allergic to walnuts"\n\n'
        "- [ ] Yes, do it\n- [ ] No, and do not ask again\n",
    )
    vault.save("people")
    return vault


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        be_calm(patch)
        yield write_people(copy_vault(tmp_path_factory.mktemp("people") / "vault"))


@pytest.fixture(scope="module")
def page(people):
    with let_in(people) as client:
        yield lambda path=INES, status=200: read(client, path, status)


def read(client, path, status):
    answer = client.get(path)
    assert answer.status_code == status
    return unescape(answer.text)


def section(page, title):
    """The section of a page with a heading, without tags."""
    sections = re.findall(r"<section.*?</section>", page, re.DOTALL)
    found = next(each for each in sections if re.search(rf'-title">{title}( <|</h2)|id="theme-\w+">{title} <', each))
    return " ".join(re.sub(r"<[^>]*>", " ", found).split())


@pytest.mark.parametrize(("theme", "text"), [
    ("Health", "allergic to walnuts"), ("Tastes", "a blue kayak"), ("Home", "lives in Porto"), ("Work", "works at Acme"),
    ("Family and people", "the sister of Maya Chen"), ("What happened", "sails to Madeira"),
])  # fmt: skip
def test_the_portrait_groups_what_holds_by_theme(page, theme, text):
    assert text in section(page(), theme)


def test_what_was_replaced_is_in_no_theme_and_among_the_changes(page):
    assert "Lisbon" not in section(page(), "Home")
    changed = section(page(), "What changed")
    assert "1 May 2026" in changed
    assert "Ines Chen lives in Porto 1 May 2026" in changed
    assert "Ines Chen lives in <del>Lisbon</del><ins>Porto</ins>" in page()


def test_relations_are_sentences_with_a_drawing_that_needs_no_script(page):
    shown = section(page(), "Relations")
    assert "Ines Chen is a sibling of Maya Chen" in shown
    assert "Ines Chen lives in Porto since 1 May 2026" in shown
    assert re.search(r"Ines Chen lives in Lisbon .*not any more", shown)
    assert page().count("<line ") == 5
    assert 'class="ended"' in page()


def test_what_others_say_is_by_speaker(page):
    said = section(page(), "What others say")
    assert "Tom 1 Ines Chen works at Acme" in said
    assert "Ines Chen, in their own words 1 Ines Chen sails to Madeira" in said
    assert "walnuts" not in said


def test_what_is_uncertain_says_why(page):
    doubts = section(page(), "What is uncertain")
    assert "confidence 0.40" in doubts
    assert "contradicts “Ines Chen lives in Oslo”" in doubts
    assert re.search(r"allergic to walnuts [^·]*· a question about it is open", doubts)
    assert "blue kayak" not in doubts


def test_open_questions_about_the_facts_lead_to_their_answer(page):
    assert "Forget this fact?" in section(page(), "Open questions")
    assert 'href="/review?question=0123abcd0123abcd"' in page()


def test_all_facts_are_there_page_by_page_and_by_theme(people, page, monkeypatch):
    assert "All facts 8" in section(page(), "All facts")
    monkeypatch.setattr("quaid.web.pages.person.ROWS", 3)
    seen = [re.search(r'id="facts".*', page(f"{INES}?page={number}"), re.DOTALL)[0] for number in (1, 2, 3)]
    texts = [text for each in seen for text in re.findall(r'dir="auto">(Ines Chen [^<]*)</a>', each)]
    assert len(texts) == len(set(texts)) == 8
    assert "Page 2 of 3" in seen[1]
    listed = re.search(r'id="facts".*', page(f"{INES}?theme=health"), re.DOTALL)[0]
    assert re.findall(r'dir="auto">(Ines Chen [^<]*)</a>', listed) == ["Ines Chen is allergic to walnuts"]
    assert "Page 3 of 3" in page(f"{INES}?page=9")
    assert "All facts 8" in section(page(f"{INES}?theme=<script>"), "All facts")


def test_what_another_owner_keeps_private_is_nowhere_and_not_counted(page):
    assert "owes" not in page()
    assert "bob" not in page()


def test_other_entities_have_the_same_frame(page):
    assert "lives in Porto" in section(page("/memory/Porto"), "Home")
    assert "Nothing is known of Biscuit yet." in page("/memory/Biscuit")


@pytest.mark.slow
def test_the_page_is_accessible_and_fits_a_phone(people):
    with start_browser() as browser, visit(browser, people, viewport=NARROW) as site:
        tab = site.open(INES)
        assert is_wide_enough(tab)
        assert find_violations(tab) == []
