"""One run: the tasks in their order in a worktree, then one merge into the owner's branch.

A decision is carried out if the policy admits it. Nothing of it is visible before the merge, and the merge holds only
what still fits the owner's files.
"""

import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from quaid.docs.documentation import Documentation
from quaid.errors import NoteChangedError, QuaidError, UsageError
from quaid.history.authorship import JANITOR, Authors, Ranking
from quaid.history.vault_history import last_written
from quaid.index import documents
from quaid.index.documents import list_living
from quaid.janitor import asking, cleanup, commits, guards, questions
from quaid.janitor.commits import RunCommit, trailers_of
from quaid.janitor.decision import CONFLICT, CORRECT, RunReport, fact_evidence
from quaid.janitor.disputes import decide_answered
from quaid.janitor.policy import Policy
from quaid.janitor.questions import Question
from quaid.janitor.task_context import TaskContext, Veto
from quaid.janitor.tasks import TASKS, Task, core_notes, docs
from quaid.janitor.tasks.compare import find_pair_keys
from quaid.janitor.vetoes import VETO, asks
from quaid.janitor.worktree import Worktree, clear_worktrees, janitor_lock, open_worktree
from quaid.llm import Models
from quaid.local.runs import Decision, Decisions, Judgements
from quaid.model import Edit, Kind, Message
from quaid.open_vault import OpenVault
from quaid.place import LOCAL_FILE, VERSION
from quaid.recall.accounts import SourceHistory
from quaid.recall.records import RecallRecords
from quaid.text.zones import localise
from quaid.vault import notes, transaction

_CHOSEN = ("a", "b", "neither")
"""Answers to a question between two facts that `resolve` carries out."""
_RETIRING = frozenset({"merge", "supersede", CORRECT, CONFLICT})  # after these a fact is not what was asked about
_OVERLAPS = "another decision of this night has changed the same note"


class RunOptions(NamedTuple):
    """`tasks` are names from the table; none means all. `take_over` runs even if another machine holds the lease. With
    `only_answers` no model is called and nothing is decided: only the owner's answers are carried out.
    """

    tasks: tuple[str, ...] = ()
    dry_run: bool = False
    accept_removals: bool = False
    take_over: bool = False
    only_answers: bool = False


def select_tasks(options: RunOptions) -> list[Task]:
    """Return the tasks of a run in their order; UsageError: there is no task of one of the names."""
    unknown = [name for name in options.tasks if name not in {task.name for task in TASKS}]
    if unknown:
        raise UsageError(f"There is no task {unknown[0]!r}. Tasks are: {', '.join(task.name for task in TASKS)}.")
    return [task for task in TASKS if not options.tasks or task.name in options.tasks]


def run_tasks(
    vault: OpenVault, documentation: Documentation, options: RunOptions, report: RunReport, notes_before: int | None
) -> None:
    """Carry out the decisions of the tasks, and merge them. `notes_before` is the size of the vault at the last run.

    Raises:
        LockedError: another janitor is running, or a rebase or merge of the owner does not end.
        JanitorStoppedError: the vault is not in a state for a run.
    """
    started = time.monotonic()
    root, history, wait_s = vault.root, vault.git, vault.settings.git.wait_s
    tasks = select_tasks(options)
    names = {task.name for task in tasks}
    with janitor_lock(root):
        clear_worktrees(root, history)
        history.wait_until_ready(vault.notify)
        if not options.dry_run:
            transaction.finish_killed(root, history, wait_s)
            commits.commit_answers(root, history, wait_s)
        base = guards.check_branch(history)
        opening = open_worktree(vault, report.run, base)
        with closing(RecallRecords(root, vault.settings)) as records, opening as worktree:
            report.notes = documents.count(worktree.index())
            if not options.accept_removals:
                guards.check_size(report.notes + len(history.revisions.list_left_out()), notes_before)
            answered, message = commits.plan_answers(root, history) if options.dry_run else ([], Message(""))
            if answered:
                worktree.commit(answered, message)
            _Run(vault, worktree, records, documentation, options, report).run(tasks)
        if "rag" in names and vault.settings.systems.projects and not options.dry_run:
            report.remarks += docs.index_documents(documentation)
        if "cleanup" in names and not options.dry_run:
            report.remarks += cleanup.clean(vault.state, datetime.now(UTC))
            try:
                report.remarks += history.maintain()
            except QuaidError as error:
                report.remarks.append(str(error))
        if "update_check" in options.tasks:
            report.remarks.append(
                f"This is Quaid {VERSION}. Whether there is a newer one was not asked: that would need the network."
            )
    report.took_s = time.monotonic() - started


class _Run:
    """A run in its worktree: what was committed there so far, and what the history says about the owner's will."""

    def __init__(
        self,
        vault: OpenVault,
        worktree: Worktree,
        records: RecallRecords,
        documentation: Documentation,
        options: RunOptions,
        report: RunReport,
    ) -> None:
        self._vault = vault
        self._settings = vault.settings
        self._history = vault.git
        self._worktree = worktree
        self._records = records
        self._documentation = documentation
        self._options = options
        self._report = report
        self._now = localise(report.started, vault.settings.timezone)
        self._waiting = Decisions(vault.state / LOCAL_FILE)
        self._commits: list[RunCommit] = []
        self._gate: guards.Gate | None = None
        log = self._history.log_changes()
        self._written = last_written(log)
        self._deciders = {
            change.path: (logged.commit.author, logged.commit.email)
            for logged in log
            for change in logged.changes
            if asks(change.path)
        }
        authors = Authors.of(self._settings.git, self._history.owner())
        brought = SourceHistory(log, authors, worktree.index(), vault.layout)
        self._doubts = brought.list_doubts(self._settings.audit.facts_per_day)
        self._ranking = Ranking(self._history, authors, worktree.base, is_on=self._settings.git.sign == "auto")
        self._judgements = Judgements(
            vault.state / LOCAL_FILE, datetime.now(UTC).date().isoformat(), is_read_only=options.dry_run
        )
        self._policy = Policy(self._settings, self._history, log, worktree.base, report, self._judgements)

    def run(self, tasks: Sequence[Task]) -> None:
        worktree, report = self._worktree, self._report
        if self._history.boundary:
            report.remarks.append(
                "The history of this clone is cut off: what you took back before that is not known. "
                "Fetch the rest with: git fetch --unshallow"
            )
        self._carry_out_answers()
        self._run_tasks(tasks)
        reported = {decision.key for decision, _ in report.held_back}
        for key in sorted(self._policy.consents & self._policy.questions.keys() - reported):
            waiting = self._waiting.get(key)
            if waiting and (self._options.only_answers or any(task.name == waiting.task for task in tasks)):
                report.held_back.append((waiting, "its notes have changed since you were asked"))
        self._write_questions()
        if not report.changed:
            return
        worktree.sync()
        if self._gate is not None:
            decided = (*report.done, *report.asked)  # a question changes the rank of what it is about
            report.lost = self._gate.find_lost({name for each in decided for name in (*each.paths, *each.facts)})
        if report.lost:
            return
        if report.is_dry_run:  # report what a run would not merge
            moved = commits.moved_paths(self._vault.root, commits.net_edits(self._commits))
            dropped = commits.without_paths(self._commits, moved)[1]
        else:
            self._propose_branches()
            dropped, left = commits.merge_run(
                self._vault.root, self._history, worktree, self._commits, report, self._settings.git.wait_s
            )
            report.remarks += [f"not committed, your own changes are in it: {path}" for path in left]
        keys = {decision.key for decision in dropped}
        report.held_back += [(decision, "you have changed the same note meanwhile") for decision in dropped]
        report.done = [decision for decision in report.done if decision.key not in keys]

    # -- answers -------------------------------------------------------------------------------------------------

    def _carry_out_answers(self) -> None:
        """Carry out what the owner has answered, and close the questions that no longer apply."""
        policy, worktree = self._policy, self._worktree
        found = questions.list_questions(worktree.root, self._vault.layout)
        policy.questions |= {question.key: question for question in found}
        policy.vetoes += [Veto(*refused, asking.UNANSWERED) for refused in self._waiting.list_refused()]
        facts, day = list_living(worktree.index()), self._now.date().isoformat()
        uses = self._records.strengths([fact.id for fact in facts]) if policy.questions else {}
        replaced = core_notes.list_replaced(worktree.index(), day) if policy.questions else []
        for question in list(policy.questions.values()):
            is_vetoed = policy.is_vetoed(question.key)
            decision = self._waiting.get(question.key) or decide_answered(facts, question, worktree.root)
            fitted = [self._refit(edit) for edit in decision.edits] if decision is not None else []
            edits = tuple(edit for edit in fitted if edit is not None)
            is_changed = (
                len(edits) < len(fitted)
                or asking.has_changed(question, facts, uses, day)
                or any(core_notes.adds_outdated(edit, replaced) for edit in edits)
            )
            answer = question.answer or asking.choose_default(question, self._now)
            if is_vetoed and answer in (*_CHOSEN, "yes"):
                self._close_question(question, "was undone")
            elif is_changed and not is_vetoed:
                self._close_question(question, "no longer asked: what it is about has changed")
            elif answer in (*_CHOSEN, "yes"):
                policy.consents.add(question.key)
                if answer == "yes" and decision is not None:
                    self._carry_out(replace(decision, edits=edits, is_minor=False))
                    self._report_answer(answer, question)
            elif answer is not None:
                self._refuse(question, answer, decision, find_pair_keys(facts, question))
        if self._commits:
            worktree.sync()

    def _refuse(self, question: Question, answer: str, decision: Decision | None, more: Iterable[str]) -> None:
        """Commit a no, or that both are true: later runs read it as a veto, of its pair's keys `more` too: a no is
        about the pair, an undo is not.
        """
        reason, subject = "The owner has said no.", f"not to {question.title}"
        if answer == "both":
            reason, subject = "The owner has said that both are true.", f"both are true, to {question.title}"
        reason = reason if question.answer is not None else f"{asking.UNANSWERED}."
        body = "\n\n".join(filter(None, [reason, decision.detail if decision else ""]))
        keys = [question.key, *more]
        self._remove_question(question, subject, body, *((VETO, f"{question.task} {key}") for key in keys))
        self._policy.vetoes += (Veto(question.task, key, question.title, body) for key in keys)
        self._report_answer(answer, question)

    def _report_answer(self, answer: str, question: Question) -> None:
        """Report what became of a question: the owner's `answer`, or the safe choice."""
        if question.answer is not None:
            self._report.answered.append(f"{answer}: {question.title}")
        else:
            self._report.closed += 1
            self._report.remarks.append(f"{asking.UNANSWERED}, so it is {answer}: {question.title}")

    def _refit(self, edit: Edit) -> Edit | None:
        """Return an edit that was planned on an earlier day as one of the note as it is now; None on a collision."""
        current = self._worktree.read(edit.rel_path)
        if current == edit.before:
            return edit
        if current is None or edit.before is None:
            return None
        if edit.after is None:
            place = self._vault.layout
            old, new = (notes.parse_note(edit.rel_path, data, place=place) for data in (edit.before, current))
            is_same = old.kind is Kind.FACT and fact_evidence(old) == fact_evidence(new)
            return replace(edit, before=current) if is_same and not (new.pinned or new.verified) else None
        merged = self._history.merge_text(current, edit.before, edit.after)
        return Edit(edit.rel_path, current, merged) if merged is not None else None

    def _close_question(self, question: Question, why: str) -> None:
        """Commit that a question is no longer asked: its owner has undone their yes, or it is about something that has
        changed.
        """
        self._remove_question(question, f"{question.title} {why}")
        self._report.closed += 1
        if question.answer is not None:
            self._report.remarks.append(f"Your {question.answer} came too late. {question.title} {why}")

    def _remove_question(self, question: Question, subject: str, body: str = "", *more: tuple[str, str]) -> None:
        edit = Edit(question.rel_path, question.data, None)
        removal = Decision(question.task, "answer", question.key, (edit,), question.title, "")
        trailers = (*more, *trailers_of(question.task, self._report.run))
        message = Message(f"janitor({question.task}): {subject}", body, trailers)
        self._commit(RunCommit((removal,), message, self._find_decider(question)))
        del self._policy.questions[question.key]

    def _find_decider(self, question: Question | None) -> tuple[str, str]:
        """Return the author of a decision: the person who answered the question, else the janitor."""
        if question is None or question.answer is None:
            return JANITOR
        decider = self._deciders.get(question.rel_path, JANITOR)
        return decider if Authors(self._settings.git.email).is_by_hand(decider[1]) else JANITOR

    # -- the tasks -----------------------------------------------------------------------------------------------

    def _run_tasks(self, tasks: Sequence[Task]) -> None:
        report, vault = self._report, self._vault
        has_models = not self._options.only_answers and vault.models.describe().provider is not None
        models = vault.models.start_run() if has_models else None
        for number, task in enumerate(tasks):
            vault.show_progress("Tidying", number, len(tasks))
            if not task.module or not getattr(self._settings.systems, task.switch, True):
                continue
            if task.needs_model and models is None:
                report.waiting.append(task.name)
                continue
            done_before = len(self._commits)
            try:
                self._run_task(task, models)
            except QuaidError as error:
                report.failed[task.name] = str(error)
            if len(self._commits) > done_before:
                self._worktree.sync()
        vault.show_progress("Tidying", len(tasks), len(tasks))
        if models is not None:
            report.usage += models.spent

    def _run_task(self, task: Task, models: Models | None) -> None:
        """Carry out what the task decides, at once; at its end the minor decisions, in one commit for each kind."""
        vetoes = self._policy.vetoes
        context = TaskContext(
            root=self._worktree.root,
            settings=self._settings,
            now=self._now,
            index=self._worktree.index(),
            records=self._records,
            judgements=self._judgements,
            documents=self._documentation,
            models=models,
            # A choice that nobody made shows a model nothing.
            vetoes=tuple(v for v in vetoes if v.task == task.name and not v.body.startswith(asking.UNANSWERED)),
            vetoed=frozenset(veto.key for veto in vetoes),
            answered=self._policy.answered(),
            only_answers=self._options.only_answers,
            written=self._written,
            doubts=self._doubts,
            ranking=self._ranking,
            report=self._report,
            progress=self._vault.show_progress,
        )
        minor: dict[str, list[Decision]] = {}
        for decision in task.plan(context):
            if not self._policy.admits(decision, context.index, self._vault.root):
                continue
            if decision.is_minor:
                minor.setdefault(decision.kind, []).append(decision)
            else:
                self._carry_out(decision)
        for batch in minor.values():
            self._carry_out(*batch)

    # -- carrying out --------------------------------------------------------------------------------------------

    def _carry_out(self, *decisions: Decision) -> None:
        """Commit decisions of one kind together, without those whose notes an earlier one has changed."""
        fresh: list[Decision] = []
        taken: set[str] = set()
        author = JANITOR
        for planned in decisions:
            decision = planned
            question = self._policy.questions.pop(decision.key, None)
            if question is not None:  # the owner's answer is yes
                if question.kind == CONFLICT:
                    self._report.answered.append(f"{question.answer}: {question.title}")
                author = self._find_decider(question)
                decision = replace(decision, edits=(*decision.edits, Edit(question.rel_path, question.data, None)))
            is_stale = any(self._worktree.read(edit.rel_path) != edit.before for edit in decision.edits)
            if is_stale or not taken.isdisjoint(decision.paths):
                self._report.held_back.append((decision, _OVERLAPS))
            else:
                fresh.append(decision)
                taken.update(decision.paths)
        if taken:
            self._commit(RunCommit(tuple(fresh), author=author))
        self._report.done += fresh

    def _commit(self, commit: RunCommit) -> None:
        changes_memory = not all(asks(edit.rel_path) for edit in commit.edits)  # questions are not recalled
        is_checked = self._settings.janitor.gate and not self._options.only_answers  # the owner decides those alone
        if self._gate is None and is_checked and changes_memory:
            self._gate = guards.Gate(self._vault.root, self._worktree)
        self._worktree.commit(commit.edits, commits.message_of(commit, self._report.run), commit.author)
        self._commits.append(commit)

    # -- after the tasks -----------------------------------------------------------------------------------------

    def _write_questions(self) -> None:
        """Write a note in review/ for each thing to ask, in one commit."""
        report, worktree, place = self._report, self._worktree, self._vault.layout
        made: list[Decision] = []
        retired = {fact for decision in report.done if decision.kind in _RETIRING for fact in decision.facts}
        report.held_back += [(each, _OVERLAPS) for each in report.asked if not retired.isdisjoint(each.facts)]
        wanted = [each for each in report.asked if retired.isdisjoint(each.facts)]
        uses = self._records.strengths([fact for each in wanted for fact in each.facts]) if wanted else {}
        day = self._now.date().isoformat()
        report.asked[:] = asking.select_asked(wanted, self._policy.questions.values(), self._waiting, uses, self._now)
        waiting = [each for each in wanted if each not in report.asked]
        report.held_back += [(each, asking.NO_ROOM) for each in waiting]
        if waiting and not report.is_dry_run:
            until = (self._now - timedelta(days=asking.WAIT_DAYS)).date().isoformat()
            report.remarks += [f"{asking.NEVER_ASKED}: {it}" for it in self._waiting.defer(waiting, day, until)]
        facts = list_living(worktree.index()) if report.asked else []
        for asked in list(report.asked):
            path = questions.question_path(asked.kind, asked.key, place)
            if worktree.read(path) is not None:
                report.asked.remove(asked)
            else:
                contents = {shown: worktree.read(shown) for shown in questions.list_quoted(asked)}
                evidence = asking.list_evidence(asked, facts, day)
                text = questions.render_question(asked, report.started, contents, place, evidence)
                made.append(replace(asked, edits=(Edit(path, None, text),)))
                if not report.is_dry_run:
                    self._waiting.put(asked, day)
        if made:
            subject = f"janitor: {len(made)} question{'s' * (len(made) > 1)} for you"
            body = "\n".join(f"- {decision.subject}" for decision in made)
            self._commit(RunCommit(tuple(made), Message(subject, body, trailers_of("questions", report.run))))

    def _propose_branches(self) -> None:
        """Make the branches that were decided for other repositories. If the run is killed before the merge, the next
        one finds the branch; a question stays while no branch can be made.
        """
        report = self._report
        waiting: set[str] = set()
        for decision in [decision for decision in report.done if decision.branch is not None]:
            try:
                report.remarks.append(docs.carry_out(decision, self._judgements))
            except QuaidError as error:
                report.done.remove(decision)
                report.answered = [answer for answer in report.answered if answer != f"yes: {decision.subject}"]
                report.held_back.append((decision, str(error)))
                if not isinstance(error, NoteChangedError):
                    waiting.update(decision.paths)
        if waiting:
            self._commits, _ = commits.without_paths(self._commits, waiting)
            commits.replay(self._worktree, self._commits, self._worktree.base, report.run)
