"""The history: one commit or one night with each decision, its reason, its diff and its undo; and the list of nights.

A run is known from this machine's local.db, from the git history, or from both: other machines run the janitor too.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.requests import Request

from quaid.errors import QuaidError
from quaid.index import documents
from quaid.janitor.commits import in_words
from quaid.janitor.vetoes import DECISION, RUN, TASK, asks
from quaid.local.runs import Run
from quaid.memory import Memory
from quaid.text.zones import local_day
from quaid.timeline.log import NIGHT
from quaid.timeline.undo import ChangeNotFoundError
from quaid.timeline.views import Night
from quaid.web.answer import Context, Form, go_to, group_by, own_address, page_number, paginate
from quaid.web.changes import QUESTIONS, list_changes, make_view
from quaid.web.outcomes import read_words

MAX_FILES = 40
"""Files of a commit on one page."""
MAX_NIGHTS = 20
"""Nights on one page."""
MAX_COMMITS = 30
"""Commits of a night on one page."""
MAX_NIGHT_FILES = 8
"""Files of a commit on the page of a night; the page of the commit has all."""
MAX_OPEN = 6
"""If a night has no more commits, their diffs are open."""
OUTCOMES = read_words("ends of runs")
Entry = dict[str, Any]
"""A night for the templates. `run` is None if another machine ran the janitor, `night` if nothing was merged."""


def show_change(memory: Memory, request: Request) -> Context:
    """Return the commit of the address. ChangeNotFoundError: there is none."""
    views = memory.timeline.views
    page = page_number(request.query_params.get("page", ""))
    view = views.view(request.path_params["commit"], MAX_FILES * (page - 1), MAX_FILES)
    before, after = views.find_neighbours(view.commit.id)
    trailers = view.commit.trailers
    return {
        "row": list_changes(memory, [view])[0],
        "night": next(iter(trailers.get(RUN, ())), None),
        "is_merge": NIGHT in trailers.get(TASK, ()),
        "undo": {"would": None, "refusal": ""} if view.is_hidden else _plan_undo(memory, view.commit.id),
        "before": before,
        "after": after,
        "page": page,
        "pages": page + bool(view.more),
    }


def show_nights(memory: Memory, request: Request) -> Context:
    """Return one page of nights, newest first."""
    wanted = MAX_NIGHTS * page_number(request.query_params.get("page", "")) + 1
    nights = {night.run: night for night in memory.timeline.views.nights(wanted)}
    runs = {run.run: run for run in memory.janitor.runs(wanted)}
    names = sorted(nights.keys() | runs.keys(), reverse=True)[:wanted]
    part, pages = paginate(len(names), request, MAX_NIGHTS)
    entries = _make_entries(memory, [(name, runs.get(name), nights.get(name)) for name in names[part]])
    views = [make_view(entry["what"], entry["when"], "janitor", run=entry["name"]) for entry in entries]
    rows = list_changes(memory, views, [entry["night"] or Night(entry["name"], ()) for entry in entries])
    return {
        "days": group_by(
            (local_day(row["when"], memory.settings.timezone), (row, entry))
            for row, entry in zip(rows, entries, strict=True)
        ),
        **pages,
    }


def show_night(memory: Memory, request: Request) -> Context:
    """Return the night of the address. ChangeNotFoundError: there is none."""
    name, views = request.path_params["run"], memory.timeline.views
    run, night = memory.janitor.find_run(name), None
    try:
        night = views.night(name)
    except ChangeNotFoundError:
        if run is None:
            raise
    (entry,) = _make_entries(memory, [(name, run, night)])
    commits = night.commits if night else ()
    part, pages = paginate(len(commits), request, MAX_COMMITS)
    kinds = {decision["key"]: str(decision["kind"]) for decision in entry["decisions"]}
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in list_changes(memory, views.view_all(views.read(commits[part]), limit=MAX_NIGHT_FILES)):
        trailers = row["view"].commit.trailers
        # That of its decisions; empty if only the history knows the run.
        kind = next((kinds[key] for key in trailers.get(DECISION, ()) if key in kinds), "")
        groups.setdefault(next(iter(trailers.get(TASK, ())), ""), []).append({**row, "kind": kind})
    undone = views.list_undone()
    return {
        "entry": entry,
        "groups": list(groups.items()),
        "is_short": len(commits[part]) <= MAX_OPEN,
        **pages,
        "is_undone": bool(commits) and all(commit.id in undone for commit in commits if commit.trailers.get(DECISION)),
        "undo": _plan_undo(memory, name) if commits else None,
        "has_gate": memory.settings.janitor.gate,
    }


def undo(memory: Memory, form: Form, _: Request) -> str:
    """Undo the commit or night of the form, except what changed since; return the way back, or to the new commit."""
    done = memory.timeline.undo(form.get("commit", ""), anybodys=True, reopens="reopens" in form)
    message = "nothing_undone" if done.commit is None else "undone_partly" if done.kept else "undone"
    if back := own_address(form.get("back", "")):
        return go_to(back, message, done.commit)
    return go_to(f"/change/{done.commit or done.commits[0].id}", message)


def _plan_undo(memory: Memory, reference: str) -> Mapping[str, Any]:
    """Return what an undo of a commit or a night would do, or why it cannot be done; nothing is done."""
    try:
        return {"would": memory.timeline.undo(reference, anybodys=True, dry_run=True), "refusal": ""}
    except QuaidError as error:
        return {"would": None, "refusal": str(error)}


def _make_entries(memory: Memory, runs: Sequence[tuple[str, Run | None, Night | None]]) -> list[Entry]:
    """Return nights without decisions about facts that other owners keep private."""
    facts = {fact for _, run, _ in runs if run for decision in run.decisions for fact in decision.get("facts", ())}
    ids = (json.dumps(sorted(facts)),)
    visible = {each.id for each in documents.find_documents(memory.index(), f"id IN {documents.NAMES}", ids)}
    is_vaults_own = "default" in memory.owners
    entries = []
    for name, run, night in runs:
        commits = night.commits if night else ()
        known = {key for commit in commits for key in commit.trailers.get(DECISION, ())}
        decisions = []
        for decision in run.decisions if run else ():
            about = decision.get("facts", ())
            if decision.get("key") in known or (visible.issuperset(about) if about else is_vaults_own):
                decisions.append(decision)
        done = Counter(str(decision["kind"]) for decision in decisions if decision["outcome"] == "done")
        count = sum(len(commit.trailers.get(DECISION, ())) for commit in commits)
        asked = [commit.files for commit in commits if QUESTIONS in commit.trailers.get(TASK, ())]
        models = dict.fromkeys(model for commit in commits for model in commit.trailers.get("Quaid-Model", ()))
        entries.append({
            "name": name,
            "run": run,
            "night": night,
            "decisions": decisions,
            "when": run.started if run else commits[0].when if commits else "",
            "what": in_words(done) or (f"{count} decision{'s' * (count != 1)}" if count else "no changes"),
            "outcome": OUTCOMES.get(run.outcome, "") if run else "",
            # Also the questions whose notes are gone by now.
            "asked": sum(asks(path) for files in asked for path in files),
            "held_back": [each for each in decisions if each["outcome"] not in {"done", "asked"}],
            "models": list(models),
        })  # fmt: skip
    return entries
