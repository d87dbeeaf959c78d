"""Vetoes: what the owner has undone, read from the history: by `quaid janitor undo`, by hand, or by a refusal.

Ids of commits alone are not enough: a rebase changes them, and a shallow clone lacks them. Quaid's own commits name the
keys of their decisions. A commit of the owner, for example a `git revert`, is recognised by its change: it removes the
lines that a decision has added and adds the lines that it has removed.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from quaid.history.vault_history import History, VaultCommit
from quaid.janitor import questions
from quaid.janitor.task_context import Veto
from quaid.model import Commit

TASK, RUN, DECISION = "Quaid-Task", "Quaid-Run", "Quaid-Decision"
CLIENT, HOST = "Quaid-Client", "Quaid-Host"
REVERTS, VETO, ALLOW = "Quaid-Reverts", "Quaid-Veto", "Quaid-Allow"
REVIEW = "review"
TYPED = frozenset({REVIEW, "config", "cut", "dispute", "undo", "merge"})
"""Tasks that carry out a person's explicit decision: they are committed in that person's name."""
MAX_EXAMPLES = 8
"""Vetoes of one task that its prompt shows."""
_REVERTED = re.compile(r"This reverts commit ([0-9a-f]{7,64})", re.IGNORECASE)
_NAMED = re.compile(rf"^({VETO}|{ALLOW}): *(\w+) ([0-9a-f]{{16}})$", re.MULTILINE)
_QUESTION = re.compile(rf"(?:.*/)?{questions.FOLDER}/(?:\w+-[0-9a-f]{{8}}|knowledge-gaps)\.md", re.DOTALL)

Key = tuple[str, str]
"""Task and key of a decision."""
Change = Mapping[str, tuple[str | None, str | None]]
"""The blobs before and after, by path, as the file was called when it was first seen."""


def asks(rel_path: str) -> bool:
    """Return whether a file is a question to the owner."""
    return _QUESTION.fullmatch(rel_path) is not None


def is_by_quaid(commit: Commit, own: Collection[str]) -> bool:
    """Return whether Quaid wrote the message: in its own name, with which its owner may commit as well, or in that of a
    person whose decision it carried out.
    """
    is_decision = RUN in commit.trailers or not TYPED.isdisjoint(commit.trailers.get(TASK, ()))
    return is_decision or (commit.email in own and any(name.startswith("Quaid-") for name in commit.trailers))


def trailers_of_undoing(undone: Iterable[Commit], opened: Collection[str]) -> list[tuple[str, str]]:
    """Return the trailers of the commit that undoes `undone`, for clones without it; none vetoes a key in `opened`."""
    named = {key: is_vetoed for commit in undone for key, is_vetoed in _read_trailers(commit).items()}
    return [(ALLOW if is_vetoed or key[1] in opened else VETO, " ".join(key)) for key, is_vetoed in named.items()]


def read_vetoes(log: Sequence[VaultCommit], own: Collection[str], history: History) -> list[Veto]:
    """Return the vetoes that are in force, newest first; one that was itself undone is not.

    `log` has parents before children; `own` are Quaid's e-mail addresses.
    """
    reader = _Reader(log, own, history)
    vetoes: dict[Key, Veto] = {}
    about: dict[Key, Commit] = {}
    for commit, change in reader.entries:
        for key, is_vetoed in reader.read(commit, change).items():
            vetoes.pop(key, None)
            if is_vetoed:
                decided = about.get(key, commit)
                vetoes[key] = Veto(*key, decided.subject, decided.body)
            else:
                about[key] = commit
    return list(reversed(vetoes.values()))


@dataclass(slots=True)
class _Action:
    """Decisions by key, made (False) or vetoed (True), and the change that did it."""

    effect: dict[Key, bool] = field(default_factory=dict)
    change: dict[str, tuple[str | None, str | None]] = field(default_factory=dict)

    @property
    def main_paths(self) -> Collection[str]:
        """The paths that it is about, without questions."""
        return [path for path in self.change if not asks(path)] or self.change.keys()


class _Reader:
    """Reads the history once. A run is an action in addition to those of its commits: it may be undone as a whole."""

    def __init__(self, log: Sequence[VaultCommit], own: Collection[str], history: History) -> None:
        self.entries: list[tuple[Commit, Change]] = []
        first: dict[str, str] = {}  # the name that a file had first, by its later ones
        for logged in log:
            change: dict[str, tuple[str | None, str | None]] = {}
            # The commits where a shallow clone ends seem to add everything.
            for file in logged.changes if logged.commit.id not in history.boundary else ():
                if file.old_path is not None:
                    first[file.path] = first.get(file.old_path, file.old_path)
                else:
                    change[first.get(file.path, file.path)] = (file.befores[0], file.after)
            self.entries.append((logged.commit, change))
        self._own = own
        self._actions: dict[str, _Action] = {}
        self._runs: dict[str, _Action] = {}
        self._by_path: dict[str, list[_Action]] = {}
        # The texts that may matter, read at once: of files that a decision and somebody else have changed.
        decided = {path for commit, change in self.entries if DECISION in commit.trailers for path in change}
        others = {path for commit, change in self.entries if not is_by_quaid(commit, own) for path in change}
        pairs = (pair for _, change in self.entries for path, pair in change.items() if path in decided & others)
        self._texts = history.runner.read_blobs({blob for pair in pairs for blob in pair if blob})
        self._lines: dict[str | None, Counter[bytes]] = {None: Counter()}

    def read(self, commit: Commit, change: Change) -> dict[Key, bool]:
        """Return the decisions that a commit makes, vetoes or allows, and store it for those that undo it."""
        is_own = is_by_quaid(commit, self._own)
        if is_own:  # its body quotes a memory, which may say anything
            effect = _read_trailers(commit) or self._reverse(commit.trailers.get(REVERTS, ()))
        else:
            actions = (action for path in change for action in self._by_path.get(path, ()))
            # A commit that reverses the change of an action undoes it, whatever else it does.
            effect = _opposite(action for action in actions if self._reverts(change, action))
            effect |= self._reverse(_REVERTED.findall(commit.body)) | _read_trailers(commit)
            effect |= {(task, key): what == VETO for what, task, key in _NAMED.findall(commit.body)}
        run = next(iter(commit.trailers.get(RUN, ())), "") if is_own else ""
        of_run = self._runs.setdefault(run, _Action()) if run else None
        if of_run is not None and DECISION in commit.trailers:
            # A refusal of the owner that the run has carried out stays, even if the run fails.
            self._extend(of_run, {key: False for key, is_vetoed in effect.items() if not is_vetoed}, change)
        if effect:
            self._actions[commit.id] = _Action()
            self._extend(self._actions[commit.id], effect, change)
        elif of_run is not None and not change:
            self._actions[commit.id] = of_run  # its merge
        return effect

    def _extend(self, action: _Action, effect: Mapping[Key, bool], change: Change) -> None:
        is_new = not action.change
        action.effect |= effect
        for path, (before, after) in change.items():
            action.change[path] = (action.change[path][0] if path in action.change else before, after)
        if is_new and action.change:  # a commit that undoes it changes all of its files, so one is enough to find it by
            self._by_path.setdefault(next(iter(action.main_paths)), []).append(action)

    def _reverse(self, ids: Iterable[str]) -> dict[Key, bool]:
        """Return the opposite of the named actions, as far as this history has them."""
        return _opposite(
            action for start in ids for commit_id, action in self._actions.items() if commit_id.startswith(start)
        )

    def _reverts(self, change: Change, action: _Action) -> bool:
        """Return whether `change` adds and removes all lines that `action` has removed and added, or more."""
        paths = action.main_paths
        if not paths or any(path not in change for path in paths):
            return False
        done = [self._differences(*action.change[path]) for path in paths]
        undone = [self._differences(*change[path]) for path in paths]
        return any(added or removed for added, removed in done) and all(
            added <= also_removed and removed <= also_added
            for (added, removed), (also_added, also_removed) in zip(done, undone, strict=True)
        )

    def _differences(self, before: str | None, after: str | None) -> tuple[Counter[bytes], Counter[bytes]]:
        """Return the lines that were added, and those that were removed; a line that moves is neither."""
        for blob in (before, after):
            if blob not in self._lines:
                lines = map(bytes.rstrip, self._texts.get(blob or "", b"").splitlines())
                self._lines[blob] = Counter(filter(None, lines))
        return self._lines[after] - self._lines[before], self._lines[before] - self._lines[after]


def _read_trailers(commit: Commit) -> dict[Key, bool]:
    """Return the decisions that a commit made, vetoed or allowed, by its trailers."""
    task = next(iter(commit.trailers.get(TASK, ())), "")
    found = {(task, key): False for key in commit.trailers.get(DECISION, ())}
    for name, is_vetoed in ((VETO, True), (ALLOW, False)):
        named = (value.partition(" ") for value in commit.trailers.get(name, ()))
        found |= {(about, key): is_vetoed for about, _, key in named}
    return found


def _opposite(actions: Iterable[_Action]) -> dict[Key, bool]:
    return {key: not is_vetoed for action in actions for key, is_vetoed in action.effect.items()}
