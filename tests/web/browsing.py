"""A real browser on a real server of `quaid view`: Debian's Chromium, driven by Playwright.

Where one of them is missing, or Chromium cannot start, tests that want it skip and say so. `QUAID_CHROMIUM` names
another program than `chromium`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from vaults import Vault

ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--force-prefers-reduced-motion",
]  # fmt: skip
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 375, "height": 740}


@contextmanager
def start_browser():
    """A browser to open pages in."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="needs Playwright; install it with: pip install '.[dev]'"
    )
    program = os.environ.get("QUAID_CHROMIUM") or shutil.which("chromium")
    if program is None:
        pytest.skip("needs Chromium; install it with: apt-get install chromium")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield browser
        browser.close()


@contextmanager
def serve(vault: Vault, port: int = 0) -> Iterator[str]:
    """`quaid view` of a vault as a process of its own; its opening address."""
    command = [sys.executable, "-m", "quaid", "view", "--no-browser", "--port", str(port), "--vault", str(vault.root)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", process.stdout.readline())[0]
        process.terminate()
        assert process.wait(20) in {0, -15, 143}
        assert process.stdout.read() == ""
    finally:
        process.kill()
        process.communicate()


class Site:
    """One server and a browser's context that was let in. `open` gives a new tab at a path; what a page logs as an
    error, throws, or asks of another host fails the test when the site is left.
    """

    def __init__(self, browser, address: str, **options) -> None:
        self.base = address.partition("/?")[0]
        self.context = browser.new_context(viewport=options.pop("viewport", WIDE), **options)
        self.context.set_default_timeout(60_000)  # a busy machine is slow
        self.troubles: list[str] = []
        tab = self.context.new_page()
        tab.goto(address)
        tab.close()

    def open(self, path: str = "/ask"):
        tab = self.context.new_page()
        tab.on("console", lambda message: message.type == "error" and self.troubles.append(message.text))
        tab.on("pageerror", lambda error: self.troubles.append(str(error)))
        tab.on(
            "request",
            lambda request: request.url.startswith((self.base, "blob:", "data:")) or self.troubles.append(request.url),
        )
        tab.goto(self.base + path)
        return tab


@contextmanager
def visit(browser, vault: Vault, **options) -> Iterator[Site]:
    """A server of `vault` and a browser that was let in; `options` are Playwright's of a context."""
    with serve(vault) as address:
        site = Site(browser, address, **options)
        yield site
        site.context.close()
        assert site.troubles == []


def wait_until(tab, expression: str, within_s: float = 30.0) -> bool:
    """Ask the page for `expression`, in JavaScript, until it is true; False where it is not in time.

    Playwright's own `wait_for_function` evaluates a string inside the page, which the page's policy refuses from the
    second try on.
    """
    deadline = time.monotonic() + within_s
    while not tab.evaluate(expression):
        if time.monotonic() > deadline:
            return False
        tab.wait_for_timeout(50)
    return True


def is_wide_enough(tab) -> bool:
    """Wait until the whole page, with its styles and charts, needs no scrolling sideways."""
    tab.wait_for_load_state()
    return wait_until(tab, "document.documentElement.scrollWidth <= innerWidth")


def find_violations(tab) -> list[str]:
    """What axe-core finds of serious and critical breaches of accessibility."""
    import axe_playwright_python

    script = Path(axe_playwright_python.__file__).parent / "axe.min.js"
    if tab.evaluate("!window.axe"):
        tab.evaluate(script.read_text(encoding="utf-8"))  # not as an element: the page's policy refuses those
    found = tab.evaluate("async () => (await axe.run()).violations")
    serious = [each for each in found if each["impact"] in {"serious", "critical"}]
    return [f"{each['id']}: {each['help']}: {each['nodes'][0]['html'][:200]}" for each in serious]
