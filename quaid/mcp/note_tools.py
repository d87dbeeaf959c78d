"""The notes of agents as tools: what `memory.notes` does, one call each."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Annotated

from mcp.types import CallToolResult
from pydantic import Field

from quaid.capture.notes import Notes
from quaid.capture.writer import WriteResult
from quaid.mcp import results
from quaid.mcp.tools import ADDS, ATTEMPTS, READS, REMOVES, Tool, Tools
from quaid.memory import Memory
from quaid.text.quoting import PREFACE, neutralise
from quaid.vault.notes import content_hash

MAX_LISTED = 500
Folder = Annotated[str, Field(max_length=500, description="By default all.")]
Path = Annotated[str, Field(min_length=1, max_length=500, description="Its path: Trips/Lisbon.md.")]
Text = Annotated[str, Field(max_length=200_000, description="Markdown.")]
Line = Annotated[int, Field(ge=0, description="Behind this line; 0: before the first.")]
Expected = Annotated[
    str | None, Field(max_length=64, description="The `hash` that you read: a note changed since is left alone.")
]
Changed = Annotated[CallToolResult, results.NOTE_WRITE]


class NoteTools(Tools):
    """The tools of the notes that agents write."""

    def tools(self) -> Iterator[Tool]:
        yield Tool(self.notes_list, "List notes", READS)
        yield Tool(self.notes_read, "Read a note", READS)
        yield Tool(self.notes_create, "Write a new note", ADDS)
        yield Tool(self.notes_edit, "Edit a note", REMOVES)
        yield Tool(self.notes_insert, "Insert lines into a note", ADDS)
        yield Tool(self.notes_rename, "Rename a note or folder", REMOVES)
        yield Tool(self.notes_delete, "Delete a note or folder", REMOVES)

    async def notes_list(self, folder: Folder = "") -> Annotated[CallToolResult, results.NOTES]:
        """The paths of the notes in a folder and below it. USE WHEN: you look for a page by its place."""
        found = await self._workers.reading.run(lambda memory: memory.notes.list(folder))
        return results.tool_result(results.NOTES, paths=found[:MAX_LISTED], left_out=max(0, len(found) - MAX_LISTED))

    async def notes_read(self, path: Path) -> Annotated[CallToolResult, results.NOTE_TEXT]:
        """One note as it is written, with its `hash`. USE WHEN: you are about to edit it."""
        note = await self._workers.reading.run(lambda memory: memory.notes.read(path))
        text = neutralise(note.shown)
        left_out, shown = max(0, len(text) - results.MAX_NOTE), text[: results.MAX_NOTE]
        return results.tool_result(results.NOTE_TEXT, note, notice=PREFACE, path=path, text=shown, left_out=left_out)

    async def notes_create(self, path: Path, text: Text) -> Changed:
        """Write a new note into any folder but Quaid's own. USE WHEN: the user wants a text kept as a page: a plan, a
        list, minutes. SKIP WHEN: it is a fact: memory_store.
        """
        return await self._change(partial(Notes.create, path=path, text=text))

    async def notes_edit(self, path: Path, old: Text, new: Text, expected: Expected = None) -> Changed:
        """Replace `old`, which must be in the note once. USE WHEN: a note that an agent wrote is to say otherwise."""
        return await self._change(partial(Notes.edit, path=path, old=old, new=new, expected=expected))

    async def notes_insert(self, path: Path, line: Line, text: Text, expected: Expected = None) -> Changed:
        """Insert lines. USE WHEN: something is added to a note that an agent wrote."""
        return await self._change(partial(Notes.insert, path=path, line=line, text=text, expected=expected))

    async def notes_rename(self, path: Path, to: Path, expected: Expected = None) -> Changed:
        """Give a note or a folder of agents' notes another path. USE WHEN: the user wants it elsewhere."""
        return await self._change(partial(Notes.rename, path=path, to=to, expected=expected))

    async def notes_delete(self, path: Path, expected: Expected = None) -> Changed:
        """Delete a note or a folder of agents' notes; git keeps them. USE WHEN: the user asks for it."""
        return await self._change(partial(Notes.delete, path=path, expected=expected))

    async def _change(self, change: partial[WriteResult]) -> CallToolResult:
        def write(memory: Memory) -> tuple[WriteResult, bytes | None]:
            written = change(memory.notes)
            return written, memory.git.read_at(written.commit, written.path) if written.commit else None

        written, data = await self._workers.writing.run(write, attempts=ATTEMPTS)
        return results.write_result(written, results.NOTE_WRITE, hash=content_hash(data) if data is not None else "")
