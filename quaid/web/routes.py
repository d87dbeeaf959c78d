"""Every page, action and file, each with its address. A page with a title stands in the navigation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from quaid.web.pages.ask import show_ask
from quaid.web.pages.health import answer_gap, leave_out_gap, show_checks, show_fading, show_health
from quaid.web.pages.memory import show_memory
from quaid.web.pages.projects import (
    apply,
    confirm,
    propose,
    show_checked,
    show_document,
    show_project,
    show_projects,
)
from quaid.web.shown import Shown

if TYPE_CHECKING:
    from starlette.requests import Request

    from quaid.memory import Memory

Context = Mapping[str, Any]
Form = Mapping[str, str]


class Page(NamedTuple):
    """A page: `show` returns what its template is given. What `is_slow` has a thread of its own: no other waits."""

    path: str
    template: str
    show: Callable[[Memory, Request], Context]
    title: str = ""
    is_slow: bool = False


class Action(NamedTuple):
    """A change of the memory: `do` returns the address to go to, with `said=KEY` for a sentence of `MESSAGES`, or a
    page to show instead. What `is_slow` has a thread of its own: no other waits.
    """

    path: str
    do: Callable[[Memory, Form, Request], str | Shown]
    is_slow: bool = False


class File(NamedTuple):
    """What is fetched by a page or saved by its reader under `name`; `make` returns the content."""

    path: str
    media_type: str
    make: Callable[[Memory, Request], bytes]
    name: str = ""


PAGES = (
    Page("/", "ask.html", show_ask, "Ask"),
    Page("/memory/{reference:path}", "memory.html", show_memory),
    Page("/health", "health.html", show_health, "Health"),
    Page("/health/fading", "fading.html", show_fading, is_slow=True),
    Page("/health/checks", "checks.html", show_checks, is_slow=True),
    Page("/projects", "projects.html", show_projects, "Projects"),
    Page("/projects/{name}", "project.html", show_project),
    Page("/projects/{name}/check", "project.html", show_checked, is_slow=True),
    Page("/projects/{name}/document", "document.html", show_document, is_slow=True),
)
ACTIONS: tuple[Action, ...] = (
    Action("/health/gaps/answer", answer_gap),
    Action("/health/gaps/leave-out", leave_out_gap),
    Action("/projects/confirm", confirm, is_slow=True),
    Action("/projects/propose", propose, is_slow=True),
    Action("/projects/apply", apply, is_slow=True),
)
FILES: tuple[File, ...] = ()
MESSAGES: dict[str, str] = {
    "gap_answered": "The answer is remembered, and the question is closed.",
    "gap_unfound": "The answer is remembered, but the question does not find it: say it in words of the question too.",
    "doc_confirmed": "It is noted that the document is true as its sources are now.",
    "doc_updated": "The document was updated, as a commit in the vault.",
    "doc_still_true": "Nothing in the document has to change: it is true as its sources are now.",
    "gap_left_out": "The question is left out. Asked again in vain, it comes back.",
}
"""What a page can say of what was just done. Only the key is in the address: no note can put words there."""
