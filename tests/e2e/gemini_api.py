"""A stand-in for Gemini's API: keeps what Gemini CLI sends, answers as scripted."""

from __future__ import annotations

import json
import re

from model_api import ANSWER, Call, ModelApi, stream

USAGE = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}


class GeminiApi(ModelApi):
    """`requests` has only those for a conversation's next turn; what else the program asks gets the plain answer."""

    def respond(self, path: str, body: dict) -> tuple[str, str] | None:
        asked = re.search(r"/models/[^/]+:(\w+)$", path)
        if asked is None:
            return None
        if asked[1] == "countTokens":
            return "application/json", json.dumps({"totalTokens": 10})
        if asked[1] != "streamGenerateContent":
            return "application/json", json.dumps(self._reply({"text": ANSWER}))
        self.requests.append(body)
        new = body["contents"][-1]["parts"]
        found = ANSWER if tool_results([body["contents"][-1]]) else self.scripted("\n".join(map(as_text, new)))
        part = {"text": found} if isinstance(found, str) else {"functionCall": self._call(body, found)}
        return stream(self._reply(part))

    @staticmethod
    def _reply(part: dict) -> dict:
        return {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
                "usageMetadata": USAGE, "modelVersion": "stand-in"}  # fmt: skip

    @staticmethod
    def _call(body: dict, call: Call) -> dict:
        names = [one["name"] for tool in body["tools"] for one in tool.get("functionDeclarations", ())]
        name = next((name for name in names if name.endswith(call.tool)), call.tool)
        return {"name": name, "args": call.arguments}


def as_text(part: dict) -> str:
    """The text of a part, a tool's result included."""
    return part.get("text") or json.dumps(part.get("functionResponse", {}).get("response", ""))


def tool_results(contents: list[dict]) -> list[str]:
    return [as_text(part) for content in contents for part in content["parts"] if "functionResponse" in part]
