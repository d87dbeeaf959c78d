"""A stand-in for Anthropic's Messages API on a free port: keeps what an agent's program sends, answers as scripted."""

from __future__ import annotations

import json
from collections.abc import Iterator

from model_api import ANSWER, Call, ModelApi, stream

COMPACTING = "create a detailed summary of the conversation"
"""Stands in what Claude Code asks when it compacts."""
SUMMARY = "<summary>They spoke about breakfast.</summary>"
USAGE = {"input_tokens": 10, "output_tokens": 5, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}


class MessagesApi(ModelApi):
    """Answers a request whole or as a stream, as it is asked."""

    def respond(self, path: str, body: dict) -> tuple[str, str] | None:
        if path == "/v1/messages/count_tokens":
            return "application/json", json.dumps({"input_tokens": 10})
        if path != "/v1/messages":
            return None
        self.requests.append(body)
        message = self.answer(body)
        return stream(*as_events(message)) if body.get("stream") else ("application/json", json.dumps(message))

    def answer(self, body: dict) -> dict:
        """What is given to `body`; the result of a tool gets a plain answer, whatever it says."""
        new = since_the_last_answer(body["messages"])
        asked = "\n".join(as_text(message["content"]) for message in new)
        found = self.scripted(asked)
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
