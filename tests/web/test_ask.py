"""Ask: the picture of how an answer came about, the filters, the past, and what is said while one types."""

from __future__ import annotations

import re
import time

import pytest
from web.browsing import find_violations, start_browser, visit, wait_until
from web.test_pages import Tags

from quaid.model import ChannelRank, Hit
from quaid.recall.options import FEATURES as KNOWN
from quaid.web.pages.ask import CHANNELS, FEATURES, WANTED, list_ranks, share_scores


@pytest.fixture
def past_vault(vault):
    """A vault of three years: a fact that was corrected, one that its owner made private since, two projects."""

    def save(day: str, message: str) -> None:
        vault.run("add", "-A")
        vault.run("-c", f"user.name={message}", "commit", "-q", "-m", message)
        dates = f"GIT_COMMITTER_DATE={day}T10:00:00Z"
        vault.run(
            "-c", "alias.date=!f() { " + dates + " git commit -q --amend --no-edit --date=" + day + "; }; f", "date"
        )

    vault.run("checkout", "-q", "--orphan", "told")
    vault.write_fact("milk", "Maya takes soy milk in her coffee")
    head = "---\nid: 01{}\ntype: fact\nstatus: active\nowner: {}\nprivacy: {}\nproject: {}\n---\n{}\n"
    vault.write("facts/drawer.md", head.format("drawer", "bob", "shared", "kiln", "Bob keeps milk in drawer nine"))
    vault.write("facts/order.md", head.format("order", "jonas", "shared", "office", "Milk is ordered by Jonas"))
    save("2024-01-10", "first")
    vault.write_fact("milk", "Maya takes oat milk in her coffee")
    save("2025-01-10", "corrected")
    vault.write("facts/drawer.md", head.format("drawer", "bob", "private", "kiln", "Bob keeps milk in drawer nine"))
    save("2026-01-10", "kept private")
    return vault


def test_everything_that_recall_tells_of_has_words():
    assert set(FEATURES) == {*KNOWN, "later stages"}
    assert {"keyword", "vector", "graph", "exact", "hyde", "second_pass"} <= CHANNELS.keys()
    assert {"general", "who", "when"} <= WANTED.keys()


def test_the_road_of_an_answer_is_drawn_and_told(client):
    text = client.get("/ask?q=what+milk+does+Maya+take").text
    drawings = [each for each in Tags(text).named("svg") if each.get("role") == "img"]
    told = " ".join(each["aria-label"] for each in drawings)
    assert "By words" in told
    assert "answer 1 was 1st" in told
    assert "Scores from 0 to 1: answer 1 has" in told
    assert "candidates were scored" in text
    assert re.search(r"Found 1st of \d+ by words", text)
    assert "own words and meaning" in text
    assert 'class="chosen"' in text


def test_places_are_told_as_english_has_them():
    numbers = (1, 2, 3, 4, 11, 12, 13, 21, 102, 111, 1003)
    hit = Hit("01milk", "fact", "milk", 0.5, "f.md", channels={str(one): ChannelRank(one, 1.0) for one in numbers})
    told = [sentence.split()[0] for sentence in list_ranks(hit, {"stages": []})]
    assert told == ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "102nd", "111th", "1,003rd"]


def test_the_evidence_of_all_answers_is_on_one_scale():
    hits = [Hit("01a", "fact", "a", own - 0.1, "f.md", evidence={"own": own, "length": -0.1}) for own in (0.8, 0.2)]
    first, second = ({share["name"]: share["strength"] for share in shares} for shares in share_scores(hits))
    assert first["own words and meaning"] == 100
    assert second["own words and meaning"] == pytest.approx(25)
    assert first["length"] == second["length"]


def test_without_a_question_nothing_was_weighed(client):
    text = client.get("/ask").text
    assert "Maya takes oat milk in her coffee" in text
    assert "How this answer was found" not in text


def test_the_owner_and_the_project_are_chosen_from_what_may_be_seen(open_client, past_vault):
    client = open_client(past_vault)
    choices = {field["value"] for field in Tags(client.get("/ask").text).named("option") if "value" in field}
    assert {"jonas", "default", "office"} <= choices
    assert not {"bob", "kiln"} & choices
    assert "ordered by Jonas" in client.get("/ask?q=milk&owner=jonas").text
    assert "oat milk" not in client.get("/ask?q=milk&owner=jonas").text
    assert "drawer" not in client.get("/ask?q=milk&owner=bob").text
    assert client.get("/ask?q=milk&owner=nobody").status_code == 200


@pytest.mark.parametrize("as_of", ["2025-06-01", "2024-06-01"])
def test_what_is_private_by_now_is_in_no_part_of_an_answer_of_the_past(open_client, past_vault, as_of):
    client = open_client(past_vault)
    for path in (f"/ask?q=milk+drawer+nine&as_of={as_of}", f"/ask?as_of={as_of}"):
        text = client.get(path).text
        assert "milk in her coffee" in text
        assert "Bob" not in text
        assert "01drawer" not in text


def test_the_newest_of_a_day_are_those_of_then(open_client, past_vault):
    client = open_client(past_vault)
    assert "soy milk" in client.get("/ask?as_of=2024-06-01").text
    assert "oat milk" in client.get("/ask?as_of=2025-06-01").text
    (slider,) = [
        field for field in Tags(client.get("/ask?as_of=2024-01-20").text).named("input") if field.get("id") == "day"
    ]
    assert (slider["data-first"], slider["value"], slider["type"]) == ("2024-01-10", "10", "range")


def test_a_day_before_all_days_is_one_sentence(open_client, past_vault):
    assert "the history begins later" in open_client(past_vault).get("/ask?q=milk&as_of=2020-01-01").text


def test_an_answer_that_nobody_waits_for_stops(past_vault):
    """The memory is free for the next question as soon as the slider has moved on."""
    import asyncio

    from quaid.web.app import Site, _until_disconnect
    from quaid.web.guard import Keys

    async def leave_early() -> float:
        site = Site(past_vault.root, Keys.make(), asyncio.Event())

        class Left:
            async def receive(self):
                return {"type": "http.disconnect"}

        def work(memory):
            for step in range(200):
                memory._show("working", step, 200)
                time.sleep(0.02)

        started = time.monotonic()
        with pytest.raises(Exception, match=r"^$"):
            await _until_disconnect(Left(), site._reading.run(work))
        await site._reading.run(lambda _: None)
        return time.monotonic() - started

    assert asyncio.run(leave_early()) < 2


@pytest.mark.slow
def test_in_the_browser_it_answers_as_one_types_and_goes_back_in_time(past_vault):
    with start_browser() as browser, visit(browser, past_vault) as site:
        tab = site.open()
        tab.locator("#q").press_sequentially("milk coffee")
        tab.get_by_text("How this answer was found").wait_for()
        assert tab.evaluate("document.activeElement.id") == "q"
        assert wait_until(tab, r"/^\d memor(y|ies) in \d+ ms$/.test(document.getElementById('status').textContent)")
        tab.get_by_text("How this answer was found").click()
        tab.locator("#q").press_sequentially("maya ")
        assert wait_until(tab, "location.search.includes('maya')")
        tab.wait_for_timeout(200)
        assert tab.locator("#road").get_attribute("open") is not None  # what was opened stays open
        assert find_violations(tab) == []

        tab.get_by_text("As of …").click()
        slider = tab.locator("#day")
        assert slider.get_attribute("aria-valuetext") == "now"
        slider.focus()
        tab.keyboard.press("Home")
        tab.get_by_text("Maya takes soy milk").wait_for()
        assert tab.locator("#as_of").input_value() == slider.get_attribute("aria-valuetext") == "2024-01-10"
        assert "as_of=2024-01-10" in tab.url
        tab.keyboard.press("ArrowRight")
        assert wait_until(tab, "location.search.includes('as_of=2024-01-11')")
        tab.get_by_text("Maya takes soy milk").click()
        tab.wait_for_url("**/memory/**")
        tab.go_back()
        tab.get_by_text("Maya takes soy milk").wait_for()
        assert tab.locator("#q").input_value() == "maya milk coffee"
        tab.get_by_role("button", name="Back to now").click()
        tab.get_by_text("Maya takes oat milk").wait_for()
        assert "as_of=2" not in tab.url
