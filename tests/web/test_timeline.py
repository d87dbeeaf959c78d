"""The timeline: what was learned and true when, and conversations with their facts, as their owner may see them."""

from __future__ import annotations

import re
import time

import pytest
from recall_index import candidate
from vaults import copy_vault
from web.browsing import is_wide_enough, start_browser, visit
from web.conftest import let_in
from web.test_pages import Tags

from quaid.errors import UsageError
from quaid.index.listing import DatedFact
from quaid.web.pages.timeline import ROWS, describe_period, draw_bar, read_period

TALK = "20-1402-2f1c9a"


@pytest.fixture(scope="module")
def story(tmp_path_factory, calm):
    """Facts of two months, one of them replaced, an event, a conversation, and what bob keeps to himself."""
    vault = copy_vault(tmp_path_factory.mktemp("timeline") / "vault")

    def tell(name, text, more, owner="default"):
        head = f"id: 01{name}\ntype: fact\nstatus: active\nowner: {owner}\n{more}"
        vault.write(f"facts/{name}.md", f"---\n{head}---\n{text}\n")

    cited = f'session: 2f1c9a\nturns: ["[[{TALK}#^t1]]"]\n'
    tell("soy", "Maya takes soy milk", "created: 2026-02-03T09:00:00Z\nvalid_until: 2026-03-20\n"
         'superseded_by: "[[oat]]"\n')  # fmt: skip
    tell("oat", "Maya takes oat milk", f"created: 2026-03-20T14:03:00Z\nvalid_from: 2026-03-20\n{cited}")
    tell("whole", "Maya likes the café", "created: 2026-03-20T14:03:00Z\nsession: 2f1c9a\n")
    tell("lisbon", "<u>Maya</u> lives in \u202eLisbon", "created: 2026-03-21T08:00:00Z\nvalid_from: 2024-01-01\n")
    tell("bob", "Bob hides a cake", f"created: 2026-03-20T14:03:00Z\nvalid_from: 2026-03-01\n"
         f"privacy: private\n{cited}", owner="bob")  # fmt: skip
    vault.write(
        "facts/regatta.md",
        "---\nid: 01regatta\ntype: event\nstatus: active\nowner: default\ncreated: 2026-02-03T09:00:00Z\n"
        "valid_from: 2026-02-10\n---\nThe regatta was on 10 February 2026\n",
    )
    vault.write(
        f"episodes/2026/03/{TALK}.md",
        f"---\nid: {TALK}\ntype: episode\nsession: 2f1c9a\nstarted: 2026-03-20T14:02:00Z\n---\n"
        "**Maya** (14:02): I only take oat milk now. <script>alert(1)</script> ^t1\n\n**Assistant** (14:03): Noted. ^t2\n",
    )
    long = "".join(f"**Maya** (10:00): Word {number} of it. ^t{number}\n\n" for number in range(1, 131))
    vault.write(
        "episodes/2026/02/03-1000-long.md",
        f"---\nid: 03-1000-long\ntype: episode\nsession: long\nstarted: 2026-02-03T10:00:00Z\n---\n{long}",
    )
    vault.write(
        "episodes/2026/02/04-1000-bob.md",
        "---\nid: 04-1000-bob\ntype: episode\nsession: bobs\nowner: bob\nprivacy: private\n"
        "started: 2026-02-04T10:00:00Z\n---\n**Bob** (10:00): My cake. ^t1\n",
    )
    vault.save("told <i>once</i>")
    return vault


@pytest.fixture
def pages(story):
    with let_in(story) as client:
        yield client


def columns(text):
    return dict(re.findall(r'title="([^":]+): (\w+)"', text))


def test_what_was_learned_stands_under_its_day_and_is_counted(pages):
    text = pages.get("/timeline").text
    assert re.search(r"<h3>20 March 2026</h3>.*?Maya takes oat milk", text, re.DOTALL)
    assert text.index("21 March 2026") < text.index("20 March 2026") < text.index("3 February 2026")
    counted = columns(text)
    assert (counted["February 2026"], counted["March 2026"]) == ("2", "3")
    month = pages.get("/timeline?at=2026-03").text
    assert columns(month)["20 March 2026"] == "2"
    assert "soy" not in month
    assert "soy" in pages.get("/timeline?at=2026-02-03").text
    assert "Nothing was learned then" in pages.get("/timeline?at=2025").text


def test_what_was_true_is_a_bar_over_its_days(pages):
    text = pages.get("/timeline?show=true&at=2026-03").text
    assert "Maya takes soy milk" in text
    assert "Maya takes oat milk" in text
    assert "regatta" not in text  # it happened, in February
    assert "regatta" in pages.get("/timeline?show=true&at=2026-02").text
    assert "oat" not in pages.get("/timeline?show=true&at=2026-02").text
    assert re.search(r"oat milk.*?<rect class=\"c1\" x=\"61\.29\" width=\"38\.71\"", text, re.DOTALL)
    counted = columns(pages.get("/timeline?show=true&at=2026").text)
    assert (counted["January 2026"], counted["February 2026"], counted["March 2026"]) == ("1", "3", "3")


def test_facts_without_a_day_are_counted_where_they_are_left_out(pages):
    assert re.search(r"\d+ current facts? (has|have) no date", pages.get("/timeline?show=true&at=2026-03").text)
    assert "no day" not in pages.get("/timeline").text


def test_a_conversation_is_told_as_it_was_said_with_facts_beside(pages):
    listed = pages.get("/timeline?show=conversations").text
    assert re.search(f'href="/session/episodes/2026/03/{TALK}.md">[^<]*I only take oat milk now', listed)
    text = pages.get(f"/session/{TALK}").text
    assert re.search(r"<h1[^>]*>Conversation of <time [^>]*>20 March 2026, 14:02<", text)
    turns = re.findall(r'<li id="t(\d+)">(.*?)</li>\s*(?=<li id|</ol>)', text, re.DOTALL)
    assert [number for number, _ in turns] == ["1", "2"]
    assert "I only take oat milk now." in turns[0][1]
    assert 'href="/memory/01oat"' in turns[0][1]
    assert "01oat" not in turns[1][1]
    assert re.search("Facts from the whole conversation.*01whole", text, re.DOTALL)
    assert text.index("01whole") < text.index('id="t1"')


def test_a_long_conversation_has_pages(pages):
    text = pages.get("/session/03-1000-long").text
    assert "Word 60 of it" in text
    assert "Word 61 of it" not in text
    assert "Word 61 of it" in pages.get("/session/03-1000-long?page=2").text
    assert "Word 130 of it" in pages.get("/session/03-1000-long?page=99").text


def test_changes_lead_to_their_commits(pages, story):
    text = pages.get("/timeline?show=changes").text
    assert f'href="/change/{story.head()}"' in text
    assert "<i>once" not in text


LANES = ("", "&show=true", "&show=conversations", "&show=changes")


@pytest.mark.matrix
@pytest.mark.parametrize(
    "path", [*(f"/timeline?at={at}{lane}" for at in ("", "2026-03", "2026-02") for lane in LANES), f"/session/{TALK}"]
)
def test_every_page_is_whole_harmless_and_without_what_others_keep_private(pages, path):
    text = pages.get(path).text
    assert not re.search("(?i)bob|cake", text)
    for hostile in ("<u>Maya</u>", "\u202e", "<script>alert"):
        assert hostile not in text
    tags = Tags(text)
    assert len(tags.named("h1")) == 1
    for _, attributes in tags.found:
        assert not [name for name in attributes if name == "style" or name.startswith("on")]


def test_a_private_conversation_and_what_is_none_are_not_shown(pages):
    assert pages.get("/session/04-1000-bob").status_code == 404
    assert pages.get("/session/none").status_code == 404
    answer = pages.get("/session/01oat")
    assert answer.status_code == 400
    assert "is not a conversation" in answer.text


@pytest.mark.matrix
@pytest.mark.parametrize("at", ["soon", "2026-13", "2026-02-30", "0000", "2026-1", "20260301", "²026"])
def test_what_is_no_period_is_a_sentence(pages, at):
    with pytest.raises(UsageError, match="is not a year, month or day"):
        read_period(at)
    assert "is not a year, month or day" in pages.get(f"/timeline?at={at}").text


def test_a_page_that_is_not_there_is_the_last_one(pages):
    for page in ("2", "0", "-1", "99999999999999"):
        assert "Maya takes oat milk" in pages.get(f"/timeline?page={page}").text


@pytest.mark.parametrize("lane", ["", "true", "conversations", "changes"])
def test_an_empty_memory_says_what_to_do(tmp_path, calm, lane):
    with let_in(copy_vault(tmp_path / "vault")) as client:
        text = client.get(f"/timeline?show={lane}").text
    assert "quaid " in text or lane == "changes"


def test_long_lists_are_paged(tmp_path, calm):
    vault = copy_vault(tmp_path / "vault")
    for number in range(ROWS["learned"] + 5):
        vault.write(
            f"facts/n{number}.md",
            f"---\nid: 01n{number:03}\ntype: fact\nstatus: active\nowner: default\n"
            f"created: 2026-01-02T10:{number // 60:02}:{number % 60:02}Z\n---\nNumber {number:03} is told\n",
        )
    vault.save()
    with let_in(vault) as client:
        first, second = client.get("/timeline").text, client.get("/timeline?page=2").text
    assert "Number 104" in first
    assert "Number 004" not in first
    assert "page=2" in first
    assert "Number 004" in second
    assert "Number 104" not in second


def test_one_fact_of_long_ago_is_a_year_and_the_others_stay_months(tmp_path, calm):
    vault = copy_vault(tmp_path / "vault")
    created = ["2012-05-01T10:00:00Z", *(f"2026-{month:02}-11T10:00:00Z" for month in range(1, 11) for _ in range(3))]
    for number, each in enumerate(created):
        vault.write(
            f"facts/f{number}.md",
            f"---\nid: 01f{number:02}\ntype: fact\nstatus: active\nowner: default\ncreated: {each}\n"
            f"valid_from: {each[:10]}\n---\nMaya has seen film {number}\n",
        )
    with let_in(vault) as client:
        for lane in ("learned", "true"):
            found = columns(client.get(f"/timeline?show={lane}").text)
            assert {"2012", "January 2026", "October 2026"} <= found.keys()
            assert not {"2013", "2026"} & found.keys()
        widths = [
            float(width)
            for width in re.findall(r'width="([0-9.]+)" height="4"/></svg>', client.get("/timeline?show=true").text)
        ]
        assert max(widths) > 20


def test_bars_are_cut_at_the_period_and_days_that_are_none_have_no_bar():
    def fact(first, last):
        return DatedFact(candidate(1), first, last)

    assert draw_bar(fact("2025-01-01", "9999-12-31"), "2026-01-01", "2026-01-10") == (0.0, 100.0)
    assert draw_bar(fact("2026-01-06", "2026-01-07"), "2026-01-01", "2026-01-10") == (50.0, 20.0)
    assert draw_bar(fact("2026-02-31", "9999-12-31"), "2026-01-01", "2026-01-10") is None


@pytest.mark.parametrize(("machine", "setting"), [("Asia/Tokyo", ""), ("Asia/Tokyo", "UTC"), ("UTC", "Asia/Tokyo")])
def test_days_are_those_of_the_persons_zone_in_headings_filters_and_counts(
    tmp_path, calm, monkeypatch, machine, setting
):
    vault = copy_vault(tmp_path / "vault")
    vault.write(
        "facts/late.md",
        "---\nid: 01late\ntype: fact\nstatus: active\ncreated: 2026-03-20T23:30:00Z\n---\nMaya ran\n",
    )
    vault.write("facts/day.md", "---\nid: 01day\ntype: fact\nstatus: active\ncreated: 2026-03-20\n---\nMaya swam\n")
    vault.write(
        "episodes/2026/03/20-2330-late.md",
        "---\nid: 20-2330-late\ntype: episode\nsession: late\nstarted: 2026-03-20T23:30:00Z\n---\n"
        "**Maya** (23:30): I ran. ^t1\n",
    )
    monkeypatch.setenv("GIT_AUTHOR_DATE", "2026-03-20T23:30:00Z")
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2026-03-20T23:30:00Z")
    vault.save()
    monkeypatch.setenv("QUAID_TIMEZONE", setting)
    monkeypatch.setenv("TZ", machine)
    time.tzset()
    try:
        with let_in(vault) as client:
            for lane, text in (("learned", "Maya ran"), ("conversations", "I ran.")):
                page = client.get(f"/timeline?show={lane}&at=2026-03").text
                assert columns(page)["21 March 2026"] == "1"
                assert "<h3>21 March 2026</h3>" in page
                assert text in client.get(f"/timeline?show={lane}&at=2026-03-21").text
                assert text not in client.get(f"/timeline?show={lane}&at=2026-03-20").text
            assert "<h3>21 March 2026</h3>" in client.get("/timeline?show=changes").text
            assert "21 March 2026, 08:30" in client.get("/memory/01late").text
            for day, shown, hidden in (("21", "Maya ran", "Maya swam"), ("20", "Maya swam", "Maya ran")):
                found = client.get(f"/memories?kind=fact&from=2026-03-{day}&to=2026-03-{day}").text
                assert shown in found
                assert hidden not in found
            assert '<span id="zone">UTC+09:00</span>' in found
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_commit_that_an_agent_made_is_of_its_host(tmp_path, calm):
    vault = copy_vault(tmp_path / "vault")
    with vault.memory() as memory:
        memory.trailers = (("Quaid-Host", "claude-code"),)
        memory.remember("Maya plays the cello")
    with let_in(vault) as client:
        assert "· <bdi>Claude Code</bdi>" in client.get("/timeline?show=changes").text
        assert "by <bdi>Claude Code</bdi>" in client.get(f"/change/{vault.head()}").text


def test_periods_are_told_in_words():
    assert [describe_period(at) for at in ("", "2026", "2026-03", "2026-03-04")] == [
        "all time", "2026", "March 2026", "4 March 2026"
    ]  # fmt: skip


@pytest.mark.slow
def test_a_column_leads_to_its_time_and_a_conversation_opens(story):
    with start_browser() as browser, visit(browser, story) as site:
        tab = site.open("/timeline")
        tab.locator(".chart a", has_text="Mar").focus()
        tab.keyboard.press("Enter")
        tab.get_by_role("heading", name="Learned in March 2026").wait_for()
        tab.get_by_role("link", name="Conversations").click()
        tab.get_by_role("link", name="I only take oat milk now.").click()
        tab.get_by_role("heading", name="Conversation of 20 March 2026").wait_for()
        said = tab.locator("#t1 .text").bounding_box()
        beside = tab.locator("#t1 .beside").bounding_box()
        assert beside["x"] > said["x"] + said["width"] - 1
        assert abs(beside["y"] - said["y"]) < 60
        tab.set_viewport_size({"width": 375, "height": 740})
        beside = tab.locator("#t1 .beside").bounding_box()
        assert beside["y"] > tab.locator("#t1 .text").bounding_box()["y"]
        assert is_wide_enough(tab)
