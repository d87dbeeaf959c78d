"""The log: the role of a commit's author, and what the commit means for the memory, in a line."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from quaid.history.authorship import Authors, Who
from quaid.janitor.vetoes import CLIENT, HOST, RUN, TASK, TYPED
from quaid.model import Commit, Kind, note_name
from quaid.timeline.changes import MemoryChange, Versions
from quaid.vault import differences

MAX_READ = 300
"""A commit with more files is described by its subject alone."""
MAX_NAMED = 2
"""So many facts or notes of a commit are named; more are counted."""
quote = partial(differences.quote, most=60)
"""The form of a statement in a line."""
NIGHT, UNDO, MERGE, PULL, IMPORT = "janitor", "undo", "merge", "pull", "import"
_DONE = {"link": "linked", "cut": "cut", "config": "set", "merge": "merged", "janitor": "night:", "init": "made"}
_DONE |= {"review": "answered:", "dispute": "disputed"}
"""The prefix of a subject that describes its commit best -> its past tense."""
_OF_TURNS = {"forget": "forgot", "restore": "restored"}
_OF_FACTS = {"learned": "learned", "changed": "changed", "superseded": "replaced", "restored": "restored"}
_OF_FACTS |= {"moved": "moved", "forgotten": "forgot"}
_OF_NOTES = {"added": "added", "changed": "changed", "moved": "moved", "removed": "removed"}
_OF_EPISODES = {"added": "saved", "changed": "added to", "moved": "moved", "removed": "forgot"}
_OF_QUESTIONS = {"added": "asked", "changed": "answered", "moved": "moved", "removed": "closed"}


@dataclass(frozen=True, slots=True)
class CommitView:
    """A commit, its author's role, and its meaning.

    `changes` and `files` are filled for one commit or one run: what the shown ones of its files held before and after,
    by path; `more` counts the others. `is_hidden` where all of it is another owner's private matter.
    """

    commit: Commit
    who: Who
    what: str
    changes: tuple[MemoryChange, ...] = ()
    files: Mapping[str, Versions] = field(default_factory=dict)
    more: int = 0
    is_hidden: bool = False


def hide(commit: Commit) -> CommitView:
    """Return the view of a commit that changed only another owner's private notes."""
    hidden = replace(commit, subject="", body="", trailers={}, files=())
    return CommitView(hidden, "other", "what another owner keeps private", is_hidden=True)


def group_by_run(commits: Sequence[Commit]) -> list[list[Commit]]:
    """Return the commits, newest first, as entries of the log: all of a run are one, its merge first."""
    entries: dict[str, list[Commit]] = {}
    for commit in commits:
        entries.setdefault(next(iter(commit.trailers.get(RUN, ())), commit.id), []).append(commit)
    return list(entries.values())


def name_author(commit: Commit, authors: Authors) -> Who:
    """Return whose doing a commit is: what Quaid committed at the owner's own word is theirs."""
    task = next(iter(commit.trailers.get(TASK, ())), "")
    who = authors.name(commit.email, commit.subject)
    # A client is a program that called a server, on whose behalf it cannot prove.
    if who == "other" or CLIENT in commit.trailers:
        return who
    if HOST in commit.trailers:
        return "agent"
    if who == "janitor":
        return who
    if who == "owner" or task in TYPED or commit.subject.startswith("config: "):
        return "owner"
    if task == IMPORT:
        return "import"
    return "janitor" if RUN in commit.trailers else who


def describe(commits: Sequence[Commit], changes: Sequence[MemoryChange], who: Who) -> str:
    """Describe the newest of `commits`, which are of one run; `changes` are its own."""
    commit = commits[0]
    what, _, rest = commit.subject.partition(": ")
    task = next(iter(commit.trailers.get(TASK, ())), "")
    is_by_hand = who in {"owner", "other"} and not task and what != "config" and "Quaid-Fact" not in commit.trailers
    if RUN in commit.trailers and task != NIGHT and rest:  # its merge is gone, by a rebase
        return f"night: {rest}" + (f" and {len(commits) - 1} more" if len(commits) > 1 else "")
    if task == UNDO:
        meaning = rest.removeprefix("undo ").removeprefix("undo: ")
        return f"{'brought back' if rest.startswith('undo: ') else 'took back'}: {meaning}"
    if what in _DONE and rest and not is_by_hand:
        return f"{_DONE[what]} {rest}"
    if what in _OF_TURNS and all(change.kind == Kind.EPISODE for change in changes):
        return f"{_OF_TURNS[what]} {rest}"
    if what == "restore":
        changes = [replace(change, how="restored") if change.how == "learned" else change for change in changes]
    meaning = ", ".join(_list_meanings(changes, "edited" if is_by_hand else "changed"))
    if is_by_hand and meaning:
        return f"{meaning} ({commit.subject})"
    return meaning or commit.subject


def _list_meanings(changes: Sequence[MemoryChange], changed: str) -> Iterator[str]:
    """What `changes` come to, sort by sort; `changed` is the word for having changed a note."""
    facts = [change for change in changes if change.kind == Kind.FACT]
    learned = {name: fact for fact in facts if fact.how == "learned" for name in (fact.id, note_name(fact.path))}
    gone = [fact for fact in facts if fact.how == "superseded" and fact.by is not None]
    pairs = [(fact, new) for fact in gone if (new := learned.get(note_name(fact.by or "")))]
    paired = {id(change) for pair in pairs for change in pair}
    yield from _phrase("replaced", [f"{quote(old.text)} with {quote(new.text)}" for old, new in pairs], "fact")
    # Those that were only confirmed.
    confirmed = [
        fact for fact in facts if fact.was is None and any(each.startswith("confirmations ") for each in fact.details)
    ]
    yield from _phrase("confirmed", [quote(fact.text) for fact in confirmed], "fact")
    for how, verb in _OF_FACTS.items():
        named = []
        for fact in facts:
            if fact.how == how and id(fact) not in paired and fact not in confirmed:
                reworded = f"{quote(fact.was)} to " if fact.was is not None else ""
                details = f" ({', '.join(fact.details)})" if how == "changed" and fact.details and not reworded else ""
                named.append(f"{reworded}{quote(fact.text)}{details}")
        yield from _phrase(verb, named, "fact")
    for kind, verbs, noun in (
        (Kind.ENTITY, _OF_NOTES, "entity"),
        (Kind.EPISODE, _OF_EPISODES, "conversation"),
        (Kind.REVIEW, _OF_QUESTIONS, "question"),
        (None, {**_OF_NOTES, "changed": changed}, "note"),
    ):
        special = {Kind.FACT, Kind.ENTITY, Kind.EPISODE, Kind.REVIEW}
        those = [change for change in changes if (change.kind == kind if kind else change.kind not in special)]
        for how, verb in verbs.items():
            meaning = [change for change in those if change.how == how]
            names = [each.text if each.kind == Kind.ENTITY else each.path.rsplit("/", 1)[-1] for each in meaning]
            yield from _phrase(verb, names, noun)


def _phrase(verb: str, named: Sequence[str], noun: str) -> Iterator[str]:
    if not named:
        return
    if noun in {"conversation", "question"}:
        things = f"a {noun}" if len(named) == 1 else f"{len(named):,} {noun}s"
    elif len(named) > MAX_NAMED:
        things = f"{len(named):,} {noun.removesuffix('y')}{'ies' if noun.endswith('y') else 's'}"
    else:
        things = " and ".join(named)
    yield f"{verb} {things}"
