"""The difference between two listings: files on disk and rows of the index. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from quaid.index.documents import KnownFile
from quaid.vault.files import FileStat

# A file written within this long before it was read may have been written again in the same clock tick.
_TICK_NS = 20_000_000
_COARSE_TICK_NS = 2_000_000_000


@dataclass(frozen=True, slots=True)
class Diff:
    """Paths, sorted. `suspects` may have changed: only their content can tell."""

    added: tuple[str, ...] = ()
    suspects: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.suspects or self.removed)


def compare(listed: Mapping[str, FileStat], known: Mapping[str, KnownFile], *, trust_times: bool = True) -> Diff:
    """Return what must be read and what is gone. Without `trust_times` every known file is a suspect."""
    added = sorted(listed.keys() - known.keys())
    removed = sorted(known.keys() - listed.keys())
    suspects = sorted(
        path
        for path, stat in listed.items()
        if (row := known.get(path)) is not None and not (trust_times and _is_unchanged(stat, row))
    )
    return Diff(tuple(added), tuple(suspects), tuple(removed))


def is_same(listed: Mapping[str, FileStat], stats: Collection[tuple[str, int, int, int, int, int]]) -> bool:
    """Return whether `compare` finds nothing, in half its time: path, size, times of modification and change, inode and
    time of reading of each known file.
    """
    if len(listed) != len(stats):
        return False
    find = listed.get
    for path, size, mtime_ns, ctime_ns, inode, read_ns in stats:
        if find(path) != (size, mtime_ns, ctime_ns, inode):
            return False
        if max(mtime_ns, ctime_ns) + _COARSE_TICK_NS >= read_ns and not _is_old(mtime_ns, ctime_ns, read_ns):
            return False
    return True


def pair_renames(added: Mapping[str, str], removed: Mapping[str, str]) -> dict[str, str]:
    """Return old path -> new path where content (or id) is equal. Both maps are path -> what identifies it."""
    by_identity = {identity: path for path, identity in sorted(removed.items(), reverse=True)}
    pairs: dict[str, str] = {}
    for path, identity in sorted(added.items()):
        old = by_identity.pop(identity, None)
        if old is not None:
            pairs[old] = path
    return pairs


def looks_like_accident(removed: Collection[str], known: int, count: int, share: float) -> bool:
    """Return whether more vanished at once than `count` notes and than `share` of all."""
    return len(removed) > count and len(removed) > share * known


def _is_unchanged(stat: FileStat, row: KnownFile) -> bool:
    return stat == row[:4] and _is_old(stat.mtime_ns, stat.ctime_ns, row.read_ns)  # size, mtime, ctime, inode


def _is_old(mtime_ns: int, ctime_ns: int, read_ns: int) -> bool:
    """Return whether a file was last written so long before it was read that a later write would show."""
    # A time of modification after the reading was set by hand and says nothing about when; the change time cannot be.
    newest = ctime_ns if mtime_ns > read_ns else max(mtime_ns, ctime_ns)
    tick = _COARSE_TICK_NS if newest % 1_000_000_000 == 0 else _TICK_NS
    return newest + tick < read_ns
