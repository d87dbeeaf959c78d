"""What recall remembers about itself: use and strength of each memory, the log of questions, the gaps.

Reading never writes the record, so all of this goes to local.db; only the janitor's fold takes the counters into the
vault. It is never worth a failed recall: where local.db cannot be had within a moment, a record is dropped and said so.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from quaid.errors import (
    UNWRITABLE,
    DiskFullError,
    LockedError,
    QuaidError,
    StateDamagedError,
    VaultReadOnlyError,
)
from quaid.model import Edit, Hit, Recall, Use
from quaid.place import LOCAL_FILE, state_folder
from quaid.recall.answering import AGAIN
from quaid.settings import RecallSettings, Settings
from quaid.vault import files, ledger

if TYPE_CHECKING:
    import apsw

    from quaid.local.recall_log import Gap, RecallEntry
    from quaid.local.recall_summary import RecallSummary
    from quaid.local.usage import Recalled

WAIT_MS = 50
"""A recall waits this long for another process's lock on local.db, no longer."""
USED_SHARE = 0.5
"""Hits that score at least this share of the best count as recalled. The rest only fill the list: counted too, and as
hard to find, the least relevant notes would gain most with every question.
"""
_MACHINE_ID = "/etc/machine-id"
_DROPPED = {
    LockedError: "local.db is in use by another process, so this recall is not counted",
    VaultReadOnlyError: f"{LOCAL_FILE} cannot be written, so this recall is not counted",
    DiskFullError: "the disk is full, so this recall is not counted",
    StateDamagedError: "local.db was damaged and is kept as local.db.damaged; a new one is begun with the next recall",
}


class Bookkeeping:
    """The books of the vault at `root`, opened when they are first needed. One instance belongs to one thread."""

    def __init__(self, root: Path, settings: Settings) -> None:
        self._root = root
        self._settings = settings.recall
        self._path = state_folder(root) / LOCAL_FILE
        self._books: _Books | None = None
        self._dropped: str | None = None
        self._remark: str | None = None

    # -- a recall ------------------------------------------------------------------------------------------------

    def strengths(self, ids: Iterable[str]) -> Mapping[str, Use]:
        """How all devices have used these memories; an id that was never used is left out.

        Empty when the books cannot be had; `after_recall` says so.
        """
        try:
            with self._open(WAIT_MS) as books:
                return books.usage.of(ids)
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
        """Write down what was asked and found, in one transaction. A sentence for `degraded` when something is amiss.

        `door` is cli, python, mcp or hook; `depth` says how hard recall tried.
        """
        dropped, self._dropped = self._dropped, None
        if dropped is not None:  # the books were shut a moment ago: nobody waits for them twice
            return dropped
        moment = now or datetime.now(UTC)
        try:
            with self._open(WAIT_MS) as books:
                books.write(answer, _entry(answer, moment, (door, depth, session, limit)), moment)
        except QuaidError as error:
            return _dropped(error)
        remark, self._remark = self._remark, None
        return remark

    def weaken(self, ids: Iterable[str]) -> str | None:
        """Competitive inhibition: `ids` looked right and were not. A sentence for `degraded` when that is not kept."""
        try:
            with self._open(WAIT_MS) as books:
                books.weaken(ids)
        except QuaidError as error:
            return _dropped(error)
        return None

    # -- the fold ------------------------------------------------------------------------------------------------

    def plan_fold(self, read: Callable[[str], bytes | None] | None = None) -> Edit | None:
        """The edit that brings `usage/<device>.tsv` in step with this device's counters, None when it is.

        `read` gives a file of the tree that the edit is for, by its path in the vault; without it the vault itself is
        read. A plan may be carried out late, twice or never: the counters are totals, and the next fold plans what is
        still missing.

        Raises:
            LockedError, VaultReadOnlyError, DiskFullError, StateDamagedError
        """
        with self._open() as books:
            books.usage.settle(self._read_ledger)
            own = books.usage.own()
            if not own:
                return None
            device = books.usage.device() or books.usage.name_device(self._new_name())
        rel_path = ledger.ledger_path(device)
        before = (read or self._read_file)(rel_path)
        known = ledger.parse_ledger(before or b"").rows
        after = ledger.render_ledger(ledger.merge_versions(known, own))
        return None if after == before else Edit(rel_path, before, after)

    # -- looking back --------------------------------------------------------------------------------------------

    def numbers(self) -> RecallSummary:
        """What the recall log comes to. Raises as `plan_fold`."""
        from quaid.local.recall_log import MAX_ENTRIES
        from quaid.local.recall_summary import summarise

        with self._open() as books:
            return summarise(books.log.recent(MAX_ENTRIES))

    def gaps(self, limit: int) -> tuple[list[Gap], int]:
        """The gaps asked last, newest first, and how many there are in all. Raises as `plan_fold`."""
        with self._open() as books:
            return books.gaps.recent(limit), books.gaps.count()

    def questions(self, limit: int) -> list[str]:
        """The questions asked last, newest first, each once, where their words are kept. Raises as `plan_fold`."""
        with self._open() as books:
            asked = (entry.query for entry in books.log.recent(10 * limit))
            return list(dict.fromkeys(text for text in asked if text))[:limit]

    def most_used(self, limit: int) -> list[tuple[str, Use]]:
        """The memories recalled most often, by all devices together. Raises as `plan_fold`."""
        with self._open() as books:
            return books.usage.most_used(limit)

    def close(self) -> None:
        """Release local.db. The next call opens it again."""
        if self._books is not None:
            self._books.close()
            self._books = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    # -- wiring --------------------------------------------------------------------------------------------------

    @contextmanager
    def _open(self, wait_ms: int | None = None) -> Iterator[_Books]:
        """The books, in step with the ledgers of all devices; shut again when there is trouble with them."""
        from quaid.sqlite import BUSY_MS

        wait_ms = BUSY_MS if wait_ms is None else wait_ms
        try:
            if self._books is not None and not self._books.is_current():
                self.close()
            books = self._books = self._books or self._open_books(wait_ms)
            with books.translated():
                books.wait(wait_ms)
            self._mirror(books)
            with books.translated():
                yield books
        except QuaidError:
            self.close()
            raise

    def _open_books(self, wait_ms: int) -> _Books:
        from quaid.local import recall_log, usage
        from quaid.local.database import open_in_memory, open_local

        schema = usage.SCHEMA + recall_log.SCHEMA
        try:
            connection: apsw.Connection = open_local(self._path, schema, wait_ms, relaxed=True, report=self._say)
            refused = None
        except UNWRITABLE as error:  # the ledgers can still be read
            connection, refused = open_in_memory(schema), error
        return _Books(connection, self._path, self._settings, _place(self._root), refused)

    def _say(self, what: str) -> None:
        self._remark = f"usage: {what}"

    def _mirror(self, books: _Books) -> None:
        try:
            stamps = ledger.list_ledgers(self._root)
        except OSError as error:
            self._say(f"{ledger.USAGE_DIR}/ cannot be read ({error.strerror}): its counters wait")
            return
        # While local.db takes no writes, what it knew of the other devices will do.
        with suppress(LockedError, *UNWRITABLE), books.translated():
            books.usage.mirror(stamps, self._read_ledger)

    def _read_ledger(self, device: str) -> Mapping[str, Use]:
        path = ledger.ledger_path(device)
        try:
            found = ledger.read_ledger(self._root, device)
        except OSError as error:
            self._say(f"{path} cannot be read ({error.strerror}) and does not count")
            return {}
        if found.broken:
            self._say(f"lines of {path} that cannot be read and do not count: {found.broken:,}")
        return found.rows

    def _read_file(self, rel_path: str) -> bytes | None:
        return files.read_note(self._root, rel_path)

    def _new_name(self) -> str:
        taken = ledger.list_ledgers(self._root)
        while (name := ledger.device_name(os.uname().nodename, os.urandom(2).hex())) in taken:
            pass
        return name


class _Books:
    """Usage, log and gaps behind one connection, so that one recall is one transaction."""

    def __init__(
        self, connection: apsw.Connection, path: Path, settings: RecallSettings, place: str, refused: QuaidError | None
    ) -> None:
        from quaid.local.recall_log import Gaps, RecallLog
        from quaid.local.usage import Usage

        self._connection = connection
        self._path = path
        self.usage = Usage(connection, place)
        self.log = RecallLog(connection, settings.log)
        self.gaps = Gaps(connection, settings.gaps)
        self._refused = refused

    def wait(self, wait_ms: int) -> None:
        self._connection.set_busy_timeout(wait_ms)

    def write(self, answer: Recall, entry: RecallEntry, now: datetime) -> None:
        from quaid.sqlite import transaction

        self._check_kept()
        with transaction(self._connection):
            self.usage.record(list_recalled(answer), now)
            self.log.add(entry)
            self.gaps.record(answer.query, now, answered=bool(answer.hits))

    def weaken(self, ids: Iterable[str]) -> None:
        from quaid.sqlite import transaction

        self._check_kept()
        with transaction(self._connection):
            self.usage.weaken(ids)

    def _check_kept(self) -> None:
        if self._refused is not None:
            raise self._refused

    def is_current(self) -> bool:
        """Whether the file that is open is still local.db; what could not be opened is tried anew."""
        from quaid.sqlite import Database

        return isinstance(self._connection, Database) and self._connection.is_current()

    def translated(self) -> AbstractContextManager[None]:
        from quaid.local.database import translated

        return translated(self._connection)

    def close(self) -> None:
        from quaid.local.database import close_relaxed

        close_relaxed(self._connection, self._path)


def difficulty(hit: Hit) -> float:
    """How hard `hit` was to find, in [0, 1]: by a low score, by the graph alone, by a second pass (the seeds' factors).

    A score of 1 or more is no effort; the graph alone, and a second pass, each halve what ease there was.
    """
    ease = min(1.0, max(0.0, hit.score))
    direct = hit.channels.keys() - {AGAIN}
    if direct == {"graph"}:
        ease /= 2
    if AGAIN in hit.channels:
        ease /= 2
    return 1.0 - ease


def list_recalled(answer: Recall) -> list[Recalled]:
    """The memories that an answer counts as recalled, each once."""
    from quaid.local.usage import Recalled

    least = USED_SHARE * max((hit.score for hit in answer.hits), default=0.0)
    used: dict[str, float] = {}
    for hit in answer.hits:
        if hit.score >= least:
            used.setdefault(hit.id, difficulty(hit))
    return [Recalled(hit_id, hard) for hit_id, hard in used.items()]


def _entry(answer: Recall, now: datetime, asked: tuple[str, str, str | None, int | None]) -> RecallEntry:
    from quaid.local.recall_log import RecallEntry

    door, depth, session, limit = asked
    stages: Any = answer.trace.get("took_ms", {})
    return RecallEntry(
        at=now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
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


def _dropped(error: QuaidError) -> str:
    """Why a recall leaves no trace, as `degraded` names it."""
    return f"usage: {_DROPPED.get(type(error), str(error))}"


def _place(root: Path) -> str:
    """The machine and folder that a local.db belongs to, the same however the folder is reached."""
    try:
        with open(_MACHINE_ID, encoding="ascii") as file:  # noqa: PTH123 - on the path of every recall
            machine = file.read().strip()
    except (OSError, UnicodeDecodeError):
        machine = ""
    return f"{machine or os.uname().nodename} {os.path.realpath(root)}"
