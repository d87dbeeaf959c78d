"""A restart of `quaid view` while somebody writes, in a real browser."""

from __future__ import annotations

import socket

import pytest
from web.browsing import Site, serve

from quaid.place import state_folder
from quaid.web.guard import KEYS_FILE


@pytest.fixture
def milk(vault):
    vault.write_fact("milk", "Maya takes oat milk in her coffee")
    vault.save()
    return vault


@pytest.fixture
def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def write(tab, text: str) -> None:
    field = tab.get_by_label("The note")
    field.fill(field.input_value().replace("oat", text))


@pytest.mark.slow
def test_a_restart_during_an_edit_is_noticed_and_loses_nothing(browser, milk, port):
    with serve(milk, port) as address:
        site = Site(browser, address)
        tab = site.open("/edit/01milk")
        write(tab, "almond")
    tab.get_by_text("quaid view has ended").wait_for()
    with serve(milk, port):
        tab.get_by_text("quaid view has ended").wait_for(state="hidden")
        tab.get_by_role("button", name="Save").click()
        tab.get_by_text("Maya takes almond milk").first.wait_for()
        assert "almond" in (milk.root / "facts/milk.md").read_text()
        tab = site.open("/edit/01milk")
        assert tab.get_by_role("button", name="Discard it").count() == 0
    site.context.close()


@pytest.mark.slow
def test_new_keys_are_noticed_and_what_was_written_is_on_the_page_and_in_the_form_again(browser, milk, port):
    with serve(milk, port) as address:
        site = Site(browser, address)
        tab = site.open("/edit/01milk")
        write(tab, "almond")
    (state_folder(milk.root) / KEYS_FILE).unlink()
    with serve(milk, port) as address:
        tab.get_by_text("restarted with new keys").wait_for()
        tab.get_by_role("button", name="Save").click()
        tab.get_by_role("heading", name="Not saved yet").wait_for()
        assert "almond" in tab.get_by_label("Your text").input_value()
        site.context.new_page().goto(address)
        tab.get_by_role("link", name="Go back to the form").click()
        tab.get_by_role("button", name="Discard it").wait_for()
        assert "almond" in tab.get_by_label("The note").input_value()
        tab.get_by_role("button", name="Save").click()
        tab.get_by_text("Maya takes almond milk").first.wait_for()
    site.context.close()


@pytest.mark.slow
def test_a_draft_outlives_a_reload_and_can_be_discarded(browser, milk):
    with serve(milk) as address:
        site = Site(browser, address)
        tab = site.open("/edit/01milk")
        tab.on("dialog", lambda dialog: dialog.accept())
        write(tab, "almond")
        tab.reload()
        assert "almond" in tab.get_by_label("The note").input_value()
        tab.get_by_role("button", name="Discard it").click()
        assert "oat" in tab.get_by_label("The note").input_value()
        tab.reload()
        assert tab.get_by_role("button", name="Discard it").count() == 0
    site.context.close()
