"""Today, Sessions, a person and Memories by keys alone: all is reached, the focus is seen, and no live update loses it."""

from __future__ import annotations

import re

import pytest
from vaults import copy_vault
from web.browsing import Site, serve, wait_until

FACT = "---\nid: 01{0}\ntype: fact\nstatus: active\nowner: default\ncreated: 2026-03-20T10:00:00Z\n---\n{1}\n"
LIST = """() => {
  const found = document.querySelectorAll("a[href], button:not(:disabled), input:not([type=hidden], :disabled), select, textarea, summary");
  window.wanted = [...found].filter((each) => each.checkVisibility({ visibilityProperty: true }) && each.tabIndex >= 0);
  return window.wanted.length;
}"""
SEEN = """() => {
  const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(document.activeElement);
  return {
    at: window.wanted.indexOf(document.activeElement),
    isSeen: (outlineStyle !== "none" && parseFloat(outlineWidth) > 0) || boxShadow !== "none",
    html: document.activeElement.outerHTML.slice(0, 120),
  };
}"""


@pytest.fixture(scope="module")
def home(browser, tmp_path_factory, calm):
    """(a browser that was let in, its vault): a person, a question, a session, an edit that is not committed."""
    vault = copy_vault(tmp_path_factory.mktemp("keys") / "vault")
    vault.write("entities/Ines.md", "---\nid: 01ines\ntype: person\n---\n- works_at [[Harbour]]\n")
    for name, text in {
        "milk": "[[Ines]] takes oat milk in her coffee", "tea": "[[Ines]] drinks green tea", "boat": "[[Ines]] has a boat",
        "rower": "[[Ines]] rows on Sundays", "mast": "[[Ines]] mends the mast\n\n- [[Ines]] mends [[Mast]]",
    }.items():  # fmt: skip
        vault.write(f"facts/{name}.md", FACT.format(name, text))
    vault.save("first")
    with vault.memory() as memory:
        memory.janitor.dispute("01boat")
        memory.janitor.dispute("01rower")
        memory.recall("oat milk", door="mcp", session="cursor-vscode")
    note = vault.root / "facts/tea.md"
    note.write_text(note.read_text().replace("green", "black"))
    with serve(vault) as address:
        site = Site(browser, address)
        yield site, vault
        site.context.close()
        assert site.troubles == []


def go_to(tab, name: str) -> None:
    """Press Tab until a control with this name has the focus."""
    for _ in range(120):
        tab.keyboard.press("Tab")
        if re.fullmatch(
            name, tab.evaluate("(document.activeElement.ariaLabel || document.activeElement.innerText || '').trim()")
        ):
            return
    pytest.fail(f"{name!r} is not reached by Tab")


def focused(tab) -> str:
    return tab.evaluate("document.activeElement.outerHTML")


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/", "/sessions", "the session", "/memory/Ines", "/memories"])
def test_every_control_is_reached_by_tab_and_shows_that_it_has_the_focus(home, path):
    site, _ = home
    tab = site.open("/sessions" if path == "the session" else path)
    if path == "the session":
        tab.locator("ul.sessions a").first.press("Enter")
        tab.get_by_role("heading", name="oat milk").wait_for()
    tab.wait_for_load_state()
    count, reached = tab.evaluate(LIST), set()
    for _ in range(count + 3):
        tab.keyboard.press("Tab")
        seen = tab.evaluate(SEEN)
        reached.add(seen["at"])
        assert seen["at"] < 0 or seen["isSeen"], seen["html"]
    missed = [tab.evaluate("(at) => window.wanted[at].outerHTML.slice(0, 120)", at) for at in {*range(count)} - reached]
    assert count > 8
    assert missed == []
    tab.close()


@pytest.mark.slow
@pytest.mark.parametrize(("path", "control", "shown"), [
    ("/", "Commit", "of lamps"), ("/", "Skip j", "of lamps"), ("/memory/Ines", "confidence|Add a property", "of lamps"),
    ("/memory/Ines", "Wrong[?]", "of lamps"), ("/memories", "Forget", "of lamps"),
])  # fmt: skip
def test_a_live_update_leaves_the_focus_where_it_is(home, path, control, shown):
    site, vault = home
    tab = site.open(path)
    if path == "/memories":
        tab.keyboard.press("j")
        tab.keyboard.press("x")
    go_to(tab, control)
    before = focused(tab)
    number = len(list((vault.root / "facts").iterdir()))
    fact = FACT.format(f"lamp{number}", f"[[Ines]] sells {number} kinds {shown}").replace(
        "2026-03-20T10:00", "2026-11-27T10:00"
    )
    vault.write(f"facts/lamp{number}.md", fact)
    tab.get_by_text(f"{number} kinds {shown}").first.wait_for(
        state="attached"
    ) if path != "/" else tab.wait_for_timeout(2000)
    assert focused(tab) == before
    tab.close()


@pytest.mark.slow
def test_the_focus_goes_to_the_part_around_what_a_live_update_takes_away(home):
    site, vault = home
    vault.save()
    note = vault.root / "facts/tea.md"
    note.write_text(f"{note.read_text()} in the afternoon\n")
    tab = site.open("/")
    go_to(tab, "Commit")
    site.open("/memory/01tea").get_by_role("button", name="Commit this change").press("Enter")
    tab.get_by_role("link", name="facts/tea.md").wait_for(state="detached")
    assert tab.evaluate("document.activeElement !== document.body")
    assert not focused(tab).startswith("<button")
    tab.close()


@pytest.mark.slow
def test_several_memories_are_selected_forgotten_and_brought_back(home):
    site, vault = home
    before = {path.name for path in (vault.root / "facts").iterdir()}
    tab = site.open("/memories?about=Ines&kind=fact&q=m")
    tab.locator("#keys").wait_for()
    for key in ("j", "x", "j", "x"):
        tab.keyboard.press(key)
    tab.get_by_text("2 selected").wait_for()
    tab.evaluate("document.querySelector('.skip').focus()")
    go_to(tab, "Forget")
    tab.keyboard.press("Enter")
    tab.get_by_text("The selected memories are forgotten").wait_for()
    assert before - {path.name for path in (vault.root / "facts").iterdir()} == {"milk.md", "mast.md"}
    go_to(tab, "Undo")
    tab.keyboard.press("Enter")
    tab.get_by_text("Undone.").first.wait_for()
    assert {path.name for path in (vault.root / "facts").iterdir()} == before
    tab.close()


@pytest.mark.slow
def test_a_question_is_answered_and_the_answer_undone_on_today(home):
    site, _ = home
    tab = site.open("/")
    go_to(tab, "Keep it 2")
    tab.keyboard.press("Enter")
    tab.get_by_role("button", name="Undo", exact=True).wait_for()
    assert tab.get_by_text("1 of 1").count() == 1
    go_to(tab, "Undo")
    tab.keyboard.press("Enter")
    tab.get_by_text("2 of 2").wait_for()
    assert wait_until(tab, "location.pathname === '/'")
    tab.close()
