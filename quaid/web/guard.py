"""Access control: only the browser that was opened with the printed address is answered, and only to this page.

Any page of the web can make a browser send requests to this port, and can name it (DNS rebinding). So a request needs
the right host, a cookie that only the opening address gives, and no sign of another site; a post also needs the token
in the forms of our own pages.
"""

import json
import secrets
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Self
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from quaid.local import state_files
from quaid.place import write_private
from quaid.resident.loopback import HOST

MAX_BODY = 4 * 2**20
"""Bytes of a form: the longest note that can be edited here."""
FORM = "quaid.form"
"""The key of the scope with the posted form."""
FORM_TOKEN = "form_token"  # noqa: S105 - a name, not the token
CAN_REPEAT = "quaid.can_repeat"
"""The key of the scope of a form from an earlier run: true if the browser has access, so that one click can repeat it.
"""
KEYS_FILE = "view_keys.json"
"""The name of the file in the state folder that holds the keys of the last run."""
MAX_KEYS_AGE_S = 30 * 86_400
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

    @classmethod
    def load(cls, file: Path) -> Self:
        """Return keys whose cookie and form token are those of the last run, so that pages stay usable after a restart.

        Only this user can read the file, who can read the vault too. Tokens of addresses are new in each run.
        """
        made = cls.make()
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            if file.lstat().st_mode & 0o077 == 0 and time.time() - file.lstat().st_mtime < MAX_KEYS_AGE_S:
                stored = json.loads(state_files.read(file))
                if all(len(stored[name].encode("ascii")) >= len(made.cookie) for name in ("cookie", "form")):
                    return made._replace(cookie=stored["cookie"], form=stored["form"])
        with suppress(OSError):  # a restart then needs the new address
            write_private(file, json.dumps({"cookie": made.cookie, "form": made.form}))
        return made


class RefusedError(Exception):
    """A request that is refused, and the sentence for it."""


class Guard:
    """Passes requests of the owner's browser on to `app`, and adds the headers of `SECURITY` to each answer.

    `outdated` answers a form of our own pages that comes from an earlier run, so that its text is not lost.
    """

    def __init__(self, app: ASGIApp, outdated: ASGIApp, keys: Keys, port: int) -> None:
        self._app = app
        self._outdated = outdated
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
                headers = MutableHeaders(scope=message)
                headers.update({name: value for name, value in SECURITY.items() if name not in headers})
                # Nothing of the vault: the browser stores it, and asks by its ETag whether it has changed.
                if scope["path"].startswith("/static/") and message["status"] in {200, 304}:
                    headers["Cache-Control"] = "private, no-cache"
            await send(message)

        request, app = Request(scope, receive), self._app
        try:
            self._check_site(request)
            if request.method == "POST":
                form = await self._read_form(request)
                has_access, token = self._has_access(request), form.pop(FORM_TOKEN, "")
                scope = {**scope, FORM: form, CAN_REPEAT: has_access}
                if not has_access or not _is_same(token, self._keys.form):
                    app = self._outdated
            else:
                app = self._open(request) or app
        except RefusedError as refusal:
            app = PlainTextResponse(f"{refusal}\n", 403)
        await app(scope, receive, send_safely)

    def _check_site(self, request: Request) -> None:
        for name in ("host", "origin", "cookie", "sec-fetch-site"):
            if len(request.headers.getlist(name)) > 1:
                raise RefusedError(f"A request may have one header {name} only.")
        host, method = request.headers.get("host", ""), request.method
        if host not in self._hosts:
            raise RefusedError(f"This server answers at http://{self._hosts[0]} only.")
        if method not in {"GET", "HEAD", "POST"}:
            raise RefusedError("This server accepts GET, HEAD and POST only.")
        origin = request.headers.get("origin")
        is_own_origin = origin == f"http://{host}" or (origin is None and method != "POST")
        if not is_own_origin or request.headers.get("sec-fetch-site", "none") not in {"same-origin", "none"}:
            raise RefusedError("The request comes from another site. Open the address that quaid view has printed.")

    def _has_access(self, request: Request) -> bool:
        # Not SimpleCookie: one odd cookie of another server of this machine, and it reads none of them.
        pairs = (each.strip().partition("=") for each in request.headers.get("cookie", "").split(";"))
        return any(name == self._cookie and _is_same(value, self._keys.cookie) for name, _, value in pairs)

    def _open(self, request: Request) -> Response | None:
        """Return the answer that lets in a browser with a token and removes it from the address; None for one that was
        let in before. RefusedError: for others.
        """
        given = request.query_params.getlist("token")
        if request.method != "GET" or not given:
            if not self._has_access(request):
                raise RefusedError("This browser has no access. Open the address that quaid view has printed.")
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
            raise RefusedError("A post must be a form of these pages.")
        body = bytearray()
        try:
            async for part in request.stream():
                body += part
                if len(body) > MAX_BODY:
                    raise RefusedError(f"A form may have {MAX_BODY:,} bytes. For longer notes: quaid edit REF")
            form = dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=1000, errors="strict"))
        except ClientDisconnect:  # half of a note must not be saved
            raise RefusedError("The form did not arrive completely.") from None
        except ValueError:
            raise RefusedError("The form is not UTF-8.") from None
        return form


def _is_same(given: str, known: str) -> bool:
    return secrets.compare_digest(given.encode("utf-8", "replace"), known.encode())
