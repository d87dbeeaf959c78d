"""Why a memory is believed: the turns it cites, their sessions, the commits that made and changed it, its kin.

Above the rooms: the index says what points where, git says who wrote what when. What git cannot tell is a sentence
in `remarks`, never a failure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from quaid.errors import QuaidError
from quaid.index import backlinks
from quaid.index.backlinks import Related
from quaid.model import Commit, Kind
from quaid.vault import differences, files

if TYPE_CHECKING:
    import apsw

    from quaid.history.note_history import Revision
    from quaid.history.vault_history import History
    from quaid.index.documents import Document
    from quaid.index.views import NoteView

HUMAN, QUAID, JANITOR = "human", "Quaid", "Quaid Janitor"
JANITOR_EMAIL = "janitor@localhost"
UNSEEN = "only how it is written"
"""A change that nobody who reads the note would notice: quotes, comments, empty lines."""
BESIDE = 160
"""Characters of the turns before and after a cited one."""
SOURCES = {"user": "owner", "assistant": "agent", "tool": "tool", "import": "import"}


Seen = Callable[[Iterable[Commit]], list[Commit]]


@dataclass(frozen=True, slots=True)
class Said:
    """One turn of a session; `id` is how a fact cites it. `said_at` is ISO 8601 in UTC."""

    id: str
    turn: int
    speaker: str | None
    said_at: str | None
    text: str


@dataclass(frozen=True, slots=True)
class CitedTurn:
    """A turn that is evidence, with the end of the turn before it and the beginning of the one after."""

    said: Said
    path: str
    session: str | None
    before: Said | None = None
    after: Said | None = None


@dataclass(frozen=True, slots=True)
class SessionView:
    """A conversation a memory comes from; `source` is who wrote it down, `facts` are what else came from it."""

    path: str
    title: str
    session: str | None
    started: str | None
    source: str | None
    turns: int
    facts: tuple[Related, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """One change of the note. `by` is human, Quaid or Quaid Janitor; what has no commit is in the working tree only."""

    by: str
    changes: tuple[str, ...]
    commit: Commit | None = None

    def trailer(self, name: str) -> str | None:
        """The value of the trailer `Quaid-<name>`: Task, Run, Decision, Model, Prompt, Session."""
        return ", ".join(self.commit.trailers.get(f"Quaid-{name}", ())) or None if self.commit else None


@dataclass(frozen=True, slots=True)
class Provenance:
    """All that is known of where a memory comes from.

    `source` is owner, agent, tool or import, None where nobody can tell: a conversation has several voices.
    `created` is None for a note that no commit holds, or whose beginning a shallow clone lacks; `edits` follow it,
    oldest first. `facts` rest on a turn, came from an episode or mention an entity. `remarks` are sentences about what
    is missing.
    """

    note: NoteView
    source: str | None = None
    turns: tuple[CitedTurn, ...] = ()
    sessions: tuple[SessionView, ...] = ()
    created: Step | None = None
    edits: tuple[Step, ...] = ()
    replaces: tuple[Related, ...] = ()
    replaced_by: tuple[Related, ...] = ()
    facts: tuple[Related, ...] = ()
    linked_from: tuple[Related, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(slots=True)
class _Life:
    """What git told. `is_known` is False when it could not be asked."""

    created: Step | None = None
    edits: list[Step] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    is_known: bool = True


def explain(
    view: NoteView, index: apsw.Connection, history: History, root: Path, own_email: str, seen: Seen = list
) -> Provenance:
    """Put together why `view` is believed; `own_email` is the address Quaid commits under, `seen` gives those of some
    commits that may be shown.
    """
    document = view.document
    life = _read_life(view, history, root, own_email, seen)
    citations = backlinks.list_citations(index, document.doc_id)
    turns, missing = _cited(index, view, citations)
    sessions = tuple(_sessions(index, view, citations))
    is_episode = document.kind == Kind.EPISODE
    facts = backlinks.facts_from(index, document, view.turn) if is_episode else []
    links = [one for one in backlinks.links_to(index, document) if one not in facts]
    if document.kind == Kind.ENTITY:
        facts, links = _parted(links)
    remarks = [*missing, *_uncited(view, citations, life), *life.remarks]
    return Provenance(
        view,
        _source(document, life),
        tuple(turns),
        sessions,
        life.created,
        tuple(life.edits),
        tuple(backlinks.replaces(index, document)),
        tuple(backlinks.replaced_by(index, document)),
        tuple(facts),
        tuple(links),
        tuple(remarks),
    )


# -- what was said ---------------------------------------------------------------------------------------------------


def _cited(
    index: apsw.Connection, view: NoteView, citations: Sequence[tuple[str, int]]
) -> tuple[list[CitedTurn], list[str]]:
    """The turns that are evidence, and a sentence for each that is not there."""
    if view.turn is not None:
        citations = [(PurePosixPath(view.document.path).stem, view.turn)]
    turns, missing = [], []
    for name, number in citations:
        episode = backlinks.find_episode(index, name)
        said = _said(index, episode, number) if episode else None
        if episode is None or said is None:
            missing.append(f"It cites {name}#t{number}, which the vault does not hold (any more).")
            continue
        before, after = (
            _said(index, episode, beside) if beside is not None else None
            for beside in backlinks.turns_beside(index, episode.doc_id, number)
        )
        turns.append(
            CitedTurn(
                said,
                episode.path,
                episode.session,
                before and replace(before, text=_end(before.text)),
                after and replace(after, text=_beginning(after.text)),
            )
        )
    return turns, missing


def _said(index: apsw.Connection, episode: Document, number: int) -> Said | None:
    found = backlinks.turn_at(index, episode.doc_id, number)
    return Said(f"{PurePosixPath(episode.path).stem}#t{number}", number, *found) if found else None


def _beginning(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= BESIDE else text[:BESIDE].rsplit(" ", 1)[0] + " …"


def _end(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= BESIDE else "… " + text[-BESIDE:].split(" ", 1)[-1]


def _sessions(index: apsw.Connection, view: NoteView, citations: Sequence[tuple[str, int]]) -> Iterator[SessionView]:
    document = view.document
    is_episode = document.kind == Kind.EPISODE
    found: list[Document | None] = [document]
    if not is_episode:
        found = [backlinks.find_episode(index, name) for name, _ in citations]
        found += [backlinks.find_session(index, document.session)] if document.session else []
    for episode in dict.fromkeys(one for one in found if one is not None):
        others = backlinks.facts_from(index, episode) if view.turn is not None or not is_episode else []
        told = {one.path for one in backlinks.facts_from(index, episode, view.turn)} if view.turn is not None else set()
        yield SessionView(
            episode.path,
            episode.title,
            episode.session,
            episode.created,
            episode.source,
            backlinks.count_turns(index, episode.doc_id),
            tuple(one for one in others if one.path != document.path and one.path not in told),
        )


def _parted(links: Iterable[Related]) -> tuple[list[Related], list[Related]]:
    facts = [one for one in links if one.kind == Kind.FACT]
    return facts, [one for one in links if one.kind != Kind.FACT]


# -- who wrote it ----------------------------------------------------------------------------------------------------


def _read_life(view: NoteView, history: History, root: Path, own_email: str, seen: Seen) -> _Life:
    document = view.document
    try:
        revisions = history.note_history(document.path, None if document.id == document.path else document.id)
        boundary = history.boundary
    except QuaidError as error:
        return _Life(remarks=[f"The history could not be read: {error}"], is_known=False)
    life = _Life(edits=list(_steps(reversed(revisions), view.turn, own_email, seen)))
    if life.edits and _commit_id(life.edits[0]) in boundary:
        life.edits.pop(0)  # where a clone ends, every note looks new
        life.remarks.append(
            "This is a shallow clone; who wrote it is older than that. See it after: git fetch --unshallow"
        )
    elif life.edits and (view.turn is not None or revisions[-1].begins):
        life.created = replace(life.edits.pop(0), changes=())
    if revisions:
        life.edits += _uncommitted(view, revisions[0], root)
    else:
        life.remarks.append("It is in no commit yet: somebody wrote it by hand and has not committed it.")
    return life


def _steps(revisions: Iterable[Revision], turn: int | None, own_email: str, seen: Seen) -> Iterator[Step]:
    """Oldest first, without merges that only brought together what is told already."""
    for revision in revisions:
        changes = differences.describe(revision.path, revision.befores, revision.after, turn)
        if revision.renamed_from and turn is None:
            changes.insert(0, f"renamed from {revision.renamed_from}")
        if revision.after is None and turn is None:
            changes = ["taken out of the vault"]
        elif revision.begins and turn is None:
            changes = ["brought back"]
        elif not changes and (turn is not None or len(revision.befores) > 1):
            continue
        for commit in seen([revision.commit]):
            yield Step(_author_class(revision, own_email), tuple(changes) or (UNSEEN,), commit)


def _uncommitted(view: NoteView, newest: Revision, root: Path) -> Iterator[Step]:
    path = view.document.path
    data = files.read_note(root, path)
    changes = differences.describe(path, [newest.after], data, view.turn)
    if newest.path != path:
        changes.insert(0, f"renamed from {newest.path}")
    if not changes and view.turn is None and _lines(data) != _lines(newest.after):
        changes = [UNSEEN]
    if changes:
        yield Step(HUMAN, tuple(changes))


def _commit_id(step: Step) -> str | None:
    return step.commit.id if step.commit else None


def _lines(data: bytes | None) -> list[bytes]:
    # How lines end on disk is a setting of git.
    return (data or b"").splitlines()


def _author_class(revision: Revision, own_email: str) -> str:
    commit = revision.commit
    emails = {commit.email, revision.committer}
    if JANITOR_EMAIL in emails or "Quaid-Run" in commit.trailers:
        return JANITOR
    is_ours = own_email in emails or any(name.startswith("Quaid-") for name in commit.trailers)
    return QUAID if is_ours else HUMAN


def _source(document: Document, life: _Life) -> str | None:
    """Who stands behind a statement: what its head says, else who wrote the note."""
    if document.kind == Kind.EPISODE:
        return None
    if document.source is not None:
        return SOURCES.get(document.source)
    is_by_hand = life.created.by == HUMAN if life.created else life.is_known and not life.edits
    return "owner" if is_by_hand else None


def _uncited(view: NoteView, citations: Sequence[tuple[str, int]], life: _Life) -> Iterator[str]:
    """A fact that cites nothing says what there is instead."""
    if citations or view.document.kind != Kind.FACT:
        return
    if life.created is not None and life.created.by != HUMAN:
        commit = life.created.commit
        is_stated = commit is not None and commit.subject.startswith("remember: ")
        yield ("Stated directly with quaid remember" if is_stated else "Written by Quaid") + "; it cites no turn."
    else:
        yield "Written by hand; it cites no turn."
