"""One night: the tasks in their order on a bench of their own, then one merge into the owner's branch.

A decision goes through a sieve before it is carried out: what its owner has vetoed or switched off is dropped, what
touches a pinned or verified note too; what the policy says, or lines that a person wrote, make it a question; what goes
over the budget waits. Nothing of it is seen by anybody before the merge, and the merge holds only what still fits the
owner's files.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from quaid.errors import LockedError, NoteChangedError, QuaidError, UsageError
from quaid.history.branches import last_written, written_by_others
from quaid.history.vault_history import History
from quaid.index import documents
from quaid.janitor import landing, questions, removal_guard
from quaid.janitor.decision import Decision
from quaid.janitor.questions import Question
from quaid.janitor.removal_guard import Budget
from quaid.janitor.report import Report
from quaid.janitor.steps import Step, message_of, trailers_of, without
from quaid.janitor.task_context import Context, Judgements, Veto
from quaid.janitor.task_table import TASKS, Row
from quaid.janitor.vetoes import VETO, is_beside, read_vetoes
from quaid.janitor.worktree import JANITOR, Bench, clear_benches, open_bench
from quaid.model import Edit, Message, Use
from quaid.place import state_folder
from quaid.settings import Settings
from quaid.sync.embedding import Embedding
from quaid.vault import transaction

if TYPE_CHECKING:
    from quaid.docs.cleanup import GrownDoc
    from quaid.docs.judgements import StaleDoc
    from quaid.llm import Models
    from quaid.local.gaps import Gap

LOCK_FILE = "janitor.lock"
MOST_QUESTIONS = 20
"""Nobody answers more at a time."""
_NEVER_TOUCHED = "it is about a pinned or verified note"
_ENOUGH = "there are enough questions for one night"
_SPENT = "the night's budget of changes is spent"
_OVERLAPS = "another decision of this night has changed the same note"


class Proposals(Protocol):
    """Decisions that wait for their owner's word, by key."""

    def put(self, decision: Decision) -> None: ...

    def get(self, key: str) -> Decision | None: ...


@dataclass(frozen=True, slots=True)
class Options:
    """`tasks` are names from the registry; none means all."""

    tasks: tuple[str, ...] = ()
    dry_run: bool = False
    accept_removals: bool = False


@dataclass(frozen=True, slots=True)
class RunDependencies:
    """What a run works with.

    `gate` puts the owner's own questions to the worktree as it is; what it returns puts them again, with a sentence for
    each answer that is lost by then, but for those in the notes it is told of. `ledger` plans this device's counters as
    an edit of the tree that it is given a reader of. `propose` makes the branch of a decision in its repository and
    says where it is.
    """

    root: Path
    settings: Settings
    embedding: Embedding
    history: History
    models: Callable[[], Models | None]
    use_of: Callable[[Iterable[str]], Mapping[str, Use]]
    judgements: Judgements
    proposals: Proposals
    notes_before: int | None
    gaps: Callable[[], Sequence[Gap]]
    gate: Callable[[Path], Callable[[Collection[str]], list[str]]]
    ledger: Callable[[Callable[[str], bytes | None]], Edit | None]
    stale_docs: Callable[[], Sequence[StaleDoc]]
    grown_docs: Callable[[], Sequence[GrownDoc]]
    propose: Callable[[Decision], str]
    keep_house: Callable[[Collection[str]], list[str]]
    say: Callable[[str], None]
    progress: Callable[[str, int, int], None]


class Runner:
    """Carries out one run."""

    def __init__(self, dependencies: RunDependencies, options: Options, run: str, now: datetime | None = None) -> None:
        self._dependencies = dependencies
        self._options = options
        self._now = now or datetime.now(UTC)
        self._report = Report(run, self._now, options.dry_run)
        self._budget = Budget(0)
        self._vetoes: list[Veto] = []
        self._open: dict[str, Question] = {}
        self._consents: set[str] = set()
        self._steps: list[Step] = []
        self._lost: Callable[[Collection[str]], list[str]] | None = None
        self._base = "HEAD"
        self._by_others: frozenset[str] = frozenset()
        self._written: Mapping[str, datetime] = {}

    def run(self) -> Report:
        """Do what the tasks decide, and merge it.

        Raises:
            LockedError: another janitor is at work, or a rebase or merge of the owner does not end.
            JanitorStoppedError: the vault is not in a state to be tidied.
        """
        started = time.monotonic()
        dependencies, report = self._dependencies, self._report
        history = dependencies.history
        rows = _choose(self._options.tasks)
        with self._alone():
            clear_benches(dependencies.root, history)
            history.wait_until_ready(dependencies.say)
            if not self._options.dry_run:
                transaction.finish_killed(dependencies.root, history, dependencies.settings.git.wait_s)
                landing.commit_answers(dependencies.root, history, dependencies.settings.git.wait_s)
            base = removal_guard.check_branch(history)
            with open_bench(
                dependencies.root, report.run, base, dependencies.settings, dependencies.embedding
            ) as bench:
                report.notes = documents.count(bench.index())
                if not self._options.accept_removals:
                    removal_guard.check_size(report.notes, dependencies.notes_before)
                self._prepare(bench)
                self._run_tasks(rows, bench)
                self._write_questions(bench)
                if report.changed and not self._options.dry_run:
                    self._land(bench)
            if not self._options.dry_run:
                report.remarks += dependencies.keep_house([row.name for row in rows])
        report.took_s = time.monotonic() - started
        return report

    # -- before the tasks ----------------------------------------------------------------------------------------

    @contextmanager
    def _alone(self) -> Iterator[None]:
        from filelock import FileLock, Timeout

        path = state_folder(self._dependencies.root) / LOCK_FILE
        try:
            with FileLock(path, timeout=0, mode=0o600):
                yield
        except Timeout as error:
            raise LockedError("Another janitor is at work in this vault") from error

    def _prepare(self, bench: Bench) -> None:
        dependencies = self._dependencies
        self._base = bench.base
        self._budget = Budget.of(self._report.notes, dependencies.settings.janitor.change_budget)
        own = {dependencies.settings.git.email, JANITOR[1]}
        branches, boundary = dependencies.history.branches, dependencies.history.boundary
        log = branches.log()
        self._vetoes = read_vetoes(log, own, boundary, branches.read_blobs)
        self._by_others = written_by_others(log, own)
        self._written = last_written(log)
        if boundary:
            self._report.remarks.append(
                "The history of this clone is cut off: what you took back before that is not known. "
                "Fetch the rest with: git fetch --unshallow"
            )
        for path in sorted((bench.root / questions.FOLDER).glob("*.md")):
            rel_path = path.relative_to(bench.root).as_posix()
            found = questions.read_question(rel_path, bench.read(rel_path) or b"")
            if found is not None:
                self._open[found.key] = found
        for question in list(self._open.values()):
            if question.answer is not None:
                self._carry_answer(question, bench)

    def _carry_answer(self, question: Question, bench: Bench) -> None:
        """What the owner has answered: a refusal is remembered in the history, consent is carried out."""
        gone = Edit(question.rel_path, question.data, None)
        trailers = trailers_of(question.task, self._report.run)
        if question.answer == "yes" and self._is_vetoed(question.key):  # it was done and undone: the note came back
            answer = Decision(question.task, "answer", question.key, (gone,), question.title, "", is_minor=True)
            self._do(
                Step((answer,), Message(f"janitor({question.task}): {question.title} was undone", "", trailers)), bench
            )
            del self._open[question.key]
            return
        if question.answer == "no":
            vetoing = (VETO, f"{question.task} {question.key}")
            proposal = self._dependencies.proposals.get(question.key)
            body = "\n\n".join(["The owner has said no.", *([proposal.detail] if proposal and proposal.detail else [])])
            message = Message(f"janitor({question.task}): not to {question.title}", body, (vetoing, *trailers))
            answer = Decision(question.task, "answer", question.key, (gone,), question.title, "")
            self._do(Step((answer,), message), bench)
            self._vetoes.append(Veto(question.task, question.key, question.title, body))
            self._report.answered.append(f"no: {question.title}")
            del self._open[question.key]
            return
        self._consents.add(question.key)
        proposal = self._dependencies.proposals.get(question.key)
        if proposal is not None and all(bench.read(edit.rel_path) == edit.before for edit in proposal.edits):
            self._carry_out(replace(proposal, is_minor=False), bench)
            self._report.answered.append(f"yes: {question.title}")

    # -- the tasks -----------------------------------------------------------------------------------------------

    def _run_tasks(self, rows: Sequence[Row], bench: Bench) -> None:
        models = self._dependencies.models()
        is_memory_broken = False
        for number, row in enumerate(rows):
            self._dependencies.progress("Tidying", number, len(rows))
            if row.by_runner or not _is_on(row, self._dependencies.settings):
                continue
            if row.needs_model and models is None:
                self._report.waiting.append(row.name)
            elif row.phase == "memory" and is_memory_broken:
                self._report.skipped.append(row.name)
            else:
                try:
                    self._run_task(row, bench, models)
                except QuaidError as error:
                    self._report.failed[row.name] = str(error)
                    is_memory_broken = is_memory_broken or row.phase == "memory"
        self._dependencies.progress("Tidying", len(rows), len(rows))
        if models is not None:
            self._report.usage = models.spent

    def _run_task(self, row: Row, bench: Bench, models: Models | None) -> None:
        decided = row.plan(self._context(row, bench, models))
        done_before = len(self._steps)
        try:
            minor = [decision for decision in decided if self._passes(decision) and not self._did(decision, bench)]
            for kind in dict.fromkeys(decision.kind for decision in minor):
                self._carry_out_batch([decision for decision in minor if decision.kind == kind], bench)
        finally:
            if len(self._steps) > done_before:
                bench.sync()

    def _context(self, row: Row, bench: Bench, models: Models | None) -> Context:
        judgements = (
            _Forgetful(self._dependencies.judgements) if self._options.dry_run else self._dependencies.judgements
        )
        return Context(
            settings=self._dependencies.settings,
            now=self._now,
            index=bench.index(),
            read=bench.read,
            use_of=self._dependencies.use_of,
            judgements=judgements,
            models=models,
            vetoes=tuple(veto for veto in self._vetoes if veto.task == row.name),
            vetoed=frozenset(veto.key for veto in self._vetoes),
            done=frozenset(decision.key for decision in self._report.done),
            gaps=self._dependencies.gaps(),
            ledger=lambda: self._dependencies.ledger(bench.read),
            written=self._written,
            stale_docs=self._dependencies.stale_docs,
            grown_docs=self._dependencies.grown_docs,
            remark=self._report.remarks.append,
            progress=self._dependencies.progress,
        )

    def _is_vetoed(self, key: str) -> bool:
        """Whether the owner has undone or refused it; the key tells the task as well as the evidence."""
        return any(veto.key == key for veto in self._vetoes)

    # -- the sieve -----------------------------------------------------------------------------------------------

    def _passes(self, decision: Decision) -> bool:
        """Whether `decision` is to be carried out; where not, it is put where it belongs."""
        if self._is_vetoed(decision.key):
            self._report.vetoed += 1
            return False
        policy = getattr(self._dependencies.settings.janitor.policies, decision.kind, "ask")
        has_consent = decision.key in self._consents
        if policy == "off" or (decision.key in self._open and not has_consent):
            return False
        question = "" if has_consent else self._why_ask(decision, policy)
        held_back = _NEVER_TOUCHED if removal_guard.is_protected(decision) else ""
        if not held_back and question and len(self._report.asked) >= MOST_QUESTIONS:
            held_back = _ENOUGH
        if not held_back and not question and not self._budget.take(decision):
            held_back = _SPENT
        if held_back:
            self._report.held_back.append((decision, held_back))
        elif question:
            self._report.asked.append(replace(decision, detail=f"{decision.detail}\n\n{question}".strip()))
        return not (held_back or question)

    def _why_ask(self, decision: Decision, policy: str) -> str:
        if decision.always_asks:
            return "This is always asked."
        if policy == "ask":
            return f"Asked because janitor.policies.{decision.kind} is ask."
        touched = [edit.rel_path for edit in decision.edits if self._is_human(edit)]
        return f"Asked because you wrote what it changes in {touched[0]}." if touched else ""

    def _is_human(self, edit: Edit) -> bool:
        if edit.before is None or edit.rel_path not in self._by_others or is_beside(edit.rel_path):
            return False
        lines = removal_guard.changed_lines(edit.before, edit.after)
        own = {self._dependencies.settings.git.email, JANITOR[1]}
        return bool(lines & self._dependencies.history.branches.human_lines(edit.rel_path, self._base, own))

    # -- carrying out --------------------------------------------------------------------------------------------

    def _did(self, decision: Decision, bench: Bench) -> bool:
        """Carry out what has a commit of its own; False for what goes into a batch."""
        if decision.is_minor:
            return False
        self._carry_out(decision, bench)
        return True

    def _carry_out(self, decision: Decision, bench: Bench) -> None:
        question = self._open.pop(decision.key, None)
        if question is not None:  # its owner has said yes
            decision = replace(decision, edits=(*decision.edits, Edit(question.rel_path, question.data, None)))
        try:
            if decision.edits:
                self._do(Step((decision,)), bench)
        except NoteChangedError:
            self._report.held_back.append((decision, _OVERLAPS))
        else:
            self._report.done.append(decision)

    def _carry_out_batch(self, batch: Sequence[Decision], bench: Bench) -> None:
        fresh: list[Decision] = []
        taken: set[str] = set()
        for decision in batch:
            is_stale = any(bench.read(edit.rel_path) != edit.before for edit in decision.edits)
            if is_stale or not taken.isdisjoint(decision.paths):
                self._report.held_back.append((decision, _OVERLAPS))
                continue
            fresh.append(decision)
            taken.update(decision.paths)
        if fresh:
            self._do(Step(tuple(fresh)), bench)
            self._report.done += fresh

    def _do(self, step: Step, bench: Bench) -> None:
        if self._lost is None and self._dependencies.settings.janitor.gate and not self._options.dry_run:
            self._lost = self._dependencies.gate(bench.root)
        bench.commit(step.edits, message_of(step, self._report.run))
        self._steps.append(step)

    # -- after the tasks -----------------------------------------------------------------------------------------

    def _write_questions(self, bench: Bench) -> None:
        """One commit with a note in review/ for each thing to ask."""
        report = self._report
        made: list[Decision] = []
        for asked in list(report.asked):
            path = questions.question_path(asked)
            if bench.read(path) is not None:
                report.asked.remove(asked)
                continue
            made.append(replace(asked, edits=(Edit(path, None, questions.render_question(asked, self._now)),)))
            if not report.is_dry_run:
                self._dependencies.proposals.put(asked)
        if made:
            subject = f"janitor: {len(made)} question{'s' * (len(made) > 1)} for you"
            body = "\n".join(f"- {decision.subject}" for decision in made)
            self._do(Step(tuple(made), Message(subject, body, trailers_of("questions", report.run))), bench)

    def _land(self, bench: Bench) -> None:
        dependencies, report = self._dependencies, self._report
        bench.sync()
        if self._lost is not None:
            report.lost = self._lost({path for decision in report.done for path in decision.paths})
        if report.lost:
            return
        self._make_branches(bench)
        git = dependencies.settings.git
        landed = landing.land(
            dependencies.root, dependencies.history, bench, self._steps, self._summary(), report.run, git
        )
        report.commit = landed.commit
        report.held_back += [(decision, "you have changed the same note meanwhile") for decision in landed.dropped]
        dropped = {decision.key for decision in landed.dropped}
        report.done = [decision for decision in report.done if decision.key not in dropped]
        report.remarks += [f"not committed, your own changes are in it: {path}" for path in landed.left]

    def _make_branches(self, bench: Bench) -> None:
        """What is decided for other repositories. Killed between this and the merge, the next run finds the branch; a
        question stays while there can be none.
        """
        report = self._report
        waiting: set[str] = set()
        for decision in [decision for decision in report.done if decision.branch is not None]:
            try:
                report.remarks.append(self._dependencies.propose(decision))
            except QuaidError as error:
                report.done.remove(decision)
                report.answered = [said for said in report.answered if said != f"yes: {decision.subject}"]
                report.held_back.append((decision, str(error)))
                if not isinstance(error, NoteChangedError):
                    waiting.update(decision.paths)
        if waiting:
            self._steps, _ = without(self._steps, waiting)
            landing.do_again(bench, self._steps, bench.base, report.run)

    def _summary(self) -> Message:
        report = self._report
        counts: dict[str, int] = {}
        for decision in report.done:
            counts[decision.kind] = counts.get(decision.kind, 0) + 1
        parts = [f"{number} {kind}" for kind, number in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))]
        parts += [f"{len(report.answered)} answered"] if report.answered else []
        parts += [f"{len(report.asked)} to ask"] if report.asked else []
        body = "\n".join(f"- {decision.subject}" for decision in report.done if not decision.is_minor)
        return Message(f"janitor: {', '.join(parts)}", body, trailers_of("janitor", report.run))


class _Forgetful:
    """Judgements that are read and not written: for a run that only shows what it would do."""

    def __init__(self, judgements: Judgements) -> None:
        self.known = judgements.known

    def add(self, task: str, verdicts: Mapping[str, str]) -> None:
        pass


def _choose(names: Sequence[str]) -> tuple[Row, ...]:
    unknown = [name for name in names if name not in {row.name for row in TASKS}]
    if unknown:
        raise UsageError(f"There is no task {unknown[0]!r}. Tasks are: {', '.join(row.name for row in TASKS)}.")
    return tuple(row for row in TASKS if not names or row.name in names)


def _is_on(row: Row, settings: Settings) -> bool:
    """The owner's switches: which systems the janitor tends."""
    return bool(getattr(settings.systems, row.switch, True))
