"""What becomes of a file that one machine removed or renamed and another changed. Pure.

git leaves such files to a person. Here what was forgotten stays forgotten, what the owner wrote stays, and what was
added to a collection stays. A note that was renamed and rewritten, which git takes for removed, gets what the other
machine wrote.
"""

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from quaid.history.merge import merge_lines
from quaid.history.merges import Conflict
from quaid.model import Kind
from quaid.vault import frontmatter
from quaid.vault.layout import Layout
from quaid.vault.merging import merge_note

_MARK = b"<<<<<<< "

Contents = Mapping[str, bytes]
"""Blob id -> bytes."""
Settled = dict[str, bytes | None]
"""Path -> what the file becomes, None for no file."""


def settle(
    unmerged: Sequence[Conflict], contents: Contents, merged: Contents, added: Contents, place: Layout
) -> Settled:
    """Return the files that are not to be as the merge left them. `merged` is what it made of each path, `added` what
    it has of the paths that only one side has.
    """
    by_path = sorted(added.items(), reverse=True)
    ids = {note_id: path for path, data in by_path if path not in merged and (note_id := _read_id(data))}
    settled: Settled = {}
    for each in unmerged:
        side = each.ours or each.theirs
        if each.ours and each.theirs:
            # Where git cannot mark a conflict, as in a picture, and took our version, theirs is stored next to it.
            now, data = merged.get(each.path, b""), contents.get(each.theirs.blob)
            if data is not None and data != now and not has_markers(now):
                name = PurePosixPath(each.path)
                settled[str(name.with_name(f"{name.stem}.conflict-{each.theirs.blob[:7]}{name.suffix}"))] = data
        elif each.base and side:
            base, theirs = contents.get(each.base.blob, b""), contents.get(side.blob, b"")
            if renamed := ids.get(_read_id(base) or ""):
                # Its other name, with a text that git does not recognise, is on the side that seems to have removed it.
                both = merge_note(base, settled.get(renamed) or added[renamed], theirs, renamed)
                settled |= {} if both is None else {renamed: both, each.path: None}
            elif (kind := place.kind_of(each.path, _read_head(base))) not in (Kind.NOTE, Kind.CORE, Kind.DOC):
                # One side removed it, the other changed it. Of the owner's words nothing is removed.
                left = merge_lines(base, b"", theirs) if kind in (Kind.SNIPPET, Kind.JOURNAL) else None
                settled[each.path] = left if left and left.strip() else None
    # Both sides gave a note another name: of its two files, which git makes equal, the one that sorts first stays.
    named: dict[str, list[str]] = {}
    for each in unmerged:
        data = merged.get(each.path)
        if each.base is None and bool(each.ours) != bool(each.theirs) and data and (note_id := _read_id(data)):
            named.setdefault(note_id, []).append(each.path)
    groups = (sorted(paths) for paths in named.values())
    return settled | {path: None for first, *others in groups for path in others if merged[path] == merged[first]}


def has_markers(data: bytes) -> bool:
    """Return whether a text has the markers of a conflict."""
    return data.startswith(_MARK) or b"\n" + _MARK in data


def _read_id(data: bytes) -> str | None:
    found = _read_head(data).get("id")
    return found if isinstance(found, str) else None


def _read_head(data: bytes) -> Mapping[str, Any]:
    try:
        return frontmatter.parse(data.decode("utf-8", "replace")).fields
    except frontmatter.FrontmatterBrokenError:
        return {}
