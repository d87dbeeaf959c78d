"""What the stand-ins for models' APIs share: a server on a free port, the requests, and a script of answers."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from loopback import LoopbackServer

ANSWER = "Understood."


@dataclass(frozen=True)
class Call:
    """A tool to be called, by the end of the name under which it is offered."""

    tool: str
    arguments: dict = field(default_factory=dict)


class ModelApi:
    """`script` has, for words of a prompt, what is answered to it: a text, or calls of tools before the next answer."""

    def __init__(self) -> None:
        self.script: dict[str, Any] = {}
        self.requests: list[dict] = []
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])) or "{}")
                found = api.respond(self.path.partition("?")[0], body)
                self.write(200, *found) if found else self.do_GET()

            def do_GET(self):
                missing = {"type": "error", "error": {"type": "not_found_error", "message": self.path}}
                self.write(404, "application/json", json.dumps(missing))

            def do_HEAD(self):
                self.write(200, "application/json", "")

            def write(self, status, kind, text):
                content = text.encode()
                try:
                    self.send_response(status)
                    self.send_header("content-type", kind)
                    self.send_header("content-length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)
                except OSError:
                    pass  # who asked has gone

            def log_message(self, *args):
                pass

        self.server = LoopbackServer(Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def respond(self, path: str, body: dict) -> tuple[str, str] | None:
        """The content type and the text of what is answered to a request, None where there is nothing."""
        raise NotImplementedError

    def scripted(self, asked: str) -> Any:
        return next((step for words, step in self.script.items() if words in asked), ANSWER)

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def stream(*events: dict) -> tuple[str, str]:
    """Server-sent events, named by their type where they have one."""
    named = [(f"event: {event['type']}\n" if "type" in event else "", json.dumps(event)) for event in events]
    return "text/event-stream", "".join(f"{name}data: {data}\n\n" for name, data in named)
