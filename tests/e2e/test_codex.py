"""Codex itself, with the hooks and the server that `quaid install codex` writes, talking to a stand-in for its API."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from claude_code import find_quaid
from lives import LEARNED, LIMIT_S, NEWS, episodes, facts, find_program, furnish, learn_the_news, read_of, workers
from model_api import Call
from replay import Replay
from responses_api import ResponsesApi, as_text, since_the_last_answer, tool_results
from vaults import wait_for

from quaid.agents.hosts import HOSTS, InstallOptions, Machine
from quaid.agents.installation import install
from quaid.docs.registry import Project
from quaid.index.sqlite.database import connect_reader
from quaid.place import DOCS_FILE, state_folder
from quaid.text.quoting import CLOSING, OPENING

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds processes in /proc"),
]
CONFIG = """\
model = "gpt-5.5"
model_provider = "stand_in"
[model_providers.stand_in]
name = "A stand-in"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "STAND_IN_KEY"
request_max_retries = 0
stream_max_retries = 0
"""
SEARCHES = {
    "what do you remember about me": "memory_recall",
    "do you know my sister": "memory_recall",
    "my preferences": "memory_recall",
    "last time": "memory_recall",
    "save this": "memory_store",
    "note that": "memory_store",
    "forget": "memory_forget",
}
PATCH = "*** Begin Patch\n*** Add File: glaze.md\n+# Glaze\n*** End Patch"


class Codex:
    """A user who has installed Quaid in Codex. Each prompt is a process of its own: `steps` has its requests."""

    def __init__(self, folder: Path) -> None:
        self.binary, self.quaid = find_program("codex"), find_quaid()
        self.api, self.model = ResponsesApi(), Replay(defaultdict(lambda: learn_the_news))
        self.home, self.project = folder / "home", folder / "project"
        self.config = self.home / ".codex" / "config.toml"
        self.config.parent.mkdir(parents=True)
        self.project.mkdir()
        self.vault = furnish(folder / "vault")
        self.config.write_text(CONFIG.format(url=self.api.url))
        path = f"{self.binary.parent}{os.pathsep}{os.environ['PATH']}"
        own = {"HOME": str(self.home), "PATH": path, "CODEX_HOME": str(self.config.parent), "STAND_IN_KEY": "sk-test"}
        self.environ = {**os.environ, **own, **self.model.environ(), "QUAID_HOME": str(self.vault.root)}
        self.environ["QUAID_HOOKS_RECALL"] = "on"  # by words alone nothing is beyond doubt
        machine = Machine(self.home, "linux", self.environ, self.project, folder)
        install(machine, HOSTS["codex"], InstallOptions((str(self.quaid),), self.vault.root))
        # Codex gives a server little of its own environment; this one is to wait for it on a busy machine.
        environ = "".join(
            f"{name} = {json.dumps(value)}\n" for name, value in self.environ.items() if name[:6] == "QUAID_"
        )
        told = self.config.read_text().replace(
            "[mcp_servers.quaid]\n", f"[mcp_servers.quaid]\nrequired = true\nstartup_timeout_sec = {LIMIT_S}\n"
        )
        self.config.write_text(f"{told}\n[mcp_servers.quaid.env]\n{environ}")
        hooks = self.config.with_name("hooks.json")
        hooks.write_text(hooks.read_text().replace('"timeout": 10', f'"timeout": {LIMIT_S:.0f}'))
        self.steps: dict[str, list[dict]] = {}
        self.stderr = ""

    def run(self, step: str, *arguments: str) -> None:
        before = len(self.api.requests)
        options = ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
        done = subprocess.run([self.binary, "exec", *arguments, *options], cwd=self.project, env=self.environ,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S, check=False)  # fmt: skip
        assert done.returncode == 0, done.stderr
        self.stderr += done.stderr
        self.steps[step] = self.api.requests[before:]

    def say(self, step: str, prompt: str, *resumed: str) -> None:
        self.run(step, *resumed, prompt, "--dangerously-bypass-hook-trust")


@pytest.fixture(scope="module")
def lived(monkey, tmp_path_factory) -> Iterator[Codex]:
    """A question, news with a search for tools, a tool, an edit, and off."""
    codex = Codex(tmp_path_factory.mktemp("codex"))
    codex.api.script |= {
        "Look for tools": [Call("tool_search", {"query": words}) for words in SEARCHES],
        "Ask the memory": [Call("memory_recall", {"query": "Where does Ines live?"})],
        "Write that down": [Call("apply_patch", {"patch": PATCH})],
    }
    with codex.vault.memory() as memory:
        memory.documentation.create(Project("studio", source_roots=(str(codex.project),)))
    codex.run("untrusted", "What is a quokka?")
    codex.say("question", "How many hours does the kiln of Maya cool?")
    codex.say("news", NEWS, "resume", "--last")
    codex.say("tool", "Ask the memory about my family.")
    codex.say("edit", "Write that down, please.")
    codex.say("search", "Look for tools.")
    wait_for(lambda: not workers(codex.vault), "Quaid's work for the vault")
    yield codex
    codex.api.close()
    codex.model.close()


def injected(request: dict) -> str:
    """All that memory put before the model, as a developer's message."""
    items = [item for item in request["input"] if item.get("role") == "developer"]
    return "\n".join(re.findall(f"{OPENING}.*?{CLOSING}", "\n".join(map(as_text, items)), re.DOTALL))


def test_a_session_begins_with_what_an_agent_should_know(lived):
    told = injected(lived.steps["question"][0])
    assert "Maya Chen is a potter in Berlin." in told
    assert "takes oat milk" in told


def test_a_prompt_brings_the_memory_that_answers_it_and_a_resumed_session_begins_once(lived):
    assert "cools down for nine hours" in injected(lived.steps["question"][0])
    told = injected(lived.steps["news"][0])
    assert (told.count("is a potter"), told.count("nine hours")) == (1, 1)


def test_hooks_that_nobody_has_trusted_are_left_out(lived):
    assert injected(lived.steps["untrusted"][0]) == ""


def test_the_server_is_named_to_the_model_and_a_tool_answers(lived):
    first, second = lived.steps["tool"]
    listed = next(text for text in map(as_text, first["input"]) if "mcp__quaid: " in text)
    assert '"do you know"' in listed
    assert '"forget"' in listed
    (answer,) = tool_results(since_the_last_answer(second["input"]))
    assert "lives in Porto" in answer


def test_its_tools_are_found_by_the_words_of_people(lived):
    results = [item for item in lived.steps["search"][1]["input"] if item["type"] == "tool_search_output"]
    found = [[each["name"] for space in item["tools"] for each in space.get("tools", [space])] for item in results]
    assert len(found) == len(SEARCHES)
    assert [words for (words, tool), names in zip(SEARCHES.items(), found, strict=True) if tool not in names[:3]] == []


def test_the_conversation_is_kept_and_the_news_are_learned_once(lived):
    (episode,) = [text for text in episodes(lived.vault) if NEWS in text]
    assert episode.count("How many hours does the kiln of Maya cool?") == 1
    assert episode.count("Understood.") == 2
    for text in ("quaid-memory", "oat milk", "environment_context", "You are Codex"):
        assert text not in episode
    (fact,) = facts(lived.vault, LEARNED)
    assert "confirmations" not in fact
    assert sum(NEWS in read_of(prompt) for prompt in lived.model.prompts) == 1
    lived.vault.assert_sound()


def test_a_patch_is_followed_to_its_project(lived):
    with connect_reader(state_folder(lived.vault.root) / DOCS_FILE) as docs:
        paths = [path for (path,) in docs.execute("SELECT path FROM documents WHERE project = 'studio'")]
    assert "studio:glaze.md" in paths


def test_nothing_goes_wrong_in_a_hook(lived):
    assert not re.search("(?i)hook.*(error|failed|clamping)", lived.stderr)
