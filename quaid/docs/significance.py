"""Decide without a model whether a change of a source can matter to its documentation.

In doubt a change is significant: a model or a person may still find it trivial, and nobody sees a change that was
dropped.
"""

from __future__ import annotations

import ast
import re
import sys
import warnings
from pathlib import PurePosixPath

from quaid.vault import frontmatter

VERSION = f"6-{sys.version_info.major}.{sys.version_info.minor}"
"""Part of the key of a stored check: raise it by hand when a verdict may change. Python's grammar reads Python."""
_PROSE = (".md", ".markdown", ".mdx", ".rst", ".txt")
_NOT_PROSE = frozenset({"cmakelists.txt", "requirements.txt", "constraints.txt", "requirements-dev.txt", "robots.txt"})
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_BLOCK_START = re.compile(r"[ \t]*(?:[-*+][ \t]|\d{1,9}[.)][ \t]|#{1,6}[ \t]|[|>]|\.\.[ \t])")
_BLANKS = re.compile(r"(?<![\\\s])\s+(?=\n|\Z)")
"""Ends of lines and empty lines. Those that follow a backslash count."""
_TOOL_COMMENTS = re.compile(r"^# /// \w+$(?:\n#.*)*|^#!.*|^[^#\n]*#(?::|.*coding[:=]|.*\{[{%]).*", re.MULTILINE)
"""Comments of Python that an interpreter, an installer, a template or Sphinx reads."""
_MAX_PARSED = 1_000_000
"""Characters."""
_LOCK = re.compile(
    r"(?:package-lock\.json|npm-shrinkwrap\.json|packages\.lock\.json|conda-lock\.yml|pnpm-lock\.yaml|go(?:\.work)?\.sum"
    r"|package\.resolved|bun\.lockb|gradle\.lockfile|.+\.lock(?:\.hcl)?)\Z"
)
_GENERATED = re.compile(r".+\.(?:min\.[cm]?js|min\.css|[cm]?js\.map|css\.map)\Z")


def compare(path: str, before: bytes | None, after: bytes | None) -> tuple[bool, str]:
    """Return whether the change of the file `path` is trivial, and why in a few words. None is a missing file."""
    if before == after:
        return True, "the same"
    is_trivial, why = _compare(PurePosixPath(path).name.lower(), before or b"", after or b"")
    if before is not None and after is not None:
        return is_trivial, why
    word = "added" if before is None else "deleted"
    return (True, f"{word}, without code") if is_trivial else (False, word)


def _compare(name: str, before: bytes, after: bytes) -> tuple[bool, str]:
    # What these pin or compress is in another file, which is compared itself.
    if before and after and _LOCK.match(name):
        return True, "a lock file"
    if before and after and _GENERATED.match(name):
        return True, "made from another file"
    if b"\0" in before + after:
        return False, "binary"
    # Bytes that are not UTF-8 stay what they are: they are only compared.
    texts = (content.decode("utf-8-sig", "surrogateescape") for content in (before, after))
    old, new = (text.replace("\r\n", "\n").replace("\r", "\n") for text in texts)
    if _without_blanks(name, old) == _without_blanks(name, new):
        return True, "only white space"
    is_python = name.endswith((".py", ".pyi", ".pyw")) and max(len(old), len(new)) <= _MAX_PARSED
    if is_python and _TOOL_COMMENTS.findall(old) == _TOOL_COMMENTS.findall(new):
        tree = _parse_python(old)
        if tree is not None and tree == _parse_python(new):
            return True, "only comments or formatting"
    return False, "content"


def _without_blanks(name: str, text: str) -> list[str] | str:
    """Return of prose its paragraphs, items, headings and rows with single blanks, its code and its head as written."""
    if not name.endswith(_PROSE) or name in _NOT_PROSE:
        return text if name.endswith((".yml", ".yaml")) else _BLANKS.sub("", f"\n{text}")
    code_indent = r" |\t" if name.endswith(".rst") else r" {4}|\t"
    head = frontmatter.body_start(text)
    blocks = [text[:head]]
    fence = ""
    is_open = False
    for line in text[head:].split("\n"):
        marker = _FENCE.match(line)
        is_code = bool(fence or marker or (not is_open and line.strip() and re.match(code_indent, line)))
        words = " ".join(line.split())
        if is_code:
            blocks.append(line.rstrip())
        elif is_open and words and not _BLOCK_START.match(line):
            blocks[-1] += f" {words}"
        elif words:
            blocks.append(line[: len(line) - len(line.lstrip())] + words)
        if marker:
            fence = "" if fence and marker[1].startswith(fence) else fence or marker[1]
        is_open = bool(words) and not is_code
    return blocks


def _parse_python(text: str) -> str | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.dump(ast.parse(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
