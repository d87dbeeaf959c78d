"""`quaid doctor --hooks` starts what hosts would start, and believes nothing but what it sees."""

from __future__ import annotations

import json
import sys

import pytest
from host_configs import config, install, machine_at
from vaults import trust_vault

from quaid.agents.hosts import HOSTS
from quaid.model import Finding
from quaid.report import canary

STAND_IN = """#!{python}
import json, os, subprocess, sys
words = sys.argv[1:]
with open({seen!r}, "a") as seen:
    print(*words, os.environ["QUAID_HOME"], os.environ["PATH"], file=seen)
if words[:1] == ["mcp"]:
    {before_server}
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") == "initialize":
            result = {{"protocolVersion": message["params"]["protocolVersion"], "capabilities": {{}}, "serverInfo": {{}}}}
        elif message.get("method") == "tools/list":
            result = {{"tools": [{{"name": name}} for name in {tools!r}]}}
        else:
            continue
        print(json.dumps({{"jsonrpc": "2.0", "method": "notifications/message", "params": {{}}}}))
        print(json.dumps({{"jsonrpc": "2.0", "id": message["id"], "result": result}}), flush=True)
    {after_server}
else:
    told = json.load(sys.stdin)
    {before_hook}
    if told["hook_event_name"] == "SessionStart":
        print(json.dumps({{"hookSpecificOutput": {{"hookEventName": "SessionStart", "additionalContext": "hello"}}}}))
    else:
        line = [sys.executable, "-m", "quaid.cli.main", "extract", told["transcript_path"], "-q"]
        subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True)
"""


class Installation:
    def __init__(self, folder):
        self.home = folder
        self.machine = machine_at(folder)
        self.script = folder / "bin" / "quaid"
        self.seen = folder / "seen"
        self.script.parent.mkdir()
        self.behave()

    def behave(self, before_server="", after_server="", before_hook="", tools=("memory_recall", "memory_get")):
        text = STAND_IN.format(
            python=sys.executable, seen=str(self.seen), tools=list(tools),
            before_server=before_server or "pass", after_server=after_server or "pass", before_hook=before_hook or "pass",
        )  # fmt: skip
        self.script.write_text(text)
        self.script.chmod(0o755)

    def install(self, name, **options):
        install(self.machine, name, (str(self.script),), **options)

    def check(self):
        return {found.name: found for found in canary.check_hosts(self.machine) if isinstance(found, Finding)}


@pytest.fixture
def installation(tmp_path, monkeypatch):
    monkeypatch.setenv("QUAID_EMBEDDING_PROVIDER", "none")
    monkeypatch.setattr(canary, "MAX_WAIT_S", 15.0)
    return Installation(tmp_path)


class TestTheWholeWay:
    def test_a_word_goes_in_and_is_found(self, installation, tmp_path):
        vault = tmp_path / "mine"
        vault.mkdir()
        (vault / "quaid.toml").touch()
        trust_vault(vault)
        installation.install("claude-code", vault=vault)
        found = installation.check()
        assert {name: one.level for name, one in found.items()} == {
            "claude-code: server": "ok",
            "claude-code: hooks": "ok",
        }
        assert "names 2 tools" in found["claude-code: server"].sentence
        assert found["claude-code: hooks"].sentence.startswith(
            "6 installed; a conversation was taken in and found again"
        )
        started = installation.seen.read_text()
        assert [line.split()[:2] for line in started.splitlines()][1:] == [
            ["hook", "session-start"],
            ["hook", "session-end"],
        ]
        assert str(vault) not in started
        assert "quaid-canary-" in started
        assert [path.name for path in vault.iterdir()] == ["quaid.toml"]

    def test_every_server_is_asked_as_its_host_would(self, installation):
        for name in HOSTS:
            if name != "claude-code":
                installation.install(name)
        found = installation.check()
        assert {name for name, one in found.items() if one.level == "ok"} == {
            *(f"{name}: server" for name in HOSTS if name not in {"claude-code", "openclaw"}),
            *(f"{name}: hooks" for name in ("codex", "gemini")),
        }
        assert found["openclaw: plugin"].level == "warning"
        assert found["openclaw: plugin"].next_step.endswith("hooks.allowConversationAccess true")
        bare = [line for line in installation.seen.read_text().splitlines() if line.endswith(f" {canary.BARE_PATH}")]
        assert len(bare) == len([host for host in HOSTS.values() if host.has_windows]) == 4

    def test_hooks_that_are_lines_for_a_shell_are_run_without_the_vault_that_they_name(self, installation, tmp_path):
        vault = tmp_path / "my vault"
        vault.mkdir()
        (vault / "quaid.toml").touch()
        trust_vault(vault)
        for name in ("codex", "gemini"):
            installation.install(name, vault=vault)
        commands = canary.find_commands(installation.machine, HOSTS["gemini"])
        assert commands.hooks["SessionEnd"].words == ("/bin/sh", "-c", f"{installation.script} hook session-end")
        assert commands.hooks["SessionEnd"].timeout_s == 10
        found = installation.check()
        assert [found[f"{name}: hooks"].level for name in ("codex", "gemini")] == ["ok", "ok"]
        assert str(vault) not in installation.seen.read_text()

    def test_hooks_that_codex_has_not_been_told_to_trust_are_named(self, installation):
        installation.install("codex")
        assert "SessionStart" in installation.check()["codex: trust"].sentence
        path = installation.machine.home / ".codex" / "hooks.json"
        states = ("session_start", "user_prompt_submit", "post_tool_use", "pre_compact", "stop", "session_end")
        with config(installation.machine, "codex").open("a") as file:
            file.writelines(f'[hooks.state."{path}:{name}:0:0"]\ntrusted_hash = "sha256:0"\n' for name in states)
        assert "codex: trust" not in installation.check()

    def test_a_plugin_is_looked_into(self, installation):
        folder = installation.machine.plugins / "claude-code"
        installation.install("claude-code", plugin=True)
        assert "the plugin that is switched on is not there" in installation.check()["claude-code"].sentence
        (folder / ".mcp.json").write_text(
            json.dumps({"mcpServers": {"quaid": {"command": str(installation.script), "args": ["mcp"]}}})
        )
        hook = {"type": "command", "command": '"${CLAUDE_PLUGIN_ROOT}/../../bin/quaid" hook session-end'}
        (folder / "hooks").mkdir()
        (folder / "hooks" / "hooks.json").write_text(json.dumps({"hooks": {"SessionEnd": [{"hooks": [hook]}]}}))
        found = installation.check()
        assert {name: one.level for name, one in found.items()} == {
            "claude-code: server": "ok",
            "claude-code: hooks": "ok",
        }

    def test_the_folders_own_config_is_proven_too(self, installation):
        installation.install("claude-code", project=True)
        config(installation.machine, "cursor").write_text("{")
        found = installation.check()
        assert found["claude-code, this folder: server"].level == "ok"
        assert found["cursor"].level == "error"

    def test_nothing_installed_is_said(self, installation):
        assert [one.sentence for one in installation.check().values()] == ["Quaid is installed in no program."]


class TestWhatIsWrong:
    @pytest.mark.parametrize(("behaviour", "problem"), [
        ({"before_server": "sys.exit('no module named quaid')"}, ": no module named quaid."),
        ({"before_server": "print('Welcome!', flush=True)"}, "says something that is not JSON ('Welcome!')"),
        ({"tools": ("docs_search",)}, "answers without the tool memory_recall"),
        ({"before_server": "import time; time.sleep(60)"}, "ends, or says nothing in time"),
        ({"after_server": "import time; time.sleep(60)"}, "does not end within"),
        ({"before_server": "print('[]', flush=True)"}, "answers in a form that is not MCP's"),
    ])  # fmt: skip
    def test_a_server_is_told_what_it_does_wrong(self, installation, monkeypatch, behaviour, problem):
        monkeypatch.setattr(canary, "EXIT_S", 0.3)
        monkeypatch.setattr(canary, "ANSWER_S", 1.5)
        installation.install("cursor")
        installation.behave(**behaviour)
        finding = installation.check()["cursor: server"]
        assert finding.level == "error"
        assert problem in finding.sentence
        assert finding.next_step == "quaid install cursor"

    def test_a_server_that_is_gone(self, installation):
        installation.install("codex")
        installation.script.unlink()
        assert "cannot be started (No such file or directory)" in installation.check()["codex: server"].sentence

    @pytest.mark.parametrize(("behaviour", "problem"), [
        ("sys.exit('broken')", "leaves with exit code 1: broken"),
        ("import time; time.sleep(60)", "takes longer than the 1 s it is given"),
        ("print('hello')", "prints what no host takes for a hook's answer: 'hello"),
        ("told['hook_event_name'] == 'SessionEnd' and sys.exit(0)", "nothing finds it"),
    ])  # fmt: skip
    def test_a_hook_is_told_what_it_does_wrong(self, installation, monkeypatch, behaviour, problem):
        monkeypatch.setattr(canary, "MAX_WAIT_S", 0.3)
        installation.install("claude-code")
        path = installation.home / ".claude" / "settings.json"
        path.write_text(path.read_text().replace('"timeout": 10', '"timeout": 1'))
        installation.behave(before_hook=behaviour)
        finding = installation.check()["claude-code: hooks"]
        assert finding.level == "error"
        assert problem in finding.sentence

    def test_hooks_that_never_hand_a_conversation_over(self, installation):
        installation.install("claude-code")
        path = installation.home / ".claude" / "settings.json"
        said = json.loads(path.read_text())
        del said["hooks"]["SessionEnd"], said["hooks"]["PreCompact"]
        path.write_text(json.dumps(said))
        assert "no conversation would be learned from" in installation.check()["claude-code: hooks"].sentence
