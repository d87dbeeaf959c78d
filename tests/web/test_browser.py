"""The page in a real browser: live changes, in many tabs."""

from __future__ import annotations

import pytest
from web.browsing import Site, serve, visit


@pytest.mark.slow
def test_what_an_editor_saves_appears_by_itself(browser, vault):
    vault.write_fact("milk", "Maya takes oat milk in her coffee")
    vault.save()
    with visit(browser, vault) as site:
        tab = site.open("/ask?q=milk")
        tab.get_by_text("Maya takes oat milk").wait_for()
        tab.wait_for_timeout(500)
        vault.write_fact("milk", "Maya takes almond milk in her coffee")
        tab.get_by_text("Maya takes almond milk").wait_for()


@pytest.mark.slow
def test_many_pages_of_one_browser_are_told_and_know_when_it_has_ended(browser, vault):
    vault.write_fact("milk", "Maya takes oat milk in her coffee")
    vault.save()
    with serve(vault) as address:
        site = Site(browser, address)
        tabs = [site.open("/ask?q=milk") for _ in range(9)]  # more than a browser has connections to one host
        tabs[0].wait_for_timeout(500)
        vault.write_fact("milk", "Maya takes almond milk in her coffee")
        for tab in (tabs[0], tabs[-1]):
            tab.get_by_text("Maya takes almond milk").wait_for()
        tabs[0].close()  # another one listens from now on
        tabs[1].wait_for_timeout(500)
        vault.write_fact("milk", "Maya takes rice milk in her coffee")
        tabs[-1].get_by_text("Maya takes rice milk").wait_for()
    tabs[-1].get_by_text("quaid view has ended").wait_for()
    site.context.close()
