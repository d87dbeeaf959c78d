"""The list of changes, the same on each page: what each commit did, who made it, why, its diffs and its undo."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from quaid.agents.hosts import name_host
from quaid.history.authorship import Who
from quaid.index import documents
from quaid.janitor.questions import read_question
from quaid.janitor.vetoes import CLIENT, DECISION, HOST, RUN, TASK, asks
from quaid.memory import Memory
from quaid.model import Commit
from quaid.timeline.changes import Versions
from quaid.timeline.log import CommitView
from quaid.timeline.views import Night
from quaid.web.pages.sessions import find_talks
from quaid.web.rendering import render_reason
from quaid.web.templating import memory_path
from quaid.web.word_diff import diff_versions

ACTORS = {"owner": "you", "janitor": "the janitor", "agent": "Quaid", "import": "an import"}
"""The name of each actor. An agent is called by its host where that is known, another person by their own name."""
TRAILERS = ("Task", "Run", "Model", "Prompt", "Session", "Decision", "Fact", "Reverts")
SESSION, FACT = "Quaid-Session", "Quaid-Fact"
QUESTIONS = "questions"
"""The task of a commit with new questions."""
MAX_FACTS = 12
"""Facts of a commit that its row names."""
Row = dict[str, Any]
"""A change, for the macro `change_row`."""


def list_changes(memory: Memory, views: Sequence[CommitView], nights: Iterable[Night] = ()) -> list[Row]:
    """Return a row for each of `views`. One of a run among `nights` stands for the whole night."""
    commits, whole = [view.commit for view in views], {night.run: night for night in nights}
    undone = memory.timeline.views.list_undone() if views else {}
    talks = find_talks(memory, [each for commit in commits for each in commit.trailers.get(SESSION, ())])
    ids = json.dumps([each for commit in commits for each in commit.trailers.get(FACT, ())[:MAX_FACTS]])
    found = documents.find_documents(memory.index(), f"id IN {documents.NAMES}", (ids,), with_text=True)
    facts, rows = {each.id: each for each in found}, []
    for view, commit in zip(views, commits, strict=True):
        first = {name: values[0] for name, values in commit.trailers.items()}
        talk, night = talks.get(first.get(SESSION, "")), whole.get(first.get(RUN, ""))
        host = first.get(HOST) or first.get(CLIENT) or (talk and talk.source) or ""
        actor = name_host(host) if view.who == "agent" else ""
        decided = [each.id for each in night.commits if DECISION in each.trailers] if night else [commit.id]
        what = view.what.removeprefix("night: ")
        # The vault itself, questions, and what another owner keeps private are not undone here.
        is_fixed = view.is_hidden or commit.subject.startswith("init") or first.get(TASK) == QUESTIONS
        rows.append({
            "view": view,
            "what": f"{what[:1].upper()}{what[1:]}",
            "when": commit.when,
            "actor": "" if view.is_hidden else actor or ACTORS.get(view.who, commit.author),
            "address": memory_path(night.run, "nights") if night else commit.id and memory_path(commit.id, "change"),
            "why": render_reason(commit.body),
            "facts": [facts[each] for each in commit.trailers.get(FACT, ()) if each in facts],
            "trailers": [(name, values) for name in TRAILERS if (values := commit.trailers.get(f"Quaid-{name}"))],
            "files": list(diff_files(view)),
            "undo": "" if is_fixed or not decided else night.run if night else commit.id,
            "undone_by": undone[decided[-1]] if decided and undone.keys() >= {*decided} else "",
        })  # fmt: skip
    return rows


def make_view(
    what: str, when: str, who: Who = "other", files: Mapping[str, Versions] | None = None, run: str = ""
) -> CommitView:
    """Return a change that has no commit, as of a run that changed nothing; without `who` nobody is named."""
    commit = Commit("", when, "", "", "", "", {RUN: (run,)} if run else {})
    return CommitView(commit, who, what, files=files or {})


def diff_files(view: CommitView) -> Iterator[Mapping[str, Any]]:
    """Yield the change of each file of a commit, with the meaning for a note, and a diff unless it was only moved."""
    changes = {change.path: change for change in view.changes}
    for path in sorted(changes.keys() | view.files.keys()):
        before, after = view.files.get(path, (None, None))
        question = read_question(path, after or before or b"") if asks(path) else None
        is_whole = question is not None and None in {before, after}  # it was asked or closed: its title says all
        pieces = [] if is_whole else diff_versions(before, after)
        title = question.title if question else ""
        yield {"path": path, "change": changes.get(path), "pieces": pieces, "title": title}
