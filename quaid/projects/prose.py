"""Prose -> its paragraphs, so that only words and structure are compared and not where lines are broken."""

from __future__ import annotations

import re

_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_BEGINS_BLOCK = re.compile(r"[ \t]*(?:[-*+][ \t]|\d{1,9}[.)][ \t]|#{1,6}[ \t]|[|>]|\.\.[ \t])")
_IS_VERBATIM = re.compile(r"(?: {4}|\t)")


def blocks_of(text: str) -> list[str]:
    """Paragraphs, items, headings and rows of tables with single blanks, lines of code as they stand."""
    blocks: list[str] = []
    words: list[str] = []
    fence = ""

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
            elif marker and marker[1].startswith(fence):
                fence = ""
        elif not line.strip():
            end_block()
        elif not words and _IS_VERBATIM.match(line):
            blocks.append(line.rstrip())
        else:
            if _BEGINS_BLOCK.match(line):
                end_block()
            words.extend(line.split() if words else [_indent(line), *line.split()])
    end_block()
    return blocks


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
