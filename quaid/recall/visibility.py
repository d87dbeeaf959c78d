"""The files and commits that one owner may see, by the rule of `index.scope`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from quaid.errors import GitError
from quaid.index import documents
from quaid.index.scope import PRIVATE, is_visible
from quaid.model import CORE_FILES
from quaid.vault import files, layout
from quaid.vault.markdown import text_of_note

if TYPE_CHECKING:
    from quaid.history.vault_history import History
    from quaid.index.port import IndexConnection
    from quaid.model import Commit
    from quaid.vault.layout import Layout


def may_see(path: str, data: bytes, owners: Collection[str], place: Layout) -> bool:
    """Return whether the file `path`, which holds `data`, is not a note that somebody else keeps private."""
    if not layout.is_note_path(path):
        return True
    if not re.search(rb"owner|privacy|\0", data):  # nothing to parse, which takes a hook 30 ms
        return is_visible("default", PRIVATE, owners)
    from quaid.vault import notes

    note = notes.parse_note(path, data, max_bytes=len(data) + 1, place=place)
    return is_visible(note.owner, note.privacy, owners)


def visible_paths(paths: Iterable[str], whole: IndexConnection, seen: IndexConnection) -> list[str]:
    """Return `paths` without the notes that are in the whole index and not in what its owner sees of it."""
    wanted = list(paths)
    hidden = dict(documents.list_known(whole, wanted)).keys() - dict(documents.list_known(seen, wanted))
    return [path for path in wanted if path not in hidden]


class VisibleCommits:
    """Commits as `owners` may see them: files that another keeps private are not named, and a commit of nothing else is
    left out. A note that is gone counts as what it last was.
    """

    def __init__(
        self, whole: IndexConnection, seen: IndexConnection, history: History, owners: Collection[str], place: Layout
    ) -> None:
        self._whole, self._seen = whole, seen
        self._history = history
        self._owners = owners
        self._layout = place

    def of(self, commits: Iterable[Commit]) -> list[Commit]:
        """Return those of `commits` that may be seen."""
        found = [(commit, self._files(commit)) for commit in commits]
        return [replace(commit, files=files) for commit, files in found if files or not commit.files]

    def _files(self, commit: Commit) -> tuple[str, ...]:
        visible = visible_paths(commit.files, self._whole, self._seen)
        # Of notes that are gone: those that somebody else kept private when the commit left or removed them.
        gone = set(commit.files) - dict(documents.list_known(self._whole, commit.files)).keys()
        gone = {path for path in gone if layout.is_note_path(path)}
        hidden: set[str] = set()
        revisions = self._history.revisions
        for revision in (commit.id, f"{commit.id}^"):
            if not gone:
                break
            try:
                found = [file for file in revisions.list_files(revision) if file.rel_path in gone and file.is_regular]
                contents = dict(revisions.read_files(found))
            except GitError:  # before the first commit, or where a clone ends
                continue
            hidden |= {path for path, data in contents.items() if not may_see(path, data, self._owners, self._layout)}
            gone -= contents.keys()
        return tuple(path for path in visible if path not in hidden)


def read_core_notes(root: Path, owners: Collection[str], place: Layout) -> Iterator[tuple[str, str]]:
    """Yield (file, text) of each core note that says something to one of `owners`; the template's have a heading each
    and nothing under it.
    """
    for name in CORE_FILES:
        if said := text_of_note(read_visible(root, name, owners, place)):
            yield name, said


def read_visible(root: Path, path: str, owners: Collection[str], place: Layout) -> str:
    """Return what a note says, empty where another keeps it private."""
    data = files.read_note(root, path) or b""
    return data.decode("utf-8", "replace") if may_see(path, data, owners, place) else ""
