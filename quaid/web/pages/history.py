"""The history: one commit or one night with each decision, its reason, its diff and its undo; and the list of nights.

A run is known from this machine's local.db, from the git history, or from both: other machines run the janitor too.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from starlette.requests import Request

from quaid.errors import QuaidError
from quaid.janitor.commits import in_words
from quaid.janitor.questions import read_question
from quaid.janitor.vetoes import DECISION, RUN, TASK, asks
from quaid.local.runs import Run
from quaid.memory import Memory
from quaid.timeline.log import NIGHT, CommitView
from quaid.timeline.undo import ChangeNotFoundError
from quaid.timeline.views import Night
from quaid.web.answer import Context, Form, go_to, own_address, page_number
from quaid.web.rendering import render_reason
from quaid.web.word_diff import diff_versions

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
TRAILERS = ("Task", "Run", "Model", "Prompt", "Session", "Decision", "Fact", "Reverts")
QUESTIONS = "questions"
"""The task of a commit with new questions."""
OUTCOMES = {
    "running": "is running",
    "stopped": "was stopped, and nothing was merged",
    "failed": "could not finish",
    "killed": "was interrupted",
}
Entry = dict[str, Any]
"""A night for the templates. `run` is None if another machine ran the janitor, `night` if nothing was merged."""


def show_change(memory: Memory, request: Request) -> Context:
    """Return the commit of the address. ChangeNotFoundError: there is none."""
    views = memory.timeline.views
    page = page_number(request.query_params.get("page", ""), 0)
    view = views.view(request.path_params["commit"], page * MAX_FILES, MAX_FILES)
    before, after = views.find_neighbours(view.commit.id)
    trailers = view.commit.trailers
    return {
        "view": view,
        "why": render_reason(view.commit.body),
        "files": list(_diff_files(view)),
        "trailers": _list_trailers(trailers),
        "night": next(iter(trailers.get(RUN, ())), None),
        "is_merge": NIGHT in trailers.get(TASK, ()),
        "undone_by": views.list_undone().get(view.commit.id),
        "undo": {"would": None, "refusal": ""} if view.is_hidden else _plan_undo(memory, view.commit.id),
        "before": before,
        "after": after,
        "page": page,
    }


def show_nights(memory: Memory, request: Request) -> Context:
    """Return one page of nights, newest first."""
    page = page_number(request.query_params.get("page", ""), 0)
    wanted = (page + 1) * MAX_NIGHTS + 1
    nights = {night.run: night for night in memory.timeline.views.nights(wanted)}
    runs = {run.run: run for run in memory.janitor.runs(wanted)}
    names = sorted(nights.keys() | runs.keys(), reverse=True)[page * MAX_NIGHTS : wanted]
    return {
        "entries": _make_entries(memory, [(name, runs.get(name), nights.get(name)) for name in names[:MAX_NIGHTS]]),
        "page": page,
        "is_more": len(names) > MAX_NIGHTS,
        "undone": memory.timeline.views.list_undone(),
    }


def show_night(memory: Memory, request: Request) -> Context:
    """Return the night of the address. ChangeNotFoundError: there is none."""
    name, page = request.path_params["run"], page_number(request.query_params.get("page", ""), 0)
    views, run = memory.timeline.views, memory.janitor.find_run(name)
    try:
        night = views.night(name)
    except ChangeNotFoundError:
        if run is None:
            raise
        night = None
    (entry,) = _make_entries(memory, [(name, run, night)])
    commits = night.commits if night else ()
    undone = views.list_undone()
    shown = commits[page * MAX_COMMITS : (page + 1) * MAX_COMMITS]
    kinds = {decision["key"]: str(decision["kind"]) for decision in entry["decisions"]}
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for view in views.view_all(views.read(shown), limit=MAX_NIGHT_FILES):
        commit = view.commit
        task = next(iter(commit.trailers.get(TASK, ())), "")
        prefix, _, rest = commit.subject.partition(": ")
        step = {
            "view": view,
            "title": rest if prefix.startswith("janitor") and rest else commit.subject,
            "why": render_reason(commit.body),
            # That of its decisions; empty if only the history knows the run.
            "kind": next((kinds[key] for key in commit.trailers.get(DECISION, ()) if key in kinds), ""),
            "files": list(_diff_files(view)),
            "trailers": [each for each in _list_trailers(commit.trailers) if each[0] in {"Model", "Prompt"}],
            "undone_by": undone.get(commit.id),
            "more": view.more,
        }
        groups.setdefault(task, []).append(step)
    return {
        "entry": entry,
        "groups": [{"task": task, "steps": steps} for task, steps in groups.items()],
        "is_short": len(shown) <= MAX_OPEN,
        "page": page,
        "is_more": len(commits) > (page + 1) * MAX_COMMITS,
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


def _diff_files(view: CommitView) -> Iterator[Mapping[str, Any]]:
    """Yield the change of each file of a commit, with the meaning for a note, and a diff unless it was only moved."""
    changes = {change.path: change for change in view.changes}
    for path in sorted(changes.keys() | view.files.keys()):
        before, after = view.files.get(path, (None, None))
        question = read_question(path, after or before or b"") if asks(path) else None
        is_whole = question is not None and None in {before, after}  # it was asked or closed: its title says all
        pieces = [] if is_whole else diff_versions(before, after)
        yield {
            "path": path,
            "change": changes.get(path),
            "pieces": pieces,
            "title": question.title if question else "",
        }


def _list_trailers(trailers: Mapping[str, Sequence[str]]) -> list[tuple[str, list[str]]]:
    """Return the names and values of the trailers of a commit."""
    found = ((name, list(trailers.get(f"Quaid-{name}", ()))) for name in TRAILERS)
    return [(name, values) for name, values in found if values]


def _make_entries(memory: Memory, runs: Sequence[tuple[str, Run | None, Night | None]]) -> list[Entry]:
    """Return nights without decisions about facts that other owners keep private."""
    facts = {fact for _, run, _ in runs if run for decision in run.decisions for fact in decision.get("facts", ())}
    rows = memory.index().execute(
        "SELECT id FROM documents WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(sorted(facts)),)
    )
    visible = {str(row[0]) for row in rows}
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
        if run is None:
            counts = night.count_decisions() if night else {}
            tasks = {task: f"{n} decision{'s' * (n != 1)}" for task, n in counts.items() if task != QUESTIONS}
        else:
            by_task: dict[str, Counter[str]] = {}
            for decision in decisions:
                if decision["outcome"] == "done":
                    by_task.setdefault(str(decision["task"]), Counter())[str(decision["kind"])] += 1
            tasks = {task: in_words(kinds) for task, kinds in by_task.items()}
        asked = [commit.files for commit in commits if QUESTIONS in commit.trailers.get(TASK, ())]
        models = dict.fromkeys(model for commit in commits for model in commit.trailers.get("Quaid-Model", ()))
        entries.append({
            "name": name,
            "run": run,
            "night": night,
            "decisions": decisions,
            "when": run.started if run else commits[0].when if commits else "",
            "outcome": OUTCOMES.get(run.outcome, "") if run else "",
            "tasks": tasks,
            # Also the questions whose notes are gone by now.
            "asked": sum(asks(path) for files in asked for path in files),
            "held_back": [each for each in decisions if each["outcome"] not in {"done", "asked"}],
            "models": list(models),
        })  # fmt: skip
    return entries
