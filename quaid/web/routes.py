"""Every page, action and file, each with its address. A page with a title stands in the navigation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from quaid.web.pages.ask import show_ask
from quaid.web.pages.change import show_change
from quaid.web.pages.memory import show_memory
from quaid.web.pages.nights import show_night, show_nights
from quaid.web.pages.review import answer_question, carry_out_answers, count_open, show_review
from quaid.web.pages.undo import undo_change

if TYPE_CHECKING:
    from starlette.requests import Request

    from quaid.memory import Memory

Context = Mapping[str, Any]
Form = Mapping[str, str]


class Page(NamedTuple):
    """A page: `show` returns what its template is given, `count_waiting` how much waits there."""

    path: str
    template: str
    show: Callable[[Memory, Request], Context]
    title: str = ""
    count_waiting: Callable[[Memory], int] | None = None


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
    Page("/review", "review.html", show_review, "Review", count_open),
    Page("/nights", "nights.html", show_nights, "Nights"),
    Page("/nights/{run}", "night.html", show_night),
    Page("/change/{commit}", "change.html", show_change),
)
ACTIONS: tuple[Action, ...] = (
    Action("/review/answer", answer_question),
    Action("/review/carry-out", carry_out_answers),
    Action("/undo", undo_change),
)
FILES: tuple[File, ...] = ()
MESSAGES: dict[str, str] = {
    "answered": "Your answer is committed.",
    "carried-out": "What you have answered was carried out, as far as it says here.",
    "nothing-to-carry-out": "Nothing was carried out: the questions stay as they are.",
    "undone": "It was undone. The undo is a commit, which can be undone too.",
    "nothing-undone": "Nothing was changed: it is undone already, or has only asked and counted.",
}
"""What a page can say of what was just done. Only the key is in the address: no note can put words there."""
