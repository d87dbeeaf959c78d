"""A stand-in for OpenAI's Responses API: keeps what Codex sends, answers as scripted."""

from __future__ import annotations

import json

from model_api import ANSWER, Call, ModelApi, stream

NAMESPACE = "mcp__quaid"
"""Under which Codex has the tools of the server."""
USAGE = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}


class ResponsesApi(ModelApi):
    """A call of `tool_search` goes to Codex, which answers it from the tools that it has not shown.

    Other calls name a tool of Quaid's server, whether it was shown or not.
    """

    def respond(self, path: str, body: dict) -> tuple[str, str] | None:
        if not path.endswith("/responses"):
            return None
        self.requests.append(body)
        number = len(self.requests)
        response = {"response": {"id": f"resp_{number:04}", "usage": USAGE}}
        items = [{"id": f"item_{number:04}_{n}", **item} for n, item in enumerate(self._answer(body))]
        return stream(
            {"type": "response.created", **response},
            *({"type": "response.output_item.done", "output_index": n, "item": item} for n, item in enumerate(items)),
            {"type": "response.completed", **response},
        )

    def _answer(self, body: dict) -> list[dict]:
        new = since_the_last_answer(body["input"])
        asked = "\n".join(as_text(item) for item in new if item.get("role") == "user")
        found = ANSWER if tool_results(new) else self.scripted(asked)
        if isinstance(found, str):
            return [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": found}]}]
        number = len(self.requests)
        return [{"call_id": f"call_{number:04}_{n}", **as_item(call)} for n, call in enumerate(found)]


def as_item(call: Call) -> dict:
    if call.tool == "tool_search":
        return {"type": "tool_search_call", "execution": "client", "arguments": call.arguments}
    if call.tool == "apply_patch":
        return {"type": "custom_tool_call", "name": call.tool, "input": call.arguments["patch"]}
    named = {"name": call.tool, "namespace": NAMESPACE}
    return {"type": "function_call", **named, "arguments": json.dumps(call.arguments)}


def as_text(item: dict) -> str:
    """The text of a message or of a tool's result."""
    content = item.get("content", item.get("output", ""))
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def since_the_last_answer(items: list[dict]) -> list[dict]:
    answered = [n for n, item in enumerate(items) if item.get("role") == "assistant" or item["type"].endswith("_call")]
    return items[answered[-1] + 1 if answered else 0 :]


def tool_results(items: list[dict]) -> list[str]:
    return [as_text(item) for item in items if item["type"].endswith("_output")]
