"""The session in README.md, typed as it stands at a terminal. A line `…` stands for lines that are left out there."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MARK = "@@@"
VARIES = [
    (r"/\S*(?=/quaid\b)", "<home>"),
    (r"\b\d\.\d\d\b", "<score>"),
    (r"\b01[0-9a-hjkmnp-tv-z]{24}\b", "<id>"),
    (r"\b\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\dZ)?)?", "<time>"),
    (r"(?<=(?:facts|sodes)/)\d{4}/\d\d", "<month>"),
    (r"\b\d\d-\d{4}-(?=[0-9a-f]{6}\b)", "<start>-"),
    (r"-[0-9a-hjkmnp-tv-z]{5}(?=\.md|$)", "-<tail>"),
    (r"\b[0-9a-f]{7,10}\b", "<commit>"),
]


def read_page(page: str) -> str:
    text = (ROOT / page).read_text(encoding="utf-8")
    return text.partition("\n## A session\n")[2].partition("\n## ")[0] if page == "README.md" else text


def sessions(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield (command, what is shown) of each command."""
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        for part in re.split(r"(?m)^\$ ", block)[1:]:
            lines = part.rstrip("\n").split("\n")
            ends = lines.index("END") if "<<'END'" in lines[0] else 0
            yield "\n".join(lines[: ends + 1]), lines[ends + 1 :]


def type_all(commands: list[str], folder: Path) -> list[list[str]]:
    """Return what a terminal shows of each of `commands`, which are typed in one shell."""
    quaid = folder / "bin" / "quaid"
    quaid.parent.mkdir()
    quaid.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m quaid.cli.main "$@"\n')
    quaid.chmod(0o755)
    environ = {
        "HOME": str(folder), "PATH": f"{quaid.parent}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT),
        "QUAID_EMBEDDING_PROVIDER": "none", "GIT_PAGER": "cat", "NO_COLOR": "1", "COLUMNS": "120", "TERM": "dumb",
        "GIT_AUTHOR_NAME": "Maya", "GIT_AUTHOR_EMAIL": "maya@example.org",
        "GIT_COMMITTER_NAME": "Maya", "GIT_COMMITTER_EMAIL": "maya@example.org",
    }  # fmt: skip
    script = "\n".join(f"{command}\necho {MARK}" for command in commands)
    screen, terminal = pty.openpty()
    with subprocess.Popen(
        ["bash", "-c", script], cwd=folder, env=environ, stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal
    ):
        os.close(terminal)
        shown = b"".join(iter(lambda: _read(screen), b"")).decode().replace("\r\n", "\n")
    os.close(screen)
    return [part.strip("\n").split("\n") for part in shown.split(f"{MARK}\n")]


def _read(screen: int) -> bytes:
    try:
        return os.read(screen, 65536)
    except OSError:  # nobody holds the terminal any more
        return b""


def normal(line: str) -> str:
    for pattern, placeholder in VARIES:
        line = re.sub(pattern, placeholder, line)
    return line.rstrip()


@pytest.mark.slow
@pytest.mark.parametrize("page", ["README.md", "docs/tutorial/first-memory.md"])
def test_the_session_goes_as_the_page_shows(page: str, tmp_path: Path) -> None:
    typed = list(sessions(read_page(page)))
    assert len(typed) > 5
    shown = type_all([command for command, _ in typed], tmp_path)
    for (command, expected), actual in zip(typed, shown, strict=False):
        # Without an embedding model, which a test does not download, recall says so.
        lines = [normal(line) for line in actual if line and not line.startswith("quaid: ")]
        if not expected:
            assert lines == [], command
        *heads, last = [normal(line) for line in expected if line] or [""]
        if last == "…":
            assert lines[: len(heads)] == heads, command
        elif expected:
            assert lines == [*heads, last], command
