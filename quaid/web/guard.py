"""Access control: only the browser that was opened with the printed address is answered, and only to this page.

Any page of the web can make a browser send requests to this port, and can name it (DNS rebinding). So a request needs
the right host, a cookie that only the opening address gives, and no sign of another site; a post also needs the token
in the forms of our own pages.
"""

import secrets
from typing import NamedTuple, Self
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from quaid.resident.loopback import HOST

MAX_BODY = 4 * 2**20
"""Bytes of a form: the longest note that can be edited here."""
FORM = "quaid.form"
"""The key of the scope with the posted form."""
FORM_TOKEN = "form_token"  # noqa: S105 - a name, not the token
SECURITY = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    # Not no-referrer: with that, browsers send the origin `null` with our own forms. Other sites learn as little.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}


class Keys(NamedTuple):
    """The secrets of one server: in the printed address, in the address that a browser is started with (other users of
    the machine see it in the list of processes, so it opens once), in the cookie, and in the forms.
    """

    printed: str
    started: str
    cookie: str
    form: str

    @classmethod
    def make(cls) -> Self:
        return cls(*(secrets.token_urlsafe(32) for _ in cls._fields))


class RefusedError(Exception):
    """A request that is refused, and the sentence for it."""


class Guard:
    """Passes requests of the owner's browser on to `app`, and adds the headers of `SECURITY` to each answer."""

    def __init__(self, app: ASGIApp, keys: Keys, port: int) -> None:
        self._app = app
        self._keys = keys
        self._hosts = [f"{name}:{port}" for name in (HOST, "localhost")]
        self._cookie = f"quaid-view-{port}"  # cookies of all ports of a host are sent to each
        self._started_is_unused = True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # a websocket: there is none
            await send({"type": "websocket.close", "code": 1008})
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(SECURITY)
            await send(message)

        request, answer = Request(scope, receive), None
        try:
            self._check_site(request)
            answer = self._open(request)
            if answer is None and request.method == "POST":
                scope = {**scope, FORM: await self._read_form(request)}
        except RefusedError as refusal:
            answer = PlainTextResponse(f"{refusal}\n", 403)
        await (answer or self._app)(scope, receive, send_safely)

    def _check_site(self, request: Request) -> None:
        for name in ("host", "origin", "cookie", "sec-fetch-site"):
            if len(request.headers.getlist(name)) > 1:
                raise RefusedError(f"A request may have one header {name} only.")
        host, method = request.headers.get("host", ""), request.method
        if host not in self._hosts:
            raise RefusedError(f"This server answers at http://{self._hosts[0]} only.")
        if method not in {"GET", "HEAD", "POST"}:
            raise RefusedError("This server knows GET, HEAD and POST only.")
        origin = request.headers.get("origin")
        is_own_origin = origin == f"http://{host}" or (origin is None and method != "POST")
        if not is_own_origin or request.headers.get("sec-fetch-site", "none") not in {"same-origin", "none"}:
            raise RefusedError(
                "Another site has asked for this page. Open it by the address that quaid view has printed."
            )

    def _open(self, request: Request) -> Response | None:
        """Return the answer that lets in a browser with a token and removes it from the address; None for one that was
        let in before. RefusedError: for others.
        """
        given = request.query_params.getlist("token")
        if request.method != "GET" or not given:
            # Not SimpleCookie: one odd cookie of another server of this machine, and it reads none of them.
            pairs = (each.strip().partition("=") for each in request.headers.get("cookie", "").split(";"))
            if not any(name == self._cookie and _is_same(value, self._keys.cookie) for name, _, value in pairs):
                raise RefusedError("This browser was not let in. Open the address that quaid view has printed.")
            return None
        is_started = self._started_is_unused and _is_same(given[0], self._keys.started)
        self._started_is_unused &= not is_started
        rest = urlencode([each for each in request.query_params.multi_items() if each[0] != "token"])
        # One slash in front: a second would name another host.
        there = "/" + quote(request.scope["path"].lstrip("/\\"), safe="/") + (f"?{rest}" if rest else "")
        answer = Response(status_code=303, headers={"Location": there})
        if is_started or _is_same(given[0], self._keys.printed):
            answer.headers["Set-Cookie"] = f"{self._cookie}={self._keys.cookie}; Path=/; HttpOnly; SameSite=Strict"
        return answer

    async def _read_form(self, request: Request) -> dict[str, str]:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/x-www-form-urlencoded":
            raise RefusedError("What is posted here must be a form of this page.")
        body = bytearray()
        try:
            async for part in request.stream():
                body += part
                if len(body) > MAX_BODY:
                    raise RefusedError(f"A form may have {MAX_BODY:,} bytes. For longer notes: quaid edit REF")
            form = dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=1000, errors="strict"))
        except ClientDisconnect:  # half of a note must not be saved
            raise RefusedError("The form did not arrive as a whole.") from None
        except ValueError:
            raise RefusedError("What was posted is not a form in UTF-8.") from None
        if not _is_same(form.pop(FORM_TOKEN, ""), self._keys.form):
            raise RefusedError("This form is from another run of quaid view. Go back, reload the page, try again.")
        return form


def _is_same(given: str, known: str) -> bool:
    return secrets.compare_digest(given.encode("utf-8", "replace"), known.encode())
