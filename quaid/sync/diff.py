"""The difference between two listings: files on disk and rows of the index. Pure."""

import re
from collections.abc import Collection, Iterable, Mapping

from quaid.index.documents import KnownFile
from quaid.vault.files import FileStat

# A file written within this long before it was read may have been written again in the same clock tick.
_TICK_NS = 20_000_000
_COARSE_TICK_NS = 2_000_000_000
_LEFT_SHARE = 4
"""A note that keeps less than one part in so many of its letters is emptied."""
_NO_LETTERS = re.compile(r"[\W_]+")


def compare(
    listed: Mapping[str, FileStat], known: Iterable[tuple[str, KnownFile]], *, trust_times: bool = True
) -> tuple[list[str], dict[str, str], dict[str, str]]:
    """Return the paths that are new, those that may have changed, which only their content can tell, and those that are
    gone; sorted, known ones with their content hash. Without `trust_times` every known file may have changed.

    `known` is read once and not stored: next to the listing of a million files it would take another 600 MB.
    """
    added = set(listed)
    suspects: dict[str, str] = {}
    removed: dict[str, str] = {}
    for path, row in known:
        stat = listed.get(path)
        if stat is None:
            removed[path] = row.content_hash
            continue
        added.discard(path)
        is_same = stat == row[:4]  # size, mtime, ctime, inode
        if not (trust_times and is_same and _is_old(stat.mtime_ns, stat.ctime_ns, row.read_ns)):
            suspects[path] = row.content_hash
    return sorted(added), dict(sorted(suspects.items())), dict(sorted(removed.items()))


def pair_renames(added: Mapping[str, str], removed: Mapping[str, str]) -> dict[str, str]:
    """Return old path -> new path of the files that moved: those with equal content, of several the one with the same
    name; then those with the same name, which were edited as well. Both maps are path -> hash of the content.
    """
    pairs: dict[str, str] = {}
    for has_content, has_name in ((True, True), (True, False), (False, True)):
        sources: dict[tuple[str, str], list[str]] = {}
        for path in sorted(removed.keys() - pairs.keys(), reverse=True):
            name = path.rpartition("/")[2]
            sources.setdefault((removed[path] * has_content, name * has_name), []).append(path)
        for path in sorted(added.keys() - set(pairs.values())):
            name = path.rpartition("/")[2]
            if same := sources.get((added[path] * has_content, name * has_name)):
                pairs[same.pop()] = path
    return pairs


MAX_REMOVED, MAX_REMOVED_SHARE = 10, 0.2


def looks_like_accident(removed: Collection[str], known: int) -> bool:
    """Return whether more than 10 notes and more than a fifth of all vanished at once."""
    return len(removed) > MAX_REMOVED and len(removed) > MAX_REMOVED_SHARE * known


def is_emptied(was: str, now: str) -> bool:
    """Return whether next to nothing is left of a text: by its letters, as spaces and what is not seen say nothing."""
    before, after = (len(_NO_LETTERS.sub("", text)) for text in (was, now))
    return after * _LEFT_SHARE < before


def _is_old(mtime_ns: int, ctime_ns: int, read_ns: int) -> bool:
    """Return whether a file was last written so long before it was read that a later write would show."""
    # A time of modification after the reading was set by hand and says nothing about when; the change time cannot be.
    newest = ctime_ns if mtime_ns > read_ns else max(mtime_ns, ctime_ns)
    tick = _COARSE_TICK_NS if newest % 1_000_000_000 == 0 else _TICK_NS
    return newest + tick < read_ns
