"""Claude Code itself, from the first prompt to what the vault holds the day after."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import pytest
from claude_code import LIMIT_S, PLUGIN, ClaudeCode, find_claude, find_quaid
from lives import LEARNED, NEWS, episodes, facts, furnish, learn_the_news, read_of, workers
from messages_api import MessagesApi, as_text, since_the_last_answer, tool_results
from model_api import Call
from replay import Replay
from vaults import Vault, wait_for

from quaid.agents.hosts import HOSTS, InstallOptions, Machine
from quaid.agents.installation import install
from quaid.docs.registry import Project
from quaid.index.sqlite.database import connect_reader
from quaid.local import queue
from quaid.place import DOCS_FILE, state_folder
from quaid.text.quoting import CLOSING, OPENING
from quaid.vault import frontmatter

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="waits for processes that it finds in /proc"
)
TOOLS = "mcp__plugin_quaid_quaid__"
WHOLE_ANSWER = {"facts": [{"text": LEARNED, "turns": ["t1"], "speaker": "Maya"}]}
"""With all that Claude Code insists on when it is given a schema."""


def injected(request: dict) -> str:
    """All that memory put into the conversation so far."""
    text = "\n".join(as_text(message["content"]) for message in request["messages"])
    return "\n".join(re.findall(f"{OPENING}.*?{CLOSING}", text, re.DOTALL))


def just_injected(request: dict) -> str:
    return injected({"messages": since_the_last_answer(request["messages"])})


def messages_of_hooks(claude: ClaudeCode) -> list[str]:
    """What the hooks of all sessions told the person at the terminal."""
    transcripts = (claude.home / ".claude" / "projects").rglob("*.jsonl")
    lines = [json.loads(line) for path in transcripts for line in path.read_text().splitlines()]
    said = [line.get("attachment") or {} for line in lines]
    return [each["content"] for each in said if each.get("type") == "hook_system_message"]


@dataclass
class Life:
    """A user of Claude Code and their vault. `steps` has what was asked of the model for each prompt, by its name."""

    vault: Vault
    api: MessagesApi
    model: Replay
    claude: ClaudeCode
    identity: str = field(default_factory=lambda: str(uuid4()))
    steps: dict[str, list[dict]] = field(default_factory=dict)
    results: dict[str, dict] = field(default_factory=dict)

    def say(self, session, step: str, prompt: str) -> None:
        before = len(self.api.requests)
        self.results[step] = session.say(prompt)
        self.steps[step] = self.api.requests[before:]

    def rest(self) -> None:
        wait_for(lambda: not workers(self.vault), "Quaid's work for the vault")


@pytest.fixture(scope="module")
def begin(monkey, tmp_path_factory):
    """Makes a user with a vault that knows Maya; keywords are what else their shell has set."""
    services = []

    def start(**environ: str) -> Life:
        find_claude()
        folder = tmp_path_factory.mktemp("life")
        api, model = MessagesApi(), Replay({})
        services.extend([api, model])
        vault = furnish(folder / "vault")
        settings = model.environ() | {"QUAID_HOME": str(vault.root)} | environ
        return Life(vault, api, model, ClaudeCode(folder, api, settings))

    yield start
    for service in services:
        service.close()


@pytest.fixture(scope="module")
def lived(begin) -> Life:
    """A morning: hello, a question, a tool, an edit, news, a compaction, and off."""
    life = begin(QUAID_HOOKS_RECALL="on")  # by words alone nothing is beyond doubt
    life.model.answers[life.identity] = learn_the_news
    life.api.script |= {
        "Ask the memory": Call("memory_recall", {"query": "Where does Ines live?"}),
        "Write that down": Call("Write", {"file_path": str(life.claude.project / "glaze.md"), "content": "# Glaze\n"}),
    }
    with life.vault.memory() as memory:
        memory.documentation.create(Project("studio", source_roots=(str(life.claude.project),)))
    allowed = ("--allowedTools", f"{TOOLS}memory_recall", "Write")
    with life.claude.session("--session-id", life.identity, *allowed) as session:
        life.say(session, "start", "Good morning!")
        life.say(session, "question", "How many hours does the kiln of Maya cool?")
        life.say(session, "known", "What does Maya take in her coffee?")
        life.say(session, "tool", "Ask the memory about my family.")
        life.say(session, "edit", "Write that down, please.")
        life.say(session, "news", NEWS)
        life.say(session, "compact", "/compact")
        life.say(session, "after", "Where were we?")
        life.say(session, "again", "How many hours did the kiln of Maya cool?")
    life.rest()
    return life


def test_a_session_begins_with_what_an_agent_should_know(lived):
    told = just_injected(lived.steps["start"][0])
    assert "Maya Chen is a potter in Berlin." in told
    assert "takes oat milk" in told
    assert "lives in Porto" in told


def test_a_prompt_brings_the_memory_that_answers_it(lived):
    request = lived.steps["question"][0]
    assert "cools down for nine hours" in just_injected(request)
    assert just_injected(request).count(OPENING) == 1


def test_what_asks_nothing_brings_nothing(lived):
    assert just_injected(lived.steps["edit"][0]) == ""


def test_a_memory_is_put_there_once(lived):
    assert "oat milk" not in just_injected(lived.steps["known"][0])  # the session began with it
    told = injected(lived.steps["news"][0])
    assert (told.count("takes oat milk"), told.count("nine hours")) == (1, 1)


def test_what_was_given_before_a_compaction_is_given_again_after_it(lived):
    assert "nine hours" not in just_injected(lived.steps["after"][0])
    assert "nine hours" in just_injected(lived.steps["again"][0])


def test_a_memory_tool_is_called_and_answers(lived):
    first, second = lived.steps["tool"]
    offered = {tool["name"] for tool in first["tools"]}
    assert {f"{TOOLS}memory_recall", f"{TOOLS}memory_store"} <= offered
    (answer,) = tool_results(since_the_last_answer(second["messages"]))
    assert "lives in Porto" in answer
    assert lived.results["tool"]["permission_denials"] == []


def test_the_context_is_there_again_after_compaction(lived):
    request = lived.steps["after"][0]
    assert len(request["messages"]) < len(lived.steps["compact"][0]["messages"])
    assert "Maya Chen is a potter in Berlin." in just_injected(request)
    assert "still to be learned" not in just_injected(request)


def test_nothing_goes_wrong_in_the_session(lived):
    assert {step: result["subtype"] for step, result in lived.results.items() if result["is_error"]} == {}
    assert not re.search("(?i)hook.*error|failed", (lived.claude.home / "stderr").read_text())


def test_the_conversation_is_kept_when_it_is_over(lived):
    (episode,) = episodes(lived.vault)
    said = [
        "Good morning!",
        "How many hours does the kiln of Maya cool?",
        "What does Maya take in her coffee?",
        "Ask the memory about my family.",
        "Write that down, please.",
        NEWS,
        "Where were we?",
        "How many hours did the kiln of Maya cool?",
    ]
    assert [episode.count(text) for text in said] == [1] * len(said)
    assert episode.count("Understood.") == len(said)  # it was read before the compaction and at the end
    assert frontmatter.parse(episode).fields["session"] == lived.identity
    assert frontmatter.parse(episode).fields["extracted"]


def test_what_was_injected_or_answered_by_tools_is_not_kept(lived):
    (episode,) = episodes(lived.vault)
    for text in ("quaid-memory", "oat milk", "Porto", "potter", "Glaze", "They spoke about breakfast", "hook"):
        assert text not in episode


def test_the_news_are_learned_once(lived):
    (fact,) = facts(lived.vault, LEARNED)
    assert fact["session"] == lived.identity
    assert "confirmations" not in fact
    assert sum(NEWS in read_of(prompt) for prompt in lived.model.prompts) == 1


def test_memories_that_were_injected_are_not_learned_again(lived):
    assert len(facts(lived.vault, "oat milk")) == 1
    assert not any("oat milk in her coffee" in read_of(prompt) for prompt in lived.model.prompts)


def test_the_history_says_what_happened(lived):
    assert lived.vault.status() == ""
    learned = lived.vault.git("log", "-1", "--format=%an%n%s%n%b", "--grep", "^extract:", "--", "facts")
    assert re.match(r"Quaid\nextract: 1 fact from session ", learned)
    assert f"Quaid-Session: {lived.identity}" in learned
    lived.vault.assert_sound()


def test_what_was_edited_is_followed_to_its_project(lived):
    assert not queue.has_edited(state_folder(lived.vault.root))
    with connect_reader(state_folder(lived.vault.root) / DOCS_FILE) as docs:  # nobody has searched the documents yet
        assert [path for (path,) in docs.execute("SELECT path FROM documents WHERE project = 'studio'")] == [
            "projects/studio/PROJECT.md",
            "studio:glaze.md",
        ]


def test_a_resumed_session_learns_nothing_twice(lived):
    asked = len(lived.model.prompts)
    with lived.claude.session("--resume", lived.identity) as session:
        lived.say(session, "resumed", "Are you still there?")
    lived.rest()
    assert "Maya Chen is a potter in Berlin." in injected(lived.steps["resumed"][0])
    (episode,) = episodes(lived.vault)
    assert episode.count(NEWS) == 1
    assert episode.count("Are you still there?") == 1
    (fact,) = facts(lived.vault, LEARNED)
    assert "confirmations" not in fact
    assert not any(NEWS in read_of(prompt) for prompt in lived.model.prompts[asked:])


def test_a_fork_learns_nothing_twice(lived):
    asked = len(lived.model.prompts)
    fork = str(uuid4())
    with lived.claude.session("--resume", lived.identity, "--fork-session", "--session-id", fork) as session:
        lived.say(session, "fork", "Let us try another glaze.")
    lived.rest()
    (told,) = [episode for episode in episodes(lived.vault) if "another glaze" in episode]
    assert NEWS not in told
    assert frontmatter.parse(told).fields["session"] == fork
    assert len(facts(lived.vault, LEARNED)) == 1
    assert not any(NEWS in read_of(prompt) for prompt in lived.model.prompts[asked:])


def test_the_next_session_knows_what_this_one_taught(lived):
    with lived.claude.session() as session:
        lived.say(session, "next", "Hello again!")
    told = just_injected(lived.steps["next"][0])
    assert LEARNED in told
    assert "still to be learned" not in told


def test_without_a_model_the_conversation_is_kept_and_waits(begin):
    life = begin(QUAID_MODELS_PROVIDER="none")
    with life.claude.session() as session:
        life.say(session, "news", NEWS)
    life.rest()
    (episode,) = episodes(life.vault)
    assert NEWS in episode
    assert "extracted" not in frontmatter.parse(episode).fields
    assert facts(life.vault, "Biscuit") == []


def test_what_a_killed_worker_left_is_learned_by_the_next_session(begin):
    life = begin()
    life.model.answers[life.identity] = learn_the_news
    life.model.delay_s = LIMIT_S
    with life.claude.session("--session-id", life.identity) as session:
        life.say(session, "news", NEWS)
    wait_for(lambda: life.model.requests, "the worker asks the model")
    for worker in workers(life.vault):
        os.kill(worker, signal.SIGKILL)
    life.rest()
    assert facts(life.vault, LEARNED) == []
    life.model.delay_s = 0.0
    with life.claude.session() as session:
        life.say(session, "next", "Good morning!")
    life.rest()
    (fact,) = facts(life.vault, LEARNED)
    assert "confirmations" not in fact
    life.vault.assert_sound()


def test_what_forgets_is_not_done_unasked(begin):
    life = begin(QUAID_MODELS_PROVIDER="none")
    life.api.script["Forget Porto"] = Call("memory_forget", {"ref": facts(life.vault, "Porto")[0]["id"]})
    with life.claude.session() as session:
        life.say(session, "forget", "Forget Porto.")
    assert [denied["tool_name"] for denied in life.results["forget"]["permission_denials"]] == [f"{TOOLS}memory_forget"]
    assert len(facts(life.vault, "Porto")) == 1


def test_where_tools_are_found_by_search_the_model_knows_what_the_memory_is_for(begin):
    """Only names and the instructions of the server are told, the rest when the model looks for it."""
    life = begin(QUAID_MODELS_PROVIDER="none", ENABLE_TOOL_SEARCH="true")
    told = ""
    with life.claude.session() as session:
        for number in range(20):  # nobody waits for the server to start
            life.say(session, "hello", f"Good morning number {number}!")
            (request,) = life.steps["hello"]
            told = json.dumps(request["messages"])
            if TOOLS in told:
                break
            time.sleep(0.2)
    assert not any(tool["name"].startswith(TOOLS) for tool in request["tools"])
    assert f"{TOOLS}memory_recall" in told
    assert "memory_recall: before you answer or act on anything about people" in told


def test_a_command_may_use_the_memory_without_asking(begin):
    life = begin(QUAID_MODELS_PROVIDER="none")
    life.api.script["where does Ines live?"] = Call("memory_recall", {"query": "Where does Ines live?"})
    with life.claude.session() as session:
        life.say(session, "command", "/quaid:recall where does Ines live?")
    assert life.results["command"]["permission_denials"] == []
    first, second = life.steps["command"]
    asked = "\n".join(as_text(message["content"]) for message in first["messages"])
    assert "<question>\nwhere does Ines live?\n</question>" in asked
    assert "lives in Porto" in tool_results(second["messages"])[0]


@pytest.mark.parametrize(("command", "denied"), [("list --json", []), ("accept all", ["Bash"])])
def test_a_review_may_look_and_must_ask_before_it_answers(begin, command, denied):
    life = begin(QUAID_MODELS_PROVIDER="none")
    life.api.script["open questions of the memory"] = Call("Bash", {"command": f"quaid janitor {command}"})
    with life.claude.session() as session:
        life.say(session, "review", "/quaid:review")
    assert [found["tool_name"] for found in life.results["review"]["permission_denials"]] == denied
    (answer,) = tool_results(life.steps["review"][1]["messages"])
    assert ('"questions": []' in answer) == (not denied)


def test_without_quaid_claude_code_goes_on_and_says_what_is_missing(begin):
    life = begin(PATH=os.defpath)
    with life.claude.session() as session:
        life.say(session, "hello", "Good morning!")
    assert life.results["hello"]["result"] == "Understood."
    assert 'not found in $PATH: "quaid"' in (life.claude.home / "stderr").read_text()


def test_what_stands_in_the_way_of_quaid_does_not_stand_in_the_way_of_claude_code(begin):
    life = begin(QUAID_HOME="/nowhere/at/all", QUAID_MODELS_PROVIDER="none")
    with life.claude.session() as session:
        life.say(session, "hello", "Good morning!")
    assert life.results["hello"]["result"] == "Understood."
    assert OPENING not in json.dumps(life.steps["hello"][0])
    (told,) = messages_of_hooks(life.claude)
    assert re.match("Quaid's hook session-start has failed since .*No vault at /nowhere/at/all", told)


def test_a_technical_fact_goes_before_the_prompt_that_asks_for_it(begin):
    life = begin(QUAID_HOOKS_CONTEXT="false", QUAID_MODELS_PROVIDER="none")
    with life.vault.memory() as memory:
        memory.remember("The glaze app uses Riverpod for state management", technical=True, project="glaze")
    with life.claude.session() as session:
        life.say(session, "unrelated", "Write a Dockerfile for this.")
        life.say(session, "asked", "Which state management does the glaze app use?")
    assert just_injected(life.steps["unrelated"][0]) == ""
    assert "uses Riverpod" in just_injected(life.steps["asked"][0])


def test_what_is_corrected_is_replaced_at_once(begin):
    life = begin(QUAID_MODELS_PROVIDER="none")
    old, new = facts(life.vault, "Porto")[0], "Ines, the sister of Maya Chen, lives in Lisbon"
    said = {"text": new, "replaces": "Ines, the sister of Maya Chen, lives in Porto"}
    life.api.script["Ines has moved"] = Call("memory_store", said)
    with life.claude.session("--allowedTools", f"{TOOLS}memory_store") as session:
        life.say(session, "moved", "Ines has moved to Lisbon.")
    (answer,) = tool_results(since_the_last_answer(life.steps["moved"][1]["messages"]))
    assert json.loads(answer)["replaced"] == old["id"]
    (replaced,), (now,) = facts(life.vault, "lives in Porto"), facts(life.vault, new)
    assert replaced["superseded_by"]
    assert "superseded_by" not in now
    assert life.vault.git("log", "-1", "--format=%s", "--", "facts").startswith(
        "remember: Ines, the sister of Maya Chen"
    )


def test_who_wants_no_hooks_has_none(begin):
    life = begin(QUAID_NO_HOOKS="1")
    with life.claude.session() as session:
        life.say(session, "news", f"{NEWS} What does Maya take in her coffee?")
    life.rest()
    assert injected(life.steps["news"][0]) == ""
    assert episodes(life.vault) == []


def test_installed_for_good_it_never_listens_to_quaids_own_claude(begin, tmp_path):
    """Quaid asks `claude -p` to learn from the session: that one loads the plugin too, and must not be remembered."""
    (tmp_path / "claude").symlink_to(find_claude())
    life = begin(QUAID_MODELS_PROVIDER="claude-code")
    life.claude.environ["PATH"] = f"{tmp_path}{os.pathsep}{life.claude.environ['PATH']}"
    for command in (("marketplace", "add", str(PLUGIN)), ("install", "quaid@quaid")):
        done = life.claude.run("plugin", *command)
        assert done.returncode == 0, done.stderr
    life.api.script[f"id: {life.identity}"] = Call("StructuredOutput", WHOLE_ANSWER)
    with life.claude.session("--session-id", life.identity, plugin=None) as session:
        life.say(session, "news", NEWS)
    life.rest()
    assert "potter" in just_injected(life.steps["news"][0])
    assert len(facts(life.vault, LEARNED)) == 1
    assert len(episodes(life.vault)) == 1
    own = [
        request
        for request in life.api.requests
        if any(t["name"] == "StructuredOutput" for t in request.get("tools", ()))
    ]
    assert own
    assert all(injected(request) == "" for request in own)


def test_the_plain_installation_brings_the_skill_and_the_commands(begin):
    life = begin()
    home = life.claude.home
    machine = Machine(home, "linux", {"CLAUDE_CONFIG_DIR": str(home / ".claude")}, life.claude.project, PLUGIN.parent)
    (home / ".claude").mkdir(exist_ok=True)
    done = install(machine, HOSTS["claude-code"], InstallOptions((str(find_quaid()),)))
    assert done.changes
    with life.claude.session(plugin=None) as session:
        life.say(session, "asked", "/quaid:recall What does Maya take in her coffee?")
    begun = next(event for event in session.events if event.get("subtype") == "init")
    assert {"quaid:recall", "quaid:remember", "quaid:review"} <= set(begun["slash_commands"])
    assert "quaid-memory" in begun["skills"]
    assert "Answer this from the owner's memory" in json.dumps(life.steps["asked"][0])


def test_the_plugin_is_valid_in_the_eyes_of_claude_code(begin):
    done = begin().claude.run("plugin", "validate", "--strict", str(PLUGIN))
    assert done.returncode == 0, done.stdout + done.stderr
