"""The frame of every page: the way to all pages, the vault's name, and times in the zone of the reader."""

from __future__ import annotations

import time

import pytest
from web.test_pages import Tags

from quaid.web.templating import format_days, format_moment, mark_clock, mark_moment


@pytest.fixture
def in_zone(monkeypatch):
    """A function that moves this machine to a zone."""
    yield lambda zone: (monkeypatch.setenv("TZ", zone), time.tzset())
    monkeypatch.undo()
    time.tzset()


def test_the_address_without_a_path_is_today(client):
    links = Tags(client.get("/").text).named("a")
    assert [link["href"] for link in links if link.get("aria-current") == "page"] == ["/"]


def test_every_page_names_the_vault_in_its_header_and_title(client, seen_vault):
    text = client.get("/health").text
    assert f"<title>Health · {seen_vault.root.name} · Quaid</title>" in text
    assert f">{seen_vault.root.name}</span></a>" in text


def test_the_header_leads_to_every_page_with_a_title_without_a_script(client):
    tags = Tags(client.get("/graph").text)
    links = {link["href"]: link.get("aria-current") for link in tags.named("a")}
    assert {"/ask", "/review", "/timeline", "/graph", "/nights", "/projects", "/health"} <= links.keys()
    assert links["/graph"] == "page"
    (menu,) = [each for each in tags.named("ul") if "popover" in each]
    assert [button["popovertarget"] for button in tags.named("button") if "popovertarget" in button] == [menu["id"]]


def test_a_moment_is_in_the_zone_of_the_machine_and_has_one_style(in_zone):
    in_zone("Asia/Tokyo")
    assert format_moment("2026-03-14T15:02:00Z") == "15 March 2026, 00:02"
    assert format_moment("2026-03-14T15:02:00+01:00") == "14 March 2026, 23:02"
    assert format_moment("2026-03-14T15:02") == "14 March 2026, 15:02"
    assert mark_clock("2026-03-14T15:02:00Z") == (
        '<time datetime="2026-03-14T15:02:00Z" data-local="clock">00:02</time>'
    )


@pytest.mark.parametrize(("iso", "shown"), [
    ("2026-03-14", "14 March 2026"), ("2026-03", "March 2026"), ("2026", "2026"), ("", ""), (None, ""),
    ("soon", "soon"), ("2026-99-99T00:00:00Z", "2026-99-99T00:00:00Z"), ("0001-01-01T00:00:00Z", "1 January 0001"),
])  # fmt: skip
def test_a_day_or_what_is_no_date_stays_as_it_is(in_zone, iso, shown):
    in_zone("Asia/Tokyo")
    assert format_moment(iso).startswith(shown)
    assert shown in mark_moment(iso)


def test_days_in_our_sentences_are_in_words_and_quotes_stay():
    assert format_days("since 2026-03-14, later than 2026-02-01 “due 2026-01-01”") == (
        "since 14 March 2026, later than 1 February 2026 “due 2026-01-01”"
    )


def test_a_hostile_moment_is_escaped():
    assert "<script>" not in mark_moment('2026"><script>alert(1)</script>')


def test_every_page_says_in_which_zone_its_times_are(client, in_zone):
    in_zone("Asia/Tokyo")
    assert 'All times are in <span id="zone">UTC+09:00</span>' in client.get("/timeline").text
