"""The memory over time: the façade of this room. It reads the history, asks past indexes and writes what is undone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cache, partial
from itertools import count
from typing import TYPE_CHECKING, Any

from quaid.capture.writer import Writer
from quaid.errors import GitError
from quaid.history.authorship import JANITOR, Authors
from quaid.history.revisions import TreeFile
from quaid.index import documents
from quaid.janitor.vetoes import REVIEW, RUN, TASK
from quaid.model import Commit, Recall
from quaid.recall.options import RecallOptions
from quaid.timeline import log, states, undo
from quaid.timeline.bisect import Turn, find_turn, is_found
from quaid.timeline.branches import MemoryBranches
from quaid.timeline.changes import MemoryChange, compare, list_blobs, list_spans, read_sides
from quaid.timeline.states import AnswerChange, StateDiff
from quaid.timeline.undo import ChangeNotFoundError, Present, Undone, Versions
from quaid.timeline.views import CommitViews
from quaid.vault import files, notes

if TYPE_CHECKING:
    from quaid.capture.writer import WritePlan
    from quaid.history.branches import VaultCommit
    from quaid.history.revisions import Point
    from quaid.history.vault_history import History
    from quaid.open_vault import OpenVault
    from quaid.recall.answers import Answers
    from quaid.recall.evaluation import EvalQuestion
    from quaid.timeline.log import LogEntry


class Timeline:
    """The history of one vault, as its owner looks at it and takes it back."""

    def __init__(
        self,
        vault: OpenVault,
        answers: Answers,
    ) -> None:
        self._vault = vault
        self._root = vault.root
        self._layout = vault.layout
        self._own = {vault.settings.git.email, JANITOR[1]}
        self._git_settings = vault.settings.git
        self._answers = answers

    @property
    def _git(self) -> History:
        return self._vault.git

    @property
    def branches(self) -> MemoryBranches:
        """The memories beside this one."""
        return MemoryBranches(self._vault)

    @property
    def views(self) -> CommitViews:
        """The commits, and the nights, as a page shows them."""
        return CommitViews(self._vault, self._answers)

    def log(self, limit: int, *, since: str | None = None, **which: Any) -> list[LogEntry]:
        """Return the newest `limit` commits in words; without `which` (as for `History.log`) a night is one of them."""
        git = self._git
        list_commits = partial(self._answers.log, since=since, **which)
        entries = log.list_entries(list_commits, limit, fold=not any(which.values()))
        return self._describe(git, entries)

    def tell(self, *commit_ids: str) -> list[LogEntry]:
        """Return commits in words; of one that is another owner's private matter not more than that."""
        git = self._git
        commits = {logged.commit.id: logged.commit for logged in git.branches.read_commits(commit_ids)}
        seen = self._answers.see(commits.values())
        told = {entry.commit.id: entry for entry in self._describe(git, [[commit] for commit in seen])}
        return [told.get(commit_id) or log.hide(commits[commit_id]) for commit_id in commit_ids]

    def _describe(self, git: History, entries: list[list[Commit]]) -> list[LogEntry]:
        return log.describe(
            entries,
            git.branches.read_commits(entry[0].id for entry in entries if len(entry[0].files) <= log.MAX_READ),
            git.branches.read_blobs,
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
            versions = self._read_versions(git, found)
            edits, stays = undo.plan_undo(versions, self._present(git, found), is_night=undo.is_run(found))
            seen = [path for path in stays if self._may_see(path, files.read_note(self._root, path))]
            kept = {path: stays[path] for path in seen}
            if stays and not edits:
                raise undo.refusal_of(git, kept, versions, found)
            before = {edit.rel_path: edit.before for edit in edits if edit.before is not None}
            after = {edit.rel_path: edit.after for edit in edits if edit.after is not None}
            changes = [asdict(change) for change in compare(before, after, self._layout, self._may_see)]
            return WritePlan(
                WriteResult(commits[0].id, "", "undone"), edits, undo.undo_message(commits),
                {"kept": kept, "changes": changes},
            )  # fmt: skip

        key = f"undo {' '.join(commit.id for commit in commits)}"
        done = plan() if dry_run else Writer(self._vault).write(key, plan, by_owner=True)
        if done.written.commit:
            self._vault.catch_up()
        changes = tuple(MemoryChange(**change) for change in done.details["changes"])
        return Undone(commits, done.written.commit, changes, done.details["kept"], done.written.left)

    def diff(self, span: str, now: datetime | None = None) -> StateDiff:
        """Return what the memory gained, lost and changed from one state to another: `A..B`, commits or days; without
        B up to the files as they are.

        Raises:
            UsageError, RevisionError: there is no such commit or day.
        """
        return self._compare(*states.find_span(self._git.revisions, span, now or datetime.now(UTC)))

    def compare_branches(self, one: str, other: str) -> StateDiff:
        """Return what the memory on the branch `one` has more, less and otherwise than on `other`.

        Raises:
            BadInputError: there is no such branch.
        """
        before, after = (self._git.revisions.find(self.branches.find(name).id) for name in (other, one))
        return self._compare(before, after)

    def _compare(self, before: Point | None, after: Point | None) -> StateDiff:
        sides = states.read_states(self._git, self._root, before, after)
        changes = compare(*sides, self._layout, self._may_see, self._vault.show_progress)
        return StateDiff(before, after, tuple(changes))

    def diff_answers(self, diff: StateDiff, questions: Sequence[EvalQuestion], limit: int) -> list[AnswerChange]:
        """Return what each question gains and loses from one state to the other. No model is asked."""
        from quaid.recall.evaluation import list_meant

        total, asked = 2 * len(questions), count(1)

        def asking(point: Point | None, is_present: bool) -> Callable[[str], Recall]:
            def ask(text: str) -> Recall:
                self._vault.show_progress("Asking", next(asked), total)
                if point is None and not is_present:
                    return Recall(text, ())
                return self._ask(text, limit, point.id if point else None)

            return ask

        sides = asking(diff.before, is_present=False), asking(diff.after, is_present=True)
        return states.compare_answers(questions, *sides, partial(list_meant, self._vault.index()))

    def bisect(self, query: str, expected: str, span: str = "", limit: int = states.ANSWERS) -> Turn:
        """Return the commit since which the answer to `query` has, or has no longer, the note that `expected` names or
        the text that it is. `span` is as for `diff`, by default the whole history.

        Raises:
            UsageError, RevisionError: there is no such commit or day, or no commit at all.
        """
        from quaid.recall.evaluation import list_meant

        git = self._git
        first, last = states.find_span(git.revisions, span, datetime.now(UTC)) if span else (None, None)
        newest = last or git.revisions.find("HEAD")
        commits = git.branches.list_path(newest.id, first.id if first else None)
        meant = list_meant(self._vault.index(), expected)
        answers: dict[str, bool] = {}

        def has(commit_id: str) -> bool:
            if commit_id not in answers:
                self._vault.show_progress(
                    "Asking the past", len(answers), max(len(answers) + 1, 2 * len(commits).bit_length())
                )
                answers[commit_id] = is_found(self._ask(query, limit, commit_id).hits, expected, meant)
            return answers[commit_id]

        with self._vault.pasts.discarding():
            hints: list[str] = []
            with suppress(GitError):  # a partial clone does not have all that commits changed
                hints = git.branches.find_touching(expected, newest.id)
            turned = find_turn(commits, hints, has)
        if turned is None:
            return Turn(has(commits[-1]), len(answers), len(commits))
        logged = git.branches.read_commits([turned[0]])[0]
        spans = list_spans(logged)
        changes = compare(*read_sides(spans, git.branches.read_blobs(list_blobs(spans))), self._layout, self._may_see)
        return Turn(turned[1], len(answers), len(commits), self.tell(turned[0])[0], tuple(changes))

    def _ask(self, query: str, limit: int, commit_id: str | None) -> Recall:
        options = RecallOptions(limit=limit, depth="fast")
        return self._answers.recall(query, options, as_of=commit_id, keep=False)

    def _read_versions(self, git: History, undone: list[VaultCommit]) -> dict[str, Versions]:
        spans = undo.changed_paths(undone)

        def read(side: int) -> dict[str, bytes]:
            wanted = [TreeFile(path, 0o100644, blob) for path, span in spans.items() if (blob := span[side])]
            return dict(git.revisions.read_files(wanted, filtered=True))

        before, after = read(0), read(1)
        return {path: Versions(before.get(path), after.get(path)) for path in spans}

    def _present(self, git: History, undone: list[VaultCommit]) -> Present:
        @cache
        def list_edited() -> frozenset[str]:
            later = git.branches.log("--no-merges", f"{undone[-1].commit.id}..HEAD")
            trailers = [(change.path, logged.commit.trailers) for logged in later for change in logged.changes]
            edited = {path for path, said in trailers if RUN not in said and REVIEW not in said.get(TASK, ())}
            return frozenset(edited.union(git.uncommitted()))

        return Present(lambda path: files.read_note(self._root, path), self._find_moved, list_edited)

    def _find_moved(self, path: str, data: bytes) -> str | None:
        """The path of the note that has the id which `data` has."""
        note_id = notes.parse_note(path, data, place=self._layout).id
        found = documents.find_documents(self._vault.whole_index(), "id = ?", (note_id,))
        return found[0].path if note_id != path and found else None

    def _may_see(self, path: str, data: bytes | None) -> bool:
        return self.views.may_see(path, data or b"")
