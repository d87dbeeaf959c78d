"""The real Claude Code, with a home of its own and Quaid's plugin, talking to a stand-in for its API."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from messages_api import MessagesApi

PLUGIN = Path(__file__).parents[2] / "hooks" / "claude-code"
LIMIT_S = 60.0
"""No session and no command takes longer; usual are two seconds."""


_BINARY = shutil.which(os.environ.get("QUAID_CLAUDE_BIN") or "claude")
"""Looked for once: a calm test has no QUAID_… any more."""


def find_claude() -> str:
    if _BINARY is None:
        pytest.skip("needs Claude Code: put `claude` on PATH, or name it in QUAID_CLAUDE_BIN")
    return _BINARY


def find_quaid() -> Path:
    """The command as it is installed beside this interpreter: what the plugin calls."""
    script = Path(sys.executable).parent / "quaid"
    if not script.exists():
        pytest.skip("needs the command `quaid` beside this Python: pip install -e .")
    return script


class ClaudeCode:
    """One user's installation: `home` is theirs, `project` where they work, `environ` what their shell has set."""

    def __init__(self, folder: Path, api: MessagesApi, environ: Mapping[str, str]) -> None:
        self.binary = find_claude()
        self.home, self.project = folder / "home", folder / "project"
        self.home.mkdir(parents=True)
        self.project.mkdir()
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("CLAUDE", "ANTHROPIC"))}
        self.environ = kept | {
            "HOME": str(self.home),
            "PATH": f"{find_quaid().parent}{os.pathsep}{os.environ['PATH']}",
            "CLAUDE_CONFIG_DIR": str(self.home / ".claude"),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_MAX_RETRIES": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "ENABLE_TOOL_SEARCH": "false",
            "MCP_CONNECTION_NONBLOCKING": "false",  # on a busy machine the first prompt came before the tools
            "MCP_CONNECT_TIMEOUT_MS": f"{LIMIT_S * 1000:.0f}",
            "ANTHROPIC_BASE_URL": api.url,
            "ANTHROPIC_API_KEY": "sk-test",
            **environ,
        }

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([self.binary, *arguments], cwd=self.project, env=self.environ, capture_output=True,
                              text=True, timeout=LIMIT_S, check=False)  # fmt: skip

    @contextmanager
    def session(self, *options: str, plugin: Path | None = PLUGIN) -> Iterator[Session]:
        """A session with the plugin (None: with those that are installed), until its owner leaves."""
        command = [self.binary, "-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]
        command += ["--plugin-dir", str(plugin)] if plugin else []
        with (self.home / "stderr").open("a") as said:
            process = subprocess.Popen([*command, *options], cwd=self.project, text=True,
                                       env=self.environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said)  # fmt: skip
        alarm = threading.Timer(LIMIT_S, process.kill)
        alarm.start()
        try:
            yield Session(process, self.home / "stderr")
            assert process.stdin is not None
            process.stdin.close()
            assert process.wait() == 0, (self.home / "stderr").read_text()
        finally:
            alarm.cancel()
            process.kill()
            process.wait()


class Session:
    """What its owner types, and what comes back: `events` in the order they came."""

    def __init__(self, process: subprocess.Popen[str], stderr: Path) -> None:
        self._process = process
        self._stderr = stderr
        self.events: list[dict] = []

    def say(self, prompt: str) -> dict:
        """The result of one prompt, after all the tools it took."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        message = {"type": "user", "message": {"role": "user", "content": prompt}}
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            self.events.append(json.loads(line))
            if self.events[-1]["type"] == "result":
                return self.events[-1]
        raise AssertionError(f"Claude Code left before it answered: {self._stderr.read_text()}")
