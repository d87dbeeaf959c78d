"""What a remote may bring: files. Nothing that links elsewhere, runs, or says what Quaid and git do. Pure.

A fetched tree is data of somebody else's. It is looked at before anything of it reaches the owner's files.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple
from unicodedata import normalize

from quaid.errors import QuaidError, name_first
from quaid.history.git import SUBMODULE, Changes, Version
from quaid.history.purged import FOLDER
from quaid.history.staging import NEW_FILE, REGULAR
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


class Source(NamedTuple):
    """The branch that is pulled: its remote, its name, the commit it is at. `is_own`: its owner alone writes there."""

    remote: str
    branch: str
    commit: str
    is_own: bool = False


def check(
    changes: Changes,
    source: Source,
    sizes: Mapping[str, int],
    accepted: str = "",
    *,
    paths: Collection[str] = (),
    hooks: str = "",
    vouched: Collection[str] | None = (),
) -> None:
    """Refuse what the vault must not become.

    Args:
        changes: the edits that turn its own tree into the new one, by git's paths.
        source: where they come from.
        sizes: bytes by blob.
        accepted: the digest of the steering files that its owner has agreed to.
        paths: those of the tree that it becomes, where the file system takes small and capital letters for the same.
        hooks: the folder of git's hooks in the work tree, empty where it is none.
        vouched: the paths that only known owners have touched, None where nobody else writes.

    Raises:
        IncomingRefusedError: the first thing that is not taken in, with the path.
    """
    remote, difference = source.remote, f"git diff HEAD...{source.remote}/{source.branch}"
    by_hand = f"Look at it with: {difference}. If it is meant, merge it with git."
    for path, versions in changes.items():
        if problem := _find_fault(path, versions, sizes):
            raise IncomingRefusedError(f"{remote} brings {_shown([path])}, which {problem}", by_hand)
    # Two paths that differ in case or in the form of their letters alone, one of them new.
    known: dict[str, str] = {}
    new = {path for path, (old, _) in changes.items() if old is None}
    for path in sorted(paths):
        twin = known.setdefault(normalize("NFC", path).casefold(), path)
        if twin != path and not new.isdisjoint({path, twin}):
            raise IncomingRefusedError(
                f"{remote} brings {_shown([twin, path])}, which are one file on this disk", by_hand
            )
    steering = [
        (path, old, new)
        for path, (old, new) in changes.items()
        if _steers(path, hooks) or (vouched is not None and path not in vouched and _is_obeyed(path, new))
    ]
    # Long enough that nobody finds two sets of changes with one digest, to show the one and bring the other.
    digest = hashlib.sha256("\n".join(map(repr, steering)).encode()).hexdigest()[:40]
    if steering and accepted != digest:
        raise IncomingRefusedError(
            f"{remote} changes {_shown([path for path, _, _ in steering])}, which programs or agents may obey here",
            f"See how: {difference}. To take exactly that: quaid pull {remote} --accept {digest}",
        )


def list_removed_notes(changes: Changes, olds: Mapping[str, bytes], news: Mapping[str, bytes]) -> list[str]:
    """Return the notes that go, without those that only move; `olds` and `news` are files by path."""
    notes = {path: versions for path, versions in changes.items() if layout.is_note_path(path)}
    added = {path: new.blob for path, (old, new) in notes.items() if old is None and new is not None}
    removed = {path: old.blob for path, (old, new) in notes.items() if new is None and old is not None}
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


def _find_fault(path: str, versions: Sequence[Version | None], sizes: Mapping[str, int]) -> str | None:
    modes = [version.mode for version in versions if version is not None]
    is_readable = files.is_unicode(path) and path.isprintable()
    is_long = is_readable and any(len(part.encode()) > files.MAX_NAME_BYTES for part in path.split("/"))
    if not is_readable or is_long or not layout.is_repository_path(path):
        return "is not a path of a file in a vault"
    if _LINK in modes:
        return "is a symbolic link; links are never followed"
    if SUBMODULE in modes:
        return "is another repository; its files are not yours to read"
    if any(mode not in REGULAR for mode in modes):
        return "is not a file"
    size = sizes.get(versions[1].blob, 0) if versions[1] else 0
    if size > MAX_FILE_BYTES:
        return f"has {size / 1e6:,.0f} MB; files up to {MAX_FILE_BYTES / 1e6:,.0f} MB are taken in"
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


def _is_obeyed(path: str, new: Version | None) -> bool:
    """Return whether an agent may take a file for its instructions, or somebody may run it. Notes and attachments by
    other names are read as what somebody says.
    """
    *folders, name = path.casefold().split("/")
    stems = [part.strip() for part in name.split(".")[:-1]]
    is_plain = new is None or new.mode == NEW_FILE
    is_list = folders == [FOLDER] and name.endswith(".txt")  # of what was purged
    is_known_format = layout.is_note_name(name) or name.endswith(_ATTACHMENTS) or layout.is_temporary_name(name)
    is_core = not _CORE.isdisjoint(stems[:1]) and (not folders or not _OF_CORE.isdisjoint(folders))
    is_of_agents = not _INSTRUCTIONS.isdisjoint(stems) or not _OF_AGENTS.isdisjoint(folders)
    return not is_plain or not (is_known_format or is_list) or is_core or is_of_agents


def _shown(paths: Sequence[str]) -> str:
    return name_first(list(map(files.printable, paths)), _SHOWN)
