"""Nights: the diary of the janitor, and each decision of one night with its reason, its diff and its undo.

A run is known from this machine's local.db, from the history, or from both: other machines tidy the vault too.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from quaid.janitor.commits import in_words
from quaid.janitor.vetoes import DECISION, TASK, asks
from quaid.timeline.undo import ChangeNotFoundError
from quaid.timeline.views import CommitView, Night
from quaid.web.pages.change import FileDiff, diff_files, list_trailers, plan_undo, read_page
from quaid.web.rendering import render_reason

if TYPE_CHECKING:
    from markupsafe import Markup
    from starlette.requests import Request

    from quaid.local.runs import Run
    from quaid.memory import Memory

MAX_NIGHTS = 20
"""Nights on one page."""
MAX_COMMITS = 30
"""Commits of a night on one page."""
MAX_FILES = 8
"""Files of a commit that a night shows; the page of the commit has all."""
MAX_OPEN = 6
"""Commits whose diffs are open where there are no more."""
DONE, ASKED = "done", "asked"
QUESTIONS = "questions"
"""The task that a commit with new questions names."""
OUTCOMES = {
    "running": "is running",
    "stopped": "was stopped: nothing was merged",
    "failed": "could not do all of it",
    "killed": "was interrupted",
}


@dataclass(frozen=True, slots=True)
class DiaryEntry:
    """A night as the diary tells it. `run` is None where another machine has tidied, `night` where nothing was merged.
    `decisions` are those of the run that may be seen.
    """

    name: str
    run: Run | None = None
    night: Night | None = None
    decisions: Sequence[Mapping[str, Any]] = ()
    models: Sequence[str] = ()

    @property
    def when(self) -> str:
        """The moment it began, or where only the history knows it, of its first commit."""
        return self.run.started if self.run else self.night.commits[0].when if self.night else ""

    @property
    def outcome(self) -> str:
        """How it ended, where that is not as it should."""
        return OUTCOMES.get(self.run.outcome, "") if self.run else ""

    @property
    def tasks(self) -> Mapping[str, str]:
        """Task -> what it has done, in words."""
        if self.run is not None:
            done = [decision for decision in self.decisions if decision["outcome"] == DONE]
            by_task: dict[str, Counter[str]] = {}
            for decision in done:
                by_task.setdefault(str(decision["task"]), Counter())[str(decision["kind"])] += 1
            return {task: in_words(kinds) for task, kinds in by_task.items()}
        counts = self.night.count_decisions() if self.night else {}
        return {task: f"{count} decision{'s' * (count != 1)}" for task, count in counts.items() if task != QUESTIONS}

    @property
    def asked(self) -> int:
        """How many questions it has put: the notes of its commit, also where what they are about is gone by now."""
        commits = self.night.commits if self.night else ()
        put = (commit.files for commit in commits if QUESTIONS in commit.trailers.get(TASK, ()))
        return sum(asks(path) for files in put for path in files)

    @property
    def held_back(self) -> list[Mapping[str, Any]]:
        """The decisions that were not carried out, each with the reason as its outcome."""
        return [decision for decision in self.decisions if decision["outcome"] not in {DONE, ASKED}]


@dataclass(frozen=True, slots=True)
class Step:
    """A commit of a night; `kind` is that of its decisions, empty where only the history knows it."""

    view: CommitView
    title: str
    why: Markup
    kind: str
    files: Sequence[FileDiff]
    trailers: Sequence[tuple[str, list[str], int]]
    undone_by: str | None = None
    more: int = 0


@dataclass(slots=True)
class Group:
    """The commits of one task."""

    task: str
    steps: list[Step] = field(default_factory=list)


def show_nights(memory: Memory, request: Request) -> Mapping[str, Any]:
    """Return the nights of one page, newest first."""
    page = read_page(request)
    wanted = (page + 1) * MAX_NIGHTS + 1
    nights = {night.run: night for night in memory.timeline.views.nights(wanted)}
    runs = {run.run: run for run in memory.janitor.runs(wanted)}
    names = sorted(nights.keys() | runs.keys(), reverse=True)[page * MAX_NIGHTS : wanted]
    entries = [_tell(DiaryEntry(name, runs.get(name), nights.get(name))) for name in names[:MAX_NIGHTS]]
    return {
        "entries": _keep_visible(memory, entries),
        "page": page,
        "is_more": len(names) > MAX_NIGHTS,
        "undone": memory.timeline.views.list_undone(),
    }


def show_night(memory: Memory, request: Request) -> Mapping[str, Any]:
    """Return the night that the address means.

    Raises:
        ChangeNotFoundError: there is none.
    """
    name, page = request.path_params["run"], read_page(request)
    views, run = memory.timeline.views, memory.janitor.find_run(name)
    try:
        night = views.night(name)
    except ChangeNotFoundError:
        if run is None:
            raise
        night = None
    (entry,) = _keep_visible(memory, [_tell(DiaryEntry(name, run, night))])
    commits = entry.night.commits if entry.night else ()
    undone = views.list_undone()
    shown = commits[page * MAX_COMMITS : (page + 1) * MAX_COMMITS]
    kinds = {decision["key"]: str(decision["kind"]) for decision in entry.decisions}
    steps = [_make_step(view, kinds, undone) for view in views.view_all(views.read(shown), limit=MAX_FILES)]
    return {
        "entry": entry,
        "groups": _group(steps),
        "is_short": len(steps) <= MAX_OPEN,
        "page": page,
        "is_more": len(commits) > (page + 1) * MAX_COMMITS,
        "is_undone": bool(commits) and all(commit.id in undone for commit in commits if commit.trailers.get(DECISION)),
        "undo": plan_undo(memory, name) if commits else None,
        "has_gate": memory.settings.janitor.gate,
    }


def _tell(entry: DiaryEntry) -> DiaryEntry:
    """Return the entry with all decisions that this machine has noted down, and the models that took part."""
    commits = entry.night.commits if entry.night else ()
    models = dict.fromkeys(name for commit in commits for name in commit.trailers.get("Quaid-Model", ()))
    return replace(entry, decisions=entry.run.decisions if entry.run else (), models=list(models))


def _keep_visible(memory: Memory, entries: Sequence[DiaryEntry]) -> list[DiaryEntry]:
    """Return the entries without decisions about what another owner keeps private."""
    facts = {fact for entry in entries for decision in entry.decisions for fact in decision.get("facts", ())}
    rows = memory.index().execute(
        "SELECT id FROM documents WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(sorted(facts)),)
    )
    seen = {str(row[0]) for row in rows}
    is_vaults_own = "default" in memory.owners

    def is_visible(decision: Mapping[str, Any], known: Collection[str]) -> bool:
        about = decision.get("facts", ())
        return decision.get("key") in known or (seen.issuperset(about) if about else is_vaults_own)

    kept = []
    for entry in entries:
        commits = entry.night.commits if entry.night else ()
        known = {key for commit in commits for key in commit.trailers.get(DECISION, ())}
        kept.append(replace(entry, decisions=[each for each in entry.decisions if is_visible(each, known)]))
    return kept


def _make_step(view: CommitView, kinds: Mapping[str, str], undone: Mapping[str, str]) -> Step:
    keys = view.commit.trailers.get(DECISION, ())
    kind = next((kinds[key] for key in keys if key in kinds), "")
    trailers = [each for each in list_trailers(view.commit.trailers) if each[0] in {"Model", "Prompt"}]
    what, _, said = view.commit.subject.partition(": ")
    title = said if what.startswith("janitor") and said else view.commit.subject
    return Step(
        view,
        title,
        render_reason(view.commit.body),
        kind,
        list(diff_files(view)),
        trailers,
        undone.get(view.commit.id),
        view.more,
    )


def _group(steps: Sequence[Step]) -> list[Group]:
    """Return the steps by task, in the order of the night."""
    groups: dict[str, Group] = {}
    for step in steps:
        task = next(iter(step.view.commit.trailers.get(TASK, ())), "")
        groups.setdefault(task, Group(task)).steps.append(step)
    return list(groups.values())
