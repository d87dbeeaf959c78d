"""Every page, action and file, each with its address. A page with a title stands in the navigation."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from quaid.web.answer import Context, Form, Shown
from quaid.web.pages.ask import show_ask
from quaid.web.pages.editing import read_version, save_edit, show_edit
from quaid.web.pages.memory import show_memory
from quaid.web.pages.memory_actions import dispute, forget, mark, restore, undo

if TYPE_CHECKING:
    from starlette.requests import Request

    from quaid.memory import Memory


class Page(NamedTuple):
    """A page: `show` returns what its template is given, or another page in its place."""

    path: str
    template: str
    show: Callable[[Memory, Request], Context | Shown]
    title: str = ""


class Action(NamedTuple):
    """A change of the memory: `do` returns the address to go to, with `said=KEY` for a sentence of `MESSAGES`, or a
    page to show instead.
    """

    path: str
    do: Callable[[Memory, Form, Request], str | Shown]


class File(NamedTuple):
    """What is fetched by a page or saved by its reader under `name`; `make` returns the content."""

    path: str
    media_type: str
    make: Callable[[Memory, Request], bytes]
    name: str = ""


PAGES = (
    Page("/", "ask.html", show_ask, "Ask"),
    Page("/memory/{reference:path}", "memory.html", show_memory),
    Page("/edit/{reference:path}", "edit.html", show_edit),
)
ACTIONS: tuple[Action, ...] = (
    Action("/edit/{reference:path}", save_edit),
    Action("/forget/{reference:path}", forget),
    Action("/restore/{reference:path}", restore),
    Action("/mark/{reference:path}", mark),
    Action("/dispute/{reference:path}", dispute),
    Action("/undo", undo),
)
FILES: tuple[File, ...] = (File("/version/{reference:path}", "text/plain", read_version),)
MESSAGES: dict[str, str] = {
    "edited": "Saved, as a commit.",
    "unchanged": "Nothing was changed: it is so already.",
    "left": "It is on disk and not committed: git refused, or your own uncommitted changes are in it. "
    "See more with: quaid status",
    "forgotten": "Forgotten. Git keeps it, and you can bring it back.",
    "restored": "It is back, and holds.",
    "pinned": "Pinned: it does not fade, and no night changes it.",
    "unpinned": "No longer pinned.",
    "verified": "Verified: it does not fade, and no night changes it.",
    "unverified": "No longer verified.",
    "disputed": "It waits for your answer: yes forgets it, no keeps it. No night changes it before that.",
    "undone": "Undone.",
    "undone_partly": "Undone, but for what was changed since: that stays.",
}
"""What a page can say of what was just done. Only the key is in the address: no note can put words there."""
