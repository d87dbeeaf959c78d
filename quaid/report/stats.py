"""The numbers behind `quaid stats`: what the memory is made of, and how recall, models and the janitor do."""

from contextlib import closing, suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from quaid.errors import QuaidError
from quaid.index import documents, graph, references
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

MAX_GAPS = 100
MAX_RECALLED = 10
HEALTH_DAYS = 60


class Stats(NamedTuple):
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
        chunks=documents.count_chunks(connection),
        embedded=documents.count_chunks(connection, "ready"),
        index_bytes=_size(state / INDEX_FILE),
        cache_bytes=_size(state / CACHE_FILE),
        oldest=oldest,
        newest=newest,
    )


def recall_stats_of(memory: Memory) -> tuple[RecallSummary, list[tuple[str, str | None, Use]]]:
    """Return the summary of the recall log, and (id, title, use) of the most recalled memories; the title
    of a forgotten memory is None.

    Raises:
        LockedError, VaultReadOnlyError, DiskFullError, StateDamagedError: local.db cannot be opened.
    """
    with closing(RecallRecords(memory.root, memory.settings)) as records:
        numbers, most_used = records.numbers(), records.most_used(MAX_RECALLED)
    hidden = list_hidden(memory.whole_index(), memory.owners)
    connection, most_recalled = memory.visible_index(), []
    for ref, use in most_used:
        if ref.partition("#")[0] in hidden:
            continue
        title = None
        with suppress(QuaidError):  # the memory is no longer there
            document, turn, _ = references.resolve_one(connection, ref)
            has_text = turn is not None or document.kind == Kind.FACT
            title = (documents.text_of(connection, document.doc_id, turn) or None) if has_text else document.title
        most_recalled.append((ref, title, use))
    return numbers, most_recalled


def list_gaps(memory: Memory, limit: int) -> tuple[list[Gap], int]:
    """Return the newest questions that found nothing, with their words where the gaps or the log of recalls have them,
    and how many there are in all. Raises as `recall_stats_of` does.
    """
    with closing(RecallRecords(memory.root, memory.settings)) as records:
        gaps, total = records.gaps(limit)
        words = records.list_unanswered()
    return [gap._replace(text=gap.text or words.get(gap.key)) for gap in gaps], total


def model_stats_of(memory: Memory) -> tuple[ModelUsage, list[DayUsage], list[PromptUsage]]:
    """Return the usage of models today (UTC), by day, and by prompt. Raises as `recall_stats_of` does."""
    records = ModelRecords(memory.state / LOCAL_FILE)
    return records.spent(datetime.now(UTC).date().isoformat()), records.by_day(), records.by_prompt()


def health_stats_of(memory: Memory, today: date) -> tuple[str | None, str | None, list[Snapshot]]:
    """Return how the memory was after each run of the janitor. Raises as `recall_stats_of` does.

    Returns:
        When the last run succeeded, a warning where none has for long, and a snapshot for each of the last
        `HEALTH_DAYS` days up to `today` (UTC) on which one ran.
    """
    runs = Runs(memory.state / LOCAL_FILE)
    last = runs.last_success()
    since = (today - timedelta(days=HEALTH_DAYS - 1)).isoformat()
    days = HealthLog(memory.state / LOCAL_FILE).by_day(since)
    days = [day for day in days if day.day <= today.isoformat()]  # a clock may have been set back
    return last.started if last else None, overdue(memory.state, datetime.now(UTC)), days


def _size(path: Path) -> int:
    """A database's bytes, its write-ahead log included."""
    parts = (Path(f"{path}{suffix}") for suffix in ("", "-wal"))
    return sum(part.stat().st_size for part in parts if part.exists())
