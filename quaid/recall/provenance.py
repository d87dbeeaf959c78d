"""The provenance of a memory: the turns it cites, their sessions, the commits that made and changed it, related notes.

The index says what points where, git says who wrote what when. What git cannot tell is a sentence in `remarks`, never a
failure.
"""

import textwrap
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from quaid.errors import QuaidError
from quaid.history.authorship import Authors, Who
from quaid.history.note_history import Revision
from quaid.history.vault_history import History
from quaid.index import documents, graph, listing, references
from quaid.index.documents import Document
from quaid.index.listing import TurnText
from quaid.index.port import IndexConnection
from quaid.index.references import NoteView, Related
from quaid.local.claimed import OTHER_PERSON
from quaid.model import Commit, Kind, note_name
from quaid.recall.hits import SOURCES, whose_word
from quaid.recall.visibility import VisibleCommits
from quaid.settings import GitSettings
from quaid.vault import differences, files
from quaid.vault.transaction import list_deferred

HUMAN, QUAID, JANITOR = "human", "Quaid", "Quaid Janitor"
_BY: dict[Who, str] = {"owner": HUMAN, "other": HUMAN, "agent": QUAID, "import": QUAID, "janitor": JANITOR}
UNSEEN = "only how it is written"
"""A change that no reader of the note would notice: quotes, comments, empty lines."""
MAX_ADJACENT = 160
"""Characters of the turns before and after a cited one."""


class CitedTurn(NamedTuple):
    """A turn that is evidence, with the end of the turn before it and the beginning of the one after."""

    cited: TurnText
    path: str
    session: str | None
    before: TurnText | None = None
    after: TurnText | None = None


class SessionView(NamedTuple):
    """A conversation a memory comes from; `source` is who wrote it down, `facts` are what else came from it."""

    path: str
    title: str
    session: str | None
    started: str | None
    source: str | None
    turns: int
    facts: tuple[Related, ...] = ()


@dataclass(frozen=True, slots=True)
class NoteChange:
    """One change of the note, from `before` to `after`, None where there was no note. `by` is human, Quaid or Quaid
    Janitor; what has no commit is in the working tree only.
    """

    by: str
    changes: tuple[str, ...]
    commit: Commit | None = None
    before: bytes | None = None
    after: bytes | None = None

    def trailer(self, name: str) -> str | None:
        """Return the value of the trailer `Quaid-<name>`: Task, Run, Decision, Model, Prompt, Session."""
        return ", ".join(self.commit.trailers.get(f"Quaid-{name}", ())) or None if self.commit else None


@dataclass(slots=True)
class Provenance:
    """All that is known of where a memory comes from.

    `source` is owner, other, agent, tool or import, None where nobody can tell: a conversation has several voices.
    `created` is None for a note that no commit holds, or whose beginning a shallow clone lacks; `edits` follow it,
    oldest first. `facts` rest on a turn, came from an episode or mention an entity. `remarks` are sentences about what
    is missing.
    """

    note: NoteView
    source: str | None = None
    turns: list[CitedTurn] = field(default_factory=list)
    sessions: list[SessionView] = field(default_factory=list)
    created: NoteChange | None = None
    edits: list[NoteChange] = field(default_factory=list)
    replaces: list[Related] = field(default_factory=list)
    replaced_by: list[Related] = field(default_factory=list)
    facts: list[Related] = field(default_factory=list)
    linked_from: list[Related] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def explain(
    view: NoteView, index: IndexConnection, history: History, root: Path, settings: GitSettings,
    visible: VisibleCommits, owner_names: Collection[str] = (),
) -> Provenance:  # fmt: skip
    """Put together why `view` is believed; `settings` are those of the history, `owner_names` are those of the
    caller.
    """
    document = view.document
    citations = references.list_citations(index, document.doc_id)
    found = Provenance(
        view,
        turns=list_cited(index, document, view.turn),
        sessions=list(_list_sessions(index, view, citations)),
        replaces=references.replaces(index, document),
        replaced_by=references.replaced_by(index, document),
        facts=references.facts_from(index, document, view.turn) if document.kind == Kind.EPISODE else [],
    )
    found.linked_from = [one for one in references.links_to(index, document) if one not in found.facts]
    if document.kind == Kind.ENTITY:
        found.facts = [one for one in found.linked_from if one.kind == Kind.FACT]
        found.linked_from = [one for one in found.linked_from if one.kind != Kind.FACT]
    held = {each.cited.id for each in found.turns}
    cited = [] if view.turn is not None else [f"{name}#t{number}" for name, number in citations]
    missing = [name for name in cited if name not in held]
    found.remarks = [f"It cites {name}, which the vault does not hold (any more)." for name in missing]
    try:
        revisions = history.note_history(document.path, None if document.id == document.path else document.id)
        authors = Authors.of(settings, history.owner())
        others = _list_others(document, revisions, history, authors)
        remarks = _add_commits(found, revisions, authors, history.boundary, visible)
        remarks += _add_uncommitted(found, revisions, root)
        is_by_hand = found.created.by == HUMAN if found.created else not found.edits
    except QuaidError as error:
        others, remarks, is_by_hand = [], [f"The history could not be read: {error}"], False
    if document.kind == Kind.FACT and not citations:
        origin = "Written by hand"
        if found.created and found.created.by != HUMAN:
            is_stated = found.created.commit and found.created.commit.subject.startswith("remember: ")
            origin = "Stated directly with quaid remember" if is_stated else "Written by Quaid"
        found.remarks.append(f"{origin}; it cites no turn.")
    if others:
        found.remarks.append(f"Not all of it is its owner's word: lines of it were written by {', '.join(others)}.")
    found.remarks += remarks
    # The source is the one in the frontmatter, else the author of the note. The frontmatter cannot name the owner where
    # another person wrote the note or a part of it: then the source is that person.
    if document.kind != Kind.EPISODE:
        found.source = "owner" if is_by_hand else None
        if document.source is not None:
            owner_keys = graph.with_aliases(index, owner_names)
            word = whose_word(document.source, document.speaker, owner_keys)
            found.source = word if document.source in SOURCES else None
        if found.source == "owner" and others:
            found.source = OTHER_PERSON
    return found


# -- cited turns -----------------------------------------------------------------------------------------------------


def list_cited(index: IndexConnection, document: Document, turn: int | None = None) -> list[CitedTurn]:
    """Return the turns that a note rests on, or `turn` of it itself, as far as the vault holds them."""
    citations = references.list_citations(index, document.doc_id)
    if turn is not None:
        citations = [(note_name(document.path), turn)]
    found = []
    for name, number in citations:
        episode = references.find_episode(index, name)
        numbers = listing.list_turns(index, episode.doc_id) if episode else []
        if episode is None or number not in numbers:
            continue
        place = numbers.index(number)
        turns = listing.read_turns(index, episode, numbers[max(0, place - 1) : place + 2])
        at = min(place, 1)
        before = next((_shorten(each, from_end=True) for each in turns[:at]), None)
        after = next((_shorten(each) for each in turns[at + 1 :]), None)
        found.append(CitedTurn(turns[at], episode.path, episode.session, before, after))
    return found


def _shorten(turn: TurnText, *, from_end: bool = False) -> TurnText:
    """Return a turn with the beginning of its text, or the end, on one line."""
    text = turn.text[::-1] if from_end else turn.text
    text = textwrap.shorten(text, MAX_ADJACENT, placeholder=" …")
    return turn._replace(text=text[::-1] if from_end else text)


def _list_sessions(
    index: IndexConnection, view: NoteView, citations: Sequence[tuple[str, int]]
) -> Iterator[SessionView]:
    document = view.document
    is_episode = document.kind == Kind.EPISODE
    found: list[Document | None] = [document]
    if not is_episode:
        found = [references.find_episode(index, name) for name, _ in citations]
        of_session = documents.find_by_identity(index, document.session) if document.session else []
        found += [one for one in of_session if one.kind == Kind.EPISODE][:1]
    for episode in dict.fromkeys(one for one in found if one is not None):
        others = references.facts_from(index, episode) if view.turn is not None or not is_episode else []
        shown = {document.path}
        if view.turn is not None:
            shown |= {one.path for one in references.facts_from(index, episode, view.turn)}
        yield SessionView(
            episode.path,
            episode.title,
            episode.session,
            episode.created,
            episode.source,
            len(listing.list_turns(index, episode.doc_id)),
            tuple(one for one in others if one.path not in shown),
        )


# -- who wrote it ----------------------------------------------------------------------------------------------------


def _add_commits(
    found: Provenance, revisions: Sequence[Revision], authors: Authors, boundary: Collection[str],
    visible: VisibleCommits,
) -> list[str]:  # fmt: skip
    """Add the committed changes of the note, without the merges of changes that are listed already; return remarks."""
    kind, turn = Kind(found.note.document.kind), found.note.turn
    shown = {commit.id: commit for commit in visible.of_parts(revision.commit for revision in revisions)}
    for revision in reversed(revisions):
        changes = differences.describe(kind, revision.befores, revision.after, turn)
        if revision.renamed_from and turn is None:
            changes.insert(0, f"renamed from {revision.renamed_from}")
        if revision.after is None and turn is None:
            changes = ["taken out of the vault"]
        elif revision.begins and turn is None:
            changes = ["brought back"]
        elif not changes and (turn is not None or len(revision.befores) > 1):
            continue
        if commit := shown.get(revision.commit.id):
            by, versions = _BY[authors.name(commit.email, commit.subject)], (revision.befores[0], revision.after)
            found.edits.append(NoteChange(by, tuple(changes) or (UNSEEN,), commit, *versions))
    first = found.edits[0].commit if found.edits else None
    if first and first.id in boundary:
        found.edits.pop(0)  # where a clone ends, every note looks new
        return ["This is a shallow clone; who wrote it is older than that. See it after: git fetch --unshallow"]
    if found.edits and (turn is not None or revisions[-1].begins):
        found.created = replace(found.edits.pop(0), changes=())
    return []


def _add_uncommitted(found: Provenance, revisions: Sequence[Revision], root: Path) -> list[str]:
    """Add what has changed since the last commit of the note; return remarks."""
    path, turn = found.note.document.path, found.note.turn
    # The notes that wait for the next commit, as Quaid left them.
    deferred = {edit.rel_path: edit.after for each in list_deferred(root) for edit in each.change.edits}
    if not revisions:
        by = "somebody wrote it by hand and has not committed it"
        return [f"It is in no commit yet: {'it goes along with the next one' if path in deferred else by}."]
    newest, data = revisions[0], files.read_note(root, path)
    changes = differences.describe(Kind(found.note.document.kind), [newest.after], data, turn)
    if newest.path != path:
        changes.insert(0, f"renamed from {newest.path}")
    # By lines, as how they end on disk is a setting of git.
    if not changes and turn is None and (data or b"").splitlines() != (newest.after or b"").splitlines():
        changes = [UNSEEN]
    if changes:
        by = QUAID if deferred.get(path) == data else HUMAN
        found.edits.append(NoteChange(by, tuple(changes), before=newest.after, after=data))
    return []


def _list_others(document: Document, revisions: Sequence[Revision], history: History, authors: Authors) -> list[str]:
    """Return the names of the authors, other than the owner, of the present lines of a fact."""
    written = [(revision.commit.email, revision.commit.subject) for revision in revisions]
    if document.kind != Kind.FACT or not any(authors.name(*each) == "other" for each in written):
        return []  # git is asked for lines only where it matters
    lines = history.blame(revisions[0].path, "HEAD")
    return [*dict.fromkeys(line.author for line in lines if authors.name(line.email, line.subject) == "other")]
