"""Running the commands that a host would run, to see how they behave: MCP servers by JSON-RPC, hooks by their payload.

The protocol is spoken by hand: a client library would start servers in its own way and hide their faults.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any

from quaid.agents.config_entries import command_line
from quaid.errors import HookProofError

PROTOCOL = "2025-11-25"
"""The last revision that begins with a handshake; every host of today speaks it or one before it."""
BARE_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"
"""The PATH of programs that are started from a desktop."""
ANSWER_S = 60.0
"""The time for a server to start and answer, and for a hook whose config names none."""
EXIT_S = 10.0
"""The time for a server to end when its host is gone: one that stays would be one of hundreds."""
_MAX_ERROR = 300


@dataclass(frozen=True, slots=True)
class Command:
    """A command that a host runs: its words, its environment beside the host's own, and its time."""

    words: tuple[str, ...]
    environ: Mapping[str, str]
    timeout_s: float

    @classmethod
    def from_config(cls, handler: Any) -> Command:
        """The command of a server or hook as configs have it. A hook without `args` is a line for the shell.

        Raises:
            HookProofError: it names no command.
        """
        command, arguments = handler.get("command"), handler.get("args")
        if not isinstance(command, str) or not command:
            raise HookProofError("Its config names no command. Correct that with: quaid install")
        is_line = handler.get("type") == "command" and not isinstance(arguments, list)
        words = ("/bin/sh", "-c", command) if is_line else (command, *map(str, arguments or ()))
        environ = handler.get("env") if isinstance(handler.get("env"), dict) else {}
        # Hosts count a hook's time in seconds and a server's in whatever they like.
        limit = handler.get("timeout") if handler.get("type") == "command" else None
        return cls(words, environ, float(limit) if isinstance(limit, int | float) else ANSWER_S)

    def without_vault(self) -> Command:
        """The same command without the vault that it names, so that the environment can name another."""
        words = list(self.words)
        while "--vault" in words[:-1]:
            at = words.index("--vault")
            del words[at : at + 2]
        environ = {name: value for name, value in self.environ.items() if name != "QUAID_HOME"}
        return Command(tuple(words), environ, self.timeout_s)

    def __str__(self) -> str:
        return command_line({"command": self.words[0], "args": list(self.words[1:])})


def list_tools(command: Command, environ: Mapping[str, str]) -> tuple[str, ...]:
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
            _ask(process, 1, "initialize", hello)
            _send(process, {"method": "notifications/initialized"})
            tools = tuple(tool["name"] for tool in _ask(process, 2, "tools/list", {})["tools"])
            assert process.stdin
            process.stdin.close()
            process.wait(EXIT_S)
        except subprocess.TimeoutExpired as error:
            raise HookProofError(f"{command} answers, and does not end within {EXIT_S:g} s of its input.") from error
        except (ValueError, KeyError, TypeError, OSError) as error:
            raise HookProofError(f"{command} {_reason(error)}{_last_line(errors)}.") from error
        finally:
            alarm.cancel()
            process.kill()
    return tools


def run_hook(command: Command, payload: Mapping[str, object], environ: Mapping[str, str]) -> str:
    """Return what a hook prints when it is given `payload`, as its host would.

    Raises:
        HookProofError: it does not start, fails, or takes longer than its host waits.
    """
    with tempfile.TemporaryFile() as errors:
        try:
            done = subprocess.run(
                command.words,
                input=json.dumps(payload).encode(),
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**environ, **command.environ},
                timeout=command.timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise HookProofError(f"{command} takes longer than the {command.timeout_s:g} s it is given.") from error
        except OSError as error:
            raise HookProofError(f"{command} cannot be started ({error.strerror}).") from error
        if done.returncode:
            raise HookProofError(f"{command} leaves with exit code {done.returncode}{_last_line(errors)}.")
    return done.stdout.decode("utf-8", "replace")


def _start(command: Command, environ: Mapping[str, str], errors: IO[bytes]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            command.words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env={**environ, **command.environ},
            bufsize=0,
        )
    except OSError as error:
        raise HookProofError(f"{command} cannot be started ({error.strerror}).") from error


def _send(process: subprocess.Popen[bytes], message: Mapping[str, object]) -> None:
    assert process.stdin
    process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def _ask(process: subprocess.Popen[bytes], number: int, method: str, params: Mapping[str, object]) -> dict[str, Any]:
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


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"says something that is not JSON ({error.doc.strip()[:60]!r})"
    if isinstance(error, ValueError):
        return str(error)
    return "ends before it is asked" if isinstance(error, OSError) else "answers in a form that is not MCP's"


def _last_line(errors: IO[bytes]) -> str:
    errors.seek(0)
    lines = errors.read().decode("utf-8", "replace").strip().splitlines()
    return f": {lines[-1][:_MAX_ERROR].rstrip('.')}" if lines else ""
