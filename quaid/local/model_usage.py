"""The usage of language models on this machine, and the answers they gave, in local.db."""

from collections.abc import Sequence
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from quaid.local.tables import Tables
from quaid.model import ModelUsage, PlannedCall, SpendingCap

if TYPE_CHECKING:
    import apsw

_SCHEMA = """
-- One call of a model. Until it is settled its numbers are the most it can take; a killed process leaves them so.
CREATE TABLE IF NOT EXISTS model_calls (
    call_id INTEGER PRIMARY KEY, day TEXT NOT NULL, tier TEXT NOT NULL, provider TEXT NOT NULL, model TEXT NOT NULL,
    prompt TEXT NOT NULL, calls INTEGER NOT NULL, input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL, written_tokens INTEGER NOT NULL, cost_usd REAL, is_settled INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS model_calls_by_day ON model_calls (day);
-- Answers by what was asked of whom: a hash, the question itself is not kept.
CREATE TABLE IF NOT EXISTS model_answers (key TEXT PRIMARY KEY, day TEXT NOT NULL, answer TEXT NOT NULL) STRICT;
CREATE INDEX IF NOT EXISTS model_answers_by_day ON model_answers (day);
"""
_COUNTS = ", ".join(ModelUsage._fields)
_SUMS = ", ".join(f"sum({name})" for name in ModelUsage._fields)
_KEPT_DAYS = 90


class DayUsage(NamedTuple):
    """The usage of one day (ISO, UTC). `unsettled` calls are running or were killed: they count at their estimate."""

    day: str
    usage: ModelUsage
    unsettled: int


class PromptUsage(NamedTuple):
    """The usage of one model by one version of a prompt (`name@version`)."""

    prompt: str
    provider: str
    model: str
    usage: ModelUsage


class ModelRecords(Tables):
    """A `UsageStore` and an `AnswerStore` of quaid.llm.

    No connection stays open: a late call is settled by a thread that nobody waits for, when all else may be closed.
    """

    SCHEMA = _SCHEMA
    IS_RELAXED = True  # a power failure may forget the last calls

    def reserve(self, call: PlannedCall, day: str, cap: SpendingCap | None = None) -> int:
        """Count `call` at its estimate and return its number.

        Raises:
            BudgetExceededError: with the usage of `day` it would exceed `cap`.
        """
        with self._transaction() as connection:
            if cap is not None:
                cap.check(call.most, _spent(connection, day))
            row = (day, call.tier, call.provider, call.model, call.prompt, *call.most)
            connection.execute(
                f"INSERT INTO model_calls (day, tier, provider, model, prompt, {_COUNTS}, is_settled) "
                "VALUES (?,?,?,?,?,?,?,?,?,?,?,0)",
                row,
            )
            call_id = connection.last_insert_rowid()
            oldest = (date.fromisoformat(day) - timedelta(days=_KEPT_DAYS)).isoformat()
            connection.execute("DELETE FROM model_calls WHERE day < ?", (oldest,))
        return call_id

    def settle(self, reservation: int, usage: ModelUsage) -> None:
        """Replace the estimate of a call by its usage."""
        with self._open() as connection:
            connection.execute(
                f"UPDATE model_calls SET ({_COUNTS}, is_settled) = (?,?,?,?,?,?,1) WHERE call_id = ?",
                (*usage, reservation),
            )

    def spent(self, day: str) -> ModelUsage:
        """Return the usage of `day`, estimates of running calls included."""
        if not self.path.exists():
            return ModelUsage()
        with self._open() as connection:
            return _spent(connection, day)

    def by_day(self) -> list[DayUsage]:
        """Return the usage of each of the stored days, oldest first; days without a call are left out."""
        query = f"SELECT day, sum(is_settled = 0), {_SUMS} FROM model_calls GROUP BY day ORDER BY day"
        return [DayUsage(day, _usage(sums), unsettled) for day, unsettled, *sums in self._rows(query)]

    def by_prompt(self) -> list[PromptUsage]:
        """Return the usage of each prompt on all stored days; most tokens first."""
        rows = self._rows(
            f"SELECT prompt, provider, model, {_SUMS} FROM model_calls "
            "GROUP BY prompt, provider, model ORDER BY sum(input_tokens + output_tokens) DESC, prompt, model"
        )
        return [PromptUsage(prompt, provider, model, _usage(sums)) for prompt, provider, model, *sums in rows]

    def get(self, key: str, oldest_day: str) -> str | None:
        """Return the answer stored under `key` on `oldest_day` or later."""
        rows = self._rows("SELECT answer FROM model_answers WHERE key = ? AND day >= ?", key, oldest_day)
        return str(rows[0][0]) if rows else None

    def put(self, key: str, answer: str, day: str, oldest_day: str) -> None:
        """Keep `answer`, and delete what is older than `oldest_day`."""
        with self._transaction() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO model_answers (key, day, answer) VALUES (?,?,?)", (key, day, answer)
            )
            connection.execute("DELETE FROM model_answers WHERE day < ?", (oldest_day,))


def _spent(connection: "apsw.Connection", day: str) -> ModelUsage:
    row = connection.execute(f"SELECT {_SUMS} FROM model_calls WHERE day = ?", (day,)).fetchone()
    if row is None or row[0] is None:
        return ModelUsage()
    usage = _usage(row)
    return usage._replace(cost_usd=usage.cost_usd or 0.0)


def _usage(sums: Sequence[Any]) -> ModelUsage:
    """Return the usage in sums that have the order of `_COUNTS`; the cost is None where no call's is known."""
    usage = ModelUsage(*sums)
    return usage._replace(cost_usd=None if usage.cost_usd is None else float(usage.cost_usd))
