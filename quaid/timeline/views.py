"""Commits, and nights as the commits of a run, as the one who asks may see them.

What another owner keeps private is left out, with whatever names or quotes it: a question about it, and the message of
a commit that changed it together with other notes.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from quaid.errors import QuaidError
from quaid.history.authorship import Authors
from quaid.history.vault_history import VaultCommit
from quaid.index import documents
from quaid.janitor.questions import read_question
from quaid.janitor.vetoes import REVERTS, RUN, TASK, asks
from quaid.model import Commit
from quaid.open_vault import OpenVault
from quaid.recall.answers import Answers
from quaid.recall.visibility import find_hidden_names, may_see, visible_paths, without_others
from quaid.timeline.changes import compare, list_blobs, list_spans, read_sides
from quaid.timeline.log import MAX_READ, NIGHT, CommitView, describe, hide, name_author
from quaid.timeline.undo import ChangeNotFoundError
from quaid.vault.layout import is_note_path

_ID = re.compile("[0-9a-f]{4,64}")
_FIRST_LOOK = 200
"""Commits among which nights are looked for first."""


class Night(NamedTuple):
    """The commits of a run, oldest first, without its merge; `merge` is that, None where a rebase took it away."""

    run: str
    commits: tuple[Commit, ...]
    merge: Commit | None = None


class CommitViews:
    """Reads the commits of one vault for the one who asks."""

    def __init__(self, vault: OpenVault, answers: Answers) -> None:
        self._vault = vault
        self._history = vault.git
        self._answers = answers
        self._settings = vault.settings.git
        self._layout = vault.layout

    def view(self, reference: str, first: int = 0, limit: int = MAX_READ) -> CommitView:
        """Return the commit of the owner's branch that an id means, with `limit` of its files from number `first` on.

        Raises:
            ChangeNotFoundError: there is none.
        """
        history = self._history
        try:
            commit_id = self._history.revisions.find(reference if _ID.fullmatch(reference) else "").id
        except QuaidError:
            raise ChangeNotFoundError(reference) from None
        found = history.read_commits([commit_id]) if history.has_adopted(commit_id) else []
        if not found:
            raise ChangeNotFoundError(reference)
        return self.view_all(found, first, limit)[0]

    def view_all(self, commits: Sequence[VaultCommit], first: int = 0, limit: int = MAX_READ) -> list[CommitView]:
        """Return each of `commits`, with `limit` of its files from number `first` on."""
        hidden = self._find_hidden(commits)
        authors = Authors.of(self._settings, self._history.owner())
        spans = [
            {path: span for path, span in sorted(list_spans(logged).items()) if path not in hidden}
            for logged in commits
        ]
        pages = [dict(islice(each.items(), first, first + limit)) for each in spans]
        blobs = self._history.runner.read_blobs(list_blobs(*pages))
        views = []
        for logged, whole, page in zip(commits, spans, pages, strict=True):
            commit = _narrow(logged, hidden)
            if commit is None:
                views.append(hide(logged.commit))
                continue
            before, after = read_sides(page, blobs)
            held = (*before.items(), *after.items())
            unseen = {path for path, data in held if not may_see(path, data, self._vault.owners, self._layout)}
            changes = compare(before, after, self._layout, unseen)
            who = name_author(commit, authors)
            what = describe([commit], changes, who) if commit.subject == logged.commit.subject else commit.subject
            moved = {path for change in logged.changes if change.old_path for path in (change.path, change.old_path)}
            files = {path: (before.get(path), after.get(path)) for path in page if path not in unseen | moved}
            more = max(0, len(whole) - first - limit)
            views.append(CommitView(commit, who, what, tuple(changes), files, more))
        return views

    def night(self, run: str) -> Night:
        """Return the night of a run, with the commits of it that may be seen.

        Raises:
            ChangeNotFoundError: the history knows none of this name.
        """
        found = self._group(self._list_commits(f"--grep=^{RUN}: {run}$")) if run.isalnum() else []
        if not found:
            raise ChangeNotFoundError(run)
        return found[0]

    def nights(self, limit: int) -> list[Night]:
        """Return the newest `limit` nights that the history knows, newest first, without those of which nothing may be
        seen.
        """
        asked = _FIRST_LOOK
        while True:
            commits = self._list_commits(f"-n{asked}", f"--grep=^{RUN}: ")
            found = self._group(commits)
            if len(found) > limit or len(commits) < asked:  # of the last one commits may be missing
                return found[:limit]
            asked *= 4

    def read(self, commits: Iterable[Commit]) -> list[VaultCommit]:
        """Return these commits with what they changed, in their order."""
        ids = [commit.id for commit in commits]
        found = {logged.commit.id: logged for logged in self._history.read_commits(ids)}
        return [found[commit_id] for commit_id in ids]

    def may_see(self, path: str, data: bytes) -> bool:
        """Return whether a file is not what another owner keeps private, nor a question about it."""
        names = _list_named(path, data)
        is_own = may_see(path, data, self._vault.owners, self._layout)
        return is_own and not (names and self._find_secret(names))

    def list_undone(self) -> dict[str, str]:
        """Return commit -> the commit that took it back, for those that are taken back still."""
        undone: dict[str, str] = {}
        for logged in reversed(self._list_commits(f"--grep=^{REVERTS}: ")):
            commit = logged.commit
            if commit.id not in undone:
                undone |= dict.fromkeys(commit.trailers.get(REVERTS, ()), commit.id)
        return undone

    def find_neighbours(self, commit_id: str) -> tuple[str | None, str | None]:
        """Return the commit before and the one after on the owner's line, None where there is none. One that came by a
        merge has neither.
        """
        ids = self._history.list_path("HEAD")[:-1]
        ids += [head] if (head := self._history.state().head) and head not in ids else []
        if commit_id not in ids:
            return None, None
        place = ids.index(commit_id)
        return ids[place - 1] if place else None, ids[place + 1] if place + 1 < len(ids) else None

    def _list_commits(self, *which: str) -> list[VaultCommit]:
        """Commits of the owner's branch, oldest first; none before the first one."""
        return self._history.log_changes(*which, "HEAD") if self._history.state().head else []

    def _group(self, commits: Sequence[VaultCommit]) -> list[Night]:
        """Return the nights that `commits` are of, newest first."""
        hidden = self._find_hidden(commits)
        nights: dict[str, list[Commit]] = {}
        merges: dict[str, Commit] = {}
        for logged in commits:
            commit = _narrow(logged, hidden)
            if commit is None:
                continue
            for run in commit.trailers.get(RUN, ()):
                if NIGHT in commit.trailers.get(TASK, ()):
                    merges[run] = commit
                else:
                    nights.setdefault(run, []).append(commit)
        return [Night(run, tuple(nights[run]), merges.get(run)) for run in sorted(nights, reverse=True)]

    def _find_hidden(self, commits: Iterable[VaultCommit]) -> set[str]:
        """Return the paths that another owner keeps private, now or, for what is gone, in one of `commits`; and of the
        questions about such notes.
        """
        spans = [list_spans(logged) for logged in commits]
        paths = {path for each in spans for path in each}
        whole, seen = self._vault.whole_index(), self._vault.visible_index()
        hidden = paths - set(visible_paths(paths, whole, seen))
        known = documents.find_paths(whole, paths)
        unknown = {path for path in paths - hidden if asks(path) or (is_note_path(path) and path not in known)}
        held = [(path, blob) for each in spans for path, span in each.items() if path in unknown for blob in span]
        texts = self._history.runner.read_blobs({blob for _, blob in held if blob})
        read = [(path, texts[blob]) for path, blob in held if blob in texts]
        hidden |= {path for path, data in read if not may_see(path, data, self._vault.owners, self._layout)}
        about = {path: _list_named(path, data) for path, data in read}
        secret = self._find_secret({name for names in about.values() for name in names})
        return hidden | {path for path, names in about.items() if not secret.isdisjoint(names)}

    def _find_secret(self, names: Collection[str]) -> set[str]:
        whole, seen = self._vault.whole_index(), self._vault.visible_index()
        return find_hidden_names(names, whole, seen, self._history, self._vault.owners, self._layout)


def _list_named(path: str, data: bytes) -> Sequence[str]:
    """The names of the notes that a question is about; none for any other note."""
    question = read_question(path, data) if asks(path) else None
    return question.about if question else ()


def _narrow(logged: VaultCommit, hidden: Collection[str]) -> Commit | None:
    """The commit without what another owner keeps private; None where nothing else is in it."""
    commit, paths = logged.commit, list_spans(logged).keys()
    if paths.isdisjoint(hidden):
        return commit
    shown = tuple(path for path in commit.files if path not in hidden)
    return without_others(commit, shown) if shown else None
