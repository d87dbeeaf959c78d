"""The janitor of a vault, wired: runs, the gate on recall, the owner's answers, and taking back what was done."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from quaid.errors import BadInputError, NoteNotFoundError, QuaidError
from quaid.history.merge import revert_change
from quaid.janitor import questions
from quaid.janitor.decision import Decision
from quaid.janitor.integrity import find_problems
from quaid.janitor.news import render_docs_news, render_news
from quaid.janitor.project_docs import ProjectDocs, few
from quaid.janitor.report import Report
from quaid.janitor.runner import Options, RunDependencies, Runner
from quaid.janitor.snapshot import take_snapshot
from quaid.janitor.vetoes import REVERTS, RUN, TASK, is_beside, trailers_of_undoing
from quaid.janitor.worktree import JANITOR
from quaid.local.health import HealthLog
from quaid.local.notifications import Feature, deliver, level_of
from quaid.local.runs import Judgements, Proposal, Proposals, Run, Runs
from quaid.model import Commit, Edit, Hit, Message, Recall
from quaid.place import LOCAL_FILE, state_folder
from quaid.recall.bookkeeping import Bookkeeping
from quaid.recall.evaluation import Question, parse_questions
from quaid.recall.expectation import find_expected, list_meant
from quaid.sync.derived_index import SyncOptions
from quaid.vault import files, layout, transaction

if TYPE_CHECKING:
    import apsw

    from quaid.capture.writer import Dependencies, Writer
    from quaid.docs.documentation import Documentation
    from quaid.history.branches import VaultCommit
    from quaid.llm import Models
    from quaid.sync.derived_index import SyncReport
    from quaid.sync.embedding import Progress

GATE_BEST = 3
"""Of a question from the log, so many of the best answers must still be found …"""
GATE_DEPTH = 10
"""… among so many."""
MOST_GAPS = 100
Answer = Literal["yes", "no"]


@dataclass(frozen=True, slots=True)
class Undone:
    """What `undo` did: the commits it took back, and the one that does."""

    commits: tuple[Commit, ...]
    commit: str | None
    left: tuple[str, ...] = ()


class WorktreeMemory(Protocol):
    """What the gate asks of a memory whose vault is a worktree."""

    def recall(self, query: str, limit: int | None = None, *, keep: bool = True, **options: Any) -> Recall:
        """Return the memories that answer `query`."""

    def index(self) -> apsw.Connection:
        """Return a connection to the index, brought up to date."""


class Janitor:
    """One vault's janitor."""

    def __init__(
        self,
        dependencies: Dependencies,
        writer: Writer,
        documentation: Documentation,
        models: Callable[[], Models],
        sync: Callable[[SyncOptions | None], SyncReport],
        open_worktree: Callable[[Path], AbstractContextManager[WorktreeMemory]],
        progress: Progress,
    ) -> None:
        self._dependencies = dependencies
        self._root = dependencies.root
        self._settings = dependencies.settings
        self._writer = writer
        self._documentation = documentation
        self._open_models = models
        self._sync = sync
        self._open_worktree = open_worktree
        self._progress = progress
        local = state_folder(self._root) / LOCAL_FILE
        self._runs = Runs(local)
        self._judgements = Judgements(local, datetime.now(UTC).date().isoformat())
        self._proposals = Proposals(local)

    def run(self, options: Options, now: datetime | None = None) -> Report:
        """One run, written into the diary however it ends. `now` is the clock's, for whoever has no other.

        Raises:
            LockedError, JanitorStoppedError: nothing was done.
        """
        now = now or datetime.now(UTC)
        name = layout.new_id(now)
        last = self._runs.last_success()
        began = Run(name, now.isoformat(), notes_before=(last.notes_after or 0) if last else 0)
        if not options.dry_run:
            self._runs.add(began)
        try:
            report = self._run(options, name, now, last.notes_after if last else None)
        except QuaidError as error:
            if not options.dry_run:
                self._runs.finish(
                    began._replace(outcome="stopped", ended=datetime.now(UTC).isoformat(), problem=str(error))
                )
                self._tell(f"Quaid's janitor stopped: {error}")
            raise
        self._sync(None)
        report.remarks += find_problems(self._dependencies.seen_index())
        if not options.dry_run:
            self._write_diary(self._diary(began, report), report)
        return report

    def open_questions(self) -> list[questions.Question]:
        """What waits for the owner, oldest first."""
        found = []
        for path in sorted((self._root / questions.FOLDER).glob("*.md")):
            rel_path = path.relative_to(self._root).as_posix()
            question = questions.read_question(rel_path, files.read_note(self._root, rel_path) or b"")
            found += [question] if question else []
        return found

    def answer(self, reference: str, answer: Answer) -> list[questions.Question]:
        """Tick a box of a question, named by its file or key, or of `all`; the next run carries it out.

        Raises:
            NoteNotFoundError, BadInputError: nothing of that name waits, or nothing at all.
        """
        meant = [question for question in self.open_questions() if self._is_meant(question, reference)]
        if not meant and reference == "all":
            raise BadInputError("No question waits for an answer. Look for some with: quaid janitor run")
        if not meant:
            raise NoteNotFoundError(reference)
        changes = tuple(Edit(q.rel_path, q.data, questions.tick(q, answer)) for q in meant)
        message = Message(
            f"review: {answer} to {len(meant)} question{'s' * (len(meant) > 1)}",
            "\n".join(f"- {question.title}" for question in meant),
            (("Quaid-Task", "review"),),
        )
        self._apply(f"answer {reference} {answer}", changes, message)
        return meant

    def runs(self, limit: int) -> list[Run]:
        """The last runs, newest first."""
        return self._runs.list(limit)

    def commits_of(self, reference: str) -> list[Commit]:
        """What a run or one commit of the janitor's has done, newest first.

        Raises:
            BadInputError: there is no such run or commit.
        """
        return [logged.commit for logged in reversed(self._find(reference, self._log()))]

    def undo(self, reference: str) -> Undone:
        """Take back a run or one of its commits, keeping what was changed since; the same is not proposed again.

        Raises:
            BadInputError: there is no such thing, or the same lines were changed since: nothing was done.
        """
        log = self._log()
        undone = self._find(reference, log)
        spans = _spans(undone)
        undoing = [self._undoing(path, *spans[path]) for path in sorted(spans) if not is_beside(path)]
        collided = [path for path, edit in undoing if edit is None]
        if collided:
            raise BadInputError(
                f"{', '.join(collided[:3])} was changed since in the same lines"
                f"{_changed_again(collided[0], undone, log)}: nothing was undone. "
                f"Undo that first, or single commits instead: quaid janitor show {reference}"
            )
        changes = tuple(edit for _, edit in undoing if edit is not None and edit.before != edit.after)
        commits = tuple(logged.commit for logged in reversed(undone))
        if not changes:
            return Undone(commits, None)
        subject = commits[0].subject if len(commits) == 1 else f"{len(commits)} commits of a run"
        ids = [commit.id for commit in commits]
        message = Message(
            f"janitor: undo {subject}",
            "\n".join(f"This reverts commit {commit_id}." for commit_id in ids),
            (*((REVERTS, commit_id) for commit_id in ids), *trailers_of_undoing(reversed(commits)), (TASK, "undo")),
        )
        committed = self._apply(f"undo {' '.join(ids)}", changes, message)
        return Undone(commits, committed.id, committed.left)

    def _undoing(self, path: str, first: str, last: str) -> tuple[str, Edit | None]:
        """What takes back what the commits from `first` to `last` did to a file, None where somebody has changed the
        same lines since.
        """
        git = self._dependencies.history()
        before, after = git.read_at(f"{first}^", path), git.read_at(last, path)
        now = files.read_note(self._root, path)
        if now in (before, after):
            return path, Edit(path, now, before)
        if before is None or after is None or now is None:
            return path, None
        undone = revert_change(before, after, now)
        return path, None if undone is None else Edit(path, now, undone)

    # -- a run ---------------------------------------------------------------------------------------------------

    def _run(self, options: Options, name: str, now: datetime, notes_before: int | None) -> Report:
        documents = ProjectDocs(self._root, self._settings, self._documentation, self._writer, self._judgements)
        with Bookkeeping(self._root, self._settings) as books:
            dependencies = RunDependencies(
                root=self._root,
                settings=self._settings,
                embedding=self._dependencies.embedding,
                history=self._dependencies.history(),
                models=self._models,
                use_of=books.strengths,
                judgements=self._judgements,
                proposals=_Kept(self._proposals, now),
                notes_before=notes_before,
                gaps=lambda: books.gaps(MOST_GAPS)[0],
                gate=self._gate,
                ledger=books.plan_fold,
                stale_docs=documents.stale,
                grown_docs=lambda: documents.grown(now),
                propose=documents.propose,
                keep_house=lambda tasks: self._keep_house(tasks, options, documents),
                say=self._dependencies.say,
                progress=self._progress,
            )
            self._sync(SyncOptions(accept_removals=options.accept_removals))
            report = Runner(dependencies, options, name, now).run()
        if not options.tasks or "docs_staleness" in options.tasks:
            report.stale = documents.left_behind()
        report.remarks += documents.problems
        if report.stale:
            report.remarks.append(f"Stale documents: {few(report.stale)}. See why with: quaid docs check")
        return report

    def _models(self) -> Models | None:
        models = self._open_models()
        return None if models.describe().provider is None else models.start_run()

    def _keep_house(self, tasks: Collection[str], options: Options, documents: ProjectDocs) -> list[str]:
        """What the tasks do that decide nothing, in sentences."""
        from quaid.janitor import cleanup

        said = documents.index() if "rag" in tasks else []
        if "cleanup" in tasks:
            said += cleanup.clean(state_folder(self._root), datetime.now(UTC))
            try:
                self._dependencies.history().pack()
            except QuaidError as error:
                said.append(str(error))
        return [*said, cleanup.update_check()] if "update_check" in options.tasks else said

    def _diary(self, began: Run, report: Report) -> Run:
        decisions = [_as_row(decision, "done") for decision in report.done]
        decisions += [_as_row(decision, "asked") for decision in report.asked]
        decisions += [_as_row(decision, reason) for decision, reason in report.held_back]
        return began._replace(
            outcome="stopped" if report.lost else "failed" if report.failed else "done",
            ended=datetime.now(UTC).isoformat(),
            commit=report.commit,
            decisions=tuple(decisions),
            waiting=len(self.open_questions()),
            cost_usd=report.usage.cost_usd,
            notes_after=report.notes,
            degraded=tuple(report.waiting),
            problem="; ".join([*(f"{task}: {why}" for task, why in report.failed.items()), *report.lost]) or None,
        )

    def _write_diary(self, run: Run, report: Report) -> None:
        """The run in the diary, a snapshot of the memory beside it, and the news of it on its way."""
        self._runs.finish(run)
        cost = report.usage.cost_usd
        taken = take_snapshot(
            self._root, self._dependencies.fresh_index(), datetime.now(UTC), waiting=run.waiting, cost_usd=cost
        )
        HealthLog(state_folder(self._root) / LOCAL_FILE).add(taken)
        notifications = self._settings.notifications
        news = render_news(report, level_of(notifications, "janitor"), questions=run.waiting)
        docs_news = render_docs_news(report, level_of(notifications, "docs"))
        report.remarks += [*self._tell(news), *self._tell(docs_news, "docs")]

    def _tell(self, text: str, feature: Feature = "janitor") -> list[str]:
        return deliver(self._root, self._settings.notifications, feature, text)

    # -- the gate ------------------------------------------------------------------------------------------------

    def _gate(self, bench: Path) -> Callable[[Collection[str]], list[str]]:
        """Put the owner's own questions to the bench as it is now.

        What is returned puts them again: a sentence for each answer that is lost by then, but for those of the log that
        are in the notes it is given, which a decision is about.
        """
        with Bookkeeping(self._root, self._settings) as books:
            asked = [Question(text) for text in books.questions(self._settings.janitor.gate_questions)]
        for page in sorted((self._root / "eval").glob("*.md")):
            data = files.read_note(page.parent, page.name) or b""
            asked += parse_questions(data.decode("utf-8", "replace"), page.name)
        before = self._put(asked, bench)

        def lost(touched: Collection[str]) -> list[str]:
            pairs = zip(before, self._put(asked, bench), strict=True)
            return [sentence for was, now in pairs for sentence in _lost(was, now, touched)]

        return lost

    def _put(self, asked: Iterable[Question], bench: Path) -> list[_Answer]:
        """What the memory on the bench, not the owner's files, answers: these hold work that is not committed."""
        answers = []
        with self._open_worktree(bench) as memory:
            for question in asked:
                hits = memory.recall(question.text, GATE_DEPTH, depth="fast", keep=False).hits
                found = (
                    reference
                    for reference in question.expected
                    if find_expected(hits, reference, list_meant(memory.index(), reference)) is not None
                )
                answers.append(_Answer(question, hits, frozenset(found)))
        return answers

    # -- wiring --------------------------------------------------------------------------------------------------

    def _log(self) -> list[VaultCommit]:
        git = self._dependencies.history()
        return git.branches.log() if git.state().head else []

    def _find(self, reference: str, log: Sequence[VaultCommit]) -> list[VaultCommit]:
        """The commits of `log` that are meant, oldest first: those of a run, or one. A run is found by its name, which
        a rebase leaves as it is.

        Raises:
            BadInputError: there is no such run or commit.
        """
        runs = [run for logged in log for run in logged.commit.trailers.get(RUN, ()) if _is_part(reference, run)]
        chosen: list[VaultCommit] = []
        if not runs:
            with suppress(QuaidError):
                commit_id = self._dependencies.history().revisions.find(reference).id
                chosen = [logged for logged in log if logged.commit.id == commit_id]
            runs = [run for logged in chosen if not logged.changes for run in logged.commit.trailers.get(RUN, ())]
        if runs:
            chosen = [logged for logged in log if runs[-1] in logged.commit.trailers.get(RUN, ())]
        found = [logged for logged in chosen if logged.changes]
        if not found:
            raise BadInputError(f"No run and no commit is called {reference!r}. See them with: quaid janitor list")
        return found

    def _is_meant(self, question: questions.Question, reference: str) -> bool:
        name = question.rel_path.removeprefix(f"{questions.FOLDER}/").removesuffix(".md")
        return reference in {"all", question.rel_path, name} or (
            len(reference) >= 4 and question.key.startswith(reference)
        )

    def _apply(self, key: str, changes: tuple[Edit, ...], message: Message) -> Any:
        history, wait_s = self._dependencies.history(), self._settings.git.wait_s
        with transaction.begin(self._root, history, wait_s, self._dependencies.say):
            change = transaction.VaultChange(key, changes, message, author=JANITOR)
            committed = transaction.apply(self._root, change, history)
        self._sync(None)
        return committed


def _spans(commits: Iterable[VaultCommit]) -> dict[str, tuple[str, str]]:
    """Path -> the first and the last of the commits that changed it."""
    spans: dict[str, tuple[str, str]] = {}
    for logged in commits:
        for change in logged.changes:
            for path in filter(None, (change.path, change.source)):
                spans[path] = (spans.get(path, (logged.commit.id,))[0], logged.commit.id)
    return spans


def _is_part(reference: str, run: str) -> bool:
    return len(reference) >= 4 and (run.startswith(reference) or run.endswith(reference))


def _changed_again(path: str, undone: Sequence[VaultCommit], log: Sequence[VaultCommit]) -> str:
    """The first commit after `undone` that changed a file, as its owner knows it; empty where none is."""
    later = log[log.index(undone[-1]) + 1 :]
    found = next((logged.commit for logged in later if any(change.path == path for change in logged.changes)), None)
    return f", first by {found.id[:10]} ({found.subject})" if found else ""


class _Answer(NamedTuple):
    """`found` is what of the expected is among the hits."""

    question: Question
    hits: tuple[Hit, ...]
    found: frozenset[str]


def _lost(was: _Answer, now: _Answer, touched: Collection[str]) -> Iterator[str]:
    question = was.question
    for reference in question.expected:
        if reference in was.found - now.found:
            yield f"{question.text!r} ({question.place}) would no longer find {reference}"
    left = {hit.id for hit in now.hits}
    for hit in was.hits[:GATE_BEST] if not question.place else ():
        if hit.id not in left and hit.path not in touched:
            yield f"{question.text!r} would no longer find {hit.id}: {hit.text[:80]}"


class _Kept:
    """Decisions that wait, in local.db."""

    def __init__(self, proposals: Proposals, now: datetime) -> None:
        self._proposals = proposals
        self._day = now.date().isoformat()

    def put(self, decision: Decision) -> None:
        self._proposals.put(
            Proposal(
                decision.key, decision.task, decision.kind, decision.subject, decision.why, decision.edits, self._day,
                decision.detail, decision.facts, decision.model, decision.prompt, decision.branch,
            )
        )  # fmt: skip

    def get(self, key: str) -> Decision | None:
        found = self._proposals.get(key)
        if found is None:
            return None
        return Decision(
            found.task, found.kind, found.key, found.edits, found.subject, found.why, found.facts, found.model,
            found.prompt, detail=found.detail, branch=found.branch,
        )  # fmt: skip


def _as_row(decision: Decision, outcome: str) -> Mapping[str, Any]:
    return {
        "task": decision.task,
        "kind": decision.kind,
        "key": decision.key,
        "subject": decision.subject,
        "facts": list(decision.facts),
        "outcome": outcome,
    }
