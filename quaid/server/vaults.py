"""The vaults of a server: their folders with mirror and working copy, their indexes, and the view of one caller.

A commit never changes, so no time or size is compared: the index records up to which commit it says what
the repository says, git names the notes in which another commit differs, and only these are read.
"""

import hashlib
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, cast

from filelock import FileLock, Timeout

from quaid.config import own_names, settings_for_reading
from quaid.errors import BadInputError, LockedError, NoteNotFoundError, QuaidError
from quaid.history.git import Git
from quaid.history.mirrors import Mirror, MirrorLimits, WorkingCopy
from quaid.history.repository import Repository
from quaid.history.revisions import Revisions
from quaid.history.vault_history import History
from quaid.index import contents, documents, vectors
from quaid.index.cache import AnswerCache
from quaid.index.documents import KnownFile
from quaid.index.port import IndexConnection
from quaid.index.postgres.server import IndexServer
from quaid.index.postgres.vectors import QuestionVectors
from quaid.index.postgres.words import QuestionWords
from quaid.index.references import NoteView, view_note
from quaid.memory import Memory
from quaid.model import Commit, Recall
from quaid.place import CACHE_FILE, CONFIG_FILE, make_private_folder, state_folder, write_private
from quaid.recall import pipeline
from quaid.recall.answers import list_owner_names, with_source
from quaid.recall.options import RecallOptions
from quaid.recall.search import Sources
from quaid.recall.visibility import VisibleCommits
from quaid.server.catalogue import ServedVault
from quaid.server.database import UNREACHABLE, DatabaseUnreachableError
from quaid.server.tokens import Caller
from quaid.settings import MAX_NOTE_BYTES, Settings
from quaid.sync.as_of import CommitContents, list_contents
from quaid.sync.derived_index import SyncReport
from quaid.sync.embedding import Embedding, ignore_progress
from quaid.text.zones import local_now
from quaid.vault import notes, transaction
from quaid.vault.layout import Layout

_UNFINISHED = "writing"
_OTHERS_WRITE = "Others keep writing to this vault"
ATTRIBUTES = ".gitattributes"
COMMIT = "commit"
MAX_PATH = 600
"""Characters of a path that any engine can look up."""
_MADE_WITH = "made_with"


class VaultFolder:
    """The folder of one vault. `line` lets one writer of this process wait for the vault's lease."""

    def __init__(self, path: Path, mirror: Mirror) -> None:
        self.path = path
        self.mirror = mirror
        self.mutex = threading.Lock()
        self.line = threading.Lock()

    @contextmanager
    def writing(self) -> Iterator[WorkingCopy]:
        """Yield the working copy. If the process is killed in the block, or it leaves changes that would become part of
        another write, the copy and its state are discarded before the next write: it was never acknowledged.
        """
        copy = WorkingCopy(self.path / "copy", self.mirror)
        mark = self.path / _UNFINISHED
        if mark.exists():
            state = state_folder(copy.root)
            # Except the vectors of texts, which no write can spoil.
            for path in (copy.root, *(each for each in state.glob("*") if not each.name.startswith(CACHE_FILE))):
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink(missing_ok=True)
        make_private_folder(self.path)
        mark.touch(mode=0o600)
        try:
            yield copy
        except QuaidError:
            if transaction.needs_recovery(copy.root) or transaction.list_uncommitted(copy.root):
                raise
            mark.unlink(missing_ok=True)
            raise
        mark.unlink(missing_ok=True)

    @contextmanager
    def alone(self, wait_s: float) -> Iterator[None]:
        """Lock the folder, and the mirror, which servers may share.

        Raises:
            LockedError: they are locked for longer than `wait_s` seconds.
        """
        until = time.monotonic() + wait_s
        with holding(self.mutex, wait_s):
            make_private_folder(self.mirror.folder.parent)
            lock = FileLock(f"{self.mirror.folder}.lock", mode=0o600)
            try:
                lock.acquire(timeout=max(0.0, until - time.monotonic()))
            except Timeout:
                raise LockedError(_OTHERS_WRITE) from None
            try:
                yield
            finally:
                lock.release()


class VaultFolders:
    """The folders of the vaults of this server."""

    def __init__(self, place: Path, mirrors: Path, limits: MirrorLimits) -> None:
        self._place = place
        self._mirrors = mirrors
        self._limits = limits
        self._known: dict[tuple[int, str, str], VaultFolder] = {}
        self._mutex = threading.Lock()

    def of(self, vault: ServedVault) -> VaultFolder:
        """Return the folder of a vault; a vault that was added again has another one."""
        key = (vault.vault, vault.address, vault.branch)
        with self._mutex:
            if key not in self._known:
                name = f"{vault.vault}-{vault.name}"
                place = self._mirrors / "vaults" / name / "mirror.git"
                mirror = Mirror(place, vault.address, vault.branch, self._limits)
                self._known[key] = VaultFolder(self._place / "vaults" / name, mirror)
            return self._known[key]


@contextmanager
def holding(mutex: threading.Lock, wait_s: float) -> Iterator[None]:
    """Hold a lock. LockedError: others have it for longer than `wait_s` seconds."""
    if not mutex.acquire(timeout=wait_s):
        raise LockedError(_OTHERS_WRITE)
    try:
        yield
    finally:
        mutex.release()


class ServedMemory:
    """A served vault; it belongs to one thread. `root` contains the vault's quaid.toml and nothing else."""

    def __init__(
        self, root: Path, settings: Settings, folder: VaultFolder, server: IndexServer, key: str, embedding: Embedding
    ) -> None:
        self.root = root
        self.settings = settings
        self.remarks: tuple[str, ...] = ()
        self._folder = folder
        self._embedding = embedding
        self._owners = own_names(root, settings)
        self._owner_names = list_owner_names(root, settings, self._owners)
        self._whole, self._visible = server.open(key), server.open(key, self._owners)

    def recall(self, query: str, limit: int | None = None, *, as_of: str | None = None, **options: Any) -> Recall:
        """Return the memories that answer `query`, best first. `options` are the fields of `RecallOptions`; options
        about the record of an answer are ignored.

        Raises:
            BadInputError: `as_of` is given.
        """
        if as_of is not None:
            raise BadInputError("A server does not answer as of the past. Ask where the vault is cloned.")
        fields = {name: value for name, value in options.items() if name not in {"door", "keep", "session"}}
        wanted = RecallOptions(limit=limit, now=local_now(self.settings.timezone), **fields)
        visible = self._visible
        with visible.snapshot():  # it hides what the owners may not see, and nothing of the vault is in memory after it
            words, cache, embedder_of = QuestionWords(), AnswerCache(), self._embedding.embedder_of
            own = QuestionVectors(words), words, cache
            sources = Sources(visible, visible, embedder_of, *own, owner_names=self._owner_names)
            answer = pipeline.recall(sources, query, self.settings.recall, wanted)
            waiting = vectors.count_missing(visible, cache)
        is_embedded = not wanted.keyword_only and self.settings.embedding.provider != "none"
        if waiting and is_embedded and self._embedding.embedder() is not None:
            answer = replace(answer, degraded=(*answer.degraded, "pending"))
        return answer

    def search(self, query: str, limit: int | None = None, **options: Any) -> Recall:
        """Keywords only: no model, no graph."""
        return self.recall(query, limit, keyword_only=True, **options)

    def get(self, reference: str) -> NoteView:
        """Return the referenced note, turn or section; NoteNotFoundError, AmbiguousReferenceError."""
        with self._visible.snapshot():
            view = view_note(self._visible, reference, self.settings.timezone)
            commit = contents.get_meta(self._visible, COMMIT) or ""
        mirror = self._folder.mirror
        if mirror.resolve(commit) is None:  # another server has indexed it
            mirror.fetch()
        data = mirror.read(commit, view.document.path)
        if data is None:
            raise NoteNotFoundError(reference)
        return with_source(view, data)

    def history(self, reference: str, limit: int = 20) -> list[Commit]:
        """Return the commits that touched a note, newest first, across renames."""
        document = self.get(reference).document
        mirror = self._folder.mirror
        git = History(mirror.folder, self.settings.git, mirror.git.repository)
        life = git.note_history(document.path, None if document.id == document.path else document.id)
        visible = VisibleCommits(self._whole, self._visible, git, self._owners, Layout.of(self.settings.vault))
        return visible.of_parts(revision.commit for revision in life[:limit])

    def warm(self) -> None:
        """Load the embedding model, once for all vaults."""
        self._embedding.warm()

    def index(self) -> IndexConnection:
        """Return the index without the private notes of others."""
        return self._visible


MAX_OPEN = 256
"""Vaults, each as one owner sees it, that are open, with their settings; the least recently used is closed."""


class Indexes:
    """The indexes of all vaults. Safe to use from several threads."""

    def __init__(self, address: str, size: int) -> None:
        self._address = address
        self._size = size
        self._server: IndexServer | None = None
        self._opened: dict[tuple[int, int, str, str], ServedMemory] = {}
        self._mutex = threading.Lock()

    def open(self) -> None:
        """Connect. Raises DatabaseUnreachableError."""
        with _explaining():
            self._server = IndexServer(self._address, self._size)

    def close(self) -> None:
        if self._server is not None:
            self._server.close()

    def update(self, folder: VaultFolder, vault: ServedVault, commit: str) -> str:
        """Index `commit` of a vault, which its mirror has, and return its quaid.toml.

        Raises:
            DatabaseUnreachableError, LockedError, RevisionError, GitError
        """
        config = (folder.mirror.read(commit, CONFIG_FILE) or b"").decode("utf-8", "replace")
        root, settings = _read_settings(folder.path, config)
        with _explaining():
            index = self._connect().open(vault.key)
            index_commit(index, folder.mirror.folder, commit, settings, Embedding(root, settings.embedding))
        return config

    def forget(self, vault: ServedVault) -> None:
        """Remove all rows of a vault. Raises DatabaseUnreachableError."""
        with _explaining():
            index = self._connect().open(vault.key)
            with index.transaction():
                index.clear()

    @contextmanager
    def memory(self, folder: VaultFolder, vault: ServedVault, caller: Caller) -> Iterator[Memory]:
        """Yield a vault as of the last indexed commit, as `caller` may see it.

        Raises:
            DatabaseUnreachableError
            QuaidError: no commit is indexed yet.
        """
        if vault.indexed is None:
            raise QuaidError("This vault has not been read yet. Try again in a moment.", code="not_indexed")
        # Each thread has its own, so that none waits for another's question.
        key = (threading.get_ident(), vault.vault, caller.owner, hashlib.sha256(vault.config.encode()).hexdigest())
        with _explaining():
            with self._mutex:
                memory = self._opened.pop(key, None)
            if memory is None:
                root, settings = _read_settings(folder.path, vault.config)
                settings = replace(settings, owner=caller.owner)
                embedding = Embedding(root, settings.embedding)
                memory = ServedMemory(root, settings, folder, self._connect(), vault.key, embedding)
            with self._mutex:
                self._opened[key] = memory  # the latest used is last
                if len(self._opened) > MAX_OPEN:
                    del self._opened[next(iter(self._opened))]
            yield cast("Memory", memory)

    def _connect(self) -> IndexServer:
        assert self._server is not None, "it is opened first"
        return self._server


def _read_settings(folder: Path, config: str) -> tuple[Path, Settings]:
    """Return a folder with nothing but this quaid.toml, and the settings in it."""
    root = folder / "config" / hashlib.sha256(config.encode()).hexdigest()[:16]
    if not (root / CONFIG_FILE).exists():
        write_private(root / CONFIG_FILE, config)
    settings, _ = settings_for_reading(root)
    quiet = replace(settings.notifications, channels="", webhook="")
    return root, replace(settings, notifications=quiet, models=replace(settings.models, provider="none"))


@contextmanager
def _explaining() -> Iterator[None]:
    """Raise DatabaseUnreachableError if the database does not answer."""
    try:
        yield
    except UNREACHABLE as error:
        raise DatabaseUnreachableError from error


def index_commit(
    index: IndexConnection, repository: Path, commit: str, settings: Settings, embedding: Embedding | None = None
) -> SyncReport:
    """Bring `index` to what the bare `repository` holds at `commit`, whatever it held before, in one transaction; then
    embed what has no vector yet.

    Raises:
        RevisionError: there is no such commit, or no vault at it.
        GitError: the repository cannot be read.
        LockedError: another process has been writing the index for too long.
    """
    revisions = Revisions(Git(Repository(repository, repository, repository, "")))
    point = revisions.find(commit)
    found = list_contents(revisions, point, commit)
    with index.transaction():
        report = _write_words(index, revisions, found, settings)
    if embedding is None:
        return report
    filled = embedding.fill(index, ignore_progress, budget_s=None, fetch=False)
    return replace(report, **filled._asdict())


def _write_words(index: IndexConnection, revisions: Revisions, found: CommitContents, settings: Settings) -> SyncReport:
    layout = Layout.of(settings.vault)
    made_with = f"{contents.SCHEMA_VERSION} {MAX_NOTE_BYTES} {layout!r}"
    before = contents.get_meta(index, COMMIT)
    is_other = before is not None and contents.get_meta(index, _MADE_WITH) != made_with
    rebuilt = is_other or (before is not None and not revisions.has_commit(before))
    if rebuilt:
        index.clear()
        before = None
    listed = {file.rel_path: file for file in found.notes if len(file.rel_path) <= MAX_PATH}
    long = (file.rel_path[:MAX_PATH] for file in found.notes if len(file.rel_path) > MAX_PATH)
    too_long = dict.fromkeys(long, f"has a path of more than {MAX_PATH} characters")
    known = {path for path, _ in documents.list_known(index)}
    changed = set(listed)
    if before is not None:
        differ = {file.rel_path for files in revisions.compare(before, found.point.id) for file in files if file}
        if not any(PurePosixPath(path).name == ATTRIBUTES for path in differ):  # which say how git hands out every file
            changed = differ
    wanted = [listed[path] for path in sorted((listed.keys() - known) | changed) if path in listed]
    gone = sorted(known - listed.keys())
    for path in gone:
        documents.remove_document(index, path)
    for path, data in revisions.read_files(wanted):
        note = notes.parse_note(path, data, MAX_NOTE_BYTES, layout)
        put = documents.replace_document if path in known else documents.add_document
        put(index, note, KnownFile(len(data), 0, 0, 0, 0, note.content_hash))
    documents.replace_passed_over(index, {**found.passed_over, **too_long})
    contents.set_meta(index, COMMIT, found.point.id)
    contents.set_meta(index, _MADE_WITH, made_with)
    paths = [file.rel_path for file in wanted]
    return SyncReport(
        added=tuple(path for path in paths if path not in known),
        modified=tuple(path for path in paths if path in known),
        removed=tuple(gone),
        total=len(listed),
        rebuilt="it was of another history or other settings" if rebuilt else None,
    )
