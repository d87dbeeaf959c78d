"""`claude -p`, played by an executable of that name on the PATH."""

from __future__ import annotations

import json
import os
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest
from model_service import RED, colour
from vaults import PATIENCE_S, wait_for

from quaid.errors import ModelAnswerError, ModelRefusedError, ModelTimeoutError, ModelUnavailableError
from quaid.llm import Models
from quaid.settings import ModelSettings

CLAUDE = """#!{python}
import json, os, pathlib, subprocess, sys, time
here = pathlib.Path(__file__).parent
seen = {{"args": sys.argv[1:], "input": sys.stdin.read(), "env": dict(os.environ), "cwd": sorted(os.listdir("."))}}
with (here / "seen.jsonl").open("a") as file:
    file.write(json.dumps(seen) + "\\n")
steps = sorted(here.glob("step-*.json"))
step = json.loads(steps[0].read_text())
if len(steps) > 1:
    steps[0].unlink()
if step.get("hang"):
    child = subprocess.Popen(["sleep", "60"])
    (here / "pids").write_text(f"{{os.getpid()}} {{child.pid}}")
    time.sleep(60)
sys.stderr.write(step.get("stderr", ""))
sys.stdout.write(step["stdout"] if "stdout" in step else json.dumps(step["result"]))
sys.exit(step.get("code", 0))
"""
RESULT = {
    "type": "result", "subtype": "success", "is_error": False, "api_error_status": None, "result": "done",
    "structured_output": RED, "num_turns": 2, "total_cost_usd": 0.004, "session_id": "s", "stop_reason": "end_turn",
    "usage": {"input_tokens": 30, "cache_creation_input_tokens": 10, "cache_read_input_tokens": 60, "output_tokens": 25},
    "modelUsage": {"small": {"outputTokens": 2}, "claude-haiku-5-5": {"outputTokens": 23, "costUSD": 0.004}},
}  # fmt: skip


class Claude:
    def __init__(self, folder):
        self.folder = folder
        script = folder / "claude"
        script.write_text(CLAUDE.format(python=sys.executable))
        script.chmod(0o755)
        self.environ = {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "HOME": str(folder), "CLAUDECODE": "1"}
        self.play({"result": RESULT})

    def play(self, *steps):
        for path in self.folder.glob("step-*.json"):
            path.unlink()
        for number, step in enumerate(steps):
            (self.folder / f"step-{number}.json").write_text(json.dumps(step))

    def play_result(self, **changes):
        self.play({"result": RESULT | changes, "code": int(changes.get("is_error", False))})

    @property
    def seen(self):
        path = self.folder / "seen.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def ask(self, **options):
        models = Models(ModelSettings(provider="claude-code"), environ=self.environ)
        return models.ask(colour("deep"), {"text": "a red door"}, **options)


@pytest.fixture
def claude(tmp_path):
    folder = tmp_path / "bin"
    folder.mkdir()
    return Claude(folder)


def test_an_answer_says_who_gave_it_and_what_it_cost(claude):
    claude.play({"result": [{"type": "system"}, RESULT | {"structured_output": {"colour": "blue", "sure": 0}}, RESULT]})
    answer = claude.ask()  # the last of several messages counts
    assert answer.value == RED
    assert (answer.provider, answer.model) == ("claude-code", "claude-haiku-5-5")
    assert (answer.usage.input_tokens, answer.usage.output_tokens, answer.usage.cached_tokens) == (100, 25, 60)
    assert answer.usage.cost_usd == 0.004


def test_it_is_started_as_it_should_be(claude):
    claude.ask()
    (seen,) = claude.seen
    args = seen["args"]
    assert args[0] == "-p"
    pairs = dict(pairwise(args))
    assert (pairs["--output-format"], pairs["--model"], pairs["--tools"]) == ("json", "opus", "")
    assert {"--no-session-persistence", "--strict-mcp-config"} <= set(args)
    assert json.loads(pairs["--settings"]) == {"disableAllHooks": True}
    assert json.loads(pairs["--json-schema"])["required"] == ["colour", "sure"]
    assert pairs["--system-prompt"].startswith("Name the colour")
    assert "a red door" in seen["input"]
    assert not [arg for arg in args if "a red door" in arg]
    assert seen["env"]["QUAID_NO_HOOKS"] == "1"
    assert seen["env"]["CLAUDE_CODE_MAX_RETRIES"] == "1"
    assert "CLAUDECODE" not in seen["env"]
    assert seen["cwd"] == []


def test_it_is_not_started_inside_itself(claude):
    claude.environ["QUAID_NO_HOOKS"] = "1"
    with pytest.raises(ModelUnavailableError, match="QUAID_NO_HOOKS"):
        claude.ask()
    assert claude.seen == []


FAILED = {"is_error": True, "structured_output": None}


@pytest.mark.parametrize(("changes", "kind", "said"), [
    ({**FAILED, "api_error_status": 529, "result": "API Error: Overloaded"}, ModelUnavailableError, "529: API Error: Overloaded"),
    ({**FAILED, "api_error_status": 401, "result": "Invalid API key"}, ModelUnavailableError, "not logged in"),
    ({"subtype": "error_max_structured_output_retries", "is_error": True}, ModelAnswerError, ""),
    ({"subtype": "error_during_execution", "is_error": True, "result": None, "errors": ["boom"]}, ModelUnavailableError, ""),
    ({"stop_reason": "refusal"}, ModelRefusedError, ""), ({"stop_reason": "max_tokens"}, ModelAnswerError, ""),
    ({"usage": {"input_tokens": "many"}}, ModelAnswerError, ""), ({"usage": [5]}, ModelAnswerError, ""),
    ({"total_cost_usd": "much"}, ModelAnswerError, ""),
])  # fmt: skip
def test_each_end_that_is_no_answer_is_named(claude, changes, kind, said):
    claude.play_result(**changes)
    with pytest.raises(kind, match=said or None):
        claude.ask()


def test_an_answer_in_prose_is_read_and_one_that_does_not_fit_sent_back(claude):
    claude.play(
        {"result": RESULT | {"structured_output": None, "result": "It is red."}},
        {"result": RESULT | {"structured_output": None, "result": f"Here: {json.dumps(RED)}"}},
    )
    answer = claude.ask()
    assert answer.value == RED
    assert answer.usage.cost_usd == pytest.approx(0.008)
    assert "It is red." in claude.seen[1]["input"]
    assert "no JSON object" in claude.seen[1]["input"]


@pytest.mark.parametrize("step", [
    {"stdout": "", "stderr": "error: unknown option '--json-schema'", "code": 1}, {"stdout": "hello", "stderr": "unknown option"},
    {"stdout": "null", "stderr": "unknown option"}, {"stdout": '{"type": "other"}', "stderr": "unknown option"},
])  # fmt: skip
def test_what_is_no_result_is_an_expected_failure(claude, step):
    claude.play(step)
    with pytest.raises(ModelUnavailableError, match="unknown option"):
        claude.ask()


def test_a_claude_that_hangs_is_ended_with_all_it_started(claude, monkeypatch):
    monkeypatch.setattr("quaid.llm.claude_code.ClaudeCodeProvider.min_s", 0.0)
    claude.play({"hang": True})
    began = time.monotonic()
    with pytest.raises(ModelTimeoutError):
        claude.ask(deadline_s=1.0)
    assert time.monotonic() - began < PATIENCE_S
    pids = [int(pid) for pid in (claude.folder / "pids").read_text().split()]
    wait_for(lambda: not any(_runs(pid) for pid in pids), "claude and its child to end", 5)


def _runs(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_too_little_time_is_not_tried(claude):
    with pytest.raises(ModelUnavailableError, match="needs 5 s"):
        claude.ask(deadline_s=2.5)
    assert claude.seen == []


def test_no_claude_and_one_that_cannot_be_started_are_expected_failures(claude):
    (claude.folder / "claude").write_text("#!/nowhere/python\n")
    with pytest.raises(ModelUnavailableError, match="could not be started"):
        claude.ask()
    claude.environ["PATH"] = str(claude.folder / "nothing")
    with pytest.raises(ModelUnavailableError, match="claude is not on the PATH"):
        claude.ask()
