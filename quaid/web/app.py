"""The application: pages, actions and files of routes.py as answers to requests, failures as pages with a sentence."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote, urlencode

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from quaid.errors import AmbiguousReferenceError, NoteNotFoundError, QuaidError
from quaid.report.bug_report import refusal_of, write_report
from quaid.resident.worker import Worker
from quaid.timeline.undo import ChangeNotFoundError
from quaid.web.answer import COMMIT, SAID, Shown, commit_id, without_said
from quaid.web.guard import FORM, Guard, Keys
from quaid.web.live import LIVE, Live
from quaid.web.routes import ACTIONS, FILES, MESSAGES, PAGES, Action, File, Page
from quaid.web.templating import make_environment

if TYPE_CHECKING:
    from quaid.memory import Memory

Answer = TypeVar("Answer")
HERE = Path(__file__).parent
NOT_FOUND = (NoteNotFoundError, AmbiguousReferenceError, ChangeNotFoundError)
WARM_AFTER_S = 3.0
"""Seconds after the start: the first page, which asks nothing, does not wait for the model."""


class Site:
    """The pages of one vault. Reading, writing and what is slow have a thread each, and each thread a Memory of its
    own, so that no page waits for a commit or a check.
    """

    def __init__(self, root: Path, keys: Keys, ending: asyncio.Event) -> None:
        self._root = root
        self._reading = Worker("reading", root)
        self._writing = Worker("writing", root)
        self._slow = Worker("slow", root)
        self.live = Live(root, self._reading, ending)
        self._templates = make_environment(keys.form, [page for page in PAGES if page.title])

    @asynccontextmanager
    async def run(self, _: Starlette) -> AsyncIterator[None]:
        """Get ready for the first page, then for the first question; close both memories in the end."""
        # What fails here fails again, and is told, when a page is asked for.
        self._reading.submit(self._prepare)
        loop = asyncio.get_running_loop()
        waiting = loop.call_later(WARM_AFTER_S, self._reading.submit, lambda memory: memory.warm())
        async with self.live.run():
            yield
        waiting.cancel()
        for closed in [worker.close() for worker in (self._reading, self._writing, self._slow)]:
            await run_in_threadpool(closed.result)

    def _prepare(self, memory: Memory) -> None:
        """Make the first page while the browser starts: what it has to load and to look at is there when it asks."""
        memory.freshness.listen()
        request = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": []}
        self._make(memory, PAGES[0], Request(request))

    def show(self, page: Page) -> Route:
        """Return the route of a page."""
        worker = self._slow if page.is_slow else self._reading

        async def answer(request: Request) -> Response:
            try:
                return HTMLResponse(await self._read(worker, request, lambda memory: self._make(memory, page, request)))
            except ClientDisconnect:
                return Response()
            except Exception as error:  # noqa: BLE001 - whatever else comes is a bug, and is kept
                return await self.tell(request, error)

        return Route(page.path, answer)

    def _make(self, memory: Memory, page: Page, request: Request) -> str:
        with memory.freshness.checked_once():
            given = page.show(memory, request)
            shown = given if isinstance(given, Shown) else Shown(page.template, given)
            return self._render(request, shown.template, counts=count_waiting(memory), **shown.context)

    async def _read(self, worker: Worker, request: Request, job: Callable[[Memory], Answer]) -> Answer:
        """Return what `job` makes of the memory. One that nobody waits for any more stops: an answer of the past takes
        seconds, and the slider asks for the next.
        """
        reading, leaving = asyncio.create_task(worker.run(job)), asyncio.create_task(_wait_until_gone(request))
        try:
            await asyncio.wait({reading, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                raise ClientDisconnect
            return reading.result()
        finally:
            reading.cancel()
            leaving.cancel()

    def act(self, action: Action) -> Route:
        """Return the route of an action: it answers with the way to a page, so that a reload does nothing twice."""
        worker = self._slow if action.is_slow else self._writing

        async def answer(request: Request) -> Response:
            form = request.scope[FORM]
            try:
                there = await worker.run(lambda memory: action.do(memory, form, request))
            except Exception as error:  # noqa: BLE001 - as above
                return await self.tell(request, error)
            if isinstance(there, str):
                return RedirectResponse(there, 303)
            counts = await self._count()
            return HTMLResponse(self._render(request, there.template, counts=counts, **there.context), there.status)

        return Route(action.path, answer, methods=["POST"])

    def send(self, file: File) -> Route:
        """Return the route of a file."""
        saving = {"Content-Disposition": f'attachment; filename="{file.name}"'} if file.name else None

        async def answer(request: Request) -> Response:
            try:
                made = await self._reading.run(lambda memory: file.make(memory, request))
            except Exception as error:  # noqa: BLE001 - as above
                return await self.tell(request, error)
            return Response(made, media_type=file.media_type, headers=saving)

        return Route(file.path, answer)

    async def tell_http(self, request: Request, error: Exception) -> Response:
        """Return the page for an address that leads nowhere."""
        status = error.status_code if isinstance(error, HTTPException) else 500
        sentence = "This address cannot be posted to." if status == 405 else "There is no such page."
        counts = await self._count()
        return HTMLResponse(self._render(request, "error.html", counts=counts, sentence=sentence), status)

    async def tell(self, request: Request, error: Exception) -> Response:
        """Return the page for what went wrong: one sentence, and the notes to choose from where several fit."""
        refusal = error if isinstance(error, QuaidError) else refusal_of(error, self._root)
        if refusal is None:
            path = write_report(error, ["view", request.url.path], self._root)
            sentence, status = f"This is a bug in Quaid ({type(error).__name__}). The report is in {path}", 500
        else:
            sentence = str(refusal).partition("\n")[0]
            status = 404 if isinstance(refusal, NOT_FOUND) else 400
        candidates = getattr(refusal, "candidates", ())
        context = {"counts": await self._count(), "sentence": sentence, "candidates": candidates}
        return HTMLResponse(self._render(request, "error.html", **context), status)

    async def _count(self) -> Mapping[str, int]:
        """Return what waits on each page; nothing where that fails, which may be what the page is to tell."""
        try:
            return await self._reading.run(count_waiting)
        except Exception:  # noqa: BLE001 - it fails again, and is told, on the page that is asked for next
            return {}

    def _render(self, request: Request, template: str, **context: object) -> str:
        said = MESSAGES.get(request.query_params.get(SAID, ""))
        undoable = commit_id(request.query_params.get(COMMIT, ""))
        kept = urlencode(without_said(request.url.query))
        here = f"{quote(request.scope['path'])}{f'?{kept}' if kept else ''}"
        page = self._templates.get_template(template)
        about = {"said": said, "undoable": undoable, "here": here, "path": request.url.path}
        return page.render({**about, **context})


def count_waiting(memory: Memory) -> Mapping[str, int]:
    """Return how much waits on each page that counts it, by the path of the page."""
    return {page.path: page.count_waiting(memory) for page in PAGES if page.count_waiting}


async def _wait_until_gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def make_app(root: Path, keys: Keys, port: int, ending: asyncio.Event) -> Guard:
    """Return the ASGI application for the vault at `root`, which is served at `port` of this machine until `ending`."""
    site = Site(root, keys, ending)
    routes = [
        *map(site.show, PAGES),
        *map(site.act, ACTIONS),
        *map(site.send, FILES),
        Route(LIVE, site.live.answer),
        Mount("/static", StaticFiles(directory=HERE / "static", follow_symlink=False)),
    ]
    app = Starlette(
        routes=routes, lifespan=site.run, exception_handlers={HTTPException: site.tell_http, Exception: site.tell}
    )
    return Guard(app, keys, port)
