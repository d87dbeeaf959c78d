"""Two marks in the frontmatter of notes: `written_by: agent`, and `locked: true`, which keeps agents from writing.

An agent is shown its note without the first mark. Its text is stored as it is: `without_mark(with_mark(text)) == text`.
"""

import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from quaid.model import CORE_FILES, Edit
from quaid.vault import files, frontmatter
from quaid.vault.layout import AGENT, WRITTEN_BY

_MARK = re.compile(rf"^{WRITTEN_BY}:[ \t]*([\"']?){AGENT}\1[ \t]*\r?\n", re.MULTILINE)
_EMPTY_HEAD = re.compile(r"---[ \t]*\r?\n---[ \t]*\r?\n?")
_UNLOCKED = {"", "false", "no", "off", "0"}
_OBEYED = {"agents", "claude", "claude.local", "copilot-instructions", "crush", "gemini", "qwen", "skill", "warp"}


def with_mark(text: str) -> str:
    """Return the note of an agent that wrote `text`. Frontmatter that cannot take the mark is a part of the text."""
    head, body = text[: frontmatter.body_start(text)], text[frontmatter.body_start(text) :]
    opening, _, rest = head.partition("\n")
    parsed = frontmatter.parse(head)
    if parsed.fields and not parsed.problems and WRITTEN_BY not in parsed.fields and opening.rstrip("\r") == "---":
        end = opening[3:] + "\n"
        return f"---{end}{WRITTEN_BY}: {AGENT}{end}{rest}{body}"
    return f"---\n{WRITTEN_BY}: {AGENT}\n---\n{text}"


def without_mark(text: str) -> str:
    """Return what an agent wrote in its note `text`; any other text as it is."""
    start = frontmatter.body_start(text)
    head, found = _MARK.subn("", text[:start], count=1)
    if not found:
        return text
    return text[start:] if _EMPTY_HEAD.fullmatch(head) else head + text[start:]


def change_text(text: str, after: str) -> str:
    """Return the note `text` of an agent with what the agent wrote in it replaced by `after`. Where the frontmatter is
    not changed, its bytes stay.
    """
    shown = without_mark(text)
    start, end = frontmatter.body_start(shown), frontmatter.body_start(after)
    if shown[:start] != after[:end]:
        return with_mark(after)
    return text[: len(text) - len(shown) + start] + after[end:]


def is_obeyed(path: str) -> bool:
    """Return whether programs take a note of this path for instructions or for settings of theirs."""
    *folders, name = PurePosixPath(path.casefold()).parts
    is_projects = "projects" in folders and name in {"project.md", "tools.md"}
    is_core = not folders and name in {core.casefold() for core in CORE_FILES}
    return is_projects or is_core or name.rpartition(".")[0] in _OBEYED


def find_lock(root: Path, edits: Iterable[Edit]) -> dict[str, str]:
    """Return those of the paths of `edits` that agents may not write, each with the note whose `locked` says so: the
    note itself, or that of a folder around it, `Trips/Trips.md` of `Trips/`.
    """
    locks: dict[str, bool] = {}
    locked: dict[str, str] = {}
    for edit in edits:
        folders = PurePosixPath(edit.rel_path).parents[:-1]
        for path in (edit.rel_path, *map("{0}/{0.name}.md".format, folders)):
            if path not in locks:
                data = files.read_note(root, path) or b""
                text = data.decode("utf-8", "replace") if b"locked" in data.lower() else ""
                fields = (
                    {key.casefold(): value for key, value in frontmatter.parse(text).fields.items()} if text else {}
                )
                # What is neither yes nor no locks it, too.
                locks[path] = str(fields.get("locked", "")).strip().casefold() not in _UNLOCKED
            if locks[path]:
                locked.setdefault(edit.rel_path, path)
    return locked
