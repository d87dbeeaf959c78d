"""Today: what is new, what was decided, what waits and what is coming up, with a next step where there is nothing."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

import pytest
from janitor_facts import write_fact
from janitor_pages import CAT_TOLD, fill, keys_of, model, night, reading
from vaults import be_calm, copy_of, copy_vault

from quaid.web.pages.today import list_anniversaries, list_coming

NOW = datetime.now(UTC)


def day(ahead: int) -> str:
    return f"{NOW + timedelta(days=ahead):%Y-%m-%d}"


def part(page: str, name: str) -> str:
    """The section with this heading, as text."""
    found = re.search(rf'<section[^>]*aria-labelledby="{name}".*?</section>', page, re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", found[0]).split()) if found else ""


@pytest.fixture
def show(open_client, vault):
    """A function that saves the vault and shows the page."""

    def show() -> str:
        vault.save()
        answer = open_client(vault).get("/")
        assert answer.status_code == 200
        return answer.text

    return show


def test_an_empty_vault_says_how_it_fills(show):
    page = show()
    for step in ("quaid remember", "quaid install", "quaid import", "quaid janitor install"):
        assert step in part(page, "welcome")


def test_a_vault_with_facts_welcomes_nobody(show, vault):
    write_fact(vault, "tea", "Maya drinks green tea.", created="2024-02-01T10:00:00Z")
    page = show()
    assert not part(page, "welcome")
    assert "Nothing new. The latest fact is of 1 February 2024" in part(page, "learned")
    assert "Nothing in the next" in part(page, "coming")


def test_what_was_learned_since_yesterday_is_grouped_by_project_and_person(show, vault):
    yesterday = f"{day(-1)}T12:00:00Z"
    vault.write("entities/Tom.md", "---\nid: 01tom\ntype: person\n---\n")
    vault.write(
        f"episodes/{day(-1)[:4]}/talk.md",
        f"---\nid: talk\ntype: episode\nsession: talk\nsource: codex\nturn_count: 1\nstarted: {yesterday}\n---\n"
        "**Maya** (12:00): Tom sails on Sundays now. ^t1\n",
    )
    write_fact(vault, "sails", "[[Tom]] sails on Sundays.", created=yesterday, session="talk", speaker="Tom")
    write_fact(vault, "kafka", "Harbour has no Kafka.", created=yesterday, project="harbour")
    write_fact(vault, "old", "Maya lives in Lisbon.", created=f"{day(-3)}T12:00:00Z")
    page = part(show(), "learned")
    assert page.startswith("Learned since yesterday 2")
    assert "Tom Tom sails on Sundays. Tom, in a conversation with Codex CLI" in page
    assert "harbour Harbour has no Kafka. You" in page
    assert "Lisbon" not in page


def test_what_another_owner_keeps_private_is_not_learned_nor_counted(show, vault):
    write_fact(vault, "tea", "Maya drinks tea.", created=f"{day(0)}T00:00:00Z")
    secret = {"owner": "bob", "privacy": "private", "created": f"{day(0)}T00:00:00Z", "valid_from": day(1)}
    write_fact(vault, "secret", "Bob hides the key.", **secret)
    page = show()
    assert part(page, "learned").startswith("Learned since yesterday 1")
    assert "Bob" not in page


def test_facts_of_the_next_days_are_coming_up(show, vault):
    write_fact(vault, "dentist", f"Maya is at the dentist on {NOW + timedelta(days=1):%d %B %Y}.")
    write_fact(vault, "move", "Tom moves to Porto.", valid_from=day(5))
    write_fact(vault, "late", "Tom moves back.", valid_from=day(40))
    page = part(show(), "coming")
    assert re.search(r"Tomorrow .*dentist.* In 5 days .*moves to Porto", page)
    assert "back" not in page


def test_a_birthday_comes_back_every_year_and_a_date_does_not(vault):
    write_fact(vault, "birthday", "Ines Chen's birthday is on 4 October 1986.")
    write_fact(vault, "signed", "Maya signed the lease on 5 October 1990.")
    vault.save()
    with vault.memory() as memory:
        index = memory.index()
        coming = list_coming(index, date(2026, 10, 1))
        assert [(each, fact.text) for each, fact in coming] == [
            (date(2026, 10, 4), "Ines Chen's birthday is on 4 October 1986.")
        ]
        assert list_coming(index, date(2026, 12, 25)) == []


def test_the_days_over_the_end_of_a_year_are_the_next_days(vault):
    write_fact(vault, "fair", "The fair opens.", valid_from="2027-01-02")
    vault.save()
    with vault.memory() as memory:
        assert [fact.text for _, fact in list_coming(memory.index(), date(2026, 12, 28))] == ["The fair opens."]


def test_a_memory_of_a_year_ago_is_the_nearest_one(vault):
    write_fact(vault, "far", "Maya ran.", created="2024-11-28T10:00:00Z")
    write_fact(vault, "near", "Maya swam.", created="2025-11-30T10:00:00Z")
    write_fact(vault, "event", "Maya moved.", type="event", created="2026-03-01T10:00:00Z", valid_from="2025-11-27")
    write_fact(vault, "edge", "Maya slept.", created="2025-12-01T10:00:00Z")
    write_fact(vault, "now", "Maya rests.", created="2026-11-28T10:00:00Z")
    vault.save()
    with vault.memory() as memory:
        found = list_anniversaries(memory.index(), date(2026, 11, 28))
    assert [fact.text for _, fact in found] == ["Maya moved.", "Maya swam.", "Maya slept.", "Maya ran."]


def test_an_edit_that_is_not_committed_is_committed_by_a_click(calm, vault):
    write_fact(vault, "tea", "Maya drinks green tea.")
    vault.save()
    write_fact(vault, "tea", "Maya drinks black tea.")
    with reading(vault) as reader:
        assert "facts/tea.md" in part(reader.get("/"), "edits")
        there = reader.post("/commit/facts%2Ftea.md", back="/")
        assert there.startswith("/?said=committed")
        assert not part(reader.get(there), "edits")
    assert "black" in vault.git("show", "HEAD:facts/tea.md")


@pytest.fixture(scope="module")
def tidied(tmp_path_factory):
    """A vault after a night with questions."""
    with pytest.MonkeyPatch.context() as patch:
        be_calm(patch)
        vault, service = copy_vault(tmp_path_factory.mktemp("today") / "vault"), model()
        fill(vault)
        vault.run_name = night(vault, service, patch).run
        service.close()
    return vault


def test_each_decision_of_the_last_run_can_be_undone(calm, tidied, tmp_path):
    vault = copy_of(tidied.root, tmp_path / "vault")
    with reading(vault) as reader:
        page = reader.get("/")
        assert f"/nights/{tidied.run_name}" in page
        decided = part(page, "decided")
        assert "Approved 3 facts" in decided
        assert CAT_TOLD in decided
        commit = re.search(r'name="commit" value="(\w+)"[^§]*?Undo<span class="quiet">: Rewrite', page)
        assert commit, decided
        reader.post("/undo", commit=commit[1], back="/")
        assert "Undone: <a href" in reader.get("/")


def test_the_questions_are_asked_one_at_a_time_and_answered_here(calm, tidied, tmp_path):
    vault = copy_of(tidied.root, tmp_path / "vault")
    with reading(vault) as reader:
        page = reader.get("/")
        assert "1 of 3" in part(page, "question")
        assert "Bob" not in page
        (first,) = keys_of(page)
        following = re.search(r'name="following" value="(\w+)"', page)[1]
        answer = re.search(r'name="answer" value="(\w+)"', page)[1]
        there = reader.post("/review/answer", key=first, answer=answer, following=following, back="/")
        assert there.startswith(f"/?question={following}")
        after = reader.get(there)
        assert keys_of(after) == [following]
        assert "of 2" in part(after, "question")
