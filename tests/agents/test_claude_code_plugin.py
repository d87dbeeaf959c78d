"""What Claude Code loads of Quaid: well-formed, and calling only what there is."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml
from command_line import parameters_of

from quaid.cli.app import COMMANDS, build_group
from quaid.mcp.docs_tools import DocsTools
from quaid.mcp.tools import MemoryTools
from quaid.mcp.workers import Workers

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "hooks" / "claude-code"
PROSE = sorted(PLUGIN.rglob("*.md"))
EVENTS = {"SessionStart", "UserPromptSubmit", "PostToolUse", "PreCompact", "Stop", "SessionEnd"}
TOOL = "mcp__plugin_quaid_quaid__"


def load(name):
    return json.loads((PLUGIN / name).read_text("utf-8"))


def handlers():
    """(event, matcher, handler) of each hook."""
    return [(event, entry.get("matcher"), handler) for event, entries in load("hooks/hooks.json")["hooks"].items()
            for entry in entries for handler in entry["hooks"]]  # fmt: skip


def parts(path):
    """(frontmatter, body) of a skill or command."""
    _, head, body = path.read_text("utf-8").split("---\n", 2)
    return yaml.safe_load(head), body


def test_the_plugin_has_the_version_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    plugin = load(".claude-plugin/plugin.json")
    assert (plugin["name"], plugin["version"], plugin["license"]) == ("quaid", project["version"], project["license"])


def test_the_folder_is_a_marketplace_of_this_one_plugin():
    market = load(".claude-plugin/marketplace.json")
    (listed,) = market["plugins"]
    assert (market["name"], listed["name"], listed["source"]) == ("quaid", "quaid", "./")
    assert market["owner"]["name"]
    assert listed["description"] == load(".claude-plugin/plugin.json")["description"]


def test_hooks_run_quaid_without_a_shell_and_never_for_long():
    assert {event for event, _, _ in handlers()} == EVENTS
    for event, _, handler in handlers():
        assert (handler["type"], handler["command"]) == ("command", "quaid")
        assert handler["args"] == ["hook", re.sub(r"(?<!^)(?=[A-Z])", "-", event).lower()]
        assert handler["timeout"] <= 10


def test_only_edits_of_files_are_heard_of_and_nobody_waits_for_it():
    heard = {event: (matcher, handler.get("async", False)) for event, matcher, handler in handlers()}
    assert heard.pop("PostToolUse") == ("Write|Edit|NotebookEdit", True)
    assert set(heard.values()) == {(None, False)}


def test_the_server_is_started_by_the_command():
    assert load(".mcp.json") == {"mcpServers": {"quaid": {"command": "quaid", "args": ["mcp"]}}}


def test_every_command_of_quaid_that_is_named_exists():
    text = "\n".join(path.read_text("utf-8") for path in PROSE)
    named = set(re.findall(r"(?:`|Bash\()quaid ([a-z]+)", text))
    named |= {handler["args"][0] for _, _, handler in handlers()} | {
        load(".mcp.json")["mcpServers"]["quaid"]["args"][0]
    }
    assert {"recall", "remember", "why", "janitor", "get", "hook", "mcp"} <= named
    assert named <= set(COMMANDS)
    assert set(re.findall(r"quaid janitor ([a-z]+)", text)) <= set(build_group().get_command(None, "janitor").commands)
    for name, option in re.findall(r"`quaid ([a-z]+)[^`]* (--[a-z-]+)", text):
        known = {word for parameter in parameters_of(name) for word in parameter.opts}
        assert option in known, f"quaid {name} has no {option}"


def test_every_tool_that_is_named_is_offered(tmp_path):
    (tmp_path / "projects" / "quaid").mkdir(parents=True)
    (tmp_path / "projects" / "quaid" / "PROJECT.md").touch()
    rooms = (MemoryTools(None), DocsTools(Workers(tmp_path)))
    select_tools = {tool.name for room in rooms for tool in room.tools() if tool.is_default}
    named = {
        name for path in PROSE for name in re.findall(r"(?:memory|docs)_[a-z]+(?:_[a-z]+)*", path.read_text("utf-8"))
    }
    assert {"memory_recall", "memory_store", "memory_get", "memory_note", "memory_forget"} <= named
    assert named <= select_tools


@pytest.mark.parametrize("path", PROSE, ids=lambda path: path.stem)
def test_heads_say_what_it_is_for_and_what_it_may_use(path):
    head, body = parts(path)
    assert set(head) <= {"name", "description", "argument-hint", "allowed-tools"}
    assert 20 <= len(head["description"]) <= 1024
    assert head.get("name", path.parent.name) == path.parent.name or path.parent.name == "commands"
    assert ("$ARGUMENTS" in body) == ("argument-hint" in head)
    allowed = re.split(r",\s*(?![^(]*\))", head["allowed-tools"])
    assert all(
        re.fullmatch(rf"{TOOL}(?:memory|docs)_[a-z_]+|Bash\(quaid [a-z ]+:\*\)|Read", tool) for tool in allowed
    ), allowed


def test_nothing_that_forgets_or_decides_goes_without_asking():
    allowed = " ".join(parts(path)[0]["allowed-tools"] for path in PROSE)
    assert not re.search(r"forget|accept|reject|undo|janitor run|janitor:|quaid:", allowed)
    assert not re.search("store|remember", parts(PLUGIN / "skills/memory/SKILL.md")[0]["allowed-tools"])
