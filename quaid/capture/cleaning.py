"""Cleaning of a text: without the reminders, recalled memories and pasted data that machines put around it.

A memory that learns what it recalled would grow on itself.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

from quaid.redaction import admit
from quaid.redaction.private_spans import hidden_spans, without
from quaid.text.invisible import whole, without_unseen
from quaid.vault import markdown

DATA_PLACEHOLDER = "[data]"

_NEWLINE = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]")
_HIDDEN = frozenset({"quaid-memory", "system-reminder", "private"})
_MEMORY_LINES = re.compile(r"^[ \t]*\[MEMORY\].*(?:\n[ \t]+\S.*)*\n?", re.MULTILINE)
_MAX_BASE64_CHARS = 400
_BASE64 = re.compile(rf"[A-Za-z0-9+/_-]{{{_MAX_BASE64_CHARS + 1},}}={{0,2}}")
_PARAGRAPH_GAP = re.compile(r"\n\n(?=\S)")
_BLANK_LINES = re.compile(r"\n{4,}")
_STRAY_INDENT = re.compile(r"\A {1,3}(?=\S[^\n]*(?:\n\S|\Z))")


def clean_text(text: str) -> str:
    r"""Return `text` as markdown with `\n` newlines, possibly empty. Idempotent.

    Removed are `<quaid-memory>`, `<system-reminder>` and `<private>` spans, `[MEMORY]` lines with their indented
    continuations, control characters, base64 of more than 400 characters (which becomes `[data]`), trailing spaces, a
    stray space or three before the first word, outer blank lines, and all but one of three or more blank lines. An open
    code fence is closed.
    """
    text = _clean(text)
    if "```" in text or "~~~" in text:
        # An open code fence would hide the following text; one in a list or a quotation ends with that.
        for start, end, kind, mark in markdown.verbatim(f"{text}\n."):
            if kind == "fence" and end > len(text) and text[text.rfind("\n", 0, start) + 1 : start] in "   ":
                return f"{text}\n{mark}"
    return text


def clean_line(text: str) -> str:
    """Return the same on one line, without invisible characters; nothing in it is a code fence."""
    return " ".join(without_unseen(_clean(text)).split())


@lru_cache(maxsize=1024)
def clean_name(name: str) -> str:
    """Return a speaker's, session's or project's name on one line, at most 80 characters, without secrets."""
    return " ".join(admit(clean_text(name[:400])).text.split())[:80].strip()


def _clean(text: str) -> str:
    before = None
    while before != text:  # removing a span can join two halves of another one
        before = text
        # Exports have hundreds of megabytes: a pattern that cannot match is not searched for.
        if not (text.isascii() and text.replace("\n", "").isprintable()):
            text = whole(_CONTROL.sub("", _NEWLINE.sub("\n", text)))
        if "<" in text:
            text = without(text, hidden_spans(text, _HIDDEN))
        if "[MEMORY]" in text:
            text = _MEMORY_LINES.sub("", text)
        if len(text) > _MAX_BASE64_CHARS:
            # A run of dashes is a ruler.
            text = _BASE64.sub(lambda run: DATA_PLACEHOLDER if any(map(str.isalnum, run[0])) else run[0], text)
        text = "\n".join(line.rstrip(" \t") for line in text.split("\n")).strip("\n")
        text = _BLANK_LINES.sub("\n\n", _STRAY_INDENT.sub("", text))
    return text


def split_message(text: str, limit: int) -> Iterator[str]:
    """Yield the paragraphs of a cleaned text, as many together as fit into `limit` characters. Code blocks are not
    split, nor indented paragraphs from their parent.
    """
    if len(text) <= limit:
        yield text
        return
    fences = [(start, end) for start, end, kind, _ in markdown.verbatim(text) if kind == "fence"]
    gaps = [
        gap.start()
        for gap in _PARAGRAPH_GAP.finditer(text)
        if not (before := bisect_left(fences, (gap.start(),))) or fences[before - 1][1] <= gap.start() + 1
    ]
    start = 0
    for end, following in pairwise((*gaps, len(text))):
        if following - start > limit + 2:
            yield text[start:end].rstrip("\n")
            start = end + 2
    yield text[start:]
