"""Quaid goes into the configs of other programs and out again, and whatever else is in them stays."""

from __future__ import annotations

import io
import json
import os
import shutil
import stat
import sys
import tomllib
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from host_configs import QUAID, config, install, machine_at
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from json_texts import OBJECTS, json_texts
from matrices import examples
from vaults import trust_vault

from quaid.agents import config_files, config_text, installation
from quaid.agents.hosts import HOSTS, InstallOptions, Machine
from quaid.cli.main import main
from quaid.errors import LockedError, QuaidError, UntrustedVaultError

KEYS = {"vscode": ("servers",), "codex": ("mcp_servers",), "openclaw": ("plugins", "entries")}
EVENTS = ["SessionStart", "UserPromptSubmit", "PostToolUse", "PreCompact", "Stop", "SessionEnd"]


@pytest.fixture
def machine(tmp_path):
    return machine_at(tmp_path)


@pytest.fixture
def equipped(machine):
    """A machine on which Quaid has its plugins."""
    return replace(machine, plugins=Path(__file__).parents[2] / "hooks")


def uninstall(machine, name, **options):
    return installation.uninstall(machine, HOSTS[name], **options)


def read(path):
    text = path.read_text(encoding="utf-8")
    return tomllib.loads(text) if path.suffix == ".toml" else config_text.read(text, "jsonc")


def server(machine, name):
    plain = read(config(machine, name))
    for key in KEYS.get(name, ("mcpServers",)):
        plain = plain[key]
    return plain["quaid"]


def everything(folder):
    """All files with their bytes and modes, but Quaid's own receipts."""
    found = [path for path in folder.rglob("*") if path.is_file() and ".local" not in path.parts]
    return {str(path.relative_to(folder)): (path.read_bytes(), stat.S_IMODE(path.lstat().st_mode)) for path in found}


class TestHosts:
    @pytest.mark.parametrize("name", HOSTS)
    def test_a_host_gets_quaid_once_and_gives_it_back(self, machine, name):
        before = everything(machine.home)
        assert install(machine, name).changes
        said = server(machine, name)
        if name == "openclaw":  # its plugin brings the tools
            assert said == {"enabled": True, "config": {"command": QUAID[0]}}
        else:
            assert (said["command"], said["args"]) == (QUAID[0], ["mcp"])
        after = everything(machine.home)
        assert not install(machine, name).changes
        assert everything(machine.home) == after
        assert uninstall(machine, name).changes
        assert everything(machine.home) == before
        assert not uninstall(machine, name).changes

    def test_an_interpreter_can_be_the_command_in_a_file_that_nobody_else_reads(self, machine):
        install(machine, "cursor", ("/usr/bin/python3", "-m", "quaid.cli.main"))
        said = server(machine, "cursor")
        assert said == {"type": "stdio", "command": "/usr/bin/python3", "args": ["-m", "quaid.cli.main", "mcp"]}
        assert stat.S_IMODE(config(machine, "cursor").stat().st_mode) == 0o600

    def test_claude_code_gets_hooks_and_may_read(self, machine):
        install(machine, "claude-code")
        said = read(machine.home / ".claude" / "settings.json")
        assert list(said["hooks"]) == EVENTS
        (group,) = said["hooks"]["PostToolUse"]
        assert group["matcher"] == "Write|Edit|NotebookEdit"
        (handler,) = group["hooks"]
        args = ["hook", "post-tool-use"]
        assert handler == {"type": "command", "command": QUAID[0], "args": args, "timeout": 10, "async": True}
        assert "mcp__quaid__memory_recall" in said["permissions"]["allow"]
        assert not [tool for tool in said["permissions"]["allow"] if "store" in tool or "forget" in tool]

    @pytest.mark.parametrize(("name", "file", "events", "timeout"), [
        ("codex", ".codex/hooks.json", EVENTS, 10),
        ("gemini", ".gemini/settings.json", ["SessionStart", "BeforeAgent", "AfterTool", "AfterAgent", "SessionEnd"], 10_000),
    ])  # fmt: skip
    def test_codex_and_gemini_get_hooks_beside_those_of_others(self, machine, tmp_path, name, file, events, timeout):
        path, vault = machine.home / file, tmp_path / "my vault"
        other = {"matcher": "x", "hooks": [{"type": "command", "command": "other hook session-start"}]}
        path.write_text(json.dumps({"hooks": {"SessionStart": [other], "Other": [other]}}))
        before = path.read_bytes()
        names = [entry for change in install(machine, name, vault=vault).changes for entry in change.names]
        assert {f"hooks.{event}" for event in events} < set(names)
        said = read(path)["hooks"]
        assert list(said) == ["SessionStart", "Other", *events[1:]]
        assert said["SessionStart"][0] == other
        line = f"{QUAID[0]} hook session-start --vault '{vault}'"  # the shell takes it apart
        assert said["SessionStart"][1] == {"hooks": [{"type": "command", "command": line, "timeout": timeout}]}
        assert not install(machine, name, vault=vault).changes
        uninstall(machine, name)
        assert path.read_bytes() == before

    def test_claude_code_gets_the_skill_and_the_commands_of_the_plugin(self, equipped):
        files = {"skills/quaid-memory/SKILL.md", *(f"commands/quaid/{name}.md" for name in
                 ("recall", "remember", "review"))}  # fmt: skip
        folder = equipped.home / ".claude"

        def there():
            return {str(path.relative_to(folder)) for name in ("skills", "commands") for path in
                    (folder / name).rglob("*") if path.is_file()}  # fmt: skip

        before = everything(equipped.home)
        names = [name for change in install(equipped, "claude-code").changes for name in change.names]
        assert {"skill quaid-memory", "command /quaid:recall"} < set(names)
        assert there() == files
        skill = (folder / "skills/quaid-memory/SKILL.md").read_text()
        assert "\nname: quaid-memory\n" in skill
        assert "mcp__quaid__memory_recall" in skill
        assert "plugin" not in skill.split("---")[1]
        install(equipped, "claude-code", plugin=True)
        assert there() == set()
        install(equipped, "claude-code")
        assert there() == files
        uninstall(equipped, "claude-code")
        assert everything(equipped.home) == before
        assert not (folder / "commands" / "quaid").exists()

    def test_a_skill_that_its_owner_has_changed_stays_theirs(self, equipped):
        install(equipped, "claude-code")
        skill = equipped.home / ".claude/skills/quaid-memory/SKILL.md"
        skill.write_text("my own words")
        assert not install(equipped, "claude-code").changes
        done = uninstall(equipped, "claude-code")
        assert [change.altered for change in done.changes if change.path == skill] == [("skill quaid-memory",)]
        assert not skill.exists()
        (backup,) = skill.parent.iterdir()
        assert backup.read_text() == "my own words"

    def test_a_new_version_of_the_skill_takes_the_place_of_the_old_one(self, equipped, tmp_path):
        shutil.copytree(equipped.plugins / "claude-code", tmp_path / "new" / "claude-code")
        install(equipped, "claude-code")
        newer = replace(equipped, plugins=tmp_path / "new")
        with (newer.plugins / "claude-code/skills/memory/SKILL.md").open("a") as file:
            file.write("More.\n")
        assert [change.names for change in install(newer, "claude-code").changes] == [("skill quaid-memory",)]
        assert (equipped.home / ".claude/skills/quaid-memory/SKILL.md").read_text().endswith("More.\n")

    def test_a_vault_that_is_named_goes_along(self, machine, tmp_path):
        (tmp_path / "work" / "quaid.toml").parent.mkdir()
        (tmp_path / "work" / "quaid.toml").touch()
        vault = tmp_path / "work"
        trust_vault(vault)
        for name in ("codex", "claude-code"):
            install(machine, name, vault=vault)
            assert server(machine, name)["args"] == ["mcp", "--vault", str(vault)]
        install(machine, "openclaw", vault=vault)
        hooks = read(machine.home / ".claude" / "settings.json")["hooks"]
        assert hooks["Stop"][0]["hooks"][0]["args"] == ["hook", "stop", "--vault", str(vault)]
        plugin = read(config(machine, "openclaw"))["plugins"]["entries"]["quaid"]
        assert plugin["config"] == {"command": QUAID[0], "vault": str(vault)}
        install(machine, "openclaw")
        assert read(config(machine, "openclaw"))["plugins"]["entries"]["quaid"]["config"] == {"command": QUAID[0]}

    def test_a_vault_that_is_not_one_is_refused(self, machine, tmp_path):
        (tmp_path / "clone").mkdir()
        (tmp_path / "clone" / "quaid.toml").touch()
        with pytest.raises(UntrustedVaultError):
            install(machine, "cursor", vault=tmp_path / "clone")
        assert main(["install", "cursor", "--vault", str(tmp_path / "nowhere")]) == 1

    def test_the_folders_own_config(self, machine):
        install(machine, "claude-code", project=True)
        folder = machine.folder
        assert read(folder / ".mcp.json")["mcpServers"]["quaid"]["command"] == QUAID[0]
        assert list(read(folder / ".claude" / "settings.json")["hooks"]) == EVENTS
        assert not config(machine, "claude-code").exists()
        uninstall(machine, "claude-code", project=True)
        assert [path for path in folder.rglob("*") if path.is_file()] == []

    def test_the_plugin_takes_the_place_of_hooks_and_server(self, machine):
        (machine.home / ".claude" / "settings.json").write_text('{"model": "opus"}')
        before = everything(machine.home)
        install(machine, "claude-code")
        install(machine, "claude-code", plugin=True)
        said = read(machine.home / ".claude" / "settings.json")
        assert said["enabledPlugins"] == {"quaid@quaid": True}
        source = {"source": "directory", "path": str(machine.plugins / "claude-code")}
        assert said["extraKnownMarketplaces"]["quaid"]["source"] == source
        assert "hooks" not in said
        assert all(tool.startswith("mcp__plugin_quaid_quaid__") for tool in said["permissions"]["allow"])
        assert not config(machine, "claude-code").exists()
        install(machine, "claude-code")
        assert "enabledPlugins" not in read(machine.home / ".claude" / "settings.json")
        install(machine, "claude-code", plugin=True)
        done = uninstall(machine, "claude-code")
        assert everything(machine.home) == before
        assert done.next_steps[0].endswith("claude plugin marketplace remove quaid")

    def test_openclaw_keeps_what_its_user_grants(self, machine):
        path = config(machine, "openclaw")
        install(machine, "openclaw")
        path.write_text(
            path.read_text().replace('"enabled": true,', '"enabled": true, "hooks": {"allowConversationAccess": true},')
        )
        install(machine, "openclaw", ("/elsewhere/quaid",))
        said = read(path)["plugins"]
        assert said["entries"]["quaid"]["hooks"] == {"allowConversationAccess": True}
        assert said["load"]["paths"] == [str(machine.plugins / "openclaw")]
        done = uninstall(machine, "openclaw")
        assert read(path) == {}
        assert "plugins.entries.quaid" in done.changes[0].altered

    @pytest.mark.parametrize(("environ", "platform", "name", "path"), [
        ({"CLAUDE_CONFIG_DIR": "moved"}, "linux", "claude-code", "moved/.claude.json"),
        ({"CODEX_HOME": "moved"}, "linux", "codex", "moved/config.toml"),
        ({"OPENCLAW_STATE_DIR": "moved"}, "linux", "openclaw", "moved/openclaw.json"),
        ({"OPENCLAW_CONFIG_PATH": "moved/mine.json"}, "linux", "openclaw", "moved/mine.json"),
        ({}, "darwin", "claude-desktop", "Library/Application Support/Claude/claude_desktop_config.json"),
        ({}, "darwin", "vscode", "Library/Application Support/Code/User/mcp.json"),
    ])  # fmt: skip
    def test_configs_are_where_their_programs_look(self, tmp_path, environ, platform, name, path):
        environ = {key: str(tmp_path / value) for key, value in environ.items()}
        machine = machine_at(tmp_path, platform, environ)
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        install(machine, name)
        assert "quaid" in (tmp_path / path).read_text()


class TestKeeping:
    @settings(max_examples=examples(8), deadline=None, suppress_health_check=list(HealthCheck))
    @given(json_texts(OBJECTS.filter(lambda said: not {"mcpServers", "mcp", "plugins"} & set(said))), st.booleans())
    def test_a_config_is_byte_for_byte_what_it_was(self, written, receipts_are_lost):
        text, before = written
        with TemporaryDirectory() as folder:
            machine = machine_at(Path(folder))
            for name in ("openclaw", "windsurf"):
                path = config(machine, name)
                path.write_bytes(text.encode())
                install(machine, name)
                assert QUAID[0] in str(server(machine, name))
                if receipts_are_lost:
                    installation.receipts_file(machine).unlink()
                uninstall(machine, name)
                assert config_text.is_same(read(path), before)
                if before or not receipts_are_lost:
                    assert path.read_bytes() == text.encode()
                assert len(list(path.parent.iterdir())) == (3 if receipts_are_lost else 1)

    @settings(max_examples=examples(15), deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(["\n", "\r\n"]), st.sampled_from(["", "\ufeff"]), st.lists(st.sampled_from([
        'model = "o"  # mine', "", "[projects.'/a b']", 'trust_level = "trusted"', "[mcp_servers.other]", 'command = "x"',
        "# [mcp_servers.quaid]", "[mcp_servers.other.env]", "A = '1'", "[[profiles]]",
    ]), max_size=6))  # fmt: skip
    def test_so_is_toml(self, newline, mark, lines):
        text = mark + "".join(line + newline for line in lines)
        try:
            before = tomllib.loads(text.removeprefix("\ufeff"))
        except tomllib.TOMLDecodeError:
            return
        with TemporaryDirectory() as folder:
            machine = machine_at(Path(folder))
            path = config(machine, "codex")
            path.write_bytes(text.encode())
            install(machine, "codex")
            said = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
            assert said["mcp_servers"].pop("quaid") == {"command": QUAID[0], "args": ["mcp"]}
            assert path.read_bytes().startswith(text.encode())
            installation.receipts_file(machine).unlink()
            uninstall(machine, "codex")
            assert tomllib.loads(path.read_bytes().decode("utf-8-sig")) == before
            assert path.read_bytes().rstrip() == text.encode().rstrip()

    def test_a_new_installation_takes_the_old_ones_place(self, machine):
        path = machine.home / ".claude" / "settings.json"
        path.write_bytes(
            b'{\r\n\t"model": "opus",\r\n\t"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}\r\n}'
        )
        before = everything(machine.home)
        install(machine, "claude-code", ("/old/env/bin/quaid",))
        install(machine, "claude-code")
        said = read(path)
        assert [len(said["hooks"][event]) for event in EVENTS] == [1, 1, 1, 1, 2, 1]
        assert "/old/env" not in path.read_text()
        assert b"\n" not in path.read_bytes().replace(b"\r\n", b"")
        uninstall(machine, "claude-code")
        after = everything(machine.home)
        assert after == before

    def test_what_the_owner_adds_to_ours_stays(self, machine):
        path = machine.home / ".claude" / "settings.json"
        install(machine, "claude-code")
        said = read(path)
        said["hooks"]["Stop"][0]["hooks"].append({"type": "command", "command": "say done"})
        said["hooks"]["PostToolUse"][0]["matcher"] = "Write"
        said["permissions"]["allow"].append("Bash(ls)")
        said["permissions"]["deny"] = ["mcp__quaid__memory_forget"]
        path.write_text(json.dumps(said, indent=4))
        known = read(config(machine, "claude-code"))
        known["mcpServers"]["quaid"]["env"] = {"A": "1"}
        config(machine, "claude-code").write_text(json.dumps(known))
        assert not install(machine, "claude-code").changes
        install(machine, "claude-code", ("/elsewhere/quaid",))
        assert read(path)["hooks"]["PostToolUse"][0]["matcher"] == "Write"
        assert server(machine, "claude-code")["env"] == {"A": "1"}
        done = uninstall(machine, "claude-code")
        assert read(path) == {
            "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]},
            "permissions": {"allow": ["Bash(ls)"], "deny": ["mcp__quaid__memory_forget"]},
        }
        assert [name for change in done.changes for name in change.altered] == ["mcpServers.quaid"]
        assert read(config(machine, "claude-code")) == {}

    def test_a_link_is_followed_and_stays(self, machine, tmp_path):
        real = tmp_path / "dotfiles" / "cursor.json"
        real.parent.mkdir()
        real.write_text('{"mcpServers": {}}')
        real.chmod(0o640)
        config(machine, "cursor").symlink_to(real)
        install(machine, "cursor")
        assert config(machine, "cursor").is_symlink()
        assert "quaid" in real.read_text()
        assert stat.S_IMODE(real.stat().st_mode) == 0o640
        (backup,) = config(machine, "cursor").parent.glob("*.quaid-backup-*")
        assert stat.S_IMODE(backup.stat().st_mode) == 0o640
        assert backup.read_text() == '{"mcpServers": {}}'
        uninstall(machine, "cursor")
        assert real.read_text() == '{"mcpServers": {}}'
        assert config(machine, "cursor").is_symlink()

    def test_a_comment_is_somebodys(self, machine):
        path = config(machine, "vscode")
        install(machine, "vscode")
        path.write_text(path.read_text().replace("{", "{ // my servers", 1))
        uninstall(machine, "vscode")
        assert path.read_text() == "{ // my servers\n}\n"


class TestRefusing:
    @pytest.mark.parametrize(("name", "data", "problem"), [
        ("cursor", b'{"mcpServers": []}', "mcpServers is a list where an object must be"),
        ("cursor", b'{"mcpServers": {"quaid": "x"}}', "mcpServers.quaid is text where an object must be"),
        ("cursor", b"[1]", "it holds a list where an object must be"),
        ("cursor", b'{"mcpServers": {}', "line 1 column 18"),
        ("cursor", b"\xff\xfe{}", "it is not UTF-8 text"),
        ("claude-desktop", b'{"mcpServers": {}} // mine', "this program reads plain JSON only"),
        ("gemini", b'{"a": 1,}', "this program reads plain JSON only, and this is not plain JSON"),
        ("openclaw", b'{"plugins": {"load": {"paths": "x"}}}', "plugins.load.paths is text where a list must be"),
        ("codex", b"mcp_servers = 3", "mcp_servers is a number where an object must be"),
        ("codex", b"a = ", "Invalid value"),
    ])  # fmt: skip
    def test_a_config_that_is_broken_is_left_alone(self, machine, name, data, problem):
        path = config(machine, name)
        path.write_bytes(data)
        before = everything(machine.home)
        for act in (install, uninstall):
            with pytest.raises(QuaidError) as caught:
                act(machine, name)
            assert problem in str(caught.value)
            assert str(path) in str(caught.value)
            assert "\n" not in str(caught.value)
        assert everything(machine.home) == before

    def test_what_cannot_be_edited_comes_with_the_text_to_paste(self, machine):
        for name, data, snippet in (
            ("openclaw", "{mcp: {}}", '"plugins": {"load": {"paths": ['),
            ("claude-desktop", "{} // mine", '{"mcpServers": {"quaid": {"command": "/opt/quaid/bin/quaid", "args": ['),
            ("codex", "a = ", 'mcp_servers.quaid = {command = "/opt/quaid/bin/quaid", args = ["mcp"]}'),
        ):
            config(machine, name).write_text(data)
            with pytest.raises(QuaidError, match="add this yourself") as caught:
                install(machine, name)
            assert snippet in str(caught.value)

    def test_a_host_that_is_not_there_and_what_a_host_does_not_know(self, machine, tmp_path):
        for options, problem in (
            ({"project": True}, "has one config for all projects"),
            ({"plugin": True}, "has no plugin"),
        ):
            with pytest.raises(QuaidError, match=problem):
                install(machine, "cursor", **options)
        bare = Machine(tmp_path / "bare", "linux", {}, tmp_path, tmp_path)
        for name, host in HOSTS.items():
            with pytest.raises(QuaidError, match="was not found here"):
                install(bare, name)
            would = installation.install(bare, host, InstallOptions(QUAID), dry_run=True)
            assert would.changes
            assert "was not found here" in would.next_steps[0]
        assert not (tmp_path / "bare").exists()

    def test_all_files_of_a_host_or_none(self, machine):
        (machine.home / ".claude" / "settings.json").write_text('{"hooks": {"Stop": {}}}')
        before = everything(machine.home)
        with pytest.raises(QuaidError, match=r"hooks\.Stop is an object where a list must be"):
            install(machine, "claude-code")
        assert everything(machine.home) == before

    def test_what_was_written_is_put_back(self, machine):
        config(machine, "claude-code").write_text('{"a": 1}')
        path = machine.home / ".claude" / "settings.json"
        path.write_text("{}")
        path.chmod(0o444)
        before = everything(machine.home)
        with pytest.raises(QuaidError, match="it is read-only"):
            install(machine, "claude-code")
        assert everything(machine.home) == before

    def test_a_folder_or_a_loop_is_no_config(self, machine):
        config(machine, "cursor").mkdir()
        with pytest.raises(QuaidError, match="it is not a file"):
            install(machine, "cursor")
        config(machine, "windsurf").symlink_to(config(machine, "windsurf"))
        with pytest.raises(QuaidError, match=r"(?i)symlink|symbolic"):
            install(machine, "windsurf")

    def test_a_program_that_writes_meanwhile_wins(self, machine):
        path = config(machine, "cursor")
        path.write_text("{}")
        held = config_files.read(path)
        path.write_text('{"a": 1}')
        with pytest.raises(LockedError):
            config_files.replace(held, b"ours")
        assert path.read_text() == '{"a": 1}'
        assert [found.name for found in path.parent.iterdir()] == [path.name]

    def test_lost_or_broken_receipts_cost_exactness_only(self, machine):
        config(machine, "cursor").write_text('{"mcpServers": {}}')
        install(machine, "cursor")
        installation.receipts_file(machine).write_text("{")
        uninstall(machine, "cursor")
        assert read(config(machine, "cursor")) == {}


CALLS = {
    "claude-code": ("claude", f"mcp add --scope user quaid -- {QUAID[0]} mcp"),
    "codex": ("codex", f"mcp add quaid -- {QUAID[0]} mcp"),
    "gemini": ("gemini", f"mcp add --scope user quaid {QUAID[0]} mcp"),
    "vscode": ("code", f'--add-mcp {{"name": "quaid", "type": "stdio", "command": "{QUAID[0]}", "args": ["mcp"]}}'),
}


class TestProgramsCommand:
    """A program that has a command for it adds the server itself."""

    @pytest.fixture
    def fake(self, machine, tmp_path):
        def make(name, script):
            (tmp_path / "bin").mkdir()
            program = tmp_path / "bin" / CALLS[name][0]
            program.write_text(f'#!/bin/sh\necho "$*" >"$HOME/called"\n{script}\n')
            program.chmod(0o755)
            return replace(machine, environ={"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"})

        return make

    @pytest.mark.parametrize("name", CALLS)
    @pytest.mark.parametrize("script", ["exit 1", "exit 0"])
    def test_where_it_does_nothing_the_config_is_edited(self, fake, name, script):
        machine = fake(name, script)
        config(machine, name).write_text("")
        before = everything(machine.home)
        install(machine, name)
        assert (machine.home / "called").read_text().strip() == CALLS[name][1]
        assert server(machine, name)["command"] == QUAID[0]
        uninstall(machine, name)
        (machine.home / "called").unlink()
        assert everything(machine.home) == before

    def test_its_own_text_stays(self, fake):
        text = '{"mcpServers": {"quaid": {"type": "stdio", "command": "/opt/quaid/bin/quaid", "args": ["mcp"], "env": {}}}}'
        machine = fake("claude-code", f"echo '{text}' >\"$HOME/.claude.json\"")
        install(machine, "claude-code")
        assert config(machine, "claude-code").read_text() == f"{text}\n"
        assert uninstall(machine, "claude-code").changes
        assert not config(machine, "claude-code").exists()

    def test_a_dry_run_calls_nothing(self, fake):
        machine = fake("codex", "")
        done = installation.install(machine, HOSTS["codex"], installation.InstallOptions(QUAID), dry_run=True)
        assert "[mcp_servers.quaid]" in done.changes[0].diff()
        assert not (machine.home / "called").exists()


class TestCommand:
    @pytest.fixture(autouse=True)
    def home(self, tmp_path, monkeypatch):
        folders = "CLAUDE_CONFIG_DIR CODEX_HOME XDG_CONFIG_HOME XDG_DATA_HOME OPENCLAW_STATE_DIR QUAID_HOME"
        for name in folders.split():
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setattr(sys, "platform", "linux")
        monkeypatch.chdir(tmp_path)
        (tmp_path / ".cursor").mkdir()
        (tmp_path / ".claude").mkdir()
        return tmp_path

    @staticmethod
    def quaid(*arguments):
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = main(arguments)
        return code, out.getvalue(), err.getvalue()

    def test_alone_it_lists_the_hosts(self, home):
        (home / ".codex").mkdir()
        (home / ".codex" / "config.toml").write_text("a = ")
        self.quaid("install", "cursor")
        code, out, _ = self.quaid("install")
        rows = {line.split()[0]: " ".join(line.split()[1:]) for line in out.splitlines() if line}
        assert code == 0
        assert rows["claude-code"] == "found quaid install claude-code"
        assert rows["cursor"] == "installed"
        assert rows["vscode"] == "not found"
        assert rows["codex"].startswith("cannot be read Invalid value")
        shape = json.loads(self.quaid("install", "--json")[1])
        (cursor,) = [host for host in shape["hosts"] if host["name"] == "cursor"]
        files_of_cursor = [str(home / ".cursor" / "mcp.json")]
        assert cursor == {
            "name": "cursor", "title": "Cursor", "found": True, "installed": True, "files": files_of_cursor,
            "problem": None, "next_step": "",
        }  # fmt: skip

    @pytest.mark.slow
    def test_it_says_what_it_did_and_what_is_left_to_do(self, home):
        (home / ".cursor" / "mcp.json").write_text("{}")
        code, out, err = self.quaid("install", "cursor")
        assert code == 0
        assert out.startswith(
            "Quaid is installed in Cursor.\n  ~/.cursor/mcp.json\n    mcpServers.quaid\n    as it was: "
        )
        assert "  1. Start Cursor again" in out
        assert "quaid doctor --hooks" in out
        assert "There is no vault at" in err
        assert self.quaid("install", "cursor")[1] == "Nothing to do: Quaid is installed in Cursor.\n"
        out = self.quaid("uninstall", "cursor")[1]
        assert "~/.cursor/mcp.json (as it was before, byte by byte)" in out
        assert self.quaid("uninstall", "cursor")[1] == "Nothing to do: Quaid is not installed in Cursor.\n"

    def test_the_command_needs_no_path(self, home):
        self.quaid("install", "cursor")
        command = json.loads((home / ".cursor" / "mcp.json").read_text())["mcpServers"]["quaid"]["command"]
        assert Path(command).is_absolute()
        assert os.access(command, os.X_OK)

    @pytest.mark.parametrize("act", ["install", "uninstall"])
    def test_a_dry_run_shows_the_difference_and_makes_none(self, home, act):
        if act == "uninstall":
            self.quaid("install", "claude-code")
        before = everything(home)
        code, out, _ = self.quaid(act, "claude-code", "--dry-run")
        assert code == 0
        sign = "+" if act == "install" else "-"
        assert f'{sign}        "matcher": "Write|Edit|NotebookEdit",\n' in out
        assert everything(home) == before
        shape = json.loads(self.quaid(act, "claude-code", "--dry-run", "--json")[1])
        assert {item["removed"] for item in shape["files"]} == {act == "uninstall"}
        assert len(shape["files"]) == 6  # settings, servers, a skill and three commands
        assert shape["dry_run"]
        assert shape["files"][0]["diff"].startswith(f"--- {home}/.claude.json\n")

    def test_an_unknown_host_is_a_mistake_with_a_hint(self):
        code, _, err = self.quaid("install", "clode-code")
        assert code == 2
        assert "Did you mean claude-code?" in err
        assert self.quaid("uninstall", "x")[0] == 2
        assert self.quaid("uninstall")[0] == 2

    def test_a_refusal_is_one_sentence(self, home):
        (home / ".cursor" / "mcp.json").write_text("{")
        code, _, err = self.quaid("install", "cursor")
        assert code == 1
        assert len(err.splitlines()) == 1
        assert json.loads(self.quaid("install", "cursor", "--json")[1])["error"]["code"] == "host_config"
