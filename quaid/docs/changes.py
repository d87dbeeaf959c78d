"""What became of a doc's sources since it was last true, and how a model or a person is shown it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from quaid.docs import patches
from quaid.vault import headings

ChangeKind = Literal["added", "modified", "renamed", "deleted"]
LARGEST = 1_000_000
"""Bytes of a version; two larger ones are not compared line by line."""


@dataclass(frozen=True, slots=True)
class SourceCommit:
    id: str
    when: str
    """ISO, UTC."""
    author: str
    subject: str


@dataclass(frozen=True, slots=True)
class SourceChange:
    """What became of one source of a doc since the doc was last true.

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
        if max(len(before), len(after)) > LARGEST:
            return f"[…] too large to compare: {sizes}\n"
        if before == after:
            return "[…] the same content\n"
        old, new = before.replace(b"\r\n", b"\n"), after.replace(b"\r\n", b"\n")
        if old == new:
            return "[…] only line ends differ\n"
        text = "".join(patches.hunks(old, new, context))
        # A lone carriage return, which ends a line for some readers, would hide the mark of the one behind it.
        return shorten(text.encode("utf-8", "replace").decode().replace("\r", " "), longest)


def shorten(text: str, longest: int) -> str:
    """`text`, with lines of its middle left out, and one that says how many, if it is longer than `longest`."""
    if len(text) <= longest:
        return text
    first, last = longest * 2 // 3, len(text) - longest // 3
    head = text[: text.rfind("\n", 0, first) + 1 or first]
    tail = text[text.find("\n", last) + 1 :] if "\n" in text[last:-1] else f" {text[last:]}"
    left_out = text.count("\n") - head.count("\n") - tail.count("\n")
    newline = "" if head.endswith("\n") else "\n"
    return f"{head}{newline}[…] {max(1, left_out):,} lines left out\n{tail}"
