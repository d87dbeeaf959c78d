"""The site of docs/: a link that leads nowhere fails its build, and nobody is reached by it or by those who read it."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest
from network_watch import need_watch, reached_out, run_without_network

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (ROOT / "zensical.toml").exists(), reason="the site is built in a checkout"),
    pytest.mark.skipif(importlib.util.find_spec("zensical") is None, reason="needs zensical: pip install '.[dev]'"),
]
BUILD = "import os, sys; from zensical.main import cli; os.chdir(sys.argv[1]); cli(['build', '--strict'])"


@pytest.fixture
def site(tmp_path):
    """A project of two pages with the settings of ours."""
    need_watch()
    settings = re.sub(r"(?ms)^nav = \[.*?^\]\n", "", (ROOT / "zensical.toml").read_text("utf-8"))
    (tmp_path / "zensical.toml").write_text(settings, "utf-8")
    (tmp_path / "docs" / "how-to").mkdir(parents=True)
    (tmp_path / "docs" / "index.md").write_text("# Begin\n\n[Install](how-to/install.md#windows)\n", "utf-8")
    (tmp_path / "docs" / "how-to" / "install.md").write_text("# Install\n\n## Windows\n\nNot tested.\n", "utf-8")
    return tmp_path


def build(site):
    done = run_without_network(BUILD, str(site))
    assert not reached_out(done)
    return done


def test_it_is_built_without_a_socket_and_can_be_searched(site):
    done = build(site)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((site / "build" / "site" / "search.json").read_text("utf-8"))
    assert "Not tested" in json.dumps(found)


def test_a_page_loads_nothing_from_elsewhere_and_has_two_schemes(site):
    build(site)
    page = (site / "build" / "site" / "how-to" / "install" / "index.html").read_text("utf-8")
    assert re.findall(r'(?:<script[^>]*src|<link[^>]*href|<img[^>]*src)="https?://[^"]*"', page) == []
    assert {"default", "slate"} <= set(re.findall(r'data-md-color-scheme="(\w+)"', page))


@pytest.mark.parametrize("target", ["how-to/gone.md", "how-to/install.md#gone"])
def test_a_link_that_leads_nowhere_fails_the_build(site, target):
    (site / "docs" / "index.md").write_text(f"# Begin\n\n[Install]({target})\n", "utf-8")
    done = build(site)
    assert done.returncode != 0
    assert "gone" in re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
