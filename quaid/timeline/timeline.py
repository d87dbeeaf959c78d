"""The memory over time: the façade of this room. It reads the history, asks past indexes and writes what is undone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from quaid.capture.writer import Writer
from quaid.history.authorship import JANITOR, Authors
from quaid.model import Commit, Recall
from quaid.recall.options import RecallOptions
from quaid.timeline import log, states, undo
from quaid.timeline.branches import MemoryBranches
from quaid.timeline.changes import MemoryChange, compare, list_blobs, list_spans, read_sides
from quaid.timeline.states import AnswerChange, StateDiff
from quaid.timeline.undo import ChangeNotFoundError, Undone
from quaid.timeline.views import CommitViews
from quaid.vault import files

if TYPE_CHECKING:
    from quaid.capture.writer import WritePlan
    from quaid.history.vault_history import History
    from quaid.open_vault import OpenVault
    from quaid.recall.answers import Answers
    from quaid.recall.evaluation import EvalQuestion
    from quaid.timeline.bisect import Turn
    from quaid.timeline.log import LogEntry


class Timeline:
    """The history of one vault, as its owner looks at it and takes it back."""

    def __init__(self, vault: OpenVault, answers: Answers) -> None:
        self.vault = vault
        self._root = vault.root
        self._layout = vault.layout
        self._own = {vault.settings.git.email, JANITOR[1]}
        self._git_settings = vault.settings.git
        self._answers = answers

    @property
    def _git(self) -> History:
        return self.vault.git

    @property
    def branches(self) -> MemoryBranches:
        """The other memories in the same repository."""
        return MemoryBranches(self.vault)

    @property
    def views(self) -> CommitViews:
        """The commits, and the nights, as a page shows them."""
        return CommitViews(self.vault, self._answers)

    def log(self, limit: int, *, since: str | None = None, **which: Any) -> list[LogEntry]:
        """Return the newest `limit` commits in words; without `which` (as for `History.log`) a night is one of them."""
        git = self._git
        list_commits = partial(self._answers.log, since=since, **which)
        entries = log.list_entries(list_commits, limit, fold=not any(which.values()))
        return self._describe(git, entries)

    def tell(self, *commit_ids: str) -> list[LogEntry]:
        """Return commits in words; of one that is another owner's private matter not more than that."""
        git = self._git
        commits = {logged.commit.id: logged.commit for logged in git.read_commits(commit_ids)}
        seen = self._answers.see(commits.values())
        described = {entry.commit.id: entry for entry in self._describe(git, [[commit] for commit in seen])}
        return [described.get(commit_id) or log.hide(commits[commit_id]) for commit_id in commit_ids]

    def _describe(self, git: History, entries: list[list[Commit]]) -> list[LogEntry]:
        return log.describe(
            entries,
            git.read_commits(entry[0].id for entry in entries if len(entry[0].files) <= log.MAX_READ),
            git.read_blobs,
            Authors.of(self._git_settings, git.owner()),
            self._layout,
            self._may_see,
        )

    def commits_of(self, reference: str) -> list[Commit]:
        """The commits of a run of the janitor's, or one commit, newest first.

        Raises:
            BadInputError: there is no such run or commit.
        """
        return [logged.commit for logged in reversed(undo.find_commits(self._git, reference))]

    def undo(self, reference: str | None = None, *, anybodys: bool = False, dry_run: bool = False) -> Undone:
        """Take back a run, a commit, or without `reference` the last change that Quaid made, but for what was changed
        since. What the janitor decided is not proposed again.

        Raises:
            BadInputError: there is no such thing, it is not Quaid's (but `anybodys` may be undone), or all of it was
                changed since: nothing was done.
        """
        from quaid.capture.writer import WritePlan, WriteResult

        git = self._git
        found = undo.find_commits(git, reference or undo.find_last(git, self._own))
        commits = tuple(logged.commit for logged in reversed(found))
        if not self._answers.see(commits):
            raise ChangeNotFoundError(reference or "")
        undo.check_undoable(found, () if anybodys else self._own, git.boundary)

        def plan() -> WritePlan:
            versions = undo.read_versions(git, found)
            edits, stays = undo.plan_undo(versions, undo.Present(self.vault, found), is_night=undo.is_run(found))
            seen = [path for path in stays if self._may_see(path, files.read_note(self._root, path))]
            remaining = {path: stays[path] for path in seen}
            if stays and not edits:
                raise undo.refusal_of(git, remaining, versions, found)
            before = {edit.rel_path: edit.before for edit in edits if edit.before is not None}
            after = {edit.rel_path: edit.after for edit in edits if edit.after is not None}
            changes = [asdict(change) for change in compare(before, after, self._layout, self._may_see)]
            return WritePlan(
                WriteResult(commits[0].id, "", "undone"), edits, undo.undo_message(commits),
                {"kept": remaining, "changes": changes},
            )  # fmt: skip

        key = f"undo {' '.join(commit.id for commit in commits)}"
        done = plan() if dry_run else Writer(self.vault).write(key, plan, by_owner=True)
        if done.written.commit:
            self.vault.catch_up()
        changes = tuple(MemoryChange(**change) for change in done.details["changes"])
        return Undone(commits, done.written.commit, changes, done.details["kept"], done.written.left)

    def diff(self, span: str, now: datetime | None = None) -> StateDiff:
        """Return what the memory gained, lost and changed from one state to another: `A..B`, commits or days; without
        B up to the files as they are.

        Raises:
            UsageError, RevisionError: there is no such commit or day.
        """
        before, after = states.find_span(self._git.revisions, span, now or datetime.now(UTC))
        sides = states.read_states(self._git, self._root, before, after)
        changes = compare(*sides, self._layout, self._may_see, self.vault.show_progress)
        return StateDiff(before, after, tuple(changes))

    def diff_answers(self, diff: StateDiff, questions: Sequence[EvalQuestion], limit: int) -> list[AnswerChange]:
        """Return what each question gains and loses from one state to the other. No model is asked."""
        from quaid.recall.evaluation import list_targets

        index, found = self.vault.index(), []
        for number, question in enumerate(questions):
            self.vault.show_progress("Asking", number, len(questions))
            old = self.ask(question.text, limit, diff.before.id).hits if diff.before else ()
            new = self.ask(question.text, limit, diff.after.id if diff.after else None).hits
            targets = {name: list_targets(index, name) for name in question.expected}
            found.append(states.compare_answers(question, old, new, targets))
        return found

    def bisect(self, query: str, expected: str, span: str = "", limit: int = states.ANSWERS) -> Turn:
        """Return the commit since which the answer to `query` has, or has no longer, the note that `expected` names or
        the text that it is. `span` is as for `diff`, by default the whole history.

        Raises:
            UsageError, RevisionError: there is no such commit or day, or no commit at all.
        """
        from quaid.timeline.bisect import Bisection, Turn

        git = self._git
        first, last = states.find_span(git.revisions, span, datetime.now(UTC)) if span else (None, None)
        newest = last or git.revisions.find("HEAD")
        commits = git.list_path(newest.id, first.id if first else None)
        with self.vault.pasts.discarding():
            bisection = Bisection(self, query, expected, commits, limit)
            number = bisection.find_turn()
            is_there = bisection.has(len(commits) - 1)
        asked = len(bisection.answers)
        if number is None:
            return Turn(is_there, asked, len(commits))
        spans = list_spans(git.read_commits([commits[number]])[0])
        changes = compare(*read_sides(spans, git.read_blobs(list_blobs(spans))), self._layout, self._may_see)
        return Turn(is_there, asked, len(commits), self.tell(commits[number])[0], tuple(changes))

    def ask(self, query: str, limit: int, commit_id: str | None) -> Recall:
        """Return the answer to a question at a commit, or now; no model is asked."""
        options = RecallOptions(limit=limit, depth="fast")
        return self._answers.recall(query, options, as_of=commit_id, keep=False)

    def _may_see(self, path: str, data: bytes | None) -> bool:
        return self.views.may_see(path, data or b"")
