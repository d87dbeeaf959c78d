"""Where notes came from, by the commits that brought them: sources, how much each brings, and which note to doubt."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import sqrt
from typing import TYPE_CHECKING, NamedTuple

from quaid.model import Kind

if TYPE_CHECKING:
    from quaid.history.authorship import Authors, Who
    from quaid.history.branches import VaultCommit
    from quaid.index.port import IndexConnection
    from quaid.model import Commit
    from quaid.vault.layout import Layout

MIN_DAYS = 5
"""On fewer days nobody can say what is usual."""
MIN_FLOOD = 10
"""Fewer facts in a day are no flood, however quiet the other days were."""
_MAD_TO_SPREAD = 1.4826
"""The median absolute deviation times this is the standard deviation of what is normally distributed (Leys et al.,
Detecting outliers, Journal of Experimental Social Psychology 49, 2013)."""
DIRECT = "agent:remember"
"""What was told to Quaid in so many words, by a command or a tool, outside of a conversation."""


class Origin(NamedTuple):
    """The commit that brought a note: whose it was, and when it came, in UTC."""

    path: str
    is_fact: bool
    source: str
    who: Who
    at: datetime

    @property
    def day(self) -> str:
        return self.at.date().isoformat()


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


def hosts_of(index: IndexConnection) -> dict[str, str]:
    """Return the program that each session took place in, as far as its episode says."""
    rows = index.execute("SELECT session, source FROM documents WHERE kind = 'episode' AND session <> ''")
    return {session: source or "" for session, source in rows}


def source_of(commit: Commit, who: Who, hosts: Mapping[str, str]) -> str:
    """Return the name of the source of a commit: `owner:`, `other:` and an address, `agent:` and a program, `import:`
    and a format, or `janitor`.
    """
    if who in {"owner", "other"}:
        return f"{who}:{commit.email}"
    if who == "janitor":
        return who
    if who == "import":
        return "import:files" if commit.subject.startswith("analyze: ") else f"import:{commit.subject.split()[-1]}"
    sessions = commit.trailers.get("Quaid-Session", ())
    return f"agent:{hosts.get(sessions[0]) or 'unknown'}" if sessions else DIRECT


def list_origins(
    log: Iterable[VaultCommit], authors: Authors, hosts: Mapping[str, str], place: Layout
) -> dict[str, Origin]:
    """Return for each path in the vault, as it is called now, the origin of the note; one that was removed is there
    too. `log` has parents before children.
    """
    origins: dict[str, Origin] = {}
    for logged in log:
        who = authors.name(logged.commit.email, logged.commit.subject)
        source = source_of(logged.commit, who, hosts)
        for change in logged.changes:
            if change.source is not None and change.source in origins:
                origins[change.path] = origins[change.source]._replace(path=change.path)
                del origins[change.source]
            elif change.befores[0] is None:
                is_fact = place.folder_kind(change.path) is Kind.FACT
                origins[change.path] = Origin(change.path, is_fact, source, who, logged.written)
    return origins


def add_up(
    log: Iterable[VaultCommit], origins: Mapping[str, Origin], authors: Authors, hosts: Mapping[str, str]
) -> dict[str, Account]:
    """Return the account of each source by its name."""
    accounts: dict[str, Account] = {}
    for logged in log:
        if not logged.changes:
            continue
        who = authors.name(logged.commit.email, logged.commit.subject)
        source = source_of(logged.commit, who, hosts)
        account = accounts.setdefault(source, Account(source, who))
        account.commits += 1
        account.first = min(account.first or logged.written, logged.written)
        account.last = max(account.last or logged.written, logged.written)
        account.sessions.update(logged.commit.trailers.get("Quaid-Session", ()))
        account.committers.add(logged.committer)
    for origin in origins.values():
        if (found := accounts.get(origin.source)) is not None:
            found.notes += 1
            found.facts += origin.is_fact
            found.days[origin.day] += origin.is_fact
    return accounts


def find_floods(days: Mapping[str, int], factor: float) -> list[Flood]:
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


def list_doubts(
    log: Sequence[VaultCommit], authors: Authors, hosts: Mapping[str, str], place: Layout, facts_per_day: int
) -> dict[str, str]:
    """Return for each path of a fact that is not to be believed unasked the sentence that says why: somebody else has
    written in it by hand, or its source brought more in a day than is allowed.
    """
    origins = list_origins(log, authors, hosts, place)
    over = {
        (source, day): facts
        for source, day, facts in list_over_quota(add_up(log, origins, authors, hosts).values(), facts_per_day)
    }
    doubts = {
        origin.path: f"{origin.source} brought {facts:,} facts on {origin.day}, of {facts_per_day:,} that it may."
        for origin in origins.values()
        if origin.is_fact and (facts := over.get((origin.source, origin.day)))
    }
    others: dict[str, list[str]] = defaultdict(list)
    for logged in log:
        if authors.name(logged.commit.email, logged.commit.subject) == "other":
            for change in logged.changes:
                others[change.path].append(f"{logged.commit.author} <{logged.commit.email}>")
    return doubts | {
        path: f"{', '.join(dict.fromkeys(names))} has written in it, not its owner."
        for path, names in others.items()
        if place.folder_kind(path) is Kind.FACT
    }
