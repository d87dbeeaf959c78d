"""Every page, action and file, each with its address. A page with a title is in the navigation."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from quaid.memory import Memory
from quaid.web import outcomes
from quaid.web.answer import Context, Form, Shown
from quaid.web.outcomes import read_words
from quaid.web.pages.ask import show_ask
from quaid.web.pages.attachments import download, read_image
from quaid.web.pages.corrections import cut_relation, merge, set_property, show_merge
from quaid.web.pages.editing import read_version, save_edit, show_edit
from quaid.web.pages.graph import read_picture, show_graph
from quaid.web.pages.health import answer_gap, leave_out_gap, show_checks, show_fading, show_health
from quaid.web.pages.history import show_change, show_night, show_nights, undo
from quaid.web.pages.memories import MEMORIES, change_many, remember, show_memories
from quaid.web.pages.memory import commit_change, dispute, forget, mark, restore, show_memory
from quaid.web.pages.projects import confirm, propose, show_checked, show_document, show_project, show_projects
from quaid.web.pages.review import answer_question, count_open, show_review
from quaid.web.pages.sessions import mark_irrelevant, show_agent_session, show_sessions
from quaid.web.pages.timeline import show_session, show_timeline
from quaid.web.pages.today import show_today

View = Callable[[Memory, Request], Any]


class Page(NamedTuple):
    """A page. `show` returns the context of its template, or another page; `count_waiting` is for the navigation.

    A slow page has its own thread: no other waits.
    """

    path: str
    template: str
    show: Callable[[Memory, Request], Context | Shown]
    title: str = ""
    count_waiting: Callable[[Memory], int] | None = None
    is_slow: bool = False


class Action(NamedTuple):
    """A change of the memory: `do` returns the address to go to, with a message of `MESSAGES`, a page to show, or a
    file to download.
    """

    path: str
    do: Callable[[Memory, Form, Request], str | Shown | Response]
    is_slow: bool = False


PAGES = (
    Page("/", "today.html", show_today, "Today"),
    Page("/ask", "ask.html", show_ask, "Ask"),
    Page(MEMORIES, "memories.html", show_memories, "Memories"),
    Page("/review", "review.html", show_review, "Review", count_open),
    Page("/timeline", "timeline.html", show_timeline, "Timeline"),
    Page("/sessions", "sessions.html", show_sessions, "Sessions"),
    Page("/graph", "graph.html", show_graph, "Graph"),
    Page("/nights", "nights.html", show_nights, "Nights"),
    Page("/projects", "projects.html", show_projects, "Projects"),
    Page("/health", "health.html", show_health, "Health"),
    Page("/memory/{reference:path}", "memory.html", show_memory),
    Page("/edit/{reference:path}", "edit.html", show_edit),
    Page("/merge/{reference:path}", "merge.html", show_merge),
    Page("/nights/{run}", "night.html", show_night),
    Page("/change/{commit}", "change.html", show_change),
    Page("/session/{reference:path}", "session.html", show_session),
    Page("/sessions/{name:path}", "agent_session.html", show_agent_session),
    Page("/health/fading", "fading.html", show_fading, is_slow=True),
    Page("/health/checks", "checks.html", show_checks, is_slow=True),
    Page("/projects/{name}", "project.html", show_project),
    Page("/projects/{name}/check", "project.html", show_checked, is_slow=True),
    Page("/projects/{name}/document", "document.html", show_document, is_slow=True),
)
ACTIONS: tuple[Action, ...] = (
    Action("/edit/{reference:path}", save_edit),
    Action("/forget/{reference:path}", forget),
    Action("/commit/{reference:path}", commit_change),
    Action("/restore/{reference:path}", restore),
    Action("/mark/{reference:path}", mark),
    Action("/dispute/{reference:path}", dispute),
    Action("/memories/remember", remember),
    Action("/memories/change", change_many),
    Action("/property/{reference:path}", set_property),
    Action("/merge/{reference:path}", merge),
    Action("/cut", cut_relation),
    Action("/review/answer", answer_question),
    Action("/undo", undo),
    Action("/sessions/irrelevant", mark_irrelevant),
    Action("/health/gaps/answer", answer_gap),
    Action("/health/gaps/leave-out", leave_out_gap),
    Action("/projects/confirm", confirm, is_slow=True),
    Action("/projects/propose", propose, is_slow=True),
)
FILES: Mapping[str, View] = {
    "/version/{reference:path}": read_version,
    "/graph.json": read_picture,
    "/file/{path:path}": read_image,
    "/download/{reference:path}": download,
}
"""Values that a script fetches: text, or JSON; and files."""
MESSAGES = {**outcomes.MESSAGES, **read_words("messages")}
"""What a page can say about the last action. Only the key is in the address: no note can write words there."""
