"""Conversation 26 and what a real model has learned from it, replayed by a local service in each provider's format."""

from __future__ import annotations

import json
import os
import re
import sys
import threading
from pathlib import Path

import pytest
from model_service import Service

DATA = Path(os.environ.get("QUAID_DATA", Path(__file__).parents[2] / "shared" / "data"))
_SESSION = re.compile(r"^id: (\S+)$", re.MULTILINE)


def needs(folder: str) -> Path:
    path = DATA / folder
    if not path.exists():
        pytest.skip(f"{folder} is not there: set QUAID_DATA to the folder that holds it")
    return path


def answers() -> dict[str, dict]:
    """What the model answered for each session, by its id."""
    folder = needs("extraction/conv-26")
    return {f"D{n}": json.loads((folder / f"session_{n}.json").read_text("utf-8")) for n in range(1, 20)}


def write_sessions(folder: Path) -> list[Path]:
    """The conversation's sessions as generic JSONL, in their order."""
    conversations = json.loads((needs("locomo") / "locomo10.json").read_text("utf-8"))
    talk = next(found["conversation"] for found in conversations if found["sample_id"] == "conv-26")
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for number in range(1, 20):
        lines = [{"session": f"D{number}", "started": talk[f"session_{number}_date_time"]}]
        for turn in talk[f"session_{number}"]:
            photo = f" [shares a photo of {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            role = "user" if turn["speaker"] == talk["speaker_a"] else "assistant"
            lines.append({"role": role, "speaker": turn["speaker"], "content": turn["text"] + photo})
        path = folder / f"D{number}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        paths.append(path)
    return paths


def write_talk(path: Path, *said: str, session: str = "s1", started: str = "2026-11-20T14:00:00Z") -> Path:
    """A conversation of Maya and her assistant, a turn a minute."""
    lines: list[dict] = [{"session": session, "started": started}]
    for minute, text in enumerate(said):
        role, speaker = (("user", "Maya"), ("assistant", "Assistant"))[minute % 2]
        at = f"{started[:13]}:{minute % 60:02}:00Z"
        lines.append({"role": role, "speaker": speaker, "content": text, "timestamp": at})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def facts_of(*texts: str, **fields) -> dict:
    """An answer with these facts, each resting on the turn of its place."""
    usual = {"category": "fact", "confidence": 0.9, "source": "user", "durability": "mutable"}
    facts = [{"text": text, "turns": [f"t{n}"], **usual, **fields} for n, text in enumerate(texts, 1)]
    return {"v": 1, "facts": facts, "snippets": {}, "journal": {}}


class _Requests(list):
    """Also knows what the thread that asks has received: two may ask at once."""

    def __init__(self) -> None:
        super().__init__()
        self.own = threading.local()

    def append(self, request) -> None:
        super().append(request)
        self.own.body = request[1]


class Replay(Service):
    """Answers with what `answers` has for the session that is asked about, or what that makes of the question."""

    def __init__(self, answers: dict[str, dict]) -> None:
        super().__init__()
        self.requests = _Requests()
        self.answers = answers

    @property
    def value(self):
        text = self.last_question()
        found = _SESSION.search(text)
        answer = self.answers[found[1]] if found else {}
        return answer(text) if callable(answer) else answer

    @value.setter
    def value(self, value):
        pass

    def last_question(self) -> str:
        texts = [message["content"] for message in self.requests.own.body["messages"]]
        return "\n".join(text if isinstance(text, str) else json.dumps(text) for text in texts)

    @property
    def sessions_asked(self) -> list[str]:
        """The session of each question to the deep model, in the order they came."""
        found = [_SESSION.search(json.dumps(body).replace("\\n", "\n").replace("\\\\n", "\n")) for body in self.asked]
        return [match[1] for match in found if match]

    @property
    def prompts(self) -> list[str]:
        """What the deep model was asked, without what it is told every time."""
        asked = [body["messages"] for body in self.asked]
        texts = ["\n".join(turn["content"] for turn in turns if turn["role"] != "system") for turns in asked]
        return [text for text in texts if _SESSION.search(text)]

    def environ(self, provider: str = "anthropic") -> dict[str, str]:
        """The settings that make Quaid ask this service."""
        url = self.url + ("/v1" if provider == "openai" else "")
        named = {"provider": provider, "url": url, "deep": "wise", "fast": "quick"}
        keys = {"ANTHROPIC_API_KEY": "sk-test", "OPENAI_API_KEY": "sk-test"}
        return {**{f"QUAID_MODELS_{name.upper()}": value for name, value in named.items()}, **keys}


CLAUDE = """#!{python}
import json, pathlib, re, sys
asked = sys.stdin.read()
here = pathlib.Path(__file__).parent
with (here / "asked").open("a") as file:
    file.write(json.dumps(asked) + "\\n")
value = json.loads((here / "answers.json").read_text())[re.search(r"^id: (\\S+)$", asked, re.M)[1]]
print(json.dumps({{
    "type": "result", "subtype": "success", "is_error": False, "result": "", "structured_output": value, "num_turns": 2,
    "total_cost_usd": 0.01, "usage": {{"input_tokens": 10, "output_tokens": 5}}, "modelUsage": {{"opus-5": {{"outputTokens": 5}}}},
}}))
"""


def write_claude(folder: Path, answers: dict[str, dict]) -> dict[str, str]:
    """A `claude` that answers as `Replay` does; the environment in which it is found and asked."""
    folder.mkdir()
    (folder / "answers.json").write_text(json.dumps(answers))
    script = folder / "claude"
    script.write_text(CLAUDE.format(python=sys.executable))
    script.chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "QUAID_MODELS_PROVIDER": "claude-code"}
