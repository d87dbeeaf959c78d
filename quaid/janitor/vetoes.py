"""Vetoes: what the owner has taken back, read from the history: by `quaid janitor undo`, by hand, or by a refusal.

Nothing here goes by the ids of commits alone: a rebase changes them, a shallow clone does not have them. What Quaid
does names the keys of its decisions. What the owner does, a `git revert` for example, is known by its change: it takes
away the lines that a decision has brought and brings those that it has taken away.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from quaid.history.branches import VaultCommit
from quaid.janitor import questions
from quaid.janitor.task_context import Veto
from quaid.model import Commit
from quaid.vault.ledger import USAGE_DIR

TASK, RUN, DECISION, CLIENT = "Quaid-Task", "Quaid-Run", "Quaid-Decision", "Quaid-Client"
REVERTS, VETO, ALLOW = "Quaid-Reverts", "Quaid-Veto", "Quaid-Allow"
REVIEW = "review"
TYPED = frozenset({REVIEW, "config", "dispute", "undo", "merge"})
"""Tasks that carry out a person's own word: they are committed in that person's name."""
MAX_EXAMPLES = 8
"""The maximum of vetoes of one task, for its prompt."""
_REVERTED = re.compile(r"This reverts commit ([0-9a-f]{7,64})", re.IGNORECASE)
_NAMED = re.compile(rf"^({VETO}|{ALLOW}): *(\w+) ([0-9a-f]{{16}})$", re.MULTILINE)
_QUESTION = re.compile(rf"(?:.*/)?{questions.FOLDER}/(?:\w+-[0-9a-f]{{8}}|knowledge-gaps)\.md", re.DOTALL)
_COUNTERS = re.compile(rf"(?:.*/)?{USAGE_DIR}/[^/]+\.tsv", re.DOTALL)

Key = tuple[str, str]
"""Task and key of a decision."""
Blobs = tuple[str | None, str | None]
ReadBlobs = Callable[[Iterable[str]], Mapping[str, bytes]]


def is_byproduct(rel_path: str) -> bool:
    """Return whether a file only comes along with decisions: a question, or this device's counters."""
    return asks(rel_path) or is_counter(rel_path)


def is_counter(rel_path: str) -> bool:
    """Return whether a file counts the recalls of one device."""
    return _COUNTERS.fullmatch(rel_path) is not None


def asks(rel_path: str) -> bool:
    """Return whether a file is a question to the owner."""
    return _QUESTION.fullmatch(rel_path) is not None


def trailers_of_undoing(undone: Iterable[Commit]) -> list[tuple[str, str]]:
    """The trailers of the commit that takes back `undone`, so that it is understood wherever these are not."""
    named = ((key, is_vetoed) for commit in undone for key, is_vetoed in _effect_in_trailers(commit).items())
    return [(ALLOW if is_vetoed else VETO, " ".join(key)) for key, is_vetoed in dict(named).items()]


def read_vetoes(
    log: Sequence[VaultCommit], own: Collection[str], boundary: Collection[str], read_blobs: ReadBlobs
) -> list[Veto]:
    """All vetoes that stand, newest first; one that was itself taken back does not.

    `log` has parents before children. `own` are Quaid's e-mail addresses. Commits of `boundary`, where a shallow clone
    ends, seem to bring all there is: what they change says nothing.
    """
    entries = list(_follow_renames(log, boundary))
    return _Reader(own, _Lines(entries, own, read_blobs)).read(entries)


class _LoggedChange(NamedTuple):
    """A commit with its change by path, as the files were called when they were first seen."""

    commit: Commit
    change: Mapping[str, Blobs]


@dataclass(slots=True)
class _Action:
    """Decisions by key, made (False) or vetoed (True), and the change that did it."""

    effect: dict[Key, bool] = field(default_factory=dict)
    change: dict[str, Blobs] = field(default_factory=dict)

    def add(self, effect: Mapping[Key, bool], change: Mapping[str, Blobs]) -> None:
        self.effect |= effect
        for path, (before, after) in change.items():
            self.change[path] = (self.change[path][0] if path in self.change else before, after)

    @property
    def main_paths(self) -> Collection[str]:
        """The paths that it is about, by-products aside."""
        return [path for path in self.change if not is_byproduct(path)] or self.change.keys()


class _Reader:
    """Reads the history once. A night is an action beside those of its commits: it may be taken back as a whole."""

    def __init__(self, own: Collection[str], lines: _Lines) -> None:
        self._own = own
        self._lines = lines
        self._actions: dict[str, _Action] = {}
        self._nights: dict[str, _Action] = {}
        self._at: dict[str, list[_Action]] = {}
        self._vetoes: dict[Key, Veto] = {}
        self._about: dict[Key, Commit] = {}

    def read(self, entries: Iterable[_LoggedChange]) -> list[Veto]:
        for entry in entries:
            commit = entry.commit
            effect = self._effect_of(entry)
            self._remember(entry, effect)
            for key, is_vetoed in effect.items():
                self._vetoes.pop(key, None)
                if is_vetoed:
                    about = self._about.get(key, commit)
                    self._vetoes[key] = Veto(*key, about.subject, about.body)
                else:
                    self._about[key] = commit
        return list(reversed(self._vetoes.values()))

    def _effect_of(self, entry: _LoggedChange) -> dict[Key, bool]:
        """The decisions that a commit makes, vetoes or allows."""
        commit = entry.commit
        if is_by_quaid(commit, self._own):  # its body quotes what a memory says, which may be anything
            return _effect_in_trailers(commit) or self._reverse(commit.trailers.get(REVERTS, ()))
        named = {(task, key): what == VETO for what, task, key in _NAMED.findall(commit.body)}
        actions = (action for path in entry.change for action in self._at.get(path, ()))
        # What takes back the change of an action takes it back, whatever else it does.
        reverted = _opposite(action for action in actions if self._lines.reverts(entry.change, action))
        return reverted | self._reverse(_REVERTED.findall(commit.body)) | _effect_in_trailers(commit) | named

    def _remember(self, entry: _LoggedChange, effect: Mapping[Key, bool]) -> None:
        commit = entry.commit
        run = next(iter(commit.trailers.get(RUN, ())), "") if is_by_quaid(commit, self._own) else ""
        night = self._nights.setdefault(run, _Action()) if run else None
        if night is not None and DECISION in commit.trailers:
            # A refusal of the owner's that it has carried out stays, even if the run fails.
            self._add(night, {key: False for key, is_vetoed in effect.items() if not is_vetoed}, entry.change)
        if effect:
            self._actions[commit.id] = _Action()
            self._add(self._actions[commit.id], effect, entry.change)
        elif night is not None and not entry.change:
            self._actions[commit.id] = night  # its merge

    def _add(self, action: _Action, effect: Mapping[Key, bool], change: Mapping[str, Blobs]) -> None:
        is_new = not action.change
        action.add(effect, change)
        if is_new and action.change:  # what takes it back changes all of its files, so one is enough to find it by
            self._at.setdefault(next(iter(action.main_paths)), []).append(action)

    def _reverse(self, ids: Iterable[str]) -> dict[Key, bool]:
        """The opposite of the actions that are named, as far as this history has them."""
        return _opposite(
            action for start in ids for commit_id, action in self._actions.items() if commit_id.startswith(start)
        )


class _Lines:
    """Lines that a change brings to a file and takes from it; the texts that may matter are read at once."""

    def __init__(self, entries: Sequence[_LoggedChange], own: Collection[str], read_blobs: ReadBlobs) -> None:
        decided = {path for entry in entries if DECISION in entry.commit.trailers for path in entry.change}
        others = [entry for entry in entries if not is_by_quaid(entry.commit, own)]
        shared = decided.intersection(path for entry in others for path in entry.change)
        pairs = (pair for entry in entries for path, pair in entry.change.items() if path in shared)
        self._texts = read_blobs({blob for pair in pairs for blob in pair if blob})
        self._known: dict[str | None, Counter[bytes]] = {None: Counter()}

    def reverts(self, change: Mapping[str, Blobs], action: _Action) -> bool:
        """Return whether `change` brings and takes all the lines that `action` has taken and brought, or more."""
        paths = action.main_paths
        if not paths or any(path not in change for path in paths):
            return False
        done = [self._differences(action.change[path]) for path in paths]
        undone = [self._differences(change[path]) for path in paths]
        return any(brought or taken for brought, taken in done) and all(
            brought <= also_taken and taken <= also_brought
            for (brought, taken), (also_brought, also_taken) in zip(done, undone, strict=True)
        )

    def _differences(self, pair: Blobs) -> tuple[Counter[bytes], Counter[bytes]]:
        """(lines brought, lines taken); a line that moves is neither."""
        before, after = map(self._count, pair)
        return after - before, before - after

    def _count(self, blob: str | None) -> Counter[bytes]:
        if blob not in self._known:
            lines = map(bytes.rstrip, self._texts.get(blob or "", b"").splitlines())
            self._known[blob] = Counter(filter(None, lines))
        return self._known[blob]


def is_by_quaid(commit: Commit, own: Collection[str]) -> bool:
    """Return whether Quaid wrote the message: in its own name, with which its owner may commit as well, or in that of a
    person whose decision it carried out.
    """
    is_decision = RUN in commit.trailers or not TYPED.isdisjoint(commit.trailers.get(TASK, ()))
    return is_decision or (commit.email in own and any(name.startswith("Quaid-") for name in commit.trailers))


def _effect_in_trailers(commit: Commit) -> dict[Key, bool]:
    """The decisions that the trailers of a commit say were made, vetoed or allowed."""
    task = next(iter(commit.trailers.get(TASK, ())), "")
    told = {(task, key): False for key in commit.trailers.get(DECISION, ())}
    for name, is_vetoed in ((VETO, True), (ALLOW, False)):
        named = (value.partition(" ") for value in commit.trailers.get(name, ()))
        told |= {(about, key): is_vetoed for about, _, key in named}
    return told


def _opposite(actions: Iterable[_Action]) -> dict[Key, bool]:
    return {key: not is_vetoed for action in actions for key, is_vetoed in action.effect.items()}


def _follow_renames(log: Iterable[VaultCommit], boundary: Collection[str]) -> Iterator[_LoggedChange]:
    first: dict[str, str] = {}
    for logged in log:
        change: dict[str, Blobs] = {}
        for file in logged.changes if logged.commit.id not in boundary else ():
            if file.source is not None:
                first[file.path] = first.get(file.source, file.source)
            else:
                change[first.get(file.path, file.path)] = (file.befores[0], file.after)
        yield _LoggedChange(logged.commit, change)
