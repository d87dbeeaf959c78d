"""Today, the first page: what is new since yesterday, what needs an answer, and what is coming up."""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import date, datetime, timedelta
from typing import Any

from starlette.requests import Request

from quaid.agents.hosts import name_host
from quaid.errors import QuaidError
from quaid.index import documents, listing
from quaid.index.documents import Document
from quaid.index.port import IndexConnection
from quaid.janitor.news import overdue
from quaid.janitor.vetoes import TASK
from quaid.memory import Memory
from quaid.model import Kind, name_key
from quaid.recall.hits import whose_word
from quaid.report.status import list_edited
from quaid.text.endings import HAPPENED
from quaid.text.zones import local_now
from quaid.timeline.undo import ChangeNotFoundError
from quaid.vault.notes import format_day
from quaid.web.answer import Context
from quaid.web.changes import FACT, QUESTIONS, list_changes
from quaid.web.pages.review import build_card
from quaid.web.pages.sessions import find_talks
from quaid.web.templating import memory_path

MAX_LEARNED = 500
"""New facts that are grouped; the timeline has the others."""
MAX_STEPS = 5
COMING_DAYS, NEAR_DAYS = 14, 3
"""Days ahead that are shown, and by which a memory of an earlier year may differ from this day."""
ORIGINS = {"agent": "an agent", "tool": "a tool", "import": "an import", "owner": "You"}
YEARLY = re.compile(
    r"\b(?:birthdays?|anniversar(?:y|ies)|every year|yearly|annual(?:ly)?|geburtstage?|jahrestag|anniversaire|"
    r"cumplea[nñ]os|aniversari?o|anivers[aá]rio|compleanno|verjaardag|urodziny|födelsedag)\b",
    re.IGNORECASE,
)
"""Words for what returns on its day each year."""


def show_today(memory: Memory, request: Request) -> Context:
    """Return the parts of the page."""
    now, index = local_now(memory.settings.timezone), memory.index()
    kinds, edits = documents.count_by(index, "kind"), list[str]()
    with suppress(QuaidError):  # what is wrong with git is on the page Health
        edits = [*documents.find_paths(index, list_edited(memory))]
    return {
        "weekday": f"{now:%A}",
        "today": now.date(),
        "day": format_day(now.date().isoformat()),
        "is_new": not (kinds.get("fact") or kinds.get("episode")),
        "learned": group_learned(memory, now),
        "night": read_last_run(memory),
        "card": build_card(memory, request.query_params.get("question", "")),
        "edits": edits,
        "coming": list_coming(index, now.date()),
        "coming_days": COMING_DAYS,
        "past": list_anniversaries(index, now.date())[:1],
    }


def group_learned(memory: Memory, now: datetime) -> Mapping[str, Any]:
    """Return the facts that were learned since yesterday began, by the project or the person they are about, each with
    the person and the conversation it came from.
    """
    index, since, today = memory.index(), (now - timedelta(days=1)).date().isoformat(), now.date().isoformat()
    listed = memory.cache.of(index, listing.list_learned, Kind.FACT, memory.settings.timezone)
    learned = [pair for pair in listed if pair[0][:10] <= today]
    ids = [doc_id for moment, doc_id in learned if moment >= since][:MAX_LEARNED]
    found = documents.read_documents(index, ids)
    facts = [found[doc_id] for doc_id in ids]
    owner_keys = {name_key(name) for name in memory.answers.owner_names}
    rows = index.execute(
        "SELECT l.doc_id, d.title, d.id FROM links l JOIN names n ON n.name_key = l.target_key "
        "JOIN documents d ON d.doc_id = n.doc_id WHERE d.kind = 'entity' AND d.type IN ('person', 'pet') "
        "AND l.doc_id IN (SELECT CAST(value AS INTEGER) FROM json_each(?)) ORDER BY d.title DESC",
        (json.dumps([fact.doc_id for fact in facts]),),
    )
    about = {doc_id: (name, memory_path(each)) for doc_id, name, each in rows if name_key(name) not in owner_keys}
    talks = find_talks(memory, [fact.session for fact in facts if fact.session])
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for fact in facts:
        key = (fact.project, f"/projects/{fact.project}") if fact.project else about.get(fact.doc_id, ("", ""))
        word, talk = whose_word(fact.source, fact.speaker, owner_keys), talks.get(fact.session or "")
        host = name_host(talk.source or "") if talk else ""
        origin = ORIGINS.get(word) or fact.speaker or "somebody"
        groups.setdefault(key, []).append({"fact": fact, "from": origin, "talk": talk, "host": host})
    return {
        "total": len(facts),
        "groups": sorted(groups.items(), key=lambda group: (not group[0][0], -len(group[1]))),
        "since": since,
        "last": learned[0][0][:10] if learned else "",
    }


def read_last_run(memory: Memory) -> Mapping[str, Any]:
    """Return the decisions of the last run, each with the commit that an undo takes back; no name if there was none."""
    views, runs = memory.timeline.views, memory.janitor.runs(1)
    nights = [] if runs else views.nights(1)  # another machine may run the janitor
    with suppress(ChangeNotFoundError):  # it changed nothing
        nights = [views.night(run.run) for run in runs] or nights
    commits = [each for night in nights for each in night.commits if QUESTIONS not in each.trailers.get(TASK, ())]
    # One decision with a reason comes before many small ones.
    commits.sort(key=lambda commit: len(commit.trailers.get(FACT, ())))
    rows = list_changes(memory, views.view_all(views.read(commits[:MAX_STEPS]), limit=0))
    return {
        "name": "".join([*(run.run for run in runs), *(night.run for night in nights)][:1]),
        "when": "".join([run.started for run in runs] or [commit.when for commit in commits[:1]]),
        "rows": rows,
        "total": len(commits),
        "problem": "".join(run.problem or "" for run in runs),
        "late": overdue(memory.state, local_now(memory.settings.timezone), memory.git),
    }


def list_coming(index: IndexConnection, today: date) -> list[tuple[date, Document]]:
    """Return (day, fact) of the facts that begin on one of the next days or name it, soonest first. What is repeated
    every year, as its text says, comes back on its day.
    """
    coming = {f"{day:%m-%d}": day for day in (today + timedelta(days=ahead) for ahead in range(COMING_DAYS))}
    found = []
    for fact in listing.list_on_days(index, coming):
        named = [first for first, _, last in (span.partition("/") for span in fact.days.split()) if first == last]
        known = [(each, coming[each[5:]]) for each in (*named, (fact.valid_from or "")[:10]) if each[5:] in coming]
        days = [day for each, day in known if each == day.isoformat() or YEARLY.search(fact.text)]
        found += [(min(days), fact)] if days and not fact.is_replaced else []
    return sorted(found, key=lambda pair: pair[0])


def list_anniversaries(index: IndexConnection, today: date) -> list[tuple[date, Document]]:
    """Return (day, fact) of what happened or was learned about this day of earlier years, the last year first."""
    near = [f"{today + timedelta(days=days):%m-%d}" for days in range(-NEAR_DAYS, NEAR_DAYS + 1)]
    found = []
    for fact in listing.list_on_days(index, near):
        with suppress(ValueError):
            begun = fact.valid_from if fact.type in HAPPENED else None
            day = date.fromisoformat((begun or fact.created or "")[:10])
            years = round((today - day).days / 365.25)
            off = abs((today - day).days - 365.25 * years)
            found += [((years, off), (day, fact))] if years > 0 and off < NEAR_DAYS + 1 else []
    return [pair for _, pair in sorted(found, key=lambda each: each[0])]
