"""The sources of the memories of a vault, and which are weakly supported: the JSON of `quaid audit`."""

from collections import Counter
from datetime import datetime
from typing import Any

from quaid.errors import QuaidError
from quaid.history.authorship import Authors
from quaid.memory import Memory
from quaid.recall.accounts import SourceHistory, find_floods, list_over_quota

ASSISTANT = "Assistant"
"""The speaker of the turns of an agent that has no name."""


def audit(memory: Memory, since: datetime | None = None, source: str | None = None) -> dict[str, Any]:
    """Return where the notes came from, all of them or those `since` and of the sources whose name contains `source`.

    Raises:
        GitError: the history cannot be read.
    """
    history, settings, index = memory.git, memory.settings, memory.index()
    authors = Authors.of(settings.git, history.owner())
    log = history.log_changes() if history.state().head else []
    brought = SourceHistory(log, authors, index, memory.layout)
    found = {path: origin for path, origin in brought.origins.items() if since is None or origin.at >= since}
    usual, accounts = brought.add_up(), brought.add_up(since)
    chosen = {name for name in accounts if source is None or source.casefold() in name.casefold()}
    # Facts that hold, that Quaid wrote, and that nobody but an agent is known to say.
    rows = index.execute(
        "SELECT path FROM documents d WHERE kind = 'fact' AND superseded_by IS NULL AND NOT confirmations "
        "AND NOT verified AND NOT pinned AND NOT EXISTS (SELECT 1 FROM citations ci "
        "JOIN names n ON n.name_key = lower(ci.episode) AND n.position = 0 "
        "JOIN chunks c ON c.doc_id = n.doc_id AND c.turn = ci.turn "
        "WHERE ci.doc_id = d.doc_id AND coalesce(c.speaker, '') <> ?) ORDER BY path",
        (ASSISTANT,),
    )
    agents = {path: one.source for path, one in found.items() if one.who == "agent" and one.source in chosen}
    lone = [(path, agents[path]) for (path,) in rows if path in agents]
    alone = Counter(name for _, name in lone)
    limit = settings.audit.facts_per_day
    sources = []
    for name in chosen:
        account = accounts[name]
        floods = find_floods(usual[name].days)
        if account.who in {"import", "janitor"}:
            floods = []
        shape = {
            "source": name,
            "who": account.who,
            "commits": account.commits,
            "notes": account.notes,
            "facts": account.facts,
            "alone": alone[name],
            "sessions": len(account.sessions),
            "committers": sorted(account.committers),
            "first": _iso(account.first),
            "last": _iso(account.last),
            "floods": [flood._asdict() for flood in floods if since is None or flood.day >= f"{since:%Y-%m-%d}"],
            "over_quota": [{"day": day, "facts": facts} for _, day, facts in list_over_quota([account], limit)],
        }
        sources.append(shape)
    writers = brought.list_writers(since)
    rows = index.execute("SELECT path, coalesce(source, 'user') FROM documents WHERE kind = 'fact' ORDER BY path")
    return {
        "vault": str(memory.root),
        "facts_per_day": limit,
        "sources": sorted(sources, key=lambda one: (-one["facts"], -one["notes"], one["source"])),
        "lone": [{"path": path, "source": name} for path, name in lone],
        # Facts in which somebody wrote by hand who is not whom their `source` names. What Quaid wrote may be anybody's.
        "misfits": [
            {"path": path, "said": said, "authors": names}
            for path, said in rows
            if (names := [name for name, who in writers.get(path, {}).items() if said != "user" or who == "other"])
        ],
        "cut_off": bool(history.boundary),
    }


def list_over_quota_since(memory: Memory, since: datetime) -> list[tuple[str, str, int]]:
    """Return (source, day, facts) of the days from `since` on when an agent brought more facts than it may; none where
    there is no limit, or git cannot be asked.
    """
    limit = memory.settings.audit.facts_per_day
    try:
        log = memory.git.log_changes(f"--since={since.isoformat()}", "HEAD") if limit else []
    except QuaidError:
        return []
    authors = Authors.of(memory.settings.git, None)
    brought = SourceHistory(log, authors, memory.index(), memory.layout)
    return list_over_quota(brought.add_up().values(), limit)


def _iso(when: datetime | None) -> str | None:
    return when.isoformat().replace("+00:00", "Z") if when else None
