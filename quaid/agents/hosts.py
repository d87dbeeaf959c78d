"""The hosts: where each keeps its config, what Quaid wants there, and what is left to its user. `HOSTS` is all of them.

Most want one thing, an MCP server, and differ in file and key. What was tried with the program itself and what was only
read about it is told apart in docs/install.md.
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
"""What Claude Code may call without asking: nothing that writes."""
HOOK_TIMEOUT_S = 10
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
    """Where hosts are looked for. `folder` is the one a project's config goes to, `plugins` holds Quaid's own."""

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
        """Where programs with windows keep their settings."""
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        return self.setting("XDG_CONFIG_HOME", self.home / ".config")


@dataclass(frozen=True, slots=True)
class InstallOptions:
    """How Quaid is to be installed. `command` starts it, `vault` is only what the user named."""

    command: tuple[str, ...]
    vault: Path | None = None
    project: bool = False
    plugin: bool = False

    def arguments(self, *words: str) -> list[str]:
        """What comes after the program: its own first words, the command, the vault."""
        return [*self.command[1:], *words, *(("--vault", str(self.vault)) if self.vault else ())]


@dataclass(frozen=True, slots=True)
class Target:
    """One file of a host and what is wanted in it; `unwanted` belongs to another way of installing."""

    path: Path
    syntax: Syntax
    wanted: tuple[ConfigEntry, ...]
    unwanted: tuple[ConfigEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class Host:
    """A program that agents live in.

    `marks`: where at least one of these is, the program is. `still_to_do`: what only its user can allow, in sentences.
    A host with windows is started with a bare PATH. `plugin`: Quaid has one for it, switched on when its user asks for
    it, or wherever this installation brings it.
    """

    name: str
    title: str
    marks: Callable[[Machine], tuple[Path, ...]]
    targets: Callable[[Machine, InstallOptions], tuple[Target, ...]]
    still_to_do: Callable[[InstallOptions], tuple[str, ...]]
    has_windows: bool = False
    has_projects: bool = False
    plugin: Literal["", "asked", "always"] = ""


def server(wanted: InstallOptions, *key: str, typed: bool = False) -> ConfigEntry:
    """The MCP server under `key`; `typed` for hosts that want its transport named."""
    kind = {"type": "stdio"} if typed else {}
    return ConfigEntry((*key, NAME), {**kind, "command": wanted.command[0], "args": wanted.arguments("mcp")})


def _one_file(
    path: Callable[[Machine], Path], syntax: Syntax, *key: str, typed: bool = False
) -> Callable[[Machine, InstallOptions], tuple[Target, ...]]:
    return lambda machine, wanted: (Target(path(machine), syntax, (server(wanted, *key, typed=typed),)),)


def _folder_of(path: Callable[[Machine], Path]) -> Callable[[Machine], tuple[Path, ...]]:
    return lambda machine: (path(machine).parent,)


def _claude_folder(machine: Machine) -> Path:
    return machine.setting("CLAUDE_CONFIG_DIR", machine.home / ".claude")


def _claude_state(machine: Machine) -> Path:
    return machine.setting("CLAUDE_CONFIG_DIR", machine.home) / ".claude.json"


def _claude_code(machine: Machine, wanted: InstallOptions) -> tuple[Target, ...]:
    servers = machine.folder / ".mcp.json" if wanted.project else _claude_state(machine)
    folder = machine.folder / ".claude" if wanted.project else _claude_folder(machine)
    mcp = (server(wanted, "mcpServers", typed=True),)
    apart = (*hooks_of(wanted), *_permissions("mcp__quaid__"))
    plugin = (*_plugin(machine), *_permissions("mcp__plugin_quaid_quaid__"))
    if wanted.plugin:
        # A plugin's commands are its own; which vault is meant stands in the environment.
        vault = (ConfigEntry(("env", "QUAID_HOME"), str(wanted.vault)),) if wanted.vault else ()
        return Target(servers, "json", (), mcp), Target(folder / "settings.json", "json", (*plugin, *vault), apart)
    return Target(servers, "json", mcp), Target(folder / "settings.json", "json", apart, plugin)


def hooks_of(wanted: InstallOptions) -> tuple[ConfigEntry, ...]:
    """Claude Code's hooks, without a shell between: no quoting, and a millisecond less."""
    entries = []
    for event, name in _EVENTS.items():
        handler: dict[str, object] = {"type": "command", "command": wanted.command[0]}
        handler |= {"args": wanted.arguments("hook", name), "timeout": HOOK_TIMEOUT_S}
        group: dict[str, object] = {"hooks": [handler]}
        if event == "PostToolUse":
            handler["async"] = True
            group = {"matcher": _EDITING_TOOLS, **group}
        entries.append(ConfigEntry(("hooks", event), group, "hook", name))
    return tuple(entries)


def _permissions(prefix: str) -> tuple[ConfigEntry, ...]:
    return tuple(ConfigEntry(("permissions", "allow"), prefix + tool, "item") for tool in READING_TOOLS)


def _plugin(machine: Machine) -> tuple[ConfigEntry, ...]:
    source = {"source": "directory", "path": str(machine.plugins / "claude-code")}
    return (
        ConfigEntry(("extraKnownMarketplaces", NAME), {"source": source}),
        ConfigEntry(("enabledPlugins", f"{NAME}@{NAME}"), value=True),
    )


def _claude_code_to_do(wanted: InstallOptions) -> tuple[str, ...]:
    steps = ["Start Claude Code again; /mcp and /hooks show what it found."]
    if wanted.project:
        steps = [
            "Start Claude Code in this folder: it asks once whether you trust the folder and its server quaid.",
            "The command is a path of this machine: for a team, let everybody run this in their own copy.",
        ]
    if wanted.plugin:
        steps.append("The plugin starts quaid by its name: it must be on the PATH of whatever starts Claude Code.")
    return (
        *steps,
        "Reading the memory is allowed from now on; for storing and forgetting Claude Code asks you every time.",
    )


def leftovers(names: Iterable[str]) -> tuple[str, ...]:
    """What a host keeps of itself when `names` are taken out of its configs, with the command that ends it."""
    if any(name.startswith("enabledPlugins.") for name in names):
        return ("Claude Code still knows where the plugin came from:\nclaude plugin marketplace remove quaid",)
    return ()


def _claude_desktop_file(machine: Machine) -> Path:
    return machine.application_folder() / "Claude" / "claude_desktop_config.json"


def _cursor_file(machine: Machine) -> Path:
    return machine.home / ".cursor" / "mcp.json"


def _windsurf_file(machine: Machine) -> Path:
    return machine.home / ".codeium" / "windsurf" / "mcp_config.json"


def _vscode_file(machine: Machine) -> Path:
    return machine.application_folder() / "Code" / "User" / "mcp.json"


def _codex_file(machine: Machine) -> Path:
    return machine.setting("CODEX_HOME", machine.home / ".codex") / "config.toml"


def _gemini_file(machine: Machine) -> Path:
    return machine.home / ".gemini" / "settings.json"


def _openclaw_file(machine: Machine) -> Path:
    state = machine.setting("OPENCLAW_STATE_DIR", machine.home / ".openclaw")
    return machine.setting("OPENCLAW_CONFIG_PATH", state / "openclaw.json")


def _openclaw(machine: Machine, wanted: InstallOptions) -> tuple[Target, ...]:
    folder = str(machine.plugins / "openclaw")
    plugin = (
        ConfigEntry(("plugins", "load", "paths"), folder, "item", r"quaid\b.*[/\\]hooks[/\\]openclaw$"),
        # Only what switches it on and how it finds us: what its user grants it in the same place stays.
        ConfigEntry(("plugins", "entries", NAME), {"enabled": True, "config": {"command": wanted.command[0]}}),
        *((ConfigEntry(("plugins", "entries", NAME, "config", "vault"), str(wanted.vault)),) if wanted.vault else ()),
    )
    # The plugin brings the tools itself: beside a server they would be there twice.
    entries = plugin if wanted.plugin else (server(wanted, "mcp", "servers"),)
    return (Target(_openclaw_file(machine), "json5", entries),)


def _always(*sentences: str) -> Callable[[InstallOptions], tuple[str, ...]]:
    return lambda _: sentences


HOSTS: dict[str, Host] = {
    host.name: host
    for host in (
        Host(
            "claude-code",
            "Claude Code",
            lambda machine: (_claude_folder(machine), _claude_state(machine)),
            _claude_code,
            _claude_code_to_do,
            has_projects=True,
            plugin="asked",
        ),
        Host(
            "claude-desktop",
            "Claude Desktop",
            _folder_of(_claude_desktop_file),
            _one_file(_claude_desktop_file, "json", "mcpServers"),
            _always(
                "Quit Claude Desktop wholly (closing its window is not enough) and start it again.",
                "The first time it uses each tool it asks you; choose to allow it always where you wish.",
            ),
            has_windows=True,
        ),
        Host(
            "cursor",
            "Cursor",
            _folder_of(_cursor_file),
            _one_file(_cursor_file, "json5", "mcpServers", typed=True),
            _always(
                "Start Cursor again, then see that quaid is switched on in its settings, under MCP.",
                "Cursor asks before each call of a tool until you allow it there.",
            ),
            has_windows=True,
        ),
        Host(
            "windsurf",
            "Windsurf",
            _folder_of(_windsurf_file),
            _one_file(_windsurf_file, "json5", "mcpServers"),
            _always("Start Windsurf again, or refresh its list of MCP servers, and see that quaid is switched on."),
            has_windows=True,
        ),
        Host(
            "vscode",
            "VS Code",
            _folder_of(_vscode_file),
            _one_file(_vscode_file, "json5", "servers", typed=True),
            _always(
                "Run `MCP: List Servers` in VS Code and start quaid: it asks once whether you trust it.",
                "This is the default profile's file; another profile has its own, opened by"
                " `MCP: Open User Configuration`.",
            ),
            has_windows=True,
        ),
        Host(
            "codex",
            "Codex CLI",
            _folder_of(_codex_file),
            _one_file(_codex_file, "toml", "mcp_servers"),
            _always("Start Codex again; `codex mcp list` shows quaid, and /mcp its tools."),
        ),
        Host(
            "gemini",
            "Gemini CLI",
            _folder_of(_gemini_file),
            _one_file(_gemini_file, "comments", "mcpServers"),
            _always(
                "Start Gemini CLI again; /mcp shows quaid and its tools.",
                "In a folder that you have not trusted Gemini CLI starts no MCP server, not even your own.",
            ),
        ),
        Host(
            "openclaw",
            "OpenClaw",
            _folder_of(_openclaw_file),
            _openclaw,
            _always(
                "Let the plugin read conversations, or it can neither recall nor learn by itself:\n"
                "openclaw config set plugins.entries.quaid.hooks.allowConversationAccess true",
                "If you keep a list in plugins.allow, add quaid to it.",
            ),
            plugin="always",
        ),
    )
}
