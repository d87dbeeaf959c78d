"""Inputs of prompts: a document, its sources and their changes, as far as there is room for them. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from quaid.docs.changes import SourceChange, shorten
from quaid.vault import headings, replacements

MAX_REFUSED = 20
GAP = "\n[…]\n\n"
_WORD = re.compile(r"\w{3,}")
_MAX_DIFF = 20_000
"""Characters of a difference that words are taken from."""
_MAX_FILES, _MIN_SHARE, _MAX_SHARE = 60_000, 1_000, 16_000
"""Characters of all files, and the least and the most of each file or difference."""


def today() -> str:
    """Return the day and its weekday, UTC."""
    return f"{datetime.now(UTC):%A %Y-%m-%d}"


def excerpt(text: str, changes: Sequence[SourceChange], longest: int) -> str:
    """Return the body of a document with bare newlines, in at most about `longest` characters.

    Of a longer one the beginning, and as many of the sections that have most words in common with the changes, each
    without the sections below it, in their order.
    """
    body = text[headings.text_start(text) :].replace("\r\n", "\n")
    if len(body) <= longest:
        return body
    parts = [body[section.start : section.next] for section in replacements.sections(body)]
    words: set[str] = set()  # of the names of the files, and of the changed lines
    for change in changes:
        lines = change.diff(context=0, longest=_MAX_DIFF).split("\n")
        changed = [line for line in lines if line[:1] in ("+", "-")]
        words.update(_WORD.findall("\n".join([change.path, change.old_path or "", *changed])))
    wanted = sorted(range(len(parts)), key=lambda place: (place > 0, -len(words & set(_WORD.findall(parts[place])))))
    room = longest
    kept: dict[int, str] = {}
    for place in wanted:
        if len(parts[place]) <= room or not kept:
            kept[place] = shorten(parts[place], room)
            room -= len(kept[place])
    shown = [f"{GAP * (place > 0 and place - 1 not in kept)}{kept[place]}" for place in sorted(kept)]
    return "".join(shown) + GAP * (max(kept) < len(parts) - 1)


def show_change(change: SourceChange, longest: int) -> str:
    """Return a change with its commits and its diff. No line of it can pass for the heading of another change."""
    commits = [f"commit {c.id[:10]} {c.when[:10]} {headings.one_line(c.subject)[:120]}" for c in change.commits[:10]]
    more = [f"[…] {len(change.commits) - 10:,} commits before these"] if len(change.commits) > 10 else []
    return "\n".join([change.title, *commits, *more, change.diff(longest=longest)])


def numbered(shown: Iterable[str]) -> str:
    """Return the changes, each under a heading with its number, from 1 on."""
    return "\n".join(f"### {n} {text}" for n, text in enumerate(shown, 1))


def show_files(files: Mapping[str, bytes]) -> str:
    """Return the files under their paths, each line indented; a file without room is only named."""
    each = share(_MAX_FILES, len(files))
    room = _MAX_FILES
    blocks: list[str] = []
    for path, data in files.items():
        title = f"### {headings.one_line(path)}"
        if room <= 0 or b"\0" in data:
            blocks.append(f"{title}\n[…] {'left out' if room <= 0 else 'not text'}: {len(data):,} bytes")
            continue
        text = shorten(headings.without_control(data.decode("utf-8", "replace")), each)
        room -= len(text)
        blocks.append(f"{title}\n" + "\n".join(f" {line}" for line in text.split("\n")))
    return "\n".join(blocks)


def share(room: int, count: int) -> int:
    """Return how many of `room` characters each of `count` texts may have."""
    return min(_MAX_SHARE, max(_MIN_SHARE, room // max(1, count)))


def show_refused(refused: Sequence[str]) -> str:
    """Return the edits that the owner refused, a line of JSON each."""
    return "\n".join(json.dumps(text, ensure_ascii=False) for text in refused[:MAX_REFUSED]) or "(nothing so far)"
