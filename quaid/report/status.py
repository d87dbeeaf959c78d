"""How a vault is and what it is made of: what `quaid status` and `quaid stats` show, as plain data above Memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from quaid.capture.note_finder import list_waiting
from quaid.errors import QuaidError
from quaid.index import database, documents, graph, vectors
from quaid.index.reader import IndexReader
from quaid.local import quarantine
from quaid.model import Kind, Use
from quaid.place import CACHE_FILE, INDEX_FILE, LOCAL_FILE, state_folder
from quaid.recall.bookkeeping import Bookkeeping
from quaid.recall.visibility import visible_paths
from quaid.report.attention import Attention, list_attention
from quaid.report.outbound import list_outbound
from quaid.sync.derived_index import SyncOptions
from quaid.sync.follow import Heartbeat, read_heartbeat

if TYPE_CHECKING:
    import apsw

    from quaid.local.gaps import Gap
    from quaid.local.recall_numbers import RecallNumbers
    from quaid.memory import Memory

MOST_RECALLED = 10
MOST_GAPS = 100


@dataclass(frozen=True, slots=True)
class Repository:
    """The git side. `problem` says that git itself could not be asked; then the rest is empty."""

    branch: str | None = None
    head: str | None = None
    operation: str | None = None
    locked: bool = False
    detached: bool = False
    uncommitted: tuple[str, ...] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Index:
    """The derived side. `state` is fresh, updated (it lagged behind and was brought in step just now) or stale."""

    state: str
    notes: int = 0
    changed: int = 0
    chunks: int = 0
    pending: int = 0
    failed: int = 0
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class EmbeddingState:
    """The model that is configured; `problem` says why it is not there."""

    provider: str
    model: str
    ready: bool
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Watcher:
    """A `quaid watch` that left a heartbeat; `alive` is False when it died without saying so."""

    pid: int
    mode: str
    alive: bool
    started: str
    last_sync: str | None
    problem: str | None


@dataclass(frozen=True, slots=True)
class Status:
    """All of `quaid status`."""

    vault: str
    counts: dict[str, int]
    repository: Repository
    index: Index
    embedding: EmbeddingState
    watcher: Watcher | None
    state: str
    """The folder of what only this machine knows."""
    leaves: tuple[str, ...]
    """What leaves this machine, a phrase each."""
    offline: bool
    problems: tuple[tuple[str, str], ...]
    waiting_episodes: tuple[str, ...]
    queued_notes: int
    quarantined: int
    attention: tuple[Attention, ...]


@dataclass(frozen=True, slots=True)
class Stats:
    """All of `quaid stats`. Sizes are bytes."""

    vault: str
    notes: int
    kinds: dict[str, int]
    types: dict[str, int]
    statuses: dict[str, int]
    speakers: dict[str, int]
    entities: int
    edges: int
    relations: int
    chunks: int
    embedded: int
    index_bytes: int
    cache_bytes: int
    oldest: str | None
    newest: str | None


@dataclass(frozen=True, slots=True)
class MostRecalled:
    """A memory that is recalled often. `title` is None when it has been forgotten meanwhile."""

    id: str
    title: str | None
    use: Use


@dataclass(frozen=True, slots=True)
class RecallStats:
    """All of `quaid stats --recall`. `log` is the setting `recall.log`."""

    vault: str
    log: str
    numbers: RecallNumbers
    most_recalled: tuple[MostRecalled, ...]


@dataclass(frozen=True, slots=True)
class GapStats:
    """All of `quaid stats --gaps`: the newest of `total` gaps. `kept` is the setting `recall.gaps`."""

    vault: str
    kept: str
    total: int
    gaps: tuple[Gap, ...]


def status_of(memory: Memory, now: datetime | None = None) -> Status:
    """How the vault is. The index is brought up to date first, as before every read."""
    index, whole, seen = _index_state(memory)
    repository = _repository_state(memory)
    try:
        connection, everything = seen.open(), whole.open()
        problems = tuple(documents.list_problems(connection)) if connection else ()
        counts = documents.count_by(connection, "kind") if connection else {}
        waiting = list_waiting(memory.root, connection) if connection else ()
        if connection and everything:
            uncommitted = visible_paths(repository.uncommitted, everything, connection)
            repository = replace(repository, uncommitted=tuple(uncommitted))
    finally:
        whole.close()
        seen.close()
    embedding = _embedding_state(memory)
    heartbeat = read_heartbeat(state_folder(memory.root))
    watcher = _watcher(heartbeat, now or datetime.now(UTC)) if heartbeat else None
    queued = _count_queued(memory)
    attention = list_attention(memory, index, embedding, watcher, repository, problems)
    return Status(
        vault=str(memory.root),
        counts=counts,
        repository=repository,
        index=index,
        embedding=embedding,
        watcher=watcher,
        state=str(state_folder(memory.root)),
        leaves=tuple(list_outbound(memory.settings)),
        offline=memory.settings.offline,
        problems=problems,
        waiting_episodes=waiting,
        queued_notes=queued,
        quarantined=quarantine.count(state_folder(memory.root)),
        attention=attention,
    )


def stats_of(memory: Memory) -> Stats:
    """What the memory is made of."""
    connection = memory.index()
    state = state_folder(memory.root)
    oldest, newest = connection.execute("SELECT min(created), max(created) FROM documents").fetchone() or (None, None)
    return Stats(
        vault=str(memory.root),
        notes=documents.count(connection),
        kinds=documents.count_by(connection, "kind"),
        types=documents.count_by(connection, "type"),
        statuses=documents.count_by(connection, "status"),
        speakers=documents.count_by(connection, "speaker"),
        **graph.counts(connection),
        chunks=_count_chunks(connection),
        embedded=_count_chunks(connection, "ready"),
        index_bytes=_size(state / INDEX_FILE),
        cache_bytes=_size(state / CACHE_FILE),
        oldest=oldest,
        newest=newest,
    )


def recall_stats_of(memory: Memory) -> RecallStats:
    """What the recall log comes to, and what is recalled most, by all devices together.

    Raises:
        LockedError, VaultReadOnlyError, DiskFullError, StateDamagedError: local.db cannot be had.
    """
    with Bookkeeping(memory.root, memory.settings) as books:
        numbers, most_used = books.numbers(), books.most_used(MOST_RECALLED)
    connection = memory.index()
    most = tuple(MostRecalled(ref, _title(connection, ref), use) for ref, use in most_used)
    return RecallStats(str(memory.root), memory.settings.recall.log, numbers, most)


def gap_stats_of(memory: Memory) -> GapStats:
    """The questions that found nothing. Raises as `recall_stats_of`."""
    with Bookkeeping(memory.root, memory.settings) as books:
        gaps, total = books.gaps(MOST_GAPS)
    return GapStats(str(memory.root), memory.settings.recall.gaps, total, tuple(gaps))


def _index_state(memory: Memory) -> tuple[Index, IndexReader, IndexReader]:
    """How the index is, all of it, and as its owner sees it."""
    reader, seen = IndexReader(memory.indexer.path), IndexReader(memory.indexer.path, memory.answers.owners)
    state, changed, problem = "fresh", 0, None
    try:
        if not _is_fresh(memory, reader):
            budget_s = memory.settings.recall.embed_budget_s
            report = memory.sync(SyncOptions(embed_budget_s=budget_s, fetch_weights=False))
            # A note as young as the clock's tick is read again to be sure: that alone is no change.
            state, changed = ("updated" if report.changed else "fresh"), report.changed
    except QuaidError as error:
        state, problem = "stale", str(error)
    connection = reader.open()
    if connection is None:
        return Index(state, problem=problem), reader, seen
    pending, failed = vectors.count_pending(connection), _count_chunks(connection, "failed")
    notes, chunks = documents.count(connection), _count_chunks(connection)
    return Index(state, notes, changed, chunks, pending, failed, problem), reader, seen


def _is_fresh(memory: Memory, reader: IndexReader) -> bool:
    connection = reader.open()
    try:
        return connection is not None and memory.indexer.is_fresh(connection)
    except database.DatabaseError:
        return False


def _repository_state(memory: Memory) -> Repository:
    try:
        state = memory.git.state()
        uncommitted = tuple(memory.git.uncommitted())
    except QuaidError as error:
        return Repository(problem=str(error))
    return Repository(state.branch, state.head, state.operation, state.locked, state.detached, uncommitted)


def _embedding_state(memory: Memory) -> EmbeddingState:
    settings = memory.settings.embedding
    ready = memory.embedding.embedder() is not None
    problem = memory.embedding.problem
    return EmbeddingState(settings.provider, settings.model, ready, str(problem) if problem else None)


def _watcher(heartbeat: Heartbeat, now: datetime) -> Watcher:
    alive = heartbeat.is_alive(now)
    return Watcher(heartbeat.pid, heartbeat.mode, alive, heartbeat.started, heartbeat.last_sync, heartbeat.problem)


def _title(connection: apsw.Connection, reference: str) -> str | None:
    """What a memory says, or is called; None when it is no longer there."""
    note, _, turn = reference.partition("#t")
    try:
        document = documents.resolve_one(connection, note)
    except QuaidError:
        return None
    if turn.isdigit():
        return documents.text_of(connection, document.doc_id, int(turn)) or None
    return documents.text_of(connection, document.doc_id) if document.kind == Kind.FACT else document.title


def _count_queued(memory: Memory) -> int:
    path = state_folder(memory.root) / LOCAL_FILE
    if not path.exists():
        return 0
    from quaid.local.notes_to_self import NotesToSelf

    queue = NotesToSelf(path)
    try:
        return queue.count()
    finally:
        queue.close()


def _count_chunks(connection: apsw.Connection, state: str | None = None) -> int:
    row = connection.execute("SELECT count(*) FROM chunks WHERE ?1 IS NULL OR embedded = ?1", (state,)).fetchone()
    return int(row[0]) if row else 0


def _size(path: Path) -> int:
    """A database's bytes, its write-ahead log included."""
    parts = (Path(f"{path}{suffix}") for suffix in ("", "-wal"))
    return sum(part.stat().st_size for part in parts if part.exists())
