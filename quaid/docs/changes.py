"""The changes of a document's sources since it was last true: as commits, as unified diffs and as patches. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from quaid.vault import headings

ChangeKind = Literal["added", "modified", "renamed", "deleted"]
MAX_COMPARED = 1_000_000
"""Bytes of a version; two larger ones are not compared line by line."""
_LINE = re.compile(r"[^\n]*\n|[^\n]+\Z")
_QUOTED_BY_GIT = re.compile(r'["\\\x00-\x1f\x7f\udc80-\udcff]')


@dataclass(frozen=True, slots=True)
class SourceCommit:
    """A commit that changed a source; `when` is ISO 8601, UTC."""

    id: str
    when: str
    author: str
    subject: str


@dataclass(frozen=True, slots=True)
class SourceChange:
    """The change of one source of a document since the document was last true, with the bytes before and after.

    `path` is as it is now, or was if it is deleted, from the top of its repository; `old_path` where it was if it was
    renamed. The newest of `commits` is first.
    """

    path: str
    old_path: str | None
    kind: ChangeKind
    before: bytes | None
    after: bytes | None
    commits: tuple[SourceCommit, ...] = ()

    @property
    def title(self) -> str:
        """`renamed quaid/old.py to quaid/new.py`, on one line."""
        moved = f"{self.old_path} to {self.path}" if self.old_path else self.path
        return headings.one_line(f"{self.kind} {moved}")

    def diff(self, context: int = 3, longest: int = 12_000) -> str:
        """The hunks of a unified diff with bare newlines, at most about `longest` characters: a long one is cut in its
        middle. What cannot be compared by line is named. Each line begins with a space, +, -, @, a backslash or `[…]`.
        """
        before, after = self.before or b"", self.after or b""
        sizes = f"{len(before):,} bytes before, {len(after):,} now"
        if b"\0" in before or b"\0" in after:
            return f"[…] not text: {sizes}\n"
        if max(len(before), len(after)) > MAX_COMPARED:
            return f"[…] too large to compare: {sizes}\n"
        if before == after:
            return "[…] the same content\n"
        old, new = before.replace(b"\r\n", b"\n"), after.replace(b"\r\n", b"\n")
        if old == new:
            return "[…] only line ends differ\n"
        text = "".join(hunks(old, new, context))
        # A lone carriage return, which ends a line for some readers, would hide the mark of the one behind it.
        return shorten(text.encode("utf-8", "replace").decode().replace("\r", " "), longest)


def shorten(text: str, longest: int) -> str:
    """Return `text`, with lines of its middle left out, and one that says how many, if it is longer than `longest`."""
    if len(text) <= longest:
        return text
    first, last = longest * 2 // 3, len(text) - longest // 3
    head = text[: text.rfind("\n", 0, first) + 1 or first]
    tail = text[text.find("\n", last) + 1 :] if "\n" in text[last:-1] else f" {text[last:]}"
    left_out = text.count("\n") - head.count("\n") - tail.count("\n")
    newline = "" if head.endswith("\n") else "\n"
    return f"{head}{newline}[…] {max(1, left_out):,} lines left out\n{tail}"


def hunks(before: bytes, after: bytes, context: int = 3) -> Iterator[str]:
    """The hunks of a unified diff line by line, each with its newline; none where both are alike.

    A line ends with a newline and with nothing else: a carriage return is part of it. What is not UTF-8 is there as
    surrogates.
    """
    import difflib

    old, new = (_LINE.findall(side.decode("utf-8", "surrogateescape")) for side in (before, after))
    for number, line in enumerate(difflib.unified_diff(old, new, n=context)):
        if number >= 2:  # behind the two lines that name the files
            yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def render_patch(files: Mapping[str, tuple[bytes | None, bytes]]) -> str:
    """A patch that `git apply` takes: path -> (before, after), before None for a new file. Empty without a change.

    What is not UTF-8 is there as surrogates: write it with `surrogateescape`, and newlines as they are.
    """
    patch: list[str] = []
    for path, (before, after) in files.items():
        if before == after:
            continue
        old, new = _quote(f"a/{path}"), _quote(f"b/{path}")
        # git ends a name that has a space in it with a tab: other tools take what follows it for a date.
        tab = "\t" if " " in path else ""
        patch.append(f"diff --git {old} {new}\n")
        patch.append("new file mode 100644\n--- /dev/null\n" if before is None else f"--- {old}{tab}\n")
        patch += [f"+++ {new}{tab}\n", *hunks(before or b"", after)]
    return "".join(patch)


def _quote(path: str) -> str:
    """A path as git writes it in a patch."""
    if not _QUOTED_BY_GIT.search(path):
        return path
    written = path.encode("utf-8", "surrogateescape")
    shown = (chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:03o}" for byte in written)
    return f'"{"".join(shown)}"'
