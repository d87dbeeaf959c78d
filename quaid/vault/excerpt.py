"""A part of a note as its file has it: one turn, or what stands under a heading."""

from __future__ import annotations

import re

from quaid.model import name_key
from quaid.vault import episodes, markdown, notes

_HEADING = re.compile(r" {0,3}(?P<marks>#{1,6})[ \t]+(?P<title>[^\r\n]*)")
_MARKUP = str.maketrans(dict.fromkeys("#|^:[]%*`_", " "))
"""Characters that Obsidian leaves out of a link to a heading, and markup in one."""


def read_turn(text: str, number: int) -> str:
    """Return the block of a turn with its speaker; empty where there is none."""
    _, body = notes.split_body(text)
    turns = (turn for turn in episodes.parse_turns(body) if turn.number == number)
    return "\n\n".join(body[turn.start : turn.end].strip("\r\n") for turn in turns)


def read_section(text: str, heading: str) -> str:
    """Return a heading and all below it, up to the next of its level; of `^id` the paragraph that bears it; empty where
    there is none.
    """
    lines = notes.split_body(text)[1].splitlines(keepends=True)
    if heading.startswith("^"):
        return _read_block(lines, heading)
    wanted = _key(heading)
    headings = _find_headings(lines)
    for place, (start, level, title) in enumerate(headings):
        if _key(title) == wanted:
            end = next((line for line, other, _ in headings[place + 1 :] if other <= level), len(lines))
            return "".join(lines[start:end])
    return ""


def _find_headings(lines: list[str]) -> list[tuple[int, int, str]]:
    """Return (line, level, title) of each heading outside of code and comments."""
    found = []
    shown = markdown.blank("".join(lines), "fence", "code", "comment").splitlines()
    for number, line in enumerate(lines):
        if _HEADING.match(shown[number]) and (heading := _HEADING.match(line)):
            found.append((number, len(heading["marks"]), heading["title"]))
    return found


def _read_block(lines: list[str], mark: str) -> str:
    for number, line in enumerate(lines):
        if line.split()[-1:] == [mark]:
            start = number
            while start > 0 and lines[start - 1].strip():
                start -= 1
            return "".join(lines[start : number + 1])
    return ""


def _key(title: str) -> str:
    return name_key(title.translate(_MARKUP))
