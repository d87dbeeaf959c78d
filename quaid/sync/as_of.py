"""The index of a vault as it was at a commit, which `recall --as-of` asks.

Most of what was known then is known now, so its rows and vectors are taken from the index of the present; what differs
is read from git and parsed by the same code as everything else. The past does not change: its index is cached in a file
named after the tree it was made from, and is made again only when vectors were missing that can be computed by now.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from quaid.errors import LockedError, RevisionError
from quaid.index import documents, vectors
from quaid.index.contents import SCHEMA_VERSION
from quaid.index.documents import KnownFile
from quaid.index.sqlite import database, reuse
from quaid.place import AS_OF_DIR, CONFIG_FILE, INDEX_FILE, LOCK_FILE, state_folder
from quaid.settings import MAX_NOTE_BYTES, Settings
from quaid.sqlite import find_damage, translated
from quaid.sync.embedding import EMBED_BUDGET_S, Embedding, Progress, ignore_progress
from quaid.trust import make_state_folder
from quaid.vault import files, layout

if TYPE_CHECKING:
    from quaid.history.revisions import Point, Revisions, TreeFile
    from quaid.history.vault_history import History
    from quaid.index.sqlite.connection import SqliteIndex

MAX_PAST_INDEXES = 8
"""Past indexes that stay on disk; the least recently used are removed."""
MAX_WAIT_S = 60.0
"""The time that another process may be making one before this one gives up."""
_UNFINISHED = ".unfinished"


class Past(NamedTuple):
    """The memory as it was at `commit`, made `when` (UTC): an index to open read-only. `degraded` are sentences."""

    path: Path
    commit: str
    when: str
    degraded: tuple[str, ...] = ()


class CommitContents(NamedTuple):
    """The contents of a vault at a revision: its notes, and the files that are passed over, path -> why."""

    revisions: Revisions
    point: Point
    notes: list[TreeFile]
    passed_over: dict[str, str]


class PastIndexes:
    """Makes and keeps the past indexes of one vault, in its state folder."""

    def __init__(self, root: Path, settings: Settings, embedding: Embedding, git: History) -> None:
        self._settings = settings
        self._layout = layout.Layout.of(settings.vault)
        self._embedding = embedding
        self._git = git
        self._root = root
        self._present = state_folder(root) / INDEX_FILE
        self._folder = state_folder(root) / AS_OF_DIR
        self._known: dict[str, Past] = {}
        self._first_day: date | None = None

    def open(self, wanted: str, progress: Progress | None = None) -> Past:
        """Return the index of the vault at a revision, or at the end of a day (2026-03-01); make it if there is none.

        Chunks whose vectors are in no cache are embedded for `EMBED_BUDGET_S` at most; the next call goes on.

        Raises:
            RevisionError: there is no such commit, or no vault at that commit.
            GitError, VaultReadOnlyError, DiskFullError, LockedError: it cannot be read, or cannot be written.
        """
        known = self._known.get(wanted)
        if known is not None and _touch(known.path):
            return known
        revisions = self._git.revisions
        point = revisions.find(wanted)
        past = self._find(point) or self._make(list_contents(revisions, point, wanted), progress or ignore_progress)
        if not past.degraded:  # under its id alone: a branch moves on, a commit does not
            self._known[past.commit] = past
        return past

    def first_day(self) -> date | None:
        """Return the day of the first commit, which can be asked for; None where there is none yet."""
        self._first_day = self._first_day or self._git.revisions.find_first_day()
        return self._first_day

    @contextmanager
    def discarding(self) -> Iterator[None]:
        """Delete the indexes that the body makes when it ends."""
        existing = set(self._folder.glob("*.db"))
        try:
            yield
        finally:
            for path in set(self._folder.glob("*.db")) - existing:
                path.unlink(missing_ok=True)

    def _path(self, point: Point) -> Path:
        """Named after all that decides what is in it."""
        import hashlib

        settings = SCHEMA_VERSION, MAX_NOTE_BYTES, self._layout, self._embedding.fingerprint()
        return self._folder / f"{point.tree}-{hashlib.sha256(repr(settings).encode()).hexdigest()[:12]}.db"

    def _find(self, point: Point) -> Past | None:
        """Return a past that was made before and lacks nothing that can be computed now."""
        path = self._path(point)
        if not _touch(path):
            return None
        try:
            with closing(database.connect_reader(path)) as reader:
                is_waiting = self._embedding.fingerprint() is not None and vectors.list_pending(reader, 1)
                return None if is_waiting else self._describe(point, reader)
        except database.DatabaseError:
            return None

    def _describe(self, point: Point, index: SqliteIndex) -> Past:
        missing = vectors.count_pending(index) if self._embedding.fingerprint() is not None else 0
        sentence = f"pending: {missing:,} chunks of that commit have no vector yet; ask again to go on with them"
        return Past(self._path(point), point.id, point.when, (sentence,) if missing else ())

    def _make(self, contents: CommitContents, progress: Progress) -> Past:
        make_state_folder(self._root)
        path = self._path(contents.point)
        unfinished = path.with_suffix(_UNFINISHED)
        with translated(self._folder), self._lock():
            if past := self._find(contents.point):  # another process has made it while this one waited
                return past
            try:
                try:
                    past = self._fill(unfinished, self._present, contents, progress)
                except (database.DatabaseError, UnicodeDecodeError):
                    if not find_damage(self._present):  # else nothing is taken from it
                        raise
                    unfinished.unlink(missing_ok=True)
                    past = self._fill(unfinished, None, contents, progress)
                unfinished.replace(path)
            finally:
                unfinished.unlink(missing_ok=True)
            newest_first = sorted(self._folder.glob("*.db"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
            for old in newest_first[MAX_PAST_INDEXES:]:
                old.unlink(missing_ok=True)
            return past

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Let one process at a time make a past, and remove what a killed one left unfinished."""
        from filelock import FileLock, Timeout

        self._folder.mkdir(mode=0o700, exist_ok=True)
        try:
            with FileLock(self._folder / LOCK_FILE, timeout=MAX_WAIT_S, mode=0o600):
                for stray in self._folder.glob(f"*{_UNFINISHED}"):
                    stray.unlink(missing_ok=True)
                yield
        except Timeout as error:
            raise LockedError("Another Quaid process is making an index of the past") from error

    def _fill(self, path: Path, present: Path | None, contents: CommitContents, progress: Progress) -> Past:
        from quaid.vault import notes

        same: list[str] = []
        others: dict[str, bytes] = {}
        with reuse.open_new(path, present) as index:
            with index.transaction():
                reusable = reuse.list_reusable(index, MAX_NOTE_BYTES)
                for done, (name, data) in enumerate(contents.revisions.read_files(contents.notes)):
                    progress("Reading the past", done, len(contents.notes))
                    if reusable.get(name) == notes.content_hash(data):
                        same.append(name)
                    else:
                        others[name] = data
                reuse.reuse_documents(index, same)
                for name, data in others.items():
                    note = notes.parse_note(name, data, MAX_NOTE_BYTES, self._layout)
                    documents.replace_document(index, note, KnownFile(len(data), 0, 0, 0, 0, note.content_hash))
                documents.replace_passed_over(index, contents.passed_over)
                progress("Reading the past", len(contents.notes), len(contents.notes))
                fingerprint, embedder = self._embedding.fingerprint(), self._embedding.embedder()
                if fingerprint is not None and embedder is not None:
                    settings = asdict(self._settings.embedding)
                    row = vectors.use_embedder(index, fingerprint, embedder.dimension, settings)
                    reuse.reuse_vectors(index, row)
            self._embedding.fill(index, progress, budget_s=EMBED_BUDGET_S, fetch=False)
            return self._describe(contents.point, index)


def list_contents(revisions: Revisions, point: Point, wanted: str) -> CommitContents:
    """List a revision as `files.list_notes` would list its checkout."""
    listed = revisions.list_files(point.id)
    named = [file for file in listed if layout.is_note_path(file.rel_path)]
    reasons = {file.rel_path: files.why_passed_over(file.rel_path, file.mode) for file in named}
    reasons |= dict.fromkeys(revisions.list_filtered(named), "is stored through a git filter, and reads run no filter")
    notes = [file for file in named if reasons[file.rel_path] is None]
    if not notes and all(file.rel_path != CONFIG_FILE for file in listed):
        raise RevisionError(wanted, "there was no vault yet")
    return CommitContents(
        revisions, point, notes, {files.printable(path): reason for path, reason in reasons.items() if reason}
    )


def _touch(path: Path) -> bool:
    """Return whether the file is there, and mark it as used, so that nobody removes it before a reader opens it."""
    try:
        os.utime(path)
    except PermissionError:
        return path.exists()
    except OSError:
        return False
    return True
