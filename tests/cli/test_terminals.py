"""A terminal as stderr and a pipe as stdout: progress bars are drawn, and the answer is the same as without them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from vaults import copy_of, copy_vault

from quaid.cli.app import COMMANDS

# One process imports the command line, draws bars at once, and forks for each line it reads: [arguments, is_terminal].
RUNNER = """
import json, os, pty, sys, tempfile, threading
from quaid.cli import app, main, terminal
terminal.ProgressBar.__init__.__kwdefaults__["after_s"] = 0.0
devnull = os.open(os.devnull, os.O_RDWR)
app.build_group()
for line in sys.stdin:
    arguments, is_terminal = json.loads(line)
    with tempfile.TemporaryFile() as out:
        reading, writing = pty.openpty() if is_terminal else os.pipe()
        if not (child := os.fork()):
            for stream, number in ((devnull, 0), (out.fileno(), 1), (writing, 2)):
                os.dup2(stream, number)
            sys.stdin, sys.stdout, sys.stderr = (open(n, m, closefd=False) for n, m in enumerate("rww"))
            os._exit(main.run(arguments))
        os.close(writing)
        err = bytearray()
        try:
            while part := os.read(reading, 65536):
                err += part
        except OSError:  # the last process has closed the terminal
            pass
        os.close(reading)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        out.seek(0)
        print(json.dumps([code, out.read().decode(), err.decode("utf-8", "replace")]), flush=True)
"""
LINES = {
    "remember": ["Maya keeps her spare key in the blue shed"], "extract": ["TALK"], "analyze": ["TALK"],
    "import": ["NOTES"], "export": ["NEW.jsonl"], "recall": ["What milk does Maya take?", "--as-of", "HEAD"],
    "search": ["oat milk"], "list": [], "get": ["01milk"], "edit": ["01milk"], "open": ["01milk"],
    "forget": ["01kiln"], "restore": ["01kiln"], "link": ["Maya", "works_at", "Acme"], "note": ["call", "back"],
    "log": [], "diff": ["HEAD~1"], "undo": ["--last"], "bisect": ["--query", "oat milk", "--expect", "01milk"],
    "branch": ["list"], "sync": [], "reindex": [], "verify": [], "conflicts": [], "remote": ["list"], "push": [],
    "pull": [], "janitor": ["run"], "project": ["list"], "docs": ["list"], "context": [], "status": [], "doctor": [],
    "stats": [], "why": ["01milk"], "audit": [], "eval": ["QUESTIONS"], "config": [], "purge": ["--text", "kiln"],
    "help": ["recall"], "version": [], "completion": ["bash"], "init": ["NEW"], "trust": ["VAULT"],
    "clone": ["VAULT", "NEW-clone"], "install": ["--dry-run"], "uninstall": ["--dry-run"],
}  # fmt: skip
TALKS_ALWAYS = {"demo", "hook", "mcp", "serve", "view", "watch"}
"""Commands that serve until they are stopped, answer a program in its own form, or run the others."""
SHOW_PROGRESS = {"extract", "janitor", "reindex", "eval", "import"}
"""Those of the lines above that take long enough to draw a bar, if bars are drawn at once."""


class Place:
    """A vault and the files of its owner, with the command line beside it."""

    def __init__(self, root: Path, environ: dict[str, str]) -> None:
        self.root = root
        self._files = root.parent / f"{root.name}-files"
        (self._files / "notes").mkdir(parents=True)
        (self._files / "notes/a.md").write_text("# Biscuit\n\nBiscuit is a quokka.\n")
        (self._files / "talk.txt").write_text("Maya: We adopted a quokka.\nJon: How lovely!\n")
        (self._files / "questions.md").write_text("- What milk does Maya take? → [[milk]]\n")
        self._process = subprocess.Popen(
            [sys.executable, "-c", RUNNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ
        )

    def run(self, name: str, *more: str, is_terminal: bool) -> tuple[int, str, str]:
        new, notes = self._files / "new", self._files / "notes"
        names = {"TALK": self._files / "talk.txt", "NOTES": notes, "QUESTIONS": self._files / "questions.md"}
        names |= {"NEW": new, "NEW.jsonl": self._files / "new.jsonl", "NEW-clone": self._files / "clone"}
        names["VAULT"] = self.root
        words = [str(names.get(word, word)) for word in LINES[name]]
        self._process.stdin.write(json.dumps([["--vault", str(self.root), name, *words, *more], is_terminal]) + "\n")
        self._process.stdin.flush()
        code, out, err = json.loads(self._process.stdout.readline())
        return code, out, err

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait(30)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Place, Place]]:
    folder = tmp_path_factory.mktemp("terminals")
    vault = copy_vault(folder / "one")
    for number, (name, text) in enumerate({"milk": "Maya takes oat milk.", "kiln": "The kiln is hot."}.items()):
        vault.write(
            f"facts/{name}.md", f"---\nid: 01{name}\ntype: fact\ncreated: 2026-11-2{number}T10:00:00Z\n---\n{text}\n"
        )
    vault.save()
    environ = {**os.environ, "HOME": str(folder), "EDITOR": "true", "QUAID_EMBEDDING_PROVIDER": "none", "TERM": "xterm"}
    environ |= {"GIT_AUTHOR_NAME": "Maya", "GIT_AUTHOR_EMAIL": "m@example.org"}
    environ |= {"GIT_COMMITTER_NAME": "Maya", "GIT_COMMITTER_EMAIL": "m@example.org"}
    other = copy_of(vault.root, folder / "two")
    both = Place(vault.root, environ), Place(other.root, environ)
    yield both
    for place in both:
        place.close()


def shape_of(value: Any) -> Any:
    """What a program relies on: names and types."""
    if isinstance(value, dict):
        return {name: shape_of(item) for name, item in value.items()}
    return [shape_of(item) for item in value] if isinstance(value, list) else type(value).__name__


def test_every_command_is_here() -> None:
    assert set(LINES) | TALKS_ALWAYS == set(COMMANDS)


@pytest.mark.matrix
@pytest.mark.parametrize("name", LINES)
def test_the_answer_is_that_of_a_pipe(places: tuple[Place, Place], name: str) -> None:
    code, out, err = places[0].run(name, "--json", is_terminal=True)
    assert "Traceback" not in err
    assert ("\x1b[?25l" in err) >= (name in SHOW_PROGRESS), err  # a bar hides the cursor
    other_code, other_out, other_err = places[1].run(name, "--json", is_terminal=False)
    assert "\x1b" not in out + other_out + other_err
    assert (code, out.count("\n")) == (other_code, other_out.count("\n")), (err, other_err)
    if out.startswith("{"):
        assert [shape_of(json.loads(line)) for line in out.splitlines()] == [
            shape_of(json.loads(line)) for line in other_out.splitlines()
        ]


@pytest.mark.matrix
@pytest.mark.parametrize("name", LINES)
def test_quiet_is_empty_label_but_what_went_wrong(places: tuple[Place, Place], name: str) -> None:
    code, _, err = places[0].run(name, "-q", is_terminal=True)
    if code == 0:
        assert err == ""
    assert len([line for line in err.splitlines() if line.startswith("quaid: ")]) == len(err.splitlines())
