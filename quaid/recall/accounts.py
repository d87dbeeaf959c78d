"""What each source of a vault has brought, by the commits: `quaid audit`, and what the janitor doubts."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import sqrt
from typing import NamedTuple

from quaid.history.authorship import Authors, Who
from quaid.history.vault_history import VaultCommit
from quaid.index.port import IndexConnection
from quaid.model import Commit, Kind
from quaid.vault.layout import Layout

MAX_SPREADS = 6.0
"""A day is a flood when it has more facts than the median of the source's days and this many times their spread."""
MIN_DAYS = 5
"""On fewer days nobody can say what is usual."""
MIN_FLOOD = 10
"""Fewer facts in a day are no flood, however quiet the other days were."""
_MAD_TO_SPREAD = 1.4826
"""The median absolute deviation times this is the standard deviation of what is normally distributed (Leys et al.,
Detecting outliers, Journal of Experimental Social Psychology 49, 2013)."""
DIRECT = "agent:remember"
"""The source of what was stated explicitly, by a command or a tool, outside of a conversation."""


class Origin(NamedTuple):
    """The commit that brought a note: whose it was, and when it came, in UTC."""

    is_fact: bool
    source: str
    who: Who
    at: datetime


class Flood(NamedTuple):
    """A day on which a source brought more facts than `most`; `usual` is the median of its days."""

    day: str
    facts: int
    usual: float
    most: float


@dataclass(slots=True)
class Account:
    """What one source has brought. `days` are the facts of each day, `committers` e-mail addresses."""

    source: str
    who: Who
    commits: int = 0
    notes: int = 0
    facts: int = 0
    first: datetime | None = None
    last: datetime | None = None
    sessions: set[str] = field(default_factory=set)
    committers: set[str] = field(default_factory=set)
    days: Counter[str] = field(default_factory=Counter)


class SourceHistory:
    """The notes that each source has brought, by the commits of the vault; `log` has parents before children."""

    def __init__(self, log: Sequence[VaultCommit], authors: Authors, index: IndexConnection, place: Layout) -> None:
        self._log, self._authors, self._layout = log, authors, place
        rows = index.execute("SELECT session, source FROM documents WHERE kind = 'episode' AND session <> ''")
        self._hosts = {session: source or "" for session, source in rows}
        """The program that each session took place in, as far as its episode says."""
        self.origins: dict[str, Origin] = {}
        """The origin of each note, by the path that it has now; one that was removed is there too."""
        for logged in log:
            source, who = self._source_of(logged.commit)
            for change in logged.changes:
                if change.old_path in self.origins:
                    self.origins[change.path] = self.origins.pop(change.old_path)
                elif change.befores[0] is None:
                    is_fact = place.folder_kind(change.path) is Kind.FACT
                    self.origins[change.path] = Origin(is_fact, source, who, logged.written)

    def _source_of(self, commit: Commit) -> tuple[str, Who]:
        """Return the name and the kind of the source of a commit. The name is `owner:` or `other:` and an address,
        `agent:` and a program, `import:` and a format, or `janitor`.
        """
        who = self._authors.name(commit.email, commit.subject)
        if who in {"owner", "other"}:
            return f"{who}:{commit.email}", who
        if who == "janitor":
            return who, who
        if who == "import":
            is_file = commit.subject.startswith("analyze: ")
            return f"import:{'files' if is_file else commit.subject.split()[-1]}", who
        sessions = commit.trailers.get("Quaid-Session", ())
        return f"agent:{self._hosts.get(sessions[0]) or 'unknown'}" if sessions else DIRECT, who

    def add_up(self, since: datetime | None = None) -> dict[str, Account]:
        """Return the account of each source by its name, of all time or `since`."""
        accounts: dict[str, Account] = {}
        for logged in self._log:
            if not logged.changes or (since is not None and logged.written < since):
                continue
            source, who = self._source_of(logged.commit)
            account = accounts.setdefault(source, Account(source, who))
            account.commits += 1
            account.first = min(account.first or logged.written, logged.written)
            account.last = max(account.last or logged.written, logged.written)
            account.sessions.update(logged.commit.trailers.get("Quaid-Session", ()))
            account.committers.add(logged.committer)
        for origin in self.origins.values():
            if (since is None or origin.at >= since) and (found := accounts.get(origin.source)) is not None:
                found.notes += 1
                found.facts += origin.is_fact
                found.days[origin.at.date().isoformat()] += origin.is_fact
        return accounts

    def list_doubts(self, facts_per_day: int) -> dict[str, str]:
        """Return for each path of a fact that is not to be believed unasked the sentence that says why: somebody else
        has written in it by hand, or its source brought more in a day than is allowed.
        """
        over = {(source, day): facts for source, day, facts in list_over_quota(self.add_up().values(), facts_per_day)}
        doubts = {}
        for path, origin in self.origins.items():
            day = origin.at.date().isoformat()
            if origin.is_fact and (facts := over.get((origin.source, day))):
                doubts[path] = f"{origin.source} brought {facts:,} facts on {day}, of {facts_per_day:,} that it may."
        others = {
            path: [name for name, who in writers.items() if who == "other"]
            for path, writers in self.list_writers().items()
            if self._layout.folder_kind(path) is Kind.FACT
        }
        return doubts | {
            path: f"{', '.join(names)} has written in it, not its owner." for path, names in others.items() if names
        }

    def list_writers(self, since: datetime | None = None) -> dict[str, dict[str, Who]]:
        """Return who has written in each path by hand, of all time or `since`: `Name <address>` -> owner or other."""
        writers: dict[str, dict[str, Who]] = defaultdict(dict)
        for logged in self._log:
            who = self._authors.name(logged.commit.email, logged.commit.subject)
            if who in {"owner", "other"} and (since is None or logged.written >= since):
                for change in logged.changes:
                    writers[change.path][f"{logged.commit.author} <{logged.commit.email}>"] = who
        return writers


def find_floods(days: Mapping[str, int], factor: float = MAX_SPREADS) -> list[Flood]:
    """Return the days that have far more facts than the others: over the median and `factor` times the spread, which is
    1.4826 times the median absolute deviation, and no less than a count that is steady varies by chance (the square
    root of the median).
    """
    from statistics import median  # not above: it loads decimal, which takes as long as all of recall's own modules

    counts = sorted(number for number in days.values() if number)
    if len(counts) < MIN_DAYS:
        return []
    usual = median(counts)
    spread = max(_MAD_TO_SPREAD * median(abs(number - usual) for number in counts), sqrt(usual))
    most = usual + factor * spread
    return [Flood(day, facts, usual, most) for day, facts in sorted(days.items()) if facts > max(most, MIN_FLOOD - 1)]


def list_over_quota(accounts: Iterable[Account], facts_per_day: int) -> list[tuple[str, str, int]]:
    """Return (source, day, facts) of each day on which an agent brought more than `facts_per_day`; 0 is no limit."""
    return [
        (account.source, day, facts)
        for account in accounts
        if facts_per_day and account.who == "agent"
        for day, facts in sorted(account.days.items())
        if facts > facts_per_day
    ]
