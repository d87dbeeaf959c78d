"""What a remote may bring: files. Nothing that links elsewhere, runs, or says what Quaid and git do. Pure.

A fetched tree is data of somebody else's. It is looked at before anything of it reaches the owner's files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from unicodedata import normalize

from quaid.errors import QuaidError
from quaid.history.git import SUBMODULE
from quaid.history.merges import TreeChange
from quaid.history.purged import FOLDER
from quaid.history.staging import EXECUTABLE, NEW_FILE
from quaid.place import CONFIG_FILE
from quaid.sync.diff import is_emptied, pair_renames
from quaid.vault import files, frontmatter, layout

MAX_FILE_BYTES = 100_000_000
_LINK = "120000"
_SHOWN = 20
_ATTACHMENTS = (
    *(".png", ".jpg", ".jpeg", ".gif", ".webp", ".avif", ".heic", ".bmp", ".tif", ".tiff", ".pdf", ".csv"),
    *(".mp3", ".m4a", ".wav", ".ogg", ".opus", ".flac", ".aac", ".mp4", ".mov", ".webm", ".mkv", ".3gp"),
    *(".tsv", ".base", ".canvas"),
)
"""Besides notes, the endings of files that nothing runs and no agent obeys."""
_INSTRUCTIONS = frozenset(
    {"agent", "agents", "aider", "claude", "cline", "codex", "conventions", "copilot", "copilot-instructions", "crush"}
    | {"cursor", "gemini", "grok", "instructions", "opencode", "qwen", "rules", "skill", "skills", "warp", "windsurf"}
)
"""What notes are called that agents take for instructions in any folder: one of these between full stops."""
_OF_AGENTS = frozenset({"agents", "commands", "skills"})
"""Folders of such notes."""
_CORE = frozenset({"bootstrap", "heartbeat", "identity", "memory", "soul", "tools", "user"})
"""What the notes are called that go into each session, and those that the janitor folds into them."""
_OF_CORE = frozenset({"journal", "projects", "snippets"})
"""The folders, besides the vault itself, in which they do."""


class IncomingRefusedError(QuaidError):
    """A remote has something that Quaid does not take in."""

    code = "incoming_refused"

    def __init__(self, problem: str, next_step: str) -> None:
        super().__init__(f"{problem}: nothing was pulled. {next_step}")


@dataclass(frozen=True, slots=True)
class Allowance:
    """What the owner has agreed to in this pull: the steering files whose digest is `steering`, many removals."""

    steering: str = ""
    removals: bool = False


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The vault that the changes come into. `sizes` are bytes by blob. `paths` are those of the tree that it becomes,
    where the file system takes small and capital letters for the same, else none. `hooks` is the folder of git's hooks
    in the work tree, empty where it is none. `vouched` are the paths that only known owners have touched, None where
    nobody else writes.
    """

    remote: str
    branch: str
    sizes: Mapping[str, int]
    paths: Collection[str] = ()
    hooks: str = ""
    vouched: Collection[str] | None = ()


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
    steering = [change for change in changes if _steers(change.path, around.hooks) or _is_obeyed(change, around)]
    # Long enough that nobody finds two sets of changes with one digest, to show the one and bring the other.
    digest = hashlib.sha256("\n".join(map(repr, steering)).encode()).hexdigest()[:40]
    if steering and allowed.steering != digest:
        listed = _shown([change.path for change in steering])
        raise IncomingRefusedError(
            f"{around.remote} changes {listed}, which programs or agents may obey here",
            f"See how: git diff HEAD...{around.remote}/{around.branch}. "
            f"To take exactly that: quaid pull {around.remote} --accept {digest}",
        )


def list_removed_notes(
    changes: Iterable[TreeChange], olds: Mapping[str, bytes], news: Mapping[str, bytes]
) -> list[str]:
    """Return the notes that go, without those that only move; `olds` and `news` are files by path."""
    notes = [change for change in changes if layout.is_note_path(change.path)]
    added = {change.path: change.new.blob for change in notes if change.old is None and change.new is not None}
    removed = {change.path: change.old.blob for change in notes if change.new is None and change.old is not None}
    moved = pair_renames(added, removed)
    return [path for path in removed if path not in moved or _empties(olds, news, path, moved[path])]


def list_emptied_notes(olds: Mapping[str, bytes], news: Mapping[str, bytes]) -> list[str]:
    """Return the notes that stay and say next to nothing any more."""
    return [path for path in olds if _empties(olds, news, path, path)]


def _empties(olds: Mapping[str, bytes], news: Mapping[str, bytes], old: str, new: str) -> bool:
    """Return whether a note exists at the path `new` with almost nothing of its content at `old`: in all, or
    below its head.
    """
    if new not in news or not layout.is_note_path(new):
        return False
    was, now = (data.decode("utf-8", "replace") for data in (olds[old], news[new]))
    return is_emptied(was, now) or is_emptied(*(text[frontmatter.body_start(text) :] for text in (was, now)))


def _find_fault(change: TreeChange, sizes: Mapping[str, int]) -> str | None:
    modes = [version.mode for version in (change.old, change.new) if version is not None]
    is_readable = files.is_unicode(change.path) and change.path.isprintable()
    is_long = is_readable and any(len(part.encode()) > files.MAX_NAME_BYTES for part in change.path.split("/"))
    if not is_readable or is_long or not layout.is_repository_path(change.path):
        return "is not a path of a file in a vault"
    if _LINK in modes:
        return "is a symbolic link; links are never followed"
    if SUBMODULE in modes:
        return "is another repository; its files are not yours to read"
    if any(mode not in {NEW_FILE, EXECUTABLE} for mode in modes):
        return "is not a file"
    size = sizes.get(change.new.blob, 0) if change.new else 0
    if size > MAX_FILE_BYTES:
        return f"has {size / 1e6:,.0f} MB; files up to {MAX_FILE_BYTES / 1e6:,.0f} MB are taken in"
    return None


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


def _is_obeyed(change: TreeChange, around: Surroundings) -> bool:
    """Return whether an agent may take a file for its instructions, or somebody may run it, and a person who is not
    known brings it. Notes and attachments by other names are read as what somebody says.
    """
    if around.vouched is None or change.path in around.vouched:
        return False
    *folders, name = change.path.casefold().split("/")
    stems = [part.strip() for part in name.split(".")[:-1]]
    is_plain = change.new is None or change.new.mode == NEW_FILE
    is_list = folders == [FOLDER] and name.endswith(".txt")  # of what was purged
    is_known_format = layout.is_note_name(name) or name.endswith(_ATTACHMENTS) or layout.is_temporary_name(name)
    is_core = not _CORE.isdisjoint(stems[:1]) and (not folders or not _OF_CORE.isdisjoint(folders))
    is_of_agents = not _INSTRUCTIONS.isdisjoint(stems) or not _OF_AGENTS.isdisjoint(folders)
    return not is_plain or not (is_known_format or is_list) or is_core or is_of_agents


def _shown(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _SHOWN:,} more" if len(paths) > _SHOWN else ""
    return ", ".join(files.printable(path) for path in paths[:_SHOWN]) + more
