"""Changes of source files with the answer a reader of their documentation would give: `labelled_diffs/*.diffs`.

A file of them is a list of sections. `=== file PATH` begins a source file, `=== trivial: WHAT` and `=== significant: WHAT` are
changes of the file above them, written as replacements: `---`, the lines before, `+++`, the lines after.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "labelled_diffs"


@dataclass(frozen=True)
class Labelled:
    path: str
    is_trivial: bool
    what: str
    before: bytes
    after: bytes


def labelled(name):
    """The changes of `labelled_diffs/NAME.diffs`, in its order."""
    changes = []
    path, source = "", ""
    for section in re.split(r"^=== ", (FOLDER / f"{name}.diffs").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        title, _, body = section.partition("\n")
        if title.startswith("file "):
            path, source = title.removeprefix("file "), body
            continue
        label, _, what = title.partition(": ")
        assert label in {"trivial", "significant"}, title
        changes.append(
            Labelled(path, label == "trivial", what, source.encode(), _changed(source, body, title).encode())
        )
    return changes


def _changed(source, replacements, title):
    for replacement in re.split(r"^---\n", replacements, flags=re.MULTILINE)[1:]:
        before, _, after = replacement.partition("+++\n")
        assert source.count(before.removesuffix("\n")) == 1, f"{title}: not once in its file: {before}"
        source = source.replace(before.removesuffix("\n"), after.removesuffix("\n"))
    return source
