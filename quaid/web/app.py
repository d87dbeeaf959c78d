"""The application: the pages, actions and files of routes.py as responses, failures as pages with a sentence."""

import asyncio
import re
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from quaid.errors import AmbiguousReferenceError, NoteNotFoundError, QuaidError
from quaid.memory import Memory
from quaid.report.bug_report import refusal_of, write_report
from quaid.resident.worker import Worker
from quaid.timeline.undo import ChangeNotFoundError
from quaid.web.answer import COMMIT, MESSAGE, Shown, commit_id, link, own_address, without_message
from quaid.web.guard import CAN_REPEAT, FORM, Guard, Keys
from quaid.web.live import LIVE, Live
from quaid.web.routes import ACTIONS, FILES, MESSAGES, PAGES, Action, Page, View
from quaid.web.templating import make_environment, to_json

HERE = Path(__file__).parent
NOT_FOUND = (NoteNotFoundError, AmbiguousReferenceError, ChangeNotFoundError)
_PRINTABLE_WORD = re.compile(r"[!-~]*")
"""A value that a page has set: what a person types has spaces or letters beyond ASCII, or is short."""
_UNTYPED = frozenset({"back", "object", "seen", "subject", "was"})
"""Hidden fields that may have spaces."""
WARM_AFTER_S = 3.0
"""Seconds after the start: the first page, which has no question, does not wait for the model."""


class Site:
    """The pages of one vault. Reading, writing and slow views have a thread each, and each thread its own Memory, so
    that no page waits for a commit or a check.
    """

    def __init__(self, root: Path, keys: Keys, ending: asyncio.Event) -> None:
        self._root = root
        self._reading = Worker("reading", root)
        self._writing = Worker("writing", root)
        self._slow = Worker("slow", root)
        self._live = Live(root, self._reading, ending)
        self._templates = make_environment(root.name, keys.form, [page for page in PAGES if page.title])

    def routes(self) -> list[Route | Mount]:
        return [
            *(self._route(page.path, page, is_slow=page.is_slow) for page in PAGES),
            *(self._route(action.path, action, is_slow=action.is_slow) for action in ACTIONS),
            *(self._route(path, view) for path, view in FILES.items()),
            Route(LIVE, self._live.answer),
            Mount("/static", StaticFiles(directory=HERE / "static", follow_symlink=False)),
        ]

    def _route(self, path: str, target: Page | Action | View, *, is_slow: bool = False) -> Route:
        """Return a route that is answered by `target`, in the thread of a memory."""
        is_action = isinstance(target, Action)
        worker = self._slow if is_slow else self._writing if is_action else self._reading

        async def answer(request: Request) -> Response:
            responding = worker.run(lambda memory: self._respond(target, memory, request))
            try:
                return await (responding if is_action else _until_disconnect(request, responding))
            except ClientDisconnect:
                return Response()
            except Exception as error:  # noqa: BLE001 - whatever is no refusal is a bug, and is reported
                return await self.show_error(request, error)
            finally:
                if is_action:
                    self._live.notice_action()

        return Route(path, answer, methods=["POST" if is_action else "GET"])

    @asynccontextmanager
    async def run(self, _: Starlette) -> AsyncIterator[None]:
        """Get ready for the first page, then for the first question; close the memories in the end."""

        def prepare(memory: Memory) -> None:
            request = Request({"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": []})
            self._respond(PAGES[0], memory, request)

        # What fails here fails again, with a message, when a page is requested.
        self._reading.submit(prepare)
        warming = asyncio.get_running_loop().call_later(WARM_AFTER_S, self._reading.submit, Memory.warm)
        async with self._live.run():
            yield
        warming.cancel()
        for closed in [worker.close() for worker in (self._reading, self._writing, self._slow)]:
            await run_in_threadpool(closed.result)

    def _respond(self, target: Page | Action | View, memory: Memory, request: Request) -> Response:
        """Return a page, after an action the way to one (a reload does nothing twice), or a value for a script."""
        self._templates.globals["timezone"] = memory.settings.timezone
        if isinstance(target, Page):
            with memory.freshness.checked_once():
                given = target.show(memory, request)
                shown = given if isinstance(given, Shown) else Shown(target.template, given)
                return self._render(request, count_waiting(memory), shown._replace(status=200))
        if isinstance(target, Action):
            there = target.do(memory, request.scope[FORM], request)
            if isinstance(there, str):
                return RedirectResponse(there, 303)
            if isinstance(there, Response):
                return there
            return self._render(request, count_waiting(memory), there)
        made = target(memory, request)
        if isinstance(made, Response | str):
            return made if isinstance(made, Response) else Response(made, media_type="text/plain")
        return Response(to_json(made), media_type="application/json")

    async def show_error(self, request: Request, error: Exception) -> Response:
        """Return the page for a failure: one sentence, and the candidates of an ambiguous reference."""
        candidates: Sequence[object] = ()
        if isinstance(error, HTTPException):
            status = error.status_code
            sentence = "This address accepts no forms." if status == 405 else "There is no such page."
        elif refusal := error if isinstance(error, QuaidError) else refusal_of(error, self._root):
            sentence, candidates = str(refusal).partition("\n")[0], getattr(refusal, "candidates", ())
            status = 404 if isinstance(refusal, NOT_FOUND) else 400
        else:
            path = write_report(error, ["view", request.url.path], self._root)
            sentence, status = f"This is a bug in Quaid ({type(error).__name__}). The report is in {path}", 500
        try:
            counts = await self._reading.run(count_waiting)
        except Exception:  # noqa: BLE001 - it may be the very failure to show
            counts = {}
        context = {"sentence": sentence, "candidates": candidates, **read_form(request)}
        return self._render(request, counts, Shown("error.html", context, status))

    async def show_outdated(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a form from an earlier run with a page that has its text and the way back."""
        request = Request(scope)
        context = {**read_form(request), "can_repeat": scope[CAN_REPEAT]}
        await self._render(request, {}, Shown("outdated.html", context, 403))(scope, receive, send)

    def _render(self, request: Request, counts: Mapping[str, int], shown: Shown) -> Response:
        query = urlencode(without_message(request.url.query))
        context = {
            "said": MESSAGES.get(request.query_params.get(MESSAGE, "")),
            "undoable": commit_id(request.query_params.get(COMMIT, "")),
            "address": f"{quote(request.scope['path'])}{f'?{query}' if query else ''}",
            "path": request.url.path,
            "template": shown.template,
            "args": request.query_params,
            "here": partial(link, parse_qs(query)),
            "counts": counts,
            **shown.context,
        }
        return HTMLResponse(self._templates.get_template(shown.template).render(context), shown.status)


def read_form(request: Request) -> Mapping[str, Any]:
    """Return the form of a refused request (None: it has none), the texts typed into it, and the way back."""
    form, came_from = request.scope.get(FORM), urlsplit(request.headers.get("referer", ""))
    return {
        "form": form,
        "texts": {
            name: value
            for name, value in (form or {}).items()
            if name not in _UNTYPED and not _PRINTABLE_WORD.fullmatch(value)
        },
        "back": own_address(f"{came_from.path}?{came_from.query}") or "/",
    }


def count_waiting(memory: Memory) -> Mapping[str, int]:
    """Return the number of pending items of each page that counts them, by the path of the page."""
    return {page.path: page.count_waiting(memory) for page in PAGES if page.count_waiting}


async def _until_disconnect(request: Request, responding: Coroutine[Any, Any, Response]) -> Response:
    """Return the response. ClientDisconnect: the browser left first, and the job was stopped.

    An answer of the past takes seconds, and the slider requests the next one meanwhile.
    """

    async def wait_for_disconnect() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    answer, leaving = asyncio.create_task(responding), asyncio.create_task(wait_for_disconnect())
    try:
        await asyncio.wait({answer, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            raise ClientDisconnect
        return answer.result()
    finally:
        answer.cancel()
        leaving.cancel()


def make_app(root: Path, keys: Keys, port: int, ending: asyncio.Event) -> Guard:
    """Return the ASGI application for the vault at `root`, served at `port` of this machine until `ending`."""
    site = Site(root, keys, ending)
    handlers = dict.fromkeys((HTTPException, Exception), site.show_error)
    app = Starlette(routes=site.routes(), lifespan=site.run, exception_handlers=handlers)
    return Guard(app, site.show_outdated, keys, port)
