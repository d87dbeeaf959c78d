"""Prose -> its paragraphs, so that only words and structure are compared and not where lines are broken."""

from __future__ import annotations

import re

_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_BEGINS_BLOCK = re.compile(r"[ \t]*(?:[-*+][ \t]|\d{1,9}[.)][ \t]|#{1,6}[ \t]|[|>]|\.\.[ \t])")
_HEAD = "---"


def blocks_of(text: str, code_indent: int = 4) -> list[str]:
    """Paragraphs, items, headings and rows of tables with single blanks, lines of code and of a head as they stand.

    Lines that are indented by `code_indent` after an empty one are code.
    """
    verbatim = re.compile(rf" {{{code_indent}}}|\t")
    blocks: list[str] = []
    words: list[str] = []
    fence = _HEAD if text.startswith(f"{_HEAD}\n") else ""

    def end_block() -> None:
        if words:
            blocks.append(" ".join(words))
            words.clear()

    for line in text.split("\n"):
        marker = _FENCE.match(line)
        if fence or marker:
            end_block()
            blocks.append(line.rstrip())
            if not fence and marker:
                fence = marker[1]
            elif blocks[1:] and line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif not line.strip():
            end_block()
        elif not words and verbatim.match(line):
            blocks.append(line.rstrip())
        else:
            if _BEGINS_BLOCK.match(line):
                end_block()
            words.extend(line.split() if words else [_indent(line), *line.split()])
    end_block()
    return blocks


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
