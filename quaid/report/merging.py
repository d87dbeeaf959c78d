"""Whether git has Quaid merge the notes of a vault, and how it comes to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from quaid.history import merge_driver
from quaid.history.merge_driver import ATTRIBUTE
from quaid.model import Edit, Level, Message
from quaid.vault import files

if TYPE_CHECKING:
    from quaid.memory import Memory

FILE = ".gitattributes"
_UNION = re.compile(r"^\S*(?:journal|snippets)/\*\* merge=union\r?\n", re.MULTILINE)
_NOTES = re.compile(r"^\*\.md text eol=lf$", re.MULTILINE)
_USAGE = re.compile(r"^(\S*usage/\*\.tsv text eol=lf) merge=union$", re.MULTILINE)


def set_up_merging(memory: Memory) -> list[str]:
    """Have git merge the notes of this vault by their parts, and return what was changed for it.

    The lines of .gitattributes that an older Quaid wrote are renewed, in one commit; others stay.

    Raises:
        QuaidError: the vault cannot be written.
    """
    done = []
    if merge_driver.set_up(memory.root):
        done.append("git has Quaid merge notes here from now on.")
    data = files.read_note(memory.root, FILE)
    renewed = renew_attributes(data.decode("utf-8", "surrogateescape")) if data is not None else None
    if data is not None and renewed is not None:
        from quaid.capture.writer import WritePlan, WriteResult

        edit = Edit(FILE, data, renewed.encode("utf-8", "surrogateescape"))
        written = WriteResult(FILE, FILE, "edited", FILE)
        message = Message("vault: notes are merged by their parts", "merge=union left keys twice in a note.")
        memory.writer.write(f"attributes {renewed}", lambda: WritePlan(written, (edit,), message))
        done.append(f"{FILE} says so for every clone.")
    return done


def renew_attributes(text: str) -> str | None:
    """Return .gitattributes with its old lines of Quaid's renewed; None where there are none, or its owner changed
    them.
    """
    renewed = _NOTES.sub(f"*.md text eol=lf {ATTRIBUTE}", _USAGE.sub(rf"\1 {ATTRIBUTE}", _UNION.sub("", text)))
    return renewed if renewed != text and f"*.md text eol=lf {ATTRIBUTE}" in renewed else None


def check_merging(memory: Memory) -> tuple[Level, str] | tuple[Level, str, str]:
    """Check that git calls the driver for notes, and finds it."""
    data = files.read_note(memory.root, FILE) or b""
    if ATTRIBUTE.encode() not in data:
        return "ok", f"git merges the text of notes; to have Quaid do it, add to {FILE}: *.md {ATTRIBUTE}"
    if not merge_driver.is_set_up(memory.root):
        return "warning", "git cannot call Quaid to merge notes, and merges their text.", "quaid doctor"
    return "ok", "git has Quaid merge notes by their parts"
