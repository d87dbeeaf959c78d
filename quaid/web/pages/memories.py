"""Memories: a table of everything, with filters and their counts, and changes of many memories as one commit."""

import json
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from quaid.capture.export import export_notes
from quaid.capture.writer import FORGETTABLE, MARKABLE, MARKS, WritePlan, WriteResult, make_key
from quaid.errors import BadInputError, QuaidError, UsageError
from quaid.index import documents, listing
from quaid.index.documents import NAMES, Document
from quaid.index.listing import DATE, NoteFilter, match_notes
from quaid.index.port import IndexConnection
from quaid.index.scope import visible_to
from quaid.local import claimed
from quaid.memory import Memory
from quaid.model import STATUSES, Edit, Kind, Message, Use, name_key
from quaid.recall import scoring
from quaid.redaction import admit
from quaid.text.dates import parse_day
from quaid.text.zones import limit_of_day, local_now
from quaid.vault import files, frontmatter, notes, transaction
from quaid.web.answer import Context, Form, Shown, go_to, go_to_written, link, own_address, paginate

MEMORIES = "/memories"
FIELDS = ("q", "kind", "about", "project", "tag", "status", "from", "to", "sort", "rows", "page")
KINDS = tuple(kind for kind in Kind if kind is not Kind.REVIEW)
"""The kinds of the table: questions are in Review."""
STATES = (*STATUSES, listing.SUPERSEDED)
ROWS = (50, 200, 500)
"""The rows of a page to choose from; a form has at most a thousand fields."""
MAX_CHOICES = 200
"""Entities, projects or tags to choose from, those with most memories."""
MAX_ABOUT = 4
"""Names that a row shows."""
VERSION_LENGTH = 16
"""Characters of the hash of a note, by which a change since the page was shown is noticed."""
NEWEST = "-learned"
_SELECTED = "note:"
_STATE = f"CASE WHEN d.superseded_by IS NOT NULL THEN '{listing.SUPERSEDED}' ELSE coalesce(d.status, '') END"
_ENTITIES = (
    "WITH called AS MATERIALIZED (SELECT e.doc_id AS entity, n.name_key AS key, first.name_key AS who, first.name "
    "FROM documents e JOIN names n ON n.doc_id = e.doc_id JOIN names first ON first.doc_id = e.doc_id "
    "AND first.position = 0 WHERE e.kind = 'entity')"
)
_LINKING = (
    "SELECT who, name, doc_id FROM called CROSS JOIN links ON target_key = key "
    "UNION ALL SELECT who, name, doc_id FROM called CROSS JOIN edges ON subject_key = key "
    "UNION ALL SELECT who, name, doc_id FROM called CROSS JOIN edges ON object_key = key"
)
"""The notes that link to an entity or have an edge with it, by any of its names."""
_ITSELF = "UNION ALL SELECT one.who, one.name, other.entity FROM called one JOIN called other ON other.key = one.key"
_ABOUT = f"d.doc_id IN ({_ENTITIES} SELECT doc_id FROM ({_LINKING} {_ITSELF}) WHERE who = :about)"
_ABOUT_ROWS = (
    "WITH wanted AS (SELECT CAST(value AS INTEGER) AS doc_id FROM json_each(:ids)) "
    "SELECT DISTINCT m.doc_id, first.name FROM (SELECT doc_id, target_key AS key FROM wanted JOIN links USING (doc_id) "
    "UNION SELECT doc_id, subject_key FROM wanted JOIN edges USING (doc_id) "
    "UNION SELECT doc_id, object_key FROM wanted JOIN edges USING (doc_id)) m JOIN names n ON n.name_key = m.key "
    "JOIN documents e ON e.doc_id = n.doc_id AND e.kind = 'entity' AND e.doc_id <> m.doc_id "
    "JOIN names first ON first.doc_id = e.doc_id AND first.position = 0 ORDER BY first.name_key"
)
"""The names of the entities that some notes are about."""
_FADED = (
    "CASE WHEN d.kind = 'fact' THEN coalesce(d.confidence, :unsure) * CASE WHEN d.pinned OR d.verified THEN 1 "
    "ELSE pow(0.5, max(0, coalesce(julianday(:now) - julianday(coalesce(u.last, d.created)), 0) - :untouched) "
    "/ coalesce(u.half_life, :half_life)) END END"
)
"""What `scoring.confidence` returns, of a fact."""
_SORTS = {
    "kind": "d.kind || ' ' || coalesce(d.type, '')",
    "text": "lower(d.title)",
    "about": "a.who",
    "status": _STATE,
    "learned": DATE,
    "since": "d.valid_from",
    "used": "u.accesses",
    "strength": _FADED,
}
_QUOTED = frozenset({Kind.FACT, Kind.EPISODE})
"""The kinds whose rows show how they begin, and not their titles."""
_VERBS: dict[str, str] = {"forget": "forget", "pinned": "pin", "verified": "verify", "project": "set the project of"}
_CHANGEABLE = {
    "forget": (FORGETTABLE, "It is your own note: only you delete it."),
    **dict.fromkeys(map(str, MARKS), (MARKABLE, "Only facts and core notes are pinned or verified.")),
    "project": (FORGETTABLE, "Only facts, entities and conversations have a project that can be set here."),
}
"""What can be done to many memories: to which kinds, and why not to others."""
MAX_USED = 1_000_000
_NO_QUESTIONS = " AND d.kind <> 'review'"


def show_memories(memory: Memory, request: Request) -> Context:
    """Return one page of the memories that the filters of the address leave, and how many each filter would leave."""
    now, given = local_now(memory.settings.timezone), request.query_params
    asked = {name: given.get(name, "").strip() for name in FIELDS}
    problem, rows = "", next((number for number in ROWS if asked["rows"] == str(number)), ROWS[0])
    try:
        wanted = read_filter(asked, now, memory.settings.timezone)
    except QuaidError as error:
        problem, wanted = str(error), NoteFilter()
    sort = asked["sort"] if asked["sort"].removeprefix("-") in _SORTS else NEWEST
    about, whole = name_key(asked["about"]), memory.whole_index()
    with whole.snapshot():
        # The views that hide the notes of others take several times as long as the tables themselves.
        index = whole if visible_to(whole, memory.owners).is_open else memory.visible_index()
        counts, total = memory.cache.of(index, count_choices, wanted, about)
        part, pages = paginate(total, request, rows)
        shown = read_rows(memory, index, wanted, about, (sort, rows, part.start), now)
        remembered = documents.find_documents(index, "id = ?", (given.get("remembered", ""),), with_text=True)
    return {
        "asked": {**asked, "page": ""},
        "problem": problem,
        "choices": {name: found.most_common(MAX_CHOICES) for name, found in counts.items()},
        "rows": shown,
        **pages,
        "sizes": ROWS,
        "size": rows,
        "sort": sort,
        "max_about": MAX_ABOUT,
        "is_filtered": any(asked[name] for name in FIELDS[:8]),
        "remembered": remembered[0] if remembered else None,
        "text": "",
        "here": partial(link, asked),
    }


def read_filter(asked: Mapping[str, str], now: datetime, timezone: str) -> NoteFilter:
    """Return the filter of an address. UsageError: there is no such kind or status, or not a date."""
    for name, known in (("kind", KINDS), ("status", STATES)):
        if asked[name] and asked[name] not in known:
            raise UsageError(f"There is no {name} {asked[name][:40]!r}. There are {', '.join(known)}.")
    since, until = (
        limit_of_day(parse_day(asked[name], now, end=is_end), timezone, end=is_end) if asked[name] else None
        for name, is_end in (("from", False), ("to", True))
    )
    return NoteFilter(
        kinds=tuple(filter(None, (asked["kind"],))),
        statuses=tuple(filter(None, (asked["status"],))),
        project=asked["project"] or None,
        tag=name_key(asked["tag"].lstrip("#")) or None,
        text=asked["q"],
        since=since,
        until=until,
    )


# -- what the index counts and lists ---------------------------------------------------------------------------------


def _match(index: IndexConnection, wanted: NoteFilter, about: str) -> tuple[str, dict[str, Any]]:
    where, values = match_notes(index, wanted)
    where += _NO_QUESTIONS
    return (f"{where} AND {_ABOUT}", {**values, "about": about}) if about else (where, values)


def count_choices(index: IndexConnection, wanted: NoteFilter, about: str) -> tuple[dict[str, Counter[str]], int]:
    """Return how many notes each value of each filter would leave with the other filters as they are, and how many
    they all leave.
    """
    where, values = _match(index, wanted._replace(kinds=(), statuses=(), project=None), about)
    groups = index.execute(
        "SELECT project, kind, status, count(*) - count(superseded_by), count(superseded_by) FROM documents d "
        f"WHERE {where} GROUP BY project, kind, status",
        values,
    ).fetchall()
    chosen = {"kind": wanted.kinds, "status": wanted.statuses, "project": (wanted.project,) if wanted.project else ()}
    counts, total = {name: Counter[str]() for name in chosen}, 0
    for project, kind, status, living, replaced in groups:
        for state, count in ((status, living), (listing.SUPERSEDED, replaced)):
            group = {"kind": kind, "status": state or "", "project": project or ""}
            missed = [name for name, among in chosen.items() if among and group[name] not in among]
            total += 0 if missed else count
            for name, value in group.items():
                counts[name][value] += count if missed in ([], [name]) else 0
    where, values = _match(index, wanted._replace(tag=None), about)
    counts["tag"] = _count_notes(index, "SELECT tag, tag, count(*) FROM tags", where, values)
    where, values = _match(index, wanted, "")
    mentioned = f"{_ENTITIES} SELECT who, min(name), count(DISTINCT doc_id) FROM ({_LINKING} {_ITSELF})"
    counts["about"] = _count_notes(index, mentioned, where, values)
    return counts, total


def _count_notes(index: IndexConnection, source: str, where: str, values: Mapping[str, Any]) -> Counter[str]:
    """Return name -> count of the notes that fit, of `source`: rows of a key, its name, and the count."""
    listed = f"IN (SELECT d.doc_id FROM documents d WHERE {where})"
    if where == f"true{_NO_QUESTIONS}":
        listed = "NOT IN (SELECT doc_id FROM documents WHERE kind = 'review')"
    # With the plus SQLite looks each note up in the list, rather than each of the list in an index.
    rows = index.execute(f"{source} WHERE +doc_id {listed} GROUP BY 1", values)
    return Counter({name: count for _, name, count in rows})


def read_rows(
    memory: Memory, index: IndexConnection, wanted: NoteFilter, about: str, window: tuple[str, int, int], now: datetime
) -> list[dict[str, Any]]:
    """Return the rows of the notes that fit. `window` is the column to sort by, with a minus where it descends, the
    most rows, and how many come before them.
    """
    where, values = _match(index, wanted, about)
    sort, limit, offset = window
    column, direction = sort.removeprefix("-"), "DESC" if sort.startswith("-") else "ASC"
    source, records, entities = "documents d", memory.answers.records, ""
    if column == "about":
        entities = _ENTITIES
        source += f" LEFT JOIN (SELECT doc_id, min(who) AS who FROM ({_LINKING}) GROUP BY 1) a ON a.doc_id = d.doc_id"
    if column in {"used", "strength"}:
        used: list[tuple[str, Use]] = []
        with suppress(QuaidError):  # local.db is not available: nothing counts as used
            used = records.most_used(MAX_USED)
        listed = [[each, use.accesses, use.last_access, scoring.half_life_days(use)] for each, use in used]
        source += (
            " LEFT JOIN (SELECT value ->> 0 AS id, value ->> 1 AS accesses, value ->> 2 AS last, value ->> 3 AS "
            "half_life FROM json_each(:used)) u ON u.id = d.id"
        )
        values |= {"used": json.dumps(listed), "now": now.isoformat(), "unsure": scoring.UNSURE}
        values |= {"untouched": scoring.UNTOUCHED_DAYS, "half_life": scoring.HALF_LIFE_DAYS}
    found = index.execute(
        f"{entities} SELECT d.doc_id, {DATE} FROM {source} WHERE {where} "
        f"ORDER BY {_SORTS[column]} {direction} NULLS LAST, d.path LIMIT :limit OFFSET :offset",
        {**values, "limit": limit, "offset": offset},
    ).fetchall()
    by_id, names = documents.read_documents(index, [doc_id for doc_id, _ in found]), dict[int, list[str]]()
    for doc_id, name in index.execute(_ABOUT_ROWS, {"ids": json.dumps(list(by_id))}):
        names.setdefault(doc_id, []).append(name)
    uses = records.strengths([document.id for document in by_id.values()])
    table = []
    for doc_id, learned in found:
        document = by_id[doc_id]
        use, is_fact = uses.get(document.id, scoring.NEVER_USED), document.kind == Kind.FACT
        table.append({
            "note": document._replace(text=(document.kind in _QUOTED and document.text) or document.title),
            "version": document.content_hash[:VERSION_LENGTH],
            "learned": learned or "",
            "about": names.get(doc_id, []),
            "used": use.accesses,
            "strength": scoring.confidence(document, use, now) if is_fact else None,
        })  # fmt: skip
    return table


# -- actions ---------------------------------------------------------------------------------------------------------


def remember(memory: Memory, form: Form, _: Request) -> str | Shown:
    """Store a fact in the owner's name, or confirm the one that says the same; show which one it is."""
    text = form.get("text", "")
    try:
        written = memory.remember(text, by_owner=True)
    except QuaidError as error:
        empty = Request({"type": "http", "query_string": b"", "headers": []})
        context = {**show_memories(memory, empty), "problem": str(error).partition("\n")[0], "text": text}
        return Shown("memories.html", context, 400)
    message = "redacted" if written.redacted else "remembered" if written.outcome == "created" else "confirmed"
    return go_to_written(f"{MEMORIES}?{urlencode({'remembered': written.id})}", written, message)


def change_many(memory: Memory, form: Form, _: Request) -> str | Shown | Response:
    """Do to all selected memories what the pressed button says, as one commit; return a page about those that could
    not be changed, or the way back.
    """
    do, back = form.get("do", ""), own_address(form.get("back", "")) or MEMORIES
    selected = {name.removeprefix(_SELECTED): form[name] for name in form if name.startswith(_SELECTED)}
    if not selected:
        return go_to(back, "nothing_selected")
    if do.startswith("export-"):
        return _export(memory, selected, do.removeprefix("export-"))
    if do not in _CHANGEABLE:
        raise BadInputError("There is no such button: nothing was changed.")
    project = " ".join(form.get("project", "").split())
    if admit(project).redacted:
        raise BadInputError("The name of the project looks like a secret: nothing was changed.")
    key = make_key("many", do, project, sorted(selected.items()))
    done = memory.writer.write(key, plan_many, memory, selected, do, project, by_owner=True)
    own_again = [claimed.drop(memory.root, each) for each in done.details["ids"]] if do in MARKS else []
    if any(own_again):
        memory.sync()  # the files may be as they were, and no longer count as another person's
    if not done.details["left"]:
        return go_to_written(back, done.written, "many_forgotten" if do == "forget" else f"many_{do}")
    context = {"left": done.details["left"], "done": len(done.details["ids"]), "back": back}
    return Shown("memories_left.html", {**context, "made": done.written.commit}, 200)


def _export(memory: Memory, selected: Mapping[str, str], form: str) -> Response:
    """Return the selected memories as a file: JSON lines that `quaid import` reads, or a page of markdown."""
    seen = documents.find_documents(memory.index(), f"path IN {NAMES}", (json.dumps(list(selected)),), with_text=True)
    if missing := len(selected) - len(seen):
        raise BadInputError(f"{missing} of {len(selected)} selected memories are no longer there. Select them again.")
    exported = export_notes(memory.root, memory.owners, only=[document.path for document in seen])
    if form == "json":
        text = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in exported)
    else:
        text = "# Memories\n\n" + "\n".join(map(_render_markdown, exported))
    ending, media_type = ("jsonl", "application/jsonl") if form == "json" else ("md", "text/markdown; charset=utf-8")
    headers = {"Content-Disposition": f'attachment; filename="memories.{ending}"'}
    return Response(text.encode("utf-8", "replace"), media_type=media_type, headers=headers)


def _render_markdown(row: Mapping[str, Any]) -> str:
    if row["kind"] != Kind.FACT:
        return f"\n## {row.get('title') or row['path']}\n\n{row['text']}\n"
    days = {"true since": "valid_from", "until": "valid_until", "learned": "created"}
    about = [f"{word} {str(row[name])[:10]}" for word, name in days.items() if name in row]
    return f"- {' '.join(row['text'].split())}" + (f" ({', '.join(about)})" if about else "")


def plan_many(memory: Memory, selected: Mapping[str, str], do: str, project: str) -> WritePlan:
    """Plan a change of the notes at the paths `selected`, each with the version that the page has shown. `details` has
    those that stay, because they have changed since or cannot be changed so, with the reason.
    """
    found = documents.find_documents(memory.index(), f"path IN {NAMES}", (json.dumps(list(selected)),), with_text=True)
    left = [(path, "It is no longer there.") for path in selected.keys() - {document.path for document in found}]
    changed: list[tuple[Document, Edit]] = []
    kinds, why_not = _CHANGEABLE[do]
    unsaved = memory.git.uncommitted() if do == "forget" else ()
    if do == "forget":
        transaction.commit_deferred(memory.root, memory.git)
    for document in found:
        data, text = files.read_note(memory.root, document.path), document.text or document.title
        if document.kind not in kinds:
            left.append((text, why_not))
        elif data is None or notes.content_hash(data)[:VERSION_LENGTH] != selected[document.path]:
            left.append((text, "It has changed since the page was shown."))
        elif do == "forget":
            if document.path in unsaved:
                transaction.commit_unsaved(memory.git, document.path, data, Message(f"edit: {text}"))
            changed.append((document, Edit(document.path, data, None)))
        else:
            try:
                fields = {"project": project or None} if do == "project" else {do: True}
                after = frontmatter.set_fields(data.decode("utf-8"), fields).encode()
            except (frontmatter.FrontmatterBrokenError, UnicodeDecodeError):
                left.append((text, "Its properties cannot be read for certain."))
            else:
                changed.append((document, Edit(document.path, data, after)))
    edits = tuple(edit for _, edit in changed if edit.after != edit.before)
    texts = [each.text or each.title for each, edit in changed if edit in edits]
    subject = texts[0] if len(texts) == 1 else f"{len(texts)} memories"
    message = Message(
        f"{_VERBS[do]}: {subject}",
        "\n".join(f"- {text}" for text in texts[1:] and texts),
        tuple(("Quaid-Fact", each.id) for each, edit in changed if edit in edits),
    )
    written = WriteResult("", "", "edited" if edits else "unchanged", subject)
    return WritePlan(written, edits, message, {"left": sorted(left), "ids": [each.id for each, _ in changed]})
