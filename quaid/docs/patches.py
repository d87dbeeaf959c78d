"""Unified diffs of two versions of a file, and the patch that `git apply` makes of several. Pure; bytes go in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_ENDLESS = "\n\\ No newline at end of file\n"
_LINE = re.compile(r"[^\n]*\n|[^\n]+\Z")
_UNPLAIN = re.compile(r'["\\\x00-\x1f\x7f\udc80-\udcff]')


def hunks(before: bytes, after: bytes, context: int = 3) -> Iterator[str]:
    """The hunks of a unified diff line by line, each with its newline; none where both are alike.

    A line ends with a newline and with nothing else: a carriage return is part of it. What is not UTF-8 is there as
    surrogates.
    """
    import difflib

    old, new = (_LINE.findall(side.decode("utf-8", "surrogateescape")) for side in (before, after))
    for number, line in enumerate(difflib.unified_diff(old, new, n=context)):
        if number >= 2:  # behind the two lines that name the files
            yield line if line.endswith("\n") else line + _ENDLESS


def render_patch(files: Mapping[str, tuple[bytes | None, bytes]]) -> str:
    """A patch that `git apply` takes: path -> (before, after), before None for a new file. Empty without a change.

    What is not UTF-8 is there as surrogates: write it with `surrogateescape`, and newlines as they are.
    """
    return "".join(
        f"{_header(path, before)}{''.join(hunks(before or b'', after))}"
        for path, (before, after) in files.items()
        if before != after
    )


def _header(path: str, before: bytes | None) -> str:
    old, new = _name(f"a/{path}"), _name(f"b/{path}")
    # git ends a name that has a space in it with a tab: other tools take what follows it for a date.
    tab = "\t" if " " in path else ""
    named = f"--- {old}{tab}\n+++ {new}{tab}\n"
    created = "new file mode 100644\n"
    return f"diff --git {old} {new}\n" + (named if before is not None else f"{created}--- /dev/null\n+++ {new}{tab}\n")


def _name(path: str) -> str:
    """A path as git quotes it."""
    if not _UNPLAIN.search(path):
        return path
    written = (byte for byte in path.encode("utf-8", "surrogateescape"))
    return '"' + "".join(_escaped(byte) for byte in written) + '"'


def _escaped(byte: int) -> str:
    return chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:03o}"
