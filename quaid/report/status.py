"""The state of a vault that `quaid status` shows, as plain data."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from quaid.capture.note_finder import list_waiting
from quaid.embed import resolve
from quaid.errors import QuaidError
from quaid.index import documents, vectors
from quaid.index.sqlite import database
from quaid.index.sqlite.reader import IndexReader
from quaid.local import locks, quarantine
from quaid.local.empty_readings import EmptyReadings
from quaid.local.session_notes import SessionNotes
from quaid.place import LOCAL_FILE, state_folder
from quaid.recall.visibility import may_see, visible_paths
from quaid.remotes.exchange import RemoteState
from quaid.report.attention import Attention, list_attention, list_remote_attention
from quaid.report.language import propose_model
from quaid.report.outbound import list_outbound, list_sent
from quaid.resident.listener import Listening, find_listening
from quaid.sync.derived_index import SyncOptions
from quaid.sync.follow import find_watcher
from quaid.vault import files, layout
from quaid.vault.transaction import list_deferred, list_uncommitted

TAUGHT_DAYS = 7

if TYPE_CHECKING:
    from quaid.index.port import IndexConnection
    from quaid.memory import Memory


@dataclass(frozen=True, slots=True)
class RepositoryStatus:
    """The git side. `uncommitted` are the owner's changes, without what Quaid wrote and git refused. `problem` says
    that git itself could not be asked; then the rest is empty.
    """

    branch: str | None = None
    head: str | None = None
    operation: str | None = None
    locked: bool = False
    detached: bool = False
    uncommitted: tuple[str, ...] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Index:
    """The derived side. `state` is fresh, updated (it lagged behind and was brought up to date just now) or stale."""

    state: str
    notes: int = 0
    changed: int = 0
    chunks: int = 0
    pending: int = 0
    failed: int = 0
    problem: str | None = None
    embedding: bool = False
    """A process embeds what is pending, in the background."""
    serving: str | None = None
    """The model that answers until the configured one has embedded all; None where that one answers."""


@dataclass(frozen=True, slots=True)
class EmbeddingState:
    """The model that is configured; `problem` says why it is not there."""

    provider: str
    model: str
    ready: bool
    problem: str | None = None
    proposal: str = ""
    """Why another model would find more."""


@dataclass(frozen=True, slots=True)
class Watcher:
    """What follows the vault; `alive` is False for a `quaid watch` that died without saying so."""

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
    repository: RepositoryStatus
    index: Index
    embedding: EmbeddingState
    watcher: Watcher | None
    resident: Listening | None
    """The process that answers for others."""
    state: str
    """The folder of what only this machine knows."""
    leaves: tuple[str, ...]
    """A phrase for each kind of data that leaves this machine."""
    offline: bool
    problems: tuple[tuple[str, str], ...]
    waiting_episodes: tuple[str, ...]
    queued_notes: int
    taught_nothing: int
    """Conversations that were read in vain during the last `TAUGHT_DAYS` days."""
    quarantined: int
    sync: str
    """What is done with the remotes without being told: off, ask or auto."""
    remotes: tuple[RemoteState, ...]
    attention: tuple[Attention, ...]


def status_of(memory: Memory, now: datetime | None = None) -> Status:
    """Return how the vault is. The index is brought up to date first, as before every read."""
    index, whole, seen = _index_state(memory)
    repository = _repository_state(memory)
    try:
        connection, everything = seen.open(), whole.open()
        problems = tuple(documents.list_problems(connection)) if connection else ()
        problems = tuple(each for each in problems if _may_name(memory, each[0]))
        counts = documents.count_by(connection, "kind") if connection else {}
        waiting = list_waiting(memory.root, connection) if connection else ()
        if connection and everything:
            uncommitted = visible_paths(repository.uncommitted, everything, connection)
            uncommitted = [path for path in uncommitted if _may_name(memory, path)]
            repository = replace(repository, uncommitted=tuple(uncommitted))
        proposal = propose_model(connection, memory.settings.embedding) if connection else ""
    finally:
        whole.close()
        seen.close()
    ready, problem = memory.embedding.embedder() is not None, memory.embedding.problem
    configured = memory.settings.embedding
    model = resolve(configured).model
    embedding = EmbeddingState(configured.provider, model, ready, str(problem) if problem else None, proposal)
    watcher = None
    now = now or datetime.now(UTC)
    if heartbeat := find_watcher(state_folder(memory.root), now):
        is_alive = heartbeat.is_alive(now)
        watcher = Watcher(
            heartbeat.pid, heartbeat.mode, is_alive, heartbeat.started, heartbeat.last_sync, heartbeat.problem
        )
    remotes: tuple[RemoteState, ...] = ()
    with suppress(QuaidError):  # as they were last known, without network; that git cannot be asked shows elsewhere
        remotes = tuple(memory.remotes.list_states())
    attention = list_attention(memory, index, embedding, watcher, repository, problems)
    attention = (*attention, *list_remote_attention(remotes))
    return Status(
        vault=str(memory.root),
        counts=counts,
        repository=repository,
        index=index,
        embedding=embedding,
        watcher=watcher,
        resident=find_listening(memory.root),
        state=str(state_folder(memory.root)),
        leaves=(*list_outbound(memory.settings), *list_sent(memory.settings, remotes)),
        offline=memory.settings.offline,
        problems=problems,
        waiting_episodes=waiting,
        queued_notes=SessionNotes(state_folder(memory.root) / LOCAL_FILE).count(),
        taught_nothing=_count_taught_nothing(memory),
        quarantined=quarantine.count(state_folder(memory.root)),
        sync=memory.settings.git.sync,
        remotes=remotes,
        attention=attention,
    )


def _may_name(memory: Memory, path: str) -> bool:
    """Return whether the owner may see a path: a file that is not indexed, such as a sync tool's copy or one that is
    removed and not committed, may be somebody's private note.
    """
    data = files.read_note(memory.root, path)
    if data is None:
        data = memory.git.read_at("HEAD", path)
    return may_see(path, data or b"", memory.owners, layout.Layout.of(memory.settings.vault))


def _index_state(memory: Memory) -> tuple[Index, IndexReader, IndexReader]:
    """Return how the index is, and readers of all of it and of what its owner sees."""
    reader, seen = IndexReader(memory.indexer.path), IndexReader(memory.indexer.path, memory.owners)
    state, changed, problem = "fresh", 0, None
    try:
        is_fresh = False
        with suppress(database.DatabaseError):
            connection = reader.open()
            is_fresh = connection is not None and memory.indexer.is_fresh(connection)
        if not is_fresh:
            budget_s = memory.settings.recall.embed_budget_s
            report = memory.sync(SyncOptions(embed_budget_s=budget_s, fetch_weights=False))
            # A note as young as the clock's tick is read again to be sure: that alone is not a change.
            state, changed = ("updated" if report.changed else "fresh"), report.changed
    except QuaidError as error:
        state, problem = "stale", str(error)
    connection = reader.open()
    if connection is None:
        return Index(state, problem=problem), reader, seen
    pending, failed = vectors.count_pending(connection), count_chunks(connection, "failed")
    notes, chunks = documents.count(connection), count_chunks(connection)
    is_embedding = bool(pending) and locks.is_held(state_folder(memory.root) / locks.EMBEDDING_LOCK)
    earlier = vectors.list_embedders(connection)[:-1]
    serving = next((str(row.settings.get("model", "")) for row in earlier if row.active), None)
    return Index(state, notes, changed, chunks, pending, failed, problem, is_embedding, serving), reader, seen


def _repository_state(memory: Memory) -> RepositoryStatus:
    try:
        state = memory.git.state()
        waiting = {
            edit.rel_path
            for each in (*list_uncommitted(memory.root), *list_deferred(memory.root))
            for edit in each.change.edits
        }
        uncommitted = tuple(path for path in memory.git.uncommitted() if path not in waiting)
    except QuaidError as error:
        return RepositoryStatus(problem=str(error))
    return RepositoryStatus(state.branch, state.head, state.operation, state.locked, state.detached, uncommitted)


def _count_taught_nothing(memory: Memory) -> int:
    since = (datetime.now(UTC) - timedelta(days=TAUGHT_DAYS)).date().isoformat()
    return len({found.session for found in EmptyReadings(state_folder(memory.root) / LOCAL_FILE).since(since)})


def count_chunks(connection: IndexConnection, state: str | None = None) -> int:
    """The chunks of the index, with `state` those whose embedding is in it."""
    row = connection.execute("SELECT count(*) FROM chunks WHERE ?1 IS NULL OR embedded = ?1", (state,)).fetchone()
    return int(row[0]) if row else 0
