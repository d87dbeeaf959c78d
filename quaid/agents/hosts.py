"""The hosts, programs that agents live in: where each keeps its config, what Quaid puts there, and what is left to its
user. `HOSTS` has all of them.

Most get one entry, an MCP server, and differ in file and key. docs/install.md says which were tried with the program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from quaid.agents.config_entries import ConfigEntry, Syntax

NAME = "quaid"
READING_TOOLS = (
    "memory_recall", "memory_search", "memory_get", "memory_history", "memory_stats",
    "docs_search", "docs_read", "docs_list",
)  # fmt: skip
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
    """The places where hosts are looked for. A project's config goes to `folder`, `plugins` holds Quaid's own."""

    home: Path
    platform: str
    environ: Mapping[str, str]
    folder: Path
    plugins: Path

    def setting(self, variable: str, default: Path) -> Path:
        """A folder that an environment variable may move."""
        named = self.environ.get(variable)
        return Path(named).expanduser() if named else default

    def application_folder(self) -> Path:
        """Return the folder where programs with windows keep their settings."""
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        return self.setting("XDG_CONFIG_HOME", self.home / ".config")


@dataclass(frozen=True, slots=True)
class InstallOptions:
    """The options of an installation: the command that starts it, and the vault, if the user named one."""

    command: tuple[str, ...]
    vault: Path | None = None
    project: bool = False
    plugin: bool = False

    def arguments(self, *words: str) -> list[str]:
        """The arguments of the program: those of `command`, the subcommand, the vault."""
        return [*self.command[1:], *words, *(("--vault", str(self.vault)) if self.vault else ())]


@dataclass(frozen=True, slots=True)
class Target:
    """A config of a host with the entries to put in; those of `unwanted` belong to another way of installing."""

    path: Path
    syntax: Syntax
    wanted: tuple[ConfigEntry, ...]
    unwanted: tuple[ConfigEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class Host:
    """A program that agents live in.

    It is on the machine where one of `marks` exists. `next_steps` are sentences that tell the user what only they can
    do, a command behind a newline. A host with windows is started with a bare PATH. `plugin`: Quaid has one for it,
    which is used when the user asks for it, or always where this installation has it.
    """

    name: str
    title: str
    marks: Callable[[Machine], tuple[Path, ...]]
    targets: Callable[[Machine, InstallOptions], tuple[Target, ...]]
    next_steps: Callable[[InstallOptions], tuple[str, ...]]
    has_windows: bool = False
    has_projects: bool = False
    plugin: Literal["", "asked", "always"] = ""


def leftovers(names: Iterable[str]) -> tuple[str, ...]:
    """Return what a host keeps when the entries `names` are removed, with the command that removes it."""
    if any(name.startswith("enabledPlugins.") for name in names):
        return ("Claude Code still knows where the plugin came from:\nclaude plugin marketplace remove quaid",)
    return ()


def hooks_of(options: InstallOptions) -> tuple[ConfigEntry, ...]:
    """Claude Code's hooks, without a shell between: no quoting, and a millisecond less."""
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
    """The MCP server under `key`; `typed` for hosts that want its transport named."""
    kind = {"type": "stdio"} if typed else {}
    return ConfigEntry((*key, NAME), {**kind, "command": options.command[0], "args": options.arguments("mcp")})


def _server_host(
    name: str,
    title: str,
    file: Callable[[Machine], Path],
    syntax: Syntax,
    key: str,
    *next_steps: str,
    typed: bool = False,
    has_windows: bool = False,
) -> Host:
    """A host whose only entry is an MCP server in one file."""
    return Host(
        name,
        title,
        lambda machine: (file(machine).parent,),
        lambda machine, options: (Target(file(machine), syntax, (_server(options, key, typed=typed),)),),
        lambda _: next_steps,
        has_windows,
    )


def _plugin_files(machine: Machine, folder: Path, *, is_wanted: bool) -> tuple[Target, ...]:
    """The skill and the commands of Claude Code's plugin as files in `folder`, where they have the plugin's names."""
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
    return tuple(targets)


def _claude_code() -> Host:
    def settings_folder(machine: Machine) -> Path:
        return machine.setting("CLAUDE_CONFIG_DIR", machine.home / ".claude")

    def state_file(machine: Machine) -> Path:
        return machine.setting("CLAUDE_CONFIG_DIR", machine.home) / ".claude.json"

    def permissions(prefix: str) -> tuple[ConfigEntry, ...]:
        return tuple(ConfigEntry(("permissions", "allow"), prefix + tool, "item") for tool in READING_TOOLS)

    def targets(machine: Machine, options: InstallOptions) -> tuple[Target, ...]:
        servers = machine.folder / ".mcp.json" if options.project else state_file(machine)
        folder = machine.folder / ".claude" if options.project else settings_folder(machine)
        settings = folder / "settings.json"
        files = _plugin_files(machine, folder, is_wanted=not options.plugin)
        server = (_server(options, "mcpServers", typed=True),)
        without_plugin = (*hooks_of(options), *permissions("mcp__quaid__"))
        source = {"source": "directory", "path": str(machine.plugins / "claude-code")}
        plugin = (
            ConfigEntry(("extraKnownMarketplaces", NAME), {"source": source}),
            ConfigEntry(("enabledPlugins", f"{NAME}@{NAME}"), value=True),
            *permissions("mcp__plugin_quaid_quaid__"),
        )
        if not options.plugin:
            return Target(servers, "json", server), Target(settings, "json", without_plugin, plugin), *files
        # A plugin's commands are its own, so the environment names the vault.
        vault = (ConfigEntry(("env", "QUAID_HOME"), str(options.vault)),) if options.vault else ()
        return Target(servers, "json", (), server), Target(settings, "json", (*plugin, *vault), without_plugin), *files

    def next_steps(options: InstallOptions) -> tuple[str, ...]:
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

    return Host(
        "claude-code",
        "Claude Code",
        lambda machine: (settings_folder(machine), state_file(machine)),
        targets,
        next_steps,
        has_projects=True,
        plugin="asked",
    )


def _openclaw() -> Host:
    def file(machine: Machine) -> Path:
        state = machine.setting("OPENCLAW_STATE_DIR", machine.home / ".openclaw")
        return machine.setting("OPENCLAW_CONFIG_PATH", state / "openclaw.json")

    def targets(machine: Machine, options: InstallOptions) -> tuple[Target, ...]:
        ours = ("plugins", "entries", NAME)
        plugin = [
            ConfigEntry(
                ("plugins", "load", "paths"),
                str(machine.plugins / "openclaw"),
                "item",
                r"quaid\b.*[/\\]hooks[/\\]openclaw$",
            ),
            # Only what switches it on and how it finds Quaid: what the user grants it in the same place stays.
            ConfigEntry(ours, {"enabled": True, "config": {"command": options.command[0]}}),
        ]
        if options.vault:
            plugin.append(ConfigEntry((*ours, "config", "vault"), str(options.vault)))
        # The plugin brings the tools itself: beside a server they would be there twice.
        entries = tuple(plugin) if options.plugin else (_server(options, "mcp", "servers"),)
        return (Target(file(machine), "json5", entries),)

    return Host(
        "openclaw",
        "OpenClaw",
        lambda machine: (file(machine).parent,),
        targets,
        lambda _: (
            f"Let the plugin read conversations, or it can neither recall nor learn by itself:\n{GRANT_CONVERSATIONS}",
            "If you keep a list in plugins.allow, add quaid to it.",
        ),
        plugin="always",
    )


HOSTS: dict[str, Host] = {
    host.name: host
    for host in (
        _claude_code(),
        _server_host(
            "claude-desktop",
            "Claude Desktop",
            lambda machine: machine.application_folder() / "Claude" / "claude_desktop_config.json",
            "json",
            "mcpServers",
            "Quit Claude Desktop completely (closing its window is not enough) and start it again.",
            "The first time it uses each tool it asks you; choose to allow it always where you wish.",
            has_windows=True,
        ),
        _server_host(
            "cursor",
            "Cursor",
            lambda machine: machine.home / ".cursor" / "mcp.json",
            "json5",
            "mcpServers",
            "Start Cursor again, then see that quaid is switched on in its settings, under MCP.",
            "Cursor asks before each call of a tool until you allow it there.",
            typed=True,
            has_windows=True,
        ),
        _server_host(
            "windsurf",
            "Windsurf",
            lambda machine: machine.home / ".codeium" / "windsurf" / "mcp_config.json",
            "json5",
            "mcpServers",
            "Start Windsurf again, or refresh its list of MCP servers, and see that quaid is switched on.",
            has_windows=True,
        ),
        _server_host(
            "vscode",
            "VS Code",
            lambda machine: machine.application_folder() / "Code" / "User" / "mcp.json",
            "json5",
            "servers",
            "Run `MCP: List Servers` in VS Code and start quaid: it asks once whether you trust it.",
            "This is the default profile's file; another profile has its own, opened by "
            "`MCP: Open User Configuration`.",
            typed=True,
            has_windows=True,
        ),
        _server_host(
            "codex",
            "Codex CLI",
            lambda machine: machine.setting("CODEX_HOME", machine.home / ".codex") / "config.toml",
            "toml",
            "mcp_servers",
            "Start Codex again; `codex mcp list` shows quaid, and /mcp its tools.",
        ),
        _server_host(
            "gemini",
            "Gemini CLI",
            lambda machine: machine.home / ".gemini" / "settings.json",
            "comments",
            "mcpServers",
            "Start Gemini CLI again; /mcp shows quaid and its tools.",
            "In a folder that you have not trusted Gemini CLI starts no MCP server, not even your own.",
        ),
        _openclaw(),
    )
}
