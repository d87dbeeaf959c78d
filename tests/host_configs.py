"""The configs of hosts in a home of a test, with Quaid installed in them."""

from __future__ import annotations

from quaid.agents import installation
from quaid.agents.hosts import HOSTS, InstallOptions, Machine

QUAID = ("/opt/quaid/bin/quaid",)
PATHS = {
    "claude-code": ".claude.json",
    "claude-desktop": ".config/Claude/claude_desktop_config.json",
    "cursor": ".cursor/mcp.json",
    "windsurf": ".codeium/windsurf/mcp_config.json",
    "vscode": ".config/Code/User/mcp.json",
    "codex": ".codex/config.toml",
    "gemini": ".gemini/settings.json",
    "openclaw": ".openclaw/openclaw.json",
}


def machine_at(home, platform="linux", environ=None):
    for path in PATHS.values():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
    (home / ".claude").mkdir(exist_ok=True)
    (home / "plugins" / "claude-code").mkdir(parents=True, exist_ok=True)
    (home / "plugins" / "openclaw").mkdir(exist_ok=True)
    (home / "project").mkdir(exist_ok=True)
    return Machine(home, platform, environ or {}, home / "project", home / "plugins")


def install(machine, name, command=QUAID, **options):
    return installation.install(machine, HOSTS[name], InstallOptions(command, **options))


def config(machine, name):
    return machine.home / PATHS[name]
