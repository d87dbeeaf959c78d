"""What becomes of a file that one machine removed or renamed and another changed. Pure.

git leaves such files to a person. Here what was forgotten stays forgotten, what the owner wrote stays, and what was
added to a collection is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from quaid.history.merge import merge_lines
from quaid.history.tree_merge import Unmerged
from quaid.model import Kind
from quaid.vault import frontmatter
from quaid.vault.layout import Layout

_COLLECTIONS = (Kind.SNIPPET, Kind.JOURNAL)
_MARK = b"<<<<<<< "

Contents = Mapping[str, bytes]
"""Blob id -> bytes."""
Settled = dict[str, bytes | None]
"""Path -> what the file becomes, None for no file."""


def settle(unmerged: Sequence[Unmerged], contents: Contents, merged: Contents, place: Layout) -> Settled:
    """Return the files that are not to be as the merge left them. `merged` is what it made of each path."""
    settled: Settled = {}
    for each in unmerged:
        if each.ours and each.theirs:
            settled |= _keep_both(each, contents, merged)
        elif each.base and (each.ours or each.theirs):
            settled |= _settle_removed(each, contents, place)
    return settled | _settle_renamed_twice(unmerged, contents)


def list_conflicts(unmerged: Sequence[Unmerged], merged: Contents) -> tuple[str, ...]:
    """Return the paths in which conflict markers are left for the owner."""
    both = (each.path for each in unmerged if each.ours and each.theirs)
    return tuple(path for path in both if has_markers(merged.get(path, b"")))


def has_markers(data: bytes) -> bool:
    """Return whether a text has the markers of a conflict."""
    return data.startswith(_MARK) or b"\n" + _MARK in data


def _keep_both(each: Unmerged, contents: Contents, merged: Contents) -> Settled:
    """Where git cannot mark a conflict, as in a picture, and has kept our version, keep theirs beside it."""
    if each.theirs is None or has_markers(merged.get(each.path, b"")):
        return {}
    theirs = contents.get(each.theirs.blob)
    if theirs is None or theirs == merged.get(each.path):
        return {}
    path = PurePosixPath(each.path)
    return {str(path.with_name(f"{path.stem}.conflict-{each.theirs.blob[:7]}{path.suffix}")): theirs}


def _settle_removed(each: Unmerged, contents: Contents, place: Layout) -> Settled:
    """One side removed the file, the other changed it."""
    side = each.ours or each.theirs
    base = contents.get(each.base.blob, b"") if each.base else b""
    kind = place.kind_of(each.path, _read_head(base))
    if side is None or kind in (Kind.NOTE, Kind.CORE, Kind.DOC):
        return {}  # the owner's words stay
    if kind in _COLLECTIONS:
        added = merge_lines(base, b"", contents.get(side.blob, b""))
        return {each.path: added if added and added.strip() else None}
    return {each.path: None}


def _settle_renamed_twice(unmerged: Sequence[Unmerged], contents: Contents) -> Settled:
    """Both sides gave a note another name: of its two files the one that sorts first stays."""
    named: dict[str, list[str]] = {}
    for each in unmerged:
        sides = [side for side in (each.ours, each.theirs) if side]
        if each.base is None and len(sides) == 1:
            note_id = _read_head(contents.get(sides[0].blob, b"")).get("id")
            if isinstance(note_id, str):
                named.setdefault(note_id, []).append(each.path)
    return {path: None for paths in named.values() for path in sorted(paths)[1:]}


def _read_head(data: bytes) -> Mapping[str, Any]:
    try:
        return frontmatter.parse(data.decode("utf-8", "replace")).fields
    except frontmatter.FrontmatterBrokenError:
        return {}
