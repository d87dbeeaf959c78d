"""Gemini CLI itself, with the hooks and the server that `quaid install gemini` writes, talking to a stand-in."""

from __future__ import annotations

import json
import os
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from claude_code import find_quaid
from gemini_api import GeminiApi, as_text, tool_results
from lives import LEARNED, LIMIT_S, NEWS, episodes, facts, find_program, furnish, learn_the_news, read_of, workers
from model_api import Call
from replay import Replay
from vaults import wait_for

from quaid.agents.hosts import HOSTS, InstallOptions, Machine
from quaid.agents.installation import install, uninstall

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds processes in /proc"),
]
SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
    "privacy": {"usageStatisticsEnabled": False},
    "general": {"enableAutoUpdate": False},
}
OTHER = {"hookSpecificOutput": {"additionalContext": "Today is a sunny day."}}
"""What a hook of another program adds before the first prompt."""
QUESTION = "How many hours does the kiln of Maya cool?"


class Gemini:
    """A user who has installed Quaid in Gemini CLI. Each prompt is a process of its own: `steps` has its requests."""

    def __init__(self, folder: Path) -> None:
        self.binary, self.quaid = find_program("gemini"), find_quaid()
        self.api, self.model = GeminiApi(), Replay(defaultdict(lambda: learn_the_news))
        self.home, self.project = folder / "home", folder / "project"
        self.settings = self.home / ".gemini" / "settings.json"
        self.settings.parent.mkdir(parents=True)
        self.project.mkdir()
        self.vault = furnish(folder / "vault")
        hook = {"type": "command", "command": f"echo '{json.dumps(OTHER)}'"}
        self.settings.write_text(json.dumps({**SETTINGS, "hooks": {"SessionStart": [{"hooks": [hook]}]}}, indent=2))
        self.before = self.settings.read_text()
        path = f"{self.binary.parent}{os.pathsep}{os.environ['PATH']}"
        own = {
            "HOME": str(self.home),
            "PATH": path,
            "GEMINI_API_KEY": "sk-test",
            "GOOGLE_GEMINI_BASE_URL": self.api.url,
        }
        self.environ = {**os.environ, **own, **self.model.environ(), "QUAID_HOME": str(self.vault.root)}
        self.environ["QUAID_HOOKS_RECALL"] = "on"  # by words alone nothing is beyond doubt
        self.machine = Machine(self.home, "linux", self.environ, self.project, folder)
        install(self.machine, HOSTS["gemini"], InstallOptions((str(self.quaid),), self.vault.root))
        slow = self.settings.read_text().replace('"timeout": 10000', f'"timeout": {LIMIT_S:.0f}000')
        self.settings.write_text(slow)
        self.steps: dict[str, list[dict]] = {}

    def say(self, step: str, prompt: str, *resumed: str) -> None:
        before = len(self.api.requests)
        command = [self.binary, "--yolo", "-m", "gemini-2.5-pro", *resumed, "-p", prompt]
        done = subprocess.run(command, cwd=self.project, env=self.environ, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=LIMIT_S, check=False)  # fmt: skip
        assert done.returncode == 0, done.stderr
        self.steps[step] = self.api.requests[before:]


@pytest.fixture(scope="module")
def lived(monkey, tmp_path_factory) -> Iterator[Gemini]:
    """A question, then news and a tool in the same session."""
    gemini = Gemini(tmp_path_factory.mktemp("gemini"))
    gemini.api.script[NEWS] = Call("memory_recall", {"query": "Where does Ines live?"})
    gemini.say("question", QUESTION)
    gemini.say("news", NEWS, "--resume", "latest")
    wait_for(lambda: not workers(gemini.vault), "Quaid's work for the vault")
    yield gemini
    gemini.api.close()
    gemini.model.close()


def told(request: dict) -> str:
    return "\n".join(as_text(part) for content in request["contents"] for part in content["parts"])


def test_a_session_begins_with_what_an_agent_should_know(lived):
    text = told(lived.steps["question"][0])
    assert "Maya Chen is a potter in Berlin." in text
    assert "takes oat milk" in text
    assert "Today is a sunny day." in text


def test_a_prompt_brings_the_memory_that_answers_it(lived):
    assert "cools down for nine hours" in told(lived.steps["question"][0])


def test_a_resumed_session_has_lost_what_hooks_gave_and_begins_again(lived):
    assert told(lived.steps["news"][0]).count("is a potter") == 1


def test_a_tool_is_offered_and_answers(lived):
    first, second = lived.steps["news"]
    offered = [one["name"] for tool in first["tools"] for one in tool.get("functionDeclarations", ())]
    assert {"mcp_quaid_memory_recall", "mcp_quaid_memory_store"} <= set(offered)
    (answer,) = tool_results(second["contents"])
    assert "lives in Porto" in answer


def test_the_conversation_is_kept_whole_and_the_news_are_learned_once(lived):
    (episode,) = episodes(lived.vault)
    assert [episode.count(text) for text in (QUESTION, NEWS, "Understood.")] == [1, 1, 2]
    for text in ("quaid-memory", "oat milk", "hook_context", "sunny", "session_context", "Porto"):
        assert text not in episode
    (fact,) = facts(lived.vault, LEARNED)
    assert "confirmations" not in fact
    assert sum(NEWS in read_of(prompt) for prompt in lived.model.prompts) == 1
    lived.vault.assert_sound()


def test_what_is_installed_goes_again_and_the_hook_of_the_other_program_stays(lived):
    uninstall(lived.machine, HOSTS["gemini"])
    assert json.loads(lived.settings.read_text()) == json.loads(lived.before)
