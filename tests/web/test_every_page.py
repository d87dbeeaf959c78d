"""Every page in a real browser: all widths, both colour schemes, large text and right-to-left facts."""

from __future__ import annotations

import pytest
from web.browsing import Site, find_violations, serve, wait_until
from web.conftest import HOSTILE

WIDTHS = (320, 375, 480, 580, 640, 700, 760, 900, 1080, 1280, 1440)
ARABIC = "مايا تشرب القهوة مع حليب الشوفان"
LONG = "Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichen" * 3
PAGES = (
    "/", "/ask", "/ask?q=milk", "/memories", "/memory/01milk", "/memory/01arabic", "/memory/Maya", "/memory/hostile.md", "/edit/01milk", "/merge/Maya?with=Mia",
    "/review", "/sessions", "/nights",
    "/timeline", "/timeline?show=true&at=2026-03", "/timeline?show=conversations", "/timeline?show=changes", "/session/talk",
    "/graph?focus=Maya", "/graph?focus=nobody", "/health", "/health/checks", "/health/fading", "/projects", "/memory/none",
)  # fmt: skip


@pytest.fixture(scope="module")
def shown(browser, tmp_path_factory, calm):
    """A server of a vault with long words and an Arabic fact, and a browser that was let in."""
    from vaults import copy_vault

    vault = copy_vault(tmp_path_factory.mktemp("pages") / "a vault whose name is rather long for a header")
    vault.write_fact("milk", "Maya takes oat milk in her coffee\n\n- [[Maya]] works_at [[Acme Maps]]")
    vault.write_fact("long", f"{LONG} is a word")
    vault.write(
        "facts/arabic.md",
        "---\nid: 01arabic\ntype: fact\nstatus: active\nowner: default\nvalid_from: 2026-03-01\n"
        f"created: 2026-03-20T14:02:00Z\n---\n{ARABIC}\n",
    )
    vault.write(
        "episodes/2026/03/talk.md",
        "---\nid: talk\ntype: episode\nsession: talk\nstarted: 2026-03-20T14:02:00Z\n---\n"
        f"**Maya** (14:02): {ARABIC} ^t1\n\n**Assistant** (14:03): {LONG} ^t2\n",
    )
    for name in ("Maya", "Mia"):
        vault.write(f"entities/{name}.md", f"---\nid: 01{name.lower()}\ntype: person\n---\n")
    vault.write("hostile.md", HOSTILE)
    vault.save("first")
    with serve(vault) as address:
        site = Site(browser, address)
        yield site
        site.context.close()
        assert [trouble for trouble in site.troubles if "404" not in trouble] == []


def list_wide(tab) -> list[str]:
    """Return the elements that are wider than the window, if the page can be scrolled sideways."""
    return tab.evaluate(
        "() => document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll('body *')]"
        ".filter((each) => each.getBoundingClientRect().right > innerWidth + 1)"
        ".map((each) => `${each.tagName}.${each.className}: ${each.textContent.trim().slice(0, 40)}`).slice(0, 5)"
    )


@pytest.mark.slow
@pytest.mark.parametrize("path", PAGES)
def test_no_page_is_wider_than_its_window_or_breaks_its_header(shown, path):
    tab = shown.open(path)
    for width in WIDTHS:
        tab.set_viewport_size({"width": width, "height": 800})
        assert wait_until(tab, "document.documentElement.scrollWidth <= innerWidth", 3), (width, list_wide(tab))
        heights = tab.evaluate("[...document.querySelectorAll('header a, .more')].map((each) => each.offsetHeight)")
        assert max(heights) < 48, (width, heights)  # one line each
    tab.close()


@pytest.mark.slow
@pytest.mark.parametrize("width", [320, 1280])
def test_axe_finds_nothing_serious_on_any_page(shown, width):
    tab = shown.open("/ask")
    tab.set_viewport_size({"width": width, "height": 800})
    for path in PAGES:
        tab.goto(shown.base + path)
        if path == "/graph?focus=Maya":
            tab.locator("[data-drawn]").wait_for()
        for scheme in ("light", "dark"):
            tab.emulate_media(color_scheme=scheme)
            assert find_violations(tab) == [], (path, scheme)
    tab.close()


@pytest.mark.slow
def test_text_of_twice_the_size_needs_no_scrolling_sideways(shown):
    tab = shown.open("/ask")
    tab.set_viewport_size({"width": 640, "height": 800})
    for path in PAGES:
        tab.goto(shown.base + path)
        tab.evaluate("document.documentElement.style.fontSize = '200%'")  # as of a browser that enlarges text alone
        assert wait_until(tab, "document.documentElement.scrollWidth <= innerWidth", 3), (path, list_wide(tab))
    tab.close()


@pytest.mark.slow
def test_the_menu_of_a_narrow_page_opens_by_keyboard_and_needs_no_script(browser, shown):
    context = browser.new_context(
        viewport={"width": 375, "height": 740}, java_script_enabled=False, storage_state=shown.context.storage_state()
    )
    tab = context.new_page()
    tab.goto(shown.base + "/graph")
    assert not tab.get_by_role("link", name="Health").is_visible()
    tab.get_by_role("button", name="More").press("Enter")
    tab.get_by_role("link", name="Health").click()
    assert tab.url.endswith("/health")
    context.close()


@pytest.mark.slow
def test_a_right_to_left_fact_swallows_nothing_beside_it(shown):
    tab = shown.open("/timeline")
    fact, about = tab.locator("li", has=tab.get_by_text(ARABIC)).locator("> a, > .about").all()
    assert fact.bounding_box()["x"] < about.bounding_box()["x"]
    assert fact.evaluate("(each) => getComputedStyle(each).direction") == "rtl"
    tab.goto(shown.base + "/memory/01arabic")
    assert tab.locator(".prose").evaluate("(each) => getComputedStyle(each).direction") == "rtl"
    tab.close()


@pytest.mark.slow
def test_times_are_in_the_zone_of_the_browser(browser, shown):
    context = browser.new_context(timezone_id="Asia/Tokyo", storage_state=shown.context.storage_state())
    tab = context.new_page()
    tab.goto(shown.base + "/timeline?show=conversations")
    tab.locator("time", has_text="23:02").wait_for()
    tab.get_by_text("All times are in Asia/Tokyo (GMT+09:00).").wait_for()
    context.close()
