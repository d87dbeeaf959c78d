"""`quaid doctor --hooks`: checks an installation by running what the hosts would run, with a word that nobody knows.

The commands are read from the hosts' own configs and run as they are there, but with a temporary vault. A server has to
greet and name its tools; hooks have to answer, take a conversation in, and let it be found.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from quaid.agents import config_entries, config_files, probe
from quaid.agents.config_entries import ConfigTextError
from quaid.agents.hosts import GRANT_CONVERSATIONS, HOSTS, NAME, Host, InstallOptions, Machine, hooks_of
from quaid.agents.probe import Command
from quaid.config import user_config_path
from quaid.errors import HookProofError, HostConfigError, QuaidError
from quaid.model import Finding, Recall
from quaid.place import state_folder

NEEDED_TOOL = "memory_recall"
MAX_WAIT_S = 30.0
"""The time in which the worker that the hooks start must have taken the conversation in."""
MAX_CLEANUP_S = 5.0
_ENDINGS = ("SessionEnd", "PreCompact")
"""Events that pass the transcript on; the first that is installed is tried."""
_CANARY_CONFIG = """\
[models]
provider = "none"
[embedding]
provider = "none"
[notifications]
channels = "file"
"""
"""The check asks and loads no model, and notifies nobody."""


@dataclass(frozen=True, slots=True)
class HostCommands:
    """The commands in the configs of one host, `hooks` by event. `remarks` are findings that need no command."""

    label: str
    next_step: str
    has_windows: bool
    servers: tuple[Command, ...]
    hooks: Mapping[str, Command]
    remarks: tuple[Finding, ...] = ()


def check_hosts(
    machine: Machine,
    say: Callable[[str], None],
    create: Callable[[Path], None],
    recall: Callable[[Path, str], Recall],
) -> tuple[Finding, ...]:
    """Return a finding for everything that is installed. `say` is told what is being tried, `create` makes a vault of a
    folder and `recall` asks its memory.
    """
    findings: list[Finding] = []
    commands: list[HostCommands] = []
    for host in HOSTS.values():
        for project in (False, True)[: 1 + host.has_projects]:
            if project and machine.folder == machine.home:
                continue  # the project's config is the user's own here
            try:
                commands.append(find_commands(machine, host, project=project))
            except (ConfigTextError, QuaidError) as error:
                findings.append(Finding(host.name, "error", str(error), f"quaid install {host.name}"))
    if any(host_commands.servers or host_commands.hooks for host_commands in commands):
        with _temporary_vault(create) as root:
            for host_commands in commands:
                findings += _check_host(host_commands, root, say, recall)
    return tuple(findings) or (Finding("hosts", "warning", "Quaid is installed in no program.", "quaid install"),)


def find_commands(machine: Machine, host: Host, *, project: bool = False) -> HostCommands:
    """The commands of Quaid that a host would run.

    Raises:
        ConfigTextError, HostConfigError: a config cannot be read.
        HookProofError: one names no command.
    """
    servers: list[Any] = []
    hooks: dict[str, Any] = {}
    remarks: list[Finding] = []
    for target in host.targets(machine, InstallOptions((NAME,), project=project, plugin=host.plugin == "always")):
        plain = config_entries.read(config_files.read(target.path).text, target.syntax)
        servers += [config_entries.value_at(plain, entry.path) for entry in target.wanted if entry.path[-1:] == (NAME,)]
        hooks |= _hooks_in(plain)
        path = config_entries.value_at(plain, ("extraKnownMarketplaces", NAME, "source", "path"))
        is_on = config_entries.value_at(plain, ("enabledPlugins", f"{NAME}@{NAME}")) is True
        if is_on and isinstance(path, str):  # Claude Code runs the commands of the plugin in that folder
            folder = Path(path)
            servers.append(config_entries.value_at(_read_json(folder / ".mcp.json"), ("mcpServers", NAME)))
            hooks |= _hooks_in(_read_json(folder / "hooks" / "hooks.json"), folder)
        if host.name == "openclaw":
            remarks += _remarks_on_openclaw(plain)
    return HostCommands(
        f"{host.name}, this folder" if project else host.name,
        f"quaid install {host.name}" + (" --project" if project else ""),
        host.has_windows,
        tuple(
            Command.from_config(server).without_vault()
            for server in servers
            if isinstance(server, dict) and "enabled" not in server
        ),
        {event: Command.from_config(handler).without_vault() for event, handler in hooks.items()},
        tuple(remarks),
    )


def _check_host(
    commands: HostCommands, root: Path, say: Callable[[str], None], recall: Callable[[Path, str], Recall]
) -> Iterator[Finding]:
    yield from commands.remarks
    for thing, check in (
        ("server", commands.servers and _check_servers),
        ("hooks", commands.hooks and partial(_check_hooks, recall)),
    ):
        if not check:
            continue
        say(f"Trying the {thing} of {commands.label} …")
        try:
            yield Finding(f"{commands.label}: {thing}", "ok", check(commands, root))
        except QuaidError as error:
            yield Finding(f"{commands.label}: {thing}", "error", str(error), commands.next_step)


def _check_servers(commands: HostCommands, root: Path) -> str:
    for server in commands.servers:
        started = time.monotonic()
        tools = probe.list_tools(server, _environ(commands, root))
        if NEEDED_TOOL not in tools:
            raise HookProofError(f"{server} answers without the tool {NEEDED_TOOL}.")
    return f"Greets and names {len(tools)} tools in {time.monotonic() - started:.1f} s"


def _check_hooks(recall: Callable[[Path, str], Recall], commands: HostCommands, root: Path) -> str:
    """Begin a session, end it with a conversation in its transcript, and recall what was said."""
    ending = next((event for event in _ENDINGS if event in commands.hooks), None)
    if ending is None:
        raise HookProofError("Neither SessionEnd nor PreCompact is installed: no conversation would be learned from.")
    word, environ, is_answer = f"canary{secrets.token_hex(4)}", _environ(commands, root), False
    transcript = _write_transcript(_claude_folder(root) / "projects" / "canary", word)
    event = {"session_id": word, "transcript_path": str(transcript), "cwd": str(root.parent)}
    if start := commands.hooks.get("SessionStart"):
        printed = probe.run_hook(start, {**event, "hook_event_name": "SessionStart", "source": "startup"}, environ)
        printed = printed.strip()
        with suppress(ValueError):
            is_answer = not printed or isinstance(json.loads(printed), dict)
        if not is_answer:  # a host drops it without a word
            raise HookProofError(f"{start} prints what no host takes for a hook's answer: {printed[:60]!r}.")
    started = time.monotonic()
    event |= {"hook_event_name": ending, "reason": "other", "trigger": "manual"}
    probe.run_hook(commands.hooks[ending], event, environ)
    deadline = time.monotonic() + MAX_WAIT_S
    while time.monotonic() < deadline:
        if any(word in hit.text for hit in recall(root, word).hits):
            took_s = time.monotonic() - started
            return f"{len(commands.hooks)} installed; a conversation was taken in and found again after {took_s:.1f} s"
        time.sleep(0.2)
    log = state_folder(root) / "log" / "worker.log"
    last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:] if log.is_file() else []
    reason = f" The last line of its worker's log: {last[0]}" if last else ""
    hook = commands.hooks[ending]
    raise HookProofError(f"{hook} took the conversation, and after {MAX_WAIT_S:g} s nothing finds it.{reason}")


@contextmanager
def _temporary_vault(create: Callable[[Path], None]) -> Iterator[Path]:
    """A vault for the check, removed when the worker that the hooks started has ended too."""
    folder = Path(mkdtemp(prefix="quaid-canary-"))
    # Trust, settings and state are not those of the user.
    own = {"QUAID_CONFIG_DIR": str(folder / "config"), "QUAID_STATE_DIR": str(folder / "state")}
    before = {name: os.environ.get(name) for name in own}
    os.environ.update(own)
    try:
        (folder / "config").mkdir(mode=0o700)
        user_config_path().write_text(_CANARY_CONFIG, encoding="utf-8")
        create(folder / "vault")
        yield folder / "vault"
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
        deadline = time.monotonic() + MAX_CLEANUP_S
        while folder.exists() and time.monotonic() < deadline:
            shutil.rmtree(folder, ignore_errors=True)
            time.sleep(0.05)


def _environ(commands: HostCommands, root: Path) -> dict[str, str]:
    """The environment that a host would give to its commands, but for the vault."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("QUAID_")}
    own = {name: os.environ[name] for name in ("QUAID_CONFIG_DIR", "QUAID_STATE_DIR")}
    own |= {"QUAID_RESIDENT": "off", "QUAID_HOME": str(root), "CLAUDE_CONFIG_DIR": str(_claude_folder(root))}
    return environ | own | ({"PATH": probe.BARE_PATH} if commands.has_windows else {})


def _claude_folder(root: Path) -> Path:
    """The folder in which the hooks look for transcripts, instead of the owner's own."""
    return root.parent / "claude"


def _write_transcript(folder: Path, word: str) -> Path:
    """A conversation as Claude Code keeps it."""
    folder.mkdir(parents=True, exist_ok=True)
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.000Z}"
    frame = {"isSidechain": False, "cwd": str(folder), "sessionId": word, "version": "2.1.0", "timestamp": now}
    asked = {"role": "user", "content": f"Please keep in mind that the bird in the mine is called {word}."}
    answered = {"role": "assistant", "content": [{"type": "text", "text": f"I will: the bird is called {word}."}]}
    lines = [
        {**frame, "parentUuid": None, "uuid": "1", "type": "user", "message": asked},
        {**frame, "parentUuid": "1", "uuid": "2", "type": "assistant", "message": {"id": "msg_1", **answered}},
    ]
    path = folder / f"{word}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def _hooks_in(plain: Any, plugin: Path | None = None) -> dict[str, Any]:
    """Quaid's hook for each event. Those of its plugin name the plugin's folder by a variable."""
    found: dict[str, Any] = {}
    for entry in hooks_of(InstallOptions((NAME,))):
        for place in config_entries.find_places(plain, entry):
            handler = config_entries.value_at(plain, place)
            text = json.dumps(handler).replace("${CLAUDE_PLUGIN_ROOT}", str(plugin)) if plugin else json.dumps(handler)
            found.setdefault(entry.path[-1], json.loads(text))
    return found


def _read_json(path: Path) -> Any:
    file = config_files.read(path)
    if file.data is None:
        raise HostConfigError(path, "the plugin that is switched on is not there")
    return config_entries.read(file.text, "json")


def _remarks_on_openclaw(plain: Any) -> Iterator[Finding]:
    """Yield whether the plugin has what it needs: it runs inside OpenClaw, so there is no command to try."""
    entry = config_entries.value_at(plain, ("plugins", "entries", NAME))
    if not isinstance(entry, dict):
        return
    if config_entries.value_at(entry, ("hooks", "allowConversationAccess")) is True:
        sentence = "Switched on and allowed to read conversations; OpenClaw runs it itself"
        yield Finding("openclaw: plugin", "ok", sentence)
    else:
        sentence = "It may not read conversations, so it does nothing."
        yield Finding("openclaw: plugin", "warning", sentence, GRANT_CONVERSATIONS)
