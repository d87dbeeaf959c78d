"""The janitor's runs, its judgements, and the decisions that wait for the owner, in local.db.

Losing it costs asking some questions again; what was decided is in the history.
"""

import hashlib
import json
from base64 import b64decode, b64encode
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field, fields, replace
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from quaid.errors import AmbiguousReferenceError
from quaid.local.tables import Tables, parse_rows
from quaid.model import Edit, SourceEdit
from quaid.redaction import admit

if TYPE_CHECKING:
    import apsw

KEPT_DAYS = 400
"""Older runs and judgements are deleted."""
_FRESH_DAYS = 30
"""A judgement that is used again gets a new date only when its day is older: not every look-up writes."""

Outcome = Literal["running", "done", "stopped", "failed", "killed"]
"""`done` is the only success, though there was nothing to do. `stopped` by the removal guard or the gate. `killed` was
found still `running` when the next one began.
"""


class Run(NamedTuple):
    """One run. `run` is a ULID; times are ISO 8601, UTC; `commit` is the merge, None when nothing was merged.

    `decisions` are what it decided, as plain data. `waiting` questions wait for the owner. `cost_usd` is None where a
    model's price is unknown. `degraded` names what it went without, `problem` says why it did not end well.
    """

    run: str
    started: str
    outcome: Outcome = "running"
    ended: str | None = None
    commit: str | None = None
    decisions: tuple[Mapping[str, Any], ...] = ()
    waiting: int = 0
    cost_usd: float | None = 0.0
    notes_before: int = 0
    notes_after: int | None = None
    degraded: tuple[str, ...] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """One change of the memory that a task of the janitor proposes; stored while it waits for its owner.

    `kind` is the name of its policy (approve, merge, reject …). `key` identifies the evidence: a decision that the
    owner has undone is not proposed again while its key is the same. `subject` follows `janitor(task): `, `why` is the
    body of the commit, `facts` are the ids of the notes it is about. One that `is_minor` shares a commit with others of
    its task; one that `always_asks` is a question whatever the policy says. `detail` shows its owner the compared or
    rewritten texts. `branch` is a change outside the vault: it becomes a branch there after the gate. `choices` are the
    paths and words of the two facts of a `conflict`.
    """

    task: str
    kind: str
    key: str
    edits: tuple[Edit, ...]
    subject: str
    why: str
    facts: tuple[str, ...] = ()
    model: str | None = None
    prompt: str | None = None
    is_minor: bool = False
    always_asks: bool = False
    detail: str = ""
    branch: SourceEdit | None = None
    choices: tuple[tuple[str, str], ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(edit.rel_path for edit in self.edits)


class Runs(Tables):
    """The log of runs."""

    SCHEMA = """
-- One run of the janitor. `decisions` and `degraded` are JSON lists.
CREATE TABLE IF NOT EXISTS janitor_runs (
    run TEXT PRIMARY KEY, started TEXT NOT NULL, outcome TEXT NOT NULL, ended TEXT, commit_id TEXT,
    decisions TEXT NOT NULL, waiting INTEGER NOT NULL, cost_usd REAL, notes_before INTEGER NOT NULL,
    notes_after INTEGER, degraded TEXT NOT NULL, problem TEXT
) STRICT, WITHOUT ROWID;
"""

    def add(self, run: Run) -> None:
        """Add a run that begins. Only one runs at a time, so others that seem to be running were killed."""
        with self._transaction() as connection:
            connection.execute("UPDATE janitor_runs SET outcome = 'killed' WHERE outcome = 'running'")
            connection.execute("DELETE FROM janitor_runs WHERE started < ?", (_days_before(run.started, KEPT_DAYS),))
            _insert(connection, run)

    def finish(self, run: Run) -> None:
        """Replace a run that began by its outcome."""
        with self._transaction() as connection:
            _insert(connection, run)

    def list(self, limit: int) -> list[Run]:
        """Return the last `limit` runs, newest first."""
        return list(parse_rows(_run, self._rows(f"{_EACH_RUN} ORDER BY started DESC, run DESC LIMIT ?", limit)))

    def get(self, reference: str) -> Run | None:
        """Return the run whose id is, begins or ends with `reference`.

        Raises:
            AmbiguousReferenceError: several do.
        """
        wanted = reference.strip().lower()
        where = "run = ?1 OR ?1 <> '' AND (substr(run, 1, length(?1)) = ?1 OR substr(run, -length(?1)) = ?1)"
        found = list(parse_rows(_run, self._rows(f"{_EACH_RUN} WHERE {where} ORDER BY run = ?1 DESC, run", wanted)))
        if len(found) > 1 and found[0].run != wanted:
            raise AmbiguousReferenceError(reference, [(run.run, "") for run in found])
        return found[0] if found else None

    def last_success(self) -> Run | None:
        """Return the newest run whose outcome is `done`."""
        rows = self._rows(f"{_EACH_RUN} WHERE outcome = 'done' ORDER BY started DESC, run DESC LIMIT 10")
        return next(parse_rows(_run, rows), None)


class Judgements(Tables):
    """Judgements that changed nothing, kept so that nothing is asked again while its evidence is the same.

    `day` (ISO) is the day of the run.
    """

    SCHEMA = """
-- A judgement that changed nothing, by the hash of its evidence. `day` is when it was last of use.
CREATE TABLE IF NOT EXISTS judgements (
    key TEXT PRIMARY KEY, task TEXT NOT NULL, verdict TEXT NOT NULL, day TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS judgements_by_day ON judgements (day);
"""

    def __init__(self, path: Path, day: str, *, is_read_only: bool = False) -> None:
        super().__init__(path)
        self._day = day
        self._is_read_only = is_read_only

    def known(self, keys: Collection[str]) -> Mapping[str, str]:
        """Return key -> verdict for those of `keys` that were judged. A judgement that is looked up does not grow
        old.
        """
        if not keys or not self.path.exists():
            return {}
        chosen = "key IN (SELECT value FROM json_each(?))"
        wanted = json.dumps(list(keys))
        with self._transaction() as connection:
            rows = connection.execute(f"SELECT key, verdict FROM judgements WHERE {chosen}", (wanted,)).fetchall()
            stale = (self._day, wanted, _days_before(self._day, _FRESH_DAYS))
            connection.execute(f"UPDATE judgements SET day = ? WHERE {chosen} AND day < ?", stale)
        return {str(key): str(verdict) for key, verdict in rows}

    def add(self, task: str, verdicts: Mapping[str, str]) -> None:
        """Keep the verdict of each key, and delete judgements that were not used for 400 days."""
        rows = [(key, task, verdict, self._day) for key, verdict in verdicts.items()]
        if not rows or self._is_read_only:
            return
        with self._transaction() as connection:
            connection.executemany("INSERT OR REPLACE INTO judgements (key, task, verdict, day) VALUES (?,?,?,?)", rows)
            connection.execute("DELETE FROM judgements WHERE day < ?", (_days_before(self._day, KEPT_DAYS),))


class Decisions(Tables):
    """The decisions that wait for the owner's answer, by key."""

    SCHEMA = """
-- A decision that its owner has not answered yet. `proposal` is JSON, bytes in base64.
CREATE TABLE IF NOT EXISTS proposals (
    key TEXT PRIMARY KEY, day TEXT NOT NULL, proposal TEXT NOT NULL
) STRICT, WITHOUT ROWID;
-- A decision for whose question there is no room, and the day since when. One that `is_over` is not proposed any more.
CREATE TABLE IF NOT EXISTS deferred (
    key TEXT PRIMARY KEY, task TEXT NOT NULL, subject TEXT NOT NULL, day TEXT NOT NULL, is_over INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
"""

    def put(self, decision: Decision, day: str) -> None:
        """Store it on `day` (ISO), in place of an older one on the same evidence."""

        def encode(data: bytes) -> str:
            return b64encode(data).decode()

        stored = {field.name: getattr(decision, field.name) for field in fields(Decision)}
        branch = decision.branch and astuple(decision.branch)
        stored |= {"edits": [astuple(edit) for edit in decision.edits], "branch": branch}
        row = (decision.key, day, json.dumps(stored, default=encode))
        with self._transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO proposals (key, day, proposal) VALUES (?,?,?)", row)
            connection.execute("DELETE FROM deferred WHERE key = ?", (decision.key,))

    def list_asked(self, since: str) -> list[str]:
        """Return the keys of the decisions that were asked about after the day `since` (ISO)."""
        return [str(key) for (key,) in self._rows("SELECT key FROM proposals WHERE day > ?", since)]

    def defer(self, decisions: Sequence[Decision], day: str, until: str) -> list[str]:
        """Store that these wait since `day` (ISO), or longer if they do already, and return the subjects of those that
        have waited since `until` (ISO): `list_refused` has them from now on.
        """
        rows = [(each.key, each.task, each.subject, day) for each in decisions]
        with self._transaction() as connection:
            connection.executemany("INSERT OR IGNORE INTO deferred VALUES (?,?,?,?,0)", rows)
            connection.execute("DELETE FROM deferred WHERE day < ?", (_days_before(day, KEPT_DAYS),))
            ended = connection.execute(_REFUSE, (until, json.dumps([row[0] for row in rows]))).fetchall()
        return [str(subject) for (subject,) in ended]

    def list_refused(self) -> list[tuple[str, str, str]]:
        """Return (task, key, subject) of what has waited for too long."""
        return [(task, key, subject) for task, key, subject in self._rows(_REFUSED)]

    def get(self, key: str) -> Decision | None:
        rows = self._rows("SELECT proposal FROM proposals WHERE key = ?", key)
        return next(parse_rows(_from_json, (row[0] for row in rows)), None)


_COLUMNS = (
    "run, started, outcome, ended, commit_id, decisions, waiting, cost_usd, notes_before, notes_after, "
    "degraded, problem"
)
_REFUSED = "SELECT task, key, subject FROM deferred WHERE is_over"
_REFUSE = (
    "UPDATE deferred SET is_over = 1 WHERE day <= ? AND NOT is_over AND key IN (SELECT value FROM json_each(?)) "
    "RETURNING subject"
)
_EACH_RUN = f"SELECT {_COLUMNS} FROM janitor_runs"


def _insert(connection: "apsw.Connection", run: Run) -> None:
    row = run._replace(decisions=json.dumps(run.decisions), degraded=json.dumps(run.degraded))  # type: ignore[arg-type]
    connection.execute(f"INSERT OR REPLACE INTO janitor_runs ({_COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)", row)


def _run(row: tuple[Any, ...]) -> Run:
    run, decisions, degraded = Run(*row), json.loads(row[5]), json.loads(row[10])
    datetime.fromisoformat(run.started)
    if not all(isinstance(decision, dict) for decision in decisions) or not isinstance(decisions, list):
        raise TypeError("decisions")
    return run._replace(decisions=tuple(decisions), degraded=tuple(map(str, degraded)))


def _from_json(text: str) -> Decision:
    stored = json.loads(text)
    known = {field.name: stored[field.name] for field in fields(Decision) if field.name in stored}
    known["edits"] = tuple(Edit(path, _decoded(before), _decoded(after)) for path, before, after in stored["edits"])
    if branch := stored.get("branch"):
        folder, path, before, after, message = branch
        known["branch"] = SourceEdit(folder, path, b64decode(before), b64decode(after), message)
    choices = tuple((path, words) for path, words in stored.get("choices", ()))
    return Decision(**{**known, "facts": tuple(stored["facts"]), "choices": choices})


def _decoded(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)


def _days_before(moment: str, days: int) -> str:
    """Return the day (ISO) that many days before an ISO moment."""
    return (date.fromisoformat(moment[:10]) - timedelta(days=days)).isoformat()


def evidence_key(task: str, *evidence: str) -> str:
    """Return sixteen hex digits for what a decision rests on: the content hashes of the notes it judges, in any
    order.
    """
    told = "\n".join([task, *sorted(evidence)])
    return hashlib.sha256(told.encode()).hexdigest()[:16]


# -- conversations that taught nothing ---------------------------------------------------------------------------------

EMPTY_READING_DAYS = 90


class EmptyReadings(Tables):
    """What was read in vain during the last 90 days."""

    SCHEMA = (
        "CREATE TABLE IF NOT EXISTS empty_readings "
        "(day TEXT NOT NULL, session TEXT NOT NULL, turns INTEGER NOT NULL, model TEXT) STRICT"
    )

    def add(self, day: str, session: str, turns: int, model: str | None) -> None:
        """Record that on `day` (ISO, UTC) `turns` turns of a session taught nothing; without a `model` none was asked.
        Records that are too old are deleted.
        """
        with self._open() as connection:
            row = (day, admit(session).text, turns, model)
            connection.execute("INSERT INTO empty_readings VALUES (?,?,?,?)", row)
            connection.execute("DELETE FROM empty_readings WHERE day < ?", (_days_before(day, EMPTY_READING_DAYS),))

    def since(self, day: str) -> list[tuple[str, int, str | None]]:
        """Return (session, turns, model) of what was recorded on `day` or later, oldest first."""
        query = "SELECT session, turns, model FROM empty_readings WHERE day >= ? ORDER BY day, rowid"
        return [(session, turns, model) for session, turns, model in self._rows(query, day)]


# -- snapshots of the memory ------------------------------------------------------------------------------------------

SNAPSHOT_DAYS = 400


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The memory at a moment (ISO 8601, UTC).

    `kinds` and `statuses` count notes, `chunks` and `embedded` what can be searched and what of it by meaning. Sizes
    are bytes; `repository_bytes` is what git keeps. `recall_p50_ms` is of the day before, None when nothing was asked.
    `waiting` questions waited for the owner. `cost_usd` is what the run took, None where a price is unknown.
    """

    at: str
    kinds: Mapping[str, int] = field(default_factory=dict)
    statuses: Mapping[str, int] = field(default_factory=dict)
    superseded: int = 0
    entities: int = 0
    edges: int = 0
    chunks: int = 0
    embedded: int = 0
    index_bytes: int = 0
    repository_bytes: int = 0
    recall_p50_ms: float | None = None
    gaps: int = 0
    waiting: int = 0
    cost_usd: float | None = 0.0

    @property
    def day(self) -> str:
        return self.at[:10]

    @property
    def notes(self) -> int:
        return sum(self.kinds.values())

    @property
    def pending(self) -> int:
        """Facts that were not reviewed yet."""
        return self.statuses.get("pending", 0)

    @property
    def embedded_share(self) -> float | None:
        return self.embedded / self.chunks if self.chunks else None


class HealthLog(Tables):
    """The snapshots."""

    SCHEMA = """
-- The memory at a moment, as JSON.
CREATE TABLE IF NOT EXISTS health (at TEXT PRIMARY KEY, snapshot TEXT NOT NULL) STRICT, WITHOUT ROWID;
"""

    def add(self, snapshot: Snapshot) -> None:
        """Add it, and delete those that are older than 400 days."""
        with self._transaction() as connection:
            row = (snapshot.at, json.dumps(asdict(snapshot)))
            connection.execute("INSERT OR REPLACE INTO health (at, snapshot) VALUES (?,?)", row)
            connection.execute("DELETE FROM health WHERE at < ?", (_days_before(snapshot.at, SNAPSHOT_DAYS),))

    def by_day(self, since: str) -> list[Snapshot]:
        """Return the last snapshot of each day from `since` (ISO) on, oldest first, with the cost of all runs of the
        day.
        """
        rows = self._rows("SELECT snapshot FROM health WHERE at >= ? ORDER BY at", since)
        days: dict[str, Snapshot] = {}
        for snapshot in parse_rows(_parse_snapshot, rows):
            earlier = days.get(snapshot.day, Snapshot(snapshot.at, cost_usd=None))
            costs = [cost for cost in (earlier.cost_usd, snapshot.cost_usd) if cost is not None]
            days[snapshot.day] = replace(snapshot, cost_usd=sum(costs) if costs else None)
        return list(days.values())


def _parse_snapshot(row: tuple[str]) -> Snapshot:
    """Return the snapshot in a row. What only an older or newer Quaid counts is ignored; what it did not count is 0.

    Raises:
        ValueError, TypeError, AttributeError, KeyError: it is not a snapshot.
    """
    stored = json.loads(row[0])
    values = {one.name: stored[one.name] for one in fields(Snapshot) if one.name in stored}
    date.fromisoformat(stored["at"][:10])
    for name, value in values.items():
        numbers = value.values() if name in {"kinds", "statuses"} else [] if name == "at" else [value]
        if not all(number is None or isinstance(number, int | float) for number in numbers):
            raise TypeError(name)
    return Snapshot(**values)
