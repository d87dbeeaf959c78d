"""The memory over time: the façade of this room. It reads the history, asks past indexes and writes what is undone."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from quaid.capture.writer import WritePlan, Writer, WriteResult
from quaid.history.authorship import JANITOR, Authors
from quaid.history.revisions import Point
from quaid.index import references
from quaid.model import Commit, Recall, name_key
from quaid.open_vault import OpenVault
from quaid.recall.answers import Answers
from quaid.recall.evaluation import EvalQuestion, find_expected, list_targets
from quaid.recall.options import RecallOptions
from quaid.sync.embedding import Progress, ignore_progress
from quaid.text.zones import local_now
from quaid.timeline import log, states, undo
from quaid.timeline.branches import MemoryBranches
from quaid.timeline.changes import MemoryChange, compare, list_blobs, list_spans, read_sides
from quaid.timeline.log import CommitView
from quaid.timeline.states import AnswerChange
from quaid.timeline.undo import ChangeNotFoundError, Undone
from quaid.timeline.views import CommitViews
from quaid.vault import files


class Timeline:
    """The history of one vault, as its owner looks at it and takes it back."""

    def __init__(self, vault: OpenVault, answers: Answers) -> None:
        self.vault = vault
        self._root = vault.root
        self._git = vault.git
        self._layout = vault.layout
        self._own = {vault.settings.git.email, JANITOR[1]}
        self._answers = answers

    @property
    def branches(self) -> MemoryBranches:
        """The other memories in the same repository."""
        return MemoryBranches(self.vault)

    @property
    def views(self) -> CommitViews:
        """The commits, and the nights, as a page shows them."""
        return CommitViews(self.vault, self._answers)

    def log(self, limit: int, *, since: str | None = None, **which: Any) -> list[CommitView]:
        """Return the newest `limit` commits in words; without `which` (as for `History.log`) all of a run are one of
        them, its merge.
        """
        asked, is_folded = limit, not any(which.values())
        while True:
            found = self._answers.log(asked, since=since, **which)
            entries = log.group_by_run(found) if is_folded else [[commit] for commit in found]
            if len(entries) >= limit or len(found) < asked:
                return self._describe(entries[:limit])
            asked *= 4

    def tell(self, *commit_ids: str) -> list[CommitView]:
        """Return commits in words; of one that is another owner's private matter not more than that."""
        commits = {logged.commit.id: logged.commit for logged in self._git.read_commits(commit_ids)}
        seen = self._answers.see(commits.values())
        described = {view.commit.id: view for view in self._describe([[commit] for commit in seen])}
        return [described.get(commit_id) or log.hide(commits[commit_id]) for commit_id in commit_ids]

    def _describe(self, entries: list[list[Commit]]) -> list[CommitView]:
        """Return the entries of the log in words, each with the meaning of its first commit."""
        authors = Authors.of(self.vault.settings.git, self._git.owner())
        files = {entry[0].id: set(entry[0].files) for entry in entries}
        spans = {
            one.commit.id: {path: span for path, span in list_spans(one).items() if path in files[one.commit.id]}
            for one in self._git.read_commits(each for each, paths in files.items() if len(paths) <= log.MAX_READ)
            if len(one.changes) <= log.MAX_READ
        }
        blobs = self._git.runner.read_blobs(list_blobs(*spans.values()))
        views = []
        for entry in entries:
            changes = self._compare(*read_sides(spans.get(entry[0].id, {}), blobs))
            who = log.name_author(entry[0], authors)
            views.append(CommitView(entry[0], who, log.describe(entry, changes, who)))
        return views

    def commits_of(self, reference: str) -> list[Commit]:
        """The commits of a run of the janitor's, or one commit, newest first.

        Raises:
            BadInputError: there is no such run or commit.
        """
        return [logged.commit for logged in reversed(undo.find_commits(self._git, reference))]

    def undo(
        self, reference: str | None = None, *, anybodys: bool = False, dry_run: bool = False, reopens: bool = False
    ) -> Undone:
        """Take back a run, a commit, Quaid's last decision about a note, or without `reference` the last change that
        Quaid made, but for what was changed since. What the janitor decided is not proposed again, unless it
        `reopens` the question that the owner answered.

        Raises:
            BadInputError: there is no such thing, it is not Quaid's (but `anybodys` may be undone), or all of it was
                changed since: nothing was done.
        """
        git, part = self._git, ""
        try:
            found = undo.find_commits(git, reference or undo.find_last(git, self._own))
        except ChangeNotFoundError:
            named = [document for document, *_ in references.resolve(self.vault.visible_index(), reference or "")]
            found = undo.find_of_note(git, named[0].path, named[0].id, self._own) if len(named) == 1 else []
            if not found:
                raise
            is_shared = len(git.read_commits([found[0].commit.id])[0].changes) > len(found[0].changes)
            part = named[0].path if is_shared else ""
        commits = tuple(logged.commit for logged in reversed(found))
        if not self._answers.see(commits):
            raise ChangeNotFoundError(reference or "")
        undo.check_undoable(found, () if anybodys else self._own, git.boundary)

        def plan() -> WritePlan:
            versions = undo.read_versions(git, found)
            edits, stays = undo.plan_undo(
                versions, undo.Present(self.vault, found), is_night=undo.is_run(found), reopens=reopens
            )
            seen = [path for path in stays if self.views.may_see(path, files.read_note(self._root, path) or b"")]
            remaining = {path: stays[path] for path in seen}
            if stays and not edits:
                raise undo.refusal_of(git, remaining, versions, found)
            before = {edit.rel_path: edit.before for edit in edits if edit.before is not None}
            after = {edit.rel_path: edit.after for edit in edits if edit.after is not None}
            details = {"kept": remaining, "changes": [asdict(change) for change in self._compare(before, after)]}
            result, message = WriteResult(commits[0].id, "", "undone"), undo.undo_message(commits, edits, part)
            return WritePlan(result, edits, message, details)

        key = f"undo {' '.join(commit.id for commit in commits)} {part}"
        done = plan() if dry_run else Writer(self.vault).write(key, plan, by_owner=True)
        if done.written.commit:
            self.vault.catch_up()
        changes = tuple(MemoryChange(**change) for change in done.details["changes"])
        return Undone(commits, done.written.commit, changes, done.details["kept"], done.written.left)

    def diff(
        self, span: str, now: datetime | None = None
    ) -> tuple[Point | None, Point | None, tuple[MemoryChange, ...]]:
        """Return two states, `A..B` as for `states.find_span`, and what the memory gained, lost and changed from one to
        the other.

        Raises:
            UsageError, RevisionError: there is no such commit or day.
        """
        before, after = states.find_span(self._git.revisions, span, now or local_now(self.vault.settings.timezone))
        files_of_states = states.read_states(self._git, self._root, before, after)
        return before, after, self._compare(*files_of_states, self.vault.show_progress)

    def diff_answers(
        self, before: Point | None, after: Point | None, questions: Sequence[EvalQuestion], limit: int
    ) -> list[AnswerChange]:
        """Return what each question gains and loses from one state to the other. No model is asked."""
        index, found = self.vault.index(), []
        for number, question in enumerate(questions):
            self.vault.show_progress("Asking", number, len(questions))
            old = self.ask(question.text, limit, before.id).hits if before else ()
            new = self.ask(question.text, limit, after.id if after else None).hits
            known, left = {hit.id for hit in old}, {hit.id for hit in new}
            was, now = set[str](), set[str]()
            for name in question.expected:
                paths = list_targets(index, name)
                was |= {name} if find_expected(old, name, paths) is not None else set()
                now |= {name} if find_expected(new, name, paths) is not None else set()
            change = AnswerChange(
                question,
                gained=tuple(hit for hit in new if hit.id not in known),
                lost=tuple(hit for hit in old if hit.id not in left),
                found=tuple(name for name in question.expected if name in now - was),
                missing=tuple(name for name in question.expected if name in was - now),
            )
            found.append(change)
        return found

    def bisect(
        self, query: str, expected: str, span: str = "", limit: int = states.ANSWERS
    ) -> tuple[bool, int, int, CommitView | None]:
        """Bisect for the last change of an answer. `span` is as for `diff`, by default the whole history.

        Returns:
            Whether the answer to `query` has the note that `expected` names, or the text that it is; how many of how
            many commits were queried; and the commit since which that is so, None where it was never seen otherwise.

        Raises:
            UsageError, RevisionError: there is no such commit or day, or no commit at all.
        """
        git = self._git
        first, last = (
            states.find_span(git.revisions, span, local_now(self.vault.settings.timezone)) if span else (None, None)
        )
        newest = last or git.revisions.find("HEAD")
        commits = git.list_path(newest.id, first.id if first else None)
        with self.vault.pasts.discarding():
            bisection = Bisection(self, query, expected, commits, limit)
            number = bisection.find_turn()
            is_there = bisection.has(len(commits) - 1)
        view = self.views.view(commits[number]) if number is not None else None
        return is_there, len(bisection.answers), len(commits), view

    def ask(self, query: str, limit: int, commit_id: str | None) -> Recall:
        """Return the answer to a question at a commit, or now; no model is asked."""
        options = RecallOptions(limit=limit, depth="fast")
        return self._answers.recall(query, options, as_of=commit_id, keep=False)

    def _compare(
        self, before: Mapping[str, bytes], after: Mapping[str, bytes], progress: Progress = ignore_progress
    ) -> tuple[MemoryChange, ...]:
        """Return what the files mean that the owner may see."""
        views, held = self.views, (*before.items(), *after.items())
        hidden = {path for path, data in held if not views.may_see(path, data)}
        return tuple(compare(before, after, self._layout, hidden, progress))


class Bisection:
    """Bisects the answers to `query` at `commits`, oldest first, for what is `expected` of them."""

    def __init__(self, timeline: Timeline, query: str, expected: str, commits: Sequence[str], limit: int) -> None:
        self._timeline, self._query, self._expected = timeline, query, expected
        self._commits, self._limit = commits, limit
        self._meant = list_targets(timeline.vault.visible_index(), expected)
        self.answers: dict[int, bool] = {}

    def find_turn(self) -> int | None:
        """Return the number of the commit since which the answer is as it is at the last one; None where it was never
        seen otherwise. States are tried back at growing distances, and at the beginning; of several turns one is found.
        """
        end = len(self._commits) - 1
        probes = [end - 2**power for power in range(end.bit_length())]
        start = next((each for each in (*probes, 0) if 0 <= each < end and self.has(each) != self.has(end)), None)
        if start is None:
            return None
        while end - start > 1:
            middle = (start + end) // 2
            if self.has(middle) == self.has(len(self._commits) - 1):
                end = middle
            else:
                start = middle
        return end

    def has(self, number: int) -> bool:
        """Return whether the answer at a commit has the expected note, or says the expected text."""
        if number not in self.answers:
            total = max(len(self.answers) + 1, 2 * len(self._commits).bit_length())
            self._timeline.vault.show_progress("Asking the past", len(self.answers), total)
            hits = self._timeline.ask(self._query, self._limit, self._commits[number]).hits
            text = name_key(self._expected)
            is_named = find_expected(hits, self._expected, self._meant) is not None
            self.answers[number] = is_named or any(text in name_key(hit.text) for hit in hits)
        return self.answers[number]
