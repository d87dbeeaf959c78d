"""The `Session` of OpenAI's Agents SDK: a conversation is one note in a folder of the vault, a callout for each item.

A reader sees who said what; all else of an item is a comment in its callout. The SDK asks for a protocol only, so
nothing of it is imported.
"""

import hashlib
import json
import os
import re
from typing import Any

from quaid.capture.extractor import ExtractResult
from quaid.errors import BadInputError, NoteChangedError, NoteNotFoundError
from quaid.memory import Memory
from quaid.model import Turn
from quaid.redaction import admit_all
from quaid.resident.async_memory import AsyncMemory
from quaid.vault.layout import slug
from quaid.vault.notes import StoredNote

Item = Any
_BLOCK = re.compile(r"^> \[![^\]\n]*\].*\n((?:>.*\n)*)> %%(\{.*\})%%\n\n?", re.MULTILINE)


class QuaidSession:
    """The session for `Runner.run(agent, …, session=…)`. `vault` is found as `Memory.open` finds it."""

    def __init__(
        self, session_id: str, vault: str | os.PathLike[str] | None = None, *, folder: str = "sessions"
    ) -> None:
        self.session_id, self.session_settings = session_id, None
        self.memory = AsyncMemory(vault)
        self.path = f"{folder}/{slug(session_id)}-{hashlib.sha256(session_id.encode()).hexdigest()[:8]}.md"

    async def get_items(self, limit: int | None = None) -> list[Item]:
        """Return the items, or the latest `limit` of them, the oldest first."""
        limit = limit if limit is not None else getattr(self.session_settings, "limit", None)
        items = await self.memory.run(lambda memory: parse_items(_read(memory, self.path)))
        return items if limit is None else items[max(0, len(items) - limit) :] if limit > 0 else []

    async def add_items(self, items: list[Item]) -> None:
        blocks = "\n".join(map(render_item, items))
        if blocks:
            await self.memory.run(lambda memory: _change(memory, self.path, self.session_id, blocks))

    async def pop_item(self) -> Item | None:
        """Remove the latest item and return it."""
        return await self.memory.run(lambda memory: _change(memory, self.path, self.session_id, None))

    async def clear_session(self) -> None:
        await self.memory.run(lambda memory: _read(memory, self.path) and memory.notes.delete(self.path))

    async def extract(self) -> ExtractResult:
        """Have Quaid learn from the conversation as from that of any program. BadInputError: nobody has said a word."""
        said = [(item.get("role"), _split(item)[0]) for item in await self.get_items(limit=None)]
        names = {"user": "User", "assistant": "Assistant"}
        turns = [Turn(names[role], text, role) for role, text in said if role in names and text]
        return await self.memory.run(lambda memory: memory.extract(turns, session=self.session_id))


def _read(memory: Memory, path: str) -> StoredNote | None:
    try:
        return memory.notes.read(path)
    except NoteNotFoundError:
        return None


def parse_items(note: StoredNote | None) -> list[Item]:
    items = []
    for found in _BLOCK.finditer(note.shown if note else ""):
        item, text = json.loads(found[2]), "\n".join(line[2:] for line in found[1].split("\n")[:-1])
        if "content" in item and item["content"] is None:
            item["content"] = text
        elif isinstance(item.get("content"), list) and item["content"] and item["content"][0].get("text", "") is None:
            item["content"][0]["text"] = text
        items.append(item)
    return items


def _change(memory: Memory, path: str, session: str, added: str | None) -> Item | None:
    """Add blocks to the note, or remove its last one and return that item. Another process may be writing, too."""
    problem: Exception = NoteChangedError(path)
    for _ in range(20):
        note = _read(memory, path)
        text = note.shown if note else f"# Session {session}\n"
        blocks = list(_BLOCK.finditer(text))
        if added is None and not blocks:
            return None
        after = f"{text.rstrip()}\n\n{added}" if added is not None else text[: blocks[-1].start()]
        try:
            if note is None:
                memory.notes.create(path, after)
            else:
                memory.notes.write(path, after, expected=note.hash)
            return parse_items(note)[-1] if added is None else None
        except (NoteChangedError, BadInputError) as error:
            problem = error
    raise problem


def _split(item: Item) -> tuple[str | None, Item]:
    """Return the text of an item, if it has just one, and the item with None in its place."""
    match item.get("content"):
        case str() as text:
            return text, {**item, "content": None}
        case [{"text": str() as text} as part]:
            return text, {**item, "content": [{**part, "text": None}]}
    return None, item


def render_item(item: Item) -> str:
    text, rest = _split(admit_all(dict(item))[0])
    title = " ".join(str(item[name]) for name in ("role", "type", "name") if item.get(name) not in {None, "message"})
    lines = "".join(f"> {line}\n" for line in (text.split("\n") if text is not None else ()))
    about = json.dumps(rest, ensure_ascii=False).replace("%%", "\\u0025\\u0025")
    return f"> [!{'quote' if 'role' in item else 'example'}] {' '.join(title.split())}\n{lines}> %%{about}%%\n"
