"""The hosts, programs that agents live in: their configs, what Quaid adds to them, and what is left to the user.

Most hosts get an MCP server and differ in file and key; some get hooks too. docs/how-to/install.md says which were
tested.
"""

import json
import shlex
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from quaid.agents.config_entries import ConfigEntry
from quaid.agents.config_text import Syntax

NAME = "quaid"
READING_TOOLS = (
    *("memory_recall", "memory_search", "memory_get", "memory_history", "memory_stats"),
    *("docs_search", "docs_read", "docs_list"),
)
"""The tools that Claude Code may call without asking: none that writes."""
HOOK_TIMEOUT_S = 10
GRANT_CONVERSATIONS = "openclaw config set plugins.entries.quaid.hooks.allowConversationAccess true"
_EVENTS = {
    "SessionStart": "session-start",
    "UserPromptSubmit": "user-prompt-submit",
    "PostToolUse": "post-tool-use",
    "PreCompact": "pre-compact",
    "Stop": "stop",
    "SessionEnd": "session-end",
}
_EDITING_TOOLS = "Write|Edit|NotebookEdit"


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine with its hosts. A project's config goes to `folder`; `plugins` is the folder of Quaid's own."""

    home: Path
    platform: str
    environ: Mapping[str, str]
    folder: Path
    plugins: Path

    def setting(self, variable: str, default: Path) -> Path:
        """Return a folder that an environment variable may move."""
        named = self.environ.get(variable)
        return Path(named).expanduser() if named else default

    def application_folder(self) -> Path:
        """Return the folder where programs with windows store their settings."""
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        return self.setting("XDG_CONFIG_HOME", self.home / ".config")


@dataclass(frozen=True, slots=True)
class InstallOptions:
    """The options of an installation: the command that starts Quaid, and the vault, if the user named one."""

    command: tuple[str, ...]
    vault: Path | None = None
    project: bool = False
    plugin: bool = False

    def arguments(self, *words: str) -> list[str]:
        """Return the arguments of the program: those of `command`, the subcommand, the vault."""
        return [*self.command[1:], *words, *(("--vault", str(self.vault)) if self.vault else ())]


@dataclass(frozen=True, slots=True)
class Target:
    """A config of a host with the entries to add; those of `unwanted` belong to another way of installing.

    `command` is the host's own command that adds the wanted ones, if it has one.
    """

    path: Path
    syntax: Syntax
    wanted: tuple[ConfigEntry, ...]
    unwanted: tuple[ConfigEntry, ...] = ()
    command: tuple[str, ...] = ()


class Host:
    """A program that agents live in. A host with windows is started with a bare PATH.

    `plugin`: Quaid has one for it, which is used if the user asks for it, or always if this installation has it.
    """

    name: str
    title: str
    has_windows: bool = False
    has_projects: bool = False
    plugin: Literal["", "asked", "always"] = ""
    steps: tuple[str, ...] = ()

    def marks(self, machine: Machine) -> tuple[Path, ...]:
        """Return the paths of which one exists if the host is on the machine."""
        raise NotImplementedError

    def targets(self, machine: Machine, options: InstallOptions) -> tuple[Target, ...]:
        """Return the configs of the host with Quaid's entries."""
        raise NotImplementedError

    def next_steps(self, _options: InstallOptions) -> tuple[str, ...]:
        """Return sentences about what only the user can do, a command after a newline."""
        return self.steps


def leftovers(names: Iterable[str]) -> tuple[str, ...]:
    """Return what a host still stores when the entries `names` are removed, with the command that removes it."""
    if any(name.startswith("enabledPlugins.") for name in names):
        return ("Claude Code still knows where the plugin came from:\nclaude plugin marketplace remove quaid",)
    return ()


def _claude_hooks(options: InstallOptions) -> tuple[ConfigEntry, ...]:
    """Return Claude Code's hooks, without a shell in between: no quoting, and a millisecond less."""
    entries = []
    for event, name in _EVENTS.items():
        handler: dict[str, object] = {"type": "command", "command": options.command[0]}
        handler |= {"args": options.arguments("hook", name), "timeout": HOOK_TIMEOUT_S}
        group: dict[str, object] = {"hooks": [handler]}
        if event == "PostToolUse":
            handler["async"] = True
            group = {"matcher": _EDITING_TOOLS, **group}
        entries.append(ConfigEntry(("hooks", event), group, "hook", name))
    return tuple(entries)


def _server(options: InstallOptions, *key: str, typed: bool = False) -> ConfigEntry:
    """Return the MCP server under `key`; `typed` for hosts that want its transport named."""
    kind = {"type": "stdio"} if typed else {}
    return ConfigEntry((*key, NAME), {**kind, "command": options.command[0], "args": options.arguments("mcp")})


@dataclass(frozen=True)
class ServerHost(Host):
    """A host with an MCP server under `key` in one file, and with hooks, if it has some.

    `file` is relative to the home folder if it begins with a dot, else to the folder of applications; the environment
    variable `variable` may move its folder. `adder` begins the host's own command that adds a server. `hooks` has, for
    each event by the host's name, the `hook`, and the `timeout` and `matcher` as the host reads them.
    """

    name: str
    title: str
    file: str
    syntax: Syntax
    key: str
    steps: tuple[str, ...]
    variable: str = ""
    typed: bool = False
    has_windows: bool = False
    adder: str = ""
    hooks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def _path(self, machine: Machine) -> Path:
        path = (machine.home if self.file.startswith(".") else machine.application_folder()) / self.file
        return machine.setting(self.variable, path.parent) / path.name

    def marks(self, machine: Machine) -> tuple[Path, ...]:
        return (self._path(machine).parent,)

    def targets(self, machine: Machine, options: InstallOptions) -> tuple[Target, ...]:
        server = _server(options, self.key, typed=self.typed)
        words = [options.command[0], *options.arguments("mcp")]
        if self.adder == "code --add-mcp":
            words = [json.dumps({"name": NAME, **server.value})]
        command = (*self.adder.split(), *words) if self.adder else ()
        path, hooks = self._path(machine), self._line_hooks(options)
        if hooks and self.syntax == "toml":
            other = Target(path.with_name("hooks.json"), "json", hooks)
            return Target(path, self.syntax, (server,), command=command), other
        return (Target(path, self.syntax, (server, *hooks), command=command),)

    def _line_hooks(self, options: InstallOptions) -> tuple[ConfigEntry, ...]:
        """Return the hooks, each a line for a shell."""
        entries = []
        for event, about in self.hooks.items():
            line = shlex.join([options.command[0], *options.arguments("hook", about["hook"])])
            matcher = {"matcher": about["matcher"]} if "matcher" in about else {}
            group = {**matcher, "hooks": [{"type": "command", "command": line, "timeout": about["timeout"]}]}
            entries.append(ConfigEntry(("hooks", event), group, "hook", about["hook"]))
        return tuple(entries)


class ClaudeCode(Host):
    """Claude Code: a server, hooks, permissions, a skill and commands, or a plugin that has them all."""

    name = "claude-code"
    title = "Claude Code"
    has_projects = True
    plugin = "asked"

    def marks(self, machine: Machine) -> tuple[Path, ...]:
        return self._settings_folder(machine), self._state_file(machine)

    def targets(self, machine: Machine, options: InstallOptions) -> tuple[Target, ...]:
        servers = machine.folder / ".mcp.json" if options.project else self._state_file(machine)
        folder = machine.folder / ".claude" if options.project else self._settings_folder(machine)
        settings = folder / "settings.json"
        files = self._plugin_files(machine, folder, is_wanted=not options.plugin)
        server = (_server(options, "mcpServers", typed=True),)
        without_plugin = (*_claude_hooks(options), *self._permissions("mcp__quaid__"))
        source = {"source": "directory", "path": str(machine.plugins / "claude-code")}
        plugin = (
            ConfigEntry(("extraKnownMarketplaces", NAME), {"source": source}),
            ConfigEntry(("enabledPlugins", f"{NAME}@{NAME}"), value=True),
            *self._permissions("mcp__plugin_quaid_quaid__"),
        )
        if not options.plugin:
            words = (*f"claude mcp add --scope user {NAME} --".split(), options.command[0], *options.arguments("mcp"))
            own = Target(servers, "json", server, command=() if options.project else words)
            return own, Target(settings, "json", without_plugin, plugin), *files
        # A plugin's commands are its own, so the environment names the vault.
        vault = (ConfigEntry(("env", "QUAID_HOME"), str(options.vault)),) if options.vault else ()
        return Target(servers, "json", (), server), Target(settings, "json", (*plugin, *vault), without_plugin), *files

    def next_steps(self, options: InstallOptions) -> tuple[str, ...]:
        steps = ["Start Claude Code again; /mcp and /hooks show what it found."]
        if options.project:
            steps = [
                "Start Claude Code in this folder: it asks once whether you trust the folder and its server quaid.",
                "The command is a path of this machine: for a team, let everybody run this in their own copy.",
            ]
        if options.plugin:
            steps.append("The plugin starts quaid by its name: it must be on the PATH of whatever starts Claude Code.")
        steps.append(
            "Reading the memory is allowed from now on; for storing and forgetting Claude Code asks you every time."
        )
        return tuple(steps)

    @staticmethod
    def _settings_folder(machine: Machine) -> Path:
        return machine.setting("CLAUDE_CONFIG_DIR", machine.home / ".claude")

    @staticmethod
    def _state_file(machine: Machine) -> Path:
        return machine.setting("CLAUDE_CONFIG_DIR", machine.home) / ".claude.json"

    @staticmethod
    def _permissions(prefix: str) -> tuple[ConfigEntry, ...]:
        return tuple(ConfigEntry(("permissions", "allow"), prefix + tool, "item") for tool in READING_TOOLS)

    @staticmethod
    def _plugin_files(machine: Machine, folder: Path, *, is_wanted: bool) -> list[Target]:
        """Return the skill and the commands of the plugin as files in `folder`, with the plugin's names."""
        plugin = machine.plugins / "claude-code"
        named = [
            (file, f"command /{NAME}:{file.stem}", f"commands/{NAME}/{file.name}") for file in plugin.glob("commands/*")
        ]
        named += [
            (file, f"skill {NAME}-{file.parent.name}", f"skills/{NAME}-{file.parent.name}/{file.name}")
            for file in plugin.glob("skills/*/SKILL.md")
        ]
        targets = []
        for file, title, place in sorted(named):
            text = file.read_text("utf-8").replace("mcp__plugin_quaid_quaid__", "mcp__quaid__")
            text = text.replace(f"\nname: {file.parent.name}\n", f"\nname: {NAME}-{file.parent.name}\n")
            entry = (ConfigEntry((title,), text, "file"),)
            targets.append(Target(folder / place, "file", *((entry, ()) if is_wanted else ((), entry))))
        return targets


class OpenClaw(Host):
    """OpenClaw: a plugin, or a server if this installation has no plugin."""

    name = "openclaw"
    title = "OpenClaw"
    plugin = "always"
    steps = (
        f"Let the plugin read conversations, or it can neither recall nor learn by itself:\n{GRANT_CONVERSATIONS}",
        "If you keep a list in plugins.allow, add quaid to it.",
    )

    def marks(self, machine: Machine) -> tuple[Path, ...]:
        return (self._file(machine).parent,)

    def targets(self, machine: Machine, options: InstallOptions) -> tuple[Target, ...]:
        ours = ("plugins", "entries", NAME)
        path = str(machine.plugins / "openclaw")
        plugin = [
            ConfigEntry(("plugins", "load", "paths"), path, "item", r"quaid\b.*[/\\]hooks[/\\]openclaw$"),
            # Only what switches it on and how it finds Quaid: what the user grants it in the same place stays.
            ConfigEntry(ours, {"enabled": True, "config": {"command": options.command[0]}}),
        ]
        if options.vault:
            plugin.append(ConfigEntry((*ours, "config", "vault"), str(options.vault)))
        # The plugin has the tools itself: with a server they would be there twice.
        entries = tuple(plugin) if options.plugin else (_server(options, "mcp", "servers"),)
        return (Target(self._file(machine), "jsonc", entries),)

    @staticmethod
    def _file(machine: Machine) -> Path:
        state = machine.setting("OPENCLAW_STATE_DIR", machine.home / ".openclaw")
        return machine.setting("OPENCLAW_CONFIG_PATH", state / "openclaw.json")


_SERVERS = tomllib.loads(Path(__file__).with_name("hosts.toml").read_text("utf-8"))
_ALL: tuple[Host, ...] = (
    ClaudeCode(),
    *(ServerHost(name, **{**fields, "steps": tuple(fields["steps"])}) for name, fields in _SERVERS.items()),
    OpenClaw(),
)
HOSTS = {host.name: host for host in _ALL}
_OTHER_TITLES = {"claude": "Claude Code", "claude-ai": "Claude Desktop", "jsonl": "", "text": ""}


def name_host(given: str) -> str:
    """Return the name under which people know a program that calls itself `given`; empty for a mere file format."""
    key = "-".join(given.casefold().split())
    return next((host.title for name, host in HOSTS.items() if key.startswith(name)), _OTHER_TITLES.get(key, given))
