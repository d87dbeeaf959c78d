"""`quaid doctor --hooks`: check an installation by running what the hosts would run, with an invented word.

The commands are read from the hosts' configs and run as they are, but with a temporary vault. A server has to answer
and name its tools; hooks have to answer, take a conversation in, and let it be recalled. MCP is spoken by hand, because
a client library starts servers in its own way and hides their faults.
"""

import json
import os
import re
import secrets
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, NamedTuple, Self

from quaid.agents import config_entries, config_files, config_text
from quaid.agents.config_entries import ConfigEntry, value_at
from quaid.agents.config_text import ConfigTextError
from quaid.agents.hosts import GRANT_CONVERSATIONS, HOSTS, NAME, Host, InstallOptions, Machine
from quaid.errors import HookProofError, HostConfigError, QuaidError
from quaid.memory import Memory
from quaid.model import Finding
from quaid.place import state_folder
from quaid.user_config import user_config_path

PROTOCOL = "2025-11-25"
"""The last revision that begins with a handshake; every host of today speaks it or one before it."""
NEEDED_TOOL = "memory_recall"
BARE_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"
"""The PATH of programs that are started from a desktop."""
ANSWER_S = 60.0
"""The time for a server to start and answer, and for a hook whose config names none."""
EXIT_S = 10.0
"""The time for a server to end with its host: one that stays would be one of hundreds."""
MAX_WAIT_S = 30.0
"""The time for the worker of the hooks to take the conversation in."""
MAX_CLEANUP_S = 5.0
_MAX_ERROR = 300
_VAULT = r""" --vault[ =](?:'[^']*'|"[^"]*"|[^\s'"])+"""
"""The option in a line for a shell."""
_ENDINGS = ("SessionEnd", "PreCompact")
"""Events that pass the transcript on; the first that is installed is tried."""
_CODEX_HOOKS = "hooks.json"
_CANARY_CONFIG = """\
[models]
provider = "none"
[embedding]
provider = "none"
[notifications]
channels = "file"
"""


class Command(NamedTuple):
    """A command that a host runs: its words, its additions to the host's environment, and its time limit."""

    words: tuple[str, ...]
    environ: Mapping[str, str]
    timeout_s: float

    @classmethod
    def from_config(cls, handler: Any) -> Self:
        """Read the command of a server or hook, without the vault that it names. A hook without `args` is a shell line.

        Raises:
            HookProofError: it names no command.
        """
        command, arguments = handler.get("command"), handler.get("args")
        if not isinstance(command, str) or not command:
            raise HookProofError("Its config names no command. Correct that with: quaid install")
        is_hook = handler.get("type") == "command"
        is_line = is_hook and not isinstance(arguments, list)
        words = ["/bin/sh", "-c", re.sub(_VAULT, "", command)] if is_line else [command, *map(str, arguments or ())]
        while "--vault" in words[:-1]:
            at = words.index("--vault")
            del words[at : at + 2]
        stated = handler.get("env") if isinstance(handler.get("env"), dict) else {}
        environ = {name: value for name, value in stated.items() if name != "QUAID_HOME"}
        # Hosts count a server's time in whatever they like, and a hook's in seconds; Gemini CLI in milliseconds.
        limit = handler.get("timeout") if is_hook else None
        limit_s = float(limit) if isinstance(limit, int | float) else ANSWER_S
        return cls(tuple(words), environ, limit_s / 1000 if limit_s >= 1000 else limit_s)

    def __str__(self) -> str:
        return config_entries.command_line({"command": self.words[0], "args": list(self.words[1:])})


@dataclass(slots=True)
class HostCommands:
    """The commands in the configs of one host, `hooks` by event. `remarks` are findings that need no command."""

    label: str
    next_step: str
    has_windows: bool
    servers: list[Command] = field(default_factory=list)
    hooks: dict[str, Command] = field(default_factory=dict)
    remarks: list[Finding] = field(default_factory=list)


def check_hosts(machine: Machine) -> Iterator[str | Finding]:
    """Check everything that is installed: yield a sentence about each step, and what was found."""
    problems: list[Finding] = []
    found: list[HostCommands] = []
    for host in HOSTS.values():
        # In the home folder the project's config is the user's own.
        for project in (False, True)[: 1 + (host.has_projects and machine.folder != machine.home)]:
            try:
                found.append(find_commands(machine, host, project=project))
            except (ConfigTextError, QuaidError) as error:
                problems.append(Finding(host.name, "error", str(error), f"quaid install {host.name}"))
    yield from problems
    installed = [commands for commands in found if commands.servers or commands.hooks]
    remarks = [remark for commands in found for remark in commands.remarks]
    if not (problems or installed or remarks):
        yield Finding("hosts", "warning", "Quaid is installed in no program.", "quaid install")
    yield from remarks
    with _temporary_vault() if installed else nullcontext(Path()) as root:
        for commands in installed:
            for part, check in {"server": _check_servers, "hooks": _check_hooks}.items():
                if not (commands.servers if part == "server" else commands.hooks):
                    continue
                yield f"Trying the {part} of {commands.label} …"
                try:
                    yield Finding(f"{commands.label}: {part}", "ok", check(commands, root))
                except QuaidError as error:
                    yield Finding(f"{commands.label}: {part}", "error", str(error), commands.next_step)


def find_commands(machine: Machine, host: Host, *, project: bool = False) -> HostCommands:
    """Return the commands of Quaid that a host would run.

    Raises:
        ConfigTextError, HostConfigError: a config cannot be read.
        HookProofError: one names no command.
    """
    label = f"{host.name}, this folder" if project else host.name
    commands = HostCommands(label, f"quaid install {host.name}{' --project' * project}", host.has_windows)
    servers: list[Any] = []
    hooks: dict[str, Any] = {}
    for target in host.targets(machine, InstallOptions((NAME,), project=project, plugin=host.plugin == "always")):
        plain = config_text.read(config_files.read(target.path).text, target.syntax)
        servers += [value_at(plain, entry.path) for entry in target.wanted if entry.path[-1:] == (NAME,)]
        wanted = [entry for entry in target.wanted if entry.kind == "hook"]
        hooks |= _read_hooks(plain, wanted)
        path = value_at(plain, ("extraKnownMarketplaces", NAME, "source", "path"))
        is_on = value_at(plain, ("enabledPlugins", f"{NAME}@{NAME}")) is True
        if is_on and isinstance(path, str):  # Claude Code runs the commands of the plugin in that folder
            folder = Path(path)
            servers.append(value_at(_read_json(folder / ".mcp.json"), ("mcpServers", NAME)))
            hooks |= _read_hooks(_read_json(folder / "hooks" / "hooks.json"), wanted, folder)
        if target.path.name == _CODEX_HOOKS:
            commands.remarks += _find_untrusted(target.path, plain, wanted)
        entry = value_at(plain, ("plugins", "entries", NAME)) if host.name == "openclaw" else None
        if isinstance(entry, dict):  # OpenClaw runs the plugin itself, so there is no command to try
            what = "Switched on and allowed to read conversations; OpenClaw runs it itself"
            finding = Finding("openclaw: plugin", "ok", what)
            if value_at(entry, ("hooks", "allowConversationAccess")) is not True:
                what = "It may not read conversations, so it does nothing."
                finding = Finding("openclaw: plugin", "warning", what, GRANT_CONVERSATIONS)
            commands.remarks.append(finding)
    servers = [server for server in servers if isinstance(server, dict) and "enabled" not in server]
    commands.servers += map(Command.from_config, servers)
    commands.hooks |= {event: Command.from_config(handler) for event, handler in hooks.items()}
    return commands


def _find_untrusted(path: Path, plain: Any, wanted: Sequence[ConfigEntry]) -> Iterator[Finding]:
    """Yield a finding if Codex leaves hooks out because nobody has trusted them, as its config records."""
    text = config_files.read(path.with_name("config.toml")).text
    trusted = value_at(config_text.read(text, "toml"), ("hooks", "state")) or {}
    missing = []
    for entry in wanted:
        event = re.sub(r"(?<!^)(?=[A-Z])", "_", entry.path[-1]).lower()
        for _, _, group, _, handler in config_entries.find_places(plain, entry):
            place = f"/{path.name}:{event}:{group}:{handler}"
            missing += [] if any(key.endswith(place) for key in trusted) else [entry.path[-1]]
    if missing:
        what = f"Codex leaves out {', '.join(missing)}: nobody has trusted them. Start it and trust them in /hooks."
        yield Finding("codex: trust", "warning", what, "codex")


def _check_servers(commands: HostCommands, root: Path) -> str:
    for server in commands.servers:
        started = time.monotonic()
        tools = _list_tools(server, _environ(commands, root))
        if NEEDED_TOOL not in tools:
            raise HookProofError(f"{server} answers without the tool {NEEDED_TOOL}.")
    return f"Greets and names {len(tools)} tools in {time.monotonic() - started:.1f} s"


def _check_hooks(commands: HostCommands, root: Path) -> str:
    """Begin a session, end it with a conversation in its transcript, and recall that."""
    ending = next((event for event in _ENDINGS if event in commands.hooks), None)
    if ending is None:
        raise HookProofError("Neither SessionEnd nor PreCompact is installed: no conversation would be learned from.")
    word, environ = f"canary{secrets.token_hex(4)}", _environ(commands, root)
    transcript = Path(environ["CLAUDE_CONFIG_DIR"], "projects", "canary", f"{word}.jsonl")
    transcript.parent.mkdir(parents=True, exist_ok=True)
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.000Z}"
    cwd = str(transcript.parent)
    frame = {"isSidechain": False, "cwd": cwd, "sessionId": word, "version": "2.1.0", "timestamp": now}
    question = {"role": "user", "content": f"Please keep in mind that the bird in the mine is called {word}."}
    answer = {"role": "assistant", "content": [{"type": "text", "text": f"I will: the bird is called {word}."}]}
    lines = [
        {**frame, "parentUuid": None, "uuid": "1", "type": "user", "message": question},
        {**frame, "parentUuid": "1", "uuid": "2", "type": "assistant", "message": {"id": "msg_1", **answer}},
    ]
    transcript.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    event = {"session_id": word, "transcript_path": str(transcript), "cwd": str(root.parent)}
    if start := commands.hooks.get("SessionStart"):
        payload = {**event, "hook_event_name": "SessionStart", "source": "startup"}
        printed = _run_hook(start, payload, environ).strip()
        is_answer = not printed
        with suppress(ValueError):
            is_answer = is_answer or isinstance(json.loads(printed), dict)
        if not is_answer:  # a host drops it silently
            raise HookProofError(f"{start} prints what no host takes for a hook's answer: {printed[:60]!r}.")
    started = time.monotonic()
    hook = commands.hooks[ending]
    _run_hook(hook, {**event, "hook_event_name": ending, "reason": "other", "trigger": "manual"}, environ)
    while time.monotonic() < started + MAX_WAIT_S:
        with Memory.open(root) as memory:
            if any(word in hit.text for hit in memory.recall(word).hits):
                took_s = time.monotonic() - started
                count = len(commands.hooks)
                return f"{count} installed; a conversation was taken in and found again after {took_s:.1f} s"
        time.sleep(0.2)
    log = state_folder(root) / "log" / "worker.log"
    last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:] if log.is_file() else []
    reason = f" The last line of its worker's log: {last[0]}" if last else ""
    raise HookProofError(f"{hook} took the conversation, and after {MAX_WAIT_S:g} s nothing finds it.{reason}")


@contextmanager
def _temporary_vault() -> Iterator[Path]:
    """Make a vault with its own trust, settings and state. It is removed when the worker of the hooks has ended."""
    folder = Path(tempfile.mkdtemp(prefix="quaid-canary-"))
    own = {"QUAID_CONFIG_DIR": str(folder / "config"), "QUAID_STATE_DIR": str(folder / "state")}
    before = {name: os.environ.get(name) for name in own}
    os.environ.update(own)
    try:
        (folder / "config").mkdir(mode=0o700)
        user_config_path().write_text(_CANARY_CONFIG, encoding="utf-8")
        Memory.create(folder / "vault")[0].close()
        yield folder / "vault"
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
        deadline = time.monotonic() + MAX_CLEANUP_S
        while folder.exists() and time.monotonic() < deadline:
            shutil.rmtree(folder, ignore_errors=True)
            time.sleep(0.05)


def _environ(commands: HostCommands, root: Path) -> dict[str, str]:
    """Return the environment that a host would give to its commands, but for the vault."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("QUAID_")}
    own = {name: os.environ[name] for name in ("QUAID_CONFIG_DIR", "QUAID_STATE_DIR")}
    own |= {"QUAID_RESIDENT": "off", "QUAID_HOME": str(root), "CLAUDE_CONFIG_DIR": str(root.parent / "claude")}
    return environ | own | ({"PATH": BARE_PATH} if commands.has_windows else {})


def _read_hooks(plain: Any, wanted: Sequence[ConfigEntry], plugin: Path | None = None) -> dict[str, Any]:
    """Return Quaid's hook for each event. Those of its plugin name the plugin's folder by a variable."""
    found: dict[str, Any] = {}
    for entry in wanted:
        for place in config_entries.find_places(plain, entry):
            text = json.dumps(value_at(plain, place))
            if plugin is not None:
                text = text.replace("${CLAUDE_PLUGIN_ROOT}", str(plugin))
            found.setdefault(entry.path[-1], json.loads(text))
    return found


def _read_json(path: Path) -> Any:
    file = config_files.read(path)
    if file.data is None:
        raise HostConfigError(path, "the plugin that is switched on is not there")
    return config_text.read(file.text, "json")


# -- running commands ------------------------------------------------------------------------------------------------


def _list_tools(command: Command, environ: Mapping[str, str]) -> list[str]:
    """Start an MCP server, greet it, and return the names of its tools.

    Raises:
        HookProofError: it does not start, does not answer by the protocol, or does not end with its input.
    """
    with tempfile.TemporaryFile() as errors, _start(command, environ, errors) as process:
        alarm = threading.Timer(command.timeout_s, process.kill)
        alarm.start()
        try:
            client = {"name": "quaid-doctor", "version": "1"}
            hello = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client}
            _call(process, 1, "initialize", hello)
            _send(process, {"method": "notifications/initialized"})
            tools = [tool["name"] for tool in _call(process, 2, "tools/list", {})["tools"]]
            assert process.stdin
            process.stdin.close()
            process.wait(EXIT_S)
        except subprocess.TimeoutExpired as error:
            raise HookProofError(f"{command} answers, and does not end within {EXIT_S:g} s of its input.") from error
        except (ValueError, KeyError, TypeError, OSError) as error:
            what = "ends before it is asked" if isinstance(error, OSError) else "answers in a form that is not MCP's"
            if isinstance(error, json.JSONDecodeError):
                what = f"says something that is not JSON ({error.doc.strip()[:60]!r})"
            elif isinstance(error, ValueError):
                what = str(error)
            raise HookProofError(f"{command} {what}{_last_line(errors)}.") from error
        finally:
            alarm.cancel()
            process.kill()
    return tools


def _run_hook(command: Command, payload: Mapping[str, object], environ: Mapping[str, str]) -> str:
    """Return what a hook prints for `payload`.

    Raises:
        HookProofError: it does not start, fails, or takes longer than its host waits.
    """
    with tempfile.TemporaryFile() as errors, _start(command, environ, errors) as process:
        try:
            out, _ = process.communicate(json.dumps(payload).encode(), command.timeout_s)
        except subprocess.TimeoutExpired as error:
            process.kill()
            raise HookProofError(f"{command} takes longer than the {command.timeout_s:g} s it is given.") from error
        if process.returncode:
            raise HookProofError(f"{command} leaves with exit code {process.returncode}{_last_line(errors)}.")
    return out.decode("utf-8", "replace")


def _start(command: Command, environ: Mapping[str, str], errors: IO[bytes]) -> subprocess.Popen[bytes]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": errors}
    try:
        return subprocess.Popen(command.words, env={**environ, **command.environ}, bufsize=0, **pipes)  # type: ignore[call-overload, no-any-return]
    except OSError as error:
        raise HookProofError(f"{command} cannot be started ({error.strerror}).") from error


def _send(process: subprocess.Popen[bytes], message: Mapping[str, object]) -> None:
    assert process.stdin
    process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def _call(process: subprocess.Popen[bytes], number: int, method: str, params: Mapping[str, object]) -> dict[str, Any]:
    assert process.stdout
    _send(process, {"id": number, "method": method, "params": params})
    while line := process.stdout.readline():
        message = json.loads(line)
        if not isinstance(message, dict):
            raise TypeError(message)
        if message.get("id") == number and "method" not in message:
            if "error" in message:
                raise ValueError(f"answers {method} with an error ({message['error'].get('message')})")
            result: dict[str, Any] = message["result"]
            return result
    raise ValueError(f"ends, or says nothing in time, when asked to {method}")


def _last_line(errors: IO[bytes]) -> str:
    errors.seek(0)
    lines = errors.read().decode("utf-8", "replace").strip().splitlines()
    return f": {lines[-1][:_MAX_ERROR].rstrip('.')}" if lines else ""
