"""Take the pictures of `quaid view` that docs/how-to/view.md and the README show.

    python tests/screenshots.py [FOLDER]

By default into docs/pictures. The memory in them is the story of tests/story.py; Debian's Chromium draws them.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from story import tell_story, tell_yesterday
from vaults import be_calm
from web.browsing import NARROW, start_browser, visit

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
QUESTIONS = (
    "what milk does Maya take?",
    "who is Biscuit's vet?",
    "when is Ines' birthday?",
    "who leads Harbour?",
    "what is the password of the router?",
)
"""Asked beforehand, so that there is something to see of latency and of gaps."""


@contextmanager
def make_home() -> Iterator[Path]:
    """A folder that is gone afterwards: Maya's home where this user may make one, as some pages show where things are."""
    home = Path("/home/maya")
    try:
        home.mkdir()
    except OSError:
        with tempfile.TemporaryDirectory(prefix="quaid-pictures-") as scratch:
            yield Path(scratch)
        return
    try:
        yield home
    finally:
        shutil.rmtree(home)


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES
    folder.mkdir(parents=True, exist_ok=True)
    with make_home() as place, pytest.MonkeyPatch.context() as patch:
        be_calm(patch)
        for name in ("QUAID_VAULT_HAND_WRITTEN", "QUAID_EMBEDDING_PROVIDER"):
            patch.delenv(name)
        for name in ("CONFIG", "STATE"):
            patch.setenv(f"QUAID_{name}_DIR", str(place / name.lower()))
        vault = tell_story(place / "quaid", patch)
        session = tell_yesterday(vault, patch)
        with vault.memory() as memory:
            milk = next(
                hit.id
                for hit in memory.recall("Maya takes oat milk in her coffee", keep=False).hits
                if hit.kind == "fact"
            )
            night = memory.janitor.runs(1)[0].run
            for question in QUESTIONS:
                memory.recall(question)
        wide = {
            "today": "/",
            "agent-session": f"/sessions/{session}",
            "ask": f"/ask?q={quote(QUESTIONS[0])}",
            "memories": "/memories?kind=fact",
            "memory": f"/memory/{milk}",
            "person": "/memory/Maya%20Chen",
            "review": "/review",
            "nights": "/nights",
            "night": f"/nights/{night}",
            "timeline": "/timeline",
            "session": "/session/birthday",
            "graph": "/graph?focus=Maya+Chen&hops=2",
            "health": "/health",
            "projects": "/projects/kestrel/check",
        }
        with start_browser() as browser:
            for scheme, viewport, pages in (
                ("light", None, wide),
                ("dark", None, {"ask-dark": wide["ask"], "graph-dark": wide["graph"]}),
                ("light", NARROW, {"review-narrow": wide["review"]}),
            ):
                options = {"viewport": viewport} if viewport else {}
                with visit(browser, vault, color_scheme=scheme, **options) as site:
                    for name, path in pages.items():
                        tab = site.open(path)
                        tab.wait_for_timeout(2500)  # the graph comes to rest
                        tab.screenshot(path=folder / f"{name}.png")
                        tab.close()
                        print(os.path.relpath(folder / f"{name}.png"))


if __name__ == "__main__":
    main()
