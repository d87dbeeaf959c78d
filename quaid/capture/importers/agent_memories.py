"""Exports of Claude.ai and ChatGPT -> markdown files with their memories.

Claude.ai's has `memories.json` or `memories/ID.json`: texts on its owner and on each project, and files. ChatGPT's has
no list of memories: they are the calls of its tool `bio` in the conversations.
"""

import json
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from quaid.capture.transcripts import exports
from quaid.capture.transcripts.parsing import list_at, object_at, parse_timestamp, text_at
from quaid.errors import BadInputError

CLAUDE_AI, CHATGPT = "claude-ai", "chatgpt"
MEMORIES = re.compile(r"(?:.*/)?memories(?:/[^/]+)?\.json", re.IGNORECASE)
_PROJECTS = re.compile(r"(?:.*/)?projects(?:/[^/]+)?\.json", re.IGNORECASE)


def read_export(path: Path) -> tuple[str, dict[str, bytes]]:
    """Return the program of an export, an archive or one of its JSON files, and its memories; nothing for others."""
    if zipfile.is_zipfile(path):
        rows = [b"".join(chunks) for wanted in (MEMORIES, _PROJECTS) for chunks in _unpack(path, wanted)]
        saved = [*_list_saved(_unpack(path, exports.CONVERSATIONS))]
    else:
        rows = [path.read_bytes()]
        saved = [*_list_saved([iter(rows)])] if b'"bio"' in rows[0] else []
    texts = dict(list_texts(rows)) or {"saved memories": "\n".join(saved)}
    return CHATGPT if saved else CLAUDE_AI, {f"{place}.md": text.encode() for place, text in texts.items() if text}


def _unpack(path: Path, wanted: re.Pattern[str]) -> Iterator[Iterator[bytes]]:
    with suppress(BadInputError), path.open("rb") as stream:  # one part of an export has no others
        yield from exports.read_archive(stream, path.name, wanted)


def list_texts(files: Iterable[bytes]) -> Iterator[tuple[str, str]]:
    """Yield (place, text) of the memories in JSON files of Claude.ai."""
    rows: list[dict[str, Any]] = []
    for data in files:
        with suppress(ValueError, RecursionError):
            found = json.loads(data)
            rows += [row for row in (found if isinstance(found, list) else [found]) if isinstance(row, dict)]
    names = {text_at(row, "uuid"): text_at(row, "name") for row in rows}
    for row in rows:
        if text := text_at(row, "conversations_memory"):
            yield "conversations_memory", text
        for project, text in object_at(row, "project_memories").items():
            yield f"project_memories/{project}", f"# {names.get(project) or ''}\n\n{text}"
        for file in list_at(row, "memory_files"):
            place = (text_at(file, "path") or "memory_files").strip("/").removesuffix(".md")
            head = f"---\ncreated: {text_at(file, 'updated_at') or ''}\n---\n"
            text = re.sub(r"(?m)^([ \t]*[-*] )\[(?:stated|inferred)\] ", r"\1", text_at(file, "content") or "")
            yield place, f"{head}{text}"


def _list_saved(archives: Iterable[Iterator[bytes]]) -> Iterator[str]:
    """Yield a line, with its day, for each memory that ChatGPT saved, on whatever branch of a conversation."""
    for chunks in archives:
        for conversation in exports.read_documents(chunks, exports.ChatGpt, Counter()):
            for node in object_at(conversation, "mapping").values():
                message = object_at(node, "message")
                if message.get("recipient") == "bio" and text_at(message, "author", "role") == "assistant":
                    text = " ".join(part for part in list_at(message, "content", "parts") if isinstance(part, str))
                    at = parse_timestamp(message.get("create_time"))
                    yield f"- [{f'{at:%Y-%m-%d}' if at else 'unknown'}] - {' '.join(text.split())}"
