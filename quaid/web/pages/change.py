"""A change: one commit in words, what it did to each file, and its undo, foretold or done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from quaid.errors import QuaidError
from quaid.janitor.questions import read_question
from quaid.janitor.vetoes import RUN, TASK, asks
from quaid.timeline.wording import NIGHT
from quaid.web.answer import Form, go_to, own_address
from quaid.web.rendering import render_reason
from quaid.web.word_diff import Piece, diff_versions

if TYPE_CHECKING:
    from starlette.requests import Request

    from quaid.memory import Memory
    from quaid.timeline.changes import MemoryChange
    from quaid.timeline.undo import Undone
    from quaid.timeline.views import CommitView

MAX_FILES = 40
"""Files of a commit on one page."""
TRAILERS = ("Task", "Run", "Model", "Prompt", "Session", "Decision", "Fact", "Reverts")
MAX_VALUES = 6
"""Values of one trailer that are shown."""


class FileDiff(NamedTuple):
    """A file of a commit: what its change meant, for a note, and what it did to its text; `title` is a question's."""

    path: str
    change: MemoryChange | None
    pieces: list[Piece]
    title: str = ""


class UndoPlan(NamedTuple):
    """What an undo would do, or the sentence why there is none."""

    would: Undone | None
    refusal: str = ""


def show_change(memory: Memory, request: Request) -> Mapping[str, Any]:
    """Return the commit that the address means.

    Raises:
        ChangeNotFoundError: there is none.
    """
    views = memory.timeline.views
    first = read_page(request) * MAX_FILES
    view = views.view(request.path_params["commit"], first, MAX_FILES)
    before, after = views.find_neighbours(view.commit.id)
    trailers = view.commit.trailers
    return {
        "view": view,
        "why": render_reason(view.commit.body),
        "files": list(diff_files(view)),
        "trailers": list_trailers(trailers),
        "night": next(iter(trailers.get(RUN, ())), None),
        "is_merge": NIGHT in trailers.get(TASK, ()),
        "undone_by": views.list_undone().get(view.commit.id),
        "undo": UndoPlan(None) if view.is_hidden else plan_undo(memory, view.commit.id),
        "before": before,
        "after": after,
        "page": first // MAX_FILES,
    }


def read_page(request: Request) -> int:
    """Return the number of the page in the address, from 0."""
    given = request.query_params.get("page", "")
    return int(given) if given.isascii() and given.isdigit() and len(given) < 6 else 0


def diff_files(view: CommitView) -> Iterator[FileDiff]:
    """Yield what a commit did to each of its files: notes that were only moved have no diff."""
    meant = {change.path: change for change in view.changes}
    for path in sorted(meant.keys() | view.files.keys()):
        before, after = view.files.get(path, (None, None))
        question = read_question(path, after or before or b"") if asks(path) else None
        is_whole = question is not None and None in {before, after}  # it was asked or closed: its title tells all
        pieces = [] if is_whole else diff_versions(before, after)
        yield FileDiff(path, meant.get(path), pieces, question.title if question else "")


def list_trailers(trailers: Mapping[str, Sequence[str]]) -> list[tuple[str, list[str], int]]:
    """Return (name, values, how many more) of what a commit says about itself."""
    found = ((name, list(trailers.get(f"Quaid-{name}", ()))) for name in TRAILERS)
    return [(name, values[:MAX_VALUES], max(0, len(values) - MAX_VALUES)) for name, values in found if values]


def plan_undo(memory: Memory, reference: str) -> UndoPlan:
    """Return what an undo of a commit or a night would do; nothing is done."""
    try:
        return UndoPlan(memory.timeline.undo(reference, anybodys=True, dry_run=True))
    except QuaidError as error:
        return UndoPlan(None, str(error))


def undo(memory: Memory, form: Form, _: Request) -> str:
    """Take back the commit or night that the form names, but for what was changed since; return the way back, or to the
    commit that did it.

    Raises:
        BadInputError: there is no such commit, or nothing of it can be taken back.
    """
    reference = form.get("commit", "")
    done = memory.timeline.undo(reference, anybodys=True)
    said = "nothing_undone" if done.commit is None else "undone_partly" if done.kept else "undone"
    if back := own_address(form.get("back", "")):
        return go_to(back, said, done.commit)
    return go_to(f"/change/{done.commit or done.commits[0].id}", said)
