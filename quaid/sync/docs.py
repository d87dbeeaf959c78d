"""Docs -> docs.db, one way: the second derived index, of the documents of projects.

They may lie outside of the vault, so who knows the projects says which files they are, and takes them apart. All else
is as with index.db: words in one write transaction, vectors after it; killed anywhere and run again it is the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from quaid.index import database, documents, passages
from quaid.index.documents import Known
from quaid.model import ParsedDoc
from quaid.place import DOCS_FILE, state_folder
from quaid.settings import Settings
from quaid.sqlite import BUSY_MS, transaction
from quaid.sync import diff
from quaid.sync.embedding import Embedding, Progress
from quaid.sync.indexer import SyncReport, in_health, max_note_bytes, open_writer, silent
from quaid.vault import files

if TYPE_CHECKING:
    import apsw

ParseDoc = Callable[[str, str, bytes], ParsedDoc]
"""(id of the doc, project, bytes) -> the doc as it is indexed."""
_CUT_BY = "docs_cut_by"


@dataclass(frozen=True, slots=True)
class DocFile:
    """Where a doc lies: `folder / rel_path`, the latter with slashes. `project` is whose it is."""

    folder: Path
    rel_path: str
    project: str


@dataclass(frozen=True, slots=True)
class DocsReport(SyncReport):
    """What one sync of the docs did, by their ids.

    `passed_over` are those that are not read, id -> why; `problems` sentences about what is odd in docs that were read
    now, `redacted` the kinds of secrets that were found in them.
    """

    passed_over: Mapping[str, str] = field(default_factory=dict)
    problems: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    redacted: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(slots=True)
class _Written:
    """What the word phase found, id -> content hash."""

    added: dict[str, str] = field(default_factory=dict)
    modified: list[str] = field(default_factory=list)
    removed: dict[str, str] = field(default_factory=dict)
    problems: dict[str, tuple[str, ...]] = field(default_factory=dict)
    redacted: dict[str, tuple[str, ...]] = field(default_factory=dict)


class DocsIndex:
    """Keeps docs.db of the vault at `root` equal to the docs it is told of; `parse` takes them apart."""

    def __init__(self, root: Path, settings: Settings, embedding: Embedding, parse: ParseDoc) -> None:
        self.path = state_folder(root) / DOCS_FILE
        self._root = root
        self._settings = settings
        self._embedding = embedding
        self._parse = parse

    def sync(
        self,
        docs: Mapping[str, DocFile],
        *,
        budget_s: float | None = None,
        progress: Progress | None = None,
        fetch_weights: bool = True,
        wait_ms: int = BUSY_MS,
    ) -> DocsReport:
        """Bring the index in step with `docs` (id -> file), all there are; a damaged or outdated one is built anew.

        Embedding ends after `budget_s` seconds, None goes on to the end; `wait_ms` is how long another process may keep
        the index before this one gives up.

        Raises:
            LockedError: another process has been indexing for longer than that.
            DiskFullError, DiskFailedError, VaultReadOnlyError: it cannot be written.
        """
        started = time.monotonic()
        progress = progress or silent

        def sync(damaged: str | None) -> DocsReport:
            report = self._sync(docs, budget_s, progress, fetch_weights=fetch_weights, wait_ms=wait_ms)
            return replace(report, rebuilt=damaged or report.rebuilt)

        return replace(in_health(self.path, sync), took_s=time.monotonic() - started)

    def rebuild_in_memory(self, docs: Mapping[str, DocFile]) -> apsw.Connection:
        """An index made from nothing, without vectors: what the one on disk must be equal to."""
        connection = database.make_in_memory()
        self._sync_words(connection, docs, silent)
        return connection

    def _sync(
        self,
        docs: Mapping[str, DocFile],
        budget_s: float | None,
        progress: Progress,
        *,
        fetch_weights: bool,
        wait_ms: int,
    ) -> DocsReport:
        with open_writer(self._root, self.path, wait_ms) as (connection, outdated):
            report = self._sync_words(connection, docs, progress)
            filled = self._embedding.fill(connection, progress, budget_s=budget_s, fetch=fetch_weights)
        reason = "it was made by another version of Quaid" if outdated else report.rebuilt
        return replace(
            report, rebuilt=reason, embedded=filled.embedded, pending=filled.pending, degraded=filled.degraded
        )

    def _sync_words(self, connection: apsw.Connection, docs: Mapping[str, DocFile], progress: Progress) -> DocsReport:
        with transaction(connection):
            rebuilt = self._forget_other_cuts(connection)
            known = documents.list_known(connection)
            projects = documents.list_projects(connection)
            listed, passed_over = _list(docs)
            found = diff.compare(listed, known)
            written = _Written()
            for doc_id in found.removed:
                documents.remove_document(connection, doc_id)
                written.removed[doc_id] = known[doc_id].content_hash
            changed_hands = [each for each in listed if each in known and docs[each].project != projects[each]]
            to_read = [*found.added, *sorted({*found.suspects, *changed_hands})]
            for done, doc_id in enumerate(to_read):
                progress("Reading docs", done, len(to_read))
                old = None if doc_id in found.added else (known[doc_id], projects[doc_id])
                self._write_one(connection, doc_id, docs[doc_id], listed[doc_id], old, written)
            progress("Reading docs", len(to_read), len(to_read))
            documents.replace_passed_over(connection, passed_over)
        renamed = diff.pair_renames(written.added, written.removed)
        return DocsReport(
            added=tuple(doc_id for doc_id in written.added if doc_id not in renamed.values()),
            modified=tuple(written.modified),
            renamed=tuple(renamed.items()),
            removed=tuple(doc_id for doc_id in written.removed if doc_id not in renamed),
            passed_over=passed_over,
            problems=written.problems,
            redacted=written.redacted,
            total=documents.count(connection),
            rebuilt=rebuilt,
        )

    def _forget_other_cuts(self, connection: apsw.Connection) -> str | None:
        """Docs that were cut by other settings are no longer known; why they are not, None when all is as it was."""
        cut = self._settings.docs
        wanted = f"{cut.chunk_tokens} {cut.overlap_tokens} {max_note_bytes(self._settings)}"
        found = database.get_meta(connection, _CUT_BY)
        if found == wanted:
            return None
        if found is not None:
            database.clear(connection)
        database.set_meta(connection, _CUT_BY, wanted)
        return None if found is None else "the settings for docs are others"

    def _write_one(
        self,
        connection: apsw.Connection,
        doc_id: str,
        file: DocFile,
        stat: files.FileStat,
        old: tuple[Known, str | None] | None,
        written: _Written,
    ) -> None:
        from quaid.vault import notes  # not above: a sync that finds nothing new parses nothing

        read_ns = time.time_ns()
        data = self._read(file)
        if data is None:  # gone, or swapped for a link, since the listing: the next sync sees it
            return
        row = Known(stat.size, stat.mtime_ns, stat.ctime_ns, stat.inode, read_ns, notes.content_hash(data))
        if old is not None and (old[0].content_hash, old[1]) == (row.content_hash, file.project):
            documents.touch(connection, doc_id, row)
            return
        parsed = self._parse(doc_id, file.project, data)
        passages.insert(connection, documents.replace_document(connection, parsed.note, row), parsed.passages)
        if odd := parsed.note.problems[: -1 if parsed.redacted else None]:  # the last one tells of the secrets
            written.problems[doc_id] = odd
        if parsed.redacted:
            written.redacted[doc_id] = parsed.redacted
        if old is None:
            written.added[doc_id] = row.content_hash
        else:
            written.modified.append(doc_id)

    def _read(self, file: DocFile) -> bytes | None:
        """As much as is searched, and one byte more that tells that there is more."""
        try:
            return files.read_note(file.folder, file.rel_path, max_note_bytes(self._settings) + 1)
        except PermissionError:
            return b""
        except OSError:
            return None


def _list(docs: Mapping[str, DocFile]) -> tuple[dict[str, files.FileStat], dict[str, str]]:
    """The docs that are there, id -> stat, and those that are not to be read, id -> why."""
    by_folder: dict[Path, list[str]] = {}
    passed_over: dict[str, str] = {}
    for doc_id, file in docs.items():
        if _leads_out(file.rel_path):
            passed_over[files.printable(doc_id)] = "lies outside of its folder"
        else:
            by_folder.setdefault(file.folder, []).append(doc_id)
    listed: dict[str, files.FileStat] = {}
    for folder, doc_ids in by_folder.items():
        found = files.list_some(folder, {docs[doc_id].rel_path for doc_id in doc_ids})
        for doc_id in doc_ids:
            rel_path = docs[doc_id].rel_path
            if (stat := found.notes.get(rel_path)) is not None:
                listed[doc_id] = stat
            elif (reason := found.passed_over.get(files.printable(rel_path))) is not None:
                passed_over[files.printable(doc_id)] = reason
    return listed, passed_over


def _leads_out(rel_path: str) -> bool:
    return rel_path.startswith("/") or ".." in rel_path.split("/") or "\0" in rel_path
