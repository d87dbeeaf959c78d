"""`quaid doctor --hooks`: what the hosts would start is started, and has to go the whole way with a word nobody knows.

The commands are read out of the hosts' own configs and run as they stand there, but against a vault that lives as long
as the proof. A server must greet and name its tools; hooks must answer, take a conversation in, and let it be found.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from quaid.agents import config_entries, config_files, probe
from quaid.agents.config_entries import ConfigTextError
from quaid.agents.hosts import HOSTS, NAME, Host, InstallOptions, Machine, hooks_of
from quaid.agents.probe import Command
from quaid.config import user_config_path
from quaid.errors import HookProofError, HostConfigError, QuaidError
from quaid.model import Finding, Recall
from quaid.place import state_folder

NEEDED_TOOL = "memory_recall"
MAX_WAIT_S = 30.0
"""For the conversation to be taken in by the worker that the hooks start."""
MAX_CLEANUP_S = 5.0
_ENDINGS = ("SessionEnd", "PreCompact")
"""Events that hand the transcript over; the first that is installed is tried."""
_CANARY_CONFIG = """\
[models]
provider = "none"
[embedding]
provider = "none"
[notifications]
channels = "file"
"""
"""The proof asks no model, loads none, and nobody is told of what it learns."""


@dataclass(frozen=True, slots=True)
class HostCommands:
    """What the configs of one host would have it start: `hooks` by event. `remarks` need no proof."""

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
    """Return a finding for each thing that is installed. `say` hears what is being tried, `create` makes a folder a
    vault and `recall` asks the memory of one.
    """
    findings: list[Finding] = []
    found: list[HostCommands] = []
    for host in HOSTS.values():
        for project in (False, True)[: 1 + host.has_projects]:
            if project and machine.folder == machine.home:
                continue  # the project's config is the user's own here
            try:
                found.append(find_commands(machine, host, project=project))
            except (ConfigTextError, QuaidError) as error:
                findings.append(Finding(host.name, "error", str(error), f"quaid install {host.name}"))
    if any(one.servers or one.hooks for one in found):
        with _temporary_vault(create) as root:
            findings += [finding for one in found for finding in _prove_one(one, root, say, recall)]
    return tuple(findings) or (Finding("hosts", "warning", "Quaid is installed in no program.", "quaid install"),)


def find_commands(machine: Machine, host: Host, *, project: bool = False) -> HostCommands:
    """What a host would start of Quaid.

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
        if folder := _plugin_folder(plain):
            servers.append(config_entries.value_at(_read_json(folder / ".mcp.json"), ("mcpServers", NAME)))
            hooks |= _hooks_in(_read_json(folder / "hooks" / "hooks.json"), folder)
        if host.name == "openclaw":
            remarks += _remarks_on_openclaw(plain)
    return HostCommands(
        f"{host.name}, this folder" if project else host.name,
        f"quaid install {host.name}" + (" --project" if project else ""),
        host.has_windows,
        tuple(
            Command.from_config(said).without_vault()
            for said in servers
            if isinstance(said, dict) and "enabled" not in said
        ),
        {event: Command.from_config(said).without_vault() for event, said in hooks.items()},
        tuple(remarks),
    )


def _prove_one(
    found: HostCommands, root: Path, say: Callable[[str], None], recall: Callable[[Path, str], Recall]
) -> Iterator[Finding]:
    yield from found.remarks
    for thing, proof in (
        ("server", found.servers and _prove_servers),
        ("hooks", found.hooks and partial(_prove_hooks, recall)),
    ):
        if not proof:
            continue
        say(f"Trying the {thing} of {found.label} …")
        try:
            yield Finding(f"{found.label}: {thing}", "ok", proof(found, root))
        except QuaidError as error:
            yield Finding(f"{found.label}: {thing}", "error", str(error), found.next_step)


def _prove_servers(found: HostCommands, root: Path) -> str:
    for server in found.servers:
        started = time.monotonic()
        tools = probe.list_tools(server, _environ(found, root))
        if NEEDED_TOOL not in tools:
            raise HookProofError(f"{server} answers without the tool {NEEDED_TOOL}.")
    return f"Greets and names {len(tools)} tools in {time.monotonic() - started:.1f} s"


def _prove_hooks(recall: Callable[[Path, str], Recall], found: HostCommands, root: Path) -> str:
    """Begin a session, end it with a conversation in its transcript, and find what was said."""
    ending = next((event for event in _ENDINGS if event in found.hooks), None)
    if ending is None:
        raise HookProofError("Neither SessionEnd nor PreCompact is installed: no conversation would be learned from.")
    word, environ = f"canary{secrets.token_hex(4)}", _environ(found, root)
    transcript = _write_transcript(_claude_folder(root) / "projects" / "canary", word)
    told: dict[str, object] = {"session_id": word, "transcript_path": str(transcript), "cwd": str(root.parent)}
    if start := found.hooks.get("SessionStart"):
        _check_answer(start, probe.run_hook(start, _event(told, "SessionStart", source="startup"), environ))
    started = time.monotonic()
    probe.run_hook(found.hooks[ending], _event(told, ending, reason="other", trigger="manual"), environ)
    _wait_for(recall, root, word, found.hooks[ending])
    took_s = time.monotonic() - started
    return f"{len(found.hooks)} installed; a conversation was taken in and found again after {took_s:.1f} s"


def _check_answer(hook: Command, said: str) -> None:
    """A host drops without a word what is not in the form of a hook's answer."""
    try:
        is_answer = not said.strip() or isinstance(json.loads(said), dict)
    except ValueError:
        is_answer = False
    if not is_answer:
        raise HookProofError(f"{hook} prints what no host takes for a hook's answer: {said.strip()[:60]!r}.")


def _event(told: Mapping[str, object], name: str, **more: object) -> dict[str, object]:
    return {**told, "hook_event_name": name, **more}


def _wait_for(recall: Callable[[Path, str], Recall], root: Path, word: str, hook: Command) -> None:
    deadline = time.monotonic() + MAX_WAIT_S
    while time.monotonic() < deadline:
        if any(word in hit.text for hit in recall(root, word).hits):
            return
        time.sleep(0.2)
    log = state_folder(root) / "log" / "worker.log"
    last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:] if log.is_file() else []
    reason = f" Its worker's last words: {last[0]}" if last else ""
    raise HookProofError(f"{hook} took the conversation, and after {MAX_WAIT_S:g} s nothing finds it.{reason}")


@contextmanager
def _temporary_vault(create: Callable[[Path], None]) -> Iterator[Path]:
    """A vault for the proof, taken away when the worker that the hooks started has ended too."""
    folder = Path(mkdtemp(prefix="quaid-canary-"))
    # Trust, settings and state of the proof are not those of the user.
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


def _environ(found: HostCommands, root: Path) -> dict[str, str]:
    """What a host would start its commands with, but for the vault."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("QUAID_")}
    own = {name: os.environ[name] for name in ("QUAID_CONFIG_DIR", "QUAID_STATE_DIR")}
    own |= {"QUAID_HOME": str(root), "CLAUDE_CONFIG_DIR": str(_claude_folder(root))}
    return environ | own | ({"PATH": probe.BARE_PATH} if found.has_windows else {})


def _claude_folder(root: Path) -> Path:
    """Where the hooks of a proof look for transcripts, instead of the owner's own."""
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
    """Our hook for each event; in a plugin of ours all are, and name its folder by a variable."""
    found: dict[str, Any] = {}
    for entry in hooks_of(InstallOptions((NAME,))):
        for place in config_entries.find_places(plain, entry):
            handler = config_entries.value_at(plain, place)
            said = json.dumps(handler).replace("${CLAUDE_PLUGIN_ROOT}", str(plugin)) if plugin else json.dumps(handler)
            found.setdefault(entry.path[-1], json.loads(said))
    return found


def _plugin_folder(plain: Any) -> Path | None:
    """Where the plugin lies that a config of Claude Code switches on."""
    if config_entries.value_at(plain, ("enabledPlugins", f"{NAME}@{NAME}")) is not True:
        return None
    path = config_entries.value_at(plain, ("extraKnownMarketplaces", NAME, "source", "path"))
    return Path(path) if isinstance(path, str) else None


def _read_json(path: Path) -> Any:
    held = config_files.read(path)
    if held.data is None:
        raise HostConfigError(path, "the plugin that is switched on is not there")
    return config_entries.read(held.text, "json")


def _remarks_on_openclaw(plain: Any) -> Iterator[Finding]:
    """The plugin runs inside OpenClaw, so only what it needs there is looked at."""
    entry = config_entries.value_at(plain, ("plugins", "entries", NAME))
    if not isinstance(entry, dict):
        return
    if config_entries.value_at(entry, ("hooks", "allowConversationAccess")) is True:
        sentence = "Switched on and allowed to read conversations; OpenClaw runs it itself"
        yield Finding("openclaw: plugin", "ok", sentence)
    else:
        step = "openclaw config set plugins.entries.quaid.hooks.allowConversationAccess true"
        yield Finding("openclaw: plugin", "warning", "It may not read conversations, so it does nothing.", step)
