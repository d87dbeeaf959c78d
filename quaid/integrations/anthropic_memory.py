"""Anthropic's memory tool (`memory_20250818`): what the model calls /memories is a folder of notes in the vault.

The SDK's own tool carries a command out on a copy of the folder first, which gives the texts that the model knows; then
the vault does the same. A file that does not end in .md is a note with .md behind its name: Obsidian shows it, and
recall finds it.
"""

import os
import posixpath
import re
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
from anthropic.tools.memory import BetaLocalFilesystemMemoryTool

from quaid.errors import QuaidError
from quaid.memory import Memory
from quaid.resident.async_memory import AsyncMemory

_ROOT = "/memories"
_ENDING = re.compile(r".*\.[A-Za-z]{1,8}", re.DOTALL)


class _OverVault:
    def __init__(self, vault: str | os.PathLike[str] | None = None, *, folder: str = "memories", **more: Any) -> None:
        super().__init__(**more)
        self.memory, self._folder = AsyncMemory(vault), folder


class QuaidMemoryTool(_OverVault, BetaAbstractMemoryTool):
    """The tool for `client.beta.messages.run_tools`. `vault` is found as `Memory.open` finds it."""

    def _run(self, command: Any) -> str:
        return self.memory.call(partial(_carry_out, folder=self._folder, command=command))

    view = create = str_replace = insert = delete = rename = _run


class QuaidAsyncMemoryTool(_OverVault, BetaAsyncAbstractMemoryTool):
    """The same for `AsyncAnthropic`."""

    async def _run(self, command: Any) -> str:
        return await self.memory.run(partial(_carry_out, folder=self._folder, command=command))

    view = create = str_replace = insert = delete = rename = _run


def _carry_out(memory: Memory, folder: str, command: Any) -> str:
    named = [getattr(command, name, "") for name in ("path", "old_path", "new_path")]
    path, old, new = (posixpath.normpath(each).removeprefix(_ROOT).lstrip("/") if each else "" for each in named)
    if outside := [each for each in named if each and not f"{posixpath.normpath(each)}/".startswith(f"{_ROOT}/")]:
        raise ToolError(f"Path must start with /memories, got: {outside[0]}")
    notes = memory.notes
    files = {file_name(each.removeprefix(f"{folder}/")): each for each in notes.list(folder)}
    texts = {name: notes.read(each) for name, each in files.items()}
    with TemporaryDirectory(prefix="memory-tool-", dir=memory.state) as copy:
        tool = BetaLocalFilesystemMemoryTool(copy)
        for name, note in texts.items():
            file, text = Path(copy, "memories", name), note.shown.encode()
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("wb") as opened:  # of other files than its own the command needs no more than the size
                opened.write(text if name == path else b"")
                opened.truncate(len(text))
        answer = str(tool.execute(command))
    place, expected = files.get(path or old) or f"{folder}/{path or old}", texts[path].hash if path in texts else None
    try:
        match command.command:
            case "create":
                notes.create(f"{folder}/{note_name(path)}", command.file_text)
            case "str_replace":
                notes.edit(place, command.old_str, command.new_str, expected=expected)
            case "insert":
                notes.insert(place, command.insert_line, command.insert_text, expected=expected)
            case "delete":
                notes.delete(place)
            case "rename":
                notes.rename(place, f"{folder}/{note_name(new) if old in files else new}")
    except QuaidError as error:
        raise ToolError(str(error)) from error
    return answer


def note_name(path: str) -> str:
    """Return the name of the note that is the file `path`."""
    if path.endswith(".md") and file_name(path) == path:
        return path
    return f"{path}.md" if _ENDING.fullmatch(posixpath.basename(path)) else f"{path}..md"


def file_name(path: str) -> str:
    """Return the name of the file that the note at `path` is."""
    stem = path.removesuffix(".md")
    return stem.removesuffix(".") if stem.endswith(".") or _ENDING.fullmatch(posixpath.basename(stem)) else path
