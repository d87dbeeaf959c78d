"""`quaid edit`, `open` and `view`."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Annotated
from urllib.parse import quote

import typer

from quaid.capture.writer import WriteResult
from quaid.cli.change_output import tell_written
from quaid.cli.invocation import Invocation
from quaid.cli.options import Reference, choosing, flag, option
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
    name = next((name for name in ("VISUAL", "EDITOR") if os.environ.get(name, "").strip()), None)
    if name is None:
        raise _EditError("No editor is set. Name one: EDITOR=nano quaid edit REF")
    try:
        command = shlex.split(os.environ[name].strip())
    except ValueError as error:
        what = f"${name} is {os.environ[name].strip()!r}, which is not a command ({error}). Correct it."
        raise _EditError(what) from error
    if not command or shutil.which(command[0]) is None:
        raise _EditError(f"${name} names {command[0]!r}, which is not a program here. Name another: EDITOR=nano")
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
            written = WriteResult(view.document.id, path, "unchanged", view.document.title)
            if after != before:
                written = memory.writer.save_edit(path, before, after)
    tell_written(invocation, written)


class _EditError(QuaidError):
    code = "edit"


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


def run_open(invocation: Invocation, ref: Reference) -> None:
    """Open a note in Obsidian, if the vault is one of Obsidian's, else in the program for its kind of file.

    In a pipe the path is printed and nothing is opened.

    Examples:
      quaid open "Maya Chen"
      code $(quaid open 7k3qd)
    """
    with invocation.open() as memory:
        path = memory.root / choosing(invocation, memory, ref, memory.get).document.path
        is_obsidians = any((folder / ".obsidian").is_dir() for folder in (memory.root, *memory.root.parents))
    invocation.respond(str(path), path=path)
    if invocation.as_json or not has_terminal():
        return
    opener = {"darwin": "open", "win32": "explorer"}.get(sys.platform) or shutil.which("wslview")
    if opener is None and (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        opener = shutil.which("xdg-open")
    if opener is None:
        invocation.notify("No program could be found to open it with.")
        return
    target = f"obsidian://open?path={quote(str(path), safe='')}" if is_obsidians and _has_obsidian() else str(path)
    nowhere = subprocess.DEVNULL
    try:
        started = subprocess.Popen(
            [opener, target], start_new_session=True, stdin=nowhere, stdout=nowhere, stderr=nowhere
        )
        code = started.wait(_STARTED_S)
    except subprocess.TimeoutExpired:
        return
    except OSError as error:
        raise _EditError(f"{opener} could not be started ({error.strerror}).") from error
    if code:
        raise _EditError(f"{opener} could not open {target} (it ended with {code}).")


def _has_obsidian() -> bool:
    """Return whether an address of Obsidian would open something."""
    if sys.platform == "darwin":
        folders = (Path("/Applications"), Path.home() / "Applications")
        return any((folder / "Obsidian.app").exists() for folder in folders)
    if shutil.which("obsidian"):
        return True
    if asked := shutil.which("xdg-mime"):
        query = [asked, "query", "default", "x-scheme-handler/obsidian"]
        return bool(subprocess.run(query, capture_output=True, check=False).stdout.strip())
    return False


def run_view(
    invocation: Invocation,
    ref: Annotated[
        str | None, typer.Argument(metavar="REF", help="Begin with this memory.", show_default=False)
    ] = None,
    browser: Annotated[bool, flag("Open the browser, or only print the address.", "--browser/--no-browser")] = True,
    port: Annotated[int | None, option("N", "The port, 7438 else; 0 picks a free one.", show_default=False)] = None,
) -> None:
    """Look at the memory in your browser: ask it, read a note, see where it comes from and how it has changed.

    The page is served to this machine only, and to those who have the address that is printed. It ends with Ctrl-C, or
    after an hour without a request.

    Examples:
      quaid view
      quaid view "Maya Chen"
      quaid view --no-browser --port 0
    """
    from quaid.web import server, templating

    path = "/"
    with invocation.open() as memory:
        root = memory.root
        if ref is not None:
            path = templating.memory_path(choosing(invocation, memory, ref, memory.get).reference)
    server.serve(root, server.PORT if port is None else port, path, with_browser=browser)
