"""The provenance of a memory: the turns it cites, their sessions, the commits that made and changed it, related notes.

The index says what points where, git says who wrote what when. What git cannot tell is a sentence in `remarks`, never a
failure.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import sqrt
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from quaid.errors import QuaidError
from quaid.history.authorship import Authors
from quaid.index import graph, references
from quaid.index.references import NoteView, Related
from quaid.local.claimed import OTHER_PERSON
from quaid.model import Commit, Kind
from quaid.recall.hits import SOURCES, whose_word
from quaid.vault import differences, files
from quaid.vault.transaction import list_deferred

if TYPE_CHECKING:
    from quaid.history.authorship import Who
    from quaid.history.note_history import Revision
    from quaid.history.vault_history import History, VaultCommit
    from quaid.index.documents import Document
    from quaid.index.port import IndexConnection
    from quaid.settings import GitSettings
    from quaid.vault.layout import Layout

HUMAN, QUAID, JANITOR = "human", "Quaid", "Quaid Janitor"
_BY: dict[Who, str] = {"owner": HUMAN, "other": HUMAN, "agent": QUAID, "import": QUAID, "janitor": JANITOR}
UNSEEN = "only how it is written"
"""A change that no reader of the note would notice: quotes, comments, empty lines."""
MAX_ADJACENT = 160
"""Characters of the turns before and after a cited one."""

Seen = Callable[[Iterable[Commit]], list[Commit]]


@dataclass(frozen=True, slots=True)
class TurnText:
    """One turn of a session; `id` is how a fact cites it. `said_at` is ISO 8601 in UTC."""

    id: str
    turn: int
    speaker: str | None
    said_at: str | None
    text: str


@dataclass(frozen=True, slots=True)
class CitedTurn:
    """A turn that is evidence, with the end of the turn before it and the beginning of the one after."""

    cited: TurnText
    path: str
    session: str | None
    before: TurnText | None = None
    after: TurnText | None = None


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


@dataclass(frozen=True, slots=True)
class Provenance:
    """All that is known of where a memory comes from.

    `source` is owner, other, agent, tool or import, None where nobody can tell: a conversation has several voices.
    `created` is None for a note that no commit holds, or whose beginning a shallow clone lacks; `edits` follow it,
    oldest first. `facts` rest on a turn, came from an episode or mention an entity. `remarks` are sentences about what
    is missing.
    """

    note: NoteView
    source: str | None = None
    turns: tuple[CitedTurn, ...] = ()
    sessions: tuple[SessionView, ...] = ()
    created: NoteChange | None = None
    edits: tuple[NoteChange, ...] = ()
    replaces: tuple[Related, ...] = ()
    replaced_by: tuple[Related, ...] = ()
    facts: tuple[Related, ...] = ()
    linked_from: tuple[Related, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(slots=True)
class _Life:
    """The history of a note as git knows it. `is_known` is False when it could not be asked."""

    created: NoteChange | None = None
    edits: list[NoteChange] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    is_known: bool = True
    others: tuple[str, ...] = ()
    """The people besides the owner whose words the note has, by the lines of its last commit."""


def explain(
    view: NoteView, index: IndexConnection, history: History, root: Path, settings: GitSettings, seen: Seen = list,
    owner_names: Collection[str] = (),
) -> Provenance:  # fmt: skip
    """Put together why `view` is believed; `settings` are those of the history, `seen` gives those of some commits that
    may be shown, `owner_names` are those of the caller.
    """
    document = view.document
    life = _read_life(view, history, root, settings, seen)
    citations = references.list_citations(index, document.doc_id)
    turns, remarks = _cited_turns(index, view, citations)
    facts = references.facts_from(index, document, view.turn) if document.kind == Kind.EPISODE else []
    links = [one for one in references.links_to(index, document) if one not in facts]
    if document.kind == Kind.ENTITY:
        facts = [one for one in links if one.kind == Kind.FACT]
        links = [one for one in links if one.kind != Kind.FACT]
    if document.kind == Kind.FACT and not citations:
        origin = "Written by hand"
        if life.created and life.created.by != HUMAN:
            is_stated = life.created.commit and life.created.commit.subject.startswith("remember: ")
            origin = "Stated directly with quaid remember" if is_stated else "Written by Quaid"
        remarks.append(f"{origin}; it cites no turn.")
    if life.others:
        remarks.append(f"Not all of it is its owner's word: lines of it were written by {', '.join(life.others)}.")
    return Provenance(
        view,
        _source(document, life, graph.with_aliases(index, owner_names)),
        tuple(turns),
        tuple(_sessions(index, view, citations)),
        life.created,
        tuple(life.edits),
        tuple(references.replaces(index, document)),
        tuple(references.replaced_by(index, document)),
        tuple(facts),
        tuple(links),
        (*remarks, *life.remarks),
    )


def list_cited(index: IndexConnection, document: Document) -> list[CitedTurn]:
    """Return the turns that a note rests on, as far as the vault holds them."""
    return _cited_turns(index, NoteView(document, ""), references.list_citations(index, document.doc_id))[0]


# -- cited turns -----------------------------------------------------------------------------------------------------


def _cited_turns(
    index: IndexConnection, view: NoteView, citations: Sequence[tuple[str, int]]
) -> tuple[list[CitedTurn], list[str]]:
    """Return the turns that are evidence, and a sentence for each that is not there."""
    if view.turn is not None:
        citations = [(PurePosixPath(view.document.path).stem, view.turn)]
    turns, missing = [], []
    for name, number in citations:
        episode = references.find_episode(index, name)
        cited = _find_turn(index, episode, number) if episode else None
        if episode is None or cited is None:
            missing.append(f"It cites {name}#t{number}, which the vault does not hold (any more).")
            continue
        numbers = references.adjacent_turns(index, episode.doc_id, number)
        before, after = (None if adjacent is None else _find_turn(index, episode, adjacent) for adjacent in numbers)
        if before:
            text = " ".join(before.text.split())
            is_short = len(text) <= MAX_ADJACENT
            before = replace(before, text=text if is_short else "… " + text[-MAX_ADJACENT:].split(" ", 1)[-1])
        if after:
            text = " ".join(after.text.split())
            is_short = len(text) <= MAX_ADJACENT
            after = replace(after, text=text if is_short else text[:MAX_ADJACENT].rsplit(" ", 1)[0] + " …")
        turns.append(CitedTurn(cited, episode.path, episode.session, before, after))
    return turns, missing


def _find_turn(index: IndexConnection, episode: Document, number: int) -> TurnText | None:
    found = references.turn_at(index, episode.doc_id, number)
    return TurnText(f"{PurePosixPath(episode.path).stem}#t{number}", number, *found) if found else None


def _sessions(index: IndexConnection, view: NoteView, citations: Sequence[tuple[str, int]]) -> Iterator[SessionView]:
    document = view.document
    is_episode = document.kind == Kind.EPISODE
    found: list[Document | None] = [document]
    if not is_episode:
        found = [references.find_episode(index, name) for name, _ in citations]
        found += [references.find_session(index, document.session)] if document.session else []
    for episode in dict.fromkeys(one for one in found if one is not None):
        others = references.facts_from(index, episode) if view.turn is not None or not is_episode else []
        shown = (
            {one.path for one in references.facts_from(index, episode, view.turn)} if view.turn is not None else set()
        )
        yield SessionView(
            episode.path,
            episode.title,
            episode.session,
            episode.created,
            episode.source,
            references.count_turns(index, episode.doc_id),
            tuple(one for one in others if one.path != document.path and one.path not in shown),
        )


# -- who wrote it ----------------------------------------------------------------------------------------------------


def _read_life(view: NoteView, history: History, root: Path, settings: GitSettings, seen: Seen) -> _Life:
    document = view.document
    try:
        revisions = history.note_history(document.path, None if document.id == document.path else document.id)
        boundary = history.boundary
        authors = Authors.of(settings, history.owner())
        others = _list_others(document, revisions, history, authors)
    except QuaidError as error:
        return _Life(remarks=[f"The history could not be read: {error}"], is_known=False)
    visible = {commit.id: commit for commit in seen(revision.commit for revision in revisions)}
    life = _Life(edits=list(_changes(view, reversed(revisions), authors, visible)), others=others)
    first = life.edits[0].commit if life.edits else None
    if first and first.id in boundary:
        life.edits.pop(0)  # where a clone ends, every note looks new
        life.remarks.append(
            "This is a shallow clone; who wrote it is older than that. See it after: git fetch --unshallow"
        )
    elif life.edits and (view.turn is not None or revisions[-1].begins):
        life.created = replace(life.edits.pop(0), changes=())
    if revisions:
        life.edits += _uncommitted(view, revisions[0], root)
    else:
        travels = document.path in _travelling(root)
        by = "it goes along with the next one" if travels else "somebody wrote it by hand and has not committed it"
        life.remarks.append(f"It is in no commit yet: {by}.")
    return life


def _changes(
    view: NoteView, revisions: Iterable[Revision], authors: Authors, visible: Mapping[str, Commit]
) -> Iterator[NoteChange]:
    """Yield the committed changes in the `visible` commits, oldest first, without the merges of changes that are
    listed already.
    """
    kind, turn = Kind(view.document.kind), view.turn
    for revision in revisions:
        changes = differences.describe(kind, revision.befores, revision.after, turn)
        if revision.renamed_from and turn is None:
            changes.insert(0, f"renamed from {revision.renamed_from}")
        if revision.after is None and turn is None:
            changes = ["taken out of the vault"]
        elif revision.begins and turn is None:
            changes = ["brought back"]
        elif not changes and (turn is not None or len(revision.befores) > 1):
            continue
        if commit := visible.get(revision.commit.id):
            by, versions = _BY[authors.name(commit.email, commit.subject)], (revision.befores[0], revision.after)
            yield NoteChange(by, tuple(changes) or (UNSEEN,), commit, *versions)


def _uncommitted(view: NoteView, newest: Revision, root: Path) -> Iterator[NoteChange]:
    path = view.document.path
    data = files.read_note(root, path)
    changes = differences.describe(Kind(view.document.kind), [newest.after], data, view.turn)
    if newest.path != path:
        changes.insert(0, f"renamed from {newest.path}")
    # By lines, as how they end on disk is a setting of git.
    if not changes and view.turn is None and (data or b"").splitlines() != (newest.after or b"").splitlines():
        changes = [UNSEEN]
    if changes:
        by = QUAID if _travelling(root).get(path) == data else HUMAN
        yield NoteChange(by, tuple(changes), before=newest.after, after=data)


def _travelling(root: Path) -> dict[str, bytes | None]:
    """The notes that wait for the next commit, as Quaid left them."""
    return {edit.rel_path: edit.after for each in list_deferred(root) for edit in each.change.edits}


def _list_others(
    document: Document, revisions: Sequence[Revision], history: History, authors: Authors
) -> tuple[str, ...]:
    """Return the names of the authors, other than the owner, of the present lines of a fact."""
    written = [(revision.commit.email, revision.commit.subject) for revision in revisions]
    if document.kind != Kind.FACT or not any(authors.name(*each) == "other" for each in written):
        return ()  # git is asked for lines only where it matters
    lines = history.blame(revisions[0].path, "HEAD")
    return tuple(dict.fromkeys(line.author for line in lines if authors.name(line.email, line.subject) == "other"))


def _source(document: Document, life: _Life, owner_keys: Collection[str]) -> str | None:
    """Return the source of a statement: the one in its frontmatter, else the author of the note. The frontmatter cannot
    name the owner where another person wrote the note or a part of it: then the source is that person.
    """
    if document.kind == Kind.EPISODE:
        return None
    is_by_hand = life.created.by == HUMAN if life.created else life.is_known and not life.edits
    source = "owner" if is_by_hand else None
    if document.source is not None:
        source = whose_word(document.source, document.speaker, owner_keys) if document.source in SOURCES else None
    return OTHER_PERSON if source == "owner" and life.others else source


MAX_SPREADS = 6.0
"""A day is a flood when it has more facts than the median of the source's days and this many times their spread."""
MIN_DAYS = 5
"""On fewer days nobody can say what is usual."""
MIN_FLOOD = 10
"""Fewer facts in a day are no flood, however quiet the other days were."""
_MAD_TO_SPREAD = 1.4826
"""The median absolute deviation times this is the standard deviation of what is normally distributed (Leys et al.,
Detecting outliers, Journal of Experimental Social Psychology 49, 2013)."""
DIRECT = "agent:remember"
"""The source of what was stated explicitly, by a command or a tool, outside of a conversation."""


class Origin(NamedTuple):
    """The commit that brought a note: whose it was, and when it came, in UTC."""

    path: str
    is_fact: bool
    source: str
    who: Who
    at: datetime

    @property
    def day(self) -> str:
        return self.at.date().isoformat()


class Flood(NamedTuple):
    """A day on which a source brought more facts than `most`; `usual` is the median of its days."""

    day: str
    facts: int
    usual: float
    most: float


@dataclass(slots=True)
class Account:
    """What one source has brought. `days` are the facts of each day, `committers` e-mail addresses."""

    source: str
    who: Who
    commits: int = 0
    notes: int = 0
    facts: int = 0
    first: datetime | None = None
    last: datetime | None = None
    sessions: set[str] = field(default_factory=set)
    committers: set[str] = field(default_factory=set)
    days: Counter[str] = field(default_factory=Counter)


def hosts_of(index: IndexConnection) -> dict[str, str]:
    """Return the program that each session took place in, as far as its episode says."""
    rows = index.execute("SELECT session, source FROM documents WHERE kind = 'episode' AND session <> ''")
    return {session: source or "" for session, source in rows}


def source_of(commit: Commit, who: Who, hosts: Mapping[str, str]) -> str:
    """Return the name of the source of a commit: `owner:`, `other:` and an address, `agent:` and a program, `import:`
    and a format, or `janitor`.
    """
    if who in {"owner", "other"}:
        return f"{who}:{commit.email}"
    if who == "janitor":
        return who
    if who == "import":
        return "import:files" if commit.subject.startswith("analyze: ") else f"import:{commit.subject.split()[-1]}"
    sessions = commit.trailers.get("Quaid-Session", ())
    return f"agent:{hosts.get(sessions[0]) or 'unknown'}" if sessions else DIRECT


def list_origins(
    log: Iterable[VaultCommit], authors: Authors, hosts: Mapping[str, str], place: Layout
) -> dict[str, Origin]:
    """Return for each path in the vault, as it is called now, the origin of the note; one that was removed is there
    too. `log` has parents before children.
    """
    origins: dict[str, Origin] = {}
    for logged in log:
        who = authors.name(logged.commit.email, logged.commit.subject)
        source = source_of(logged.commit, who, hosts)
        for change in logged.changes:
            if change.old_path in origins:
                origins[change.path] = origins[change.old_path]._replace(path=change.path)
                del origins[change.old_path]
            elif change.befores[0] is None:
                is_fact = place.folder_kind(change.path) is Kind.FACT
                origins[change.path] = Origin(change.path, is_fact, source, who, logged.written)
    return origins


def add_up(
    log: Iterable[VaultCommit], origins: Mapping[str, Origin], authors: Authors, hosts: Mapping[str, str]
) -> dict[str, Account]:
    """Return the account of each source by its name."""
    accounts: dict[str, Account] = {}
    for logged in log:
        if not logged.changes:
            continue
        who = authors.name(logged.commit.email, logged.commit.subject)
        source = source_of(logged.commit, who, hosts)
        account = accounts.setdefault(source, Account(source, who))
        account.commits += 1
        account.first = min(account.first or logged.written, logged.written)
        account.last = max(account.last or logged.written, logged.written)
        account.sessions.update(logged.commit.trailers.get("Quaid-Session", ()))
        account.committers.add(logged.committer)
    for origin in origins.values():
        if (found := accounts.get(origin.source)) is not None:
            found.notes += 1
            found.facts += origin.is_fact
            found.days[origin.day] += origin.is_fact
    return accounts


def find_floods(days: Mapping[str, int], factor: float = MAX_SPREADS) -> list[Flood]:
    """Return the days that have far more facts than the others: over the median and `factor` times the spread, which is
    1.4826 times the median absolute deviation, and no less than a count that is steady varies by chance (the square
    root of the median).
    """
    from statistics import median  # not above: it loads decimal, which takes as long as all of recall's own modules

    counts = sorted(number for number in days.values() if number)
    if len(counts) < MIN_DAYS:
        return []
    usual = median(counts)
    spread = max(_MAD_TO_SPREAD * median(abs(number - usual) for number in counts), sqrt(usual))
    most = usual + factor * spread
    return [Flood(day, facts, usual, most) for day, facts in sorted(days.items()) if facts > max(most, MIN_FLOOD - 1)]


def list_over_quota(accounts: Iterable[Account], facts_per_day: int) -> list[tuple[str, str, int]]:
    """Return (source, day, facts) of each day on which an agent brought more than `facts_per_day`; 0 is no limit."""
    return [
        (account.source, day, facts)
        for account in accounts
        if facts_per_day and account.who == "agent"
        for day, facts in sorted(account.days.items())
        if facts > facts_per_day
    ]


def list_doubts(
    log: Sequence[VaultCommit], authors: Authors, hosts: Mapping[str, str], place: Layout, facts_per_day: int
) -> dict[str, str]:
    """Return for each path of a fact that is not to be believed unasked the sentence that says why: somebody else has
    written in it by hand, or its source brought more in a day than is allowed.
    """
    origins = list_origins(log, authors, hosts, place)
    over = {
        (source, day): facts
        for source, day, facts in list_over_quota(add_up(log, origins, authors, hosts).values(), facts_per_day)
    }
    doubts = {
        origin.path: f"{origin.source} brought {facts:,} facts on {origin.day}, of {facts_per_day:,} that it may."
        for origin in origins.values()
        if origin.is_fact and (facts := over.get((origin.source, origin.day)))
    }
    others: dict[str, list[str]] = defaultdict(list)
    for logged in log:
        if authors.name(logged.commit.email, logged.commit.subject) == "other":
            for change in logged.changes:
                others[change.path].append(f"{logged.commit.author} <{logged.commit.email}>")
    return doubts | {
        path: f"{', '.join(dict.fromkeys(names))} has written in it, not its owner."
        for path, names in others.items()
        if place.folder_kind(path) is Kind.FACT
    }
