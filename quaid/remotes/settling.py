"""What becomes of a file that one machine removed or renamed and another changed. Pure.

git leaves such files to a person. Here what was forgotten stays forgotten, what the owner wrote stays, and what was
added to a collection is kept. A note that was renamed and rewritten, which git takes for removed, gets what the other
machine wrote.
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
from quaid.vault.merging.texts import merge_note

_COLLECTIONS = (Kind.SNIPPET, Kind.JOURNAL)
_MARK = b"<<<<<<< "

Contents = Mapping[str, bytes]
"""Blob id -> bytes."""
Settled = dict[str, bytes | None]
"""Path -> what the file becomes, None for no file."""


def settle(
    unmerged: Sequence[Unmerged], contents: Contents, merged: Contents, added: Contents, place: Layout
) -> Settled:
    """Return the files that are not to be as the merge left them. `merged` is what it made of each path, `added` what
    it has of the paths that only one side has.
    """
    by_path = sorted(added.items(), reverse=True)
    ids = {note_id: path for path, data in by_path if path not in merged and (note_id := read_id(data))}
    settled: Settled = {}
    for each in unmerged:
        if each.ours and each.theirs:
            settled |= _keep_both(each, contents, merged)
        elif each.base and (each.ours or each.theirs):
            renamed = ids.get(read_id(contents.get(each.base.blob, b"")) or "")
            if renamed:
                settled |= _merge_renamed(each, contents, settled.get(renamed) or added[renamed], renamed)
            else:
                settled |= _settle_removed(each, contents, place)
    return settled | _settle_renamed_twice(unmerged, merged)


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


def _merge_renamed(each: Unmerged, contents: Contents, now: bytes, renamed: str) -> Settled:
    """The note has another name, and a text that git does not recognise, on the side that seems to have removed it.
    Where its two versions cannot be merged, both stay.
    """
    base, side = each.base, each.ours or each.theirs
    if base is None or side is None:
        return {}
    merged = merge_note(contents.get(base.blob, b""), now, contents.get(side.blob, b""), renamed)
    return {} if merged is None else {renamed: merged, each.path: None}


def _settle_renamed_twice(unmerged: Sequence[Unmerged], merged: Contents) -> Settled:
    """Both sides gave a note another name: of its two files, which git makes equal, the one that sorts first stays."""
    named: dict[str, list[str]] = {}
    for each in unmerged:
        data = merged.get(each.path)
        if each.base is None and bool(each.ours) != bool(each.theirs) and data and (note_id := read_id(data)):
            named.setdefault(note_id, []).append(each.path)
    groups = (sorted(paths) for paths in named.values())
    return {path: None for first, *others in groups for path in others if merged[path] == merged[first]}


def read_id(data: bytes) -> str | None:
    """Return the id that a note has in its head, if there is one."""
    found = _read_head(data).get("id")
    return found if isinstance(found, str) else None


def _read_head(data: bytes) -> Mapping[str, Any]:
    try:
        return frontmatter.parse(data.decode("utf-8", "replace")).fields
    except frontmatter.FrontmatterBrokenError:
        return {}
