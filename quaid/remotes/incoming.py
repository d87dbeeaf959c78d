"""What a remote may bring: files. Nothing that links elsewhere, runs, or says what Quaid and git do. Pure.

A fetched tree is data of somebody else's. It is looked at before anything of it reaches the owner's files.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from unicodedata import normalize

from quaid.errors import QuaidError
from quaid.history.git_output import SUBMODULE
from quaid.history.tree_merge import TreeChange
from quaid.place import CONFIG_FILE
from quaid.sync.diff import looks_like_accident, pair_renames
from quaid.vault import files, layout

MAX_FILE_BYTES = 100_000_000
_LINK = "120000"
_FILES = ("100644", "100755")
_SHOWN = 3


class IncomingRefusedError(QuaidError):
    """A remote has something that Quaid does not take in."""

    code = "incoming_refused"

    def __init__(self, problem: str, next_step: str) -> None:
        super().__init__(f"{problem}: nothing was pulled. {next_step}")


@dataclass(frozen=True, slots=True)
class Allowance:
    """What the owner has said yes to: settings and hidden files of this remote, many removals in this pull."""

    settings: bool = False
    removals: bool = False


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The vault that the changes come into. `sizes` are bytes by blob. `paths` are those of the tree that it becomes,
    where the file system takes small and capital letters for the same, else none. `hooks` is the folder of git's hooks
    in the work tree, empty where it is none. `count_notes` counts those that there are; `count` and `share` are the
    removal guard.
    """

    remote: str
    branch: str
    sizes: Mapping[str, int]
    count_notes: Callable[[], int]
    count: int
    share: float
    paths: Collection[str] = ()
    hooks: str = ""


def check(changes: Sequence[TreeChange], around: Surroundings, allowed: Allowance) -> None:
    """Refuse what the vault must not become.

    Raises:
        IncomingRefusedError: the first thing that is not taken in, with the path.
    """
    by_hand = f"Look at it with: git diff HEAD...{around.remote}/{around.branch}. If it is meant, merge it with git."
    for change in changes:
        if problem := _find_fault(change, around.sizes):
            raise IncomingRefusedError(f"{around.remote} brings {_shown([change.path])}, which {problem}", by_hand)
    if clash := _find_clash(changes, around.paths):
        raise IncomingRefusedError(f"{around.remote} brings {_shown(clash)}, which are one file on this disk", by_hand)
    steering = [change.path for change in changes if _steers(change.path, around.hooks)]
    if steering and not allowed.settings:
        raise IncomingRefusedError(
            f"{around.remote} changes {_shown(steering)}, which say what Quaid, git or other programs do here",
            f"If you know who writes there, say so once for this remote: quaid remote trust {around.remote} --settings",
        )
    gone = list_removed_notes(changes)
    if allowed.removals or len(gone) <= around.count:
        return
    notes = around.count_notes()
    if looks_like_accident(gone, notes, around.count, around.share):
        raise IncomingRefusedError(
            f"{around.remote} removes {len(gone):,} of {notes:,} notes",
            "If that is right: quaid pull --accept-removals",
        )


def list_removed_notes(changes: Iterable[TreeChange]) -> list[str]:
    """Return the notes that go, without those that only move."""
    notes = [change for change in changes if layout.is_note_path(change.path)]
    added = {change.path: change.new.blob for change in notes if change.old is None and change.new is not None}
    removed = {change.path: change.old.blob for change in notes if change.new is None and change.old is not None}
    moved = pair_renames(added, removed)
    return [path for path in removed if path not in moved]


def _find_fault(change: TreeChange, sizes: Mapping[str, int]) -> str | None:
    modes = [version.mode for version in (change.old, change.new) if version is not None]
    if not files.is_unicode(change.path) or not change.path.isprintable() or not _fits(change.path):
        return "is not a path of a file in a vault"
    if _LINK in modes:
        return "is a symbolic link; links are never followed"
    if SUBMODULE in modes:
        return "is another repository; its files are not yours to read"
    if any(mode not in _FILES for mode in modes):
        return "is not a file"
    size = sizes.get(change.new.blob, 0) if change.new else 0
    return (
        f"has {size / 1e6:,.0f} MB; files up to {MAX_FILE_BYTES / 1e6:,.0f} MB are taken in"
        if size > MAX_FILE_BYTES
        else None
    )


def _fits(path: str) -> bool:
    return layout.is_repository_path(path) and all(
        len(part.encode()) <= files.MAX_NAME_BYTES for part in path.split("/")
    )


def _find_clash(changes: Iterable[TreeChange], paths: Collection[str]) -> list[str] | None:
    """Return two paths that differ in case or in the form of their letters alone, one of them new."""
    known: dict[str, str] = {}
    new = {change.path for change in changes if change.old is None}
    for path in sorted(paths):
        twin = known.setdefault(normalize("NFC", path).casefold(), path)
        if twin != path and not new.isdisjoint({path, twin}):
            return [twin, path]
    return None


def _steers(path: str, hooks: str) -> bool:
    """Return whether a file says what programs do: settings of Quaid, of git, of editors, and git's hooks. The hidden
    file of a killed write, which its owner has committed, says nothing.
    """
    *folders, name = path.split("/")
    is_hidden = any(part.startswith(".") for part in folders) or (
        name.startswith(".") and not layout.is_temporary_name(name)
    )
    return is_hidden or path == CONFIG_FILE or bool(hooks and path.startswith(f"{hooks}/"))


def _shown(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _SHOWN:,} more" if len(paths) > _SHOWN else ""
    return ", ".join(files.printable(path) for path in paths[:_SHOWN]) + more
