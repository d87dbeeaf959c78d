"""Where the memories of a vault came from, and which rest on little: what `quaid audit` shows, as plain data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from quaid.errors import QuaidError
from quaid.history.authorship import Authors
from quaid.index import backlinks
from quaid.recall import origins
from quaid.recall.origins import Account, Flood, Origin
from quaid.vault.layout import Layout

if TYPE_CHECKING:
    from quaid.history.authorship import Who
    from quaid.history.branches import VaultCommit
    from quaid.index.port import IndexConnection
    from quaid.memory import Memory

Progress = Callable[[str, int, int], None]
MAX_BLAMED = 100
"""The notes whose lines git is asked about in one call: each takes it some 10 ms."""


class Lone(NamedTuple):
    """A fact that nobody but one agent says: never confirmed, and no turn of a person is its evidence."""

    path: str
    source: str


class Misfit(NamedTuple):
    """A line of a fact that was written by somebody whose word it is not said to be; `said` is the fact's `source`."""

    path: str
    line: int
    text: str
    said: str
    who: Who
    author: str
    commit: str


@dataclass(frozen=True, slots=True)
class SourceReport:
    """An account with what is remarkable about it; `over` are (day, facts) of days above `audit.facts_per_day`."""

    account: Account
    floods: tuple[Flood, ...]
    over: tuple[tuple[str, int], ...]
    alone: int


@dataclass(frozen=True, slots=True)
class Audit:
    """`left` are the notes whose lines were not looked at, because there are more than `MAX_BLAMED`."""

    vault: str
    facts_per_day: int
    sources: tuple[SourceReport, ...]
    lone: tuple[Lone, ...]
    misfits: tuple[Misfit, ...]
    left: int = 0
    is_cut_off: bool = False
    """A shallow clone: what came before is not known."""


def audit_of(memory: Memory, progress: Progress, since: datetime | None = None, source: str | None = None) -> Audit:
    """Return where the notes came from, all of them or those `since` and of the sources whose name holds `source`.

    Raises:
        GitError: the history cannot be read.
    """
    history, settings = memory.git, memory.settings
    index, place = memory.index(), Layout.of(settings.vault)
    authors, hosts = Authors.of(settings.git, history.owner()), origins.hosts_of(index)
    progress("Reading the history", 0, 1)
    log = history.branches.log() if history.state().head else []
    progress("Reading the history", 1, 1)
    found = origins.list_origins(log, authors, hosts, place)
    added = origins.add_up(log, found, authors, hosts)
    usual = {name: account.days for name, account in added.items()}
    if since is not None:
        log = [logged for logged in log if logged.written >= since]
        found = {path: origin for path, origin in found.items() if origin.at >= since}
        added = origins.add_up(log, found, authors, hosts)
    accounts = [
        account for account in added.values() if source is None or source.casefold() in account.source.casefold()
    ]
    chosen = {account.source for account in accounts}
    lone = [each for each in _list_lone(index, found) if each.source in chosen]
    suspects = _list_suspects(index, log, authors, found, chosen)
    misfits = list(_list_misfits(memory, suspects, authors, progress))
    alone = Counter(each.source for each in lone)
    limit = settings.audit.facts_per_day
    reports = (
        SourceReport(
            account,
            tuple(
                flood
                for flood in origins.find_floods(usual[account.source], settings.audit.flood)
                if account.who not in {"import", "janitor"} and (since is None or flood.day >= f"{since:%Y-%m-%d}")
            ),
            tuple((day, facts) for _, day, facts in origins.list_over_quota([account], limit)),
            alone[account.source],
        )
        for account in accounts
    )
    return Audit(
        str(memory.root),
        limit,
        tuple(sorted(reports, key=lambda one: (-one.account.facts, -one.account.notes, one.account.source))),
        tuple(lone),
        tuple(misfits),
        max(0, len(suspects) - MAX_BLAMED),
        bool(history.boundary),
    )


def list_over_quota_since(memory: Memory, since: datetime) -> list[tuple[str, str, int]]:
    """Return (source, day, facts) of the days from `since` on when an agent brought more facts than it may; none where
    there is no limit, or git cannot be asked.
    """
    limit = memory.settings.audit.facts_per_day
    if not limit:
        return []
    index, place = memory.index(), Layout.of(memory.settings.vault)
    try:
        log = memory.git.branches.log(f"--since={since.isoformat()}", "HEAD")
    except QuaidError:
        return []
    authors, hosts = Authors.of(memory.settings.git, None), origins.hosts_of(index)
    found = origins.list_origins(log, authors, hosts, place)
    return origins.list_over_quota(origins.add_up(log, found, authors, hosts).values(), limit)


def _list_lone(index: IndexConnection, found: Mapping[str, Origin]) -> Iterator[Lone]:
    """Yield the facts, by path, that hold, that Quaid wrote down, and that nobody but an agent is known to say."""
    spoken = backlinks.turns_of_people(index)
    cited = backlinks.all_citations(index)
    rows = index.execute(
        "SELECT doc_id, path FROM documents WHERE kind = 'fact' AND superseded_by IS NULL AND NOT confirmations "
        "AND NOT verified AND NOT pinned ORDER BY path"
    )
    for doc_id, path in rows:
        origin = found.get(path)
        if origin is not None and origin.who == "agent" and spoken.isdisjoint(cited.get(doc_id, ())):
            yield Lone(path, origin.source)


def _list_suspects(
    index: IndexConnection, log: list[VaultCommit], authors: Authors, found: Mapping[str, Origin], chosen: set[str]
) -> list[tuple[str, str]]:
    """Return (path, what its `source` says) of each fact in which somebody wrote by hand whose word it is not said to
    be.
    """
    writers: dict[str, set[str]] = {}
    for logged in log:
        who = authors.name(logged.commit.email, logged.commit.subject)
        for change in logged.changes:
            writers.setdefault(change.path, set()).add(who)
    rows = index.execute("SELECT path, coalesce(source, 'user') FROM documents WHERE kind = 'fact' ORDER BY path")
    return [
        (path, said)
        for path, said in rows
        if any(not fits(said, who) for who in writers.get(path, ()))
        and (path not in found or found[path].source in chosen)
    ]


def fits(said: str, who: str) -> bool:
    """Return whether a line of a fact may come from `who` when its `source` is `said`: what Quaid took down may be
    anybody's word, what was written by hand is its writer's.
    """
    return who not in ({"other"} if said == "user" else {"owner", "other"})


def _list_misfits(
    memory: Memory, suspects: list[tuple[str, str]], authors: Authors, progress: Progress
) -> Iterator[Misfit]:
    """Yield the lines that say something, of the statement or of whose it is, and come from the wrong hand."""
    blamed = suspects[:MAX_BLAMED]
    for done, (path, said) in enumerate(blamed):
        progress("Asking who wrote which line", done, len(blamed))
        data = memory.git.read_at("HEAD", path)
        lines = (data or b"").decode("utf-8", "replace").split("\n")
        for number, (text, line) in enumerate(zip(lines, memory.git.branches.blame(path, "HEAD"), strict=False), 1):
            who = authors.name(line.email, line.subject)
            if not fits(said, who) and _says_something(text, lines, number):
                yield Misfit(path, number, text.strip(), said, who, f"{line.author} <{line.email}>", line.commit)
    progress("Asking who wrote which line", len(blamed), len(blamed))


def _says_something(text: str, lines: list[str], number: int) -> bool:
    """Return whether a line is a part of the statement, or tells whose word it is."""
    end = next((place for place, line in enumerate(lines[1:], 2) if line.rstrip() == "---"), 0)
    is_head = lines[0].rstrip() == "---" and number <= end
    return text.startswith(("source:", "speaker:")) if is_head else bool(text.strip())
