"""The state of a vault that `quaid status` shows."""

from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from quaid.capture.note_finder import list_waiting
from quaid.embed import resolve
from quaid.errors import QuaidError, count
from quaid.history.repository import RepositoryState
from quaid.index import documents, vectors
from quaid.index.sqlite import database
from quaid.index.sqlite.database import IndexReader
from quaid.local import locks, quarantine
from quaid.local.runs import EmptyReadings
from quaid.local.session_notes import SessionNotes
from quaid.memory import Memory
from quaid.place import LOCAL_FILE
from quaid.recall.visibility import visible_paths
from quaid.remotes.exchange import RemoteState, list_states
from quaid.report.checks import (
    ATTENTION_CHECKS,
    CheckResult,
    check_remotes,
    collect,
    list_note_problems,
    list_outbound,
    may_name,
)
from quaid.resident.finding import Listening, find_listening
from quaid.sync.derived_index import SyncOptions
from quaid.sync.embedding import EMBED_BUDGET_S, MULTILINGUAL_STEP, propose_model
from quaid.sync.watcher import Heartbeat, find_watcher
from quaid.vault.transaction import list_deferred, list_uncommitted

EMPTY_DAYS = 7
GIT_STEP = "look at them with git status, then git add and git commit the changes you want to keep"


@dataclass(frozen=True, slots=True)
class RepositoryStatus(RepositoryState):
    """The git side. `uncommitted` are the owner's changes, without what Quaid wrote and git refused. `problem` says
    that git itself could not be asked; then the rest is empty.
    """

    uncommitted: tuple[str, ...] = ()
    problem: str | None = None


class IndexStatus(NamedTuple):
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


class EmbeddingStatus(NamedTuple):
    """The configured model; `problem` says why it is not ready, `proposal` why another one would find more."""

    provider: str
    model: str
    ready: bool
    problem: str | None
    proposal: str


@dataclass(frozen=True, slots=True)
class WatcherStatus(Heartbeat):
    """The process that follows the vault; `alive` is False for a `quaid watch` that crashed."""

    alive: bool = False


@dataclass(frozen=True, slots=True)
class Status:
    """All of `quaid status`."""

    vault: str
    counts: dict[str, int]
    repository: RepositoryStatus
    index: IndexStatus
    embedding: EmbeddingStatus
    watcher: WatcherStatus | None
    resident: Listening | None
    state: str
    """The state folder."""
    leaves: list[str]
    """A phrase for each kind of data that leaves this machine."""
    offline: bool
    problems: list[tuple[str, str]]
    """(path, problem) of notes."""
    waiting_episodes: tuple[str, ...]
    queued_notes: int
    taught_nothing: int
    """Conversations without facts in the last `EMPTY_DAYS` days."""
    quarantined: int
    sync: str
    """How remotes are synchronised in the background: off, ask or auto."""
    remotes: list[RemoteState]
    attention: tuple[CheckResult, ...]


def status_of(memory: Memory, now: datetime | None = None) -> Status:
    """Return how the vault is. The index is brought up to date first, as before every read."""
    now = now or datetime.now(UTC)
    settings, state = memory.settings, memory.state
    counts: dict[str, int] = {}
    waiting: tuple[str, ...] = ()
    uncommitted, proposal = list[str](), ""
    with suppress(QuaidError):  # what git cannot be asked is a problem of the repository, below
        uncommitted = list_edited(memory)
    with (
        closing(IndexReader(memory.indexer.path)) as whole_reader,
        closing(IndexReader(memory.indexer.path, memory.owners)) as visible_reader,
    ):
        index = _read_index(memory, whole_reader)
        whole, visible = whole_reader.open(), visible_reader.open()
        if visible is not None:
            counts = documents.count_by(visible, "kind")
            waiting = list_waiting(memory.root, visible)
            proposal = propose_model(visible, settings.embedding)
        if whole is not None and visible is not None:
            shown = frozenset() if index.problem else documents.find_paths(visible, uncommitted).keys()
            paths = visible_paths(uncommitted, whole, visible)
            uncommitted = [path for path in paths if path in shown or may_name(memory, path)]
    try:
        repository = RepositoryStatus(**asdict(memory.git.state()), uncommitted=tuple(uncommitted))
    except QuaidError as error:
        repository = RepositoryStatus(problem=str(error))
    ready = memory.embedding.embedder() is not None
    problem = memory.embedding.problem
    model = resolve(settings.embedding).model
    embedding = EmbeddingStatus(settings.embedding.provider, model, ready, str(problem) if problem else None, proposal)
    watcher = None
    if beat := find_watcher(state, now):
        watcher = WatcherStatus(**asdict(beat), alive=beat.is_alive(now))
    remotes: list[RemoteState] = []
    with suppress(QuaidError):  # as they were last known, without network; that git cannot be asked shows elsewhere
        remotes = list_states(memory)
    since = (now - timedelta(days=EMPTY_DAYS)).date().isoformat()
    what = f"{count(len(uncommitted), 'note')} with changes that are not committed"
    return Status(
        vault=str(memory.root),
        counts=counts,
        repository=repository,
        index=index,
        embedding=embedding,
        watcher=watcher,
        resident=find_listening(memory.root),
        state=str(state),
        leaves=list_outbound(settings, remotes),
        offline=settings.offline,
        problems=list_note_problems(memory),
        waiting_episodes=waiting,
        queued_notes=SessionNotes(state / LOCAL_FILE).count(),
        taught_nothing=len({session for session, _, _ in EmptyReadings(state / LOCAL_FILE).since(since)}),
        quarantined=quarantine.count(state),
        sync=settings.git.sync,
        remotes=remotes,
        attention=(
            *_check_index(index, embedding),
            *(each for check in ATTENTION_CHECKS for each in collect(check(memory)) if each.level != "ok"),
            *([CheckResult(what, GIT_STEP, tuple(uncommitted))] if uncommitted else []),
            *check_remotes(remotes),
        ),
    )


def list_edited(memory: Memory) -> list[str]:
    """Return the paths with uncommitted changes, without those that Quaid commits later. GitError: git fails."""
    deferred = (*list_uncommitted(memory.root), *list_deferred(memory.root))
    own = {edit.rel_path for each in deferred for edit in each.change.edits}
    return [path for path in memory.git.uncommitted() if path not in own]


def _check_index(index: IndexStatus, embedding: EmbeddingStatus) -> Iterator[CheckResult]:
    if index.problem:
        yield CheckResult(index.problem)
    if embedding.problem:
        yield CheckResult(embedding.problem)
    elif index.pending and embedding.ready and not index.embedding:
        yield CheckResult(f"{index.pending:,} chunks have no vector yet", "quaid sync")
    if embedding.proposal:
        yield CheckResult(embedding.proposal, MULTILINGUAL_STEP)
    if index.failed:
        yield CheckResult(f"{index.failed:,} chunks could not be embedded", "quaid reindex")


def _read_index(memory: Memory, reader: IndexReader) -> IndexStatus:
    """Bring the index up to date and return how it is."""
    state, changed, problem = "fresh", 0, None
    try:
        is_fresh = False
        with suppress(database.DatabaseError):
            connection = reader.open()
            is_fresh = connection is not None and memory.indexer.is_fresh(connection)
        if not is_fresh:
            report = memory.sync(SyncOptions(embed_budget_s=EMBED_BUDGET_S, fetch_weights=False))
            # A note as young as the clock's tick is read again to be sure: that alone is not a change.
            state, changed = ("updated" if report.changed else "fresh"), report.changed
    except QuaidError as error:
        state, problem = "stale", str(error)
    connection = reader.open()
    if connection is None:
        return IndexStatus(state, problem=problem)
    pending = vectors.count_pending(connection)
    earlier = vectors.list_embedders(connection)[:-1]
    return IndexStatus(
        state,
        notes=documents.count(connection),
        changed=changed,
        chunks=documents.count_chunks(connection),
        pending=pending,
        failed=documents.count_chunks(connection, "failed"),
        problem=problem,
        embedding=bool(pending) and locks.is_held(memory.state / locks.EMBEDDING_LOCK),
        serving=next((str(row.settings.get("model", "")) for row in earlier if row.active), None),
    )
