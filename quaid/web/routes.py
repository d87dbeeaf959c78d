"""Every page, action and file, each with its address. A page with a title stands in the navigation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from quaid.web.pages.ask import show_ask
from quaid.web.pages.graph import make_graph, show_graph
from quaid.web.pages.memory import show_memory
from quaid.web.pages.timeline import show_session, show_timeline

if TYPE_CHECKING:
    from starlette.requests import Request

    from quaid.memory import Memory

Context = Mapping[str, Any]
Form = Mapping[str, str]


class Page(NamedTuple):
    """A page: `show` returns what its template is given."""

    path: str
    template: str
    show: Callable[[Memory, Request], Context]
    title: str = ""


class Shown(NamedTuple):
    """A page that answers an action: what was posted cannot be done as it is, and is not lost."""

    template: str
    context: Context


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
    Page("/graph", "graph.html", show_graph, "Graph"),
    Page("/timeline", "timeline.html", show_timeline, "Timeline"),
    Page("/session/{reference:path}", "session.html", show_session),
)
ACTIONS: tuple[Action, ...] = ()
FILES: tuple[File, ...] = (File("/graph.json", "application/json", make_graph),)
MESSAGES: dict[str, str] = {}
"""What a page can say of what was just done. Only the key is in the address: no note can put words there."""
