"""A stand-in for Anthropic's Messages API on a free port: keeps what an agent's program sends, answers as scripted."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler

from loopback import LoopbackServer

COMPACTING = "create a detailed summary of the conversation"
"""Stands in what Claude Code asks when it compacts."""
SUMMARY = "<summary>They spoke about breakfast.</summary>"
ANSWER = "Understood."
USAGE = {"input_tokens": 10, "output_tokens": 5, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}


@dataclass(frozen=True)
class Call:
    """A tool to be called, by the end of the name under which it is offered."""

    tool: str
    arguments: dict = field(default_factory=dict)


class MessagesApi:
    """`script` has, for words of a prompt, what is answered to it: a text, or calls of tools before the next answer."""

    def __init__(self) -> None:
        self.script: dict[str, str | Call] = {}
        self.requests: list[dict] = []
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                path = self.path.partition("?")[0]
                if path == "/v1/messages/count_tokens":
                    return self.give(200, {"input_tokens": 10})
                if path != "/v1/messages":
                    return self.do_GET()
                api.requests.append(body)
                message = api.answer(body)
                if not body.get("stream"):
                    return self.give(200, message)
                return self.stream(message)

            def do_GET(self):
                self.give(404, {"type": "error", "error": {"type": "not_found_error", "message": self.path}})

            def do_HEAD(self):
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def give(self, status, answer):
                self.write(status, "application/json", json.dumps(answer))

            def stream(self, message):
                events = "".join(
                    f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in as_events(message)
                )
                self.write(200, "text/event-stream", events)

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

    def answer(self, body: dict) -> dict:
        """What is given to `body`; the result of a tool gets a plain answer, whatever it says."""
        new = since_the_last_answer(body["messages"])
        asked = "\n".join(as_text(message["content"]) for message in new)
        found = next((step for words, step in self.script.items() if words in asked), ANSWER)
        if COMPACTING in asked:
            found = SUMMARY
        elif tool_results(new):
            found = ANSWER
        block = {"type": "text", "text": found} if isinstance(found, str) else self._calling(found, body)
        stop = "tool_use" if block["type"] == "tool_use" else "end_turn"
        return {"id": f"msg_{len(self.requests):04}", "type": "message", "role": "assistant", "model": body["model"],
                "content": [block], "stop_reason": stop, "stop_sequence": None, "usage": USAGE}  # fmt: skip

    def _calling(self, call: Call, body: dict) -> dict:
        names = [tool["name"] for tool in body.get("tools", ())]
        name = next((name for name in names if name.endswith(call.tool)), None)
        if name is None:
            return {"type": "text", "text": f"I was offered no {call.tool}, only: {', '.join(names)}"}
        return {"type": "tool_use", "id": f"toolu_{len(self.requests):04}", "name": name, "input": call.arguments}

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def as_events(message: dict) -> Iterator[dict]:
    """`message` as the API streams it."""
    (block,) = message["content"]
    if block["type"] == "text":
        empty, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
    else:
        empty, delta = {**block, "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    yield {"type": "content_block_start", "index": 0, "content_block": empty}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": message["stop_reason"], "stop_sequence": None},
        "usage": USAGE,
    }
    yield {"type": "message_stop"}


def as_text(content: str | list[dict]) -> str:
    """All text of a message, the results of tools included."""
    if isinstance(content, str):
        return content
    return "\n".join(as_text(block.get("text") or block.get("content") or "") for block in content)


def since_the_last_answer(messages: list[dict]) -> list[dict]:
    """What the model has not seen before: a prompt or results of tools, with what was injected beside them."""
    answered = [place for place, message in enumerate(messages) if message["role"] == "assistant"]
    return messages[answered[-1] + 1 if answered else 0 :]


def tool_results(messages: list[dict]) -> list[str]:
    blocks = [block for message in messages if not isinstance(message["content"], str) for block in message["content"]]
    return [as_text(block["content"]) for block in blocks if block["type"] == "tool_result"]
