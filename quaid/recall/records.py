"""The records of recall in local.db: use and strength of each memory, the log of questions, the gaps.

Reading never writes the vault, so all of this goes to local.db. It is never worth a failed recall: where local.db
cannot be opened within a moment, nothing is recorded and the answer says so.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from quaid.config import own_names
from quaid.errors import DiskFullError, LockedError, QuaidError, StateDamagedError, VaultReadOnlyError
from quaid.local import recall_log
from quaid.local.database import close_relaxed, open_local, translated
from quaid.local.recall_log import Gap, RecallEntry
from quaid.local.recall_summary import RecallSummary
from quaid.model import Hit, Recall, Use
from quaid.place import LOCAL_FILE, state_folder
from quaid.recall.hits import EXPANDED
from quaid.settings import Settings
from quaid.sqlite import BUSY_MS, Database, transaction

WAIT_MS = 50
"""A recall waits this long for another process's lock on local.db, no longer."""
USED_SHARE = 0.5
"""Hits that score at least this share of the best count as recalled. The rest only fill the list: counted too, and as
hard to find, the least relevant notes would gain most with every question.
"""
_DROPPED = {
    LockedError: "local.db is in use by another process, so this recall is not counted",
    VaultReadOnlyError: f"{LOCAL_FILE} cannot be written, so this recall is not counted",
    DiskFullError: "the disk is full, so this recall is not counted",
    StateDamagedError: "local.db was damaged and is preserved as local.db.damaged; the next recall counts again",
}


class RecallRecords:
    """The records of the vault at `root`, opened when they are first needed. One instance belongs to one thread."""

    def __init__(self, root: Path, settings: Settings) -> None:
        self._is_own = "default" in own_names(root, settings)
        """Whether the caller is the vault's own owner, whose questions alone may be stored as text, for them alone."""
        self._settings = settings.recall
        if not self._is_own:
            log = settings.recall.log
            self._settings = replace(settings.recall, log="off" if log == "off" else "hashes", gaps="off")
        self._path = state_folder(root) / LOCAL_FILE
        self._connection: Database | None = None
        self._dropped: str | None = None
        self._notice = ""
        """That a damaged local.db was set aside, until a recall reports it."""

    # -- a recall ------------------------------------------------------------------------------------------------

    def strengths(self, ids: Iterable[str]) -> Mapping[str, Use]:
        """Return the uses of these memories, by id; an id that was never used is left out.

        Empty when local.db cannot be opened; `after_recall` says so.
        """
        try:
            with self._open(WAIT_MS) as connection:
                return recall_log.find_uses(connection, ids)
        except QuaidError as error:
            self._dropped = _dropped(error)
            return {}

    def after_recall(
        self,
        answer: Recall,
        *,
        door: str,
        depth: str,
        session: str | None = None,
        limit: int | None = None,
        now: datetime | None = None,
    ) -> str | None:
        """Record what was asked and found, in one transaction; return a sentence for `degraded` when that fails.

        `door` is cli, python, mcp or hook; `depth` says how hard recall tried.
        """
        dropped, self._dropped = self._dropped, None
        if dropped is not None:  # local.db was in use a moment ago: nobody waits for it twice
            return dropped
        moment = now or datetime.now(UTC)
        stages: Any = answer.trace.get("took_ms", {})
        entry = RecallEntry(
            at=recall_log.render_moment(moment),
            query=answer.query,
            door=door,
            depth=depth,
            took_ms=round(answer.took_ms, 2),
            limit=limit,
            hits=tuple((hit.id, hit.score) for hit in answer.hits),
            stages={str(name): round(float(took_ms), 2) for name, took_ms in stages.items()},
            degraded=answer.degraded,
            session=session,
        )
        try:
            with self._open(WAIT_MS, writes=True) as connection:
                recall_log.count_uses(connection, list_recalled(answer), moment)
                recall_log.add_entry(connection, entry, self._settings.log)
                recall_log.record_gap(
                    connection, answer.query, moment, is_answered=bool(answer.hits), storage=self._settings.gaps
                )
        except QuaidError as error:
            return _dropped(error)
        notice, self._notice = self._notice, ""
        return f"usage: {notice}" if notice else None

    # -- looking back --------------------------------------------------------------------------------------------

    def numbers(self) -> RecallSummary:
        """Return the figures of the recall log.

        Raises:
            LockedError, VaultReadOnlyError, DiskFullError, StateDamagedError
        """
        from quaid.local.recall_summary import summarise  # not above: no question needs it

        with self._open() as connection:
            return summarise(recall_log.list_entries(connection, recall_log.MAX_ENTRIES))

    def gaps(self, limit: int) -> tuple[list[Gap], int]:
        """Return the gaps asked last, newest first, and how many there are in all. Raises as `numbers`."""
        with self._open() as connection:
            if not self._is_own:
                return [], 0
            return recall_log.list_gaps(connection, limit), recall_log.count_gaps(connection)

    def list_unanswered(self) -> dict[str, str]:
        """Return the questions of the log that found nothing, by the key of their gap, if their text is stored.

        Raises as `numbers`.
        """
        with self._open() as connection:
            texts = recall_log.list_unanswered(connection) if self._is_own else []
        return {recall_log.question_key(text): text for text in texts}

    def close_gap(self, key: str) -> None:
        """Delete a gap. Raises as `numbers`."""
        with self._open(writes=True) as connection:
            recall_log.close_gap(connection, key)

    def questions(self, limit: int) -> list[str]:
        """Return the latest questions, newest first, without duplicates, if their text is stored.

        Raises as `numbers`.
        """
        with self._open() as connection:
            entries = recall_log.list_entries(connection, 10 * limit) if self._is_own else []
        return list(dict.fromkeys(entry.query for entry in entries if entry.query))[:limit]

    def most_used(self, limit: int) -> list[tuple[str, Use]]:
        """Return the memories recalled most often. Raises as `numbers`."""
        with self._open() as connection:
            return recall_log.list_most_used(connection, limit)

    def close(self) -> None:
        """Release local.db. The next call opens it again."""
        if self._connection is not None:
            close_relaxed(self._connection, self._path)
            self._connection = None

    # -- wiring --------------------------------------------------------------------------------------------------

    @contextmanager
    def _open(self, wait_ms: int = BUSY_MS, *, writes: bool = False) -> Iterator[Database]:
        """Open local.db, in a transaction if the body `writes`; close it again on an error."""
        try:
            # Is the file that is open still local.db? What could not be opened is tried again.
            if self._connection is not None and not self._connection.is_current():
                self.close()
            if self._connection is None:
                opened = open_local(self._path, recall_log.SCHEMA, wait_ms, relaxed=True)
                self._connection, self._notice = opened, opened.notice or self._notice
            connection = self._connection
            with translated(connection):
                connection.set_busy_timeout(wait_ms)
                with transaction(connection) if writes else nullcontext():
                    yield connection
        except QuaidError:
            self.close()
            raise


def difficulty(hit: Hit) -> float:
    """Return how hard `hit` was to find, in [0, 1]: by a low score, by the graph alone, by a second pass.

    A score of 1 or more means no effort; the graph alone, and a second pass, each halve the ease.
    """
    ease = min(1.0, max(0.0, hit.score))
    direct = hit.channels.keys() - {EXPANDED}
    if direct == {"graph"}:
        ease /= 2
    if EXPANDED in hit.channels:
        ease /= 2
    return 1.0 - ease


def list_recalled(answer: Recall) -> dict[str, float]:
    """Return id -> difficulty of the memories that an answer counts as recalled."""
    least = USED_SHARE * max((hit.score for hit in answer.hits), default=0.0)
    used: dict[str, float] = {}
    for hit in answer.hits:
        if hit.score >= least:
            used.setdefault(hit.id, difficulty(hit))
    return used


def _dropped(error: QuaidError) -> str:
    """Return why a recall is not recorded, as `degraded` names it."""
    return f"usage: {_DROPPED.get(type(error), str(error))}"
