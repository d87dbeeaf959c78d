"""A snapshot of the memory at the end of a run: the numbers that `quaid stats --health` charts."""

from __future__ import annotations

import os
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from quaid.history.repository import find_repository
from quaid.index import documents, graph
from quaid.local import recall_log
from quaid.local.recall_summary import measure
from quaid.local.runs import Snapshot
from quaid.place import INDEX_FILE, LOCAL_FILE, state_folder

if TYPE_CHECKING:
    from quaid.index.port import IndexConnection

_MAX_RECALLS = 2_000


def take_snapshot(
    root: Path, index: IndexConnection, now: datetime, *, waiting: int = 0, cost_usd: float | None = 0.0
) -> Snapshot:
    """The memory at `root` as its index and this machine's books have it. `waiting` and `cost_usd` are of the run.

    Raises:
        DiskFullError, StateDamagedError, LockedError, VaultReadOnlyError: local.db cannot be opened.
    """
    from quaid.local.database import open_local, translated

    counts = graph.counts(index)
    superseded, chunks, embedded = index.execute(
        "SELECT (SELECT count(*) FROM documents WHERE superseded_by IS NOT NULL), count(*), "
        "coalesce(sum(embedded = 'ready'), 0) FROM chunks"
    ).fetchone() or (0, 0, 0)
    state = state_folder(root)
    since = f"{now.astimezone(UTC) - timedelta(days=1):%Y-%m-%dT%H:%M:%SZ}"
    with closing(open_local(state / LOCAL_FILE, recall_log.SCHEMA)) as local, translated(local):
        recent = recall_log.RecallLog(local).recent(_MAX_RECALLS)
        took_ms = [entry.took_ms for entry in recent if entry.at >= since]
        open_gaps = recall_log.Gaps(local).count()
    repository = find_repository(root)
    return Snapshot(
        at=f"{now.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
        kinds=documents.count_by(index, "kind"),
        statuses=documents.count_by(index, "status"),
        superseded=int(superseded),
        entities=counts["entities"],
        edges=counts["edges"],
        chunks=int(chunks),
        embedded=int(embedded),
        index_bytes=_size_of(state / INDEX_FILE),
        repository_bytes=_size_of(repository.common_dir / "objects") if repository else 0,
        recall_p50_ms=measure(took_ms).p50_ms if took_ms else None,
        gaps=open_gaps,
        waiting=waiting,
        cost_usd=cost_usd,
    )


def _size_of(path: Path) -> int:
    """Bytes of a file, or of all files of a folder; what vanishes meanwhile counts nothing."""
    if not path.is_dir():
        return path.stat().st_size if path.exists() else 0
    found = (os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names)  # noqa: PTH118 - quick
    return sum(os.lstat(name).st_size for name in found if os.path.lexists(name))
