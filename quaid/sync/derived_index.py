"""Files -> index, one way: list, diff, read, parse, replace, embed. index.db and docs.db are two uses of it.

Words first, vectors after: one SQLite write transaction brings documents, words and graph up to date with the
files (it is also the lock that keeps two syncs apart), then what has no vector yet is embedded outside of any
transaction and added in batches. A kill in between leaves chunks pending, and the next sync goes on.
"""

import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import ClassVar, NamedTuple

from quaid.errors import QuaidError
from quaid.index import contents, documents, vectors
from quaid.index.documents import KnownFile
from quaid.index.port import IndexConnection
from quaid.index.sqlite import database
from quaid.index.sqlite.connection import SqliteIndex
from quaid.model import Note
from quaid.place import state_folder
from quaid.sqlite import BUSY_MS, DamageRetries, translated
from quaid.sync import diff
from quaid.sync.embedding import Embedding, Progress, ignore_progress
from quaid.trust import make_state_folder
from quaid.vault.files import FileStat, FolderDigests, NoteListing, folder_of, without_folders_of

_MADE_WITH = "made_with"
MANY = 5_000
"""Of more files it is remembered which folders hold what the index has: a sweep looks at each file there, but compares
only the digest of all. Where that is another one, and after any write, the files are compared one by one.
"""


@dataclass(frozen=True, slots=True)
class SyncOptions:
    """The thoroughness and the patience of a sync."""

    rebuild: bool = False
    """Forget the index and read every file again."""
    trust_times: bool = True
    """False reads every file even where size and times say it is unchanged."""
    accept_removals: bool = False
    embed_budget_s: float | None = None
    """Stop embedding after this many seconds and leave the rest pending; None goes on to the end."""
    fetch_weights: bool = True
    only: frozenset[str] | None = None
    """Look at these keys alone, unless the index is empty: nothing else has changed, or is asked for."""
    wait_ms: int = BUSY_MS
    """The time that another process may keep the index before this one gives up."""


@dataclass(frozen=True, slots=True)
class SyncReport:
    """The changes that one sync made, by key: the path of a note, the id of a document.

    `pending` chunks still wait for their vector; `rebuilt` says why the index was rebuilt. `passed_over` are files
    that are not read, key -> why; `problems` sentences about what is odd in files that were read now, `redacted` the
    kinds of secrets that were found in them.
    """

    added: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    removed: tuple[str, ...] = ()
    total: int = 0
    embedded: int = 0
    pending: int = 0
    rebuilt: str | None = None
    degraded: tuple[str, ...] = ()
    took_s: float = 0.0
    passed_over: Mapping[str, str] = field(default_factory=dict)
    problems: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    redacted: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def changed(self) -> int:
        return len(self.added) + len(self.modified) + len(self.renamed) + len(self.removed)


class DerivedIndex(ABC):
    """Keeps one database in the state folder of the vault at `root` equal to files: a subclass lists and parses them.

    The database knows each file by its key. `made_with` are the settings that decide what is in it; when they change
    it is rebuilt.
    """

    noun: ClassVar[str]
    """The name of its files, in the plural."""

    def __init__(self, root: Path, file_name: str, embedding: Embedding, made_with: str = "") -> None:
        self.root = root
        self.path = state_folder(root) / file_name
        self._embedding = embedding
        self._made_with = made_with

    @abstractmethod
    def list_files(self, only: Collection[str] | None, folders: FolderDigests | None = None) -> NoteListing:
        """Return the files that are there, key -> stat, and those that are passed over; all, those in `only`, or all
        but those of unchanged `folders`.
        """

    @abstractmethod
    def read_file(self, key: str) -> bytes | None:
        """Return what is searched of a file; None when it is gone."""

    @abstractmethod
    def parse_file(self, key: str, data: bytes) -> Note:
        """Return a file as it is indexed."""

    def refuse_removals(self, _connection: IndexConnection, _gone: Sequence[str], _known: int) -> QuaidError | None:
        """Return an error if the removal of the keys `gone`, out of `known`, looks like an accident."""
        return None

    def is_emptied(self, _connection: IndexConnection, _key: str, _size: int) -> bool:
        """Return whether a file, of `_size` bytes now, says next to nothing of what the index has of it."""
        return False

    def list_outdated(self, _connection: IndexConnection, _is_whole: bool) -> Collection[str]:
        """Return the keys of documents to be replaced though their files may say the same; `is_whole` where all of them
        will be.
        """
        return ()

    def is_made_with(self, connection: IndexConnection) -> bool:
        """Return whether it was made with the present settings."""
        return contents.get_meta(connection, _MADE_WITH) == self._made_with

    def sync(self, options: SyncOptions | None = None, progress: Progress | None = None) -> SyncReport:
        """Bring the index up to date with the files; a damaged or outdated one is rebuilt.

        Raises:
            MassRemovalError: too many files vanished at once. They stay in the index; all else is up to date.
            LockedError: another process has been indexing for longer than `wait_ms`.
            UnwritableError: it cannot be written.
        """
        started, retries = time.monotonic(), DamageRetries(self.path)
        options, progress = options or SyncOptions(), progress or ignore_progress
        while True:
            with translated(self.path, busy="Another Quaid process is updating the index"), retries:
                make_state_folder(self.root)
                connection, is_outdated = database.connect_writer(self.path, options.wait_ms)
                with closing(connection):
                    report, refusal = self._sync_words(connection, options, progress)
                    budget_s, fetch = options.embed_budget_s, options.fetch_weights
                    filled = self._embedding.fill(connection, progress, budget_s=budget_s, fetch=fetch, may_leave=True)
                if refusal is not None:
                    raise refusal
                rebuilt = "it was made by another version of Quaid" if is_outdated else report.rebuilt
                return replace(
                    report,
                    rebuilt="the index was damaged" if retries.notice else rebuilt,
                    **filled._asdict(),
                    took_s=time.monotonic() - started,
                )

    def rebuild_in_memory(self, known: SqliteIndex | None = None) -> SqliteIndex:
        """Return an index without a file and without vectors, made from nothing; or `known`, which was made so, brought
        up to date.
        """
        connection = known or database.make_in_memory()
        self._sync_words(connection, SyncOptions(accept_removals=True), ignore_progress)
        return connection

    def _sync_words(
        self, connection: IndexConnection, options: SyncOptions, progress: Progress
    ) -> tuple[SyncReport, QuaidError | None]:
        """Index the words of what has changed; also return the error of removals that were refused."""
        written: list[str] = []
        hashes: dict[str, str] = {}  # of new files, where others are gone: one may be the other under a new name
        problems: dict[str, tuple[str, ...]] = {}
        redacted: dict[str, tuple[str, ...]] = {}
        with connection.transaction():
            rebuilt = self._clear(connection, options)
            before = documents.count(connection)
            only = options.only if before else None  # an index of a few would pass for one of all
            outdated, known_folders = self.list_outdated(connection, only is None), contents.list_folders(connection)
            folders = FolderDigests(without_folders_of(known_folders, outdated) if options.trust_times else {})
            # A new index may become a large one.
            listed = self.list_files(only, folders if only is None and not 0 < before <= MANY else None)
            known = list_known(connection, listed, folders, only)
            added, suspects, removed = diff.compare(listed.notes, known, trust_times=options.trust_times)
            outdated = listed.notes.keys() & outdated
            emptied = [key for key in suspects if self.is_emptied(connection, key, listed.notes[key].size)]
            to_read = [*added, *sorted({*suspects, *outdated}.difference(emptied))]
            for done, key in enumerate(to_read):
                progress(f"Reading {self.noun}", done, len(to_read))
                old_hash = None if key in outdated else suspects.get(key)
                if (new := self._replace(connection, key, listed.notes[key], old_hash)) is None:
                    continue
                content_hash, parsed = new
                written.append(key)
                if removed and done < len(added):
                    hashes[key] = content_hash
                if odd := parsed.problems[: -1 if parsed.redacted else None]:  # the last one tells of the secrets
                    problems[key] = odd
                if parsed.redacted:
                    redacted[key] = parsed.redacted
            progress(f"Reading {self.noun}", len(to_read), len(to_read))
            documents.replace_passed_over(connection, listed.passed_over, only)
            renamed = diff.pair_renames(hashes, removed)
            gone = tuple(key for key in removed if key not in renamed)
            lost = (*gone, *emptied)
            refusal = None if options.accept_removals else self.refuse_removals(connection, lost, before)
            if refusal is not None:
                gone, emptied = (), []
            written += [key for key in emptied if self._replace(connection, key, listed.notes[key], None)]
            for key in (*renamed, *gone):
                documents.remove_document(connection, key)
            same = {} if only is None else without_folders_of(known_folders, [*to_read, *removed])
            if folders.found and documents.count(connection) > MANY:  # those that a second look would pass over
                left = diff.compare(listed.notes, list_known(connection, listed, folders))
                same = without_folders_of(folders.found, chain(*left))
            contents.replace_folders(connection, known_folders, same)
        is_new, new_names = set(added), set(renamed.values())
        report = SyncReport(
            added=tuple(key for key in written if key in is_new and key not in new_names),
            modified=tuple(key for key in written if key not in is_new),
            renamed=tuple(renamed.items()),
            removed=gone,
            total=documents.count(connection),
            rebuilt=rebuilt,
            passed_over=listed.passed_over,
            problems=problems,
            redacted=redacted,
        )
        return report, refusal

    def _clear(self, connection: IndexConnection, options: SyncOptions) -> str | None:
        """Forget everything if that is asked for or the settings have changed, and say so in the second case."""
        is_other = not self.is_made_with(connection)
        is_outdated = is_other and documents.count(connection) > 0
        if options.rebuild or is_outdated:
            connection.clear()
        if options.rebuild or is_other:
            contents.set_meta(connection, _MADE_WITH, self._made_with)
        return f"the settings for {self.noun} have changed" if is_outdated else None

    def _replace(
        self, connection: IndexConnection, key: str, stat: FileStat, old_hash: str | None
    ) -> tuple[str, Note] | None:
        """Index a file again; return its content hash and what is indexed, None if it is unchanged or gone."""
        from quaid.vault import notes  # not above: a read that finds nothing new parses nothing

        read_ns = time.time_ns()
        data = self.read_file(key)
        if data is None:  # gone, or swapped for a link, since the listing: the next sync sees it
            return None
        row = KnownFile(*stat, read_ns, notes.content_hash(data))
        if row.content_hash == old_hash:
            documents.touch(connection, key, row)
            return None
        parsed = self.parse_file(key, data)
        documents.replace_document(connection, parsed, row)
        return row.content_hash, parsed


def list_known(
    connection: IndexConnection, listed: NoteListing, folders: FolderDigests, only: Collection[str] | None = None
) -> Iterable[tuple[str, KnownFile]]:
    """Return what the index knows of the files in `only`, or of all but those of unchanged `folders`."""
    if not folders.unchanged:
        return documents.list_known(connection, only)
    known = list(documents.list_known(connection, listed.notes))
    if len(known) + folders.unchanged == documents.count(connection):  # no file is gone
        return known
    same = dict(folders.known.items() & folders.found.items())
    return (each for each in documents.list_known(connection) if folder_of(each[0]) not in same)


MAX_DIFFERENCES = 20
"""Differences that `verify` lists."""


class Verification(NamedTuple):
    """The result of `verify`: `manifest` is equal on two machines with equal files, `differences` are the first
    `MAX_DIFFERENCES`, as sentences.
    """

    ok: bool
    manifest: str
    notes: int
    pending: int
    differences: tuple[str, ...]


def verify(index: DerivedIndex, reader: IndexConnection) -> Verification:
    """Compare the index behind `reader` with one rebuilt from the files, row by row, and check it for damage."""
    with closing(index.rebuild_in_memory()) as rebuilt:
        current, made = Counter(contents.dump(reader)), Counter(contents.dump(rebuilt))
        notes = sum(line.startswith("documents ") for line in made)
        manifest = contents.manifest(rebuilt)
    found = [f"only in the index: {line}" for line in sorted((current - made).elements())]
    found += [f"missing from the index: {line}" for line in sorted((made - current).elements())]
    # On a connection of its own: FTS5 checks by what a connection has cached, which another one's writing outdates.
    with closing(database.connect_reader(index.path)) as own:
        found += database.find_inconsistencies(own)
    return Verification(
        not found, manifest, notes, vectors.count_pending(reader), tuple(islice(found, MAX_DIFFERENCES))
    )
