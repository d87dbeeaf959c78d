"""`quaid edit` and `quaid open`."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from urllib.parse import quote

from quaid.capture.writer import WriteResult
from quaid.cli.change_output import tell_written
from quaid.cli.invocation import Invocation
from quaid.cli.options import Reference, choosing
from quaid.cli.terminal import has_terminal
from quaid.errors import QuaidError
from quaid.memory import Memory

_STARTED_S = 2.0
"""A program that has not failed within this time is taken to run."""


def run_edit(invocation: Invocation, ref: Reference) -> None:
    """Edit a note in $VISUAL or $EDITOR; what you save becomes a commit in your name.

    The editor has a copy. What changes in the note meanwhile is merged with it. If the editor fails or you save
    nothing, nothing is changed.

    Examples:
      quaid edit 7k3qd
      EDITOR="code --wait" quaid edit "[[Maya Chen]]"
    """
    command = _find_editor()
    with invocation.open() as memory:
        view = choosing(invocation, memory, ref, memory.get)
        path = view.document.path
        before = (memory.root / path).read_bytes() if view.turn is not None or view.heading else view.source
        with _copied(memory, path, before) as copy:
            try:
                code = subprocess.run([*command, str(copy)], check=False).returncode
            except OSError as error:
                what = f"{command[0]} could not be started ({error.strerror}): nothing was changed."
                raise _EditError(what) from error
            if code:
                raise _EditError(f"{command[0]} ended with {code}: nothing was changed.")
            after = copy.read_bytes() if copy.is_file() else b""
            if after == before:
                tell_written(invocation, WriteResult(view.document.id, path, "unchanged", view.document.title))
                return
            written = memory.writer.save_edit(path, before, after)
    tell_written(invocation, written)


def run_open(invocation: Invocation, ref: Reference) -> None:
    """Open a note in Obsidian, if the vault is one of Obsidian's, else in the program for its kind of file.

    In a pipe the path is printed and nothing is opened.

    Examples:
      quaid open "Maya Chen"
      code $(quaid open 7k3qd)
    """
    with invocation.open() as memory:
        document = choosing(invocation, memory, ref, memory.get).document
        path = memory.root / document.path
        has_obsidian = any((folder / ".obsidian").is_dir() for folder in (memory.root, *memory.root.parents))
    if invocation.as_json or not has_terminal():
        invocation.respond(str(path), path=path)
        return
    opener = _find_opener()
    if opener is None:
        invocation.print(str(path))
        invocation.notify("No program could be found to open it with.")
        return
    target = f"obsidian://open?path={quote(str(path), safe='')}" if has_obsidian and _has_obsidian() else str(path)
    _start([*opener, target])
    invocation.print(str(path))


class _EditError(QuaidError):
    code = "edit"


def _find_editor() -> list[str]:
    for name in ("VISUAL", "EDITOR"):
        if command := os.environ.get(name, "").strip():
            try:
                words = shlex.split(command)
            except ValueError as error:
                raise _EditError(f"${name} is {command!r}, which is not a command ({error}). Correct it.") from error
            if words and shutil.which(words[0]):
                return words
            raise _EditError(f"${name} names {words[0]!r}, which is not a program here. Name another: EDITOR=nano")
    raise _EditError("No editor is set. Name one: EDITOR=nano quaid edit REF")


@contextmanager
def _copied(memory: Memory, path: str, data: bytes) -> Iterator[Path]:
    """A copy of the note for the editor. What somebody has written into it is lost by no error."""
    folder = memory.state / "edits"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    copy = Path(mkdtemp(dir=folder)) / Path(path).name
    copy.write_bytes(data)
    try:
        yield copy
    except QuaidError as error:
        if copy.is_file() and copy.read_bytes() not in {data, b""}:
            saved = _EditError(f"{str(error).rstrip('.')}. What you wrote is kept in {copy}")
            saved.code, saved.exit_code = error.code, error.exit_code
            raise saved from error
        shutil.rmtree(copy.parent, ignore_errors=True)
        raise
    shutil.rmtree(copy.parent, ignore_errors=True)


def _find_opener() -> list[str] | None:
    """Return the command that opens a file or an address as a click would."""
    if sys.platform == "darwin":
        return ["open"]
    if sys.platform == "win32":
        return ["explorer"]
    if wslview := shutil.which("wslview"):
        return [wslview]
    has_display = bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    opener = shutil.which("xdg-open") if has_display else None
    return [opener] if opener else None


def _has_obsidian() -> bool:
    """Return whether an address of Obsidian would open something."""
    if sys.platform == "darwin":
        return any(
            (folder / "Obsidian.app").exists() for folder in (Path("/Applications"), Path.home() / "Applications")
        )
    if shutil.which("obsidian"):
        return True
    if asked := shutil.which("xdg-mime"):
        query = [asked, "query", "default", "x-scheme-handler/obsidian"]
        return bool(subprocess.run(query, capture_output=True, check=False).stdout.strip())
    return False


def _start(command: list[str]) -> None:
    nowhere = subprocess.DEVNULL
    try:
        started = subprocess.Popen(command, start_new_session=True, stdin=nowhere, stdout=nowhere, stderr=nowhere)
        code = started.wait(_STARTED_S)
    except subprocess.TimeoutExpired:
        return
    except OSError as error:
        raise _EditError(f"{command[0]} could not be started ({error.strerror}).") from error
    if code:
        raise _EditError(f"{command[0]} could not open {command[-1]} (it ended with {code}).")
