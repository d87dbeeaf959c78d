"""Act out sessions of the command line, as a user would see them.

A file in tests/transcripts/ is a shell session: lines that begin with `$ ` are typed, what follows is what comes
back. `quaid …` alone runs in this process; anything with a pipe or another program runs in a shell. What differs from
run to run, or from one tuning to the next, is a placeholder: <id>, <today>, <time>, <commit>, <vault>, <took>, <score> …
Rewrite all with --snapshot-update.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from datetime import UTC, datetime
from pathlib import Path

import pytest

from quaid.cli.main import main
from quaid.place import state_folder

SHELL = re.compile(r"[|<>&;*$]")


def placeholders(today: str) -> list[tuple[str, str]]:
    """Patterns of what differs from run to run. Only today's dates: those of the conversations stay."""
    day = today.replace("-", "/")
    return [
        (r"\b[0-9a-f]{64}\b", "<sha256>"),
        (r"\b[0-9a-f]{40}\b", "<commit>"),
        (r"(commit +|, at |  at  )[0-9a-f]{10}", r"\1<commit>"),
        (r"(?m)^( *)[0-9a-f]{10}(?=  )", r"\1<commit>"),
        (r"01[0-9a-hjkmnp-tv-z]{24}", "<id>"),
        (r"-[0-9a-hjkmnp-tv-z]{5}\.md", "-<tail>.md"),
        (r"(replaced by \S+|superseded_by set to \[\[\S+|\"by\": \"\S+)-[0-9a-hjkmnp-tv-z]{5}\b", r"\1-<tail>"),
        (rf"episodes/{day}-\d{{4}}", "episodes/<minute>"),
        (r"(?<=facts/)\d{4}/\d\d", "<month>"),
        (rf"{today}[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00)?", "<time>"),
        (today, "<today>"),
        (r"\b\d+(\.\d+)? (ms|s)\b", "<took>"),
        (r'(?<="took_ms": )[\d.]+|(?<="took_s": )[\d.]+', "<took>"),
        (r'(?<=score )\d\.\d\d\b|(?<="score": )[\d.]+', "<score>"),
        (r'(?<="doubt": )(null|"[^"]*")(?=, "as_of")', "<doubt>"),
        (r"(?m)^quaid: in doubt: .*\n", ""),
        (r'(?<="evidence": )\{[^}]*\}', "<evidence>"),
        (r"\b[\d.]+ (kB|MB|GB)\b", "<size>"),
        (r"git version [\d.]+", "git version <version>"),
        (r"SQLite [\d.]+ with FTS5 and vec0 v[\d.]+", "SQLite <version> with FTS5 and vec0 <version>"),
    ]


class Session:
    """A vault and a working folder in a temporary place, and the lines typed there."""

    def __init__(self, folder: Path) -> None:
        self.vault = folder / "vault"
        self.folder = folder

    def run(self, line: str) -> str:
        """What the screen shows after `line`, placeholders put in."""
        words = [] if SHELL.search(line) else shlex.split(line)
        code, output = self._quaid(words[1:]) if words[:1] == ["quaid"] else self._shell(line)
        if output and not output.endswith("\n"):
            output += "\n"
        return self._normal(output) + (f"[exit {code}]\n" if code else "")

    def _quaid(self, arguments: list[str]) -> tuple[int, str]:
        screen = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
        with redirect_stdout(screen), redirect_stderr(screen):
            code = main(arguments)
        return code, screen.buffer.getvalue().decode()

    def _shell(self, line: str) -> tuple[int, str]:
        done = subprocess.run(
            ["bash", "-c", line], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=60
        )
        return done.returncode, done.stdout.decode()

    def _normal(self, text: str) -> str:
        text = (
            text.replace(str(state_folder(self.vault)), "<state>")
            .replace(str(self.vault), "<vault>")
            .replace(str(self.folder), "<folder>")
        )
        for pattern, placeholder in placeholders(f"{datetime.now(UTC):%Y-%m-%d}"):
            text = re.sub(pattern, placeholder, text)
        return text


def act_out(path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Type the lines of a transcript in `folder`, and hold what comes back against it."""
    session = Session(folder)
    monkeypatch.chdir(folder)
    script = folder / "bin" / "quaid"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m quaid.cli.main "$@"\n')
    script.chmod(0o755)
    for name, value in {
        "HOME": str(folder),
        "PATH": f"{script.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(Path(__file__).parents[1]),
        "QUAID_HOME": str(session.vault),
        "QUAID_CONFIG_DIR": str(folder / "config"),
        "QUAID_STATE_DIR": str(folder / "state"),
        "QUAID_EMBEDDING_PROVIDER": "none",
        "QUAID_MODELS_PROVIDER": "none",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_AUTHOR_NAME": "Maya",
        "GIT_AUTHOR_EMAIL": "maya@localhost",
        "GIT_COMMITTER_NAME": "Maya",
        "GIT_COMMITTER_EMAIL": "maya@localhost",
        "NO_COLOR": "1",
        "COLUMNS": "100",
    }.items():
        monkeypatch.setenv(name, value)
    expected = path.read_text(encoding="utf-8")
    actual = "\n".join(
        f"{talk}$ {line}\n{session.run(line)}"
        for talk, line in re.findall(r"((?:^# .*\n)*)^\$ (.*)$", expected, re.MULTILINE)
    )
    if request.config.getoption("--snapshot-update"):
        path.write_text(actual, encoding="utf-8")
    assert actual == path.read_text(encoding="utf-8")
