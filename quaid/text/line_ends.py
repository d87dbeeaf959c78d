"""Restoring the line ends of a text that were lost when it was edited."""

import re
from collections import Counter
from difflib import SequenceMatcher
from os.path import commonprefix

_END = re.compile(r"(\r\n|\r|\n)")


def restore_lines(before: str, changed: str, shown: str | None = None) -> str:
    """Return `changed`, which may have other line ends, with those of `before`. New lines get the most frequent one.

    `shown` is the form of `before` that was edited: a line that is unchanged in it is restored as it was.
    """
    old, ends = _split(before)
    new, _ = _split(changed)
    edited = _split(before if shown is None else shown)[0]
    usual = Counter(ends[:-1]).most_common(1)[0][0] if len(ends) > 1 else "\n"
    lines: list[str] = []
    # For each new line the number of the old line that it replaces, None for a further one.
    head = len(commonprefix([edited, new]))  # noqa: RUF071 - of lines, not of paths
    tail = len(commonprefix([edited[head:][::-1], new[head:][::-1]]))  # noqa: RUF071
    middle = edited[head : len(edited) - tail], new[head : len(new) - tail]
    origins: list[int | None] = [*range(head)]
    for _, start, end, first, last in SequenceMatcher(None, *middle).get_opcodes():
        origins += [head + there if there < end else None for there in range(start, start + last - first)]
    origins += range(len(edited) - tail, len(edited))
    for place, there in enumerate(origins):
        is_same = there is not None and edited[there] == new[place]
        lines.append(old[there] if there is not None and is_same else new[place])
        lines.append("" if place == len(new) - 1 else (ends[there] if there is not None else "") or usual)
    return "".join(lines)


def with_lf(data: bytes) -> bytes:
    """Return `data` with LF in place of CRLF."""
    return data.replace(b"\r\n", b"\n")


def _split(text: str) -> tuple[list[str], list[str]]:
    """Return the lines of a text and their ends; that of the last is empty."""
    pieces = _END.split(text)
    return pieces[::2], [*pieces[1::2], ""]
