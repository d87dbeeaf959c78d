"""One night: the tasks in their order in a worktree of their own, then one merge into the owner's branch.

A decision is carried out if the policy admits it. Nobody sees anything of it before the merge, and the merge holds only
what still fits the owner's files.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from quaid.errors import NoteChangedError, QuaidError, UsageError
from quaid.history.authorship import JANITOR, Authors
from quaid.history.branches import last_written
from quaid.history.signatures import Ranking
from quaid.index import documents
from quaid.index.facts import LivingFact, list_living
from quaid.janitor import night_merge, questions, removal_guard
from quaid.janitor.decision import CONFLICT, DISPUTE, Decision, WaitingDecisions
from quaid.janitor.disputes import decide_answered, find_disputed
from quaid.janitor.night_commits import (
    NightCommit,
    message_of,
    net_edits,
    summary_of,
    trailers_of,
    without_paths,
)
from quaid.janitor.pairs import find_asked_pair
from quaid.janitor.policy import Policy
from quaid.janitor.questions import Question
from quaid.janitor.run_report import RunReport
from quaid.janitor.task_context import TaskContext, Veto
from quaid.janitor.tasks import TASKS, Task
from quaid.janitor.vetoes import VETO, asks
from quaid.janitor.worktree import Worktree, clear_worktrees, janitor_lock, open_worktree
from quaid.local.runs import Judgements
from quaid.model import Edit, Message
from quaid.recall.origins import hosts_of, list_doubts
from quaid.settings import Settings
from quaid.sync.embedding import Embedding, Progress
from quaid.vault import transaction
from quaid.vault.layout import Layout

if TYPE_CHECKING:
    from quaid.history.vault_history import History
    from quaid.janitor.gate import Gate
    from quaid.janitor.project_docs import ProjectDocs
    from quaid.llm import Models
    from quaid.recall.records import RecallRecords

MAX_GAPS = 100
_CHOSEN = ("a", "b", "neither")
"""Answers to a question between two facts that `resolve` carries out."""
_RETIRING = frozenset({"merge", "supersede", CONFLICT})  # after these a fact is not what was asked about
_FINDS = {CONFLICT: find_asked_pair, DISPUTE: find_disputed}
"""The kinds of questions that close when a fact changes -> what finds the facts as they were asked about."""
_OVERLAPS = "another decision of this night has changed the same note"


@dataclass(frozen=True, slots=True)
class RunOptions:
    """`tasks` are names from the table; none means all. With `only_answers` no model is asked and nothing is decided:
    what the owner has answered is carried out.
    """

    tasks: tuple[str, ...] = ()
    dry_run: bool = False
    accept_removals: bool = False
    take_over: bool = False
    """Tidy here though another machine holds the lease."""
    only_answers: bool = False


@dataclass(frozen=True, slots=True)
class RunDependencies:
    """The parts that a run works with. `open_gate` puts the owner's own questions to a worktree; `housekeeping` does
    what the named tasks do that decide nothing, and returns sentences.
    """

    root: Path
    settings: Settings
    embedding: Embedding
    history: History
    models: Callable[[], Models | None]
    judgements: Judgements
    waiting: WaitingDecisions
    notes_before: int | None
    books: RecallRecords
    documents: ProjectDocs
    open_gate: Callable[[Path], Gate]
    housekeeping: Callable[[Collection[str]], list[str]]
    say: Callable[[str], None]
    progress: Progress


class Runner:
    """Carries out one run."""

    def __init__(self, dependencies: RunDependencies, options: RunOptions, run: str, now: datetime) -> None:
        self._dependencies = dependencies
        self._settings = dependencies.settings
        self._options = options
        self._now = now
        self._report = RunReport(run, now, options.dry_run)
        self._commits: list[NightCommit] = []
        self._gate: Gate | None = None
        self._written: Mapping[str, datetime] = {}
        self._deciders: Mapping[str, tuple[str, str]] = {}
        self._doubts: Mapping[str, str] = {}
        self._ranking: Ranking | None = None

    def run(self) -> RunReport:
        """Do what the tasks decide, and merge it.

        Raises:
            LockedError: another janitor is at work, or a rebase or merge of the owner does not end.
            JanitorStoppedError: the vault is not in a state to be tidied.
        """
        started = time.monotonic()
        dependencies, report, is_dry_run = self._dependencies, self._report, self._options.dry_run
        root, history, settings = dependencies.root, dependencies.history, self._settings
        names = self._options.tasks
        unknown = [name for name in names if name not in {task.name for task in TASKS}]
        if unknown:
            raise UsageError(f"There is no task {unknown[0]!r}. Tasks are: {', '.join(task.name for task in TASKS)}.")
        tasks = [task for task in TASKS if not names or task.name in names]
        with janitor_lock(self._dependencies.root):
            clear_worktrees(root, history)
            history.wait_until_ready(dependencies.say)
            if not is_dry_run:
                transaction.finish_killed(root, history, settings.git.wait_s)
                night_merge.commit_answers(root, history, settings.git.wait_s)
            base = removal_guard.check_branch(history)
            with open_worktree(root, report.run, base, settings, dependencies.embedding) as worktree:
                report.notes = documents.count(worktree.index())
                if not self._options.accept_removals:
                    removal_guard.check_size(
                        report.notes + len(history.revisions.list_left_out()), dependencies.notes_before
                    )
                if is_dry_run and (answered := night_merge.list_uncommitted_answers(root, history)):
                    worktree.commit(answered, night_merge.answers_message(answered))
                self._prepare(worktree)
                self._run_tasks(tasks, worktree)
                self._tell_stuck(tasks)
                self._write_questions(worktree)
                if report.changed:
                    worktree.sync()
                if report.changed and self._gate is not None:
                    report.lost = self._gate.find_lost({path for decision in report.done for path in decision.paths})
                if report.changed and not report.lost and is_dry_run:  # tell what a run would not merge
                    moved = night_merge.moved_paths(root, net_edits(self._commits))
                    self._drop(without_paths(self._commits, moved)[1])
                elif report.changed and not report.lost:
                    self._merge(worktree)
            if not is_dry_run:
                report.remarks += dependencies.housekeeping([task.name for task in tasks])
        report.took_s = time.monotonic() - started
        return report

    # -- before the tasks ----------------------------------------------------------------------------------------

    def _prepare(self, worktree: Worktree) -> None:
        history = self._dependencies.history
        log = history.branches.log()
        self._written = last_written(log)
        authors = Authors.of(self._settings.git, history.owner())
        self._deciders = {
            change.path: (logged.commit.author, logged.commit.email)
            for logged in log
            for change in logged.changes
            if asks(change.path)
        }
        hosts, quota = hosts_of(worktree.index()), self._settings.audit.facts_per_day
        self._doubts = list_doubts(log, authors, hosts, Layout.of(self._settings.vault), quota)
        self._ranking = Ranking(history, authors, worktree.base, self._settings.git.sign == "auto")
        self._policy = Policy(self._settings, history, log, worktree.base, self._report)
        if history.boundary:
            self._report.remarks.append(
                "The history of this clone is cut off: what you took back before that is not known. "
                "Fetch the rest with: git fetch --unshallow"
            )
        found = questions.list_questions(worktree.root, Layout.of(self._settings.vault))
        self._policy.questions |= {question.key: question for question in found}
        facts = list_living(worktree.index())
        for question in list(self._policy.questions.values()):
            is_vetoed = self._policy.is_vetoed(question.key)
            find = _FINDS.get(question.kind)
            if find is not None and not is_vetoed and find(facts, question) is None:
                self._remove_question(question, worktree, "no longer asked: a fact has changed")
            elif question.answer in _CHOSEN and not is_vetoed:
                self._policy.consents.add(question.key)
            elif question.answer == "yes" and not is_vetoed:
                self._carry_out_consent(question, worktree, facts)
            elif question.answer in (*_CHOSEN, "yes"):
                self._remove_question(question, worktree, "was undone")
            elif question.answer is not None:
                self._refuse(question, worktree)
        if self._commits:
            worktree.sync()

    def _carry_out_consent(self, question: Question, worktree: Worktree, facts: Sequence[LivingFact]) -> None:
        self._policy.consents.add(question.key)
        waiting = self._dependencies.waiting.get(question.key) or decide_answered(facts, question, worktree.read)
        fitted = [self._fitted(edit, worktree) for edit in waiting.edits] if waiting is not None else []
        edits = tuple(edit for edit in fitted if edit is not None)
        if waiting is not None and len(edits) == len(fitted):
            self._carry_out(replace(waiting, edits=edits, is_minor=False), worktree)
            self._report.answered.append(f"yes: {question.title}")

    def _fitted(self, edit: Edit, worktree: Worktree) -> Edit | None:
        """An edit that was planned on an earlier day as one of the note as it is now; None where they collide."""
        current = worktree.read(edit.rel_path)
        if current == edit.before:
            return edit
        if current is None or edit.before is None or edit.after is None:
            return None
        merged = self._dependencies.history.branches.merge(current, edit.before, edit.after)
        return Edit(edit.rel_path, current, merged) if merged is not None else None

    def _refuse(self, question: Question, worktree: Worktree) -> None:
        """Commit that the owner has said no, or that both are true, which later nights read as a veto."""
        task, key, title = question.task, question.key, question.title
        waiting = self._dependencies.waiting.get(key)
        said, subject = "The owner has said no.", f"not to {title}"
        if question.answer == "both":
            said, subject = "The owner has said that both are true.", f"both are true, to {title}"
        body = "\n\n".join(filter(None, [said, waiting.detail if waiting else ""]))
        trailers = ((VETO, f"{task} {key}"), *trailers_of(task, self._report.run))
        self._commit_removal(question, worktree, Message(f"janitor({task}): {subject}", body, trailers))
        self._policy.vetoes.append(Veto(task, key, title, body))
        self._report.answered.append(f"{question.answer}: {title}")

    def _remove_question(self, question: Question, worktree: Worktree, why: str) -> None:
        """Commit that a question is not asked any more: its owner has undone what they had said yes to, so that the
        note came back, or it is about something that has changed.
        """
        trailers = trailers_of(question.task, self._report.run)
        subject = f"janitor({question.task}): {question.title} {why}"
        self._commit_removal(question, worktree, Message(subject, "", trailers))
        self._report.closed += 1

    def _commit_removal(self, question: Question, worktree: Worktree, message: Message) -> None:
        edit = Edit(question.rel_path, question.data, None)
        removal = Decision(question.task, "answer", question.key, (edit,), question.title, "")
        self._commit(NightCommit((removal,), message, self._find_decider(question)), worktree)
        del self._policy.questions[question.key]

    # -- the tasks -----------------------------------------------------------------------------------------------

    def _run_tasks(self, tasks: Sequence[Task], worktree: Worktree) -> None:
        dependencies, report = self._dependencies, self._report
        models = dependencies.models()
        for number, task in enumerate(tasks):
            dependencies.progress("Tidying", number, len(tasks))
            if not task.module or not getattr(self._settings.systems, task.switch, True):
                continue
            if task.needs_model and models is None:
                report.waiting.append(task.name)
            else:
                try:
                    self._run_task(task, worktree, models)
                except QuaidError as error:
                    report.failed[task.name] = str(error)
        dependencies.progress("Tidying", len(tasks), len(tasks))
        if models is not None:
            report.usage = models.spent

    def _run_task(self, task: Task, worktree: Worktree, models: Models | None) -> None:
        """Carry out what the task decides, at once; at its end the minor decisions, in one commit for each kind."""
        done_before = len(self._commits)
        minor: dict[str, list[Decision]] = {}
        try:
            for decision in task.plan(self._context(task, worktree, models)):
                if not self._policy.admits(decision, worktree.index()):
                    continue
                if decision.is_minor:
                    minor.setdefault(decision.kind, []).append(decision)
                else:
                    self._carry_out(decision, worktree)
            for batch in minor.values():
                self._carry_out_batch(batch, worktree)
        finally:
            if len(self._commits) > done_before:
                worktree.sync()

    def _context(self, task: Task, worktree: Worktree, models: Models | None) -> TaskContext:
        dependencies, vetoes = self._dependencies, self._policy.vetoes
        judgements = dependencies.judgements
        return TaskContext(
            root=worktree.root,
            settings=self._settings,
            now=self._now,
            index=worktree.index(),
            records=dependencies.books,
            judgements=_ReadOnlyJudgements(judgements.path, self._now.date().isoformat())
            if self._options.dry_run
            else judgements,
            documents=dependencies.documents,
            models=models,
            vetoes=tuple(veto for veto in vetoes if veto.task == task.name),
            vetoed=frozenset(veto.key for veto in vetoes),
            done=frozenset(decision.key for decision in self._report.done),
            answered=self._policy.answered(),
            only_answers=self._options.only_answers,
            gaps=dependencies.books.gaps(MAX_GAPS)[0],
            written=self._written,
            doubts=self._doubts,
            ranking=self._ranking,
            report=self._report,
            progress=dependencies.progress,
        )

    # -- carrying out --------------------------------------------------------------------------------------------

    def _carry_out(self, decision: Decision, worktree: Worktree) -> None:
        question = self._policy.questions.pop(decision.key, None)
        if question is not None:  # its owner has said yes
            if question.kind == CONFLICT:
                self._report.answered.append(f"{question.answer}: {question.title}")
            decision = replace(decision, edits=(*decision.edits, Edit(question.rel_path, question.data, None)))
        try:
            if decision.edits:
                self._commit(NightCommit((decision,), author=self._find_decider(question)), worktree)
        except NoteChangedError:
            self._report.held_back.append((decision, _OVERLAPS))
        else:
            self._report.done.append(decision)

    def _find_decider(self, question: Question | None) -> tuple[str, str]:
        """Return whose decision is carried out: that of the person who answered the question, else the janitor's."""
        if question is None or question.answer is None:
            return JANITOR
        decider = self._deciders.get(question.rel_path, JANITOR)
        return decider if Authors(self._settings.git.email).is_by_hand(decider[1]) else JANITOR

    def _carry_out_batch(self, batch: Sequence[Decision], worktree: Worktree) -> None:
        fresh: list[Decision] = []
        taken: set[str] = set()
        for decision in batch:
            is_stale = any(worktree.read(edit.rel_path) != edit.before for edit in decision.edits)
            if is_stale or not taken.isdisjoint(decision.paths):
                self._report.held_back.append((decision, _OVERLAPS))
                continue
            fresh.append(decision)
            taken.update(decision.paths)
        if fresh:
            self._commit(NightCommit(tuple(fresh)), worktree)
            self._report.done += fresh

    def _commit(self, commit: NightCommit, worktree: Worktree) -> None:
        if self._gate is None and self._settings.janitor.gate:
            self._gate = self._dependencies.open_gate(worktree.root)
        worktree.commit(commit.edits, message_of(commit, self._report.run), commit.author)
        self._commits.append(commit)

    # -- after the tasks -----------------------------------------------------------------------------------------

    def _tell_stuck(self, tasks: Sequence[Task]) -> None:
        """Enter in the report what its owner has said yes to and what no longer fits the notes: the question stays."""
        names = {task.name for task in tasks}
        told = {decision.key for decision, _ in self._report.held_back}
        for key in sorted(self._policy.consents & self._policy.questions.keys() - told):
            waiting = self._dependencies.waiting.get(key)
            if waiting is not None and (self._options.only_answers or waiting.task in names):
                self._report.held_back.append((waiting, "its notes have changed since you were asked"))

    def _write_questions(self, worktree: Worktree) -> None:
        """One commit with a note in review/ for each thing to ask."""
        report = self._report
        made: list[Decision] = []
        retired = {fact for decision in report.done if decision.kind in _RETIRING for fact in decision.facts}
        place = Layout.of(self._settings.vault)
        for asked in list(report.asked):
            if not retired.isdisjoint(asked.facts):
                report.asked.remove(asked)
                report.held_back.append((asked, _OVERLAPS))
                continue
            path = questions.question_path(asked.kind, asked.key, place)
            if worktree.read(path) is not None:
                report.asked.remove(asked)
                continue
            text = questions.render_question(asked, self._now, worktree.read, place)
            made.append(replace(asked, edits=(Edit(path, None, text),)))
            if not report.is_dry_run:
                self._dependencies.waiting.put(asked)
        if made:
            subject = f"janitor: {len(made)} question{'s' * (len(made) > 1)} for you"
            body = "\n".join(f"- {decision.subject}" for decision in made)
            message = Message(subject, body, trailers_of("questions", report.run))
            self._commit(NightCommit(tuple(made), message), worktree)

    def _drop(self, dropped: Sequence[Decision]) -> None:
        keys, report = {decision.key for decision in dropped}, self._report
        report.held_back += [(decision, "you have changed the same note meanwhile") for decision in dropped]
        report.done = [decision for decision in report.done if decision.key not in keys]

    def _merge(self, worktree: Worktree) -> None:
        dependencies, report = self._dependencies, self._report
        self._make_branches(worktree)
        merged = night_merge.merge_night(
            dependencies.root, dependencies.history, worktree, self._commits, summary_of(report), report.run,
            self._settings.git,
        )  # fmt: skip
        report.commit = merged.commit
        self._drop(merged.dropped)
        report.remarks += [f"not committed, your own changes are in it: {path}" for path in merged.left]

    def _make_branches(self, worktree: Worktree) -> None:
        """Propose what is decided for other repositories. Killed between this and the merge, the next run finds the
        branch; a question stays while there can be none.
        """
        report = self._report
        waiting: set[str] = set()
        for decision in [decision for decision in report.done if decision.branch is not None]:
            try:
                report.remarks.append(self._dependencies.documents.propose(decision))
            except QuaidError as error:
                report.done.remove(decision)
                report.answered = [answer for answer in report.answered if answer != f"yes: {decision.subject}"]
                report.held_back.append((decision, str(error)))
                if not isinstance(error, NoteChangedError):
                    waiting.update(decision.paths)
        if waiting:
            self._commits, _ = without_paths(self._commits, waiting)
            night_merge.replay(worktree, self._commits, worktree.base, report.run)


class _ReadOnlyJudgements(Judgements):
    """Judgements that are not stored: for a run that only shows what it would do."""

    def add(self, task: str, verdicts: Mapping[str, str]) -> None:
        pass
