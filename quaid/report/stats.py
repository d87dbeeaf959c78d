"""The numbers behind `quaid stats`: what the memory is made of, and how recall, models and the janitor do."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from quaid.errors import QuaidError
from quaid.index import documents, graph, references
from quaid.index.port import IndexConnection
from quaid.index.scope import list_hidden
from quaid.janitor.news import overdue
from quaid.local.model_usage import DayUsage, ModelRecords, PromptUsage
from quaid.local.recall_log import Gap
from quaid.local.recall_summary import RecallSummary
from quaid.local.runs import HealthLog, Runs, Snapshot
from quaid.memory import Memory
from quaid.model import Kind, ModelUsage, Use
from quaid.place import CACHE_FILE, INDEX_FILE, LOCAL_FILE
from quaid.recall.records import RecallRecords
from quaid.report.status import count_chunks
from quaid.settings import ModelSettings

MAX_GAPS = 100
MAX_RECALLED = 10
HEALTH_DAYS = 60


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
class RecallStats:
    """All of `quaid stats --recall`. `log` is the setting `recall.log`; `most_recalled` are (id, title, use), where the
    title of a forgotten memory is None.
    """

    log: str
    numbers: RecallSummary
    most_recalled: list[tuple[str, str | None, Use]]


@dataclass(frozen=True, slots=True)
class ModelStats:
    """All of `quaid stats --models`: tokens and cost on each day (UTC) and by each prompt, and what today's cap is."""

    vault: str
    caps: ModelSettings
    today: ModelUsage
    days: list[DayUsage]
    prompts: list[PromptUsage]


@dataclass(frozen=True, slots=True)
class HealthStats:
    """All of `quaid stats --health`: the snapshots of the last `HEALTH_DAYS` (UTC), one a day, up to `until`.

    `warning` is there when the janitor has not run for long.
    """

    vault: str
    until: str
    last_success: str | None
    warning: str | None
    days: list[Snapshot]


def stats_of(memory: Memory) -> Stats:
    """Return what the memory is made of."""
    connection = memory.index()
    state = memory.state
    oldest, newest = connection.execute("SELECT min(created), max(created) FROM documents").fetchone() or (None, None)
    return Stats(
        vault=str(memory.root),
        notes=documents.count(connection),
        kinds=documents.count_by(connection, "kind"),
        types=documents.count_by(connection, "type"),
        statuses=documents.count_by(connection, "status"),
        speakers=documents.count_by(connection, "speaker"),
        **graph.counts(connection),
        chunks=count_chunks(connection),
        embedded=count_chunks(connection, "ready"),
        index_bytes=_size(state / INDEX_FILE),
        cache_bytes=_size(state / CACHE_FILE),
        oldest=oldest,
        newest=newest,
    )


def recall_stats_of(memory: Memory) -> RecallStats:
    """Return the summary of the recall log, and what is recalled most, by all devices together.

    Raises:
        LockedError, VaultReadOnlyError, DiskFullError, StateDamagedError: local.db cannot be opened.
    """
    with RecallRecords(memory.root, memory.settings) as books:
        numbers, most_used = books.numbers(), books.most_used(MAX_RECALLED)
    hidden = list_hidden(memory.whole_index(), memory.owners)
    connection = memory.visible_index()
    return RecallStats(
        memory.settings.recall.log,
        numbers,
        [(ref, _find_title(connection, ref), use) for ref, use in most_used if ref.partition("#")[0] not in hidden],
    )


def list_gaps(memory: Memory, limit: int) -> tuple[list[Gap], int]:
    """Return the newest questions that found nothing, with their words where the gaps or the log of recalls have them,
    and how many there are in all. Raises as `recall_stats_of` does.
    """
    with RecallRecords(memory.root, memory.settings) as records:
        gaps, total = records.gaps(limit)
        words = records.list_unanswered()
    return [gap._replace(text=gap.text or words.get(gap.key)) for gap in gaps], total


def model_stats_of(memory: Memory) -> ModelStats:
    """Return what models took. Raises as `recall_stats_of` does."""
    records = ModelRecords(memory.state / LOCAL_FILE)
    today = records.spent(datetime.now(UTC).date().isoformat())
    return ModelStats(str(memory.root), memory.settings.models, today, records.by_day(), records.by_prompt())


def health_stats_of(memory: Memory) -> HealthStats:
    """Return how the memory was after each run of the janitor. Raises as `recall_stats_of` does."""
    path = memory.state / LOCAL_FILE
    now = datetime.now(UTC)
    runs = Runs(path)
    last = runs.last_success()
    until = now.date().isoformat()
    since = (now.date() - timedelta(days=HEALTH_DAYS - 1)).isoformat()
    days = [day for day in HealthLog(path).by_day(since) if day.day <= until]  # a clock may have been set back
    return HealthStats(str(memory.root), until, last.started if last else None, overdue(runs, now), days)


def _find_title(connection: IndexConnection, reference: str) -> str | None:
    """The text of a fact or a turn, else the title; None when the memory is no longer there."""
    try:
        document, turn, _ = references.resolve_one(connection, reference)
    except QuaidError:
        return None
    if turn is not None:
        return documents.text_of(connection, document.doc_id, turn) or None
    return documents.text_of(connection, document.doc_id) if document.kind == Kind.FACT else document.title


def _size(path: Path) -> int:
    """A database's bytes, its write-ahead log included."""
    parts = (Path(f"{path}{suffix}") for suffix in ("", "-wal"))
    return sum(part.stat().st_size for part in parts if part.exists())
